"""`fabric-rl sweep`: searches for good settings with Optuna; every trial trains with the same seeds."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fabric_rl.analysis.curves import new_figure
from fabric_rl.base.argv import flag_names
from fabric_rl.base.files import write_text
from fabric_rl.base.tables import format_number
from fabric_rl.commands.output import Section, print_all, section_tables, write_page
from fabric_rl.commands.seeds import training_settings
from fabric_rl.sweeps.sweep import (
    SearchSetting,
    Sweep,
    flags_of,
    format_params,
    known_metric,
    load_optuna,
    open_study,
    read_space,
)
from fabric_rl.sweeps.train_processes import TrainProcesses, make_folder, seeds_of

_SHOWN, _ENOUGH = 5, 40
"""Maximum number of trials printed, and minimum number to rank settings by importance (with fewer, it is noise)."""


def sweep(
    training: Sequence[str],
    space: Path = Path("space.yaml"),
    trials: int = 20,
    parallel: int = 1,
    seeds: str = "0..2",
    metric: str | None = None,
    minimize: bool = False,
    folder: Path | None = None,
) -> int:
    """Search for good settings with Optuna; every trial trains with the same seeds.

    Run the same command again to continue a sweep, also after a crash. Several processes can work on one sweep at the
    same time, on one machine or in a shared folder.

    Args:
        training: Flags of train_fabric.py: --config X and any others.
        space: YAML file with the settings to try (docs/sweeps.md).
        trials: Total number of trials, over all calls of the command; 1 or more.
        parallel: Number of trials at the same time; they share the CPU cores.
        seeds: Seeds of every trial, such as 0..2. With two or more, a trial that is worse than the best one stops
            early.
        metric: Column of metrics.csv to optimize. Default: the return of evaluations, or the training return without
            them.
        minimize: Search for the lowest value of the metric instead of the highest.
        folder: Folder of the sweep, for its journal, runs, report and best.yaml. Default: sweeps/NAME, where NAME is
            the name of the space file.

    Returns:
        1 if no trial finished, otherwise 0.

    Raises:
        ValueError: A flag is wrong, or the folder contains a sweep with other settings.
        ImportError: Optuna is not installed.
    """
    if "--runs_dir" in flag_names(training) or "--group" in flag_names(training):
        raise ValueError("--runs_dir, --group: a sweep keeps its runs in its --folder; leave these flags out")
    if trials < 1:
        raise ValueError(f"--trials must be at least 1, got {trials}")
    numbers, base = seeds_of(seeds), training_settings(training, "sweep")
    settings = read_space(space, lambda flags: training_settings([*training, *flags], "sweep"))
    new_figure(1, 1)  # if matplotlib is missing, fail before any work
    folder = folder or Path("sweeps") / space.stem
    trainings = TrainProcesses(parallel, folder / "runs")
    make_folder("--folder", folder)
    asked = {"settings": base.arguments["resolved_config"], "space": space.read_text(encoding="utf-8")}
    asked |= {"seeds": str(numbers), "minimize": str(minimize)}
    study = open_study(folder, asked, minimize)
    known = known_metric(study, folder, metric)
    running = Sweep(study, folder, training, settings, base.arguments["args"].total_timesteps, trainings, known)
    try:
        trainings.each(lambda _: running.run_trials(trials, numbers, metric), range(parallel))
    except KeyboardInterrupt:
        print("stopped; run the same command to continue", flush=True)
        raise
    finally:
        done = _report(study, folder, training, settings)
    return 0 if done else 1


def _report(study: Any, folder: Path, words: Sequence[str], space: Sequence[SearchSetting]) -> bool:  # noqa: ANN401
    """Write and print the results; return False if no trial has finished."""
    states = {
        state: [t for t in study.get_trials() if t.state.name == state] for state in ("COMPLETE", "PRUNED", "FAIL")
    }
    minimize = study.direction.name == "MINIMIZE"
    done = sorted(states["COMPLETE"], key=lambda trial: trial.value, reverse=not minimize)
    lines = [f"trial {t.number} failed: {t.user_attrs.get('reason')}" for t in states["FAIL"]]
    sections = [Section("Failed trials", lines=lines)] if lines else []
    if not done:
        print_all(section_tables(sections))
        return False
    best = {setting.name: done[0].params[setting.name] for setting in space if setting.name in done[0].params}
    write_text(folder / "best.yaml", training_settings([*words, *flags_of(best)], "sweep").arguments["resolved_config"])
    if len(done) >= _ENOUGH:
        importance = load_optuna().importance
        found = importance.get_param_importances(study, evaluator=importance.PedAnovaImportanceEvaluator())
        rows = [[name, f"{number:.2f}"] for name, number in found.items()]
        sections.insert(0, Section("What matters", ["setting", "importance (PED-ANOVA)"], rows))
    rows = [[f"trial{trial.number}", format_number(trial.value), format_params(trial.params)] for trial in done]
    rows += [[f"trial{trial.number}", "stopped early", format_params(trial.params)] for trial in states["PRUNED"]]
    trials = Section("Trials, the best one first", ["trial", "score", "settings"], rows)
    print_all(section_tables([replace(trials, rows=rows[:_SHOWN]), *sections]))
    numbers, values = zip(*sorted((trial.number, trial.value) for trial in done), strict=True)

    def draw() -> Any:  # noqa: ANN401 - see new_figure
        axes = (figure := new_figure(8, 4)).subplots()
        best = (np.minimum if minimize else np.maximum).accumulate(values)
        axes.plot(numbers, values, "o", label="score of a trial")
        axes.step(numbers, best, where="post", label="best so far")
        axes.set(xlabel="trial", ylabel="score")
        axes.legend()
        return figure

    write_page(folder / "report.html", f"sweep {folder.name}", [trials, *sections], draw)
    print(f"best settings: {folder / 'best.yaml'}; all trials: {folder / 'report.html'}; their runs: {folder / 'runs'}")
    if len(done) > 1 and len(done[0].user_attrs["scores"]) > 1:
        again = [f"trial{trial.number}" for trial in done[:2]] + ["--runs_dir", str(folder / "runs")]
        again += ["--metric", metric] if (metric := study.user_attrs["metric"]) != "None" else []
        print("is it better than the second?", shlex.join(["fabric-rl", "compare", *again, *["--minimize"] * minimize]))
    return True
