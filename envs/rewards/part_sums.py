"""PartSums: what the parts of a reward have paid, for the log."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class PartSums:
    """Adds up what each part pays and charges.

    Metrics: `reward/<part>`, mean per car and step; `reward_percent/<part>`, its share of all that is paid and charged,
    where a charge counts like a payment: 0..100, 100 in all.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._sums, self._sizes, self._count = np.zeros(len(names)), np.zeros(len(names)), 0

    def add(self, sums: NDArray[Any], sizes: NDArray[Any], count: int) -> None:
        """Adds `sums [K]` and sums of absolute values `sizes [K]` over `count` steps of cars."""
        self._sums += sums
        self._sizes += sizes
        self._count += count

    def drain(self, weights: float | Sequence[float] = 1.0) -> dict[str, tuple[float, float]]:
        """The metrics as name -> (sum, count) since the last call, each part times its factor of `weights [K]`."""
        factors = np.array(weights)
        sums, sizes = (self._sums * factors).tolist(), self._sizes * np.abs(factors)
        metrics = {f"reward/{name}": (paid, float(self._count)) for name, paid in zip(self.names, sums, strict=True)}
        shares = zip(self.names, (100 * sizes).tolist(), strict=True)
        metrics |= {f"reward_percent/{name}": (size, float(sizes.sum())) for name, size in shares}
        self._sums, self._sizes, self._count = np.zeros(len(sums)), np.zeros(len(sums)), 0
        return metrics

    def state_dict(self) -> dict[str, Any]:
        """The sums."""
        return {"sums": self._sums.copy(), "sizes": self._sizes.copy(), "count": self._count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes what `state_dict` gave; what older versions have saved has no sizes."""
        self._sums, self._count = state["sums"].copy(), int(state["count"])
        self._sizes = state["sizes"].copy() if "sizes" in state else np.zeros(len(self.names))


def under(name: str, metrics: dict[str, tuple[float, float]], weight: float = 1.0) -> dict[str, tuple[float, float]]:
    """The metrics of a part called `name`, which has a weight, as those of the whole: `reward/<name>/<inner>`."""
    renamed = {}
    for key, (total, count) in metrics.items():
        kind, _, inner = key.partition("/")
        shown = key if inner == name else f"{kind}/{name}/{inner}"
        renamed[shown] = (total * weight if kind == "reward" else total, count)
    return renamed
