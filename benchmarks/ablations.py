"""What in a bot's training matters: one thing is changed at a time, and the bots then meet the chaser and the shooter.

    M=runs/school/seed0/milestones/Phase1-BallTouching/000002506752                # what benchmarks/school.py has left
    python benchmarks/ablations.py --begin $M                                      # all arms, three seeds: many hours
    python benchmarks/ablations.py --begin $M --arms base entropy_0.01 --seeds 0 1 --minutes 5
    python benchmarks/ablations.py --report_only

Arms change the bot school's second phase, on one rank with the arenas and minibatches of its two. Most go on from an
agent that has learned to touch the ball (`--begin`); those with another observation, action table or network begin from
nothing, beside `from_nothing`, which is the school from its first phase on. Every arm has as many minutes of one core
(by the processor's clock) and plays the same matches with sampled actions. A run that is there is not trained again.

With three seeds or more the interval is Student's over seeds: of other trainings that go on from the same agent,
against the same kickoffs. Of two it is their two results, of one that of its matches, which says nothing of others.
"To base" is the difference to the arm that changes nothing (`base`, or `from_nothing`), with Dunnett's interval: those
of one base and one opponent hold together with 95 %, however many arms there are; seeds are taken to differ as much
within each arm. More seeds of `base`, or more matches, narrow them all. Give other `--minutes` or another `--begin` a
folder of its own.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import children
import numpy as np
import torch
import yaml
from machine import describe_machine
from reports import write_report
from school import ONE_CORE, OPPONENTS, evaluate, for_one_rank
from scipy import stats
from signals import band

from agents import PPOLightningAgent
from fabric_rl.sweeps.train_processes import finished_run

ROOT = Path(__file__).parent.parent
PRESET, PHASE = "configs/bot_school.yaml", "BronzeSkills1"
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


class SmallEps(PPOLightningAgent):
    """Adam with torch's eps of 1e-8 instead of 1e-5, with which small gradients move weights as much as large ones."""

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """See `PPOLightningAgent.configure_optimizers`."""
        optimizer = super().configure_optimizers()
        for group in optimizer.param_groups:
            group["eps"] = 1e-8
        return optimizer


GO_ON: dict[str, Callable[[Settings], object]] = {
    "base": top(),
    "clip_apart": top(clip_groups=True),
    "adam_eps_1e-8": agent("ablations.SmallEps"),
    "returns_as_they_are": top(standardize_returns=False),
    "entropy_0.001": agent(entropy_coef=0.001),
    "entropy_0.005": agent(entropy_coef=0.005),
    "entropy_0.01": agent(entropy_coef=0.01),
    "gamma_0.99": top(gamma=0.99),
    "gamma_0.9954": top(gamma=0.9954),
    "bfloat16": top(precision="bf16-mixed"),  # only some processors gain from it
    "arenas_256": lambda settings: (env(num_arenas=256)(settings), top(num_steps=32)(settings)),  # of 64 and 128
    "batch_33k": top(num_steps=256),  # of 16k
    "batch_50k": top(num_steps=384),
    "batch_100k": top(num_steps=768),
    "minibatch_1024": top(minibatch_size=1024),  # of 2048
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
    "entity_obs_attention": lambda settings: (  # with a network of its own
        env(obs=part("EntityObs"))(settings),
        settings.update(agent={"class_path": "agents.AttentionPPOAgent", "init_args": {"entropy_coef": 0.003}}),
    ),
    "hybrid_table": env(action=part("HybridTable")),
    "recurrent": agent("agents.RecurrentPPOAgent"),
}


def write_settings(path: Path, change: Callable[[Settings], object], phase: int) -> None:
    """Writes the preset with one thing changed, which stays in that phase; `rate_*` scale the rates of all."""
    settings = for_one_rank(PRESET)
    change(settings)
    phases = settings["callbacks"][0]["init_args"]
    phases["start_phase"] = phase
    scale = settings.pop("lr_scale", 1.0)
    if phase > 1:
        for name in ("promotions", "after_steps"):
            phases["phases"][phase - 1].pop(name, None)
    for each in phases["phases"]:
        each["learning_rate"] *= scale
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")


def train(run: Path, change: Callable[[Settings], object], begin: str | None, minutes: float, seed: int) -> None:
    """Trains an arm with a seed, unless that is there."""
    if finished_run(run):
        return
    run.parent.mkdir(parents=True, exist_ok=True)
    config = run.parent / f"{run.name}.yaml"
    write_settings(config, change, 1 if begin is None else 2)
    clock = children.processor_minutes(minutes)
    flags = [f"--config={config}", *ONE_CORE, "--total_timesteps=10_000_000_000", clock, f"--seed={seed}"]
    flags += [f"--runs_dir={run.parent}", f"--run_id={run.name}", "--plain", "--force"]
    flags += [] if begin is None else [f"--initialize_from={begin}"]
    children.train(flags, run.parent / f"{run.name}.txt")


def difference(run: Path, opponent: str, matches: int) -> dict[str, Any]:
    """Goal difference per match of 5 minutes, kept in the run."""
    return evaluate(str(run), opponent, matches, run / "matches" / opponent)


def figures_of(runs_dir: Path, arm: str, seeds: Sequence[int], matches: int) -> dict[str, Any] | None:
    """Steps, and results against each opponent, of the seeds that were trained; None where none was."""
    runs = [runs_dir / f"{arm}_{seed}" for seed in seeds]
    runs = [run for run in runs if finished_run(run)]
    steps = [json.loads((run / "summary.json").read_text(encoding="utf-8"))["total_steps"] for run in runs]
    found = {opponent: [difference(run, opponent, matches) for run in runs] for opponent in OPPONENTS}
    return {"steps": steps, **found} if runs else None


def line(arm: str, figures: dict[str, Any], to_base: Sequence[str]) -> str:
    """A line of the table; `to_base` are its differences by opponent."""
    steps = figures["steps"]
    text = f"| {arm} | {len(steps)} | {sum(steps) / len(steps) / 1e6:.2f} M "
    for opponent, apart in zip(OPPONENTS, to_base, strict=True):
        means = [each["difference"] for each in figures[opponent]]
        ends = figures[opponent][0]["difference_interval_95"] if len(means) == 1 else None  # None for few matches, too
        low, high = ends or (min(means), max(means))
        if len(means) >= 3:
            own = band(means)
            low, high = (own["mean"] + sign * own["half_width"] for sign in (-1, 1))
        text += f"| {sum(means) / len(means):+.2f} | {low:+.2f} to {high:+.2f} | {apart} "
    return text + "|"


def differences(found: dict[str, Any], base: str, opponent: str) -> dict[str, str]:
    """Each arm's mean less that of `base`, with Dunnett's simultaneous 95 % intervals over seeds (JASA 1955)."""
    means = {arm: [each["difference"] for each in figures[opponent]] for arm, figures in found.items()}
    means = {arm: values for arm, values in means.items() if len(values) >= 3}
    others = [arm for arm in means if arm != base]
    if base not in means or not others:
        return {}
    # its quantile is found by random numbers: the same ones at each call
    compared = stats.dunnett(*(means[arm] for arm in others), control=means[base], random_state=0)
    ends = compared.confidence_interval(0.95)
    less = {arm: np.mean(means[arm]) - np.mean(means[base]) for arm in others}
    return {
        a: f"{less[a]:+.2f} ({low:+.2f} to {high:+.2f})"
        for a, low, high in zip(others, ends.low, ends.high, strict=True)
    }


def main() -> None:
    """Trains, plays, and prints a table in Markdown and the figures as one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs_dir", type=Path, default=Path("runs/ablations"))
    parser.add_argument("--begin", help="milestone or agent of the first phase that most arms go on from")
    parser.add_argument("--arms", nargs="+", choices=[*GO_ON, *ANEW], default=[*GO_ON, *ANEW])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--minutes", type=float, default=10.0, help="of one core, for each training")
    parser.add_argument("--parallel", type=int, default=1, help="trainings at a time, at most as many as cores")
    parser.add_argument("--matches", type=int, default=40)
    parser.add_argument("--report_only", action="store_true")
    parser.add_argument("--out", type=Path, help="write the table there, and its data beside")
    args = parser.parse_args()
    if not args.begin and not args.report_only and any(arm in GO_ON for arm in args.arms):
        parser.error("these arms go on from an agent of the first phase: give --begin")
    runs_dir, args.seeds = args.runs_dir.resolve(), list(dict.fromkeys(args.seeds))

    def one(seed_and_arm: tuple[int, str]) -> None:
        seed, arm = seed_and_arm
        change, begin = (GO_ON[arm], args.begin) if arm in GO_ON else (ANEW[arm], None)
        train(runs_dir / f"{arm}_{seed}", change, begin, args.minutes, seed)

    if not args.report_only:
        with ThreadPoolExecutor(args.parallel) as at_a_time:  # all arms of a seed first: a part is a result, too
            list(at_a_time.map(one, product(args.seeds, args.arms)))
    found = {arm: made for arm in args.arms if (made := figures_of(runs_dir, arm, args.seeds, args.matches))}
    if not found:
        parser.error(f"--runs_dir {runs_dir}: holds no training of these arms and seeds; leave --report_only out")
    lines = ["# Ablations", "", f"`python benchmarks/ablations.py`: goals per match of 5 minutes, {args.matches}"]
    lines += [f"matches with sampled actions; {args.minutes:g} minutes of one core per training."]
    lines += [describe_machine(), ""]
    lines += ["Intervals are Student's over the seeds, 95 %, for three seeds or more. For two seeds they are both"]
    lines += ["results; for one, that of its matches. 'To base' is the difference to `base` (from scratch: to"]
    lines += ["`from_nothing`) with Dunnett's interval: those of one base and one opponent contain the truth together"]
    lines += ["with 95 %.", ""]
    lines += ["| arm | seeds | steps | chaser | 95 % | to base | shooter | 95 % | to base |", "|---" * 9 + "|"]
    for base, arms in (("base", GO_ON), ("from_nothing", ANEW)):
        of_these = {arm: figures for arm, figures in found.items() if arm in arms}
        apart = [differences(of_these, base, opponent) for opponent in OPPONENTS]
        lines += [line(arm, of_these[arm], [each.get(arm, "") for each in apart]) for arm in of_these]
    text = "\n".join(lines) + "\n"
    print(text)
    kept = {
        arm: {"steps": figures["steps"]} | {bot: [each["difference"] for each in figures[bot]] for bot in OPPONENTS}
        for arm, figures in found.items()
    }
    if args.out:
        write_report(args.out, text)
        args.out.with_suffix(".json").write_text(json.dumps(kept) + "\n", encoding="utf-8")
    print(json.dumps({"ablations": kept}))


if __name__ == "__main__":
    main()
