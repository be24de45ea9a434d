"""`fabric-rl demos` and `clone`: demonstrations of agents, bots and people, and an agent that imitates them."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Annotated

import torch
import yaml
from rich.markup import escape
from rich.table import Table

from agents import PPOLightningAgent
from envs import GymnasiumEnvs, RocketSimPool
from envs.demonstrations.convert import HumanGame, convert, converted_columns
from envs.demonstrations.file import SUFFIX, Demonstration, DemonstrationWriter
from envs.demonstrations.record import states_header
from envs.factories import to_config
from fabric_rl.base.argv import DEFAULT_CONFIG
from fabric_rl.base.files import write_text
from fabric_rl.base.settings import Between, Share
from fabric_rl.base.tables import cell, table
from fabric_rl.base.text import escape_control_characters
from fabric_rl.commands.output import JSON, Out, Report, print_all, writes
from fabric_rl.evaluation.demonstrations import demonstration_summary, record_episodes, record_matches, trajectories_of
from fabric_rl.evaluation.matches import Duel
from fabric_rl.evaluation.players import load_if_not_rocket_league
from fabric_rl.evaluation.settings import DEFAULT_PLAY, PlaySettings, UpTo
from fabric_rl.imitation.cloning import CloneArgs, pretrain
from fabric_rl.metrics.metrics_csv import csv_text
from fabric_rl.ranks.devices import single_thread
from fabric_rl.runs import checkpoint
from fabric_rl.runs.folder import Run
from fabric_rl.runs.provenance import EXPORTED
from fabric_rl.types import ActorCritic, AgentFactory, EnvFactory

_CLONE_ARGS = CloneArgs()


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
        rows.append([file.name, *told])
    if not rows:
        return Report([f"there are no demonstrations ({SUFFIX}) in {folder}"])
    return Report([table("", ["file", "kind", "names", "environment"], rows)])


@writes(Out("out", [SUFFIX]))
def record_demos(
    player: str,
    out: Path,
    /,
    opponent: str | None = None,
    minutes: Annotated[float, Between(0, 6000, above=True)] | None = None,
    episodes: UpTo | None = None,
    play: PlaySettings = DEFAULT_PLAY,
    random_starts: Share | None = None,
    noise: Annotated[float, Between(0, 1, below=True)] | None = None,
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
        minutes: Game time in minutes (Rocket League), above 0 and at most 6000. Default: 10.
        episodes: Number of episodes (other environments). Default: 10.
        play: How the player acts; its seed also determines the initial states, or is passed to the environment.
        random_starts: Share of the episodes that start in a random state, 0 to 1 (Rocket League). Bots are
            deterministic: from the five kickoffs alone, they play the same few games again and again. Default: 0.5.
        noise: Share of the decisions that a random action replaces, from 0 to below 1 (Rocket League). The file records
            what the player would have done, so it shows how to recover from mistakes. Default: 0.
    """
    trained = load_if_not_rocket_league(player, play)
    if trained is None and episodes is not None:
        raise ValueError(f"--episodes {episodes} does not apply to Rocket League; use --minutes")
    settings = {"minutes": minutes, "random_starts": random_starts, "noise": noise}
    given = {flag: value for flag, value in settings.items() if value is not None}
    with single_thread():
        if trained is None:
            return _written(record_matches(Duel.of(player, opponent or player, play), out, opponent is None, **given))
        for flag, value in ({"opponent": opponent} if opponent else given).items():
            raise ValueError(
                f"--{flag} {value} only applies to Rocket League, but {player} was not trained in it; omit --{flag}"
            )
        return _written(record_episodes(trained, out, episodes or 10, play))


def _written(found: DemonstrationWriter) -> int:
    size = found.path.stat().st_size / 1e6
    print_all([f"written: {found.path} ({found.episodes} episodes, {found.steps:,} steps, {size:.2f} MB)"])
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
                raise ValueError(f"{path} has other team sizes than the first replay; convert it separately")
        except ValueError as error:
            games = [game for game in games if game.teams == games[0].teams]
            print(f"skipped: {escape_control_characters(error)}", file=sys.stderr)
    if not games:
        raise ValueError(f"{replays[0]}: no replay could be converted (see above)")
    cars = len(games[0].teams)
    names = [" and ".join(sorted({name for game in games for name in game.names}))]
    about = states_header(names, games[0].teams, range(cars), tick_skip)
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
    found = demonstration_summary(Demonstration(file))
    made = Table(title=escape(escape_control_characters(file)), show_header=False)
    for name, value in found.items():
        shown = f"{value:,.5g}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)
        made.add_row(cell(name), cell(shown))
    return Report([made], found)


def preset(words: Sequence[str]) -> str | None:
    """Return the preset for cloning a Rocket League demonstration, or None for other demonstrations."""
    files = [Path(word) for word in words if word.endswith(SUFFIX) and Path(word).is_file()]
    return str(DEFAULT_CONFIG) if files and Demonstration(files[0]).of_states else None


def clone(
    demos: Sequence[Path],
    env: EnvFactory | None = None,
    agent: AgentFactory = PPOLightningAgent,
    args: CloneArgs = _CLONE_ARGS,
    soft_labels: bool = False,
    run_id: str | None = None,
    runs_dir: str = "runs",
) -> int:
    """Train an agent to imitate demonstrations, without playing; on one CPU thread.

    Some episodes are held back for validation; training stops when the loss on them no longer improves. The result is a
    run folder. Play with it (`fabric-rl evaluate RUN chaser`), watch it, or train it further (`--config RUN/config.yaml
    --initialize_from RUN`).

    Args:
        demos: Demonstration files (.frd) from `fabric-rl demos` or `search`.
        env: Environment that the agent is for. Default: the one in configs/rocket_1v1.yaml, as in training, or the
            Gymnasium id that the demonstrations name.
        agent: Agent class with its settings: a PPO agent or SAC. Default: the one in the same preset.
        args: How it learns.
        soft_labels: Controls between two rows of an action table count for both rows. Default: only for the nearest
            row.
        run_id: Name of the run and its folder. Default: date and time.
        runs_dir: Folder that contains all runs.
    """
    first = Demonstration(demos[0])
    if env is None:
        env = RocketSimPool if first.of_states else partial(GymnasiumEnvs, str(first.about.get("env")))
    found = trajectories_of(demos, env, "DEMOS", soft_labels)
    envs = env(seed=args.seed)
    spaces = envs.single_observation_space, envs.single_action_space
    envs.close()
    torch.manual_seed(args.seed)
    with single_thread():
        module = agent(*spaces)
        if not isinstance(module, ActorCritic):
            raise TypeError(f"--agent {type(module).__name__} is not a fabric_rl.ActorCritic")
        settings = {"env": to_config(env), "agent": to_config(agent)}
        run = Run.create(runs_dir, run_id, config=yaml.safe_dump(settings, sort_keys=False))
        try:
            rows = pretrain(module, found, args, _tell)
            write_text(run.dir / "clone.csv", csv_text(list(rows[0]), rows))
            checkpoint.write(run.dir / EXPORTED, {"agent": module.state_dict()})
        except BaseException:
            run.discard_if_empty()
            raise
        finally:
            run.release()
    losses = [row["validation_loss"] for row in rows]
    kept = min(losses) if args.validation else losses[-1]
    steps = sum(len(each.action) for each in found)
    shown = f"{len(found)} trajectories (one per demonstrator and episode)"
    print(f"cloned {steps:,} steps of {shown}: -log p {kept:.4f} after {len(rows)} epochs")
    made, config = (quote(path.as_posix()) for path in (run.dir, run.provenance.config))
    print(f"written: {run.dir}\nplay with it: fabric-rl evaluate {made}{' chaser' if first.of_states else ''}")
    if first.of_states:
        print(f"play against it: fabric-rl play {made}")
    print(f"train it further: python train_fabric.py --config {config} --initialize_from {made}")
    return 0


def _tell(row: dict[str, float]) -> None:
    loss, judged = row["loss"], row["validation_loss"]
    print(f"epoch {row['epoch']}: loss {loss:.4f}, validation loss {judged:.4f}", file=sys.stderr, flush=True)
