"""The pool of opponents: draws, ratings, evictions, divergences, by hand."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.distributions import Categorical

from fabric_rl.selfplay import ByRating, MostSimilar, Newest, Oldest, PFSPHard, PFSPVariance, Uniform, Weakest
from fabric_rl.selfplay.opponent_pool import LATEST, OpponentPool
from fabric_rl.selfplay.policies import divergence, diversity, probe_observations
from fabric_rl.selfplay.ratings.ladder import elo_update, expected_score
from fabric_rl.types import Minibatch


def some(*win_rates, ratings=None):
    ratings = ratings or [1200.0] * len(win_rates)
    return [
        SimpleNamespace(win_rate=p, rating=rating, steps=10 * i)
        for i, (p, rating) in enumerate(zip(win_rates, ratings, strict=True))
    ]


@pytest.mark.parametrize(
    "sampling, weights",
    [
        (Uniform(), [1, 1, 1]),
        (Newest(), [0, 0, 1]),
        (PFSPHard(2.0), [0.81, 0.25, 0.01]),  # (1 - p)^2
        (PFSPHard(1.0), [0.9, 0.5, 0.1]),
        (PFSPVariance(), [0.09, 0.25, 0.09]),  # p (1 - p)
    ],
)
def test_weights_of_opponents_by_win_rate(sampling, weights):
    np.testing.assert_allclose(sampling.weights(some(0.1, 0.5, 0.9), 1200.0), weights)


def test_by_rating_prefers_the_own_level():
    weights = ByRating().weights(some(0.5, 0.5, 0.5, ratings=[1200.0, 1600.0, 800.0]), 1200.0)
    np.testing.assert_allclose(weights, [1, 40 / 121, 40 / 121])  # E = 1/11 and 10/11


def test_elo_by_hand():
    assert expected_score(1200, 1600) == pytest.approx(1 / 11)
    assert elo_update(1200.0, 1600.0, 1.0, 22.0) == pytest.approx((1220.0, 1580.0))
    assert elo_update(1200.0, 1200.0, 0.5, 22.0) == (1200.0, 1200.0)
    assert expected_score(0, 1e9) < 1e-40


def test_who_has_to_leave():
    apart = np.array([[0, 9, 9, 9], [9, 0, 1, 9], [9, 2, 0, 9], [9, 9, 9, 0]], float)
    each = some(0, 0, 0, 0, ratings=[3.0, 2.0, 4.0, 1.0])
    assert [Oldest().choose(each, apart), Weakest().choose(each, apart), MostSimilar().choose(each, apart)] == [0, 1, 1]
    assert MostSimilar().choose(each, None) == 0


def test_divergence_by_hand():
    p = torch.tensor([[0.5, 0.5], [1.0, 0.0]], dtype=torch.float64)
    q = torch.tensor([[0.25, 0.75], [0.5, 0.5]], dtype=torch.float64)
    found = divergence([[Categorical(x)] for x in (p, q)])
    apart = divergence([[Categorical(x[:1]), Categorical(x[1:])] for x in (p, q)])  # of two roles
    assert found[0, 1] == pytest.approx(apart[0, 1]) and found[1, 0] == 1e6  # q does what p never would
    first = 0.5 * math.log(0.5 / 0.25) + 0.5 * math.log(0.5 / 0.75)
    assert found[0, 1] == pytest.approx((first + math.log(2)) / 2)
    np.testing.assert_allclose(found.diagonal(), 0, atol=1e-12)
    assert diversity(np.array([[0, 1, 2], [3, 0, 4], [5, 6, 0]], float)) == 3.5
    assert diversity(np.zeros((1, 1))) == 0


def test_policies_of_which_nobody_can_tell_are_as_far_apart_as_can_be():
    lost = Categorical(torch.full((2, 2), 0.5), validate_args=False)
    lost.logits = torch.full((2, 2), math.nan)  # as huge weights make them
    assert divergence([[Categorical(torch.full((2, 2), 0.5))], [lost]]).tolist() == [[0, 1e6], [1e6, 0]]


def test_probes_are_spread_over_the_batch():
    fields = [torch.zeros(2048)] * 5
    obs, mask = probe_observations(Minibatch(torch.arange(2048.0)[:, None], *fields))
    assert mask is None and len(obs) == 512 and obs[0] == 0 and obs[-1] == 2047
    sequences = Minibatch(torch.arange(12.0).view(3, 4, 1), *[torch.zeros(3, 4)] * 5)
    obs, mask = probe_observations(sequences._replace(episode_start=torch.zeros(3, 4), action_mask=torch.ones(3, 4, 5)))
    assert obs[:, 0].tolist() == list(range(12)) and mask.shape == (12, 5)


def roster(latest=0.0, sampling=None, window=2, guests=()):
    return OpponentPool(window, latest, sampling or Uniform(), Oldest(), 1200.0, 16.0, guests)


WEIGHTS = {"w": torch.zeros(2)}


def test_window_and_who_is_drawn():
    pool, rng = roster(latest=0.25, guests=["chaser"]), np.random.default_rng(0)
    assert {pool.sample(rng) for _ in range(50)} == {LATEST, 0}
    for steps in (0, 100, 200):
        pool.add_snapshot(steps, WEIGHTS, None)
    assert [each.number for each in pool.active] == [0, 2, 3]
    drawn = [pool.sample(rng) for _ in range(4000)]
    shares = [drawn.count(number) / 4000 for number in (LATEST, 0, 1, 2, 3)]
    np.testing.assert_allclose(shares, [0.25, 0.25, 0, 0.25, 0.25], atol=0.03)
    pool.remove_retired({1})
    assert pool.numbers == {0, 1, 2, 3}  # somebody plays it still
    pool.remove_retired(set())
    assert pool.numbers == {0, 2, 3}


def test_latest_only_and_nobody_else():
    rng = np.random.default_rng(0)
    assert {roster(latest=0.0).sample(rng) for _ in range(9)} == {LATEST}
    pool = roster(latest=1.0)
    pool.add_snapshot(0, WEIGHTS, None)
    assert {pool.sample(rng) for _ in range(9)} == {LATEST}


def test_where_all_weights_are_zero_all_are_alike():
    pool = roster(sampling=PFSPVariance())
    for steps in (0, 1):
        pool.add_snapshot(steps, WEIGHTS, None)
        pool.opponents[-1].score = pool.opponents[-1].games = 1e18
    assert {pool.sample(np.random.default_rng(seed)) for seed in range(9)} == {0, 1}


def test_results_make_ratings_and_win_rates():
    pool = roster()
    pool.add_snapshot(0, WEIGHTS, None)
    pool.record_results([(0, 1.0), (LATEST, 0.0), (0, 0.5), (99, 0.0)])
    first, own = pool.opponents[0], pool.rating
    assert own == pytest.approx(1208 - 16 * (expected_score(1208, 1192) - 0.5))
    assert own + first.rating == pytest.approx(2400)
    assert first.games == pytest.approx(1.99) and first.score == pytest.approx(0.99 + 0.5)
    assert first.win_rate == pytest.approx((1.49 + 1) / 3.99)
    pool.add_snapshot(50, WEIGHTS, None)
    assert pool.opponents[-1].rating == own and pool.opponents[-1].win_rate == 0.5


def test_a_pool_goes_on_as_it_was_and_refuses_what_is_none():
    pool = roster(guests=["chaser"])
    pool.add_snapshot(0, WEIGHTS, None)
    pool.record_results([(1, 1.0)])
    state = pool.state_dict()
    other = roster(guests=["chaser"])
    other.load_state_dict(state)
    assert other.state_dict() == state and other.opponents == pool.opponents
    with pytest.raises(ValueError, match=r"its guests were chaser, but --self_play.guests are nobody"):
        roster().load_state_dict(state)
    with pytest.raises(TypeError):
        other.load_state_dict(state | {"opponents": [{}]})
