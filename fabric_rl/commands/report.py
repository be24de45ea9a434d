"""`fabric-rl report` and `compare`: a run, or groups of runs over their seeds, as tables and HTML pages."""

import base64
import gzip
import math
import re
import webbrowser
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from envs.matches.statistics import STATISTICS, Counts, pair_totals
from envs.pool.replay_format import SUFFIX
from envs.replays.figures import NOT_RECORDED, measure_replay
from envs.replays.replay import Replay, extract_games, read_replay
from envs.state.layout import Float
from fabric_rl.analysis import comparison
from fabric_rl.analysis.comparison import ALL, Comparison, Estimate, Improvement, Scores
from fabric_rl.analysis.curves import SPEED, choose_metrics, minutes_at, new_figure
from fabric_rl.analysis.plots import comparison_figure
from fabric_rl.base.config_files import read_yaml
from fabric_rl.base.files import atomic_write, open_regular, read_json, write_json, write_text
from fabric_rl.base.tables import finite_or_none, format_number, format_time
from fabric_rl.base.text import escape_control_characters
from fabric_rl.commands.figures import field_maps, find_weaknesses, format_mean
from fabric_rl.commands.output import (
    Report,
    Section,
    check_out,
    png_of,
    print_all,
    section_tables,
    templates,
    write_page,
)
from fabric_rl.commands.runs import USUAL_METRICS
from fabric_rl.metrics.metrics_csv import Curve, mean_of_last_tenth, read_metrics
from fabric_rl.runs.records import CONFIG, ENVIRONMENT, RunRecord, find_run, flat_settings
from fabric_rl.viewer.page import page_with

_MOST_POINTS = 400
_MOST_GAMES, _MOST_GAME_BYTES = 8, 20_000_000
_MOST_WHOLE, _MOST_WHOLE_BYTES, _MOST_FRAMES = 3, 1_000_000, 20_000
"""Whole games in a page, size of each, and frames that are measured (about four seconds of work)."""
_MOST_GOALS, _SECONDS_BEFORE = 12, 7.0
_FEWEST_KICKOFFS = 10
"""Fewer kickoffs (or own goals, below 3) do not show a weakness."""
Stage = tuple[str, str, int, int]
"""Kind (`phase` or `lesson`), name, first and last agent-step."""
Clip = tuple[str, str, str]
"""Score or speed, title, and replay in base64."""


def report(id: str, out: Path | None = None, runs_dir: Path = Path("runs"), open: bool = False) -> int:
    """Write an HTML report of a run: results, curves, phases, milestones, goals and settings.

    This also works while the run trains. The page is self-contained and needs no internet connection. Its goals are the
    fastest ones in the most recent recorded games (.frl) in the run's folder and its subfolders.

    Args:
        id: Run id or folder.
        out: Output file, .html. Default: report.html in the run's folder.
        runs_dir: Folder that contains all runs.
        open: Open the page in the browser.
    """
    run = find_run(runs_dir, id)
    out = out or run.folder / "report.html"
    check_out([out], [".html"])
    curves = read_metrics(run.folder / "metrics.csv")
    if not curves:
        raise ValueError(f"run {run.name} has logged no metrics yet; try again after its first iteration")
    write_text(out, page_of(run, curves))
    print_all([f"written: {out} ({out.stat().st_size / 1e6:.2f} MB)"])
    if open:
        webbrowser.open(out.resolve().as_uri())
    return 0


def page_of(run: RunRecord, curves: Mapping[str, Curve]) -> str:
    """Return the HTML report of a run; everything from the run's files is escaped."""
    curves = {escape_control_characters(name): curve for name, curve in curves.items()}
    settings: dict[str, Any] = {}
    with suppress(OSError, ValueError):  # the page says that they cannot be read
        settings = flat_settings(read_yaml(run.folder / CONFIG) or {})
    replays, measured, unread = read_games(run.folder)
    ends = {name: (mean_of_last_tenth(y, first=True), mean_of_last_tenth(y)) for name, (_, y) in curves.items()}
    stages = stages_of(curves, settings)
    last = max(steps[-1] for steps, _ in curves.values())
    groups: dict[str, list[str]] = {}
    for name in curves:
        groups.setdefault(name.partition("/")[0], []).append(name)
    parts = [name for name in curves if f"reward_percent/{name.removeprefix('reward/')}" in curves]
    began = None
    with suppress(OSError, ValueError), open_regular(run.folder / "log.txt") as file:
        began = datetime.fromisoformat(file.readline(19).decode())
    environment = templates()
    environment.filters |= {"figure": format_number, "when": format_time}
    return environment.get_template("report.html").render(
        run=run,
        began=began,
        minutes=_minutes(run, curves),
        headlines=choose_metrics({run.name: dict(curves)}, usual=USUAL_METRICS),
        settings=settings,
        versions=read_json(run.folder / ENVIRONMENT),
        groups=groups,
        parts=parts,
        ends=ends,
        stages=stages,
        league=_league(run.folder),
        replays=replays,
        unread=unread,
        figures=next((_figures(*game, ends) for game in measured.items()), None),  # of the newest game's players
        viewer=base64.b64encode(gzip.compress(page_with(b"").encode(), 9, mtime=0)).decode() if replays else "",
        data={
            "curves": {name: [_thin(axis) for axis in curve] for name, curve in curves.items()},
            "stages": [(end, f"{kind} {name}") for kind, name, _, end in stages if end < last],
            "milestones": [(each.steps, escape_control_characters(each.phase)) for each in run.milestones],
            "replays": [replay for *_, replay in replays],
        },
    )


def stages_of(curves: Mapping[str, Curve], settings: Mapping[str, Any]) -> list[Stage]:
    """Return the phases and lessons in the metrics, each with its name if the settings have it."""
    found: list[Stage] = []
    for metric, (steps, numbers) in curves.items():
        kind, _, name = metric.partition("/")
        if metric != "phase/number" and (kind != "lesson" or name.endswith("_measure")):
            continue
        numbers = np.ceil(numbers)  # a row is the mean of several iterations
        changes = np.flatnonzero(np.diff(numbers))
        begins, ends = [0, *steps[changes]], [*steps[changes], steps[-1]]
        for number, begin, end in zip(numbers[[*changes, -1]].astype(int), begins, ends, strict=True):
            pattern = re.compile(rf"callbacks\.\d+\.phases\.{number}\.name")
            known = next((value for key, value in settings.items() if pattern.fullmatch(key)), "")
            label = f"{number} {known}" if kind == "phase" else f"{name} {number}"
            found.append((kind, escape_control_characters(label.strip()), int(begin), int(end)))
    return found


def read_games(folder: Path) -> tuple[list[Clip], dict[tuple[str, str], list[tuple[Counts, Float]]], int]:
    """Read the newest recorded games in a folder and its subfolders.

    Return whole games and then the fastest goals; the measured games by their players; the number of unreadable files.
    """
    games: list[Clip] = []
    found: list[tuple[float, Clip]] = []
    measured: dict[tuple[str, str], list[tuple[Counts, Float]]] = {}
    unread, left = 0, _MOST_FRAMES
    files = filter(Path.is_file, folder.rglob(f"*{SUFFIX}"))
    for file in sorted(files, key=lambda path: path.stat().st_mtime, reverse=True)[:_MOST_GAMES]:
        try:
            if (size := file.stat().st_size) > _MOST_GAME_BYTES:
                raise ValueError(f"{file} is too large")
            replay = read_replay(file)
            blue, orange = map(str, replay.about["names"])
            found += _goals_of(replay, file.name)
            left -= sum(game.num_frames for game in replay.games)
            if left >= 0:
                figures = measure_replay(replay)
                measured.setdefault((blue, orange), []).append(figures)
            if len(games) < _MOST_WHOLE and size <= _MOST_WHOLE_BYTES:
                goals = [event["team"] for game in replay.games for event in game.events if event["kind"] == "goal"]
                title, score = str(replay.about.get("title", file.name)), f"{goals.count(0)} : {goals.count(1)}"
                games.append((score, title, base64.b64encode(file.read_bytes()).decode()))
        except (OSError, ValueError, TypeError, LookupError, ArithmeticError):  # damaged or forged
            unread += 1
    return [*games, *(clip for _, clip in sorted(found, reverse=True)[:_MOST_GOALS])], measured, unread


def _goals_of(replay: Replay, file: str) -> list[tuple[float, Clip]]:
    """Return the fastest goals in a replay, with their speed."""
    found = []
    before = round(_SECONDS_BEFORE * replay.about["ticks_per_second"] / replay.about["tick_skip"])
    for game in replay.games:
        goals = [event for event in game.events if event["kind"] == "goal"]
        begins = np.append(np.flatnonzero(game.columns["begins"]), game.num_frames)
        speeds = np.linalg.norm(game.columns["ball_vel"][[goal["frame"] for goal in goals]], axis=1)
        for fastest in np.argsort(-speeds, kind="stable")[:_MOST_GOALS]:
            event, speed = goals[fastest], float(speeds[fastest])
            end = event["frame"]
            kickoff, after = int(begins[begins <= end][-1]), int(begins[begins > end][0])
            piece = extract_games(replay, [(game, max(kickoff, end - before), min(after, end + 1 + before // 3))])
            minutes, seconds = divmod(int(event["seconds"]), 60)
            title = f"{replay.about['names'][event['team']]}, {file} at {minutes}:{seconds:02}"
            shown = f"{speed:,.0f} uu/s ({0.036 * speed:.0f} km/h)"
            found.append((speed, (shown, title, base64.b64encode(piece).decode())))
    return found


def _figures(
    names: tuple[str, str], games: Sequence[tuple[Counts, Float]], ends: Mapping[str, tuple[float, float]]
) -> dict[str, Any]:
    """Return the arguments of `figures.html`; `ends` are the first and last values of the metrics."""
    counts, maps = (sum(each) for each in zip(*games, strict=True))
    totals = {name: each[0].tolist() for name, each in pair_totals(counts[:, None, None]).items()}
    means = {name: [count / per if per else None for count, per in both] for name, both in totals.items()}
    means = {name: both for name, both in means.items() if name not in NOT_RECORDED}
    known = [(STATISTICS[name], both) for name, both in means.items()]
    rows = [[each.label, *(format_mean(mean, None, each.is_share) for mean in both)] for each, both in known]
    few = {"kickoffs_won": totals["kickoffs_won"][0][1] < _FEWEST_KICKOFFS, "own_goals": totals["own_goals"][0][0] < 3}
    shown = {name: both for name, both in means.items() if not few.get(name)}
    weak = find_weaknesses(names[0], shown, {name: last for name, (_, last) in ends.items()})
    return {"names": names, "findings": weak, "maps": field_maps(maps), "rows": rows}


def _league(folder: Path) -> dict[str, Any] | None:
    """Return `names [P]`, `payoff [P, P]` (the row's score) and `ratings [P, 3]` (with interval) from league.json."""
    found = read_json(folder / "league.json")
    try:
        names, payoff = list(map(str, found["names"])), np.array(found["payoff"], np.float64)
        rows = [[row[key] for key in ("rating", "low", "high")] for row in found.get("ratings", ())]
        ratings = np.array(rows, np.float64).reshape(-1, 3)
        if payoff.shape != (len(names), len(names)) or len(ratings) not in (len(names), 0):
            return None
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    return {"names": names, "payoff": payoff.tolist(), "ratings": ratings.tolist()}


def _minutes(run: RunRecord, curves: Mapping[str, Curve]) -> float | None:
    seconds = finite_or_none(run.summary.get("wall_seconds"))
    if run.status != "unfinished" and seconds is not None:
        return seconds / 60
    return float(minutes_at(curves[SPEED][0], curves[SPEED])[-1]) if SPEED in curves else None


def _thin(numbers: Any) -> list[float]:  # noqa: ANN401 - an array with one axis
    """Return at most `_MOST_POINTS` means of adjacent numbers, with the digits that a picture needs."""
    pieces = np.array_split(numbers, min(len(numbers), _MOST_POINTS))
    return [float(f"{(piece / len(piece)).sum():.6g}") for piece in pieces]  # divide first, so the sum cannot overflow


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
        confidence: Confidence level of the intervals, from 0.5 to below 1.
        runs_dir: Folder that contains all runs.
    """
    if out is not None:
        new_figure(1, 1)  # if matplotlib is missing, fail before any work
        if out.exists() and not out.is_dir():
            raise ValueError(f"--out {out} is not a folder")
    found = comparison.compare(groups, metric, runs_dir, threshold, minimize, confidence=confidence)
    sections = comparison_sections(found)
    yield Report(section_tables(sections))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        draw = partial(comparison_figure, found)
        write_json(out / "compare.json", asdict(found))
        atomic_write(out / "compare.png", png_of(draw()))
        write_page(out / "compare.html", " against ".join(groups), sections, draw)
        print_all([f"written: {out / 'compare.html'}, and compare.json and compare.png next to it"])


def comparison_sections(found: Comparison) -> list[Section]:
    """Return the tables of a comparison, the differences between settings first."""
    labels = list(dict.fromkeys(row.group for row in found.scores))
    settings = [[name, *(each[label] for label in labels)] for name, each in found.differences.items()]
    none = [] if settings or len(labels) == 1 else ["the groups have the same settings"]
    percent = f"{100 * found.confidence:g} % interval"
    sections = [
        Section("Settings that differ", ["setting", *labels], settings, none),
        Section(
            f"Final {found.metric} (mean of the last 10 %)",
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
    figures = [
        format_number(row.iqm.value),
        _span(row.iqm, format_number),
        format_number(row.mean),
        format_number(row.median),
    ]
    return [row.task, row.group, str(len(row.scores)), *figures]


def _better(pair: Improvement) -> list[str]:
    share, distinguishable = "{:.0%}".format, "yes" if pair.tells else "no"
    chance = [share(pair.probability.value), _span(pair.probability, share)]
    return [f"{pair.group} better than {pair.than}", *chance, format_number(pair.p), distinguishable]


def _span(estimate: Estimate, text: Callable[[float], str]) -> str:
    return f"{text(estimate.low)} to {text(estimate.high)}"


def _reached(row: Scores, threshold: float) -> list[str]:
    steps, minutes = np.array([each or (math.inf, math.inf) for each in row.reached.values()], float).T
    by = f"{np.isfinite(steps).sum()} of {len(steps)}"
    span = f"{_or_never(steps.min())} to {_or_never(steps.max())}"
    medians = [_or_never(np.median(each)) for each in (steps, minutes)]
    return [row.task, row.group, format_number(threshold), by, medians[0], span, medians[1]]


def _or_never(number: float) -> str:
    return "never" if math.isinf(number) else format_number(float(number))
