"""SAC's mathematics against numbers worked out by hand."""

import math

import pytest
import torch

from fabric_rl.learning.sac import critic_loss, entropy_of, expected_q, polyak, soft_value, temperature_loss

HALF = torch.tensor(0.5)


def test_the_entropy_counts_with_the_first_signal():
    q, entropy = torch.tensor([[1.0, 5.0], [3.0, 2.0]]), torch.tensor([2.0, -1.0])
    assert soft_value(q, entropy, HALF).tolist() == [[1 + 1.0, 5.0], [3 - 0.5, 2.0]]


def test_the_exact_expectation_over_discrete_actions_is_that_of_the_smaller_critic():
    """pi = (1/4, 3/4), min Q = (2, 1) of the first signal, (0, 8) of the second."""
    q = torch.tensor([[[[[2.0, 7.0]], [[0.0, 8.0]]]], [[[[4.0, 1.0]], [[1.0, 9.0]]]]])
    log_probs = torch.tensor([[[0.25, 0.75]]]).log()
    assert expected_q(q, log_probs).tolist() == [pytest.approx([0.25 * 2 + 0.75, 0.75 * 8])]
    assert entropy_of(log_probs).item() == pytest.approx(0.25 * math.log(4) - 0.75 * math.log(0.75))


def test_critics_of_several_parts_are_compared_by_their_sums():
    """Only sums are learned: one critic may have 5 more for the first part and 5 less for the second."""
    q = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).expand(2, 1, 1, 2, 2)
    shifted = q + torch.tensor([5.0, -5.0])[:, None] * torch.tensor([1.0, -1.0]).view(2, 1, 1, 1, 1)
    log_probs = torch.tensor([[[0.5, 0.5], [0.5, 0.5]]]).log()
    assert expected_q(shifted, log_probs).item() == pytest.approx(5.0) == expected_q(q, log_probs).item()
    assert expected_q(torch.stack([q[0], q[1] - 1]), log_probs).item() == pytest.approx(3.0)


def test_parts_of_an_action_add_up_and_what_is_forbidden_counts_nothing():
    least = torch.finfo(torch.float32).min
    log_probs = torch.tensor([[[0.0, least, least], [math.log(0.5), math.log(0.5), least]]])
    q = torch.tensor([[[[1.0, 1e9, 1e9], [2.0, 4.0, 1e9]]]]).expand(2, 1, 1, 2, 3)
    temperature = torch.tensor(1e6)  # as large as one will ever be
    value = soft_value(expected_q(q, log_probs), entropy_of(log_probs), temperature)
    assert value.item() == pytest.approx(1 + 3 + 1e6 * math.log(2))


def test_the_bellman_error_by_hand():
    q = torch.tensor([[[8.0, 2.0], [4.0, 2.0]], [[10.0, 2.0], [1.0, 3.0]]], requires_grad=True)
    target = torch.tensor([[10.0, 2.0], [1.0, 2.0]], requires_grad=True)
    loss = critic_loss(q, target)
    assert loss.item() == pytest.approx(0.5 * (2**2 + 3**2 + 1) / 2)
    loss.backward()
    assert q.grad.tolist() == [[[-1.0, 0.0], [1.5, 0.0]], [[0.0, 0.0], [0.0, 0.5]]]
    assert target.grad is None
    weighted = critic_loss(q, target, torch.tensor([1.0, 0.5]))
    assert weighted.item() == pytest.approx(0.5 * (2**2 + 0.5 * (3**2 + 1)) / 2)


def test_shapes_that_would_be_broadcast_are_refused():
    with pytest.raises(ValueError, match=r"q must be \[2, B, K\], target \[B, K\]; got \[2, 3, 1\], \[3\]"):
        critic_loss(torch.zeros(2, 3, 1), torch.zeros(3))


@pytest.mark.parametrize(("entropy", "slope"), [(1.0, 2 * (1 - 3)), (3.0, 0.0), (5.0, 2 * (5 - 3))])
def test_the_temperature_rises_where_the_entropy_is_too_low(entropy, slope):
    log_temperature = torch.tensor(math.log(2.0), requires_grad=True)
    temperature_loss(log_temperature, torch.full((4,), entropy), target_entropy=3.0).backward()
    assert log_temperature.grad.item() == pytest.approx(slope)


def test_targets_follow_by_a_share():
    targets, sources = [torch.tensor([1.0, 2.0]), torch.tensor(0.0)], [torch.tensor([3.0, 2.0]), torch.tensor(8.0)]
    polyak(targets, sources, 0.25)
    assert targets[0].tolist() == [1.5, 2.0] and targets[1].item() == 2.0
