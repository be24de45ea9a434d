"""`fabric-rl seeds`: trains the same settings with several seeds."""

import glob
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from fabric_rl.args import check_run_id
from fabric_rl.base.argv import DEFAULT_CONFIG, config_files, flag_names
from fabric_rl.base.processes import available_cores
from fabric_rl.base.tables import format_number
from fabric_rl.cli.command_line import CommandLine, read_settings
from fabric_rl.runs.start_or_resume import load_weights, resolve_checkpoint_path
from fabric_rl.sweeps.train_processes import (
    BUSY,
    TrainProcesses,
    check_unchanged,
    finished_run,
    make_folder,
    seeds_of,
    stopped_by_callback,
)

_OURS = ("--run_id", "--seed", "--resume", "--force", "--inference")


def seeds(training: Sequence[str], seeds: str = "0..4", group: str | None = None, parallel: int | None = None) -> int:
    """Train the same settings with several seeds, one run per seed.

    Finished runs are left unchanged and unfinished runs resume, so the same command adds what is missing. If one seed
    fails, the others continue. On Ctrl+C, all runs save a checkpoint and stop.

    Args:
        training: Flags of train_fabric.py: --config X and any others.
        seeds: Seeds, such as 0..9 or 0,3,5..7.
        group: Name of the group of runs. Default: the name of the configuration. The run ids are GROUP_seed0 and so on,
            or GROUP_CONFIG_seed0 if the configuration has another name.
        parallel: Number of runs at the same time; they share the CPU cores. Default: one per core.

    Returns:
        1 if a seed failed, otherwise 0.

    Raises:
        ValueError: A flag is wrong, or there are runs of that name with other settings.
    """
    numbers, files = seeds_of(seeds), [Path(file).stem for file in config_files(training)]
    if group is None and not files:
        training_settings(training, "seeds")  # raises an error if a file is missing
        raise ValueError("--group: set a name for these runs, or train with --config FILE, whose name they get")
    group = group or files[-1]
    check_run_id(group, "--group")
    name = f"{group}_{files[-1]}" if files and files[-1] != group else group
    words = [*training, f"--group={group}"]
    settings = training_settings(words, "seeds")
    runs_dir = Path(settings.arguments["start"].runs_dir)
    ids = {f"{name}_seed{number}": number for number in numbers}
    for run_id in ids:
        check_run_id(run_id, "--group")
    start = settings.arguments["start"]
    origin = start.initialize_from and resolve_checkpoint_path("--initialize_from", runs_dir, start.initialize_from)
    unchanged = settings.arguments["resolved_config"], load_weights(origin).agent if origin else None
    others = runs_dir.glob(f"{glob.escape(name)}_seed*")
    others = (other for other in others if other.name.removeprefix(f"{name}_seed").isdecimal())
    for folder in sorted({*(runs_dir / run_id for run_id in ids), *others}):
        check_unchanged(folder, *unchanged)
    left = [run_id for run_id in ids if finished_run(runs_dir / run_id) is None]
    trainings = TrainProcesses(min(available_cores() if parallel is None else parallel, max(1, len(left))), runs_dir)
    make_folder("--runs_dir", runs_dir)
    done = [runs_dir / run_id for run_id in ids if run_id not in left]
    failed: dict[str, str] = {}

    def train(run_id: str) -> None:
        for folder in done[-1:]:  # the user may have edited a module meanwhile
            check_unchanged(folder, *unchanged)
        record, reason = trainings.train(run_id, [*words, f"--seed={ids[run_id]}"])
        if record:
            done.append(record.folder)
        if reason:
            failed[run_id] = reason
        if record or not trainings.stopping.is_set():
            outcome = BUSY if reason == BUSY else "failed"
            if record:
                mean_return, seconds = (
                    format_number(record.summary.get(key)) for key in ("mean_return", "wall_seconds")
                )
                figures = ((name, each) for name, each in record.summary.items() if isinstance(each, dict))
                ends = (f", {name.replace('_', ' ')} {format_number(each.get('end'))}" for name, each in figures)
                outcome = f"{record.steps:,} steps, mean return {mean_return} (last 10 %){''.join(ends)}, {seconds} s"
            print(f"{run_id}: {outcome}", flush=True)

    if len(left) < len(ids):
        print(f"{len(ids) - len(left)} of {len(ids)} runs are already trained", flush=True)
    try:
        trainings.each(train, left)
    except KeyboardInterrupt:
        print("stopped; run the same command to continue", flush=True)
        raise
    failed = {run_id: failed[run_id] for run_id in left if run_id in failed and finished_run(runs_dir / run_id) is None}
    for run_id in failed:
        print(f"{run_id} {'is not trained' if failed[run_id] == BUSY else 'failed'}: {failed[run_id]}")
    trained, early = len(ids) - len(failed), 0
    for record in filter(None, (finished_run(runs_dir / run_id) for run_id in ids)):
        if by := stopped_by_callback(record):
            early += 1
            total = settings.arguments["args"].total_timesteps
            print(f"{record.name} was stopped early by {by} after {record.steps:,} of {total:,} steps")
    print(
        f"{trained} of {len(ids)} runs of group {group} are trained"
        + (f", {early} stopped early" if early else "")
        + (f"; fabric-rl compare {group}" if trained > 1 else "")
    )
    return 1 if failed else 0


def training_settings(words: Sequence[str], command: str) -> CommandLine:
    """Return the settings that the given flags of `train_fabric.py` describe.

    Raises:
        ArgumentError: A flag is unknown or has a wrong value.
        ValueError: A flag has a wrong value, or the command sets it itself.
    """
    if taken := [name for name in _OURS if name in flag_names(words)]:
        raise ValueError(f"leave out {', '.join(taken)}, which fabric-rl {command} sets for every run")
    return read_settings(import_module("train_fabric").main, words, "", DEFAULT_CONFIG)
