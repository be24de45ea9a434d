"""Rows of metrics: one for each iteration, or means over several."""

from functools import partial

import pytest

from agents import PPOLightningAgent
from envs import GymnasiumEnvs
from fabric_rl import Callback, StartArgs, TrainArgs, load_checkpoint, train
from fabric_rl.metrics.csv_tables import read_rows
from fabric_rl.runs.start import Announcement, loggers_of, open_run

ENV = partial(GymnasiumEnvs, "CartPole-v1", 2)
EACH = 32


class Adds(Callback):
    """A metric of its own, on rank 0 only, and one that counts unevenly."""

    def on_iteration_end(self, state):
        state.metrics["custom/iteration"] = float(state.iteration)
        if state.iteration == getattr(self, "stop_after", None):
            state.stop = True

    def drain_metrics(self):
        self.calls = getattr(self, "calls", 0) + 1
        return {"custom/uneven": (10.0 * self.calls, float(self.calls**2))}


@pytest.fixture
def rows(fabric, tmp_path):
    """Trains into a folder; returns the rows of its metrics without speeds, by agent-steps."""

    def call(name, iterations, summary_freq=None, resume=False, stop_after=None):
        args = TrainArgs(iterations * EACH, num_steps=16, update_epochs=1, lr_schedule="constant")
        args = TrainArgs(**vars(args) | {"summary_freq": summary_freq})
        start = StartArgs(name, str(tmp_path), resume)
        adds = Adds()
        adds.stop_after, adds.calls = stop_after, 0 if not resume else stop_after_of[name]
        stop_after_of[name] = stop_after or 0
        with open_run(ENV, PPOLightningAgent, args, start, None) as opened:
            fabric._loggers = loggers_of(opened, None)
            opened.share(fabric)
            hooks = [adds, Announcement(opened, args, None, "")]
            train(fabric, ENV, PPOLightningAgent, args, opened.run, hooks, plain=True, resume=opened.state)
        found = read_rows(tmp_path / name / "metrics.csv")
        return {
            int(row["step"]): {name: float(x) for name, x in row.items() if x and name[:5] != "speed"} for row in found
        }

    stop_after_of = {}
    return call


def test_a_row_holds_weighted_means_of_the_iterations_since_the_last_one(rows):
    each, few = rows("each", 5), rows("few", 5, summary_freq=2 * EACH)
    assert list(each) == [32, 64, 96, 128, 160]
    assert list(few) == [64, 128, 160]  # at the end, what is left
    for step, of in ((64, (32, 64)), (128, (96, 128)), (160, (160,))):
        numbers = [each[one]["custom/iteration"] for one in of]
        assert few[step]["custom/iteration"] == sum(numbers) / len(numbers)
        assert few[step]["ppo/entropy"] == pytest.approx(sum(each[one]["ppo/entropy"] for one in of) / len(of))
        calls = [one // EACH for one in of]
        assert few[step]["custom/uneven"] == pytest.approx(sum(10 * n for n in calls) / sum(n**2 for n in calls))


def test_a_run_that_goes_on_has_the_rows_of_one_without_a_break(rows, tmp_path):
    whole = rows("whole", 6, summary_freq=2 * EACH)
    stopped = rows("stopped", 6, summary_freq=2 * EACH, stop_after=3)
    assert list(stopped) == [64, 96]
    assert load_checkpoint(tmp_path / "stopped")[1]["unpublished"]["custom/uneven"] == [30.0, 9.0]
    again = rows("stopped", 6, summary_freq=2 * EACH, resume=True)
    assert list(again) == list(whole) == [64, 128, 192]
    for name in ("custom/uneven", "custom/iteration"):
        assert [row[name] for row in again.values()] == [row[name] for row in whole.values()]
