"""Figures of a player beside its opponent: statistics, maps of the field, and the recipes for its weaknesses."""

import base64
import struct
from collections.abc import Mapping, Sequence
from zlib import compress, crc32

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.matches.statistics import STATISTICS
from envs.state.layout import Float

_LABELS = ("Position", "Touches", "Shots on goal by their value")
_UNITS = ("{:,.1f} minutes", "{:,.0f} touches", "{:,.1f} expected goals")


WEAKNESSES = (
    ("kickoffs_won", "below", 0.4, "wins few kickoffs", "teach_kickoffs"),
    ("own_goals", "above", 0.3, "scores own goals", "stop_own_goals"),
    ("saved", "below", 0.1, "saves few shots", "teach_saves"),
    ("air_time", "below", 0.01, "hardly ever jumps", "teach_jumps"),
    ("boost_empty", "above", 0.5, "is often out of boost", "use_boost"),
    ("turtle/recovery_rate", "below", 0.5, "stays on its roof", "recover_from_the_roof"),
)
"""Statistic (`saved`: saves per shot of the opponent) or metric, which values of it are weak, text, page that helps."""


def find_weaknesses(name: str, means: Mapping[str, Sequence[float | None]], metrics: Mapping[str, float]) -> list[str]:
    """Return a line for each weakness of a player, with the page that helps.

    `means` are the statistics of the player and its opponent (None: nothing to measure), `metrics` of its training.
    """
    known = {**metrics, **{each: mean[0] for each, mean in means.items()}}
    saves, shots = known.get("saves"), means.get("shots", (None, None))[1]
    if saves is not None and shots is not None and shots >= 1:
        known["saved"] = saves / shots
    found = []
    for statistic, side, limit, text, page in WEAKNESSES:
        value = known.get(statistic)
        if value is not None and (value > limit if side == "above" else value < limit):
            is_share = statistic not in STATISTICS or STATISTICS[statistic].is_share
            found.append(f"Next: {name} {text} ({format_mean(value, None, is_share)}): docs/{page}.md")
    return found


def format_mean(mean: float | None, ends: Sequence[float] | None, is_share: bool) -> str:
    """Return the mean of a statistic, and half of its interval, for a table."""
    if mean is None:
        return "-"
    form = "{:.1%}" if is_share else "{:,.2f}" if abs(mean) < 10 else "{:,.0f}"
    return form.format(mean) + ("" if ends is None else f" ± {form.format((ends[1] - ends[0]) / 2)}")


def field_maps(maps: Float) -> list[tuple[str, list[str], list[str]]]:
    """Return label, totals and pictures (gray PNG in base64, attacking upward) of each of the `MAPS` `[3, 2, *CELLS]`.

    A cell is as bright as the square root of its value; the brightest one of both players is white.
    """
    found = []
    for label, unit, scale, both in zip(_LABELS, _UNITS, (1 / 60 / TICKS_PER_SECOND, 1, 1), maps, strict=True):
        levels = np.rint(np.sqrt(both / max(float(both.max()), 1e-9)) * 255).astype(np.uint8)
        pictures = [base64.b64encode(_gray_png(one[::-1, ::-1].T)).decode() for one in levels]
        found.append((label, [unit.format(scale * float(one.sum())) for one in both], pictures))
    return found


def _gray_png(pixels: NDArray[np.uint8]) -> bytes:
    head = struct.pack(">2I5B", *pixels.shape[::-1], 8, 0, 0, 0, 0)
    rows = compress(b"".join(b"\0" + row.tobytes() for row in pixels), 9)
    found = b"\x89PNG\r\n\x1a\n"
    for chunk in (b"IHDR" + head, b"IDAT" + rows, b"IEND"):
        found += struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", crc32(chunk))
    return found
