"""Rewards made of other rewards: sums, signals, per second, shared, annealed, clipped, normalized, by phase."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from envs.component import Phased, added_metrics, begin_rows, unique_names
from envs.obs.combinators import slot_roles, team_roles
from envs.rewards.base import Reward, TermStatistics, prefix_metrics, team_sums, team_to_cars, zero_absent_cars
from envs.state.game_state import GameState
from envs.state.layout import Bool, Float
from envs.state.quantities import seconds_between
from fabric_rl.base.settings import CountOrZero, Finite, NonNegative, Positive, Share
from fabric_rl.base.state_schema import load_child_state


@dataclass(eq=False, repr=False)
class WrappedReward(Reward):
    """A reward that transforms another one."""

    unit = "as the inner reward"
    _in_state_dict: ClassVar[dict[str, str]] = {"inner": "reward"}

    reward: Reward
    """The reward inside."""

    def label(self) -> str:
        return self.reward.label()

    def remembers(self) -> bool:
        return len(self._in_state_dict) > 1 or super().remembers()

    def only_charges(self) -> bool:
        return self.reward.only_charges()


@dataclass(eq=False, repr=False)
class PerSecondReward(WrappedReward):
    """Pay another reward per second instead of per step: `r * seconds`.

    `seconds` is the game time of the step (tick skip / 120), so a second is worth the same at every tick skip. Use it
    for dense rewards (`per step`); multiply weights that were chosen for tick skip 8 by 15. Range: the inner reward's
    times the step's seconds. Source: rlgym-tools' velocity and boost-keep rewards work in this way.
    """

    unit = "per second"
    _in_state_dict: ClassVar[dict[str, str]] = WrappedReward._in_state_dict | {"ticks": "_ticks"}

    def __post_init__(self) -> None:
        super().__post_init__()
        self._ticks: NDArray[np.int64] = np.zeros(0, np.int64)

    def reset(self, mask: Bool, state: GameState) -> None:
        super().reset(mask, state)
        self._ticks = begin_rows(mask, state.quantities.ticks, self._ticks)

    def compute(self, state: GameState) -> Float:
        if len(self._ticks) != state.num_arenas:
            raise RuntimeError(f"{type(self).__name__}: call reset() before compute()")
        shared = state.quantities
        seconds, self._ticks = seconds_between(shared.ticks, self._ticks)[:, None], shared.ticks
        return (self.reward(state) * seconds).astype(np.float32, copy=False)


@dataclass(eq=False, repr=False)
class TeamSpiritReward(WrappedReward):
    """Share a reward: `(1 - s) r + s mean_team(r) - k mean_opponents(r)`, s = `team_spirit`, k = `opponent_scale`.

    By default k = 0, so the opponents' rewards do not count. With k = 1 and equal teams, the rewards of an arena add up
    to zero. For a team without opponents, nothing is subtracted.
    Range: the inner reward's, and with k > 0 minus k times this range; unit: the inner reward's. Source: OpenAI Five
    (Berner et al. 2019), rlgym-tools' `DistributeRewardsWrapper` (which also halves both parts by default).
    """

    team_spirit: Share = 0.0
    """From 0 (each car for itself) to 1 (all cars of a team alike)."""
    opponent_scale: NonNegative = 0.0
    """Share of the opponents' mean that is subtracted; 0 for none, 1 for zero-sum."""

    def compute(self, state: GameState) -> Float:
        own = zero_absent_cars(state, self.reward(state))
        sizes = team_sums(state, state.present)
        means = team_sums(state, own) / np.maximum(sizes, 1).astype(np.float32)
        spirit, scale = np.float32(self.team_spirit), np.float32(self.opponent_scale)
        shared = (np.float32(1) - spirit) * own + team_to_cars(state, spirit * means - scale * means[:, ::-1])
        return zero_absent_cars(state, shared)

    def only_charges(self) -> bool:
        return not self.opponent_scale and super().only_charges()


@dataclass(eq=False, repr=False)
class AnnealedReward(WrappedReward):
    """Change the weight of a reward during training: `w(n) r`, w linear between given points.

    `n` is the number of steps of this environment (all arenas step once per step). Before the first point, the first
    weight applies; after the last point, the last weight. `n` is saved with the state, so a resumed run continues from
    it. It is the same in every process and rank; at the end of training it is total_timesteps / (cars of all
    processes). Range and unit: the inner reward's times w.
    """

    _in_state_dict: ClassVar[dict[str, str]] = WrappedReward._in_state_dict | {
        "taken": "_taken",
        "sum": "_sum",
        "count": "_count",
    }

    steps: Sequence[CountOrZero] = (0, 10_000)
    """Increasing numbers of environment steps, 0 or more."""
    weights: Sequence[Finite] = (1.0, 0.0)
    """Weight at each of these steps."""

    def __post_init__(self) -> None:
        super().__post_init__()
        rising = all(earlier < later for earlier, later in pairwise(self.steps))
        if not self.steps or len(self.steps) != len(self.weights) or not rising:
            raise ValueError(
                f"AnnealedReward: steps must rise, with one weight each, got {self.steps} and weights {self.weights}"
            )
        if self.reward.only_charges() and min(self.weights) < 0:
            raise ValueError(
                f"AnnealedReward: {self.reward.label()} is a penalty, which a negative weight would turn into a "
                "bonus; use weights of 0 or more"
            )
        self._taken, self._sum, self._count = 0, 0.0, 0

    @property
    def weight(self) -> float:
        """The weight of the next step."""
        return float(np.interp(self._taken, self.steps, self.weights))

    def continue_from(self, steps: int) -> None:
        """Set n, the number of steps so far."""
        self._taken = steps

    def hold(self, weight: float) -> None:
        """Keep this weight from now on."""
        self.steps, self.weights = (0,), (weight,)

    def compute(self, state: GameState) -> Float:
        weight = self.weight
        self._taken += 1
        self._sum, self._count = self._sum + weight, self._count + 1
        return (self.reward(state) * np.float32(weight)).astype(np.float32, copy=False)

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """Return the inner reward's metrics, and its weight as `reward_weight/<name>`."""
        metrics = super().drain_metrics() | {f"reward_weight/{self.label()}": (self._sum, float(self._count))}
        self._sum, self._count = 0.0, 0
        return metrics


@dataclass(eq=False, repr=False)
class ClippedReward(WrappedReward):
    """Another reward, clipped to bounds: `min(high, max(low, r))`.

    Range `low`..`high`; unit: the inner reward's. Source: reward clipping of Mnih et al. 2015.
    """

    value_range = (-1, 1)

    low: Finite = -1.0
    """Minimum reward, at most 0, so that a reward of 0 stays 0."""
    high: Finite = 1.0
    """Maximum reward, at least 0."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low <= 0 <= self.high or self.low == self.high:
            found = f"low={self.low}, high={self.high}"
            raise ValueError(f"ClippedReward: bounds must satisfy low <= 0 <= high and low < high, got {found}")

    def compute(self, state: GameState) -> Float:
        return np.clip(self.reward(state), self.low, self.high).astype(np.float32, copy=False)


@dataclass(eq=False, repr=False)
class EMANormalizedReward(WrappedReward):
    """Another reward divided by a moving average of its size: `clip(r / sqrt(EMA(r^2)))`; or `(r - EMA(r)) / std`.

    The averages are over all cars of this environment, bias-corrected as in Adam, with `half_life` steps; they include
    the current step. Range `-clip`..`clip`, rms about 1; unit: the inner reward's. A process of a `ProcessPool` and a
    rank each normalize by their own cars. Not centered by default: subtracting the mean changes which policy is best.
    Source: Kingma & Ba 2015 (the correction); rlgym-tools' `AutoRewardNormalizer` divides by a running deviation.
    """

    value_range = (-10, 10)
    _in_state_dict: ClassVar[dict[str, str]] = WrappedReward._in_state_dict | {
        "mean": "_mean",
        "square": "_square",
        "steps": "_steps",
    }

    half_life: Positive = 10_000
    """Environment steps after which a step counts half."""
    center: bool = False
    """Subtract the moving mean."""
    clip: Positive = 10.0
    """Maximum absolute reward."""
    epsilon: Positive = 1e-6
    """Minimum divisor."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._decay = 0.5 ** (1 / self.half_life)
        self._mean, self._square, self._steps = 0.0, 0.0, 0

    def compute(self, state: GameState) -> Float:
        paid = self.reward(state)
        here = paid[state.present].astype(np.float64)
        self._steps += 1
        self._mean += (1 - self._decay) * (float(here.mean()) - self._mean)
        self._square += (1 - self._decay) * (float((here**2).mean()) - self._square)
        known = 1 - self._decay**self._steps
        mean = self._mean / known if self.center else 0.0
        size = math.sqrt(max(self._square / known - mean**2, 0.0))
        normed = np.clip((paid - mean) / max(size, self.epsilon), -self.clip, self.clip)
        return zero_absent_cars(state, normed)

    def only_charges(self) -> bool:
        return not self.center and super().only_charges()


@dataclass(eq=False, repr=False)
class CombinedReward(Reward):
    """Weighted sum of rewards; reports the mean of each weighted term as `reward/<class name>`.

    `reward_percent/<class name>` is its share of the sum of absolute rewards.

    Quantities that several terms read (touches, distances...) are computed once: `GameState.quantities`.

    Range and units: those of the terms. Source: RLGym's `CombinedReward`.

    Attributes:
        names: Names of the terms.
        factors: One weight per term.
    """

    unit = "as the inner reward"
    weighed = "rewards"
    _in_state_dict: ClassVar[dict[str, str]] = {"terms": "rewards", "": "_parts"}

    rewards: Sequence[Reward]
    """The terms."""
    weights: Sequence[Finite] | dict[str, Finite]
    """One factor per term; or factors by the terms' names in the metrics, such as `{GoalReward: 20}`. Terms without one
    keep their factor in the configuration that these settings change; in a new list, it is 1."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.names = self.names_of(self.rewards)
        self.weights = self.factors = self.weights_in_order(self.weights)
        if len(self.rewards) == 0 or len(self.rewards) != len(self.weights):
            raise ValueError(
                f"CombinedReward: {len(self.rewards)} rewards but {len(self.weights)} weights; pass one for each reward"
            )
        for reward, weight in zip(self.rewards, self.factors, strict=True):
            if weight < 0 and reward.only_charges():
                raise ValueError(
                    f"CombinedReward: {reward.label()} is never positive, so the weight {weight:g} would reward "
                    "what it penalizes; use a positive weight"
                )
        self._column = np.array(self.factors, np.float32)[:, None, None]
        self._parts = TermStatistics(self.names)

    @classmethod
    def names_of(cls, parts: Sequence[Reward]) -> list[str]:
        return unique_names(reward.label() for reward in parts)

    def compute(self, state: GameState) -> Float:
        """Return the weighted sum; raise a FloatingPointError that names the terms with NaN or infinity."""
        shape = (state.num_arenas, state.num_cars)
        terms = np.empty((len(self.rewards), *shape), np.float32)
        for term, reward, name in zip(terms, self.rewards, self.names, strict=True):
            term[...] = reward(state, name)
        here = True if state.all_present else state.present
        sums = terms.sum(axis=(1, 2), where=here)
        if not np.isfinite(sums).all():
            wrong = ", ".join(name for name, total in zip(self.names, sums.tolist(), strict=True) if total - total != 0)
            raise FloatingPointError(f"{wrong}: NaN or infinity in the rewards")
        self._parts.add(sums, np.abs(terms).sum(axis=(1, 2), where=here), int(np.count_nonzero(state.present)))
        terms *= self._column  # not a matrix product, whose rounding may depend on the number of arenas
        total: Float = terms.sum(axis=0)
        return total

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """Return the metrics of `TermStatistics`, and the terms' own metrics as `reward/<name>/...`, also weighted."""
        metrics = self._parts.drain(self.factors)
        for name, reward, weight in zip(self.names, self.rewards, self.factors, strict=True):
            metrics |= prefix_metrics(name, reward.drain_metrics(), weight)
        return metrics


@dataclass(eq=False, repr=False)
class RewardSignals(Reward):
    """Keep named rewards apart, so that the agent can learn from each separately; the reward of a step is their sum.

    `RocketSimPool` puts them into `infos["reward_signals"]` (`[N, K]` float32). Train an agent with K value heads
    (`--agent.value_heads`) and, if you like, K discount factors (`--gamma [0.99, 0.9]`).

    Attributes:
        names: The K names.
        last: `[A, C, K]` float32, the signals of the last step.
    """

    unit = "as the inner reward"
    _in_state_dict: ClassVar[dict[str, str]] = {"": "signals"}

    signals: dict[str, Reward]
    """Rewards by name; use a `CombinedReward` as a signal for a weighted sum."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.signals:
            raise ValueError("RewardSignals: signals must name at least one reward")
        self.names = tuple(self.signals)
        self.last: Float = np.zeros((0, 0, len(self.signals)), np.float32)

    def compute(self, state: GameState) -> Float:
        """Return the sum of all signals, and store the signals in `last`."""
        last = np.empty((state.num_arenas, state.num_cars, len(self.names)), np.float32)
        for number, (name, reward) in enumerate(self.signals.items()):
            last[..., number] = reward(state, f"{type(reward).__name__} (signal {name})")
        self.last = last
        total: Float = last.sum(axis=-1)
        return total

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """Return the signals' metrics as `reward/<signal>/<name>` and `reward_percent/<signal>/<name>`."""
        return _drain_by_name(self.signals)


@dataclass(eq=False, repr=False)
class RoleRewards(Reward):
    """One reward for each role, for example for a goalkeeper and a striker (docs/two_policies.md).

    Every reward is computed for all cars, and each car is paid the reward of its role. The metrics of the rewards are
    `reward/<role>/<name>`, means over all cars. Range and unit: those of the inner rewards.
    """

    unit = "as the inner reward"
    _in_state_dict: ClassVar[dict[str, str]] = {"": "rewards"}

    rewards: dict[str, Reward]
    """Role -> reward, in the order of the roles' numbers."""
    by: Literal["team", "slot"] = "team"
    """Roles as in `envs.TeamRoleObs` (team: blue, then orange) or `envs.SlotRoleObs` (slot: first car of a team...)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.rewards) < 2 or (self.by == "team" and len(self.rewards) > 2):
            wanted = "blue and orange" if self.by == "team" else "at least two roles"
            raise ValueError(f"RoleRewards: rewards must have one reward each for {wanted}, got {len(self.rewards)}")
        for name, reward in self.rewards.items():
            if isinstance(reward, RewardSignals):
                raise TypeError(f"RoleRewards: {name} has a RewardSignals; put a RoleRewards into each signal instead")

    def compute(self, state: GameState) -> Float:
        role = team_roles(state) if self.by == "team" else slot_roles(state, len(self.rewards))
        paid = [reward(state, f"{type(reward).__name__} ({name})") for name, reward in self.rewards.items()]
        chosen: Float = np.choose(role, paid).astype(np.float32, copy=False)
        return chosen

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """Return the rewards' metrics as `reward/<role>/<name>` and `reward_percent/<role>/<name>`."""
        return _drain_by_name(self.rewards)


def _drain_by_name(rewards: dict[str, Reward]) -> dict[str, tuple[float, float]]:
    found = [prefix_metrics(name, reward.drain_metrics()) for name, reward in rewards.items()]
    return {metric: pair for each in found for metric, pair in each.items()}


@dataclass(eq=False, repr=False)
class PhasedReward(Reward, Phased):
    """One reward for each phase; only the reward of the current phase is paid.

    A reward that compares steps begins with the state in which its phase begins, in the middle of an episode. Range and
    unit: those of the inner rewards. Observations and actions stay the same in all phases, so the agent stays the same.

    Attributes:
        phase: The current phase, initially the first one.
    """

    unit = "as the inner reward"

    rewards: dict[str, Reward]
    """Phase name -> reward."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set_phases("rewards", self.rewards)
        for name, reward in self.rewards.items():
            if isinstance(reward, RewardSignals):  # its signals are fixed
                raise TypeError(
                    f"PhasedReward: {name} has a RewardSignals; put a PhasedReward into each signal instead"
                )
        self._begun = {self.phase}
        self._seen: GameState | None = None

    def begin_phase(self, name: str, number: int, state: GameState) -> None:
        self._check_known(name)
        if name == self.phase:
            return
        self.phase = name
        self._begun.add(name)
        self.rewards[name].reset(np.ones(state.num_arenas, np.bool_), state)

    def compute(self, state: GameState) -> Float:
        reward = self.rewards[self.phase]
        return reward(state, f"{type(reward).__name__} ({self.phase})")

    def reset(self, mask: Bool, state: GameState) -> None:
        self._seen = state
        self.rewards[self.phase].reset(mask, state)

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """Return the rewards' metrics, added up over the phases, so that the names stay the same."""
        return added_metrics(reward.drain_metrics() for reward in self.rewards.values())

    def state_dict(self) -> dict[str, Any]:
        states = {name: self.rewards[name].state_dict() for name in self.phases if name in self._begun}
        return {"phase": self.phase, "rewards": states}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, inner in state["rewards"].items():
            self._check_known(name)
            if name not in self._begun and self._seen is not None:  # so that it knows the number of cars
                self.rewards[name].reset(np.ones(self._seen.num_arenas, np.bool_), self._seen)
            load_child_state(self.rewards[name], inner, f"the reward of phase {name}")
        if state["phase"] not in state["rewards"]:
            raise ValueError(f"its phase {state['phase']!r} has not begun")
        self.phase, self._begun = state["phase"], set(state["rewards"])

    def only_charges(self) -> bool:
        return any(reward.only_charges() for reward in self.rewards.values())
