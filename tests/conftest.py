"""Shared by all tests."""

import os

import hypothesis
import pytest
import torch

from tests.forks import Forks

if "PYTEST_XDIST_WORKER_COUNT" in os.environ:  # the processes of the tests share the cores, as ranks do
    os.environ["LOCAL_WORLD_SIZE"] = os.environ["PYTEST_XDIST_WORKER_COUNT"]
hypothesis.settings.register_profile("tests", max_examples=30, derandomize=True, deadline=None)
hypothesis.settings.load_profile("tests")


def pytest_collection_modifyitems(items):
    """The integration tests first: their files take longest, and no process shall be left alone at the end."""
    items.sort(key=lambda item: "integration" not in item.path.parts)


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
