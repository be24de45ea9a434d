"""`fabric-rl report`: a run as one page of HTML that opens with a double click."""

import base64
import gzip
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from envs.pool.replay_format import SUFFIX
from envs.replays.replay import excerpt, read_replay
from fabric_rl.analysis.curves import SPEED, Curve, choose_metrics, mean_of_tenth, minutes_at, read_metrics
from fabric_rl.base.config_files import read_yaml
from fabric_rl.base.files import read_json, write_text
from fabric_rl.base.tables import figure_text, number_of, when_text
from fabric_rl.commands.html_tables import templates
from fabric_rl.commands.output import check_out
from fabric_rl.commands.runs import USUAL_METRICS
from fabric_rl.runs.provenance import CONFIG, ENVIRONMENT, flat_settings
from fabric_rl.runs.records import RunRecord, find_run
from fabric_rl.viewer.page import page_with

_MOST_POINTS = 400
_MOST_GAMES, _MOST_GAME_BYTES = 8, 20_000_000
_MOST_GOALS, _SECONDS_BEFORE = 12, 7.0
Stage = tuple[str, str, int, int]
"""`phase` or `lesson`, its name, and the agent-steps where it begins and ends."""
Goal = tuple[float, str, str]
"""uu/s of the ball, who and when, and the replay of the seconds before, base64."""


def report(id: str, out: Path | None = None, runs_dir: Path = Path("runs")) -> int:
    """Write an HTML report of a run: results, curves, phases, milestones, goals and settings.

    This also works while the run trains. The page is self-contained and needs no internet connection. Its goals are the
    fastest ones in the most recent recorded games (.frl) in the run's folder and its subfolders.

    Args:
        id: Run id or folder.
        out: Output file, .html. Default: report.html in the run's folder.
        runs_dir: Folder that contains all runs.
    """
    run = find_run(runs_dir, id)
    out = out or run.folder / "report.html"
    check_out([out], [".html"])
    curves = read_metrics(run.folder / "metrics.csv")
    if not curves:
        raise ValueError(f"run {run.name} has logged no metrics yet; try again after its first iteration")
    write_text(out, page_of(run, curves).encode(errors="replace").decode())  # half a character in a name
    print(f"written: {out} ({out.stat().st_size / 1e6:.2f} MB)")
    return 0


def page_of(run: RunRecord, curves: Mapping[str, Curve]) -> str:
    """Return the page. Whatever is in the files of a run is text in it, never HTML."""
    settings: dict[str, Any] = {}
    with suppress(OSError, ValueError):  # the page says that they cannot be read
        settings = flat_settings(read_yaml(run.folder / CONFIG) or {})
    goals, unread = best_goals(run.folder)
    stages = stages_of(curves, settings)
    last = max(steps[-1] for steps, _ in curves.values())
    groups: dict[str, list[str]] = {}
    for name in curves:
        groups.setdefault(name.partition("/")[0], []).append(name)
    parts = [name for name in curves if f"reward_percent/{name.removeprefix('reward/')}" in curves]
    environment = templates()
    environment.filters |= {"figure": figure_text, "when": when_text}
    return environment.get_template("report.html").render(
        run=run,
        began=_began(run.folder),
        minutes=_minutes(run, curves),
        headlines=choose_metrics({run.name: dict(curves)}, usual=USUAL_METRICS),
        settings=settings,
        versions=read_json(run.folder / ENVIRONMENT),
        groups=groups,
        parts=parts,
        ends={name: (mean_of_tenth(y, first=True), mean_of_tenth(y)) for name, (_, y) in curves.items()},
        stages=stages,
        league=_league(run.folder),
        goals=goals,
        unread=unread,
        viewer=base64.b64encode(gzip.compress(page_with(b"").encode(), 9, mtime=0)).decode() if goals else "",
        data={
            "curves": {name: [_thin(axis) for axis in curve] for name, curve in curves.items()},
            "stages": [(end, f"{kind} {name}") for kind, name, _, end in stages if end < last],
            "milestones": [(milestone.steps, milestone.phase) for milestone in run.milestones],
            "replays": [replay for *_, replay in goals],
        },
    )


def stages_of(curves: Mapping[str, Curve], settings: Mapping[str, Any]) -> list[Stage]:
    """Return the phases and lessons in the metrics, each with its name if the settings have it."""
    found: list[Stage] = []
    for metric, (steps, numbers) in curves.items():
        kind, _, name = metric.partition("/")
        if metric != "phase/number" and (kind != "lesson" or name.endswith("_measure")):
            continue
        changes = np.flatnonzero(np.diff(numbers))
        begins, ends = [0, *steps[changes]], [*steps[changes], steps[-1]]
        for number, begin, end in zip(numbers[[*changes, -1]].astype(int), begins, ends, strict=True):
            pattern = re.compile(rf"callbacks\.\d+\.phases\.{number}\.name")
            known = next((value for key, value in settings.items() if pattern.fullmatch(key)), "")
            label = f"{number} {known}" if kind == "phase" else f"{name} {number}"
            found.append((kind, label.strip(), int(begin), int(end)))
    return found


def best_goals(folder: Path) -> tuple[list[Goal], int]:
    """Return the fastest goals of the newest recorded games below a folder, and the number of unreadable files."""
    found: list[Goal] = []
    unread = 0
    files = filter(Path.is_file, folder.rglob(f"*{SUFFIX}"))
    for file in sorted(files, key=lambda path: path.stat().st_mtime, reverse=True)[:_MOST_GAMES]:
        try:
            if file.stat().st_size > _MOST_GAME_BYTES:
                raise ValueError(f"{file} is too large")
            replay = read_replay(file)
            before = round(_SECONDS_BEFORE * replay.about["ticks_per_second"] / replay.about["tick_skip"])
            for game in replay.games:
                goals = [event for event in game.events if event["kind"] == "goal"]
                speeds = np.linalg.norm(game.columns["ball_vel"][[goal["frame"] for goal in goals]], axis=1)
                for fastest in np.argsort(-speeds, kind="stable")[:_MOST_GOALS]:
                    event, speed = goals[fastest], float(speeds[fastest])
                    end = event["frame"]
                    kickoff = int(np.flatnonzero(game.columns["begins"][: end + 1])[-1])
                    piece = excerpt(replay, [(game, max(kickoff, end - before), end + 1)])
                    title = f"{replay.about['names'][event['team']]} at {event['seconds']:.0f} s of {file.name}"
                    found.append((speed, title, base64.b64encode(piece).decode()))
        except (OSError, ValueError, TypeError, LookupError, ArithmeticError):  # damaged, or what it says is nonsense
            unread += 1
    return sorted(found, reverse=True)[:_MOST_GOALS], unread


def _league(folder: Path) -> dict[str, Any] | None:
    """Return `names [P]`, `payoff [P, P]` (score of the row) and `ratings [P, 3]` (with intervals) of league.json."""
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


def _began(folder: Path) -> datetime | None:
    with suppress(OSError, ValueError), (folder / "log.txt").open(encoding="utf-8") as file:
        return datetime.fromisoformat(file.readline(19))
    return None


def _minutes(run: RunRecord, curves: Mapping[str, Curve]) -> float | None:
    seconds = number_of(run.summary.get("wall_seconds"))
    if run.status != "unfinished" and seconds is not None:
        return seconds / 60
    return float(minutes_at(curves[SPEED][0], curves[SPEED])[-1]) if SPEED in curves else None


def _thin(numbers: Any) -> list[float]:  # noqa: ANN401 - an array of one axis
    """Return means of at most `_MOST_POINTS` neighbours each, with the digits that a picture needs."""
    pieces = np.array_split(numbers, min(len(numbers), _MOST_POINTS))
    return [float(f"{(piece / len(piece)).sum():.6g}") for piece in pieces]  # the sum of all may be infinite
