"""collect() and Rollout.flat with memory, burn-in, action masks, reward signals, pixels and Box actions."""

from functools import partial

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.vector.utils import batch_space

from agents import RecurrentPPOAgent
from envs import GymnasiumEnvs
from fabric_rl import ActOutput, Callback, EpisodeStats, Rollout, TrainArgs, collect, train
from fabric_rl.learning.normalize import ReturnScaler
from fabric_rl.metrics.timers import Timers
from fabric_rl.rollouts.collectors import Collector
from fabric_rl.session.build import _discounts
from fabric_rl.types import NonFiniteError


class MemoryAgent:
    """Remembers the sum of the numbers it has seen in the episode; the value is what it remembers before the step."""

    value_heads, memory_size, learns_sequences, minibatch_fields = 1, 1, True, ()

    def __init__(self, sequence_length, burn_in=0):
        self.sequence_length, self.burn_in = sequence_length, burn_in

    def act(self, obs, state=None, deterministic=False):
        zeros = torch.zeros(len(obs))
        return ActOutput(zeros.long(), zeros, self.value(obs, state), state + obs[:, :1])

    def value(self, obs, state=None):
        return state[:, 0]


def history(env):
    """`[steps, N]` the numbers that the three sub-environments of CounterEnv show, and where their episodes start."""
    obs, starts = [env.reset()[0][:, 0]], [np.ones(env.num_envs, bool)]
    for _ in range(40):
        seen, _, terminated, truncated, _ = env.step(np.zeros(env.num_envs, int))
        obs.append(seen[:, 0])
        starts.append(terminated | truncated)
    return np.array(obs), np.array(starts)


def remembered(obs, starts):
    """`[steps, N]` the memory before each step, from the definition."""
    memory = np.zeros(obs.shape)
    for t in range(1, len(obs)):
        memory[t] = np.where(starts[t], 0, memory[t - 1] + obs[t - 1])
    return memory


@pytest.mark.parametrize(("length", "burn_in"), [(2, 0), (4, 0), (8, 0), (4, 2), (4, 3), (2, 8), (4, 5)])
@torch.no_grad()
def test_sequences_begin_with_the_memory_of_their_burn_in(counter_env, length, burn_in):
    obs, starts = history(counter_env())
    memory = remembered(obs, starts)
    env, agent = counter_env(), MemoryAgent(length, burn_in)
    rollout = Rollout(8, env, agent=agent)
    rollout.begin(*env.reset())
    for first in (0, 8, 16):
        collect(env, agent, rollout)
        batch = rollout.flat(torch.zeros(8, 3))
        assert batch.obs.shape == (length, 8 // length * 3, 2)
        assert batch.state.shape == (8 // length * 3, 1)
        for k in range(8 // length):
            for n in range(3):
                begin, row = first + k * length, k * 3 + n
                assert batch.obs[:, row, 0].tolist() == obs[begin : begin + length, n].tolist()
                assert batch.episode_start[:, row].tolist() == starts[begin : begin + length, n].tolist()
                assert batch.value[:, row].tolist() == memory[begin : begin + length, n].tolist()
                # Unrolled by hand from the stored memory through the burn-in, the agent remembers what it did.
                state = float(batch.state[row, 0])
                for t in range(burn_in):
                    state = 0 if batch.burn_in_start[t, row] else state
                    state += float(batch.burn_in_obs[t, row, 0])
                if batch.episode_start[0, row]:
                    state = 0
                assert state == memory[begin, n]
                if burn_in and begin >= burn_in:
                    before = obs[begin - burn_in : begin, n]
                    assert batch.burn_in_obs[:, row, 0].tolist() == before.tolist()
                    assert batch.burn_in_start[:, row].tolist() == starts[begin - burn_in : begin, n].tolist()


@torch.no_grad()
def test_bootstrap_values_use_the_memory_of_their_own_episode(counter_env):
    obs, starts = history(counter_env())
    env, agent = counter_env(), MemoryAgent(5)
    rollout = Rollout(5, env, agent=agent)
    rollout.begin(*env.reset())
    collect(env, agent, rollout)
    # Second sub-environment: truncated after 2 steps, having seen 1000 and 1001; and again with 1100 and 1101.
    assert rollout.next_value[:, 1].tolist() == [1000, 2001, 1100, 2201, 1200]
    # First: terminated after 3 steps, whatever stands there is not used; then it goes on.
    assert rollout.next_value[[0, 1, 3, 4], 0].tolist() == [0, 1, 100, 201]
    assert rollout.state[:, 0].tolist() == remembered(obs, starts)[5].tolist()


@pytest.mark.parametrize(
    ("num_steps", "length", "burn_in", "message"),
    [
        (8, 3, 0, "--num_steps 8 must be a multiple of MemoryAgent's --agent.sequence_length 3"),
        (8, 4, 9, "--agent.burn_in 9 must not exceed --num_steps 8"),
    ],
)
def test_memory_settings_that_do_not_fit_the_rollout(counter_env, num_steps, length, burn_in, message):
    with pytest.raises(ValueError, match=message):
        Rollout(num_steps, counter_env(), agent=MemoryAgent(length, burn_in))


class ManySided(gymnasium.vector.VectorEnv):
    """Two sub-environments with pixels, Box actions within +-1, and two reward signals; a mask if asked for."""

    def __init__(self, masked=False, signals=True, forget=()):
        self.metadata = {"autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP}
        self.num_envs, self.masked, self.forget = 2, masked, forget
        self.single_observation_space = gymnasium.spaces.Box(0, 255, (4, 4, 1), np.uint8)
        self.single_action_space = gymnasium.spaces.Discrete(3) if masked else gymnasium.spaces.Box(-1, 1, (2,))
        self.action_space = batch_space(self.single_action_space, 2)
        self.reward_signals = ("win", "style") if signals else ()
        self.t, self.actions = 0, []

    def infos(self):
        mask = np.array([[True, self.t % 2 == 0, False], [True, True, True]])
        signals = np.array([[1.0, 0.5], [-1.0, 0.25]], np.float32) * self.t
        infos = {"action_mask": mask} if self.masked else {}
        if self.reward_signals:
            infos["reward_signals"] = signals
        return {name: value for name, value in infos.items() if name not in self.forget}

    def reset(self, *, seed=None, options=None):
        self.t = 0
        return np.full((2, 4, 4, 1), 7, np.uint8), {"action_mask": self.infos()["action_mask"]} if self.masked else {}

    def step(self, actions):
        self.t += 1
        self.actions.append(actions)
        obs, no = np.full((2, 4, 4, 1), 7 + self.t, np.uint8), np.zeros(2, bool)
        return obs, np.array([1.5, -0.75]) * self.t, no, no, self.infos()


class TwoHeads:
    """Values (1, 2); acts far outside of the Box, or picks the last action that is allowed."""

    value_heads, memory_size, learns_sequences, minibatch_fields = 2, 0, False, ()

    def act(self, obs, state=None, deterministic=False, action_mask=None):
        self.seen = getattr(self, "seen", [])
        self.seen.append(None if action_mask is None else action_mask.clone())
        if action_mask is None:
            return ActOutput(torch.tensor([[3.0, -3.0], [0.5, -0.5]]), torch.zeros(2), self.value(obs))
        last = 2 - action_mask.flip(-1).float().argmax(-1)
        return ActOutput(last, torch.zeros(2), self.value(obs))

    def value(self, obs, state=None):
        assert obs.dtype == torch.uint8
        return torch.tensor([[1.0, 2.0]]).expand(len(obs), 2)


@torch.no_grad()
def test_pixels_box_actions_and_reward_signals():
    env, agent = ManySided(), TwoHeads()
    rollout = Rollout(2, env, agent=agent)
    rollout.begin(*env.reset())
    collect(env, agent, rollout)
    assert rollout.obs.dtype == torch.uint8
    assert rollout.obs[:, 0, 0, 0, 0].tolist() == [7, 8, 9]
    assert env.actions[0].tolist() == [[1, -1], [0.5, -0.5]]  # clipped to the Box for the environment
    assert rollout.action[0].tolist() == [[3, -3], [0.5, -0.5]]  # kept as sampled for the log-probability
    assert rollout.reward[1].tolist() == [[2, 1], [-2, 0.5]]
    batch = rollout.flat(torch.tensor([1.0, 10.0]).expand(2, 2, 2))
    assert batch.advantage.tolist() == [11] * 4  # the sum over the signals
    assert batch.returns.tolist() == [[2, 12]] * 4


@torch.no_grad()
def test_masks_reach_the_agent_and_the_batch():
    env, agent = ManySided(masked=True), TwoHeads()
    rollout = Rollout(3, env, agent=agent)
    rollout.begin(*env.reset())
    for _ in range(2):
        collect(env, agent, rollout)
    allowed = [[True, t % 2 == 0, False] for t in range(6)]
    assert [mask[0].tolist() for mask in agent.seen] == allowed
    assert rollout.flat(torch.zeros(3, 2, 2)).action_mask[::2].tolist() == allowed[3:]
    assert rollout.action[:, 0].tolist() == [0, 1, 0]


def test_signals_must_fit_the_value_heads(counter_env):
    with pytest.raises(ValueError, match=r"ManySided has 2 reward signals \(win, style\), MemoryAgent 1 value heads"):
        Rollout(8, ManySided(), agent=MemoryAgent(8))
    with pytest.raises(ValueError, match=r"CounterEnv has 1 reward signals \(its reward\), TwoHeads 2 value heads"):
        Rollout(8, counter_env(), agent=TwoHeads())


@pytest.mark.parametrize("key", ["action_mask", "reward_signals"])
@torch.no_grad()
def test_an_environment_that_forgets_what_it_promised(key):
    env, agent = ManySided(masked=True, forget=()), TwoHeads()
    rollout = Rollout(3, env, agent=agent)
    rollout.begin(*env.reset())
    env.forget = (key,)
    with pytest.raises(ValueError, match=rf"ManySided.step\(\): .*'{key}'"):
        collect(env, agent, rollout)


def test_each_reward_signal_is_reported_as_the_environment_pays_it(fabric):
    """At steps 1, 2, 3 `win` pays 1 and -1 times the step, `style` 0.5 and 0.25 times; what is scaled comes after."""
    env, agent = ManySided(), TwoHeads()
    rollout, scaler = Rollout(3, env, agent=agent), ReturnScaler(2)
    agent.modules = lambda: ()
    collector = Collector(fabric, fabric, env, agent, rollout, scaler, torch.tensor(0.9), Timers())
    collector.begin(0)
    found = collector.next_rollout()
    assert collector.metrics["reward/win"] == (0, 6)
    assert collector.metrics["reward/style"] == (4.5, 6)
    assert collector.metrics["reward/step"] == (4.5, 6)
    torch.testing.assert_close(found.reward[2, 1] * scaler.sigma.float(), torch.tensor([-3.0, 0.75]))
    assert scaler.sigma[0] > 2 * scaler.sigma[1]


@torch.no_grad()
def test_values_of_the_whole_rollout_at_once(setup_counter, monkeypatch):
    """An agent that gives no values step by step gets the same rollout, in pieces of any size."""
    import fabric_rl.rollouts.collect as module

    env, agent, rollout = setup_counter()
    collect(env, agent, rollout)
    for numbers in (1, 13, 10**6):
        monkeypatch.setattr(module, "VALUE_NUMBERS", numbers)
        env, agent, lazy = setup_counter()
        act = agent.act
        agent.act = lambda obs, act=act: act(obs)._replace(value=None)
        collect(env, agent, lazy)
        assert torch.equal(lazy.value, rollout.value)
        assert torch.equal(lazy.next_value, rollout.next_value)


@pytest.fixture
def setup_counter(counter_env, known_agent):
    def build():
        env = counter_env()
        rollout = Rollout(5, env)
        rollout.begin(*env.reset())
        return env, known_agent(env.single_observation_space, env.single_action_space), rollout

    return build


class Grouped:
    """CounterEnv in two groups; each is stepped only between `step_group` and `wait_group`, in any order."""

    def __init__(self, counter_env, first=2):
        self.group_rows = (slice(0, first), slice(first, 3))
        self.whole, self.parts = counter_env(), [counter_env(), counter_env()]
        self.num_envs, self.metadata = self.whole.num_envs, self.whole.metadata
        self.single_observation_space = self.whole.single_observation_space
        self.single_action_space = self.whole.single_action_space
        self.log, self.waiting = [], {}

    def reset(self):
        return [part.reset() for part in (*self.parts, self.whole)][-1]

    def step_group(self, group, actions):
        assert group not in self.waiting
        self.log.append(("step", group))
        self.waiting[group] = np.zeros(self.num_envs, int)
        self.waiting[group][self.group_rows[group]] = actions

    def wait_group(self, group):
        self.log.append(("wait", group))
        *arrays, infos = self.parts[group].step(self.waiting.pop(group))
        rows = self.group_rows[group]
        return (*(array[rows] for array in arrays), {name: array[rows] for name, array in infos.items()})


@pytest.mark.parametrize("with_memory", [False, True])
@pytest.mark.parametrize("first", [1, 2])
@torch.no_grad()
def test_groups_fill_the_same_rollout(counter_env, known_agent, with_memory, first):
    """What the groups bring, in turns, is what all sub-environments would have brought at once.

    With one sub-environment in the first group, the one whose episodes are truncated is in the second.
    """
    rollouts, stats = [], []
    for env in (counter_env(), Grouped(counter_env, first)):
        spaces = env.single_observation_space, env.single_action_space
        agent = MemoryAgent(4, 2) if with_memory else known_agent(*spaces)
        rollout, episodes = Rollout(8, env, agent=agent), EpisodeStats(3)
        rollout.begin(*env.reset())
        for _ in range(3):
            collect(env, agent, rollout, episodes)
        rollouts.append(vars(rollout))
        stats.append(episodes)
    for name, expected in rollouts[0].items():
        if isinstance(expected, torch.Tensor):
            assert torch.equal(rollouts[1][name], expected), name
    assert sorted(stats[0].recent) == sorted(stats[1].recent)
    assert stats[0].drain_metrics() == stats[1].drain_metrics()
    # One group is being stepped whenever the policy decides for the other.
    assert env.log[:6] == [("step", 0), ("step", 1), ("wait", 0), ("step", 0), ("wait", 1), ("step", 1)]
    assert env.waiting == {}


@torch.no_grad()
def test_non_finite_numbers_are_named_by_their_sub_environment_in_a_group(counter_env, known_agent):
    env = Grouped(counter_env)
    env.parts[1].broken = ("obs", 1, 2, np.nan)
    agent = known_agent(env.single_observation_space, env.single_action_space)
    rollout = Rollout(8, env)
    rollout.begin(*env.reset())
    with pytest.raises(NonFiniteError, match="an observation that is nan: sub-environment 2, column 1, rollout step 1"):
        collect(env, agent, rollout)


@pytest.mark.parametrize("burn_in", [0, 4, 12])  # in the sequence before, and beyond it
@pytest.mark.parametrize("normalize_obs", [False, True])
def test_the_first_ratios_are_one_in_every_iteration_of_an_agent_with_burn_in(fabric, burn_in, normalize_obs):
    """Also where the burn-in lies in the rollout before, which another policy has collected."""

    class Ratios(Callback):
        largest = ()

        def on_learn_start(self, state):
            agent, batch = state.agent, state.batch
            with torch.no_grad():
                memory = batch.state
                if batch.burn_in_obs is not None:
                    memory = agent.memory.after(agent._encode(batch.burn_in_obs), memory, batch.burn_in_start)
                features = agent.memory.unroll(agent._encode(batch.obs), memory, batch.episode_start)
                log_prob, _ = agent.policy_head.evaluate(agent.policy_head(agent.actor(features)), batch.action)
            self.largest += ((log_prob - batch.log_prob).abs().max().item(),)

    ratios = Ratios()
    agent = partial(
        RecurrentPPOAgent,
        memory_size=16,
        sequence_length=8,
        burn_in=burn_in,
        normalize_obs=normalize_obs,
        actor_lr=1e-2,
    )
    args = TrainArgs(total_timesteps=4 * 32 * 4, num_steps=32, minibatch_size=64, update_epochs=2)
    train(fabric, partial(GymnasiumEnvs, "CartPole-v1", 4), agent, args, callbacks=[ratios], plain=True)
    assert len(ratios.largest) == 4 and max(ratios.largest) < 2e-6


def test_where_episodes_begin_anew_nothing_is_left_of_the_ones_before(counter_env):
    env = counter_env()
    rollout = Rollout(4, env, agent=MemoryAgent(2, burn_in=2))
    for keep in (True, False):
        rollout._episode_start[:], rollout.state[:], rollout._states[:] = False, 7, 7
        rollout.begin(*env.reset(), keep=keep)
        assert rollout._episode_start[-1].all() and not rollout.state.any()
        assert rollout._episode_start[:-1].all() == (not keep)
        assert rollout._states.any() == keep


def test_a_discount_for_each_signal_or_one_for_all():
    rollout = Rollout(3, ManySided(), agent=TwoHeads())
    for gamma, expected in (((0.9, 0.5), [0.9, 0.5]), (0.9, [0.9, 0.9])):
        torch.testing.assert_close(_discounts(TrainArgs(gamma=gamma), rollout), torch.tensor(expected))
    assert _discounts(TrainArgs(gamma=0.9), Rollout(3, ManySided(signals=False))).dim() == 0
    with pytest.raises(ValueError, match=r"--gamma has 3 discounts, the environment 2 reward signals \(win, style\)"):
        _discounts(TrainArgs(gamma=(0.9, 0.5, 0.1)), rollout)
