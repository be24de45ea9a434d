"""render_frame: an image of one arena (field, cars, ball) from a camera, drawn with numpy alone."""

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rlgym.rocket_league import common_values as game
from rlgym.rocket_league.common_values import BALL_RADIUS, BOOST_LOCATIONS, TICKS_PER_SECOND

from envs.state.game_state import GameState

Vector = NDArray[np.floating[Any]]
NEAR = 60.0
"""Near plane of the camera, uu."""
VIEW_DEGREES = 64.0
"""Horizontal field of view."""
_DIGITS = (31599, 11415, 29671, 29647, 23497, 31183, 31215, 29257, 31727, 31695, 1040)
"""Bitmaps of 0 to 9 and a colon: three columns by five rows, 15 bits, the first dot highest."""

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.!"
_FONT = bytes.fromhex(
    "3a31fc6317a31f463e3a308422e7a318c63e7e10f421f7e10f42103a30bc62e4631fc63138842108e1c4210a4c4654c525142108421f"
    "4775ac6314739ace713a318c62e7a31f42103a318d64d7a31f52513e107043e7c842108446318c62e46318a9444631ad771462a22a31"
    "462a210847c222221f3a33ae62e11842108e3a213221f3a213062e08ca97c427e1e0862e3a10f462e7c22211083a317462e3a317842e"
    "00000001f00007000000000018c108421004"
)
"""Bitmaps of `_LETTERS`: five columns by seven rows, 36 bits each, the last one lowest."""


class Shot(NamedTuple):
    """Names, banner and explosion that a film adds to the picture of a state.

    Attributes:
        names: Names of blue and of orange.
        banner: Text in the color of `team`.
        team: Team that scores, 0 or 1.
        burst: `[3]` place in uu where the ball exploded, or None while it is there.
        age: Seconds since the goal.
        again: True for a replay, which is seen from the scorer's side.
        score: Goals of blue and of orange; None: those of the state.
    """

    names: tuple[str, str] = ("", "")
    banner: str = ""
    team: int = 0
    burst: Vector | None = None
    age: float = 0.0
    again: bool = False
    score: tuple[int, int] | None = None


class Canvas:
    """Image of a camera that never rolls.

    Attributes:
        pixels: `[H, W, 3]` uint8.
        position: `[3]` position of the camera, uu.
        axes: `[3, 3]` unit vectors to the right and up in the image, and forward into it.
        focal: Focal length in pixels.
    """

    def __init__(self, position: Vector, target: Vector, size: tuple[int, int]) -> None:
        """Create a black image with `target` in its center."""
        forward = (target - position) / np.linalg.norm(target - position)
        right = np.array([-forward[1], forward[0], 0]) / math.hypot(forward[0], forward[1])
        self.pixels = np.zeros((size[1], size[0], 3), np.uint8)
        self.position, self.axes = position, np.stack((right, np.cross(forward, right), forward))
        self.focal = size[0] / 2 / math.tan(math.radians(VIEW_DEGREES / 2))

    def project(self, points: ArrayLike) -> tuple[Vector, Vector]:
        """Project `points [..., 3]` to pixels `[..., 2]` from the upper left corner, and depths `[...]` in uu."""
        seen = (np.asarray(points) - self.position) @ self.axes.T
        depth: Vector = np.where(np.abs(seen[..., 2]) < 1, 1, seen[..., 2])
        height, width = self.pixels.shape[:2]
        return seen[..., :2] * (self.focal / depth)[..., None] * (1, -1) + (width / 2, height / 2), depth

    def polygon(self, points: Vector, colour: ArrayLike, opacity: float = 1.0, grow: float = 0.5) -> None:
        """Fill a convex polygon `[n, 2]` of pixels; `grow` above 0.5 hides the seams between neighbours."""
        x, y, part = self._window(points.min(axis=0), points.max(axis=0))
        if not part.size:
            return
        edges = np.roll(points, -1, axis=0) - points
        turn = np.sign((points[:, 0] * edges[:, 1] - points[:, 1] * edges[:, 0]).sum())
        a, b = (turn * edges / np.maximum(np.hypot(edges[:, 0], edges[:, 1]), 1e-6)[:, None]).T.astype(np.float32)
        away = (b * points[:, 0] - a * points[:, 1] + grow).astype(np.float32)
        inside = (a[:, None] * y + away[:, None])[:, :, None] - (b[:, None] * x)[:, None, :]
        _blend(part, inside.min(axis=0), colour, opacity)

    def ellipse(
        self, at: ArrayLike, half: ArrayLike, colour: ArrayLike, opacity: float = 1.0, ball: bool = False
    ) -> None:
        """Fill an ellipse with semi-axes of `half` pixels; a `ball` is shaded as if lit from above."""
        middle, reach = np.asarray(at), np.maximum(half, 0.7)
        x, y, part = self._window(middle - reach, middle + reach)
        if not part.size:
            return
        right, down = (x - middle[0]) / reach[0], ((y - middle[1]) / reach[1])[:, None]
        away = right**2 + down**2
        if ball:
            up = np.maximum(0, 0.3 * right - 0.7 * down + 0.65 * np.sqrt(np.maximum(0, 1 - away)))[..., None]
            colour = (0.42 + 0.55 * up) * np.asarray(colour, np.float32) + 90 * up**24
        _blend(part, (1 - np.sqrt(away)) * reach[1] + 0.5, colour, opacity)

    def text(self, text: str, middle: int, top: int, dot: int) -> None:
        """Draw digits and colons in white, each `3 * dot` pixels wide, centered at the column `middle`."""
        left = middle - (4 * len(text) - 1) * dot // 2
        for letter in text:
            number = 10 if letter == ":" else int(letter)
            dots = np.array([_DIGITS[number] >> (14 - bit) & 1 for bit in range(15)], bool).reshape(5, 3)
            dots = dots.repeat(dot, axis=0).repeat(dot, axis=1)
            self.pixels[top : top + 5 * dot, left : left + 3 * dot][dots] = 255
            left += 4 * dot

    def words(self, text: str, left: int, top: int, dot: int) -> None:
        """Draw letters and digits in white, as capitals, each `5 * dot` pixels wide; others are left blank."""
        for number, letter in enumerate(text.upper()):
            at = left + 6 * dot * number
            if letter not in _LETTERS or at < 0:
                continue
            bits = np.unpackbits(np.frombuffer(_FONT, np.uint8)).reshape(-1, 36)[_LETTERS.index(letter), 1:]
            part = self.pixels[top : top + 7 * dot, at : at + 5 * dot]
            dots = bits.reshape(7, 5).repeat(dot, axis=0).repeat(dot, axis=1) > 0
            part[dots[: part.shape[0], : part.shape[1]]] = 255

    def _window(self, low: Vector, high: Vector) -> tuple[Vector, Vector, NDArray[np.uint8]]:
        """Return the centres of columns and rows in a rectangle, and its pixels; empty outside the image."""
        height, width = self.pixels.shape[:2]
        x0, x1 = (min(max(int(at), 0), width) for at in (low[0] - 1, high[0] + 2))
        y0, y1 = (min(max(int(at), 0), height) for at in (low[1] - 1, high[1] + 2))
        x, y = np.arange(x0, x1, dtype=np.float32), np.arange(y0, y1, dtype=np.float32)
        return x + np.float32(0.5), y + np.float32(0.5), self.pixels[y0:y1, x0:x1]


def _blend(part: NDArray[np.uint8], cover: Vector, colour: ArrayLike, opacity: float) -> None:
    share = np.clip(cover, 0, 1)[..., None] * np.float32(opacity)
    part[...] = part + share * (np.minimum(colour, np.float32(255)) - part) + np.float32(0.5)


TEAM_COLOURS = np.array([[47, 123, 255], [255, 122, 26]], np.float32)
"""RGB of blue and of orange."""
_CORNER = game.SIDE_WALL_X + game.BACK_WALL_Y - game.CORNER_CATHETUS_LENGTH
_WALLS = [(x, y, _CORNER) for x in (-1, 1) for y in (-1, 1)]
_WALLS += [(0, -1, game.BACK_WALL_Y), (0, 1, game.BACK_WALL_Y), (-1, 0, game.SIDE_WALL_X), (1, 0, game.SIDE_WALL_X)]
"""Planes `a x + b y = c` as (a, b, c)."""
_TEXEL = 8
_SPAN, _WALL_SPAN = 2 * game.BACK_NET_Y // _TEXEL, 4096 // _TEXEL


def draw_arena(canvas: Canvas) -> None:
    """Fill the image by casting a ray through every pixel, then draw the goals."""
    height, width = canvas.pixels.shape[:2]
    right, up, forward = canvas.axes.astype(np.float32)
    place = canvas.position.astype(np.float32)
    across = ((np.arange(width) + 0.5 - width / 2) / canvas.focal).astype(np.float32)
    down = ((np.arange(height) + 0.5 - height / 2) / canvas.focal).astype(np.float32)
    ahead = (forward - down[:, None] * up)[:, :, None]  # [H, 3, 1], rays of the middle column
    floor = -ahead[:, 2] / place[2]  # reciprocal of the distance, a linear function of the pixel
    nearest = np.full((height, width), 1e-9, np.float32)
    for a, b, at in _WALLS:
        room = np.float32(at - a * place[0] - b * place[1])
        turn = across * ((a * right[0] + b * right[1]) / room)
        tilt = (a * ahead[:, 0] + b * ahead[:, 1]) / room
        if room > 0 and turn.max() + tilt.max() > 0:
            np.maximum(nearest, tilt + turn, out=nearest)
    on_floor = floor > nearest
    reach = 1 / np.maximum(nearest, floor, out=nearest)
    reach *= np.float32(1 / _TEXEL)
    x, y = (reach * (ahead[:, i] + right[i] * across) + (place[i] + game.BACK_NET_Y) / _TEXEL for i in (0, 1))
    z = reach * ahead[:, 2] + place[2] / _TEXEL
    row = np.where(on_floor, np.clip(x, 0, _SPAN - 1, out=x), np.clip(z, 0, _WALL_SPAN - 1, out=z) + _SPAN)
    index = row.astype(np.int32)
    index *= _SPAN
    index += np.clip(y, 0, _SPAN - 1, out=y).astype(np.int32)
    seen = _colours().take(index)
    for channel in range(3):
        canvas.pixels[..., channel] = seen.view(np.uint8)[:, channel::4]
    for colour, lines in zip(TEAM_COLOURS, _goals(), strict=True):
        _draw_goal(canvas, colour, lines)


def _draw_goal(canvas: Canvas, colour: NDArray[np.float32], lines: NDArray[np.float64]) -> None:
    (starts, ends), (near, far) = (part.swapaxes(0, 1) for part in canvas.project(lines))
    size = canvas.pixels.shape[1::-1]
    in_front = np.minimum(near, far) > NEAR
    if in_front[:2].all():
        canvas.polygon(np.concatenate((starts[:2], ends[1::-1])), colour * 0.25, 0.9)
    inside = (np.minimum(starts, ends) < size).all(axis=1) & (np.maximum(starts, ends) > 0).all(axis=1)
    for line in np.flatnonzero(in_front & inside):
        start, end, half = starts[line], ends[line], 5 if line >= 3 else 24  # uu
        across = (end - start)[::-1] * (1, -1) / max(math.hypot(*(end - start)), 1e-6)
        at_start, at_end = (across * max(half * canvas.focal / depth[line], 0.5) for depth in (near, far))
        corners = np.stack((start - at_start, end - at_end, end + at_end, start + at_start))
        canvas.polygon(corners, (235, 240, 250) if line >= 3 else colour, 0.22 if line >= 3 else 1)


@lru_cache(maxsize=1)
def _goals() -> NDArray[np.float64]:
    """Return both ends `[team, line, 2, 3]` of the lines of each goal: two posts and the bar, then the net."""
    post, top, mouth, net = game.GOAL_CENTER_TO_POST, game.GOAL_HEIGHT, game.BACK_WALL_Y, game.BACK_NET_Y
    lines = [[(x, mouth, 0), (x, mouth, top)] for x in (-post, post)] + [[(-post, mouth, top), (post, mouth, top)]]
    for x in np.linspace(-post, post, 9):
        lines += [[(x, net, 0), (x, net, top)], [(x, mouth, top), (x, net, top)]]
    for z in (top / 3, top * 2 / 3, top):
        lines += [[(-post, net, z), (post, net, z)], *([(x, mouth, z), (x, net, z)] for x in (-post, post))]
    return np.array([np.array(lines) * (1, side, 1) for side in (-1, 1)])


_CHALK, _HALF_LINE = 235, 24
"""Brightness of the lines on the floor, 0..255, and half of their width, uu."""
_STRIPE, _MESH = 640, 512
"""Width in uu of the stripes of the grass, and of the squares of the walls."""


@lru_cache(maxsize=1)
def _colours() -> NDArray[np.uint32]:
    """Return the texture in texels of `_TEXEL` uu: rows by x for the floor, by z for the walls; columns by y.

    Red is the low byte.
    """
    y = ((np.arange(_SPAN) + 0.5) * _TEXEL - game.BACK_NET_Y).astype(np.float32)
    found = np.zeros((_SPAN + _WALL_SPAN, _SPAN, 4), np.uint8)
    found[..., :3] = np.clip(np.concatenate((_floor(y), _walls(y[None]))), 0, 255)
    return found.view(np.uint32)[..., 0]


def _floor(at: Vector) -> Vector:
    """Return the floor's colours: striped grass, tinted near the goals, dark at the walls, and the lines on it."""
    x, y = np.broadcast_arrays(at[:, None], at)
    wide, far, from_middle = np.abs(x), np.abs(y), np.hypot(x, y)
    outside = np.maximum.reduce([wide - game.SIDE_WALL_X, far - game.BACK_WALL_Y, (wide + far - _CORNER) / 2**0.5])
    grass = np.array([52, 112, 74]) - (np.floor(y / _STRIPE) % 2)[..., None] * (6, 11, 8)
    grass = grass + 0.3 * (far / game.BACK_NET_Y)[..., None] ** 2.5 * (_team(y) - grass)
    grass = grass * (1 - 0.35 * np.clip(1 + outside / 500, 0, 1) ** 2)[..., None]
    halfway, circle, spot = far, np.abs(from_middle - 950), from_middle - 50  # distances, uu
    area, edge = np.abs(np.maximum(wide - 1700, 3700 - far)), np.abs(outside + 70)
    nearest = np.minimum.reduce([halfway, circle, spot, area, edge])
    chalk = 0.72 * np.clip((_HALF_LINE - nearest) / (2.5 * _TEXEL) + 0.5, 0, 1) * (outside < 40)
    painted: Vector = grass + chalk[..., None] * (_CHALK - grass)
    return painted


def _walls(y: Vector) -> Vector:
    """Return the walls' colours: tinted glass with a mesh, brighter at floor and ceiling, and the crowd above them."""
    z = (np.arange(_WALL_SPAN)[:, None, None] + 0.5) * _TEXEL
    mesh = np.maximum(np.abs(y / _MESH % 1 - 0.5)[..., None], np.abs(z / _MESH % 1 - 0.5)) > 0.468
    low, top = 30 * np.exp(-z / 260), 60 * np.exp(-(((z - game.CEILING_Z) / 40) ** 2))
    glass = np.array([36, 48, 66]) + low + 9 * mesh + top
    crowd = np.random.default_rng(0).random((_WALL_SPAN // 4, _SPAN // 4, 1)).repeat(4, 0).repeat(4, 1) ** 6
    walls = np.where(z < game.CEILING_Z + 20, glass, np.array([16, 20, 30]) + 34 * crowd)
    walls += 0.34 * (np.abs(y) / game.BACK_WALL_Y)[..., None] ** 3 * np.exp(-z / 1500) * (_team(y) - walls)
    return walls


def _team(y: Vector) -> Vector:
    """Return the colour `[..., 3]` of the team in whose half `y` is."""
    colours: Vector = np.where(y[..., None] < 0, TEAM_COLOURS[0], TEAM_COLOURS[1])
    return colours


SIZE = (640, 360)
"""Default width and height of an image, pixels."""
_LIGHT = np.array([-0.33, -0.19, 0.92])
_SHOT = Shot()
_Paint = tuple[int, int, int]
_Face = tuple[Vector, Vector | None, _Paint]
"""In a car's frame: corners `[n, 3]`, the outward unit normal (None for fire), and the colour."""
_GLASS, _BLACK, _LAMP, _TAIL, _WHITE = ((40, 50, 66), (24, 26, 30), (255, 244, 214), (170, 30, 40), (255, 255, 255))
_OWN = (-1, -1, -1)
"""Placeholder for the colour of the team."""


def render_frame(
    state: GameState, arena: int = 0, size: tuple[int, int] = SIZE, shot: Shot = _SHOT
) -> NDArray[np.uint8]:
    """Draw an arena from a camera beside the field, like a TV broadcast, with blue's goal on the left.

    The camera follows the ball and the cars close to it; the image depends only on the state. The arrow on a car points
    forward; the numbers are the goals and the time of the episode.

    Args:
        state: State from a pool, from numbers or from a replay.
        arena: Row of the arena in `state`.
        size: Width and height in pixels; use even numbers to make a video.
        shot: What else is in the picture.

    Returns:
        `[H, W, 3]` uint8, red, green, blue.
    """
    world, alive = state.world, np.flatnonzero(state.present[arena] & ~state.is_demoed[arena])
    places = np.concatenate((world.ball_pos[arena][None], world.car_pos[arena, alive])).astype(float)
    if shot.burst is not None:
        places[0] = shot.burst
    canvas = _from_scorer(places[0], shot.team, size) if shot.again else _following(places, size)
    draw_arena(canvas)
    _draw_pads(canvas, world.pad_timers[arena] <= 0)
    radii = np.array([BALL_RADIUS, *[60.0] * len(alive)]) * (1 + places[:, 2] / 4000)
    radii[0] *= shot.burst is None
    _draw_discs(canvas, places * (1, 1, 0), radii, (8, 14, 12), 0.5 * np.exp(-places[:, 2] / 1400))
    at, depth = canvas.project(places)
    for thing in np.argsort(-np.linalg.norm(places - canvas.position, axis=1)):
        if thing == 0 and shot.burst is None and depth[0] > NEAR:
            radius = BALL_RADIUS * canvas.focal / depth[0]
            canvas.ellipse(at[0], (radius, radius), (225, 228, 232), ball=True)
        elif thing and depth[thing] > 3 * NEAR:
            car = alive[thing - 1]
            axes = np.stack([getattr(world, f"car_{axis}")[arena, car] for axis in ("forward", "right", "up")])
            flame = 1 + 0.1 * math.sin(state.episode_ticks[arena] + car) if state.is_boosting[arena, car] else 0.0
            _draw_car(canvas, places[thing], axes, TEAM_COLOURS[state.team[car]], flame)
    if shot.burst is not None:
        _draw_burst(canvas, shot)
    _draw_score(canvas, state, arena, shot)
    return canvas.pixels


def _following(places: Vector, size: tuple[int, int]) -> Canvas:
    """Return a canvas; the closer the cars `places [1:]` are to the ball `places [0]`, the closer the camera is."""
    ball, offsets = places[0], places[1:] - places[0]
    away = np.linalg.norm(offsets, axis=1)
    share = np.exp(-away / 1800)
    distance = 700 + 1.75 * float(share @ away) / (float(share.sum()) + 0.02) + 0.3 * ball[2]
    target = (ball + share @ offsets / (share.sum() + 0.6)) * (0.9, 0.95, 0.6) + (0, 0, 60)
    height = 0.36 + 0.25 * min(1.0, distance / 5500)
    way = np.array([-math.sqrt(1 - height**2), -0.12 * target[1] / 2500, height])
    return Canvas(target + distance * way, target, size)


def _from_scorer(ball: Vector, team: int, size: tuple[int, int]) -> Canvas:
    """Return a canvas behind the ball, as the scorer's team saw it going to the goal."""
    side = 1 - 2 * team
    away = (ball - (0, side * game.BACK_WALL_Y, 0)) * (1, 1, 0) - (0, side * 600, 0)
    place = ball + 1600 * away / np.linalg.norm(away) + (-350 * np.copysign(1, ball[0]), 0, 0)
    low, high = np.array([-3300.0, -4500, 260]), np.array([3300.0, 4500, 1500])
    place[2] = 0.6 * ball[2] + 320
    return Canvas(np.clip(place, low, high), ball * (1, 1, 0.8) + (0, 0, 40), size)


_SPARKS = 90


def _draw_burst(canvas: Canvas, shot: Shot) -> None:
    """Draw the sparks of a goal in the color of its team; the same at the same age."""
    number = np.arange(_SPARKS)
    up, around = 1 - (2 * number + 1) / _SPARKS, number * 2.39996
    far = (900 + 800 * (number * 0.618 % 1)) * (1 - math.exp(-2.6 * shot.age))
    flat = np.sqrt(1 - up**2)
    way = np.stack((flat * np.cos(around), flat * np.sin(around) - 0.5 * (1 - 2 * shot.team), 0.7 * up), axis=1)
    places = shot.burst + way * far[:, None] - np.array([0, 0, 220 * shot.age**2])
    places[:, 2] = np.maximum(places[:, 2], 15)
    left = max(0.0, 1 - shot.age / 1.8)
    colour = TEAM_COLOURS[shot.team] + (255 - TEAM_COLOURS[shot.team]) * 0.5 * left
    for at, depth in zip(*canvas.project(places), strict=True):
        if depth > 6 * NEAR:
            canvas.ellipse(at, (20 * canvas.focal / depth,) * 2, colour, left**0.7)


def _draw_discs(canvas: Canvas, places: Vector, radii: Vector, colour: ArrayLike, opacity: ArrayLike) -> None:
    """Draw horizontal discs around `places [n, 3]`."""
    at, depth = canvas.project(places)
    widths = radii * canvas.focal / depth
    heights = widths * (canvas.position[2] - places[:, 2]) / np.linalg.norm(canvas.position - places, axis=1)
    for disc, share in enumerate(np.broadcast_to(opacity, depth.shape)):
        if depth[disc] > NEAR:
            canvas.ellipse(at[disc], (widths[disc], heights[disc]), colour, float(share))


def _draw_pads(canvas: Canvas, there: NDArray[np.bool_]) -> None:
    """Draw the boost pads: dark while gone; big pads have a ball above them."""
    pads, big = np.array(BOOST_LOCATIONS) * (1.0, 1, 0), np.array(BOOST_LOCATIONS)[:, 2] > 71
    radii = np.where(big, 150.0, 75.0)
    _draw_discs(canvas, pads, radii, (20, 30, 26), 0.45)
    _draw_discs(canvas, pads[there], radii[there] * 0.68, (255, 196, 61), 0.95)
    for at, depth in zip(*canvas.project(pads[big & there] + np.array([0, 0, 130])), strict=True):
        if depth > NEAR:
            canvas.ellipse(at, (62 * canvas.focal / depth,) * 2, (255, 190, 40), ball=True)


def _draw_car(canvas: Canvas, place: Vector, axes: Vector, colour: Vector, flame: float) -> None:
    """Draw a car; `axes [3, 3]` are its unit vectors forward, right, up; `flame` is the relative length of its fire."""
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
    """Return the faces of cabin, body with wheels, and fire."""

    def face(corners: ArrayLike, paint: _Paint) -> _Face:
        at = np.array(corners, float)
        out = np.cross(at[1] - at[0], at[2] - at[0])
        return at, out / np.linalg.norm(out), paint

    def block(corners: list[tuple[float, float, float]], *paints: _Paint) -> list[_Face]:
        """Return six faces from the corners on the right side: back low, back high, front low, front high."""
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


def _draw_score(canvas: Canvas, state: GameState, arena: int, shot: Shot) -> None:
    """Draw the goals of both teams with the names beside them, the time between them, and the banner below."""
    dot, middle = max(1, canvas.pixels.shape[1] // 213), canvas.pixels.shape[1] // 2
    minutes, seconds = divmod(int(state.episode_ticks[arena]) // TICKS_PER_SECOND, 60)
    canvas.pixels[: 9 * dot, middle - 15 * dot : middle + 15 * dot] = (22, 27, 36)
    canvas.text(f"{minutes}:{seconds:02}", middle, 2 * dot, dot)
    for team, at in ((0, middle - 22 * dot), (1, middle + 22 * dot)):
        canvas.pixels[: 9 * dot, at - 7 * dot : at + 7 * dot] = TEAM_COLOURS[team] * 0.8
        goals = shot.score[team] if shot.score else int(state.goals[arena, state.team == team].sum())
        canvas.text(str(min(999, goals)), at, 2 * dot, dot)
        name, small = shot.names[team][:20], max(1, dot * 2 // 3)
        wide, edge = 6 * small * len(name) + 3 * small, at + (2 * team - 1) * 7 * dot
        start = edge - (1 - team) * wide
        canvas.pixels[: 9 * dot, max(0, start) : start + wide] = (22, 27, 36) if name else 0
        canvas.words(name, start + 2 * small, (9 * dot - 7 * small) // 2, small)
    if shot.banner:
        letters = max(1, min(dot + dot // 3, canvas.pixels.shape[1] // (6 * len(shot.banner) + 8)))
        half, top = (6 * len(shot.banner) + 5) * letters // 2, 13 * dot
        canvas.pixels[top : top + 11 * letters, max(0, middle - half) : middle + half] = TEAM_COLOURS[shot.team] * 0.8
        canvas.words(shot.banner, middle - half + 3 * letters, top + 2 * letters, letters)
