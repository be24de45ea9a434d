"""`fabric-rl compare`: groups of runs side by side, with what their seeds can tell."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from fabric_rl.analysis import comparison
from fabric_rl.analysis.comparison import ALL, Comparison, Estimate, Improvement, Scores
from fabric_rl.analysis.curves import new_figure
from fabric_rl.analysis.plots import comparison_figure
from fabric_rl.base.files import write_json
from fabric_rl.base.tables import figure_text
from fabric_rl.commands.html_tables import Section, shown, write_page
from fabric_rl.commands.output import Report, write_png


def compare(
    groups: Sequence[str],
    metric: str | None = None,
    threshold: float | None = None,
    minimize: bool = False,
    out: Path | None = None,
    confidence: float = 0.95,
    runs_dir: Path = Path("runs"),
) -> Iterator[Report]:
    """Compare groups of runs over their seeds: final scores, time to a threshold, and differing settings.

    The results are interquartile means with intervals from the stratified bootstrap (Agarwal et al. 2021).

    Args:
        groups: Names of groups (`fabric-rl seeds`), or patterns of run ids such as 'gae_*'.
        metric: Column of metrics.csv to compare. Default: the return of evaluations, or the training return without
            them.
        threshold: Value of the metric whose time and steps are compared. Default: the final score of the worst group.
        minimize: Lower values of the metric are better. Default: higher values are better.
        out: Folder for compare.json, compare.png and compare.html.
        confidence: Confidence level of the intervals, above 0 and below 1.
        runs_dir: Folder that contains all runs.
    """
    if out is not None:
        new_figure(1, 1)  # says what is missing before any work
        if out.exists() and not out.is_dir():
            raise ValueError(f"--out {out}: this is no folder")
    found = comparison.compare(groups, metric, runs_dir, threshold, minimize, confidence=confidence)
    sections = sections_of(found)
    yield Report(shown(sections))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        figure = comparison_figure(found)
        write_json(out / "compare.json", asdict(found))
        write_png(figure, out / "compare.png")
        write_page(out / "compare.html", " against ".join(groups), sections, figure)
        print(f"written: {out / 'compare.html'}, and compare.json and compare.png beside it")


def sections_of(found: Comparison) -> list[Section]:
    """Return the tables, the differences between the groups' settings first."""
    labels = list(dict.fromkeys(row.group for row in found.scores))
    settings = [[name, *(each[label] for label in labels)] for name, each in found.differences.items()]
    none = [] if settings or len(labels) == 1 else ["the groups have the same settings"]
    percent = f"{100 * found.confidence:g} % interval"
    sections = [
        Section("Settings that differ", ["setting", *labels], settings, none),
        Section(
            f"Final {found.metric}",
            ["task", "group", "runs", "interquartile mean", percent, "mean", "median"],
            [_final_score(row) for row in found.scores],
        ),
        Section(
            "Probability that a run is better",
            ["", "probability", percent, "p", "distinguishable"],
            [_better(pair) for pair in found.improvements],
        ),
        Section(
            "Steps and time until the threshold",
            ["task", "group", "threshold", "reached by", "steps, median", "first to last", "minutes, median"],
            [_reached(row, found.thresholds[row.task]) for row in found.scores if row.task != ALL],
        ),
        Section("Notes", lines=found.notes),
    ]
    return [sections[0], *(section for section in sections[1:] if section.rows or section.lines)]


def _final_score(row: Scores) -> list[str]:
    figures = [figure_text(row.iqm.value), _span(row.iqm, figure_text), figure_text(row.mean), figure_text(row.median)]
    return [row.task, row.group, str(len(row.scores)), *figures]


def _better(pair: Improvement) -> list[str]:
    share, distinguishable = "{:.0%}".format, "yes" if pair.tells else "no"
    chance = [share(pair.probability.value), _span(pair.probability, share)]
    return [f"{pair.group} better than {pair.than}", *chance, figure_text(pair.p), distinguishable]


def _span(estimate: Estimate, text: Callable[[float], str]) -> str:
    return f"{text(estimate.low)} to {text(estimate.high)}"


def _reached(row: Scores, threshold: float) -> list[str]:
    steps, minutes = np.array([each or (math.inf, math.inf) for each in row.reached.values()], float).T
    by = f"{np.isfinite(steps).sum()} of {len(steps)}"
    span = f"{_or_never(steps.min())} to {_or_never(steps.max())}"
    medians = [_or_never(np.median(each)) for each in (steps, minutes)]
    return [row.task, row.group, figure_text(threshold), by, medians[0], span, medians[1]]


def _or_never(number: float) -> str:
    return "never" if math.isinf(number) else figure_text(float(number))
