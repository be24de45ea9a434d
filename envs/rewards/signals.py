"""RewardSignals: rewards that stay apart, so that each can have a value function and a discount of its own."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from envs.rewards.base import Reward
from envs.rewards.part_sums import under
from envs.state.game_state import GameState
from envs.state.layout import Float


@dataclass(eq=False, repr=False)
class RewardSignals(Reward):
    """Named rewards that are learned from separately; the reward of a step is their sum.

    `RocketSimPool` puts them into `infos["reward_signals"]` (`[N, K]` float32). Train with an agent of K value heads
    (`--agent.value_heads`) and, if wanted, K discounts (`--gamma [0.99, 0.9]`).

    Attributes:
        names: The K names.
        last: `[A, C, K]` float32, the signals of the last step.
    """

    unit = "as the inner reward"

    signals: dict[str, Reward]
    """Rewards by name; use a `CombinedReward` as a signal for a weighted sum."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.signals:
            raise ValueError("RewardSignals: signals must name at least one reward")
        self.names = tuple(self.signals)
        self.last: Float = np.zeros((0, 0, len(self.signals)), np.float32)

    def compute(self, state: GameState) -> Float:
        """The sum of all signals; keeps them in `last`.

        Raises:
            ValueError: A signal returned no array of numbers, or the wrong shape.
        """
        last = np.empty((state.num_arenas, state.num_cars, len(self.names)), np.float32)
        for number, (name, reward) in enumerate(self.signals.items()):
            last[..., number] = reward(state, f"{type(reward).__name__} (signal {name})")
        self.last = last
        total: Float = last.sum(axis=-1)
        return total

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """Return the signals' metrics as `reward/<signal>/<name>` and `reward_percent/<signal>/<name>`."""
        metrics: dict[str, tuple[float, float]] = {}
        for signal, reward in self.signals.items():
            metrics |= under(signal, reward.drain_metrics())
        return metrics

    def state_dict(self) -> dict[str, Any]:
        """The signals' states."""
        return {name: reward.state_dict() for name, reward in self.signals.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, reward in self.signals.items():
            reward.load_state_dict(state[name])
