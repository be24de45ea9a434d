"""collect(): what a rollout holds, for every kind of environment and agent, and one rollout ahead."""

from functools import partial

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from torch import nn

from agents import PPOLightningAgent, RecurrentPPOAgent
from envs import GymnasiumEnvs
from fabric_rl import ActOutput, Callback, EpisodeStats, Rollout, TrainArgs, collect, gae, train
from fabric_rl.base.state_schema import CannotBeSavedError
from fabric_rl.learning.normalize import ReturnScaler
from fabric_rl.metrics.timers import Timers
from fabric_rl.rollouts.collectors import Collector
from fabric_rl.session.build import _discounts
from fabric_rl.types import NonFiniteError

# The three sub-environments of CounterEnv over two rollouts of five steps, worked out by hand: the first terminates
# every 3 steps, the second is truncated every 2, the third does both every 4.
NUMBERS = [
    [0, 1000, 2000],
    [1, 1001, 2001],
    [2, 1100, 2002],  # second: truncated at 1002
    [100, 1101, 2003],  # first: terminated
    [101, 1200, 2100],  # second: truncated at 1102; third: both
    [102, 1201, 2101],
    [200, 1300, 2102],
    [201, 1301, 2103],
    [202, 1400, 2200],
    [300, 1401, 2201],
    [301, 1500, 2202],
]
TERMINATED = [[2, 0], [3, 2], [5, 0], [7, 2], [8, 0]]  # step, sub-environment
TRUNCATED = [[1, 1], [3, 1], [3, 2], [5, 1], [7, 1], [7, 2], [9, 1]]
FINAL_VALUES = {(1, 1): 1002, (3, 1): 1102, (5, 1): 1202, (7, 1): 1302, (9, 1): 1402}


@pytest.fixture
def setup(counter_env, known_agent):
    """Environment, agent, rollout that has begun; `changes` go to the environment."""

    def build(num_steps=5, **changes):
        env = counter_env(**changes)
        rollout = Rollout(num_steps, env)
        rollout.begin(env.reset()[0])
        return env, known_agent(env.single_observation_space, env.single_action_space), rollout

    return build


def steps(pairs, first):
    found = torch.zeros(5, 3, dtype=torch.bool)
    for t, i in pairs:
        if first <= t < first + 5:
            found[t - first, i] = True
    return found


@torch.no_grad()
def test_two_rollouts_in_a_row(setup):
    env, agent, rollout = setup()
    for first in (0, 5):
        collect(env, agent, rollout)
        numbers = torch.tensor(NUMBERS[first : first + 6], dtype=torch.float32)
        terminated, truncated = steps(TERMINATED, first), steps(TRUNCATED, first)

        assert torch.equal(rollout.obs[..., 0], numbers)
        assert torch.equal(rollout.action, numbers[:-1].long() % 5)
        assert torch.equal(rollout.log_prob, -numbers[:-1] / 10)
        assert torch.equal(rollout.value, numbers[:-1])
        assert torch.equal(rollout.reward, (numbers[:-1].long() % 5 + 1).float())
        assert torch.equal(rollout.terminated, terminated)
        assert torch.equal(rollout.done, terminated | truncated)

        next_value = numbers[1:].clone()
        for (t, i), value in FINAL_VALUES.items():
            if first <= t < first + 5:
                next_value[t - first, i] = value
        assert torch.equal(rollout.next_value[~terminated], next_value[~terminated])


@torch.no_grad()
def test_gae_of_the_collected_rollout_bootstraps_the_truncated_step(setup):
    """Sub-environment 1, step 1: reward 2, V 1001, cut at 1002 while the next episode starts with V 1100."""
    env, agent, rollout = setup()
    collect(env, agent, rollout)
    data = (rollout.reward, rollout.value, rollout.next_value, rollout.terminated, rollout.done)
    advantage = gae(*data, gamma=0.5, lam=0.5)
    assert advantage[1, 1].item() == 2 + 0.5 * 1002 - 1001
    assert advantage[2, 0].item() == 3 + 0 - 2  # terminated
    assert advantage[3, 2].item() == 4 + 0 - 2003  # terminated and truncated at once: terminated wins


@torch.no_grad()
def test_flat_is_time_major_and_adds_up_the_returns(setup):
    env, agent, rollout = setup()
    collect(env, agent, rollout)
    advantage = torch.arange(15.0).view(5, 3)
    batch = rollout.flat(advantage)
    numbers = torch.tensor(NUMBERS[:5], dtype=torch.float32).flatten()
    assert torch.equal(batch.obs[:, 0], numbers)
    assert torch.equal(batch.advantage, torch.arange(15.0))
    assert torch.equal(batch.returns, numbers + torch.arange(15.0))
    assert torch.equal(batch.action, numbers.long() % 5)


@torch.no_grad()
def test_episode_returns_and_lengths(setup):
    env, agent, rollout = setup()
    episodes = EpisodeStats(3)
    collect(env, agent, rollout, episodes)
    # 1000, 1001 pay 1 + 2; 0, 1, 2 pay 1 + 2 + 3; 1100, 1101 pay 1 + 2; 2000 to 2003 pay 1 + 2 + 3 + 4.
    assert list(episodes.recent) == [3, 6, 3, 10]
    assert episodes.drain_metrics() == {"reward/episode_return": (22, 4), "game/episode_length": (11, 4)}
    assert episodes.drain_metrics() == {"reward/episode_return": (0, 0), "game/episode_length": (0, 0)}
    collect(env, agent, rollout, episodes)
    # 100 to 102 pay 6 (two of the steps lie in the first rollout); 1200, 1201: 3; 1300, 1301: 3; 2100 to 2103: 10; 200
    # to 202: 6; 1400, 1401: 3.
    assert list(episodes.recent) == [3, 6, 3, 10, 6, 3, 3, 10, 6, 3]
    assert episodes.drain_metrics()["game/episode_length"] == (16, 6)


def test_recent_keeps_a_window():
    episodes = EpisodeStats(1, window=2)
    for reward in (1.0, 2.0, 3.0):
        episodes.update(np.array([reward]), np.array([True]))
    assert list(episodes.recent) == [2, 3]


def test_what_was_saved_of_episodes_takes_the_place_of_what_there_is():
    stats, both = EpisodeStats(2), np.array([True, True])
    stats.update(np.array([3.0, 5.0]), np.array([True, False]))
    saved = stats.state_dict()
    stats.update(np.ones(2), both)
    assert list(stats.recent) == [3, 1, 6]
    stats.load_state_dict(saved)
    assert list(stats.recent) == [3]
    stats.update(np.ones(2), both)
    assert stats.drain_metrics() == {"reward/episode_return": (3 + 1 + 6, 3), "game/episode_length": (1 + 1 + 2, 3)}


def test_episodes_that_are_cut_off_by_new_ones_leave_nothing_behind():
    stats = EpisodeStats(2)
    stats.update(np.array([3.0, 5.0]), np.array([False, False]))
    stats.begin()
    stats.update(np.array([1.0, 2.0]), np.array([True, True]))
    assert stats.drain_metrics() == {"reward/episode_return": (3, 2), "game/episode_length": (2, 2)}


@torch.no_grad()
@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (("obs", 2, 1, np.nan), "an observation that is nan: sub-environment 1, column 1, rollout step 2"),
        (("obs", 0, 0, -np.inf), "an observation that is -inf: sub-environment 0, column 1, rollout step 0"),
        (("obs", 4, 0, 1e300), "an observation that is inf: sub-environment 0, column 1, rollout step 4"),
        (("reward", 3, 2, np.inf), "a reward that is inf: sub-environment 2, rollout step 3"),
        (("final_obs", 1, 1, np.nan), "a final observation that is nan: sub-environment 1, column 1, rollout step 1"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_non_finite_numbers_are_named(setup, broken, message):
    env, agent, rollout = setup(broken=broken)
    with pytest.raises(NonFiniteError, match=f"^the environment returned {message}$"):
        collect(env, agent, rollout)


@torch.no_grad()
def test_the_rollout_keeps_what_came_before_a_non_finite_number(setup):
    env, agent, rollout = setup(broken=("obs", 2, 1, np.nan))
    with pytest.raises(NonFiniteError):
        collect(env, agent, rollout)
    assert rollout.obs[:3, :, 0].tolist() == NUMBERS[:3]
    assert torch.isfinite(rollout.obs).all()


@torch.no_grad()
def test_a_truncation_without_the_last_observation_is_named(setup):
    env, agent, rollout = setup()
    step = env.step
    env.step = lambda actions: (*step(actions)[:4], {})
    with pytest.raises(ValueError, match=r"CounterEnv.step\(\): an episode was truncated, but infos lacks 'final_obs'"):
        collect(env, agent, rollout)


def test_a_non_finite_first_observation_is_named(counter_env):
    env = counter_env(broken=("reset", 0, 2, np.nan))
    with pytest.raises(NonFiniteError, match=r"an observation that is nan: sub-environment 2, column 1, at reset$"):
        Rollout(5, env).begin(env.reset()[0])


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED, None])
def test_other_autoreset_modes_are_refused(counter_env, mode):
    with pytest.raises(ValueError, match=r"CounterEnv: metadata\['autoreset_mode'\] must be .*SAME_STEP, got .*"):
        Rollout(5, counter_env(autoreset_mode=mode))


# ---------------------------------------------------------------- environments that lie after the trial


LIES = {
    "obs column": (
        lambda s: (s[0][:, :1], *s[1:]),
        r"the observations must be numbers of shape \[3, 2\], got .*\[3, 1\]",
    ),
    "obs of one": (lambda s: (s[0][:1], *s[1:]), r"the observations must be .* got float64 of shape \[1, 2\]"),
    "obs text": (lambda s: (s[0].astype(str), *s[1:]), "the observations must be numbers of shape"),
    "one reward": (
        lambda s: (s[0], s[1][:1], *s[2:]),
        r"the rewards must be numbers of shape \[3\], got float64 of shape \[1\]",
    ),
    "reward column": (lambda s: (s[0], s[1][:, None], *s[2:]), r"the rewards must be .* shape \[3, 1\]"),
    "terminated nan": (
        lambda s: (*s[:2], np.full(3, np.nan), *s[3:]),
        "terminated must be bools of shape .* got float64",
    ),
    "terminated one": (
        lambda s: (*s[:2], np.False_, *s[3:]),
        r"terminated must be bools of shape \[3\], got bool of shape \[\]",
    ),
    "truncated 0/1": (lambda s: (*s[:3], s[3].astype(int), s[4]), "truncated must be bools of shape .* got int64"),
    "no infos": (lambda s: (*s[:4], None), r"infos must be a dict, got None \(is a return statement missing\?\)"),
    "four things": (lambda s: s[:4], r"must return a tuple \(observations, rewards, .*\), got a tuple of 4"),
    "nothing": (lambda s: None, r"must return a tuple .* got None"),
    "final_obs": (
        lambda s: (*s[:4], {name: x[:1] for name, x in s[4].items()}),
        r"infos\['final_obs'\] must be numbers of shape \[3, 2\], got float64 of shape \[1, 2\]",
    ),
}


@pytest.mark.parametrize(("lie", "message"), LIES.values(), ids=LIES)
@torch.no_grad()
def test_what_the_environment_returns_is_checked_at_every_step(counter_env, known_agent, lie, message):
    class Lying(counter_env):
        def step(self, actions):
            made = super().step(actions)
            return lie(made) if self.steps > 1 else made

    env = Lying()
    rollout = Rollout(5, env)
    rollout.begin(*env.reset())
    with pytest.raises(ValueError, match=rf"^--env Lying\.step\(\):? {message}"):
        collect(env, known_agent(env.single_observation_space, env.single_action_space), rollout)


def test_first_observations_of_another_shape_are_refused(counter_env):
    env = counter_env()
    with pytest.raises(
        ValueError, match=r"reset\(\): the observations must be numbers of shape \[3, 2\], got .* \[1, 2\]"
    ):
        Rollout(5, env).begin(env.reset()[0][:1])


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
    with pytest.raises(
        ValueError, match=r"ManySided has 2 reward signal\(s\) \(win, style\), but MemoryAgent has value_heads=1"
    ):
        Rollout(8, ManySided(), agent=MemoryAgent(8))
    with pytest.raises(
        ValueError, match=r"CounterEnv has 1 reward signal\(s\) \(its reward\), but TwoHeads has value_heads=2"
    ):
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


def scaling(fabric):
    """A collector of three steps that has begun, and the scaler of its two reward signals."""
    env, agent = ManySided(), TwoHeads()
    rollout, scaler = Rollout(3, env, agent=agent), ReturnScaler(2)
    agent.modules = lambda: ()
    collector = Collector(fabric, fabric, env, agent, rollout, scaler, torch.tensor(0.9), Timers())
    collector.begin(0, first=0)
    return collector, scaler


def test_each_reward_signal_is_reported_as_the_environment_pays_it(fabric):
    """At steps 1, 2, 3 `win` pays 1 and -1 times the step, `style` 0.5 and 0.25 times; what is scaled comes after."""
    collector, scaler = scaling(fabric)
    found = collector.next_rollout()
    assert collector.metrics["reward/win"] == (0, 6)
    assert collector.metrics["reward/style"] == (4.5, 6)
    assert collector.metrics["reward/step"] == (4.5, 6)
    torch.testing.assert_close(found.reward[2, 1] * scaler.sigma.float(), torch.tensor([-3.0, 0.75]))
    assert scaler.sigma[0] > 2 * scaler.sigma[1]


def test_new_episodes_behind_a_rollout_that_was_collected_ahead_have_returns_of_their_own(fabric):
    collector, scaler = scaling(fabric)
    collector.next_rollout()
    collector._collect()
    collector._ready = True
    collector._begin_new_episodes(1)
    before = scaler.state_dict()["open"]
    assert before.any()  # the episodes go on in the rollout that is collected
    collector.next_rollout()
    assert scaler.sigma[0] > 3 and not scaler.state_dict()["open"].any()  # and end with it
    collector.next_rollout()
    torch.testing.assert_close(scaler.state_dict()["open"], before)  # those of the first three steps again


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
    with pytest.raises(ValueError, match=r"--gamma has 3 discounts for the 2 reward signals of --env \(win, style\)"):
        _discounts(TrainArgs(gamma=(0.9, 0.5, 0.1)), rollout)


class Recorder(Callback):
    """Keeps metrics and weights of every iteration."""

    def __init__(self):
        self.metrics, self.weights = [], []

    def on_iteration_end(self, state):
        self.agent = state.agent
        self.metrics.append({k: v for k, v in state.metrics.items() if not k.startswith("speed/")})
        self.weights.append([p.detach().clone() for p in state.agent.parameters()])


def run(fabric, env, agent, overlap, **args):
    recorder = Recorder()
    settings = {"num_steps": 4, "minibatch_size": 12, "update_epochs": 1, "max_grad_norm": 0, "lr_schedule": "constant"}
    train(fabric, env, agent, TrainArgs(**(settings | args), overlap=overlap), None, [recorder], plain=True)
    return recorder


@pytest.mark.parametrize(("overlap", "lags"), [(False, [0, 1, 2, 3]), (True, [0, 0, 1, 2])])
def test_the_policy_that_plays_is_one_update_behind(fabric, known_agent, counter_env, overlap, lags):
    """The weight falls by 0.1 with every update; what `act` stored says how many it knew of."""

    class Telling(known_agent):
        def act(self, obs, state=None, deterministic=False):
            weight = self.weights[0].expand(len(obs))
            return ActOutput(obs[:, 0].long() % 5, weight, self.value(obs))

    recorder = run(fabric, counter_env, Telling, overlap, total_timesteps=48)
    seen = [float(minibatch.log_prob[0]) for minibatch in recorder.agent.seen[-4:]]
    assert seen == pytest.approx([-0.1 * lag for lag in lags])
    # Nothing is left out or comes twice: the observations of the four rollouts are those of 16 steps in a row.
    first = [minibatch.obs[:, 0].sort().values.tolist() for minibatch in recorder.agent.seen[-4:]]
    plain = run(fabric, counter_env, known_agent, False, total_timesteps=48)
    assert first == [minibatch.obs[:, 0].sort().values.tolist() for minibatch in plain.agent.seen[-4:]]
    for ours, theirs in zip(recorder.metrics, plain.metrics, strict=True):
        for name in ("reward/step", "reward/episode_return", "game/episode_length"):
            assert ours.get(name) == theirs.get(name), name


@pytest.mark.parametrize(("overlap", "progress"), [(False, [0, 0.25, 0.5, 0.75]), (True, [0, 0, 0.25, 0.5])])
def test_the_policy_that_plays_knows_how_far_training_is(fabric, known_agent, counter_env, overlap, progress):
    class Telling(known_agent):
        def act(self, obs, state=None, deterministic=False):
            return ActOutput(obs[:, 0].long() % 5, self.progress.expand(len(obs)), self.value(obs))

    recorder = run(fabric, counter_env, Telling, overlap, total_timesteps=48)
    assert [float(minibatch.log_prob[0]) for minibatch in recorder.agent.seen[-4:]] == progress


@pytest.mark.parametrize("agent", [PPOLightningAgent, partial(RecurrentPPOAgent, sequence_length=8, memory_size=8)])
def test_the_seed_decides_everything(fabric, agent):
    env = partial(GymnasiumEnvs, "CartPole-v1", 4)
    settings = {"num_steps": 32, "minibatch_size": 64, "total_timesteps": 768, "update_epochs": 4}
    one, same = (run(fabric, env, agent, True, **settings) for _ in range(2))
    assert one.metrics == same.metrics and len(one.metrics) == 6
    assert all(torch.equal(a, b) for a, b in zip(one.weights[-1], same.weights[-1], strict=True))
    other = run(fabric, env, agent, False, **settings)
    assert all(torch.equal(a, b) for a, b in zip(one.weights[0], other.weights[0], strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(one.weights[-1], other.weights[-1], strict=True))


@pytest.mark.parametrize("overlap", [False, True])
def test_the_first_minibatch_tells_how_old_the_policy_that_played_is(fabric, overlap):
    """Without overlap, and in the first iteration, it is the one that learns."""
    settings = {"num_steps": 32, "minibatch_size": 64, "total_timesteps": 512, "update_epochs": 4}
    env, agent = partial(GymnasiumEnvs, "CartPole-v1", 4), partial(PPOLightningAgent, actor_lr=0.01)
    found = run(fabric, env, agent, overlap, **settings).metrics
    for number, row in enumerate(found):
        kl, clipped = (row[f"ppo/{name}_first"] for name in ("approx_kl", "clip_fraction"))
        if overlap and number:
            assert kl > 1e-5
        else:
            assert abs(kl) < 1e-6 and clipped == 0
    assert any(row["ppo/clip_fraction_first"] > 0 for row in found) == overlap


def test_what_goes_wrong_in_the_thread_ends_the_run(fabric, known_agent, counter_env):
    env = partial(counter_env, broken=("reward", 5, 1, np.inf))  # while the first rollout is learned from
    with pytest.raises(NonFiniteError, match="a reward that is inf: sub-environment 1, rollout step 1"):
        run(fabric, env, known_agent, True, total_timesteps=48)


def test_an_agent_that_draws_numbers_while_it_learns_is_refused(fabric, known_agent, counter_env):
    class Random(known_agent):
        def __init__(self, *spaces):
            super().__init__(*spaces)
            self.dropout = nn.Dropout(0.1)

    with pytest.raises(ValueError, match=r"^--overlap: --agent Random uses Dropout"):
        run(fabric, counter_env, Random, True, total_timesteps=48)


@pytest.mark.parametrize(("error", "begins"), [(TypeError, False), (CannotBeSavedError, True)])
def test_an_environment_that_cannot_be_saved_says_so_at_the_start(fabric, known_agent, counter_env, error, begins):
    class Unsavable(counter_env):
        def state_dict(self):
            raise error("no state today")

        def load_state_dict(self, state):
            """Never called."""

    if begins:
        assert run(fabric, Unsavable, known_agent, False, total_timesteps=12).metrics
        return
    with pytest.raises(ValueError, match=r"env Unsavable.state_dict\(\): no state today"):
        run(fabric, Unsavable, known_agent, False, total_timesteps=12)
