"""The end of a training, in words: figures and what may come next, or one line that says what went wrong."""

import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium
import torch
from lightning.fabric.utilities.exceptions import MisconfigurationException

from fabric_rl.args import TrainArgs
from fabric_rl.base.argv import without
from fabric_rl.base.errors import (
    NAMES_A_FLAG,
    describe_failure,
    fail,
    print_short_traceback,
    user_code,
    wants_traceback,
)
from fabric_rl.base.messages import MISTAKES
from fabric_rl.learning.update import TooLittleMemoryError
from fabric_rl.metrics.log import program
from fabric_rl.ranks import launch
from fabric_rl.ranks.processes import LostRankError, orphaned
from fabric_rl.runs.folder import Run
from fabric_rl.types import FailedElsewhere, NonFiniteError

RANK_0_SECONDS = 10
"""How long a failing rank leaves the word to rank 0: once one rank has ended, a launcher ends all the others."""


def report(run: Run, summary: dict[str, Any]) -> str:
    """The figures of a run in a few lines."""
    how = f", stopped early by {summary['stopped_by']}" if "stopped_by" in summary else ""
    lines = ["", f"Run {run.name}: {summary['total_steps']:,} steps in {summary['wall_seconds']:.0f} s{how}"]
    for name, figure in summary.items():
        if isinstance(figure, dict):  # of the environment
            label = name.replace("_", " ")
            lines.append(f"  {label}: {figure['start']:.2f} at the start, {figure['end']:.2f} at the end")
    if summary["mean_return"] is not None:
        lines.append(f"  mean return of the last episodes: {summary['mean_return']:.2f}")
    kinds = [kind for kind in ("collected", "consumed", "overall") if f"{kind}_steps_per_second" in summary]
    speeds = (f"{kind} {summary[f'{kind}_steps_per_second']:,.0f}" for kind in kinds)
    lines.append(f"  steps per second: {', '.join(speeds)}")
    if "unsaved_steps" in summary:
        lines.append(f"  {unsaved(summary)}")
    elif "checkpoint" in summary:
        lines.append(f"  checkpoint: {summary['checkpoint']}")
    return "\n".join(lines)


def unsaved(summary: dict[str, Any]) -> str:
    """Say in one line how much of a run is lost whose last checkpoint could not be written."""
    newest = summary["checkpoint"]
    where = "there is no good checkpoint" if newest is None else f"the newest good checkpoint is {newest}"
    return f"the last {summary['unsaved_steps']:,} steps are NOT SAVED (the checkpoint could not be written); {where}"


def next_steps(given: Sequence[str], args: TrainArgs, summary: dict[str, Any], runs_dir: str) -> str:
    """Commands that fit this run.

    One that was stopped, or could not be saved to its end, first goes on as it is; one that has done its steps may go
    on for longer, and on two devices where it had one. Its curves, if it has any for TensorBoard.

    Args:
        given: The flags it was started with, spelt with underscores.
        args: Its settings.
        summary: What `train` returned.
        runs_dir: Folder that holds all runs.
    """
    program, run_id = launch.command(), str(summary["run_id"])
    fresh = ["--run_id", "--resume", "--force", "--inference", "--initialize_from"]
    commands = []
    unfinished = summary["stopped_early"] or "unsaved_steps" in summary
    if unfinished:
        elsewhere = [] if runs_dir == "runs" else ["--runs_dir", runs_dir]
        commands.append([*program, *elsewhere, "--run_id", run_id, "--resume"])
    if next(Path(runs_dir, run_id).rglob("events.out.tfevents.*"), None) is not None:
        commands.append([launch.installed("tensorboard"), "--logdir", runs_dir])
    if not unfinished:
        same = without(given, [*fresh, "--total_timesteps"])
        longer = ["--total_timesteps", f"{10 * args.total_timesteps:_}"]
        commands.append([*program, *same, "--run_id", run_id, "--resume", *longer])
        if summary["world_size"] == 1 and torch.cuda.device_count() != 1:
            same = without(given, [*fresh[:-1], "--devices"])
            commands.append([*launch.command(alone=True), *same, "--devices", "2"])
    return "\n  ".join(["Next:", *map(shlex.join, commands)])


@contextmanager
def errors_end_in_one_line() -> Iterator[None]:
    """Ends the program where the block fails; a mistake that all ranks make is told by rank 0.

    Raises:
        SystemExit: Status 2 after a mistake; 1 after NaN, a lack of memory, a lost rank, or a failure in a part of
            the user's own, which keeps its traceback; 130 after Ctrl+C.
        Exception: A programming error of this project, as it is; any error with `FABRIC_RL_TRACEBACK=1`.
    """
    try:
        yield
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        if wants_traceback():
            raise
        status, message, speaks = 2, str(error), launch.is_rank_0()
        if isinstance(error, MisconfigurationException):
            message = f"{error} Change --devices, --accelerator, --strategy or --precision."
        elif isinstance(error, LostRankError):
            status, speaks = 1, launch.detect().local_rank == 0 or orphaned()
        elif isinstance(error, NonFiniteError | TooLittleMemoryError):  # may have happened on one rank only
            status, speaks = 1, True
        elif isinstance(error, FailedElsewhere):
            status, message, speaks = 1, f"--env {error}", True
        elif not isinstance(error, (*MISTAKES, gymnasium.error.Error)):
            if (failure := describe_failure(error)) is None:
                raise
            print_short_traceback(error)
            status, message, speaks = 1, failure, True
        elif not NAMES_A_FLAG.search(message) and not isinstance(error, OSError):
            place = user_code(error)
            message = message if place is None or place in message else f"{message} ({place})"
        if not speaks and launch.detect().by == "torchrun":
            time.sleep(RANK_0_SECONDS)
            speaks = True
        if speaks:
            fail(program(), message, status)
        sys.exit(status)
