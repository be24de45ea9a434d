"""The bots that do not look: one does nothing, one anything."""

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from envs.actions import ActionParser
from envs.actions.base import ANALOGUE, BUTTONS
from envs.bots.base import Bot
from envs.bots.driving import blank
from envs.checks import check_seed
from envs.state.game_state import GameState
from envs.state.layout import Float


class IdleBot(Bot):
    """Lets go of everything."""

    def act(self, state: GameState) -> Float:
        return blank(state)


class RandomBot(Bot):
    """Random controls in every step, like an untrained policy."""

    def __init__(self, seed: int = 0) -> None:
        """Seeds the generator; the same seed and number of cars give the same play."""
        self._rng = np.random.default_rng(check_seed("RandomBot", seed))

    def act(self, state: GameState) -> Float:
        """Sticks at -1, 0 or 1, buttons pressed half of the time; see `Bot.act`."""
        controls = blank(state)
        shape = controls.shape[:2]
        controls[..., ANALOGUE] = self._rng.integers(-1, 2, (*shape, 5))
        controls[..., BUTTONS] = self._rng.integers(0, 2, (*shape, 3))
        return controls

    def actions(self, state: GameState, parser: ActionParser) -> NDArray[Any]:
        """`[N, ...]` drawn evenly from a discrete or bounded space (else a ValueError); see `Bot.actions`."""
        space, count = parser.action_space, int(state.present.sum())
        if isinstance(space, gymnasium.spaces.Discrete):
            return self._rng.integers(space.start, space.start + space.n, count)
        if isinstance(space, gymnasium.spaces.MultiDiscrete):
            return self._rng.integers(space.start, space.start + space.nvec, (count, *space.shape))
        if isinstance(space, gymnasium.spaces.Box) and space.is_bounded():
            return self._rng.uniform(space.low, space.high, (count, *space.shape)).astype(space.dtype)
        raise ValueError(f"RandomBot: cannot draw actions from {space}")

    def state_dict(self) -> dict[str, Any]:
        return {"rng": dict(self._rng.bit_generator.state)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._rng.bit_generator.state = state["rng"]
