"""`fabric-rl` in this process."""

import pytest

from fabric_rl.commands.main import main


def command(*argv):
    """The exit status of `fabric-rl ...`."""
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in argv])
    return ended.value.code
