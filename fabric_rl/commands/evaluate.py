"""`fabric-rl evaluate`: matches between trained agents and bots."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from gymnasium import Space
from rich.table import Table

from envs.bots import BOTS, Bot
from envs.bots.policy import Choose, PolicyBot
from envs.matches.matches import Matches, play_matches, summary
from envs.matches.tape import PoolSettings
from envs.tools import LineParser, console, in_one_line


class Policy(Protocol):
    """A trained agent.

    Attributes:
        env: Builds the environment that it was trained in.
    """

    env: Callable[..., Any]

    def choose(self, observation_space: Space[Any], action_space: Space[Any], deterministic: bool) -> Choose:
        """Builds the policy for the spaces of one car."""


class LoadPolicy(Protocol):
    """Finds a trained agent."""

    def __call__(self, name: str, runs_dir: str) -> Policy:
        """The agent of a run id, a path, or a name.

        Raises:
            ValueError: There is none; one line.
        """


class _Player(NamedTuple):
    """How to build a player for a tick skip, and what it was trained with; None for a bot, which takes any."""

    build: Callable[[int], Bot]
    tick_skip: int | None = None
    action_delay_ticks: int | None = None


def main(argv: Sequence[str], load: LoadPolicy) -> int:
    """Plays the matches and prints their results.

    Args:
        argv: Flags.
        load: Finds trained agents.

    Returns:
        The exit status: 0, or 2 for wrong usage.
    """
    players = "a run id, a path (run, milestone, checkpoint, exported agent), school_1v1 (comes with fabric-rl), "
    players += f"a bot ({', '.join(BOTS)}), or a bot's class path"
    parser = LineParser(
        "fabric-rl evaluate",
        description="Matches on real physics, from kickoffs, half of them with sides changed, and their goal "
        "difference with its 95 % confidence interval. The same seed gives the same results.",
    )
    parser.add_argument("player", help=players)
    parser.add_argument("opponent", nargs="?", default="chaser", help="the same (chaser)")
    parser.add_argument("--matches", type=int, default=200, help="how many (200)")
    parser.add_argument("--minutes", type=float, default=5.0, help="game time of each match (5)")
    parser.add_argument("--team_size", "--team-size", type=int, default=1, help="cars in a team (1)")
    parser.add_argument("--seed", type=int, default=0, help="of the kickoffs (0)")
    parser.add_argument("--sample", action="store_true", help="agents draw actions instead of taking the likeliest")
    parser.add_argument("--tick_skip", "--tick-skip", type=int, help="ticks per decision (as the player was trained)")
    parser.add_argument("--runs_dir", "--runs-dir", default="runs", help="folder of the run ids (runs)")
    parser.add_argument("--out", type=Path, help=".json file for the results")
    return in_one_line(parser, lambda: _evaluate(parser.parse_args(argv), load))


def _evaluate(args: argparse.Namespace, load: LoadPolicy) -> int:
    if args.out is not None and (args.out.suffix != ".json" or not args.out.parent.is_dir()):
        raise ValueError(f"--out {args.out}: must be a .json file in a folder that exists")
    for flag in ("matches", "minutes", "team_size"):
        if not getattr(args, flag) > 0:
            raise ValueError(f"--{flag} must be positive, got {getattr(args, flag)}")
    first, second = (_player(name, args, load) for name in (args.player, args.opponent))
    tick_skip = args.tick_skip or first.tick_skip or second.tick_skip or 8
    delays = [player.action_delay_ticks for player in (first, second) if player.action_delay_ticks is not None]
    matches = play_matches(
        first.build(tick_skip),
        second.build(tick_skip),
        num_matches=args.matches,
        minutes=args.minutes,
        team_size=args.team_size,
        seed=args.seed,
        tick_skip=tick_skip,
        action_delay_ticks=delays[0] if delays else 1,
    )
    names = [_short(args.player), _short(args.opponent)]
    console().print(table(names, matches))
    mean, low, high = matches.difference()
    print(f"goal difference per match: {mean:+.2f} (95 % {low:+.2f} to {high:+.2f})")
    if args.out is not None:
        results = {"player": args.player, "opponent": args.opponent, "seed": args.seed, **summary(matches)}
        args.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
        print(f"written: {args.out}")
    return 0


def table(names: Sequence[str], matches: Matches) -> Table:
    """One row per player."""
    figures = summary(matches)
    made = Table(title=f"{figures['matches']} matches of {figures['minutes']:g} minutes, {matches.cars}v{matches.cars}")
    for header in ("player", "wins", "draws", "goals per match", "touches per car and minute"):
        made.add_column(header, justify="left" if header == "player" else "right")
    for index, (name, wins) in enumerate(zip(names, (matches.wins, matches.losses), strict=True)):
        goals, touches = figures["goals"][index], figures["touches_per_minute"][index]
        made.add_row(name, str(wins), str(matches.draws), f"{goals:.2f}", f"{touches:.2f}")
    return made


def _player(name: str, args: argparse.Namespace, load: LoadPolicy) -> _Player:
    if name in BOTS:
        return _Player(lambda _: BOTS[name]())
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
            return _Player(lambda _: made())
    try:
        trained = load(name, args.runs_dir)
    except ValueError as error:
        raise ValueError(f"{error} (bots: {', '.join(BOTS)})") from error
    settings = PoolSettings(trained.env, f"evaluate: {name}")
    pool = settings.build(num_arenas=1, team_size=args.team_size)
    try:
        choose = trained.choose(pool.single_observation_space, pool.single_action_space, not args.sample)
        obs, action, delay = pool.obs_builder, pool.action_parser, pool.action_delay_ticks
    finally:
        pool.close()
    return _Player(lambda ticks: PolicyBot(choose, obs, action, ticks, delay), settings.tick_skip, delay)


def _short(name: str) -> str:
    return Path(name).name if Path(name).exists() else name
