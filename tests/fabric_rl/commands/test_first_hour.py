"""What a beginner types in the first hour, and the answers."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fabric_rl.base.errors import suggest_name

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("words", "example"),
    [
        (["watch"], "fabric-rl watch school_1v1 chaser"),
        (["runs", "first"], "fabric-rl runs show first"),
        (["runs", "compare"], "fabric-rl runs compare first second"),
    ],
)
def test_missing_words_are_answered_with_one_example(call, words, example):
    status, _, errors = call(*words)
    assert status == 2
    assert errors.count("for example") == 1
    assert errors.endswith(f"; for example: {example}\n")


def test_a_recording_is_not_overwritten(call, tmp_path):
    out = tmp_path / "game.frl"
    out.write_bytes(b"mine")
    status, _, errors = call("record", "idle", "idle", "--minutes", 0.01, "--out", out)
    assert status == 2 and "--force" in errors and out.read_bytes() == b"mine"
    status, output, _ = call("record", "idle", "idle", "--minutes", 0.01, "--out", out, "--force")
    assert status == 0 and "written" in output and out.read_bytes() != b"mine"


def test_without_packages_training_is_one_line(tmp_path):
    """`-S` leaves out the installed packages."""
    command = [sys.executable, "-S", str(ROOT / "train_fabric.py")]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env={}, check=False)
    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1 and "activate" in ended.stderr


def test_misspelt_names_get_a_suggestion():
    def of(code):
        with pytest.raises((AttributeError, NameError)) as raised:
            exec(code, {"np": np})
        return suggest_name(raised.value)

    assert of("np.arrray") == "; did you mean array?"
    assert of("speed = 1; sped") == "; did you mean speed?"
    assert of("qqqqqq") == ""
