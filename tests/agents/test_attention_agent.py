"""AttentionPPOAgent: a set in, the same answer in any order, nothing from empty rows, any team size."""

import math

import gymnasium
import numpy as np
import pytest
import torch
from torch import nn

from agents.attention import AttentionPPOAgent, ObjectAttention
from envs import RandomState, RocketSimPool
from envs.obs import EntityObs, StackedObs
from fabric_rl.types import Minibatch

F = EntityObs.NUM_FEATURES
ACTIONS = gymnasium.spaces.Discrete(5)


def box(objects, features=F):
    return gymnasium.spaces.Box(-np.inf, np.inf, (objects, features), np.float32)


def agent_with(objects=7, actions=ACTIONS, features=F, seed=0, **settings):
    torch.manual_seed(seed)
    agent = AttentionPPOAgent(box(objects, features), actions, **({"embed_size": 16, "num_heads": 2} | settings))
    with torch.no_grad():  # a policy with opinions
        agent.policy_head.layer.weight *= 100
    return agent


def objects_of(n=6, objects=7, features=F, seed=1):
    obs = torch.randn(n, objects, features, generator=torch.Generator().manual_seed(seed))
    obs[..., EntityObs.PRESENT] = 1
    return obs


def outputs(agent, obs):
    """Logits and values."""
    return agent.evaluate(obs)


def minibatch(agent, obs, mask=None):
    with torch.no_grad():
        acted = agent.act(obs, action_mask=mask)
    advantage, returns = torch.randn(2, len(obs), generator=torch.Generator().manual_seed(2))
    return Minibatch(obs, acted.action, acted.log_prob, acted.value, advantage, returns, mask)


# ---------------------------------------------------------------- a set


@pytest.mark.parametrize("num_layers", [1, 3])
def test_the_order_of_the_other_objects_does_not_matter(num_layers):
    agent, obs = agent_with(num_layers=num_layers), objects_of()
    obs[::2, 4] = 0  # an empty row moves too
    order = torch.tensor([0, 5, 3, 6, 1, 4, 2])
    for x, y in zip(outputs(agent, obs), outputs(agent, obs[:, order]), strict=True):
        torch.testing.assert_close(x, y, rtol=1e-5, atol=1e-5)


def test_the_own_car_is_not_one_of_the_others():
    agent, obs = agent_with(), objects_of()
    logits, values = outputs(agent, obs)
    swapped_logits, swapped_values = outputs(agent, obs[:, [1, 0, 2, 3, 4, 5, 6]])
    assert ((logits - swapped_logits).abs().amax(-1) > 1e-2).all()
    assert ((values - swapped_values).abs() > 1e-3).all()


@pytest.mark.parametrize("row", range(7))
def test_every_object_that_is_present_matters(row):
    agent, obs = agent_with(), objects_of()
    changed = obs.clone()
    changed[:, row, EntityObs.VEL] += 1
    (logits, values), (other_logits, other_values) = outputs(agent, obs), outputs(agent, changed)
    assert ((logits - other_logits).abs().amax(-1) > 1e-4).all()
    assert ((values - other_values).abs() > 1e-5).all()


@pytest.mark.parametrize("garbage", [1e6, math.inf, math.nan])
def test_empty_rows_change_nothing(garbage):
    agent, obs = agent_with(), objects_of()
    obs[:3, 2:5] = 0
    obs[4, 1:] = 0
    dirty = obs.clone()
    empty = obs[..., EntityObs.PRESENT] == 0
    dirty[..., 1:][empty] = garbage
    grads = []
    for x in (obs, dirty):
        x.requires_grad_()
        logits, values = outputs(agent, x)
        agent.zero_grad()
        (logits.square().sum() + values.square().sum()).backward()
        assert not x.grad[empty].any()  # NaN would count as any
        assert x.grad[~empty][:, 1:].any(-1).all()
        grads.append([logits, values, *(p.grad.clone() for p in agent.parameters())])
    for x, y in zip(*grads, strict=True):
        assert torch.equal(x, y)


def test_empty_rows_are_as_good_as_no_rows():
    """The same weights on sets without the empty rows."""
    big, small = agent_with(objects=7), agent_with(objects=3, seed=5)
    small.load_state_dict(big.state_dict())
    obs = objects_of()
    obs[:, 3:] = 0
    for x, y in zip(outputs(big, obs), outputs(small, obs[:, :3]), strict=True):
        torch.testing.assert_close(x, y, rtol=1e-5, atol=1e-5)


def test_nothing_but_the_own_car_and_not_even_that():
    agent, obs = agent_with(ortho_init=False), objects_of(3)  # with biases, so that a row of zeros is seen
    obs[1:, 1:] = 0
    obs[2] = 0  # an observer that is not there: EntityObs clears it
    batch = minibatch(agent, obs)
    loss, stats = agent.training_step(batch)
    loss.backward()
    assert torch.isfinite(batch.log_prob).all() and torch.isfinite(batch.value).all()
    assert all(torch.isfinite(x).all() for x in [loss, *stats.values(), *(p.grad for p in agent.parameters())])
    alone = agent_with(objects=1, present_column=None, ortho_init=False)  # sees itself, present or not
    alone.load_state_dict(agent.state_dict())
    torch.testing.assert_close(batch.value[1:], alone.value(obs[1:, :1]), rtol=1e-5, atol=1e-5)


def test_without_a_column_for_presence_all_rows_are_objects():
    agent = agent_with(present_column=None)
    obs = objects_of()
    obs[:, 3] = 0
    with_empty, without = agent.value(obs), agent.value(obs[:, [0, 1, 2, 4, 5, 6]])
    assert ((with_empty - without).abs() > 1e-5).all()


def test_the_column_for_presence_can_be_another_one():
    agent, obs = agent_with(features=4, present_column=3), torch.randn(5, 7, 4)
    obs[:, 2:, 3] = 0
    dirty = obs.clone()
    dirty[:, 2:, :3] = 9
    assert torch.equal(agent.value(obs), agent.value(dirty))
    dirty[:, 2, 3] = 1
    assert (agent.value(obs) != agent.value(dirty)).all()


def test_attention_is_that_of_torch():
    """Against torch's MultiheadAttention with the same weights."""
    torch.manual_seed(0)
    layer, other = ObjectAttention(12, 3, nn.ReLU, False), nn.MultiheadAttention(12, 3, batch_first=True)
    with torch.no_grad():
        for name in ("weight", "bias"):
            getattr(other.out_proj, name).copy_(getattr(layer.out, name))
        other.in_proj_weight.copy_(torch.cat([layer.query.weight, layer.key.flatten(0, 1), layer.value.flatten(0, 1)]))
        other.in_proj_bias.copy_(torch.cat([layer.query.bias, torch.randn(12), torch.zeros(12)]))
    query, objects = torch.randn(5, 12), torch.randn(5, 6, 12)
    present = torch.rand(5, 6) < 0.6
    present[:, 0] = True
    asked = layer.query_norm(query)[:, None]
    answer, _ = other(asked, objects, objects, key_padding_mask=~present)
    expected = query + answer[:, 0]
    expected = expected + layer.mlp(expected)
    torch.testing.assert_close(layer(query, objects, present), expected, rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------- a real pool


@pytest.mark.parametrize("stacked", [False, True])
def test_all_team_sizes_in_one_batch(stacked):
    builder = EntityObs(include_pads=True, include_goals=True)
    pool = RocketSimPool(
        6,
        [[1, 0], [1, 1], [3, 3]],
        obs=StackedObs(builder, 2) if stacked else builder,
        state_setter=RandomState(),
        num_threads=1,
        seed=3,
    )
    torch.manual_seed(0)
    agent = AttentionPPOAgent(pool.single_observation_space, pool.single_action_space, embed_size=16)
    obs = torch.from_numpy(pool.reset(seed=0)[0])
    cars = (obs[..., EntityObs.PRESENT] * obs[..., EntityObs.IS_CAR]).sum(-1)
    assert sorted(set(cars.tolist())) == [1, 2, 6]
    steps = []
    for _ in range(4):
        with torch.no_grad():
            acted = agent.act(obs)
        steps.append((obs, *acted[:3]))
        obs = torch.from_numpy(pool.step(acted.action.numpy())[0])
    pool.close()
    seen, action, log_prob, value = (torch.cat(parts) for parts in zip(*steps, strict=True))
    assert action.shape == (4 * pool.num_envs,) and action.dtype == torch.int64
    assert torch.isfinite(log_prob).all() and torch.isfinite(value).all() and value.std() > 0
    # Exchanged cars, exchanged pads.
    at = builder.objects
    order = torch.arange(seen.shape[1])
    for name in ("allies", "enemies", "pads"):
        order[at[name]] = order[at[name]].flip(0)
    torch.testing.assert_close(agent.value(seen[:, order]), value, rtol=1e-4, atol=1e-5)
    # A small game by itself, without room for others: the same values.
    rows = [at["self"].start, at["ball"].start, *range(at["pads"].start, at["goals"].stop)]
    alone = (seen[..., EntityObs.PRESENT] * seen[..., EntityObs.IS_CAR]).sum(-1) == 1
    torch.testing.assert_close(agent.value(seen[alone][:, rows]), value[alone], rtol=1e-4, atol=1e-5)

    loss, stats = agent.training_step(Minibatch(seen, action, log_prob, value, torch.randn(len(value)), value + 1))
    loss.backward()
    assert stats["approx_kl"].abs() < 1e-5 and stats["value_loss"].item() == pytest.approx(0.5, rel=1e-4)
    assert all(torch.isfinite(p.grad).all() for p in agent.parameters())


def test_it_explores_evenly_at_first():
    torch.manual_seed(0)
    agent = AttentionPPOAgent(box(7), ACTIONS)
    probs = torch.softmax(outputs(agent, objects_of())[0], -1)
    assert (probs - 0.2).abs().max() < 0.02


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("space", "settings", "message"),
    [
        (gymnasium.spaces.Box(-1, 1, (70,)), {}, r"reads sets of objects .* has Box.*choose --env.obs envs.EntityObs"),
        (gymnasium.spaces.Box(0, 255, (8, 8, 3)), {}, "reads sets of objects"),
        (
            box(7),
            {"embed_size": 30, "num_heads": 4},
            "embed_size must be a multiple of --agent.num_heads, got 30 and 4",
        ),
        (box(7), {"present_column": 35}, r"--agent.present_column must be one of the 35 features, 0\.\.34, or null"),
        (box(7), {"present_column": -1}, "--agent.present_column must be one of the 35 features"),
    ],
)
def test_what_cannot_work_is_refused(space, settings, message):
    with pytest.raises(ValueError, match=message) as caught:
        AttentionPPOAgent(space, ACTIONS, **settings)
    assert "AttentionPPOAgent" in str(caught.value) and "\n" not in str(caught.value)
