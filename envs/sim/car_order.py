"""The order in which RocketSim iterates over the cars of an arena, which must be the same in every episode.

RocketSim stores cars in a hash set of pointers, so the order may depend on their heap addresses. The order matters:
of two cars that touch each other the first one moves first, of two cars on a pad the last one gets it.
"""

import functools
import sys
import threading
from collections.abc import Sequence
from typing import Any

import RocketSim

SET_SIZE = 65
"""Cars after which RocketSim's set of cars has at least 127 buckets (GNU's library) or 512 (Microsoft's)."""
MAX_ATTEMPTS = 64
LAST_OF_PAIR = 1 if sys.platform == "win32" else 0
"""Which of two cars comes last in that set: GNU's library puts new elements first, Microsoft's puts them last."""
BIG_PADS = (3, 4, 29, 30)
"""Pads in the corners of the field, further from each other than a car is long."""


def enlarge_car_set(arena: RocketSim.Arena) -> None:
    """Make RocketSim's set of cars large, where cars rarely collide; it grows with these cars and does not shrink."""
    for car in reversed([arena.add_car(RocketSim.Team.BLUE) for _ in range(SET_SIZE)]):
        arena.remove_car(car)


def in_usual_order(arena: RocketSim.Arena, cars: Sequence[Any], pads: Sequence[Any]) -> bool:
    """Return True if RocketSim iterates over new `cars` in the usual order; the test takes one or two ticks.

    Pads reveal the order of two neighbours: they store the last car that was over them, also when they are empty.
    """
    for first in range(min(2, len(cars) - 1)):
        _send_everything_away(arena, cars)
        pairs = list(zip(cars[first::2], cars[first + 1 :: 2], (pads[number] for number in BIG_PADS), strict=False))
        for *pair, pad in pairs:
            _put_onto(pad, pair)
        arena.step(1)
        if any(pad.get_state().prev_locked_car_id != pair[LAST_OF_PAIR].id for *pair, pad in pairs):
            return False
    return True


def _send_everything_away(arena: RocketSim.Arena, cars: Sequence[Any]) -> None:
    ball, state = RocketSim.BallState(), RocketSim.CarState()
    ball.pos = RocketSim.Vec(0, 0, 1500)
    arena.ball.set_state(ball)
    for index, car in enumerate(cars):
        state.pos = RocketSim.Vec(500 * index, 0, 1000)
        car.set_state(state)


def _put_onto(pad: Any, pair: Sequence[Any]) -> None:  # noqa: ANN401 - RocketSim's
    state, empty = RocketSim.CarState(), RocketSim.BoostPadState()
    x, y, _ = pad.get_pos().as_tuple()
    for car, dy in zip(pair, (-75, 75), strict=True):
        state.pos = RocketSim.Vec(x, y + dy, 140)  # off the ground and off each other
        car.set_state(state)
    empty.is_active, empty.cooldown = False, 5.0
    pad.set_state(empty)


@functools.lru_cache(maxsize=1)
def _spare_arena() -> RocketSim.Arena:
    return RocketSim.Arena(RocketSim.GameMode.THE_VOID)


_heap_lock = threading.Lock()


def move_heap() -> None:
    """Occupy the memory that the next car would get, so that it gets another address."""
    with _heap_lock:
        arena = _spare_arena()
        for car in arena.get_cars() if len(arena.get_cars()) >= MAX_ATTEMPTS else ():
            arena.remove_car(car)
        arena.add_car(RocketSim.Team.BLUE)
