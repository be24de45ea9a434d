"""What rewards cost against a step of the pool that they are in.

Plays random actions in 64 arenas of 1v1 from kickoffs and random states, and times `compute` of each reward, of a usual
set (the terms of phase 3 and 4 of requirement 001) and of all of them in one sum on the states met: medians over the
steps, plus the mean cost of resets. All details of the state that are read on demand are charged to each reward.

    python benchmarks/rewards.py
    python benchmarks/rewards.py --num_arenas 256 --team_size 3
"""

import argparse
import json
import statistics
import time

import numpy as np
from machine import describe_machine

import envs.rewards
from envs import CombinedReward, Kickoff, MixedStates, RandomState, Reward, RocketSimPool
from envs.rewards.__main__ import rewards_to_choose_from

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


def build(name: str) -> Reward:
    """A reward by its class name, with the settings that are the defaults."""
    if name == "EventReward":
        weights = {"goal": 20, "concede": -10, "touch": 1, "shot": 1, "save": 1, "demo": 1}
        return envs.rewards.EventReward(**weights)
    reward: Reward = getattr(envs.rewards, name)()
    return reward


class Timed(Reward):
    """A reward and the time that it takes."""

    def __init__(self, reward: Reward) -> None:
        """Wraps `reward`."""
        self.reward, self.calls = reward, list[float]()
        self.resets = 0.0

    def reset(self, mask: np.ndarray, state: envs.GameState) -> None:
        """See `Reward.reset`."""
        began = time.perf_counter()
        self.reward.reset(mask, state)
        self.resets += time.perf_counter() - began

    def compute(self, state: envs.GameState) -> np.ndarray:
        """See `Reward.compute`."""
        began = time.perf_counter()
        paid = self.reward.compute(state)
        self.calls.append(time.perf_counter() - began)
        return paid


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

    names = rewards_to_choose_from()
    sums = {"usual set": USUAL, "all": dict.fromkeys(names, 1.0)}
    timed = {name: Timed(build(name)) for name in names}
    timed |= {n: Timed(CombinedReward([build(r) for r in parts], [*parts.values()])) for n, parts in sums.items()}
    starts = MixedStates([Kickoff(), RandomState()], [1, 1])
    pool = RocketSimPool(args.num_arenas, args.team_size, state_setter=starts, reward=Side(timed))
    actions = np.random.default_rng(0).integers(90, size=(args.steps, pool.num_envs))
    pool.reset(seed=0)
    pool.step(actions[0])
    for reward in timed.values():
        reward.calls.clear()
        reward.resets = 0.0
    steps, default = [], Timed(envs.rewards.default_reward())
    bare = RocketSimPool(args.num_arenas, args.team_size, state_setter=starts, reward=default)
    bare.reset(seed=0)
    for step_actions in actions:
        began = time.perf_counter()
        bare.step(step_actions)
        steps.append(time.perf_counter() - began - default.calls[-1])
        pool.step(step_actions)
    timed["default reward"] = default
    without = statistics.median(steps)
    cost = {name: statistics.median(reward.calls) + reward.resets / args.steps for name, reward in timed.items()}
    print(f"{describe_machine()}\n{args.num_arenas} arenas, teams of {args.team_size}; a step without rewards takes ")
    print(f"{without * 1e3:.2f} ms\n\n| Reward | us a step | share of a step |\n|---|---|---|")
    for name, seconds in sorted(cost.items(), key=lambda item: item[1]):
        print(f"| {name} | {seconds * 1e6:.0f} | {seconds / without:.2%} |")
    shares = {name: round(seconds / without, 4) for name, seconds in cost.items()}
    print(json.dumps({"step_ms": round(without * 1e3, 3), "shares": shares, "machine": describe_machine()}))


if __name__ == "__main__":
    main()
