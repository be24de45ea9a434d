"""The interval of a mean, by hand, and how often it holds the mean that it is to hold."""

import numpy as np
import pytest

from fabric_rl.selfplay.ratings.intervals import LEAST_SAMPLES, mean_interval, share_interval


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
    with pytest.raises(ValueError, match="mean_interval: "):
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
