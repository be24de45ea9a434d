"""Actions that are not rows of a table: continuous ones, and one choice per control."""

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from envs.actions.base import ANALOGUE, BUTTONS, ActionParser, Controls, RowControls
from envs.state.game_state import GameState


class ContinuousAction(ActionParser):
    """Eight numbers: throttle, steer, pitch, yaw, roll as they are, jump, boost, handbrake pressed when above 0.

    What lies outside -1..1 is clipped without a word, since a policy that draws from a normal distribution goes there
    all the time; NaN and infinity are refused.
    """

    def __init__(self) -> None:
        self._controls = RowControls()

    @property
    def action_space(self) -> gymnasium.spaces.Box:
        """Box(-1, 1, [8]) float32."""
        return gymnasium.spaces.Box(-1, 1, (8,), np.float32)

    def parse(self, actions: NDArray[Any], state: GameState) -> Controls:
        """Clips to -1..1; `actions` are floats `[N, 8]`, see `ActionParser.parse`."""
        if actions.ndim != 2 or actions.shape[1] != 8 or actions.dtype.kind != "f":
            raise ValueError(
                f"ContinuousAction: actions must be floats of shape [num_envs, 8], got {actions.dtype} "
                f"{list(actions.shape)}"
            )
        if not np.isfinite(actions).all():
            raise ValueError(f"ContinuousAction: {actions[~np.isfinite(actions)][0]} among the actions")
        rows = np.clip(actions, -1, 1).astype(np.float32)
        rows[:, BUTTONS] = actions[:, BUTTONS] > 0
        return self._controls(rows)


class MultiDiscreteAction(ActionParser):
    """One choice per control, in the order throttle, steer, pitch, yaw, roll, jump, boost, handbrake.

    An analogue control has `bins` values from -1 to 1 in equal steps: with 3, choice 0 is -1, 1 is 0 and 2 is 1. A
    button's choice is 0 or 1.
    """

    def __init__(self, bins: int = 3) -> None:
        """Creates the parser.

        Args:
            bins: Values per analogue control; odd and at least 3, so that 0 is among them.
        """
        if isinstance(bins, bool) or not isinstance(bins, int) or bins < 3 or bins % 2 == 0:
            raise ValueError(f"MultiDiscreteAction: bins must be odd and at least 3, got {bins!r}")
        self.bins = bins
        self._choices = np.array([bins] * 5 + [2] * 3)
        self._values = np.linspace(-1, 1, bins, dtype=np.float32)
        self._controls = RowControls()

    @property
    def action_space(self) -> gymnasium.spaces.MultiDiscrete:
        """MultiDiscrete([bins] * 5 + [2] * 3)."""
        return gymnasium.spaces.MultiDiscrete(self._choices)

    def parse(self, actions: NDArray[Any], state: GameState) -> Controls:
        """`actions` are integers `[N, 8]`, see `ActionParser.parse`."""
        if actions.ndim != 2 or actions.shape[1] != 8 or actions.dtype.kind not in "iu":
            raise ValueError(
                f"MultiDiscreteAction: actions must be integers of shape [num_envs, 8], got {actions.dtype} "
                f"{list(actions.shape)}"
            )
        wrong = (actions < 0) | (actions >= self._choices)
        if wrong.any():
            row, column = np.argwhere(wrong)[0].tolist()
            raise ValueError(
                f"MultiDiscreteAction: choice {actions[row, column]} in column {column} is outside "
                f"0..{self._choices[column] - 1}"
            )
        rows = actions.astype(np.float32)
        rows[:, ANALOGUE] = self._values[actions[:, ANALOGUE]]
        return self._controls(rows)
