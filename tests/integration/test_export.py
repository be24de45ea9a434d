"""`fabric-rl export --format onnx|torchscript` of runs that were really trained: it runs elsewhere, and plays here."""

import json
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from envs import DefaultObs, LookupTable, RocketSimPool
from envs.matches.matches import PoolFactory
from envs.replays.replay import read_replay
from fabric_rl import load_trained
from fabric_rl.evaluation.players import load_guests, trained_player
from fabric_rl.rlbot.bot_files import BOT_FILES
from fabric_rl.runs.trained import policy
from tests.command import command
from tests.runs import HIDDEN, POOL
from train_fabric import cli


def played(folder, *argv):
    """What an evaluation writes."""
    assert command("evaluate", *argv, "--out", folder / "a.json") == 0
    return json.loads((folder / "a.json").read_text())


@pytest.fixture(scope="module")
def policies(rocket_runs, tmp_path_factory):
    """Runs, and two of them as policies: of an agent with memory, and of one with a combined layout and masks."""
    folder = shutil.copytree(rocket_runs, tmp_path_factory.mktemp("policies") / "runs")
    for name, form in (("memory", "onnx"), ("stacked", "torchscript")):
        assert command("export", name, folder / f"{name}_{form}", "--format", form, "--runs_dir", folder) == 0
    return folder


def test_torchscript_is_loaded_only_if_it_is_trusted(policies, tmp_path, capsys):
    folder, few = policies / "stacked_torchscript", ["--matches", 2, "--minutes", 0.02, "--runs_dir", policies]
    for name in (folder, folder / "policy.pt"):
        for words in (["evaluate", name, "idle"], ["league", name, "idle"], ["record", name, "idle"]):
            assert command(*words, *few[2 * (words[0] == "record") :]) == 2
            assert "policy.pt is TorchScript, a program that can write files; if you trust" in capsys.readouterr().err
        with pytest.raises(ValueError, match=r"^--self_play.guests: .*policy\.pt is TorchScript"):
            load_guests([str(name)], partial(RocketSimPool, 2), str(policies), seed=0)
        assert load_trained(name, trust_torchscript=True).path == folder / "policy.pt"
    assert command("evaluate", folder, "idle", "--trust_torchscript", *few) == 0


def test_a_model_beside_weights_is_ignored(policies, tmp_path):
    """Somebody has put it into a run, a milestone and an export of weights."""
    command("export", "stacked", tmp_path / "weights", "--runs_dir", policies)
    run = shutil.copytree(policies / "stacked", tmp_path / "run")
    shutil.copytree(run / "checkpoints", run / "milestones/main/000000000064", dirs_exist_ok=True)
    for folder in (tmp_path / "weights", run, run / "milestones/main/000000000064"):
        for file in ("policy.pt", "metadata.json"):
            shutil.copy(policies / "stacked_torchscript" / file, folder)
        for trusted in (False, True):
            assert load_trained(folder, trust_torchscript=trusted).path.suffix == ".ckpt"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("run", "exported"), [("memory", "memory_onnx/policy.onnx"), ("stacked", "stacked_torchscript")]
)
def test_an_exported_policy_plays_the_very_games_of_its_run(policies, tmp_path, run, exported):
    flags = ["--matches", 2, "--minutes", 0.1, "--runs_dir", policies, "--trust_torchscript"]
    games = [played(tmp_path, name, "chaser", *flags) for name in (run, policies / exported)]
    assert games[0].pop("player") != games[1].pop("player") and games[0] == games[1]


@pytest.mark.slow
def test_an_exported_policy_plays_everywhere(policies, tmp_path):
    folder, trusted = policies / "memory_onnx", ["--runs_dir", policies, "--trust_torchscript"]
    assert command("league", folder, "stacked_torchscript", "idle", "--matches", 2, "--minutes", 0.02, *trusted) == 0
    assert command("record", folder, "idle", "--minutes", 0.05, "--out", tmp_path / "game.frl") == 0
    assert read_replay(tmp_path / "game.frl").games[0].columns["action_probabilities"].max() > 0
    if find_spec("rlgym_tools"):
        assert command("exam", folder, "--packs", "800B-18F9-C2F1-ACEE", "--json", tmp_path / "exam.json") == 0
    flags = [*POOL, *HIDDEN, "--runs_dir", tmp_path, "--run_id", "r"]
    opponents = ["--self_play", "SelfPlay", "--self_play.guests", f"[{folder}]"]
    cli([str(word) for word in [*flags, *opponents, "--self_play.play_against_latest_model_ratio", "0"]])


def test_an_exported_folder_runs_without_this_framework(policies, tmp_path):
    shutil.copytree(policies / "memory_onnx", tmp_path / "bot")
    code = "import sys, runpy; sys.modules.update(dict.fromkeys(['torch', 'fabric_rl', 'envs', 'agents'])); "
    code += "sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"

    def play(*words):
        line = [sys.executable, "-c", code, tmp_path / "bot" / "play.py", *words]
        return subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=100)

    assert len((tmp_path / "bot" / "play.py").read_text().splitlines()) <= 60
    assert (shown := play()).returncode == 0 and "state 9: action " in shown.stdout, shown.stderr
    assert (checked := play("--check")).returncode == 0 and checked.stdout.endswith(": all outputs match check.npz\n")
    known = dict(np.load(tmp_path / "bot" / "check.npz"))
    known["action"][3] += 1
    np.savez(tmp_path / "bot" / "check.npz", **known)
    assert (wrong := play("--check")).returncode == 1 and "different from check.npz: action" in wrong.stderr

    about = json.loads((tmp_path / "bot" / "metadata.json").read_text())
    assert about["layout"]["actions"]["table"] == LookupTable().table.tolist()
    columns = about["layout"]["observations"]["columns"]
    assert columns[0]["columns"] == "0-2" and columns[-1]["columns"].endswith(
        str(about["inputs"]["obs"]["shape"][1] - 1)
    )
    assert (about["tick_skip"], about["action_delay_ticks"], about["team_sizes"]) == (8, 1, [[1, 1]])
    assert (about["run"], about["checkpoint"]) == ("memory", "checkpoints/step_000000000064.ckpt")


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_ctrl_c_leaves_the_old_export(policies, tmp_path, monkeypatch, number):
    folder = tmp_path / "an export"
    words = ["export", "plain", folder, "--runs_dir", policies]
    assert command(*words) == 0
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    rename, names = Path.rename, []

    def interrupted(source, target):
        names.append(source.name)
        if len(names) == number:
            raise KeyboardInterrupt
        return rename(source, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with suppress(KeyboardInterrupt):
        assert command(*words, "--force") in (1, 130)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


@pytest.mark.slow
def test_force_writes_over_an_export_and_what_fails_leaves_it(policies, tmp_path, capsys, monkeypatch):
    folder = tmp_path / "an export"

    def export(*words):
        return command("export", "plain", folder, *words, "--runs_dir", policies)

    def files():
        return sorted(file.name for file in folder.iterdir())

    assert export("--format", "onnx") == 0
    assert f"python '{folder.as_posix()}/play.py' --check" in capsys.readouterr().out
    (folder / "diary.txt").write_text("dear diary")
    (folder / "lib").mkdir()  # the user's own: this is no bot
    assert export("--force") == 0
    assert files() == ["config.yaml", "diary.txt", "lib", "weights.ckpt"]
    for file in (*BOT_FILES, "metadata.json"):
        (folder / file).touch()
    assert export("--force") == 0
    assert files() == ["config.yaml", "diary.txt", "weights.ckpt"]

    before = (folder / "weights.ckpt").read_bytes()
    (folder / "play.py").write_text("mine")
    (folder / "policy.onnx").mkdir()
    assert export("--force", "--format", "onnx") == 2
    assert (
        "contains files that are not of an export: play.py, policy.onnx; choose a new folder" in capsys.readouterr().err
    )
    (folder / "policy.onnx").rmdir()
    (folder / "play.py").unlink()
    rename, names = Path.rename, []

    def no_space(source, target):
        names.append(source.name)
        if len(names) == 4:  # the old ones are away, one of the new ones is there
            raise OSError(28, "No space left on device")
        return rename(source, target)

    with monkeypatch.context() as full:
        full.setattr(Path, "rename", no_space)
        assert export("--force", "--format", "onnx") == 2
    assert "No space left" in capsys.readouterr().err
    assert files() == ["config.yaml", "diary.txt", "weights.ckpt"]
    assert (folder / "weights.ckpt").read_bytes() == before


def test_mistakes_with_exports_are_one_line(policies, tmp_path, capsys, monkeypatch):
    def error(*words):
        assert command(*words, "--runs_dir", policies) == 2
        text = capsys.readouterr().err
        assert text.count("\n") == 1
        return text

    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "diary.txt").write_text("dear diary")
    new, onnx = tmp_path / "new", ["--format", "onnx"]
    assert "mine exists; choose a new folder, or add --force" in error("export", "plain", tmp_path / "mine", *onnx)
    assert "memory_onnx has already been exported; name the run" in error("export", "memory_onnx", new, *onnx)
    assert "--format: " in error("export", "plain", new, "--format", "pickle")
    assert "plain#striker: the agent has no roles" in error("export", "plain#striker", new, *onnx)
    assert "one role (striker) needs --format onnx" in error("export", "plain#striker", new)
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "onnx", None)
        assert "needs onnx; pip install onnx onnxruntime" in error("export", "plain", new, *onnx)
    assert not new.exists() and len(list((tmp_path / "mine").iterdir())) == 1
    for name in ("play.py", "config.yaml"):
        (tmp_path / "mine" / name).write_text("mine")
        assert "mine contains files, but not an export to overwrite" in error(
            "export", "plain", tmp_path / "mine", "--force"
        )
        assert (tmp_path / "mine" / name).read_text() == "mine"

    shutil.copytree(policies / "memory_onnx", new)
    (tmp_path / "theirs.onnx").write_bytes(b"theirs")
    assert "theirs.onnx: no config.yaml in the folders above it" in error("evaluate", tmp_path / "theirs.onnx")
    assert "memory_onnx was trained for 1v1, not 2v2" in error("evaluate", "memory_onnx", "--team_size", 2)
    about = json.loads((new / "metadata.json").read_text())
    about["layout"]["actions"]["table"][7][1] = 0.25
    (new / "metadata.json").write_text(json.dumps(about))
    assert "new/policy.onnx: the actions in metadata.json differ from those" in error("evaluate", new)
    (new / "policy.onnx").write_bytes(b"cut")
    assert "new/policy.onnx is damaged" in error("record", new)
    env = partial(RocketSimPool, 2)
    with pytest.raises(ValueError, match=r"^--self_play.guests: '.*new': .*policy.onnx is damaged"):
        load_guests([str(new)], env, str(policies), seed=0)


@pytest.mark.slow
def test_one_role_is_exported(tmp_path, capsys):
    ppo = "class_path: agents.PPOLightningAgent"
    roles = f"{{blue: {{{ppo}}}, orange: {{{ppo}, init_args: {{layer_norm: true}}}}}}"
    flags = [*POOL, "--env.obs", "envs.TeamRoleObs", "--env.obs.inner", "envs.DefaultObs"]
    flags += ["--agent", "agents.RolesAgent", "--agent.roles", roles, "--runs_dir", str(tmp_path), "--run_id", "two"]
    cli(flags)
    words = ["--format", "onnx", "--runs_dir", tmp_path]
    assert command("export", "two", tmp_path / "bot", *words) == 2
    assert "two: export one role at a time: two#ROLE with one of blue, orange" in capsys.readouterr().err
    assert command("export", "two#orange", tmp_path / "bot", *words) == 0
    flags = ["idle", "--matches", 2, "--minutes", 0.1, "--runs_dir", tmp_path]
    games = [played(tmp_path, name, *flags) for name in ("two#orange", tmp_path / "bot")]
    assert games[0].pop("player") != games[1].pop("player") and games[0] == games[1]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["onnx", pytest.param("torchscript", marks=pytest.mark.slow)])
def test_the_same_decisions_in_ten_thousand_states(form, tmp_path):
    assert command("export", "school_1v1", tmp_path / "bot", "--format", form) == 0
    pool = PoolFactory(load_trained("school_1v1").env).build(num_arenas=64, num_threads=2)
    spaces = pool.single_observation_space, pool.single_action_space
    own = load_trained("school_1v1"), load_trained(tmp_path / "bot", trust_torchscript=True)
    run, bot = (trained.agent(*spaces) for trained in own)
    ours, theirs, begins = policy(run), policy(bot), np.zeros(pool.num_envs, bool)
    obs, same, count = pool.reset(seed=7)[0], 0, 0
    for _ in range(80):
        chosen = ours(obs, begins)
        same, count = same + int((chosen == theirs(obs, begins)).sum()), count + len(obs)
        obs = pool.step(chosen)[0]
    pool.close()
    assert same == count == 10_240


def test_an_agent_of_several_sizes_plays_those_with_observations_of_its_shape():
    sizes = [(2, 2), (1, 1)]
    without, padded = (partial(RocketSimPool, team_size=sizes, obs=DefaultObs(zero_padding=n)) for n in (None, 3))
    assert PoolFactory(without).playable_sizes() == [(2, 2)] and PoolFactory(padded).playable_sizes() == sizes
    trained = replace(load_trained("school_1v1"), env=without)
    message = "school_1v1 was trained for 2v2 and 1v1 without zero_padding, so it cannot play 1v1 here; choose "
    with pytest.raises(ValueError, match=re.escape(f"{message}--team_size 2")):
        trained_player(trained, False, False).build(1, 8)
