"""Elo ratings: updates after each game, and a ladder of many players with intervals, from pairs of matches."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from openskill.models import PlackettLuce
from scipy import optimize, stats

MEAN_RATING = 1200.0
"""Mean rating of all players of a ladder."""
LEAST_SQUARES = 0.25
"""Minimum sum of squared deviations of two players' scores from the expected one, since draws alone do not show how
much scores vary (`mean_interval` has two more samples for the same reason)."""
_ELO = 400 / math.log(10)
"""Elo points of one unit of log-odds."""


def expected_score(rating: float, opponent: float) -> float:
    r"""Return the expected score of a game, 0..1: :math:`E = 1 / (1 + 10^{(R_o - R) / 400})` (Elo 1978)."""
    return 1 / (1 + 10 ** max(-50.0, min(50.0, (opponent - rating) / 400)))


def elo_update(rating: float, opponent: float, score: float, k: float) -> tuple[float, float]:
    r"""Return both ratings after a game: :math:`R + K (S - E)`, and the opposite change for the opponent.

    Args:
        rating: Rating of the player.
        opponent: Rating of the opponent.
        score: Score of the player: 1 for a win, 0.5 for a draw, 0 for a loss.
        k: Maximum change by one game.
    """
    change = k * (score - expected_score(rating, opponent))
    return rating + change, opponent - change


class Ladder(NamedTuple):
    """Ratings `[P]` of P players; a lead of 400 points means winning odds of 10 to 1 (a draw is half a win)."""

    ratings: NDArray[np.float64]
    low: NDArray[np.float64]
    """Lower ends of the intervals."""
    high: NDArray[np.float64]
    misfit: float | None
    """Probability that results differ at least this much from the ratings' predictions if one ladder describes all
    players: small if A beats B, B beats C and C beats A. None if there is nothing to compare."""


def fit_ladder(
    scores: Mapping[tuple[int, int], NDArray[np.float64]],
    num_players: int,
    confidence: float = 0.95,
    first: float | None = None,
) -> Ladder:
    r"""Fit the model of Bradley and Terry (1952), which is Elo's, to pairs of matches by maximum likelihood.

        E[score of i against j] = p_ij = 1 / (1 + 10^((R_j - R_i) / 400))

    A score of 1/2 counts as half a win and half a loss. Every two players get one additional drawn pair, without which
    the rating of a player that wins everything would be infinite (with it, rating and interval are too low). The
    variance is the sandwich of Huber (1967) and White (1982), because the matches of a pair depend on each other:

        V = H^{-1} J H^{-1},  H = \sum p (1 - p) d d^T,  J = \sum n / (n - 1) (score - p)^2 d d^T,  d = e_i - e_j

    over all pairs, n of them for these two players; each sum of squares is at least `LEAST_SQUARES`. Intervals are
    Student's. In simulations with 3 to 6 players up to 300 points apart, they contain the rating in 93 to 97 % of cases
    with 10 or more pairs per two players (in more if most matches are drawn); for the best and the worst player of a
    field 600 points wide in 91, 85 and 71 % of cases (3, 6 and 12 players), because of the drawn pair.

    Args:
        scores: (i, j) -> `[n]` scores of player i against j, 0..1, one for each pair of matches; they must connect all
            players.
        num_players: Number of players, P.
        confidence: Share of cases in which an interval contains the rating.
        first: Rating of player 0, which then has no interval. Default: the mean of all ratings is `MEAN_RATING`.

    Raises:
        ValueError: There are fewer than two players, scores out of range, or players without matches against the rest.
    """
    pairs = [(i, j, np.append(np.asarray(each, np.float64), 0.5)) for (i, j), each in scores.items() if len(each)]
    if num_players < 2 or any(not ((each >= 0) & (each <= 1)).all() for _, _, each in pairs):
        raise ValueError(f"fit_ladder needs two players or more and scores from 0 to 1, got {num_players} players")
    design = np.zeros((len(pairs), num_players))
    for row, (i, j, _) in enumerate(pairs):
        design[row, [i, j]] = 1, -1
    if np.linalg.matrix_rank(design) < num_players - 1:
        raise ValueError("fit_ladder: the matches do not connect all players; add matches between the separate groups")
    design = design[:, 1:]  # player 0 has log-odds 0
    n = np.array([len(each) for _, _, each in pairs], np.float64)
    mean = np.array([each.mean() for _, _, each in pairs])

    def p(theta: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(1 / (1 + np.exp(-design @ theta)))

    def information(theta: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((design.T * (n * p(theta) * (1 - p(theta)))) @ design)

    theta = optimize.minimize(
        lambda theta: float(n @ (np.logaddexp(0, design @ theta) - mean * (design @ theta))),
        np.zeros(num_players - 1),
        jac=lambda theta: design.T @ (n * (p(theta) - mean)),
        hess=information,
        method="trust-exact",
        options={"gtol": 1e-9 * n.sum()},
    ).x
    squares = np.array([np.square(each - expected).sum() for (*_, each), expected in zip(pairs, p(theta), strict=True)])
    squares = np.maximum(squares, LEAST_SQUARES)
    bread = np.linalg.inv(information(theta))
    covariance = bread @ ((design.T * (n / (n - 1) * squares)) @ design) @ bread
    # From log-odds against player 0 to ratings.
    contrast = np.vstack([np.zeros(num_players - 1), np.eye(num_players - 1)])
    if first is None:
        contrast -= contrast.mean(axis=0)
    ratings = _ELO * (contrast @ theta) + (MEAN_RATING if first is None else first)
    freedom = max(1.0, n.sum() - len(n) - num_players + 1)
    half = stats.t.ppf((1 + confidence) / 2, freedom) * _ELO * np.sqrt(np.diag(contrast @ covariance @ contrast.T))
    spare = len(pairs) - num_players + 1
    distance = float((np.square(mean - p(theta)) / (squares / (n - 1) / n)).sum())
    return Ladder(ratings, ratings - half, ratings + half, float(stats.chi2.sf(distance, spare)) if spare else None)


class Rating(NamedTuple):
    """A player's Elo rating with its interval, and OpenSkill's mean and deviation, which start at 25 and 25 / 3."""

    rating: float
    low: float
    high: float
    openskill_mu: float
    openskill_sigma: float


def rate(
    results: Mapping[tuple[int, int], NDArray[np.float64]],
    num_players: int,
    confidence: float = 0.95,
    first: float | None = None,
) -> tuple[list[Rating], float | None]:
    """Rate players by Elo (`fit_ladder`) and by OpenSkill's Plackett-Luce model (Weng and Lin, 2011), match by match.

    Args:
        results: (i, j) -> `[n, 2]` scores 1, 0.5 or 0 of player i against j in both matches of each pair.
        num_players: Number of players, P.
        confidence: Confidence of the intervals.
        first: Rating of player 0, see `fit_ladder`.

    Returns:
        `P` ratings, and `Ladder.misfit`.
    """
    model = PlackettLuce()
    skills = [model.rating() for _ in range(num_players)]
    for turn in range(max((each.size for each in results.values()), default=0)):
        for (i, j), each in results.items():
            if turn < each.size:
                score = float(each.flat[turn])
                (skills[i],), (skills[j],) = model.rate([[skills[i]], [skills[j]]], scores=[score, 1 - score])
    alone = np.full(1, MEAN_RATING if first is None else first)
    ladder = Ladder(alone, alone, alone, None)
    if num_players > 1:
        ladder = fit_ladder({pair: each.mean(axis=1) for pair, each in results.items()}, num_players, confidence, first)
    rows = zip(ladder.ratings.tolist(), ladder.low.tolist(), ladder.high.tolist(), skills, strict=True)
    return [Rating(rating, low, high, skill.mu, skill.sigma) for rating, low, high, skill in rows], ladder.misfit
