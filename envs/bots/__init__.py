"""Scripted players: baselines for evaluation, and the cars of the reward audit.

A bot sees the field from each car's own side, so blue and orange play alike, and chooses the controls of all cars
of a pool at once:

    pool, bot = RocketSimPool(num_arenas=4), BallChaser()
    pool.reset()
    for _ in range(900):
        pool.step(bot.actions(pool.state, pool.action_parser))
"""

from envs.actions.nearest import nearest_actions as nearest_actions
from envs.bots.aerial import AerialShooter as AerialShooter
from envs.bots.scripted import BallChaser as BallChaser
from envs.bots.scripted import CircleBot as CircleBot
from envs.bots.scripted import HopBot as HopBot
from envs.bots.scripted import HoverBot as HoverBot
from envs.bots.scripted import IdleBot as IdleBot
from envs.bots.scripted import KickoffThenShoot as KickoffThenShoot
from envs.bots.scripted import RandomBot as RandomBot
from envs.pool.players import Bot as Bot
from envs.pool.players import Diagnostics as Diagnostics
from envs.pool.players import PolicyBot as PolicyBot
from envs.pool.players import TeamBots as TeamBots

BOTS: dict[str, type[Bot]] = {
    "idle": IdleBot,
    "random": RandomBot,
    "chaser": BallChaser,
    "shooter": KickoffThenShoot,
    "aerial": AerialShooter,
    "circle": CircleBot,
    "hover": HoverBot,
    "hop": HopBot,
}
"""Names that the command line accepts."""
