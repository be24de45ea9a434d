"""POCAAgent: its critic against plain loops, credit for agents that have left, and what a run of it needs of teams."""

import math
from functools import partial

import gymnasium
import numpy as np
import pytest
import torch
from lightning import Fabric

from agents import POCAAgent, PPOLightningAgent, RolesAgent
from envs import RandomState, RocketSimPool
from fabric_rl import CounterfactualAdvantage, Rollout, Run, Saving, TrainArgs, collect, load_checkpoint, train
from fabric_rl.base.symmetry import Symmetry
from fabric_rl.callbacks.symmetry import reflect
from fabric_rl.learning.update import index_batch
from fabric_rl.rollouts.collect import _fill_team_values
from fabric_rl.selfplay.opponent_pool import Oldest, OpponentPool, Uniform
from fabric_rl.selfplay.opponents import Opponents
from tests.fabric_rl.conftest import CounterEnv

NEVER = 10**9
SMALL = {"actor_hidden_sizes": (16,), "critic_hidden_sizes": (16,), "embed_size": 16, "num_heads": 2}


class Teams(CounterEnv):
    """Teams of 2, 1 and 3, in two arenas; row 3 leaves after two steps of an episode, row 5 after one."""

    sides = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 0, 0, 0])
    leaves_after = np.array([NEVER, NEVER, NEVER, 2, NEVER, 1])

    def __init__(self, terminate_after=(4, 4, NEVER, 5, 5, 5), truncate_after=(NEVER, NEVER, 3) + 3 * (NEVER,), seed=0):
        super().__init__(terminate_after, truncate_after, seed)

    def reset(self, *, seed=None, options=None):
        obs, infos = super().reset(seed=seed)
        return obs / 1000, infos | {"present": self.t < self.leaves_after}

    def step(self, actions):
        obs, reward, terminated, truncated, infos = super().step(actions)
        if "final_obs" in infos:
            infos["final_obs"] = infos["final_obs"] / 1000
        return obs / 1000, reward, terminated, truncated, infos | {"present": self.t < self.leaves_after}

    def state_dict(self):
        return {"t": self.t.copy(), "episode": self.episode.copy(), "steps": self.steps}

    def load_state_dict(self, state):
        self.t, self.episode, self.steps = state["t"].copy(), state["episode"].copy(), state["steps"]


MATES = [[0, 1], [1, 0], [2], [3, 4, 5], [4, 3, 5], [5, 3, 4]]


def build(seed=0, space=None, actions=None, **settings):
    torch.manual_seed(seed)
    space = space or gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    return POCAAgent(space, actions or gymnasium.spaces.Discrete(5), **(SMALL | settings))


@pytest.fixture
def collected():
    """A rollout of seven steps of `Teams`, and its agent."""
    agent, env = build(), Teams()
    with torch.no_grad():  # a policy with opinions, and biases that count
        agent.policy_head.layer.weight *= 100
        for name, parameter in agent.named_parameters():
            if name.endswith("bias"):
                parameter.uniform_(-0.3, 0.3)
    rollout = Rollout(7, env, agent=agent)
    rollout.begin(*env.reset(seed=0))
    with torch.no_grad():
        collect(env, agent, rollout)
    return agent, rollout


def attend(agent, embedded):
    """The critic after the encoders, for one team `[k, E]`, head by head and agent by agent."""
    rsa, size = agent.attention, agent.embed_size // agent.num_heads
    normed = torch.stack([rsa.norm_in(x) for x in embedded])
    query, key, value = rsa.query(normed), rsa.key(normed), rsa.value(normed)
    rows = []
    for i in range(len(embedded)):
        heads = []
        for h in range(agent.num_heads):
            part = slice(h * size, (h + 1) * size)
            scores = torch.stack([query[i, part] @ key[j, part] / math.sqrt(size) for j in range(len(embedded))])
            heads.append(sum(w * value[j, part] for j, w in enumerate(scores.softmax(0))))
        rows.append(rsa.norm_out(embedded[i] + rsa.out(torch.cat(heads))))
    features = torch.cat([sum(rows) / len(rows), torch.tensor([math.log(len(rows))])])
    return agent.value_head(agent.critic(features))


def team_value(agent, obs):
    return attend(agent, torch.stack([agent.embed_obs(x) for x in obs]))


def baseline(agent, obs, action):
    """Of the first agent of a team `obs [k, D]`, whose own action is not read."""
    pairs = [torch.cat([x, torch.eye(5)[a]]) for x, a in zip(obs[1:], action[1:], strict=True)]
    return attend(agent, torch.stack([agent.embed_obs(obs[0]), *map(agent.embed_obs_action, pairs)]))


# ---------------------------------------------------------------- the critic


def test_value_and_baseline_are_those_of_plain_loops_over_the_agents_that_are_present():
    agent, generator = build(activation=torch.nn.ReLU), torch.Generator().manual_seed(1)
    obs, action = torch.randn(5, 4, 2, generator=generator), torch.randint(5, (5, 4), generator=generator)
    present = torch.rand(5, 4, generator=generator) < 0.6
    present[0], present[1] = True, False
    values, baselines = agent.team_value(obs, present), agent.baseline(obs, action, present)
    for k in range(5):
        here = present[k] if present[k].any() else torch.ones(4, dtype=torch.bool)
        torch.testing.assert_close(values[k], team_value(agent, obs[k][here]), rtol=1e-5, atol=1e-5)
        counts = present[k].clone()
        counts[0] = True
        expected = baseline(agent, obs[k][counts], action[k][counts])
        torch.testing.assert_close(baselines[k], expected, rtol=1e-5, atol=1e-5)
    alone = agent.baseline(obs[:, :1], action[:, :1], present[:, :1])  # no weight of the other encoder matters
    torch.testing.assert_close(alone, agent.value(obs[:, 0]), rtol=1e-5, atol=1e-5)


def test_the_baseline_ignores_the_own_action_the_order_of_the_mates_and_those_that_have_left():
    actions = gymnasium.spaces.Box(-1, 1, (2,))
    agent, generator = build(actions=actions), torch.Generator().manual_seed(1)
    obs = torch.randn(6, 4, 2, generator=generator, requires_grad=True)
    action = torch.rand(6, 4, 2, generator=generator).requires_grad_()
    present = torch.tensor([True, True, True, False]).expand(6, 4)
    value = agent.baseline(obs, action, present)
    by_obs, by_action = torch.autograd.grad(value.sum(), (obs, action))
    assert by_obs[:, :3].abs().sum(-1).min() > 0 and not by_obs[:, 3].any()
    assert by_action[:, 1:3].abs().sum(-1).min() > 0 and not by_action[:, [0, 3]].any()
    order = [0, 2, 1, 3]
    torch.testing.assert_close(agent.baseline(obs[:, order], action[:, order], present), value)
    assert not torch.equal(agent.team_value(obs, present), value)


def test_the_loss_is_ppos_with_both_errors_of_the_critic(collected):
    agent, rollout = collected
    with torch.no_grad():
        advantage, returns = CounterfactualAdvantage()(rollout, agent, torch.tensor(0.9), 0.8)
    batch = index_batch(rollout.flat(advantage, returns), torch.arange(12))
    batch = batch._replace(log_prob=batch.log_prob - torch.linspace(-0.5, 0.5, 12))  # some ratios are clipped
    agent.entropy_coef = lambda progress: 0.03
    loss, stats = agent.training_step(batch)
    parts = []
    for k in range(12):
        here = batch.team_present[k]
        log_probs = torch.log_softmax(agent.policy_head.layer(agent.actor(batch.obs[k])), 0)
        ratio = (log_probs[batch.action[k]] - batch.log_prob[k]).exp()
        gain = torch.minimum(ratio * batch.advantage[k], ratio.clamp(0.8, 1.2) * batch.advantage[k])
        value = team_value(agent, batch.team_obs[k][here])
        own = baseline(agent, batch.team_obs[k][here], batch.team_action[k][here])
        errors = (value - batch.returns[k]) ** 2 + (own - batch.returns[k]) ** 2
        parts.append(-gain + 0.5 * 0.5 * errors + 0.03 * (log_probs.exp() * log_probs).sum())
    expected = sum(parts) / 12
    torch.testing.assert_close(loss, expected)
    assert stats["baseline_loss"] > 0
    got, wanted = (torch.autograd.grad(x, list(agent.parameters())) for x in (loss, expected))
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-5)


# ---------------------------------------------------------------- rollouts of teams


@torch.no_grad()
def test_the_advantage_is_the_lambda_return_of_the_team_minus_the_baseline(collected):
    """The lambda return from its definition, a sum of n-step returns; the team's reward counts after an agent left."""
    agent, rollout = collected
    gamma, lam = 0.9, 0.8
    advantage, returns = CounterfactualAdvantage()(rollout, agent, torch.tensor(gamma), lam)
    here = rollout.present
    assert here[:, 3].tolist() == [True, True, False, False, False, True, True, False]
    for row, mates in enumerate(MATES):

        def value(t, obs=rollout.obs, mates=mates, at=None):
            at = t if at is None else at
            return float(team_value(agent, torch.stack([obs[t, i] for i in mates if here[at, i]])))

        for t in range(7):
            sums, n_step = [], 0.0
            for step in range(t, 7):  # G^(n) for n = 1, 2, ... to the end of the episode or of the rollout
                n_step += gamma ** (step - t) * sum(float(rollout.reward[step, i]) for i in mates) / len(mates)
                if rollout.terminated[step, row]:
                    bootstrap = 0.0
                elif rollout.done[step, row]:
                    bootstrap = value(step, rollout.next_obs, at=step)
                else:
                    bootstrap = value(step + 1)
                sums.append(n_step + gamma ** (step - t + 1) * bootstrap)
                if rollout.done[step, row]:
                    break
            expected = sum((1 - lam) * lam**n * g for n, g in enumerate(sums[:-1])) + lam ** (len(sums) - 1) * sums[-1]
            assert float(returns[t, row]) == pytest.approx(expected, abs=1e-4)
            if here[t, row]:
                others = [i for i in mates if here[t, i]]
                own = baseline(agent, rollout.obs[t, others], rollout.action[t, others])
                assert float(advantage[t, row]) == pytest.approx(expected - float(own), abs=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("ends", [NEVER, 5])
def test_a_team_without_agents_has_no_value(ends):
    """Its rewards count as they are; if the rollout ends, the last value before stands for what is missing."""

    class Emptied(Teams):
        leaves_after = np.array([NEVER, NEVER, NEVER, 2, 3, 3])

    agent, env, gamma, lam = build(), Emptied((ends,) * 6, (NEVER,) * 6), 0.9, 0.8
    rollout = Rollout(7, env, agent=agent)
    rollout.begin(*env.reset(seed=0))
    collect(env, agent, rollout)
    _, returns = CounterfactualAdvantage()(rollout, agent, torch.tensor(gamma), lam)
    assert rollout.present[:3, 4].all() and not rollout.present[3:5, 3:].any()
    last = 5 if ends == 5 else 7
    reward, value = rollout.reward[:, 3:].mean(dim=1), rollout.value[2, 4]
    rest = sum(gamma**n * reward[2 + n] for n in range(last - 2)) + (0 if ends == 5 else gamma**5 * value)
    torch.testing.assert_close(returns[2, 3:], rest.expand(3))
    torch.testing.assert_close(returns[1, 3:], (reward[1] + gamma * ((1 - lam) * value + lam * rest)).expand(3))
    rollout.obs[3:5, 3:] = 7.0  # what agents that have left see does not matter
    _fill_team_values(agent, rollout)
    again = CounterfactualAdvantage()(rollout, agent, torch.tensor(gamma), lam)[1]
    torch.testing.assert_close(again[:3, 3:], returns[:3, 3:])


def test_a_minibatch_has_the_team_of_each_agent_and_only_steps_of_agents_that_are_present(collected):
    _, rollout = collected
    batch = rollout.flat(torch.zeros(7, 6), torch.zeros(7, 6))
    assert batch.team_obs.shape == (42, 3, 2) and batch.team_action.shape == batch.team_present.shape == (42, 3)
    assert batch.team_present[:, 0].all()
    assert torch.equal(batch.team_obs[:, 0], batch.obs) and torch.equal(batch.team_action[:, 0], batch.action)
    here = rollout.present[:-1].flatten()
    assert torch.equal(batch.obs[here], rollout.obs[:-1].flatten(0, 1)[here])
    step = 2 * 6 + 4  # the teammates 3 and 5 of row 4 have left before step 2
    assert batch.team_present[step].tolist() == [True, False, False]
    assert batch.team_present[2 * 6].tolist() == [True, True, False]  # a team of two
    assert torch.equal(batch.team_obs[4, 1:], rollout.obs[0, [3, 5]])


@torch.no_grad()
def test_agents_of_a_team_must_end_together_and_there_must_be_teams():
    agent, env = build(), Teams(terminate_after=(4, 3, NEVER, 5, 5, 5))
    rollout = Rollout(7, env, agent=agent)
    rollout.begin(*env.reset())
    collect(env, agent, rollout)
    with pytest.raises(ValueError, match=r"end their episodes together; report .* infos\['present'\]"):
        CounterfactualAdvantage()(rollout, agent, torch.tensor(0.9), 0.8)
    with pytest.raises(ValueError, match="POCAAgent learns as a team, but CounterEnv does not tell"):
        Rollout(7, CounterEnv(), agent=agent)
    other = PPOLightningAgent(agent.observation_space, agent.action_space)
    with pytest.raises(ValueError, match="PPOLightningAgent has no counterfactual baseline"):
        CounterfactualAdvantage()(rollout, other, torch.tensor(0.9), 0.8)
    roles = gymnasium.spaces.Box(np.float32([-1, 0]), np.float32([1, 0]))
    with pytest.raises(ValueError, match="a role cannot be an agent that learns as a team"):
        RolesAgent(roles, agent.action_space, {"blue": partial(POCAAgent, **SMALL)})


def pool(team_size=2, num_arenas=4, seed=0):
    return RocketSimPool(num_arenas, team_size, state_setter=RandomState(), num_threads=1, seed=seed)


def test_the_cars_of_a_team_are_team_mates_also_in_self_play():
    for sizes, expected in ((2, [[0, 1], [1, 0], [2, 3], [3, 2]]), ((1, 2), [[0], [1, 2], [2, 1]])):
        env = pool(sizes, 1)
        agent = build(space=env.single_observation_space, actions=env.single_action_space)
        rollout = Rollout(2, env, agent=agent)
        pairs = zip(rollout.team_rows.tolist(), rollout.in_team, strict=True)
        assert [np.array(rows)[there.numpy()].tolist() for rows, there in pairs] == expected
    factory = partial(POCAAgent, **SMALL)
    env = Opponents(pool, factory, OpponentPool(3, 1.0, Uniform(), Oldest(), 1200.0, 16.0), share=0.5)
    env.reset(seed=0)
    first = Rollout(2, env, agent=agent).team_rows
    for _ in range(2):  # the teams that learn change sides
        env._begin(np.arange(4))
        assert torch.equal(Rollout(2, env, agent=agent).team_rows, first)
    arena, team = env.sides
    assert all(arena[i] == arena[j] and team[i] == team[j] for i, row in enumerate(first) for j in row)


def test_reflecting_a_step_reflects_its_whole_team(collected):
    _, rollout = collected
    batch = rollout.flat(torch.zeros(7, 6), torch.zeros(7, 6))
    symmetry = Symmetry(np.array([1, 0]), np.float32([1, -1]), (np.array([1, 0, 2, 4, 3]),))
    changed = reflect(batch, symmetry, torch.tensor([0, 4]))
    assert torch.equal(changed.team_obs[4], torch.stack([batch.team_obs[4, :, 1], -batch.team_obs[4, :, 0]], dim=-1))
    assert torch.equal(changed.team_action[4], torch.tensor([1, 0, 2, 4, 3])[batch.team_action[4]])
    for name in ("team_obs", "team_action", "team_present"):
        new, old = getattr(changed, name), getattr(batch, name)
        assert torch.equal(new[1:4], old[1:4]) and torch.equal(new[5:], old[5:])


# ---------------------------------------------------------------- runs


def trained(folder, **more):
    train(
        Fabric(accelerator="cpu", devices=1, loggers=[]),
        Teams,
        partial(POCAAgent, normalize_obs=True, **SMALL),
        TrainArgs(total_timesteps=168, num_steps=7, minibatch_size=14, update_epochs=2, **more.pop("args")),
        run=Run(folder),
        plain=True,
        saving=Saving(checkpoint_every_timesteps=42, keep_checkpoints=9),
        **more,
    )
    return load_checkpoint(folder / "checkpoints")[1]


@pytest.mark.parametrize("overlap", [False, True])
def test_a_resumed_run_with_agents_that_have_left_is_bit_identical(tmp_path, overlap):
    args = {"overlap": overlap}
    whole = trained(tmp_path / "whole", args=args)
    _, half = load_checkpoint(tmp_path / "whole/checkpoints/step_000000000084.ckpt")
    resumed = trained(tmp_path / "rest", args=args, resume=half)
    assert whole["steps"] == resumed["steps"] == 168 and half["steps"] == 84
    for name, weight in whole["agent"].items():
        assert torch.equal(weight, resumed["agent"][name]), name
    assert {"ppo/baseline_loss", "ppo/explained_variance"} <= whole["metrics"].keys()
