"""Tables that know which of their rows can act: `StateAwareTable`, and `HybridTable` which is made for it."""

from collections.abc import Sequence
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from envs.actions.base import Controls
from envs.actions.lookup import ActionTable, lookup_rows
from envs.actions.situations import NUM_SITUATIONS, situations, without_effect
from envs.checks import whole_number
from envs.state.game_state import GameState
from envs.state.layout import Bool, Float


class StateAwareTable(ActionTable):
    """A table in which a row that cannot act falls back to the row that does the same.

    What falls back, per car, and why that changes nothing:

    - demolished for longer than the choice lasts: every row -> the all-zero row;
    - on the floor: pitch, yaw and roll turn only cars in the air, so a row without jump -> the first row with the same
      throttle, steer, boost and handbrake;
    - in the air: no wheel touches anything, so steer does nothing;
    - in the air after the flip is spent: jump does nothing;
    - no boost left and no pad within reach: boost does nothing.

    Rows count as the same only if the car's motion is bit-identical until the choice ends. Where that is not certain
    (near walls, the ball, other cars; on walls; while landing; jump rows on the floor, whose rotation acts as soon as
    the wheels are off it; jump rows with handbrake, which tightens in the air) or no other row does the same (a boost
    row of the 90-row table in the air, whose throttle acts alone), a row is valid and stays what it is. One thing does
    differ: a jump that falls back counts as not pressed, so the button need not be released before the next jump.

    The mask shows the rows that do not fall back. They fall back to nothing but themselves, and every car always has
    one.
    """

    _in_state_dict: ClassVar = {"fallbacks": "_fallen_back"}

    def __init__(self, table: Sequence[Sequence[float]] | Float | None = None, horizon_ticks: int = 9) -> None:
        """Finds out, for every situation, which rows do the same.

        Args:
            table: `[n, 8]` rows as in `ActionTable`, among them an all-zero one. Default: the 90 rows of `LookupTable`.
            horizon_ticks: Physics ticks (1/120 s), at least 1, from the choice to its end; a pool raises it to its
                `tick_skip` and `action_delay_ticks` together, and more under combinators that let a choice act later or
                longer.
        """
        super().__init__(lookup_rows() if table is None else table)
        name = type(self).__name__
        zero = np.flatnonzero(~self.table.any(axis=1))
        if not len(zero):
            raise ValueError(f"{name}: table needs an all-zero row, the fallback of a car that cannot act")
        self.horizon_ticks = whole_number(name, "horizon_ticks", horizon_ticks)
        self.fallback_row = int(zero[0])
        """The all-zero row."""
        self.fallbacks = np.stack([_first_that_does_the_same(self.table, s) for s in range(NUM_SITUATIONS)])
        """`[situations, n]` int64, the row that each row falls back to; itself where it does not."""
        self._valid: Bool = self.fallbacks == np.arange(len(self.table))
        self._fallen_back = np.zeros(2, np.int64)  # actions that fell back, actions

    def parse(self, actions: NDArray[Any], state: GameState) -> Controls:
        """The row of every action, or the one it falls back to; see `ActionParser.parse`."""
        self._check(actions)
        applied = self.fallbacks[situations(state, self.horizon_ticks).reshape(-1), actions]
        self._fallen_back += (((applied != actions) & state.present.reshape(-1)).sum(), state.present.sum())
        return super().parse(applied, state)

    def mask(self, state: GameState) -> Bool:
        """`[A, C, n]` bool, the rows that do not fall back in `state`."""
        return self._valid[situations(state, self.horizon_ticks)]

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """`action/fallback_share`: (actions that fell back, actions) since the last call."""
        taken, parsed = self._fallen_back.astype(float).tolist()
        self._fallen_back[:] = 0
        return {"action/fallback_share": (taken, parsed)}

    def look_ahead(self, tick_skip: int, action_delay_ticks: int, steps: int = 1) -> None:
        self.horizon_ticks = max(self.horizon_ticks, tick_skip * steps + action_delay_ticks)


class HybridTable(StateAwareTable):
    """128 rows that either drive or fly, with the fallbacks of `StateAwareTable`.

    Columns: throttle, steer, pitch, yaw, roll, jump, boost, handbrake. Row 0 is all zero.

    - Rows 0..39 drive. Pairs of throttle and boost (0, 0), (1, 0), (1, 1), (-1, 0); for each steer 0, -1, -0.5, 0.5, 1;
      for each handbrake 0, 1.
    - Rows 40..43 jump straight up while driving: the same four pairs.
    - Rows 44..95 turn the car in the air: pitch, yaw, roll in {-1, 0, 1}, not all zero; for each boost 0, 1. On the
      floor the first that boosts stays valid, as boost without throttle.
    - Rows 96..127 flip: pitch, roll in {-1, 0, 1}, not both zero, with jump; for each boost 0, 1; for each handbrake
      0, 1 (held through a flip onto the ground it makes a wavedash). From the floor they are a jump that already turns.
    """

    def __init__(self, horizon_ticks: int = 9) -> None:
        super().__init__(hybrid_rows(), horizon_ticks)


def hybrid_rows() -> Float:
    """`[128, 8]` float32, the rows of `HybridTable`."""
    drives = ((0, 0), (1, 0), (1, 1), (-1, 0))
    rows: list[list[float]] = []
    for (throttle, boost), steer, handbrake in product(drives, (0, -1, -0.5, 0.5, 1), (0, 1)):
        rows.append([throttle, steer, 0, 0, 0, 0, boost, handbrake])
    for throttle, boost in drives:
        rows.append([throttle, 0, 0, 0, 0, 1, boost, 0])
    for pitch, yaw, roll, boost in product((-1, 0, 1), (-1, 0, 1), (-1, 0, 1), (0, 1)):
        if pitch or yaw or roll:
            rows.append([0, 0, pitch, yaw, roll, 0, boost, 0])
    for pitch, roll, boost, handbrake in product((-1, 0, 1), (-1, 0, 1), (0, 1), (0, 1)):
        if pitch or roll:
            rows.append([0, 0, pitch, 0, roll, 1, boost, handbrake])
    return np.array(rows, np.float32)


def _first_that_does_the_same(table: Float, situation: int) -> NDArray[np.int64]:
    """`[n]` for each row the first one that does the same: one that has nothing to spare, if there is one."""
    plain = without_effect(situation, table)
    spare = (table != plain).any(axis=1)
    chosen: dict[bytes, int] = {}
    for index in np.argsort(spare, kind="stable").tolist():
        chosen.setdefault(plain[index].tobytes(), index)
    return np.array([chosen[row.tobytes()] for row in plain])
