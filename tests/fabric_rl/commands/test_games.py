"""`fabric-rl evaluate` until something is known, by several processes, and as JSON."""

import json
import os
from functools import partial

import numpy as np
import pytest

from envs.matches.matches import PAIRS_AT_ONCE
from fabric_rl.evaluation.play import Block, play_blocks
from fabric_rl.evaluation.players import Rules, entrant
from fabric_rl.evaluation.settings import PlaySettings


@pytest.fixture
def evaluate(call):
    return partial(call, "evaluate")


@pytest.mark.slow
def test_the_number_of_workers_changes_nothing():
    rules = Rules.of([entrant(name, False, "runs") for name in ("shooter", "random")], PlaySettings(), 0.06)
    blocks = [Block("shooter", "random", 3, number) for number in range(3)]
    alone, told = list(play_blocks(rules, blocks, 1, lambda share: None)), []
    several = list(play_blocks(rules, blocks, 2, told.append))
    assert told == [1 / 3, 2 / 3, 1]
    for one, other in zip(alone, several, strict=True):
        assert (one.goals == other.goals).all() and (one.touches == other.touches).all()
    assert any((one.touches != alone[0].touches).any() for one in alone[1:])  # other pairs


@pytest.mark.slow
@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_worker_that_fails_says_why_and_nobody_waits_for_the_others():
    rules = Rules.of([entrant("idle", False, "runs")], PlaySettings(), 20.0)
    playing = play_blocks(rules, [Block("nobody", "idle", 0, 0), *[Block("idle", "idle", 0, 0)] * 5], 2, print)
    with pytest.raises(ValueError, match="agent nobody: no such checkpoint"):
        next(playing)


@pytest.mark.slow
def test_it_plays_until_it_is_decided(evaluate, tmp_path):
    words = ["shooter", "idle", "--minutes", 0.25]
    status, output, _ = evaluate(*words, "--sequential", "--json", tmp_path / "a.json")
    found = json.loads((tmp_path / "a.json").read_text())
    assert status == 0 and found["better"] == "player" and found["reached"] is True
    assert found["pairs"] % PAIRS_AT_ONCE == 0 and found["pairs"] <= 30
    low, high = found["score_sequence"]
    assert 0.5 < low < found["score"] <= high and found["confidence"] == 0.95
    assert found["difference_interval_95"] is None and found["difference_sequence"][0] > 0
    assert "however often one looks" in output and "shooter is better" in output and "stopped after" not in output
    # The pairs are those of a fixed number of matches.
    evaluate(*words, "--matches", 20, "--out", tmp_path / "b.json")
    fixed = json.loads((tmp_path / "b.json").read_text())
    assert fixed["differences"] == found["differences"][:10] and fixed["difference_interval_95"] is not None


@pytest.mark.slow
def test_it_stops_at_a_limit(evaluate, tmp_path):
    out = tmp_path / "a.json"
    status, output, _ = evaluate(
        "idle", "idle", "--sequential", "--matches", 44, "--minutes", 0.01, "--json", out, "--confidence", 0.9
    )
    found = json.loads(out.read_text())
    assert status == 0 and (found["matches"], found["better"], found["reached"]) == (44, None, False)
    assert "(90 %, however often" in output and "stopped after 44 matches; --matches allows more" in output
    assert "difference_interval_90" in found and found["confidence"] == 0.9
    assert found["statistics"]["shots"]["intervals_90"] == [None, None] and "half its" not in output


def test_statistics_have_the_confidence_that_is_asked_for(evaluate):
    words = ["idle", "idle", "--matches", 20, "--minutes", 0.01, "--json", "--confidence"]
    _, output, errors = evaluate(*words, 0.9)
    (low, high), _ = json.loads(output)["statistics"]["shots"]["intervals_90"]
    assert low < 0 < high and "mean of 10 pairs of matches, and half its 90 % interval" in errors


def test_until_the_interval_is_narrow(evaluate, tmp_path):
    out = tmp_path / "a.json"
    assert evaluate("idle", "idle", "--until-width", 0.25, "--minutes", 0.01, "--json", out)[0] == 0
    found = json.loads(out.read_text())
    assert np.diff(found["difference_sequence"]) <= 0.25 and found["pairs"] == 20 and found["reached"] is True


def test_json_on_standard_output_is_nothing_else(evaluate):
    status, output, errors = evaluate("idle", "idle", "--matches", 2, "--minutes", 0.01, "--json")
    assert status == 0 and json.loads(output)["matches"] == 2 and "goal difference per match" in errors


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--sequential", "--until-width", 1], "--sequential and --until_width: choose one of them"),
        (["--until-width", 0], "--until_width must be a number above 0, got 0"),
        (["--confidence", 1], "--confidence must be a number above 0 and at most 0.999999, got 1"),
        (["--minutes", "1e300"], "--minutes must be a number above 0 and at most 100,000, got 1e+300"),
        (["--team_size", 0], "--team_size must be a whole number from 1 to 100,000, got 0"),
        (["--json", "a.txt"], "--json a.txt: must end in .json"),
        (["--seed", -1], "--seed must be a whole number of at least 0, got -1"),
    ],
)
def test_mistakes_are_one_line(evaluate, words, said):
    status, output, errors = evaluate("idle", "idle", *words)
    assert (status, output, errors.count("\n")) == (2, "", 1) and said in errors


BROKEN = """
import sys

from envs.bots import IdleBot


class Raises(IdleBot):
    def act(self, state):
        return {}["nothing"]


class Ends(IdleBot):
    def act(self, state):
        sys.exit(0)
"""


@pytest.fixture
def broken_bots(tmp_path, monkeypatch):
    (tmp_path / "broken_bots.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize(
    ("bot", "said"),
    [("Raises", "act(): KeyError: 'nothing'"), ("Ends", "act(): SystemExit: 0")],
)
def test_a_bot_that_fails_is_named(evaluate, broken_bots, bot, said):
    status, output, errors = evaluate(f"broken_bots.{bot}", "idle", "--matches", 2, "--minutes", 0.01)
    assert (status, output) == (1, "") and "Traceback" in errors
    last = errors.splitlines()[-1]
    assert last.startswith("fabric-rl evaluate: error: broken_bots.py, line ") and last.endswith(said)


@pytest.mark.parametrize("flag, name", [("--json", "a.json"), ("--out", "a.json"), ("--record", "a.frl")])
def test_a_file_that_is_a_folder_is_noticed_before_anything_is_played(evaluate, tmp_path, flag, name):
    (tmp_path / name).mkdir()
    status, output, errors = evaluate("idle", "idle", "--matches", 10**6, flag, tmp_path / name)
    assert (status, output) == (2, "") and f"error: {flag} {tmp_path / name}: this is no file" in errors


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="may write everywhere")
def test_a_file_that_cannot_be_written_is_noticed_before_anything_is_played(evaluate, tmp_path):
    (tmp_path / "a.json").touch(0o400)
    status, _, errors = evaluate("idle", "idle", "--matches", 10**6, "--json", tmp_path / "a.json")
    assert status == 2 and "a.json: cannot be written" in errors


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no disk that is always full")
def test_a_full_disk_keeps_the_file_and_names_it(evaluate, tmp_path):
    out = tmp_path / "a.json"
    out.write_text("of before")
    (tmp_path / f"a.json.{os.getpid()}.tmp").symlink_to("/dev/full")
    status, _, errors = evaluate("idle", "idle", "--matches", 2, "--minutes", 0.01, "--json", out)
    assert status == 2 and f"No space left on device: '{out}'" in errors and out.read_text() == "of before"
