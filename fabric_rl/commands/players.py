"""Who plays in a command: names on the command line, and the bots that they stand for."""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from envs.bots import BOTS, Bot
from envs.bots.policy import Mind, PolicyBot
from envs.matches.recipe import PoolRecipe
from fabric_rl.runs.trained import load_trained


class Player(NamedTuple):
    """How to build a player for a tick skip, and what it was trained with; None for a bot, which takes any."""

    build: Callable[[int], Bot]
    tick_skip: int | None = None
    action_delay_ticks: int | None = None
    recipe: PoolRecipe | None = None


def player_of(name: str, team_size: int, sample: bool, runs_dir: str, explain: bool = False) -> Player:
    """The player of that name.

    Args:
        name: A run id, a path, an agent that comes with fabric-rl, a bot of `BOTS`, or a bot's class path.
        team_size: Cars in its team.
        sample: An agent draws actions instead of taking the likeliest.
        runs_dir: Folder of the run ids.
        explain: An agent also works out what it thinks, see `envs.bots.base.Thoughts`.

    Raises:
        ValueError: There is none of that name.
    """
    if name in BOTS:
        return Player(lambda _: BOTS[name]())
    module, _, attribute = name.rpartition(".")
    if module and not Path(name).exists() and Path(name).name == name:
        here = str(Path.cwd())
        if here not in sys.path:
            sys.path.append(here)
        try:
            made = getattr(import_module(module), attribute)
        except (ImportError, AttributeError):
            made = None
        if made is not None:
            if not (isinstance(made, type) and issubclass(made, Bot)):
                raise ValueError(f"{name}: is no envs.bots.Bot")
            return Player(lambda _: made())
    try:
        trained = load_trained(name, runs_dir)
    except ValueError as error:
        raise ValueError(f"{error} (bots: {', '.join(BOTS)})") from error
    recipe = PoolRecipe(trained.env, name)
    if recipe.phases:
        recipe = PoolRecipe(trained.env, name, recipe.phases[-1])
    pool = recipe.build(num_arenas=1, team_size=team_size)
    mind = Mind() if explain else None
    try:
        spaces = pool.single_observation_space, pool.single_action_space
        choose = trained.choose(*spaces, not sample, None if mind is None else mind.tell)
        obs, action, delay = pool.obs_builder, pool.action_parser, pool.action_delay_ticks
    finally:
        pool.close()
    return Player(lambda ticks: PolicyBot(choose, obs, action, ticks, delay, mind), recipe.tick_skip, delay, recipe)


def short_name(name: str) -> str:
    """What tables call a player."""
    return Path(name).name if Path(name).exists() else name
