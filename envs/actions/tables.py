"""Actions of one car: rows of a table, eight continuous numbers, or one choice per control."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from envs.actions.base import (
    ANALOGUE,
    BUTTONS,
    PITCH,
    ROLL,
    STEER,
    YAW,
    ActionParser,
    Controls,
    RowControls,
    mirror_controls,
)
from envs.sim.arena import make_controls
from envs.state.game_state import GameState
from envs.state.layout import CONTROL_NAMES, Float
from fabric_rl.base.settings import Between


class ActionTable(ActionParser):
    """Discrete actions: each action is the index of a row of `table`.

    Attributes:
        table: `[n, 8]` float32: throttle, steer, pitch, yaw, roll in -1..1, then jump, boost, handbrake, 0 or 1.
    """

    def __init__(self, table: Sequence[Sequence[float]] | Float) -> None:
        """Build the controls of all rows.

        Args:
            table: `[n, 8]` as in the attribute, at least one row.
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
            raise ValueError(f"{name}: table must contain -1..1 in its first five columns, 0 or 1 in the other three")
        self._rows = [make_controls(row) for row in self.table.tolist()]

    @property
    def action_space(self) -> gymnasium.spaces.Discrete:
        return gymnasium.spaces.Discrete(len(self.table))

    def parse(self, actions: NDArray[Any], state: GameState) -> Controls:
        self._check(actions)
        rows = self._rows
        return Controls(self.table.take(actions, axis=0), [rows[index] for index in actions.tolist()])

    def _check(self, actions: NDArray[Any]) -> None:
        if actions.ndim != 1 or actions.dtype.kind not in "iu":
            raise _unfit(self, actions, "integers of shape [num_envs]")
        if actions.size and not 0 <= actions.min() <= actions.max() < len(self.table):
            wrong = actions[(actions < 0) | (actions >= len(self.table))][0]
            raise ValueError(
                f"{type(self).__name__}: action {wrong} is outside the table; use 0..{len(self.table) - 1}"
            )

    def coverage(self) -> list[str]:
        """Return lines about the table's size and what its rows cover."""
        table = self.table
        zero = np.flatnonzero(~table.any(axis=1)).tolist()
        lines = [f"{type(self).__name__}: {len(table)} rows"]
        for column in (STEER, PITCH, YAW, ROLL):
            values = np.unique(table[:, column]).tolist()
            lines.append(f"{CONTROL_NAMES[column]:<6} values: " + " ".join(f"{value:g}" for value in values))
        for column in (STEER, YAW):
            for side, sign in (("left", -1), ("right", 1)):
                rows = np.flatnonzero(np.sign(table[:, column]) == sign).tolist()
                listed = " ".join(map(str, rows)) or "none"
                lines.append(f"{CONTROL_NAMES[column]} {side}: {len(rows)} rows: {listed}")
        turning = int((table[:, [STEER, YAW]] != 0).any(axis=1).sum())
        return [
            *lines,
            f"turning rows (steer or yaw): {turning}",
            f"left and right balanced: {'yes' if balanced(table) else 'NO'}",
            f"all-zero row (fallback): {zero[0] if zero else 'NONE'}",
        ]

    def describe(self) -> str:
        """Return all rows of the table, and what they cover, in words."""
        title, *covered = self.coverage()
        header = "  row  " + "  ".join(f"{name:>9}" for name in CONTROL_NAMES)
        rows = [f"{i:>5}  " + "  ".join(f"{value:>9g}" for value in row) for i, row in enumerate(self.table.tolist())]
        return "\n".join([title, "", header, *rows, "", *covered])


class LookupTable(ActionTable):
    """The 90-row table of RLGym's `LookupTableAction`: 24 ground rows, then 66 aerial rows.

    Columns: throttle, steer, pitch, yaw, roll, jump, boost, handbrake.
    """

    def __init__(self) -> None:
        super().__init__(lookup_rows())


def lookup_rows() -> Float:
    """Return the rows of `LookupTable`, `[90, 8]` float32."""
    rows: list[list[float]] = []
    for throttle, steer, boost, handbrake in product((-1, 0, 1), (-1, 0, 1), (0, 1), (0, 1)):
        if not boost or throttle == 1:  # boosting already drives the car forward
            rows.append([throttle, steer, 0, steer, 0, 0, boost, handbrake])
    for pitch, yaw, roll, jump, boost in product((-1, 0, 1), (-1, 0, 1), (-1, 0, 1), (0, 1), (0, 1)):
        # a side flip needs only roll; the ground rows cover rows without pitch, roll and jump
        if not (jump and yaw) and (pitch or roll or jump):
            handbrake = int(jump and (pitch or roll) != 0)  # held through a flip: allows wavedashes
            rows.append([boost, yaw, pitch, yaw, roll, jump, boost, handbrake])
    return np.array(rows, dtype=np.float32)


def balanced(table: Float) -> bool:
    """Return True if every row of `table [n, 8]` has a counterpart with steer, yaw and roll reversed."""
    return {tuple(row) for row in table.tolist()} == {tuple(row) for row in mirror_controls(table).tolist()}


@dataclass(eq=False, repr=False)
class ContinuousAction(ActionParser):
    """Eight numbers: throttle, steer, pitch, yaw, roll; jump, boost, handbrake are pressed above 0.

    Numbers outside -1..1 are clipped silently, because samples of a normal distribution are often outside; NaN and
    infinity raise an error.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self._controls = RowControls()

    @property
    def action_space(self) -> gymnasium.spaces.Box:
        return gymnasium.spaces.Box(-1, 1, (8,), np.float32)

    def parse(self, actions: NDArray[Any], state: GameState) -> Controls:
        if actions.ndim != 2 or actions.shape[1] != 8 or actions.dtype.kind != "f":
            raise _unfit(self, actions, "floats of shape [num_envs, 8]")
        if not np.isfinite(actions).all():
            raise ValueError(f"ContinuousAction: actions must be finite, got {actions[~np.isfinite(actions)][0]}")
        rows = np.clip(actions, -1, 1).astype(np.float32)
        rows[:, BUTTONS] = actions[:, BUTTONS] > 0
        return self._controls(rows)


@dataclass(eq=False, repr=False)
class MultiDiscreteAction(ActionParser):
    """One discrete choice per control, in the order throttle, steer, pitch, yaw, roll, jump, boost, handbrake.

    An analog control has `bins` values from -1 to 1 in equal steps: with 3 bins, choice 0 is -1, 1 is 0 and 2 is 1.
    Buttons have the choices 0 and 1.
    """

    bins: Annotated[int, Between(3)] = 3
    """Values per analogue control; odd and at least 3, so that 0 is among them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bins % 2 == 0:
            raise ValueError(f"MultiDiscreteAction: bins must be odd, so that 0 is among its values, got {self.bins}")
        self._choices = np.array([self.bins] * 5 + [2] * 3)
        self._values = np.linspace(-1, 1, self.bins, dtype=np.float32)
        self._controls = RowControls()

    @property
    def action_space(self) -> gymnasium.spaces.MultiDiscrete:
        return gymnasium.spaces.MultiDiscrete(self._choices)

    def parse(self, actions: NDArray[Any], state: GameState) -> Controls:
        if actions.ndim != 2 or actions.shape[1] != 8 or actions.dtype.kind not in "iu":
            raise _unfit(self, actions, "integers of shape [num_envs, 8]")
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


def _unfit(parser: ActionParser, actions: NDArray[Any], expected: str) -> ValueError:
    got = f"{actions.dtype} {list(actions.shape)}"
    return ValueError(f"{type(parser).__name__}: actions must be {expected}, got {got}")
