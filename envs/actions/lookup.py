"""Tables: an action is the number of a row of controls."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from envs.actions.base import ANALOGUE, BUTTONS, ActionParser, Controls
from envs.sim.arena import make_controls
from envs.state.game_state import GameState
from envs.state.layout import Float


class ActionTable(ActionParser):
    """Discrete actions, each the number of a row of `table`.

    Attributes:
        table: `[n, 8]` float32: throttle, steer, pitch, yaw, roll in -1..1, then jump, boost, handbrake, 0 or 1.
    """

    def __init__(self, table: Sequence[Sequence[float]] | Float) -> None:
        """Builds the controls of all rows.

        Args:
            table: `[n, 8]` as above, at least one row.
        """
        name = type(self).__name__
        try:
            self.table: Float = np.array(table, np.float32)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name}: table must be rows of eight numbers ({error})") from error
        if self.table.ndim != 2 or self.table.shape[1] != 8 or not len(self.table):
            raise ValueError(f"{name}: table must have the shape [rows, 8], got {list(self.table.shape)}")
        analogue, buttons = self.table[:, ANALOGUE], self.table[:, BUTTONS]
        if not ((np.abs(analogue) <= 1).all() and ((buttons == 0) | (buttons == 1)).all()):
            raise ValueError(f"{name}: table must hold -1..1 in its first five columns and 0 or 1 in the other three")
        self._rows = [make_controls(row) for row in self.table.tolist()]

    @property
    def action_space(self) -> gymnasium.spaces.Discrete:
        """Discrete(rows of the table)."""
        return gymnasium.spaces.Discrete(len(self.table))

    def parse(self, actions: NDArray[Any], state: GameState) -> Controls:
        """One prebuilt row of the table per car; see `ActionParser.parse`."""
        self._check(actions)
        rows = self._rows
        return Controls(self.table.take(actions, axis=0), [rows[index] for index in actions.tolist()])

    def _check(self, actions: NDArray[Any]) -> None:
        name = type(self).__name__
        if actions.ndim != 1 or actions.dtype.kind not in "iu":
            raise ValueError(
                f"{name}: actions must be integers of shape [num_envs], got {actions.dtype} {list(actions.shape)}"
            )
        if actions.size and not 0 <= actions.min() <= actions.max() < len(self.table):
            wrong = actions[(actions < 0) | (actions >= len(self.table))][0]
            raise ValueError(f"{name}: action {wrong} is outside the table, use 0..{len(self.table) - 1}")


class LookupTable(ActionTable):
    """The 90-row table of RLGym's `LookupTableAction`: 24 ground rows, then 66 aerial rows.

    Columns: throttle, steer, pitch, yaw, roll, jump, boost, handbrake.
    """

    def __init__(self) -> None:
        super().__init__(lookup_rows())


def lookup_rows() -> Float:
    """`[90, 8]` float32, the rows of `LookupTable`."""
    rows: list[list[float]] = []
    for throttle, steer, boost, handbrake in product((-1, 0, 1), (-1, 0, 1), (0, 1), (0, 1)):
        if not boost or throttle == 1:  # boosting already drives the car forward
            rows.append([throttle, steer, 0, steer, 0, 0, boost, handbrake])
    for pitch, yaw, roll, jump, boost in product((-1, 0, 1), (-1, 0, 1), (-1, 0, 1), (0, 1), (0, 1)):
        # a side flip only needs roll; without pitch, roll and jump the ground rows have it
        if not (jump and yaw) and (pitch or roll or jump):
            handbrake = int(jump and (pitch or roll) != 0)  # held through a flip: allows wavedashes
            rows.append([boost, yaw, pitch, yaw, roll, jump, boost, handbrake])
    return np.array(rows, dtype=np.float32)
