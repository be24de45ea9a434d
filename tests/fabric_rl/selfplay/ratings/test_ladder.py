"""One ladder: by hand, how often its intervals hold the ratings, and what does not fit on one."""

import itertools
import math

import numpy as np
import pytest

from fabric_rl.selfplay.ratings.ladder import MEAN_RATING, fit_ladder, rate


def test_two_players_by_hand():
    # 9 pairs won, and the drawn one that is added: 0.95 of 10, odds of 19, 400 log10(19) = 511.50 points.
    # H = 10 * 0.95 * 0.05 = 0.475; the squares 9 * 0.05^2 + 0.45^2 = 0.225 are below the least, so J = 10 / 9 * 0.25;
    # the deviation of the log-odds is sqrt(J) / H = 1.109576, of the rating that half as large:
    # 400 / ln 10 * 0.554788 = 96.377; t(0.975, 8) = 2.30600.
    ladder = fit_ladder({(0, 1): np.ones(9)}, 2)
    assert ladder.ratings == pytest.approx([1200 + 255.75, 1200 - 255.75], abs=0.01)
    assert ladder.high - ladder.ratings == pytest.approx([222.24] * 2, abs=0.01) and ladder.misfit is None
    ladder = fit_ladder({(0, 1): np.ones(9)}, 2, first=1000)
    assert ladder.ratings == pytest.approx([1000, 1000 - 511.50], abs=0.01)
    assert ladder.low[0] == ladder.high[0] == 1000 and ladder.high[1] - ladder.ratings[1] == pytest.approx(
        444.49, abs=0.02
    )


def test_the_order_in_which_players_are_named_does_not_matter():
    scores = {(0, 1): np.full(9, 0.75), (1, 2): np.ones(9), (0, 2): np.full(9, 0.25)}
    turned = {(j, i): 1 - each for (i, j), each in scores.items()}
    one, other = fit_ladder(scores, 3), fit_ladder(turned, 3)
    assert one.ratings == pytest.approx(other.ratings) and one.low == pytest.approx(other.low)
    assert one.ratings.mean() == pytest.approx(MEAN_RATING)


def pairs_of(rng, p, n, draws):
    """Scores of n pairs, p on average; in three of ten both matches end alike."""
    drawn = draws * 2 * min(p, 1 - p)
    dice = rng.random((n, 2))
    alike = rng.random(n) < 0.3
    dice[alike, 1] = dice[alike, 0]
    return np.where(dice < p - drawn / 2, 1.0, np.where(dice < p + drawn / 2, 0.5, 0.0)).mean(axis=1)


def coverage(players, n, draws, repeats, seed):
    """How often intervals hold the rating, and how often a true ladder is called a misfit."""
    rng, held, misfits = np.random.default_rng(seed), [], []
    for _ in range(repeats):
        true = rng.uniform(-150, 150, players)
        scores = {
            (i, j): pairs_of(rng, 1 / (1 + 10 ** ((true[j] - true[i]) / 400)), n, draws)
            for i in range(players)
            for j in range(i)
        }
        ladder = fit_ladder(scores, players)
        here = MEAN_RATING + true - true.mean()
        held += ((ladder.low <= here) & (here <= ladder.high)).tolist()
        misfits.append(ladder.misfit < 0.05)
    return np.mean(held), np.mean(misfits)


@pytest.mark.parametrize(("players", "n", "draws"), [(3, 10, 0.6), (5, 20, 0.0)])
def test_intervals_hold_the_ratings(players, n, draws):
    held, misfits = coverage(players, n, draws, repeats=150, seed=1)
    assert held > 0.92 and misfits < 0.11


@pytest.mark.learning  # minutes of simulation
@pytest.mark.parametrize(("players", "n"), [(3, 10), (6, 10), (3, 100), (6, 100)])
@pytest.mark.parametrize("draws", [0.0, 0.6])
def test_intervals_hold_the_ratings_in_more_games(players, n, draws):
    held, misfits = coverage(players, n, draws, repeats=1000, seed=2)
    assert 0.925 < held < 0.975 and misfits < 0.075


def test_a_circle_fits_on_no_ladder():
    wins = np.array([1.0, 0.75, 1.0, 1.0, 0.5, 1.0, 0.75, 1.0, 1.0, 1.0])
    ladder = fit_ladder({(0, 1): wins, (1, 2): wins, (2, 0): wins}, 3)
    assert ladder.ratings == pytest.approx([MEAN_RATING] * 3) and ladder.misfit < 0.001


@pytest.mark.parametrize(("players", "draws"), [(3, 0.95), (2, 0.98)])
def test_intervals_hold_the_ratings_where_nearly_all_is_drawn(players, draws):
    rng, held, misfits = np.random.default_rng(3), [], []
    for _ in range(60):
        kinds = rng.choice([0.0, 0.5, 1.0], p=[(1 - draws) / 2, draws, (1 - draws) / 2], size=(3, 10, 2)).mean(axis=2)
        ladder = fit_ladder(dict(zip(itertools.combinations(range(players), 2), kinds, strict=False)), players)
        held.extend((ladder.low <= MEAN_RATING) & (ladder.high >= MEAN_RATING))
        misfits.append(ladder.misfit is not None and ladder.misfit < 0.05)
    assert np.mean(held) > 0.95 and np.mean(misfits) < 0.08


def test_nobody_has_scored():
    draws = np.full(10, 0.5)
    ladder = fit_ladder({(0, 1): draws, (1, 2): draws, (0, 2): draws}, 3)
    assert ladder.ratings.tolist() == [MEAN_RATING] * 3 and ladder.misfit == 1
    assert (ladder.high - ladder.low > 50).all()  # that nobody has scored does not say that nobody is better


def test_openskill_by_hand():
    """Weng and Lin (2011), algorithm 4, two players: with sigma 25/3, beta 25/6 and kappa 1e-4."""
    sigma, beta = 25 / 3, 25 / 6
    c = math.sqrt(2 * (sigma**2 + beta**2))
    won, lost = rate({(0, 1): np.array([[1.0]])}, 2)[0]
    assert won.openskill_mu == pytest.approx(25 + sigma**2 / c * 0.5, abs=0.01)
    assert lost.openskill_mu == pytest.approx(50 - won.openskill_mu)
    assert won.openskill_sigma == lost.openskill_sigma < sigma
    assert rate({(0, 1): np.array([[0.5]])}, 2)[0][0].openskill_mu == pytest.approx(25)


def test_both_ratings_of_many_matches():
    wins = np.ones((10, 2))
    ratings, misfit = rate({(0, 1): wins, (1, 2): wins[:5], (0, 2): wins}, 3)
    assert [each.openskill_mu for each in ratings] == sorted((each.openskill_mu for each in ratings), reverse=True)
    assert ratings[1].openskill_sigma < 6 and misfit is not None
    ladder = fit_ladder({(0, 1): np.ones(10), (1, 2): np.ones(5), (0, 2): np.ones(10)}, 3)
    assert [each.rating for each in ratings] == ladder.ratings.tolist() and ratings[0].low == ladder.low[0]
    assert rate({}, 1, first=1000) == ([(1000, 1000, 1000, 25, 25 / 3)], None)


@pytest.mark.parametrize(
    ("scores", "players", "message"),
    [
        ({}, 1, "needs two players"),
        ({(0, 1): np.array([1.5])}, 2, "scores from 0 to 1"),
        ({(0, 1): np.ones(3)}, 3, "some players have not met"),
        ({(0, 1): np.ones(3), (2, 3): np.ones(3)}, 4, "some players have not met"),
    ],
)
def test_what_is_no_ladder(scores, players, message):
    with pytest.raises(ValueError, match=message):
        fit_ladder(scores, players)
