"""Samplers: where the values of a parameter come from. The first three are those of Unity's ML-Agents (release 1)."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from envs.checks import finite_numbers, number_in
from fabric_rl.base.settings import is_number


class Sampler(ABC):
    """Draws values of one parameter. It keeps nothing between draws: arenas and processes share it."""

    @abstractmethod
    def sample(self, rng: np.random.Generator) -> float:
        """One finite value; all randomness comes from `rng`."""

    def ends(self) -> Sequence[float]:
        """Values that must be possible for the parameter, checked before training; none by default.

        What lies beyond the parameter's limits all the same, as in the tails of a `Gaussian`, is clipped to them.
        """
        return ()


class Constant(Sampler):
    """Always the same value."""

    def __init__(self, value: float) -> None:
        self.value = number_in("Constant", "value", value)

    def sample(self, rng: np.random.Generator) -> float:
        """The value."""
        return self.value

    def ends(self) -> Sequence[float]:
        """The value."""
        return (self.value,)


class Uniform(Sampler):
    """Uniform in [min_value, max_value): ML-Agents' `uniform`."""

    def __init__(self, min_value: float, max_value: float) -> None:
        self.min_value, self.max_value = _interval(self, "min_value and max_value", (min_value, max_value))

    def sample(self, rng: np.random.Generator) -> float:
        """One value."""
        return float(rng.uniform(self.min_value, self.max_value))

    def ends(self) -> Sequence[float]:
        """Least and greatest value."""
        return self.min_value, math.nextafter(self.max_value, self.min_value)


class Gaussian(Sampler):
    """Normally distributed: ML-Agents' `gaussian`."""

    def __init__(self, mean: float, st_dev: float) -> None:
        self.mean, self.st_dev = number_in("Gaussian", "mean", mean), number_in("Gaussian", "st_dev", st_dev)
        if self.st_dev < 0:
            raise ValueError(f"Gaussian: st_dev must be 0 or more, got {st_dev!r}")

    def sample(self, rng: np.random.Generator) -> float:
        """One value."""
        return float(rng.normal(self.mean, self.st_dev))

    def ends(self) -> Sequence[float]:
        """The mean."""
        return (self.mean,)


class MultirangeUniform(Sampler):
    """Uniform in several intervals: ML-Agents' `multirange_uniform`.

    First an interval is drawn, with a probability proportional to its width, then a value in [min, max) of it.
    """

    def __init__(self, intervals: Sequence[Sequence[float]]) -> None:
        listed = list(intervals) if isinstance(intervals, Sequence | np.ndarray) else []
        if not listed or isinstance(intervals, str):
            raise ValueError(f"MultirangeUniform: intervals must be a list of [min, max], got {intervals!r}")
        self.intervals = [_interval(self, "each of intervals", interval) for interval in listed]
        widths = np.array([high - low for low, high in self.intervals])
        self._shares = widths / widths.sum()

    def sample(self, rng: np.random.Generator) -> float:
        """One value."""
        low, high = self.intervals[int(rng.choice(len(self.intervals), p=self._shares))]
        return float(rng.uniform(low, high))

    def ends(self) -> Sequence[float]:
        """Least and greatest value of each interval."""
        return [end for low, high in self.intervals for end in (low, math.nextafter(high, low))]


def drawn_from(sampler: Sampler, name: str, rng: np.random.Generator) -> float:
    """A value of the parameter `name`; a ValueError that names both unless it is one finite number."""
    value = sampler.sample(rng)
    if not is_number(value) or not math.isfinite(value):
        raise ValueError(f"{type(sampler).__name__}: sample() must return one finite number, got {value!r} for {name}")
    return float(value)


def as_sampler(owner: str, name: str, value: Any) -> Sampler:  # noqa: ANN401 - checked here
    """What a lesson sets a parameter to: a number is a `Constant`, a pair of numbers a `Uniform` between them.

    Raises:
        ValueError: It is neither.
    """
    numbers = finite_numbers(owner, name, value)
    if not hasattr(value, "__iter__"):
        return Constant(numbers[0])
    if len(numbers) != 2 or not numbers[0] < numbers[1]:
        raise ValueError(f"{owner}: {name} must be a number or [min, max] with min < max, got {value!r}")
    return Uniform(*numbers)


def _interval(sampler: Sampler, argument: str, pair: Any) -> tuple[float, float]:  # noqa: ANN401 - checked here
    numbers = finite_numbers(type(sampler).__name__, argument, pair)
    if len(numbers) != 2 or not numbers[0] < numbers[1]:
        given = f"{pair!r}" if len(numbers) != 2 else f"{numbers[0]:g} and {numbers[1]:g}"
        raise ValueError(
            f"{type(sampler).__name__}: {argument} must be two numbers, the lower one first, got {given}; for one "
            "value take Constant"
        )
    return numbers[0], numbers[1]
