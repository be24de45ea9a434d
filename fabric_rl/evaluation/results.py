"""Results of matches and episodes as numbers: means, intervals, and the ladder of a league."""

import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from envs.matches.matches import SIDES, Matches
from envs.matches.statistics import STATISTICS, ratio_samples
from fabric_rl.evaluation.settings import ActSettings
from fabric_rl.rollouts.whole_episodes import play_episodes
from fabric_rl.runs.trained import Trained
from fabric_rl.selfplay.ratings.intervals import Interval, mean_interval
from fabric_rl.selfplay.ratings.ladder import rate
from fabric_rl.selfplay.ratings.sequential import difference_sequence, score_sequence

Samples = Mapping[str, NDArray[np.float64]]
"""See `envs.matches.matches.Matches.statistics`."""


def statistics_summary(
    samples: Samples, confidence: float = 0.95, looks: bool = False
) -> dict[str, dict[str, list[Any]]]:
    """Return name -> `means` of all pairs with something to measure, and their `intervals_95`, of both players.

    A mean is None where no pair had anything, an interval where there are too few pairs, or all are alike; and all
    are where the number of pairs depends on `looks` at them, as no interval would hold then.
    """
    found: dict[str, dict[str, list[Any]]] = {}
    for name, values in samples.items():
        each = [ratio_samples(side) for side in np.moveaxis(values, 1, 0)]
        intervals = [None if looks else _interval(name, side, confidence) for side in each]
        found[name] = {
            "means": [float(side.mean()) if len(side) else None for side in each],
            f"intervals_{100 * confidence:g}": [None if interval is None else list(interval) for interval in intervals],
        }
    return found


def _interval(name: str, side: NDArray[np.float64], confidence: float) -> Interval | None:
    counted = STATISTICS[name].per == "matches"
    if not counted and (not len(side) or np.ptp(side) < 1e-12):
        return None
    return mean_interval(side, 0.5 if counted else 0.0, confidence)  # of a pair's two matches, the mean


def summary(matches: Matches, confidence: float = 0.95, looks: bool = False) -> dict[str, Any]:
    """Return the results as numbers, for tables and files; goals are per match, touches per car and minute.

    `results` has two letters for each pair: won, drawn or lost, first as blue, then as orange.
    `difference_interval_95` (or whatever the confidence is) is None where there are too few pairs for one.
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
        f"difference_interval_{100 * confidence:g}": None if interval is None else list(interval),
        "statistics": statistics_summary(matches.statistics, confidence, looks),
    }


def difference_interval(matches: Matches, confidence: float = 0.95) -> Interval | None:
    """Return the interval of the mean goal difference per match, for a fixed number of matches; see `evaluate`."""
    return mean_interval(matches.differences, 1 / SIDES, confidence)


def look(matches: Matches, until_width: float | None, confidence: float) -> dict[str, Any]:
    """Return the intervals that hold however often one looks; `reached` says whether they are clear enough.

    The interval for a fixed number of matches would be wrong, and is None.
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
    """As for `fabric-rl evaluate`."""
    steps: int | None = None
    """Of a milestone."""


def standings(
    field: Sequence[Competitor], played: Mapping[tuple[int, int], Matches], confidence: float = 0.95
) -> dict[str, Any]:
    """Return ratings and scores of numbered players by the matches of i against j: the contents of `--json`."""
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
        "intransitive_triples": circles(payoff),
    }


def circles(payoff: NDArray[np.float64]) -> float | None:
    """Return the share of all triples that beat each other in a circle, by `payoff [P, P]`; None for two players."""
    wins = (payoff > 0.5).astype(np.int64)
    triples = math.comb(len(wins), 3)
    return float((wins @ wins @ wins).trace()) / 3 / triples if triples else None  # each is found from all three


def episodes_summary(trained: Trained, episodes: int, act: ActSettings) -> dict[str, Any]:
    """Play whole episodes of the environment that an agent was trained in.

    Args:
        trained: The agent and its environment.
        episodes: Least number of episodes.
        act: Seed, and whether actions are sampled.

    Returns:
        Means of the returns and lengths with 95 % confidence intervals, None with too few episodes, or equal ones.
    """
    with closing(trained.env(seed=act.seed)) as envs:
        choose = trained.choose(envs.single_observation_space, envs.single_action_space, not act.sample, act.seed)
        played = play_episodes(envs, choose, episodes, act.seed)
    results: dict[str, Any] = {"player": trained.name, "seed": act.seed, "sample": act.sample}
    results["episodes"] = len(played.returns)
    for name, values in (("return", played.returns), ("length", played.lengths)):
        interval = mean_interval(values) if values.std() > 0 else None
        results |= {f"mean_{name}": float(values.mean()), f"{name}_interval_95": interval and list(interval)}
    return results
