"""`fabric-rl` in this process."""

import pytest

from fabric_rl.commands.main import main


@pytest.fixture
def call(capsys):
    """Runs `fabric-rl ...`: (status, output, errors)."""

    def call(*words):
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        return ended.value.code, *capsys.readouterr()

    return call
