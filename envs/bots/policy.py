"""PolicyBot: a trained policy among the bots."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envs.actions import ActionParser
from envs.bots.base import Bot
from envs.obs import ObsBuilder
from envs.state.game_state import GameState
from envs.state.layout import Bool, Float

Choose = Callable[[Float, Bool, Bool | None], NDArray[Any]]
"""A policy: observations `[N, ...]` float32, `[N]` bool where an episode begins, action mask `[N, n]` bool or None ->
actions `[N, ...]`, for N cars that stay the same from call to call."""


class PolicyBot(Bot):
    """Plays as a policy does in training: sees through an observation builder, acts through an action parser.

    Both are its own, so that policies that see and act differently can play each other. It remembers the games that it
    plays: one bot for one pool, told of every episode with `reset`.
    """

    def __init__(
        self, choose: Choose, obs: ObsBuilder, action: ActionParser, tick_skip: int = 8, action_delay_ticks: int = 1
    ) -> None:
        """Takes the policy and what it was trained with.

        Args:
            choose: The policy.
            obs: Builds what it sees.
            action: Turns what it chooses into controls.
            tick_skip: Physics ticks (1/120 s) per step of the pool that it plays in.
            action_delay_ticks: Ticks at the start of a step that still run the previous action.
        """
        self._choose, self._obs, self._parser = choose, obs, action
        self._parser.look_ahead(tick_skip, action_delay_ticks)
        self._begins = np.zeros(0, np.bool_)

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
        self._begins[:] = False
        return self._parser.parse(actions, state).rows.reshape(*here.shape, 8)

    def reset(self, mask: Bool, state: GameState) -> None:
        """See `Bot.reset`."""
        if len(self._begins) != len(mask):
            self._begins = np.zeros(len(mask), np.bool_)
        self._begins |= mask
        self._obs.reset(mask, state)
        self._parser.reset(mask, state)
