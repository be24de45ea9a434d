"""The folder of a run: whole or not there at all, whenever its start is killed; which names it may have."""

import os
import sys
import time

import pytest

from fabric_rl import Run
from fabric_rl.base.files import write_text
from fabric_rl.metrics.loggers import MetricsFile

CONFIG = "seed: 3\n"


def half_made(folder, *files):
    """What a kill leaves before `checkpoints` is made, the last thing."""
    folder.mkdir(parents=True)
    for name in files:
        (folder / name).write_text("cut sho")
    return folder


def test_a_new_run_has_its_settings_as_soon_as_it_is_one(tmp_path):
    run = Run.create(tmp_path, "r", config=CONFIG)
    assert run.checkpoints.is_dir() and run.provenance.config.read_text() == CONFIG


@pytest.mark.parametrize(
    "files", [(), (".lock",), (".lock", "config.yaml.tmp", "environment.json", "initial.ckpt.tmp")]
)
def test_a_folder_whose_start_was_killed_is_taken_by_the_next_start(tmp_path, files):
    folder = half_made(tmp_path / "r", *files)
    with pytest.raises(FileNotFoundError, match=r"^--run_id r: it was killed before it began; start it without --res"):
        Run.find(tmp_path, "r")
    assert Run.create(tmp_path, "r", config=CONFIG).dir == folder
    assert Run.find(tmp_path, "r").provenance.config.read_text() == CONFIG


def test_a_folder_that_holds_something_else_is_not_taken(tmp_path):
    half_made(tmp_path / "r", "notes.txt")
    with pytest.raises(FileExistsError, match=r"--run_id r: .* already exists"):
        Run.create(tmp_path, "r")
    assert (tmp_path / "r/notes.txt").exists()


def test_a_folder_that_another_process_makes_is_left_to_it(tmp_path, monkeypatch):
    monkeypatch.setattr("fabric_rl.runs.folder._PATIENCE", 0.1)
    other = Run(half_made(tmp_path / "r"))
    other.claim()
    with pytest.raises(BlockingIOError, match="another process works on"):
        Run.create(tmp_path, "r")
    assert other.dir.is_dir()


def test_of_many_runs_the_newest_are_named_and_the_cut_is_said(tmp_path):
    for name in "fedcba":
        Run.create(tmp_path, name).release()
        time.sleep(0.01)
    with pytest.raises(FileNotFoundError, match=r"the newest of 6 are a, b, c, d, e; fabric-rl runs lists all$"):
        Run.find(tmp_path, "none")


@pytest.mark.skipif(sys.platform == "win32", reason="permissions")
def test_a_folder_that_cannot_be_written_is_said_before_anything_happens(tmp_path):
    run = Run.create(tmp_path, "r")
    run.check_writable()
    run.checkpoints.chmod(0o555)
    root = os.geteuid() == 0  # who may write anywhere
    try:
        if root:
            os.seteuid(65534)
        with pytest.raises(OSError, match=r"^--resume: cannot write into .*; make it writable, or begin a new run"):
            run.check_writable()
    finally:
        if root:
            os.seteuid(0)
        run.checkpoints.chmod(0o755)


def test_nothing_temporary_stays_where_the_disk_is_full(tmp_path, file_limit, capsys):
    write_text(tmp_path / "config.yaml", "old")
    file_limit(10)
    with pytest.raises(OSError):
        write_text(tmp_path / "config.yaml", "n" * 1000)
    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]
    metrics = MetricsFile(tmp_path)
    metrics.log_metrics({"a": 1.0}, 1)
    assert "cannot be written" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]


@pytest.fixture
def file_limit():
    """Lets no file grow over so many bytes: the disk is full."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda most: resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
