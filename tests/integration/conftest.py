"""Shared by the integration tests: command lines in processes that a user's shell would start."""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.command import ended
from tests.forks import ROOT, SECONDS, environment, free_port
from tests.runs import CARTPOLE, HELD, HIDDEN, MEMORY, POOL, STACKED
from train_fabric import cli


def start(*command) -> subprocess.Popen:
    """Starts a Python command line in the repository's root, with text pipes."""
    return subprocess.Popen(
        [sys.executable, *map(str, command)],
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*command, seconds=SECONDS) -> subprocess.CompletedProcess:
    """Runs a Python command line to its end."""
    process = start(*command)
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        process.kill()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@pytest.fixture(scope="session")
def start_python():
    return start


@pytest.fixture(scope="session")
def run_python():
    return run


@pytest.fixture(scope="session")
def fabric_run():
    """`fabric run` for `run_python`, on a port that no other run has."""
    return [Path(sysconfig.get_path("scripts"), "fabric"), "run", f"--main-port={free_port()}"]


@pytest.fixture(scope="session")
def root():
    return ROOT


# ---------------------------------------------------------------- short trainings of CartPole, in forked processes


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The module's folder of runs."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def begin(forks, runs):
    """Starts a command line."""
    here = ["--runs_dir", runs, "--accelerator", "cpu", "--plain"]
    return lambda *flags, **variables: forks.start(*here, *flags, **variables)


@pytest.fixture(scope="module")
def end(forks):
    """Waits for a command line; its exit status, output and the lines of its errors."""

    def end(process):
        (status,), out, err = forks.wait([process])
        assert "Traceback" not in err, err
        return status, out, err.splitlines()

    return end


@pytest.fixture(scope="module")
def call(begin, end):
    """A command line to its end."""
    return lambda *flags, **variables: end(begin(*flags, **variables))


@pytest.fixture
def refused(runs, capsys):
    """The one line with which a command line of train_fabric.py ends that can do nothing, in the test's process."""

    def refused(*flags):
        status = ended(cli, ["--runs_dir", runs, "--accelerator", "cpu", "--plain", *flags])
        err = capsys.readouterr().err
        assert (status, err.count("\n")) == (2, 1), err
        return err

    return refused


@pytest.fixture(scope="session")
def trained(forks, tmp_path_factory):
    """Ten iterations with checkpoints every 128 steps and milestones every 256; tests work on copies of it."""
    here = tmp_path_factory.mktemp("trained")
    flags = [*CARTPOLE, "--total_timesteps", 640, "--checkpoint_every_timesteps", 128, "--milestone_interval", 256]
    process = forks.start(*flags, "--runs_dir", here, "--run_id", "first", "--accelerator", "cpu", "--plain")
    statuses, _, err = forks.wait([process])
    assert (statuses, err) == ([0], "")
    return here / "first"


@pytest.fixture(scope="module")
def first(trained, runs):
    """A copy of `trained` in the module's folder, for tests that leave it as it is."""
    return shutil.copytree(trained, runs / "first")


@pytest.fixture(scope="module")
def copy_of_first(first):
    """Copies it to another name."""
    return lambda name: shutil.copytree(first, first.parent / name)


@pytest.fixture(scope="session")
def rocket_runs(tmp_path_factory):
    """Runs of Rocket League to play and to export; tests leave them as they are."""
    folder = tmp_path_factory.mktemp("rocket_runs")
    for name, flags in (
        ("plain", HIDDEN),
        ("stacked", [*HIDDEN, *STACKED, *HELD, "--milestone_interval", "64", "--env.tick_skip", "4"]),
        ("memory", MEMORY),
        ("twos", [*HIDDEN, "--env.team_size", "2"]),
    ):
        cli([*POOL, *flags, "--runs_dir", str(folder), "--run_id", name])
    return folder
