"""Figures of a player beside its opponent: statistics, maps of the field, and the recipes for its weaknesses."""

import base64
import struct
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple
from zlib import compress, crc32

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.matches.statistics import STATISTICS
from envs.state.layout import Float

_LABELS = ("Position", "Touches", "Shots on goal by their value")
_UNITS = ("{:,.1f} minutes", "{:,.0f} touches", "{:,.1f} expected goals")


NO_METRICS: Mapping[str, float] = MappingProxyType({})


class Finding(NamedTuple):
    """A statistic that shows a weakness, and the page with its remedy."""

    statistic: str
    """Name in `STATISTICS`, `saved` (saves per shot of an opponent that shoots), or a metric of the training."""
    above: bool
    """True: values above the limit are weak; False: values below it."""
    limit: float
    text: str
    page: str


FINDINGS = (
    Finding("kickoffs_won", False, 0.4, "wins few kickoffs", "teach_kickoffs"),
    Finding("own_goals", True, 0.5, "scores own goals", "stop_own_goals"),
    Finding("saved", False, 0.1, "saves few shots", "teach_saves"),
    Finding("air_time", False, 0.01, "hardly ever jumps", "teach_jumps"),
    Finding("boost_used", False, 30.0, "uses little boost", "use_boost"),
    Finding("turtle/recovery_rate", False, 0.5, "stays on its roof", "recover_from_the_roof"),
)


def find_weaknesses(
    name: str, means: Mapping[str, Sequence[float | None]], metrics: Mapping[str, float] = NO_METRICS
) -> list[str]:
    """Return a line for each weakness of a player, with the page that helps.

    Args:
        name: Name of the player.
        means: Name in `STATISTICS` -> means of the player and its opponent; None if there was nothing to measure.
        metrics: Metrics of its training by name.
    """
    known = {**metrics, **{each: mean[0] for each, mean in means.items()}}
    saves, shots = known.get("saves"), means.get("shots", (None, None))[1]
    if saves is not None and shots is not None and shots >= 1:
        known["saved"] = saves / shots
    found = []
    for statistic, above, limit, text, page in FINDINGS:
        value = known.get(statistic)
        if value is not None and (value > limit if above else value < limit):
            is_share = statistic not in STATISTICS or STATISTICS[statistic].is_share
            found.append(f"Next: {name} {text} ({format_mean(value, None, is_share)}): docs/{page}.md")
    return found


def format_mean(mean: float | None, ends: Sequence[float] | None, is_share: bool) -> str:
    """Return the mean of a statistic, and half of its interval, for a table."""
    if mean is None:
        return "-"
    form = "{:.1%}" if is_share else "{:,.2f}" if abs(mean) < 10 else "{:,.0f}"
    return form.format(mean) + ("" if ends is None else f" ± {form.format((ends[1] - ends[0]) / 2)}")


class FieldMap(NamedTuple):
    """The same map of a player and of its opponent; a field is as bright as the square root of its value."""

    label: str
    totals: list[str]
    pictures: list[str]
    """PNG data in base64, gray; both attack upward."""


def field_maps(maps: Float) -> list[FieldMap]:
    """Return pictures of the `MAPS` `[3, 2, *CELLS]` of a player and its opponent."""
    found = []
    for label, unit, scale, both in zip(_LABELS, _UNITS, (1 / 60 / TICKS_PER_SECOND, 1, 1), maps, strict=True):
        levels = np.sqrt(both / max(float(both.max()), 1e-9)) * 255
        pictures = [base64.b64encode(_gray_png(one[::-1, ::-1].T.round().astype(np.uint8))).decode() for one in levels]
        found.append(FieldMap(label, [unit.format(scale * float(one.sum())) for one in both], pictures))
    return found


def _gray_png(pixels: NDArray[np.uint8]) -> bytes:
    height, width = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    head = struct.pack(">2I5B", width, height, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", compress(rows, 9)), (b"IEND", b""))
    packed = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc32(kind + data)) for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)
