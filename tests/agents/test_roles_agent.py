"""RolesAgent: every role plays and learns its own rows, as it would alone."""

from functools import partial

import gymnasium
import numpy as np
import pytest
import torch
from lightning import Fabric

import train_fabric
from agents import PPOLightningAgent, RecurrentPPOAgent, RolesAgent
from envs import DefaultObs, RocketSimPool, SlotRoleObs, TeamRoleObs
from fabric_rl import Minibatch, TrainArgs, load_trained, train
from fabric_rl.evaluation.players import load_player

D = 5
INNER = gymnasium.spaces.Box(-1, 1, (D,))
SPACE = gymnasium.spaces.Box(np.array([-1] * D + [0], np.float32), np.array([1] * D + [1], np.float32))
ACTIONS = gymnasium.spaces.Discrete(4)
SMALL = {"actor_hidden_sizes": (8,), "critic_hidden_sizes": (8,)}
BLUE = partial(PPOLightningAgent, **SMALL, actor_lr=1e-2, ortho_init=False)
ORANGE = partial(PPOLightningAgent, actor_hidden_sizes=(3,), critic_hidden_sizes=(8,), actor_lr=1e-4, entropy_coef=0.1)


def roles_agent(**settings):
    torch.manual_seed(0)
    return RolesAgent(SPACE, ACTIONS, {"blue": BLUE, "orange": ORANGE}, **settings)


def seen(rows=12, seed=0):
    generator = torch.Generator().manual_seed(seed)
    role = torch.randint(2, (rows, 1), generator=generator).float()
    return torch.cat((torch.rand(rows, D, generator=generator), role), dim=1)


def batch_of(obs, seed=1):
    generator = torch.Generator().manual_seed(seed)
    numbers = [torch.randn(obs.shape[:-1], generator=generator) for _ in range(4)]
    action = torch.randint(4, obs.shape[:-1], generator=generator)
    return Minibatch(obs, action, -numbers[0].abs() - 1, *numbers[1:])


def test_each_role_acts_and_values_as_its_agent_alone():
    agent, obs = roles_agent(), seen()
    mask = torch.rand(12, 4, generator=torch.Generator().manual_seed(3)) > 0.3
    mask[:, 0] = True
    out = agent.act(obs, deterministic=True, action_mask=mask)
    for number, alone in enumerate(agent.agents):
        rows = obs[:, -1] == number
        expected = alone.act(obs[rows, :-1], deterministic=True, action_mask=mask[rows])
        assert torch.equal(out.action[rows], expected.action) and torch.equal(out.log_prob[rows], expected.log_prob)
        assert torch.equal(agent.value(obs)[rows], alone.value(obs[rows, :-1]))
        found = agent.probabilities(obs, action_mask=mask)[rows]
        assert torch.equal(found, alone.probabilities(obs[rows, :-1], action_mask=mask[rows]))
        (alone,) = alone.distributions(obs[rows, :-1], None, mask[rows])
        torch.testing.assert_close(agent.distributions(obs, None, mask)[number].base_dist.probs, alone.base_dist.probs)
    assert out.value is None and out.action.dtype == torch.int64
    one = obs[obs[:, -1] == 1]
    assert torch.equal(agent.act(one, deterministic=True).action, agent.agents[1].act(one[:, :-1], None, True).action)


def test_values_come_along_where_one_role_gives_them():
    torch.manual_seed(0)
    shared = partial(PPOLightningAgent, actor_hidden_sizes=(8,), shared_trunk=True)
    agent, obs = RolesAgent(SPACE, ACTIONS, {"blue": shared, "orange": ORANGE}), seen()
    torch.testing.assert_close(agent.act(obs).value, agent.value(obs))


@pytest.mark.parametrize("normalized", [False, True])
def test_gradients_are_those_of_each_role_alone(normalized):
    agent, batch = roles_agent(normalize_advantages=normalized), batch_of(seen(40))
    agent.progress.fill_(0.5)
    loss, stats = agent.training_step(batch)
    loss.backward()
    entropy = torch.zeros(())
    for number, (name, alone) in enumerate(agent.roles.items()):
        rows = batch.obs[:, -1] == number
        share = rows.float().mean()
        found = [p.grad.clone() for p in alone.parameters()]
        alone.zero_grad()
        part = batch.map(lambda x, rows=rows: x[rows])
        advantage = part.advantage
        if normalized:
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        own, own_stats = alone.training_step(part._replace(obs=part.obs[:, :-1], advantage=advantage))
        own.backward()
        for gradient, p in zip(found, alone.parameters(), strict=True):
            torch.testing.assert_close(gradient, 2 * share * p.grad)
        assert stats[f"{name}/entropy"] == own_stats["entropy"]
        entropy += share * own_stats["entropy"]
    assert stats["entropy"] == pytest.approx(float(entropy))


def test_a_minibatch_without_a_role_gives_it_gradients_of_zero():
    agent, obs = roles_agent(), seen(6)
    obs[:, -1] = 1
    loss, stats = agent.training_step(batch_of(obs))
    loss.backward()
    assert list(stats) == list(agent.training_step(batch_of(seen(40)))[1]) and not stats["blue/entropy"]
    assert all(not p.grad.any() for p in agent.agents[0].parameters())
    assert any(p.grad.any() for p in agent.agents[1].parameters())


def test_parts_of_a_batch_add_up_to_it():
    """Whatever the roles' shares of the parts: minibatches that are added up, and ranks."""
    agent, batch = roles_agent(), batch_of(seen(48))
    order = batch.obs[:, -1].argsort()
    agent.training_step(batch)[0].backward()
    whole = [p.grad.clone() for p in agent.parameters()]
    agent.zero_grad()
    for rows in order.view(4, 12):
        (agent.training_step(batch.map(lambda x, rows=rows: x[rows]))[0] / 4).backward()
    for p, gradient in zip(agent.parameters(), whole, strict=True):
        torch.testing.assert_close(p.grad, gradient, rtol=1e-4, atol=1e-6)


def test_settings_of_the_optimizer_are_each_roles_own():
    groups = roles_agent().configure_optimizers().param_groups
    assert [group["lr"] for group in groups] == [1e-2, 1e-3, 1e-4, 1e-3]
    sizes = [sum(p.numel() for p in agent.parameters()) for agent in roles_agent().agents]
    assert sum(p.numel() for group in groups for p in group["params"]) == sum(sizes)


def test_agents_with_memory_of_different_sizes_remember_their_own():
    torch.manual_seed(0)
    build = partial(RecurrentPPOAgent, hidden_sizes=(8,), sequence_length=4)
    roles = {"blue": partial(build, memory_size=6), "orange": partial(build, memory_size=4)}
    agent, obs = RolesAgent(SPACE, ACTIONS, roles), seen()
    state = torch.randn(12, agent.memory_size)
    out = agent.act(obs, state=state, deterministic=True)
    for number, alone in enumerate(agent.agents):
        rows, size = obs[:, -1] == number, alone.memory_size
        expected = alone.act(obs[rows, :-1], state=state[rows, :size], deterministic=True)
        assert torch.equal(out.state[rows, :size], expected.state) and not out.state[rows, size:].any()
    sequences = obs.expand(4, 12, D + 1).contiguous()
    batch = batch_of(sequences)._replace(state=state, episode_start=torch.zeros(4, 12, dtype=torch.bool))
    agent.training_step(batch)[0].backward()
    assert all(p.grad is not None for p in agent.parameters())
    batch.obs[2, 3, -1] = 1 - batch.obs[2, 3, -1]
    with pytest.raises(ValueError, match="a car changed its role within a training sequence"):
        agent.training_step(batch)


@pytest.mark.parametrize(
    ("space", "roles", "message"),
    [
        (SPACE, {"blue": BLUE}, "--agent.roles has 1 roles .blue., but the observations have 2"),
        (INNER, {"blue": BLUE, "orange": ORANGE}, "must be vectors that end with the role's number"),
        (SPACE, {"a": BLUE, "b": partial(RecurrentPPOAgent, sequence_length=8)}, "all roles must have the same"),
    ],
)
def test_what_does_not_go_together_is_one_line(space, roles, message):
    with pytest.raises(ValueError, match=message):
        RolesAgent(space, ACTIONS, roles)


@pytest.mark.parametrize(("obs", "teams"), [(TeamRoleObs(DefaultObs()), 1), (SlotRoleObs(DefaultObs()), 2)])
def test_roles_learn_in_one_run_from_the_same_games(obs, teams):
    pool = partial(RocketSimPool, num_arenas=4, team_size=teams, obs=obs)
    args = TrainArgs(total_timesteps=8 * teams * 64, num_steps=32, update_epochs=1, clip_groups=True)
    kept = {}
    agent = partial(RolesAgent, roles={"first": BLUE, "second": ORANGE})

    def build(*spaces):
        kept["agent"] = agent(*spaces)
        kept["before"] = {name: p.clone() for name, p in kept["agent"].named_parameters()}
        return kept["agent"]

    train(Fabric(accelerator="cpu", devices=1), pool, build, args, plain=True)
    changed = {name for name, p in kept["agent"].named_parameters() if not torch.equal(p, kept["before"][name])}
    for role in ("first", "second"):
        assert any(name.startswith(f"roles.{role}.actor") for name in changed)
        assert any(name.startswith(f"roles.{role}.critic") for name in changed)


def test_the_column_is_the_cars_role():
    def last_column(obs, team_size):
        pool = RocketSimPool(num_arenas=2, team_size=team_size, obs=obs)
        seen, plain = pool.reset(seed=3)[0], RocketSimPool(num_arenas=2, team_size=team_size, obs=DefaultObs())
        assert np.array_equal(seen[:, :-1], plain.reset(seed=3)[0])
        return seen[:, -1].tolist()

    assert last_column(TeamRoleObs(DefaultObs()), 1) == [0, 1, 0, 1]
    assert last_column(SlotRoleObs(DefaultObs(), roles=2), 2) == [0, 1] * 4
    assert last_column(SlotRoleObs(DefaultObs(), roles=2), 3) == [0, 1, 1] * 4
    one = TeamRoleObs(DefaultObs())
    one.only = 1
    assert last_column(one, 1) == [1, 1, 1, 1]


@pytest.mark.slow
def test_roles_are_players_of_their_own(tmp_path):
    settings = """
total_timesteps: 128
num_steps: 16
env:
  class_path: envs.RocketSimPool
  init_args: {num_arenas: 4, obs: {class_path: envs.TeamRoleObs, init_args: {inner: envs.DefaultObs}}}
agent:
  class_path: agents.RolesAgent
  init_args:
    roles:
      idle: agents.PPOLightningAgent
      other: {class_path: agents.PPOLightningAgent, init_args: {actor_hidden_sizes: [8]}}
"""
    (tmp_path / "roles.yaml").write_text(settings)
    flags = ["--config", str(tmp_path / "roles.yaml"), "--runs_dir", str(tmp_path), "--run_id", "r", "--plain", "true"]
    train_fabric.cli(flags)
    alone = load_trained("r", tmp_path)
    pool = alone.env(seed=0)
    agent = alone.agent(pool.single_observation_space, pool.single_action_space)
    obs = torch.from_numpy(pool.reset(seed=0)[0])
    for number, role in enumerate(("idle", "other")):
        player = load_player(f"r#{role}", sample=False, runs_dir=str(tmp_path)).build(1, 8)(0)
        player.reset(np.ones(4, np.bool_), pool.state)
        chosen = player.actions(pool.state, pool.action_parser)
        expected = agent.agents[number].act(obs[:, :-1], deterministic=True).action
        assert chosen.tolist() == expected.tolist()
    with pytest.raises(ValueError, match="r#third: the agent's roles are idle, other"):
        load_player("r#third", sample=False, runs_dir=str(tmp_path)).build(1, 8)
    with pytest.raises(ValueError, match="school_1v1#blue: the agent has no roles"):
        load_player("school_1v1#blue", sample=False, runs_dir=str(tmp_path)).build(1, 8)
