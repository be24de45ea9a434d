"""Self-play: what frozen opponents cost, and which pool of opponents makes the better players.

    python benchmarks/selfplay.py --only speed                            # opponents beside mirror play: minutes
    python benchmarks/selfplay.py --only ladder --runs_dir runs/selfplay  # five kinds, three seeds each: hours
    python benchmarks/selfplay.py --only ladder --seeds 0 --kinds mirror pfsp   # a part of it, to be gone on with

Speed is counted in simulated arena-steps: both step as many cars, whoever learns from them. Both are measured in turns
in one process, so that whatever else the machine does meets them alike; once by the clock on the wall, and once by that
of the processor, which other programs hardly change.

The ladder goes on from an agent that comes along, with each kind and each seed, for so many minutes of one core (by the
processor's clock), then lets all of them and the agent they began with play a league. A run that is there
is not trained again.
"""

import argparse
import json
import os
import statistics
import subprocess
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import children
import torch
from machine import describe_machine

from agents import PPOLightningAgent
from envs import RocketSimPool
from fabric_rl import collect
from fabric_rl.rollouts.rollout import Rollout
from fabric_rl.selfplay import Opponents, SelfPlay

ROOT = Path(__file__).parent.parent
ARENAS, STEPS, HIDDEN = 64, 64, (256, 256, 256)
CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}
POOL = ["--self_play=SelfPlay", "--self_play.save_steps=100_000", "--self_play.swap_steps=50_000"]
SIMILAR = ["--self_play.eviction=MostSimilar", "--self_play.min_kl=0.05"]
KINDS: dict[str, list[str]] = {
    "mirror": [],
    "latest": [*POOL, "--self_play.play_against_latest_model_ratio=1.0"],
    "uniform": POOL,
    "pfsp": [*POOL, "--self_play.sampling=PFSPHard"],
    "behaviour": [*POOL, *SIMILAR],
}
BEGIN = "school_1v1"
TRAIN = ["--config=configs/bot_school.yaml", f"--initialize_from={BEGIN}", "--callbacks.init_args.start_phase=4"]
TRAIN += ["--total_timesteps=10_000_000_000", "--devices=1", "--num_threads=1", "--env.init_args.num_threads=1"]


def ladder(
    runs_dir: Path, minutes: float, kinds: Sequence[str], seeds: Sequence[int], matches: int, flags: Sequence[str]
) -> dict[str, Any]:
    """Trains what is not there yet, then plays the league; its results, and the mean rating of each kind."""
    names = {kind: [f"{kind}_{seed}" for seed in seeds] for kind in kinds}
    for seed in seeds:  # one seed of all kinds after the other: a part of it is a result, too
        for kind in kinds:
            run = runs_dir / f"{kind}_{seed}"
            if not (run / "summary.json").exists():
                own = [*TRAIN, *KINDS[kind], *flags, children.processor_minutes(minutes), f"--seed={seed}"]
                where = [f"--runs_dir={runs_dir}", f"--run_id={run.name}", "--plain", "--force"]
                children.train([*own, *where])
    file = runs_dir / "league.json"
    if not matches:
        return {"minutes": minutes}
    everyone = [BEGIN] + [str(runs_dir / name) for each in names.values() for name in each]
    played = ["league", *everyone, "--matches", str(matches), "--minutes", "1", "--sample", "true", "--json", str(file)]
    played += ["--workers", str(os.cpu_count())]
    subprocess.run([*children.FABRIC_RL, *played], cwd=ROOT, env=children.environment(), check=True)
    ratings = {row["name"]: row["rating"] for row in json.loads(file.read_text(encoding="utf-8"))["ratings"]}
    means = {kind: statistics.mean(ratings[name] for name in each) for kind, each in names.items()}
    steps = {
        name: json.loads((runs_dir / name / "summary.json").read_text(encoding="utf-8"))["total_steps"]
        for each in names.values()
        for name in each
    }
    return {"ratings": ratings, "mean_ratings": means, "steps": steps, "minutes": minutes, "league": str(file)}


def speed(rounds: int, at_once: int, threads: int | None) -> dict[str, Any]:
    """Arena-steps per second of mirror play, and of play against `at_once` different snapshots in every arena."""
    sizes = {"actor_hidden_sizes": HIDDEN, "critic_hidden_sizes": HIDDEN}
    agent = partial(PPOLightningAgent, **sizes, activation=torch.nn.ReLU)
    env = partial(RocketSimPool, ARENAS, num_threads=threads)
    self_play = SelfPlay(window=at_once, play_against_latest_model_ratio=0.0, at_once=at_once)
    envs = {"mirror": env(seed=0), "opponents": self_play.around(env, agent)(seed=0)}
    learner = agent(envs["mirror"].single_observation_space, envs["mirror"].single_action_space)
    for steps in range(at_once):
        self_play.roster.add_snapshot(steps, agent(learner.observation_space, learner.action_space).state_dict(), None)
    rollouts = {}
    seconds: dict[tuple[str, str], list[float]] = {(name, clock): [] for name in envs for clock in CLOCKS}
    for name, each in envs.items():
        if isinstance(each, Opponents):
            each.pairings.slots[:] = range(at_once)  # all of them, whatever the dice say
        rollouts[name] = Rollout(STEPS, each, agent=learner)
        rollouts[name].begin(*each.reset(seed=0))
    for number in range(rounds + 1):
        for name, each in envs.items():
            began = {clock: now() for clock, now in CLOCKS.items()}
            with torch.no_grad():
                collect(each, learner, rollouts[name])
            if number:  # arenas are slow in their first ticks
                for clock, now in CLOCKS.items():
                    seconds[name, clock].append(now() - began[clock])
    for each in envs.values():
        each.close()
    found: dict[str, Any] = {"at_once": at_once}
    for name in envs:
        found[f"{name}_arena_steps_per_second"] = ARENAS * STEPS / statistics.median(seconds[name, "wall"])
    for clock in CLOCKS:
        pairs = zip(seconds["mirror", clock], seconds["opponents", clock], strict=True)
        found[f"{clock}_ratio_quartiles"] = statistics.quantiles([mirror / ours for mirror, ours in pairs], n=4)
    return found


def main() -> None:
    """Measures, and prints the figures as one JSON line at the end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["speed", "ladder"])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--at_once", type=int, nargs="+", default=[1, 4, 10])
    parser.add_argument("--num_threads", type=int)
    parser.add_argument("--runs_dir", type=Path, default=Path("runs/selfplay"))
    parser.add_argument("--minutes", type=float, default=10.0, help="of each training")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--matches", type=int, default=20, help="of each two of the league, 0 for none")
    parser.add_argument("--flags", nargs="*", default=[], help="more flags of train_fabric.py, --flag=value")
    args = parser.parse_args()
    print(describe_machine())
    figures: dict[str, Any] = {"benchmark": "selfplay"}
    if args.only != "ladder":
        figures["speed"] = [speed(args.rounds, at_once, args.num_threads) for at_once in args.at_once]
        for row in figures["speed"]:
            ours, mirror = (row[f"{name}_arena_steps_per_second"] for name in ("opponents", "mirror"))
            print(f"{row['at_once']:3} different opponents: {ours:,.0f} arena-steps/s, mirror play {mirror:,.0f}")
            for clock in CLOCKS:
                low, middle, high = row[f"{clock}_ratio_quartiles"]
                print(f"    {middle:.3f} of its speed by the {clock}'s clock (quartiles {low:.3f} to {high:.3f})")
    if args.only != "speed":
        runs_dir = args.runs_dir.resolve()
        figures["ladder"] = ladder(runs_dir, args.minutes, args.kinds, args.seeds, args.matches, args.flags)
        for kind, rating in sorted(figures["ladder"].get("mean_ratings", {}).items(), key=lambda pair: -pair[1]):
            print(f"{kind:10} {rating:6.0f} on average over {len(args.seeds)} seeds")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
