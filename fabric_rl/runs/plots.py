"""Learning curves of several runs in one picture, for notebooks; `pip install matplotlib`."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from fabric_rl.runs.curves import Curve, read_metrics
from fabric_rl.runs.records import find_run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST_RUNS = 3
"""Fewer have no band."""
SPEED = "speed/overall_steps_per_second"


def learning_curves(
    runs: Sequence[str | Path] | Mapping[str, Sequence[str | Path]],
    metric: str = "reward/episode_return",
    minutes: bool = False,
    runs_dir: str | Path = "runs",
    axes: "Axes | None" = None,
) -> "Axes":
    """Draws a metric of runs: one line each, or with 3 and more of a kind their mean with a band, see `band_of`.

    Args:
        runs: Run ids or folders that differ in nothing but their seed; or a label for each such group of them.
        metric: A column of `metrics.csv`.
        minutes: The x axis is minutes of training instead of agent-steps.
        runs_dir: Folder of the run ids.
        axes: What to draw on; default: new ones.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: There is no such run or metric, or the curves of a group have no step in common.
    """
    groups = runs if isinstance(runs, Mapping) else {"": runs}
    found = {label: [_curve(runs_dir, str(run), metric, minutes) for run in group] for label, group in groups.items()}
    if axes is None:
        try:
            axes = import_module("matplotlib.pyplot").subplots(figsize=(7, 3.4), layout="constrained")[1]
        except ImportError as error:
            raise ImportError("pictures need matplotlib; pip install matplotlib") from error
    for number, (label, curves) in enumerate(found.items()):
        if len(curves) >= LEAST_RUNS:
            points, mean, half = band_of(curves)
            name = f"{label or 'mean'} of {len(curves)} runs, 95 % interval of the mean"
            axes.plot(points, mean, color=f"C{number % 10}", label=name)
            axes.fill_between(points, mean - half, mean + half, color=f"C{number % 10}", alpha=0.2, linewidth=0)
            continue
        for run, curve in zip(groups[label], curves, strict=True):
            axes.plot(*curve, color=f"C{number % 10}" if label else None, label=f"{label} {Path(run).name}".strip())
    axes.set(xlabel="minutes of training" if minutes else "agent-steps", ylabel=metric)
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    return axes


def band_of(curves: Sequence[Curve]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    r"""The mean over runs and the half width of Student's 95 % interval for it, point by point.

        half = t_{0.975, n-1} s / sqrt(n),  s^2 = sum (y_i - mean)^2 / (n - 1)

    The runs are the samples. They have to be independent, which seeds of one setting are, and at each point about
    normally distributed. It says where the mean of many more such runs lies at a point, right in 95 of 100 cases; not
    where the next run lies, and not that the whole curve of means stays within the band. The points are those of all
    curves between the latest beginning and the earliest end, linearly interpolated where a curve has none there.

    Args:
        curves: One for each run, two or more.

    Returns:
        Points, means and half widths, `[points]` float64 each.

    Raises:
        ValueError: Fewer runs, or no point that all of them cover.
    """
    begin, end = max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves)
    if len(curves) < 2 or begin > end:
        raise ValueError("a band needs two or more runs that have steps in common")
    points = np.unique(np.concatenate([x for x, _ in curves]))
    points = points[(points >= begin) & (points <= end)]
    values = np.stack([np.interp(points, x, y) for x, y in curves])  # [runs, points]
    scatter = values.std(axis=0, ddof=1) / np.sqrt(len(curves))
    return points, values.mean(axis=0), float(stats.t.ppf(0.975, len(curves) - 1)) * scatter


def _curve(runs_dir: str | Path, run: str, metric: str, minutes: bool) -> Curve:
    curves = read_metrics(find_run(runs_dir, run).folder / "metrics.csv")
    for name in (metric, SPEED) if minutes else (metric,):
        if name not in curves:
            raise ValueError(f"run {run} has no metric {name}; it has {', '.join(curves) or 'none yet'}")
    steps, values = curves[metric]
    return (minutes_at(steps, curves[SPEED]) if minutes else steps), values


def minutes_at(steps: NDArray[np.float64], speed: Curve) -> NDArray[np.float64]:
    """Minutes of training until each of `steps`, from the overall steps per second of each row."""
    passed = np.cumsum(np.diff(speed[0], prepend=0) / speed[1]) / 60
    return np.interp(steps, np.append(0, speed[0]), np.append(0, passed))
