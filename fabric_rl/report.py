"""What the command line says when a run has ended."""

import shlex
from collections.abc import Sequence
from typing import Any

import torch

from fabric_rl import launch
from fabric_rl.args import TrainArgs
from fabric_rl.flags import without
from fabric_rl.run import Run


def report(run: Run, summary: dict[str, Any]) -> str:
    """The figures of a run in a few lines."""
    lines = ["", f"Run {run.name}: {summary['total_steps']:,} steps in {summary['wall_seconds']:.0f} s"]
    for name, label in (("touches_per_minute", "touches per agent-minute"), ("goals_per_minute", "goals per minute")):
        if name in summary:
            lines.append(f"  {label}: {summary[name]['start']:.2f} at the start, {summary[name]['end']:.2f} at the end")
    if summary["mean_return"] is not None:
        lines.append(f"  mean return of the last episodes: {summary['mean_return']:.2f}")
    kinds = [kind for kind in ("collected", "consumed", "overall") if f"{kind}_steps_per_second" in summary]
    speeds = (f"{kind} {summary[f'{kind}_steps_per_second']:,.0f}" for kind in kinds)
    lines.append(f"  steps per second: {', '.join(speeds)}")
    if "checkpoint" in summary:
        lines.append(f"  checkpoint: {summary['checkpoint']}")
    return "\n".join(lines)


def next_steps(given: Sequence[str], args: TrainArgs, summary: dict[str, Any], runs_dir: str) -> str:
    """Commands that fit this run: its curves, the same for longer, and on two devices where it had one."""
    fresh = ["--run_id", "--resume", "--force", "--inference", "--initialize_from"]
    same = without(given, [*fresh, "--total_timesteps"])
    longer = [*launch.command(), "train_fabric.py", *same, "--run_id", str(summary["run_id"]), "--resume"]
    longer += ["--total_timesteps", f"{10 * args.total_timesteps:_}"]
    commands = [["tensorboard", "--logdir", runs_dir], longer]
    if summary["world_size"] == 1 and torch.cuda.device_count() != 1:
        same = without(given, [*fresh, "--devices"])
        commands.append(["python", "train_fabric.py", *same, "--devices", "2"])
    return "\n  ".join(["Next:", *map(shlex.join, commands)])
