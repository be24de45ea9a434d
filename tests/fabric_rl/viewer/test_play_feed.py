"""A game in which one page plays: who gets the car, what a page may send, and what it is told."""

import json
import struct
import time

import pytest

from fabric_rl.viewer import feeds
from fabric_rl.viewer.feeds import PlayFeed
from fabric_rl.viewer.server import ViewerServer
from tests.fabric_rl.viewer.test_server import get, stream

connect = pytest.importorskip("websockets.sync.client", reason="pip install websockets").connect
from websockets.exceptions import ConnectionClosed, InvalidStatus  # noqa: E402


def controls(number=1, *values):
    return struct.pack("<H8b", number, *values, *[0] * (8 - len(values)))


def until(true):
    for _ in range(500):
        if true():
            return True
        time.sleep(0.01)
    return False


@pytest.fixture
def served():
    feed = PlayFeed()
    server = ViewerServer(feed)
    with server.running():
        yield server, feed


def status(page, **wanted):
    """The next status with these values."""
    for _ in range(200):
        message = page.recv(10)
        if isinstance(message, str) and wanted.items() <= (found := json.loads(message)).items():
            return found
    raise AssertionError(wanted)


def test_only_the_holder_of_the_token_plays_or_watches(served):
    server, _ = served
    address = stream(server).partition("?")[0]
    for wrong in (address, f"{address}?token=", f"{address}?token=x"):
        with pytest.raises(InvalidStatus, match="403"), connect(wrong):  # without Origin, as from another process
            pass
    assert get(server, "/")[0] == 403 and b'id="gauge"' in get(server)[1]
    assert get(server)[2]["Content-Security-Policy"].endswith("frame-ancestors 'none'")


def test_the_newest_controls_count_and_are_released_after_a_silence(served, monkeypatch):
    server, feed = served
    monkeypatch.setattr(feeds, "RELEASE_SECONDS", 1e9)
    with connect(stream(server)) as page:
        page.send(controls(1, 127, -5))
        page.send(controls(65535, 100, -128, 0, 0, 0, 1))
        assert until(lambda: feed.controls().number == 65535)
        assert feed.controls().values == (100, -128, 0, 0, 0, 1, 0, 0)
        monkeypatch.setattr(feeds, "RELEASE_SECONDS", 0)
        assert feed.controls() == (65535, (0,) * 8)


def test_two_pages_and_one_car(served, monkeypatch):
    """The first one keeps it until it leaves, or is silent for long; then the other one has it."""
    server, feed = served
    monkeypatch.setattr(feeds, "RELEASE_SECONDS", 1e9)
    monkeypatch.setattr(feeds, "SEAT_SECONDS", 1e9)
    with connect(stream(server)) as second:
        with connect(stream(server)) as first:
            first.send(controls(1, 1))
            assert status(first, player=True) and status(second, player=False)
            second.send(controls(2, 2))
            second.send('{"do": "again"}')
            first.send(controls(3, 3))
            assert until(lambda: feed.controls().number == 3)
            assert not feed.commands
        assert until(lambda: feed.silence > 1e6) and feed.controls().values == (0,) * 8  # released
        second.send(controls(4, 4))
        assert status(second, player=True) and until(lambda: feed.controls().number == 4)
        monkeypatch.setattr(feeds, "SEAT_SECONDS", -1)
        with connect(stream(server)) as third:
            third.send(controls(5, 5))
            assert status(third, player=True)


@pytest.mark.parametrize(
    "message", [b"", b"123456789", b"12345678901", "", "{", "[1]", "7", "[" * 1000, b"x" * 2000], ids=range(9)
)
def test_messages_that_the_page_does_not_send_end_the_connection(served, message):
    server, feed = served
    with connect(stream(server)) as page, pytest.raises(ConnectionClosed):
        page.send(message)
        while True:
            page.recv(10)
    assert get(server)[0] == 200 and not feed.commands


@pytest.mark.slow
def test_a_flood_ends_the_connection_and_nothing_else(served):
    server, feed = served
    with connect(stream(server)) as calm, connect(stream(server)) as page:
        with pytest.raises(ConnectionClosed):
            for number in range(100_000):
                page.send(controls(number % 65536))
        feed.tell(phase="play")
        assert status(calm, phase="play")
    assert len(feed.commands) <= 16


def test_a_page_gets_the_newest_frame_and_status_and_nothing_waits_for_it(served):
    server, feed = served
    feed.tell(phase="countdown", left=3)
    with connect(stream(server)) as page:
        assert json.loads(page.recv(10)) == {"live": True}
        assert json.loads(page.recv(10)) == {"phase": "countdown", "left": 3, "player": False}
        pieces = feed.pieces()
        assert next(pieces)["left"] == 3
        for number in range(1000):
            feed.show(b"%d" % number)
        assert next(pieces) == b"999" and until(lambda: page.recv(10) == b"999")
        feed.tell(left=3)
        feed.tell(left=2)
        feed.show(b"1000")
        assert next(pieces)["left"] == 2 and next(pieces) == b"1000"
