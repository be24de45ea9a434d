"""Base classes of rewards, and their shared checks and array functions.

Units, as `Reward.unit` states them:

- `per step`: paid on every step, so a second contains 120 / tick_skip payments; wrap it in `PerSecondReward` for a
  reward that does not depend on the tick skip.
- `per second`: already multiplied by the seconds that the step lasted.
- `per change`: differences that add up to the same sum however finely time is cut.
- `per event`: paid once when something happens.
- `per touching step`: paid on each step with a touch; a contact that lasts over several steps pays several times.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from envs.component import Component, begin_rows
from envs.state.game_state import GameState
from envs.state.layout import Bool, Float
from fabric_rl.base.settings import annotations_of, describe_value

ZERO, ONE = np.float32(0), np.float32(1)


class Reward(Component, ABC):
    """Base class: compute a reward for every car of every arena.

    Attributes:
        unit: Unit of the reward, one of those listed at the top of the module.
        value_range: Minimum and maximum reward of one step, with the default settings.
    """

    unit: ClassVar[str] = "per step"
    value_range: ClassVar[tuple[float, float]] = (-math.inf, math.inf)

    @abstractmethod
    def compute(self, state: GameState) -> Float:
        """Return the rewards `[A, C]` (float32) of the step that led to `state`."""

    def __call__(self, state: GameState, name: str | None = None) -> Float:
        """Return the rewards of `compute`; raise a ValueError, which names `name`, unless they are numbers `[A, C]`."""
        paid, shape = self.compute(state), (state.num_arenas, state.num_cars)
        if isinstance(paid, np.ndarray) and paid.dtype.kind in "biuf" and paid.shape == shape:
            return paid
        got, name = describe_value(paid), name or type(self).__name__
        raise ValueError(f"{name}: compute() returned {got}, expected [arenas, cars] = {list(shape)} numbers")

    def label(self) -> str:
        """Return the name of the reward in metrics and errors. A wrapper has the name of its inner reward."""
        return type(self).__name__

    def remembers(self) -> bool:
        """Return True if the reward depends on earlier states; by default, if an inner reward does."""
        return any(child.remembers() for child in self.children() if isinstance(child, Reward))

    def only_charges(self) -> bool:
        """Return True if the reward is never positive. A negative weight would then reward the penalized behaviour."""
        return self.value_range[1] <= 0


@dataclass(eq=False, repr=False)
class RememberingReward(Reward):
    """Base class of rewards that compare a state with the one before it.

    Write two methods. `_first(state)` returns the values to remember from an episode's first state, by name.
    `compute(state)` reads the remembered values with `self._recall()`, computes the reward, and stores the values for
    the next step with `self._keep(name=array, ...)`. This class resets, saves and loads them; if you write an
    `__init__`, call `super().__init__()`.

        def _first(self, state):
            return {"speed": np.linalg.norm(state.world.car_vel, axis=-1)}

        def compute(self, state):
            speed = np.linalg.norm(state.world.car_vel, axis=-1)
            gained = speed - self._recall()["speed"]
            self._keep(speed=speed)
            return gained / 1000
    """

    needs_a_weight: ClassVar[bool] = False
    """True if the float settings are weights, which are also kept as `weights`, and not all of them may be zero."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._kept: dict[str, NDArray[Any]] = {}
        if self.needs_a_weight:
            settings = {name: getattr(self, name) for name in annotations_of(type(self))}
            self.weights = {name: value for name, value in settings.items() if isinstance(value, float)}
            if not any(self.weights.values()):
                raise ValueError(f"{type(self).__name__}: all weights are zero; set one of {', '.join(self.weights)}")

    @abstractmethod
    def _first(self, state: GameState) -> dict[str, NDArray[Any]]:
        """Return the values to remember from an episode's initial state: name -> array `[A, ...]`, which is copied."""

    def reset(self, mask: Bool, state: GameState) -> None:
        first = self._first(state)
        self._kept = {name: begin_rows(mask, array, self._kept.get(name)) for name, array in first.items()}

    def _recall(self) -> dict[str, NDArray[Any]]:
        if not self._kept:
            raise RuntimeError(f"{type(self).__name__}: call reset() before compute()")
        return self._kept

    def _keep(self, **arrays: NDArray[Any]) -> None:
        """Remember copies of the arrays; needed for views of the state, and for arrays that may change."""
        for name, array in arrays.items():
            self._kept[name] = np.array(array, self._kept[name].dtype)

    def _hold(self, **arrays: NDArray[Any]) -> None:
        """Remember the arrays without copying them; they must never change, like those of `GameState.quantities`."""
        self._kept.update(arrays)

    def state_dict(self) -> dict[str, Any]:
        return {name: array.copy() for name, array in self._kept.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._kept = {name: np.array(array) for name, array in state.items()}

    def remembers(self) -> bool:
        return True


def zeros(state: GameState) -> Float:
    """Return zeros `[A, C]`."""
    return np.zeros((state.num_arenas, state.num_cars), np.float32)


def zero_absent_cars(state: GameState, paid: NDArray[Any]) -> Float:
    """Return `paid [A, C]` as float32, zero in slots without a car."""
    if state.all_present:
        return paid.astype(np.float32, copy=False)
    return np.where(state.present, paid, ZERO).astype(np.float32, copy=False)


def team_to_cars(state: GameState, both: NDArray[Any]) -> NDArray[Any]:
    """Expand numbers per team `[A, 2]` (blue, orange) to numbers per car `[A, C]`; may return `both` itself."""
    return both if state.num_blue == 1 and state.num_orange == 1 else both.take(state.team, axis=1)


def team_sums(state: GameState, cars: NDArray[Any]) -> NDArray[Any]:
    """Return the sums `[A, 2]` of `cars [A, C]` over blue and over orange cars; counts for bools."""
    blue = state.num_blue
    return np.stack((cars[:, :blue].sum(axis=1), cars[:, blue:].sum(axis=1)), axis=1)


class TermStatistics(Component):
    """Running sums of each term's rewards.

    Metrics: `reward/<part>`, mean per car and step; `reward_percent/<part>`, share of the sum of absolute rewards over
    all terms, 0..100.
    """

    _in_state_dict: ClassVar[dict[str, str]] = {"sums": "_sums", "sizes": "_sizes", "count": "_count"}

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._sums, self._sizes, self._count = np.zeros(len(names)), np.zeros(len(names)), 0

    def add(self, sums: NDArray[Any], sizes: NDArray[Any], count: int) -> None:
        """Add `sums [K]` and sums of absolute values `sizes [K]` over `count` steps of cars."""
        self._sums += sums
        self._sizes += sizes
        self._count += count

    def drain(self, weights: float | Sequence[float] = 1.0) -> dict[str, tuple[float, float]]:
        """Return the metrics since the last call as name -> (sum, count), each term times its weight, `[K]`."""
        factors = np.array(weights)
        sums, sizes = (self._sums * factors).tolist(), self._sizes * np.abs(factors)
        metrics = {f"reward/{name}": (paid, float(self._count)) for name, paid in zip(self.names, sums, strict=True)}
        shares = zip(self.names, (100 * sizes).tolist(), strict=True)
        metrics |= {f"reward_percent/{name}": (size, float(sizes.sum())) for name, size in shares}
        self._sums, self._sizes, self._count = np.zeros(len(sums)), np.zeros(len(sums)), 0
        return metrics

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a `state_dict`; state dicts of older versions lack the sizes."""
        super().load_state_dict({"sizes": np.zeros(len(self.names))} | state)


def prefix_metrics(
    name: str, metrics: dict[str, tuple[float, float]], weight: float = 1.0
) -> dict[str, tuple[float, float]]:
    """Prefix a term's metrics with its name, `reward/<name>/<inner>`, and multiply its rewards by `weight`."""
    renamed = {}
    for key, (total, count) in metrics.items():
        kind, _, inner = key.partition("/")
        shown = key if inner == name else f"{kind}/{name}/{inner}"
        renamed[shown] = (total * weight if kind == "reward" else total, count)
    return renamed
