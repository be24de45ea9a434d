"""Curves of runs: choosing metrics, final scores, minutes of training, and drawing them."""

import math
from collections.abc import Sequence
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabric_rl.base.text import did_you_mean, escape_control_characters, figure_text
from fabric_rl.metrics.metrics_csv import Curve, mean_of_last_tenth


def final_score(curve: Curve, until: float = math.inf) -> float:
    """Return the mean over the last tenth of the rows (at least one) up to `until` steps."""
    steps, values = curve
    return mean_of_last_tenth(values[steps <= until])


def choose_metrics(
    curves: dict[str, dict[str, Curve]], asked: Sequence[str] = (), usual: Sequence[str] = ()
) -> list[str]:
    """Return the metrics to compare, in order.

    Args:
        curves: Run -> metric -> curve.
        asked: Names, or patterns such as `ppo/*`.
        usual: Default metrics; if no run has any of them, the default is the first four metrics by name.

    Raises:
        ValueError: No run has a metric that was asked for.
    """
    known = sorted({name for run in curves.values() for name in run})
    if not asked:
        return [name for name in usual if name in known] or known[:4]
    chosen: list[str] = []
    for pattern in asked:
        found = [name for name in known if fnmatchcase(name, pattern)]
        if not found:
            hint = did_you_mean(pattern, known) or f"; known: {', '.join(known)}"
            raise ValueError(f"--metrics {pattern}: no run has such a metric{hint}")
        chosen += [name for name in found if name not in chosen]
    return chosen


_MARKERS = "ox+*#@%&"
SPEED = "speed/overall_steps_per_second"


def minutes_at(steps: NDArray[np.float64], speed: Curve) -> NDArray[np.float64]:
    """Return the minutes of training until each of `steps`, computed from the overall steps per second in each row."""
    passed = np.cumsum(np.diff(speed[0], prepend=0) / speed[1]) / 60
    return np.interp(steps, np.append(0, speed[0]), np.append(0, passed))


def load_matplotlib(module: str) -> Any:  # noqa: ANN401 - optional
    """Return a module of matplotlib; raise an ImportError that says how to install it."""
    try:
        return import_module(f"matplotlib.{module}")
    except ImportError as error:
        raise ImportError("pictures need matplotlib; pip install matplotlib") from error


def new_figure(width: float, height: float) -> Any:  # noqa: ANN401 - matplotlib is optional
    """Return an empty matplotlib figure, size in inches (no display needed); raise an ImportError without it."""
    return load_matplotlib("figure").Figure(figsize=(width, height), layout="constrained")


def draw_png(path: str | Path, curves: dict[str, dict[str, Curve]], metrics: Sequence[str]) -> None:
    """Draw one panel per metric and one line per run.

    Raises:
        ImportError: matplotlib is not installed.
        OSError: The file cannot be written.
    """
    columns = 1 if len(metrics) == 1 else 2
    rows = math.ceil(len(metrics) / columns)
    figure = new_figure(6.5 * columns, 3.5 * rows)
    for i, metric in enumerate(metrics):
        axes = figure.add_subplot(rows, columns, i + 1)
        for place, (name, run) in enumerate(curves.items()):
            if metric in run:
                draw_line(axes, name, *run[metric], color=f"C{place % 10}")
        finish_axes(axes, title=metric, xlabel="agent-steps")
    figure.savefig(path, format="png", dpi=120)


def draw_text(curves: dict[str, dict[str, Curve]], metric: str, width: int = 79, height: int = 15) -> str:
    """Draw one metric of all runs as text, without colours; raise an ImportError without plotext."""
    plot = import_module("plotext")
    shown = {name: run[metric] for name, run in curves.items() if metric in run}
    largest = max(float(steps[-1]) for steps, _ in shown.values())
    unit, label = next((u for u in ((1e6, "million "), (1e3, "thousand ")) if largest >= u[0]), (1.0, ""))
    plot.clear_figure()
    plot.theme("clear")
    plot.plotsize(width, height)
    plot.title(metric)
    plot.xlabel(f"{label}agent-steps")
    for marker, (name, (steps, values)) in zip(_MARKERS * len(shown), shown.items(), strict=False):
        stride = max(1, len(steps) // (2 * width))  # more points than columns would only take time
        plot.plot((steps[::stride] / unit).tolist(), values[::stride].tolist(), label=name, marker=marker)
    return escape_control_characters(plot.uncolorize(plot.build()), "\n")


def draw_line(axes: Any, label: str, x: Any, y: Any, color: str | None, band: tuple[Any, Any] | None = None) -> None:  # noqa: ANN401
    """Draw a line, and fill the area of `band` (low, high) in the same colour."""
    axes.plot(x, y, "o"[: len(x) == 1], color=color, label=figure_text(label))  # a single point would be invisible
    if band is not None:
        axes.fill_between(x, *band, color=color, alpha=0.2, linewidth=0)


def finish_axes(axes: Any, **words: str) -> None:  # noqa: ANN401
    """Set title and labels, and add a grid and a legend."""
    axes.set(**{key: figure_text(text) for key, text in words.items()})
    axes.grid(alpha=0.3)
    axes.legend(*axes.get_legend_handles_labels(), fontsize="small")
