r"""Comparison of groups of runs as in Agarwal et al. 2021, "Deep RL at the Edge of the Statistical Precipice".

    IQM(x) = mean of the middle half of the scores of all runs and tasks (25 % are cut off at each end)
    P(X > Y) = 1/M sum_m 1/(N K) sum_{i,j} S(x_{m,i}, y_{m,j}),  S = 1 if x > y, 1/2 if x = y, else 0
    profile(tau) = 1/M sum_m 1/N sum_i [x_{m,i} > tau]

for M tasks with N and K runs. Intervals are percentiles of the stratified bootstrap: runs are resampled with
replacement within each group and task. They are confidence intervals for all possible runs on these tasks. Intervals of
95 % contain the true interquartile mean in about 75 % of cases with 3 runs, 89 % with 5, 93 % with 10 and 94 % with 20
(simulated). For P(X > Y) there is also a permutation test.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property, partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from fabric_rl.analysis.curves import SPEED, final_score, minutes_at
from fabric_rl.base.config_files import read_yaml
from fabric_rl.base.settings import is_number
from fabric_rl.base.text import did_you_mean
from fabric_rl.metrics.metrics_csv import Curve, read_metrics
from fabric_rl.runs.provenance import Provenance
from fabric_rl.runs.records import CONFIG, DEFAULTS, RunRecord, find_run, flat_settings, list_runs, modules_of

Numbers = NDArray[np.float64]
METRICS = ("eval/return", "reward/episode_return")
"""Default metric: the first one that all runs have."""
ALL = "all tasks"
Reached = tuple[float, float | None] | None
"""Agent-steps and minutes (None if no speed was logged) until a threshold was reached; None if it never was."""
FEW = 10
"""Number of runs below which the bootstrap's intervals are too narrow."""
_POINTS, _LONGER = 101, 1.01
_CODE = "code of "
_OWN = {"seed", "num_threads", "group", "run_id", "runs_dir", "resume", "force", "inference"}
"""Settings that may differ between runs of a group."""


class Member(RunRecord):
    """A run in a group."""

    @cached_property
    def curves(self) -> dict[str, Curve]:
        """Metrics of the run, by name."""
        return read_metrics(self.folder / "metrics.csv")

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Settings by their dotted names; empty if they cannot be read."""
        with suppress(OSError, ValueError):
            used = modules_of(self.folder).items()
            found = {f"{_CODE}{name}": " then ".join(each[:8] for each in versions) for name, (_, versions) in used}
            if origin := Provenance(self.folder).begun_with:  # instead of the run's own copy
                found["initialize_from"] = origin
            return DEFAULTS | flat_settings(read_yaml(self.folder / CONFIG) or {}) | found
        return {}

    @property
    def task(self) -> str:
        """Gymnasium id of the task, or class of the environment."""
        names = ("env_id", "env.env_id", "env.class_path", "env")
        return next((str(self.settings[name]) for name in names if self.settings.get(name)), "unknown")


Group = dict[str, list[Member]]
"""Runs by their task."""


def find_groups(
    wanted: Sequence[str] | Mapping[str, Sequence[str | Path]], runs_dir: str | Path = "runs"
) -> dict[str, Group]:
    """Return groups of runs by their labels.

    Args:
        wanted: Names of groups, or patterns of run ids such as `gae_*`; or a dict from label to run ids or folders.
        runs_dir: Folder that contains all runs.

    Raises:
        ValueError: There is no such folder, group or run; a group has fewer than two runs on a task; or groups were
            trained on different tasks.
    """
    if not Path(runs_dir).is_dir():
        raise ValueError(f"--runs_dir {runs_dir}: there is no such folder")
    found: dict[str, Group] = {}
    known = [] if isinstance(wanted, Mapping) else sorted(list_runs(runs_dir), key=lambda run: run.name)
    for label in wanted:
        if isinstance(wanted, Mapping):
            records = [find_run(runs_dir, str(run)) for run in wanted[label]]
        else:
            records = [run for run in known if _is_member(run, label) or fnmatchcase(run.name, label)]
        if not records:
            names = sorted({run.group for run in known if run.group})
            hint = did_you_mean(label, names) or f"; there are {', '.join(names) or 'none'}"
            raise ValueError(f"no run in {runs_dir} belongs to group {label}{hint}")
        if len({run.name for run in records}) < len(records):
            raise ValueError(f"group {label} contains a run twice, or two runs of the same name")
        found[label] = {}
        for member in (Member(**vars(record)) for record in records):
            found[label].setdefault(member.task, []).append(member)
        for task, members in found[label].items():
            if len(members) < 2:
                raise ValueError(f"group {label} has only one run on {task}, {members[0].name}; it needs two or more")
    first = next(iter(found))
    for label in found:
        if found[label].keys() != found[first].keys():
            each = (f"{name} on {', '.join(sorted(found[name]))}" for name in (first, label))
            raise ValueError(f"groups have runs on different tasks: {'; '.join(each)}")
    return found


def _is_member(run: RunRecord, group: str) -> bool:
    """Return whether a run was trained in a group; one that plays another run's weights has its settings, too."""
    return run.group == group and run.status != "played"


def _text(value: object) -> str:
    """Return the text of a setting, equal for equal numbers: settings that are read again may have 10.0 for 10."""
    if is_number(value):
        return repr(float(value)).removesuffix(".0")
    return "-" if value is None else str(value)


def differences(groups: Mapping[str, Group]) -> dict[str, dict[str, str]]:
    """Return the settings that differ between groups: name -> label -> value, or values if a group's runs differ.

    The user's modules count as settings, in groups that use them; `code of NAME` is the digest of one.
    """
    every = {label: [run.settings for runs in group.values() for run in runs] for label, group in groups.items()}
    names = dict.fromkeys(name for runs in every.values() for settings in runs for name in settings)
    found: dict[str, dict[str, str]] = {}
    for name in (name for name in names if name not in _OWN):
        unknown = {"-"} if name.startswith(_CODE) else set[str]()  # runs of older versions do not know their modules
        by_label = {}
        for label, runs in every.items():
            known = {_text(run.get(name)) for run in runs}
            by_label[label] = ", ".join(sorted(known - unknown or known))
        if len(set(by_label.values()) - unknown) > 1:
            found[name] = by_label
    return found


@dataclass(frozen=True)
class Estimate:
    """A value and its confidence interval: numbers, or arrays `[points]` for a curve over `x [points]`."""

    value: Any
    low: Any
    high: Any
    x: Any = None


@dataclass(frozen=True)
class Scores:
    """Final scores of a group: the mean of the last tenth of each run's rows, up to where the shortest run ends."""

    group: str
    task: str
    """Name of the task, or `ALL` for all tasks, each scaled from 0 (worst) to 1 (best)."""
    iqm: Estimate
    mean: float
    median: float
    scores: dict[str, float]
    """Final scores by run id."""
    reached: dict[str, Reached]
    """Steps and minutes by run id until the task's threshold was reached, up to the end of the shortest run."""


@dataclass(frozen=True)
class Improvement:
    """The probability that a run of one group is better than a run of another."""

    group: str
    than: str
    probability: Estimate
    p: float
    """p-value of a permutation test, `permutation_p`."""
    tells: bool
    """True if these seeds distinguish the two groups, that is, p is at most 1 - confidence."""


@dataclass(frozen=True)
class Comparison:
    """The result of `compare`. `dataclasses.asdict` turns it into a dict."""

    metric: str
    confidence: float
    differences: dict[str, dict[str, str]]
    """Settings that differ: name -> group -> value."""
    notes: list[str]
    """Warnings to read before you trust the results."""
    scores: list[Scores]
    improvements: list[Improvement]
    curves: dict[str, dict[str, Estimate]]
    """Interquartile mean over agent-steps: task -> group -> curve."""
    profiles: dict[str, Estimate]
    """Share of runs whose scaled score is above x: group -> curve."""
    thresholds: dict[str, float]
    """Threshold of the metric: task -> value."""


def iqm(*tasks: Numbers, axis: int = -1) -> Numbers:
    """Return the interquartile mean over all tasks, with runs along `axis` of each array."""
    return np.asarray(stats.trim_mean(np.concatenate(tasks, axis), 0.25, axis))


def probability_of_improvement(*tasks: Numbers, axis: int = -1) -> Numbers:
    """Return P(X > Y) of the scores of X on each task, followed by those of Y, with runs along `axis`."""
    each = []
    for x, y in zip(tasks[: len(tasks) // 2], tasks[len(tasks) // 2 :], strict=True):
        x, y = np.moveaxis(x, axis, -1)[..., :, None], np.moveaxis(y, axis, -1)[..., None, :]
        each.append(((x > y) + 0.5 * (x == y)).mean((-2, -1)))
    return np.asarray(np.mean(each, axis=0))


def permutation_p(
    first: Sequence[Numbers], second: Sequence[Numbers], seed: int = 0, permutations: int = 10_000
) -> float:
    """Return the share of label permutations (per task) whose P(X > Y) is at least as far from 1/2 as the actual one.

    For one task, this is the rank test of Mann & Whitney 1947, even with ties. If there is no difference, p <= 0.05 in
    at most 5 % of cases for any number of runs; bootstrap intervals may exclude 1/2 more often than that.

        P(X > Y) - 1/2 = 1/M sum_m (mean rank of X_m - mean rank of all) / K_m

    Args:
        first: Scores of X on each task, `[N]`.
        second: Scores of Y on the same tasks, `[K]`.
        seed: Seed of the permutations.
        permutations: Number of permutations, including the actual labels (Phipson & Smyth 2010).
    """
    generator, away = np.random.default_rng(seed), np.zeros(permutations)
    for x, y in zip(first, second, strict=True):
        ranks = np.tile(stats.rankdata([*x, *y]), (permutations, 1))
        generator.permuted(ranks[1:], axis=1, out=ranks[1:])
        away += (ranks[:, : len(x)].mean(1) - ranks[0].mean()) / len(y)
    return float(np.mean(np.abs(away) >= abs(away[0]) - 1e-9))


def _mean_of_tasks(*tasks: Numbers, axis: int = -1) -> Numbers:
    return np.asarray(np.mean([task.mean(axis) for task in tasks], axis=0))


def estimate(
    statistic: Callable[..., Numbers],
    tasks: Sequence[Numbers],
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    x: Numbers | None = None,
) -> Estimate:
    """Return a statistic with its interval from the stratified bootstrap.

    Args:
        statistic: Function of one array per task and an `axis`.
        tasks: `[runs]` or `[runs, points]` for each task, with two or more runs.
        confidence: Confidence level of the interval.
        resamples: Number of bootstrap resamples.
        seed: Seed of the bootstrap.
        x: Points of a curve, `[points]`.
    """
    generator = np.random.default_rng(seed)
    how: dict[str, Any] = {"confidence_level": confidence, "n_resamples": resamples, "method": "percentile"}
    low, high = stats.bootstrap(tasks, statistic, axis=0, random_state=generator, **how).confidence_interval
    value = statistic(*(np.moveaxis(task, 0, -1) for task in tasks), axis=-1)
    numbers = (np.asarray(each).tolist() for each in (value, low, high, x))
    return Estimate(*numbers)


def compare(
    groups: Sequence[str] | Mapping[str, Sequence[str | Path]],
    metric: str | None = None,
    runs_dir: str | Path = "runs",
    threshold: float | None = None,
    minimize: bool = False,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Comparison:
    """Compare groups of runs by a metric.

    Args:
        groups: Names of groups (`fabric-rl seeds --group`), or patterns of run ids such as `gae_*`; or a dict from
            label to run ids or folders.
        metric: A column of `metrics.csv`; default: `eval/return` if all runs have it, else `reward/episode_return`.
        runs_dir: Folder that contains all runs.
        threshold: Value of the metric; the steps and minutes until each run reaches it are reported. Only for a single
            task. Default: the final score of the worst group.
        minimize: Treat lower values as better.
        ranges: Scores that are scaled to 0 and 1 on each of several tasks; default: the worst and the best final score.
        confidence: Confidence level of the intervals.
        resamples: Number of bootstrap resamples.
        seed: Seed of the bootstrap and the permutations.

    Raises:
        ValueError: There is no such group, run or metric, a group has only one run, the groups have different tasks, or
            `ranges` names a task without runs.
    """
    if not 0.5 <= confidence < 1:
        raise ValueError(f"--confidence must be from 0.5 to below 1, got {confidence}")
    found = find_groups(groups, runs_dir)
    labels, tasks = list(found), sorted(next(iter(found.values())))
    for task in set(ranges or {}).difference(tasks):
        raise ValueError(f"ranges: no run was trained on {task}, only on {', '.join(tasks)}")
    members = [run for group in found.values() for runs in group.values() for run in runs]
    metric = chosen_metric(metric, {str(run.folder): run.curves for run in members})
    if threshold is not None and len(tasks) > 1:
        raise ValueError("--threshold is for one task, but these groups were trained on several")
    sign = -1 if minimize else 1
    interval = partial(estimate, confidence=confidence, resamples=resamples, seed=seed)
    curves, thresholds, rows = dict[str, dict[str, Estimate]](), dict[str, float](), list[Scores]()
    scaled: dict[str, list[Numbers]] = {label: [] for label in labels}  # for each task
    for task in tasks:
        runs = {label: found[label][task] for label in labels}
        end, curves[task] = _curves_on_grid(task, runs, metric, interval)
        finals = {label: np.array([final_score(run.curves[metric], end) for run in runs[label]]) for label in labels}
        worst = sign * min(sign * float(iqm(scores)) for scores in finals.values())
        thresholds[task] = worst if threshold is None else threshold
        for label, scores in _scaled(finals, sign, (ranges or {}).get(task)).items():
            reached = {run.name: _reached(run.curves, metric, thresholds[task], end, sign) for run in runs[label]}
            rows.append(_scores(label, task, reached, [finals[label]], interval))
            scaled[label].append(scores)
    if len(tasks) > 1:
        for label in labels:
            ids = dict.fromkeys(run.name for task in tasks for run in found[label][task])
            rows.append(_scores(label, ALL, ids, scaled[label], interval))
    pairs = []
    for a, b in combinations(labels, 2):
        p = permutation_p(scaled[a], scaled[b], seed)
        probability = interval(probability_of_improvement, [*scaled[a], *scaled[b]])
        pairs.append(Improvement(a, b, probability, p, tells=p <= 1 - confidence))
    notes = _notes(found, metric)
    notes += [f"these seeds cannot distinguish {pair.group} from {pair.than}" for pair in pairs if not pair.tells]
    taus = np.linspace(0, 1, _POINTS)
    profiles = {}
    for label in labels:
        above = [(scores[:, None] > taus).astype(float) for scores in scaled[label]]
        profiles[label] = interval(_mean_of_tasks, above, x=taus)
    return Comparison(metric, confidence, differences(found), notes, rows, pairs, curves, profiles, thresholds)


def _curves_on_grid(
    task: str, groups: Mapping[str, Sequence[Member]], metric: str, interval: Callable[..., Estimate]
) -> tuple[float, dict[str, Estimate]]:
    """Return the step where the shortest run ends, and each group's curve over the steps that all runs share."""
    drawn = [run.curves[metric] for runs in groups.values() for run in runs]
    begin, end = max(x[0] for x, _ in drawn), min(x[-1] for x, _ in drawn)
    if begin > end:
        raise ValueError(f"runs on {task} have no steps in common; train them all for the same number of steps")
    points = np.linspace(begin, end, _POINTS)
    curves = {}
    for label, runs in groups.items():
        on_grid = np.stack([np.interp(points, *run.curves[metric]) for run in runs])
        curves[label] = interval(iqm, [on_grid], x=points)
    return end, curves


def chosen_metric(metric: str | None, runs: Mapping[str, Mapping[str, Curve]]) -> str:
    """Return `metric`, or the default one; raise a ValueError if a run (name -> curves) has not logged it."""
    usual = (name for name in METRICS if all(name in curves for curves in runs.values()))
    chosen = metric or next(usual, METRICS[-1])
    for run, curves in runs.items():
        if chosen not in curves:
            known = list(curves)
            hint = did_you_mean(chosen, known) or f"; it has {', '.join(known) or 'none'}"
            raise ValueError(f"--metric {chosen}: run {run} has no such metric{hint}")
    return chosen


def _notes(groups: Mapping[str, Group], metric: str) -> list[str]:
    notes, owners, ends = list[str](), dict[Path, list[str]](), dict[str, list[float]]()
    for label, group in groups.items():
        for task, runs in group.items():
            notes += _notes_on_task(label, task, runs)
            for run in runs:
                owners.setdefault(run.folder.resolve(), []).append(label)
                ends.setdefault(task, []).append(run.curves[metric][0][-1])
    for folder, labels in owners.items():
        if len(labels) > 1:
            notes.append(f"run {folder.name} is in groups {' and '.join(labels)}, so they are not independent")
    for task, steps in ends.items():
        if max(steps) > _LONGER * min(steps):
            notes.append(f"{task}: runs are compared up to {min(steps):,.0f} steps, where the shortest run ends")
    return notes


def _notes_on_task(label: str, task: str, runs: Sequence[Member]) -> list[str]:
    notes = [f"run {run.name} is unfinished" for run in runs if run.status == "unfinished"]
    notes += [f"the settings of run {run.name} cannot be read" for run in runs if not run.settings]
    if len({run.settings.get("seed", run.name) for run in runs}) < len(runs):
        notes.append(f"group {label} has runs with the same seed on {task}, so they are not independent")
    if alike := differences({run.name: {task: [run]} for run in runs if run.settings}):
        notes.append(f"runs of group {label} on {task} differ in more than their seed: {', '.join(alike)}")
    if len(runs) < FEW:
        narrow = (
            f"intervals of fewer than {FEW} runs are too narrow: a 95 % interval covers about 75 % with 3, 89 % with 5"
        )
        notes.append(f"group {label} has {len(runs)} runs on {task}; {narrow}")
    return notes


def _scores(
    group: str, task: str, reached: Mapping[str, Reached], tasks: Sequence[Numbers], interval: Callable[..., Estimate]
) -> Scores:
    every = np.concatenate(tasks)
    averages = interval(iqm, tasks), float(every.mean()), float(np.median(every))
    return Scores(group, task, *averages, dict(zip(reached, every.tolist(), strict=True)), dict(reached))


def _scaled(finals: Mapping[str, Numbers], sign: int, given: tuple[float, float] | None) -> dict[str, Numbers]:
    """Return the final scores of all groups on a task, scaled to 0 (worst) and 1 (best)."""
    every = sign * (np.concatenate(list(finals.values())) if given is None else np.array(given))
    worst, best = every.min(), every.max()
    return {label: (sign * scores - worst) / ((best - worst) or 1.0) for label, scores in finals.items()}


def _reached(curves: Mapping[str, Curve], metric: str, threshold: float, end: float, sign: int) -> Reached:
    steps, values = curves[metric]
    there = steps[(sign * values >= sign * threshold) & (steps <= end)][:1]
    if not len(there):
        return None
    return float(there[0]), float(minutes_at(there, curves[SPEED])[0]) if SPEED in curves else None
