"""Files of a run: pipes and devices are never read, and nothing is written through a planted link."""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch

from envs.pool.videos import write_video
from fabric_rl.base.files import open_regular, read_json, regular_file, replacing
from fabric_rl.callbacks.milestone_matches import _copy_newest
from fabric_rl.metrics.log import BufferedLog, logger
from fabric_rl.metrics.loggers import MetricsFile
from fabric_rl.metrics.metrics_csv import read_rows

ROOT = Path(__file__).resolve().parents[3]
TINY = ROOT / "tests/fixtures/run_of_0_1_0/tiny"
pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="POSIX")


def make_socket(path):
    """Under a short name first, because that of an address may have no more than 107 characters."""
    with tempfile.TemporaryDirectory() as short, socket.socket(socket.AF_UNIX) as there:
        there.bind(f"{short}/socket")
        shutil.move(f"{short}/socket", path)


KINDS = {
    "folder": os.mkdir,
    "fifo": getattr(os, "mkfifo", None),
    "socket": make_socket,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "link to a fifo": lambda path: (os.mkfifo(f"{path}_"), path.symlink_to(f"{path}_")),
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_only_regular_files_are_opened(tmp_path, make):
    path = tmp_path / "it"
    make(path)
    before = len(os.listdir("/dev/fd"))
    for flags in ("rb", "ab", "r+b"):
        with pytest.raises(OSError):
            open(path, flags, opener=regular_file)  # noqa: SIM115
    assert read_json(path) == {} and len(os.listdir("/dev/fd")) == before


def test_files_that_are_too_large_are_not_read(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text("12345")
    with open_regular(path, 5) as file:
        assert file.read() == b"12345"
    with pytest.raises(OSError, match=r"larger than 0\.0 MiB: '.*metrics\.csv'"):
        open_regular(path, 4)
    os.truncate(path, 1 << 40)  # takes no room on the disk
    with pytest.raises(OSError, match=r"larger than 2,048\.0 MiB"):
        read_rows(path, last_bytes=100)
    os.truncate(path, 1 << 30)  # a header of one GiB
    assert read_rows(path, last_bytes=100) == []
    os.truncate(path, 1 << 27)
    assert read_json(path) == {}


NAMES = ["config.yaml", "log.txt", "summary.json", "environment.json", "league.json", ".lock", "weights.json"]
NAMES += ["checkpoints/step_000000002048.ckpt", "initial.ckpt", "games/000000002048.frl", "code.diff"]


def spoil(runs, kind):
    """Two runs with special files: one in place of the metrics, one of all others."""
    for run, names in (("metrics", ["metrics.csv"]), ("others", NAMES)):
        shutil.copytree(TINY, runs / run)
        (runs / run / "games").mkdir()
        for name in names:
            (runs / run / name).unlink(missing_ok=True)
            KINDS[kind](runs / run / name)


def run_python(folder, code, *words):
    """Run code that is killed if it waits, and return what it prints."""
    line, where = [sys.executable, "-c", code, *words], os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(line, cwd=folder, env=where, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_runs_with_pipes_are_listed(tmp_path):
    spoil(tmp_path, "fifo")
    code = "from fabric_rl.runs.records import list_runs; print(*sorted((r.name, r.steps) for r in list_runs('.')))"
    assert run_python(tmp_path, code)[0] == "('metrics', 2048) ('others', 2048)\n"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["fifo", "socket", "device"])
def test_commands_do_not_wait_for_special_files_in_a_run(tmp_path, kind):
    spoil(tmp_path, kind)
    code = "import sys; from fabric_rl.commands.main import main\n"
    code += "for words in sys.argv[1:]:\n try: main(words.split())\n except SystemExit as end: print(words, end.code)"
    commands = ("runs", "report metrics", "report others")
    told, complained = run_python(tmp_path, code, *(f"{words} --runs_dir ." for words in commands))
    ends = [line for line in told.splitlines() if line.endswith((" 0", " 2")) and "--runs_dir" in line]
    assert ends == ["runs --runs_dir . 0", "report metrics --runs_dir . 2", "report others --runs_dir . 0"]
    assert re.fullmatch(r".*metrics\.csv cannot be read \(.*\); the run has logged no metrics\n", complained), (
        complained
    )


@pytest.fixture
def victim(tmp_path):
    """A file outside of the run."""
    path = tmp_path / "victim"
    path.write_text("kept")
    yield path
    assert path.read_text() == "kept"


def test_links_planted_in_a_run_are_not_written_through(tmp_path, victim):
    run = tmp_path / "run"
    run.mkdir()
    (run / "log.txt").symlink_to(victim)
    with BufferedLog() as log:
        log.open(run / "log.txt")
        logger.warning("something happened")
    metrics = MetricsFile(run)
    metrics.log_metrics({"a": 1.0}, 1)
    shutil.move(run / "metrics.csv", run / "moved.csv")
    (run / "metrics.csv").symlink_to(victim)
    metrics.log_metrics({"a": 2.0}, 2)
    (run / "metrics.csv").unlink()
    metrics.log_metrics({"a": 3.0}, 3)  # nothing of the row before is lost
    assert [row["step"] for row in read_rows(run / "metrics.csv")] == ["2", "3"]


def test_temporary_names_of_copies_and_videos_cannot_be_planted(tmp_path, victim):
    source, best, videos = tmp_path / "main/000000002048", tmp_path / "best", tmp_path / "videos"
    for folder in (source, best, videos):
        folder.mkdir(parents=True)
    (source / "step_000000002048.ckpt").write_bytes(b"weights")
    for name in (best / "new.tmp", best / "step_000000002048.ckpt.tmp", videos / "a.part", videos / "a.mp4.tmp"):
        name.symlink_to(victim)
    _copy_newest(source, best)
    assert (best / "step_000000002048.ckpt").read_bytes() == b"weights"
    write_video(videos / "a.mp4", [np.zeros((90, 160, 3), np.uint8)] * 3, 30)
    assert (videos / "a.mp4").stat().st_size > 100 and len(list(videos.iterdir())) == 3


def test_a_block_that_fails_leaves_the_old_file(tmp_path, victim):
    path = tmp_path / "a"
    path.symlink_to(victim)
    with pytest.raises(OSError, match=r"^said by the block$"), replacing(path) as file:
        torch.save({"half": 1}, file)
        raise OSError("said by the block")
    assert path.is_symlink() and sorted(each.name for each in tmp_path.iterdir()) == ["a", "victim"]
