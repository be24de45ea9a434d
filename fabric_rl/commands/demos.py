"""`fabric-rl demos`: what somebody saw and did, as a file to learn from."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from envs.demonstrations.convert import HumanGame, convert, converted_columns
from envs.demonstrations.file import SUFFIX, Demonstration, DemonstrationWriter
from envs.demonstrations.record import about_states
from fabric_rl.base.settings import Between, Share
from fabric_rl.base.tables import table
from fabric_rl.base.text import printable
from fabric_rl.commands.output import JSON, Out, Report, writes
from fabric_rl.evaluation.demonstrations import describe, record_episodes, record_matches, trained_elsewhere
from fabric_rl.evaluation.play import Duel
from fabric_rl.evaluation.settings import DEFAULT_PLAY, PlaySettings, UpTo
from fabric_rl.ranks.devices import one_thread


def demos(folder: Path = Path()) -> Report:
    """List the demonstrations in a folder: file, kind, players and environment.

    Args:
        folder: Folder with .frd files. Default: the current folder.
    """
    if not folder.is_dir():
        raise ValueError(f"--folder {folder}: there is no such folder")
    rows = []
    for file in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            about = Demonstration(file).about
            told = about["demonstration"], " against ".join(about["names"]), about.get("env", "Rocket League")
        except (OSError, ValueError) as error:
            told = "refused", str(error).removeprefix(f"{file}: "), ""
        rows.append([printable(each) for each in (file.name, *told)])
    if not rows:
        return Report([f"there are no demonstrations ({SUFFIX}) in {folder}"])
    return Report([table("", ["file", "kind", "names", "environment"], rows)])


@writes(Out("out", [SUFFIX]))
def record_demos(
    player: str,
    out: Path,
    /,
    opponent: str | None = None,
    minutes: Annotated[float, Between(0, 6000, above=True)] = 10.0,
    episodes: UpTo = 10,
    play: PlaySettings = DEFAULT_PLAY,
    random_starts: Share = 0.5,
    noise: Annotated[float, Between(0, 1, below=True)] = 0.0,
) -> int:
    """Record what a player sees and does as a demonstration (.frd).

    In Rocket League, it records `--minutes` of game time. Each episode starts at a kickoff or in a random state and
    ends with a goal or after a minute. The file contains game states, so an agent with any observations and actions can
    learn from it. In a Gymnasium environment, it records `--episodes` with unchanged observations.

    Args:
        player: Agent or bot, as in `fabric-rl evaluate`.
        out: Output file, .frd; it appears when the recording is complete.
        opponent: Player of the orange team, not recorded as a demonstrator. Default: the player plays both teams, and
            both are recorded.
        minutes: Game time in minutes (Rocket League), above 0 and at most 6000.
        episodes: Number of episodes (other environments).
        play: How it plays; the seed is that of the initial states, or of the environment.
        random_starts: Share of the episodes that start in a random state, 0 to 1 (Rocket League). Bots are
            deterministic: from the five kickoffs alone, they play the same few games again and again.
        noise: Share of the decisions that a random action replaces, from 0 to below 1 (Rocket League). The file records
            what the player would have done, so it shows how to recover from mistakes.
    """
    trained = trained_elsewhere(player, play.runs_dir)
    with one_thread():
        if trained is None:
            duel = Duel.of(player, opponent or player, play)
            return _written(record_matches(duel, out, minutes, random_starts, noise, both=opponent is None))
        for flag, value in (("opponent", opponent), ("noise", noise or None)):
            if value is not None:
                raise ValueError(f"--{flag} {value}: {player} was not trained in Rocket League; leave it out")
        return _written(record_episodes(trained, out, episodes, play))


def _written(found: DemonstrationWriter) -> int:
    size = found.path.stat().st_size / 1e6
    print(f"written: {found.path} ({found.episodes} episodes, {found.steps:,} steps, {size:.2f} MB)")
    return 0


@writes(Out("out", [SUFFIX]))
def convert_demos(
    replays: Sequence[Path], out: Path = Path("human.frd"), tick_skip: UpTo = 8, air_weight: Share = 0.5
) -> int:
    """Convert replays of human games (`.replay` files of Rocket League) to a demonstration; needs rlgym-tools.

    Replays that cannot be parsed, or whose team sizes differ from the first one, are skipped with a message on standard
    error. The weight of each step depends on the data in the replay: see docs/demonstrations.md.

    Args:
        replays: Replay files.
        out: Output file, .frd.
        tick_skip: Physics ticks (1/120 s) between frames; must match the environment that will learn from the file.
        air_weight: Weight of steps in the air, 0 to 1; their pitch, yaw and roll are inferred.
    """
    games: list[HumanGame] = []
    for path in replays:
        try:
            games.append(convert(path, tick_skip, air_weight))
            if games[-1].teams != games[0].teams:
                raise ValueError(f"{path}: other team sizes than the first; convert it on its own")
        except ValueError as error:
            games = [game for game in games if game.teams == games[0].teams]
            print(f"left out: {error}", file=sys.stderr)
    if not games:
        raise ValueError(f"{replays[0]}: no replay could be converted, see above")
    cars = len(games[0].teams)
    names = [" and ".join(sorted({name for game in games for name in game.names}))]
    about = about_states(names, games[0].teams, range(cars), tick_skip)
    with DemonstrationWriter(out, converted_columns(cars), about) as writer:
        for game in games:
            for frames, terminated in game.episodes:
                writer.add(frames, {"terminated": terminated, "names": game.names})
    return _written(writer)


@writes(JSON)
def show_demos(file: Path, /) -> Report:
    """Show what a demonstration contains: players, episodes, steps, returns and actions.

    The command reads the whole file.

    Args:
        file: Demonstration file (.frd).
    """
    found = describe(Demonstration(file))
    made = Table(title=escape(printable(file)), show_header=False)
    for name, value in found.items():
        shown = f"{value:,.5g}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)
        made.add_row(Text(printable(name)), Text(printable(shown)))
    return Report([made], found)
