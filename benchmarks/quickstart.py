"""Runs the quickstart with several seeds and writes the table `benchmarks/results/quickstart.md`.

`python benchmarks/quickstart.py --seeds 0 1 2` takes about five minutes a seed on two cores.
"""

import argparse
import json
import tempfile
from pathlib import Path

from children import train
from machine import describe_machine
from reports import write_report

ROOT = Path(__file__).parent.parent
CONFIG = "configs/rocket_1v1_quickstart.yaml"


def main() -> None:
    """Runs all seeds one after another, prints the table and ends with one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "quickstart.md")
    options = parser.parse_args()
    rows = [run_seed(seed) for seed in options.seeds]
    write_report(options.out, report(rows))
    print(report(rows))
    print(json.dumps({"quickstart": rows}))


def run_seed(seed: int) -> dict[str, float]:
    """Trains the quickstart with one seed and returns the figures of its summary."""
    with tempfile.TemporaryDirectory() as runs:
        train(["--config", CONFIG, "--seed", str(seed), "--runs_dir", runs, "--run_id", "q"])
        summary = json.loads((Path(runs) / "q" / "summary.json").read_text(encoding="utf-8"))
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
    }


def report(rows: list[dict[str, float]]) -> str:
    """The results as Markdown."""
    lines = [
        "# Quickstart",
        "",
        f"`python benchmarks/quickstart.py`, which trains `{CONFIG}` once per seed. {describe_machine()}",
        "",
        "Touches are contacts with the ball per minute of game time and car; goals are per minute of game time.",
        "'Start' is the mean over the first 50,000 agent-steps (the untrained policy and its first updates), 'end'",
        "over the last 200,000.",
        "",
        "| seed | agent-steps | wall s | steps/s overall | touches/min start | end | ratio | goals/min start | end |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        start = row["touches_start"]
        ratio = f"{row['touches_end'] / start:.0f} x" if start else "from none"
        run = f"{row['seed']} | {row['steps']:,} | {row['seconds']:.0f} | {row['steps_per_second']:,.0f}"
        touches = f"{start:.2f} | {row['touches_end']:.2f} | {ratio}"
        lines.append(f"| {run} | {touches} | {row['goals_start']:.2f} | {row['goals_end']:.2f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
