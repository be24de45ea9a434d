"""Shared by the integration tests: command lines in processes that a user's shell would start."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.forks import ROOT, SECONDS, environment, free_port


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
