"""Scripted players: baselines for evaluation, and the cars of the reward audit.

A bot looks at the field from each car's own side, so blue and orange play alike, and says what all cars of a pool do at
once:

    pool, bot = RocketSimPool(num_arenas=4), BallChaser()
    pool.reset()
    for _ in range(900):
        pool.step(bot.actions(pool.state, pool.action_parser))
"""

from envs.bots.actions import nearest_actions
from envs.bots.base import Bot, TeamBots
from envs.bots.chaser import BallChaser
from envs.bots.farming import CircleBot, HopBot, HoverBot
from envs.bots.shooter import KickoffThenShoot
from envs.bots.simple import IdleBot, RandomBot

BOTS: dict[str, type[Bot]] = {
    "idle": IdleBot,
    "random": RandomBot,
    "chaser": BallChaser,
    "shooter": KickoffThenShoot,
    "circle": CircleBot,
    "hover": HoverBot,
    "hop": HopBot,
}
"""Names that the command line takes."""

__all__ = [
    "BOTS",
    "BallChaser",
    "Bot",
    "CircleBot",
    "HopBot",
    "HoverBot",
    "IdleBot",
    "KickoffThenShoot",
    "RandomBot",
    "TeamBots",
    "nearest_actions",
]
