"""GAE and PPO's loss against numbers worked out by hand and against their definitions."""

import math

import pytest
import torch

from fabric_rl import gae, ppo_loss


def column(*numbers: float) -> torch.Tensor:
    """`[T, 1]`."""
    return torch.tensor(numbers, dtype=torch.float32).unsqueeze(1)


def flags(*numbers: int) -> torch.Tensor:
    return column(*numbers).bool()


def advantages(**changes) -> list[float]:
    """Three steps, gamma 0.5, lambda 0.5, nothing ends unless `changes` say so."""
    arguments = {
        "rewards": column(1, 2, 3),
        "values": column(4, 6, 4),
        "next_values": column(6, 8, 10),
        "terminated": flags(0, 0, 0),
        "done": flags(0, 0, 0),
        "gamma": 0.5,
        "lam": 0.5,
    }
    return gae(**(arguments | changes)).squeeze(1).tolist()


@pytest.mark.parametrize(
    ("terminated", "truncated", "next_value", "expected"),
    [
        # deltas: 1 + 0.5 * 6 - 4 = 0, 2 + 0.5 * 8 - 6 = 0, 3 + 0.5 * 10 - 4 = 4, reaching back with 0.25 and 0.0625
        (None, None, 8, [0.25, 1.0, 4.0]),
        # delta_1 = 2 - 6 = -4 without its next value; A_0 = 0 + 0.25 * -4; A_2 = 3 + 5 - 4 = 4 stays out of A_1.
        (1, None, 8, [-1.0, -4.0, 4.0]),
        # V(final_obs) = 20: delta_1 = 2 + 0.5 * 20 - 6 = 6; A_0 = 0 + 0.25 * 6; A_2 = 4 stays out of A_1.
        (None, 1, 20, [1.5, 6.0, 4.0]),
        (2, None, 8, [-0.0625, -0.25, -1.0]),  # delta_2 = 3 - 4
    ],
)
def test_advantages_by_hand(terminated, truncated, next_value, expected):
    ends, cuts = ([int(step == each) for step in range(3)] for each in (terminated, truncated))
    done = flags(*(end or cut for end, cut in zip(ends, cuts, strict=True)))
    assert advantages(terminated=flags(*ends), done=done, next_values=column(6, next_value, 10)) == expected


def definition(rewards, values, next_values, terminated, done, gamma, lam):
    """A_t = sum over l of (gamma lam)^l delta_{t+l}, up to the first end of an episode; float64, O(T^2)."""
    result = torch.zeros_like(rewards, dtype=torch.float64)
    for n in range(rewards.shape[1]):
        for t in range(len(rewards)):
            for last in range(t, len(rewards)):
                delta = rewards[last, n].double() - values[last, n].double()
                if not terminated[last, n]:
                    delta = delta + gamma * next_values[last, n].double()
                result[t, n] += (gamma * lam) ** (last - t) * delta
                if done[last, n]:
                    break
    return result


@pytest.mark.parametrize("shape", [(17, 5), (17, 5, 3), (1, 4), (6, 1)])
@pytest.mark.parametrize(("gamma", "lam"), [(0.99, 0.95), (1.0, 1.0), (0.9, 0.0)])
def test_random_data_against_the_definition(shape, gamma, lam):
    generator = torch.Generator().manual_seed(7)
    rewards, values, next_values = (torch.randn(shape, generator=generator) for _ in range(3))
    terminated, truncated = (torch.rand(shape[:2], generator=generator) < 0.2 for _ in range(2))
    data = (rewards, values, next_values, terminated, terminated | truncated, gamma, lam)
    copies = [x.clone() for x in data[:5]]

    found = gae(*data)

    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), definition(*data), rtol=1e-5, atol=1e-5)
    assert all(torch.equal(x, copy) for x, copy in zip(data[:5], copies, strict=True))  # nothing is changed


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"values": torch.zeros(3)}, r"must have the same shape, got \[3, 1\], \[3\], \[3, 1\]"),
        ({"next_values": torch.zeros(2, 1)}, r"must have the same shape, got \[3, 1\], \[3, 1\], \[2, 1\]"),
        ({"terminated": torch.zeros(1, 3, dtype=torch.bool)}, r"terminated \[1, 3\] and done \[3, 1\]"),
        ({"done": torch.zeros(3, dtype=torch.bool)}, r"done \[3\] must be \[T, N\] = \[3, 1\]"),
    ],
)
def test_shapes_that_gae_cannot_take_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        advantages(**changes)


LOG2 = math.log(2)


def loss_of(ratio=1.0, advantage=0.0, value=0.0, old_value=0.0, returns=0.0, entropy=0.0, **settings):
    """The loss of one sample with the given probability ratio."""
    one = lambda number: torch.tensor([number], dtype=torch.float32)  # noqa: E731
    old_log_prob = one(-1.5)
    return ppo_loss(
        log_prob=old_log_prob + math.log(ratio),
        entropy=one(entropy),
        value=one(value),
        old_log_prob=old_log_prob,
        old_value=one(old_value),
        advantage=one(advantage),
        returns=one(returns),
        **settings,
    )


@pytest.mark.parametrize(
    ("ratio", "advantage", "expected"),
    [
        (1.1, 2.0, -2.2),  # inside the range: -r A
        (1.5, 2.0, -2.4),  # good action, more likely already: clipped at 1.2
        (0.5, 2.0, -1.0),  # good action, less likely: not clipped, so that it can come back
        (0.9, -2.0, 1.8),  # inside the range
        (0.5, -2.0, 1.6),  # bad action, less likely already: clipped at 0.8
        (1.5, -2.0, 3.0),  # bad action, more likely: not clipped
    ],
)
def test_policy_loss_of_one_sample(ratio, advantage, expected):
    loss, stats = loss_of(ratio, advantage)
    assert stats.policy_loss.item() == pytest.approx(expected, rel=1e-5)
    assert loss.item() == pytest.approx(expected, rel=1e-5)


def test_clip_coef_is_a_parameter():
    assert loss_of(1.5, 1.0, clip_coef=0.4)[1].policy_loss.item() == pytest.approx(-1.4, rel=1e-5)


@pytest.mark.parametrize(
    ("value", "returns", "expected"),
    [
        (1.0, 3.0, 3.92),  # V moved by 1, counted as 0.2: the larger error, 0.5 * (0.2 - 3)^2
        (1.0, 0.0, 0.5),  # moving V to the clipped place would hide the error: 0.5 * 1^2 stays
        (0.1, 1.0, 0.405),  # inside the range: 0.5 * 0.9^2
        (-1.0, -3.0, 3.92),  # and downwards
    ],
)
def test_value_loss_with_clipping(value, returns, expected):
    stats = loss_of(value=value, old_value=0.0, returns=returns, clip_value_loss=True)[1]
    assert stats.value_loss.item() == pytest.approx(expected, rel=1e-5)


def test_diagnostics_of_a_batch():
    # ratios 2, 1/2, 1, 1.1; (r - 1) - log r = 1 - log 2, log 2 - 1/2, 0, 0.1 - log 1.1; two of four leave 1 +- 0.2
    old = torch.tensor([-1.0, -2.0, -3.0, -0.5])
    new = old + torch.tensor([2.0, 0.5, 1.0, 1.1]).log()
    zeros = torch.zeros(4)
    _, stats = ppo_loss(new, zeros, zeros, old, zeros, zeros, zeros)
    expected = ((1 - LOG2) + (LOG2 - 0.5) + 0 + (0.1 - math.log(1.1))) / 4
    assert stats.approx_kl.item() == pytest.approx(expected, rel=1e-4)
    assert stats.clip_fraction.item() == 0.5


def test_means_are_over_the_batch():
    old = torch.zeros(2)
    loss, stats = ppo_loss(
        log_prob=old,
        entropy=torch.tensor([1.0, 3.0]),
        value=torch.tensor([0.0, 2.0]),
        old_log_prob=old,
        old_value=old,
        advantage=torch.tensor([1.0, 5.0]),
        returns=torch.zeros(2),
        value_coef=0.5,
        entropy_coef=0.1,
    )
    assert [stats.policy_loss.item(), stats.value_loss.item(), stats.entropy.item()] == [-3.0, 1.0, 2.0]
    assert loss.item() == pytest.approx(-3 + 0.5 * 1 - 0.1 * 2)


@pytest.mark.parametrize("clip_value_loss", [False, True])
def test_loss_and_gradient_against_an_independent_derivation(clip_value_loss):
    """Categorical, where() and float64 in place of log_softmax, minimum() and float32."""
    generator = torch.Generator().manual_seed(3)
    size, actions, eps = 64, 5, 0.2
    logits = torch.randn(size, actions, generator=generator)
    value, old_value, advantage, returns = torch.randn(4, size, generator=generator)
    action = torch.randint(actions, (size,), generator=generator)
    old = torch.log_softmax(logits + 0.5 * torch.randn(size, actions, generator=generator), -1)
    old_log_prob = old[torch.arange(size), action]

    mine = (logits.clone().requires_grad_(), value.clone().requires_grad_())
    log_probs = torch.log_softmax(mine[0], -1)
    loss, stats = ppo_loss(
        log_probs[torch.arange(size), action],
        -(log_probs.exp() * log_probs).sum(-1),
        mine[1],
        old_log_prob,
        old_value,
        advantage,
        returns,
        clip_coef=eps,
        value_coef=0.7,
        entropy_coef=0.03,
        clip_value_loss=clip_value_loss,
    )
    loss.backward()

    theirs = (logits.double().requires_grad_(), value.double().requires_grad_())
    policy = torch.distributions.Categorical(logits=theirs[0])
    ratio = policy.log_prob(action).exp() / old_log_prob.double().exp()
    gain = advantage.double()
    capped = torch.where(gain > 0, ratio.clamp(max=1 + eps), ratio.clamp(min=1 - eps)) * gain
    errors = (theirs[1] - returns) ** 2
    if clip_value_loss:
        step = theirs[1] - old_value
        inside = torch.where(step > eps, eps, torch.where(step < -eps, -eps, step))
        near = (old_value + inside - returns) ** 2
        errors = torch.where(near > errors, near, errors)
    expected = -capped.mean() + 0.7 * errors.mean() / 2 - 0.03 * policy.entropy().mean()
    expected.backward()

    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    for found, wanted in zip(mine, theirs, strict=True):
        assert found.grad.abs().max() > 1e-4
        torch.testing.assert_close(found.grad.double(), wanted.grad, rtol=1e-4, atol=1e-7)
    assert 0 < stats.clip_fraction.item() == ((ratio - 1).abs() > eps).double().mean().item() < 1
    assert not any(part.requires_grad for part in stats)


def test_a_clipped_sample_has_no_gradient():
    old = torch.zeros(1)
    for ratio, advantage, moves in ((1.5, 1.0, False), (1.5, -1.0, True), (0.5, -1.0, False), (0.5, 1.0, True)):
        log_prob = torch.tensor([math.log(ratio)], requires_grad=True)
        loss, _ = ppo_loss(log_prob, old, old, old, old, torch.tensor([advantage]), old)
        loss.backward()
        assert (log_prob.grad.item() != 0) == moves


def test_bf16_inputs_are_computed_in_float32():
    half = torch.tensor([-1.0], dtype=torch.bfloat16)
    one = torch.ones(1)
    loss, stats = ppo_loss(half, one, half, -one, one, one, one)
    assert {loss.dtype, *(part.dtype for part in stats)} == {torch.float32}


def test_shapes_that_do_not_match_are_refused():
    """`[B, 1]` values against `[B]` returns would broadcast to `[B, B]`."""
    batch = [torch.zeros(3) for _ in range(7)]
    batch[2] = torch.zeros(3, 1)
    with pytest.raises(ValueError, match=r"value, old_value and returns .* got \[\(3,\)\] and \[\(3,\), \(3, 1\)\]"):
        ppo_loss(*batch)


@pytest.mark.parametrize("per_signal", [False, True])
def test_gae_with_a_lambda_for_each_step(per_signal):
    """At a step with lambda 1, the next advantage counts in full; a plain loop over one row and signal."""
    generator = torch.Generator().manual_seed(0)
    rewards, values, following = (torch.randn(6, 2, 3, generator=generator) for _ in range(3))
    ends = torch.rand(6, 2, 3, generator=generator) < 0.2 if per_signal else torch.rand(6, 2, generator=generator) < 0.2
    lam = torch.where(torch.rand(6, 2, generator=generator) < 0.5, 1.0, 0.8)
    found = gae(rewards, values, following, ends, ends, 0.9, lam)
    for row in range(2):
        for k in range(3):
            advantage = 0.0
            for t in reversed(range(6)):
                goes_on = 0.0 if (ends[t, row, k] if per_signal else ends[t, row]) else 0.9
                delta = rewards[t, row, k] + goes_on * following[t, row, k] - values[t, row, k]
                advantage = delta + goes_on * lam[t, row] * advantage
                torch.testing.assert_close(found[t, row, k], advantage)
