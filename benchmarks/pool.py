"""RocketSimPool's speed against bare physics, RLGymPool and rlgym's own `env.step`.

The pool plays random actions from the 90-row table once and records the first state of every episode. Then two things
are timed in turn: the pool with those actions, and the same arenas, actions and resets on the same number of threads
with nothing read back (bare physics). Both are replays of the same games, so their ratio is the share of the pool's
time that is physics. `processes` is `ProcessPool` with as many workers of one thread, against the same bare physics.

    python benchmarks/pool.py                                             # 64 and 256 arenas of 1v1 on all cores
    python benchmarks/pool.py --team_size 1 2 3 --num_arenas 16 64 256    # a table
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from machine import describe_machine, peak_memory_mib
from rlgym_guide import build_env

from envs import GameState, Kickoff, MixedStates, ProcessPool, RandomState, RLGymPool, RocketSimPool, StateSetter
from envs.sim.arena import SimArena
from envs.sim.arenas import ARENAS_PER_CHUNK
from fabric_rl.base.processes import available_threads

SEED = 0
Starts = list[list[tuple[int, GameState]]]


class RecordStates(StateSetter):
    """Keeps a copy of every first state that the inner setter writes, step by step."""

    def __init__(self, inner: StateSetter) -> None:
        """Wraps `inner`."""
        self.inner = inner
        self.starts: Starts = [[]]

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

    def run(self, controls: list[list[Any]], starts: Starts) -> float:
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


def seconds(pool: Any, actions: np.ndarray) -> float:  # noqa: ANN401 - any vector environment
    """Seconds that a pool needs for `actions [steps, N]` from its seeded start."""
    pool.reset(seed=SEED)
    began = time.perf_counter()
    for step_actions in actions:
        pool.step(step_actions)
    return time.perf_counter() - began


def record(pool: RocketSimPool, setter: RecordStates, actions: np.ndarray) -> Starts:
    """Plays once; the first states of the episodes, for the beginning and for every step."""
    setter.starts = [[]]
    pool.reset(seed=SEED)
    for step_actions in actions:
        setter.starts.append([])
        pool.step(step_actions)
    starts, setter.starts = setter.starts, [[]]
    return starts


def first_state(kind: str) -> StateSetter:
    """The state setter that `--starts` names."""
    return MixedStates([Kickoff(), RandomState()], [1, 1]) if kind == "mixed" else Kickoff()


def measure(args: argparse.Namespace, num_arenas: int, team_size: int) -> dict[str, Any]:
    """One row: threads and processes against bare physics, in turn."""
    setter = RecordStates(first_state(args.starts))
    pool = RocketSimPool(num_arenas, team_size, state_setter=setter, num_threads=args.num_threads, seed=SEED)
    actions = np.random.default_rng(SEED).integers(90, size=(args.steps, pool.num_envs))
    starts = record(pool, setter, actions)
    controls = [list(pool.action_parser.parse(a, pool.state).cars) for a in actions]
    setter.apply = setter.inner.apply  # type: ignore[method-assign]
    runs = {"threads": partial(seconds, pool, actions)}
    shards = None
    if pool.num_threads > 1 and not args.no_processes:
        factory = partial(RocketSimPool, num_arenas, team_size, state_setter=first_state(args.starts))
        shards = ProcessPool(factory, num_workers=pool.num_threads, seed=SEED)
        runs["processes"] = partial(seconds, shards, actions)
    bare = BarePhysics(pool)
    bare.run(controls[:100], starts[:101])
    runs["bare"] = partial(bare.run, controls, starts)

    agent_steps = args.steps * pool.num_envs
    rates: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(args.repeats):
        for name, run in runs.items():
            rates[name].append(agent_steps / run())
    pool.close()
    if shards is not None:
        shards.close()
    row: dict[str, Any] = {"team_size": team_size, "num_arenas": num_arenas, "num_threads": pool.num_threads}
    row |= {f"{name}_steps_per_second": round(statistics.median(rate)) for name, rate in rates.items()}
    for name in ("threads", "processes"):
        if name in rates:
            pairs = zip(rates[name], rates["bare"], strict=True)
            row[f"{name}_ratio"] = round(statistics.median(p / b for p, b in pairs), 3)
    row["pool_memory_mib"] = memory_mib(num_arenas, team_size, pool.num_threads)
    return row


def memory_mib(num_arenas: int, team_size: int, num_threads: int) -> int:
    """Peak memory of a process that holds a pool and nothing else, after a few steps."""
    code = (
        "import numpy as np; from machine import peak_memory_mib; from envs import RocketSimPool; "
        f"p = RocketSimPool({num_arenas}, {team_size}, num_threads={num_threads}); p.reset(seed=0); "
        "[p.step(np.zeros(p.num_envs, int)) for _ in range(20)]; print(peak_memory_mib())"
    )
    path = [p for p in sys.path if p]
    child = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {path!r}; {code}"],
        check=True,
        capture_output=True,
        text=True,
    )
    return round(float(child.stdout))


def measure_rlgym(args: argparse.Namespace, team_size: int) -> dict[str, Any]:
    """Agent-steps per second and core: rlgym's own env.step, RLGymPool, and RocketSimPool with one thread."""
    rng = np.random.default_rng(SEED)
    env, steps, cars = build_env(team_size), args.rlgym_steps, 2 * team_size

    def rlgym() -> float:
        env.reset()
        began = time.perf_counter()
        for choice in rng.integers(90, size=(steps, cars, 1)):
            _, _, terminated, truncated = env.step(dict(zip(env.agents, choice, strict=True)))
            if any(terminated.values()) or any(truncated.values()):
                env.reset()
        return steps * cars / (time.perf_counter() - began)

    vector = RLGymPool(partial(build_env, team_size), num_envs=8)
    pool = RocketSimPool(64, team_size, num_threads=1)
    runs = {
        "rlgym": rlgym,
        "rlgym_pool": partial(rate, vector, rng.integers(90, size=(steps // 8, vector.num_envs))),
        "pool": partial(rate, pool, rng.integers(90, size=(steps // 8, pool.num_envs))),
    }
    for warm_up in runs.values():
        warm_up()
    rates: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(args.repeats):
        for name, run in runs.items():
            rates[name].append(run())
    row: dict[str, Any] = {"team_size": team_size}
    row |= {f"{name}_per_core": round(statistics.median(r)) for name, r in rates.items()}
    pairs = zip(rates["pool"], rates["rlgym"], strict=True)
    row["pool_over_rlgym"] = round(statistics.median(p / r for p, r in pairs), 2)
    return row


def rate(pool: Any, actions: np.ndarray) -> float:  # noqa: ANN401 - any vector environment
    """Agent-steps per second."""
    return actions.size / seconds(pool, actions)


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """A table with the keys of the rows as columns."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = ["| " + " | ".join(name.replace("_", " ") for name in names) + " |", "|---" * len(names) + "|"]
    for row in rows:
        cells = (f"{row[n]:,}" if isinstance(row.get(n), int) else str(row.get(n, "")) for n in names)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--num_arenas", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--team_size", type=int, nargs="+", default=[1])
    parser.add_argument("--num_threads", type=int, default=available_threads())
    parser.add_argument("--starts", choices=("kickoff", "mixed"), default="kickoff", help="mixed: half random states")
    parser.add_argument("--steps", type=int, default=450, help="pool steps in a timed run (450: half a minute)")
    parser.add_argument("--repeats", type=int, default=3, help="timed runs of everything, in turn")
    parser.add_argument("--no_processes", action="store_true", help="leave out ProcessPool")
    parser.add_argument("--rlgym_steps", type=int, default=1600, help="steps of rlgym's env.step; 0 leaves it out")
    args = parser.parse_args()

    sizes = [(arenas, team) for team in args.team_size for arenas in args.num_arenas]
    rows = [measure(args, arenas, team) for arenas, team in sizes]
    rlgym_rows = [measure_rlgym(args, team) for team in args.team_size] if args.rlgym_steps else []
    print(f"{describe_machine()}\n{args.starts} starts, {args.steps} steps, {args.repeats} repeats; agent-steps/s\n")
    print(markdown(rows), end="\n\n")
    if rlgym_rows:
        print(markdown(rlgym_rows), end="\n\n")
    figures = {"rows": rows, "rlgym": rlgym_rows, "machine": describe_machine(), "peak_memory_mib": peak_memory_mib()}
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
