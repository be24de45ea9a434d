"""SAC's mathematics against numbers worked out by hand."""

import math

import pytest
import torch

from fabric_rl.sac.loss import (
    critic_loss,
    entropy_of,
    expected_soft_value,
    polyak,
    soft_value,
    temperature_loss,
)

HALF = torch.tensor(0.5)


def test_the_soft_value_takes_the_smaller_critic():
    q, log_prob = torch.tensor([[1.0, 5.0], [3.0, 2.0]]), torch.tensor([-2.0, 1.0])
    assert soft_value(q, log_prob, HALF).tolist() == [1 + 1.0, 2 - 0.5]


def test_the_exact_expectation_over_discrete_actions():
    """pi = (1/4, 3/4), min Q = (2, 1): 1/4 (2 + ln 4 / 2) + 3/4 (1 - ln(3/4) / 2)."""
    q = torch.tensor([[[[2.0, 7.0]]], [[[4.0, 1.0]]]])
    log_probs = torch.tensor([[[0.25, 0.75]]]).log()
    expected = 0.25 * (2 + math.log(4) / 2) + 0.75 * (1 - math.log(0.75) / 2)
    assert expected_soft_value(q, log_probs, HALF).item() == pytest.approx(expected)
    assert entropy_of(log_probs).item() == pytest.approx(0.25 * math.log(4) - 0.75 * math.log(0.75))


def test_parts_of_an_action_add_up_and_what_is_forbidden_counts_nothing():
    least = torch.finfo(torch.float32).min
    log_probs = torch.tensor([[[0.0, least, least], [math.log(0.5), math.log(0.5), least]]])
    q = torch.tensor([[[1.0, 1e9, 1e9], [2.0, 4.0, 1e9]]]).expand(2, 1, 2, 3)
    value = expected_soft_value(q, log_probs, torch.tensor(1e6))  # as large a temperature as one will ever meet
    assert value.item() == pytest.approx(1 + 3 + 1e6 * math.log(2))


def test_the_exact_expectation_is_the_mean_over_draws():
    torch.manual_seed(0)
    q, log_probs = torch.randn(2, 1, 1, 5), torch.log_softmax(torch.randn(1, 1, 5), dim=-1)
    drawn = torch.multinomial(log_probs[0, 0].exp(), 200_000, replacement=True)
    samples = soft_value(q[:, 0, 0, drawn], log_probs[0, 0, drawn], HALF)
    assert samples.mean().item() == pytest.approx(expected_soft_value(q, log_probs, HALF).item(), abs=0.01)


def test_the_bellman_error_by_hand():
    """Targets 1 + .9 * 10 = 10 (goes on or truncated) and 1 (terminated, discount 0, whatever comes after)."""
    q = torch.tensor([[8.0, 4.0], [10.0, 1.0]], requires_grad=True)
    next_value = torch.tensor([10.0, 777.0], requires_grad=True)
    loss = critic_loss(q, torch.ones(2), torch.tensor([0.9, 0.0]), next_value)
    assert loss.item() == pytest.approx(0.5 * (2**2 + 3**2) / 2)
    loss.backward()
    assert q.grad.tolist() == [[-1.0, 1.5], [0.0, 0.0]]
    assert next_value.grad is None


def test_shapes_that_would_be_broadcast_are_refused():
    with pytest.raises(ValueError, match=r"q must be \[K, B\].* got \[2, 3\], \[3, 1\], \[3\], \[3\]"):
        critic_loss(torch.zeros(2, 3), torch.zeros(3, 1), torch.zeros(3), torch.zeros(3))


@pytest.mark.parametrize(("entropy", "slope"), [(1.0, 2 * (1 - 3)), (3.0, 0.0), (5.0, 2 * (5 - 3))])
def test_the_temperature_rises_where_the_entropy_is_too_low(entropy, slope):
    log_temperature = torch.tensor(math.log(2.0), requires_grad=True)
    temperature_loss(log_temperature, torch.full((4,), entropy), target_entropy=3.0).backward()
    assert log_temperature.grad.item() == pytest.approx(slope)


def test_targets_follow_by_a_share():
    targets, sources = [torch.tensor([1.0, 2.0]), torch.tensor(0.0)], [torch.tensor([3.0, 2.0]), torch.tensor(8.0)]
    polyak(targets, sources, 0.25)
    assert targets[0].tolist() == [1.5, 2.0] and targets[1].item() == 2.0
