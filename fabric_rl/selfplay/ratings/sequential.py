"""Confidence sequences: intervals that may be checked after every sample, to stop when the result is clear.

With an interval for a fixed number of samples, repeated checks of two equal players would sooner or later find one of
them "significantly" better. A confidence sequence contains the mean at all times at once, in `confidence` of all cases
(Darling and Robbins, 1967).
"""

import math

import numpy as np
from numpy.typing import NDArray

from fabric_rl.selfplay.ratings.intervals import LEAST_SAMPLES, Interval

_MOST_BET = 0.75
"""Maximum bet as a share of the capital; Waudby-Smith and Ramdas use 1/2 or 3/4."""
_GRID = np.linspace(0.0, 1.0, 2001)
_TIGHTEST = 50
"""Number of samples for which `difference_sequence` is optimized."""


def score_sequence(scores: NDArray[np.float64], confidence: float = 0.95) -> Interval:
    r"""Return a confidence sequence for the mean of scores between 0 and 1, exact for any distribution, by betting.

    Two gamblers bet against each candidate m for the mean, one that it is higher, one that it is lower. If m is the
    mean, neither gets rich; if one does, m is excluded (Waudby-Smith and Ramdas, "Estimating means of bounded random
    variables by betting", J. R. Stat. Soc. B 86, 2024, Theorem 3: hedged capital, with predictable plug-in bets):

        C_n = {m : max(K_n^+(m), K_n^-(m)) / 2 < 1 / alpha},  K_n^\pm(m) = \prod_{i <= n} (1 \pm lambda_i (x_i - m))
        lambda_i = min(3/4, \sqrt{2 log(2 / alpha) / (s_{i-1}^2 i log(i + 1))})
        s_i^2 = (1/4 + \sum_{j <= i} (x_j - mu_j)^2) / (i + 1),  mu_i = (1/2 + \sum_{j <= i} x_j) / (i + 1)

    Args:
        scores: `[n]` in chronological order, with the same mean regardless of earlier ones; for a pair of matches, the
            mean of both (a win is 1, a draw 1/2, a loss 0).
        confidence: 1 - alpha, between 0 and 1.

    Returns:
        The interval after the last score, rounded outwards to 1/2000; 0 to 1 without scores.
    """
    x = np.asarray(scores, np.float64)
    if x.ndim != 1 or not ((x >= 0) & (x <= 1)).all():
        raise ValueError(f"score_sequence: scores must be a vector of numbers from 0 to 1, got shape {list(x.shape)}")
    enough = math.log(2 / _alpha("score_sequence", confidence))
    i = np.arange(1, len(x) + 1)
    mu = (0.5 + np.cumsum(x)) / (i + 1)
    variance = (0.25 + np.cumsum(np.square(x - mu))) / (i + 1)
    before = np.concatenate(([0.25], variance))[: len(x)]
    bets = np.minimum(_MOST_BET, np.sqrt(2 * enough / (before * i * np.log1p(i))))
    won = bets[:, None] * (x[:, None] - _GRID)
    held = np.flatnonzero(np.maximum(np.log1p(won).sum(axis=0), np.log1p(-won).sum(axis=0)) < enough)
    # With the same bets on both sides, the product of both capitals is at most 1, so the interval is never empty.
    return Interval(float(_GRID[max(held[0] - 1, 0)]), float(_GRID[min(held[-1] + 1, len(_GRID) - 1)]))


def least_samples(confidence: float) -> int:
    """Return the number of scores from which on `score_sequence` can exclude 1/2: that of a player who always wins."""
    number = LEAST_SAMPLES
    while score_sequence(np.ones(number), confidence).low <= 0.5:
        number += 1
    return number


def difference_sequence(
    samples: NDArray[np.float64], resolution: float = 0.0, confidence: float = 0.95
) -> Interval | None:
    r"""Return a confidence sequence for the mean of unbounded samples, such as goal differences; None for too few.

    It is asymptotic: like Student's interval, it uses the central limit theorem, here for all times at once
    (Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, "Time-uniform central limit theory and asymptotic confidence
    sequences", Annals of Statistics 52, 2024, Theorem 2.2; with the normal mixture of Robbins, 1970):

        mean \pm s \sqrt{2 (n r + 1) / (n^2 r) log(\sqrt{n r + 1} / alpha)}
        r = (-2 log(alpha) + log(1 - 2 log(alpha))) / 50

    with the variance s^2 of `mean_interval`. In the same simulations, checked after every 10 samples from 10 to 600, it
    contains the mean in at least 93 % of all cases (in 88 to 90 % if goals are rare and both matches of a pair end
    alike, in at least 80 % if the players' strength varies wildly). It is 1.5 times as wide as `mean_interval`, the
    price of repeated checks.

    Args:
        samples: `[n]` independent samples in chronological order; for fewer than `LEAST_SAMPLES`, return None.
        resolution: See `mean_interval`.
        confidence: 1 - alpha, between 0 and 1.
    """
    x = np.asarray(samples, np.float64)
    if x.ndim != 1 or not np.isfinite(x).all() or not resolution >= 0:
        raise ValueError(f"difference_sequence needs a finite vector and resolution >= 0, got {x.shape}, {resolution}")
    log_alpha, n = math.log(_alpha("difference_sequence", confidence)), len(x)
    if n < LEAST_SAMPLES:
        return None
    mean = float(x.mean())
    variance = (float(np.square(x - mean).sum()) + 2 * resolution**2) / (n - 1)
    spread = n * (math.log1p(-2 * log_alpha) - 2 * log_alpha) / _TIGHTEST + 1  # n r + 1
    half = math.sqrt(variance * 2 * spread / (n * (spread - 1)) * (math.log(spread) / 2 - log_alpha))
    return Interval(mean - half, mean + half)


def _alpha(who: str, confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"{who}: confidence must be between 0 and 1, got {confidence}")
    return 1 - confidence
