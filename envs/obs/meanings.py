"""What the columns of an observation say, in words: for people, and for `python -m envs.obs`."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from envs.state.layout import Float

AXES = "x, y, z"
LOCAL_AXES = "along the car's forward, right, up"
FLAG = "0 or 1"
UNIT_VECTOR = "unit vector"


class Meaning(NamedTuple):
    """Neighbouring columns that say one thing."""

    group: str
    """Name in `ObsBuilder.columns`."""
    name: str
    """Name within the group, empty if the group says one thing only."""
    width: int
    """Columns."""
    text: str
    """What they say."""
    unit: str = ""
    """Unit or range before the factor."""
    factor: float | np.float32 | Float = 1.0
    """What the number is multiplied by, one for all columns or one for each."""


def slices(meanings: Iterable[Meaning]) -> dict[str, slice]:
    """The columns of each group, for `ObsBuilder.columns`."""
    groups: dict[str, slice] = {}
    start = 0
    for meaning in meanings:
        stop = start + meaning.width
        groups[meaning.group] = slice(groups[meaning.group].start if meaning.group in groups else start, stop)
        start = stop
    return groups


def with_prefix(prefix: str, meanings: Iterable[Meaning], note: str = "") -> list[Meaning]:
    """The same with `prefix` before each group and `note` after each text."""
    return [m._replace(group=f"{prefix}{m.group}", text=f"{m.text}{note}") for m in meanings]


def factor_text(factor: float | np.float32 | Float) -> str:
    """A factor as people write it: `1`, `1/2300`, `1/4096, 1/6000, 1/2044`."""
    factors = np.atleast_1d(np.asarray(factor, np.float64)).tolist()
    texts = [f"1/{1 / x:.6g}" if 0 < abs(x) < 1 else f"{x:g}" for x in factors]
    return texts[0] if len(set(texts)) == 1 else ", ".join(texts)
