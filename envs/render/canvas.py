"""Canvas: a picture, where it is taken from, and shapes with smooth edges on it."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.floating[Any]]
NEAR = 60.0
"""uu: nothing closer to the camera is drawn."""
_DIGITS = (31599, 11415, 29671, 29647, 23497, 31183, 31215, 29257, 31727, 31695, 1040)
"""0 to 9 and a colon: three columns by five rows, 15 bits, the first dot highest."""


class Canvas:
    """A picture of a camera that never tilts sideways.

    Attributes:
        pixels: `[H, W, 3]` uint8.
        position: `[3]` uu, of the camera.
        axes: `[3, 3]` unit vectors to the right and up on the picture, and forward into it.
        focal: Pixels of what is as large as it is far away.
    """

    def __init__(self, position: Vector, target: Vector, size: tuple[int, int], view_degrees: float = 64.0) -> None:
        """A black picture, `target` in its middle; `view_degrees` from its left to its right."""
        forward = (target - position) / np.linalg.norm(target - position)
        right = np.array([-forward[1], forward[0], 0]) / math.hypot(forward[0], forward[1])
        self.pixels = np.zeros((size[1], size[0], 3), np.uint8)
        self.position, self.axes = position, np.stack((right, np.cross(forward, right), forward))
        self.focal = size[0] / 2 / math.tan(math.radians(view_degrees / 2))

    def project(self, points: ArrayLike) -> tuple[Vector, Vector]:
        """Where `points [..., 3]` are: pixels `[..., 2]` from the upper left corner, and depths `[...]` in uu."""
        seen = (np.asarray(points) - self.position) @ self.axes.T
        depth: Vector = np.where(np.abs(seen[..., 2]) < 1, 1, seen[..., 2])
        height, width = self.pixels.shape[:2]
        return seen[..., :2] * (self.focal / depth)[..., None] * (1, -1) + (width / 2, height / 2), depth

    def polygon(self, points: Vector, colour: ArrayLike, opacity: float = 1.0, grow: float = 0.5) -> None:
        """Fills a convex polygon `[n, 2]` of pixels; `grow` above 0.5 hides the seams between neighbours."""
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
        """Fills an ellipse with half axes of `half` pixels; shaded as a `ball` that is lit from above."""
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
        """Writes digits and colons in white, each `3 * dot` pixels wide, around the column `middle`."""
        left = middle - (4 * len(text) - 1) * dot // 2
        for letter in text:
            number = 10 if letter == ":" else int(letter)
            dots = np.array([_DIGITS[number] >> (14 - bit) & 1 for bit in range(15)], bool).reshape(5, 3)
            dots = dots.repeat(dot, axis=0).repeat(dot, axis=1)
            self.pixels[top : top + 5 * dot, left : left + 3 * dot][dots] = 255
            left += 4 * dot

    def _window(self, low: Vector, high: Vector) -> tuple[Vector, Vector, NDArray[np.uint8]]:
        """The centres of the columns and of the rows there, and their pixels; empty off the picture."""
        height, width = self.pixels.shape[:2]
        x0, x1 = (min(max(int(at), 0), width) for at in (low[0] - 1, high[0] + 2))
        y0, y1 = (min(max(int(at), 0), height) for at in (low[1] - 1, high[1] + 2))
        x, y = np.arange(x0, x1, dtype=np.float32), np.arange(y0, y1, dtype=np.float32)
        return x + np.float32(0.5), y + np.float32(0.5), self.pixels[y0:y1, x0:x1]


def _blend(part: NDArray[np.uint8], cover: Vector, colour: ArrayLike, opacity: float) -> None:
    share = np.clip(cover, 0, 1)[..., None] * np.float32(opacity)
    part[...] = part + share * (np.minimum(colour, np.float32(255)) - part) + np.float32(0.5)
