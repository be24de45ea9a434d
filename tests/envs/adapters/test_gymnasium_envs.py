"""GymnasiumEnvs beside plain Gymnasium environments, with observations of any space; AtariEnvs."""

import json
import pickle
import subprocess
import sys
import time
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import FilterObservation

from envs import AtariEnvs, Gaussian, GymnasiumEnvs, ParameterRandomizer, ProcessPool, Uniform
from envs.adapters.gymnasium_envs import ConcatenatedBox, RecordVideos
from envs.pool import videos
from fabric_rl.metrics.metrics_csv import read_metrics
from tests.envs.adapters.tasks import Entries, Numbered, Reported, Seen, Worded
from tests.forks import ROOT, SECONDS
from train_fabric import cli


def test_which_episodes_are_shown(tmp_path):
    shown = [episode for episode in range(3001) if videos._is_shown(episode)]
    assert shown == [0, 1, 8, 27, 64, 125, 216, 343, 512, 729, 1000, 2000, 3000]
    with pytest.raises(ValueError, match="videos need an environment with render_mode='rgb_array', got None"):
        RecordVideos(gymnasium.make("CartPole-v1"), tmp_path)


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


def test_the_contract_and_the_time_limit():
    envs = GymnasiumEnvs("CartPole-v1", num_envs=2, seed=0)
    assert isinstance(envs, gymnasium.vector.VectorEnv)
    assert (envs.num_envs, envs.num_seeds) == (2, 2)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert envs.single_action_space.n == 2
    first, second = envs.reset()[0].copy(), envs.reset()[0].copy()
    assert (first != second).any()  # only the first reset uses the constructor's seed
    np.testing.assert_array_equal(envs.reset(seed=0)[0], first)
    # The pole can be balanced for all 500 steps by pushing toward the side it falls to.
    envs = GymnasiumEnvs("CartPole-v1", num_envs=1, seed=0)
    obs, _ = envs.reset()
    for step in range(1, 501):
        obs, _, terminated, truncated, infos = envs.step((obs[:, 2] + 0.5 * obs[:, 3] > 0).astype(int))
        if step < 500:
            assert not terminated.any() and not truncated.any(), step
    assert (terminated.tolist(), truncated.tolist()) == ([False], [True])
    assert infos["_final_obs"].tolist() == [True]
    assert np.abs(obs).max() <= 0.05 < np.abs(infos["final_obs"]).max()  # a new episode starts within 0.05


def test_video_folder_receives_mp4(tmp_path):
    envs = GymnasiumEnvs("CartPole-v1", num_envs=2, seed=0, video_folder=tmp_path / "videos")
    envs.reset()
    for _ in range(60):  # one-sided pushes end an episode within 12 steps
        envs.step(np.zeros(2, np.int64))
    envs.close()
    files = list((tmp_path / "videos").glob("*.mp4"))
    assert {path.name for path in files} >= {"rl-video-episode-0.mp4", "rl-video-episode-1.mp4"}
    assert all(path.stat().st_size > 1000 for path in files)


class Pictures(gymnasium.Env):
    """Draws 100 pictures a second, 640 x 480; never ends by itself."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 100}  # noqa: RUF012 - as gymnasium's
    observation_space = gymnasium.spaces.Box(0, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    render_mode = "rgb_array"
    drawn = 0

    def reset(self, *, seed=None, options=None):
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.zeros(1, np.float32), 0.0, False, False, {}

    def render(self):
        self.drawn += 1
        return np.full((480, 640, 3), self.drawn % 256, np.uint8)


def frames_of(path):
    from imageio_ffmpeg import read_frames

    reader = read_frames(str(path))
    about = next(reader)
    return about["size"], about["fps"], len(list(reader))


def test_videos_are_small_short_and_complete(tmp_path, monkeypatch):
    monkeypatch.setattr(videos, "MOST_SECONDS", 2)
    env = RecordVideos(Pictures(), tmp_path)
    env.reset()
    for _ in range(1000):
        env.step(0)
        while env.videos._video is not None and env.videos._video.frames.qsize() > 10:  # ffmpeg has time
            time.sleep(0.001)
    assert env.unwrapped.drawn <= 52  # 2 s of 25 pictures: every fourth step, and then none
    env.reset()
    env.videos.finish()
    assert frames_of(tmp_path / "rl-video-episode-0.mp4") == ((320, 240), 25.0, 50)
    env.close()
    assert [path.name for path in tmp_path.iterdir()] == ["rl-video-episode-0.mp4"]  # the second took no step


def test_the_trial_before_training_is_no_episode(tmp_path):
    """A reset and a step, then training begins with a reset: episode 0."""
    env = RecordVideos(Pictures(), tmp_path)
    for steps in (1, 40, 60):
        env.reset()
        for _ in range(steps):
            env.step(0)
    env.close()
    assert {path.name: frames_of(path)[2] for path in tmp_path.iterdir()} == {
        "rl-video-episode-0.mp4": 11,
        "rl-video-episode-1.mp4": 16,
    }


def test_a_run_that_goes_on_keeps_its_videos_and_its_numbers(tmp_path):
    for number in (0, 1, 7):
        (tmp_path / f"rl-video-episode-{number}.mp4").write_bytes(b"of before")
    env = RecordVideos(Pictures(), tmp_path)
    for _ in range(3):  # 7, which it was stopped in, 8 and 9
        env.reset()
        for _ in range(40):
            env.step(0)
    env.close()
    sizes = {int(path.stem.rpartition("-")[2]): path.stat().st_size for path in tmp_path.iterdir()}
    assert sizes == {0: 9, 1: 9, 7: 9, 8: sizes[8]} and sizes[8] > 1000


def test_training_never_waits_for_a_video(tmp_path, monkeypatch):
    """ffmpeg that takes nothing: the video ends where the queue is full, and no third one begins beside two."""
    waits = tmp_path / "ffmpeg"
    waits.write_text("#!/bin/sh\nexec sleep 5\n")
    waits.chmod(0o755)
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", str(waits))
    monkeypatch.setattr(videos, "_PATIENCE_SECONDS", 0.1)
    env = RecordVideos(Pictures(), tmp_path / "videos")
    for _ in range(9):
        env.reset()
        for _ in range(400):
            env.step(0)
    assert env.unwrapped.drawn < 2 * 60
    assert len(env.videos._written) == 2
    env.close()


def test_a_video_that_cannot_be_written_is_one_warning_and_the_last(tmp_path):
    (tmp_path / "file").touch()
    env = RecordVideos(Pictures(), tmp_path / "file/videos")
    with pytest.warns(RuntimeWarning, match=r"stopped recording videos: .*-0.mp4 could not be written") as warned:
        for _ in range(3):
            env.reset()
            env.step(0), env.step(0)
            env.videos.close()
        env.close()
    assert len(warned) == 1


# ---------------------------------------------------------------- parameters


def drawing(samplers, num_envs=3, seed=0, interval=None, env_id="CartPole-v1"):
    return GymnasiumEnvs(env_id, num_envs, seed, parameters=ParameterRandomizer(samplers, interval))


def played(envs, steps, read):
    """What `read` gives of every step."""
    rng, found = np.random.default_rng(0), []
    for _ in range(steps):
        envs.step(rng.integers(2, size=envs.num_envs))
        found.append(read(envs))
    return np.array(found)


def lengths(envs):
    return [env.unwrapped.length for env in envs.unwrapped.envs]


def test_every_episode_draws_from_its_own_stream():
    samplers = {"length": Uniform(0.3, 0.8), "gravity": Gaussian(9.8, 1.0)}
    envs = drawing(samplers)
    envs.reset(seed=5)
    expected = [np.random.default_rng(np.random.SeedSequence(5 + i, spawn_key=(1,))) for i in range(3)]
    drawn = [(Gaussian(9.8, 1.0).sample(rng), Uniform(0.3, 0.8).sample(rng)) for rng in expected]
    assert lengths(envs) == [length for _, length in drawn]
    assert envs.parameters["gravity"].tolist() == [gravity for gravity, _ in drawn]
    assert envs.drain_metrics()["parameters/length"] == (pytest.approx(sum(lengths(envs))), 3)
    over_time = played(envs, 60, lengths)
    changes = np.diff(over_time, axis=0) != 0
    assert 3 < changes.sum() < 15  # with episodes of 10 to 40 steps
    assert over_time.min() >= 0.3 and over_time.max() < 0.8
    for again in (drawing(dict(reversed(samplers.items())), seed=9), envs):  # a resumed run's, and the live one's
        again.reset(seed=5)
        np.testing.assert_array_equal(played(again, 60, lengths), over_time)
    alone = drawing(samplers, 1, seed=7)
    alone.reset()
    np.testing.assert_array_equal(lengths(alone), [drawn[2][1]])  # a worker of a ProcessPool begins at its first seed
    envs.close()


def test_first_states_intervals_and_whole_numbers():
    plain, envs = GymnasiumEnvs("CartPole-v1", 2), drawing({"length": Uniform(0.3, 0.8)}, 2)
    np.testing.assert_array_equal(plain.reset(seed=4)[0], envs.reset(seed=4)[0])
    envs = drawing({"length": Uniform(0.3, 0.8)}, 1, interval=100)
    envs.reset(seed=1)
    over_time = played(envs, 400, lengths)[:, 0]
    changes = np.flatnonzero(np.diff(over_time)) + 1
    assert 2 <= len(changes) <= 4 and (np.diff([0, *changes]) >= 99).all()
    envs = drawing({"max_speed": Uniform(3, 5)}, 4, env_id="Pendulum-v1")
    envs.reset(seed=0)
    assert {type(env.unwrapped.max_speed) for env in envs.unwrapped.envs} == {int}
    assert set(envs.parameters["max_speed"]) == {3, 4}


def test_lessons_take_the_place_of_samplers():
    envs = drawing({"length": Uniform(0.3, 0.8)})
    envs.reset(seed=1)
    envs.set_parameters({"length": 2.0, "gravity": 5.0})
    assert set(played(envs, 60, lengths).flat) == {2.0}
    envs.set_parameters({})
    drawn = lengths(envs)  # for the episodes that are being played
    assert len(set(drawn)) == 3 and all(0.3 <= length < 0.8 for length in drawn)
    assert {env.unwrapped.gravity for env in envs.unwrapped.envs} == {9.8}
    assert (played(envs, 60, lengths)[-1] != drawn).all()


# ---------------------------------------------------------------- observations of entries, environments by class, Atari


def test_entries_stand_one_behind_the_other_and_numbers_are_one_hot():
    envs = GymnasiumEnvs(Entries, num_envs=2, settings={"length": 2})
    space = envs.single_observation_space
    layout = {name: box.shape for name, box in space.entries.items()}
    assert layout == {"flags": (2,), "here": (3,), "seen/0": (2, 1), "seen/1": (5,)}
    assert (space.shape, space.dtype, space.low[5], space.high[5], space.high[4]) == ((12,), np.float32, -4, 4, 1)
    assert envs.reset()[0].tolist() == [[1, 0, 1, 0, 0, -1, 1, 1, 0, 1, 0, 0]] * 2
    assert envs.step(np.zeros(2, int))[0].tolist() == [[1, 0, 0, 1, 0, 0, 2, 0, 1, 0, 1, 0]] * 2
    obs, _, terminated, _, infos = envs.step(np.zeros(2, int))
    assert terminated.all() and infos["final_obs"].tolist() == [[1, 0, 0, 0, 1, 1, 3, 1, 0, 0, 0, 1]] * 2
    assert obs.tolist() == [[1, 0, 1, 0, 0, -1, 1, 1, 0, 1, 0, 0]] * 2


def test_the_layout_of_entries():
    assert GymnasiumEnvs(Seen, 1).single_observation_space.dtype == np.uint8
    assert GymnasiumEnvs(Seen, 1).reset()[0].tolist() == [[7] * 12 + [0, 1]]
    numbered = GymnasiumEnvs(Numbered, 1)
    assert numbered.reset()[0].tolist() == [[0, 1, 0]] and numbered.single_observation_space.dtype == np.float32
    space = GymnasiumEnvs("CartPole-v1", 1).single_observation_space
    assert not hasattr(space, "entries") and space.shape == (4,)
    envs = GymnasiumEnvs(Worded, 1, wrappers=[partial(FilterObservation, filter_keys=["here"])])
    assert envs.reset()[0].tolist() == [[0, 1]]


def test_processes_keep_the_layout():
    pool = ProcessPool(partial(GymnasiumEnvs, Entries, 2), num_workers=1)
    try:
        alone = GymnasiumEnvs(Entries, 2)
        assert list(pool.single_observation_space.entries) == list(alone.single_observation_space.entries)
        np.testing.assert_array_equal(pool.reset(seed=3)[0], alone.reset(seed=3)[0])
    finally:
        pool.close()
    assert pickle.loads(pickle.dumps(ConcatenatedBox({"a": Box(0, 1, (2,))}))).entries["a"].shape == (2,)


def test_minigrid_is_known_by_its_id():
    pytest.importorskip("minigrid")
    wrappers = [partial(FilterObservation, filter_keys=["image", "direction"])]
    envs = GymnasiumEnvs("MiniGrid-Empty-5x5-v0", 2, wrappers=wrappers)
    assert {name: box.shape for name, box in envs.single_observation_space.entries.items()} == {
        "image": (7, 7, 3),
        "direction": (4,),
    }


@pytest.mark.slow
def test_atari_is_the_same_in_any_number_of_threads():
    pytest.importorskip("ale_py")
    rng, games = np.random.default_rng(0), [AtariEnvs("breakout", 2, 5, threads) for threads in (1, 2)]
    first = [game.reset()[0] for game in games]
    assert first[0].shape == (2, 4, 84, 84) and first[0].dtype == np.uint8
    assert games[0].metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    np.testing.assert_array_equal(*first)
    ended = 0
    for _ in range(250):
        actions = rng.integers(4, size=2)
        one, two = (game.step(actions) for game in games)
        for a, b in zip(one[:4], two[:4], strict=True):
            np.testing.assert_array_equal(a, b)
        assert ("final_obs" in one[4]) == bool(one[2].any())
        if one[2].any():
            row = int(one[2].argmax())
            ended += 1
            assert one[4]["_final_obs"][row] and (one[4]["final_obs"][row] != one[0][row]).any()
            np.testing.assert_array_equal(one[4]["final_obs"], two[4]["final_obs"])
    assert ended


def test_atari_takes_every_seed():
    pytest.importorskip("ale_py")
    games = AtariEnvs("breakout", 2)
    first = games.reset(seed=2**32 - 1)[0]
    np.testing.assert_array_equal(first, games.reset(seed=2**31 - 1)[0])
    games.close()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have a display")
def test_a_window_without_a_display_is_refused(monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match=r"^GymnasiumEnvs: render_mode human needs a display; try videos"):
        GymnasiumEnvs("InvertedPendulum-v5", 1, settings={"render_mode": "human"})
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    GymnasiumEnvs("CartPole-v1", 1, settings={"render_mode": "human"}).close()


def test_the_last_infos_of_episodes_become_metrics():
    """Sub-environments with seeds 0, 1, 2 have episodes of 2, 3 and 4 steps; only their last steps count."""
    envs = GymnasiumEnvs(Reported, num_envs=3, seed=0)
    envs.reset()
    rng, last = np.random.default_rng(0), []
    for step in range(1, 13):
        actions = rng.integers(2, size=3)
        envs.step(actions)
        last += [(actions[i], length) for i, length in enumerate((2, 3, 4)) if step % length == 0]
    wins, lengths = np.transpose(last)
    twos = int((lengths == 2).sum())
    assert envs.drain_metrics() == {
        "info/success": (wins.sum(), len(last)),
        "info/distance": (lengths.sum(), len(last)),
        "info/arm/half": (lengths.sum() / 2, len(last)),
        "info/rare": (7 * twos, twos),
    }
    assert envs.drain_metrics() == {}
    envs.close()


def test_action_masks_are_those_of_the_returned_observations():
    """Taxi has them as 0 and 1 in its infos."""
    envs = GymnasiumEnvs("Taxi-v4", num_envs=2, seed=3)
    plain = [gymnasium.make("Taxi-v4") for _ in range(2)]
    told = [env.reset(seed=3 + i)[1] for i, env in enumerate(plain)]
    infos, rng, ended = envs.reset()[1], np.random.default_rng(0), 0
    for _ in range(450):
        assert infos["action_mask"].dtype == np.bool_
        np.testing.assert_array_equal(infos["action_mask"], [info["action_mask"] for info in told])
        actions = rng.integers(6, size=2)
        infos = envs.step(actions)[4]
        for i, env in enumerate(plain):
            _, _, over, cut, told[i] = env.step(actions[i])
            if over or cut:
                told[i], ended = env.reset()[1], ended + 1
    assert ended
    envs.close()


class Parts(gymnasium.Env):
    """Two parts of an action, each with a choice that is forbidden, told as one array or as Gymnasium's tuple."""

    observation_space, action_space = gymnasium.spaces.Box(0, 1, (1,)), gymnasium.spaces.MultiDiscrete([3, 2])

    def __init__(self, whole):
        masks = np.array([0, 1, 1], np.int8), np.array([1, 0], np.int8)
        self.infos = {"action_mask": np.concatenate(masks) if whole else masks}

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), self.infos

    def step(self, action):
        return np.zeros(1, np.float32), 0.0, False, False, self.infos


@pytest.mark.parametrize("whole", [True, False])
def test_masks_of_several_parts_are_one_after_another(whole):
    envs = GymnasiumEnvs(Parts, num_envs=2, settings={"whole": whole})
    for infos in (envs.reset()[1], envs.step(np.ones((2, 2), np.int64))[4]):
        assert infos["action_mask"].dtype == np.bool_
        assert infos["action_mask"].tolist() == [[False, True, True, True, False]] * 2
    envs.close()


class OneArray(gymnasium.Env):
    """All observations are one array, which counts the steps of an episode."""

    observation_space, action_space = gymnasium.spaces.Box(0, 3, (1,)), gymnasium.spaces.Discrete(2)

    def __init__(self):
        self.at = np.zeros(1, np.float32)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.at[:] = 0
        return self.at, {}

    def step(self, action):
        self.at += 1
        return self.at, 0.0, False, bool(self.at[0] == 3), {}


@pytest.mark.filterwarnings("ignore:.*share an object")
def test_an_environment_may_use_one_array_for_all_observations():
    envs = GymnasiumEnvs(OneArray, num_envs=2)
    envs.reset()
    *_, (obs, _, _, truncated, infos) = [envs.step(np.zeros(2, int)) for _ in range(3)]
    assert truncated.all() and obs.tolist() == [[0], [0]] and infos["final_obs"].tolist() == [[3], [3]]
    envs.close()


class OneDict(gymnasium.Env):
    """Every episode succeeds in its second step; all steps and episodes share one dict."""

    observation_space, action_space = gymnasium.spaces.Box(0, 1, (1,)), gymnasium.spaces.Discrete(2)

    def __init__(self):
        self.info = {"goal": {}}

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.steps, self.info["success"], self.info["goal"]["distance"] = 0, False, 2
        return np.zeros(1, np.float32), self.info

    def step(self, action):
        self.steps += 1
        self.info["success"], self.info["goal"]["distance"] = self.steps == 2, 2 - self.steps
        return np.zeros(1, np.float32), 0.0, self.steps == 2, False, self.info


def test_an_environment_may_use_one_dict_for_all_infos():
    envs = GymnasiumEnvs(OneDict, num_envs=2)
    envs.reset()
    for _ in range(4):
        envs.step(np.zeros(2, int))
    assert envs.drain_metrics() == {"info/success": (4, 4), "info/goal/distance": (0, 4)}
    envs.close()


@pytest.mark.slow
def test_a_run_keeps_the_success_rate(tmp_path):
    """In metrics.csv, and as a headline in the summary."""
    command = f"--env_id=tests.envs.adapters.tasks.Reported --num_steps=16 --minibatch_size=32 --runs_dir={tmp_path}"
    cli([*command.split(), "--run_id=run", "--total_timesteps=256", "--accelerator=cpu", "--plain"])
    rows = read_metrics(tmp_path / "run" / "metrics.csv")
    steps, rates = rows["info/success"]
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["success"] == {"start": pytest.approx(rates[0]), "end": pytest.approx(rates[-1])}
    assert steps.tolist() == [64, 128, 192, 256] and (rates > 0).all() and (rates < 1).all()
    assert "info/broken" not in rows


@pytest.mark.slow
def test_ranks_may_report_different_infos(tmp_path):
    """One rank's episodes have a key that the other's lack, and some iterations end no episode on one of them."""
    words = ["--env_id=tests.envs.adapters.tasks.Reported", "--num_envs=1", "--num_steps=2", "--minibatch_size=2"]
    words += ["--devices=2", "--accelerator=cpu", "--plain", f"--runs_dir={tmp_path}", "--run_id=run", "--seed=0"]
    run = subprocess.run(
        [sys.executable, str(ROOT / "train_fabric.py"), *words, "--total_timesteps=64"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    rows = read_metrics(tmp_path / "run" / "metrics.csv")
    assert set(rows["info/rare"][1]) == {7.0} and set(rows["info/distance"][1]) <= {2.0, 2 + 2 / 3, 3.0, 4.0}
    np.testing.assert_array_equal(rows["info/distance"][1], 2 * rows["info/arm/half"][1])
