"""What every agent promises the trainer; an agent joins with one line in AGENTS."""

import copy
import inspect
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
import torch._dynamo.testing
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete
from jsonargparse import ArgumentParser, set_parsing_settings
from torch import nn

import agents
from agents.parts.heads import PolicyHead
from envs.adapters.gymnasium_envs import ConcatenatedBox
from fabric_rl.base.settings import annotations_of
from fabric_rl.learning.normalize import ObsNormalizer
from fabric_rl.types import ActorCritic, ActOutput, Minibatch, TeamAgent
from tests.envs.test_settings import wrong_values

VECTOR = Box(-np.inf, np.inf, (6,), np.float32)
ENTRIES = ConcatenatedBox({"seen": Box(-1, 1, (6, 5, 3), np.float32), "own": VECTOR})
MEMORY = {"hidden_sizes": (16,), "memory_size": 12, "sequence_length": 4}
SMALL = {"actor_hidden_sizes": (16,), "critic_hidden_sizes": (12,)}


@dataclass(frozen=True)
class Case:
    agent: str
    observation_space: Box
    settings: dict[str, Any] = field(default_factory=dict)
    label: str = ""

    def build(self, action_space, seed=0, **more) -> ActorCritic:
        torch.manual_seed(seed)
        agent = getattr(agents, self.agent)(self.observation_space, action_space, **self.settings, **more)
        with torch.no_grad():  # policies far from uniform, or a wrong log-probability would hardly show
            for head in agent.modules():
                if isinstance(head, PolicyHead):
                    head.layer.weight *= 30
        return agent

    def __str__(self):
        return self.agent + self.label


AGENTS = [
    Case("PPOLightningAgent", VECTOR, SMALL),
    Case("PPOLightningAgent", VECTOR, SMALL | {"shared_trunk": True, "layer_norm": True}, "-shared"),
    Case("RecurrentPPOAgent", VECTOR, MEMORY),
    Case("RecurrentPPOAgent", VECTOR, MEMORY | {"cell": "gru", "burn_in": 3}, "-GRU with burn-in"),
    Case("AttentionPPOAgent", Box(-np.inf, np.inf, (5, 8), np.float32), SMALL | {"embed_size": 16, "num_heads": 2}),
    Case("POCAAgent", VECTOR, SMALL | {"embed_size": 16, "num_heads": 2}),
    Case("ConvPPOAgent", Box(0, 255, (20, 20, 3), np.uint8), {"hidden_sizes": (16,)}),
    Case("MultiInputPPOAgent", ENTRIES, {"encoder": "match3", "entry_sizes": (12,), "hidden_sizes": (16,)}),
]
SPACES = {
    "Discrete": (Discrete(5, start=1), {}),
    "MultiDiscrete": (MultiDiscrete([3, 5, 2]), {}),
    "MultiBinary": (MultiBinary(4), {}),
    "Box": (Box(-2, 3, (3,)), {}),
    "squashed Box": (Box(-2, 3, (3,)), {"squash": True}),
    "state-dependent Box": (Box(-2, 3, (3,)), {"state_dependent_std": True}),
}
PAIRS = [(case, "Discrete") for case in AGENTS] + [(AGENTS[0], space) for space in SPACES if space != "Discrete"]
"""Every agent, and every kind of action; test_heads.py has the heads alone."""
EVERY = pytest.mark.parametrize(("case", "space"), PAIRS, ids=str)
EVERY_AGENT = pytest.mark.parametrize("case", AGENTS, ids=str)
MASKED = pytest.mark.parametrize(
    ("case", "space"), [*((case, "Discrete") for case in AGENTS), (AGENTS[0], "MultiDiscrete")], ids=str
)
ENVS = 6


def build(case, space, seed=0, **more):
    action_space, settings = SPACES[space]
    return case.build(action_space, seed, **settings, **more)


def observations(agent, *lead, seed=1):
    generator, space = torch.Generator().manual_seed(seed), agent.observation_space
    if space.dtype == np.uint8:
        return torch.randint(256, (*lead, *space.shape), generator=generator, dtype=torch.uint8)
    return torch.randn(*lead, *space.shape, generator=generator)


def memory(agent, seed=7):
    if not agent.memory_size:
        return None
    return torch.randn(ENVS, agent.memory_size, generator=torch.Generator().manual_seed(seed)) / 2


def random_mask(agent, *lead, seed=5):
    """Allows about half of the actions, and of every action something."""
    space = agent.action_space
    sizes = [int(space.n)] if isinstance(space, Discrete) else space.nvec.tolist()
    generator = torch.Generator().manual_seed(seed)
    parts = [torch.rand(*lead, size, generator=generator) for size in sizes]
    return torch.cat([(part < 0.5) | (part == part.amin(-1, keepdim=True)) for part in parts], dim=-1)


def rollout(agent, masked=False, seed=3) -> Minibatch:
    """Acts as the trainer's `collect` does, and arranges the steps as the trainer does."""
    remembers, burn_in = agent.memory_size > 0, agent.burn_in
    steps = burn_in + agent.sequence_length if remembers else 4
    generator = torch.Generator().manual_seed(seed)
    obs = observations(agent, steps, ENVS)
    start = torch.rand(steps, ENVS, generator=generator) < 0.3
    mask = random_mask(agent, steps, ENVS) if masked else None
    first = state = memory(agent)
    acted = []
    torch.manual_seed(seed)
    with torch.no_grad():
        for t in range(steps):
            if remembers:
                state = state * ~start[t].unsqueeze(-1)
            acted.append(agent.act(obs[t], state, action_mask=None if mask is None else mask[t]))
            state = acted[-1].state
        if isinstance(agent, TeamAgent):  # teams of three, all present
            team = torch.arange(ENVS).view(-1, 3).repeat_interleave(3, 0)
            team = torch.stack([team[i].roll(-i % 3) for i in range(ENVS)])
            here = torch.ones(ENVS, 3, dtype=torch.bool)
            acted = [a._replace(value=agent.team_value(seen[team], here)) for a, seen in zip(acted, obs, strict=True)]
        if acted[0].value is None:
            acted = [a._replace(value=agent.value(seen)) for a, seen in zip(acted, obs, strict=True)]
    action, log_prob, value = (torch.stack(rows) for rows in list(zip(*acted, strict=True))[:3])
    batch = Minibatch(
        obs=obs,
        action=action,
        log_prob=log_prob,
        value=value,
        advantage=torch.randn(steps, ENVS, generator=generator),
        returns=torch.randn(value.shape, generator=generator),
        action_mask=mask,
    )
    if isinstance(agent, TeamAgent):
        present = here.expand(steps, *here.shape)
        batch = batch._replace(team_obs=obs[:, team], team_action=action[:, team], team_present=present)
    if not remembers:
        return Minibatch(*(None if x is None else x.flatten(0, 1) for x in batch))
    batch = Minibatch(*(None if x is None else x[burn_in:] for x in batch))
    batch = batch._replace(state=first, episode_start=start[burn_in:])
    return batch._replace(burn_in_obs=obs[:burn_in], burn_in_start=start[:burn_in]) if burn_in else batch


def outputs(agent, seed=0) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(seed)
    with torch.no_grad():
        acted = agent.act(observations(agent, ENVS), memory(agent))
    return tuple(x for x in acted if x is not None)


def same(first, second):
    return len(first) == len(second) and all(map(torch.equal, first, second))


@EVERY
@pytest.mark.parametrize(("value_heads", "deterministic"), [(1, False), (2, True)])
def test_act_and_value(case, space, value_heads, deterministic):
    agent = build(case, space, value_heads=value_heads)
    obs, state, actions = observations(agent, ENVS), memory(agent), agent.action_space
    acted = agent.act(obs, state, deterministic)
    assert isinstance(agent, ActorCritic) and isinstance(acted, ActOutput)
    assert agent.value_heads == value_heads
    assert acted.action.shape == (ENVS, *actions.shape)
    assert acted.action.dtype == (torch.float32 if isinstance(actions, Box) else torch.int64)
    assert acted.log_prob.shape == (ENVS,) and acted.log_prob.dtype == torch.float32
    value = agent.value(obs, state)
    assert value.shape == ((ENVS,) if value_heads == 1 else (ENVS, 2)) and value.dtype == torch.float32
    if agent.memory_size:
        assert acted.state.shape == (ENVS, agent.memory_size) and acted.state.dtype == torch.float32
        assert not torch.equal(acted.state, state)
    else:
        assert acted.state is None
    if acted.value is not None:  # else the trainer asks for the values of the whole rollout at once
        torch.testing.assert_close(acted.value, value)
    assert acted.value is not None or not agent.memory_size
    if space != "Box" and space != "state-dependent Box":  # those are clipped by the trainer
        assert all(actions.contains(row.astype(actions.dtype)) for row in acted.action.numpy())


@EVERY
@pytest.mark.parametrize("value_heads", [1, 2])
def test_the_first_ratios_are_one(case, space, value_heads):
    """Log-probabilities and values of `training_step` are those of `act`, also across memory and episode starts."""
    agent = build(case, space, value_heads=value_heads)
    batch = rollout(agent)
    loss, stats = agent.training_step(batch)
    assert loss.shape == () and loss.requires_grad and loss.dtype == torch.float32
    assert all(x.shape == () and not x.requires_grad for x in stats.values())
    assert stats["approx_kl"].abs() < 1e-6
    assert stats["clip_fraction"] == 0
    assert stats["policy_loss"].item() == pytest.approx(-batch.advantage.mean().item(), abs=1e-5)
    errors = (batch.value - batch.returns).square()
    assert stats["value_loss"].item() == pytest.approx(errors.mean().item() / 2, rel=1e-4)
    shifted = batch._replace(log_prob=batch.log_prob - 0.1)  # every ratio is exp(0.1)
    assert agent.training_step(shifted)[1]["approx_kl"].item() == pytest.approx(np.exp(0.1) - 1.1, abs=1e-5)


@EVERY
def test_gradients_reach_every_parameter_and_learning_lowers_the_loss(case, space):
    agent = build(case, space, value_heads=2, entropy_coef=0.01)
    batch = rollout(agent)
    optimizer = agent.configure_optimizers()
    optimized = [p for group in optimizer.param_groups for p in group["params"]]
    assert sorted(map(id, optimized)) == sorted(map(id, agent.parameters()))
    losses = []
    for step in range(10):
        loss, _ = agent.training_step(batch)
        optimizer.zero_grad()
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            silent = [name for name, p in agent.named_parameters() if p.grad is None or not p.grad.any()]
            assert silent == []
        assert all(p.grad.isfinite().all() for p in agent.parameters())
        optimizer.step()
    assert losses[-1] < losses[0]


@EVERY
def test_greedy_actions_need_no_randomness_and_sampling_follows_the_global_seed(case, space):
    agent = build(case, space)
    obs, state = observations(agent, ENVS), memory(agent)
    before = torch.get_rng_state()
    first = agent.act(obs, state, deterministic=True)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(99)
    assert torch.equal(agent.act(obs, state, deterministic=True).action, first.action)
    if isinstance(agent.action_space, Box):
        assert not torch.equal(agent.act(obs, state).action, first.action)
    assert same(outputs(agent, seed=4), outputs(agent, seed=4))
    draws = [outputs(agent, seed=seed)[0] for seed in range(20)]
    assert any(not torch.equal(draw, draws[0]) for draw in draws)


@EVERY
def test_copies_are_equal_and_independent_and_a_saved_agent_is_the_same(case, space):
    agent = build(case, space)
    copied = copy.deepcopy(agent)
    before = outputs(agent)
    assert same(outputs(copied), before)
    with torch.no_grad():
        for parameter in copied.parameters():
            parameter += 1
    copied.progress.fill_(0.5)
    assert same(outputs(agent), before)
    assert agent.progress == 0
    assert not same(outputs(copied), before)
    other = build(case, space, seed=1)
    assert not same(outputs(other), before)
    other.load_state_dict(agent.state_dict())
    assert same(outputs(other), before)


@MASKED
def test_masked_actions(case, space):
    agent = build(case, space)
    actions, obs, state = agent.action_space, observations(agent, ENVS), memory(agent)
    mask = random_mask(agent, ENVS)
    start = torch.as_tensor(actions.start)
    offset = torch.tensor(0) if space == "Discrete" else torch.tensor([0, *np.cumsum(actions.nvec)[:-1].tolist()])
    for deterministic in [True] + [False] * 50:
        acted = agent.act(obs, state, deterministic, mask)
        columns = (acted.action - start + offset).reshape(ENVS, -1)
        assert mask.gather(1, columns).all()
    batch = rollout(agent, masked=True)
    _, stats = agent.training_step(batch)
    assert stats["approx_kl"].abs() < 1e-6
    assert stats["policy_loss"].item() == pytest.approx(-batch.advantage.mean().item(), abs=1e-5)
    without = agent.training_step(batch._replace(action_mask=None))[1]
    assert without["approx_kl"] > 1e-3


@EVERY
@pytest.mark.filterwarnings("ignore:TF32 acceleration")
def test_float32_results_under_bf16_autocast(case, space):
    agent = build(case, space, value_heads=2)
    # Without oneDNN: it would use AMX, which some virtual machines announce and then forbid.
    with torch.backends.mkldnn.flags(enabled=False), torch.autocast("cpu", torch.bfloat16):
        acted = agent.act(observations(agent, ENVS), memory(agent))
        batch = rollout(agent)
        loss, stats = agent.training_step(batch)
    floats = [x for x in acted if x is not None and x.is_floating_point()]
    assert all(x.dtype == torch.float32 for x in [*floats, loss, *stats.values()])
    assert loss.isfinite()
    assert stats["approx_kl"].abs() < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("case", AGENTS, ids=str)
def test_training_step_compiles_once(case):
    agent = build(case, "Discrete", entropy_coef=0.01)
    batch = rollout(agent)
    loss, _ = agent.training_step(batch)
    expected = torch.autograd.grad(loss, list(agent.parameters()))
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    torch._dynamo.reset()
    compiled = torch.compile(agent.training_step, backend=counter)
    compiled_loss, _ = compiled(batch)
    torch.testing.assert_close(compiled_loss, loss)
    got = torch.autograd.grad(compiled_loss, list(agent.parameters()))
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
    frames = counter.frame_count
    agent.progress.fill_(0.5)
    compiled(batch)
    assert counter.frame_count == frames  # progress is a tensor: no recompilation
    torch._dynamo.reset()


@EVERY_AGENT
def test_observations_are_normalised_where_that_makes_sense(case):
    if "normalize_obs" not in inspect.signature(getattr(agents, case.agent)).parameters:
        pytest.skip("only of vector observations")
    agent = build(case, "Discrete", normalize_obs=True)
    (normalizer,) = [part for part in agent.modules() if isinstance(part, ObsNormalizer)]
    obs = 40 + 9 * observations(agent, 10, ENVS)
    before = agent.value(obs[0], memory(agent))
    normalizer.update(obs)
    assert not torch.equal(agent.value(obs[0], memory(agent)), before)
    assert agent.training_step(rollout(agent))[1]["approx_kl"].abs() < 1e-6
    other = build(case, "Discrete", seed=1, normalize_obs=True)
    other.load_state_dict(agent.state_dict())
    assert same(outputs(other), outputs(agent))
    bounded = build(case, "Discrete", normalize_obs=True, clip_obs=0.5)
    bounded.load_state_dict(agent.state_dict())
    far, edge = (normalizer.mean + sign * normalizer.variance.sqrt() for sign in (3, 0.5))
    one, same_one = (x.float().expand_as(obs[0]).contiguous() for x in (far, edge))
    torch.testing.assert_close(bounded.value(one, memory(agent)), agent.value(same_one, memory(agent)))
    with pytest.raises(ValueError, match="clip_obs must be a number above 0, got 0"):
        build(case, "Discrete", normalize_obs=True, clip_obs=0)


@EVERY_AGENT
def test_no_submodule_depends_on_the_training_mode(case):
    agent = build(case, "Discrete")
    assert same(outputs(agent.train()), outputs(agent.eval()))
    assert not any(isinstance(part, (nn.Dropout, nn.BatchNorm1d, nn.BatchNorm2d)) for part in agent.modules())


@EVERY_AGENT
@pytest.mark.parametrize("unfit", [Dict(a=Discrete(2)), Box(0, 9, (2,), np.int64)], ids=["Dict", "integer Box"])
def test_unfit_spaces_are_named(case, unfit):
    with pytest.raises(ValueError, match=f"{case.agent} .*but the environment has {type(unfit).__name__}") as caught:
        case.build(unfit)
    assert "\n" not in str(caught.value)
    elsewhere = Case(case.agent, Dict(a=VECTOR), case.settings)
    with pytest.raises(ValueError, match=f"{case.agent} .*but the environment has Dict"):
        elsewhere.build(Discrete(2))


@EVERY_AGENT
def test_settings_that_cannot_work_name_their_flag(case):
    settings = annotations_of(getattr(agents, case.agent))
    assert {"actor_lr", "critic_lr", "value_heads"} <= settings.keys()
    for name, annotation in settings.items():
        for value, error in wrong_values(annotation):
            with pytest.raises(error, match=rf"^{case.agent}: --agent.{name} must be (?!.*\n)"):
                getattr(agents, case.agent)(case.observation_space, Discrete(2), **case.settings | {name: value})
    with pytest.raises(ValueError, match=f"{case.agent}: --agent.clip_coef must be above 0"):
        case.build(Discrete(2), clip_coef=0)


@EVERY_AGENT
def test_coefficients_and_learning_rates_arrive(case):
    rates = {"actor_lr": 1e-4, "critic_lr": 2e-4}
    agent = case.build(
        Discrete(2), clip_coef=0.3, value_coef=0.4, entropy_coef=0.05, clip_value_loss=True, value_heads=2, **rates
    )
    actor, critic = agent.configure_optimizers().param_groups
    assert (actor["lr"], critic["lr"]) == (1e-4, 2e-4)
    names = ("critic", "attention", "embed_obs", "embed_obs_action")
    of_critic = [agent.value_head, *(part for name in names if (part := getattr(agent, name, None)) is not None)]
    assert set(critic["params"]) == {parameter for part in of_critic for parameter in part.parameters()}
    assert set(actor["params"]) == set(agent.parameters()) - set(critic["params"])
    assert actor["fused"] and critic["fused"] and actor["eps"] == critic["eps"] == 1e-5
    assert [agent.clip_coef(0.0), agent.value_coef, agent.entropy_coef(0.0)] == [0.3, 0.4, 0.05]
    assert agent.clip_value_loss is True and agent.value_heads == 2


@EVERY_AGENT
def test_help_explains_every_setting(case):
    set_parsing_settings(docstring_parse_attribute_docstrings=True)  # as the command line
    parser = ArgumentParser()
    names = parser.add_class_arguments(getattr(agents, case.agent), skip={"observation_space", "action_space"})
    words = " ".join(parser.format_help().split())
    assert names and all(f"--{name} " in words for name in names)
    assert re.findall(r"--(\w+) \S+ \(type:", words) == []  # no words between the flag and its type
