"""First states of episodes as rows of numbers: where the ball and the cars are, their ranges, what is impossible."""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from rlgym.rocket_league import common_values as game

from envs.resets.base import BALL_MAX_ANG_VEL
from envs.state.game_state import GameState
from envs.state.layout import ORANGE, Float

ResetRow = dict[str, str | float]
"""The ball, or a car, in a first state; see `rows_of`."""
KINDS = ("ball", "blue", "orange")
NUMBERS = ("x", "y", "z", "speed", "spin", "yaw", "pitch", "roll", "boost", "on_ground", "demoed")
BALL_NUMBERS = NUMBERS[:5]
CAR_HEIGHT = 36.0
"""uu, the shortest side of an Octane's hitbox."""
TURTLE_HEIGHT = 60.0
"""uu: a car upside down below this lies on its roof (it rests at about 40)."""


class Range(NamedTuple):
    """What one number was, over many first states."""

    what: str
    """`ball`, `blue` or `orange`."""
    quantity: str
    """One of `NUMBERS`."""
    least: float
    mean: float
    greatest: float


def rows_of(state: GameState, arena: int, episode: int) -> list[ResetRow]:
    """The ball and the cars of one arena of `state`, as those of `episode`.

    Returns:
        A row for the ball and for each car: `episode`, `what` (ball, blue, orange), `slot` (-1 for the ball), `x`, `y`,
        `z` (uu), `speed` (uu/s), `spin` (rad/s), `yaw`, `pitch`, `roll` (degrees), `boost` (0..100), `on_ground`,
        `demoed` (0 or 1); the last six are 0 for the ball. The field as it is, not mirrored.
    """
    world = state.world
    ball: ResetRow = {"episode": episode, "what": "ball", "slot": -1, **dict.fromkeys(NUMBERS, 0.0)}
    numbers = _numbers(world.ball_pos[arena], world.ball_vel[arena], world.ball_ang_vel[arena])
    rows = [ball | dict(zip(BALL_NUMBERS, numbers, strict=True))]
    angles = np.rad2deg(world.car_pitch_yaw_roll[arena])
    for slot in np.flatnonzero(state.present[arena]).tolist():
        car: ResetRow = {"episode": episode, "what": "orange" if state.team[slot] == ORANGE else "blue", "slot": slot}
        at = arena, slot
        pitch, yaw, roll = angles[slot].tolist()
        numbers = _numbers(world.car_pos[at], world.car_vel[at], world.car_ang_vel[at])
        numbers += [yaw, pitch, roll, float(state.boost[at]), float(state.on_ground[at]), float(state.is_demoed[at])]
        rows.append(car | dict(zip(NUMBERS, numbers, strict=True)))
    return rows


def _numbers(place: Float, velocity: Float, spin: Float) -> list[float]:
    return [*place.tolist(), float(np.linalg.norm(velocity)), float(np.linalg.norm(spin))]


def ranges_of(rows: Sequence[ResetRow]) -> list[Range]:
    """The ranges of all numbers, for the ball, the blue and the orange cars."""
    found = []
    for what in KINDS:
        own = [row for row in rows if row["what"] == what]
        names = BALL_NUMBERS if what == "ball" else NUMBERS
        for name in names if own else ():
            values = np.array([row[name] for row in own], np.float64)
            found.append(Range(what, name, float(values.min()), float(values.mean()), float(values.max())))
    return found


def problems_of(rows: Sequence[ResetRow]) -> list[str]:
    """What is impossible, or mostly not meant, in first states: a line for each kind, with the first episodes."""
    found: dict[str, list[int]] = {}
    balls = {row["episode"]: row for row in rows if row["what"] == "ball"}
    cars: dict[str | float, list[ResetRow]] = {}
    for row in rows:
        if row["what"] != "ball" and not row["demoed"]:
            cars.setdefault(row["episode"], []).append(row)
    for episode, ball in balls.items():
        kinds = [kind for car in cars.get(episode, []) for kind in _wrong_with_car(car, ball)]
        if _number(ball, "speed") > game.BALL_MAX_SPEED + 1 or _number(ball, "spin") > BALL_MAX_ANG_VEL + 0.01:
            kinds.append("a ball faster than the game allows")
        if abs(_number(ball, "y")) > game.GOAL_THRESHOLD:
            kinds.append("a ball behind a goal line")
        if _outside(ball, game.BALL_RADIUS - 10):
            kinds.append("a ball inside a wall")
        places = [_place(car) for car in cars.get(episode, [])]
        if any(math.dist(a, b) < CAR_HEIGHT for a, b in combinations(places, 2)):
            kinds.append("a car inside another car")
        for kind in dict.fromkeys(kinds):
            found.setdefault(kind, []).append(int(episode))
    shown = {kind: ", ".join(map(str, episodes[:5])) for kind, episodes in found.items()}
    return [
        f"{kind} in {len(episodes)} of {len(balls)} first states (episode {shown[kind]}"
        f"{', ...' if len(episodes) > 5 else ''})"
        for kind, episodes in found.items()
    ]


def _wrong_with_car(car: ResetRow, ball: ResetRow) -> list[str]:
    kinds = ["a car inside a wall"] if _outside(car, CAR_HEIGHT / 2 - 5) else []
    if math.dist(_place(car), _place(ball)) < game.BALL_RADIUS + CAR_HEIGHT / 2:
        kinds.append("a car inside the ball")
    if _number(car, "speed") > game.CAR_MAX_SPEED + 1 or _number(car, "spin") > game.CAR_MAX_ANG_VEL + 0.01:
        kinds.append("a car faster than the game allows")
    up = math.cos(math.radians(_number(car, "pitch"))) * math.cos(math.radians(_number(car, "roll")))
    if up < -0.7 and _number(car, "z") < TURTLE_HEIGHT:
        kinds.append("a car on its roof")
    return kinds


def _outside(row: ResetRow, margin: float) -> bool:
    """Whether the place is beyond the field or closer than `margin` uu to floor, ceiling or an outer wall."""
    x, y, z = abs(_number(row, "x")), abs(_number(row, "y")), _number(row, "z")
    if not (margin <= z <= game.CEILING_Z - margin):
        return True
    if x < game.GOAL_CENTER_TO_POST and z < game.GOAL_HEIGHT:
        return bool(y > game.BACK_NET_Y - margin)
    corner = game.SIDE_WALL_X + game.BACK_WALL_Y - game.CORNER_CATHETUS_LENGTH
    beyond = x > game.SIDE_WALL_X - margin or y > game.BACK_WALL_Y - margin
    return bool(beyond or x + y > corner - margin * math.sqrt(2))


def _place(row: ResetRow) -> list[float]:
    return [_number(row, name) for name in ("x", "y", "z")]


def _number(row: ResetRow, name: str) -> float:
    return float(row[name])
