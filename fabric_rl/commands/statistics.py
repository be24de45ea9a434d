"""The second table of `fabric-rl evaluate`: what both players did, beside the goals."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from envs.matches.statistics import STATISTICS, ratio_samples
from fabric_rl.selfplay.ratings.intervals import LEAST_SAMPLES, Interval, mean_interval

Samples = Mapping[str, NDArray[np.float64]]
"""See `envs.matches.matches.Matches.statistics`."""


def statistics_summary(
    samples: Samples, confidence: float = 0.95, looks: bool = False
) -> dict[str, dict[str, list[Any]]]:
    """Name -> `means` of all pairs in which there was something to measure, and their `intervals_95`, of both players.

    A mean is None where no pair had anything, an interval where there are too few pairs, or all are alike; and all
    are where the number of pairs depends on `looks` at them, as no interval would hold then.
    """
    found: dict[str, dict[str, list[Any]]] = {}
    for name, values in samples.items():
        each = [ratio_samples(side) for side in np.moveaxis(values, 1, 0)]
        intervals = [None if looks else _interval(name, side, confidence) for side in each]
        found[name] = {
            "means": [float(side.mean()) if len(side) else None for side in each],
            f"intervals_{100 * confidence:g}": [None if interval is None else list(interval) for interval in intervals],
        }
    return found


def _interval(name: str, side: NDArray[np.float64], confidence: float) -> Interval | None:
    counted = STATISTICS[name].per == "matches"
    if not counted and (not len(side) or np.ptp(side) < 1e-12):
        return None
    return mean_interval(side, 0.5 if counted else 0.0, confidence)  # of a pair's two matches, the mean


def statistics_table(names: Sequence[str], samples: Samples, confidence: float = 0.95, looks: bool = False) -> Table:
    """One row per figure, the mean and half the width of its interval for each player; see `statistics_summary`."""
    pairs = len(next(iter(samples.values()), ()))
    width = "" if looks or pairs < LEAST_SAMPLES else f", and half its {100 * confidence:g} % interval"
    made = Table(title=f"mean of {pairs} {'pair' if pairs == 1 else 'pairs'} of matches{width}")
    for header in ("", *names):
        made.add_column(header, justify="right" if header else "left")
    for name, figures in statistics_summary(samples, confidence, looks).items():
        statistic = STATISTICS[name]
        cells = [
            _cell(mean, ends, statistic.is_share)
            for mean, ends in zip(figures["means"], figures[f"intervals_{100 * confidence:g}"], strict=True)
        ]
        made.add_row(statistic.label, *cells)
    return made


def _cell(mean: float | None, ends: list[float] | None, is_share: bool) -> str:
    if mean is None:
        return "-"
    half = math.nan if ends is None else (ends[1] - ends[0]) / 2
    if is_share:
        return f"{mean:.1%}" + ("" if ends is None else f" ± {half:.1%}")
    digits = 2 if abs(mean) < 10 else 0
    return f"{mean:,.{digits}f}" + ("" if ends is None else f" ± {half:,.{digits}f}")
