"""Pictures of learning curves and comparisons (these need matplotlib)."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from fabric_rl.analysis.comparison import ALL, Comparison, Estimate
from fabric_rl.analysis.curves import SPEED, draw_line, finish_axes, load_matplotlib, minutes_at, new_figure
from fabric_rl.base.text import figure_text
from fabric_rl.metrics.metrics_csv import Curve, read_metrics
from fabric_rl.runs.records import find_run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST_RUNS = 3
"""Minimum number of runs to draw a band."""


def learning_curves(
    runs: Sequence[str | Path] | Mapping[str, Sequence[str | Path]],
    metric: str = "reward/episode_return",
    minutes: bool = False,
    runs_dir: str | Path = "runs",
    axes: "Axes | None" = None,
) -> "Axes":
    """Plot a metric of runs: one line per run, or for a group of 3 or more runs, their mean with a 95 % band.

    The band is Student's confidence interval of the mean; see `fabric_rl.analysis.plots.mean_with_interval`.

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
    panel: Any = axes or load_matplotlib("pyplot").subplots(figsize=(7, 3.4), layout="constrained")[1]
    for number, (label, curves) in enumerate(found.items()):
        if len(curves) >= LEAST_RUNS:
            points, mean, half = mean_with_interval(curves)
            name = f"{label or 'mean'} of {len(curves)} runs, 95 % interval of the mean"
            draw_line(panel, name, points, mean, f"C{number % 10}", (mean - half, mean + half))
            continue
        for run, curve in zip(groups[label], curves, strict=True):
            name = f"{label} {Path(run).name}".strip()
            draw_line(panel, name, *curve, color=f"C{number % 10}" if label else None)
    finish_axes(panel, xlabel="minutes of training" if minutes else "agent-steps", ylabel=metric)
    return panel  # type: ignore[no-any-return]


def mean_with_interval(curves: Sequence[Curve]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    r"""Return the mean over runs and the half width of its 95 % confidence interval (Student's t), point by point.

        half = t_{0.975, n-1} s / sqrt(n),  s^2 = sum (y_i - mean)^2 / (n - 1)

    The runs are the samples. They must be independent, like different seeds of the same settings, and approximately
    normally distributed at each point. At a point, the interval contains the mean of many more such runs in 95 of 100
    cases. It is not a prediction of the next run, nor a band for the whole curve. The points are those of all curves
    between the latest start and the earliest end; curves are interpolated linearly.

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


def comparison_figure(found: Comparison) -> Any:  # noqa: ANN401 - matplotlib is optional, see new_figure
    """Plot a comparison: learning curves of every task, final scores, probabilities of improvement, and profiles.

    Performance profiles are drawn only for several tasks.

    Args:
        found: The result of `fabric_rl.compare`.

    Returns:
        A `matplotlib.figure.Figure`.

    Raises:
        ImportError: matplotlib is not installed.
    """
    several = len(found.curves) > 1
    panels = len(found.curves) + 1 + bool(found.improvements) + several
    figure = new_figure(12, 3.6 * math.ceil(panels / 2))
    axes = iter(figure.subplots(math.ceil(panels / 2), 2).flat)
    for task, curves in found.curves.items():
        _bands(next(axes), curves, title=task, xlabel="agent-steps", ylabel=found.metric)
    if several:
        words = {"title": "performance profiles", "xlabel": "scaled score", "ylabel": "share of runs above it"}
        _bands(next(axes), found.profiles, **words)
    last = [row for row in found.scores if row.task == (ALL if several else next(iter(found.curves)))]
    _intervals(panel := next(axes), [row.group for row in last], [row.iqm for row in last])
    panel.set(title=f"final score, {ALL if several else found.metric}", xlabel="interquartile mean")
    if found.improvements:
        names = [f"{pair.group} > {pair.than}" for pair in found.improvements]
        _intervals(panel := next(axes), names, [pair.probability for pair in found.improvements])
        panel.axvline(0.5, color="grey", linestyle="--", linewidth=1)
        panel.set(title="probability that a run is better", xlim=(-0.02, 1.02))
    for panel in axes:
        panel.set_axis_off()
    return figure


def _bands(axes: Any, curves: dict[str, Estimate], **words: str) -> None:  # noqa: ANN401
    for number, (label, curve) in enumerate(curves.items()):
        draw_line(axes, label, curve.x, curve.value, f"C{number % 10}", (curve.low, curve.high))
    finish_axes(axes, **words)


def _intervals(axes: Any, names: Sequence[str], estimates: Sequence[Estimate]) -> None:  # noqa: ANN401
    for number, estimate in enumerate(estimates):
        axes.plot([estimate.low, estimate.high], [number] * 2, color=f"C{number % 10}", linewidth=6, alpha=0.4)
        axes.plot(estimate.value, number, "o", color=f"C{number % 10}")
    axes.set_yticks(range(len(names)), list(map(figure_text, names)))
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(alpha=0.3, axis="x")
