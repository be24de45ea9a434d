"""Shared by the reward tests: play that is recorded once."""

import pytest

from tests.envs.rewards.reward_play import record


@pytest.fixture(scope="session")
def tapes():
    """Arenas of 1v1, 2v1 and 3v3, so with absent cars; and 2v2."""
    return [record([(1, 1), (2, 1), (3, 3)]), record(2, arenas=3, seed=5)]
