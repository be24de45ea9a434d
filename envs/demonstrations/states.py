"""Game states as columns of a demonstration, and back: everything that observation builders can read, not rounded."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from envs.replays.columns import Column
from envs.state.game_state import GameState
from envs.state.layout import BALL_COLUMNS, CAR_COLUMNS, CAR_DETAILS, CAR_FLAGS, CAR_ID, CAR_TIMERS, NUM_PADS

_TICKS = ("episode_ticks", "ticks_since_touch")
WEIGHT = "weight"
"""Column: how much the step that led to the frame counts, for each car: 1 what was seen, less what was inferred."""


MEANT = "meant"
"""Column `[C, 8]`: what the player would have done, where `controls` are at times a random action; without it they are
what it did."""


def columns(num_cars: int, noisy: bool = False) -> list[Column]:
    """The columns of states: `weight`, and `meant` if `noisy`; the rest as in `GameState`, of the world's side.

    `ball` and `cars` are RocketSim's rows (`envs.state.layout` names their columns), `details` those of `CAR_DETAILS`.
    """
    found = [
        *(Column(name, "<i4") for name in _TICKS),
        Column("last_touch", "|i1"),
        Column("ball", "<f4", (BALL_COLUMNS,)),
        Column("pad_timers", "<f4", (NUM_PADS,)),
        Column("present", "|u1", (num_cars,)),
        Column("cars", "<f4", (num_cars, CAR_COLUMNS)),
        Column("timers", "<f4", (num_cars, len(CAR_TIMERS))),
        Column("flags", "|u1", (num_cars, len(CAR_FLAGS))),
        Column("controls", "<f4", (num_cars, 8)),
        Column(WEIGHT, "<f4", (num_cars,)),
    ]
    for name in CAR_DETAILS.names or ():
        field = CAR_DETAILS[name]
        dtype = {"b": "|u1", "i": "|i1"}.get(field.base.kind, "<f4")
        found.append(Column(name, dtype, (num_cars, *field.shape)))
    return [*found, Column(MEANT, "<f4", (num_cars, 8))] if noisy else found


def frame_of(state: GameState, weight: NDArray[np.float32] | float = 1.0, arena: int = 0) -> dict[str, NDArray[Any]]:
    """One arena of a state as a frame; copies.

    Args:
        state: As it is now; its live arenas are read for it.
        weight: `[C]`, see `WEIGHT`.
        arena: Row of the state.
    """
    last_touch = state.last_touch  # reads the details, too
    frame = {name: getattr(state, name)[arena].copy() for name in (*_TICKS, "pad_timers", "present", "controls")}
    frame |= {name: state.details[name][arena].copy() for name in CAR_DETAILS.names or ()}
    frame |= {
        "last_touch": last_touch[arena].copy(),
        "ball": state.ball_rows[arena, 0].copy(),
        "cars": state.car_rows[arena, :, 0].copy(),
        "timers": state.car_timers[arena].copy(),
        "flags": state.car_flags[arena].copy(),
        WEIGHT: np.broadcast_to(np.float32(weight), state.present.shape[1:]),
    }
    frame["cars"][:, CAR_ID] = 0  # of another simulation it is another one
    return frame


def states_of(columns: dict[str, NDArray[np.float32]], num_blue: int) -> GameState:
    """The frames of an episode as one state with an arena for each, seen from both sides."""
    present = columns["present"] > 0
    state = GameState(len(present), num_blue, present.shape[1] - num_blue, present)
    state.ball_rows[:, 0], state.car_rows[:, :, 0] = columns["ball"], columns["cars"]
    state.car_timers[:], state.car_flags[:] = columns["timers"], columns["flags"] > 0
    state.controls[:], state.pad_timers[:] = columns["controls"], columns["pad_timers"]
    state.last_touch_car[:] = columns["last_touch"]
    for name in _TICKS:
        getattr(state, name)[:] = columns[name]
    state.complete()
    state.ball_rows[:, 0], state.car_rows[:, :, 0] = columns["ball"], columns["cars"]  # not what follows from them
    for name in CAR_DETAILS.names or ():
        state.details[name] = columns[name]
    state.invalidate()
    return state
