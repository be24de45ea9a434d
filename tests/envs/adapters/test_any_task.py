"""Observations of entries as vectors, environments by class, Atari: what --env_id and the like can name."""

import pickle
from functools import partial

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import FilterObservation

from envs import AtariEnvs, GymnasiumEnvs, ProcessPool
from envs.adapters.gymnasium_envs import EntriesBox, _entries
from tests.envs.adapters.tasks import Entries, Numbered, Of, Seen, Worded


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


def test_pixels_stay_bytes_and_numbered_observations_are_floats():
    assert GymnasiumEnvs(Seen, 1).single_observation_space.dtype == np.uint8
    assert GymnasiumEnvs(Seen, 1).reset()[0].tolist() == [[7] * 12 + [0, 1]]
    numbered = GymnasiumEnvs(Numbered, 1)
    assert numbered.reset()[0].tolist() == [[0, 1, 0]] and numbered.single_observation_space.dtype == np.float32


def test_what_is_an_array_stays_as_it_is():
    space = GymnasiumEnvs("CartPole-v1", 1).single_observation_space
    assert not hasattr(space, "entries") and space.shape == (4,)


SLASH = Dict({"a/b": Box(0, 1, (2,)), "a": Dict(b=Box(0, 1, (2,)))})


def test_processes_keep_the_layout():
    pool = ProcessPool(partial(GymnasiumEnvs, Entries, 2), num_workers=1)
    try:
        alone = GymnasiumEnvs(Entries, 2)
        assert list(pool.single_observation_space.entries) == list(alone.single_observation_space.entries)
        np.testing.assert_array_equal(pool.reset(seed=3)[0], alone.reset(seed=3)[0])
    finally:
        pool.close()
    assert pickle.loads(pickle.dumps(EntriesBox({"a": Box(0, 1, (2,))}))).entries["a"].shape == (2,)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: GymnasiumEnvs(Worded, 1), r"observation said, a Text; leave it out: .*filter_keys=\[here\]$"),
        (lambda: GymnasiumEnvs(Worded, 1, settings={"only": True}), "observation itself, a Text; put a wrapper"),
        (lambda: GymnasiumEnvs(Entries, 1, settings={"size": 3}), "--env_id Entries: --env_kwargs: .* 'size'"),
        (lambda: GymnasiumEnvs("my_file.Nothing", 1), "a class of your own goes by its path"),
        (lambda: GymnasiumEnvs(Of, 1, settings={"space": SLASH}), "two observations are called a/b; name them without"),
        (
            lambda: GymnasiumEnvs(Of, 1, settings={"space": Dict({})}),
            "--env_id Of: An empty Dict observation space is not allowed. Give",
        ),
        (
            lambda: GymnasiumEnvs(Of, 1, settings={"space": Dict(a=Dict({}))}),
            "An empty Dict observation space is not allowed",
        ),
        (lambda: _entries(Dict(a=Dict({})), ""), "observation a, an empty Dict; leave it out by a wrapper"),
        (lambda: AtariEnvs("brakeout", 1), "AtariEnvs: brakeout is not a ROM"),
        (lambda: AtariEnvs("breakout", 1, settings={"colours": 3}), "AtariEnvs: .* 'colours'"),
        (lambda: AtariEnvs("breakout", 0), "num_envs must be at least 1"),
    ],
)
def test_bad_input_is_one_clear_line(build, message):
    if "AtariEnvs:" in message:
        pytest.importorskip("ale_py")
    with pytest.raises(ValueError, match=message) as caught:
        build()
    assert "\n" not in str(caught.value)


def test_words_are_left_out_by_a_wrapper():
    envs = GymnasiumEnvs(Worded, 1, wrappers=[partial(FilterObservation, filter_keys=["here"])])
    assert envs.reset()[0].tolist() == [[0, 1]]


def test_minigrid_is_known_by_its_id():
    pytest.importorskip("minigrid")
    wrappers = [partial(FilterObservation, filter_keys=["image", "direction"])]
    envs = GymnasiumEnvs("MiniGrid-Empty-5x5-v0", 2, wrappers=wrappers)
    assert {name: box.shape for name, box in envs.single_observation_space.entries.items()} == {
        "image": (7, 7, 3),
        "direction": (4,),
    }


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
