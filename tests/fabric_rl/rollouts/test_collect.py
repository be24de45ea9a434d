"""collect() on an environment and with a value function whose numbers are known."""

import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode

from fabric_rl import EpisodeStats, Rollout, collect, gae
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


def test_buffers(setup):
    _, _, rollout = setup()
    assert rollout.obs.shape == (6, 3, 2)
    assert rollout.action.shape == rollout.value.shape == rollout.done.shape == (5, 3)
    assert [rollout.obs.dtype, rollout.action.dtype, rollout.done.dtype] == [torch.float32, torch.int64, torch.bool]


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


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED])
def test_other_autoreset_modes_are_refused(counter_env, mode):
    with pytest.raises(ValueError, match=r"CounterEnv: metadata\['autoreset_mode'\] must be .*SAME_STEP, got .*"):
        Rollout(5, counter_env(autoreset_mode=mode))


def test_an_environment_that_does_not_say_how_it_resets_is_refused(counter_env):
    env = counter_env()
    env.metadata = {}
    with pytest.raises(ValueError, match="SAME_STEP, got None"):
        Rollout(5, env)


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
    "no infos": (lambda s: (*s[:4], None), r"infos must be a dict, got None \(is a return missing\?\)"),
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
