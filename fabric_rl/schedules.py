"""Schedules: numbers that change over a training run, and a learning rate that adapts to the KL divergence."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Annotated, TypeVar

import torch
from torch import Tensor

from fabric_rl.base.settings import Between, Finite, Positive, check_value

Progress = TypeVar("Progress", float, Tensor)
"""Completed share of the training, 0..1, as a float or a float tensor."""


CHECKED_AT = tuple(point / 16 for point in range(17))
"""Progress at which settings are checked: a schedule of one's own may have its extremes anywhere."""


class Schedule(ABC):
    """A number as a function of training progress.

    On the command line, use any subclass in place of a number: `--agent.clip_coef fabric_rl.schedules.Linear
    --agent.clip_coef.start 0.2 --agent.clip_coef.end 0.1`. A schedule has only its settings, so it can be pickled,
    copied and shared; with a tensor as progress, `torch.compile` traces it without recompilations.
    """

    def __call__(self, progress: Progress) -> Progress:
        """Return the number at `progress` (clipped to 0..1), as a float or as a tensor like `progress`."""
        if isinstance(progress, Tensor):
            return self.at(progress.clamp(0, 1))
        return self.at(min(max(progress, 0.0), 1.0))

    @abstractmethod
    def at(self, progress: Progress) -> Progress:
        """Return the number at `progress`, which is within 0..1; see `__call__`."""


class Constant(Schedule):
    """A constant: `value` throughout."""

    def __init__(self, value: float) -> None:
        """Store `value`, the number at 0, 0.5 and 1."""
        self.value: float = check_value("Constant: value", value, Finite)

    def at(self, progress: Progress) -> Progress:
        if isinstance(progress, Tensor):
            return torch.full_like(progress, self.value)
        return self.value

    def __repr__(self) -> str:
        return f"Constant({self.value})"


class _FromTo(Schedule):
    def __init__(self, start: float, end: float) -> None:
        """Store the numbers at 0 and at 1."""
        name = type(self).__name__
        self.start: float = check_value(f"{name}: start", start, Finite)
        self.end: float = check_value(f"{name}: end", end, Finite)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.start}, {self.end})"


class Linear(_FromTo):
    """A straight line: `start` at 0, `(start + end) / 2` at 0.5, `end` at 1."""

    def at(self, progress: Progress) -> Progress:
        return (1 - progress) * self.start + progress * self.end


class Cosine(_FromTo):
    """Half a cosine wave, flat at both ends: `start` at 0, `(start + end) / 2` at 0.5, `end` at 1.

    This is the annealing of Loshchilov & Hutter 2017 (arXiv:1608.03983, equation 5) without restarts; at 0.25 it has
    covered 0.146 of the way.
    """

    def at(self, progress: Progress) -> Progress:
        angle = math.pi * progress
        weight = (1 + (torch.cos(angle) if isinstance(angle, Tensor) else math.cos(angle))) / 2
        return weight * self.start + (1 - weight) * self.end


def as_schedule(
    value: float | Schedule, name: str = "schedule", above: float | None = None, at_least: float | None = None
) -> Schedule:
    """Return a number as a constant schedule, and a schedule unchanged.

    Args:
        value: The setting.
        name: Agent and setting for the message, for example `PPOLightningAgent: clip_coef`.
        above: Exclusive lower bound.
        at_least: Inclusive lower bound.

    Raises:
        ValueError: A number is not finite, or the schedule is not within the bounds at one of 17 points.
        TypeError: The value is neither a number nor a schedule.
    """
    if not isinstance(value, Schedule):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError(f"{name} must be a number or a fabric_rl.schedules.Schedule, got {value!r}")
        if not math.isfinite(value):
            raise ValueError(f"{name} must be finite, got {value}")
        value = Constant(value)
    for number in map(value, CHECKED_AT):
        if above is not None and not number > above:
            raise ValueError(f"{name} must be above {above:g} from start to end, got {value}")
        if at_least is not None and not number >= at_least:
            raise ValueError(f"{name} must be at least {at_least:g} from start to end, got {value}")
    return value


class KLAdaptive:
    """Learning rates that keep the policy's change per update near a target (rsl_rl's adaptive schedule).

    A KL divergence above twice the target divides the rates by 1.5; one below half of it (but positive: the policy has
    moved) multiplies them by 1.5. All parameter groups share one factor, so the rates of an actor and a critic keep
    their ratio; it stops where a rate would leave `min_lr .. max_lr`.

    Attributes:
        factor: Factor for the initial learning rates, 1 at first.
    """

    STEP = 1.5

    def __init__(
        self, desired_kl: float = 0.01, base_lrs: Sequence[float] = (1e-3,), min_lr: float = 1e-5, max_lr: float = 1e-2
    ) -> None:
        """Start at the initial rates.

        Args:
            desired_kl: Target in nats.
            base_lrs: Initial learning rate of every parameter group. If one is out of bounds, the factor changes only
                towards the bounds.
            min_lr: Minimum of all rates.
            max_lr: Maximum of all rates.

        Raises:
            ValueError: A setting is not positive, or `min_lr` is above `max_lr`.
        """
        self.desired_kl: float = check_value("KLAdaptive: desired_kl", desired_kl, Positive)
        check_value("KLAdaptive: max_lr", max_lr, Positive)
        check_value("KLAdaptive: min_lr", min_lr, Annotated[float, Between(0, max_lr, above=True)])
        check_value("KLAdaptive: base_lrs", base_lrs, Sequence[Positive])
        self.factor = 1.0
        self._low = min(1.0, min_lr / min(base_lrs))
        self._high = max(1.0, max_lr / max(base_lrs))

    def update(self, kl: float) -> float:
        """Adapt the factor and return it.

        Args:
            kl: KL divergence of the policy before and after an update, in nats, the same on all ranks.
        """
        if kl > 2 * self.desired_kl:
            self.factor = max(self._low, self.factor / self.STEP)
        elif 0 < kl < self.desired_kl / 2:
            self.factor = min(self._high, self.factor * self.STEP)
        return self.factor

    def state_dict(self) -> dict[str, float]:
        """Return the factor."""
        return {"factor": self.factor}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Restore a saved factor."""
        self.factor = float(state["factor"])
