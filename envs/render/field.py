"""The empty field as a camera sees it: grass with its lines, walls, stands, goals."""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league import common_values as game

from envs.render.canvas import NEAR, Canvas

TEAM_COLOURS = np.array([[47, 123, 255], [255, 122, 26]], np.float32)
"""Red, green, blue of blue and of orange."""
_CORNER = game.SIDE_WALL_X + game.BACK_WALL_Y - game.CORNER_CATHETUS_LENGTH
_WALLS = [(x, y, _CORNER) for x in (-1, 1) for y in (-1, 1)]
_WALLS += [(0, -1, game.BACK_WALL_Y), (0, 1, game.BACK_WALL_Y), (-1, 0, game.SIDE_WALL_X), (1, 0, game.SIDE_WALL_X)]
"""Planes x * first + y * second = third."""
_TEXEL = 8
_SPAN, _WALL_SPAN = 2 * game.BACK_NET_Y // _TEXEL, 4096 // _TEXEL


def draw_field(canvas: Canvas) -> None:
    """Fills the picture with what the rays of its pixels meet first; goals come on top, their nets behind glass."""
    height, width = canvas.pixels.shape[:2]
    right, up, forward = canvas.axes.astype(np.float32)
    place = canvas.position.astype(np.float32)
    across = ((np.arange(width) + 0.5 - width / 2) / canvas.focal).astype(np.float32)
    down = ((np.arange(height) + 0.5 - height / 2) / canvas.focal).astype(np.float32)
    ahead = (forward - down[:, None] * up)[:, :, None]  # [H, 3, 1], rays of the middle column
    floor = -ahead[:, 2] / place[2]  # one over the distance, a linear function of the pixel
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
    """Both ends `[team, line, 2, 3]` of the lines of each goal: two posts and the bar, then the net."""
    post, top, mouth, net = game.GOAL_CENTER_TO_POST, game.GOAL_HEIGHT, game.BACK_WALL_Y, game.BACK_NET_Y
    lines = [[(x, mouth, 0), (x, mouth, top)] for x in (-post, post)] + [[(-post, mouth, top), (post, mouth, top)]]
    for x in np.linspace(-post, post, 9):
        lines += [[(x, net, 0), (x, net, top)], [(x, mouth, top), (x, net, top)]]
    for z in (top / 3, top * 2 / 3, top):
        lines += [[(-post, net, z), (post, net, z)], *([(x, mouth, z), (x, net, z)] for x in (-post, post))]
    return np.array([np.array(lines) * (1, side, 1) for side in (-1, 1)])


@lru_cache(maxsize=1)
def _colours() -> NDArray[np.uint32]:
    """Of squares of `_TEXEL` uu: rows by x for the floor, by z for the walls; columns by y. Red is the low byte."""
    at = ((np.arange(_SPAN) + 0.5) * _TEXEL - game.BACK_NET_Y).astype(np.float32)
    x, y = np.broadcast_arrays(at[:, None], at)
    wide, far, away = np.abs(x), np.abs(y), np.hypot(x, y)
    team = np.where(y[..., None] < 0, *TEAM_COLOURS)
    outside = np.maximum.reduce([wide - game.SIDE_WALL_X, far - game.BACK_WALL_Y, (wide + far - _CORNER) / 2**0.5])
    grass = np.array([52, 112, 74]) - (np.floor(y / 640) % 2)[..., None] * (6, 11, 8)
    grass = grass + 0.3 * (far / game.BACK_NET_Y)[..., None] ** 2.5 * (team - grass)
    grass = grass * (1 - 0.35 * np.clip(1 + outside / 500, 0, 1) ** 2)[..., None]
    area = np.abs(np.maximum(wide - 1700, 3700 - far))
    lines = np.minimum.reduce([far, np.abs(away - 950), away - 50, area, np.abs(outside + 70)])
    chalk = 0.72 * np.clip((24 - lines) / (2.5 * _TEXEL) + 0.5, 0, 1) * (outside < 40)
    grass += chalk[..., None] * (235 - grass)

    y, far, team = y[:1], far[:1], team[:1]
    z = (np.arange(_WALL_SPAN)[:, None, None] + 0.5) * _TEXEL
    grid = np.maximum(np.abs(y / 512 % 1 - 0.5)[..., None], np.abs(z / 512 % 1 - 0.5)) > 0.468
    glass = np.array([36, 48, 66]) + 30 * np.exp(-z / 260) + 9 * grid + 60 * np.exp(-(((z - game.CEILING_Z) / 40) ** 2))
    crowd = np.random.default_rng(0).random((_WALL_SPAN // 4, _SPAN // 4, 1)).repeat(4, 0).repeat(4, 1) ** 6
    walls = np.where(z < game.CEILING_Z + 20, glass, np.array([16, 20, 30]) + 34 * crowd)
    walls += 0.34 * (far / game.BACK_WALL_Y)[..., None] ** 3 * np.exp(-z / 1500) * (team - walls)
    found = np.zeros((_SPAN + _WALL_SPAN, _SPAN, 4), np.uint8)
    found[..., :3] = np.clip(np.concatenate((grass, walls)), 0, 255)
    return found.view(np.uint32)[..., 0]
