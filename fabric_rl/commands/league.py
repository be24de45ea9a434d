"""`fabric-rl league`: everybody against everybody, and one ladder for all."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from envs.matches.matches import PAIRS_AT_ONCE, SIDES, Matches
from envs.pool.replay_format import SUFFIX
from fabric_rl.analysis.curves import new_figure
from fabric_rl.base.tables import progress, table
from fabric_rl.commands.output import JSON, Out, Report, check_file, writes
from fabric_rl.commands.record import record_game
from fabric_rl.evaluation.play import Block, play_blocks
from fabric_rl.evaluation.players import Rules, entrant, short_name
from fabric_rl.evaluation.results import Competitor, standings
from fabric_rl.evaluation.settings import DEFAULT_CONTEST, ContestSettings, UpTo
from fabric_rl.runs.records import find_run

_WIDEST = 10
"""Players whose matrix is shown on a terminal."""


@writes(JSON, Out("png", [".png"], ".png file for a figure of ratings and scores."))
def league(
    players: Sequence[str],
    matches: UpTo = 40,
    play: ContestSettings = DEFAULT_CONTEST,
    record: Path | None = None,
) -> Iterator[Report]:
    """Play a round robin and rate the players, with intervals.

    It prints ratings (Elo scale, fitted with the Bradley-Terry model; 400 points are odds of 10 to 1) and the score of
    each player against each other. It also reports if a single ranking does not fit, for example because A beats B, B
    beats C and C beats A.

    Args:
        players: Two or more players, as in `fabric-rl evaluate`; or one run, whose milestones play and whose folder
            gets league.json.
        matches: Number of matches between any two players; an odd number is rounded up to full pairs.
        play: How they play.
        record: Folder for one .frl replay of each pair of players, to watch (docs/watching.md).
    """
    if record is not None and record.exists() and not record.is_dir():
        raise ValueError(f"--record {record}: must be a folder")
    folder, field = _field(players, play.runs_dir)
    files = [] if folder is None else [folder / "league.json"]
    for file in files:
        check_file(file, "league:")
    entrants = [entrant(player.name, play.sample, play.runs_dir) for player in field]
    pairings = list(combinations(range(len(field)), 2))
    for one, other in pairings:
        if entrants[one].who == entrants[other].who:
            raise ValueError(f"{field[one].name} and {field[other].name} are the same; a league takes different ones")
    rules = Rules.of(entrants, play, play.minutes)
    pairs = -(-matches // SIDES)
    seeds = np.random.SeedSequence(play.seed).generate_state(len(pairings)).tolist()
    blocks = [
        Block(field[i].name, field[j].name, own_seed, number)
        for number in range(-(-pairs // PAIRS_AT_ONCE))
        for (i, j), own_seed in zip(pairings, seeds, strict=True)
    ]
    what = f"{len(pairings)} times {SIDES * pairs} matches"
    with progress(what) as tell, closing(play_blocks(rules, blocks, play.workers, tell)) as blocks_played:
        parts = list(blocks_played)
    played = {pair: Matches.of(parts[first :: len(pairings)], pairs) for first, pair in enumerate(pairings)}
    found = standings(field, played, play.confidence) | {"seed": play.seed, "sample": play.sample}
    found |= {"minutes": rules.minutes, "team_size": rules.team_size, "tick_skip": rules.tick_skip}
    found["confidence"] = play.confidence
    title = [f"{what} of {rules.minutes:g} minutes, {rules.team_size}v{rules.team_size}", *rules.remarks]
    shown: list[Table | str] = [*tables(found, "; ".join(title)), verdict(found)]
    yield Report(shown, found, draw=partial(draw_league, found), files=files)
    if record is not None:
        record.mkdir(parents=True, exist_ok=True)
        for i, j in pairings:
            file = record / f"{_file_name(field[i])}_vs_{_file_name(field[j])}{SUFFIX}"
            record_game(field[i].name, field[j].name, rules.play, rules.minutes, file)


def _file_name(player: Competitor) -> str:
    return re.sub(r"[^\w.,#-]+", "_", player.label)


def _field(names: Sequence[str], runs_dir: str) -> tuple[Path | None, list[Competitor]]:
    if len(names) > 1:
        short = [short_name(name) for name in names]
        labels = [label if short.count(label) == 1 else name for label, name in zip(short, names, strict=True)]
        return None, [Competitor(label, name) for label, name in zip(labels, names, strict=True)]
    try:
        run = find_run(runs_dir, names[0])
    except ValueError as error:
        raise ValueError(f"a league takes two players or more, or a run with milestones; {error}") from error
    milestones = sorted(run.milestones, key=lambda milestone: milestone.steps)
    if len(milestones) < 2:
        has = "1 milestone" if milestones else "no milestones"
        raise ValueError(f"{run.name} has {has}, and a league takes two; train with --milestone_interval")
    return run.folder, [Competitor(f"{m.phase}/{m.steps:,}", str(m.folder), m.steps) for m in milestones]


def tables(found: Mapping[str, Any], title: str) -> list[Table]:
    """Return the ladder, the best player first, and for few players the score of each against each."""
    rows = []
    for row, payoff in sorted(zip(found["ratings"], found["payoff"], strict=True), key=lambda each: -each[0]["rating"]):
        score = (sum(payoff) - 0.5) / (len(payoff) - 1)
        skill = f"{row['openskill_mu']:.1f} ± {row['openskill_sigma']:.1f}"
        interval = f"{row['low']:.0f} to {row['high']:.0f}"
        rows.append([row["name"], f"{row['rating']:.0f}", interval, f"{score:.1%}", skill])
    ladder = table(title, ["player", ">rating", ">interval", ">score", ">OpenSkill"], rows)
    names = found["names"]
    scores = [
        [name, *("-" if i == j else f"{score:.0%}" for j, score in enumerate(found["payoff"][i]))]
        for i, name in enumerate(names)
    ]
    matrix = table("", ["score against", *names], scores)
    return [ladder, matrix] if len(names) <= _WIDEST else [ladder]


def verdict(found: Mapping[str, Any]) -> str:
    """Tell whether one ladder explains the results."""
    if found["misfit"] is None:
        return "two players are always on one ladder"
    fits = "does not explain" if found["misfit"] < 0.05 else "explains"
    share = f"{found['intransitive_triples']:.0%} of all triples of players beat each other in a circle"
    return f"one ladder {fits} these results (p = {found['misfit']:.2g}); {share}"


def draw_league(found: Mapping[str, Any]) -> Any:  # noqa: ANN401 - see new_figure
    """Ratings with their intervals, of milestones over their steps, and all scores."""
    left, right = (figure := new_figure(12, 5)).subplots(1, 2)
    names, rows = found["names"], found["ratings"]
    over_steps = all(row["steps"] is not None for row in rows)
    places = [row["steps"] for row in rows] if over_steps else range(len(rows))
    ratings, half = [row["rating"] for row in rows], [row["high"] - row["rating"] for row in rows]
    left.errorbar(places, ratings, yerr=half, fmt="o-" if over_steps else "o", capsize=4)
    left.set(ylabel="rating", xlabel="agent-steps" if over_steps else "")
    left.grid(alpha=0.3)
    right.imshow(found["payoff"], vmin=0, vmax=1, cmap="RdYlGn")
    for (i, j), score in np.ndenumerate(found["payoff"]):
        right.text(j, i, "" if i == j else f"{score:.0%}", ha="center", va="center")
    right.set(title="score of the row against the column")
    right.set_yticks(range(len(names)), names)
    for axes in (right,) if over_steps else (left, right):
        axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
    return figure
