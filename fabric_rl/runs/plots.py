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
    """Plot a metric of runs: one line per run, or for 3 or more runs of a group their mean with a 95 % band.

    The band is Student's confidence interval of the mean, see `fabric_rl.runs.plots.band_of`.

    Args:
        runs: Run ids or folders of runs that differ only in their seed; or a dict from label to such a group of runs.
        metric: A column of `metrics.csv`.
        minutes: Show minutes of training on the x axis instead of agent-steps.
        runs_dir: Folder that contains all runs.
        axes: Matplotlib axes to draw on; default: new axes.

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
    r"""Return the mean over runs and the half width of its 95 % confidence interval (Student's t), point by point.

        half = t_{0.975, n-1} s / sqrt(n),  s^2 = sum (y_i - mean)^2 / (n - 1)

    The runs are the samples. They must be independent, as different seeds of the same settings are, and about normally
    distributed at each point. At a point, the interval contains the mean of many more such runs in 95 of 100 cases. It
    does not say where the next run lies, nor that the whole curve of means stays within the band. The points are those
    of all curves between the latest beginning and the earliest end; curves are interpolated linearly.

    Args:
        curves: Curves of two or more runs.

    Returns:
        Points, means and half widths, `[points]` float64 each.

    Raises:
        ValueError: There are fewer than two runs, or no point that all of them cover.
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
