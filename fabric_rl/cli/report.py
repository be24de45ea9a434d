"""Messages at the end of training: the results and next commands, or one line about an error."""

import os
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import gymnasium
import torch
from lightning.fabric.utilities.exceptions import MisconfigurationException

from fabric_rl.args import TrainArgs
from fabric_rl.base.argv import config_files, flag_names, remove_flags
from fabric_rl.base.errors import (
    NAMES_A_FLAG,
    describe_failure,
    exit_with_message,
    print_short_traceback,
    user_code_location,
    wants_traceback,
)
from fabric_rl.base.messages import USER_ERRORS
from fabric_rl.learning.update import NotEnoughMemoryError
from fabric_rl.metrics.log import program_name
from fabric_rl.metrics.metrics_csv import read_rows
from fabric_rl.ranks import launched_by
from fabric_rl.ranks.processes import LostRankError, parent_has_exited
from fabric_rl.runs.folder import Run
from fabric_rl.runs.provenance import own_modules
from fabric_rl.runs.records import FINAL
from fabric_rl.types import NonFiniteError, RemoteError
from fabric_rl.viewer.feeds import GAMES

NEXT_PRESETS = {"rocket_1v1_quickstart": "rocket_1v1_advanced"}
"""Presets whose bots learn more from another preset than from more steps."""
RANK_0_SECONDS = 10
"""Seconds that a failing rank waits for rank 0 to print the error: once a rank ends, a launcher kills the others."""


def format_summary(run: Run, summary: dict[str, Any]) -> str:
    """Return the results of a run in a few lines."""
    how = f", stopped early by {summary['stopped_by']}" if "stopped_by" in summary else ""
    lines = ["", f"Run {run.name}: {summary['total_steps']:,} steps in {summary['wall_seconds']:.0f} s{how}"]
    for name, figure in summary.items():
        if isinstance(figure, dict):  # a headline of the environment
            label = name.replace("_", " ")
            lines.append(f"  {label}: {figure['start']:.2f} at the start, {figure['end']:.2f} at the end")
    if summary["mean_return"] is not None:
        lines.append(f"  mean return (last 10 %): {summary['mean_return']:.2f}")
    kinds = [kind for kind in ("collected", "consumed", "overall") if f"{kind}_steps_per_second" in summary]
    speeds = (f"{kind} {summary[f'{kind}_steps_per_second']:,.0f}" for kind in kinds)
    lines.append(f"  steps per second: {', '.join(speeds)}")
    if "unsaved_steps" in summary:
        lines.append(f"  {format_unsaved(summary)}")
    elif "checkpoint" in summary:
        lines.append(f"  checkpoint: {summary['checkpoint']}")
        lines += [f"  final model: {run.dir / FINAL}"] if (run.dir / FINAL).is_dir() else []
    return "\n".join(lines)


def format_unsaved(summary: dict[str, Any]) -> str:
    """Return a line about the steps that are lost because the last checkpoint could not be written."""
    newest = summary["checkpoint"]
    where = "there is no good checkpoint" if newest is None else f"the newest good checkpoint is {newest}"
    return f"the last {summary['unsaved_steps']:,} steps are NOT SAVED (the checkpoint could not be written); {where}"


def next_steps(given: Sequence[str], args: TrainArgs, summary: dict[str, Any], runs_dir: str) -> str:
    """Return commands to try next.

    A run that recorded games can be watched and, once finished, evaluated, and each run has a report. An unfinished run
    can be resumed. A finished run can be continued with the preset that follows its own in `NEXT_PRESETS`, or else (and
    with a reward of one's own) with more steps and, unless it has phases, without its teacher, and repeated on two
    devices. TensorBoard shows curves, if there are any. After the first run, `tune` can make the next ones faster.

    Args:
        given: Flags of the run, with underscores in their names.
        args: Settings of the run.
        summary: Result of `train`.
        runs_dir: Folder that contains all runs.
    """
    program, run_id = launched_by.training_command(), str(summary["run_id"])
    elsewhere = [] if runs_dir == "runs" else ["--runs_dir", runs_dir]
    unfinished = summary["stopped_early"] or "unsaved_steps" in summary
    seen = ["watch", "report"] if unfinished else ["watch", "evaluate", "report"]
    seen = seen if any(Path(runs_dir, run_id, GAMES).glob("*")) else ["report"]
    commands = [[*program, *elsewhere, "--run_id", run_id, "--resume"]] if unfinished else []
    sampled = {"evaluate": ["--sample", "true"]}
    commands += [[launched_by.program_command("fabric-rl"), w, run_id, *sampled.get(w, []), *elsewhere] for w in seen]
    if next(Path(runs_dir, run_id).rglob("events.out.tfevents.*"), None) is not None:
        commands.append([launched_by.program_command("tensorboard"), "--logdir", runs_dir])
    if not unfinished:
        of_start = ["--run_id", "--resume", "--force", "--inference"]
        same = remove_flags(given, [*of_start, "--initialize_from", "--total_timesteps"])
        asked, done = args.total_timesteps, summary["total_steps"]
        longer = ["--total_timesteps", f"{10 * (asked if 10 * asked > done else done):_}"]
        measured: set[str] = set()
        with suppress(OSError):
            measured = set().union(*read_rows(Path(runs_dir, run_id, "metrics.csv"), last_bytes=1 << 16))
        roles = [name.removesuffix("ppo/teacher_loss") for name in measured if name.endswith("ppo/teacher_loss")]
        for role in sorted(roles) if "phase/number" not in measured else ():  # it would begin again with the teacher
            flag = f"--agent.{'roles.' if role else ''}{role.replace('/', '.')}teacher_coef"
            same = remove_flags(same, [name for name in flag_names(same) if f"{name}.".startswith(f"{flag}.")])
            longer += [flag, "0"]
        if "ppo/loss" in measured and len(list(Path(runs_dir).glob("*/summary.json"))) <= 1:  # the first run
            commands.append([launched_by.program_command("fabric-rl"), "tune", *same])
        following = next(filter(None, (NEXT_PRESETS.get(Path(file).stem) for file in config_files(given))), None)
        if following and "--env.reward" not in flag_names(given):  # which it would replace
            begin = ["--config", following, "--initialize_from", run_id, "--run_id", f"{run_id}_advanced"]
            commands.append([*program, *elsewhere, *begin])
        else:
            commands.append([*program, *same, "--run_id", run_id, "--resume", *longer])
        if summary["world_size"] == 1 and torch.cuda.device_count() != 1:
            same = remove_flags(given, [*of_start, "--devices"])
            commands.append([*launched_by.training_command(alone=True), *same, "--devices", "2"])
    folders = _folders_to_add(given)
    first = f"Next (add {' and '.join(folders)}, where your code is, to PYTHONPATH first):" if folders else "Next:"
    return "\n  ".join([first, *map(shlex.join, commands)])


def _folders_to_add(given: Sequence[str]) -> list[str]:
    """Return the folders of `--config` files that contain modules; commands without `--config` do not look there."""
    known = {os.getcwd(), *(os.path.realpath(each) for each in os.environ.get("PYTHONPATH", "").split(os.pathsep))}
    beside = {str(Path(file).resolve().parent) for file in config_files(given)} - known
    files = {name: Path(module["file"]) for name, module in own_modules().items()} if beside else {}
    places = [(name.split("."), (file.with_suffix(""), file.parent)) for name, file in files.items()]
    return sorted(folder for folder in beside if any(Path(folder, *parts) in both for parts, both in places))


@contextmanager
def exit_on_error() -> Iterator[None]:
    """End the program with one line if the block fails; rank 0 prints errors that all ranks have in common.

    Raises:
        SystemExit: Status 2 after a mistake of the user; 1 after NaN, lack of memory, a lost rank, or an error in the
            user's own code, whose traceback is printed; 130 after Ctrl+C.
        Exception: A bug of this project, unchanged, or any error with `FABRIC_RL_TRACEBACK=1`.
    """
    try:
        yield
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        if wants_traceback():
            raise
        status, message, prints = 2, str(error), launched_by.is_rank_0()
        if isinstance(error, MisconfigurationException):
            message = f"{error} Change --devices, --accelerator, --strategy or --precision."
        elif isinstance(error, LostRankError):
            status, prints = 1, launched_by.detect_launcher().local_rank == 0 or parent_has_exited()
        elif isinstance(error, NonFiniteError | NotEnoughMemoryError):  # may have happened on one rank only
            status, prints = 1, True
        elif isinstance(error, RemoteError):
            status, message, prints = 1, f"--env {error}", True
        elif not isinstance(error, (*USER_ERRORS, gymnasium.error.Error)):
            if (failure := describe_failure(error)) is None:
                raise
            print_short_traceback(error)
            status, message, prints = 1, failure, True
        elif not NAMES_A_FLAG.search(message) and not isinstance(error, OSError):
            place = user_code_location(error)
            message = message if place is None or place in message else f"{message} ({place})"
        if not prints and launched_by.detect_launcher().by == "torchrun":
            time.sleep(RANK_0_SECONDS)
            prints = True
        if prints:
            exit_with_message(program_name(), message, status)
        sys.exit(status)
