"""RolesAgent: every role plays its own rows, as it would alone."""

from functools import partial

import gymnasium
import numpy as np
import pytest
import torch

import train_fabric
from agents import PPOLightningAgent, RecurrentPPOAgent, RolesAgent
from envs import DefaultObs, RocketSimPool, SlotRoleObs, TeamRoleObs
from fabric_rl import load_trained
from fabric_rl.evaluation.players import load_player

D = 5
INNER = gymnasium.spaces.Box(-1, 1, (D,))
SPACE = gymnasium.spaces.Box(np.array([-1] * D + [0], np.float32), np.array([1] * D + [1], np.float32))
ACTIONS = gymnasium.spaces.Discrete(4)
SMALL = {"actor_hidden_sizes": (8,), "critic_hidden_sizes": (8,)}
BLUE = partial(PPOLightningAgent, **SMALL, actor_lr=1e-2, ortho_init=False)
ORANGE = partial(PPOLightningAgent, actor_hidden_sizes=(3,), critic_hidden_sizes=(8,), actor_lr=1e-4, entropy_coef=0.1)


def roles_agent():
    torch.manual_seed(0)
    return RolesAgent(SPACE, ACTIONS, {"blue": BLUE, "orange": ORANGE})


def seen(rows=12, seed=0):
    generator = torch.Generator().manual_seed(seed)
    role = torch.randint(2, (rows, 1), generator=generator).float()
    return torch.cat((torch.rand(rows, D, generator=generator), role), dim=1)


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


def test_values_are_sums_over_the_heads_of_each_agent():
    torch.manual_seed(0)
    two = partial(PPOLightningAgent, **SMALL, value_heads=2)
    agent, obs = RolesAgent(SPACE, ACTIONS, {"blue": two, "orange": ORANGE}), seen()
    rows = obs[:, -1] == 0
    torch.testing.assert_close(agent.value(obs)[rows], agent.agents[0].value(obs[rows, :-1]).sum(dim=1))


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


@pytest.mark.parametrize(
    ("space", "roles", "message"),
    [
        (SPACE, {"blue": BLUE}, "--agent.roles has 1 roles .blue., but the observations have 2"),
        (INNER, {"blue": BLUE, "orange": ORANGE}, "must be vectors that end with the role's number"),
    ],
)
def test_what_does_not_go_together_is_one_line(space, roles, message):
    with pytest.raises(ValueError, match=message):
        RolesAgent(space, ACTIONS, roles)


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
