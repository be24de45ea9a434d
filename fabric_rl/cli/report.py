"""What the command line says when a run has ended."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from fabric_rl.args import TrainArgs
from fabric_rl.base.argv import without
from fabric_rl.ranks import launch
from fabric_rl.runs.folder import Run


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
    """How much of a run is lost whose last checkpoint could not be written, in one line."""
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
