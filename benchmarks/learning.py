"""Trains the presets of known tasks with several seeds and compares the returns with published figures.

    python benchmarks/learning.py                                    # all tasks, 5 seeds each: an hour on two cores
    python benchmarks/learning.py --tasks cartpole --seeds 0 1 2 3 4

The figure of a run is the mean return of its last 20 episodes while it still explores; a table goes to
`benchmarks/results/learning.md`.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from machine import describe_machine

ROOT = Path(__file__).parent.parent
# Task -> preset, further flags, the return to reach, and whether it is to be reached or stayed under.
MLP = ["--agent", "agents.PPOLightningAgent"]
TASKS: dict[str, tuple[str, Sequence[str], float, str]] = {
    "cartpole": ("cartpole", (), 475, "at least"),
    "acrobot": ("acrobot", (), -90, "at least"),
    "lunarlander": ("lunarlander", (), 200, "at least"),
    "pendulum": ("pendulum", (), -250, "at least"),
    "cartpole_memory": ("cartpole_memory", (), 400, "at least"),
    "cartpole_memory_mlp": ("cartpole_memory", MLP, 150, "at most"),
}


def run_seed(task: str, seed: int, extra: Sequence[str]) -> dict[str, float]:
    """Trains one task with one seed on one core and returns the figures of its summary."""
    preset, flags, _, _ = TASKS[task]
    with tempfile.TemporaryDirectory() as runs:
        command = [sys.executable, "train_fabric.py", "--config", f"configs/{preset}.yaml", *flags, *extra]
        command += ["--seed", str(seed), "--runs_dir", runs, "--run_id", "r", "--plain", "--accelerator", "cpu"]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "LOCAL_WORLD_SIZE": str(os.cpu_count())}
        subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
        summary = json.loads((Path(runs) / "r" / "summary.json").read_text(encoding="utf-8"))
    found = {
        "seed": seed,
        "steps": summary["total_steps"],
        "seconds": summary["wall_seconds"],
        "return": summary["mean_return_last_20"],
    }
    print(json.dumps({"task": task} | found), flush=True)
    return found


def report(rows: dict[str, list[dict[str, float]]]) -> str:
    """The results as Markdown."""
    lines = [
        "# Learning",
        "",
        "`python benchmarks/learning.py`: mean return of the last 20 episodes of each run, exploring, one core a run.",
        describe_machine(),
        "",
        "| task | steps | target | mean | worst | best | seeds that reach it | returns by seed | seconds |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for task, runs in rows.items():
        _, _, target, kind = TASKS[task]
        returns = [run["return"] for run in runs]
        reached = sum(r >= target if kind == "at least" else r <= target for r in returns)
        steps, seconds = runs[0]["steps"], statistics.median(run["seconds"] for run in runs)
        each = ", ".join(f"{r:.1f}" for r in returns)
        lines.append(
            f"| {task} | {steps:,} | {kind} {target:g} | {statistics.mean(returns):.1f} | {min(returns):.1f} | "
            f"{max(returns):.1f} | {reached} of {len(runs)} | {each} | {seconds:.0f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Runs all tasks and seeds, several at a time, prints the table and ends with one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--parallel", type=int, default=os.cpu_count(), help="runs at a time; default: one per core")
    parser.add_argument("--out", type=Path, help="write the table there")
    options, extra = parser.parse_known_args()  # further flags go to train_fabric.py
    with ThreadPoolExecutor(options.parallel) as pool:
        started = {task: [pool.submit(run_seed, task, s, extra) for s in options.seeds] for task in options.tasks}
        rows = {task: [future.result() for future in futures] for task, futures in started.items()}
    print(report(rows))
    if options.out:
        options.out.write_text(report(rows), encoding="utf-8")
    print(json.dumps({"learning": rows}))


if __name__ == "__main__":
    main()
