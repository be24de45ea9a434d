"""The campaigns, whole: each prints its table."""

import sys

import pytest

from tests.campaigns import (
    kills,
    mutated_checkpoints,
    mutated_configs,
    mutated_exports,
    mutated_replays,
    viewer_attacks,
)

pytestmark = [
    pytest.mark.learning,
    pytest.mark.timeout(7200),
    pytest.mark.skipif(sys.platform != "linux", reason="os.fork, /proc"),
]


@pytest.mark.parametrize(
    ("campaign", "number"),
    [
        (kills.campaign, 150),
        (mutated_checkpoints.campaign, 500),
        (mutated_configs.campaign, 400),
        (mutated_exports.campaign, 200),
        (mutated_replays.campaign, 300),
        (viewer_attacks.campaign, 200),
    ],
    ids=["kills", "checkpoints", "configurations", "exports", "replays", "viewer"],
)
def test_nothing_ends_badly(tmp_path, capsys, campaign, number):
    with capsys.disabled():
        assert campaign(tmp_path, number, seed=0) == 0
