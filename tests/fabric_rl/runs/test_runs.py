"""Reading run folders, and the `fabric-rl runs` command on an 80-column terminal."""

import csv
import importlib
import json
import os
from datetime import datetime

import numpy as np
import pytest

from fabric_rl.analysis import curves
from fabric_rl.analysis.curves import choose_metrics, draw_png, draw_text
from fabric_rl.commands.main import main
from fabric_rl.commands.runs import USUAL_METRICS
from fabric_rl.metrics.metrics_csv import read_metrics
from fabric_rl.runs.checkpoint import write
from fabric_rl.runs.records import checkpoint_name, find_run, list_runs, load_run

NAMES = ["step", "reward/episode_return", "ppo/entropy"]


def make_run(base, name, rows=(), summary=None, milestones=(), changed=None, names=NAMES):
    """A run folder; `milestones` are (phase, steps, meta)."""
    folder = base / name
    (folder / "checkpoints").mkdir(parents=True)
    if rows:
        with open(folder / "metrics.csv", "w", newline="") as file:
            csv.writer(file).writerows([names, *rows])
    if summary is not None:
        (folder / "summary.json").write_text(json.dumps(summary))
    for phase, steps, meta in milestones:
        (folder / "milestones" / phase / str(steps)).mkdir(parents=True)
        (folder / "milestones" / phase / str(steps) / "meta.json").write_text(json.dumps(meta))
    for file in folder.glob("*.*"):
        os.utime(file, (changed or 1e9,) * 2)
    return folder


META = {"mean_reward": 1.5, "entropy": 4.1, "kl": 0.0123, "rating": 1234.5, "timestamp": "2024-05-06T07:08:09"}


@pytest.fixture
def runs(tmp_path):
    """Three runs: finished, stopped, killed."""
    base = tmp_path / "runs"
    rows = [[100 * i, i, 4 - i / 100] for i in range(1, 101)]
    done = {
        "total_steps": 10_000,
        "stopped_early": False,
        "mean_return": 12.345678,
        "touches_per_minute": {"start": 0.5},
    }
    make_run(base, "alpha", rows, done, changed=3e8)
    milestones = [("BallTouching", steps, META) for steps in (100, 200, 300, 400)] + [("Bronze", 1000, {})]
    make_run(base, "beta", rows[:50], {"total_steps": 5000, "stopped_early": True}, milestones, changed=2e8)
    make_run(base, "gamma", [[step, 2 * value, entropy] for step, value, entropy in rows[:30]], changed=1e8)
    (base / "no run").mkdir()
    (base / "compare.png").write_bytes(b"")
    return base


# ---------------------------------------------------------------- reading


def test_runs_are_listed_newest_first_with_steps_and_state(runs):
    assert [(run.name, run.status, run.steps) for run in list_runs(runs)] == [
        ("alpha", "finished", 10_000),
        ("beta", "stopped", 5000),
        ("gamma", "unfinished", 3000),
    ]


def test_a_finished_run_that_was_resumed_and_went_on_is_unfinished(tmp_path):
    run = load_run(make_run(tmp_path, "r", [[100, 1, 2], [300, 1, 2]], {"total_steps": 200, "stopped_early": False}))
    assert (run.status, run.steps) == ("unfinished", 300)


def test_a_run_that_could_not_save_its_last_checkpoint_is_unfinished(tmp_path):
    summary = {"total_steps": 300, "stopped_early": False, "unsaved_steps": 100}
    assert load_run(make_run(tmp_path, "r", [[300, 1, 2]], summary)).status == "unfinished"


def test_a_folder_that_a_killed_run_has_left_is_no_milestone(tmp_path):
    folder = make_run(tmp_path, "r", milestones=[("main", 100, META)])
    (folder / "milestones/main/000000000200").mkdir()
    (folder / "milestones/main/000000000200/step.ckpt.abc.tmp").write_text("half")
    assert [m.steps for m in load_run(folder).milestones] == [100]


def test_milestones_that_the_run_has_gone_back_from_are_counted_only(tmp_path):
    kept, left = ("main", 100, META), [("set_aside/main", 200, META), ("set_aside/7", "300-2", META)]
    run = load_run(make_run(tmp_path, "r", milestones=[kept, *left]))
    assert [(m.phase, m.steps) for m in run.milestones] == [("main", 100)]
    assert run.abandoned == 2


def test_steps_come_from_the_checkpoint_where_nothing_was_logged(tmp_path):
    folder = make_run(tmp_path, "r")
    assert load_run(folder).steps == 0
    write(folder / "checkpoints" / checkpoint_name(700), {})
    write(folder / "checkpoints" / checkpoint_name(90), {})
    assert load_run(folder).steps == 700


def test_milestones_by_phase_and_steps_with_what_their_meta_says(runs):
    (runs / "beta" / "milestones" / "Bronze" / "notes").mkdir()
    milestones = find_run(runs, "beta").milestones
    assert [(m.phase, m.steps) for m in milestones] == [
        *(("BallTouching", steps) for steps in (100, 200, 300, 400)),
        ("Bronze", 1000),
    ]
    first = milestones[0]
    assert (first.mean_reward, first.entropy, first.kl, first.rating) == (1.5, 4.1, 0.0123, 1234.5)
    assert first.timestamp == datetime(2024, 5, 6, 7, 8, 9)
    assert (milestones[4].mean_reward, milestones[4].timestamp) == (None, None)


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        ("2024-05-06T07:08:09+00:00", datetime.fromisoformat("2024-05-06T07:08:09+00:00").timestamp()),
        ("2024-05-06T07:08:09Z", datetime.fromisoformat("2024-05-06T07:08:09+00:00").timestamp()),
        (1.5e9, 1.5e9),
        ("yesterday", None),
        (True, None),
        (1e300, None),
    ],
)
def test_timestamps_of_milestones(tmp_path, timestamp, expected):
    folder = make_run(tmp_path, "r", milestones=[("p", 1, {"timestamp": timestamp})])
    moment = load_run(folder).milestones[0].timestamp
    assert (moment and moment.timestamp()) == expected


@pytest.mark.parametrize("text", ["", "{", "[1]", '"text"', "\x00\xff"])
def test_damaged_json_reads_as_missing(tmp_path, text):
    folder = make_run(tmp_path, "r", [[100, 1, 2]], {}, [("p", 1, {})])
    for file in ("summary.json", "milestones/p/1/meta.json"):
        (folder / file).write_text(text, encoding="latin-1")
    run = load_run(folder)
    assert (run.summary, run.status, run.steps, run.milestones[0].kl) == ({}, "unfinished", 100, None)


def test_curves_leave_out_gaps_and_the_later_row_of_a_step_counts(tmp_path):
    rows = [[10, 1, ""], [20, 2, 5], [30, 3, "nan"], [20, 20, 6], [30, 30, "oops"]]
    folder = make_run(tmp_path, "r", rows)
    with open(folder / "metrics.csv", "a") as file:
        file.write("40,4")  # killed while it wrote
    curves = read_metrics(folder / "metrics.csv")
    assert {name: (x.tolist(), y.tolist()) for name, (x, y) in curves.items()} == {
        "reward/episode_return": ([10, 20, 30], [1, 20, 30]),
        "ppo/entropy": ([20], [6]),
    }
    assert load_run(folder).steps == 30


def test_missing_or_foreign_metrics_are_one_line(tmp_path):
    with pytest.raises(ValueError, match="cannot be read"):
        read_metrics(tmp_path / "metrics.csv")
    (tmp_path / "metrics.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="no column 'step'"):
        read_metrics(tmp_path / "metrics.csv")


def test_a_run_is_found_by_name_or_folder_and_an_unknown_one_gets_a_hint(runs, monkeypatch):
    assert find_run(runs, "alpha").folder == runs / "alpha"
    monkeypatch.chdir(runs.parent)
    assert find_run("elsewhere", "runs/alpha").name == "alpha"
    with pytest.raises(ValueError, match="did you mean alpha"):
        find_run(runs, "alpa")
    with pytest.raises(ValueError, match="no run no run"):
        find_run(runs, "no run")


def test_metrics_are_chosen_by_default_name_or_pattern():
    curve = (np.array([1.0]), np.array([1.0]))
    curves = {"a": dict.fromkeys(["ppo/kl", "ppo/entropy"], curve), "b": {"game/touches_per_minute": curve}}
    assert choose_metrics(curves, usual=USUAL_METRICS) == ["game/touches_per_minute", "ppo/entropy"]
    assert choose_metrics(curves, ["ppo/*", "ppo/kl"]) == ["ppo/entropy", "ppo/kl"]
    assert choose_metrics({"a": dict.fromkeys("edcba", curve)}, usual=USUAL_METRICS) == ["a", "b", "c", "d"]
    with pytest.raises(ValueError, match="did you mean ppo/entropy"):
        choose_metrics(curves, ["ppo/entrpy"])


# ---------------------------------------------------------------- command


def runs_command(*argv):
    """The exit status of `fabric-rl runs ...`."""
    with pytest.raises(SystemExit) as ended:
        main(["runs", *argv])
    return ended.value.code


@pytest.fixture
def command(runs, monkeypatch, capsys):
    """Runs the command on 80 columns: (status, stdout, stderr)."""
    monkeypatch.setenv("COLUMNS", "80")

    def run(*argv):
        status = runs_command(*argv, "--runs_dir", str(runs))
        out, err = capsys.readouterr()
        assert all(len(line) <= 80 for line in out.splitlines() if not line.startswith("curves: "))
        assert len(err.splitlines()) <= 1
        return status, out, err

    return run


def row_of(text, first):
    return next(line.split() for line in text.splitlines() if line.split()[:1] == [first])


def test_the_list_shows_runs_and_their_latest_milestones(command):
    status, out, _ = command()
    assert status == 0
    assert row_of(out, "alpha")[1:4] == ["finished", "10,000", "12.35"]
    assert row_of(out, "Bronze")[1:4] == ["milestone", "1,000", "-"]
    shown = [line.split()[2:] for line in out.splitlines() if "BallTouching" in line]
    assert shown == [[steps, "1.5", "1,234", "2024-05-06", "07:08"] for steps in ("300", "400")]
    assert "2 more" in out


def test_long_names_and_markup_are_shown_whole(command, runs):
    name = "run_[red]_" + "x" * 60
    make_run(runs, name, [[10**12, 1, 2]])
    _, out, _ = command()
    lines = out.splitlines()
    start = next(i for i, line in enumerate(lines) if "run_[red]" in line)
    assert "".join(line.split()[0] for line in lines[start : start + 6] if line.split()).startswith(name)
    assert "1,000,000,000,000" in lines[start]


def test_show_has_the_summary_and_all_milestones(command):
    _, out, _ = command("show", "alpha")
    assert row_of(out, "mean") == ["mean", "return", "12.35"]
    assert "0.5 at the start" in out
    assert "no milestones" in out
    _, out, _ = command("show", "beta")
    assert row_of(out, "state") == ["state", "stopped"]
    shown = [line.split()[1:] for line in out.splitlines() if "BallTouching" in line]
    assert shown[0] == ["100", "1.5", "4.1", "0.0123", "1,234", "2024-05-06", "07:08"]
    assert [row[0] for row in shown] == ["100", "200", "300", "400"]
    assert row_of(out, "Phase")[1:3] == ["Steps", "Return"]  # as the list of runs calls the same figure


def test_show_says_how_many_milestones_are_set_aside(command, runs):
    make_run(runs, "back", [[100, 1, 2]], milestones=[("set_aside/main", 200, META)])
    _, out, _ = command("show", "back")
    assert row_of(out, "abandoned")[1:] == ["1", "milestones,", "in", "milestones/set_aside"]


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        (["show", "alpa"], "did you mean alpha?"),
        (["show"], "required: id"),
        (["shwo"], "there is no command shwo; did you mean show?"),
        (["compare", "alpha"], "two or more"),
        (["compare", "alpha", "alpha"], "two or more"),
        (["compare", "alpha", "beta", "--metrics", "nope"], "--metrics nope: no run has such a metric"),
        (
            ["compare", "alpha", "beta", "--output", "nowhere/x.png"],
            "--output nowhere/x.png: there is no folder nowhere",
        ),
        (["compare", "alpha", "beta", "--output", "x.svg"], "--output x.svg must end in .png"),
        (["--metric=x"], "--metric: no such setting; see --help"),
    ],
)
def test_mistakes_are_one_line_and_status_2(command, argv, complaint):
    status, out, err = command(*argv)
    assert (status, out) == (2, "")
    assert err.startswith("fabric-rl runs: error: ")
    assert complaint in err


def test_an_empty_and_a_missing_folder(tmp_path, capsys):
    assert runs_command("--runs_dir", str(tmp_path)) == 0
    assert "there are no runs in" in capsys.readouterr().out
    assert runs_command("--runs-dir", str(tmp_path / "missing")) == 2
    assert "there is no such folder" in capsys.readouterr().err


def test_compare_tabulates_the_mean_of_the_last_tenth_even_without_plots(command, monkeypatch, runs):
    real = importlib.import_module

    def without_plots(name):
        if name.split(".")[0] in ("matplotlib", "plotext"):
            raise ModuleNotFoundError(name)
        return real(name)

    monkeypatch.setattr(curves, "import_module", without_plots)
    status, out, err = command("compare", "alpha", "beta", "gamma")
    assert status == 2
    assert err == "fabric-rl runs: error: plotext and matplotlib are not installed; pip install plotext matplotlib\n"
    assert row_of(out, "reward/episode_return")[1:] == ["95.5", "48", "58"]  # means of 91..100, 46..50, 2 x 28..30
    assert [path.name for path in runs.glob("*.png")] == ["compare.png"]


def test_runs_of_the_same_name_are_told_apart_by_their_folders(tmp_path, runs, capsys):
    pytest.importorskip("matplotlib")
    pytest.importorskip("plotext")
    other = make_run(tmp_path / "other", "alpha", [[10, 1, 2]])
    output = tmp_path / "out.png"
    argv = ["compare", "alpha", str(other), "--runs_dir", str(runs), "--metrics", "ppo/*", "--output", str(output)]
    assert runs_command(*argv) == 0
    assert row_of(capsys.readouterr().out, "ppo/entropy")[1:] == ["3.045", "2"]  # 4 minus the mean of 0.91..1


def test_compare_draws_png_and_terminal(command, runs):
    pytest.importorskip("matplotlib")
    pytest.importorskip("plotext")
    status, out, err = command("compare", "alpha", "gamma")
    assert (status, err) == (0, "")
    assert (runs / "compare.png").read_bytes().startswith(b"\x89PNG\r\n")
    assert "thousand agent-steps" in out
    assert "oo alpha" in out
    assert "xx gamma" in out
    assert "\x1b" not in out


@pytest.mark.slow
def test_the_png_shows_the_curves(tmp_path):
    pytest.importorskip("matplotlib")
    from PIL import Image

    steps = np.arange(1.0, 50.0)
    draw_png(tmp_path / "a.png", {"a": {"m": (steps, steps)}, "b": {"m": (steps, -steps)}, "c": {}}, ["m"])
    image = np.asarray(Image.open(tmp_path / "a.png").convert("RGB")).reshape(-1, 3).tolist()
    drawn = set(map(tuple, image))
    assert {(31, 119, 180), (255, 127, 14)} <= drawn  # matplotlib's first two colours
    assert (44, 160, 44) not in drawn


def test_the_terminal_curve_rises_where_the_numbers_rise(tmp_path):
    pytest.importorskip("plotext")
    steps = np.linspace(1e6, 9e6, 2000)
    lines = draw_text({"a": {"m": (steps, steps)}}, "m", width=60, height=14).splitlines()
    marks = [line.rindex("o") for line in lines if "o" in line and "agent" not in line and "oo a" not in line]
    assert len(marks) >= 5
    assert marks == sorted(marks, reverse=True)
    assert max(map(len, lines)) <= 60


@pytest.mark.skipif(os.name != "posix", reason="SIGPIPE")
@pytest.mark.parametrize(("argv", "shown"), [(["--help"], 0), (["runs", "compare", "alpha", "gamma"], 1)])
def test_nobody_reads_on(forks, runs, argv, shown):
    """`... | head`: the reader closes its end, before anything is written or after the first byte."""
    folder = ["--runs_dir", runs] if argv[0] == "runs" else []
    statuses, _, err = forks.wait([forks.start(*argv, *folder, program="fabric-rl", BROKEN_PIPE=shown)])
    assert (statuses, err) == ([1], "")
