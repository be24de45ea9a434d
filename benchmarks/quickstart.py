"""Train the quickstart with several seeds and write a table and curves, `benchmarks/results/quickstart.md`.

`python benchmarks/quickstart.py --seeds 0 1 2` takes five to seven minutes a seed on two cores. A seed that is in
`--runs_dir` is not trained again.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from children import train
from machine import describe_machine
from numpy.typing import NDArray
from reports import THEMELESS, write_report
from school import evaluate
from signals import band

from fabric_rl.metrics.metrics_csv import read_metrics
from fabric_rl.sweeps.train_processes import finished_run

ROOT = Path(__file__).parent.parent
CONFIG = "configs/rocket_1v1_quickstart.yaml"
METRICS = {"game/touches_per_minute": "touches per minute (per car)", "game/goals_per_minute": "goals per minute"}
Curves = list[NDArray[np.float64]]


def main() -> None:
    """Run all seeds one after another, print the table and end with one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--runs_dir", type=Path, default=Path("runs/quickstart"))
    parser.add_argument("--matches", type=int, default=60, help="sampled, of five minutes, against the chaser")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "quickstart.md")
    options = parser.parse_args()
    curves: dict[int, Curves] = {}
    rows = [run_seed(seed, options.runs_dir.resolve(), options.matches, curves) for seed in options.seeds]
    plot(curves, options.out.with_suffix(".png"))
    write_report(options.out, report(rows, options.out.with_suffix(".png").name))
    print(report(rows, options.out.with_suffix(".png").name))
    print(json.dumps({"quickstart": rows}))


def run_seed(seed: int, runs_dir: Path, matches: int, curves: dict[int, Curves]) -> dict[str, float]:
    """Train the quickstart with one seed, let it play, add its curves, and return its figures."""
    run = runs_dir / f"seed{seed}"
    if not finished_run(run):
        flags = ["--seed", str(seed), "--runs_dir", str(runs_dir), "--run_id", run.name, "--force"]
        train(["--config", CONFIG, *flags])
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    curves[seed] = curves_of(run)
    played = evaluate(str(run), "chaser", matches, run / "matches" / "chaser")
    touches, goals = summary["touches_per_minute"], summary["goals_per_minute"]
    return {
        "seed": seed,
        "steps": summary["total_steps"],
        "seconds": summary["wall_seconds"],
        "steps_per_second": summary["overall_steps_per_second"],
        "touches_start": touches["start"],
        "touches_end": touches["end"],
        "goals_start": goals["start"],
        "goals_end": goals["end"],
        "difference": played["difference"],
    }


def curves_of(run: Path) -> Curves:
    """Return agent-steps, touches and goals per minute of a run, `[points]` each: means over 200,000 agent-steps."""
    metrics = read_metrics(run / "metrics.csv")
    steps = metrics["game/touches_per_minute"][0]
    window = round(200_000 / (steps[1] - steps[0]))
    columns = [steps, *(metrics[name][1] for name in METRICS)]
    return [np.convolve(column, np.ones(window) / window, "valid") for column in columns]


def plot(curves: dict[int, Curves], path: Path) -> None:
    """Draw touches and goals per minute over agent-steps, one line per seed."""
    from matplotlib import pyplot

    with pyplot.rc_context(THEMELESS):
        figure, axes = pyplot.subplots(1, 2, figsize=(11, 4), layout="constrained")
        for seed, (steps, *values) in curves.items():
            for ax, y in zip(axes, values, strict=True):
                ax.plot(steps / 1e6, y, linewidth=2, label=f"seed {seed}")
        for ax, title in zip(axes, METRICS.values(), strict=True):
            ax.set(xlabel="million agent-steps", title=title, ylim=(0, None))
            ax.grid(alpha=0.3)
        axes[0].legend(frameon=False)
        figure.savefig(path, dpi=90)
    pyplot.close(figure)


def report(rows: list[dict[str, float]], picture: str) -> str:
    """Return the results as Markdown."""
    lines = [
        "# Quickstart",
        "",
        f"`python benchmarks/quickstart.py`, which trains `{CONFIG}` once per seed. {describe_machine()}",
        "",
        "Touches are contacts with the ball per minute of game time and car; goals are per minute of game time.",
        "'Start' is the mean over the first 50,000 agent-steps (the untrained policy and its first updates), 'end'",
        "over the last 200,000. Curves are running means over 200,000 agent-steps.",
        "",
        f"![Touches and goals per minute while the bots learn]({picture})",
        "",
        "'Matches' is the mean goal difference of sampled matches of five minutes against the chaser.",
        "",
        "| seed | agent-steps | wall s | steps/s overall | touches/min start | end | goals/min start | end | matches |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        run = f"{row['seed']} | {row['steps']:,} | {row['seconds']:.0f} | {row['steps_per_second']:,.0f}"
        touches = f"{row['touches_start']:.2f} | {row['touches_end']:.2f}"
        goals = f"{row['goals_start']:.2f} | {row['goals_end']:.2f}"
        lines.append(f"| {run} | {touches} | {goals} | {row['difference']:+.2f} |")
    mean = band([row["difference"] for row in rows])
    if "half_width" in mean:
        lines += [
            "",
            f"Matches, mean over the seeds: {mean['mean']:+.2f} ± {mean['half_width']:.2f} (95 %, Student's).",
        ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
