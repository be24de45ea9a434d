"""What in a bot's training matters: one thing is changed at a time, and the bots then meet the chaser and the shooter.

    M=runs/school/seed0/milestones/Phase1-BallTouching/000002506752                # what benchmarks/school.py has left
    python benchmarks/ablations.py --begin $M                                      # all arms, three seeds: many hours
    python benchmarks/ablations.py --begin $M --arms base entropy_0.01 --seeds 0 1 --minutes 5
    python benchmarks/ablations.py --report_only

Arms change the bot school's second phase. Most go on from an agent that has learned to touch the ball (`--begin`);
those with another observation, action table or network begin from nothing, beside `from_nothing`, which is the school
from its first phase on. Every arm has as many minutes of one core (by the processor's clock) and plays the same
matches with sampled actions. A run that is there is not trained again.

With three seeds or more the interval is Student's over seeds: of other trainings that go on from the same agent,
against the same kickoffs. With fewer it is that of the matches of one training, which says nothing about another seed.
Of twenty arms that change nothing one looks different. Give other `--minutes` or another `--begin` a folder of its own.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml
from machine import describe_machine
from school import OPPONENTS, evaluate
from signals import band

ROOT = Path(__file__).parent.parent
PRESET, PHASE = "configs/bot_school.yaml", "BronzeSkills1"
ONE_CORE = ["--total_timesteps=10_000_000_000", "--devices=1", "--num_threads=1", "--env.init_args.num_threads=1"]
Settings = dict[str, Any]


def top(**values: object) -> Callable[[Settings], object]:
    """Sets settings of the learner."""
    return lambda settings: settings.update(values)


def agent(class_name: str = "agents.PPOLightningAgent", **values: object) -> Callable[[Settings], object]:
    """Sets the agent's class and settings."""

    def change(settings: Settings) -> None:
        settings["agent"]["class_path"] = class_name
        settings["agent"]["init_args"].update(values)

    return change


def env(**values: object) -> Callable[[Settings], object]:
    """Sets arguments of the environment."""
    return lambda settings: settings["env"]["init_args"].update(values)


def part(class_name: str, **values: object) -> Settings:
    """A component of an environment."""
    return {"class_path": f"envs.{class_name}", "init_args": values}


def weights(**values: float) -> Callable[[Settings], object]:
    """Sets weights of `PHASE` by the class of the reward, `TeamSpirit` for that of the ball to the goal."""

    def change(settings: Settings) -> None:
        scoring = settings["env"]["init_args"]["reward"]["init_args"]["rewards"][PHASE]["init_args"]
        names = [reward["class_path"].removeprefix("envs.").removesuffix("Reward") for reward in scoring["rewards"]]
        for name, weight in values.items():
            scoring["weights"][names.index(name)] = weight

    return change


def selfish(settings: Settings) -> None:
    """The ball's way to the goal is paid to each side by itself, as before it was made zero-sum."""
    scoring = settings["env"]["init_args"]["reward"]["init_args"]["rewards"][PHASE]["init_args"]["rewards"]
    for reward in scoring:
        if reward["class_path"] == "envs.TeamSpiritReward":
            reward["init_args"]["opponent_scale"] = 0.0


GO_ON: dict[str, Callable[[Settings], object]] = {
    "base": top(),
    "clip_apart": top(clip_groups=True),
    "returns_as_they_are": top(standardize_returns=False),
    "entropy_0.001": agent(entropy_coef=0.001),
    "entropy_0.005": agent(entropy_coef=0.005),
    "entropy_0.01": agent(entropy_coef=0.01),
    "gamma_0.99": top(gamma=0.99),
    "gamma_0.9954": top(gamma=0.9954),
    "batch_16k": top(num_steps=256),
    "batch_50k": top(num_steps=768),
    "batch_100k": top(num_steps=1536),
    "minibatch_4096": top(minibatch_size=4096),
    "epochs_4": top(update_epochs=4),
    "rate_1e-3": top(lr_scale=2.5),
    "rate_1e-4": top(lr_scale=0.25),
    "goals_alone": weights(
        StrongHit=0.0, BasicShot=0.0, TeamSpirit=0.0, SpeedTowardBall=0.0, FaceBall=0.0, InAir=0.0, Kickoff=0.0
    ),
    "no_speed_toward_ball": weights(SpeedTowardBall=0.0),
    "strong_hits_doubled": weights(StrongHit=0.5),
    "ball_to_goal_selfish": selfish,
}
ANEW: dict[str, Callable[[Settings], object]] = {
    "from_nothing": top(),
    "relative_obs": env(obs=part("RelativeObs")),
    "entity_obs_attention": lambda settings: (
        env(obs=part("EntityObs"))(settings),
        settings.update(agent={"class_path": "agents.AttentionPPOAgent", "init_args": {"entropy_coef": 0.01}}),
    ),
    "hybrid_table": env(action=part("HybridTable")),
    "recurrent": agent("agents.RecurrentPPOAgent"),
}


def write_settings(path: Path, change: Callable[[Settings], object], phase: int) -> None:
    """Writes the preset with one thing changed, which stays in that phase; `rate_*` scale the rates of all."""
    settings = yaml.safe_load((ROOT / PRESET).read_text(encoding="utf-8"))
    change(settings)
    phases = settings["callbacks"][0]["init_args"]
    phases["start_phase"] = phase
    scale = settings.pop("lr_scale", 1.0)
    if phase > 1:
        for name in ("promotions", "after_steps"):
            del phases["phases"][phase - 1][name]
    for each in phases["phases"]:
        each["learning_rate"] *= scale
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")


def train(run: Path, change: Callable[[Settings], object], begin: str | None, minutes: float, seed: int) -> None:
    """Trains an arm with a seed, unless that is there."""
    if (run / "summary.json").exists():
        return
    run.parent.mkdir(parents=True, exist_ok=True)
    config = run.with_suffix(".yaml")
    write_settings(config, change, 1 if begin is None else 2)
    stop = json.dumps([{"class_path": "selfplay.StopAfter", "init_args": {"minutes": minutes}}])
    flags = [f"--config={config}", *ONE_CORE, f"--callbacks+={stop}", f"--seed={seed}"]
    flags += [f"--runs_dir={run.parent}", f"--run_id={run.name}", "--plain", "--force"]
    flags += [] if begin is None else [f"--initialize_from={begin}"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "benchmarks")])}
    with open(run.with_suffix(".txt"), "w", encoding="utf-8") as out:
        command = [sys.executable, "train_fabric.py", *flags]
        subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=out, stderr=subprocess.STDOUT)


def difference(run: Path, opponent: str, matches: int) -> dict[str, Any]:
    """Goal difference per match of 5 minutes, kept beside the run."""
    return evaluate(str(run), opponent, matches, run.parent / f"{run.name}_{opponent}_{matches}.json")


def row(runs_dir: Path, arm: str, seeds: Sequence[int], matches: int) -> tuple[str, dict[str, Any]] | None:
    """A line of the table, and its figures; None where no seed was trained."""
    runs = [runs_dir / f"{arm}_{seed}" for seed in seeds]
    runs = [run for run in runs if (run / "summary.json").exists()]
    if not runs:
        return None
    steps = [json.loads((run / "summary.json").read_text(encoding="utf-8"))["total_steps"] for run in runs]
    line, figures = f"| {arm} | {len(runs)} | {sum(steps) / len(steps) / 1e6:.2f} M ", {"steps": steps}
    for opponent in OPPONENTS:
        found = [difference(run, opponent, matches) for run in runs]
        means = [each["difference"] for each in found]
        if len(runs) >= 3:
            own = band(means)
            low, high = (own["mean"] + sign * own["half_width"] for sign in (-1, 1))
        else:
            ends = found[0]["difference_interval_95"] if len(runs) == 1 else None  # None for few matches, too
            low, high = ends or (min(means), max(means))
        figures[opponent] = means
        line += f"| {sum(means) / len(means):+.2f} | {low:+.2f} to {high:+.2f} "
    return line + "|", figures


def main() -> None:
    """Trains, plays, and prints a table in Markdown and the figures as one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs_dir", type=Path, default=Path("runs/ablations"))
    parser.add_argument("--begin", help="milestone or agent of the first phase that most arms go on from")
    parser.add_argument("--arms", nargs="+", choices=[*GO_ON, *ANEW], default=[*GO_ON, *ANEW])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--minutes", type=float, default=10.0, help="of one core, for each training")
    parser.add_argument("--matches", type=int, default=40)
    parser.add_argument("--report_only", action="store_true")
    parser.add_argument("--out", type=Path, help="write the table there")
    args = parser.parse_args()
    if not args.begin and not args.report_only and any(arm in GO_ON for arm in args.arms):
        parser.error("these arms go on from an agent of the first phase: give --begin")
    runs_dir = args.runs_dir.resolve()
    for seed in args.seeds if not args.report_only else ():  # a seed of all arms first: a part of it is a result, too
        for arm in args.arms:
            change, begin = (GO_ON[arm], args.begin) if arm in GO_ON else (ANEW[arm], None)
            train(runs_dir / f"{arm}_{seed}", change, begin, args.minutes, seed)
    found = {arm: made for arm in args.arms if (made := row(runs_dir, arm, args.seeds, args.matches))}
    lines = ["# Ablations", "", f"`python benchmarks/ablations.py`: goals per match of 5 minutes, {args.matches}"]
    lines += [f"matches, sampled; {args.minutes:g} minutes of one core each. {describe_machine()}", ""]
    lines += ["Intervals: of three seeds and more Student's over seeds, 95 %; of two their two results; of one that of"]
    lines += ["the matches.", "", "| arm | seeds | steps | chaser | | shooter | |", "|---|---|---|---|---|---|---|"]
    text = "\n".join([*lines, *(line for line, _ in found.values())]) + "\n"
    print(text)
    if args.out:
        args.out.write_text(text, encoding="utf-8")
    print(json.dumps({"ablations": {arm: figures for arm, (_, figures) in found.items()}}))


if __name__ == "__main__":
    main()
