"""render_frame: a picture of one arena, drawn with numpy alone."""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rlgym.rocket_league.common_values import BALL_RADIUS, BOOST_LOCATIONS, TICKS_PER_SECOND

from envs.render.canvas import NEAR, Canvas, Vector
from envs.render.field import TEAM_COLOURS, draw_field
from envs.state.game_state import GameState

SIZE = (640, 360)
"""Width and height of a picture, pixels."""
_LIGHT = np.array([-0.33, -0.19, 0.92])
_Paint = tuple[int, int, int]
_Face = tuple[Vector, Vector | None, _Paint]
"""In a car's frame: corners `[n, 3]`, the unit vector out of the car (fire has none), and the colour."""
_GLASS, _BLACK, _LAMP, _TAIL, _WHITE = ((40, 50, 66), (24, 26, 30), (255, 244, 214), (170, 30, 40), (255, 255, 255))
_OWN = (-1, -1, -1)
"""Stands for the colour of the team."""


def render_frame(state: GameState, arena: int = 0, size: tuple[int, int] = SIZE) -> NDArray[np.uint8]:
    """Draws an arena as a television camera beside the field sees it, blue's goal on the left.

    The camera follows the ball and the cars close to it; it depends on nothing but the state. The arrow on a car points
    forward; the numbers are goals and time of the episode.

    Args:
        state: Of a pool, of numbers or of a replay.
        arena: Its row in `state`.
        size: Width and height, pixels; even numbers, to make a video of it.

    Returns:
        `[H, W, 3]` uint8, red, green, blue.
    """
    world, alive = state.world, np.flatnonzero(state.present[arena] & ~state.is_demoed[arena])
    places = np.concatenate((world.ball_pos[arena][None], world.car_pos[arena, alive])).astype(float)
    canvas = _following(places, size)
    draw_field(canvas)
    _draw_pads(canvas, world.pad_timers[arena] <= 0)
    radii = np.array([BALL_RADIUS, *[60.0] * len(alive)]) * (1 + places[:, 2] / 4000)
    _draw_discs(canvas, places * (1, 1, 0), radii, (8, 14, 12), 0.5 * np.exp(-places[:, 2] / 1400))
    at, depth = canvas.project(places)
    for thing in np.argsort(-np.linalg.norm(places - canvas.position, axis=1)):
        if thing == 0 and depth[0] > NEAR:
            radius = BALL_RADIUS * canvas.focal / depth[0]
            canvas.ellipse(at[0], (radius, radius), (225, 228, 232), ball=True)
        elif depth[thing] > 3 * NEAR:
            car = alive[thing - 1]
            axes = np.stack([getattr(world, f"car_{axis}")[arena, car] for axis in ("forward", "right", "up")])
            flame = 1 + 0.1 * math.sin(state.episode_ticks[arena] + car) if state.is_boosting[arena, car] else 0.0
            _draw_car(canvas, places[thing], axes, TEAM_COLOURS[state.team[car]], flame)
    _draw_score(canvas, state, arena)
    return canvas.pixels


def _following(places: Vector, size: tuple[int, int]) -> Canvas:
    """The closer the cars `places [1:]` are to the ball `places [0]`, the closer is the camera."""
    ball, offsets = places[0], places[1:] - places[0]
    away = np.linalg.norm(offsets, axis=1)
    share = np.exp(-away / 1800)
    distance = 700 + 1.75 * float(share @ away) / (float(share.sum()) + 0.02) + 0.3 * ball[2]
    target = (ball + share @ offsets / (share.sum() + 0.6)) * (0.9, 0.95, 0.6) + (0, 0, 60)
    height = 0.36 + 0.25 * min(1.0, distance / 5500)
    way = np.array([-math.sqrt(1 - height**2), -0.12 * target[1] / 2500, height])
    return Canvas(target + distance * way, target, size)


def _draw_discs(canvas: Canvas, places: Vector, radii: Vector, colour: ArrayLike, opacity: ArrayLike) -> None:
    """Level discs at `places [n, 3]`, seen from above."""
    at, depth = canvas.project(places)
    widths = radii * canvas.focal / depth
    heights = widths * (canvas.position[2] - places[:, 2]) / np.linalg.norm(canvas.position - places, axis=1)
    for disc, share in enumerate(np.broadcast_to(opacity, depth.shape)):
        if depth[disc] > NEAR:
            canvas.ellipse(at[disc], (widths[disc], heights[disc]), colour, float(share))


def _draw_pads(canvas: Canvas, there: NDArray[np.bool_]) -> None:
    """Dark where a pad is missing; big ones have a ball above them."""
    pads, big = np.array(BOOST_LOCATIONS) * (1.0, 1, 0), np.array(BOOST_LOCATIONS)[:, 2] > 71
    radii = np.where(big, 150.0, 75.0)
    _draw_discs(canvas, pads, radii, (20, 30, 26), 0.45)
    _draw_discs(canvas, pads[there], radii[there] * 0.68, (255, 196, 61), 0.95)
    for at, depth in zip(*canvas.project(pads[big & there] + np.array([0, 0, 130])), strict=True):
        if depth > NEAR:
            canvas.ellipse(at, (62 * canvas.focal / depth,) * 2, (255, 190, 40), ball=True)


def _draw_car(canvas: Canvas, place: Vector, axes: Vector, colour: Vector, flame: float) -> None:
    """A car; `axes [3, 3]` are its unit vectors forward, right, up; `flame` is how long its fire is."""
    cabin, body, fire = _car()
    eye, light = axes @ (canvas.position - place), axes @ _LIGHT
    parts = [body, cabin] if eye[2] > 15 else [cabin, body]
    parts.insert(0 if eye[0] > -46 else 2, fire)
    for corners, normal, paint in (face for part in parts for face in part):
        if normal is None and flame:
            canvas.polygon(canvas.project(corners * (flame, 1, 1) @ axes + place)[0], paint, 0.9)
        elif normal is not None and normal @ (eye - corners[0]) > 0:
            lit = 0.62 + 0.5 * max(0.0, float(normal @ light))
            shade = (colour if paint is _OWN else np.array(paint)) * lit
            canvas.polygon(canvas.project(corners @ axes + place)[0], shade, grow=0.8)


@lru_cache(maxsize=1)
def _car() -> tuple[list[_Face], list[_Face], list[_Face]]:
    """Cabin, body with wheels, fire."""

    def face(corners: ArrayLike, paint: _Paint) -> _Face:
        at = np.array(corners, float)
        out = np.cross(at[1] - at[0], at[2] - at[0])
        return at, out / np.linalg.norm(out), paint

    def block(corners: list[tuple[float, float, float]], *paints: _Paint) -> list[_Face]:
        """Of the corners on the right, back low, back high, front low, front high; back, front, left, ... top."""
        at = [(x, y * side, z) for pair in (corners[:2], corners[2:]) for side in (-1, 1) for x, y, z in pair]
        sides = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
        return [face([at[i] for i in side], paint) for side, paint in zip(sides, paints, strict=True)]

    cabin = block([(-36, 33, 15), (-36, 24, 38), (36, 34, 15), (8, 24, 34)], *[_GLASS] * 5, _OWN)
    body = block([(-46, 40, -7), (-46, 38, 21), (74, 36, -7), (74, 33, 6)], _TAIL, _LAMP, _OWN, _OWN, _BLACK, _OWN)
    for x, y in ((-33, -41), (-33, 41), (50, -41), (50, 41)):
        turn = np.arange(8) * math.copysign(math.pi / 4, -y)
        body.append(face(np.stack((x + 16 * np.cos(turn), np.full(8, y), 16 * np.sin(turn) - 1), axis=1), _BLACK))
    body.append(face([(71, 0, 7), (36, 22, 11), (36, -22, 11)], _WHITE))
    fire: list[_Face] = []
    for end, half, paint in ((-120, 15, (255, 138, 31)), (-90, 8, (255, 242, 176))):
        for y, z in ((half, 0), (0, half)):
            fire.append((np.array([(-46, -y, 7 - z), (-46, y, 7 + z), (end, 0, 7)], float), None, paint))
    return cabin, body, fire


def _draw_score(canvas: Canvas, state: GameState, arena: int) -> None:
    """Goals of both teams, and the time between them, in the middle of the upper edge."""
    dot, middle = max(1, canvas.pixels.shape[1] // 213), canvas.pixels.shape[1] // 2
    minutes, seconds = divmod(int(state.episode_ticks[arena]) // TICKS_PER_SECOND, 60)
    canvas.pixels[: 9 * dot, middle - 15 * dot : middle + 15 * dot] = (22, 27, 36)
    canvas.text(f"{minutes}:{seconds:02}", middle, 2 * dot, dot)
    for team, at in ((0, middle - 22 * dot), (1, middle + 22 * dot)):
        canvas.pixels[: 9 * dot, at - 7 * dot : at + 7 * dot] = TEAM_COLOURS[team] * 0.8
        goals = int(state.goals[arena, state.team == team].sum())
        canvas.text(str(min(999, goals)), at, 2 * dot, dot)
