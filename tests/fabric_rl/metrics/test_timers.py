"""The timer tree on a clock that only moves when the test says so."""

import json

import pytest

from fabric_rl.metrics.timers import Timers


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def timers(clock):
    return Timers(clock=clock)


def spend(timers, clock, seconds, *names):
    """Passes `seconds` inside the nested timers `names`."""
    if names:
        with timers(names[0]):
            spend(timers, clock, seconds, *names[1:])
    else:
        clock.now += seconds


def test_a_tree_of_totals_counts_and_what_the_children_leave_over(timers, clock):
    for _ in range(2):
        with timers("collect"):
            clock.now += 1
            spend(timers, clock, 3, "physics")
            spend(timers, clock, 4, "policy")
            spend(timers, clock, 2, "physics")
    spend(timers, clock, 8, "learn")
    clock.now += 0.5
    assert timers.to_dict() == {
        "name": "root",
        "total": 28.5,
        "count": 1,
        "self": 0.5,
        "max": 28.5,
        "children": {
            "collect": {
                "total": 20.0,
                "count": 2,
                "self": 2.0,
                "max": 10.0,
                "children": {
                    "physics": {"total": 10.0, "count": 4, "self": 10.0, "max": 3.0},
                    "policy": {"total": 8.0, "count": 2, "self": 8.0, "max": 4.0},
                },
            },
            "learn": {"total": 8.0, "count": 1, "self": 8.0, "max": 8.0},
        },
    }


def test_children_are_in_the_order_of_their_names_whoever_came_first(timers, clock):
    for name in ("b", "c", "a"):
        spend(timers, clock, 1, "learn", name)
    assert list(timers.to_dict()["children"]["learn"]["children"]) == ["a", "b", "c"]


def test_the_same_name_at_two_places_is_two_timers_and_may_nest_in_itself(timers, clock):
    spend(timers, clock, 1, "collect", "sync")
    spend(timers, clock, 2, "learn", "sync")
    spend(timers, clock, 4, "deep", "deep")
    children = timers.to_dict()["children"]
    assert children["collect"]["children"]["sync"]["total"] == 1
    assert children["learn"]["children"]["sync"]["total"] == 2
    assert (children["deep"]["total"], children["deep"]["self"]) == (4, 0)


def test_a_timer_that_is_open_counts_up_to_now(timers, clock):
    spend(timers, clock, 3, "learn")
    with timers("learn"):
        clock.now += 5
        spend(timers, clock, 2, "backward")
        learn = timers.to_dict()["children"]["learn"]
        assert learn == {
            "total": 10.0,
            "count": 2,
            "self": 8.0,
            "max": 7.0,
            "children": {"backward": {"total": 2.0, "count": 1, "self": 2.0, "max": 2.0}},
        }
    assert timers.to_dict()["children"]["learn"]["total"] == 10.0  # reading it changed nothing


def test_an_exception_closes_the_timers_it_leaves(timers, clock):
    with pytest.raises(KeyError), timers("outer"), timers("inner"):
        clock.now += 1
        raise KeyError
    spend(timers, clock, 2, "next")
    assert list(timers.to_dict()["children"]) == ["next", "outer"]
    assert timers.to_dict()["children"]["outer"]["children"]["inner"]["total"] == 1


def test_time_measured_elsewhere_goes_below_the_open_timer(timers, clock):
    with timers("collect"):
        clock.now += 4
        timers.add("gather", 0.5)
        timers.add("gather", 0.25)
        timers.add("physics", 5.0, count=15, parallel=True)
        timers.add("physics", 1.0, count=1)
    collect = timers.to_dict()["children"]["collect"]
    assert collect["self"] == 0  # never negative: the threads' sum exceeds the wall time
    assert collect["children"] == {
        "gather": {"total": 0.75, "count": 2, "self": 0.75, "max": 0.5},
        "physics": {"total": 6.0, "count": 16, "self": 6.0, "max": 1.0, "is_parallel": True},
    }


def test_a_disabled_tree_keeps_and_writes_nothing(clock, tmp_path):
    timers = Timers(enabled=False, clock=clock)
    spend(timers, clock, 1, "collect", "physics")
    timers.add("gather", 1.0)
    assert timers.to_dict() == {"name": "root", "total": 0.0, "count": 1, "self": 0.0}
    timers.write(tmp_path / "timers.json")
    assert list(tmp_path.iterdir()) == []


def test_the_file_holds_the_tree_and_replaces_the_one_before(timers, clock, tmp_path):
    path = tmp_path / "timers.json"
    path.write_text("old")
    spend(timers, clock, 1, "collect", "physics")
    timers.write(path)
    written = json.loads(path.read_text(encoding="utf-8"))
    assert set(written.pop("metadata")) >= {"timer_format_version", "start_time_seconds", "end_time_seconds"}
    assert written == timers.to_dict()
    assert [file.name for file in tmp_path.iterdir()] == ["timers.json"]
