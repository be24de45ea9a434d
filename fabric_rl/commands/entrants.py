"""Who plays in matches: trained agents and bots by their names, and what both sides play by."""

import copy
import inspect
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from agents import RolesAgent
from envs.bots import BOTS, Bot
from envs.bots.policy import Diagnostics, PolicyBot
from envs.matches.matches import Player, PoolFactory
from envs.obs.combinators import RoleObs
from envs.pool.rocket_pool import RocketSimPool
from envs.pool.settings import layout_in_numbers
from fabric_rl.base.text import did_you_mean
from fabric_rl.runs.exported import ExportedAgent
from fabric_rl.runs.resume import locate
from fabric_rl.runs.trained import Trained, load_trained, policy
from fabric_rl.types import CheckpointError

_MOST = 100_000


class Entrant(NamedTuple):
    """Who plays: how to build it for a team size and a tick skip, and what it was trained in; None for a bot."""

    build: Callable[[int | tuple[int, int], int], Player]
    recipe: PoolFactory | None = None
    who: object = None
    """Equal for two names of the same: the class of a bot, the file of an agent's weights and its role."""


class Rules(NamedTuple):
    """What all players play by: minutes of a match, cars in a team, ticks; whether agents sample their actions."""

    minutes: float
    team_size: int
    tick_skip: int
    action_delay_ticks: int
    sample: bool
    runs_dir: str
    remarks: tuple[str, ...]
    """How agents act, for titles."""

    @classmethod
    def of(
        cls,
        entrants: Sequence[Entrant],
        minutes: float | None,
        team_size: int | None,
        tick_skip: int | None,
        sample: bool,
        runs_dir: str,
    ) -> "Rules":
        """What is None is as the first agent among the players was trained."""
        check_positive(minutes=minutes, team_size=team_size, tick_skip=tick_skip)
        recipes = [each.recipe for each in entrants if each.recipe]
        first = recipes[0] if recipes else PoolFactory(RocketSimPool)
        size, skip = team_size or max(max(sizes) for sizes in first.team_sizes), tick_skip or first.tick_skip
        how = (
            ("agents sample their actions" if sample else "agents take their most probable actions",) if recipes else ()
        )
        return cls(minutes or 5.0, size, skip, first.action_delay_ticks, sample, runs_dir, how)


def check_positive(**flags: float | None) -> None:
    """A ValueError that names the first flag which is given and not positive, or more than anybody could wait for."""
    for flag, number in flags.items():
        if number is not None and not number > 0:
            raise ValueError(f"--{flag} must be positive, got {number}")
        if number is not None and number > _MOST:
            raise ValueError(f"--{flag} must be at most {_MOST:,}, got {number}")


def check_confidence(confidence: float) -> None:
    """A ValueError if it is not between 0 and 1, or so close to 1 that it would be told as 100 %."""
    if not 0 < confidence <= 0.999999:
        raise ValueError(f"--confidence must be above 0 and at most 0.999999, got {confidence}")


def entrant(name: str, sample: bool, runs_dir: str, explain: bool = False) -> Entrant:
    """Who plays under a name, see `evaluate`; bots of one's own with an argument `seed` are given one.

    `NAME#ROLE` is one role of an `agents.RolesAgent`, whatever car it plays.

    Args:
        name: The name.
        sample: Agents draw actions instead of taking the likeliest.
        runs_dir: Folder of the run ids.
        explain: Agents have `envs.bots.base.Thoughts`.

    Raises:
        ValueError: Nobody does.
    """
    if name in BOTS:
        if (run := Path(runs_dir, name)).is_dir():
            raise ValueError(f"{name}: a bot and a run have this name; say {run} for the run, or rename that folder")
        return _scripted(BOTS[name])
    path, role = name_and_role(name, runs_dir)
    module, _, attribute = name.rpartition(".")
    if module.strip(".") and not role and not _is_there(name, runs_dir) and Path(name).name == name:
        here = str(Path.cwd())
        if here not in sys.path:
            sys.path.append(here)
        if (found := _module(module, name)) is not None:
            return _scripted(_bot(found, attribute, name))
    locate("agent", runs_dir, path, list(BOTS))
    trained = load_trained(path, runs_dir)
    try:
        recipe = PoolFactory(trained.env, "a match")
    except TypeError as error:
        raise ValueError(f"{name} does not play Rocket League ({error})") from error
    build = partial(_agent, trained, recipe, sample=sample, explain=explain, role=role)
    return Entrant(build, recipe, (trained.path.resolve(), role))


def _module(module: str, name: str) -> ModuleType | None:
    """The module; None where there is none.

    Raises:
        ValueError: There is one, but not all that it imports, or it is no text.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if f"{module}.".startswith(f"{error.name}."):
            return None
        package = (error.name or "").partition(".")[0]
        if package and package not in sys.modules and find_spec(package) is None:
            raise ValueError(f"{name} needs the package {package}, which is not installed") from error
        raise ValueError(f"{name}: {error}") from error
    except ImportError as error:
        raise ValueError(f"{name}: {str(error) or 'ImportError'}") from error
    except (SyntaxError, ValueError) as error:  # null bytes: the latter in Python 3.10
        if getattr(error, "filename", None):
            raise
        raise ValueError(f"{name}: {error}") from error


def _bot(module: ModuleType, attribute: str, name: str) -> type[Bot]:
    """The class of a bot.

    Raises:
        ValueError: The module has none of that name.
    """
    made = getattr(module, attribute, None)
    if made is None:
        file = getattr(module, "__file__", None) or "the folder of that name"
        bots = [each for each, kind in vars(module).items() if isinstance(kind, type) and issubclass(kind, Bot)]
        raise ValueError(f"{name}: no such run, and {file} has no {attribute}{did_you_mean(attribute, bots)}")
    if not (isinstance(made, type) and issubclass(made, Bot)):
        raise ValueError(f"{name}: is no envs.bots.Bot")
    return made


def name_and_role(name: str, runs_dir: str | Path) -> tuple[str, str]:
    """`NAME#ROLE` taken apart; the role is empty where none is asked for."""
    path, _, role = (name, "", "") if _is_there(name, runs_dir) else name.partition("#")
    return path, role


def _is_there(name: str, runs_dir: str | Path) -> bool:
    return Path(name).exists() or Path(runs_dir, name).exists()


def _scripted(kind: type[Bot]) -> Entrant:
    """A bot that takes any settings, and a seed if it has an argument of that name."""
    seeded = "seed" in inspect.signature(kind).parameters
    make: Callable[..., Bot] = kind
    return Entrant(lambda *_: lambda seed: make(seed=seed) if seeded else make(), who=kind)


def _agent(
    trained: Trained,
    recipe: PoolFactory,
    team_size: int | tuple[int, int],
    tick_skip: int,
    sample: bool,
    explain: bool,
    role: str,
) -> Player:
    pool = recipe.build(num_arenas=1, team_size=team_size)
    try:
        try:
            agent = trained.agent(pool.single_observation_space, pool.single_action_space)
        except CheckpointError as error:
            asked = (team_size, team_size) if isinstance(team_size, int) else team_size
            if asked in recipe.team_sizes:
                raise
            sizes = " and ".join(f"{blue}v{orange}" for blue, orange in recipe.team_sizes)
            choose = f"; choose --team_size {max(recipe.team_sizes[0])}"
            raise ValueError(f"{trained.name} was trained for {sizes}, not {asked[0]}v{asked[1]}{choose}") from error
        parts = pool.obs_builder, pool.action_parser
        if isinstance(agent, ExportedAgent):
            agent.check_layout(layout_in_numbers(*parts, pool.state.num_blue, pool.state.num_orange))
    finally:
        pool.close()
    if role:
        roles = list(agent.roles) if isinstance(agent, RolesAgent) else []
        if role not in roles or not isinstance(pool.obs_builder, RoleObs):
            known = f"its roles are {', '.join(roles)}" if roles else "it has no roles"
            raise ValueError(f"{trained.name}#{role}: {known}")
        pool.obs_builder.only = roles.index(role)

    def player(seed: int) -> Bot:
        obs, action = copy.deepcopy(parts)
        mind = Diagnostics() if explain else None
        choose = policy(agent, not sample, seed, None if mind is None else mind.tell)
        return PolicyBot(choose, obs, action, tick_skip, recipe.action_delay_ticks, mind)

    return player


def short_name(name: str) -> str:
    """What tables call a player."""
    return Path(name).name if Path(name).exists() else name
