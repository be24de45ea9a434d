"""SAC and PPO with analog controls in Rocket League: what they learn by steps, and by minutes of a processor core.

One car learns to drive to the ball and hit it: the world and the rewards of `configs/rocket_1v1_quickstart.yaml`, which
are those of `configs/sac_rocket_1v1.yaml` too, with its observations, eight continuous controls and no opponent. PPO
standardises its returns. Both have a thread. The figure is touches per minute of the game, the mean over the last fifth
of the steps so far.

    python benchmarks/sac_rocket.py --seeds 0 1 2 --runs_dir /tmp/sac_rocket     # goes on where it stopped
"""

import argparse
import csv
import json
import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

from machine import describe_machine

ROOT = Path(__file__).parent.parent
WORLD = ["--env.init_args.team_size", "[1, 0]", "--env.init_args.num_arenas", "32", "--summary_freq", "5000"]
WORLD += ["--env.init_args.action", "envs.ContinuousAction", "--env.init_args.obs", "envs.AdvancedObsPlus"]
WAYS = {
    "SAC": ["--config", "configs/sac_rocket_1v1.yaml", *WORLD],
    "PPO": ["--config", "configs/rocket_1v1_quickstart.yaml", *WORLD, "--agent.init_args.entropy_coef", "0.005"],
}
FIGURE = "game/touches_per_minute"


def train(name: str, seed: int, steps: int, runs: Path) -> Path:
    """Trains on one core unless that is done already; returns the run's folder, with `cpu_seconds` in it."""
    run = runs / f"{name.lower()}_{steps}_{seed}"
    if not (run / "cpu_seconds").exists():
        command = [sys.executable, "train_fabric.py", *WAYS[name], "--total_timesteps", str(steps), "--seed", str(seed)]
        command += ["--runs_dir", str(runs), "--run_id", run.name, "--force", "true", "--plain"]
        command += ["--accelerator", "cpu", "--devices", "1"]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "LOCAL_WORLD_SIZE": str(os.cpu_count())}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        (run / "cpu_seconds").write_text(str(spent))
    return run


def read_curve(run: Path) -> list[tuple[int, float]]:
    """Steps and the figure, row by row."""
    with open(run / "metrics.csv", newline="", encoding="utf-8") as file:
        return [(int(row["step"]), float(row[FIGURE])) for row in csv.DictReader(file) if row[FIGURE]]


def at(curve: list[tuple[int, float]], steps: float) -> float | None:
    """The mean figure over the last fifth of so many steps; None where the run was shorter."""
    found = [figure for step, figure in curve if 0.8 * steps <= step <= steps]
    return statistics.mean(found) if found and curve[-1][0] >= 0.95 * steps else None


def cell(figures: list[float | None]) -> str:
    """The mean over the seeds and each of them; a dash where a run was shorter."""
    known = [figure for figure in figures if figure is not None]
    if len(known) < len(figures):
        return "-"
    return f"{statistics.mean(known):.1f} ({', '.join(f'{figure:.1f}' for figure in known)})"


def main() -> None:
    """Trains both with each seed in turn, prints a table and ends with one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, nargs=2, default=[150_000, 1_500_000], help="of SAC and of PPO")
    parser.add_argument("--marks", type=int, nargs="+", default=[50_000, 100_000, 150_000, 500_000, 1_500_000])
    parser.add_argument("--minutes", type=float, nargs="+", default=[1, 2, 4])
    parser.add_argument("--runs_dir", type=Path, required=True)
    options = parser.parse_args()
    runs = options.runs_dir.resolve()
    steps = dict(zip(WAYS, options.steps, strict=True))
    found: dict[str, list[Path]] = {name: [] for name in WAYS}
    for seed in options.seeds:
        for name, folders in found.items():
            folders.append(train(name, seed, steps[name], runs))
    curves = {name: [read_curve(run) for run in folders] for name, folders in found.items()}
    seconds = {name: [float((run / "cpu_seconds").read_text()) for run in folders] for name, folders in found.items()}
    rates = {name: [steps[name] / each for each in spent] for name, spent in seconds.items()}
    table: dict[str, dict[str, list[float | None]]] = {}
    for mark in options.marks:
        table[f"{mark:,} steps"] = {name: [at(curve, mark) for curve in curves[name]] for name in WAYS}
    for minutes in options.minutes:
        table[f"{minutes:g} minutes"] = {
            name: [at(curve, 60 * minutes * rate) for curve, rate in zip(curves[name], rates[name], strict=True)]
            for name in WAYS
        }
    told = ", ".join(f"{name} {statistics.median(rate):,.0f}" for name, rate in rates.items())
    print(f"{describe_machine()} Agent-steps per second of a core: {told}.\n")
    print("| touches per minute after | SAC | PPO |\n|---|---|---|")
    for after, row in table.items():
        print(f"| {after} | {cell(row['SAC'])} | {cell(row['PPO'])} |")
    print(json.dumps({"sac_rocket": {"touches_per_minute": table, "steps_per_core_second": rates}}))


if __name__ == "__main__":
    main()
