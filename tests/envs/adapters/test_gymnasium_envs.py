"""GymnasiumEnvs beside plain Gymnasium environments."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from envs import GymnasiumEnvs


def test_every_environment_matches_a_plain_one_with_its_seed():
    """Sub-environment i is seeded seed + i, resets in the same step, and its final observation is the real one."""
    envs = GymnasiumEnvs("CartPole-v1", num_envs=3, seed=11)
    plain = [gymnasium.make("CartPole-v1") for _ in range(3)]
    obs, _ = envs.reset()
    np.testing.assert_array_equal(obs, [env.reset(seed=11 + i)[0] for i, env in enumerate(plain)])
    rng, ended = np.random.default_rng(0), 0
    for _ in range(200):
        actions = rng.integers(2, size=3)
        obs, rewards, terminated, truncated, infos = envs.step(actions)
        stepped = [env.step(action) for env, action in zip(plain, actions, strict=True)]
        assert rewards.tolist() == [step[1] for step in stepped]
        assert terminated.tolist() == [step[2] for step in stepped]
        assert truncated.tolist() == [False] * 3
        if not terminated.any():
            assert infos == {}
            continue
        assert sorted(infos) == ["_final_obs", "final_obs"]
        assert infos["_final_obs"].tolist() == terminated.tolist()
        assert infos["final_obs"].shape == obs.shape and infos["final_obs"].dtype == obs.dtype
        for i in np.flatnonzero(terminated):
            np.testing.assert_array_equal(infos["final_obs"][i], stepped[i][0])
            np.testing.assert_array_equal(obs[i], plain[i].reset()[0])
            ended += 1
    assert ended >= 10
    envs.close()


def test_the_time_limit_truncates():
    """The pole can be balanced for all 500 steps by pushing toward the side it falls to."""
    envs = GymnasiumEnvs("CartPole-v1", num_envs=1, seed=0)
    obs, _ = envs.reset()
    for step in range(1, 501):
        obs, _, terminated, truncated, infos = envs.step((obs[:, 2] + 0.5 * obs[:, 3] > 0).astype(int))
        if step < 500:
            assert not terminated.any() and not truncated.any(), step
    assert (terminated.tolist(), truncated.tolist()) == ([False], [True])
    assert infos["_final_obs"].tolist() == [True]
    assert np.abs(obs).max() <= 0.05 < np.abs(infos["final_obs"]).max()  # a new episode starts within 0.05


def test_contract():
    envs = GymnasiumEnvs("CartPole-v1", num_envs=2, seed=0)
    assert isinstance(envs, gymnasium.vector.VectorEnv)
    assert (envs.num_envs, envs.num_seeds) == (2, 2)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert envs.single_action_space.n == 2
    first, second = envs.reset()[0].copy(), envs.reset()[0].copy()
    assert (first != second).any()  # only the first reset uses the constructor's seed
    np.testing.assert_array_equal(envs.reset(seed=0)[0], first)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: GymnasiumEnvs("NoSuchGame-v1", 1), "--env_id NoSuchGame-v1"),
        (lambda: GymnasiumEnvs("CartPole-v1", 0), "num_envs must be at least 1, got 0"),
    ],
)
def test_bad_input_is_one_clear_line(build, message):
    with pytest.raises(ValueError, match=message) as caught:
        build()
    assert "\n" not in str(caught.value)


def test_video_folder_receives_mp4(tmp_path):
    pytest.importorskip("moviepy")
    envs = GymnasiumEnvs("CartPole-v1", num_envs=2, seed=0, video_folder=tmp_path / "videos")
    envs.reset()
    for _ in range(60):  # one-sided pushes end an episode within 12 steps
        envs.step(np.zeros(2, np.int64))
    envs.close()
    videos = list((tmp_path / "videos").glob("*.mp4"))
    assert {path.name for path in videos} >= {"rl-video-episode-0.mp4", "rl-video-episode-1.mp4"}
    assert all(path.stat().st_size > 1000 for path in videos)
