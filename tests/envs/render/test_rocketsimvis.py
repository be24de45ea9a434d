"""RocketSimVis: what arrives at a real socket is the live game, in its format and units."""

import json
import socket

import numpy as np
import pytest

from envs import RocketSimPool
from envs.render import rocketsimvis
from envs.state.layout import CONTROL_NAMES

PHYS = {"pos", "vel", "ang_vel"}


@pytest.fixture
def listener(monkeypatch):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        sock.settimeout(10)
        monkeypatch.setattr(rocketsimvis, "ADDRESS", sock.getsockname())
        monkeypatch.setattr(rocketsimvis, "MOST_PACKETS_PER_SECOND", 1e9)
        yield sock


def near(vector, live):
    np.testing.assert_allclose(vector, live.as_tuple(), atol=1e-3, rtol=1e-5)


def test_what_is_sent_is_the_live_game(listener):
    pool = RocketSimPool(2, team_size=[[2, 1]], render_mode="human", num_threads=1)
    pool.reset(seed=3)
    rng, met = np.random.default_rng(0), set()
    for _ in range(60):
        pool.step(rng.integers(90, size=6))
        sent = json.loads(listener.recv(65536))
        assert sent.keys() == {"ball_phys", "cars", "boost_pad_states", "gamemode"} and sent["gamemode"] == "soccar"
        ball = pool.arenas[0].ball.get_state()
        assert sent["ball_phys"].keys() == PHYS  # without its rotation the viewer turns the ball itself
        for name in PHYS:
            near(sent["ball_phys"][name], getattr(ball, name))
        live = {car.id: car for car in pool.arenas[0].get_cars()}
        assert [car["team_num"] for car in sent["cars"]] == [0, 0, 1]
        for number, (car, slot) in enumerate(zip(sent["cars"], sorted(live), strict=True)):
            state = live[slot].get_state()
            assert car.keys() == {
                *("team_num", "phys", "controls", "boost_amount", "on_ground", "has_flipped_or_double_jumped"),
                "is_demoed",
            }
            assert car["phys"].keys() == PHYS | {"forward", "up"}
            for name in PHYS:
                near(car["phys"][name], getattr(state, name))
            near(car["phys"]["forward"], state.rot_mat.forward)
            near(car["phys"]["up"], state.rot_mat.up)
            assert car["boost_amount"] == pytest.approx(state.boost, abs=1e-3)  # 0..100
            assert car["on_ground"] is state.is_on_ground and car["is_demoed"] is state.is_demoed
            assert car["has_flipped_or_double_jumped"] is (state.has_flipped or state.has_double_jumped)
            assert list(car["controls"]) == list(CONTROL_NAMES) and "steer" in car["controls"]
            assert list(car["controls"].values()) == pytest.approx(pool.state.controls[0, number].tolist())
            met |= {("air", not car["on_ground"]), ("flip", car["has_flipped_or_double_jumped"])}
            met |= {("boost", car["boost_amount"] > 1)}
        assert sent["boost_pad_states"] == (pool.state.pad_timers[0] <= 0).tolist()
    assert {("air", True), ("flip", True), ("boost", True)} <= met
    pool.close()


def test_taken_pads_are_false(listener):
    pool = RocketSimPool(1, render_mode="human", num_threads=1)
    pool.reset()
    pool.state.pad_timers[0, [3, 13]] = 5.0
    states = rocketsimvis.packet(pool.state)["boost_pad_states"]
    assert [pad for pad, there in enumerate(states) if not there] == [3, 13] and len(states) == 34
    pool.close()


def test_it_sends_at_most_so_many_a_second_and_never_waits(listener, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(rocketsimvis, "MOST_PACKETS_PER_SECOND", 60)
    monkeypatch.setattr(rocketsimvis.time, "monotonic", lambda: now[0])
    pool = RocketSimPool(1, num_threads=1)
    pool.reset()
    viewer = rocketsimvis.RocketSimVis()
    for tick in range(120):
        now[0] = 100 + tick / 120
        viewer.send(pool.state)
    listener.setblocking(False)
    received = 0
    while True:
        try:
            listener.recv(65536)
            received += 1
        except BlockingIOError:
            break
    assert 55 <= received <= 60
    listener.close()
    for tick in range(5):  # nobody listens any more
        now[0] = 200 + tick
        viewer.send(pool.state)
    viewer.close()
    now[0] = 300
    viewer.send(pool.state)
    pool.close()
