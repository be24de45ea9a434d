"""PolicyBot: a trained policy among the bots."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from envs.actions import ActionParser, ActionTable
from envs.actions.base import unwrapped
from envs.bots.base import Bot, Thoughts
from envs.obs import ObsBuilder
from envs.state.game_state import GameState
from envs.state.layout import Bool, Float
from fabric_rl.base.settings import Count, CountOrZero
from fabric_rl.base.state_schema import HasState

PolicyFn = Callable[[Float, Bool, Bool | None], NDArray[Any]]
"""A policy: observations `[N, ...]` float32, `[N]` bool where an episode begins, action mask `[N, n]` bool or None ->
actions `[N, ...]`, for N cars that stay the same from call to call."""


class Diagnostics:
    """Container in which a policy leaves its values and probabilities of the cars that it acts for."""

    value: Float | None = None
    """`[N]` float32, expected return; None before the first action."""
    probabilities: Float | None = None
    """`[N, n]` float32 of the discrete actions; None before the first action, and for other action spaces."""

    def tell(self, value: Float, probabilities: Float | None) -> None:
        """Set both."""
        self.value, self.probabilities = value, probabilities


@dataclass(eq=False, repr=False)
class PolicyBot(Bot):
    """Play with a trained policy, its own observation builder and its own action parser.

    Policies with different observations and actions can therefore play each other. The bot keeps the state of its
    games: use one bot per pool, and call `reset` for every episode.
    """

    _in_state_dict: ClassVar[dict[str, str]] = {"obs": "obs", "action": "action", "begins": "_begins"}

    choose: PolicyFn
    """The policy; one that remembers games needs `state_dict` and `load_state_dict`, too."""
    obs: ObsBuilder
    """Builds its observations."""
    action: ActionParser
    """Turns its actions into controls."""
    tick_skip: Count = 8
    """Physics ticks (1/120 s) per step of the pool that it plays in."""
    action_delay_ticks: CountOrZero = 1
    """Ticks at the start of a step that still run the previous action."""
    mind: Diagnostics | None = None
    """Receives the policy's values and probabilities, if the policy tells them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.action.look_ahead(self.tick_skip, self.action_delay_ticks)
        self.explains = self.mind is not None
        innermost = unwrapped(self.action)[-1]
        self.action_rows = innermost.table if isinstance(innermost, ActionTable) else None
        self._begins, self._here = np.zeros(0, np.bool_), np.zeros((0, 0), np.bool_)

    def thoughts(self) -> Thoughts | None:
        if self.mind is None or self.mind.value is None:
            return None
        value = np.full(self._here.shape, np.nan, np.float32)
        value[self._here] = self.mind.value
        if self.mind.probabilities is None:
            return Thoughts(value, None)
        probabilities = np.zeros((*self._here.shape, self.mind.probabilities.shape[1]), np.float32)
        probabilities[self._here] = self.mind.probabilities
        return Thoughts(value, probabilities)

    def act(self, state: GameState) -> Float:
        """Choose the next controls; must be called once per step, in order."""
        blue, orange = state.num_blue, state.num_orange
        obs = np.empty((state.num_arenas, state.num_cars, *self.obs.space(blue, orange).shape), np.float32)
        self.obs.build(state, obs)
        here, mask = state.present, self.action.mask(state)
        begins = np.broadcast_to(self._begins[:, None], here.shape)[here]
        chosen = self.choose(obs[here], begins, None if mask is None else mask[here])
        actions = np.zeros((here.size, *chosen.shape[1:]), chosen.dtype)
        actions[here.reshape(-1)] = chosen
        self._begins[:], self._here = False, here
        return self.action.parse(actions, state).rows.reshape(*here.shape, 8)

    def reset(self, mask: Bool, state: GameState) -> None:
        if len(self._begins) != len(mask):
            self._begins = np.zeros(len(mask), np.bool_)
        self._begins |= mask
        super().reset(mask, state)

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        return state | {"policy": self.choose.state_dict()} if isinstance(self.choose, HasState) else state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        if isinstance(self.choose, HasState):
            self.choose.load_state_dict(state["policy"])
