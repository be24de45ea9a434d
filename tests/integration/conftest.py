"""Shared by the integration tests: the command line as a user starts it, in a process of its own."""

import os
import socket
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 100  # far beyond what any run here takes; only a run that hangs meets it


def environment() -> dict[str, str]:
    launched = {name for name in os.environ if name.startswith("LT_")} | {"LOCAL_RANK", "LOCAL_WORLD_SIZE", "RANK"}
    clean = {name: value for name, value in os.environ.items() if name not in launched}
    return clean | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


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
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return [Path(sysconfig.get_path("scripts"), "fabric"), "run", f"--main-port={port}"]


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="module")
def forks(tmp_path_factory):
    """Starts command lines without importing everything anew, see forks.py."""
    from tests.integration.launching import Forks  # which imports from here

    forks = Forks(tmp_path_factory.mktemp("forks"))
    yield forks
    forks.close()
