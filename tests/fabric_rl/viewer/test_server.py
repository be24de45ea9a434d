"""The viewer's server: what it answers to whom, and what a WebSocket gets."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from http.client import HTTPConnection, HTTPException

import pytest
from filelock import FileLock

from envs.replays.replay import read_replay
from fabric_rl.evaluation.matches import Duel, play_live
from fabric_rl.evaluation.settings import PlaySettings
from fabric_rl.viewer.feeds import FileFeed, GamesFeed, LiveFeed
from fabric_rl.viewer.server import MOST_CONNECTIONS, MOST_WATCHERS, ViewerServer

connect = pytest.importorskip("websockets.sync.client", reason="pip install websockets").connect
from websockets.exceptions import ConnectionClosed, InvalidStatus  # noqa: E402


@pytest.fixture
def served(tmp_path):
    path = tmp_path / "game.frl"
    path.write_bytes(b"the beginning")
    server = ViewerServer(FileFeed(path))
    with server.running():
        yield server, path


def port_of(server):
    return int(server.url.split("/")[2].rpartition(":")[2])


def get(server, path=None, method="GET", **headers):
    path = "/?" + server.url.partition("?")[2] if path is None else path
    connection = HTTPConnection("127.0.0.1", port_of(server), timeout=20)
    connection.request(method, path, headers={name.replace("_", "-"): text for name, text in headers.items()})
    answer = connection.getresponse()
    return answer.status, answer.read(), answer.headers


def test_the_page_and_its_script(served):
    server, _ = served
    status, body, headers = get(server)
    assert status == 200 and b"<canvas" in body and headers["Content-Type"].startswith("text/html")
    assert "default-src 'none'" in headers["Content-Security-Policy"] and headers["X-Content-Type-Options"] == "nosniff"
    status, script, _ = get(server, "/viewer.js")
    packed = get(server, "/viewer.js", Accept_Encoding="gzip")
    assert status == 200 and len(packed[1]) < len(script) / 2 and packed[2]["Content-Encoding"] == "gzip"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/bundle.json", 404),
        ("/../../../../etc/passwd", 404),
        ("/%2e%2e/page.py", 404),
        ("//etc/passwd", 404),
        ("/viewer.js/../server.py", 404),
        ("/?token=wrong", 403),
        ("/?", 403),
        ("/stream?", 403),
        ("/stream", 426),
        ("/" + "x" * 7000, 404),
    ],
)
def test_nothing_else_is_there(served, path, status):
    """Paths without a query get the token."""
    token = served[0].url.partition("?")[2]
    assert get(served[0], path if "?" in path else f"{path}?{token}")[0] == status


def test_only_this_machine_s_names_are_answered(served):
    """A page of another site whose name points to 127.0.0.1."""
    server, _ = served
    assert get(server, Host="evil.example")[0] == 421
    assert get(server, Host=f"evil.example:{port_of(server)}")[0] == 421
    assert get(server, Host=f"localhost:{port_of(server)}")[0] == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1"])
def test_other_pages_get_nothing(served, origin):
    server, _ = served
    assert get(server, Origin=origin)[0] == 403
    with pytest.raises(InvalidStatus, match="403"), connect(stream(server), origin=origin):
        pass


def stream(server):
    return server.url.replace("http", "ws").replace("/?", "/stream?") + ("" if "?" in server.url else "stream")


def test_a_file_that_grows_is_followed(served):
    server, path = served
    with connect(stream(server)) as socket:
        assert json.loads(socket.recv(10)) == {"live": False} and socket.recv(10) == b"the beginning"
        with path.open("ab") as file:
            file.write(b", and more")
        assert socket.recv(10) == b", and more"
        path.unlink()
        with pytest.raises(ConnectionClosed, match="The replay is gone"):
            socket.recv(10)


@pytest.mark.parametrize("renamed", [False, True])
def test_a_file_that_is_written_anew_ends(tmp_path, renamed):
    """Its bytes from the middle on would be no replay."""
    path = tmp_path / "game.frl"
    path.write_bytes(b"the beginning")
    pieces = FileFeed(path).pieces()
    assert next(pieces) == b"the beginning" and next(pieces) == b""
    (tmp_path / "new.frl").write_bytes(b"the beginning of another one")
    if renamed:
        (tmp_path / "new.frl").replace(path)
    else:
        path.write_bytes(b"other")
    assert list(pieces) == []


def test_the_newest_game_of_a_run_and_those_that_follow(tmp_path):
    """Among thousands; what is being written is left alone, and the end is told when the run is deleted."""
    folder = tmp_path / "my_run" / "games"
    folder.mkdir(parents=True)
    server = ViewerServer(GamesFeed(folder))
    with FileLock(tmp_path / "my_run/.lock"), server.running(), connect(stream(server)) as socket:
        assert json.loads(socket.recv(10)) == {"live": False}
        assert json.loads(socket.recv(10)) == {"waiting": "Waiting for the next game of my_run ..."}
        (folder / "3000.frl.tmp").write_bytes(b"half of")
        (folder / ".DS_Store").write_bytes(b"of the system")
        (folder / "folder.frl").mkdir()
        with (folder / "huge.frl").open("wb") as huge:  # would be read at once, for each viewer
            huge.truncate(1 << 40)
        (folder / "gone.frl").symlink_to(folder / "nowhere")
        for number in range(3000):
            game = folder / f"{number}.frl"
            game.write_bytes(b"old")
            os.utime(game, (number, number))
        assert set(socket.recv(10).split(b"old")) == {b""}
        (folder / "3000.frl.tmp").write_bytes(b"newest")
        (folder / "3000.frl.tmp").replace(folder / "3000.frl")
        while not (piece := socket.recv(10)).endswith(b"newest"):  # the files came one by one
            assert len(piece) <= 20 * len(b"old")
        shutil.rmtree(folder)
        with pytest.raises(ConnectionClosed, match="The replay is gone"):
            socket.recv(10)


def test_of_a_run_that_has_ended_all_games_and_that_nothing_follows(tmp_path):
    folder = tmp_path / "my_run" / "games"
    folder.mkdir(parents=True)
    for number in range(3):
        (folder / f"{number}.frl").write_bytes(b"%d" % number)
        os.utime(folder / f"{number}.frl", (9 - number, 9 - number))
    server = ViewerServer(GamesFeed(folder))
    with server.running(), connect(stream(server)) as socket:
        assert json.loads(socket.recv(10)) == {"live": False}
        ended = f"my_run has ended: fabric-rl watch {tmp_path / 'my_run'} chaser plays its newest agent."
        assert json.loads(socket.recv(10)) == {"waiting": ended}
        assert socket.recv(10) == b"210"  # the one that was written last
        with FileLock(tmp_path / "my_run/.lock"):  # it is resumed
            assert json.loads(socket.recv(10)) == {"waiting": "Waiting for the next game of my_run ..."}


def test_before_the_first_picture_the_page_says_so():
    feed = LiveFeed("Loading somebody ...")
    server = ViewerServer(feed)
    with server.running(), connect(stream(server)) as socket:
        assert [json.loads(socket.recv(10)) for _ in range(2)] == [{"live": True}, {"waiting": "Loading somebody ..."}]
        feed.write(b"head")
        assert socket.recv(10) == b"head"


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", b"400"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 20_000 + b"\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 300 + b"\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n\r\n", b"421"),
        (b"GET //[ HTTP/1.1\r\nHost: x\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: %s\r\nOrigin: http://[\r\n\r\n", b"400"),
        (b"GET /stream HTTP/1.1\r\nHost: %s\r\nUpgrade: a\r\nUpgrade: b\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: %s\r\n" + b"Accept-Encoding: gzip\r\n" * 2 + b"\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00\x01\xff\xff\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: %s\r\n\r\nbody", b"400"),
    ],
)
def test_what_is_no_request_gets_a_status(served, words, status):
    server, _ = served
    with socket.create_connection(("127.0.0.1", port_of(server)), timeout=20) as raw:
        raw.sendall(words.replace(b"%s", b"localhost:%d" % port_of(server)))
        assert raw.recv(100).startswith(b"HTTP/1.1 " + status)
    assert get(server)[0] == 200


def test_huge_frames_end_the_connection_and_nothing_else(served):
    server, _ = served
    with connect(stream(server)) as socket, pytest.raises(ConnectionClosed):
        for _ in range(50):
            socket.send(bytes(100_000))
            socket.recv(1)
    assert get(server)[0] == 200


def test_a_token_for_other_machines(tmp_path):
    path = tmp_path / "game.frl"
    path.write_bytes(b"x")
    server = ViewerServer(FileFeed(path), host="0.0.0.0")
    token = server.url.partition("token=")[2]
    with server.running():
        assert len(token) > 20 and get(server, "/")[0] == 403 and get(server, "/?token=")[0] == 403
        assert get(server, "/?token=%C3%A9")[0] == 403
        with socket.create_connection(("127.0.0.1", port_of(server)), timeout=20) as raw:
            raw.sendall(b"GET /?token=\xff HTTP/1.1\r\nHost: x\r\n\r\n")
            assert raw.recv(12) == b"HTTP/1.1 400"
        assert get(server, f"/?token={token}")[0] == 200
        assert get(server, f"/?token={token}", Host="some.name")[0] == 200
        address = stream(server).replace("0.0.0.0", "127.0.0.1")
        with pytest.raises(InvalidStatus, match="403"), connect(address.partition("?")[0]):
            pass
        with pytest.raises(InvalidStatus, match="403"), connect(address + "x"):
            pass
        with connect(address) as watcher:
            assert json.loads(watcher.recv(10)) == {"live": False}


def test_a_port_in_use_and_an_address_of_another_machine(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=rf"--port {port} is in use; choose another port, or 0"):
            ViewerServer(LiveFeed(), port=port)
    with pytest.raises(OSError, match=r"--host 192.0.2.1 --port 0: "):
        ViewerServer(LiveFeed(), host="192.0.2.1")


def test_watchers_get_the_beginning_and_the_present_game():
    feed = LiveFeed()
    server = ViewerServer(feed)
    with server.running():
        feed.write(b"head")
        feed.write(b"first game")
        with connect(stream(server)) as early:
            assert [early.recv(10) for _ in range(2)][1] == b"head" and early.recv(10) == b"first game"
            assert feed.wait_for_watchers(0)
            feed.write(b", over")
            assert early.recv(10) == b", over"
            feed.begin_game()
            feed.write(b"second game")
            assert early.recv(10) == b"second game"
            with connect(stream(server)) as late:
                late.recv(10)
                assert late.recv(10) == b"head" and late.recv(10) == b"second game"
        for _ in range(100):
            if not feed.wait_for_watchers(0):
                break
            threading.Event().wait(0.1)
        assert not feed.wait_for_watchers(0)


def test_a_slow_watcher_gets_the_end_of_a_game_and_a_new_one_does_not():
    feed, pieces = LiveFeed(), []
    early = feed.pieces()
    for number, piece in enumerate((b"head", b"a1", b"a2", None, b"b1", None, None, b"c1", b"c2")):
        feed.begin_game() if piece is None else feed.write(piece)
        if number in (2, 4):
            pieces += [next(early), next(early)] if number == 2 else [next(early)]
    assert pieces == ["", b"head", b"a1a2b1"] and next(early) == b"c1c2"
    late = feed.pieces()
    assert [next(late) for _ in range(3)] == ["", b"head", b"c1c2"]


@pytest.mark.slow
def test_a_live_game_is_a_replay_for_those_who_come_later(tmp_path):
    """Without the last frames of the game before it."""
    feed, duel, found = LiveFeed(), Duel.of("chaser", "shooter", PlaySettings(team_size=1)), []

    def again():
        watcher = feed.pieces()
        found.append(b"".join([next(watcher), next(watcher), next(watcher)][1:]))
        if len(found) == 3:
            raise KeyboardInterrupt
        return duel

    watched = feed.pieces()
    next(watched)
    with pytest.raises(KeyboardInterrupt):
        play_live(feed, duel, again, minutes=0.02, seed=0)
    for number, each in enumerate(found):
        (tmp_path / f"{number}.frl").write_bytes(each)
        assert [game.num_frames for game in read_replay(tmp_path / f"{number}.frl").games] == [18]


def test_too_many_watchers(served):
    server, _ = served
    sockets = [connect(stream(server)) for _ in range(MOST_WATCHERS)]
    for one in sockets:
        one.recv(10)
    with connect(stream(server)) as late, pytest.raises(ConnectionClosed, match="Too many viewers"):
        late.recv(10)
    sockets[0].close()
    for one in sockets:
        one.close()


def test_open_connections_are_counted_before_they_say_anything(served):
    """An idle one would be closed after ten seconds anyway."""
    server, _ = served
    with contextlib.ExitStack() as stack:
        idle = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port_of(server)), timeout=8))
            for _ in range(MOST_CONNECTIONS + 5)
        ]
        for one in idle[MOST_CONNECTIONS:]:
            assert one.makefile("rb").read().startswith(b"HTTP/1.1 503 ")
    for _ in range(100):  # those that have gone leave their places
        with contextlib.suppress(OSError, HTTPException):
            if get(server)[0] == 200:
                break
        threading.Event().wait(0.1)
    assert get(server)[0] == 200


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no limit of open files")
def test_without_open_files_a_server_goes_on_when_there_are_some_again(tmp_path):
    """In a process of its own, which has hardly any; the files of its own come back."""
    (tmp_path / "game.frl").write_bytes(b"x")
    code = """
import contextlib, http.client, os, resource, socket, sys, time
from pathlib import Path
from envs.replays.replay import read_replay
from fabric_rl.evaluation.matches import Duel, play_live
from fabric_rl.evaluation.settings import PlaySettings
from fabric_rl.viewer.feeds import FileFeed
from fabric_rl.viewer.server import ViewerServer
server = ViewerServer(FileFeed(Path(sys.argv[1])))
port, path = server.url.split(":")[2].split("/")
with server.running():
    clients = [socket.socket() for _ in range(3)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    taken = []
    with contextlib.suppress(OSError):
        while True:
            taken.append(os.dup(0))
    for client in clients:
        client.connect(("127.0.0.1", int(port)))
    time.sleep(0.5)
    for one in taken:
        os.close(one)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/" + path)
    print(connection.getresponse().status, flush=True)
    os._exit(0)
"""
    ran = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "game.frl"], capture_output=True, text=True, timeout=60
    )
    assert (ran.stdout, ran.stderr) == ("200\n", "")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS")
def test_without_threads_a_server_goes_on_when_there_are_some_again(tmp_path):
    """In a process of its own, where there is no memory for the stack of another one."""
    (tmp_path / "game.frl").write_bytes(b"x")
    code = """
import http.client, os, resource, sys, threading
from pathlib import Path
from envs.replays.replay import read_replay
from fabric_rl.evaluation.matches import Duel, play_live
from fabric_rl.evaluation.settings import PlaySettings
from fabric_rl.viewer.feeds import FileFeed
from fabric_rl.viewer.server import ViewerServer
server = ViewerServer(FileFeed(Path(sys.argv[1])))
port, path = server.url.split(":")[2].split("/")
def status():
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/" + path)
    return connection.getresponse().status
with server.running():
    threading.stack_size(1 << 30)
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 29), most))
    found = [status() for _ in range(60)]
    threading.stack_size(0)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    print(set(found), status(), flush=True)
    os._exit(0)
"""
    ran = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "game.frl"], capture_output=True, text=True, timeout=60
    )
    assert (ran.stdout, ran.stderr) == ("{503} 200\n", "")


@pytest.mark.slow
def test_who_takes_nothing_leaves_the_place(tmp_path, monkeypatch):
    monkeypatch.setattr("fabric_rl.viewer.server._PATIENCE_SECONDS", 1)
    monkeypatch.setattr("fabric_rl.viewer.server.MOST_WATCHERS", 1)
    (tmp_path / "game.frl").write_bytes(bytes(40_000_000))
    server = ViewerServer(FileFeed(tmp_path / "game.frl"))
    token = server.url.partition("?")[2]
    words = f"GET /stream?{token} HTTP/1.1\r\nHost: localhost:{port_of(server)}\r\nUpgrade: websocket"
    words += "\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13"
    words += "\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    with server.running(), socket.create_connection(("127.0.0.1", port_of(server)), timeout=20) as stuck:
        stuck.sendall(words.encode())
        assert b"101" in stuck.recv(20)
        for _ in range(100):
            with contextlib.suppress(ConnectionClosed), connect(stream(server), close_timeout=0.1) as late:
                late.recv(10)
                late.recv(10)
                break
            threading.Event().wait(0.1)
        else:
            pytest.fail("the place is still taken")


def test_port_80_is_left_out_by_browsers_and_no_host_is_refused(tmp_path):
    with pytest.raises(ValueError, match="--host must be an address"):
        ViewerServer(LiveFeed(), host="")
    try:
        server = ViewerServer(LiveFeed(), port=80)
    except OSError:
        pytest.skip("port 80 is not to be had")
    with server.running():
        assert get(server, Host="localhost")[0] == 200 and get(server, Host="127.0.0.1:80")[0] == 200
