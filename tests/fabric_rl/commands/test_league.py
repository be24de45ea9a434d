"""`fabric-rl league`: ratings of players who have really met."""

import errno
import json
import os
import re
from functools import partial

import numpy as np
import pytest

from envs.matches.matches import Matches
from envs.replays.replay import read_replay
from fabric_rl.base.argv import PRETRAINED
from fabric_rl.commands.evaluate import league_tables, league_verdict
from fabric_rl.evaluation.matches import replay_file
from fabric_rl.evaluation.results import Competitor, intransitive_share, league_summary
from fabric_rl.runs import checkpoint
from fabric_rl.runs.provenance import CONFIG, EXPORTED


@pytest.fixture
def league(call):
    return partial(call, "league")


@pytest.mark.slow
def test_a_league_of_bots(league, tmp_path):
    pytest.importorskip("matplotlib")
    files = ["--json", tmp_path / "a.json", "--png", tmp_path / "a.png"]
    status, output, _ = league("shooter", "idle", "chaser", "--matches", 20, "--minutes", 0.25, *files)
    found = json.loads((tmp_path / "a.json").read_text())
    assert status == 0 and (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    assert found["names"] == ["shooter", "idle", "chaser"]
    payoff, games = np.array(found["payoff"]), np.array(found["games"])
    assert (payoff + payoff.T == 1).all() and games.tolist() == [[0, 20, 20], [20, 0, 20], [20, 20, 0]]
    ratings = {row["name"]: row for row in found["ratings"]}
    assert (
        ratings["shooter"]["rating"] > ratings["idle"]["rating"] and ratings["shooter"]["low"] > ratings["idle"]["high"]
    )
    assert ratings["shooter"]["openskill_mu"] > ratings["idle"]["openskill_mu"]
    assert output.index("shooter") < output.index("idle") and "3 times 20 matches of 0.25 minutes, 1v1" in output
    assert "one ladder explains these results" in output and "score against" in output


@pytest.mark.slow
def test_the_alias_json_on_standard_output_and_games_to_watch(league, call, tmp_path):
    words = ["idle", "random", "--matches", 2, "--minutes", 0.01, "--record", tmp_path / "games", "--json"]
    status, output, _ = call("run_selfplay_eval", *words)
    found = json.loads(output)
    assert status == 0 and found["names"] == ["idle", "random"] and found["misfit"] is None
    assert json.loads(league(*words)[1]) == found
    (file,) = (tmp_path / "games").iterdir()
    assert file.name == "idle_vs_random.frl" and read_replay(file).about["names"] == ["idle", "random"]
    (tmp_path / "file").touch()
    assert "--record" in league("idle", "random", "--record", tmp_path / "file")[2]


def test_standings_by_hand():
    """Wins of 0 against 1 in both matches, draws of 0 against 2, one of each of 1 against 2."""

    def pairs(*goals):
        return Matches(np.array([goals] * 10), np.zeros((10, 2, 2), int), 1.0, 1, {})

    played = {(0, 1): pairs((2, 1), (1, 0)), (0, 2): pairs((0, 0), (1, 1)), (1, 2): pairs((1, 0), (0, 0))}
    found = league_summary([Competitor("a", "a", 5), Competitor("b", "b", 7), Competitor("c", "c", 9)], played)
    assert found["payoff"] == [[0.5, 1.0, 0.5], [0.0, 0.5, 0.75], [0.5, 0.25, 0.5]]
    ratings = [row["rating"] for row in found["ratings"]]
    assert (
        np.argmax(ratings) == 0 and found["misfit"] < 0.01 and [row["steps"] for row in found["ratings"]] == [5, 7, 9]
    )
    assert "does not explain these results (p = " in league_verdict(found) and league_verdict(found).endswith(
        "); 0% of all triples of players beat each other in a circle"
    )
    columns = [list(map(str, column.cells)) for column in league_tables(found, "")[0].columns]
    assert dict(zip(columns[0], columns[3], strict=True)) == {"a": "75.0%", "b": "37.5%", "c": "37.5%"}


def test_circles_by_hand():
    """Rock, paper and scissors, and a fourth whom all of them beat, who draws with a fifth."""
    payoff = np.full((5, 5), 0.5)
    for winner, loser in ((0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3), (4, 0), (4, 1), (4, 2)):
        payoff[winner, loser], payoff[loser, winner] = 0.75, 0.25
    assert (
        intransitive_share(payoff) == 0.1
        and intransitive_share(payoff[:3, :3]) == 1
        and intransitive_share(payoff[:2, :2]) is None
    )


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no disk that is always full")
def test_a_disk_that_gets_full_keeps_the_results_and_names_the_file(league, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    words = ["idle", "random", "--matches", 2, "--minutes", 0.01, "--json", tmp_path / "a.json"]
    replace = os.replace

    def fill_up(source, target):
        if target.suffix == ".png":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(source, target)

    with monkeypatch.context() as patched:
        patched.setattr("fabric_rl.base.files.os.replace", fill_up)
        status, _, errors = league(*words, "--png", tmp_path / "a.png")
    assert status == 2 and f"No space left on device: '{tmp_path / 'a.png'}'" in errors
    assert json.loads((tmp_path / "a.json").read_text())["names"] == ["idle", "random"]
    game = tmp_path / "idle_vs_random.frl"
    game.symlink_to("/dev/full")
    with pytest.raises(OSError, match=f"No space left on device: '{game}'"), replay_file(game) as file:
        file.write(b"some frames")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["idle"], "a league needs two or more players, or a run with milestones; there is no run idle in runs"),
        (["idle", "chaser", "idle"], "idle and idle are the same; a league needs different players"),
        (["chaser", "envs.bots.BallChaser"], "chaser and envs.bots.BallChaser are the same; a league needs"),
        (["school_1v1", f"{PRETRAINED}/school_1v1"], f"school_1v1 and {PRETRAINED}/school_1v1 are the same; a league"),
        (["idle", "nobody"], "agent nobody: no such checkpoint, run or milestone (bots: "),
        (["idle", "chaser", "--matches", 0], "--matches must be a whole number from 1 to 100,000, got 0"),
        (["idle", "chaser", "--matches", 10**9], "--matches must be a whole number from 1 to 100,000, got 1000000000"),
        (["idle", "chaser", "--png", "a.jpg"], "--png a.jpg must end in .png"),
        (["idle", "chaser", "--json", "no/a.json"], "--json no/a.json: there is no folder no"),
    ],
)
def test_mistakes_are_one_line(league, words, said):
    status, output, errors = league(*words)
    assert (status, output, errors.count("\n")) == (2, "", 1) and said in errors


def test_one_of_another_game_is_one_line(league, tmp_path):
    checkpoint.write(tmp_path / "cart" / EXPORTED, {"agent": {}})
    env = "{class_path: envs.GymnasiumEnvs, init_args: {env_id: CartPole-v1, num_envs: 2}}"
    (tmp_path / "cart" / CONFIG).write_text(f"env: {env}\nagent: agents.PPOLightningAgent\n")
    status, _, errors = league("cart", "chaser", "--runs_dir", tmp_path)
    assert status == 2 and "error: cart does not play Rocket League (" in errors and errors.count("\n") == 1


def test_a_damaged_milestone_is_lines_without_python(league, tmp_path):
    for steps in (1, 2):
        folder = tmp_path / f"r/milestones/main/{steps:012d}"
        folder.mkdir(parents=True)
        (folder / "meta.json").write_text(json.dumps({"steps": steps}))
        (folder / f"step_{steps:012d}.ckpt").write_bytes(b"torn")
    (tmp_path / "r/summary.json").write_text("{}")
    (tmp_path / "r" / CONFIG).write_text("env: envs.RocketSimPool\nagent: agents.PPOLightningAgent\n")
    status, _, errors = league("r", "--runs_dir", tmp_path)
    assert status == 2 and "trying the previous one" in errors and not re.search(r"\.py:\d", errors)
