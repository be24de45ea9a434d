"""Trains the bot school with several seeds and lets what it learned meet the chaser and the shooter: curves with bands.

    python benchmarks/school.py --runs_dir runs/school                    # hours on two cores
    python benchmarks/school.py --runs_dir runs/school --report_only      # what is there so far
    python benchmarks/school.py --line runs/a runs/b --out mybot.md       # one bot, whose b went on from a's weights
    python benchmarks/school.py --line runs/duo --config configs/school_2v2.yaml --team_size 2 --out duo.md

Every seed trains `--steps`, the first one goes on to `--long_steps`. With `--parallel 3` three train at a time, each on
one core with the arenas and minibatches of the preset's ranks together: more steps an hour, and minutes are those of a
machine that is shared. A run that was stopped goes on, matches that were played are kept. The numbers of the table lie
in a JSON file beside it: seeds that are trained later, or elsewhere, join those that are in it; delete it to begin
anew. Touches, goals and turtles are those of training (sampled actions, against itself, from the phase's first states);
matches are those of `fabric-rl evaluate --sample true`, of milestones every `--every` steps.
Bands: Student's 95 % over seeds, which are independent trainings that share nothing but the settings.
`--line` trains nothing: it shows the curve of one bot over trainings that followed each other, after `--before` steps.
"""

import argparse
import csv
import json
import os
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import children
import numpy as np
import yaml
from machine import describe_machine
from numpy.typing import NDArray
from reports import THEMELESS, write_report
from signals import band

from fabric_rl.selfplay.ratings.ladder import fit_ladder

ROOT = Path(__file__).parent.parent
OPPONENTS = ("chaser", "shooter")
ONE_CORE = ["--devices=1", "--num_threads=1", "--env.init_args.num_threads=1"]
BIN = 500_000
"""Agent-steps over which figures of training are averaged."""
TRAINING = {
    "game/touches_per_minute": "touches per car and minute",
    "game/goals_per_minute": "goals per minute",
    "turtle/recovery_rate": "turtles recovered",
}
PLAYED = {
    "chaser": "goals per match against the chaser",
    "shooter": "goals per match against the shooter",
    "rating": "rating (chaser 1200)",
}
KEPT = ("difference", "difference_interval_95", "wins", "draws", "losses")
Floats = NDArray[np.float64]


def for_one_rank(config: str) -> dict[str, Any]:
    """A configuration with the arenas and minibatches of all its ranks, with which one rank learns what they would."""
    settings: dict[str, Any] = yaml.safe_load((ROOT / config).read_text(encoding="utf-8"))
    ranks = settings.get("devices", 1)
    settings["minibatch_size"] *= ranks
    settings["env"]["init_args"]["num_arenas"] *= ranks
    return settings


def one_core(config: str) -> list[str]:
    """Flags with which one rank on one core learns what all ranks of a configuration would."""
    settings = for_one_rank(config)
    arenas = settings["env"]["init_args"]["num_arenas"]
    return [*ONE_CORE, f"--env.init_args.num_arenas={arenas}", f"--minibatch_size={settings['minibatch_size']}"]


def train(config: str, runs_dir: Path, seed: int, steps: int, extra: Sequence[str] = ()) -> None:
    """Trains a seed to `steps`, or goes on with it; nothing if it has them."""
    run = runs_dir / f"seed{seed}"
    if (run / "config.yaml").exists():
        flags = ["--resume"]
    else:
        flags = ["--config", config, "--seed", str(seed), "--summary_freq", str(BIN)]
    flags += ["--run_id", run.name, "--runs_dir", str(runs_dir), "--total_timesteps", str(steps), "--plain"]
    children.train([*flags, *extra])


def training_of(run: Path) -> dict[str, Floats]:
    """`TRAINING` of every `BIN`: its end as `step`, `minutes` since the beginning, and `phase`.

    A row of the metrics tells of the steps before it. With `--summary_freq` of `BIN` it is written by the first
    iteration that reaches a multiple; without, every iteration has one.
    """
    speed = "speed/overall_steps_per_second"
    with open(run / "metrics.csv", newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row.get(speed)]
    if not rows:
        raise SystemExit(f"school.py: {run / 'metrics.csv'} has no figures yet; train the run further")
    names = ("step", speed, "phase/number", *TRAINING)
    data = {name: np.array([float(row.get(name) or "nan") for row in rows]) for name in names}
    minutes = np.cumsum(np.diff(data["step"], prepend=0.0) / data[speed]) / 60
    whole = np.floor if np.median(np.diff(data["step"], prepend=0.0)) > BIN / 2 else np.ceil
    bins = whole(data["step"] / BIN).astype(int)
    ends = np.unique(bins)
    if len(ends) > 1 and ends[-1] * BIN - data["step"][-1] > BIN / 2:  # too little for a mean of its own
        ends = ends[:-1]
    found = {"step": ends * float(BIN), "minutes": np.array([minutes[bins == each].max() for each in ends])}
    for name in ("phase/number", *TRAINING):
        groups = [data[name][bins == each] for each in ends]
        found[name] = np.array([np.nan if np.isnan(group).all() else np.nanmean(group) for group in groups])
    return found


def evaluate(player: str, opponent: str, matches: int, kept: Path, size: int = 1) -> dict[str, Any]:
    """Sampled matches of 5 minutes, the same kickoffs for everybody, kept in `kept_MATCHES.json` (`kept_2v2_...`)."""
    out = kept.with_name(f"{kept.name}{'' if size == 1 else f'_{size}v{size}'}_{matches}.json")
    if not out.exists():
        out.parent.mkdir(exist_ok=True)
        words = [player, opponent, "--matches", str(matches), "--sample", "true", "--team_size", str(size)]
        command = [*children.FABRIC_RL, "evaluate", *words, "--workers", str(os.cpu_count()), "--out", str(out)]
        subprocess.run(command, cwd=ROOT, env=children.environment(), check=True, stdout=subprocess.DEVNULL)
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return found


def matches_of(run: Path, every: int, matches: int, size: int) -> dict[int, dict[str, Any]]:
    """What milestones did in matches: steps, rounded to `every` -> results by opponent, and a `rating`.

    The rating is Elo by the ladder of `fabric-rl league` among the milestone and both scripted bots, chaser 1200; here
    each match is a game of it, there each pair.
    """
    between = evaluate("shooter", "chaser", 200, run.parent / "shooter_chaser", size)
    found: dict[int, dict[str, Any]] = {}
    for milestone in sorted((run / "milestones").glob("*/*"), key=lambda each: int(each.name)):
        steps = int(milestone.name) // every * every
        if not steps or int(milestone.name) - steps > every / 5 or steps in found:
            continue
        kept = run / "matches"  # within the run, so that they go when it goes
        of_both = [evaluate(str(milestone), bot, matches, kept / f"{milestone.name}_{bot}", size) for bot in OPPONENTS]
        results = dict(zip(OPPONENTS, of_both, strict=True))
        row: dict[str, Any] = {bot: {key: result[key] for key in KEPT} for bot, result in results.items()}
        scores = {(2, 0): scores_of(row["chaser"]), (2, 1): scores_of(row["shooter"]), (1, 0): scores_of(between)}
        found[steps] = row | {"rating": float(fit_ladder(scores, 3, first=1200).ratings[2])}
    return found


def line_of(runs: Sequence[Path], before: int, every: int, matches: int, size: int) -> dict[str, Any]:
    """Training and matches of one bot, over runs each of which began with the newest weights of the one before.

    A run begins where the figures of the one before end, in whole `BIN`s.
    """
    training: dict[str, list[float]] = {}
    played: dict[int, dict[str, Any]] = {}
    steps, minutes = before, 0.0
    for run in runs:
        own = training_of(run)
        played |= {steps + at: row for at, row in matches_of(run, every, matches, size).items()}
        for name, values in (own | {"step": own["step"] + steps, "minutes": own["minutes"] + minutes}).items():
            training.setdefault(name, []).extend(values.round(4).tolist())
        steps, minutes = int(training["step"][-1]), training["minutes"][-1]
    return {"training": training, "count": matches, "team_size": size, "matches": played}


def scores_of(result: dict[str, Any]) -> Floats:
    """Of each match 1, 0.5 or 0."""
    return np.repeat([1.0, 0.5, 0.0], [result["wins"], result["draws"], result["losses"]])


def played(row: dict[str, Any], name: str) -> float:
    """One of `PLAYED`."""
    return float(row["rating"] if name == "rating" else row[name]["difference"])


def parts(found: dict[str, Any]) -> tuple[dict[str, dict[str, Floats]], dict[str, dict[int, dict[str, Any]]]]:
    """The trainings and the matches of all seeds, of what the JSON file has."""
    trained = {name: {key: np.array(x) for key, x in each["training"].items()} for name, each in found.items()}
    return trained, {name: {int(steps): row for steps, row in each["matches"].items()} for name, each in found.items()}


def low(row: dict[str, Any], bot: str) -> float:
    """The lower end of the interval against a bot; of too few matches none, which is below everything."""
    return float((row[bot]["difference_interval_95"] or [-np.inf])[0])


def beats(results: dict[int, dict[str, Any]]) -> int | None:
    """Steps of the first milestone from which on every interval against the chaser lies above 0."""
    above = [steps for steps, row in results.items() if low(row, "chaser") > 0]
    below = max((steps for steps in results if steps not in above), default=0)
    return next((steps for steps in above if steps > below), None)


def shared(lines: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats, Floats]:
    """x, mean and half band of lines (x, y) where all of them have something to tell; rising x need not agree."""
    grid = min((x[np.isfinite(y)] for x, y in lines), key=lambda x: x[-1] if len(x) else 0)
    grid = grid[grid >= max(x[np.isfinite(y)][0] for x, y in lines)] if len(grid) else grid
    values = np.array([np.interp(grid, x[np.isfinite(y)], y[np.isfinite(y)]) for x, y in lines])
    halves = [band(list(column))["half_width"] if len(column) > 2 else np.nan for column in values.T]
    return grid, values.mean(axis=0), np.array(halves)


def plot(found: dict[str, Any], path: Path) -> None:
    """Draw goals per match against both bots, and the rating, over agent-steps.

    Seeds are thin lines and their mean is a thick one with its band; of a single training the band is the interval of
    its matches.
    """
    from matplotlib import pyplot

    games = list(parts(found)[1].values())
    with pyplot.rc_context(THEMELESS):
        figure, axes = pyplot.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
        for number, (name, label) in enumerate(PLAYED.items()):
            ax, color, lines = axes[int(name == "rating")], f"C{number % 2}", []
            for results in games:
                x = np.array([float(steps) for steps in results]) / 1e6
                y = np.array([played(row, name) for row in results.values()])
                lines += [(x, y)] if np.isfinite(y).any() else []
                ax.plot(x, y, color=color, linewidth=0.8, alpha=0.6)
            if len(lines) == len(games) and lines:
                x, mean, half = shared(lines)
                ax.plot(x, mean, color=color, linewidth=2.5, label=f"against the {name}" if name in OPPONENTS else None)
                ax.fill_between(x, mean - half, mean + half, color=color, alpha=0.25, linewidth=0)
            if name in OPPONENTS and len(games) == 1 and games[0]:
                ends = [row[name]["difference_interval_95"] or (np.nan, np.nan) for row in games[0].values()]
                ax.fill_between(
                    np.array(list(games[0])) / 1e6, *np.transpose(ends), color=color, alpha=0.25, linewidth=0
                )
            ax.set(xlabel="million agent-steps", title="goals per match" if name in OPPONENTS else label)
            ax.grid(alpha=0.3)
        axes[0].axhline(0, color="0.5", linewidth=1, linestyle=":")
        axes[0].legend(frameon=False)
        figure.savefig(path, dpi=90)
    pyplot.close(figure)


def with_band(values: Sequence[float], form: str) -> str:
    """Their mean, and the band of three or more: that of two says nothing."""
    found = band(values)
    half = f" ± {found['half_width']:{form.lstrip('+')}}" if len(values) > 2 else ""
    return f"{found['mean']:{form}}{half}"


def report(title: str, config: str, found: dict[str, Any], picture: str, size: int) -> str:
    """The results as Markdown."""
    trained, games = parts(found)
    counts = "/".join(str(count) for count in sorted({each["count"] for each in found.values()}))
    what = f"`{config}`, {size}v{size}"
    lines = [f"# {title}", "", f"`python benchmarks/school.py`: {what}. {describe_machine()}"]
    lines += ["", f"Goals per match are from {counts} matches of 5 minutes for each milestone and opponent, with"]
    lines += ["sampled actions and the same kickoffs for all. Rating is the Elo of the milestone and both bots in"]
    lines += ["these matches, with chaser at 1200. Touches (per car), goals and recovered turtles (overturned cars)"]
    lines += ["are from training, over 500,000 agent-steps and from its own initial states. `±` is Student's 95 %"]
    lines += ["interval over seeds; each seed is an independent training. Minutes are wall-clock time."]
    if (most := max(each.get("parallel", 1) for each in found.values())) > 1:
        lines += [f"Seeds were trained {most} at a time, so minutes are of a machine that {most} trainings share."]
    lines += ["", f"![curves]({picture})", "", "## All seeds", ""]
    lines += [
        "| steps | seeds | minutes | touches/min | goals/min | turtles recovered | against chaser | shooter | rating |"
    ]
    lines += ["|---|---|---|---|---|---|---|---|---|"]
    for steps in sorted({steps for results in games.values() for steps in results}):
        seeds = [name for name in games if steps in games[name] and trained[name]["step"][-1] >= steps]
        if not seeds:
            continue
        columns = [", ".join(seed.removeprefix("seed") for seed in seeds)]
        for name, form in zip(("minutes", *TRAINING), (".0f", ".1f", ".2f", ".2f"), strict=True):
            at = [float(trained[seed][name][trained[seed]["step"] == steps][0]) for seed in seeds]
            columns.append(with_band(at, form) if np.isfinite(at).all() else "")
        for name, form in zip(PLAYED, ("+.2f", "+.2f", ".0f"), strict=True):
            columns.append(with_band([played(games[seed][steps], name) for seed in seeds], form))
        lines.append(f"| {steps / 1e6:g} M | {' | '.join(columns)} |")
    lines += ["", "## Each seed", ""]
    lines += [
        "| seed | trained for | phases end at most 0.5 M after | beats the chaser from | against the chaser | shooter |"
    ]
    lines += ["|---|---|---|---|---|---|"]
    for name, results in games.items():
        data, first = trained[name], beats(results)
        rises = np.nan_to_num(np.diff(np.ceil(data["phase/number"]))).clip(min=0).astype(int)
        changes = np.repeat(np.arange(len(rises)), rises)  # two phases may end within one row
        ends = ", ".join(
            f"{data['step'][change] / 1e6:.1f} M ({data['minutes'][change]:.0f} min)" for change in changes
        )
        since = "not yet"
        if first is not None:
            minutes = float(np.interp(first, data["step"], data["minutes"]))
            since = f"{first / 1e6:g} M steps, {minutes:.0f} min"
        newest = results[max(results)]
        told = []
        for bot in OPPONENTS:
            ends_of = newest[bot]["difference_interval_95"]
            between = f" ({ends_of[0]:+.2f} to {ends_of[1]:+.2f})" if ends_of else ""
            told.append(f"{newest[bot]['difference']:+.2f}{between}")
        length = f"{max(results) / 1e6:g} M, {np.interp(max(results), data['step'], data['minutes']):.0f} min"
        lines.append(f"| {name.removeprefix('seed')} | {length} | {ends or '-'} | {since} | {' | '.join(told)} |")
    lines += [
        "",
        "Matches are those of the newest milestone. A milestone beats the chaser if its 95 % interval over pairs of",
        "matches is above 0, and that of every later one.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Trains, plays, writes the report and ends with one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="configs/bot_school.yaml")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=20_000_000, help="of every seed")
    parser.add_argument("--long_steps", type=int, default=60_000_000, help="of the first seed")
    parser.add_argument("--parallel", type=int, default=1, help="seeds at a time; above 1 each on one core")
    parser.add_argument("--every", type=int, default=2_500_000, help="steps between milestones that play")
    parser.add_argument("--matches", type=int, default=40)
    parser.add_argument("--team_size", type=int, default=1, help="that of --config: both sides of the matches have it")
    parser.add_argument("--runs_dir", type=Path, default=ROOT / "runs" / "school")
    parser.add_argument("--report_only", action="store_true", help="train nothing")
    parser.add_argument("--line", type=Path, nargs="+", help="runs of one bot, in their order: its own curve")
    parser.add_argument("--before", type=int, default=0, help="with --line: steps before the first of them")
    parser.add_argument("--out", type=Path, help="the report, benchmarks/results/school.md if not given")
    args = parser.parse_args()
    if args.every <= 0 or args.every % BIN or args.before < 0 or args.before % BIN:
        parser.error(f"--every, --before: figures of training are of {BIN:,} steps each; give multiples")
    if args.team_size < 1:
        parser.error(f"--team_size must be at least 1, got {args.team_size}")
    if args.line and not args.out:
        parser.error("--line: give --out, a report of its own")
    if missing := [run for run in args.line or () if not (run / "metrics.csv").exists()]:
        parser.error(f"--line {missing[0]}: holds no metrics.csv; give the folder of a run")
    args.out = args.out or ROOT / "benchmarks" / "results" / "school.md"
    args.seeds = list(dict.fromkeys(args.seeds))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    kept = args.out.with_suffix(".json")
    try:
        found: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    except ValueError as error:
        parser.error(f"{kept}: cannot be read ({error}); delete it to begin anew, or give another --out")
    if others := {each.get("team_size", 1) for each in found.values()} - {args.team_size}:
        parser.error(f"--out {args.out}: {kept} is of --team_size {others.pop()}; give a report of its own")
    runs_dir = args.runs_dir.absolute()
    if args.line:
        if set(found) - {args.out.stem}:
            parser.error(f"--out {args.out}: {kept} is of other trainings; give a report of its own")
        line = line_of([run.absolute() for run in args.line], args.before, args.every, args.matches, args.team_size)
        found = {args.out.stem: line} if line["matches"] else {}
    elif not args.report_only:
        extra = one_core(args.config) if args.parallel > 1 else []
        with ThreadPoolExecutor(args.parallel) as at_a_time:
            list(at_a_time.map(lambda seed: train(args.config, runs_dir, seed, args.steps, extra), args.seeds))
        train(args.config, runs_dir, args.seeds[0], args.long_steps)
    for seed in [] if args.line else args.seeds:
        run = runs_dir / f"seed{seed}"
        if (run / "metrics.csv").exists() and (games := matches_of(run, args.every, args.matches, args.team_size)):
            training = {name: values.round(4).tolist() for name, values in training_of(run).items()}
            shared_by = max(args.parallel, found.get(run.name, {}).get("parallel", 1))
            found[run.name] = {"training": training, "count": args.matches, "team_size": args.team_size}
            found[run.name] |= {"parallel": shared_by, "matches": games}
    if not found:
        parser.error(f"--runs_dir {runs_dir}: no run in it has a milestone of {args.every:,} steps; train one first")
    found = json.loads(json.dumps(dict(sorted(found.items()))))
    plot(found, args.out.with_suffix(".png"))
    title = args.out.stem if args.line else "Bot school"
    text = report(title, args.config, found, args.out.with_suffix(".png").name, args.team_size)
    write_report(args.out, text)
    kept.write_text(json.dumps(found) + "\n", encoding="utf-8")
    print(text)
    print(json.dumps({"school": {name: each["matches"] for name, each in found.items()}}))


if __name__ == "__main__":
    main()
