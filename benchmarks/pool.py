"""RocketSimPool's speed against bare physics: what everything that is not physics costs.

The pool plays random actions once and records the first state of every episode. Then two things are timed in turn: the
pool with those actions, and the same arenas, actions and resets on the same number of threads with nothing read back.
Both are replays of the same games, so their ratio is the share of the pool's time that is physics.

    python benchmarks/pool.py --num_arenas 64 --team_size 1 --num_threads 2
"""

import argparse
import json
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from machine import describe_machine, peak_memory_mib

from envs import GameState, Kickoff, MixedStates, RandomState, RocketSimPool, StateSetter
from envs.arenas import ARENAS_PER_CHUNK
from envs.physics import SimArena
from envs.rocket_pool import available_threads

SEED = 0


class RecordStates(StateSetter):
    """Keeps a copy of every first state that the inner setter writes, step by step."""

    def __init__(self, inner: StateSetter) -> None:
        """Wraps `inner`."""
        self.inner = inner
        self.starts: list[list[tuple[int, GameState]]] = [[]]

    def apply(self, state: GameState, mask: np.ndarray, rng: np.random.Generator) -> None:
        """See `StateSetter.apply`."""
        self.inner.apply(state, mask, rng)
        for arena in np.flatnonzero(mask):
            self.starts[-1].append((int(arena), state.select(np.array([arena]))))


class BarePhysics:
    """The pool's arenas and threads and nothing else."""

    def __init__(self, pool: RocketSimPool) -> None:
        """Builds as many arenas, cars and threads as `pool` has."""
        self.sims = [SimArena(pool.state.team.tolist()) for _ in range(pool.num_arenas)]
        self.delay, self.rest = pool.action_delay_ticks, pool.tick_skip - pool.action_delay_ticks
        self.threads = pool.num_threads
        self.chunk = max(1, min(ARENAS_PER_CHUNK, pool.num_arenas // (2 * self.threads)))
        self.workers = ThreadPoolExecutor(max(1, self.threads - 1))

    def run(self, controls: list[list[Any]], starts: list[list[tuple[int, GameState]]]) -> float:
        """Seconds to play `controls`, with the first states `starts[0]` and the later ones after their steps."""
        self.begin(starts[0])
        began = time.perf_counter()
        for step_controls, step_starts in zip(controls, starts[1:], strict=True):
            chunks = iter(range(0, len(self.sims), self.chunk))
            others = [self.workers.submit(self.work, chunks, step_controls) for _ in range(self.threads - 1)]
            self.work(chunks, step_controls)
            for other in others:
                other.result()
            self.begin(step_starts)
        return time.perf_counter() - began

    def work(self, chunks: Iterator[int], controls: list[Any]) -> None:
        """Steps chunks of arenas until none is left."""
        for start in chunks:
            for index in range(start, min(start + self.chunk, len(self.sims))):
                sim = self.sims[index]
                if self.delay:
                    sim.arena.step(self.delay)
                for slot, car in enumerate(sim.cars, index * len(sim.cars)):
                    car.set_controls(controls[slot])
                if self.rest:
                    sim.arena.step(self.rest)

    def begin(self, starts: list[tuple[int, GameState]]) -> None:
        """Begins episodes."""
        for index, state in starts:
            self.sims[index].set_state(state, 0)


def run_pool(pool: RocketSimPool, actions: np.ndarray) -> float:
    """Seconds that the pool needs for `actions [steps, N]` from its seeded start."""
    pool.reset(seed=SEED)
    began = time.perf_counter()
    for step_actions in actions:
        pool.step(step_actions)
    return time.perf_counter() - began


def record(pool: RocketSimPool, setter: RecordStates, actions: np.ndarray) -> list[list[tuple[int, GameState]]]:
    """Plays once; the first states of the episodes, for the beginning and for every step."""
    setter.starts = [[]]
    pool.reset(seed=SEED)
    for step_actions in actions:
        setter.starts.append([])
        pool.step(step_actions)
    starts, setter.starts = setter.starts, [[]]
    return starts


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--num_arenas", type=int, default=64)
    parser.add_argument("--team_size", type=int, default=1)
    parser.add_argument("--num_threads", type=int, default=available_threads())
    parser.add_argument("--starts", choices=("kickoff", "mixed"), default="kickoff", help="mixed: half random states")
    parser.add_argument("--steps", type=int, default=900, help="pool steps in one timed run (900: a minute of game)")
    parser.add_argument("--repeats", type=int, default=3, help="timed runs of the pool and of bare physics, in turn")
    args = parser.parse_args()

    inner = MixedStates([Kickoff(), RandomState()], [1, 1]) if args.starts == "mixed" else Kickoff()
    setter = RecordStates(inner)
    pool = RocketSimPool(args.num_arenas, args.team_size, state_setter=setter, num_threads=args.num_threads, seed=SEED)
    actions = np.random.default_rng(SEED).integers(90, size=(args.steps, pool.num_envs))
    starts = record(pool, setter, actions)
    controls = [list(pool.action_parser.controls(a, pool.state)) for a in actions]
    bare = BarePhysics(pool)

    bare.run(controls[:100], starts[:101])  # warm caches

    agent_steps = args.steps * pool.num_envs
    rates: dict[str, list[float]] = {"pool": [], "bare": []}
    for repeat in range(args.repeats):
        rates["pool"].append(agent_steps / run_pool(pool, actions))
        rates["bare"].append(agent_steps / bare.run(controls, starts))
        print(f"{repeat + 1}: pool {rates['pool'][-1]:,.0f}  bare {rates['bare'][-1]:,.0f} agent-steps/s")
    figures = {
        "num_arenas": args.num_arenas,
        "team_size": args.team_size,
        "starts": args.starts,
        "num_threads": pool.num_threads,
        "steps": args.steps,
        "episodes_begun": sum(len(s) for s in starts),
        "pool_agent_steps_per_second": round(statistics.median(rates["pool"])),
        "bare_agent_steps_per_second": round(statistics.median(rates["bare"])),
        "ratio": round(statistics.median(p / b for p, b in zip(rates["pool"], rates["bare"], strict=True)), 3),
        "peak_memory_mib": peak_memory_mib(),
        "machine": describe_machine(),
    }
    print(
        f"{figures['machine']}\n{args.num_arenas} arenas of {args.team_size}v{args.team_size}, {pool.num_threads} "
        f"threads: pool {figures['pool_agent_steps_per_second']:,}, bare physics "
        f"{figures['bare_agent_steps_per_second']:,} agent-steps/s, ratio {figures['ratio']}, "
        f"peak memory {figures['peak_memory_mib']} MiB"
    )
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
