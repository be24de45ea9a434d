"""The live view on a terminal of 80 columns."""

import io
import re

import pytest
from rich.console import Console

from fabric_rl.metrics.console import TrainConsole, _table

METRICS = {
    "game/episode_length": 123.4567,
    "game/goals_per_minute": 0.123456,
    "game/touches_per_minute": 12.34567,
    "ppo/approx_kl": -2.794e-09,
    "ppo/clip_fraction": 0.123456,
    "ppo/entropy": 4.123456,
    "ppo/explained_variance": -0.005701234,
    "ppo/learning_rate": 0.0003,
    "ppo/policy_loss": -0.01234567,
    "ppo/update_magnitude": 1.234567,
    "ppo/update_magnitude_policy_head": 0.1234567,
    "ppo/value_loss": 21.9312,
    "reward/VelocityPlayerToBallReward": 0.001234567,
    "reward/a_reward_of_my_own_with_a_name_that_is_longer_than_half_of_the_terminal": 1.0,
    "reward/episode_return": 1234567.0,
    "speed/collected_steps_per_second": 1234567.0,
    "speed/consumed_steps_per_second": 2345678.0,
    "speed/overall_steps_per_second": 345678.0,
}


def drawn(what, width=80):
    console = Console(width=width, file=io.StringIO())
    console.print(what)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [80, 60])
def test_no_label_and_no_number_is_cut(width):
    text = drawn(_table(METRICS), width)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    for number in ("1,234,567", "2,345,678", "-2.794e-09", "-0.005701", "345,678"):
        assert number in text
    if width == 80:
        for label in ("collected_steps/s", "consumed_steps/s", "overall_steps/s", "touches/min", "goals/min"):
            assert re.search(rf"(^| ){re.escape(label)} ", text, re.MULTILINE)
        assert "explained_variance" in text


def test_all_parts_of_a_long_label_are_shown():
    name = "a_reward_of_my_own_with_a_name_that_is_longer_than_half_of_the_terminal"
    lines = drawn(_table({f"reward/{name}": 1.0})).splitlines()
    assert lines[0].strip() == "reward"
    assert "".join(line.split()[0] for line in lines[1:] if line.split()) == name


def test_names_are_no_markup():
    assert "[red]" in drawn(_table({"[red]/x": 1.0}))


@pytest.mark.parametrize(("done", "shown"), [(8064, 8064), (100, 5000)])
def test_the_bar_ends_where_the_run_does(done, shown, monkeypatch):
    """A run that has done more than it is asked for now, and an iteration that goes over the end."""
    monkeypatch.setenv("TERM", "dumb")
    console = TrainConsole(4608, plain=False, done=done)
    with console:
        console.show(shown, {})
    assert "4608/4608" in drawn(console._progress)
    assert "4608/4608" in drawn(TrainConsole(4608, done=8064)._progress)
