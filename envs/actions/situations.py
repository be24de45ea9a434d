"""Situations in which some controls provably have no effect, and action tables with masks for them."""

from collections.abc import Sequence
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league import common_values as game

from envs.actions.base import BOOST, JUMP, PITCH, ROLL, STEER, Controls
from envs.actions.tables import ActionTable, lookup_rows
from envs.state.game_state import GameState
from envs.state.layout import Bool, Float
from fabric_rl.base.settings import Count, check_value

UNSURE, FLOOR, AIR, AIR_WITHOUT_FLIP = range(4)
EMPTY = 4
"""Added to a situation above for a car that has no boost and cannot reach a pad."""
DEMOLISHED = 8
NUM_SITUATIONS = 9
SITUATION_NAMES = (
    *("any", "on the floor", "in the air", "in the air, flip spent"),
    *("no boost", "on the floor, no boost", "in the air, no boost", "in the air, flip spent, no boost"),
    "demolished",
)

CAR_RADIUS = 100.0  # uu, no point of a car is farther from its position
RAMP = 350.0  # uu, a little more than the extent of the curve between floor and wall, or wall and ceiling
RESPAWN_Y = 4608.0  # uu, where demolished cars respawn, at either end of the field
PAD_RADIUS = 250.0  # uu, half a diagonal of the box in which a car takes a large pad
FLOOR_Z = (15.0, 19.0)  # uu, a car on four wheels rests at 17
CALM_VERTICAL_SPEED, CALM_TILT_RATE, LEVEL = 30.0, 0.3, 0.999  # uu/s, rad/s, z of the roof's unit vector

_PADS_XY = np.array(game.BOOST_LOCATIONS, np.float32)[:, :2]


class StateAwareTable(ActionTable):
    """A table in which a row whose controls have no effect falls back to an equivalent row.

    Rows that fall back, per car, and why that changes nothing:

    - demolished for longer than the choice lasts: every row -> the all-zero row;
    - on the floor: pitch, yaw and roll turn only cars in the air, so a row without jump -> the first row with the same
      throttle, steer, boost and handbrake;
    - in the air: no wheel touches anything, so steer does nothing;
    - in the air after the flip is spent: jump does nothing;
    - no boost left and no pad within reach: boost does nothing.

    Rows count as the same only if the car's motion is bit-identical until the choice ends. Where that is not certain
    (near walls, the ball, other cars; on walls; while landing; jump rows on the floor, whose rotation acts as soon as
    the car leaves it; jump rows with handbrake, which tightens in the air) or no other row does the same (a boost row
    of the 90-row table in the air, whose throttle acts alone), a row is valid and stays as it is. There is one
    difference: a jump that falls back counts as not pressed, so the button need not be released before the next jump.

    The mask allows the rows that do not fall back; every car always has at least one.
    """

    _in_state_dict: ClassVar[dict[str, str]] = {"fallbacks": "_fallen_back"}

    def __init__(self, table: Sequence[Sequence[float]] | Float | None = None, horizon_ticks: int = 9) -> None:
        """Find the rows that act alike in each situation.

        Args:
            table: `[n, 8]` rows as in `ActionTable`, among them an all-zero one. Default: the 90 rows of `LookupTable`.
            horizon_ticks: Physics ticks (1/120 s), at least 1, from a choice to the end of its effect; a pool
                raises it to the sum of its `tick_skip` and `action_delay_ticks`, and further under combinators that
                make a choice act later or longer.
        """
        super().__init__(lookup_rows() if table is None else table)
        name = type(self).__name__
        zero = np.flatnonzero(~self.table.any(axis=1))
        if not len(zero):
            raise ValueError(f"{name}: table must contain an all-zero row, the fallback for cars that cannot act")
        self.horizon_ticks: int = check_value(f"{name}: horizon_ticks", horizon_ticks, Count)
        self.fallback_row = int(zero[0])
        """The all-zero row."""
        self.fallbacks = np.stack([_equivalent_rows(self.table, s) for s in range(NUM_SITUATIONS)])
        """`[situations, n]` int64, the row that each row falls back to; its own index if it needs no fallback."""
        self.choices_wait = False
        """True if earlier choices may not have acted yet, as in `DelayAction`; no row falls back on the floor then."""
        self._valid: Bool = self.fallbacks == np.arange(len(self.table))
        self._fallen_back = np.zeros(2, np.int64)  # number of actions that fell back, and of all actions

    def parse(self, actions: NDArray[Any], state: GameState) -> Controls:
        self._check(actions)
        applied = self.fallbacks[self._situations(state).reshape(-1), actions]
        self._fallen_back += (((applied != actions) & state.present.reshape(-1)).sum(), state.present.sum())
        return super().parse(applied, state)

    def mask(self, state: GameState) -> Bool:
        return self._valid[self._situations(state)]

    def _situations(self, state: GameState) -> NDArray[np.int64]:
        found = classify_situations(state, self.horizon_ticks)
        if self.choices_wait:  # one of them may be a jump
            found[found % EMPTY == FLOOR] -= FLOOR
        return found

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """Return `action/fallback_share`: (actions that fell back, actions) since the last call."""
        taken, parsed = self._fallen_back.astype(float).tolist()
        self._fallen_back[:] = 0
        return {"action/fallback_share": (taken, parsed)}

    def look_ahead(self, tick_skip: int, action_delay_ticks: int, steps: int = 1) -> None:
        self.horizon_ticks = max(self.horizon_ticks, tick_skip * steps + action_delay_ticks)

    def coverage(self) -> list[str]:
        valid = self._valid.sum(axis=1).tolist()
        counts = [f"  {name}: {count}" for name, count in zip(SITUATION_NAMES, valid, strict=True)]
        return [*super().coverage(), "valid rows by situation:", *counts]


class HybridTable(StateAwareTable):
    """128 actions that either drive or fly, with the fallbacks of `StateAwareTable`.

    Columns: throttle, steer, pitch, yaw, roll, jump, boost, handbrake. Row 0 is all zero.

    - Rows 0..39 drive. Pairs of throttle and boost (0, 0), (1, 0), (1, 1), (-1, 0); for each steer 0, -1, -0.5, 0.5, 1;
      for each handbrake 0, 1.
    - Rows 40..43 jump straight up while driving: the same four pairs.
    - Rows 44..95 turn the car in the air: pitch, yaw, roll in {-1, 0, 1}, not all zero; for each boost 0, 1. On the
      floor, the first row with boost stays valid, as boost without throttle.
    - Rows 96..127 flip: pitch, roll in {-1, 0, 1}, not both zero, with jump; for each boost 0, 1; for each handbrake 0,
      1 (held during a flip onto the ground, it makes a wavedash). On the floor, they make the car turn as it jumps.
    """

    def __init__(self, horizon_ticks: int = 9) -> None:
        super().__init__(hybrid_rows(), horizon_ticks)


def hybrid_rows() -> Float:
    """Return the rows of `HybridTable`, `[128, 8]` float32."""
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


def _equivalent_rows(table: Float, situation: int) -> NDArray[np.int64]:
    """Return `[n]`, for each row the index of an equivalent row, preferably one without ineffective controls."""
    plain = zero_ineffective_controls(situation, table)
    spare = (table != plain).any(axis=1)
    chosen: dict[bytes, int] = {}
    for index in np.argsort(spare, kind="stable").tolist():
        chosen.setdefault(plain[index].tobytes(), index)
    return np.array([chosen[row.tobytes()] for row in plain])


# ---------------------------------------------------------------- situations


def zero_ineffective_controls(situation: int, rows: Float) -> Float:
    """Return a copy of `rows [n, 8]` in which every control that does nothing in `situation` is zero.

    Rows that become equal move a car in the same way, bit for bit, until the choice ends.
    """
    kept = rows.copy()
    if situation == DEMOLISHED:
        kept[:] = 0
        return kept
    place, empty = situation % EMPTY, situation >= EMPTY
    if empty:
        kept[:, BOOST] = 0
    if place == FLOOR:  # a car that jumps leaves the floor, and then pitch, yaw and roll turn it
        kept[kept[:, JUMP] == 0, PITCH : ROLL + 1] = 0
    if place in (AIR, AIR_WITHOUT_FLIP):
        kept[:, STEER] = 0
    if place == AIR_WITHOUT_FLIP:
        kept[:, JUMP] = 0
    return kept


def classify_situations(state: GameState, horizon_ticks: int) -> NDArray[np.int64]:
    """Return `[A, C]`, the situation that each car is certain to stay in for `horizon_ticks` ticks, whatever it does.

    In that time, nothing can touch the car and it cannot reach a pad, even at the game's highest speeds (cars 2300
    uu/s, ball 6000 uu/s), and no car respawns; where that is not certain, the situation is `UNSURE`.
    """
    reach = game.CAR_MAX_SPEED * horizon_ticks / game.TICKS_PER_SECOND
    alone = _alone(state, reach, game.BALL_MAX_SPEED * horizon_ticks / game.TICKS_PER_SECOND)
    still = ~state.is_jumping & (state.controls[..., JUMP] == 0) & ~state.has_jumped
    found = np.full(alone.shape, UNSURE)
    found[alone & still & _settled(state)] = FLOOR
    height = state.world.car_pos[..., 2]
    flying = alone & ~state.on_ground & (height > RAMP + reach) & (height < game.CEILING_Z - RAMP - reach)
    found[flying] = AIR
    found[flying & ~state.has_flip & ~state.is_jumping] = AIR_WITHOUT_FLIP
    _add_empty(found, state, reach)
    found[state.demo_respawn_timer > (horizon_ticks + 1) / game.TICKS_PER_SECOND] = DEMOLISHED
    return found


def _settled(state: GameState) -> Bool:
    world = state.world
    height, tilting = world.car_pos[..., 2], np.abs(world.car_ang_vel[..., :2]).max(axis=-1)
    calm = (np.abs(world.car_vel[..., 2]) < CALM_VERTICAL_SPEED) & (tilting < CALM_TILT_RATE)
    level = (world.car_up[..., 2] > LEVEL) & (height > FLOOR_Z[0]) & (height < FLOOR_Z[1])
    settled: Bool = state.on_ground & calm & level
    return settled


def _alone(state: GameState, reach: float, ball_reach: float) -> Bool:
    """Return `[A, C]`, True where a car cannot touch a wall, a ramp, the ball or another car, however they move."""
    pos = state.world.car_pos
    x, y = np.abs(pos[..., 0]), np.abs(pos[..., 1])
    gap = reach + CAR_RADIUS
    corner = game.SIDE_WALL_X + 5120 - game.CORNER_CATHETUS_LENGTH  # |x| + |y| of the walls that cut the corners
    alone: Bool = (x < game.SIDE_WALL_X - RAMP - gap) & (y < RESPAWN_Y - CAR_RADIUS - gap)
    alone &= x + y < corner - 2 * (RAMP + gap)
    to_ball = pos - state.world.ball_pos[:, None]
    alone &= np.einsum("ack,ack->ac", to_ball, to_ball) > (gap + ball_reach + game.BALL_RADIUS) ** 2
    for other in range(state.num_cars):
        to_car = pos - pos[:, other, None]
        near = np.einsum("ack,ack->ac", to_car, to_car) <= (2 * gap) ** 2
        near[:, other] = False
        alone &= ~(near & state.present[:, other, None])
    return alone & state.present & ~state.is_demoed


def _add_empty(found: NDArray[np.int64], state: GameState, reach: float) -> None:
    """Add `EMPTY` for cars without boost that cannot reach any pad, active or not."""
    arena, car = np.nonzero((state.boost == 0) & state.present & ~state.is_demoed)
    to_pad = state.world.car_pos[arena, car, None, :2] - _PADS_XY
    nearest = np.einsum("npk,npk->np", to_pad, to_pad).min(axis=1, initial=np.inf)
    far = nearest > (reach + CAR_RADIUS + PAD_RADIUS) ** 2
    found[arena[far], car[far]] += EMPTY
