"""`fabric-rl evaluate`: matches between trained agents and bots."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from rich.table import Table

from envs.matches.matches import PAIRS_AT_ONCE, SIDES, Matches
from envs.replays.replay import SUFFIX
from fabric_rl.base.tables import console, progress
from fabric_rl.commands.evaluate_episodes import evaluate_episodes
from fabric_rl.commands.output import check_out, for_people, give_json, json_files
from fabric_rl.commands.record import record_by
from fabric_rl.evaluation.demonstrations import trained_elsewhere
from fabric_rl.evaluation.play import Block, play_blocks
from fabric_rl.evaluation.players import Rules, check_confidence, check_positive, entrant, short_name
from fabric_rl.evaluation.results import difference_interval, look, statistics_table, summary
from fabric_rl.selfplay.ratings.intervals import LEAST_SAMPLES


def evaluate(
    player: str,
    opponent: str | None = None,
    /,
    matches: int | None = None,
    minutes: float | None = None,
    team_size: int | None = None,
    seed: int = 0,
    sample: bool = False,
    tick_skip: int | None = None,
    runs_dir: str = "runs",
    out: Path | None = None,
    json: Path | None = None,
    episodes: int | None = None,
    until_width: float | None = None,
    sequential: bool = False,
    confidence: float = 0.95,
    workers: int = 1,
    record: Path | None = None,
) -> int:
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
        minutes: Game time of each match in minutes. Default: 5.
        team_size: Cars per team. Default: as in the training of the first agent; 1 for bots.
        seed: Seed of the kickoffs and of sampled actions; the same seed gives the same results.
        sample: Sample the actions of agents from their policies. Default: take the most probable action.
        tick_skip: Physics ticks (1/120 s) per decision. Default: as in the training of the first agent; 8 for bots.
        runs_dir: Folder that contains all runs.
        out: .json file for the results.
        json: .json file for the results. Without a file name, they go to standard output, and the tables to standard
            error.
        episodes: Number of episodes for an agent of another environment, the same number in every sub-environment.
            Default: 100.
        until_width: Play until the interval of the goal difference is at most this wide, in goals per match.
        sequential: Play until it is clear which player wins more matches; a draw is half a win.
        confidence: Confidence level of all intervals, above 0 and below 1.
        record: .frl file for an additional match between the two, to watch (docs/watching.md).
        workers: Processes that play matches in parallel; one per CPU core is best. The results do not depend on it.
    """
    files = json_files(out=out, json=json)
    if record is not None:
        check_out([record], [SUFFIX], "--record")
    given = {"matches": matches, "minutes": minutes, "team_size": team_size, "tick_skip": tick_skip}
    check_positive(**given, until_width=until_width, workers=workers)
    check_confidence(confidence)
    if sequential and until_width is not None:
        raise ValueError("--sequential and --until_width: choose one of them")
    alone = trained_elsewhere(player, runs_dir)
    if alone is not None:
        given |= {"until_width": until_width, "sequential": sequential or None, "record": 1 if record else None}
        unfit = ["an opponent"] if opponent is not None else [f"--{flag}" for flag in given if given[flag] is not None]
        if unfit:
            raise ValueError(f"{player} plays alone, so {unfit[0]} makes no sense; --episodes says how much it plays")
        with for_people(files):
            results = evaluate_episodes(alone, 100 if episodes is None else episodes, seed, sample)
        give_json(results, files)
        return 0
    if episodes is not None:
        entrant(player, sample, runs_dir)  # says so where there is no such agent
        raise ValueError(f"--episodes is for agents that play alone; {player} plays --matches")
    opponent, looks = opponent or "chaser", sequential or until_width is not None
    entrants = [entrant(name, sample, runs_dir) for name in (player, opponent)]
    rules = Rules.of(entrants, minutes, team_size, tick_skip, sample, runs_dir)
    limit = -(-(matches or (2000 if looks else 200)) // SIDES)
    blocks = [Block(player, opponent, seed, number) for number in range(-(-limit // PAIRS_AT_ONCE))]
    parts: list[Matches] = []
    known: dict[str, Any] = {}
    what = f"{'up to ' if looks else ''}{SIDES * limit} matches"
    with progress(what) as tell, closing(play_blocks(rules, blocks, workers, tell)) as blocks_played:
        for part in blocks_played:
            parts.append(part)
            if looks and (known := look(Matches.of(parts, limit), until_width, confidence))["reached"]:
                break
    played = Matches.of(parts, limit)
    names = short_name(player), short_name(opponent)
    with for_people(files):
        console().print(table(names, played, *rules.remarks))
        console().print(statistics_table(names, played.statistics, confidence, looks))
        print("\n".join(look_lines(played, known, names)) if looks else difference_line(played, confidence))
    settings = {"player": player, "opponent": opponent, "seed": seed, "sample": sample, "tick_skip": rules.tick_skip}
    give_json(settings | summary(played, confidence, looks) | known, files)
    if record is not None:
        with for_people(files):
            record_by(rules, player, opponent, record, seed)
    return 0


def table(names: Sequence[str], matches: Matches, *remarks: str) -> Table:
    """One row per player."""
    figures = summary(matches)
    size = f"{matches.cars}v{matches.cars}"
    title = [f"{figures['matches']} matches of {figures['minutes']:g} minutes, {size}", *remarks]
    made = Table(title="; ".join(title))
    for header in ("player", "wins", "draws", "goals per match", "touches per car and minute"):
        made.add_column(header, justify="left" if header == "player" else "right")
    draws = _with_share(matches.draws, figures["matches"])
    for index, (name, wins) in enumerate(zip(names, (matches.wins, matches.losses), strict=True)):
        goals, touches = figures["goals"][index], figures["touches_per_minute"][index]
        made.add_row(name, _with_share(wins, figures["matches"]), draws, f"{goals:.2f}", f"{touches:.2f}")
    return made


def difference_line(matches: Matches, confidence: float = 0.95) -> str:
    """The goal difference per match, and its interval or why there is none."""
    mean, pairs = matches.differences.mean(), len(matches.differences)
    interval = difference_interval(matches, confidence)
    if interval is None:
        few = f"no interval from {pairs} pairs of matches, it takes {LEAST_SAMPLES}"
        return f"goal difference per match: {mean:+.2f} ({few}: --matches {SIDES * LEAST_SAMPLES})"
    ends = f"{100 * confidence:g} % {interval.low:+.2f} to {interval.high:+.2f}"
    return f"goal difference per match: {mean:+.2f} ({ends}, from {pairs} independent pairs of matches)"


def look_lines(matches: Matches, known: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """The same for people."""
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
