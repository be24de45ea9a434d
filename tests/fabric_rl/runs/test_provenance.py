"""What a run keeps of its beginning, and that it comes back when the folder is lost."""

import json
import shutil
from pathlib import Path

import pytest
import torch
import yaml

from fabric_rl import Run
from fabric_rl.runs import checkpoint
from fabric_rl.runs.provenance import Weights, digest_of, flat_settings
from fabric_rl.runs.records import file_name
from fabric_rl.runs.resume import load_weights, other_world
from fabric_rl.types import CheckpointError

CONFIG = "seed: 3\ninitialize_from: null\ninference: false\nagent:\n  initialize_from: 7\n"
WEIGHTS = Weights(Path("runs/x/step.ckpt"), {"w": torch.tensor([1.5, -2.0])})


def texts(run):
    return {path.name: path.read_text() for path in run.dir.iterdir() if path.suffix in (".yaml", ".json")}


@pytest.mark.parametrize("name", ["", "  "])
def test_a_run_without_a_name_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match="--run_id is empty; give the run a name"):
        Run.create(tmp_path, name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a:b", "what?", "-x", "n" * 101, "tab\there", "dot.", "a\u202eb", "a\u2028b"])
def test_a_name_that_is_none_on_windows_or_in_a_shell_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match=r"--run_id .* must not begin with a dash, be longer than 100 characters"):
        Run.create(tmp_path, name)


def test_invisible_characters_are_told_and_not_shown(tmp_path):
    with pytest.raises(ValueError, match=r"^--run_id a\\u202eb: must not"):
        Run.create(tmp_path, "a\u202eb")


@pytest.mark.parametrize("name", ["CON", "nul", "Aux.txt", "com1", "LPT9.tar.gz"])
def test_a_name_of_a_device_on_windows_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match=rf"^--run_id {name}: is the name of a device on Windows"):
        Run.create(tmp_path, name)
    assert Run.create(tmp_path, f"{name[0]}{name}").dir.is_dir()


def test_what_is_set_aside_stays_beside_what_was(tmp_path):
    run, state = Run.create(tmp_path, "r"), {"steps": 100, "x": 1}
    for _ in range(3):
        checkpoint.write(run.checkpoints / file_name(200), {"steps": 200})
        good = checkpoint.write(run.checkpoints / file_name(100), state)
        assert good is None and run.go_on_from(run.checkpoints / file_name(100), state) == 1
    names = sorted(path.name for path in (run.checkpoints / "set_aside").iterdir())
    assert names == [f"step_000000000200{number}.ckpt" for number in ("-2", "-3", "")]


def test_a_new_run_keeps_its_settings_as_they_are(tmp_path):
    run = Run.create(tmp_path, "r")
    assert run.provenance.weights() is None
    run.provenance.write(CONFIG)
    assert run.provenance.config.read_text() == CONFIG
    assert set(texts(run)) == {"config.yaml", "environment.json"}


def test_a_run_keeps_a_copy_of_the_weights_it_begins_with(tmp_path):
    run = Run.create(tmp_path, "r [1] #2", weights=WEIGHTS)
    run.provenance.write(CONFIG)
    copy = run.dir / "initial.ckpt"
    expected = {"seed": 3, "initialize_from": str(copy), "inference": False, "agent": {"initialize_from": 7}}
    assert yaml.safe_load(run.provenance.config.read_text()) == expected
    kept = Run(run.dir).provenance.weights()
    assert kept.path == copy and kept.agent["w"].tolist() == [1.5, -2.0]
    assert load_weights(copy).agent["w"].tolist() == [1.5, -2.0]
    assert json.loads((run.dir / "weights.json").read_text())["from"] == str(WEIGHTS.path.absolute())


def test_settings_without_a_word_about_weights_get_one(tmp_path):
    run = Run.create(tmp_path, "r", weights=WEIGHTS)
    run.provenance.write("seed: 3")
    copy = str(run.dir / "initial.ckpt")
    assert yaml.safe_load(run.provenance.config.read_text()) == {"seed": 3, "initialize_from": copy, "inference": False}


def test_how_a_run_began_is_no_changed_setting(tmp_path):
    run = Run.create(tmp_path, "r", weights=WEIGHTS)
    run.provenance.write(CONFIG)
    assert run.provenance.changed_settings(CONFIG.replace("3", "4")) == ["seed: 3 -> 4"]


def test_a_run_that_plays_keeps_what_it_plays_with(tmp_path):
    run = Run.create(tmp_path, "r", weights=Weights(WEIGHTS.path, WEIGHTS.agent, inference=True))
    run.provenance.write(CONFIG)
    settings = yaml.safe_load(run.provenance.config.read_text())
    assert (settings["inference"], settings["initialize_from"]) == (True, str(run.dir / "initial.ckpt"))
    with pytest.raises(
        CheckpointError, match=r"^--resume: run r only plays; .*--initialize_from .*initial.ckpt --inference$"
    ):
        run.provenance.weights()


def test_damaged_weights_are_never_replaced_by_random_ones(tmp_path):
    run = Run.create(tmp_path, "r", weights=WEIGHTS)
    copy = run.dir / "initial.ckpt"
    copy.write_bytes(copy.read_bytes()[:-1])
    with pytest.raises(
        CheckpointError, match=r"no checkpoint yet, and checkpoint .*; start it again with --run_id r --fo"
    ):
        run.provenance.weights()
    copy.unlink()
    with pytest.raises(CheckpointError, match=r"no checkpoint yet, and checkpoint .*No such file"):
        run.provenance.weights()
    (run.dir / "weights.json").unlink()
    copy.mkdir()  # something else of that name
    with pytest.raises(CheckpointError, match="start it again"):
        run.provenance.weights()


def test_what_is_lost_is_written_again(tmp_path):
    run = Run.create(tmp_path, "r", weights=WEIGHTS)
    assert set(texts(run)) == {"weights.json", "environment.json"}  # the settings are not known
    run.provenance.write(CONFIG)
    before = texts(run)
    assert len(before) == 3
    run.provenance.config.unlink()
    (run.dir / "environment.json").write_text("edited")
    run.provenance.ensure()
    assert texts(run) == before | {"environment.json": "edited"}
    shutil.rmtree(run.dir)
    run.provenance.ensure()
    lost = str(run.dir / "initial.ckpt")
    # The copy is lost with the folder: the settings name where it was from.
    config = before["config.yaml"].replace(lost, str(WEIGHTS.path.absolute()))
    digests = digest_of(before["config.yaml"]), digest_of(config)
    assert texts(run) == {each: before[each].replace(*digests) for each in before} | {"config.yaml": config}


def test_a_folder_that_cannot_be_begun_is_removed_and_the_old_run_comes_back(tmp_path):
    old = Run.create(tmp_path, "r")
    (old.checkpoints / "kept").write_text("of worth")
    old.release()
    broken = Weights(WEIGHTS.path, {"w": object()})
    with pytest.raises(TypeError, match="cannot be loaded without executing"):
        Run.create(tmp_path, "r", force=True, weights=broken)
    assert [path.name for path in tmp_path.iterdir()] == ["r"]
    assert (old.checkpoints / "kept").read_text() == "of worth"


def test_parts_that_come_and_go_are_told_as_such(tmp_path):
    with_parts = "sampling: {class_path: PFSPHard, init_args: {power: 2.0}}\ncallbacks: [{class_path: Video}]\n"
    without = "sampling: {class_path: Uniform}\ncallbacks: []\n"
    run = Run.create(tmp_path, "r", config=with_parts)
    lines = ["sampling.class_path: PFSPHard -> Uniform", "sampling.power: 2.0 -> gone"]
    assert run.provenance.changed_settings(without) == [*lines, "callbacks.1.class_path: Video -> gone"]
    run.provenance.write(without)
    lines = ["sampling.class_path: Uniform -> PFSPHard", "sampling.power: None -> 2.0"]
    assert sorted(run.provenance.changed_settings(with_parts)) == ["callbacks.1.class_path: None -> Video", *lines]
    run.provenance.write("callbacks: null\n")
    assert run.provenance.changed_settings("callbacks: []\n") == ["callbacks: None -> []"]


def test_settings_that_came_later_have_not_changed(tmp_path):
    """Those that were left open and are given now have."""
    run = Run.create(tmp_path, "r", config="seed: 1\nprecision: 32-true\n")
    new = "seed: 2\nprecision: 32-true\nexact_resume: false\nestimator:\n  class_path: fabric_rl.GAE\nnum_threads: 2\n"
    assert run.provenance.changed_settings(new) == ["seed: 1 -> 2"]
    changed = run.provenance.changed_settings("seed: 1\nprecision: 32-true\nexact_resume: true\nminibatch_size: 64\n")
    assert changed == ["exact_resume: None -> True", "minibatch_size: None -> 64"]


def pool(**settings):
    return {"class_path": "envs.RocketSimPool", "init_args": {"num_arenas": 8, "team_size": 1, "obs": None} | settings}


def obs(name, **settings):
    return {"class_path": f"envs.{name}", "init_args": settings}


IN_PROCESSES = {"class_path": "envs.ProcessPool", "init_args": {"factory": pool(team_size=2)}}
ADVANCED = pool(obs=obs("AdvancedObs", zero_padding=2))


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (pool(num_arenas=64, obs=obs("AdvancedObs", zero_padding=2, came_later=1)), ""),
        (pool(obs=obs("DefaultObs", zero_padding=3)), "--env.obs envs.AdvancedObs (yours: envs.DefaultObs)"),
        (pool(obs=obs("AdvancedObs", zero_padding=3)), "--env.obs.zero_padding 2 (yours: 3)"),
        (IN_PROCESSES, "--env.team_size 1 (yours: 2), --env.obs envs.AdvancedObs (yours: the default)"),
        ({"class_path": "envs.GymnasiumEnvs"}, "--env envs.RocketSimPool (yours: envs.GymnasiumEnvs)"),
    ],
)
def test_what_gives_an_environment_other_spaces_is_told(own, said):
    assert other_world(flat_settings({"env": ADVANCED}), flat_settings({"env": own})) == said


def test_a_task_by_its_name_is_another_world():
    cartpole, acrobot = ({"env": None, "env_id": name} for name in ("CartPole-v1", "Acrobot-v1"))
    assert other_world(cartpole, acrobot) == "--env_id CartPole-v1 (yours: Acrobot-v1)"
    assert other_world(cartpole, cartpole) == ""
