"""Agents for teams of another size: they do as before with what they saw before."""

import re
from contextlib import closing

import numpy as np
import pytest
import torch
import yaml

import envs
from agents import PPOLightningAgent
from envs import (
    AdvancedObs,
    AdvancedObsPlus,
    DefaultObs,
    EntityObs,
    RelativeObs,
    RocketSimPool,
    SlotRoleObs,
    StackedObs,
)
from fabric_rl import load_trained
from fabric_rl.commands.export import _moved, kept_columns
from fabric_rl.runs import checkpoint
from fabric_rl.runs.provenance import CONFIG, EXPORTED
from tests.command import command

BUILDERS = [
    AdvancedObs(),
    AdvancedObsPlus(),
    RelativeObs(),
    DefaultObs(zero_padding=None),
    StackedObs(AdvancedObsPlus(), 2),
    SlotRoleObs(AdvancedObsPlus()),
]


@pytest.mark.parametrize("builder", BUILDERS, ids=lambda builder: type(builder).__name__)
@pytest.mark.parametrize(("old", "new"), [((1, 1), (3, 3)), ((3, 3), (1, 1)), ((2, 2), (3, 3))])
def test_columns_of_the_same_car_follow_it(builder, old, new):
    """In a game of 3v3 from which cars are taken, the others' columns hold the same numbers."""
    kept, _ = kept_columns(builder, old, new)
    before, after = builder.columns(*old), builder.columns(*new)
    stem = next(name[:-1] for name in after if re.fullmatch("(frame_1/)?(other|car)_0", name))
    first = int(stem.endswith("car_"))
    names = {
        (1, 1): [None, None, 0, None, None], (2, 2): [0, None, 1, 2, None], (3, 3): [0, 1, 2, 3, 4],
    }  # fmt: skip
    for was, now in zip(names[old], names[new], strict=True):
        if now is not None:
            columns = kept[after[f"{stem}{now + first}"]]
            place = None if was is None else before[f"{stem}{was + first}"]
            expected = np.full(len(columns), -1) if place is None else np.arange(place.start, place.stop)
            assert columns.tolist() == expected.tolist()
    same = "touch_time" if "touch_time" in after else "ball_vel"
    assert all(kept[after[name]].tolist() == list(range(*before[name].indices(999))) for name in after if same in name)


@pytest.mark.slow
def test_a_1v1_bot_begins_a_2v2(tmp_path, capsys):
    assert command("export", "school_1v1", tmp_path / "duo", "--team_size", "2") == 0
    solo, duo = load_trained("school_1v1"), load_trained(tmp_path / "duo")
    with torch.no_grad():
        pool = RocketSimPool(8, 2, obs=AdvancedObsPlus(), num_threads=1, seed=3)
        obs = torch.from_numpy(pool.reset()[0])
        columns, _ = kept_columns(AdvancedObsPlus(), (1, 1), (2, 2))
        seen = torch.zeros(len(obs), 140)
        seen[:, torch.from_numpy(columns[columns >= 0])] = obs[:, torch.from_numpy(columns >= 0)]
        small = RocketSimPool(1, 1, obs=AdvancedObsPlus(), num_threads=1)
        old = solo.agent(small.single_observation_space, small.single_action_space)
        new = duo.agent(pool.single_observation_space, pool.single_action_space)
        assert torch.allclose(new.value(obs), old.value(seen), atol=1e-5)
        assert duo.env(num_arenas=1, num_threads=1).num_envs == 4
        pool.close()
        small.close()
    small_match = ["--matches", "2", "--minutes", "0.05"]
    assert command("evaluate", tmp_path / "duo", "chaser", *small_match) == 0
    assert "2v2" in capsys.readouterr().out


@pytest.mark.parametrize("builder", ["DefaultObs", "AdvancedObsPlus"])
@pytest.mark.parametrize("padding", [None, 3])
def test_nobody_plays_otherwise_for_cars_that_it_never_saw(tmp_path, builder, padding):
    """Also where the observation had room for them, and where observations are normalised."""
    obs = {"class_path": f"envs.{builder}", "init_args": {"zero_padding": padding}}
    settings = {
        "env": {"class_path": "envs.RocketSimPool", "init_args": {"num_arenas": 2, "team_size": 1, "obs": obs}},
        "agent": {"class_path": "agents.PPOLightningAgent", "init_args": {"normalize_obs": True}},
    }
    (tmp_path / "solo").mkdir()
    (tmp_path / "solo" / CONFIG).write_text(yaml.safe_dump(settings))
    pool = RocketSimPool(2, 1, obs=getattr(envs, builder)(zero_padding=padding), num_threads=1, seed=1)
    agent = PPOLightningAgent(pool.single_observation_space, pool.single_action_space, normalize_obs=True)
    seen = [pool.reset()[0], *(pool.step(np.full(4, number))[0] for number in range(60))]
    agent.normalizer.update(torch.from_numpy(np.concatenate(seen)))
    checkpoint.write(tmp_path / "solo" / EXPORTED, {"agent": agent.state_dict()})
    pool.close()
    assert command("export", tmp_path / "solo", tmp_path / "duo", "--team_size", "2") == 0
    duo = load_trained(tmp_path / "duo")
    with closing(duo.env(num_arenas=2, num_threads=1, seed=2)) as pool, torch.no_grad():
        made = duo.agent(pool.single_observation_space, pool.single_action_space)
        shown = torch.from_numpy(np.concatenate([pool.reset()[0], *(pool.step(np.full(8, n))[0] for n in range(60))]))
        stem = "car" if builder == "DefaultObs" else "other"
        columns = pool.obs_builder.columns(2, 2)
        mate, first = (1, 3 if padding else 2) if stem == "car" else (0, 2 if padding else 1)
        for number in (mate, first + 1):
            without = shown.clone()
            without[:, columns[f"{stem}_{number}"]] = 0
            assert not torch.equal(without, shown)
            assert torch.equal(made.value(without), made.value(shown))
        without = shown.clone()
        without[:, columns[f"{stem}_{first}"]] = 0
        assert not torch.equal(made.value(without), made.value(shown))
        moments = {key: value for key, value in made.state_dict().items() if key.endswith((".mean", ".m2"))}
        assert moments
        for value in moments.values():
            opponent = value[columns[f"{stem}_{first}"]]
            assert opponent.abs().sum() > 0
            assert torch.equal(value[columns[f"{stem}_{mate}"]], opponent)
            assert torch.equal(value[columns[f"{stem}_{first + 1}"]], opponent)


def test_uneven_teams_have_no_allies_to_keep():
    with pytest.raises(ValueError, match="games of 1 against 2, not in even teams"):
        kept_columns(AdvancedObsPlus(), (1, 2), (2, 2))


def test_one_set_of_weights_for_all_cars_stays():
    kept, like = kept_columns(EntityObs(), (1, 1), (2, 2))
    assert kept.tolist() == like.tolist() == list(range(35))


def test_actions_that_a_critic_reads_after_the_observation_stay():
    """As of `POCAAgent`, and of SAC with continuous actions."""
    old, new, columns = torch.arange(10.0).view(2, 5), torch.ones(2, 6), np.array([0, 2, -1, 1])
    assert _moved(old, new, columns, columns).tolist() == [[0, 2, 0, 1, 3, 4], [5, 7, 0, 6, 8, 9]]
    assert _moved(old[:, :3], new[:, :4], columns, columns).tolist() == [[0, 2, 0, 1], [5, 7, 0, 6]]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--team_size", "9"], r"team_size .* 0 to 4 cars per team"),
        (
            ["--team_size", "2", "--format", "onnx"],
            "--team_size needs --format weights; export the weights first, then their folder with --format onnx",
        ),
    ],
)
def test_what_cannot_be(tmp_path, capsys, words, said):
    assert command("export", "school_1v1", tmp_path / "duo", *words) != 0
    assert re.search(said, capsys.readouterr().err)
    assert not (tmp_path / "duo").exists()
