"""The commands that play: results of matches as numbers, pictures and tables of audits, traces and first states."""

import csv
import json
import re
from functools import partial
from unittest.mock import ANY

import numpy as np
import pytest

from envs import GymnasiumEnvs, IdleBot, ParameterRandomizer, RocketSimPool, Uniform
from envs.audit.audit import audit_rewards
from envs.audit.resets import reset_rows
from envs.audit.trace import reward_trace
from envs.matches.matches import Matches
from fabric_rl import Run
from fabric_rl.cli.report import report
from fabric_rl.commands.audit_rewards import draw_audit
from fabric_rl.commands.evaluate import difference_interval, difference_line, summary, table
from fabric_rl.commands.main import main
from fabric_rl.commands.output import progress
from fabric_rl.commands.show_resets import draw_resets
from fabric_rl.commands.statistics import statistics_summary, statistics_table
from fabric_rl.commands.trace_rewards import draw_trace
from fabric_rl.rollouts.whole_episodes import play_episodes

# ---------------------------------------------------------------- results of matches


def results(*goals, **settings):
    goals = np.array(goals)
    return Matches(goals, np.zeros_like(goals), **({"minutes": 1.0, "cars": 1, "statistics": {}} | settings))


PAIR = [(2, 1), (0, 0)]
"""Half a goal per match for the player."""


def test_interval_is_over_pairs_and_says_so():
    # Differences 0.5 and -1, five times each: mean -0.25, squares 10 * 0.75^2 + 2 * 0.25 = 6.125; s^2 / 10 = 0.0680556,
    # its root 0.260875; t(0.975, 9) = 2.26216 (any table).
    matches = results(*[PAIR] * 5, *[[(0, 1), (1, 2)]] * 5)
    assert difference_interval(matches) == pytest.approx((-0.25 - 0.59014, -0.25 + 0.59014), abs=1e-5)
    assert difference_line(matches) == (
        "goal difference per match: -0.25 (95 % -0.84 to +0.34, from 10 independent pairs of matches)"
    )


def test_no_interval_from_few_pairs_and_it_says_why():
    matches = results(*[PAIR] * 9)
    assert summary(matches)["difference_interval_95"] is None
    assert difference_line(matches) == (
        "goal difference per match: +0.50 (no interval from 9 pairs of matches, it takes 10: --matches 20)"
    )


def test_summary_is_per_match_and_per_minute():
    goals, touches = np.array([[(3, 1), (1, 1)]]), np.array([[(8, 2), (4, 2)]])
    figures = summary(Matches(goals, touches, minutes=2.0, cars=3, statistics={}))
    assert (figures["matches"], figures["pairs"]) == (2, 1)
    assert (figures["wins"], figures["draws"], figures["losses"]) == (1, 1, 0)
    assert figures["goals"] == [2.0, 1.0]
    assert figures["touches_per_minute"] == [1.0, pytest.approx(1 / 3)]  # 12 and 4 in 2 matches x 2 min x 3 cars
    assert figures["difference"] == 1.0


def test_table_tells_shares_and_how_agents_play():
    made = table(["mine", "chaser"], results(PAIR, PAIR, PAIR), "agents sample their actions")
    assert made.title == "6 matches of 1 minutes, 1v1; agents sample their actions"
    assert [list(column.cells) for column in made.columns[:3]] == [
        ["mine", "chaser"],
        ["3 (50%)", "0 (0%)"],
        ["3 (50%)", "3 (50%)"],
    ]


def test_statistics_have_means_and_intervals_over_pairs():
    """Ten pairs, the first without a touch of the opponent's; 4 or 5 shots."""
    height, shots, nothing = (np.full((10, 2, 2), (0.0, 1.0)) for _ in range(3))
    height[:, 0, 0], height[:, 1, 0], nothing[..., 1] = [100] * 9 + [200], 300, 0
    height[0, 1] = 0  # the first pair had none
    shots[:, 0, 0] = [4, 5] * 5
    found = statistics_summary({"touch_height": height, "shots": shots, "air_time": nothing})
    assert found["touch_height"] == {"means": [110, 300], "intervals_95": [[ANY, ANY], None]}  # all alike, and only 9
    # Squares: 10 * 0.25 + 2 * 0.25 = 3; the root of 3 / 9 / 10 is 0.182574; t(0.975, 9) = 2.26216.
    assert found["shots"]["intervals_95"][0] == pytest.approx([4.5 - 0.41301, 4.5 + 0.41301], abs=1e-4)
    assert found["shots"]["intervals_95"][1] == pytest.approx([-0.168608, 0.168608], abs=1e-4)  # none is not nothing
    assert found["air_time"] == {"means": [None, None], "intervals_95": [None, None]}
    air = np.stack((np.full((10, 2), 0.1), np.broadcast_to((1.0, 0.0), (10, 2))), axis=-1)
    made = statistics_table(["mine", "chaser"], {"shots": shots, "air_time": air})
    assert [list(column.cells) for column in made.columns] == [
        ["shots per match", "time in the air"],
        ["4.50 ± 0.41", "10.0%"],
        ["0.00 ± 0.17", "-"],
    ]


def test_progress_is_told_on_standard_error_only(capsys, monkeypatch):
    with progress("3 matches", line_every_seconds=0) as tell:
        tell(0.25)
        tell(1.0)
    with progress("no time has passed") as tell:
        tell(0.5)
    output, errors = capsys.readouterr()
    assert output == "" and re.fullmatch(r"3 matches: 25% after \d+ s\n3 matches: 100% after \d+ s\n", errors)
    monkeypatch.setenv("FORCE_COLOR", "1")  # as a terminal
    with progress("3 matches") as tell:
        tell(0.25)
    output, errors = capsys.readouterr()
    assert output == "" and "3 matches" in errors and "25%" in errors


# ---------------------------------------------------------------- pictures


def test_pictures_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    pool = partial(RocketSimPool, num_threads=1)
    draw_audit(audit_rewards(pool, seconds=1, num_arenas=2), tmp_path / "audit.png")
    draw_trace(reward_trace(pool, IdleBot(), seconds=1), tmp_path / "trace.png")
    draw_resets(reset_rows(pool, episodes=2), tmp_path / "resets.png")
    pictures = sorted(tmp_path.iterdir())
    assert len(pictures) == 3 and all(path.read_bytes()[:4] == b"\x89PNG" for path in pictures)


# ---------------------------------------------------------------- the command line


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
def command(capsys, tmp_path):
    """Runs `fabric-rl` in this process: (status, output, errors)."""

    def run(*args, reward="envs.TouchReward"):
        config = tmp_path / "config.yaml"
        config.write_text(CONFIG.format(reward=reward))
        words = [str(config) if arg == "CONFIG" else str(arg) for arg in args]
        with pytest.raises(SystemExit) as ended:
            main(words)
        return ended.value.code, *capsys.readouterr()

    return run


def test_audit_command_passes_an_honest_reward(command, tmp_path):
    out = tmp_path / "audit.json"
    status, output, errors = command(
        "audit-rewards", "--config", "CONFIG", "--seconds", 4, "--num_arenas=2", "--out", out
    )
    assert (status, errors) == (0, "")
    assert "passed: no own goal is paid" in output and "Touch " in output
    kept = json.loads(out.read_text())
    assert kept["passed"] is True and [part["name"] for part in kept["parts"]] == ["TouchReward", "GoalReward"]
    assert kept["total"]["own_goal"] == -10


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
        (["audit-rewards", "--config", "CONFIG", "--out", "audit.txt"], "--out audit.txt: must end in .json or .png"),
        (["audit-rewards", "--config", "CONFIG", "--out", "none/a.json"], "there is no folder none"),
        (["audit-rewards", "--second", "3"], "--second: no such setting; did you mean --seconds?"),
        (["audit-rewards", "--config", "CONFIG", "--env.tick_skp", "3"], "did you mean tick_skip?"),
        (["audit-rewards", "--env.reward", "NoReward"], "--env.reward"),
        (["audit-rewards", "--env", "envs.GymnasiumEnvs", "--env.env_id", "CartPole-v1"], "got GymnasiumEnvs"),
        (["trace-rewards", "--config", "CONFIG", "--car", "4"], "there is no car 4 (--car)"),
        (["trace-rewards", "--bot", "genius"], "--bot genius: there is no such bot; choose one of idle, random, "),
        (["show-resets", "--config", "CONFIG", "--episodes", "0"], "--episodes must be a whole number of at least 1"),
        (["audit"], "there is no command audit; did you mean audit-rewards?"),
        (["frobnicate"], "there is no command frobnicate; known: train, new, seeds"),
    ],
)
def test_mistakes_are_one_line(command, args, said):
    status, output, errors = command(*args)
    assert (status, output) == (2, "")
    assert errors.count("\n") == 1 and errors.startswith("fabric-rl") and said in errors


def idle(obs, begins, action_mask):
    return np.zeros(len(obs), np.int64)


def test_every_sub_environment_plays_as_many_episodes(counter_env):
    """Episodes of sub-environment 0, 1, 2 last 3, 2, 4 steps, each worth 1: short ones do not count more often."""
    played = play_episodes(counter_env(), idle, episodes=7, seed=5)
    assert played.returns.tolist() == played.lengths.tolist() == [3, 3, 3, 2, 2, 2, 4, 4, 4]


def test_those_that_share_a_seed_are_one(counter_env):
    class Pairs(counter_env):
        num_seeds = 2

    pairs = Pairs(terminate_after=(3, 3, 4, 4), truncate_after=(9, 9, 9, 9))
    assert play_episodes(pairs, idle, episodes=4, seed=0).returns.tolist() == [3, 3, 4, 4]


def test_episodes_know_nothing_of_one_another():
    """What is kept for many episodes is drawn anew for each; neighbouring seeds share none."""
    numbers = ParameterRandomizer({"force_mag": Uniform(3, 30)}, resampling_interval=2000)
    forces = []

    def watching(obs, begins, action_mask):
        if begins.all():
            forces.append(envs.parameters["force_mag"].tolist())
        return np.zeros(len(obs), np.int64)

    for seed in (0, 1):
        envs = GymnasiumEnvs("CartPole-v1", 4, parameters=numbers)
        play_episodes(envs, watching, episodes=12, seed=seed)
        envs.close()
    assert len(forces) == 6 and len({force for row in forces for force in row}) == 24


def test_figures_of_matches_by_hand():
    """Two matches of 2 minutes, three cars in a team: 12 touches are one for each car and minute."""
    matches = Matches(np.array([[[3, 1], [0, 2]]]), np.array([[[10, 6], [2, 0]]]), minutes=2.0, cars=3, statistics={})
    found = summary(matches)
    assert (found["wins"], found["draws"], found["losses"]) == (1, 0, 1)
    assert found["goals"] == [1.5, 1.5] and found["touches_per_minute"] == [1.0, 0.5]
    assert found["difference"] == 0


def test_the_report_says_how_it_began_and_how_it_ended(tmp_path):
    figures = {"total_steps": 60, "wall_seconds": 3.0, "mean_return": 4.5, "touches_per_minute": {"start": 1, "end": 7}}
    speeds = {"collected_steps_per_second": 100.0, "consumed_steps_per_second": 200.0, "overall_steps_per_second": 20.0}
    said = report(Run(tmp_path), figures | speeds).splitlines()
    assert said[1:] == [
        f"Run {tmp_path.name}: 60 steps in 3 s",
        "  touches per minute: 1.00 at the start, 7.00 at the end",
        "  mean return of the last episodes: 4.50",
        "  steps per second: collected 100, consumed 200, overall 20",
    ]
