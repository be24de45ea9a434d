"""Shared by all tests."""

import gc
import os
import signal

import hypothesis
import pytest
import torch

from tests.forks import Forks

if "PYTEST_XDIST_WORKER_COUNT" in os.environ:  # the processes of the tests share the cores, as ranks do
    os.environ["LOCAL_WORLD_SIZE"] = os.environ["PYTEST_XDIST_WORKER_COUNT"]
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts background jobs so, and children inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)
gc.set_threshold(100_000, 50, 100)  # a process holds all tests and modules; searching them took a sixth of its time
hypothesis.settings.register_profile("tests", max_examples=30, derandomize=True, deadline=None)
hypothesis.settings.load_profile("tests")


LONGEST = (
    "test_docs_blocks",
    "test_own_modules",
    "test_wheel",
    "test_notebooks",
    "test_command_line",
    "test_examples",
    "test_bad_input",
    "test_resume",
    "test_evaluate",
    "test_starts",
    "test_run_lifecycle",
    "test_rlbot",
    "test_export",
)
"""Files of many seconds, the longest first (`--durations=0`)."""
SECONDS = 3
"""An unmarked test that takes longer should be faster, or marked as slow."""


def pytest_collection_modifyitems(items):
    """The longest files first, then the other integration tests: no process shall be left alone at the end."""
    order = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: (order.get(item.path.stem, len(order)), "integration" not in item.path.parts))


def pytest_collection_finish():
    """What is there before the first test stays until the last one."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter):
    """On CI, lists the unmarked tests of more than `SECONDS`."""
    if "CI" not in os.environ:
        return
    reports = terminalreporter.stats.get("passed", []) + terminalreporter.stats.get("failed", [])
    long = [report for report in reports if report.when == "call" and report.duration > SECONDS]
    long = [report for report in long if not {"slow", "learning"} & report.keywords.keys()]
    if long:
        terminalreporter.section(f"unmarked tests of more than {SECONDS} s: make them faster, or mark them as slow")
    for report in sorted(long, key=lambda report: -report.duration):
        terminalreporter.write_line(f"{report.duration:6.1f} s  {report.nodeid}")


@pytest.fixture(autouse=True)
def one_thread():
    """Networks this small are slower with more, and very slow where cores are busy; a training in this process asks
    for as many as there are.
    """
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def forks(tmp_path_factory):
    """Command lines and functions in processes of their own, see forks.py."""
    forks = Forks(tmp_path_factory.mktemp("forks"))
    yield forks
    forks.close()


@pytest.fixture(autouse=True)
def nothing_runs_on(request):
    """What a failed test has left would slow down all others."""
    used = request.getfixturevalue("forks") if "forks" in request.fixturenames else None
    yield
    if used is not None:
        used.end_all()
