"""Announce the start of training: log lines, the record of its settings and code, and loggers."""

import re
from collections.abc import Sequence
from typing import Any

import torch
import yaml
from lightning.fabric.loggers.logger import Logger
from lightning.fabric.loggers.tensorboard import TensorBoardLogger

from fabric_rl.args import TrainArgs
from fabric_rl.base.seeding import stream_seed
from fabric_rl.callback import Callback, TrainState
from fabric_rl.metrics.log import logger
from fabric_rl.metrics.loggers import Loggers, MetricsFile, wait_for_next_second
from fabric_rl.ranks import launched_by
from fabric_rl.runs.folder import Run
from fabric_rl.runs.provenance import own_modules
from fabric_rl.runs.records import flat_settings
from fabric_rl.runs.start_or_resume import Start
from fabric_rl.types import HasSeeds

_THREADS = re.compile(r"^num_threads:", re.MULTILINE)
_FAR_BEYOND = 1.05


def build_loggers(start: Start, given: Logger | list[Logger] | None) -> list[Logger]:
    """Return the user's loggers, or a TensorBoard logger by default, plus the logger for `metrics.csv`.

    On ranks other than 0, return an empty list. TensorBoard and `metrics.csv` drop what a resumed run had logged after
    its checkpoint.
    """
    if start.run is None:
        return []
    folder, steps = start.run.dir, start.steps
    if steps and (start.state or {}).get("unpublished"):  # the last row will be part of a later one
        steps -= 1
    table = MetricsFile(folder, until=steps)
    if given is not None:
        return [*(given if isinstance(given, list) else [given]), table]
    purge: dict[str, Any] = {} if steps is None else {"purge_step": steps + 1}
    wait_for_next_second(folder / "tensorboard")
    return [TensorBoardLogger(folder, name="tensorboard", version="", **purge), table]


class Announcement(Callback):
    """Callback that announces how a run starts, once everything is built and restored, and writes its provenance.

    `config` contains all settings as YAML; `hardware` describes the ranks and cores in one line.
    """

    def __init__(self, start: Start, args: TrainArgs, config: str | None, hardware: str) -> None:
        self._start, self._args, self._config, self._hardware = start, args, config, hardware
        self._settings = flat_settings(yaml.safe_load(config)) if config else {}
        self._has_steps_left = True

    def on_train_start(self, state: TrainState) -> None:
        if self._start.run is not None and launched_by.is_rank_0():
            self._announce(state, self._start.run)
        self._start.training = True  # errors before are about files and settings

    def _announce(self, state: TrainState, run: Run) -> None:
        start = self._start
        if self._config is not None and not _THREADS.search(self._config):
            self._config += f"num_threads: {torch.get_num_threads()}\n"  # a default that depends on the machine
            self._settings["num_threads"] = torch.get_num_threads()
        config, provenance = self._config, run.provenance
        changes = provenance.changed_settings(config) if config is not None and start.going_on else []
        changes += [f"code of {name}" for name in provenance.changed_modules()] if start.going_on else []
        lines = [*_how_it_starts(run.name, start, self._args, changes), self._hardware, *_rounded_up(state)]
        self._settings["run_id"] = run.name  # null if none was chosen
        self._has_steps_left = start.steps is None or start.steps < self._args.total_timesteps
        if self._has_steps_left:
            if start.state is not None and start.path is not None:
                moved = run.rewind_to(start.path, start.state)
                if moved:
                    lines.append(f"newer checkpoints: {moved} moved to {run.checkpoints / 'set_aside'}")
            begun = {"steps": start.steps or 0, "modules": own_modules()}
            provenance.write(config, _ranks_and_seeds(state) | begun)
            run.replace()
            Loggers(state.fabric.loggers).log_settings(self._settings, changes, state.steps)
        for line in lines:
            logger.info("%s", line)

    def on_train_end(self, state: TrainState) -> None:
        run = self._start.run
        if run is not None and launched_by.is_rank_0() and self._has_steps_left:
            run.provenance.add_modules(own_modules())
            Loggers(state.fabric.loggers).log_outcome(self._settings, run.read_summary(), state.steps)


def _how_it_starts(name: str, start: Start, args: TrainArgs, changes: Sequence[str]) -> list[str]:
    whose = f" with the weights of {start.weights.path}{start.how}" if start.weights else ""
    if not start.going_on:
        return [f"starting run {name}{whose}"] if whose else []
    steps = start.steps or 0
    if start.state is None:
        lines = [f"run {name} has no checkpoint yet: it starts from the beginning{whose}"]
    else:
        how = "" if start.state["exact"] else " (equivalent to an uninterrupted run, not bit-identical)"
        lines = [f"resuming run {name} after {steps:,} steps, from {start.path}{how}"]
    lines += [f"changed: {line}" for line in changes]
    if steps >= args.total_timesteps:
        lines.append(f"nothing to do: all {args.total_timesteps:,} steps are done; raise --total_timesteps to continue")
    return lines


def _ranks_and_seeds(state: TrainState) -> dict[str, Any]:
    """Return the ranks and seeds for `environment.json`; the n-th environment of a rank has its seed plus n."""
    seed, players, ranks = state.args.seed, state.args.num_players, state.fabric.world_size
    playing, learning = players or ranks, ranks - players
    count = state.env.num_seeds if isinstance(state.env, HasSeeds) else state.env.num_envs
    streams: dict[str, Any] = {"scheme": state.seed_scheme, "weights": seed}
    if state.seed_scheme > 1:  # else the random generators come from a checkpoint of an older version
        first = stream_seed(seed, "environments")
        firsts = None if players else [first + rank * count for rank in range(playing)]  # rank 0 has no environment
        streams["environments"] = firsts
        streams["actions"] = [stream_seed(seed, "actions", rank) for rank in range(playing)]
        streams["minibatches"] = [stream_seed(seed, "minibatches", rank) for rank in range(learning)]
    device = state.fabric.device
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    return {"ranks": ranks, "device": name, "threads": torch.get_num_threads(), "seeds": streams}


def _rounded_up(state: TrainState) -> list[str]:
    """Return a line if the last iteration ends far beyond `--total_timesteps`, else an empty list."""
    asked, each = state.args.total_timesteps, state.steps_per_iteration
    planned = state.steps + (state.iterations - state.iteration) * each
    if state.done or planned <= _FAR_BEYOND * asked:
        return []
    why = f"iterations are not cut short, and each has {each:,} steps"
    return [f"--total_timesteps {asked:,} is rounded up to {planned:,}: {why}"]
