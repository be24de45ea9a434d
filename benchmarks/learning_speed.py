"""What makes a bot learn faster: trainings from scratch that differ in one thing, compared per minute of one core.

    python benchmarks/learning_speed.py --stage select               # a few seeds each, to choose what to confirm
    python benchmarks/learning_speed.py --stage confirm --arms "quickstart, no teacher"  # ten other seeds: intervals
    python benchmarks/learning_speed.py --report_only

Arms change the quickstart, an earlier one without teacher, kickoffs and mirror images, or the guide's 1v1. A training
has one rank with the arenas and minibatches of all ranks of the preset, and as many agent-steps as it makes in
`--minutes` of one core: a pilot of half a minute by the processor's clock measures its speed before.
`--stage select` trains the seeds in order, and goes on without arms whose score is clearly below that of the best one;
it is for choosing only. `--stage confirm` trains seeds 100 to 109 of the arms and of `--base`. Seeds share nothing, so
differences between two arms with the same seed are independent samples: the intervals are Student's over ten paired
differences (score) and log ratios (minutes). The p values of the score have Holm's correction over the arms.

A training that is in `--runs_dir` is not repeated, and its figures are kept in `--out` (JSON), so the command can be
stopped and started again at any time, and figures of other machines' trainings can be added to the file.
"""

import argparse
import json
import math
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import children
import numpy as np
import yaml
from ablations import Settings, agent, env, part, top
from machine import describe_machine
from reports import write_report
from school import ONE_CORE, evaluate, for_one_rank
from scipy import stats

from fabric_rl.base.files import write_text
from fabric_rl.metrics.metrics_csv import read_metrics
from fabric_rl.sweeps.train_processes import finished_run

ROOT = Path(__file__).parent.parent
PRESET = "configs/rocket_1v1_quickstart.yaml"
CONFIRM = tuple(range(100, 110))
"""Seeds of the second stage, which no arm was chosen by."""
WINDOW = 200_000
"""Agent-steps over which figures of training are averaged."""
LEVELS = {"10 touches": 10.0, "20 touches": 20.0}
PILOT_MINUTES = 0.5
LEAST_GOALS = 0.6
"""Goals per minute that must be reached together with the touches."""
Change = Callable[[Settings], object]


def mirror(settings: Settings) -> None:
    """Replaces half of every batch by its mirror image."""
    settings.setdefault("callbacks", []).append({"class_path": "fabric_rl.callbacks.SymmetryAugmentation"})


def rewards(**weights: float) -> Change:
    """Sets rewards and weights by class name; `Zero_...` is shared with the opponent, so that it sums to zero."""

    def change(settings: Settings) -> None:
        terms = []
        for name in weights:
            own = part(f"{name.removeprefix('Zero_')}Reward")
            zero = part("TeamSpiritReward", reward=own, team_spirit=0.0, opponent_scale=1.0)
            terms.append(zero if name.startswith("Zero_") else own)
        chosen = part("CombinedReward", rewards=terms, weights=list(weights.values()))
        settings["env"]["init_args"]["reward"] = chosen

    return change


def kickoffs(share: float) -> Change:
    """Begins that share of the episodes with a kickoff."""

    def change(settings: Settings) -> None:
        given = settings["env"]["init_args"]
        mixed = part("MixedStates", setters=[given["state_setter"], part("Kickoff")], weights=[1 - share, share])
        given["state_setter"] = mixed

    return change


def every(*changes: Change) -> Change:
    """Makes several changes."""

    def change(settings: Settings) -> None:
        for each in changes:
            each(settings)

    return change


def guests(share: float, *bots: str, sampling: str = "PFSPHard") -> Change:
    """Lets scripted bots play one of the cars in that share of the arenas, as soon as the agent touches the ball."""
    gate = {"metric": "game/touches_per_minute", "at_least": 5.0, "for_iterations": 5}
    given = {"guests": [*bots], "share": share, "window": 1, "save_steps": 10**9, "swap_steps": 100_000, "gate": [gate]}
    given |= {"play_against_latest_model_ratio": 0.0, "sampling": {"class_path": f"fabric_rl.selfplay.{sampling}"}}
    return top(self_play={"class_path": "fabric_rl.selfplay.SelfPlay", "init_args": given})


def teacher(bot: str, start: float = 1.0) -> Change:
    """Imitates a scripted bot in the agent's own games, less and less."""
    fades = {"class_path": "fabric_rl.schedules.Linear", "init_args": {"start": start, "end": 0.0}}
    return every(env(teacher=part(bot)), agent(teacher_coef=fades))


def human_starts(settings: Settings) -> None:
    """Begins 70 % of the episodes with states of human games, the others as before."""
    given = settings["env"]["init_args"]
    recorded = part("ReplayedStates", path=str(ROOT / "build" / "human_states.npz"))
    given["state_setter"] = part("MixedStates", setters=[recorded, given["state_setter"]], weights=[0.7, 0.3])


def earlier(settings: Settings) -> None:
    """Makes the quickstart what it was: rewards for touches, no kickoffs, no mirror images, no teacher, float32."""
    given = settings["env"]["init_args"]
    del given["teacher"], settings["agent"]["init_args"]["teacher_coef"], settings["callbacks"]
    settings["precision"], given["state_setter"] = "32-true", given["state_setter"]["init_args"]["setters"][1]
    rewards(Touch=3.0, SpeedTowardBall=0.05, FaceBall=0.01, VelocityBallToGoal=0.05, Goal=5.0)(settings)


def guide(settings: Settings) -> None:
    """Takes the settings of configs/rocket_1v1.yaml, without its teacher."""
    settings.clear()
    settings.update(for_one_rank("configs/rocket_1v1.yaml"))
    del settings["env"]["init_args"]["teacher"], settings["agent"]["init_args"]["teacher_coef"]


def no_mirror(settings: Settings) -> None:
    """Learns from the steps as they were played."""
    del settings["callbacks"]


GOALS = {"Touch": 0.6, "SpeedTowardBall": 0.05, "FaceBall": 0.01, "Zero_VelocityBallToGoal": 0.3, "Goal": 10.0}
GOALS["StrongHit"] = 0.4
SLOW = ("levers.VerySlowShooter", "levers.SlowShooter")
goals = every(earlier, rewards(**GOALS), kickoffs(0.4))
both = every(goals, mirror)
ARMS: dict[str, Change] = {
    "quickstart": top(),
    "quickstart, no mirror": no_mirror,
    "quickstart, no teacher": agent(teacher_coef=0.0),
    "quickstart, no teacher or mirror": every(agent(teacher_coef=0.0), no_mirror),
    "quickstart, entropy 0.003": agent(entropy_coef=0.003),
    "quickstart, one epoch": top(update_epochs=1),
    "quickstart, gamma 0.99": top(gamma=0.99),
    "quickstart, shared trunk": agent(shared_trunk=True),
    "quickstart, wider": agent(actor_hidden_sizes=[512, 256], critic_hidden_sizes=[512, 256]),
    "quickstart, narrower": agent(actor_hidden_sizes=[128, 128], critic_hidden_sizes=[128, 128]),
    "quickstart, tick skip 12": env(tick_skip=12),
    "quickstart, rollout 32k": top(num_steps=256),
    "quickstart, minibatch 4k": top(minibatch_size=4096),
    "quickstart, 256 arenas": every(env(num_arenas=256), top(num_steps=16)),
    "quickstart, rate by KL": top(lr_schedule="kl_adaptive"),
    "quickstart, shooter as guest": guests(0.35, "shooter"),
    "quickstart, slow shooters as guests": guests(0.35, *SLOW, "shooter", sampling="PFSPVariance"),
    "quickstart, rollout 32k, gamma 0.99, entropy 0.003": every(
        top(num_steps=256, gamma=0.99), agent(entropy_coef=0.003)
    ),
    "quickstart, growing batch": agent("levers.GrowingBatchAgent"),
    "quickstart, starts from human games": human_starts,
    "quickstart, next state": agent("levers.NextStateAgent"),
    "quickstart, next reward": agent("levers.RewardAgent"),
    "quickstart, two-hot values": agent("levers.TwoHotAgent"),
    "quickstart, SPO": agent("levers.SPOAgent"),
    "quickstart, Muon": agent("levers.MuonAgent"),
    "quickstart, opponent's controls": env(obs={"class_path": "levers.ControlsObs"}),
    "1v1": guide,
    "1v1, shooter teaches": every(guide, teacher("KickoffThenShoot")),
    "earlier": earlier,
    "mirror": every(earlier, mirror),
    "goals": goals,
    "both": both,
    "both, bfloat16": every(both, top(precision="bf16-mixed")),
    "both, one epoch": every(both, top(update_epochs=1)),
    "both, constant rate": every(both, top(lr_schedule="constant")),
    "both, entropy 0.003": every(both, agent(entropy_coef=0.003)),
    "both, entropy 0.001": every(both, agent(entropy_coef=0.001)),
    "both, entropy 0": every(both, agent(entropy_coef=0.0)),
    "both, gamma 0.99": every(both, top(gamma=0.99)),
    "both, rollout 16k": every(both, top(num_steps=128)),
    "both, tick skip 12": every(both, env(tick_skip=12)),
    "both, boost": every(earlier, mirror, rewards(**GOALS, BoostChange=0.5), kickoffs(0.4)),
    "both, chaser as guest": every(both, guests(0.35, "chaser")),
    "both, shooter teaches": every(both, teacher("KickoffThenShoot")),
    "both, shooter teaches less": every(both, teacher("KickoffThenShoot", 0.3)),
    "both, kickstart": every(both, top(kickstart={"reference": "school_1v1"})),
    "both, wider": every(both, agent(actor_hidden_sizes=[512, 256], critic_hidden_sizes=[512, 256])),
}


def train(run: Path, change: Change, seed: int, steps: int | None = None) -> int:
    """Trains an arm with a seed, unless that is there; returns the agent-steps, of a pilot those of `PILOT_MINUTES`."""
    if not finished_run(run):
        run.parent.mkdir(parents=True, exist_ok=True)
        settings, config = for_one_rank(PRESET), run.parent / f"{run.name}.yaml"
        change(settings)
        config.write_text(yaml.safe_dump(settings), encoding="utf-8")
        goes_on = (run / "config.yaml").exists() and steps is not None  # stopped meanwhile
        flags = ["--resume"] if goes_on else [f"--config={config}", *ONE_CORE, f"--seed={seed}", "--force"]
        flags += [f"--total_timesteps={steps or 10**10}", f"--runs_dir={run.parent}", f"--run_id={run.name}", "--plain"]
        flags += [children.processor_minutes(PILOT_MINUTES)] if steps is None else []
        children.train(flags, run.parent / f"{run.name}.txt")
        if not finished_run(run):
            raise SystemExit(f"learning_speed.py: {run.name} was stopped; start again to go on")
    rows = read_metrics(run / "metrics.csv")["game/touches_per_minute"][0]
    return int(rows[-1] - (rows[0] / 2 if steps is None else 0))  # a pilot ends within an iteration


def figures_of(run: Path, minutes: float, matches: int) -> dict[str, Any]:
    """Steps, the score against the chaser, touches and goals at the end, and minutes until both levels."""
    metrics = read_metrics(run / "metrics.csv")
    steps, touches = metrics["game/touches_per_minute"]
    rows = max(1, round(WINDOW / (steps[1] - steps[0])))
    smooth = np.ones(rows) / rows
    touches, scored = (np.convolve(x, smooth, "valid") for x in (touches, metrics["game/goals_per_minute"][1]))
    at = steps[rows - 1 :] / steps[-1] * minutes
    found: dict[str, Any] = {"steps": int(steps[-1]), "touches": float(touches[-1]), "goals": float(scored[-1])}
    for name, level in LEVELS.items():
        reached = np.flatnonzero((touches >= level) & (scored >= LEAST_GOALS))
        found[name] = float(at[reached[0]]) if len(reached) else None
    result = evaluate(str(run), "chaser", matches, run / "matches" / "chaser")
    return found | {"score": result["difference"]}


class Test(NamedTuple):
    """Paired differences (or log ratios) of an arm to another one."""

    mean: float
    error: float
    """Standard error of the mean."""
    number: int
    p: float
    """Student's."""

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Student's interval of the mean."""
        half = float(stats.t.ppf(0.5 + confidence / 2, self.number - 1)) * self.error
        return self.mean - half, self.mean + half


def compare(own: dict[str, Any], base: dict[str, Any], name: str, ratios: bool = False) -> Test | None:
    """Compares the seeds that both have, and (for ratios) that reached the level in both; None for fewer than two."""
    pairs = [(own[seed][name], base[seed][name]) for seed in own if seed in base]
    apart = [math.log(a / b) if ratios else a - b for a, b in pairs if a is not None and b is not None]
    if len(apart) < 2:
        return None
    mean, error = float(np.mean(apart)), float(np.std(apart, ddof=1)) / len(apart) ** 0.5
    p = float(2 * stats.t.sf(abs(mean) / error, len(apart) - 1)) if error else float(mean == 0)
    return Test(mean, error, len(apart), p)


def detectable(error: float, number: int) -> float:
    """The difference that a test of `number` pairs with this standard error would find with 80 % probability."""
    return error * float(stats.t.ppf(0.975, number - 1) + stats.t.ppf(0.8, number - 1))


def table(found: dict[str, dict[str, Any]], base: str, minutes: float) -> list[str]:
    """The tables of one stage; p values have Holm's correction over the arms, intervals are of each arm alone."""
    lines = ["| arm | seeds | M steps | touches | goals | against the chaser | to base (95 %) | p | 80 % power for |"]
    lines += ["|---" * 9 + "|"]
    tests = {arm: compare(own, found[base], "score") for arm, own in found.items() if arm != base}
    order = sorted((test.p, arm) for arm, test in tests.items() if test is not None)
    corrected, worst = dict[str, float](), 0.0
    for rank, (p, arm) in enumerate(order):
        worst = corrected[arm] = max(worst, min(1.0, p * (len(order) - rank)))
    for arm, own in sorted(found.items(), key=lambda item: -mean_of(item[1], "score")):
        line = f"| {arm} | {len(own)} | {mean_of(own, 'steps') / 1e6:.2f} | {mean_of(own, 'touches'):.1f} "
        line += f"| {mean_of(own, 'goals'):.2f} | {mean_of(own, 'score'):+.2f} "
        if (test := tests.get(arm)) is None:
            lines.append(f"{line}| | | |")
            continue
        low, high = test.interval()
        line += f"| {test.mean:+.2f} ({low:+.2f} to {high:+.2f}) | {corrected[arm]:.3f} "
        lines.append(f"{line}| {detectable(test.error, test.number):.2f} |")
    lines += ["", f"Minutes of one core until a level is reached ({minutes:g} at most), and the ratio to base of the"]
    lines += ["seeds that reach it in both:", ""]
    heads = " | ".join(f"{name} | ratio (95 %)" for name in LEVELS)
    lines += [f"| arm | {heads} |", "|---" * (1 + 2 * len(LEVELS)) + "|"]
    for arm, own in found.items():
        line = f"| {arm} "
        for name in LEVELS:
            values = [x[name] for x in own.values() if x[name] is not None]
            line += f"| {f'{np.exp(np.mean(np.log(values))):.1f} ' if values else ''}({len(values)} of {len(own)}) | "
            test = None if arm == base else compare(own, found[base], name, ratios=True)
            if test is not None:
                low, high = test.interval()
                line += f"{math.exp(test.mean):.2f} ({math.exp(low):.2f} to {math.exp(high):.2f}, {test.number} seeds) "
        lines.append(f"{line}|")
    return lines


def mean_of(own: dict[str, Any], name: str) -> float:
    """The mean of a figure over the seeds of an arm."""
    return float(np.mean([x[name] for x in own.values()]))


def clearly_worse(own: dict[str, Any], best: dict[str, Any]) -> bool:
    """Whether the 80 % interval of the difference to the best arm so far lies below zero: a filter, not a test."""
    test = compare(own, best, "score")
    return test is not None and test.interval(0.8)[1] < 0


def main() -> None:
    """Trains what is missing, and writes the table and the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stage", choices=["select", "confirm"], default="select")
    known: dict[str, Any] = {"choices": list(ARMS), "metavar": "ARM"}
    parser.add_argument("--arms", nargs="+", default=list(ARMS), help="default: all in `ARMS`", **known)
    parser.add_argument("--base", default="quickstart", help="arm that the others are compared with", **known)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="of the first stage, default 0 1 2")
    parser.add_argument("--minutes", type=float, default=8.0, help="of one core, for each training, default 8")
    parser.add_argument("--matches", type=int, default=60, help="sampled, of five minutes, for each; default 60")
    parser.add_argument("--parallel", type=int, default=2, help="trainings at a time, default 2, at most the cores")
    parser.add_argument("--equal_steps", action="store_true", help="those of the base with the seed, not a pilot")
    parser.add_argument("--runs_dir", type=Path, default=Path("runs/learning_speed"), help="folder of the trainings")
    out = ROOT / "benchmarks/results/learning_speed.json"
    parser.add_argument("--out", type=Path, default=out, help="figures of all trainings; the report lies beside it")
    parser.add_argument("--report_only", action="store_true", help="train nothing")
    options = parser.parse_args()
    runs_dir, key = options.runs_dir.resolve(), f"{options.minutes:g} minutes, {options.matches} matches"
    kept: dict[str, Any] = json.loads(options.out.read_text(encoding="utf-8")) if options.out.exists() else {}
    stage = kept.setdefault(key, {}).setdefault(options.stage, {})
    arms = list(dict.fromkeys([options.base, *options.arms]))

    def one(arm_and_seed: tuple[str, int]) -> None:
        arm, seed = arm_and_seed
        if str(seed) in stage.get(arm, {}):
            return
        run = runs_dir / f"{options.minutes:g}_{arm.replace(', ', '_').replace(' ', '-')}_{seed}"
        if options.equal_steps and arm != options.base:
            steps = stage[options.base][str(seed)]["steps"]
        else:
            steps = round(train(run.with_name(f"{run.name}_pilot"), ARMS[arm], seed) / PILOT_MINUTES * options.minutes)
        train(run, ARMS[arm], seed, steps)
        figures = figures_of(run, options.minutes, options.matches)
        with writing:
            stage.setdefault(arm, {})[str(seed)] = figures
            write_text(options.out, json.dumps(kept, indent=1) + "\n")
        print(f"{arm}, seed {seed}: {stage[arm][str(seed)]}", flush=True)

    writing = threading.Lock()

    def run_all(jobs: Iterable[tuple[str, int]]) -> None:
        at_a_time = ThreadPoolExecutor(options.parallel)
        try:
            list(at_a_time.map(one, jobs))
        finally:
            at_a_time.shutdown(cancel_futures=True)

    if not options.report_only and options.stage == "confirm":
        run_all((arm, seed) for seed, arm in product(CONFIRM, arms))  # whole pairs if it is stopped
    for seed in options.seeds if not options.report_only and options.stage == "select" else ():
        run_all((arm, seed) for arm in arms)
        best = stage[max(arms, key=lambda arm: mean_of(stage[arm], "score"))]
        arms = [arm for arm in arms if arm == options.base or not clearly_worse(stage[arm], best)]
    about = "`python benchmarks/learning_speed.py`: the quickstart with one thing changed, some minutes\n"
    about += f"of one core per training, then sampled matches of five minutes against the chaser. {describe_machine()}"
    lines = ["# Learning speed", "", about]
    for budget, stages in kept.items():
        for name, found in stages.items():
            base = next((arm for arm in (options.base, *ARMS) if arm in found), None)
            if base is not None:
                what = "up to ten seeds fixed before" if name == "confirm" else "for choosing only"
                lines += ["", f"## {name.capitalize()}: {budget} ({what})", ""]
                lines += table(found, base, float(budget.split()[0]))
    text = "\n".join(lines) + "\n"
    print(text)
    write_report(options.out.with_suffix(".md"), text)


if __name__ == "__main__":
    main()
