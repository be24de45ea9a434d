"""ParameterRandomizer, and the samplers that it draws from; Uniform, Gaussian and MultirangeUniform as in ML-Agents."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from envs.component import Component
from fabric_rl.base.settings import Count, Finite, NonNegative, check_value, is_number


class Sampler(Component, ABC):
    """Base class: sample the values of one parameter. It has no state, because arenas and processes share it."""

    @abstractmethod
    def sample(self, rng: np.random.Generator) -> float:
        """Draw one finite value; all randomness comes from `rng`."""

    ends_are_bounds: ClassVar[bool] = False
    """True if no sample is outside of `ends`."""

    def ends(self) -> Sequence[float]:
        """Return values that must be valid for the parameter, checked before training; none by default.

        Samples beyond the parameter's limits, as in the tails of a `Gaussian`, are clipped.
        """
        return ()


@dataclass(eq=False, repr=False)
class Constant(Sampler):
    """Always return the same value."""

    ends_are_bounds = True

    value: Finite
    """The value."""

    def sample(self, rng: np.random.Generator) -> float:
        return self.value

    def ends(self) -> Sequence[float]:
        return (self.value,)


@dataclass(eq=False, repr=False)
class Uniform(Sampler):
    """Sample uniformly from [min_value, max_value), like ML-Agents' `uniform`."""

    ends_are_bounds = True

    min_value: Finite
    """Minimum."""
    max_value: Finite
    """Maximum, which itself is never drawn."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_order(self, "min_value and max_value", self.min_value, self.max_value)

    def sample(self, rng: np.random.Generator) -> float:
        return float(rng.uniform(self.min_value, self.max_value))

    def ends(self) -> Sequence[float]:
        return self.min_value, math.nextafter(self.max_value, self.min_value)


@dataclass(eq=False, repr=False)
class Gaussian(Sampler):
    """Sample from a normal distribution, like ML-Agents' `gaussian`."""

    mean: Finite
    """Mean."""
    st_dev: NonNegative
    """Standard deviation."""

    def sample(self, rng: np.random.Generator) -> float:
        return float(rng.normal(self.mean, self.st_dev))

    def ends(self) -> Sequence[float]:
        return (self.mean,)


@dataclass(eq=False, repr=False)
class MultirangeUniform(Sampler):
    """Sample uniformly from several intervals, like ML-Agents' `multirange_uniform`.

    First an interval is chosen with a probability proportional to its width, then a value in its [min, max).
    """

    ends_are_bounds = True

    intervals: Sequence[tuple[Finite, Finite]]
    """List of [min, max]."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.intervals:
            raise ValueError("MultirangeUniform: intervals must be a list of [min, max], got none")
        for low, high in self.intervals:
            _check_order(self, "each of intervals", low, high)
        widths = np.array([high - low for low, high in self.intervals])
        self._shares = widths / widths.sum()

    def sample(self, rng: np.random.Generator) -> float:
        low, high = self.intervals[int(rng.choice(len(self.intervals), p=self._shares))]
        return float(rng.uniform(low, high))

    def ends(self) -> Sequence[float]:
        return [end for low, high in self.intervals for end in (low, math.nextafter(high, low))]


@dataclass(eq=False, repr=False)
class ParameterRandomizer(Component, ABC):  # ABC: a class path on the command line, not a group of settings
    """Randomize environment parameters as in Unity's ML-Agents, separately for every arena (or sub-environment).

    This object only stores the settings; every environment samples its own values. New values take effect when an
    episode begins. ML-Agents resets the environment when `resampling_interval` has passed; here the running episode is
    finished first.
    """

    samplers: dict[str, Sampler]
    """Parameter -> sampler. A pool has the parameters in `envs.parameters.PARAMETERS`, a Gymnasium environment
    has its own numeric attributes."""
    resampling_interval: Count | None = None
    """Steps of an arena after which its next episode gets new values. Default: every episode."""


def draw(sampler: Sampler, name: str, rng: np.random.Generator) -> float:
    """Draw a value of the parameter `name`; raise a ValueError unless it is a finite number."""
    value = sampler.sample(rng)
    if not is_number(value) or not math.isfinite(value):
        raise ValueError(f"{type(sampler).__name__}: sample() must return one finite number, got {value!r} for {name}")
    return float(value)


def as_sampler(owner: str, name: str, value: Any) -> Sampler:  # noqa: ANN401 - checked here
    """Return a sampler for a lesson's value: `Constant` for a number, `Uniform` for a pair; else raise a ValueError."""
    if not hasattr(value, "__iter__") or isinstance(value, str):
        return Constant(check_value(f"{owner}: {name}", value, Finite))
    numbers = check_value(f"{owner}: {name}", value, Sequence[Finite])
    if len(numbers) != 2 or not numbers[0] < numbers[1]:
        raise ValueError(f"{owner}: {name} must be a number or [min, max] with min < max, got {value!r}")
    return Uniform(*numbers)


def _check_order(sampler: Sampler, argument: str, low: float, high: float) -> None:
    if not low < high:
        raise ValueError(
            f"{type(sampler).__name__}: {argument} must be two numbers, the lower one first, got {low:g} and {high:g}; "
            "for a single value, use Constant"
        )
