"""Initial states of episodes: the rules for valid states, and their numbers, for pools and audits."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from rlgym.rocket_league import common_values as game

from envs.state.game_state import GameState
from envs.state.layout import BOOST, CAR_TIMERS, ORANGE, Float
from envs.state.view import View

RESPAWN = CAR_TIMERS.index("demo_respawn_timer")
BALL_MAX_ANG_VEL = 6.0
"""rad/s"""
LIMIT_MARGIN = 1.001
"""Tolerance factor on the limits of speeds, amounts and timers, for rounding and RocketSim's own tolerance."""
FIELD_MARGIN = 50.0
"""uu that a centre may be beyond a wall: less than any hitbox, more than a fast car penetrates a wall in a tick."""
CORNER = game.SIDE_WALL_X + game.BACK_WALL_Y - game.CORNER_CATHETUS_LENGTH
"""uu, |x| + |y| at the walls that cut the corners."""
CAR_HEIGHT = 36.0
"""uu, the shortest side of an Octane's hitbox."""
LEAST_ROOM = {"ball": game.BALL_RADIUS - 10, "car": CAR_HEIGHT / 2 - 5}
"""Minimum distance in uu of a centre to the nearest wall, floor or ceiling."""
TOUCHING = ("a car inside the ball", "a car inside another car")
NEAR = (game.BALL_RADIUS + CAR_HEIGHT / 2, CAR_HEIGHT)
"""Minimum distance in uu between two centres without overlap, for each kind of `TOUCHING`."""
TOO_NEAR = (50.0, 30.0)
"""Distances in uu below which a state is refused; a ball on a roof is 130 away, two stacked cars are 36 apart."""
TURTLE_HEIGHT = 60.0
"""uu: a car upside down below this lies on its roof (it rests at about 40)."""


class Problem(NamedTuple):
    """A problem with an initial state."""

    kind: str
    """Kind of problem, for example `a car inside a wall`."""
    refused: str = ""
    """Error message of a pool, with car and number; empty if the state is unusual, but can be played."""


class StartLimits(NamedTuple):
    """The largest numbers of an initial state that depend on the physics."""

    ball_speed: float = game.BALL_MAX_SPEED
    """uu/s."""
    pad_timer: float = game.BIG_PAD_RECHARGE_SECONDS
    """Seconds."""


USUAL_LIMITS = StartLimits()


def check_start(state: GameState, arena: int, name: str, limits: StartLimits = USUAL_LIMITS) -> None:
    """Check the initial state that the setter `name` has written into row `arena` of `state`.

    Raises:
        ValueError: A number is NaN or infinite, the ball or a car is outside the field or faster than the game allows,
            boost or a timer is out of range, or two bodies overlap.
    """
    for problem in find_problems(state, arena, limits):
        if problem.refused:
            raise ValueError(f"{name}: in arena {int(state.arena_index[arena])} {problem.refused}")


def find_problems(state: GameState, arena: int, limits: StartLimits = USUAL_LIMITS) -> Iterator[Problem]:
    """Yield the problems in the initial state of row `arena` of `state`: impossible, or unintended."""
    slots = np.flatnonzero(state.present[arena])
    here = View(state.ball_rows[arena, 0], state.car_rows[arena, slots, 0], state.pad_timers[arena])
    timers = state.car_timers[arena, slots]
    names = ["the ball", *(f"car {slot}" for slot in slots.tolist())]
    if all(np.isfinite(numbers).all() for numbers in (here.ball, here.cars, timers, here.pad_timers)):
        respawn = timers[:, RESPAWN]
        yield from _beyond_limits(here, respawn, names, limits)
        yield from _misplaced(here, respawn, names)
    else:
        parts = {"the ball's state": here.ball, "the pad timers": here.pad_timers}
        parts |= {
            f"the state of {name}": np.append(*row) for name, *row in zip(names[1:], here.cars, timers, strict=True)
        }
        place = next(name for name, numbers in parts.items() if not np.isfinite(numbers).all())
        yield Problem("NaN or infinity", f"an episode would begin with NaN or infinity in {place}")


def _beyond_limits(here: View, respawn: Float, names: Sequence[str], most: StartLimits) -> Iterator[Problem]:
    """Yield problems with speeds, spins, boost and timers, which must all be finite."""
    gone = [False, *(respawn > 0).tolist()]  # the game leaves a demolished car's spin as it was
    for what, unit, ball, cars, limits in (
        ("velocity", "uu/s", here.ball_vel, here.car_vel, (most.ball_speed, game.CAR_MAX_SPEED)),
        ("angular velocity", "rad/s", here.ball_ang_vel, here.car_ang_vel, (BALL_MAX_ANG_VEL, game.CAR_MAX_ANG_VEL)),
    ):
        for name, vector, demolished in zip(names, (ball.tolist(), *cars.tolist()), gone, strict=True):
            is_car, speed = name is not names[0], math.hypot(*vector)
            if speed > limits[is_car] * LIMIT_MARGIN and not demolished:
                yield Problem(
                    f"a {'car' if is_car else 'ball'} faster than the game allows",
                    f"{name} would start with {what} {speed:g} {unit}; at most {limits[is_car]:g} is possible",
                )
    for what, values, limit in (
        ("boost", here.cars[:, BOOST], 100.0),
        ("pad timer", here.pad_timers, most.pad_timer),
        ("demo_respawn_timer", respawn, np.inf),
    ):
        wrong = (values < 0) | (values > limit * LIMIT_MARGIN)
        if wrong.any():
            index = int(np.flatnonzero(wrong)[0])
            whose = f"pad {index}" if what == "pad timer" else names[index + 1]
            yield Problem(
                f"a {what} out of range",
                f"{whose} would start with {what} {values[index]:g}; it must be from 0 to {limit:g}",
            )


def _misplaced(here: View, respawn: Float, names: Sequence[str]) -> Iterator[Problem]:
    """Yield problems with positions: ball and cars inside a wall or each other, cars on their roofs."""
    spots, ups = (here.ball_pos.tolist(), *here.car_pos.tolist()), (1.0, *here.car_up[:, 2].tolist())
    gone = (False, *(respawn > 0).tolist())  # a demolished car keeps its last position, others may drive through it
    placed: list[tuple[str, list[float]]] = []
    for name, spot, up, demolished in zip(names, spots, ups, gone, strict=True):
        if demolished:
            continue
        kind = "car" if placed else "ball"
        if wall_distance(*spot) < LEAST_ROOM[kind]:
            outside = "" if inside_field(*spot) else f"{name} would start outside the field, at {_rounded(spot)} uu"
            yield Problem(f"a {kind} inside a wall", outside)
        for other, place in placed:
            two_cars, gap = other is not names[0], math.dist(spot, place)
            if gap < NEAR[two_cars]:
                together = f"{other} and {name} would start in the same place, at {_rounded(spot)} uu"
                yield Problem(TOUCHING[two_cars], together if gap < TOO_NEAR[two_cars] else "")
        if up < -0.7 and spot[2] < TURTLE_HEIGHT:
            yield Problem("a car on its roof")
        placed.append((name, spot))
    if abs(spots[0][1]) > game.GOAL_THRESHOLD:
        yield Problem("a ball behind a goal line")


def _rounded(spot: list[float]) -> tuple[float, ...]:
    return tuple(round(x, 1) for x in spot)


def wall_distance(x: float, y: float, z: float) -> float:
    """Return the distance (uu) of a point in the soccar field or in a goal to the nearest wall; negative outside."""
    across, along = abs(x), abs(y)
    to_corner = (CORNER - across - along) / math.sqrt(2)
    field = min(game.SIDE_WALL_X - across, game.BACK_WALL_Y - along, z, game.CEILING_Z - z, to_corner)
    goal = min(game.GOAL_CENTER_TO_POST - across, game.BACK_NET_Y - along, z, game.GOAL_HEIGHT - z)
    return float(max(field, goal))


def inside_field(x: float, y: float, z: float) -> bool:
    """Return True if a point (uu) is in the soccar field or in a goal, within `FIELD_MARGIN`; False for NaN."""
    return math.isfinite(x + y + z) and z >= 0 and wall_distance(x, y, z) >= -FIELD_MARGIN


def describe_problems(found: Sequence[Iterable[str]]) -> list[str]:
    """Return a line for each kind of problem, naming the first episodes in which it occurs."""
    episodes: dict[str, list[int]] = {}
    for episode, kinds in enumerate(found):
        for kind in dict.fromkeys(kinds):
            episodes.setdefault(kind, []).append(episode)
    return [
        f"{kind} in {len(where)} of {len(found)} first states "
        f"(episode {', '.join(map(str, where[:5]))}{', ...' if len(where) > 5 else ''})"
        for kind, where in episodes.items()
    ]


ResetRow = dict[str, str | float]
"""The ball, or a car, in an initial state; see `initial_state_rows`."""
KINDS = ("ball", "blue", "orange")
NUMBERS = ("x", "y", "z", "speed", "spin", "yaw", "pitch", "roll", "boost", "on_ground", "demoed")
BALL_NUMBERS = NUMBERS[:5]


class Range(NamedTuple):
    """Range of one number over many initial states."""

    what: str
    """`ball`, `blue` or `orange`."""
    quantity: str
    """One of `NUMBERS`."""
    least: float
    mean: float
    greatest: float


def initial_state_rows(state: GameState, arena: int, episode: int) -> list[ResetRow]:
    """Return rows for the ball and the cars of one arena of `state`, labelled with `episode`.

    Returns:
        A row for the ball and for each car: `episode`, `what` (ball, blue, orange), `slot` (-1 for the ball), `x`, `y`,
        `z` (uu), `speed` (uu/s), `spin` (rad/s), `yaw`, `pitch`, `roll` (degrees), `boost` (0..100), `on_ground`,
        `demoed` (0 or 1); the last six are 0 for the ball. Coordinates are not mirrored.
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


def summarize_ranges(rows: Sequence[ResetRow]) -> list[Range]:
    """Return the ranges of all numbers, for the ball, the blue and the orange cars."""
    found = []
    for what in KINDS:
        own = [row for row in rows if row["what"] == what]
        names = BALL_NUMBERS if what == "ball" else NUMBERS
        for name in names if own else ():
            values = np.array([row[name] for row in own], np.float64)
            found.append(Range(what, name, float(values.min()), float(values.mean()), float(values.max())))
    return found
