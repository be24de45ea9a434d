"""Results of matches, leagues, episodes and exams as numbers: means, intervals, and a ladder."""

import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from envs.matches.matches import SIDES, Matches, Player, PoolFactory
from envs.matches.statistics import STATISTICS, ratio_samples
from envs.resets.training_packs import Pack
from envs.state.layout import Bool
from fabric_rl.evaluation.players import PlayerSpec
from fabric_rl.evaluation.settings import ActSettings
from fabric_rl.rollouts.whole_episodes import play_episodes
from fabric_rl.runs.trained import Trained
from fabric_rl.selfplay.ratings.intervals import Interval, mean_interval, share_interval
from fabric_rl.selfplay.ratings.ladder import rate
from fabric_rl.selfplay.ratings.sequential import difference_sequence, score_sequence

Samples = Mapping[str, NDArray[np.float64]]
"""As in `envs.matches.matches.Matches.statistics`."""


def statistics_summary(
    samples: Samples, confidence: float = 0.95, looks: bool = False
) -> dict[str, dict[str, list[Any]]]:
    """Return name -> `means` and `intervals_95` (or another confidence level) of both players.

    Pairs that have nothing to measure are left out. A mean is None if no pair is left. An interval is None if there are
    too few pairs, or if all are equal and the statistic is not a count per match. With `looks`, all intervals are None:
    none would be valid if the number of pairs depends on the results so far.
    """
    found: dict[str, dict[str, list[Any]]] = {}
    for name, values in samples.items():
        sides = [ratio_samples(side) for side in np.moveaxis(values, 1, 0)]
        counts = STATISTICS[name].per == "matches"  # whole numbers per match, so halves per pair
        intervals = [
            None
            if looks or (not counts and (not len(side) or np.ptp(side) < 1e-12))
            else mean_interval(side, 0.5 if counts else 0.0, confidence)
            for side in sides
        ]
        found[name] = {
            "means": [float(side.mean()) if len(side) else None for side in sides],
            f"intervals_{100 * confidence:g}": [interval and list(interval) for interval in intervals],
        }
    return found


def match_summary(matches: Matches, confidence: float = 0.95, looks: bool = False) -> dict[str, Any]:
    """Return the results as numbers, for tables and files; goals are per match, touches per car and minute.

    `results` has two letters for each pair: won, drawn or lost, first as blue, then as orange.
    `difference_interval_95` (or another confidence level) is None if there are too few pairs.
    """
    count = SIDES * len(matches.goals)
    interval = difference_interval(matches, confidence)
    return {
        "matches": count,
        "pairs": len(matches.goals),
        "minutes": matches.minutes,
        "cars": matches.cars,
        "wins": matches.wins,
        "draws": matches.draws,
        "losses": matches.losses,
        "results": "".join("ldw"[int(2 * score)] for score in matches.match_scores.reshape(-1).tolist()),
        "goals": matches.goals.mean(axis=(0, 1)).tolist(),
        "touches_per_minute": (matches.touches.sum(axis=(0, 1)) / (count * matches.minutes * matches.cars)).tolist(),
        "differences": matches.differences.tolist(),
        "difference": float(matches.differences.mean()),
        "score": float(matches.scores.mean()),
        f"difference_interval_{100 * confidence:g}": interval and list(interval),
        "statistics": statistics_summary(matches.statistics, confidence, looks),
    }


def difference_interval(matches: Matches, confidence: float = 0.95) -> Interval | None:
    """Return the interval of the mean goal difference per match, for a fixed number of matches."""
    return mean_interval(matches.differences, 1 / SIDES, confidence)


def sequential_summary(matches: Matches, until_width: float | None, confidence: float) -> dict[str, Any]:
    """Return intervals that are valid for any number of looks; `reached` is True if the results are clear enough.

    The interval for a fixed number of matches would not be valid, so it is None.
    """
    score = score_sequence(matches.scores, confidence)
    difference = difference_sequence(matches.differences, 1 / SIDES, confidence)
    better = "player" if score.low > 0.5 else "opponent" if score.high < 0.5 else None
    narrow = difference is not None and until_width is not None and difference.high - difference.low <= until_width
    return {
        f"difference_interval_{100 * confidence:g}": None,
        "confidence": confidence,
        "score_sequence": list(score),
        "difference_sequence": difference and list(difference),
        "better": better,
        "reached": narrow if until_width is not None else better is not None,
    }


class Competitor(NamedTuple):
    """A player of a league."""

    label: str
    name: str
    """Name as for `fabric-rl evaluate`."""
    steps: int | None = None
    """Agent-steps of a milestone."""


def league_summary(
    field: Sequence[Competitor], played: Mapping[tuple[int, int], Matches], confidence: float = 0.95
) -> dict[str, Any]:
    """Return the ratings and scores of a league for `--json`; `played[i, j]` has the matches of player i against j."""
    payoff, games = np.full((len(field), len(field)), 0.5), np.zeros((len(field), len(field)), np.int64)
    for (i, j), matches in played.items():
        payoff[i, j], games[i, j] = matches.scores.mean(), SIDES * len(matches.scores)
        payoff[j, i], games[j, i] = 1 - payoff[i, j], games[i, j]
    ratings, misfit = rate({pair: matches.match_scores for pair, matches in played.items()}, len(field), confidence)
    return {
        "names": [player.label for player in field],
        "payoff": payoff.tolist(),
        "games": games.tolist(),
        "ratings": [
            {"name": player.label, "player": player.name, "steps": player.steps} | rating._asdict()
            for player, rating in zip(field, ratings, strict=True)
        ],
        "misfit": misfit,
        "intransitive_triples": intransitive_share(payoff),
    }


def intransitive_share(payoff: NDArray[np.float64]) -> float | None:
    """Return the share of triples that beat each other in a circle, from `payoff [P, P]`; None for two players."""
    wins = (payoff > 0.5).astype(np.int64)
    triples = math.comb(len(wins), 3)
    return float((wins @ wins @ wins).trace()) / 3 / triples if triples else None  # each is counted three times


def begins_alike(trained: Trained, seed: int) -> bool:
    """Return True if two seeds give the same first observations in an agent's training environment."""
    with closing(trained.env(seed=seed)) as envs:
        first, other = (np.array(envs.reset(seed=number)[0]) for number in (seed, seed + envs.num_envs))
    return bool(np.array_equal(first, other))


def episodes_summary(trained: Trained, episodes: int, act: ActSettings) -> dict[str, Any]:
    """Play whole episodes in an agent's training environment.

    Args:
        trained: The agent and its environment.
        episodes: Minimum number of episodes.
        act: Seed, and how actions are chosen.

    Returns:
        Mean return, length and figures such as success, with 95 % confidence intervals that are None for too few or
        equal values; that of a share such as success is None only if all episodes are the same. `NAME_episodes` is the
        number of episodes with a figure, if not all have it.
    """
    with closing(trained.env(seed=act.seed)) as envs:
        choose = trained.choose(envs.single_observation_space, envs.single_action_space, not act.sample, act.seed)
        played = play_episodes(envs, choose, episodes, act.seed)
    results: dict[str, Any] = {"player": trained.name, "seed": act.seed, "sample": act.sample}
    results["episodes"] = len(played.returns)
    same = not act.sample and played.returns.std() == 0 and played.lengths.std() == 0
    alike = same and begins_alike(trained, act.seed)
    for name, values in {"return": played.returns, "length": played.lengths, **played.figures}.items():
        interval = mean_interval(values) if values.std() > 0 else None
        if name in played.figures and set(values) <= {0, 1}:
            interval = None if alike else share_interval(int(values.sum()), len(values))
        results |= {f"mean_{name}": float(values.mean()), f"{name}_interval_95": interval and list(interval)}
        if len(values) < len(played.returns):
            results[f"{name}_episodes"] = len(values)
    return results


SPLITS = {"held_out": (True,), "train": (False,), "all": (True, False)}
"""Values of `Pack.held_out` by the name of a part of the packs."""


def choose_packs(
    packs: Sequence[Pack], words: Sequence[str], setting: str = "--packs", others: Sequence[str] = ()
) -> list[Pack]:
    """Return the packs whose code, type, difficulty or tags include one of the words, or all if there are no words.

    The words `held_out` and `train` select packs by `Pack.held_out` first, and `all` means both. Errors name `setting`
    and, beside packs, its `others` values.

    Raises:
        ValueError: A word does not match any pack.
    """
    parts = SPLITS.keys() & set(words)
    if len(parts) > 1:
        raise ValueError(f"{setting}: {' and '.join(sorted(parts))} cannot be combined; choose one")
    words = [word for word in words if word not in SPLITS]
    part = SPLITS[parts.pop() if parts else "all"]
    packs = [pack for pack in packs if pack.held_out in part]
    of = [set[str]().union(*map(pack.names, ("code", "type", "difficulty", "tags"))) for pack in packs]
    for word in words:
        if not any(word in names for names in of):
            kinds = [name for pack in packs for key in ("type", "difficulty") for name in pack.names(key)]
            some = ", ".join(sorted({*kinds}))
            instead = f"; {setting} can also be {', '.join(others)}" if others else ""
            raise ValueError(
                f"{setting} {word}: no training pack has this code, type, difficulty or tag (types, "
                f"difficulties: {some}){instead}"
            )
    return [pack for pack, names in zip(packs, of, strict=True) if not words or not names.isdisjoint(words)]


def exam_player(who: PlayerSpec, recipe: PoolFactory, tick_skip: int) -> tuple[Player, tuple[int, int]]:
    """Return the player and the cars per team (blue, orange): one car, or as in training if it must see others."""
    try:
        return who.build((1, 0), tick_skip), (1, 0)
    except ValueError:  # its observations have columns for other cars
        blue, orange = (max(sizes) for sizes in zip(*recipe.team_sizes, strict=True))
        return who.build((blue, orange), tick_skip), (blue, orange)


def exam_summary(packs: Sequence[Pack], marks: Sequence[Bool]) -> dict[str, Any]:
    """Return the results of `packs`, and of `groups` by type and difficulty; `marks [S]` are True for solved shots."""
    groups: dict[tuple[str, str], list[Bool]] = {}
    for pack, passed in zip(packs, marks, strict=True):
        kind, difficulty = (pack.metadata.get(key, "Unknown") for key in ("type", "difficulty"))
        groups.setdefault((kind, difficulty), []).append(passed)
        groups.setdefault((kind, "all"), []).append(passed)
    ranks = {"Rookie": 0, "Pro": 1, "All-Star": 2, "Unknown": 3, "all": 5}  # 4: other difficulties
    ordered = sorted(groups, key=lambda group: (group[0], ranks.get(group[1], 4), group[1]))
    return {
        "groups": [{"type": kind, "difficulty": each} | _share(groups[kind, each]) for kind, each in ordered],
        "packs": [
            {key: pack.metadata.get(key) for key in ("code", "title", "type", "difficulty", "tags")}
            | _share([passed])
            | {"marks": "".join(map(str, passed.astype(int)))}
            for pack, passed in zip(packs, marks, strict=True)
        ],
    }


def _share(marks: Sequence[Bool]) -> dict[str, Any]:
    shots, passed = sum(map(len, marks)), int(sum(map(np.sum, marks)))
    interval = list(share_interval(passed, shots))
    return {"packs": len(marks), "shots": shots, "passed": passed, "share": passed / shots, "interval_95": interval}
