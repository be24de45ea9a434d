"""Attacks on the servers of `fabric-rl watch` and `fabric-rl play`, in processes of their own, over sockets.

    python tests/campaigns/viewer_attacks.py --number 200 --seed 0

After each attack the server must still be there with at most `MOST_MIB` of memory and without a word on standard error,
a new viewer must get the page and the replay, and one who has been watching all the time every byte of a file that
grows. Every request that is refused must get a short answer, and no answer may contain anything but the page. Whoever
plays must keep the car, and no one else's controls may reach it.
"""

import contextlib
import os
import random
import re
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from fabric_rl.viewer.page import FOLDER, PAGE, PLAY_PAGE, SCRIPT
from fabric_rl.viewer.server import MOST_CONNECTIONS, MOST_WATCHERS
from tests.campaigns.campaign import ROOT, aligned, main
from tests.forks import environment

REPLAY = ROOT / "tests/fixtures/replays/one_goal.frl"
GAMES = 1500
"""In the file, 14 MB: far more than the buffers of a connection."""
MOST_MIB = 160
SECONDS = 30
SHORT = 1000
SERVED = {(FOLDER / name).read_bytes() for name in (PAGE, SCRIPT)}
OTHERS = 60_000
COLUMNS = ("requests", "refused", "answered", "silent", "leaked", "stderr", "memory", "viewers lost", "stolen", "ended")
BAD = COLUMNS[3:]
UPGRADE = (
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)


def games():
    """(the header, one game) of the fixture."""
    data, at = REPLAY.read_bytes(), 8
    length = 13 + struct.unpack_from("<I", data, at + 1)[0]
    return data[: at + length], data[at + length :]


class Server:
    """`fabric-rl watch` of a file that grows, and one who watches it from the beginning."""

    most_mib, served = MOST_MIB, SERVED

    def words(self):
        return ["watch", str(self.file)]

    def __init__(self, folder):
        self.file, self.errors = folder / "game.frl", folder / "err"
        head, self.game = games()
        self.file.write_bytes(head + GAMES * self.game)
        self.secret = os.urandom(8).hex()
        (folder / "secret").write_text(self.secret)
        code = "from fabric_rl.commands.main import main; main()"
        words = [*self.words(), "--port", "0", "--no_browser"]
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code, *words],
                cwd=folder,
                env=environment(),
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        port, self.token = re.search(r":(\d+)/(\S+)", self.process.stdout.readline()).groups()
        self.port = int(port)
        self.host = f"127.0.0.1:{self.port}"
        self.seen = 0
        self.witness = threading.Thread(target=self._watch, daemon=True)
        self.witness.start()

    def _watch(self):
        with (
            contextlib.suppress(WebSocketException, OSError),
            connect(f"ws://{self.host}/stream{self.token}") as stream,
        ):
            for piece in stream:
                self.seen += len(piece) if isinstance(piece, bytes) else 0

    def open(self, buffer=None):
        client = socket.socket()
        client.settimeout(SECONDS)
        if buffer:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        client.connect(("127.0.0.1", self.port))
        return client

    def ask(self, words):
        """Everything that comes back for these bytes, until the server closes or begins a stream."""
        found = b""
        with self.open() as client, contextlib.suppress(ConnectionError):
            with contextlib.suppress(ConnectionError):
                client.sendall(words)
            while b" 101 " not in found[:20] and (piece := client.recv(1 << 16)):
                found += piece
        return found

    def get(self, path="/", *headers, host=None):
        """As `ask`; the page and the stream are asked for with the token."""
        path += self.token if path in ("/", "/stream") else ""
        lines = [f"GET {path} HTTP/1.1", f"Host: {host or self.host}", *headers, "", ""]
        return self.ask("\r\n".join(lines).encode("latin-1"))

    def watching(self, buffer=None):
        """A viewer's connection that has been accepted and has not read anything more."""
        client = self.open(buffer)
        client.sendall(f"GET /stream{self.token} HTTP/1.1\r\nHost: {self.host}\r\n{UPGRADE}\r\n".encode())
        if not client.recv(12).endswith(b"101"):
            raise ConnectionError("no viewer")
        return client

    def memory(self):
        """MiB at its peak."""
        return int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text()).group(1)) / 1024

    def faults(self):
        """What is wrong after an attack."""
        if self.process.poll() is not None:
            return ["ended"]
        found = ["stderr"] if self.errors.read_text() else []
        if self.memory() > self.most_mib:
            found.append("memory")
        with self.file.open("ab") as file:
            file.write(self.game)
        size, began = self.file.stat().st_size, time.monotonic()
        while self.seen < size and time.monotonic() - began < SECONDS:
            time.sleep(0.05)
        while not (fresh := self.sees_everything()) and time.monotonic() - began < SECONDS:
            time.sleep(0.2)  # places of connections that have just been closed
        return found if self.seen == size and fresh else [*found, "viewers lost"]

    def sees_everything(self):
        with contextlib.suppress(WebSocketException, OSError):
            if self.get().endswith((FOLDER / PAGE).read_bytes()):
                with connect(f"ws://{self.host}/stream{self.token}") as stream:
                    stream.recv(SECONDS)
                    return stream.recv(SECONDS).startswith(b"FRLREP")
        return False

    def judge(self, answer):
        """How a request was answered."""
        head, _, body = answer.partition(b"\r\n\r\n")
        if self.secret.encode() in answer or (body and b" 200 " in head and body not in self.served):
            return "leaked"
        if re.match(rb"HTTP/1.1 [45]\d\d ", head) and body.strip() and len(answer) < SHORT:
            return "refused"
        return "answered" if re.match(rb"HTTP/1.1 (200|101) ", head) else "silent"


class PlayServer(Server):
    """`fabric-rl play`, and one who plays from the beginning; attackers number their controls from `OTHERS` on."""

    most_mib, served = 700, {(FOLDER / name).read_bytes() for name in (PLAY_PAGE, SCRIPT)}

    def words(self):
        return ["play", "idle"]

    def _watch(self):
        self.stolen = False
        with connect(f"ws://{self.host}/stream{self.token}", max_size=None) as stream:
            number, at = 0, 0.0
            while self.process.poll() is None:
                with contextlib.suppress(TimeoutError):
                    message = stream.recv(0.05)
                    if isinstance(message, bytes):
                        self.seen += 1
                        self.stolen |= struct.unpack_from("<f", message)[0] >= OTHERS
                if time.monotonic() - at > 0.05:
                    number, at = (number + 1) % OTHERS, time.monotonic()
                    stream.send(struct.pack("<H8b", number, 127, *[0] * 7))

    def faults(self):
        if self.process.poll() is not None:
            return ["ended"]
        found = ["stderr"] if self.errors.read_text() else []
        if self.memory() > self.most_mib:
            found.append("memory")
        if self.stolen:
            found.append("stolen")
        seen, began = self.seen, time.monotonic()
        while self.seen < seen + 100 and time.monotonic() - began < SECONDS:  # the game goes on
            time.sleep(0.05)
        while not (fresh := self.sees_everything()) and time.monotonic() - began < SECONDS:
            time.sleep(0.2)
        return found if self.seen >= seen + 100 and fresh else [*found, "viewers lost"]

    def sees_everything(self):
        with contextlib.suppress(WebSocketException, OSError):
            if self.get().endswith((FOLDER / PLAY_PAGE).read_bytes()):
                with connect(f"ws://{self.host}/stream{self.token}") as stream:
                    return any(isinstance(stream.recv(SECONDS), bytes) for _ in range(200))
        return False


# ---------------------------------------------------------------- the attacks: each yields answers


def other_pages(server, rng, number):
    """A second page in the same browser, which may send no other headers."""
    own = f"http://{server.host}"
    for origin in (
        "http://evil.example",
        "null",
        "",
        own + "1",
        own + ".evil.example",
        "http://localhost",
        f"{own}@evil",
        "file://",
    ):
        for path in ("/", f"/{SCRIPT}", "/stream"):
            yield server.get(path, f"Origin: {origin}", *UPGRADE.split("\r\n")[:-1])
            yield server.get(path, f"Origin: {own}", f"Origin: {origin}")


def rebinding(server, rng, number):
    """A name of somebody else's that points to this machine."""
    port = server.port
    for host in (
        "evil.example",
        f"evil.example:{port}",
        "127.0.0.1",
        f"127.0.0.1.evil.example:{port}",
        f"127.1:{port}",
        f"0.0.0.0:{port}",
    ):
        for path in ("/", "/stream", f"http://{server.host}/stream"):
            yield server.get(path, f"Origin: http://{host}", *UPGRADE.split("\r\n")[:-1], host=host)
            yield server.get(path, f"Host: {server.host}", host=host)


def traversal(server, rng, number):
    up = ["..", "%2e%2e", "..%2f", "%252e%252e", "....//", "..\\", "..;", "\xff"]
    for _ in range(number):
        steps = "/".join(rng.choice(up) for _ in range(rng.randrange(1, 9)))
        before = rng.choice(["/", "//", f"/{SCRIPT}/", "/stream/", "/?", "/#", "file:///", f"http://{server.host}/"])
        file = rng.choice(
            ["secret", "game.frl", "server.py", "bundle.json", "etc/passwd", str(server.file.parent / "secret")]
        )
        yield server.get(f"{before}{steps}/{file}{rng.choice(['', '%00.js', '?', f'#/{SCRIPT}'])}")


def malformed_requests(server, rng, number):
    """A good request of which some bytes were changed, left out or repeated."""
    good = (
        f"GET /{server.token} HTTP/1.1\r\nHost: {server.host}\r\nOrigin: http://{server.host}\r\n{UPGRADE}\r\n".encode()
    )
    for _ in range(number):
        words = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            at, size = rng.randrange(len(words)), rng.choice([1, 1, 4, 20])
            words[at : at + size] = rng.choice([b"", rng.randbytes(size), words[at : at + size] * 9, b"\r\n", b"\0"])
        yield server.ask(bytes(words) + b"\r\n\r\n")
    for words in (
        b"",
        b"\x16\x03\x01\x02\x00\x01\xff\xff",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/1.1\r\n" * 10**6,
    ):
        yield server.ask(words + b"\r\n\r\n")
    for method in ("HEAD", "POST", "PUT", "OPTIONS", "CONNECT", "TRACE"):
        yield server.ask(f"{method} / HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode())


def slow_readers(server, rng, number):
    """A few bytes at a time of what they ask for."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(server.watching(4096)) for _ in range(MOST_WATCHERS - 3)]
        for _ in range(10):
            for client in clients:
                client.recv(7)
            time.sleep(0.1)
        yield server.get()


def no_readers(server, rng, number):
    """As many as may watch, and as many that ask for the script, of whom none reads a byte."""
    with contextlib.ExitStack() as stack:
        for _ in range(MOST_WATCHERS - 3):
            stack.enter_context(server.watching(4096))
        for _ in range(MOST_CONNECTIONS - MOST_WATCHERS - 4):
            client = stack.enter_context(server.open(4096))
            client.sendall(f"GET /{SCRIPT} HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode())
        time.sleep(1)
        yield server.get()


def crowd(server, rng, number):
    """200 connections at once, some of which have sent a part of a request."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(server.open()) for _ in range(200)]
        for client in clients[MOST_CONNECTIONS:]:
            found = b""
            with contextlib.suppress(ConnectionError):
                client.sendall(rng.choice([b"", b"GET / HT", b"GET / HTTP/1.1\r\n\r\n"]))
            with contextlib.suppress(ConnectionError):
                while piece := client.recv(1 << 16):
                    found += piece
            yield found


def huge_messages(server, rng, number):
    """A gigabyte as one message, as fragments, as small messages, as pings, as a header and as a body."""
    block = bytes(1 << 20)
    small, ping = 3000 * (b"\x82\x81abcdx"), 3000 * (b"\x89\x84abcdwxyz")
    fragments = b"\x02\x80abcd" + 100_000 * b"\x00\x80abcd"
    for first, more in (
        (b"\x82\xff" + (1 << 30).to_bytes(8, "big") + b"abcd", block),
        (b"", small),
        (b"", ping),
        (b"", fragments),
    ):
        with server.watching() as client, contextlib.suppress(OSError):
            client.settimeout(5)  # one who does not read is not read from, either
            client.sendall(first)
            for _ in range(1024):
                client.sendall(more)
    lines = f"Host: {server.host}\r\n"
    for words in (f"GET / HTTP/1.1\r\n{lines}X: ", f"POST / HTTP/1.1\r\n{lines}Content-Length: {1 << 30}\r\n\r\n"):
        with server.open() as client:
            found = b""
            with contextlib.suppress(OSError):
                client.sendall(words.encode())
                client.sendall(bytes(1 << 16))
                found = client.recv(1 << 16)
                for _ in range(1024):
                    client.sendall(block)
            yield found


def malformed_frames(server, rng, number):
    for _ in range(number):
        with server.watching() as client, contextlib.suppress(ConnectionError):
            for _ in range(rng.randrange(1, 20)):
                client.sendall(rng.randbytes(rng.choice([1, 2, 6, 100])))
    yield server.get()


def masked(opcode, payload):
    """A frame of a client, with a mask of zeros."""
    return bytes([0x80 | opcode, 0x80 | len(payload)]) + bytes(4) + payload


def floods(server, rng, number):
    """Controls and commands as fast as they go, from a second, third, ... page; and from none with a token."""
    controls = masked(2, struct.pack("<H8b", OTHERS, *[127] * 8))
    for message in (controls, masked(1, b'{"do": "pause", "on": true}'), masked(1, b'{"do": "new"}'), controls * 1000):
        with server.watching() as client, contextlib.suppress(OSError):
            for _ in range(20_000):
                client.sendall(message)
    yield server.ask(f"GET /stream HTTP/1.1\r\nHost: {server.host}\r\n{UPGRADE}\r\n".encode() + controls)
    yield server.ask(f"GET /stream?token=x HTTP/1.1\r\nHost: {server.host}\r\n{UPGRADE}\r\n".encode() + controls)


def two_tabs(server, rng, number):
    """Other pages that want the same car, for a while, and take nothing but that."""
    with contextlib.ExitStack() as stack:
        tabs = [stack.enter_context(server.watching(4096)) for _ in range(5)]
        for turn in range(100):
            for tab in tabs:
                with contextlib.suppress(OSError):
                    tab.settimeout(0.2)
                    tab.sendall(masked(2, struct.pack("<H8b", OTHERS + turn, *[-127] * 8)))
                    tab.sendall(masked(1, b'{"do": "again"}'))
            time.sleep(0.02)
        yield server.get()


def leavers(server, rng, number):
    """Pages that come and go, in the middle of a message, without a word, or in silence."""
    for turn in range(number):
        with server.watching() as tab, contextlib.suppress(OSError):
            if turn % 2:
                tab.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            tab.sendall(masked(2, struct.pack("<H8b", OTHERS, *[127] * 8))[: rng.randrange(1, 17)])
    yield server.get()


ATTACKS = (other_pages, rebinding, traversal, malformed_requests, slow_readers, no_readers, crowd, huge_messages)
ATTACKS += (malformed_frames,)
PLAY_ATTACKS = (*ATTACKS, floods, two_tabs, leavers)


def campaign(folder, number, seed):
    """Attacks both servers in all ways, prints tables, and returns how much has gone wrong."""
    rng, bad = random.Random(seed), []
    for kind, attacks in ((Server, ATTACKS), (PlayServer, PLAY_ATTACKS)):
        own = folder / kind.__name__
        own.mkdir()
        bad += campaign_against(kind(own), attacks, number, rng)
    print("\n".join(bad))
    return len(bad)


def campaign_against(server, attacks, number, rng):
    """Attacks one server, prints a table, and returns what has gone wrong."""
    counts, bad = defaultdict(Counter), []
    try:
        assert not server.faults()
        for attack in attacks:
            name = attack.__name__.replace("_", " ")
            for answer in attack(server, rng, number):
                how = server.judge(answer)
                counts[name][how] += 1
                counts[name]["requests"] += 1
                if how in BAD:
                    bad.append(f"{how}: {name}: {answer[:200]!r}")
            for fault in server.faults():
                counts[name][fault] += 1
                bad.append(f"{fault}: {name}: {server.errors.read_text()[-300:]}")
        print(aligned(COLUMNS, {name: [n[column] for column in COLUMNS] for name, n in counts.items()}))
        print(f"at most {server.memory():.0f} MiB")
    finally:
        server.process.kill()
        server.process.wait()
        server.process.stdout.close()
    return bad


if __name__ == "__main__":
    main(__doc__, campaign, 200)
