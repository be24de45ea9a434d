"""A search for good settings with Optuna: every trial trains with the same seeds, and the study lies in a folder."""

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from scipy import stats

from fabric_rl.analysis.comparison import chosen_metric
from fabric_rl.analysis.curves import Curve, final_score, read_metrics
from fabric_rl.base.tables import figure_text
from fabric_rl.sweeps.space import Choice, Setting, flags_of
from fabric_rl.sweeps.trainings import Trainings

_LOOKS = 4
"""At a run, evenly over its steps: there a trial may turn out to be worse than the best one."""

Looks = Sequence[float | None]
"""Scores of a run at each look; None where there is none."""

_DOUBT = 0.05
"""Most chance to end a trial that is as good as another, of all looks at all its seeds together."""


def load_optuna() -> Any:  # noqa: ANN401 - it is optional and may not be there
    """Return the module; an ImportError of one line without it."""
    try:
        return import_module("optuna")
    except ImportError as error:
        raise ImportError("sweeps need optuna; pip install optuna") from error


def open_study(folder: Path, asked: dict[str, str], minimize: bool) -> Any:  # noqa: ANN401
    """Return the sweep of a folder, or a new one; a ValueError if it has other settings."""
    optuna = load_optuna()
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
    """Cut a last line that a killed process has not finished; fail at any that is not Optuna's."""
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


def known_metric(study: Any, folder: Path, metric: str | None) -> str | None:  # noqa: ANN401
    """Return the metric of the finished trials, None before; a ValueError if another one is asked for."""
    if not study.get_trials(deepcopy=False, states=[load_optuna().trial.TrialState.COMPLETE]):
        return None
    known: str | None = study.user_attrs.get("metric")
    if known not in (None, "None") and metric not in (None, known):  # the text: an older sweep without the flag
        raise ValueError(f"--metric {metric}: --folder {folder} holds trials with scores of {known}; choose another")
    return known if known != "None" else None


@dataclass
class Sweep:
    """State that the threads of this process share."""

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
        """Train trial after trial until there are enough, or all is to stop."""
        while not self.trainings.stopping.is_set() and (taken := self._next(trials)):
            trial, lock = taken
            try:
                self._train(trial, seeds, metric)
            finally:
                lock.release()

    def _next(self, trials: int) -> tuple[Any, FileLock] | None:
        """Return an abandoned trial, or a new one, with its lock held; None if there are enough."""
        (self.folder / "locks").mkdir(exist_ok=True)
        with FileLock(self.folder / ".lock"):
            begun = [trial for trial in self.study.get_trials(deepcopy=False) if trial.state.name != "WAITING"]
            for left in (trial for trial in begun if trial.state.name == "RUNNING"):
                with suppress(Timeout):  # somebody works on it
                    return load_optuna().trial.Trial(self.study, left._trial_id), self._lock(left.number)
            trial = self.study.ask() if len(begun) < trials else None
            return None if trial is None else (trial, self._lock(trial.number))

    def _lock(self, number: int) -> FileLock:
        lock = FileLock(self.folder / "locks" / f"trial{number}", timeout=0)
        lock.acquire()
        return lock

    def _train(self, trial: Any, seeds: Sequence[int], metric: str | None) -> None:  # noqa: ANN401
        """Train with one seed after the other, unless the trial turns out to be worse than the best one."""
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
            if record is not None:
                try:
                    self.chosen_metric = chosen_metric(self.chosen_metric or metric, {run_id: self._curves(run_id)})
                    scores.append(self._looks(run_id, steps, done=True))
                except ValueError as error:
                    reason = str(error)
            if reason:
                trial.set_user_attr("reason", reason)
                return self._tell(trial, "FAIL", f"broken: {reason}")
            if record is None or (len(scores) < len(seeds) and self._is_worse(scores)):
                return self._tell(trial, "PRUNED", f"ended at seed {seed}, since it is worse than the best")
        trial.set_user_attr("scores", scores)
        value = float(np.array(scores, float)[:, -1].mean())
        with FileLock(self.folder / ".lock"):
            if known_metric(self.study, self.folder, self.chosen_metric) is None:
                self.study.set_user_attr("metric", self.chosen_metric)
            self._tell(trial, "COMPLETE", figure_text(value), value)

    def _tell(self, trial: Any, state: str, words: str, value: float | None = None) -> None:  # noqa: ANN401
        self.study.tell(trial, value, load_optuna().trial.TrialState[state])
        print(f"trial {trial.number}: {words} ({words_of(trial.params)})", flush=True)

    def _curves(self, run_id: str) -> dict[str, Curve]:
        return read_metrics(self.trainings.runs_dir / run_id / "metrics.csv")

    def _looks(self, run_id: str, steps: int, done: bool = False) -> list[float | None]:
        """Return the scores of a run after each part of its steps; None where nothing is logged yet."""
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
    """Return whether a trial is surely worse than the best one, by the same seeds after the same share of their steps.

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


def words_of(params: Mapping[str, object]) -> str:
    """Return the settings of a trial for people."""
    return ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in params.items()
    )
