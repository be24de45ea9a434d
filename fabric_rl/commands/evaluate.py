"""`fabric-rl evaluate`, `league`, `exam` and `record`: matches and shots of trained agents and bots."""

import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from itertools import combinations
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import numpy as np
from rich.table import Table

from envs.bots import TeamBots
from envs.matches.exam import run_exam
from envs.matches.matches import PAIRS_AT_ONCE, SIDES, Matches, PoolFactory
from envs.matches.statistics import STATISTICS
from envs.pool.recorder import ReplayRecorder
from envs.pool.replay_format import SUFFIX
from envs.pool.rocket_pool import RocketSimPool
from envs.pool.videos import FORMATS
from envs.resets.training_packs import Pack, packaged_file, read_packs
from fabric_rl.analysis.curves import new_figure
from fabric_rl.base.settings import Between, Positive
from fabric_rl.base.tables import progress, table
from fabric_rl.base.text import figure_text
from fabric_rl.commands.figures import field_maps, find_weaknesses, format_mean
from fabric_rl.commands.output import (
    JSON,
    Out,
    Report,
    Section,
    check_file,
    print_all,
    section_tables,
    write_page,
    writes,
)
from fabric_rl.commands.watch import write_film
from fabric_rl.evaluation import results
from fabric_rl.evaluation.matches import Block, Duel, play_blocks, replay_file
from fabric_rl.evaluation.players import MatchSettings, load_if_not_rocket_league, load_player, short_name, short_names
from fabric_rl.evaluation.settings import (
    DEFAULT_ACT,
    DEFAULT_CONTEST,
    DEFAULT_PLAY,
    MOST,
    ActSettings,
    ContestSettings,
    PlaySettings,
    UpTo,
)
from fabric_rl.ranks.devices import single_thread
from fabric_rl.runs.records import find_run
from fabric_rl.selfplay.ratings.intervals import LEAST_SAMPLES
from fabric_rl.selfplay.ratings.sequential import least_samples

_MATCHES, _MOST_MATCHES, _EPISODES = 200, 2000, 100
_MOST_COLUMNS = 10
"""Maximum number of players of a league whose matrix of scores fits in a terminal."""
_MOST_PACKS = 20
"""Maximum number of training packs for which each gets a row of its own; others are only in the JSON file."""


@writes(Out("out", [".json"], ".json file for the results."), JSON, Out("html", [".html"]), Out("record", [SUFFIX]))
def evaluate(
    player: str,
    opponent: str | None = None,
    /,
    matches: UpTo | None = None,
    play: ContestSettings = DEFAULT_CONTEST,
    episodes: UpTo | None = None,
    until_width: Positive | None = None,
    sequential: bool = False,
    html: Path | None = None,
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
        player: Player to evaluate: a run id, a path (run, milestone, checkpoint, exported agent), an included agent
            (advanced_1v1, school_1v1, school_2v2), a bot (idle, random, chaser, shooter, aerial, circle, hover, hop),
            or the class path of a bot.
        opponent: Opponent, with the same choices. Default: chaser.
        matches: Number of matches; an odd number is rounded up to full pairs. Default: 200. With --sequential or
            --until_width: the maximum, by default 2000.
        play: How the players act.
        episodes: Number of episodes for an agent of another environment, the same number in every sub-environment.
            Default: 100.
        until_width: Play until the interval of the goal difference is at most this wide, in goals per match.
        sequential: Play until it is clear which player wins more matches; a draw is half a win.
        html: .html file for a page with the results and with maps of the field for both players.
        record: .frl file for an additional match between the two, to watch (docs/watching.md).
    """
    if sequential and until_width is not None:
        raise ValueError("--sequential and --until_width cannot be combined; choose one")
    trained = load_if_not_rocket_league(player, play)
    if trained is not None:
        of_matches = {"matches": matches, "minutes": play.minutes, "team_size": play.team_size}
        of_matches |= {"tick_skip": play.tick_skip, "until_width": until_width, "sequential": sequential or None}
        of_matches["confidence"] = None if play.confidence == ContestSettings.confidence else play.confidence
        unfit = ["an opponent"] if opponent is not None else []
        unfit += [
            f"--{flag}" for flag, value in (of_matches | {"html": html, "record": record}).items() if value is not None
        ]
        if unfit:
            raise ValueError(f"{player} plays alone, without {unfit[0]}; --episodes sets how long it plays")
        if not play.sample and results.begins_alike(trained, play.seed):
            note = "every episode begins alike: without other chance, all are the same; use --sample true"
            print(note, file=sys.stderr)
        found = results.episodes_summary(trained, episodes or _EPISODES, play)
        yield Report(episodes_lines(found), found)
        return
    opponent = opponent or "chaser"
    first, second = short_names((player, opponent))
    names = first, second
    entrants = [load_player(name, play.sample, play.runs_dir, play.trust_torchscript) for name in (player, opponent)]
    if episodes is not None:
        raise ValueError(f"--episodes is for agents that play alone; {player} plays matches, so use --matches")
    rules = MatchSettings.of(entrants, play, play.minutes)
    looks = sequential or until_width is not None
    limit = -(-(matches or (_MOST_MATCHES if looks else _MATCHES)) // SIDES)
    blocks = [Block(player, opponent, play.seed, number) for number in range(-(-limit // PAIRS_AT_ONCE))]
    itself = entrants[0].trained_in is not None and entrants[0].identity == entrants[1].identity
    notes = interval_notes(limit, itself and not play.sample)
    if sequential and limit < (least := least_samples(play.confidence)):
        notes += [f"{SIDES * limit} matches cannot decide, even if one player wins all; use --matches {SIDES * least}"]
    for note in notes:
        print(note, file=sys.stderr)
    parts: list[Matches] = []
    known: dict[str, Any] = {}
    title = f"{'up to ' if looks else ''}{SIDES * limit} matches"
    with progress(title) as tell, closing(play_blocks(rules, blocks, play.workers, tell)) as blocks_played:
        for part in blocks_played:
            parts.append(part)
            if looks:
                known = results.sequential_summary(Matches.of(parts, limit), until_width, play.confidence)
                if known["reached"]:
                    break
    played = Matches.of(parts, limit)
    sections = [
        results_table(names, played, *rules.remarks),
        statistics_table(names, played.statistics, play.confidence, looks),
    ]
    lines = [difference_line(played, play.confidence), verdict(played, names, play.confidence)]
    lines = sequential_lines(played, known, names) if looks else lines
    found = {"player": player, "opponent": opponent, "seed": play.seed, "sample": play.sample}
    found |= {"tick_skip": rules.tick_skip} | results.match_summary(played, play.confidence, looks) | known
    weak = find_weaknesses(names[0], {name: each["means"] for name, each in found["statistics"].items()}, {})
    yield Report([*section_tables(sections), *lines, *weak], found)
    if html is not None:
        figures = {"names": names, "maps": field_maps(played.maps.sum(axis=0))}
        sections = [Section("Result", lines=[*lines, *weak]), *sections]
        write_page(html, " against ".join(names), sections, figures=figures)
        print_all([f"written: {html}"])
    if record is not None:
        record_game(player, opponent, rules.play, rules.minutes, record)


def interval_notes(pairs: int, same_game: bool) -> list[str]:
    """Return what to know before `pairs` of matches about intervals that will be missing or say nothing.

    Matches of players without chance differ by their kickoffs, so they have an interval like all others. `same_game` is
    True for an agent that plays itself and takes its most probable actions.
    """
    notes = []
    if pairs < LEAST_SAMPLES:
        number = f"{pairs} {'pair' if pairs == 1 else 'pairs'} of matches"
        notes += [f"there will be no interval: {number} are too few; use --matches {SIDES * LEAST_SAMPLES}"]
    if same_game:
        alike = "the player plays itself and samples no action: both matches of a pair are the same game"
        notes += [f"{alike}; use --sample true"]
    return notes


def episodes_lines(found: Mapping[str, Any]) -> list[str]:
    """Return the results of `episodes_summary` as text."""
    how = "samples its actions" if found["sample"] else "takes its most probable actions"
    lines = [f"{found['episodes']} episodes of {found['player']}, which {how}"]
    for name in (key.removeprefix("mean_") for key in found if key.startswith("mean_")):
        ends = found[f"{name}_interval_95"]
        known = "95 % {:,.5g} to {:,.5g}".format(*ends) if ends else "no interval: too few episodes, or all are alike"
        of = f"in {found[f'{name}_episodes']} of them, " if f"{name}_episodes" in found else ""
        lines.append(f"  mean {name} {found[f'mean_{name}']:,.5g} ({of}{known})")
    return lines


def results_table(names: Sequence[str], matches: Matches, *remarks: str) -> Section:
    """Return a table with one row per player."""
    figures = results.match_summary(matches)
    size = f"{matches.cars}v{matches.cars}"
    title = [f"{figures['matches']} matches of {_minutes(figures['minutes'])}, {size}", *remarks]
    counts = (matches.wins, matches.draws, matches.losses)
    wins, draws, losses = (f"{count} ({count / figures['matches']:.0%})" for count in counts)
    rows = []
    for name, won, goals, touches in zip(
        names, (wins, losses), figures["goals"], figures["touches_per_minute"], strict=True
    ):
        rows.append([name, won, draws, f"{goals:.2f}", f"{touches:.2f}"])
    columns = ["player", "wins", "draws", "goals per match", "touches per car and minute"]
    return Section("; ".join(title), columns, rows)


def statistics_table(
    names: Sequence[str], samples: results.Samples, confidence: float = 0.95, looks: bool = False
) -> Section:
    """Return a table with one row per statistic: each player's mean and half the width of its interval."""
    pairs = len(next(iter(samples.values()), ()))
    width = "" if looks or pairs < LEAST_SAMPLES else f", and half its {100 * confidence:g} % interval"
    rows = []
    for name, figures in results.statistics_summary(samples, confidence, looks).items():
        intervals = figures[f"intervals_{100 * confidence:g}"]
        cells = map(format_mean, figures["means"], intervals, [STATISTICS[name].is_share] * len(intervals))
        rows.append([STATISTICS[name].label, *cells])
    title = f"mean of {pairs} {'pair' if pairs == 1 else 'pairs'} of matches{width}"
    return Section(title, ["", *names], rows)


def difference_line(matches: Matches, confidence: float = 0.95) -> str:
    """Return the goal difference per match with its interval, or the reason why there is none."""
    mean, pairs = matches.differences.mean(), len(matches.differences)
    interval = results.difference_interval(matches, confidence)
    if interval is None:
        few = f"{pairs} {'pair of matches is' if pairs == 1 else 'pairs of matches are'} too few for an interval"
        return f"goal difference per match: {mean:+.2f} ({few}; use --matches {SIDES * LEAST_SAMPLES})"
    ends = f"{100 * confidence:g} % {interval.low:+.2f} to {interval.high:+.2f}"
    return f"goal difference per match: {mean:+.2f} ({ends}, from {pairs} independent pairs of matches)"


def verdict(matches: Matches, names: Sequence[str], confidence: float = 0.95) -> str:
    """Return who is better, or how many more matches might show it if the goal difference stays what it is."""
    interval, mean = results.difference_interval(matches, confidence), float(matches.differences.mean())
    if interval is not None and interval.low * interval.high > 0:
        return f"{names[mean < 0]} is better"
    if interval is None:
        return "too few matches to show who is better"
    half, pairs = (interval.high - interval.low) / 2, len(matches.differences)
    more = SIDES * math.ceil(pairs * ((half / mean) ** 2 - 1)) if mean else math.inf
    might = f"; about {more:,} more matches might show it" if half and more <= MOST else ""
    return f"not shown who is better{might}"


def sequential_lines(matches: Matches, known: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Return the results of `sequential_summary` as text."""
    better = dict(zip(("player", "opponent"), names, strict=True)).get(known["better"])
    verdict = "it is undecided which player is better" if better is None else f"{better} is better"
    sure = f"({100 * known['confidence']:g} %, valid for any number of checks:"
    ends = "{:.3f} to {:.3f}); ".format(*known["score_sequence"])
    lines = [f"score per match: {matches.scores.mean():.3f} {sure} {ends}{verdict}"]
    if known["difference_sequence"]:
        ends = "{:+.2f} to {:+.2f})".format(*known["difference_sequence"])
        lines.append(f"goal difference per match: {matches.differences.mean():+.2f} {sure} {ends}")
    if not known["reached"]:
        lines.append(f"stopped after {SIDES * len(matches.goals)} matches; --matches allows more")
    return lines


@writes(JSON, Out("png", [".png"], ".png file for a figure of ratings and scores."))
def league(
    players: Sequence[str], matches: UpTo = 40, play: ContestSettings = DEFAULT_CONTEST, record: Path | None = None
) -> Iterator[Report]:
    """Play a round robin and rate the players, with intervals.

    It prints ratings (Elo scale, fitted with the Bradley-Terry model; 400 points are odds of 10 to 1) and the score of
    each player against each other. It also reports if a single ranking does not fit, for example because A beats B, B
    beats C and C beats A.

    Args:
        players: Two or more players, as in `fabric-rl evaluate`; or one run, whose milestones play and whose folder
            gets league.json.
        matches: Number of matches between any two players; an odd number is rounded up to full pairs.
        play: How the players act.
        record: Folder for one .frl replay of each pair of players, to watch (docs/watching.md).
    """
    if record is not None and record.exists() and not record.is_dir():
        raise ValueError(f"--record {record} must be a folder")
    files, field = _field(players, play.runs_dir)
    for file in files:
        check_file(file, "league:")
    entrants = [load_player(player.name, play.sample, play.runs_dir, play.trust_torchscript) for player in field]
    pairings = list(combinations(range(len(field)), 2))
    for one, other in pairings:
        if entrants[one].identity == entrants[other].identity:
            raise ValueError(
                f"{field[one].name} and {field[other].name} are the same; a league needs different players"
            )
    rules = MatchSettings.of(entrants, play, play.minutes)
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
    found = results.league_summary(field, played, play.confidence) | {"seed": play.seed, "sample": play.sample}
    found |= {"minutes": rules.minutes, "team_size": rules.team_size, "tick_skip": rules.tick_skip}
    found["confidence"] = play.confidence
    title = [f"{what} of {_minutes(rules.minutes)}, {rules.team_size}v{rules.team_size}", *rules.remarks]
    shown: list[Table | str] = [*league_tables(found, "; ".join(title)), league_verdict(found)]
    yield Report(shown, found, draw=partial(draw_league, found), files=files)
    if record is not None:
        record.mkdir(parents=True, exist_ok=True)
        for i, j in pairings:
            blue, orange = (re.sub(r"[^\w.,#-]+", "_", field[player].label) for player in (i, j))
            file = record / f"{blue}_vs_{orange}{SUFFIX}"
            record_game(field[i].name, field[j].name, rules.play, rules.minutes, file)


def _minutes(number: float) -> str:
    return f"{number:g} minute{'' if number == 1 else 's'}"


def _field(names: Sequence[str], runs_dir: str) -> tuple[list[Path], list[results.Competitor]]:
    """Return the files that a league always writes, and its players."""
    if len(names) > 1:
        return [], [results.Competitor(label, name) for label, name in zip(short_names(names), names, strict=True)]
    try:
        run = find_run(runs_dir, names[0])
    except ValueError as error:
        raise ValueError(f"a league needs two or more players, or a run with milestones; {error}") from error
    milestones = sorted(run.milestones, key=lambda milestone: milestone.steps)
    if len(milestones) < 2:
        has = "1 milestone" if milestones else "no milestones"
        raise ValueError(f"{run.name} has {has}, but a league needs two; train with --milestone_interval")
    field = [results.Competitor(f"{m.phase}/{m.steps:,}", str(m.folder), m.steps) for m in milestones]
    return [run.folder / "league.json"], field


def league_tables(found: Mapping[str, Any], title: str) -> list[Table]:
    """Return the ladder, best player first, and a table of the scores between players if there are few of them."""
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
    return [ladder, matrix] if len(names) <= _MOST_COLUMNS else [ladder]


def league_verdict(found: Mapping[str, Any]) -> str:
    """Return a line that says whether one ladder explains the results."""
    if found["misfit"] is None:
        return "two players always form one ladder"
    fits = "does not explain" if found["misfit"] < 0.05 else "explains"
    share = f"{found['intransitive_triples']:.0%} of all triples of players beat each other in a circle"
    return f"one ladder {fits} these results (p = {found['misfit']:.2g}); {share}"


def draw_league(found: Mapping[str, Any]) -> Any:  # noqa: ANN401 - see new_figure
    """Plot ratings with their intervals (over agent-steps for milestones), and the scores between all players."""
    left, right = (figure := new_figure(12, 5)).subplots(1, 2)
    names, rows = list(map(figure_text, found["names"])), found["ratings"]
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


@writes(JSON, Out("record", [SUFFIX]))
def exam(
    player: str, /, packs: Sequence[str] = (), act: ActSettings = DEFAULT_ACT, record: Path | None = None
) -> Report:
    """Test a bot on every shot of the training packs in rlgym-tools, and report how many it solves.

    A striker shot is solved by a goal, a goalie shot by preventing one. A shot ends with a goal, or when the ball
    touches the ground after the pack's time limit. The 95 % intervals refer to other shots of the same kind.

    Args:
        player: Player, as in `fabric-rl evaluate`: a run id, a path (run, milestone, checkpoint, exported agent),
            an included agent (advanced_1v1, school_1v1, school_2v2), a bot (idle, random, chaser, shooter, aerial,
            circle, hover, hop), or the class path of a bot.
        packs: Codes, types (Striker, Goalie), difficulties (Pro, All-Star, Unknown) or tags (Aerials, Saves...) of the
            packs to use; also `held_out` (one in five packs, which no included bot was trained on) or `train` (the
            others). Default: all packs.
        act: How it acts.
        record: .frl file for one in 128 shots, to watch (docs/watching.md).
    """
    every = results.choose_packs(read_packs(packaged_file()), packs)
    fitting = [pack for pack in map(Pack.in_standard_field, every) if len(pack.shots)]
    who = load_player(player, act.sample, act.runs_dir, act.trust_torchscript)
    recipe = who.trained_in or PoolFactory(RocketSimPool)
    tick_skip = act.tick_skip or recipe.tick_skip
    built, team_size = results.exam_player(who, recipe, tick_skip)
    shots = sum(len(pack.shots) for pack in fitting)
    with ExitStack() as opened, single_thread(), progress(f"{shots} shots") as tell:
        about = {"names": [short_name(player), "nobody"], "seed": act.seed, "tick_skip": tick_skip}
        file = None if record is None else opened.enter_context(replay_file(record))
        marks = run_exam(
            built,
            fitting,
            team_size=team_size,
            seed=act.seed,
            tick_skip=tick_skip,
            action_delay_ticks=recipe.action_delay_ticks,
            progress=tell,
            record=None if file is None else lambda bot: ReplayRecorder(file, TeamBots(bot, bot), about),
        )
    found: dict[str, Any] = {"player": player, "seed": act.seed, "sample": act.sample, "tick_skip": tick_skip}
    found |= {"team_size": list(team_size), "shots_left_out": sum(len(pack.shots) for pack in every) - shots}
    found |= results.exam_summary(fitting, marks)
    how = "it samples its actions" if act.sample else "it takes its most probable actions"
    title = f"{short_name(player)}: {shots} shots of {len(fitting)} training packs"
    title += f"; {how}" if who.trained_in else ""
    return Report([exam_table(title, found)], found)


def exam_table(title: str, found: Mapping[str, Any]) -> Table:
    """Return a table with one row per group, and one per pack if there are few packs."""
    counted = [(str(group["packs"]), group) for group in found["groups"]]
    if len(found["packs"]) <= _MOST_PACKS:
        counted += [(str(pack["code"]), pack) for pack in found["packs"]]
    rows = []
    for packs, one in counted:
        low, high = one["interval_95"]
        figures = [str(one["shots"]), str(one["passed"]), f"{one['share']:.1%}", f"{low:.1%} to {high:.1%}"]
        rows.append([one["type"], one["difficulty"], packs, *figures])
    return table(title, ["type", "difficulty", ">packs", ">shots", ">passed", ">share", ">95 %"], rows)


@writes(Out("out", [SUFFIX]), Out("mp4", [*FORMATS]))
def record(
    player: str,
    opponent: str = "chaser",
    /,
    minutes: Annotated[float, Between(0, 600, above=True)] = 5.0,
    out: Path = Path("game.frl"),
    mp4: Path | None = None,
    force: bool = False,
    play: PlaySettings = DEFAULT_PLAY,
) -> int:
    """Record a match on real physics as a replay file, with a kickoff after each goal.

    Watch it with `fabric-rl watch FILE`, or share it as a page: `fabric-rl export-replay FILE OUT.html`. The replay
    also contains a trained player's value estimates, action probabilities and training rewards; annealed reward weights
    start from their initial values. If you stop with Ctrl+C, or an error occurs, the file contains what was played so
    far and can be watched; if nothing was played, there is no file.

    Args:
        player: Player of the blue team: a run id, a path (run, milestone, checkpoint, exported agent), an included
            agent (advanced_1v1, school_1v1, school_2v2), a bot (idle, random, chaser, shooter, aerial, circle, hover,
            hop), or the class path of a bot.
        opponent: Player of the orange team, with the same choices.
        minutes: Game time in minutes, above 0 and at most 600.
        out: Replay file, .frl.
        mp4: File for a video of the match, .mp4 or .gif. Default: no video.
        force: Overwrite files.
        play: How the players act.
    """
    if taken := [str(file) for file in (out, mp4) if file is not None and file.is_file() and not force]:
        raise FileExistsError(
            f"{taken[0]} exists; choose another file with --out or --mp4, or add --force to overwrite it"
        )
    record_game(player, opponent, play, minutes, out)
    if mp4 is not None:
        write_film(out, mp4)
    return 0


def record_game(player: str, opponent: str, play: PlaySettings, minutes: float, out: Path) -> None:
    """Record one game as a replay file, and print the score."""
    duel = Duel.of(player, opponent, play)
    with replay_file(out) as file:
        blue, orange = duel.play(file, minutes, play.seed)
    lines = [
        f"{duel.names[0]} {blue} : {orange} {duel.names[1]}",
        f"written: {out} ({out.stat().st_size / 1e6:.2f} MB)",
    ]
    print_all([*lines, f"watch it: fabric-rl watch {quote(out.as_posix())}"])
