"""`fabric-rl sweep`: tries settings with Optuna, each with the same seeds, and keeps the best."""

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from scipy import stats

from fabric_rl.base.argv import names_of
from fabric_rl.base.files import write_text
from fabric_rl.commands.output import new_figure
from fabric_rl.commands.sections import Section, show, write_page
from fabric_rl.commands.space import Choice, Setting, flags_of, read_space
from fabric_rl.commands.trainings import Trainings, make_folder, seeds_of, settings_of
from fabric_rl.runs.comparison import chosen_metric
from fabric_rl.runs.curves import Curve, final_score, read_metrics
from fabric_rl.runs.tables import figure_text

_LOOKS = 4
"""At a run, evenly over its steps: there a trial may turn out to be worse than the best one."""
Looks = Sequence[float | None]
"""Scores of a run at each look; None where there is none."""
_DOUBT = 0.05
"""Most chance to end a trial that is as good as another, of all looks at all its seeds together."""
_SHOWN, _ENOUGH = 5, 40
"""Trials that are printed, and how many tell which settings matter: of fewer it is noise."""


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
    if "--runs_dir" in names_of(training) or "--group" in names_of(training):
        raise ValueError("--runs_dir, --group: the runs of a sweep lie in its --folder; leave them out")
    if trials < 1:
        raise ValueError(f"--trials must be at least 1, got {trials}")
    numbers, base = seeds_of(seeds), settings_of(training, "sweep")
    settings = read_space(space, training)
    new_figure(1, 1)  # says what is missing before any work
    folder = folder or Path("sweeps") / space.stem
    trainings = Trainings(parallel, folder / "runs")
    make_folder("--folder", folder)
    asked = {"settings": base.arguments["resolved_config"], "space": space.read_text(encoding="utf-8")}
    asked |= {"seeds": str(numbers), "minimize": str(minimize)}
    study = _study(folder, asked, minimize)
    known = _check_metric(study, folder, metric)
    running = _Sweep(study, folder, training, settings, base.arguments["args"].total_timesteps, trainings, known)
    try:
        trainings.each(lambda _: running.work(trials, numbers, metric), range(parallel))
    except KeyboardInterrupt:
        print("stopped; the same command continues", flush=True)
        raise
    finally:
        done = _report(study, folder, training, settings)
    return 0 if done else 1


def _optuna() -> Any:  # noqa: ANN401 - it is optional and may not be there
    try:
        return import_module("optuna")
    except ImportError as error:
        raise ImportError("sweeps need optuna; pip install optuna") from error


def _study(folder: Path, asked: dict[str, str], minimize: bool) -> Any:  # noqa: ANN401
    """The sweep of a folder, or a new one; a ValueError if it was asked for otherwise."""
    optuna = _optuna()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    journal, file = import_module("optuna.storages.journal"), str(folder / "study.journal")
    lock = journal.JournalFileOpenLock(file)
    direction = "minimize" if minimize else "maximize"
    with FileLock(folder / ".lock"):
        try:
            _mend(Path(file), lock)
            storage = optuna.storages.JournalStorage(journal.JournalFileBackend(file, lock_obj=lock))
            study = optuna.create_study(study_name="sweep", storage=storage, direction=direction, load_if_exists=True)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise ValueError(f"{file} is damaged ({error}); choose another --folder, or delete this one") from error
        other = [name for name in asked if study.user_attrs.get(name, asked[name]) != asked[name]]
        if other:
            raise ValueError(
                f"--folder {folder}: holds a sweep with other {', '.join(other)}; choose another, or delete it"
            )
        for name, value in asked.items():
            study.set_user_attr(name, value)
    return study


def _mend(file: Path, lock: Any) -> None:  # noqa: ANN401 - Optuna's
    """Cuts a last line that a killed process has not written to its end; fails at any that is not Optuna's."""
    lock.acquire()
    try:
        content = file.read_bytes() if file.exists() else b""
        whole = content.rfind(b"\n") + 1
        for line in content[:whole].splitlines():
            _ = json.loads(line)["op_code"]
        if whole < len(content):
            os.truncate(file, whole)
    finally:
        lock.release()


def _check_metric(study: Any, folder: Path, metric: str | None) -> str | None:  # noqa: ANN401
    """The metric of the trials that have come to their end, None before; a ValueError if another one is asked for."""
    if not study.get_trials(deepcopy=False, states=[_optuna().trial.TrialState.COMPLETE]):
        return None
    known: str | None = study.user_attrs.get("metric")
    if known not in (None, "None") and metric not in (None, known):  # the text: an older sweep without the flag
        raise ValueError(f"--metric {metric}: --folder {folder} holds trials with scores of {known}; choose another")
    return known if known != "None" else None


@dataclass
class _Sweep:
    """What the threads of this process work on."""

    study: Any
    folder: Path
    words: Sequence[str]
    """Flags of every training."""
    space: Sequence[Setting]
    steps: int
    """Of a run, unless the space has them."""
    trainings: Trainings
    chosen_metric: str | None = None
    """Known when the first run has come to its end."""

    def work(self, trials: int, seeds: Sequence[int], metric: str | None) -> None:
        """Trains trial after trial until there are so many, or all is to stop."""
        while not self.trainings.stopping.is_set() and (taken := self._next(trials)):
            trial, lock = taken
            try:
                self._train(trial, seeds, metric)
            finally:
                lock.release()

    def _next(self, trials: int) -> tuple[Any, FileLock] | None:
        """A trial that a killed process has left, or a new one, with its lock held; None if there are enough."""
        (self.folder / "locks").mkdir(exist_ok=True)
        with FileLock(self.folder / ".lock"):
            begun = [trial for trial in self.study.get_trials(deepcopy=False) if trial.state.name != "WAITING"]
            for left in (trial for trial in begun if trial.state.name == "RUNNING"):
                with suppress(Timeout):  # somebody works on it
                    return _optuna().trial.Trial(self.study, left._trial_id), self._lock(left.number)
            trial = self.study.ask() if len(begun) < trials else None
            return None if trial is None else (trial, self._lock(trial.number))

    def _lock(self, number: int) -> FileLock:
        lock = FileLock(self.folder / "locks" / f"trial{number}", timeout=0)
        lock.acquire()
        return lock

    def _train(self, trial: Any, seeds: Sequence[int], metric: str | None) -> None:  # noqa: ANN401
        """Trains with one seed after the other, unless a trial turns out to be worse than the best one."""
        chosen: dict[str, Choice] = {}
        for setting in self.space:
            chosen |= setting.draw(trial, chosen)
        steps = int(chosen.get("total_timesteps") or self.steps)
        words = [*self.words, *flags_of(chosen), f"--group=trial{trial.number}"]
        scores: list[Looks] = []
        for seed in seeds:
            run_id = f"trial{trial.number}_seed{seed}"
            hopeless = partial(self._hopeless, run_id, steps, scores)
            record, reason = self.trainings.train(run_id, [*words, f"--seed={seed}"], hopeless)
            if record is None and self.trainings.stopping.is_set():
                return  # the next call goes on with it
            if reason:
                return self._fail(trial, reason)
            if record is not None:
                try:
                    self.chosen_metric = chosen_metric(self.chosen_metric or metric, {run_id: self._curves(run_id)})
                except ValueError as error:
                    return self._fail(trial, str(error))
                scores.append(self._looks(run_id, steps, done=True))
            if record is None or (len(scores) < len(seeds) and self._is_worse(scores)):
                return self._tell(trial, "PRUNED", f"ended at seed {seed}, since it is worse than the best")
        trial.set_user_attr("scores", scores)
        value = float(np.array(scores, float)[:, -1].mean())
        with FileLock(self.folder / ".lock"):
            if _check_metric(self.study, self.folder, self.chosen_metric) is None:
                self.study.set_user_attr("metric", self.chosen_metric)
            self._tell(trial, "COMPLETE", figure_text(value), value)

    def _fail(self, trial: Any, reason: str) -> None:  # noqa: ANN401
        trial.set_user_attr("reason", reason)
        self._tell(trial, "FAIL", f"broken: {reason}")

    def _tell(self, trial: Any, state: str, words: str, value: float | None = None) -> None:  # noqa: ANN401
        self.study.tell(trial, value, _optuna().trial.TrialState[state])
        print(f"trial {trial.number}: {words} ({_in_words(trial.params)})", flush=True)

    def _curves(self, run_id: str) -> dict[str, Curve]:
        return read_metrics(self.trainings.runs_dir / run_id / "metrics.csv")

    def _looks(self, run_id: str, steps: int, done: bool = False) -> list[float | None]:
        """The scores of a run after each part of its steps; None where nothing is logged yet, or it is not so far."""
        curve = self._curves(run_id)[self.chosen_metric or ""]
        first, last = curve[0][[0, -1]]
        parts = [number * steps / _LOOKS for number in range(1, _LOOKS)]
        looks = [final_score(curve, part) if first <= part and (done or part <= last) else None for part in parts]
        return [*looks, final_score(curve) if done else None]

    def _hopeless(self, run_id: str, steps: int, scores: Sequence[Looks]) -> bool:
        with suppress(ValueError, LookupError):  # nothing is logged yet
            return self._is_worse([*scores, self._looks(run_id, steps)])
        return False

    def _is_worse(self, scores: Sequence[Looks]) -> bool:
        with suppress(ValueError):  # no trial has come to its end
            sign = -1 if self.study.direction.name == "MINIMIZE" else 1
            return is_worse(scores, self.study.best_trial.user_attrs["scores"], sign)
        return False


def is_worse(own: Sequence[Looks], best: Sequence[Looks], sign: int = 1) -> bool:
    """Whether a trial is worse than the best one beyond doubt, by the same seeds after the same share of their steps.

        mean(d) + t_{1 - 0.05 / (looks x seeds), n-1} s(d) / sqrt(n) < 0,  d_i = own_i - best_i

    Args:
        own: Of its seeds so far, `[seeds so far, looks]`; what counts is how far the last one has come.
        best: Of the best trial, `[seeds, looks]`.
        sign: -1 where lower is better.
    """
    theirs = np.array(best, float)
    mine = np.array(own, float)
    look = np.flatnonzero(~np.isnan(mine[-1]))[-1:]
    difference = sign * (mine - theirs[: len(mine)])[:, look]
    difference = difference[~np.isnan(difference)]
    if len(difference) < 2:
        return False
    t = stats.t.ppf(1 - _DOUBT / theirs.size, len(difference) - 1)
    return bool(difference.mean() + t * difference.std(ddof=1) / np.sqrt(len(difference)) < 0)


def _in_words(params: Mapping[str, object]) -> str:
    return ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in params.items()
    )


def _report(study: Any, folder: Path, words: Sequence[str], space: Sequence[Setting]) -> bool:  # noqa: ANN401
    """Writes what is known, and says it; whether a trial has come to its end."""
    states = {
        state: [t for t in study.get_trials() if t.state.name == state] for state in ("COMPLETE", "PRUNED", "FAIL")
    }
    minimize = study.direction.name == "MINIMIZE"
    done = sorted(states["COMPLETE"], key=lambda trial: trial.value, reverse=not minimize)
    lines = [f"trial {t.number} broken: {t.user_attrs.get('reason')}" for t in states["FAIL"]]
    sections = [Section("Broken trials", lines=lines)] if lines else []
    if not done:
        show(sections)
        return False
    best = {setting.name: done[0].params[setting.name] for setting in space if setting.name in done[0].params}
    write_text(folder / "best.yaml", settings_of([*words, *flags_of(best)], "sweep").arguments["resolved_config"])
    if len(done) >= _ENOUGH:
        importance = _optuna().importance
        found = importance.get_param_importances(study, evaluator=importance.PedAnovaImportanceEvaluator())
        rows = [[name, f"{number:.2f}"] for name, number in found.items()]
        sections.insert(0, Section("What matters", ["setting", "importance (PED-ANOVA)"], rows))
    rows = [[f"trial{trial.number}", figure_text(trial.value), _in_words(trial.params)] for trial in done]
    rows += [[f"trial{trial.number}", "ended early", _in_words(trial.params)] for trial in states["PRUNED"]]
    trials = Section("Trials, the best one first", ["trial", "score", "settings"], rows)
    show([replace(trials, rows=rows[:_SHOWN]), *sections])
    axes = (figure := new_figure(8, 4)).subplots()
    numbers, values = zip(*sorted((trial.number, trial.value) for trial in done), strict=True)
    axes.plot(numbers, values, "o", label="score of a trial")
    axes.step(numbers, (np.minimum if minimize else np.maximum).accumulate(values), where="post", label="best so far")
    axes.set(xlabel="trial", ylabel="score")
    axes.legend()
    write_page(folder / "report.html", f"sweep {folder.name}", [trials, *sections], figure)
    print(f"best settings: {folder / 'best.yaml'}; all trials: {folder / 'report.html'}; their runs: {folder / 'runs'}")
    if len(done) > 1 and len(done[0].user_attrs["scores"]) > 1:
        again = [f"trial{trial.number}" for trial in done[:2]] + ["--runs_dir", str(folder / "runs")]
        again += ["--metric", metric] if (metric := study.user_attrs["metric"]) != "None" else []
        print("is it better than the next?", shlex.join(["fabric-rl", "compare", *again, *["--minimize"] * minimize]))
    return True
