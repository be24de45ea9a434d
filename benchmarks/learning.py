"""Trains the presets of known tasks with several seeds and compares the returns with published figures.

    python benchmarks/learning.py                                    # all tasks, 5 seeds each: an hour on two cores
    python benchmarks/learning.py --tasks cartpole --seeds 0 1 2 3 4
    python benchmarks/learning.py --keep runs.jsonl --out benchmarks/results/learning.md    # goes on where it stopped

The figure of a run is the mean return of its last 20 episodes while it still explores. `--out` writes the table, and
the curves with their bands into a PNG of the same name.
"""

import argparse
import csv
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe_machine
from reports import write_report

ROOT = Path(__file__).parent.parent
# Task -> preset, further flags, the return to reach, and whether it is to be reached or stayed under.
MLP = ["--agent", "agents.PPOLightningAgent"]
TWO_RANKS = ["--devices", "2", "--batch_size", "128"]  # of each rank, whose environments make half of the steps
FORGETFUL = ["--agent.memory_size", "0"]
TASKS: dict[str, tuple[str, Sequence[str], float, str]] = {
    "cartpole": ("cartpole", (), 475, "at least"),
    "acrobot": ("acrobot", (), -90, "at least"),
    "lunarlander": ("lunarlander", (), 200, "at least"),
    "pendulum": ("pendulum", (), -250, "at least"),
    "cartpole_memory": ("cartpole_memory", (), 400, "at least"),
    "cartpole_memory_mlp": ("cartpole_memory", MLP, 150, "at most"),
    "sac_pendulum": ("sac_pendulum", (), -200, "at least"),
    "sac_cartpole": ("sac_cartpole", (), 475, "at least"),
    "sac_mountaincar": ("sac_mountaincar", (), 90, "at least"),
    "sac_lunarlander": ("sac_lunarlander", (), 240, "at least"),
    "sac_bipedalwalker": ("sac_bipedalwalker", (), 280, "at least"),
    "sac_pendulum_memory": ("sac_pendulum_memory", (), -250, "at least"),
    "sac_pendulum_forgetful": ("sac_pendulum_memory", FORGETFUL, -900, "at most"),
    "sac_pendulum_ranks": ("sac_pendulum", TWO_RANKS, -200, "at least"),
}
PUBLISHED = {
    "cartpole": ("490 +- 6 at 500k (exploring)", "500 at 100k"),
    "acrobot": ("-86.4 +- 1.3 at 500k (exploring)", "-73.5 at 1M"),
    "lunarlander": ("", "242 at 1M (LunarLander-v2)"),
    "pendulum": ("", "-172 at 100k"),
    "sac_pendulum": ("", "-157 +- 89 at 20k"),
    "sac_mountaincar": ("", "94.7 at 50k (state-dependent exploration)"),
    "sac_lunarlander": ("", "260 +- 66 at 500k (LunarLanderContinuous-v2)"),
    "sac_bipedalwalker": ("", "298 +- 33 at 500k"),
}
"""By CleanRL's documentation (training episodes, 3 seeds) and RL Baselines3 Zoo's table of trained agents."""
CURVE_POINTS = 60


def run_seed(task: str, seed: int, extra: Sequence[str]) -> dict[str, Any]:
    """Trains one task with one seed on one core and returns the figures of its summary, and its curve."""
    preset, flags, _, _ = TASKS[task]
    with tempfile.TemporaryDirectory() as runs:
        command = [sys.executable, "train_fabric.py", "--config", f"configs/{preset}.yaml", *flags, *extra]
        command += ["--seed", str(seed), "--runs_dir", runs, "--run_id", "r", "--plain", "--accelerator", "cpu"]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "LOCAL_WORLD_SIZE": str(os.cpu_count())}
        subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
        summary = json.loads((Path(runs) / "r" / "summary.json").read_text(encoding="utf-8"))
        curve = read_curve(Path(runs) / "r" / "metrics.csv", summary["total_steps"])
    found = {
        "task": task,
        "seed": seed,
        "steps": summary["total_steps"],
        "seconds": summary["wall_seconds"],
        "return": summary["mean_return_last_20"],
    }
    print(json.dumps(found), flush=True)
    return found | {"curve": curve}


def read_curve(metrics: Path, total_steps: int) -> list[float]:
    """The mean return of the episodes that ended in each of `CURVE_POINTS` equal parts of a run; NaN where none did."""
    sums = np.zeros((2, CURVE_POINTS))
    with open(metrics, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["reward/episode_return"] not in ("", "nan"):
                part = min(CURVE_POINTS - 1, int(row["step"]) * CURVE_POINTS // total_steps)
                sums[:, part] += float(row["reward/episode_return"]), 1
    return [float(total / count) if count else math.nan for total, count in sums.T]


def plot(rows: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """Curves of all tasks: the mean over the seeds with its 95 % interval (bootstrap), each seed as a thin line."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    columns = min(3, len(rows))
    figure, axes = pyplot.subplots(
        -(-len(rows) // columns), columns, squeeze=False, figsize=(4 * columns, 3 * -(-len(rows) // columns))
    )
    for ax in axes.flat[len(rows) :]:
        ax.axis("off")
    for ax, (task, runs) in zip(axes.flat, rows.items(), strict=False):
        curves = np.array([run["curve"] for run in runs])
        known = ~np.isnan(curves).all(axis=0)  # episodes may be longer than a part of the run
        curves = curves[:, known]
        steps = ((np.arange(CURVE_POINTS) + 0.5) / CURVE_POINTS * runs[0]["steps"])[known]
        mean = np.nanmean(curves, axis=0)
        ax.plot(steps, curves.T, color="C0", linewidth=0.5, alpha=0.5)
        ax.plot(steps, mean, color="C0", linewidth=2)
        if len(runs) > 1:
            chosen = np.random.default_rng(0).integers(len(runs), size=(2000, len(runs)))
            low, high = np.nanpercentile(np.nanmean(curves[chosen], axis=1), [2.5, 97.5], axis=0)
            ax.fill_between(steps, low, high, color="C0", alpha=0.2, linewidth=0)
        ax.axhline(TASKS[task][2], color="0.4", linestyle=":", linewidth=1)
        ax.set_title(f"{task} ({len(runs)} seeds)", fontsize=10)
        ax.set_xlabel("steps")
        ax.locator_params(axis="x", nbins=4)
        ax.set_ylabel("episode return")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def report(rows: dict[str, list[dict[str, Any]]]) -> str:
    """The results as Markdown."""
    lines = [
        "# Learning",
        "",
        "`python benchmarks/learning.py`: mean return of the last 20 episodes of each run while exploring.",
        "Each run had one core.",
        describe_machine(),
        "",
        "| task | steps | target | mean | returns by seed | reached by | CleanRL | RL Baselines3 Zoo | seconds |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for task, runs in rows.items():
        _, _, target, kind = TASKS[task]
        returns = [run["return"] for run in runs]
        reached = sum(r >= target if kind == "at least" else r <= target for r in returns)
        steps, seconds = runs[0]["steps"], statistics.median(run["seconds"] for run in runs)
        each = ", ".join(f"{r:.1f}" for r in returns)
        lines.append(
            f"| {task} | {steps:,} | {kind} {target:g} | {statistics.mean(returns):.1f} | {each} | "
            f"{reached} of {len(runs)} | {' | '.join(PUBLISHED.get(task, ('', '')))} | {seconds:.0f} |"
        )
    lines += ["", "CleanRL's numbers are from its documentation: training episodes, 3 seeds."]
    lines += ["RL Baselines3 Zoo's are from its table of trained agents: one agent each, without exploration."]
    lines += ["`cartpole_memory` is CartPole without velocities."]
    lines += ["`cartpole_memory_mlp` is the same task with an agent without memory."]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Runs all tasks and seeds, several at a time, prints the table and ends with one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--parallel", type=int, default=os.cpu_count(), help="runs at a time; default: one per core")
    parser.add_argument("--out", type=Path, help="write the table there, and the curves beside it")
    parser.add_argument("--keep", type=Path, help="add every run to this file; runs that it holds are not made again")
    options, extra = parser.parse_known_args()  # further flags go to train_fabric.py
    known: dict[tuple[str, int], dict[str, Any]] = {}
    if options.keep and options.keep.exists():
        for line in options.keep.read_text(encoding="utf-8").splitlines():
            run = json.loads(line)
            known[run["task"], run["seed"]] = run

    def find(task: str, seed: int) -> dict[str, Any]:
        if (task, seed) in known:
            return known[task, seed]
        run = run_seed(task, seed, extra)
        if options.keep:
            with open(options.keep, "a", encoding="utf-8") as file:
                file.write(json.dumps(run) + "\n")
        return run

    with ThreadPoolExecutor(options.parallel) as pool:
        started = {task: [pool.submit(find, task, s) for s in options.seeds] for task in options.tasks}
        rows = {task: [future.result() for future in futures] for task, futures in started.items()}
    print(report(rows))
    if options.out:
        picture = f"\n![learning curves]({options.out.stem}.png)\n"
        write_report(options.out, report(rows) + picture)
        plot(rows, options.out.with_suffix(".png"))
    rows = {task: [{k: v for k, v in run.items() if k != "curve"} for run in runs] for task, runs in rows.items()}
    print(json.dumps({"learning": rows}))


if __name__ == "__main__":
    main()
