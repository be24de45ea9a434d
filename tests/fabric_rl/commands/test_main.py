"""`fabric-rl` itself: its list of commands, what it loads for them, and that their signatures are their flags."""

import inspect
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from fabric_rl import Run
from fabric_rl.base.tables import progress
from fabric_rl.cli.report import format_summary
from fabric_rl.commands.main import COMMANDS, _groups, _load, _outs, main
from fabric_rl.commands.output import check_out


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"]])
def test_the_help_lists_every_command_with_a_sentence(call, words):
    status, out, err = call(*words)
    assert (status, err) == (0, "")
    for name, command in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(command.help)}$", out, re.MULTILINE), name


LEAVES = [(name,) for name, command in COMMANDS.items() if name != "train"] + [("runs", "show"), ("runs", "compare")]


@pytest.mark.parametrize("names", LEAVES)
def test_the_signature_of_a_command_is_its_command_line(call, names):
    command = COMMANDS[names[0]]
    leaf = command.commands[names[1]] if names[1:] else command
    function = _load(leaf.function)
    status, out, err = call(*names, "--help")
    assert (status, err) == (0, "")
    said = " ".join(out.split())
    sentences = dict(re.findall(r"^ +(\w+): ((?:.|\n {12,})+)", function.__doc__.partition("Args:")[2], re.MULTILINE))
    parameters = inspect.signature(function).parameters
    assert parameters and all(f"  --{flag.flag}" in out for flag in _outs(function) if flag.flag not in parameters)
    for name, parameter in parameters.items():
        if name in _groups(function):
            assert all(f"  --{field.name} " in out for field in fields(parameter.default))
            continue
        is_word = parameter.default is parameter.empty or parameter.kind is parameter.POSITIONAL_ONLY
        assert re.search(rf"^  {'' if is_word else '--'}{name}\b", out, re.MULTILINE), name
        assert " ".join(sentences[name].split()) in said
    assert " ".join(function.__doc__.partition("\n")[0].split()) in said


def test_flags_before_a_command_of_a_command_hold_for_it(call, tmp_path):
    (tmp_path / "a" / "checkpoints").mkdir(parents=True)
    for words in (["--runs_dir", tmp_path, "show", "a"], ["show", "a", f"--runs-dir={tmp_path}"]):
        status, out, err = call("runs", *words)
        assert (status, err) == (0, "") and "no milestones" in out


def test_train_is_train_fabric(call):
    assert call("train", "--num_steps", 0) == (
        2,
        "",
        "train_fabric.py: error: --num_steps must be a whole number of at least 1, got 0\n",
    )
    status, out, _ = call("train", "--help")
    assert status == 0 and "--total_timesteps" in out


def test_a_traceback_on_demand(call, tmp_path, monkeypatch):
    monkeypatch.setenv("FABRIC_RL_TRACEBACK", "1")
    with pytest.raises(ValueError, match="there is no such folder"):
        main(["runs", "--runs_dir", str(tmp_path / "none")])


@pytest.mark.parametrize("words", [["--help"], ["runs", "--help"], ["runs", "--runs_dir", "."], ["frobnicate"]])
def test_looking_at_runs_loads_no_torch(words):
    code = """
import sys
from fabric_rl.commands.main import main
try:
    main()
finally:
    print(sorted({"torch", "lightning", "gymnasium"} & sys.modules.keys()), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == "[]"


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


def test_the_report_says_how_it_began_and_how_it_ended(tmp_path):
    figures = {"total_steps": 60, "wall_seconds": 3.0, "mean_return": 4.5, "touches_per_minute": {"start": 1, "end": 7}}
    speeds = {"collected_steps_per_second": 100.0, "consumed_steps_per_second": 200.0, "overall_steps_per_second": 20.0}
    said = format_summary(Run(tmp_path), figures | speeds).splitlines()
    assert said[1:] == [
        f"Run {tmp_path.name}: 60 steps in 3 s",
        "  touches per minute: 1.00 at the start, 7.00 at the end",
        "  mean return (last 10 %): 4.50",
        "  steps per second: collected 100, consumed 200, overall 20",
    ]


def test_only_json_goes_to_standard_output():
    check_out([Path("-")], [".json"])
    for suffixes in ([".frl"], [".json", ".png"], [".png", ".csv"]):
        with pytest.raises(ValueError, match=r"^--out - must end in "):
            check_out([Path("-")], suffixes)
