"""Rewards computed from a trace, and transformed traces: sides swapped, cars reordered, longer steps."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from envs.matches.matches import MatchTrace
from envs.rewards.base import Reward
from envs.state.game_state import GameState
from envs.state.layout import MIRROR, TOUCHED, Bool

Rewards = NDArray[np.float64]
"""`[steps, A, C]`"""


def compute_rewards(reward: Reward, trace: MatchTrace, name: str | None = None) -> Rewards:
    """Return the rewards `[steps, A, C]` float64 of a trace.

    Only the first of several consecutive steps with a goal counts, as in a pool, which ends an episode with a goal. The
    reward must not be used elsewhere; error messages call it `name`. Raise a FloatingPointError for NaN or infinity.
    """
    paid: list[Rewards] = []
    over = np.zeros(trace.first.num_arenas, np.bool_)
    for mask, state in trace.states_with_resets:
        if mask is not None:
            reward.reset(mask, state)
            over = over & ~mask
            continue
        now = np.where(state.present, reward(state, name), 0).astype(np.float64)
        if not np.isfinite(now).all():
            raise FloatingPointError(f"{name or reward.label()}: NaN or infinity in the rewards")
        paid.append(np.where(over[:, None], 0, now))
        over = over | state.goal_scored
    return np.stack(paid)


def swap_sides(trace: MatchTrace) -> tuple[MatchTrace, NDArray[np.intp]]:
    """Return the trace with swapped teams on the mirrored field, and the order `[C]` of its cars."""
    first = trace.first
    order = np.r_[first.num_blue : first.num_cars, 0 : first.num_blue]
    frames = [(mask, _turned(state, order)) for mask, state in trace.states_with_resets]
    return MatchTrace(frames, trace.tick_skip), order


def reorder_cars(trace: MatchTrace) -> tuple[MatchTrace, NDArray[np.intp]]:
    """Return the trace with the cars of each team in reverse order, and that order `[C]`."""
    first = trace.first
    cars = np.arange(first.num_cars)
    order = np.concatenate((cars[: first.num_blue][::-1], cars[first.num_blue :][::-1]))
    frames = [(mask, _in_order(state, order)) for mask, state in trace.states_with_resets]
    return MatchTrace(frames, trace.tick_skip), order


def merge_steps(trace: MatchTrace, stride: int) -> MatchTrace:
    """Return the trace reduced to every `stride`-th step; touches in between still count.

    Raise a ValueError if an episode ends within a merged step.
    """
    frames: list[tuple[Bool | None, GameState]] = []
    touched: Bool | None = None
    waiting = 0
    for mask, state in trace.states_with_resets:
        if mask is not None:
            if waiting:
                raise ValueError(f"merge_steps: an episode ends after {waiting} of {stride} steps to merge")
            frames.append((mask, state))
            continue
        touched = state.touched if touched is None else touched | state.touched
        waiting += 1
        if waiting == stride:
            seen = state.copy()
            seen.car_rows[..., TOUCHED] = touched[..., None]
            frames.append((None, seen))
            touched, waiting = None, 0
    return MatchTrace(frames, trace.tick_skip * stride)


def relative_difference(a: Rewards, b: Rewards) -> float:
    """Return the relative difference, sum |a - b| / sum (|a| + |b|), 0..1."""
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
