"""Ratings, intervals and confidence sequences: by hand, and how often they hold what they are to hold."""

import itertools
import math

import numpy as np
import pytest

from fabric_rl.selfplay.ratings.intervals import LEAST_SAMPLES, mean_interval, share_interval
from fabric_rl.selfplay.ratings.ladder import MEAN_RATING, elo_update, expected_score, fit_ladder, rate
from fabric_rl.selfplay.ratings.sequential import difference_sequence, least_samples, score_sequence


def test_fewer_scores_than_the_least_cannot_decide():
    """By hand: bets of 3/4 on won pairs multiply the capital by 11/8, and 2 / 0.05 = 40 is needed."""
    assert least_samples(0.95) == math.ceil(math.log(40) / math.log(11 / 8))
    assert score_sequence(np.ones(11)).low <= 0.5 < score_sequence(np.ones(12)).low


def test_interval_by_hand():
    # Mean 0.5, squares 9 * 0.25 + 20.25 = 22.5 and 2 * 0.25 = 0.5 more: s^2 = 23 / 9, s^2 / 10 = 0.255556, its root
    # 0.505525; t(0.975, 9) = 2.26216 and t(0.9, 9) = 1.38303 (any table).
    samples = np.array([0.0] * 9 + [5.0])
    assert mean_interval(samples, 0.5) == pytest.approx((0.5 - 1.14358, 0.5 + 1.14358), abs=1e-5)
    assert mean_interval(samples, 0.5, 0.8) == pytest.approx((0.5 - 0.69916, 0.5 + 0.69916), abs=1e-5)


def test_no_interval_from_few_samples_and_none_of_no_width():
    assert mean_interval(np.ones(LEAST_SAMPLES - 1), 0.5) is None
    # Squares 2 * 0.25 = 0.5: s^2 / 10 = 0.5 / 9 / 10.
    assert mean_interval(np.ones(10), 0.5) == pytest.approx((1 - 0.16861, 1 + 0.16861), abs=1e-5)


@pytest.mark.parametrize("number", [10, 40])
@pytest.mark.parametrize(("ours", "theirs"), [(0.01, 0.0), (0.05, 0.05), (0.5, 0.0), (2.0, 1.5), (8.0, 0.05)])
def test_it_holds_the_mean_in_95_percent(number, ours, theirs):
    """Goals of two matches a pair, half of these goals decided by what both matches share (the kickoffs)."""
    rng, repeats = np.random.default_rng([number, int(100 * ours), int(100 * theirs)]), 1000
    goals = rng.poisson([ours, theirs], (repeats, number, 2, 2))
    shared = rng.random((repeats, number, 1, 2)) < 0.5
    goals = np.where(shared, goals[:, :, :1], goals)
    samples = (goals[..., 0] - goals[..., 1]).mean(axis=2)
    held = [low <= ours - theirs <= high for low, high in (mean_interval(each, 0.5) for each in samples)]
    assert np.mean(held) > 0.93  # three standard deviations of 1000 repeats below 95 %


@pytest.mark.parametrize(
    ("samples", "settings"),
    [
        (np.ones((20, 2)), {}),
        (np.array([np.nan] * 20), {}),
        (np.ones(20), {"confidence": 1.0}),
        (np.ones(20), {"resolution": -0.1}),
    ],
)
def test_refuses_what_cannot_be(samples, settings):
    with pytest.raises(ValueError, match="mean_interval"):
        mean_interval(samples, **({"resolution": 0.5} | settings))


def test_without_a_resolution_it_is_students():
    """By hand: mean 4.5, deviation sqrt(82.5 / 9), t of 9 degrees of freedom 2.2622."""
    assert mean_interval(np.arange(10.0)) == pytest.approx((4.5 - 2.1659, 4.5 + 2.1659), abs=1e-4)


def test_shares_by_hand():
    """0 of n: the upper end is 1 - 0.025^(1/n); and the two ends change places with successes and failures."""
    assert share_interval(0, 10) == pytest.approx((0, 1 - 0.025**0.1))
    assert share_interval(10, 10) == pytest.approx((0.025**0.1, 1))
    assert share_interval(0, 10, confidence=0.9) == pytest.approx((0, 1 - 0.05**0.1))
    low, high = share_interval(3, 20)
    assert (1 - high, 1 - low) == pytest.approx(share_interval(17, 20))
    with pytest.raises(ValueError, match="must not be greater"):
        share_interval(3, 2)


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
        with pytest.raises(ValueError, match="difference_sequence needs"):
            difference_sequence(samples, resolution)
    with pytest.raises(ValueError, match="confidence must be between 0 and 1, got 0"):
        difference_sequence(np.ones(20), 0.5, 0.0)


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


def weng_lin(games, players, tau):
    """Algorithm 4 of Weng and Lin (2011) for two players: means and deviations after games (i, j, score of i).

    As in OpenSkill, a variance first grows by tau^2, and gamma is the deviation over c. In a draw both players are
    first and second, each with half the weight.
    """
    mean, variance = [25.0] * players, [(25 / 3) ** 2] * players
    for i, j, score in games:
        for k in (i, j):
            variance[k] += tau**2
        c = math.sqrt(variance[i] + variance[j] + 2 * (25 / 6) ** 2)
        chance = math.exp(mean[i] / c) / (math.exp(mean[i] / c) + math.exp(mean[j] / c))
        for k, gain in ((i, score - chance), (j, chance - score)):
            share = variance[k] / c**2
            mean[k] += share * c * gain
            variance[k] *= max(1 - share * math.sqrt(share) * chance * (1 - chance), 1e-4)
    return mean, np.sqrt(variance)


def test_openskill_of_many_games_is_that_of_the_paper():
    mean, deviation = weng_lin([(0, 1, 1.0)], 2, 0.0)  # the example of OpenSkill's own tests
    assert mean == pytest.approx([27.63523138347365, 22.36476861652635], rel=1e-14)
    assert deviation == pytest.approx([8.065506316323548] * 2, rel=1e-14)
    rng = np.random.default_rng(0)
    results = {pair: rng.choice([0.0, 0.5, 1.0], (200, 2)) for pair in itertools.combinations(range(5), 2)}
    games = [(*pair, float(each.flat[turn])) for turn in range(400) for pair, each in results.items()]
    mean, deviation = weng_lin(games, 5, 25 / 300)
    ratings, _ = rate(results, 5)
    assert [each.openskill_mu for each in ratings] == pytest.approx(mean, rel=1e-12)
    assert [each.openskill_sigma for each in ratings] == pytest.approx(deviation, rel=1e-12)


def test_elo_is_that_of_the_published_table_and_keeps_the_sum():
    """Differences and scores of FIDE's table (Handbook B.02, 8.1.2), which is rounded to a hundredth.

    FIDE's table is of a normal distribution, so the comparison stops at 200 points.
    """
    for difference, score in ((0, 0.50), (36, 0.55), (72, 0.60), (110, 0.65), (149, 0.70), (193, 0.75)):
        assert expected_score(1200 + difference, 1200) == pytest.approx(score, abs=0.01)
    rng, ratings, plain = np.random.default_rng(0), [1200.0] * 4, np.full(4, 1200.0)
    for _ in range(2000):
        i, j = rng.choice(4, 2, replace=False)
        score = float(rng.choice([0.0, 0.5, 1.0], p=[0.2, 0.2, 0.6]))
        ratings[i], ratings[j] = elo_update(ratings[i], ratings[j], score, 16.0)
        strength = np.exp(plain[[i, j]] * math.log(10) / 400)
        change = 16 * (score - strength[0] / strength.sum())
        plain[i] += change
        plain[j] -= change
    assert ratings == pytest.approx(plain.tolist(), rel=1e-12) and sum(ratings) == pytest.approx(4800, rel=1e-12)


def test_a_ladder_is_that_of_another_algorithm():
    """Minorization-maximization (Hunter 2004, equation 3), with one drawn pair more for each two players."""
    rng, players = np.random.default_rng(1), 6
    scores = {pair: rng.choice([0.0, 0.25, 0.5, 0.75, 1.0], 30) for pair in itertools.combinations(range(players), 2)}
    won, played = np.zeros(players), np.zeros((players, players))
    for (i, j), each in scores.items():
        won[i], won[j] = won[i] + each.sum() + 0.5, won[j] + (1 - each).sum() + 0.5
        played[i, j] = played[j, i] = len(each) + 1
    strength = np.ones(players)
    for _ in range(500):
        strength = won / (played / (strength[:, None] + strength)).sum(axis=1)
        strength /= np.exp(np.log(strength).mean())
    found = fit_ladder(scores, players).ratings
    assert found == pytest.approx(MEAN_RATING + 400 * np.log10(strength), abs=1e-4)


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
        ({(0, 1): np.ones(3)}, 3, "the matches do not connect all players"),
        ({(0, 1): np.ones(3), (2, 3): np.ones(3)}, 4, "the matches do not connect all players"),
    ],
)
def test_what_is_no_ladder(scores, players, message):
    with pytest.raises(ValueError, match=message):
        fit_ladder(scores, players)
