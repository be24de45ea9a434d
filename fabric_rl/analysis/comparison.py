r"""Comparing groups of runs, as Agarwal et al. 2021, "Deep RL at the Edge of the Statistical Precipice", do.

    IQM(x) = mean of the middle half of the scores of all runs and tasks (25 % are cut off at either end)
    P(X > Y) = 1/M sum_m 1/(N K) sum_{i,j} S(x_{m,i}, y_{m,j}),  S = 1 if x > y, 1/2 if x = y, else 0
    profile(tau) = 1/M sum_m 1/N sum_i [x_{m,i} > tau]

of M tasks with N and K runs. Intervals are percentiles of the stratified bootstrap: runs are drawn anew, with
replacement, among those of the same group and task. They are confidence intervals of the figure of all possible runs
on these tasks. Those of 95 % hold the interquartile mean in about 75 % of cases with 3 runs, 89 % with 5, 93 % with 10
and 94 % with 20 (simulated). P(X > Y) has a permutation test beside its interval.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from fabric_rl.analysis.curves import SPEED, Curve, final_score, minutes_at, read_metrics
from fabric_rl.base.config_files import read_yaml
from fabric_rl.base.text import did_you_mean
from fabric_rl.runs.provenance import CONFIG, DEFAULTS, flat_settings
from fabric_rl.runs.records import RunRecord, find_run, list_runs

Numbers = NDArray[np.float64]
METRICS = ("eval/return", "reward/episode_return")
"""What is compared if nothing is asked for: the first that all runs have."""
ALL = "all tasks"
Reached = tuple[float, float | None] | None
"""Agent-steps and minutes (None where no speed was logged) until something happened; None where it never did."""
FEW = 10
"""Runs; the bootstrap's intervals of fewer are too narrow."""
_POINTS, _LONGER = 101, 1.01
_OWN = {"seed", "num_threads", "group", "run_id", "runs_dir", "resume", "force", "inference"}
"""Settings in which runs of a group may differ."""


@dataclass(frozen=True)
class Member:
    """A run of a group."""

    record: RunRecord

    @property
    def name(self) -> str:
        """The run id."""
        return self.record.name

    @cached_property
    def curves(self) -> dict[str, Curve]:
        """Its metrics, by name."""
        return read_metrics(self.record.folder / "metrics.csv")

    @cached_property
    def settings(self) -> dict[str, Any]:
        """By their dotted names; nothing where they cannot be read."""
        with suppress(OSError, ValueError):
            return DEFAULTS | flat_settings(read_yaml(self.record.folder / CONFIG) or {})
        return {}

    @property
    def task(self) -> str:
        """Name of the task of its training: a Gymnasium id, or the class of its environment."""
        names = ("env_id", "env.env_id", "env.class_path", "env")
        return next((str(self.settings[name]) for name in names if self.settings.get(name)), "unknown")


Group = dict[str, list[Member]]
"""Runs by their task."""


def find_groups(
    wanted: Sequence[str] | Mapping[str, Sequence[str | Path]], runs_dir: str | Path = "runs"
) -> dict[str, Group]:
    """Return groups by their labels.

    Args:
        wanted: Names of groups, or patterns of run ids such as `gae_*`; or run ids or folders for each label.
        runs_dir: Folder of all runs.

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
            records = [run for run in known if run.group == label or fnmatchcase(run.name, label)]
        if not records:
            names = sorted({run.group for run in known if run.group})
            hint = did_you_mean(label, names) or f"; there are {', '.join(names) or 'none'}"
            raise ValueError(f"group {label}: no run in {runs_dir} belongs to it{hint}")
        if len({run.name for run in records}) < len(records):
            raise ValueError(f"group {label}: holds a run twice, or two of the same name")
        found[label] = {}
        for member in map(Member, records):
            found[label].setdefault(member.task, []).append(member)
        for task, members in found[label].items():
            if len(members) < 2:
                raise ValueError(f"group {label} has one run on {task}, {members[0].name}; give it two or more")
    tasks = {label: sorted(group) for label, group in found.items()}
    first = next(iter(tasks))
    for label in tasks:
        if tasks[label] != tasks[first]:
            each = (f"{name} on {', '.join(tasks[name])}" for name in (first, label))
            raise ValueError(f"groups have runs of different tasks: {'; '.join(each)}")
    return found


def differences(groups: Mapping[str, Group]) -> dict[str, dict[str, str]]:
    """Return the settings that groups do not share: name -> label -> value, several where runs of a group differ."""
    values: dict[str, dict[str, str]] = {}
    every = {label: [run.settings for runs in group.values() for run in runs] for label, group in groups.items()}
    names = dict.fromkeys(name for runs in every.values() for settings in runs for name in settings)
    for name in (name for name in names if name not in _OWN):
        known = {label: [run.get(name) for run in runs] for label, runs in every.items()}
        texts = {label: sorted({"-" if x is None else str(x) for x in each}) for label, each in known.items()}
        values[name] = {label: ", ".join(each) for label, each in texts.items()}
    return {name: each for name, each in values.items() if len(set(each.values())) > 1}


@dataclass(frozen=True)
class Estimate:
    """A value and its confidence interval: numbers, or `[points]` of a curve over `x [points]`."""

    value: Any
    low: Any
    high: Any
    x: Any = None


@dataclass(frozen=True)
class Scores:
    """Final scores of a group: means of the last tenth of each run's rows, up to where the shortest run ends."""

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
    """Return the interquartile mean of the scores of all tasks, each `[runs]` along `axis`."""
    return np.asarray(stats.trim_mean(np.concatenate(tasks, axis), 0.25, axis))


def probability_of_improvement(*tasks: Numbers, axis: int = -1) -> Numbers:
    """Return P(X > Y); first the scores of X on each task, then those of Y, runs along the last axis."""
    each = []
    for x, y in zip(tasks[: len(tasks) // 2], tasks[len(tasks) // 2 :], strict=True):
        x, y = np.moveaxis(x, axis, -1)[..., :, None], np.moveaxis(y, axis, -1)[..., None, :]
        each.append(((x > y) + 0.5 * (x == y)).mean((-2, -1)))
    return np.asarray(np.mean(each, axis=0))


def permutation_p(
    first: Sequence[Numbers], second: Sequence[Numbers], seed: int = 0, permutations: int = 10_000
) -> float:
    """Return how often P(X > Y) is as far from 1/2 if labels are dealt anew among the runs of each task.

    For one task this is the rank test of Mann & Whitney 1947, also with ties. With no difference p <= 0.05 in at
    most 5 % of cases with any number of runs, unlike an interval of the bootstrap that leaves 1/2 out.

        P(X > Y) - 1/2 = 1/M sum_m (mean rank of X_m - mean rank of all) / K_m

    Args:
        first: Scores of X on each task, `[N]`.
        second: Scores of Y on the same tasks, `[K]`.
        seed: Of the permutations.
        permutations: How many, with the labels as they are, which count as one (Phipson & Smyth 2010).
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
    """Return a figure with its interval by the stratified bootstrap.

    Args:
        statistic: Of arrays like those of `tasks`, along `axis`.
        tasks: `[runs]` or `[runs, points]` for each task, two runs or more; each is drawn from by itself.
        confidence: Of the interval.
        resamples: How often runs are drawn.
        seed: Of the draws.
        x: Points of a curve.
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
        threshold: Value of the metric; the steps and minutes until a run reaches it are reported. Only for a single
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
        raise ValueError(f"ranges: no run was trained on {task}, but on {', '.join(tasks)}")
    members = [run for group in found.values() for runs in group.values() for run in runs]
    metric = chosen_metric(metric, {str(run.record.folder): run.curves for run in members})
    if threshold is not None and len(tasks) > 1:
        raise ValueError("--threshold is of one task, and these groups were trained on several")
    how: dict[str, Any] = {"confidence": confidence, "resamples": resamples, "seed": seed}
    sign = -1 if minimize else 1
    curves, thresholds, rows = dict[str, dict[str, Estimate]](), dict[str, float](), list[Scores]()
    scaled: dict[str, list[Numbers]] = {label: [] for label in labels}  # of each task
    for task in tasks:
        runs = {label: found[label][task] for label in labels}
        curves[task], own, thresholds[task] = _on_task(task, runs, metric, threshold, sign, how)
        rows += own
        for label in labels:
            scaled[label].append(_scaled(own, label, sign, (ranges or {}).get(task)))
    if len(tasks) > 1:
        for label in labels:
            ids = dict.fromkeys(name for row in rows if row.group == label for name in row.scores)
            rows.append(_scores(label, ALL, ids, scaled[label], how))
    pairs = [_improvement(a, b, scaled, how) for a, b in combinations(labels, 2)]
    notes = _notes(found, metric)
    notes += [f"these seeds cannot distinguish {pair.group} from {pair.than}" for pair in pairs if not pair.tells]
    taus = np.linspace(0, 1, _POINTS)
    profiles = {}
    for label in labels:
        above = [(scores[:, None] > taus).astype(float) for scores in scaled[label]]
        profiles[label] = estimate(_mean_of_tasks, above, x=taus, **how)
    return Comparison(metric, confidence, differences(found), notes, rows, pairs, curves, profiles, thresholds)


def _on_task(
    task: str,
    groups: Mapping[str, Sequence[Member]],
    metric: str,
    threshold: float | None,
    sign: int,
    how: dict[str, Any],
) -> tuple[dict[str, Estimate], list[Scores], float]:
    """Return curves and scores of groups on one task, and its threshold; `sign` is -1 where lower is better."""
    drawn = [run.curves[metric] for runs in groups.values() for run in runs]
    begin, end = max(x[0] for x, _ in drawn), min(x[-1] for x, _ in drawn)
    if begin > end:
        raise ValueError(f"runs on {task} have no steps in common; train all for as long")
    points = np.linspace(begin, end, _POINTS)
    curves, finals = {}, {}
    for label, runs in groups.items():
        on_grid = np.stack([np.interp(points, *run.curves[metric]) for run in runs])
        curves[label] = estimate(iqm, [on_grid], x=points, **how)
        finals[label] = np.array([final_score(run.curves[metric], end) for run in runs])
    ends = [float(iqm(each)) for each in finals.values()]
    threshold = sign * min(sign * each for each in ends) if threshold is None else threshold
    scores = []
    for label, runs in groups.items():
        reached = {run.name: _reached(run.curves, metric, threshold, end, sign) for run in runs}
        scores.append(_scores(label, task, reached, [finals[label]], how))
    return curves, scores, threshold


def chosen_metric(metric: str | None, runs: Mapping[str, Mapping[str, Curve]]) -> str:
    """Return the metric to compare, which every run (by its name) has logged; a ValueError if one has not."""
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
                owners.setdefault(run.record.folder.resolve(), []).append(label)
                ends.setdefault(task, []).append(run.curves[metric][0][-1])
    for folder, labels in owners.items():
        if len(labels) > 1:
            notes.append(f"run {folder.name} is in groups {' and '.join(labels)}: they are not independent")
    for task, steps in ends.items():
        if max(steps) > _LONGER * min(steps):
            notes.append(f"{task}: all is compared up to {min(steps):,.0f} steps, where the shortest run ends")
    return notes


def _notes_on_task(label: str, task: str, runs: Sequence[Member]) -> list[str]:
    notes = [f"run {run.name} is unfinished" for run in runs if run.record.status == "unfinished"]
    notes += [f"the settings of run {run.name} cannot be read" for run in runs if not run.settings]
    if len({run.settings.get("seed", run.name) for run in runs}) < len(runs):
        notes.append(f"group {label} has runs with the same seed on {task}: they are not independent")
    if alike := differences({run.name: {task: [run]} for run in runs if run.settings}):
        notes.append(f"runs of group {label} on {task} differ in more than their seed: {', '.join(alike)}")
    if len(runs) < FEW:
        narrow = f"intervals of fewer than {FEW} runs are too narrow: of 5, one of 95 % covers about 89 %"
        notes.append(f"group {label} has {len(runs)} runs on {task}; {narrow}")
    return notes


def _scores(
    group: str, task: str, reached: Mapping[str, Reached], tasks: Sequence[Numbers], how: dict[str, Any]
) -> Scores:
    every = np.concatenate(tasks)
    figures = estimate(iqm, tasks, **how), float(every.mean()), float(np.median(every))
    return Scores(group, task, *figures, dict(zip(reached, every.tolist(), strict=True)), dict(reached))


def _scaled(scores: Sequence[Scores], label: str, sign: int, given: tuple[float, float] | None) -> Numbers:
    """Return a group's scores on a task, where 0 is worst and 1 is best."""
    every = [sign * score for row in scores for score in row.scores.values()]
    worst, best = (min(every), max(every)) if given is None else (sign * each for each in given)
    own = next(row.scores for row in scores if row.group == label)
    return (sign * np.array(list(own.values())) - worst) / ((best - worst) or 1.0)


def _reached(curves: Mapping[str, Curve], metric: str, threshold: float, end: float, sign: int) -> Reached:
    steps, values = curves[metric]
    there = steps[(sign * values >= sign * threshold) & (steps <= end)][:1]
    if not len(there):
        return None
    return float(there[0]), float(minutes_at(there, curves[SPEED])[0]) if SPEED in curves else None


def _improvement(a: str, b: str, scaled: Mapping[str, Sequence[Numbers]], how: dict[str, Any]) -> Improvement:
    found = estimate(probability_of_improvement, [*scaled[a], *scaled[b]], **how)
    p = permutation_p(scaled[a], scaled[b], how["seed"])
    return Improvement(a, b, found, p, tells=p <= 1 - how["confidence"])
