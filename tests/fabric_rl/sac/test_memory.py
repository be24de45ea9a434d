"""SAC with memory: what sequences hold, what an update is by a plain computation, and whole runs."""

import copy
from functools import partial

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

from agents import SACLightningAgent
from envs import ContinuousAction, GymnasiumEnvs, KeepColumns, NoTouchCondition, RocketSimPool, StateAwareTable
from envs.demonstrations import Trajectory
from fabric_rl import Callback, Run, SACArgs, Saving, TrainArgs, load_checkpoint, train_off_policy
from fabric_rl.rollouts.collect import collect
from fabric_rl.rollouts.rollout import Rollout
from fabric_rl.sac.replay import ReplayBuffer
from fabric_rl.signals import RND
from fabric_rl.types import Minibatch

GAMMA = torch.tensor(0.5)
SMALL = {"actor_hidden_sizes": (8,), "critic_hidden_sizes": (8,), "memory_size": 4, "sequence_length": 4, "burn_in": 2}


def played(num_envs, length, seed=0, first=1):
    """Random episodes `[T, N]`: every observation is new; the memory is the sum of what was seen of the episode.

    Returns the flat rollout, and by observation `[N]` lists of episodes: (obs, action, reward, next_obs, terminated).
    """
    rng = np.random.default_rng(seed)
    fresh = iter(range(first, 10**6))
    now, memory = [float(next(fresh)) for _ in range(num_envs)], [0.0] * num_envs
    rows, episodes = [], [[[]] for _ in range(num_envs)]
    for _ in range(length):
        for env in range(num_envs):
            end = rng.choice(["", "", "", "", "terminated", "truncated"])
            after, action, reward = float(next(fresh)), int(rng.integers(3)), rng.random()
            rows.append((now[env], action, reward, after, end == "terminated", end != "", memory[env]))
            episodes[env][-1].append(rows[-1][:5])
            memory[env] = 0.0 if end else memory[env] + now[env]
            now[env] = float(next(fresh)) if end else after
            if end:
                episodes[env].append([])
    obs, action, reward, after, terminated, done, memory = (torch.tensor(x) for x in zip(*rows, strict=True))
    zeros, reward = torch.zeros_like(obs), reward.float()
    batch = Minibatch(
        obs[:, None], action, zeros, zeros, zeros, zeros, reward=reward, next_obs=after[:, None],
        terminated=terminated, done=done, state=memory[:, None].expand(-1, 4),
    )  # fmt: skip
    return batch, [episode for each in episodes for episode in each if episode]


def buffer_of(batch, num_envs, rows, added):
    """A ring of so many rows, filled `added` rows at a time."""
    replay = ReplayBuffer(rows * num_envs, batch, num_envs, torch.Generator().manual_seed(0))
    for first in range(0, len(batch.obs), added * num_envs):
        replay.add(batch.map(lambda x, first=first: x[first : first + added * num_envs]))
    return replay


@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("burn_in", [0, 5])
@pytest.mark.parametrize("rows", [12, 47, 500])
def test_what_is_unrolled_is_what_was_seen_of_the_episode(n_step, burn_in, rows):
    """Ends of both kinds within burn-in and sequence, a ring that has turned over, and the newest steps."""
    batch, episodes = played(3, 120)
    replay = buffer_of(batch, 3, rows, added=4)
    found = check_unrolled(replay, episodes, burn_in, n_step)
    newest = {episode[-1][3] for episode in episodes}
    assert set(found.next_obs[found.discount > 0][:, 0].tolist()) & newest and not found.discount.all()
    assert len(found.obs.unique()) == 3 * (min(rows, 120) - burn_in)  # every step that has its burn-in before it


def test_episodes_that_were_left_when_others_began_end_there():
    """As after a resume of an environment that cannot be saved."""
    one, old = played(2, 9)
    other, new = played(2, 9, seed=1, first=1000)
    replay = buffer_of(one, 2, 40, added=3)
    replay.add(other)
    check_unrolled(replay, old + new, 2, 2)


def check_unrolled(replay, episodes, burn_in, n_step):
    """Unrolls drawn sequences: at each step and after it stands the sum of what was seen of its episode."""
    known, last = {}, {}
    for episode in episodes:
        sums = np.cumsum([step[0] for step in episode])
        for number, step in enumerate(episode):
            known[step[0]] = sums[number]
            last[step[3]] = sums[number] + step[3]
    found = replay.sample_sequences(2000, 7, burn_in, n_step, GAMMA)
    kept = found.sequences
    memory, seen = kept.state[:, :1], []
    for obs, start in zip(kept.burn_in_obs, kept.burn_in_start, strict=True) if burn_in else ():
        memory = memory * ~start[:, None] + obs
    for obs, start in zip(kept.obs, kept.episode_start, strict=True):
        memory = memory * ~start[:, None] + obs
        seen.append(memory)
    seen = torch.cat(seen)[:, 0]
    flat = kept.obs.flatten(0, 1)
    assert torch.equal(flat[kept.now], found.obs)
    alive = found.discount > 0
    assert torch.equal(flat[kept.after][alive], found.next_obs[alive])
    assert seen[kept.now].tolist() == [known[obs] for obs in found.obs[:, 0].tolist()]
    assert seen[kept.after][alive].tolist() == [last[obs] for obs in found.next_obs[alive][:, 0].tolist()]
    return found


def by_hand(agent, critics, seen, detach_before):
    """What the networks see after the observations of an episode, step by step from its start; an LSTM of torch's."""
    cell = torch.nn.LSTMCell(*critics.memory.cell.weight_ih.shape[1::-1][:1], agent.memory_size // 2)
    hidden = kept = torch.zeros(1, agent.memory_size // 2)
    for number, obs in enumerate(seen):
        if number == detach_before:
            hidden, kept = hidden.detach(), kept.detach()
        hidden, kept = torch.func.functional_call(
            cell, dict(critics.memory.cell.named_parameters()), (obs[None], (hidden, kept))
        )
    return torch.cat((hidden, seen[-1][None]), dim=-1)


@pytest.mark.parametrize("n_step", [1, 2])
@pytest.mark.parametrize("burn_in", [0, 30])
def test_an_update_of_q_is_that_of_a_plain_computation(n_step, burn_in):
    """Episode by episode from their starts; the memory that is stored is nonsense where the burn-in covers them all."""
    batch, episodes = played(2, 160, seed=3)
    assert max(map(len, episodes)) < 30
    torch.manual_seed(1)
    agent = SACLightningAgent(Box(0, 1, (1,)), Discrete(3), **(SMALL | {"burn_in": burn_in}))
    agent.update_targets(0.5)
    with torch.no_grad():
        for p in agent.target_critics.parameters():
            p.add_(0.1 * torch.randn_like(p))
    scale = 0.003  # observations are large numbers
    batch = batch._replace(obs=batch.obs * scale, next_obs=batch.next_obs * scale)
    where = {step[0]: (episode, t) for episode in episodes for t, step in enumerate(episode)}
    if burn_in == 0:  # what acting left
        state = []
        for obs in batch.obs[:, 0].tolist():
            episode, t = where[round(obs / scale)]
            memory = torch.zeros(1, 4)
            for step in episode[:t]:
                with torch.no_grad():
                    memory = agent.act(torch.tensor([[scale * step[0]]]), memory).state
            state.append(memory)
        batch = batch._replace(state=torch.cat(state))
    else:
        batch = batch._replace(state=torch.full_like(batch.state, 9.0))
    replay = buffer_of(batch, 2, 140, added=5)
    found = replay.sample_sequences(20, 6, burn_in, n_step, GAMMA)
    loss, stats = agent.training_step(found)
    loss.backward()

    plain = copy.deepcopy(agent)
    plain.zero_grad()
    temperature, squares = plain.log_temperature.exp().detach(), 0
    for number, (obs, action) in enumerate(zip(found.obs[:, 0].tolist(), found.action.tolist(), strict=True)):
        episode, t = where[round(obs / scale)]
        line = torch.tensor([[scale * step[0]] for step in episode])
        steps = episode[t : t + n_step]
        until = t + len(steps)
        target = sum(0.5**i * step[2] for i, step in enumerate(steps))
        if not steps[-1][4]:
            rest = torch.cat((line[:until], torch.tensor([[scale * steps[-1][3]]])))
            with torch.no_grad():
                log_pi = plain.policy_head(plain.actor(by_hand(plain, plain.critics, rest, -1))).log_softmax(-1)
                q = plain.target_critics(by_hand(plain, plain.target_critics, rest, -1)).amin(0)
                target = target + 0.5 ** len(steps) * (log_pi.exp() * (q - temperature * log_pi)).sum()
        row = by_hand(plain, plain.critics, line[: t + 1], t - number // 20)  # gradients begin where the sequence does
        squares = squares + (plain.critics(row)[:, 0, action] - target).square().sum() / 2
    critic_loss = squares / len(found.obs)
    torch.testing.assert_close(stats["critic_loss"], critic_loss.detach(), rtol=1e-4, atol=1e-5)
    critic_loss.backward()
    for name, p in plain.critics.named_parameters():
        torch.testing.assert_close(agent.critics.get_parameter(name).grad, p.grad, rtol=1e-3, atol=1e-5)
    assert plain.critics.memory.cell.weight_hh.grad.abs().max() > 1e-4


# ---------------------------------------------------------------------- acting


def test_the_buffer_gets_the_memory_before_each_step(fabric):
    """Episodes of 5 steps, so that it is zero where they begin; random actions remember, too."""
    env = GymnasiumEnvs("CartPole-v1", 2, seed=0, settings={"max_episode_steps": 5})
    agent = SACLightningAgent(env.single_observation_space, env.single_action_space, **SMALL)
    rollout = Rollout(4, env, agent=agent)
    rollout.begin(*env.reset(seed=0))
    memory, ended = torch.zeros(2, 4), torch.zeros(2, dtype=torch.bool)
    agent.acts_at_random = True
    for held in (False, True, False):
        agent.holds_actions = held
        with torch.no_grad():
            collect(env, agent, rollout)
            batch = rollout.flat(rollout.reward)
            for t in range(4):
                memory = memory.masked_fill(ended[:, None], 0)
                assert torch.equal(batch.state.view(4, 2, 4)[t], memory)
                memory, ended = agent.act(rollout.obs[t], memory, deterministic=True).state, rollout.done[t]
    assert rollout.done.any() and batch.obs.shape == (8, 4)
    env.close()


def test_what_only_the_critics_see_is_not_remembered():
    space = Box(-np.inf, np.inf, (6,), np.float32)
    space.actor_features = 4
    agent = SACLightningAgent(space, Box(-1, 1, (2,)), **SMALL)
    obs, other = torch.randn(2, 5, 6)
    other[:, :4] = obs[:, :4]
    one, two = (agent.act(x, torch.ones(5, 4), deterministic=True) for x in (obs, other))
    torch.testing.assert_close((one.action, one.state), (two.action, two.state))
    assert not torch.allclose(agent.value(obs), agent.value(other))
    assert not torch.allclose(agent.act(obs, torch.zeros(5, 4), deterministic=True).action, one.action)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_the_critics_alone_teach_the_memory(cell):
    batch, _ = played(2, 60)
    batch = batch._replace(obs=batch.obs / 99, next_obs=batch.next_obs / 99)
    agent = SACLightningAgent(Box(0, 1, (1,)), Discrete(3), **SMALL, cell=cell)
    found = buffer_of(batch, 2, 60, 5).sample_sequences(8, 4, 2, 1, GAMMA)
    agent.training_step(found)[0].backward()
    whole = [p.grad.clone() for p in agent.critics.memory.parameters()]
    agent.zero_grad()
    for part in (agent.actor, agent.policy_head):
        part.requires_grad_(False)
    agent.log_temperature.requires_grad_(False)
    agent.training_step(found)[0].backward()
    alone = [p.grad for p in agent.critics.memory.parameters()]
    torch.testing.assert_close(whole, alone)
    assert all(grad.abs().max() > 0 for grad in alone)
    groups = [{id(p) for p in group["params"]} for group in agent.configure_optimizers().param_groups]
    assert groups[1] == {id(p) for p in agent.critics.parameters()} > {id(p) for p in agent.critics.memory.parameters()}


# ---------------------------------------------------------------------- whole runs


def run_of(fabric, folder, name, action, stop_after=None, resume=None):
    class Stops(Callback):
        def on_iteration_end(self, state):
            state.stop = state.iteration == stop_after

    env = partial(RocketSimPool, 2, (1, 2), action=action(), done=[NoTouchCondition(0.6)], num_threads=1)
    sac = SACArgs(
        buffer_size=120, buffer_init_steps=60, train_interval=4, num_update=2, n_step=2, save_replay_buffer=True
    )
    run = Run(folder / name) if resume else Run.create(folder, name)
    agent = partial(SACLightningAgent, **SMALL, normalize_obs=True)
    args = TrainArgs(total_timesteps=384, batch_size=32)
    train_off_policy(fabric, env, agent, args, run, [Stops()], True, Saving(168), resume, sac=sac)
    return load_checkpoint(run.dir)[1]


@pytest.mark.parametrize("action", [ContinuousAction, StateAwareTable])
def test_a_run_that_is_resumed_ends_to_the_bit_as_one_that_never_stopped(fabric, tmp_path, action):
    """The ring full and turned over, episodes of 9 steps; the memory of the next step and those in the buffer."""
    whole = run_of(fabric, tmp_path, "whole", action)
    stopped = run_of(fabric, tmp_path, "broken", action, stop_after=7)
    assert stopped["exact"] and stopped["ranks"][0]["replay"]["state"].any()
    resumed = run_of(fabric, tmp_path, "broken", action, resume=stopped)
    assert all(torch.equal(x, resumed["agent"][name]) for name, x in whole["agent"].items())
    for name, tensor in whole["ranks"][0]["replay"].items():
        assert torch.equal(tensor, resumed["ranks"][0]["replay"][name]), name


def test_learning_waits_for_a_sequence(fabric):
    learned = []

    class Sees(Callback):
        def on_iteration_end(self, state):
            learned.append("sac/loss" in state.metrics)

    env, agent = partial(GymnasiumEnvs, "CartPole-v1", 2), partial(SACLightningAgent, **SMALL)
    args, sac = TrainArgs(total_timesteps=16, batch_size=4, summary_freq=1), SACArgs(buffer_init_steps=0)
    train_off_policy(fabric, env, agent, args, callbacks=[Sees()], plain=True, sac=sac)
    assert learned == [False] * 5 + [True] * 3


@pytest.mark.slow
@pytest.mark.parametrize("env_id", ["CartPole-v1", "Pendulum-v1"])
def test_signals_pay_for_sequences(fabric, env_id):
    """RND's returns do not end with an episode: those that go on are asked for in the next one."""
    agent = partial(SACLightningAgent, **SMALL, value_heads=2)
    args, sac = TrainArgs(total_timesteps=160, batch_size=16), SACArgs(buffer_init_steps=60, n_step=2)
    env = partial(GymnasiumEnvs, env_id, 2, wrappers=[partial(KeepColumns, columns=[0, 1])])
    summary = train_off_policy(fabric, env, agent, args, plain=True, sac=sac, signals=[RND])
    assert summary["total_steps"] == 160


class Keeps(SACLightningAgent):
    """Remembers what it is given."""

    def training_step(self, minibatch):
        self.seen = [*getattr(self, "seen", []), minibatch]
        return super().training_step(minibatch)


def test_demonstrated_sequences_lie_beside_the_runs_own(fabric):
    """Every step finds its observation and the next one among the sequences; weights are those of the steps."""
    made, rng = [], np.random.default_rng(0)

    def shown(steps, first, terminated):
        obs = (first + np.arange(4 * steps + 4).reshape(-1, 4)).astype(np.float32)
        weight = np.where(np.arange(steps) % 3, 1.0, 0.25).astype(np.float32)
        action, reward = rng.integers(2, size=steps), np.ones(steps, np.float32)
        return Trajectory(obs, action, weight, terminated, reward=reward)

    def build(*spaces):
        made.append(Keeps(*spaces, **SMALL | {"sequence_length": 4, "burn_in": 2}))
        return made[0]

    episodes = [shown(5, 1000, True), shown(3, 2000, False), shown(9, 3000, False)]
    env, args = partial(GymnasiumEnvs, "CartPole-v1", 2), TrainArgs(total_timesteps=80, batch_size=32)
    sac = SACArgs(buffer_init_steps=40, demonstrations=("x",), demonstration_share=0.25, n_step=2)
    train_off_policy(fabric, env, build, args, plain=True, sac=sac, demonstrations=episodes)
    weights = {row[0]: w for each in episodes for row, w in zip(each.obs.tolist(), each.weight.tolist(), strict=False)}
    truncated = 0
    for batch in made[0].seen:
        replayed = batch.sequences
        assert replayed.obs.shape[1] == 8 and replayed.state.shape[0] == 8 and replayed.burn_in_obs.shape[:2] == (2, 8)
        flat = replayed.obs.flatten(0, 1)
        assert torch.equal(flat[replayed.now], batch.obs)
        alive = batch.discount > 0
        assert torch.equal(flat[replayed.after][alive], batch.next_obs[alive])
        theirs = (batch.obs[:, 0] >= 1000).view(4, 8)
        assert torch.equal(theirs, torch.tensor([False] * 6 + [True] * 2).expand(4, 8))
        expected = [weights.get(row[0], 1.0) for row in batch.obs.tolist()]
        assert batch.weight.tolist() == pytest.approx(expected)
        assert not replayed.state[6:].any()
        ends = (replayed.obs[..., 0] == 2012).any()  # the last observation of a truncated episode
        truncated += bool(ends)
    assert truncated and len(made[0].seen) > 15


@pytest.mark.parametrize(
    ("sac", "agent", "message"),
    [
        (
            {"per_alpha": 0.5},
            {},
            r"^--per_alpha does not work with an agent that has --agent.memory_size; leave one of them out$",
        ),
        ({}, {"sequence_length": 5}, "^--batch_size 32 must be a multiple of --agent.sequence_length 5, because"),
        (
            {"buffer_size": 11, "buffer_init_steps": 0},
            {},
            "^--agent.burn_in 2 plus sequence_length 4 does not fit .* 5 steps of each sub-env.*; raise --buffer_size$",
        ),
    ],
)
def test_what_does_not_go_with_memory(fabric, sac, agent, message):
    env = partial(GymnasiumEnvs, "CartPole-v1", 2)
    make = partial(SACLightningAgent, **(SMALL | agent))
    with pytest.raises(ValueError, match=message):
        train_off_policy(fabric, env, make, TrainArgs(total_timesteps=100, batch_size=32), sac=SACArgs(**sac))
