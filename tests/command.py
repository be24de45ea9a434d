"""Command lines in this process."""

import pytest

from fabric_rl.commands.main import main


def ended(program, words):
    """The exit status of a program that is called with words."""
    with pytest.raises(SystemExit) as end:
        program([str(word) for word in words])
    return end.value.code


def command(*argv):
    """The exit status of `fabric-rl ...`."""
    return ended(main, argv)
