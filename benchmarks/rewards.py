"""What rewards cost against a step of the pool that they are in.

Plays random actions in 64 arenas of 1v1 from kickoffs and random states. Each sum (the reward of RLGym's guide, a
usual set for two later phases, all rewards with weight 1) is the reward of a pool of its own, in turns
with a pool that pays nothing: means of CPU time, resets included, so that other programs on the machine hardly matter.
A `step` is that of the pool without rewards, once with one thread and once by the clock with all (fewer milliseconds,
so a larger share). Then every reward alone, on the same states; details that are read on demand are charged to each.

    python benchmarks/rewards.py
    python benchmarks/rewards.py --num_arenas 256 --team_size 3
"""

import argparse
import json
import statistics
import time

import numpy as np
from machine import describe_machine

import envs
from envs import CombinedReward, Kickoff, MixedStates, RandomState, Reward, RocketSimPool
from envs.rewards.__main__ import rewards_to_choose_from
from envs.rewards.car import default_reward

USUAL = {
    "EventReward": 1.0,
    "VelocityBallToGoalReward": 8.0,
    "StrongHitReward": 5.0,
    "BasicShotReward": 4.0,
    "JumpShotReward": 2.5,
    "BasicAerialReward": 4.0,
    "FaceBallReward": 1.0,
    "SpeedTowardBallReward": 1.0,
    "SaveBoostReward": 0.8,
    "CollectBoostReward": 0.3,
    "RecoveryAndLandingReward": 0.3,
    "InAirReward": 0.075,
}
BLOCK = 50
"""Steps that a pool makes before another one's turn: as in a run, it finds the caches as it left them."""
FIGURE = 0.05
"""The share of a step that all rewards together may cost."""


def build(name: str) -> Reward:
    """A reward by its class name, with the settings that are the defaults."""
    if name == "EventReward":
        weights = {"goal": 20, "concede": -10, "touch": 1, "shot": 1, "save": 1, "demo": 1}
        return envs.EventReward(**weights)
    reward: Reward = getattr(envs, name)()
    return reward


class Nothing(Reward):
    """Pays nothing."""

    def compute(self, state: envs.GameState) -> np.ndarray:
        """See `Reward.compute`."""
        return np.zeros((state.num_arenas, state.num_cars), np.float32)


class Timed(Reward):
    """A reward and the CPU time of this thread, and the time by the clock, that it takes."""

    def __init__(self, reward: Reward) -> None:
        """Wraps `reward`."""
        self.reward = reward
        self.cpu = self.wall = 0.0

    def reset(self, mask: np.ndarray, state: envs.GameState) -> None:
        """See `Reward.reset`."""
        self._timed(self.reward.reset, mask, state)

    def compute(self, state: envs.GameState) -> np.ndarray:
        """See `Reward.compute`."""
        return self._timed(self.reward.compute, state)

    def _timed(self, function, *arguments):  # noqa: ANN001, ANN002, ANN202
        cpu, wall = time.thread_time(), time.perf_counter()
        result = function(*arguments)
        self.cpu, self.wall = self.cpu + time.thread_time() - cpu, self.wall + time.perf_counter() - wall
        return result


class Side(Reward):
    """Computes several timed rewards and pays nothing."""

    def __init__(self, rewards: dict[str, Timed]) -> None:
        """Takes the rewards by name."""
        self.rewards, self.names = rewards, list(rewards)

    def reset(self, mask: np.ndarray, state: envs.GameState) -> None:
        """See `Reward.reset`."""
        for reward in self.rewards.values():
            reward.reset(mask, state)

    def compute(self, state: envs.GameState) -> np.ndarray:
        """See `Reward.compute`; in turns, so that what is read on demand is not always the first one's cost."""
        self.names.append(self.names.pop(0))
        for name in self.names:
            state.details_stale[:] = True
            self.rewards[name].compute(state)
        return np.zeros((state.num_arenas, state.num_cars), np.float32)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--num_arenas", type=int, default=64)
    parser.add_argument("--team_size", type=int, default=1)
    parser.add_argument("--steps", type=int, default=600)
    args = parser.parse_args()

    def pool(reward: Reward, threads: int | None = 1) -> RocketSimPool:
        starts = MixedStates([Kickoff(), RandomState()], [1, 1])
        made = RocketSimPool(args.num_arenas, args.team_size, reward=reward, state_setter=starts, num_threads=threads)
        made.reset(seed=0)
        return made

    names = rewards_to_choose_from()
    sums: dict[str, Reward] = {"default reward": default_reward()}
    for title, parts in {"usual set": USUAL, "all": dict.fromkeys(names, 1.0)}.items():
        sums[title] = CombinedReward([build(name) for name in parts], [*parts.values()])
    timed = {name: Timed(reward) for name, reward in sums.items()}
    alone = {name: Timed(build(name)) for name in names}
    pools = [*(pool(reward) for reward in timed.values()), pool(Side(alone))]
    bare, threaded = pool(Nothing()), pool(Nothing(), None)
    actions = np.random.default_rng(0).integers(90, size=(args.steps + 1, bare.num_envs))
    for each in (*pools, bare, threaded):
        each.step(actions[0])
    for reward in (*timed.values(), *alone.values()):
        reward.cpu = reward.wall = 0.0
    step_cpu, step_wall = 0.0, []
    for first in range(1, args.steps + 1, BLOCK):
        block = actions[first : first + BLOCK]
        for each in pools:
            for step_actions in block:
                each.step(step_actions)
        began = time.process_time()
        for step_actions in block:
            bare.step(step_actions)
        step_cpu += time.process_time() - began
        for step_actions in block:
            began = time.perf_counter()
            threaded.step(step_actions)
            step_wall.append(time.perf_counter() - began)

    step, clock = step_cpu / args.steps, statistics.median(step_wall)
    cost = {name: reward.cpu / args.steps for name, reward in (timed | alone).items()}
    print(f"{describe_machine()}\n{args.num_arenas} arenas, teams of {args.team_size}. A step without rewards takes ")
    print(f"{step * 1e3:.2f} ms of CPU time with one thread, {clock * 1e3:.2f} ms by the clock (median) with ")
    print(f"{threaded.num_threads}.\n\n| Reward | us a step | of a step's CPU time | of its time by the clock |")
    print("|---|---|---|---|")
    for name, seconds in sorted(cost.items(), key=lambda item: item[1]):
        print(f"| {name} | {seconds * 1e6:.0f} | {seconds / step:.2%} | {seconds / clock:.2%} |")
    print(f"\nAll together: {cost['all'] / step:.1%} of a step ({FIGURE:.0%} is the aim)")
    shares = {name: round(seconds / step, 4) for name, seconds in cost.items()}
    figures = {"step_cpu_ms": round(step * 1e3, 3), "step_ms": round(clock * 1e3, 3), "shares": shares}
    print(json.dumps(figures | {"all_us": round(cost["all"] * 1e6, 1), "machine": describe_machine()}))


if __name__ == "__main__":
    main()
