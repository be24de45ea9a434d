"""RocketSimParallelEnv: PettingZoo's own tests, and the same game as the pool's."""

import numpy as np
import pytest

from envs import AdvancedObsPlus, GoalCondition, HybridTable, RandomState, RocketSimPool, TimeoutCondition

pettingzoo_test = pytest.importorskip("pettingzoo.test")
from envs import RocketSimParallelEnv  # noqa: E402

SHORT = {"done": [GoalCondition(), TimeoutCondition(timeout_seconds=1.0)], "state_setter": RandomState()}


@pytest.mark.parametrize("settings", [{}, {"team_size": [(1, 0), (2, 1)], "obs": AdvancedObsPlus(zero_padding=2)}])
def test_it_passes_the_tests_of_pettingzoo(settings):
    env = RocketSimParallelEnv(**SHORT, **settings)
    pettingzoo_test.parallel_api_test(env, num_cycles=60)
    env.close()


def test_seeds():
    pettingzoo_test.parallel_seed_test(lambda: RocketSimParallelEnv(**SHORT), num_cycles=40)


def test_a_seed_decides_the_games_of_all_team_sizes():
    env = RocketSimParallelEnv([(1, 0), (1, 1)], obs=AdvancedObsPlus(zero_padding=2), **SHORT)
    games = [[env.reset(seed=seed)[0] for seed in (7, None, None, None)] for _ in range(2)]
    for one, two in zip(*games, strict=True):
        assert [*one] == [*two]
        np.testing.assert_array_equal([*one.values()], [*two.values()])
    assert len(games[0][1]) == 2
    env.close()


def test_it_is_the_game_of_the_pool():
    """Same observations, rewards and ends as a pool of one arena with the same seed; the last one is the true one."""
    env, pool = RocketSimParallelEnv(team_size=2, **SHORT), RocketSimPool(1, 2, **SHORT)
    obs, _ = env.reset(seed=5)
    expected, _ = pool.reset(seed=5)
    assert env.possible_agents == env.agents == ["blue-0", "blue-1", "orange-0", "orange-1"]
    np.testing.assert_array_equal([*obs.values()], expected)
    rng, ended = np.random.default_rng(0), False
    while not ended:
        actions = rng.integers(90, size=4)
        obs, rewards, terminated, truncated, infos = env.step(dict(zip(env.agents, actions, strict=True)))
        expected, paid, over, cut, told = pool.step(actions)
        ended = bool(over[0] or cut[0])
        np.testing.assert_array_equal([*obs.values()], told["final_obs"] if ended else expected)
        assert [*rewards.values()] == paid.tolist()
        assert [*terminated.values()] == over.tolist() and [*truncated.values()] == cut.tolist()
    assert env.agents == [] and [info["result"] for info in infos.values()] == told["result"].tolist()
    env.close()
    pool.close()


def test_team_sizes_take_turns_and_masks_are_in_the_infos():
    sizes = [(1, 0), (2, 1)]
    env = RocketSimParallelEnv(sizes, obs=AdvancedObsPlus(zero_padding=2), action=HybridTable(), **SHORT)
    seen = []
    for _ in range(4):
        obs, infos = env.reset()
        seen.append(env.agents)
        masks = [infos[agent]["action_mask"] for agent in env.agents]
        assert all(mask.shape == (env.action_space("blue-0").n,) and mask.any() for mask in masks)
        assert all(obs[agent].shape == env.observation_space(agent).shape for agent in env.agents)
    assert seen == [["blue-0"], ["blue-0", "blue-1", "orange-0"]] * 2
    env.close()
    with pytest.raises(ValueError, match="observations differ between team sizes; use obs with zero_padding"):
        RocketSimParallelEnv(sizes, obs=AdvancedObsPlus())
