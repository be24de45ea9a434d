"""`fabric-rl` in this process."""

import subprocess
import threading
from types import SimpleNamespace

import pytest

from fabric_rl.commands.main import main
from fabric_rl.sweeps import train_processes


@pytest.fixture
def call(capsys):
    """Runs `fabric-rl ...`: (status, output, errors)."""

    def call(*words):
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        return ended.value.code, *capsys.readouterr()

    return call


@pytest.fixture(autouse=True)
def trainings_are_forked(request, monkeypatch):
    """What `seeds`, `sweep`, `pbt` and `tune` start in this process has imported everything, see forks.py."""
    lock = threading.Lock()

    def popen(*words, **streams):
        with lock:
            forks = request.getfixturevalue("forks")
        return forks.popen(*words, **streams)

    monkeypatch.setattr(train_processes, "subprocess", SimpleNamespace(**vars(subprocess) | {"Popen": popen}))
