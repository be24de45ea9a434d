"""`fabric-rl show-resets`: where episodes begin, as a picture and a table.

In a notebook: `rows = reset_rows(partial(RocketSimPool, state_setter=...))`, then `pandas.DataFrame(rows)`.
"""

import argparse
import math
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.table import Table
from rlgym.rocket_league.common_values import (
    BACK_NET_Y,
    BACK_WALL_Y,
    BALL_MAX_SPEED,
    BALL_RADIUS,
    CAR_MAX_ANG_VEL,
    CAR_MAX_SPEED,
    CEILING_Z,
    CORNER_CATHETUS_LENGTH,
    GOAL_CENTER_TO_POST,
    GOAL_HEIGHT,
    GOAL_THRESHOLD,
    SIDE_WALL_X,
)

from envs.checks import check_seed, whole_number
from envs.matches.tape import PoolSettings
from envs.state.game_state import ORANGE, GameState
from envs.tools import LoadEnv, ToolParser, check_suffixes, console, new_figure, run, write_csv

Row = dict[str, str | float]
NUMBERS = ("x", "y", "z", "speed", "spin", "yaw", "pitch", "roll", "boost", "on_ground", "demoed")
COLOURS = {"ball": "0.35", "blue": "tab:blue", "orange": "tab:orange"}
MOST_ARENAS = 16
BALL_MAX_ANG_VEL = 6.0
CAR_HEIGHT = 36.0
"""uu, the shortest side of an Octane's hitbox."""
TURTLE_HEIGHT = 60.0
"""uu: a car upside down below this lies on its roof (it rests at about 40)."""


def reset_rows(factory: Callable[..., Any], episodes: int = 100, seed: int = 0, phase: str | None = None) -> list[Row]:
    """First states of many episodes.

    Args:
        factory: `RocketSimPool`, or a `functools.partial` of it with settings.
        episodes: How many.
        seed: Arena `i` draws from `seed + i`.
        phase: Of training, for a pool with phases; default: the first.

    Returns:
        A row for the ball and for each car of each episode: `episode`, `what` (ball, blue, orange), `slot` (-1 for the
        ball), `x`, `y`, `z` (uu), `speed` (uu/s), `spin` (rad/s), `yaw`, `pitch`, `roll` (degrees), `boost` (0..100),
        `on_ground`, `demoed` (0 or 1); the last six are 0 for the ball. The field as it is, not mirrored.

    Raises:
        ValueError: No episodes, or a first state that a pool refuses.
        TypeError: Not the settings of a `RocketSimPool`.
    """
    owner = "show-resets"
    whole_number(owner, "--episodes", episodes)
    check_seed(owner, seed, "--seed")
    settings = PoolSettings(factory, owner, phase)
    arenas = min(episodes, max(MOST_ARENAS, len(settings.team_sizes)))
    pool = settings.build(num_arenas=arenas, seed=seed, obs=None)
    rows: list[Row] = []
    try:
        for first in range(0, episodes, arenas):
            pool.reset()
            for arena in range(min(arenas, episodes - first)):
                rows += rows_of(pool.state, arena, first + arena)
    finally:
        pool.close()
    return rows


def rows_of(state: GameState, arena: int, episode: int) -> list[Row]:
    """The rows of `reset_rows` for one arena of `state`, as those of `episode`."""
    world = state.world
    ball: Row = {"episode": episode, "what": "ball", "slot": -1}
    places = [*world.ball_pos[arena].tolist(), *_sizes(world.ball_vel[arena], world.ball_ang_vel[arena])]
    rows: list[Row] = [ball | dict(zip(NUMBERS, [*places, *[0.0] * 6], strict=True))]
    angles = np.rad2deg(world.car_pitch_yaw_roll[arena])
    for slot in np.flatnonzero(state.present[arena]).tolist():
        car: Row = {"episode": episode, "what": "orange" if state.team[slot] == ORANGE else "blue", "slot": slot}
        pitch, yaw, roll = angles[slot].tolist()
        numbers = [*world.car_pos[arena, slot].tolist()]
        numbers += _sizes(world.car_vel[arena, slot], world.car_ang_vel[arena, slot])
        numbers += [yaw, pitch, roll, float(state.boost[arena, slot])]
        numbers += [float(state.on_ground[arena, slot]), float(state.is_demoed[arena, slot])]
        rows.append(car | dict(zip(NUMBERS, numbers, strict=True)))
    return rows


def _sizes(*vectors: np.ndarray[Any, Any]) -> list[float]:
    return [float(np.linalg.norm(vector)) for vector in vectors]


def range_rows(rows: Sequence[Row]) -> list[Row]:
    """Least, mean and greatest of every number, for the ball, the blue and the orange cars."""
    found: list[Row] = []
    for what in COLOURS:
        own = [row for row in rows if row["what"] == what]
        for name in NUMBERS if own else ():
            values = np.array([row[name] for row in own], np.float64)
            if what != "ball" or name in NUMBERS[:5]:
                least, mean, most = float(values.min()), float(values.mean()), float(values.max())
                found.append({"what": what, "quantity": name, "least": least, "mean": mean, "greatest": most})
    return found


def ranges_table(rows: Sequence[Row]) -> Table:
    """`range_rows` for the terminal."""
    episodes = len({row["episode"] for row in rows})
    table = Table("what", "quantity", box=box.SIMPLE_HEAD, title=f"First states of {episodes} episodes")
    for name in ("least", "mean", "greatest"):
        table.add_column(name, justify="right")
    before = None
    for row in range_rows(rows):
        what = str(row["what"]) if row["what"] != before else ""
        if what and before:
            table.add_section()
        before = row["what"]
        numbers = [f"{row[name]:,.1f}" for name in ("least", "mean", "greatest")]
        table.add_row(what, str(row["quantity"]), *numbers)
    return table


def problems_of(rows: Sequence[Row]) -> list[str]:
    """What is impossible, or mostly not meant, in first states: a line for each kind, with the first episodes."""
    found: dict[str, list[int]] = {}
    balls = {row["episode"]: row for row in rows if row["what"] == "ball"}
    cars: dict[str | float, list[Row]] = {}
    for row in rows:
        if row["what"] != "ball" and not row["demoed"]:
            cars.setdefault(row["episode"], []).append(row)
    for episode, ball in balls.items():
        kinds = [kind for car in cars.get(episode, []) for kind in _wrong_with_car(car, ball)]
        if _number(ball, "speed") > BALL_MAX_SPEED + 1 or _number(ball, "spin") > BALL_MAX_ANG_VEL + 0.01:
            kinds.append("a ball faster than the game allows")
        if abs(_number(ball, "y")) > GOAL_THRESHOLD:
            kinds.append("a ball behind a goal line")
        if _outside(ball, BALL_RADIUS - 10):
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


def _wrong_with_car(car: Row, ball: Row) -> list[str]:
    kinds = ["a car inside a wall"] if _outside(car, CAR_HEIGHT / 2 - 5) else []
    if math.dist(_place(car), _place(ball)) < BALL_RADIUS + CAR_HEIGHT / 2:
        kinds.append("a car inside the ball")
    if _number(car, "speed") > CAR_MAX_SPEED + 1 or _number(car, "spin") > CAR_MAX_ANG_VEL + 0.01:
        kinds.append("a car faster than the game allows")
    up = math.cos(math.radians(_number(car, "pitch"))) * math.cos(math.radians(_number(car, "roll")))
    if up < -0.7 and _number(car, "z") < TURTLE_HEIGHT:
        kinds.append("a car on its roof")
    return kinds


def _outside(row: Row, margin: float) -> bool:
    """Whether the place is beyond the field or closer than `margin` uu to floor, ceiling or an outer wall."""
    x, y, z = abs(_number(row, "x")), abs(_number(row, "y")), _number(row, "z")
    if not (margin <= z <= CEILING_Z - margin):
        return True
    if x < GOAL_CENTER_TO_POST and z < GOAL_HEIGHT:
        return bool(y > BACK_NET_Y - margin)
    corner = SIDE_WALL_X + BACK_WALL_Y - CORNER_CATHETUS_LENGTH
    return bool(x > SIDE_WALL_X - margin or y > BACK_WALL_Y - margin or x + y > corner - margin * math.sqrt(2))


def _place(row: Row) -> list[float]:
    return [_number(row, name) for name in ("x", "y", "z")]


def _number(row: Row, name: str) -> float:
    return float(row[name])


def draw_resets(rows: Sequence[Row], path: str | Path) -> None:
    """Draws the ball and the cars (arrows: where the nose points) from above, and from the side.

    Raises:
        ImportError: matplotlib is not installed.
        OSError: The file cannot be written.
    """
    figure = new_figure(12, 9)
    top, side = figure.subplots(1, 2, width_ratios=[3, 2], sharey=True)
    for sign in (1, -1):
        corner = SIDE_WALL_X - CORNER_CATHETUS_LENGTH
        post, wall, edge = GOAL_CENTER_TO_POST, sign * BACK_WALL_Y, sign * (BACK_WALL_Y - CORNER_CATHETUS_LENGTH)
        net = sign * BACK_NET_Y
        outline = [SIDE_WALL_X, SIDE_WALL_X, corner, post, post, -post, -post, -corner, -SIDE_WALL_X, -SIDE_WALL_X]
        top.plot(outline, [0, edge, wall, wall, net, net, wall, wall, edge, 0], color="black", linewidth=1)
    top.axhline(0, color="black", linewidth=0.5)
    for what, colour in COLOURS.items():
        own = [row for row in rows if row["what"] == what]
        if not own:
            continue
        x, y, z, yaw = (np.array([row[name] for row in own], np.float64) for name in ("x", "y", "z", "yaw"))
        if what == "ball":
            top.scatter(x, y, s=12, color=colour, alpha=0.5, label=what)
        else:
            turn = np.deg2rad(yaw)
            arrows = {"angles": "xy", "scale_units": "xy", "scale": 1, "width": 0.003}
            top.quiver(x, y, 300 * np.cos(turn), 300 * np.sin(turn), color=colour, alpha=0.7, label=what, **arrows)
        side.scatter(z, y, s=12, color=colour, alpha=0.5)
    top.set(xlabel="x (uu)", ylabel="y (uu)", aspect="equal", title="from above")
    top.legend()
    side.set(xlabel="z (uu)", xlim=(0, CEILING_Z), title="from the side")
    figure.savefig(path)


def main(argv: Sequence[str], load: LoadEnv) -> int:
    """Prints the ranges of first states and writes them; returns the exit status, 2 for wrong usage."""
    text = "Where episodes begin: ranges of ball and cars, a picture from above, all states as a table."
    parser = ToolParser("fabric-rl show-resets", text, out="files to write: .png the picture, .csv all first states")
    parser.add_argument("--episodes", type=int, default=100, help="how many (100)")
    return run(parser, _show, argv, load)


def _show(args: argparse.Namespace, factory: Callable[..., Any]) -> int:
    check_suffixes(args.out, (".png", ".csv"))
    rows = reset_rows(factory, args.episodes, args.seed, args.phase)
    console().print(ranges_table(rows))
    for path in args.out:
        (write_csv(path, rows) if path.suffix == ".csv" else draw_resets(rows, path))
        print(f"written: {path}")
    return 0
