"""The campaign of self-matches, smaller than by hand."""

import pytest

from tests.campaigns.self_matches import campaign


@pytest.mark.learning
def test_the_interval_of_a_player_against_itself_holds_0():
    assert campaign(["chaser"], pairs=100, minutes=1.0, seed=0) == 0
