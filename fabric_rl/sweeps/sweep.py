"""Search for good settings with Optuna: every trial trains with the same seeds, and a folder contains the study."""

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from scipy import stats

from fabric_rl.analysis.comparison import chosen_metric
from fabric_rl.analysis.curves import final_score
from fabric_rl.base.config_files import read_yaml, to_flag
from fabric_rl.base.messages import USER_ERRORS, one_line
from fabric_rl.base.parser import parse_whole
from fabric_rl.base.tables import format_number
from fabric_rl.metrics.metrics_csv import read_metrics
from fabric_rl.sweeps.train_processes import TrainProcesses

_LOOKS = 4
"""Points in a run, evenly spaced over its steps, at which a trial may turn out to be worse than the best one."""
_DOUBT = 0.05
"""Maximum probability to stop a trial that is as good as the best one, over all looks at all its seeds."""
_DECIDED = ("config", "group", "runs_dir")
"""Settings that the sweep chooses itself, like the names and seeds of its runs."""
_MAX_NUMBER = 2**53
"""Optuna computes with floats, which represent all integers up to this one."""

Choice = str | float | int | bool | None
Looks = Sequence[float | None]
"""Scores of a run at each look; None where there is no score."""


@dataclass(frozen=True)
class SearchSetting:
    """A setting of `train_fabric.py` in a search space: a list of choices, or a range of numbers."""

    name: str
    choices: Sequence[Choice] = ()
    low: float = 0.0
    high: float = 0.0
    """Upper end, included. Integers are drawn if both ends are integers."""
    log: bool = False
    """Draw uniformly on a logarithmic scale."""
    when: Mapping[str, Sequence[Choice]] = field(default_factory=dict)
    """Settings and values that must have been chosen for this setting to be tried."""

    def draw(self, trial: Any, chosen: Mapping[str, Choice]) -> dict[str, Choice]:  # noqa: ANN401 - Optuna's
        """Return the name and the value that an Optuna trial suggests, or `{}` if `chosen` does not satisfy `when`."""
        if any(name not in chosen or chosen[name] not in values for name, values in self.when.items()):
            return {}
        if self.choices:
            return {self.name: trial.suggest_categorical(self.name, self.choices)}
        whole = isinstance(self.low, int) and isinstance(self.high, int)
        suggest = trial.suggest_int if whole else trial.suggest_float
        return {self.name: suggest(self.name, self.low, self.high, log=self.log)}


def flags_of(chosen: Mapping[str, Any]) -> list[str]:
    """Return settings as command-line flags."""
    return [to_flag(name, value) for name, value in chosen.items()]


def format_params(params: Mapping[str, object]) -> str:
    """Return the settings of a trial as readable text."""
    shown = {name: f"{value:.4g}" if isinstance(value, float) else value for name, value in params.items()}
    return ", ".join(f"{name} {value}" for name, value in shown.items())


def read_space(path: Path, check: Callable[[Sequence[str]], object]) -> list[SearchSetting]:
    """Read a search space from a YAML file; `check` raises an error for flags that `train_fabric.py` rejects.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A setting is unknown, malformed or has a wrong value; the message names the file.
    """
    if not path.is_file():
        raise FileNotFoundError(f"--space {path}: there is no such file")
    space: dict[str, SearchSetting] = {}
    try:
        content = read_yaml(path)
        if not isinstance(content, dict) or not content:
            raise ValueError("list settings by their flag names, such as gamma: [0.98, 0.99]")
        for name, section in content.items():
            space[str(name)] = setting = _setting(str(name), section, space)
            for value in setting.choices or (setting.low, setting.high):
                chosen = {**_example(setting, space), setting.name: value}
                check(flags_of(chosen))
    except USER_ERRORS as error:
        raise ValueError(f"--space {path}: {one_line(str(error)).removeprefix(f'--config {path}: ')}") from error
    return list(space.values())


def _setting(name: str, section: object, before: Mapping[str, SearchSetting]) -> SearchSetting:
    if name in _DECIDED:
        raise ValueError(f"leave out {name}, which fabric-rl sweep sets for every run")
    said = {"choices": section} if isinstance(section, list) else section
    if not isinstance(said, dict) or len({"low", "high"} & said.keys()) != (0 if said.get("choices") else 2):
        raise ValueError(f"{name}: write choices as [1, 2, 3], or a range as {{low: 1.0e-4, high: 0.01, log: true}}")
    if unknown := [str(key) for key in said if key not in ("choices", "low", "high", "log", "when")]:
        raise ValueError(f"{name}: expected choices, low, high, log or when, got {', '.join(unknown)}")
    when = said.get("when") or {}
    if not isinstance(when, dict) or [] in when.values():
        raise ValueError(f"{name}: write when as {{lr_schedule: kl_adaptive}}, or with a list of values")
    if unknown := [str(key) for key in when if key not in before]:
        raise ValueError(f"{name}: when refers to {', '.join(unknown)}, which must come before it in the file")
    when = {key: _choices(values) for key, values in when.items()}
    if said.get("choices"):
        return SearchSetting(name, _choices(said["choices"]), when=when)
    low, high = (_number(name, said[end]) for end in ("low", "high"))
    if not low < high or (said.get("log") and low <= 0):
        raise ValueError(f"{name}: low must be below high, and above 0 with log")
    return SearchSetting(name, (), low, high, bool(said.get("log")), when)


def _number(name: str, end: object) -> float:
    try:
        number = end if type(end) is int else float(str(end))  # 1e-4 is text in YAML
    except ValueError:
        number = math.nan
    if not abs(number) <= _MAX_NUMBER:
        raise ValueError(f"{name}: low and high must be numbers up to 2**53, got {end}")
    return number


def _choices(values: object) -> tuple[Choice, ...]:
    """Return one or more choices; values of types that Optuna does not support become text, as in a flag."""
    several = values if isinstance(values, list) else [values]
    return tuple(each if each is None or isinstance(each, str | int | float) else json.dumps(each) for each in several)


def _example(setting: SearchSetting, before: Mapping[str, SearchSetting]) -> dict[str, Choice]:
    """Return an example of choices that satisfy the conditions of a setting."""
    example: dict[str, Choice] = {}
    for name, values in setting.when.items():
        example |= {**_example(before[name], before), name: values[0]}
    return example


def load_optuna() -> Any:  # noqa: ANN401 - optional
    """Return the module `optuna`.

    Raises:
        ImportError: Optuna is not installed.
    """
    try:
        return import_module("optuna")
    except ImportError as error:
        raise ImportError("sweeps need optuna; pip install optuna") from error


def open_study(folder: Path, asked: dict[str, str], minimize: bool) -> Any:  # noqa: ANN401
    """Return the Optuna study of a folder, or a new one if there is none.

    Raises:
        ValueError: The study is damaged, or its settings differ from `asked`.
    """
    optuna = load_optuna()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    journal, file = import_module("optuna.storages.journal"), str(folder / "study.journal")
    lock = journal.JournalFileOpenLock(file)
    direction = "minimize" if minimize else "maximize"
    with FileLock(folder / ".lock"):
        try:
            _repair(Path(file), lock)
            storage = optuna.storages.JournalStorage(journal.JournalFileBackend(file, lock_obj=lock))
            study = optuna.create_study(study_name="sweep", storage=storage, direction=direction, load_if_exists=True)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise ValueError(f"{file} is damaged ({error}); choose another --folder, or delete {folder}") from error
        other = [name for name in asked if study.user_attrs.get(name, asked[name]) != asked[name]]
        if other:
            raise ValueError(
                f"--folder {folder} contains a sweep that was started with different {', '.join(other)}; "
                f"choose another --folder, or delete {folder}"
            )
        for name, value in asked.items():
            study.set_user_attr(name, value)
    return study


def _repair(file: Path, lock: Any) -> None:  # noqa: ANN401 - Optuna's
    """Remove an incomplete last line, left by a killed process; raise an error for lines that are not Optuna's."""
    lock.acquire()
    try:
        content = file.read_bytes() if file.exists() else b""
        complete = content.rfind(b"\n") + 1
        for line in content[:complete].splitlines():
            _ = json.loads(line)["op_code"]
        if complete < len(content):
            os.truncate(file, complete)
    finally:
        lock.release()


def known_metric(study: Any, folder: Path, metric: str | None) -> str | None:  # noqa: ANN401
    """Return the metric of the finished trials, or None if there are none.

    Raises:
        ValueError: `metric` is a different one.
    """
    if not study.get_trials(deepcopy=False, states=[load_optuna().trial.TrialState.COMPLETE]):
        return None
    known: str | None = study.user_attrs.get("metric")
    if known not in (None, "None") and metric not in (None, known):  # "None": an older sweep without the flag
        raise ValueError(f"--metric {metric}: --folder {folder} has trials scored by {known}; choose another folder")
    return known if known != "None" else None


@dataclass
class Sweep:
    """A sweep in progress, shared by the threads of this process."""

    study: Any
    folder: Path
    words: Sequence[str]
    """Flags of every training."""
    space: Sequence[SearchSetting]
    steps: int
    """Total steps of a run, unless the space sets them."""
    trainings: TrainProcesses
    chosen_metric: str | None = None
    """Known once the first run has finished."""

    def run_trials(self, trials: int, seeds: Sequence[int], metric: str | None) -> None:
        """Train one trial after another until there are `trials` trials, or `trainings` is stopping."""
        while not self.trainings.stopping.is_set() and (taken := self._next(trials)):
            trial, lock = taken
            try:
                self._train(trial, seeds, metric)
            finally:
                lock.release()

    def _next(self, trials: int) -> tuple[Any, FileLock] | None:
        """Return an abandoned or new trial and its acquired lock, or None if there are enough trials."""
        (self.folder / "locks").mkdir(exist_ok=True)
        with FileLock(self.folder / ".lock"):
            begun = [trial for trial in self.study.get_trials(deepcopy=False) if trial.state.name != "WAITING"]
            for left in (trial for trial in begun if trial.state.name == "RUNNING"):
                with suppress(Timeout):  # another process or thread is training it
                    return load_optuna().trial.Trial(self.study, left._trial_id), self._lock(left.number)
            if len(begun) >= trials:
                return None
            trial = self.study.ask()
            return trial, self._lock(trial.number)

    def _lock(self, number: int) -> FileLock:
        lock = FileLock(self.folder / "locks" / f"trial{number}", timeout=0)
        lock.acquire()
        return lock

    def _train(self, trial: Any, seeds: Sequence[int], metric: str | None) -> None:  # noqa: ANN401
        """Train with one seed after another, until the trial turns out to be worse than the best one."""
        chosen: dict[str, Choice] = {}
        for setting in self.space:
            chosen |= setting.draw(trial, chosen)
        steps = int(parse_whole(chosen.get("total_timesteps") or self.steps))
        words = [*self.words, *flags_of(chosen), f"--group=trial{trial.number}"]
        scores: list[Looks] = []
        for seed in seeds:
            run_id = f"trial{trial.number}_seed{seed}"
            hopeless = partial(self._is_hopeless, run_id, steps, scores)
            record, reason = self.trainings.train(run_id, [*words, f"--seed={seed}"], hopeless)
            if record is None and self.trainings.stopping.is_set():
                return  # the next call resumes it
            if record is not None:
                try:
                    curves = {run_id: read_metrics(record.folder / "metrics.csv")}
                    self.chosen_metric = chosen_metric(self.chosen_metric or metric, curves)
                    scores.append(self._looks(run_id, steps, done=True))
                except ValueError as error:
                    reason = str(error)
            if reason:
                trial.set_user_attr("reason", reason)
                return self._tell(trial, "FAIL", f"failed: {reason}")
            if record is None or (len(scores) < len(seeds) and self._is_worse(scores)):
                return self._tell(trial, "PRUNED", f"stopped at seed {seed}, because it is worse than the best trial")
        trial.set_user_attr("scores", scores)
        value = float(np.array(scores, float)[:, -1].mean())
        with FileLock(self.folder / ".lock"):
            if known_metric(self.study, self.folder, self.chosen_metric) is None:
                self.study.set_user_attr("metric", self.chosen_metric)
            self._tell(trial, "COMPLETE", format_number(value), value)

    def _tell(self, trial: Any, state: str, result: str, value: float | None = None) -> None:  # noqa: ANN401
        self.study.tell(trial, value, load_optuna().trial.TrialState[state])
        print(f"trial {trial.number}: {result} ({format_params(trial.params)})", flush=True)

    def _looks(self, run_id: str, steps: int, done: bool = False) -> list[float | None]:
        """Return the scores of a run after each part of its steps, or None where nothing has been logged yet."""
        curve = read_metrics(self.trainings.runs_dir / run_id / "metrics.csv")[self.chosen_metric or ""]
        first, last = curve[0][[0, -1]]
        parts = [number * steps / _LOOKS for number in range(1, _LOOKS)]
        looks = [final_score(curve, part) if first <= part and (done or part <= last) else None for part in parts]
        return [*looks, final_score(curve) if done else None]

    def _is_hopeless(self, run_id: str, steps: int, scores: Sequence[Looks]) -> bool:
        with suppress(ValueError, LookupError):  # nothing has been logged yet
            return self._is_worse([*scores, self._looks(run_id, steps)])
        return False

    def _is_worse(self, scores: Sequence[Looks]) -> bool:
        with suppress(ValueError):  # no trial has finished yet
            sign = -1 if self.study.direction.name == "MINIMIZE" else 1
            return is_worse(scores, self.study.best_trial.user_attrs["scores"], sign)
        return False


def is_worse(own: Sequence[Looks], best: Sequence[Looks], sign: int = 1) -> bool:
    """Return True if a trial is significantly worse than the best one, compared by seed at the same look.

        mean(d) + t_{1 - 0.05 / (looks x seeds), n-1} s(d) / sqrt(n) < 0,  d_i = own_i - best_i

    Args:
        own: Scores of the trial, `[seeds so far, looks]`, compared at the latest look of the last seed.
        best: Scores of the best trial, `[seeds, looks]`.
        sign: -1 if lower is better.
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
