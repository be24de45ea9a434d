"""Players by name: trained agents and bots, the settings of a match between them, and guests of self-play."""

import copy
import inspect
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, TypeVar

from agents import RolesAgent
from envs.bots import BOTS, Bot, Diagnostics, PolicyBot
from envs.demonstrations import file as demonstrations
from envs.matches.matches import Player, PoolFactory
from envs.obs.combinators import RoleObs
from envs.pool import replay_format
from envs.pool.rocket_pool import RocketSimPool
from envs.pool.settings import layout_as_json
from fabric_rl.base.seeding import stream_seed
from fabric_rl.base.text import did_you_mean
from fabric_rl.evaluation.settings import ActSettings, PlaySettings
from fabric_rl.runs.start_or_resume import resolve_checkpoint_path
from fabric_rl.runs.trained import ExportedAgent, Trained, load_trained, policy
from fabric_rl.types import CheckpointError, EnvFactory

Base = TypeVar("Base")
_RECORDINGS = {demonstrations.SUFFIX: "a demonstration", replay_format.SUFFIX: "a replay"}


class PlayerSpec(NamedTuple):
    """Player that can be built for a match."""

    build: Callable[[int | tuple[int, int], int], Player]
    """Builds the player for a team size (one number, or blue and orange) and a tick skip."""
    trained_in: PoolFactory | None = None
    """Environment that the agent was trained in; None for a bot."""
    identity: object = None
    """Equal for two names of one player: the class of a bot, or the file of an agent's weights and its role."""
    name: str = ""
    """Name of the agent's run or file; empty for a bot."""


class MatchSettings(NamedTuple):
    """Settings of a match that its players share."""

    play: PlaySettings
    """Settings of the command, with the team size and tick skip of the match."""
    team_size: int
    tick_skip: int
    action_delay_ticks: int
    minutes: float
    remarks: tuple[str, ...]
    """Notes for titles: how agents act, and which ones were trained with another tick skip or action delay."""

    @classmethod
    def of(cls, entrants: Sequence[PlayerSpec], play: PlaySettings, minutes: float | None = None) -> "MatchSettings":
        """Return the settings of a match, with missing ones from the training of the first agent among the players."""
        agents = [(each.name, each.trained_in) for each in entrants if each.trained_in]
        first = agents[0][1] if agents else PoolFactory(RocketSimPool)
        size = play.team_size or max(max(sizes) for sizes in first.team_sizes)
        skip = play.tick_skip or first.tick_skip
        delay = first.action_delay_ticks
        remarks = ["agents sample their actions" if play.sample else "agents take their most probable actions"]
        for agent, recipe in agents:
            pairs = (("tick_skip", recipe.tick_skip, skip), ("action_delay_ticks", recipe.action_delay_ticks, delay))
            for name, own, now in pairs:
                if own != now:
                    remarks.append(f"{agent} was trained with {name} {own}, but plays here with {now}")
        told = tuple(dict.fromkeys(remarks)) if agents else ()  # an agent may play itself
        play = replace(play, team_size=size, tick_skip=skip)
        return cls(play, size, skip, delay, minutes or 5.0, told)


def load_player(
    name: str, sample: bool, runs_dir: str, trust_torchscript: bool = False, explain: bool = False
) -> PlayerSpec:
    """Find a player by its name.

    Args:
        name: Name as in `fabric-rl evaluate`. `NAME#ROLE` is one role of an `agents.RolesAgent`, for any car.
        sample: Let agents sample their actions instead of taking the most probable ones.
        runs_dir: Folder that contains all runs.
        trust_torchscript: As in `fabric_rl.load_trained`.
        explain: Let agents keep `envs.bots.Diagnostics` for replays.

    Raises:
        ValueError: There is no such player, or it does not play Rocket League.
    """
    if name in BOTS:
        if (run := Path(runs_dir, name)).is_dir():
            raise ValueError(f"{name} is the name of both a bot and a run; use {run} for the run, or rename its folder")
        return _scripted(BOTS[name])
    path, role = split_role(name, runs_dir)
    is_path = role or _is_there(name, runs_dir) or Path(name).name != name
    if not is_path and (bot := find_class(name, Bot)) is not None:  # type: ignore[type-abstract]
        return _scripted(bot)
    if (kind := _RECORDINGS.get(Path(path).suffix)) and Path(path).is_file():
        raise ValueError(f"{name} is {kind}, not a player")
    resolve_checkpoint_path("agent", runs_dir, path, list(BOTS))
    return trained_player(load_trained(path, runs_dir, trust_torchscript=trust_torchscript), sample, explain, role)


def trained_player(trained: Trained, sample: bool, explain: bool, role: str = "") -> PlayerSpec:
    """Return a trained agent as a player; raise a ValueError if it does not play Rocket League."""
    try:
        recipe = PoolFactory(trained.env, "a match")
    except TypeError as error:
        raise ValueError(f"{trained.name} does not play Rocket League ({error})") from error
    build = partial(_agent, trained, recipe, sample=sample, explain=explain, role=role)
    return PlayerSpec(build, recipe, (trained.path.resolve(), role), trained.name)


def find_class(name: str, base: type[Base]) -> type[Base] | None:
    """Return a subclass of `base` by its class path, or None if there is no such module."""
    module, _, attribute = name.rpartition(".")
    if not module.strip("."):
        return None
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)
    try:
        found = import_module(module)
    except (ImportError, SyntaxError, ValueError) as error:  # null bytes raise a ValueError in Python 3.10
        if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
            return None
        if isinstance(error, SyntaxError) and error.filename:
            raise
        raise ValueError(f"{name}: {str(error) or 'ImportError'}") from error
    made = getattr(found, attribute, None)
    if made is None:
        file = getattr(found, "__file__", None) or "the folder of that name"
        others = [each for each, kind in vars(found).items() if isinstance(kind, type) and issubclass(kind, base)]
        no_run = "no such run, and " if base is Bot else ""
        raise ValueError(f"{name}: {no_run}{file} has no {attribute}{did_you_mean(attribute, others)}")
    if not (isinstance(made, type) and issubclass(made, base)):
        raise ValueError(f"{name} is not a subclass of {base.__name__}")
    return made


def split_role(name: str, runs_dir: str | Path) -> tuple[str, str]:
    """Split `NAME#ROLE`; the role is empty if there is none."""
    path, _, role = (name, "", "") if _is_there(name, runs_dir) else name.partition("#")
    return path, role


def _is_there(name: str, runs_dir: str | Path) -> bool:
    return Path(name).exists() or Path(runs_dir, name).exists()


def _scripted(kind: type[Bot]) -> PlayerSpec:
    seeded = "seed" in inspect.signature(kind).parameters
    make: Callable[..., Bot] = kind
    return PlayerSpec(lambda *_: lambda seed: make(seed=seed) if seeded else make(), identity=kind)


def _agent(
    trained: Trained,
    recipe: PoolFactory,
    team_size: int | tuple[int, int],
    tick_skip: int,
    sample: bool,
    explain: bool,
    role: str,
) -> Player:
    with closing(recipe.build(num_arenas=1, team_size=team_size)) as pool:
        try:
            agent = trained.agent(pool.single_observation_space, pool.single_action_space)
        except CheckpointError as error:
            asked = (team_size, team_size) if isinstance(team_size, int) else team_size
            if asked in (playable := recipe.playable_sizes()):
                raise
            sizes = " and ".join(f"{blue}v{orange}" for blue, orange in recipe.team_sizes)
            reason = f"was trained for {sizes}, not {asked[0]}v{asked[1]}"
            if asked in recipe.team_sizes:
                reason = f"was trained for {sizes} without zero_padding, so it cannot play {asked[0]}v{asked[1]} here"
            choose = f"choose --team_size {max((playable or recipe.team_sizes)[0])}"
            if not isinstance(team_size, int):
                choose = "choose players that were trained for the same team size"
            raise ValueError(f"{trained.name} {reason}; {choose}") from error
        parts = pool.obs_builder, pool.action_parser
        if isinstance(agent, ExportedAgent):
            agent.check_layout(layout_as_json(*parts, pool.state.num_blue, pool.state.num_orange))
    if role:
        roles = list(agent.roles) if isinstance(agent, RolesAgent) else []
        if role not in roles or not isinstance(pool.obs_builder, RoleObs):
            known = f"the agent's roles are {', '.join(roles)}" if roles else "the agent has no roles"
            raise ValueError(f"{trained.name}#{role}: {known}")
        pool.obs_builder.only = roles.index(role)

    def player(seed: int) -> Bot:
        obs, action = copy.deepcopy(parts)
        mind = Diagnostics() if explain else None
        choose = policy(agent, not sample, seed, None if mind is None else mind.tell)
        return PolicyBot(choose, obs, action, tick_skip, recipe.action_delay_ticks, mind)

    return player


def short_name(name: str) -> str:
    """Return the name that tables show for a player."""
    return Path(name).name if Path(name).exists() else name


def short_names(names: Sequence[str]) -> list[str]:
    """Return the names that tables show for players; the given names where two would be alike."""
    short = [short_name(name) for name in names]
    return [label if short.count(label) == 1 else name for label, name in zip(short, names, strict=True)]


def load_if_not_rocket_league(name: str, act: ActSettings) -> Trained | None:
    """Return the agent of that name if it was trained in an environment other than a `RocketSimPool`."""
    if name in BOTS:
        return None
    try:
        trained = load_trained(name, act.runs_dir, trust_torchscript=act.trust_torchscript)
    except ValueError:
        return None  # a bot's class, or an error that `load_player` will raise
    return trained if pool_factory_or_none(trained.env) is None else None


def pool_factory_or_none(env: EnvFactory) -> PoolFactory | None:
    """Return the settings of a `RocketSimPool`, or None for another environment."""
    try:
        return PoolFactory(env)
    except TypeError:
        return None


def load_guests(
    names: Sequence[str], env: EnvFactory, runs_dir: str, seed: int, rank: int = 0, run: Path | None = None
) -> list[Bot]:
    """Load players as opponents for self-play; agents sample their actions.

    Args:
        names: Names as in `load_player`.
        env: Builds the pool of the training.
        runs_dir: Folder that contains all runs.
        seed: `--seed` of the run.
        rank: The rank that they play on; their actions differ between ranks.
        run: Folder of the run that trains, which cannot be a guest.

    Raises:
        ValueError: A player does not exist or cannot play in the pool, or is named twice.
    """
    if not names:
        return []
    found, named, seen = [], "", dict[object, str]()
    try:
        recipe = PoolFactory(env, "it")
        cars = max(max(sizes) for sizes in recipe.team_sizes)
        for number, name in enumerate(names):
            named = f"{name!r}: "
            if run is not None and run.resolve() in (Path(runs_dir, name).resolve(), Path(name).resolve()):
                raise ValueError("this is the run itself; export its agent with fabric-rl export, and name that folder")
            guest = load_player(name, sample=True, runs_dir=runs_dir)
            if seen.setdefault(guest.identity, name) != name:
                raise ValueError(f"the same player as {seen[guest.identity]!r}")
            own_seed = stream_seed(seed, "guests", rank * len(names) + number)
            found.append(guest.build(cars, recipe.tick_skip)(own_seed))
    except (TypeError, ValueError) as error:
        raise ValueError(f"--self_play.guests: {named}{error}") from error
    return found
