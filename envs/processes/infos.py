"""The infos of a ProcessPool, joined from those of its parts."""

from collections.abc import Sequence
from typing import Any

import numpy as np


def merged(infos: Sequence[dict[str, Any]], sizes: Sequence[int]) -> dict[str, Any]:
    """One dict of arrays over all sub-environments, zero in parts without the name.

    Args:
        infos: Of every part.
        sizes: Sub-environments of every part. What does not have that many entries is left out.
    """
    joined: dict[str, Any] = {}
    for name in dict.fromkeys(name for info in infos for name in info):
        values = [info.get(name) for info in infos]
        known = [value for value in values if value is not None]
        if all(isinstance(value, dict) for value in known):
            joined[name] = merged([value or {} for value in values], sizes)
            continue
        arrays = [np.asarray(value) for value in known]
        like = arrays[0]
        pairs = list(zip(values, sizes, strict=True))
        if any(np.shape(value)[:1] != (size,) for value, size in pairs if value is not None):
            continue  # not one entry for each sub-environment
        empty = [np.zeros((size, *like.shape[1:]), like.dtype) if value is None else value for value, size in pairs]
        joined[name] = np.concatenate(empty)
    return joined
