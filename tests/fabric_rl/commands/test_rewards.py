"""`fabric-rl audit-rewards`, `trace-rewards` and `show-resets`: their output, files and pictures."""

import csv
import json
from functools import partial
from io import StringIO

import pytest
from rich.console import Console

from envs import IdleBot, RocketSimPool
from envs.audit.audit import audit_rewards
from envs.audit.resets import reset_rows
from envs.audit.trace import reward_trace
from fabric_rl.base.config_files import expand_config
from fabric_rl.commands.checks import check_table, draw_audit, draw_resets, draw_trace, pay_table
from fabric_rl.commands.output import png_of


@pytest.mark.slow
def test_pictures_are_drawn():
    pytest.importorskip("matplotlib")
    pool = partial(RocketSimPool, num_threads=1)
    figures = [draw_audit(audit_rewards(pool, seconds=1, num_arenas=2))]
    figures += [draw_trace(reward_trace(pool, IdleBot(), seconds=1)), draw_resets(reset_rows(pool, episodes=2))]
    assert all(png_of(figure)[:4] == b"\x89PNG" for figure in figures)


CONFIG = """
total_timesteps: 1000
env:
  class_path: envs.RocketSimPool
  init_args:
    num_arenas: 64
    num_threads: 1
    reward:
      class_path: envs.CombinedReward
      init_args:
        rewards:
          - class_path: {reward}
          - class_path: envs.GoalReward
        weights: [0.01, 10.0]
agent:
  class_path: no.such.Agent
"""


@pytest.fixture
def command(call, tmp_path):
    """Runs `fabric-rl` in this process: (status, output, errors)."""

    def run(*args, reward="envs.TouchReward"):
        config = tmp_path / "config.yaml"
        config.write_text(CONFIG.format(reward=reward))
        return call(*(config if arg == "CONFIG" else arg for arg in args))

    return run


@pytest.mark.slow
def test_audit_command_passes_an_honest_reward(command, tmp_path):
    out = tmp_path / "audit.json"
    status, output, errors = command(
        "audit-rewards", "--config", "CONFIG", "--seconds", 4, "--num_arenas=2", "--out", out
    )
    assert (status, errors) == (0, "")
    assert "passed: own goals do not pay" in output and "Touch " in output
    kept = json.loads(out.read_text())
    assert kept["passed"] is True and [part["name"] for part in kept["parts"]] == ["TouchReward", "GoalReward"]
    assert kept["total"]["own_goal"] == -10


def test_later_files_override_earlier_ones(tmp_path):
    over, more = tmp_path / "over.yaml", tmp_path / "more.yaml"
    over.write_text("env: {class_path: envs.RocketSimPool, init_args: {tick_skip: 4}}")
    more.write_text("num_steps: 64")
    flags = [
        "audit-rewards",
        "--config",
        "rocket_1v1_quickstart",
        f"--config={over}",
        "--config",
        str(more),
        "--seed=1",
    ]
    command, first, second, last = expand_config(flags, ["env"])
    assert (command, last) == ("audit-rewards", "--seed=1") and "GoalReward" in first
    assert json.loads(second.removeprefix("--env="))["init_args"] == {"tick_skip": 4}
    more.write_text("env_id: CartPole-v1")
    over.write_text("num_envs: 3\nenv: {class_path: envs.RocketSimPool}")
    [_, env] = expand_config(["clone", "--config", str(more), "--config", str(over)], ["env"])
    assert json.loads(env.removeprefix("--env="))["init_args"] == {"env_id": "CartPole-v1", "num_envs": 3}


@pytest.mark.slow
def test_audit_command_fails_one_that_pays_own_goals(command, tmp_path):
    wrong = "tests.envs.audit.wrong_rewards.AnyGoal"
    status, output, _ = command(
        "audit-rewards",
        "--config",
        "CONFIG",
        "--seconds=2",
        "--num_arenas=2",
        "--seed=1",
        "--env.tick_skip=10",
        reward=wrong,
    )
    assert status == 1
    failures = [line for line in output.splitlines() if line.startswith("FAIL")]
    assert failures == ["FAIL: AnyGoal pays for an own goal: 0.01 more than for the same touch to the side"]


@pytest.mark.slow
def test_warnings_fail_only_if_asked_for(command):
    flags = ["audit-rewards", "--config", "CONFIG", "--seconds=2", "--num_arenas=2"]
    wrong = "tests.envs.audit.wrong_rewards.RightHalf"
    status, output, _ = command(*flags, reward=wrong)
    assert status == 0 and "warning: RightHalf pays blue and orange differently" in output
    assert command(*flags, "--strict", reward=wrong)[0] == 1


def test_trace_and_reset_commands_write_tables(command, tmp_path):
    steps, states = tmp_path / "steps.csv", tmp_path / "states.csv"
    status, output, _ = command("trace-rewards", "--config", "CONFIG", "--seconds=2", "--bot=chaser", "--out", steps)
    assert status == 0 and "2.0 s, 30 steps" in output
    with steps.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 30 and {"reward/TouchReward", "total", "return"} <= rows[0].keys()
    status, output, _ = command("show-resets", "--config", "CONFIG", "--episodes=3", "--out", states)
    assert status == 0 and "Initial states of 3 episodes" in output
    with states.open(newline="") as file:
        assert [row["what"] for row in csv.DictReader(file)] == ["ball", "blue", "orange"] * 3


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["audit-rewards", "--config", "none.yaml"], "--config none.yaml: "),
        (["audit-rewards", "--config", "CONFIG", "--out", "audit.txt"], "--out audit.txt must end in .json or .png"),
        (["audit-rewards", "--config", "CONFIG", "--out", "none/a.json"], "there is no folder none"),
        (["audit-rewards", "--second", "3"], "--second: no such setting; did you mean --seconds?"),
        (["audit-rewards", "--config", "CONFIG", "--env.tick_skp", "3"], "did you mean tick_skip?"),
        (["audit-rewards", "--env.reward", "NoReward"], "--env.reward"),
        (["audit-rewards", "--env", "envs.GymnasiumEnvs", "--env.env_id", "CartPole-v1"], "got GymnasiumEnvs"),
        (["trace-rewards", "--config", "CONFIG", "--car", "4"], "there is no car 4 (--car)"),
        (["trace-rewards", "--bot", "genius"], "--bot genius: there is no such bot; choose one of idle, random, "),
        (["show-resets", "--config", "CONFIG", "--episodes", "0"], "--episodes must be a whole number of at least 1"),
        (["audit"], "there is no command audit; did you mean audit-rewards?"),
        (["frobnicate"], "there is no command frobnicate; known: train, new, import, seeds"),
    ],
)
def test_mistakes_are_one_line(command, args, said):
    status, output, errors = command(*args)
    assert (status, output) == (2, "")
    assert errors.count("\n") == 1 and errors.startswith("fabric-rl") and said in errors


@pytest.mark.slow
def test_an_audit_fits_80_columns():
    """Each part has its whole name in both tables, on one line or two."""
    audit = audit_rewards(partial(RocketSimPool, num_threads=1), seconds=1, num_arenas=2)
    for made in (pay_table(audit), check_table(audit)):
        console = Console(width=80, record=True, file=StringIO())
        console.print(made)
        shown = console.export_text()
        assert "SpeedToward" in shown and "InAir" in shown and "\\n" not in shown and "…" not in shown
