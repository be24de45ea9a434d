"""PolicyBot: a trained policy among the bots."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from envs.actions import ActionParser, ActionTable
from envs.actions.base import unwrapped
from envs.bots.base import Bot, Thoughts
from envs.obs import ObsBuilder
from envs.state.game_state import GameState
from envs.state.layout import Bool, Float
from fabric_rl.base.state_schema import HasState

Choose = Callable[[Float, Bool, Bool | None], NDArray[Any]]
"""A policy: observations `[N, ...]` float32, `[N]` bool where an episode begins, action mask `[N, n]` bool or None ->
actions `[N, ...]`, for N cars that stay the same from call to call."""


class Mind:
    """Where a policy leaves what it thinks of the cars that it acts for.

    Attributes:
        value: `[N]` float32, the return that it expects; None before it acted.
        probabilities: `[N, n]` float32 of its discrete actions; None before, and for other action spaces.
    """

    value: Float | None = None
    probabilities: Float | None = None

    def tell(self, value: Float, probabilities: Float | None) -> None:
        """Takes them."""
        self.value, self.probabilities = value, probabilities


class PolicyBot(Bot):
    """Plays as a policy does in training: sees through an observation builder, acts through an action parser.

    Both are its own, so that policies that see and act differently can play each other. It remembers the games that it
    plays: one bot for one pool, told of every episode with `reset`.
    """

    _in_state_dict: ClassVar = {"obs": "_obs", "action": "_parser", "begins": "_begins"}

    def __init__(
        self,
        choose: Choose,
        obs: ObsBuilder,
        action: ActionParser,
        tick_skip: int = 8,
        action_delay_ticks: int = 1,
        mind: Mind | None = None,
    ) -> None:
        """Takes the policy and what it was trained with.

        Args:
            choose: The policy.
            obs: Builds what it sees.
            action: Turns what it chooses into controls.
            tick_skip: Physics ticks (1/120 s) per step of the pool that it plays in.
            action_delay_ticks: Ticks at the start of a step that still run the previous action.
            mind: Where the policy leaves what it thinks, if it does.
        """
        self._choose, self._obs, self._parser = choose, obs, action
        self._parser.look_ahead(tick_skip, action_delay_ticks)
        self._begins = np.zeros(0, np.bool_)
        self._mind, self._here, self.explains = mind, np.zeros((0, 0), np.bool_), mind is not None
        innermost = unwrapped(action)[-1]
        self.action_rows = innermost.table if isinstance(innermost, ActionTable) else None

    def thoughts(self) -> Thoughts | None:
        if self._mind is None or self._mind.value is None:
            return None
        value = np.full(self._here.shape, np.nan, np.float32)
        value[self._here] = self._mind.value
        if self._mind.probabilities is None:
            return Thoughts(value, None)
        probabilities = np.zeros((*self._here.shape, self._mind.probabilities.shape[1]), np.float32)
        probabilities[self._here] = self._mind.probabilities
        return Thoughts(value, probabilities)

    def act(self, state: GameState) -> Float:
        """See `Bot.act`. Called once per step, in order."""
        blue, orange = state.num_blue, state.num_orange
        obs = np.empty((state.num_arenas, state.num_cars, *self._obs.space(blue, orange).shape), np.float32)
        self._obs.build(state, obs)
        here, mask = state.present, self._parser.mask(state)
        begins = np.broadcast_to(self._begins[:, None], here.shape)[here]
        chosen = self._choose(obs[here], begins, None if mask is None else mask[here])
        actions = np.zeros((here.size, *chosen.shape[1:]), chosen.dtype)
        actions[here.reshape(-1)] = chosen
        self._begins[:], self._here = False, here
        return self._parser.parse(actions, state).rows.reshape(*here.shape, 8)

    def reset(self, mask: Bool, state: GameState) -> None:
        if len(self._begins) != len(mask):
            self._begins = np.zeros(len(mask), np.bool_)
        self._begins |= mask
        self._obs.reset(mask, state)
        self._parser.reset(mask, state)

    def state_dict(self) -> dict[str, Any]:
        """See `Component`; a policy that remembers games has to have `state_dict` and `load_state_dict`, too."""
        return super().state_dict() | (
            {"policy": self._choose.state_dict()} if isinstance(self._choose, HasState) else {}
        )

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        if isinstance(self._choose, HasState):
            self._choose.load_state_dict(state["policy"])
