"""Where a ball will go that nobody touches."""

import numpy as np
from rlgym.rocket_league import common_values as game

from envs.state.layout import Bool, Float

DRAG = 0.03
"""Share of its speed that the ball loses in a second."""
RESTITUTION = 0.6
MAX_BOUNCES = 8


def height_after(height: Float, speed: Float, seconds: Float) -> Float:
    """Height of the ball's centre, uu, with bounces on the floor (restitution 0.6), at most eight of them.

    Args:
        height: uu, `[...]`.
        speed: Vertical speed, uu/s, `[...]`.
        seconds: `[...]`, 0 or more.
    """
    height, left = np.maximum(height - np.float32(game.BALL_RESTING_HEIGHT), np.float32(0)), seconds.copy()
    for _ in range(MAX_BOUNCES):
        lands = (speed + np.sqrt(speed**2 + np.float32(2 * game.GRAVITY) * height)) / np.float32(game.GRAVITY)
        bounces = lands < left
        if not bounces.any():
            break
        impact = speed - np.float32(game.GRAVITY) * lands
        left = np.where(bounces, left - lands, left)
        height, speed = np.where(bounces, np.float32(0), height), np.where(bounces, -RESTITUTION * impact, speed)
    fallen = height + speed * left - np.float32(game.GRAVITY / 2) * left**2
    above: Float = np.maximum(fallen, np.float32(0)) + np.float32(game.BALL_RESTING_HEIGHT)
    return above.astype(np.float32)


def flies_into_goal(pos: Float, vel: Float, horizon_seconds: float) -> Bool:
    """Whether a ball goes through the goal mouth at +y: gravity, drag and the floor, but no walls, no cars.

    Args:
        pos: `[..., 3]` uu.
        vel: `[..., 3]` uu/s.
        horizon_seconds: A ball that needs longer does not.

    Returns:
        `[...]` bool. The whole ball has to fit between the posts and under the bar.
    """
    way, speed = np.maximum(np.float32(game.BACK_WALL_Y) - pos[..., 1], np.float32(0)), vel[..., 1]
    slowed = 1 - np.float32(DRAG) * way / np.maximum(speed, np.float32(1))  # share of its speed left at the line
    comes = (speed > 1) & (slowed > 0)
    seconds = np.where(comes, -np.log(np.where(comes, slowed, 1)) / np.float32(DRAG), np.float32(horizon_seconds + 1))
    comes &= seconds <= horizon_seconds
    seconds = np.where(comes, seconds, np.float32(0))
    across = pos[..., 0] + vel[..., 0] * np.where(comes, way / np.maximum(speed, np.float32(1)), np.float32(0))
    between = np.abs(across) <= game.GOAL_CENTER_TO_POST - game.BALL_RADIUS
    under = height_after(pos[..., 2], vel[..., 2], seconds) <= game.GOAL_HEIGHT - game.BALL_RADIUS
    into: Bool = comes & between & under
    return into
