"""Self-play: what frozen opponents cost, and which pool of opponents makes the better players.

    python benchmarks/selfplay.py --only speed        # collecting against opponents beside mirror play, minutes
    python benchmarks/selfplay.py --minutes 10        # five kinds of self-play, three seeds each: hours on two cores

Speed is counted in simulated arena-steps: both sides step as many cars, whoever learns from them. Both are measured in
turns in one process, so that whatever else the machine does meets them alike.
"""

import argparse
import json
import statistics
import time
from functools import partial
from typing import Any

import torch
from machine import describe_machine

from agents import PPOLightningAgent
from envs import RocketSimPool
from fabric_rl import collect
from fabric_rl.rollouts.rollout import Rollout
from fabric_rl.selfplay import Opponents, SelfPlay

ARENAS, STEPS, HIDDEN = 64, 64, (256, 256, 256)


def speed(rounds: int, at_once: int, threads: int | None) -> dict[str, Any]:
    """Arena-steps per second of mirror play, and of play against `at_once` different snapshots in every arena."""
    agent = partial(PPOLightningAgent, actor_hidden_sizes=HIDDEN, critic_hidden_sizes=HIDDEN, activation=torch.nn.ReLU)
    env = partial(RocketSimPool, ARENAS, num_threads=threads)
    self_play = SelfPlay(window=at_once, play_against_latest_model_ratio=0.0, at_once=at_once)
    envs = {"mirror": env(seed=0), "opponents": self_play.around(env, agent)(seed=0)}
    learner = agent(envs["mirror"].single_observation_space, envs["mirror"].single_action_space)
    for steps in range(at_once):
        self_play.roster.admit(steps, agent(learner.observation_space, learner.action_space).state_dict(), None)
    rollouts, found = {}, {name: [] for name in envs}
    for name, each in envs.items():
        if isinstance(each, Opponents):
            each._tables[:] = range(at_once)  # all of them, whatever the dice say
        rollouts[name] = Rollout(STEPS, each, agent=learner)
        rollouts[name].begin(*each.reset(seed=0))
    for number in range(rounds + 1):
        for name, each in envs.items():
            began = time.perf_counter()
            with torch.no_grad():
                collect(each, learner, rollouts[name])
            if number:  # arenas are slow in their first ticks
                found[name].append(ARENAS * STEPS / (time.perf_counter() - began))
    for each in envs.values():
        each.close()
    ratios = [theirs / mirror for mirror, theirs in zip(found["mirror"], found["opponents"], strict=True)]
    medians = {f"{name}_arena_steps_per_second": round(statistics.median(found[name])) for name in found}
    spread = statistics.quantiles(ratios, n=4)
    return medians | {"at_once": at_once, "ratio": statistics.median(ratios), "ratio_quartiles": [spread[0], spread[2]]}


def main() -> None:
    """Measures, and prints the figures as one JSON line at the end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["speed"], default="speed")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--at_once", type=int, nargs="+", default=[1, 4, 10])
    parser.add_argument("--num_threads", type=int)
    args = parser.parse_args()
    print(describe_machine())
    figures = [speed(args.rounds, at_once, args.num_threads) for at_once in args.at_once]
    for row in figures:
        low, high = row["ratio_quartiles"]
        ours, mirror = (row[f"{name}_arena_steps_per_second"] for name in ("opponents", "mirror"))
        print(
            f"{row['at_once']:3} different opponents: {ours:6,} arena-steps/s, mirror play {mirror:6,}: "
            f"{row['ratio']:.3f} of it (quartiles {low:.3f} to {high:.3f})"
        )
    print(json.dumps({"benchmark": "selfplay", "speed": figures}))


if __name__ == "__main__":
    main()
