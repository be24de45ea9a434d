"""What `--overlap` costs in learning: the same trainings with and without it, compared at equal agent-steps.

    python benchmarks/overlap.py                       # both tasks, five seeds each: half an hour on two cores
    python benchmarks/overlap.py --tasks cartpole

Figures are means over all rows of `metrics.csv`, so they say how fast a run learns, and over the last tenth. The
interval of the difference is Welch's (95 %). A run that is in `--runs_dir` is not trained again.
"""

import argparse
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from children import FABRIC_RL
from machine import describe_machine
from scipy import stats

from fabric_rl.metrics.metrics_csv import read_metrics
from fabric_rl.sweeps.train_processes import seeds_of

ROOT = Path(__file__).parent.parent
ONE_RANK = ["--devices", "1", "--env.num_arenas", "64", "--env.num_threads", "1", "--minibatch_size", "1024"]
TASKS = {
    "cartpole": (["--total_timesteps", "60_000"], "reward/episode_return"),
    "rocket_1v1_quickstart": ([*ONE_RANK, "--total_timesteps", "500_000"], "game/touches_per_minute"),
}
"""Preset -> more flags, and the metric to compare."""


def figures(folder: Path, metric: str) -> dict[str, float]:
    """The figures of one run."""
    curves = {name: values for name, (_, values) in read_metrics(folder / "metrics.csv").items()}
    rows = curves[metric]
    return {
        f"{metric}, all rows": float(rows.mean()),
        f"{metric}, last tenth": float(rows[-(len(rows) // 10) :].mean()),
        **{name: float(curves[name].mean()) for name in ("ppo/approx_kl_first", "ppo/clip_fraction_first")},
    }


def compare(plain: list[float], overlap: list[float]) -> dict[str, Any]:
    """Means of both, and Welch's interval of their difference; none if the runs of a group are all the same."""
    means = {"without": float(np.mean(plain)), "with": float(np.mean(overlap))}
    if not (np.ptp(plain) and np.ptp(overlap)):
        return means | {"interval": []}
    low, high = stats.ttest_ind(overlap, plain, equal_var=False).confidence_interval(0.95)
    return means | {"interval": [float(low), float(high)]}


def main() -> None:
    """Trains what is missing, prints a table and ends with one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--seeds", default="0..4")
    parser.add_argument("--parallel", default="2", help="runs at a time")
    parser.add_argument("--runs_dir", type=Path, default=Path("runs/overlap"))
    options = parser.parse_args()
    found: dict[str, dict[str, Any]] = {}
    for task in options.tasks:
        flags, metric = TASKS[task]
        how = ["--seeds", options.seeds, "--parallel", options.parallel, "--runs_dir", str(options.runs_dir.resolve())]
        common = [*FABRIC_RL, "seeds", "--config", f"configs/{task}.yaml", *flags, "--num_threads", "1", *how]
        for group in ([], ["--group", "overlap", "--overlap"]):
            subprocess.run([*common, *group], cwd=ROOT, check=True)
        plain, overlap = (
            [figures(options.runs_dir / f"{prefix}{task}_seed{seed}", metric) for seed in seeds_of(options.seeds)]
            for prefix in ("", "overlap_")
        )
        found[task] = {name: compare([x[name] for x in plain], [x[name] for x in overlap]) for name in plain[0]}
    print(describe_machine(), "\n")
    print("| Task | Figure | Without | With `--overlap` | Difference (95 %) |", "|---|---|---|---|---|", sep="\n")
    for task, rows in found.items():
        for name, each in rows.items():
            interval = " to ".join(f"{x:+.3g}" for x in each["interval"])
            print(f"| {task} | `{name}` | {each['without']:.4g} | {each['with']:.4g} | {interval} |")
    print(json.dumps({"overlap": found}))


if __name__ == "__main__":
    main()
