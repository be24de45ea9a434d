"""SACLightningAgent: its policies, its losses and which parameters they move."""

import copy
import math

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete
from torch.distributions import Normal, TanhTransform, TransformedDistribution

from agents import SACLightningAgent
from fabric_rl.learning.sac import critic_loss, entropy_of, expected_q, soft_value
from fabric_rl.types import Transitions

VECTOR = Box(-np.inf, np.inf, (6,), np.float32)
SPACES = {
    "Box": Box(np.array([-2, 0.5], np.float32), np.array([3, 1.5], np.float32)),
    "Discrete": Discrete(5, start=1),
    "MultiDiscrete": MultiDiscrete([3, 5, 2], start=[0, 4, 0]),
}
EVERY = pytest.mark.parametrize("space", SPACES)
DISCRETE = pytest.mark.parametrize("space", ["Discrete", "MultiDiscrete"])


def build(space, **settings):
    torch.manual_seed(0)
    sizes = {"actor_hidden_sizes": (16,), "critic_hidden_sizes": (12,)}
    return SACLightningAgent(VECTOR, SPACES[space], **(sizes | settings))


def mask(agent, count):
    sizes = [int(agent.action_space.n)] if isinstance(agent.action_space, Discrete) else agent.action_space.nvec
    parts = [torch.rand(count, int(size)) for size in sizes]
    return torch.cat([(part < 0.5) | (part == part.amin(-1, keepdim=True)) for part in parts], dim=-1)


def transitions(agent, count=32, masked=False):
    torch.manual_seed(1)
    obs, next_obs = torch.randn(2, count, 6)
    allowed = (mask(agent, count), mask(agent, count)) if masked else (None, None)
    with torch.no_grad():
        action = agent.act(obs, action_mask=allowed[0]).action
    discount = torch.where(torch.rand(count) < 0.3, 0.0, 0.9)
    return Transitions(obs, action, torch.randn(count), next_obs, discount, *allowed)


@EVERY
def test_actions_are_in_the_space_and_random_at_first(space):
    agent = build(space)
    obs = torch.randn(2000, 6)
    for agent.acts_at_random in (False, True):
        acted = agent.act(obs)
        assert all(agent.action_space.contains(row) for row in acted.action.numpy())
        assert acted.log_prob.shape == (2000,) and acted.value is None
    evenly = math.log(2.5 * 0.5 * 4) if space == "Box" else math.log(5 if space == "Discrete" else 30)
    torch.testing.assert_close(acted.log_prob, torch.full((2000,), -evenly))
    assert len(acted.action.unique(dim=0)) == {"Box": 2000, "Discrete": 5, "MultiDiscrete": 30}[space]
    first, again = agent.act(obs, deterministic=True), agent.act(obs, deterministic=True)
    assert torch.equal(first.action, again.action)
    agent.acts_at_random = False
    assert torch.equal(first.action, agent.act(obs, deterministic=True).action)


def test_the_log_probability_of_a_squashed_action():
    """As torch's own transformed distribution says, in the units of the Box."""
    agent = build("Box")
    obs = torch.randn(50, 6)
    acted = agent.act(obs)
    mean, log_std = agent.policy_head(agent.actor(obs)).chunk(2, dim=-1)
    policy = TransformedDistribution(Normal(mean, log_std.exp()), [TanhTransform()])
    unit = (acted.action - torch.tensor([0.5, 1.0])) / torch.tensor([2.5, 0.5])
    expected = policy.log_prob(unit).sum(-1) - math.log(2.5 * 0.5)
    torch.testing.assert_close(acted.log_prob, expected, atol=2e-3, rtol=1e-3)


@DISCRETE
@pytest.mark.parametrize("at_random", [False, True])
def test_what_is_forbidden_is_never_chosen(space, at_random):
    agent = build(space)
    agent.acts_at_random = at_random
    obs, allowed = torch.randn(3000, 6), mask(agent, 3000)
    index = agent.policy_head.policy.index(agent.act(obs, action_mask=allowed).action)
    first = torch.tensor([0, 3, 8]) if space == "MultiDiscrete" else torch.tensor([0])
    assert allowed.gather(1, index + first).all()


@EVERY
@pytest.mark.parametrize("masked", [False, True])
def test_each_loss_moves_parameters_of_its_own(space, masked):
    """The critics' gradient is that of the Bellman error alone; the policy's that of the value alone."""
    if masked and space == "Box":
        return
    agent = build(space, layer_norm=True)
    batch = transitions(agent, masked=masked)
    torch.manual_seed(2)
    loss, stats = agent.training_step(batch)
    loss.backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in agent.parameters() if p.requires_grad)
    assert not any(p.requires_grad for p in agent.target_critics.parameters())
    assert set(stats) == {"critic_loss", "policy_loss", "entropy", "temperature", "q", "td_error"}
    critics = [p.grad.clone() for p in agent.critics.parameters()]

    only_critics = copy.deepcopy(agent)
    only_critics.zero_grad()
    torch.manual_seed(2)
    head, seen, after = only_critics.policy_head, batch.obs, batch.next_obs
    with torch.no_grad():
        targets = lambda a: only_critics.target_critics(after if a is None else torch.cat((after, a), -1))  # noqa: E731
        params = head(only_critics.actor(after))
        value = soft_value(*head.value(params, batch.next_action_mask, targets), torch.tensor(1.0))
    q = head.q_of(batch.action, lambda a: only_critics.critics(seen if a is None else torch.cat((seen, a), -1)))
    critic_loss(q, batch.reward[:, None] + batch.discount[:, None] * value).backward()
    for expected, got in zip(only_critics.critics.parameters(), critics, strict=True):
        torch.testing.assert_close(got, expected.grad)


@EVERY
def test_the_parts_are_the_whole(space):
    """The losses of both parts add up, and each has gradients for its own parameters only."""
    agent = build(space, layer_norm=True)
    batch = transitions(agent)
    torch.manual_seed(2)
    whole, stats = agent.training_step(batch)
    whole.backward()
    expected = {name: p.grad for name, p in agent.named_parameters() if p.requires_grad}
    agent.zero_grad()
    torch.manual_seed(2)
    parts, told, learned = agent.update_parts(), {}, []
    for part, own in parts.items():
        loss, more = agent.training_step(batch._replace(part=part))
        loss.backward()
        whole, told = whole - loss, told | more
        learned += own
        assert {id(p) for p in agent.parameters() if p.grad is not None} == {id(p) for p in learned}
    assert list(parts) == ["critics", "policy"] and whole.abs() < 1e-5
    torch.testing.assert_close(told, stats)
    assert {id(p) for p in learned} == {id(p) for p in agent.parameters() if p.requires_grad}
    for name, grad in expected.items():
        torch.testing.assert_close(agent.get_parameter(name).grad, grad)


@DISCRETE
def test_nothing_is_drawn_to_learn_from_discrete_actions(space):
    agent = build(space)
    batch = transitions(agent)
    before = torch.get_rng_state()
    first, again = agent.training_step(batch)[0], agent.training_step(batch)[0]
    assert torch.equal(first, again) and torch.equal(before, torch.get_rng_state())


def test_the_value_of_discrete_actions_and_their_probabilities():
    agent = SACLightningAgent(VECTOR, Discrete(4), (16,), (12,), init_entcoef=0.5)
    obs = torch.randn(7, 6)
    log_probs = torch.log_softmax(agent.policy_head(agent.actor(obs)), dim=-1)
    q = agent.critics(obs)
    log_probs = log_probs[:, None]
    expected = soft_value(expected_q(q[:, :, None, None], log_probs), entropy_of(log_probs), torch.tensor(0.5))
    torch.testing.assert_close(agent.value(obs), expected[:, 0])
    log_probs = log_probs[:, 0]
    torch.testing.assert_close(agent.probabilities(obs), log_probs.exp())
    (found,) = agent.distributions(obs, None, None)
    torch.testing.assert_close(found.base_dist.probs[:, 0].float(), log_probs.exp())
    box = build("Box")
    unit = box.distributions(obs, None, None)[0].mean.tanh().float()
    torch.testing.assert_close(box.act(obs, deterministic=True).action, box.policy_head._in_box(unit))
    assert build("Box").probabilities(obs) is None and build("Discrete").probabilities(obs) is None


def test_one_step_goes_down_the_bellman_error():
    agent = build("Box", critic_lr=1e-2)
    batch = transitions(agent)._replace(discount=torch.zeros(32))
    optimizer = agent.configure_optimizers()
    errors = []
    for _ in range(200):
        loss, stats = agent.training_step(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        errors.append(stats["critic_loss"].item())
    assert errors[-1] < errors[0] / 20


@pytest.mark.parametrize("copied", [False, True])
def test_the_targets_begin_as_the_critics_and_follow(copied):
    agent = copy.deepcopy(build("Box")) if copied else build("Box")
    pairs = list(zip(agent.target_critics.parameters(), agent.critics.parameters(), strict=True))
    assert all(torch.equal(target, source) for target, source in pairs)
    with torch.no_grad():
        for _, source in pairs:
            source.add_(1.0)
    agent.update_targets(0.25)
    for target, source in pairs:
        torch.testing.assert_close(source - target, torch.full_like(source, 0.75))


@pytest.mark.parametrize(
    ("space", "settings", "target"),
    [
        ("Box", {}, -2.0),
        ("Box", {"target_entropy": 1.3}, 1.3),
        ("Discrete", {}, 0.2 * math.log(5)),
        ("MultiDiscrete", {"entropy_share": 0.5}, 0.5 * math.log(30)),
    ],
)
def test_target_entropies(space, settings, target):
    agent = build(space, init_entcoef=0.3, **settings)
    params = torch.randn(3, agent.policy_head(torch.zeros(1, 16)).shape[-1])
    usual = agent.policy_head.default_target_entropy(params)
    assert target == pytest.approx(usual if agent.target_entropy is None else agent.target_entropy)
    assert agent.log_temperature.exp().item() == pytest.approx(0.3)


def test_masks_lower_the_entropy_that_is_asked_for():
    """Else a state with one allowed action drives the temperature up without end."""
    agent = build("Discrete")
    masks = torch.tensor([[True] * 5, [True] * 2 + [False] * 3, [False] * 4 + [True]])
    found = agent.policy_head.default_target_entropy(torch.randn(3, 5), masks)
    torch.testing.assert_close(found, 0.2 * torch.tensor([5.0, 2.0, 1.0]).log())
    batch = transitions(agent, count=3)
    only = masks[2:].expand(3, -1)
    agent.training_step(batch._replace(action_mask=only, next_action_mask=only))[0].backward()
    assert agent.log_temperature.grad.item() == pytest.approx(0, abs=1e-6)


def test_the_critics_see_what_the_policy_does_not():
    space = Box(-np.inf, np.inf, (6,), np.float32)
    space.actor_features = 4
    agent = SACLightningAgent(space, SPACES["Box"], (16,), (12,), normalize_obs=True)
    obs, other = torch.randn(2, 5, 6)
    other[:, :4] = obs[:, :4]
    assert torch.equal(agent.act(obs, deterministic=True).action, agent.act(other, deterministic=True).action)
    assert not torch.allclose(agent.value(obs), agent.value(other))


@pytest.mark.parametrize(
    ("space", "settings", "message"),
    [
        (SPACES["Box"], {"target_entropy": 2.0}, r"target_entropy must be below the maximum entropy, 1.39, got 2.0"),
        (SPACES["Discrete"], {"target_entropy": 5}, r"below the maximum entropy, 1.61, got 5"),
        (Box(np.float32([0, 1]), np.float32([1, 1])), {}, "must differ, and by less than 1e38"),
        (Box(-3e38, 3e38, (2,)), {}, "less than 1e38"),
        (MultiBinary(3), {}, r"MultiDiscrete and \(float\) Box actions, but the environment has Multi"),
        (Box(-np.inf, np.inf, (2,)), {}, "tanh needs an action Box with finite bounds"),
        (Box(-1, 1, (0,)), {}, "the action Box has no dimensions"),
        (Box(0, 5, (2,), np.int64), {}, r"supports Discrete, MultiDiscrete and \(float\) Box"),
        (Discrete(3), {"entropy_share": 1.0}, "--agent.entropy_share must be a number above 0 and below 1, got 1.0"),
    ],
)
def test_what_cannot_work_is_said_at_once(space, settings, message):
    with pytest.raises(ValueError, match=f"^SACLightningAgent:? .*{message}"):
        SACLightningAgent(VECTOR, space, **settings)
    with pytest.raises(ValueError, match=r"reads vector observations"):
        SACLightningAgent(Dict({}), SPACES["Box"])
