"""Trains the bot school's first two phases and plays matches against the ball chaser.

    python benchmarks/school.py --runs_dir runs/school                    # hours on two cores
    python benchmarks/school.py --runs_dir runs/school --report_only      # what is there so far

Every seed trains phase 1 until it is promoted; the first seed goes on with phase 2. A run that was stopped goes on.
Touches and goals are those of training: sampled actions, from the phase's kickoffs and random states, against itself.
"""

import argparse
import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe_machine

ROOT = Path(__file__).parent.parent
FLAGS = ["--config", "configs/bot_school.yaml", "--accelerator", "cpu", "--devices", "2", "--env.num_arenas", "32"]
TARGET = 12.0
WINDOW_STEPS = 500_000
"""Agent-steps over which touches and goals are averaged."""
EVALUATE = "from fabric_rl.commands.main import main; main()"


def train(runs_dir: Path, seed: int, steps: int) -> None:
    """Trains a seed to `steps`, or goes on with it; nothing if it has them."""
    name = f"seed{seed}"
    if (runs_dir / name / "config.yaml").exists():
        command = ["--run_id", name, "--resume", "--total_timesteps", str(steps)]
    else:
        command = [*FLAGS, "--run_id", name, "--seed", str(seed), "--total_timesteps", str(steps)]
    subprocess.run(
        [sys.executable, "train_fabric.py", *command, "--runs_dir", str(runs_dir), "--plain"],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
    )


def curve(run: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Columns of `metrics.csv` that the report needs, and `seconds` since the beginning."""
    names = ("step", "phase/number", "game/touches_per_minute", "game/goals_per_minute")
    speed = "speed/overall_steps_per_second"
    with open(run / "metrics.csv", newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row[speed]]
    columns = {name: np.array([float(row[name] or "nan") for row in rows]) for name in (*names, speed)}
    taken = np.diff(columns["step"], prepend=0.0)
    return columns | {"seconds": np.cumsum(taken / columns.pop(speed))}


def smooth(values: np.ndarray[Any, Any], points: int) -> np.ndarray[Any, Any]:
    """Means of the last `points` values; NaN before there are so many."""
    sums = np.cumsum(np.concatenate([[0.0], values]))
    means = np.full(len(values), np.nan)
    means[points - 1 :] = (sums[points:] - sums[:-points]) / points
    return means


def figures(run: Path) -> dict[str, Any]:
    """When phase 1 came to 12 touches a minute and to its end, and where the run stands."""
    data = curve(run)
    points = max(1, round(WINDOW_STEPS / data["step"][0]))
    touches, goals = (smooth(data[f"game/{name}_per_minute"], points) for name in ("touches", "goals"))
    first_phase = data["phase/number"] == 1
    reached = np.flatnonzero(first_phase & (touches >= TARGET))
    last = np.flatnonzero(first_phase)[-1]
    found: dict[str, Any] = {"run": run.name, "steps": int(data["step"][-1]), "seconds": float(data["seconds"][-1])}
    found |= {"touches": float(touches[-1]), "goals": float(goals[-1]), "phase": int(data["phase/number"][-1])}
    found |= {"phase_1_steps": int(data["step"][last]), "phase_1_seconds": float(data["seconds"][last])}
    found |= {"phase_1_touches": float(touches[last])}
    if len(reached):
        found |= {"target_steps": int(data["step"][reached[0]]), "target_seconds": float(data["seconds"][reached[0]])}
    return found


def evaluate(runs_dir: Path, name: str, matches: int, minutes: float) -> dict[str, Any]:
    """Matches of a run against the ball chaser, kept beside the runs by the checkpoint's steps."""
    newest = max((runs_dir / name / "checkpoints").glob("*.ckpt"))
    out = runs_dir / f"{name}_{newest.stem}_{matches}x{minutes:g}.json"
    if not out.exists():
        players = [str(newest), "chaser", "--matches", str(matches), "--minutes", str(minutes)]
        subprocess.run([sys.executable, "-c", EVALUATE, "evaluate", *players, "--out", str(out)], cwd=ROOT, check=True)
    return {"steps": int(newest.stem.rpartition("_")[2]), **json.loads(out.read_text(encoding="utf-8"))}


def plot(runs: list[Path], path: Path) -> None:
    """Touches and goals per minute over the steps, one line per seed; phase 2 of the first one only."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(10, 3.5))
    for number, run in enumerate(runs):
        data = curve(run)
        points = max(1, round(WINDOW_STEPS / data["step"][0]))
        if number:  # phase 1 of the other seeds
            data = {name: values[data["phase/number"] == 1] for name, values in data.items()}
        for ax, name in zip(axes, ("touches", "goals"), strict=True):
            ax.plot(
                data["step"] / 1e6, smooth(data[f"game/{name}_per_minute"], points), color=f"C{number}", label=run.name
            )
            for change in np.flatnonzero(np.diff(data["phase/number"])):
                ax.axvline(data["step"][change] / 1e6, color=f"C{number}", linestyle=":", linewidth=1)
    for ax, label in zip(axes, ("touches per agent-minute", "goals per minute"), strict=True):
        ax.set(xlabel="million agent-steps", ylabel=label)
        ax.grid(alpha=0.3)
    axes[0].axhline(TARGET, color="0.4", linestyle="--", linewidth=1)
    axes[1].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def report(rows: list[dict[str, Any]], games: dict[str, Any] | None) -> str:
    """The results as Markdown."""
    lines = [
        "# Bot school",
        "",
        "`python benchmarks/school.py`: 1v1 on two ranks of 32 arenas each. " + describe_machine(),
        "",
        "Touches (once per contact) per agent-minute and goals per minute are means over the last 500,000 agent-steps",
        "of training: sampled actions, from the phase's kickoffs and random states, against itself. The dotted",
        "lines in the curves are changes of phase. Times are those of training.",
        "",
        "![curves](school.png)",
        "",
        "## Phase 1 from scratch",
        "",
        f"| seed | {TARGET:g} touches a minute after | phase 1 ended after | touches then |",
        "|---|---|---|---|",
    ]
    for row in rows:
        target = (
            f"{row['target_steps']:,} steps, {row['target_seconds'] / 60:.0f} min" if "target_steps" in row else "-"
        )
        ended = f"{row['phase_1_steps']:,} steps, {row['phase_1_seconds'] / 60:.0f} min"
        ended = ended if row["phase"] > 1 else f"not yet ({ended})"
        lines.append(f"| {row['run'].removeprefix('seed')} | {target} | {ended} | {row['phase_1_touches']:.1f} |")
    if games is not None:
        row = rows[0]
        low, high = games["difference_interval_95"]
        lines += [
            "",
            "## Phase 2, continued with the first seed, against the ball chaser",
            "",
            f"After {row['steps']:,} steps in all ({row['seconds'] / 60:.0f} min): {row['touches']:.1f} touches and "
            f"{row['goals']:.2f} goals per minute in training.",
            "",
            f"`fabric-rl evaluate RUN chaser --matches {games['matches']} --minutes {games['minutes']:g}` with the "
            f"checkpoint of {games['steps']:,} steps, most likely actions:",
            "",
            "| | agent | ball chaser |",
            "|---|---|---|",
            f"| matches won ({games['draws']} drawn) | {games['wins']} | {games['losses']} |",
            f"| goals per match | {games['goals'][0]:.2f} | {games['goals'][1]:.2f} |",
            f"| touches per minute | {games['touches_per_minute'][0]:.1f} | {games['touches_per_minute'][1]:.1f} |",
            "",
            f"Goal difference per match: {games['difference']:+.2f}, 95 % interval {low:+.2f} to {high:+.2f}, from "
            f"{games['pairs']} independent pairs of matches (docs/evaluation.md).",
        ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Trains, plays, writes the report and ends with one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--phase_1_steps", type=int, default=8_000_000, help="of every seed")
    parser.add_argument("--steps", type=int, default=40_000_000, help="of the first seed, which goes on with phase 2")
    parser.add_argument("--matches", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=5.0, help="of each match")
    parser.add_argument("--runs_dir", type=Path, default=ROOT / "runs" / "school")
    parser.add_argument("--report_only", action="store_true", help="train nothing")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "school.md")
    args = parser.parse_args()
    runs_dir = args.runs_dir.absolute()
    for number, seed in enumerate(args.seeds):
        if not args.report_only:
            train(runs_dir, seed, args.steps if number == 0 else args.phase_1_steps)
    runs = [runs_dir / f"seed{seed}" for seed in args.seeds if (runs_dir / f"seed{seed}" / "metrics.csv").exists()]
    rows = [figures(run) for run in runs]
    games = evaluate(runs_dir, runs[0].name, args.matches, args.minutes)
    args.out.write_text(report(rows, games), encoding="utf-8")
    plot(runs, args.out.with_suffix(".png"))
    print(report(rows, games))
    print(json.dumps({"school": rows, "matches": games}))


if __name__ == "__main__":
    main()
