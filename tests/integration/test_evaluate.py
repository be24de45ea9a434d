"""`load_trained` and `fabric-rl evaluate` on runs that were really trained."""

import json
import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from gymnasium import spaces

from envs import LookupTable
from fabric_rl import load_trained
from fabric_rl.evaluation.players import MatchSettings, load_player
from fabric_rl.evaluation.settings import PlaySettings
from fabric_rl.runs.trained import policy
from fabric_rl.types import CheckpointError
from tests.command import command
from tests.runs import HIDDEN, POOL
from train_fabric import cli


@pytest.fixture
def runs(rocket_runs):
    return rocket_runs


def evaluate(*argv):
    return command("evaluate", *argv)


def test_trained_agent_is_that_of_the_run(runs):
    trained = load_trained("plain", runs)
    pool = trained.env(seed=0)
    agent = trained.agent(pool.single_observation_space, pool.single_action_space)
    saved = torch.load(trained.path, weights_only=True)["agent"]
    assert all(torch.equal(tensor, saved[name]) for name, tensor in agent.state_dict().items())
    assert len(pool.arenas) == 2  # the run's own setting


def test_agent_for_other_spaces_is_refused(runs):
    with pytest.raises(
        CheckpointError, match=r"64.ckpt does not fit PPOLightningAgent.*\[16, 92\] in the checkpoint, \[16, 7\]"
    ):
        load_trained(runs / "plain").agent(spaces.Box(-1, 1, (7,)), spaces.Discrete(90))


def test_checkpoint_without_settings_is_refused(runs, tmp_path):
    copy = tmp_path / "step_000000000064.ckpt"
    copy.write_bytes((runs / "plain" / "checkpoints" / "step_000000000064.ckpt").read_bytes())
    with pytest.raises(CheckpointError, match=r"no config\.yaml in the folders above it"):
        load_trained(copy)


def test_a_match_names_agents_that_were_trained_with_other_times(runs):
    agent, bot = (load_player(name, False, str(runs)) for name in ("plain", "chaser"))
    usual, asked = "agents take their most probable actions", PlaySettings(tick_skip=4)
    assert MatchSettings.of([bot, agent], PlaySettings()).remarks == (usual,)
    found = MatchSettings.of([bot, agent], asked).remarks
    assert found == (usual, "plain was trained with tick_skip 8, but plays here with 4")
    assert MatchSettings.of([agent, agent], asked).remarks == found  # once
    assert MatchSettings.of([bot], asked).remarks == ()


@pytest.mark.slow
def test_an_exported_agent_goes_on_without_its_run(runs, tmp_path, capsys):
    folder, weights = tmp_path / "bots" / "mine", load_trained("plain", runs)._weights
    assert command("export", "plain", folder, "--runs_dir", runs) == 0
    assert sorted(file.name for file in folder.iterdir()) == ["config.yaml", "weights.ckpt"]
    assert "written: " in capsys.readouterr().out
    again = load_trained(folder)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in again._weights.items())
    assert str(runs) not in (folder / "config.yaml").read_text()
    assert evaluate(folder, "idle", "--matches", 1, "--minutes", 0.05) == 0
    flags = ["--config", str(folder / "config.yaml"), *POOL[2:], "--runs_dir", str(tmp_path)]
    cli([*flags, "--initialize_from", str(folder), "--run_id", "next"])
    initial = torch.load(tmp_path / "next" / "initial.ckpt", weights_only=True)["agent"]
    assert all(torch.equal(tensor, weights[name]) for name, tensor in initial.items())

    assert command("export", "plain", folder, "--runs_dir", runs) == 2
    assert f"{folder} exists; choose a new folder, or add --force" in capsys.readouterr().err
    assert command("export", "no_such", tmp_path / "x", "--runs_dir", runs) == 2
    assert "agent no_such: no such checkpoint, run or milestone" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_the_agent_that_comes_with_it_touches_and_scores(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert evaluate("school_1v1", "idle", "--matches", 20, "--minutes", 2, "--out", "a.json") == 0
    found = json.loads((tmp_path / "a.json").read_text())
    assert found["difference_interval_95"][0] > 0
    assert found["touches_per_minute"][0] > 4
    assert load_trained("school_1v1").path.stat().st_size < 5e6


def test_policy_remembers_until_an_episode_begins(runs):
    trained = load_trained("memory", runs)
    pool = trained.env(seed=0)
    agent = trained.agent(pool.single_observation_space, pool.single_action_space)
    choose = policy(agent)
    obs, _ = pool.reset()
    state, expected = torch.zeros(len(obs), agent.memory_size), []
    with torch.no_grad():
        for step in range(3):
            state[:2] = 0 if step == 2 else state[:2]
            out = agent.act(torch.from_numpy(obs * (step + 1)), state, deterministic=True)
            state = out.state
            expected.append(out.action.numpy())
    begins = np.zeros((3, len(obs)), bool)
    begins[0], begins[2, :2] = True, True
    actions = [choose(obs * (step + 1), begins[step]) for step in range(3)]
    assert all((ours == theirs).all() for ours, theirs in zip(actions, expected, strict=True))
    assert choose(obs[:2], np.ones(2, bool)).shape == (2,)  # other games


def played(folder, *argv):
    """What a command writes."""
    assert evaluate(*argv, "--out", folder / "a.json") == 0
    return json.loads((folder / "a.json").read_text())


@pytest.mark.slow
def test_matches_of_runs_that_see_and_act_differently(runs, tmp_path, capsys):
    milestone = next((runs / "stacked" / "milestones").glob("*/*"))
    command = [milestone, "plain", "--matches", "2", "--minutes", "0.1", "--runs_dir", runs]
    first = played(tmp_path, *command)
    output, errors = capsys.readouterr()
    assert "2 matches of 0.1 minutes, 1v1; agents take their most probable actions" in output
    assert "goal difference per match:" in output
    assert errors.count("\n") == errors.count("2 matches: ") + errors.count("there will be no interval: 1 pair") > 0
    assert first == played(tmp_path, *command)
    assert first["wins"] + first["draws"] + first["losses"] == first["matches"] == 2


@pytest.mark.slow
def test_the_milestones_of_a_run_are_a_league(runs, tmp_path, capsys):
    shutil.copytree(runs / "stacked", tmp_path / "two")
    first = next((tmp_path / "two" / "milestones").glob("*/*"))
    shutil.copytree(first, first.with_name("000000000032"))
    few = ["--matches", 2, "--minutes", 0.02, "--runs_dir", tmp_path]
    assert command("league", "two", *few) == 0
    found = json.loads((tmp_path / "two" / "league.json").read_text())
    assert found["names"] == ["main/32", "main/64"] and [row["steps"] for row in found["ratings"]] == [32, 64]
    assert found["payoff"][0][1] == 0.5  # the same weights
    assert "main/64" in capsys.readouterr().out
    shutil.rmtree(first)
    assert command("league", "two", *few) == 2
    assert "two has 1 milestone, but a league needs two; train with --milestone_interval" in capsys.readouterr().err


@pytest.mark.slow
def test_sampled_actions_come_from_a_generator_of_the_players_own(runs, tmp_path, capsys):
    agent = load_trained("plain", runs).agent(spaces.Box(-1, 1, (92,)), spaces.Discrete(90))
    obs, begins = np.zeros((50, 92), np.float32), np.zeros(50, bool)
    before = torch.get_rng_state()
    first, other = policy(agent, False, seed=3), policy(agent, False, seed=4)
    drawn = [first(obs, begins), other(obs, begins), first(obs, begins)]
    assert (torch.get_rng_state() == before).all()
    torch.rand(1)
    again = policy(agent, False, seed=3)
    assert (again(obs, begins) == drawn[0]).all() and (again(obs, begins) == drawn[2]).all()
    assert (drawn[0] != drawn[1]).any() and (drawn[0] != drawn[2]).any()

    command = ["plain", "memory", "--sample", "--matches", "3", "--minutes", "0.02", "--runs_dir", runs]
    assert played(tmp_path, *command)["sample"] is True
    assert "4 matches of 0.02 minutes, 1v1; agents sample their actions" in capsys.readouterr().out


@pytest.mark.slow
def test_teams_are_as_large_as_trained_unless_asked(runs, tmp_path, capsys):
    flags = ["--matches", "2", "--minutes", "0.01", "--runs_dir", runs]
    assert [played(tmp_path, *players, *flags)["cars"] for players in (("twos",), ("idle", "twos"), ("idle",))] == [
        2,
        2,
        1,
    ]
    assert played(tmp_path, "idle", *flags, "--team_size", "3")["cars"] == 3
    assert evaluate("twos", *flags, "--team_size", "1") == 2
    assert "twos was trained for 2v2, not 1v1; choose --team_size 2" in capsys.readouterr().err


@pytest.mark.slow
def test_bots_and_classes_of_ones_own(runs, tmp_path, monkeypatch, capsys):
    (tmp_path / "my_own_bots.py").write_text(
        "from envs.bots import KickoffThenShoot\n\nclass Mine(KickoffThenShoot):\n    pass\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert evaluate("my_own_bots.Mine", "idle", "--matches", "2", "--minutes", "0.5", "--out", "c.json") == 0
    assert json.loads((tmp_path / "c.json").read_text())["wins"] == 2


def test_runs_with_names_of_other_things_are_runs(runs, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_training.py").write_text("raise SystemExit('a training would begin')\n")
    folder = tmp_path / "runs"
    for name in ("my_training.2", "exp#2", "chaser"):
        (folder / name).mkdir(parents=True)
    words = ["--matches", "2", "--runs_dir", folder]
    for name in ("my_training.2", "exp#2"):
        assert evaluate(name, "idle", *words) == 2
        assert f"{folder / name} contains no checkpoints" in capsys.readouterr().err
    assert evaluate("chaser", "idle", *words) == 2
    assert f"chaser is the name of both a bot and a run; use {folder / 'chaser'} for the run" in capsys.readouterr().err
    assert evaluate("nowhere", "--episodes", "2", "--runs_dir", folder) == 2
    assert "agent nowhere: no such checkpoint, run or milestone" in capsys.readouterr().err
    (tmp_path / "games.frl").write_bytes(b"")
    assert evaluate("games.frl", "idle", *words) == 2
    assert "games.frl is a replay, not a player" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["nothing"], "agent nothing: no such checkpoint, run or milestone (bots: idle, random, chaser"),
        (
            ["idle", "chasser"],
            "agent chasser: no such checkpoint, run or milestone; did you mean chaser? (bots: idle, ",
        ),
        (["idle", "envs.RocketSimPool"], "envs.RocketSimPool is not a subclass of Bot"),
        (["idle", "--out", "x.csv"], "--out x.csv must end in .json"),
        ([], "the following arguments are required: player"),
    ],
)
def test_mistakes_are_one_line(argv, message, capsys):
    assert evaluate(*argv) == 2
    error = capsys.readouterr().err
    assert error.startswith("fabric-rl evaluate: error: ") and message in error and error.count("\n") == 1


BOT = "from envs.bots import Bot\nclass Mine(Bot): pass"


@pytest.mark.parametrize(
    ("code", "status", "message"),
    [
        ("import no_such_package", 2, "bot_of_mine.Mine: there is no module no_such_package; "),
        ("from math import nope", 2, "bot_of_mine.Mine: cannot import name 'nope' from 'math'"),
        ("import bot_of_mine.deeper", 2, "bot_of_mine.Mine: No module named 'bot_of_mine.deeper'; "),
        ("raise ImportError", 2, "bot_of_mine.Mine: ImportError\n"),
        ("a = 1\0", 2, "bot_of_mine.Mine: source code string cannot contain null bytes"),
        (BOT.replace("Mine", "Mime"), 2, "bot_of_mine.Mine: no such run, and {file} has no Mine; did you mean Mime?\n"),
        ("def broken(:", 1, "bot_of_mine.py: SyntaxError: invalid syntax (bot_of_mine.py, line 1)\n"),
    ],
    ids=["needs a package", "imports no name", "is no package", "fails", "is no text", "has another", "is no Python"],
)
def test_a_bot_whose_file_is_wrong_says_so(code, status, message, tmp_path, monkeypatch, capsys):
    (tmp_path / "bot_of_mine.py").write_text(code, encoding="utf-8")
    monkeypatch.delitem(sys.modules, "bot_of_mine", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert evaluate("bot_of_mine.Mine", "idle") == status
    last = capsys.readouterr().err.splitlines(keepends=True)[-1]
    assert last.startswith(f"fabric-rl evaluate: error: {message.format(file=tmp_path / 'bot_of_mine.py')}")


def test_a_role_of_a_run_is_no_bot_of_a_module(tmp_path, monkeypatch, capsys):
    (tmp_path / "exp.py").write_text("import no_such_package", encoding="utf-8")
    (tmp_path / "runs/exp.2").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert evaluate("exp.2#blue", "idle") == 2
    assert f"{Path('runs/exp.2')} contains no checkpoints" in capsys.readouterr().err


@pytest.mark.slow
def test_the_page_about_exports_lets_it_play(runs, tmp_path, monkeypatch):
    page = (Path(__file__).resolve().parents[2] / "docs/export.md").read_text(encoding="utf-8")
    code = next(text for text in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "load_trained(" in text)
    shutil.copytree(runs / "plain", tmp_path / "runs" / "NAME")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(code, names)
    assert names["pool"].drain_metrics()["game/goals_per_minute"][1] == pytest.approx(2.0)  # a minute in each arena


@pytest.mark.slow
def test_an_agent_of_a_gymnasium_environment_plays_episodes(tmp_path, capsys):
    flags = ["--total_timesteps", "32", "--num_steps", "16", "--accelerator", "cpu", "--plain", "--num_envs", "2"]
    cli(["--env_id", "CartPole-v1", *flags, "--runs_dir", str(tmp_path), "--run_id", "cart"])
    settings = yaml.safe_load((tmp_path / "cart/config.yaml").read_text())
    assert "env" not in settings and settings["env_id"] == "CartPole-v1"
    assert load_trained("cart", tmp_path).env(seed=0).num_envs == 2
    here = ["--runs_dir", tmp_path, "--episodes", 20]
    assert evaluate("cart", *here, "--sample", "--out", tmp_path / "a.json") == 0
    found = json.loads((tmp_path / "a.json").read_text())
    low, high = found["return_interval_95"]
    assert found["episodes"] == 20 and 8 < low < found["mean_return"] < high < 60
    assert found["mean_length"] == found["mean_return"]
    assert "20 episodes of cart" in (out := capsys.readouterr().out) and "mean return" in out
    assert evaluate("cart", *here, "--confidence", 0.9) == 2
    assert "cart plays alone, without --confidence" in capsys.readouterr().err
    assert command("export", "cart", tmp_path / "mine", "--runs_dir", tmp_path) == 0
    assert evaluate(tmp_path / "mine", "--episodes", 1) == 0
    assert command("export", "cart", tmp_path / "onnx", "--format", "onnx", "--runs_dir", tmp_path) == 0
    assert evaluate(tmp_path / "onnx", "--episodes", 1) == 0
    assert "no interval: too few episodes, or all are alike" in capsys.readouterr().out
    for name in ("record", "watch", *(["exam"] if find_spec("rlgym_tools") else [])):
        assert command(name, "cart", "--runs_dir", tmp_path) == 2
        said, error = capsys.readouterr()
        assert f"fabric-rl {name}: error: cart does not play Rocket League" in error and error.count("\n") == 1
        assert said == ""  # no address before


@pytest.mark.slow
def test_runs_of_before_whose_configuration_names_both_play_what_they_played(tmp_path):
    flags = ["--total_timesteps", "32", "--num_steps", "16", "--accelerator", "cpu", "--plain"]
    cli(["--env_id", "CartPole-v1", *flags, "--runs_dir", str(tmp_path), "--run_id", "cart"])
    with open(tmp_path / "cart/config.yaml", "a") as file:
        file.write("env: {class_path: envs.RocketSimPool, init_args: {num_arenas: 64}}\n")
    assert load_trained("cart", tmp_path).env(seed=0).single_observation_space.shape == (4,)


MINE = """
from envs import DefaultObs, TouchReward, RandomState
from envs.loggers import StateLogger

class MyReward(TouchReward):
    pass

class MyStates(RandomState):
    pass

class MyLogger(StateLogger):
    def update(self, state, done):
        pass

    def drain_metrics(self):
        return {}
"""


@pytest.mark.slow
def test_an_exported_agent_loads_where_the_modules_of_its_training_are_absent(forks, tmp_path):
    parts = ["--env.reward", "mine.MyReward", "--env.state_setter", "mine.MyStates", "--env.loggers+=mine.MyLogger"]
    flags = [*POOL, *HIDDEN, *parts, "--env.tick_skip", "4"]
    flags += ["--runs_dir", tmp_path, "--run_id", "r"]
    statuses, _, err = forks.wait([forks.start(*flags, files={"mine.py": MINE})])
    assert statuses == [0], err
    words = ["export", "r", tmp_path / "bot", "--runs_dir", tmp_path]
    statuses, _, err = forks.wait([forks.start(*words, files={"mine.py": MINE}, program="fabric-rl")])
    assert statuses == [0], err
    with pytest.raises(ValueError, match="there is no module mine"):
        load_trained("r", tmp_path)
    pool = load_trained(tmp_path / "bot").env(seed=0)
    assert (pool.tick_skip, len(pool.arenas)) == (4, 2)
    assert evaluate(tmp_path / "bot", "idle", "--matches", 1, "--minutes", 0.05) == 0


def test_a_table_agent_plays_its_own_rows(runs):
    """What the pool of the matches is told are the rows that the agent chose."""
    from envs.bots import PolicyBot
    from envs.state.game_state import GameState

    trained = load_trained("plain", runs)
    pool = trained.env(seed=0)
    choose = trained.choose(pool.single_observation_space, pool.single_action_space)
    bot = PolicyBot(choose, pool.obs_builder, LookupTable())
    obs, _ = pool.reset()
    state: GameState = pool.state
    bot.reset(np.ones(2, bool), state)
    rows = LookupTable().table[choose(obs, np.ones(len(obs), bool), None)]
    assert (bot.act(state).reshape(-1, 8) == rows).all()
