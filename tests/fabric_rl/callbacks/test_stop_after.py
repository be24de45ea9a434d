"""StopAfter: runs that end in time."""

import time

import pytest

from fabric_rl import Callback
from fabric_rl.callbacks import StopAfter
from tests.fabric_rl.callbacks.test_callbacks import trained


def test_a_run_ends_when_its_time_is_over(fabric):
    summary = trained(fabric, [StopAfter(minutes=1e-6)], iterations=3)
    assert summary["stopped_by"] == "StopAfter" and summary["total_steps"] == 64
    assert "stopped_by" not in trained(fabric, [StopAfter(minutes=60)], iterations=2)
    summary = trained(fabric, [StopAfter(minutes=1e-6, after_iterations=2)], iterations=5)
    assert summary["stopped_by"] == "StopAfter" and summary["total_steps"] == 3 * 64


@pytest.mark.slow
def test_minutes_of_the_processor_pass_only_when_it_works(fabric):
    class Sleep(Callback):
        def on_iteration_end(self, state):
            time.sleep(1.3)

    assert trained(fabric, [Sleep(), StopAfter(minutes=0.02)], iterations=3)["total_steps"] == 64
    assert "stopped_by" not in trained(fabric, [Sleep(), StopAfter(minutes=0.02, processor=True)], iterations=2)
    summary = trained(fabric, [StopAfter(minutes=1e-6, processor=True)], iterations=3)
    assert summary["stopped_by"] == "StopAfter" and summary["total_steps"] == 64
