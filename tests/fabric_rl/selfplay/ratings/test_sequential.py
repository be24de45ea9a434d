"""Confidence sequences: by hand, and how often they hold the mean however long one looks."""

import numpy as np
import pytest

from fabric_rl.selfplay.ratings.intervals import mean_interval
from fabric_rl.selfplay.ratings.sequential import difference_sequence, score_sequence


def test_a_score_by_hand():
    """One pair, won twice: the bet is 3/4, and m is out where 1 + 3/4 (1 - m) >= 40, which is nowhere."""
    assert score_sequence(np.ones(1)) == (0.0, 1.0)
    # Pairs won one after the other: 1.75^n (at m = 0) reaches 40 after 7 of them (1.75^6 = 28.7, 1.75^7 = 50.3); then
    # m is out up to 1.75 - 0.75 m = 40^(1/7) = 1.69381, m = 0.07492; the next number below on the grid is 0.0745.
    assert score_sequence(np.ones(6)) == (0.0, 1.0)
    assert score_sequence(np.ones(7)) == pytest.approx((0.0745, 1.0))
    assert score_sequence(np.zeros(7)) == pytest.approx((0.0, 0.9255))
    # Bets stay at 3/4 while nothing varies: after 12 wins 1.75 - 0.75 m = 40^(1/12) = 1.35989 at m = 0.52015.
    assert score_sequence(np.ones(12)) == pytest.approx((0.52, 1.0))


def test_scores_without_any_and_that_vary_little():
    assert score_sequence(np.array([])) == (0.0, 1.0)
    low, high = score_sequence(np.full(400, 0.5))
    assert 0.47 < low < 0.5 < high < 0.53  # Hoeffding's bound would be five times as wide


def test_a_difference_by_hand():
    # As in mean_interval: s^2 = 23 / 9 of ten samples. r = (5.99146 + log(6.99146)) / 50 = 0.158724, n r + 1 =
    # 2.587238; 2 * 2.587238 / (10 * 1.587238) = 0.326005, log(sqrt(2.587238) / 0.05) = 3.470978; the root of
    # 2.555556 * 0.326005 * 3.470978 = 2.891758 is 1.700517.
    samples = np.array([0.0] * 9 + [5.0])
    assert difference_sequence(samples, 0.5) == pytest.approx((0.5 - 1.70052, 0.5 + 1.70052), abs=1e-4)
    assert difference_sequence(samples[:9], 0.5) is None


def pairs(rng, ours, theirs, shape):
    """Goals of pairs of matches, half of them decided by what both matches share: `[..., 2, 2]`."""
    goals = rng.poisson([ours, theirs], (*shape, 2, 2))
    return np.where(rng.random((*shape, 1, 2)) < 0.5, goals[..., :1, :], goals)


def scores_of(goals):
    return ((np.sign(goals[..., 0] - goals[..., 1]) + 1) / 2).mean(axis=-1)


def share_that_ever_misses(sequence, samples, mean, looks):
    missed = 0
    for row in samples:
        intervals = (sequence(row[:n]) for n in looks)
        missed += any(not low <= mean <= high for low, high in intervals)
    return missed / len(samples)


GAMES = [(0.05, 0.05), (0.3, 0.1), (2.0, 1.5), (8.0, 0.1)]


@pytest.mark.slow
@pytest.mark.parametrize(("ours", "theirs"), GAMES)
def test_they_hold_the_mean_at_all_looks(ours, theirs):
    rng = np.random.default_rng([int(100 * ours), int(100 * theirs)])
    goals = pairs(rng, ours, theirs, (120, 150))
    mean = scores_of(pairs(rng, ours, theirs, (200_000,))).mean()
    looks = range(10, 151, 10)
    assert share_that_ever_misses(score_sequence, scores_of(goals), mean, looks) <= 0.05
    differences = (goals[..., 0] - goals[..., 1]).mean(axis=-1)
    missed = share_that_ever_misses(lambda x: difference_sequence(x, 0.5), differences, ours - theirs, looks)
    assert missed <= 0.10  # 5 %, and two standard deviations of 120 repeats


def test_an_interval_for_a_fixed_number_does_not():
    """What they are for: of equal players nearly one in four is called better by one who looks 15 times."""
    rng = np.random.default_rng(0)
    goals = pairs(rng, 2.0, 2.0, (200, 150))
    differences = (goals[..., 0] - goals[..., 1]).mean(axis=-1)
    assert share_that_ever_misses(lambda x: mean_interval(x, 0.5), differences, 0.0, range(10, 151, 10)) > 0.15


@pytest.mark.learning  # minutes of simulation
@pytest.mark.parametrize(("ours", "theirs"), [*GAMES, (0.01, 0.0), (0.1, 0.0), (2.0, 2.0)])
def test_they_hold_the_mean_at_all_looks_for_long(ours, theirs):
    rng = np.random.default_rng([1, int(100 * ours), int(100 * theirs)])
    goals = pairs(rng, ours, theirs, (1000, 600))
    mean = scores_of(pairs(rng, ours, theirs, (1_000_000,))).mean()
    looks = range(10, 601, 10)
    assert share_that_ever_misses(score_sequence, scores_of(goals), mean, looks) <= 0.05
    differences = (goals[..., 0] - goals[..., 1]).mean(axis=-1)
    missed = share_that_ever_misses(lambda x: difference_sequence(x, 0.5), differences, ours - theirs, looks)
    assert missed <= 0.09  # 7 %, and three standard deviations


@pytest.mark.parametrize("samples", [np.ones((3, 2)), np.array([0.5, 1.5]), np.array([np.nan])])
def test_scores_that_are_none(samples):
    with pytest.raises(ValueError, match="score_sequence: scores must be"):
        score_sequence(samples)
    with pytest.raises(ValueError, match="confidence must be between 0 and 1, got 1"):
        score_sequence(np.ones(3), 1.0)


def test_differences_that_are_none():
    for samples, resolution in ((np.ones((20, 2)), 0.5), (np.array([np.nan] * 20), 0.5), (np.ones(20), -1.0)):
        with pytest.raises(ValueError, match="difference_sequence: takes"):
            difference_sequence(samples, resolution)
    with pytest.raises(ValueError, match="confidence must be between 0 and 1, got 0"):
        difference_sequence(np.ones(20), 0.5, 0.0)
