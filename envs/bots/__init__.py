"""Scripted players: baselines for evaluation, and the cars of the reward audit.

A bot looks at the field from each car's own side, so blue and orange play alike, and says what all cars of a pool do at
once:

    pool, bot = RocketSimPool(num_arenas=4), BallChaser()
    pool.reset()
    for _ in range(900):
        pool.step(bot.actions(pool.state, pool.action_parser))
"""

from envs.bots.actions import nearest_actions as nearest_actions
from envs.bots.base import Bot as Bot
from envs.bots.base import TeamBots as TeamBots
from envs.bots.chaser import BallChaser as BallChaser
from envs.bots.farming import CircleBot as CircleBot
from envs.bots.farming import HopBot as HopBot
from envs.bots.farming import HoverBot as HoverBot
from envs.bots.policy import PolicyBot as PolicyBot
from envs.bots.shooter import KickoffThenShoot as KickoffThenShoot
from envs.bots.simple import IdleBot as IdleBot
from envs.bots.simple import RandomBot as RandomBot

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
