"""Rewards computed from a tape, and the same tape seen otherwise: sides swapped, cars reordered, in longer steps."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from envs.matches.tape import Tape
from envs.rewards.base import Reward
from envs.state.game_state import GameState
from envs.state.layout import MIRROR, TOUCHED, Bool

Paid = NDArray[np.float64]
"""`[steps, A, C]`"""


def replay(reward: Reward, tape: Tape, name: str | None = None) -> Paid:
    """`[steps, A, C]` float64 what `reward` would have paid.

    Only the first of several steps in a row that show a goal is paid, as in a pool, which ends an episode with a goal.

    Args:
        reward: Computes as it goes; give one that nobody else uses.
        tape: What it is shown.
        name: What messages call the reward.
    """
    paid: list[Paid] = []
    over = np.zeros(tape.first.num_arenas, np.bool_)
    for mask, state in tape.frames:
        if mask is not None:
            reward.reset(mask, state)
            over = over & ~mask
            continue
        now = np.where(state.present, reward(state, name), 0).astype(np.float64)
        paid.append(np.where(over[:, None], 0, now))
        over = over | state.goal_scored
    return np.stack(paid)


def swapped(tape: Tape) -> tuple[Tape, NDArray[np.intp]]:
    """The same play by the other colours on the field turned around; and the order `[C]` that its cars are in."""
    first = tape.first
    order = np.r_[first.num_blue : first.num_cars, 0 : first.num_blue]
    return Tape([(mask, _turned(state, order)) for mask, state in tape.frames], tape.tick_skip), order


def reordered(tape: Tape) -> tuple[Tape, NDArray[np.intp]]:
    """The same play with the cars of each team in the opposite order; and that order `[C]`."""
    first = tape.first
    cars = np.arange(first.num_cars)
    order = np.concatenate((cars[: first.num_blue][::-1], cars[first.num_blue :][::-1]))
    return Tape([(mask, _in_order(state, order)) for mask, state in tape.frames], tape.tick_skip), order


def coarser(tape: Tape, stride: int) -> Tape:
    """The same play seen on every `stride`-th step only; a touch in between still counts.

    Args:
        tape: All of its episodes must end on a multiple of `stride` steps.
        stride: Steps that become one.

    Raises:
        ValueError: An episode ends within such a step.
    """
    frames: list[tuple[Bool | None, GameState]] = []
    touched: Bool | None = None
    waiting = 0
    for mask, state in tape.frames:
        if mask is not None:
            if waiting:
                raise ValueError(f"coarser: an episode ends {waiting} steps into a step of {stride}")
            frames.append((mask, state))
            continue
        touched = state.touched if touched is None else touched | state.touched
        waiting += 1
        if waiting == stride:
            seen = state.copy()
            seen.car_rows[..., TOUCHED] = touched[..., None]
            frames.append((None, seen))
            touched, waiting = None, 0
    return Tape(frames, tape.tick_skip * stride)


def difference(a: Paid, b: Paid) -> float:
    """How much of what is paid is paid otherwise: sum of |a - b| over that of |a| and |b|, 0 the same ... 1."""
    total = np.abs(a).sum() + np.abs(b).sum()
    return float(np.abs(a - b).sum() / total) if total > 0 else 0.0


def _in_order(state: GameState, order: Sequence[int] | NDArray[np.intp]) -> GameState:
    other = state.copy()
    place = np.append(np.argsort(order), -1)
    for name in ("car_rows", "present", "car_states", "details", "controls"):
        getattr(other, name)[:] = getattr(state, name)[:, order]
    other.details["bump_victim"] = place[other.details["bump_victim"]]
    other.last_touch_car[:] = place[state.last_touch_car]
    other.invalidate()
    return other


def _turned(state: GameState, order: NDArray[np.intp]) -> GameState:
    other = _in_order(state, order)
    other.ball_rows[:] = other.ball_rows[:, ::-1].copy()
    other.car_rows[:] = other.car_rows[:, :, ::-1].copy()
    other.pad_timers[:] = other.pad_timers[:, ::-1].copy()
    other.num_blue, other.num_orange = state.num_orange, state.num_blue
    other.team = (1 - state.team[order]).astype(np.int8)
    other.details["world_contact_normal"] *= MIRROR
    other.invalidate()
    return other
