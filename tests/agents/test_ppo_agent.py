"""What is particular to PPOLightningAgent; tests/agents/test_contract.py has what all agents promise."""

import math
import re

import gymnasium
import numpy as np
import pytest
import torch
from torch import nn

from agents import PPOLightningAgent
from agents.parts.heads import CategoricalHead, GaussianHead
from fabric_rl.schedules import Linear
from fabric_rl.types import Minibatch

OBS = gymnasium.spaces.Box(-np.inf, np.inf, (6,), np.float32)
ACTIONS = gymnasium.spaces.Discrete(5)


def agent_with(seed=0, **settings) -> PPOLightningAgent:
    torch.manual_seed(seed)
    return PPOLightningAgent(OBS, ACTIONS, **({"actor_hidden_sizes": (16,), "critic_hidden_sizes": (12,)} | settings))


def opinionated() -> PPOLightningAgent:
    """An agent whose policy is far from uniform."""
    agent = agent_with()
    with torch.no_grad():
        agent.policy_head.layer.weight *= 100
        agent.policy_head.layer.bias.copy_(torch.tensor([0.0, 1.0, -1.0, 0.5, 2.0]))
    return agent


def logits_of(agent, obs):
    return agent.policy_head.layer(agent.actor(obs))


def observations(n=7):
    return torch.randn(n, 6, generator=torch.Generator().manual_seed(1))


def minibatch(agent, n=32):
    obs = observations(n)
    with torch.no_grad():
        acted = agent.act(obs)
        value = agent.value(obs)
    generator = torch.Generator().manual_seed(2)
    advantage, returns = torch.randn(2, n, generator=generator)
    return Minibatch(obs, acted.action, acted.log_prob, value, advantage, returns)


@pytest.mark.parametrize("deterministic", [False, True])
def test_actions_and_their_probabilities(deterministic):
    agent, obs = opinionated(), observations(50)
    acted, logits = agent.act(obs, deterministic=deterministic), logits_of(agent, obs)
    torch.testing.assert_close(acted.log_prob, torch.distributions.Categorical(logits=logits).log_prob(acted.action))
    assert torch.equal(acted.action, logits.argmax(-1)) is deterministic
    assert len(acted.action.unique()) > 1


def test_sampling_follows_the_probabilities():
    agent = opinionated()
    obs = observations(1)
    probs = torch.softmax(logits_of(agent, obs), -1)[0]
    torch.manual_seed(0)
    n = 40_000
    frequencies = torch.bincount(agent.act(obs.expand(n, -1)).action, minlength=5) / n
    deviation = (probs * (1 - probs) / n).sqrt()
    assert ((frequencies - probs).abs() < 4 * deviation).all()
    assert probs.max() - probs.min() > 0.2


def test_rows_are_sampled_independently():
    obs = observations(1).expand(64, -1)
    assert len(agent_with().act(obs).action.unique()) == 5


@pytest.mark.filterwarnings("ignore:TF32 acceleration")
def test_log_probs_are_float32_under_bf16():
    """Rollout and training must agree to float32 rounding, or the first ratios are not 1."""
    agent, obs = opinionated(), observations(64)
    # Without oneDNN: it would use AMX, which some virtual machines announce and then forbid.
    with torch.backends.mkldnn.flags(enabled=False), torch.autocast("cpu", torch.bfloat16):
        assert agent.actor(obs).dtype == torch.bfloat16
        acted = agent.act(obs)
        value = agent.value(obs)
        batch = Minibatch(obs, acted.action, acted.log_prob, value, torch.ones(64), torch.zeros(64))
        loss, stats = agent.training_step(batch)
        logits = logits_of(agent, obs).float()
    assert [acted.log_prob.dtype, value.dtype, loss.dtype] == [torch.float32] * 3
    expected = torch.distributions.Categorical(logits=logits).log_prob(acted.action)
    torch.testing.assert_close(acted.log_prob, expected)
    assert stats["approx_kl"].abs() < 1e-6
    assert stats["policy_loss"].item() == pytest.approx(-1, abs=1e-6)


def test_training_step_is_the_loss_of_categorical():
    settings = {"clip_coef": 0.1, "value_coef": 0.3, "entropy_coef": 0.02}
    agent = agent_with(**settings)
    batch = minibatch(agent)
    batch = batch._replace(log_prob=batch.log_prob + 0.3 * batch.returns)  # ratios on both sides of the clip range
    loss, stats = agent.training_step(batch)

    policy = torch.distributions.Categorical(logits=logits_of(agent, batch.obs))
    ratio = (policy.log_prob(batch.action) - batch.log_prob).exp()
    surrogate = torch.minimum(ratio * batch.advantage, ratio.clamp(0.9, 1.1) * batch.advantage)
    errors = (agent.value_head.layer(agent.critic(batch.obs))[:, 0] - batch.returns) ** 2
    expected = -surrogate.mean() + 0.3 * errors.mean() / 2 - 0.02 * policy.entropy().mean()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    assert stats["entropy"].item() == pytest.approx(policy.entropy().mean().item(), rel=1e-5)
    assert 0 < stats["clip_fraction"] < 1
    assert set(stats) == {"policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction"}
    assert all(x.shape == () and not x.requires_grad for x in stats.values())


def test_value_clipping_reaches_the_loss():
    batch = minibatch(agent_with())
    batch = batch._replace(value=batch.value - 1)
    plain, clipped = (agent_with(clip_value_loss=clip).training_step(batch)[1]["value_loss"] for clip in (False, True))
    assert clipped > plain


def ids(module):
    return list(map(id, module.parameters()))


def test_separate_learning_rates():
    """Adam's first step moves every weight by its group's learning rate."""
    agent = agent_with(actor_lr=1e-4, critic_lr=5e-4)
    optimizer = agent.configure_optimizers()
    before = [p.clone() for group in optimizer.param_groups for p in group["params"]]
    agent.training_step(minibatch(agent))[0].backward()
    optimizer.step()
    after = [(group["lr"], p.detach()) for group in optimizer.param_groups for p in group["params"]]
    for lr in (1e-4, 5e-4):
        moved = max((p - old).abs().max().item() for (rate, p), old in zip(after, before, strict=True) if rate == lr)
        assert moved == pytest.approx(lr, rel=0.02)


def test_orthogonal_initialisation():
    agent = agent_with(actor_hidden_sizes=(16, 8), critic_hidden_sizes=(16,))
    for network, head, last_gain in ((agent.actor, agent.policy_head, 0.01), (agent.critic, agent.value_head, 1.0)):
        hidden, last = [layer for layer in network if isinstance(layer, nn.Linear)], head.layer
        for layer, gain in [*((layer, math.sqrt(2)) for layer in hidden), (last, last_gain)]:
            weight = layer.weight if layer.out_features <= layer.in_features else layer.weight.T
            torch.testing.assert_close(weight @ weight.T, gain**2 * torch.eye(len(weight)), rtol=1e-4, atol=1e-5)
            assert not layer.bias.any()
    probs = torch.softmax(logits_of(agent, observations()), -1)
    assert (probs - 0.2).abs().max() < 0.01  # explores evenly at first


def test_initialisation_can_be_torchs_own():
    agent = agent_with(ortho_init=False)
    torch.manual_seed(0)
    assert torch.equal(agent.actor[0].weight, nn.Linear(6, 16).weight)


def sizes(network):
    return [layer.out_features for layer in network if isinstance(layer, nn.Linear)]


def test_architecture_is_as_asked():
    agent = agent_with(actor_hidden_sizes=(16, 8), critic_hidden_sizes=(32,), activation=nn.ELU, layer_norm=True)
    assert [type(layer) for layer in agent.actor] == [nn.Linear, nn.LayerNorm, nn.ELU] * 2
    assert (sizes(agent.actor), sizes(agent.critic)) == ([16, 8], [32])
    assert (agent.policy_head.layer.in_features, agent.policy_head.layer.out_features) == (8, 5)
    assert (agent.value_head.layer.in_features, agent.value_head.layer.out_features) == (32, 1)
    assert [type(layer) for layer in agent_with().actor] == [nn.Linear, nn.Tanh]
    shared = set(ids(agent.actor)) & set(ids(agent.critic))
    assert not shared


def test_shared_trunk():
    agent = agent_with(actor_hidden_sizes=(16, 8), shared_trunk=True)
    assert agent.critic is None
    assert agent.value_head.layer.in_features == 8
    obs = observations()
    assert torch.equal(agent.value(obs), agent.value_head.layer(agent.actor(obs))[:, 0])
    assert torch.equal(agent.act(obs).value, agent.value(obs))
    batch = minibatch(agent)._replace(advantage=torch.zeros(32))
    agent.training_step(batch)[0].backward()
    assert agent.actor[0].weight.grad.any()  # the value loss alone trains the trunk


def test_no_hidden_layers_is_a_linear_policy():
    agent = agent_with(actor_hidden_sizes=(), critic_hidden_sizes=())
    assert [p.shape for p in agent.parameters()] == [(5, 6), (5,), (1, 6), (1,)]
    assert len([p for group in agent.configure_optimizers().param_groups for p in group["params"]]) == 4


@pytest.mark.parametrize(
    ("progress", "clip_coef", "entropy_coef"), [(0.0, 0.3, 0.1), (0.5, 0.2, 0.05), (1.0, 0.1, 0.0)]
)
def test_schedules_follow_the_progress(progress, clip_coef, entropy_coef):
    scheduled = agent_with(clip_coef=Linear(0.3, 0.1), entropy_coef=Linear(0.1, 0.0))
    constant = agent_with(clip_coef=clip_coef, entropy_coef=entropy_coef)
    batch = minibatch(constant)
    batch = batch._replace(log_prob=batch.log_prob + 0.3 * batch.returns)
    scheduled.progress.fill_(progress)
    loss, stats = scheduled.training_step(batch)
    expected, expected_stats = constant.training_step(batch)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
    assert stats["clip_fraction"] == expected_stats["clip_fraction"]


def test_observations_are_normalised_for_actor_and_critic():
    plain, agent = agent_with(), agent_with(normalize_obs=True)
    obs = 50 + 7 * observations(500)
    agent.normalizer.update(obs)
    standard = agent.normalizer(obs)
    torch.testing.assert_close(standard, (obs - obs.mean(0)) / obs.std(0), rtol=0.01, atol=0.01)
    assert torch.equal(agent.value(obs), plain.value(standard))
    acted, expected = (x.act(y, deterministic=True) for x, y in ((agent, obs), (plain, standard)))
    assert torch.equal(acted.log_prob, expected.log_prob)
    batch = minibatch(plain)
    raw = batch._replace(obs=batch.obs * 7 + 50)
    standardised = batch._replace(obs=agent.normalizer(raw.obs))
    assert torch.equal(agent.training_step(raw)[0], plain.training_step(standardised)[0])
    saved = agent_with(normalize_obs=True, seed=1)
    saved.load_state_dict(agent.state_dict())
    assert torch.equal(saved.value(obs), agent.value(obs))


def test_bytes_are_observations_too():
    agent = PPOLightningAgent(gymnasium.spaces.Box(0, 255, (6,), np.uint8), ACTIONS)
    obs = torch.randint(256, (7, 6), dtype=torch.uint8)
    assert torch.equal(agent.value(obs), agent.value(obs.float()))
    assert agent.act(obs).action.shape == (7,)


def test_gaussian_options_reach_the_head():
    box = gymnasium.spaces.Box(-2, 2, (3,))
    agent = PPOLightningAgent(OBS, box, log_std_init=-0.7)
    assert isinstance(agent.policy_head, GaussianHead)
    assert torch.equal(agent.policy_head.log_std, torch.full((3,), -0.7))
    assert PPOLightningAgent(OBS, box, squash=True).policy_head.squash
    assert PPOLightningAgent(OBS, box, state_dependent_std=True).policy_head.log_std is None
    assert isinstance(PPOLightningAgent(OBS, gymnasium.spaces.MultiDiscrete([3, 2])).policy_head, CategoricalHead)


@pytest.mark.parametrize(
    ("settings", "flag"),
    [
        ({"clip_coef": Linear(0.2, 0.0)}, "--agent.clip_coef must be above 0 from start to end, got Linear(0.2, 0.0)"),
        ({"entropy_coef": Linear(0.1, -0.1)}, "--agent.entropy_coef must be at least 0 from start to end, got"),
        ({"squash": True}, "--agent.state_dependent_std, squash and log_std_init are for Box actions"),
    ],
)
def test_settings_that_cannot_work_name_their_flag(settings, flag):
    with pytest.raises(ValueError, match=f"^PPOLightningAgent: {re.escape(flag)}"):
        agent_with(**settings)
