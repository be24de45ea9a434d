"""`fabric-rl demos`: what somebody saw and did, as a file to learn from."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape
from rich.table import Table
from rich.text import Text
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.demonstrations.convert import HumanGame, convert, converted_columns
from envs.demonstrations.file import SUFFIX, Demonstration, DemonstrationWriter, columns_of_states
from envs.demonstrations.record import (
    RecordedEnvs,
    about_observations,
    about_states,
    columns_of,
    record_states,
)
from fabric_rl.base.tables import console
from fabric_rl.commands.output import check_out, for_people, give_json, json_files
from fabric_rl.evaluation.demonstrations import name_of_env, trained_elsewhere
from fabric_rl.evaluation.play import Duel
from fabric_rl.evaluation.players import short_name
from fabric_rl.flags.messages import printable
from fabric_rl.ranks.threads import one_thread
from fabric_rl.rollouts.whole_episodes import play_episodes
from fabric_rl.runs.trained import Trained


def demos(folder: Path = Path()) -> int:
    """List the demonstrations in a folder: file, kind, players and environment.

    Args:
        folder: Folder with .frd files. Default: the current folder.
    """
    if not folder.is_dir():
        raise ValueError(f"--folder {folder}: there is no such folder")
    table = Table("file", "kind", "names", "environment")
    for file in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            about = Demonstration(file).about
            told = about["demonstration"], " against ".join(about["names"]), about.get("env", "Rocket League")
        except (OSError, ValueError) as error:
            told = "refused", str(error).removeprefix(f"{file}: "), ""
        table.add_row(*(Text(printable(each)) for each in (file.name, *told)))
    console().print(table if table.rows else f"there are no demonstrations ({SUFFIX}) in {folder}")
    return 0


def record_demos(
    player: str,
    out: Path,
    /,
    opponent: str | None = None,
    minutes: float = 10.0,
    episodes: int = 10,
    team_size: int | None = None,
    seed: int = 0,
    sample: bool = False,
    tick_skip: int | None = None,
    random_starts: float = 0.5,
    noise: float = 0.0,
    runs_dir: str = "runs",
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
        team_size: Cars per team. Default: as in the training of the first agent; 1 for bots.
        seed: Seed of the initial states, or of the environment.
        sample: Sample the actions of agents from their policies. Default: take the most probable action.
        tick_skip: Physics ticks (1/120 s) per decision. Default: as in the training of the first agent; 8 for bots.
        random_starts: Share of the episodes that start in a random state, 0 to 1 (Rocket League). Bots are
            deterministic: from the five kickoffs alone, they play the same few games again and again.
        noise: Share of the decisions that a random action replaces, from 0 to below 1 (Rocket League). The file records
            what the player would have done, so it shows how to recover from mistakes.
        runs_dir: Folder that contains all runs.
    """
    check_out([out], [SUFFIX], "OUT")
    if not 0 <= random_starts <= 1:
        raise ValueError(f"--random_starts must be between 0 and 1, got {random_starts}")
    if not 0 <= noise < 1:
        raise ValueError(f"--noise must be 0 or more, and below 1, got {noise}")
    if not 0 < minutes <= 6000:
        raise ValueError(f"--minutes must be above 0 and at most 6000, got {minutes}")
    if episodes < 1:
        raise ValueError(f"--episodes must be positive, got {episodes}")
    trained = trained_elsewhere(player, runs_dir)
    with one_thread():
        if trained is not None:
            if opponent is not None:
                raise ValueError(f"--opponent {opponent}: {player} was not trained in Rocket League; leave it out")
            if noise:
                raise ValueError(f"--noise {noise}: {player} was not trained in Rocket League; leave it out")
            found = _record_episodes(trained, out, episodes, seed, sample)
        else:
            duel = Duel.of(player, opponent or player, team_size, sample, tick_skip, runs_dir)
            found = _record_play(duel, out, minutes, seed, random_starts, noise, both=opponent is None)
    return _written(found)


def _written(found: DemonstrationWriter) -> int:
    size = found.path.stat().st_size / 1e6
    print(f"written: {found.path} ({found.episodes} episodes, {found.steps:,} steps, {size:.2f} MB)")
    return 0


def _record_play(
    duel: Duel, out: Path, minutes: float, seed: int, random_starts: float, noise: float, both: bool
) -> DemonstrationWriter:
    cars = 2 * duel.team_size
    demonstrators = range(cars if both else duel.team_size)
    about = about_states(duel.names, [0] * duel.team_size + [1] * duel.team_size, demonstrators, duel.tick_skip)
    about |= {"noise": noise} if noise else {}
    with DemonstrationWriter(out, columns_of_states(cars, noise > 0), about) as writer:
        shape = (duel.team_size, seed, duel.tick_skip, duel.action_delay_ticks)
        record_states(duel.bots(seed), writer, minutes, *shape, random_starts, noise)
    return writer


def _record_episodes(trained: Trained, out: Path, episodes: int, seed: int, sample: bool) -> DemonstrationWriter:
    envs = trained.env(seed=seed)
    try:
        spaces = envs.single_observation_space, envs.single_action_space
        about = about_observations(short_name(trained.name), name_of_env(trained.env), *spaces)
        choose = trained.choose(*spaces, not sample, seed)
        with DemonstrationWriter(out, columns_of(*spaces), about) as writer:
            play_episodes(RecordedEnvs(envs, writer, episodes), choose, episodes, seed)
    finally:
        envs.close()
    return writer


def convert_demos(
    replays: Sequence[Path], out: Path = Path("human.frd"), tick_skip: int = 8, air_weight: float = 0.5
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
    check_out([out], [SUFFIX])
    if tick_skip < 1 or not 0 <= air_weight <= 1:
        raise ValueError(f"--tick_skip must be positive and --air_weight 0..1, got {tick_skip} and {air_weight}")
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


def show_demos(file: Path, /, json: Path | None = None) -> int:
    """Show what a demonstration contains: players, episodes, steps, returns and actions.

    The command reads the whole file.

    Args:
        file: Demonstration file (.frd).
        json: .json file for the results; without a file name, they go to standard output.
    """
    files = json_files(json=json)
    found = describe(Demonstration(file))
    with for_people(files):
        table = Table(title=escape(printable(file)), show_header=False)
        for name, value in found.items():
            shown = f"{value:,.5g}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)
            table.add_row(Text(printable(name)), Text(printable(shown)))
        console().print(table)
    give_json(found, files)
    return 0


def describe(demonstration: Demonstration) -> dict[str, Any]:
    """What is in it, as numbers and texts."""
    about = {name: value for name, value in demonstration.about.items() if name != "columns"}
    steps, ends, returns, actions, weights = list[int](), 0, list[float](), list[Any](), list[Any]()
    touches = 0
    for episode in demonstration.episodes():
        steps.append(episode.steps)
        ends += episode.terminated
        if demonstration.of_states:
            cars = [int(car) for car in about["demonstrators"]]
            actions.append(episode.columns["controls"][1:, cars].reshape(-1, 8))
            weights.append(episode.columns["weight"][1:, cars].ravel())
            touched = episode.columns["cars"][:, cars, 9] > 0
            touches += int((touched[1:] & ~touched[:-1]).sum())
        else:
            actions.append(episode.columns["action"][1:])
            returns.append(float(episode.columns["reward"].sum()))
    found = about | {"episodes": len(steps), "terminated": ends, "steps": sum(steps)}
    if steps:
        found["mean_length"] = float(np.mean(steps))
        every = np.concatenate(actions).reshape(sum(map(len, actions)), -1)
        found |= {
            "action_mean": every.mean(axis=0, dtype=np.float64).round(4).tolist(),
            "action_std": every.std(axis=0, dtype=np.float64).round(4).tolist(),
        }
    if returns:
        found |= {"mean_return": float(np.mean(returns)), "least_return": min(returns), "greatest_return": max(returns)}
    if weights:
        minutes = sum(steps) * about["tick_skip"] / TICKS_PER_SECOND / 60
        found |= {"minutes": minutes, "touches_per_car_minute": touches / max(minutes * len(cars), 1e-9)}
        found["inferred_share"] = float((np.concatenate(weights) < 1).mean())
    return found
