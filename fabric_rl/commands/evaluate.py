"""`fabric-rl evaluate`: matches between trained agents and bots, or episodes of an agent that plays alone."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from rich.table import Table

from envs.matches.matches import PAIRS_AT_ONCE, SIDES, Matches
from envs.matches.statistics import STATISTICS
from envs.pool.replay_format import SUFFIX
from fabric_rl.base.settings import Positive
from fabric_rl.base.tables import progress, table
from fabric_rl.commands.output import JSON, Out, Report, writes
from fabric_rl.commands.record import record_game
from fabric_rl.evaluation.demonstrations import trained_elsewhere
from fabric_rl.evaluation.play import Block, play_blocks
from fabric_rl.evaluation.players import Rules, entrant, short_name
from fabric_rl.evaluation.results import (
    Samples,
    difference_interval,
    episodes_summary,
    look,
    statistics_summary,
    summary,
)
from fabric_rl.evaluation.settings import DEFAULT_CONTEST, ContestSettings, PlaySettings, UpTo
from fabric_rl.runs.trained import Trained
from fabric_rl.selfplay.ratings.intervals import LEAST_SAMPLES

_MATCHES, _MOST_MATCHES, _EPISODES = 200, 2000, 100


@writes(Out("out", [".json"], ".json file for the results."), JSON, Out("record", [SUFFIX]))
def evaluate(
    player: str,
    opponent: str | None = None,
    /,
    matches: UpTo | None = None,
    play: ContestSettings = DEFAULT_CONTEST,
    episodes: UpTo | None = None,
    until_width: Positive | None = None,
    sequential: bool = False,
    record: Path | None = None,
) -> Iterator[Report]:
    """Play pairs of matches on real physics, and report the goal difference with its interval.

    The two matches of a pair have the same kickoffs, with the sides swapped. All other kickoffs differ: cars are
    slightly off the spot and turned, have more or less boost, and react slightly late. So the pairs are independent
    samples, and the 95 % confidence interval is Student's t over the pairs. With fewer than 10 pairs there is no
    interval.

    With --sequential or --until_width, the command plays until the result is clear enough and checks after every 10
    pairs. The intervals then stay valid for any number of checks.

    An agent of another environment, such as CartPole-v1, plays episodes of that environment, without an opponent.

    Args:
        player: Player to evaluate: a run id, a path (run, milestone, checkpoint, exported agent), school_1v1 or
            school_2v2 (included), a bot (idle, random, chaser, shooter, circle, hover, hop), or the class path of a
            bot.
        opponent: Opponent, with the same choices. Default: chaser.
        matches: Number of matches; an odd number is rounded up to full pairs. Default: 200. With --sequential or
            --until_width: the maximum, by default 2000.
        play: How they play.
        episodes: Number of episodes for an agent of another environment, the same number in every sub-environment.
            Default: 100.
        until_width: Play until the interval of the goal difference is at most this wide, in goals per match.
        sequential: Play until it is clear which player wins more matches; a draw is half a win.
        record: .frl file for an additional match between the two, to watch (docs/watching.md).
    """
    if sequential and until_width is not None:
        raise ValueError("--sequential and --until_width: choose one of them")
    alone = trained_elsewhere(player, play.runs_dir)
    if alone is None:
        if episodes is not None:
            entrant(player, play.sample, play.runs_dir)  # an error if there is no such player
            raise ValueError(f"--episodes is for agents that play alone; {player} plays --matches")
        return _evaluate_pair(player, opponent or "chaser", play, matches, until_width, sequential, record)
    of_matches: dict[str, object] = {"matches": matches, "minutes": play.minutes, "team_size": play.team_size}
    of_matches["tick_skip"] = play.tick_skip
    of_matches |= {"until_width": until_width, "sequential": sequential or None, "record": record}
    unfit = ["an opponent"] if opponent is not None else []
    unfit += [f"--{flag}" for flag, value in of_matches.items() if value is not None]
    if unfit:
        raise ValueError(f"{player} plays alone, so {unfit[0]} makes no sense; --episodes says how much it plays")
    return iter([_evaluate_alone(alone, episodes or _EPISODES, play)])


def _evaluate_alone(alone: Trained, episodes: int, play: PlaySettings) -> Report:
    found = episodes_summary(alone, episodes, play)
    how = "samples its actions" if play.sample else "takes its most probable actions"
    lines = [f"{found['episodes']} episodes of {alone.name}, which {how}"]
    for name in ("return", "length"):
        ends = found[f"{name}_interval_95"]
        known = "95 % {:,.5g} to {:,.5g}".format(*ends) if ends else "no interval: too few, or all alike"
        lines.append(f"  mean {name} {found[f'mean_{name}']:,.5g} ({known})")
    return Report(lines, found)


def _evaluate_pair(
    player: str,
    opponent: str,
    play: ContestSettings,
    matches: int | None,
    until_width: float | None,
    sequential: bool,
    record: Path | None,
) -> Iterator[Report]:
    looks = sequential or until_width is not None
    rules = Rules.of([entrant(name, play.sample, play.runs_dir) for name in (player, opponent)], play, play.minutes)
    limit = -(-(matches or (_MOST_MATCHES if looks else _MATCHES)) // SIDES)
    blocks = [Block(player, opponent, play.seed, number) for number in range(-(-limit // PAIRS_AT_ONCE))]
    parts: list[Matches] = []
    known: dict[str, Any] = {}
    what = f"{'up to ' if looks else ''}{SIDES * limit} matches"
    with progress(what) as tell, closing(play_blocks(rules, blocks, play.workers, tell)) as blocks_played:
        for part in blocks_played:
            parts.append(part)
            if looks and (known := look(Matches.of(parts, limit), until_width, play.confidence))["reached"]:
                break
    played = Matches.of(parts, limit)
    names = short_name(player), short_name(opponent)
    tables = [
        results_table(names, played, *rules.remarks),
        statistics_table(names, played.statistics, play.confidence, looks),
    ]
    lines = look_lines(played, known, names) if looks else [difference_line(played, play.confidence)]
    found = {"player": player, "opponent": opponent, "seed": play.seed, "sample": play.sample}
    found |= {"tick_skip": rules.tick_skip} | summary(played, play.confidence, looks) | known
    yield Report([*tables, *lines], found)
    if record is not None:
        record_game(player, opponent, rules.play, rules.minutes, record)


def results_table(names: Sequence[str], matches: Matches, *remarks: str) -> Table:
    """Return one row per player."""
    figures = summary(matches)
    size = f"{matches.cars}v{matches.cars}"
    title = [f"{figures['matches']} matches of {figures['minutes']:g} minutes, {size}", *remarks]
    draws = _with_share(matches.draws, figures["matches"])
    rows = []
    for index, (name, wins) in enumerate(zip(names, (matches.wins, matches.losses), strict=True)):
        goals, touches = figures["goals"][index], figures["touches_per_minute"][index]
        rows.append([name, _with_share(wins, figures["matches"]), draws, f"{goals:.2f}", f"{touches:.2f}"])
    columns = ["player", ">wins", ">draws", ">goals per match", ">touches per car and minute"]
    return table("; ".join(title), columns, rows)


def statistics_table(names: Sequence[str], samples: Samples, confidence: float = 0.95, looks: bool = False) -> Table:
    """Return one row per statistic: for each player the mean and half the width of its interval."""
    pairs = len(next(iter(samples.values()), ()))
    width = "" if looks or pairs < LEAST_SAMPLES else f", and half its {100 * confidence:g} % interval"
    rows = []
    for name, figures in statistics_summary(samples, confidence, looks).items():
        intervals = figures[f"intervals_{100 * confidence:g}"]
        cells = map(_cell, figures["means"], intervals, [STATISTICS[name].is_share] * len(intervals))
        rows.append([STATISTICS[name].label, *cells])
    title = f"mean of {pairs} {'pair' if pairs == 1 else 'pairs'} of matches{width}"
    return table(title, ["", *(f">{name}" for name in names)], rows)


def _cell(mean: float | None, ends: list[float] | None, is_share: bool) -> str:
    if mean is None:
        return "-"
    form = "{:.1%}" if is_share else "{:,.2f}" if abs(mean) < 10 else "{:,.0f}"
    return form.format(mean) + ("" if ends is None else f" ± {form.format((ends[1] - ends[0]) / 2)}")


def difference_line(matches: Matches, confidence: float = 0.95) -> str:
    """Return the goal difference per match, and its interval or why there is none."""
    mean, pairs = matches.differences.mean(), len(matches.differences)
    interval = difference_interval(matches, confidence)
    if interval is None:
        few = f"no interval from {pairs} pairs of matches, it takes {LEAST_SAMPLES}"
        return f"goal difference per match: {mean:+.2f} ({few}: --matches {SIDES * LEAST_SAMPLES})"
    ends = f"{100 * confidence:g} % {interval.low:+.2f} to {interval.high:+.2f}"
    return f"goal difference per match: {mean:+.2f} ({ends}, from {pairs} independent pairs of matches)"


def look_lines(matches: Matches, known: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Return what `look` knows, for people."""
    better = dict(zip(("player", "opponent"), names, strict=True)).get(known["better"])
    verdict = "not decided who is better" if better is None else f"{better} is better"
    sure = f"({100 * known['confidence']:g} %, however often one looks:"
    ends = "{:.3f} to {:.3f}); ".format(*known["score_sequence"])
    lines = [f"score per match: {matches.scores.mean():.3f} {sure} {ends}{verdict}"]
    if known["difference_sequence"]:
        ends = "{:+.2f} to {:+.2f})".format(*known["difference_sequence"])
        lines.append(f"goal difference per match: {matches.differences.mean():+.2f} {sure} {ends}")
    if not known["reached"]:
        lines.append(f"stopped after {SIDES * len(matches.goals)} matches; --matches allows more")
    return lines


def _with_share(count: int, of: int) -> str:
    return f"{count} ({count / of:.0%})"
