"""Server of the viewer: a page, its script, and a WebSocket that sends the replay, and takes a player's controls.

Only holders of the token in the address get anything but the script. Other pages in the same browser could not use a
token, either: `Host` and `Origin` are checked.
"""

import errno
import gzip
import json
import logging
import os
import secrets
import socket
import struct
import sys
import threading
import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from importlib import import_module
from typing import Any
from urllib.parse import parse_qs, urlsplit

from fabric_rl.viewer.feeds import Feed, PlayFeed
from fabric_rl.viewer.page import FOLDER, PAGE, PLAY_PAGE, SCRIPT

LOOPBACK = ("127.0.0.1", "localhost", "::1")
MOST_WATCHERS = 32
MOST_CONNECTIONS = MOST_WATCHERS + 16
"""Further connections get an error and are closed immediately, because training needs open files, too."""
MOST_MESSAGES_PER_SECOND = 500
"""Messages of a page in one second; one that sends more is disconnected."""
_LOOK_SECONDS, _PATIENCE_SECONDS = 0.05, 20
_STREAM = "/stream"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors "
)


def open_browser(url: str) -> None:
    """Open a page in the browser; on Linux only with a display, as a text browser might else start in the terminal."""
    if sys.platform != "linux" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()


def _answering(library: Any, answer: bytes) -> Any:  # noqa: ANN401 - websockets.sync.server
    """Return the class of connections that answer a malformed request; those of websockets close without an answer."""

    class Connection(library.ServerConnection):  # type: ignore[misc]
        def send_data(self) -> None:
            if self.response is None and (self.protocol.handshake_exc or self.protocol.parser_exc):
                with suppress(OSError):  # already closed
                    self.socket.sendall(answer)
            super().send_data()

    return Connection


class ViewerServer:
    """Server of one feed.

    Attributes:
        url: Address for the browser, with the token.
    """

    def __init__(
        self, feed: Feed | PlayFeed, host: str = LOOPBACK[0], port: int = 0, frame_ancestors: str = "'none'"
    ) -> None:
        """Open the port; `running` answers requests.

        Args:
            feed: Source of the replay, or the game to play in.
            host: Address to listen on; on those in `LOOPBACK`, requests must also be addressed to this machine.
            port: Port; 0: any free port.
            frame_ancestors: Pages that may contain the page, as in a Content-Security-Policy.

        Raises:
            ImportError: The library websockets is not installed.
            ValueError: The host is empty.
            OSError: The port is in use, or the address does not belong to this machine; the message is one line that
                names the flag.
        """
        if not host:
            raise ValueError("--host must be an address; 0.0.0.0 lets other machines watch, too")
        try:
            self._library = import_module("websockets.sync.server")
            self._closed = import_module("websockets.exceptions").ConnectionClosed
            self._http = import_module("websockets.http11")
            self._headers = import_module("websockets.datastructures").Headers
        except ImportError as error:
            raise ImportError("watching needs the library websockets; pip install websockets") from error
        self._feed, self._watchers = feed, threading.Semaphore(MOST_WATCHERS)
        self._connections, self._ended = threading.Semaphore(MOST_CONNECTIONS), threading.Event()
        self._token, self._local = secrets.token_urlsafe(16), host in LOOPBACK
        page = PLAY_PAGE if isinstance(feed, PlayFeed) else PAGE
        self._types = {
            "/": (page, "text/html; charset=utf-8"),
            f"/{SCRIPT}": (SCRIPT, "text/javascript; charset=utf-8"),
        }
        self._policy = _POLICY + frame_ancestors
        quiet = logging.getLogger("fabric_rl.viewer.server")
        quiet.setLevel(logging.CRITICAL)  # malformed requests are the client's problem
        malformed = self._response(HTTPStatus.BAD_REQUEST, "Bad request: only GET of HTTP/1.1.").serialize()
        self._busy = self._response(HTTPStatus.SERVICE_UNAVAILABLE, "Too many connections.").serialize()
        ways = {"process_request": self._answer, "create_connection": _answering(self._library, malformed)}
        try:
            self._server = self._library.serve(
                self._watch, host, port, **ways, max_size=1024, compression=None, logger=quiet
            )
        except (OSError, OverflowError) as error:
            if getattr(error, "errno", None) == errno.EADDRINUSE:
                raise OSError(f"--port {port} is in use; choose another port, or 0 for any free port") from error
            raise OSError(f"--host {host} --port {port}: {error}") from error
        port = self._server.socket.getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        names = {*LOOPBACK[:2], "[::1]", shown}
        self._hosts = {f"{name}:{port}" for name in names} | (names if port == 80 else set())  # browsers omit port 80
        self.url = f"http://{shown}:{port}/?token={self._token}"

    @contextmanager
    def running(self) -> Iterator[None]:
        """Answer requests in a thread while the block runs."""
        thread = threading.Thread(target=self._let_in, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join(5)
            self._server.socket.close()  # its shutdown() waits for its own loop

    def _let_in(self) -> None:
        """Accept connections until the server ends; websockets' own loop would stop for good if open files ran out."""
        self._server.socket.settimeout(_LOOK_SECONDS)
        while not self._ended.is_set():
            try:
                connection, address = self._server.socket.accept()
            except OSError:  # no connection, or too many open files
                self._ended.wait(_LOOK_SECONDS)
                continue
            if self._connections.acquire(blocking=False):
                with suppress(RuntimeError):  # too many threads
                    threading.Thread(target=self._talk, args=(connection, address), daemon=True).start()
                    continue
                self._connections.release()
            with connection, suppress(OSError):
                connection.setblocking(False)
                connection.send(self._busy)
                connection.recv(1 << 16)  # unread data would make the client lose the answer

    def _talk(self, connection: socket.socket, address: object) -> None:
        """Serve one connection, and close it if it accepts no data for a while."""
        patience = struct.pack("ll", _PATIENCE_SECONDS, 0) if os.name == "posix" else 1000 * _PATIENCE_SECONDS
        try:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, patience)
            self._server.handler(connection, address)
        finally:
            self._connections.release()

    def _watch(self, connection: Any) -> None:  # noqa: ANN401 - a ServerConnection
        """Send the feed to one watcher."""
        if not self._watchers.acquire(blocking=False):
            connection.close(1013, "Too many viewers.")
            return
        feed = self._feed
        if isinstance(feed, PlayFeed):
            threading.Thread(target=self._listen, args=(connection, feed), daemon=True).start()
        pieces = feed.pieces(connection) if isinstance(feed, PlayFeed) else feed.pieces()
        try:
            connection.send(json.dumps({"live": feed.live}))
            for piece in pieces:
                if piece:
                    said = {"waiting": piece} if isinstance(piece, str) else piece
                    connection.send(said if isinstance(said, bytes) else json.dumps(said))
                else:
                    connection.ping()  # fails if the watcher is gone
            connection.close(1000, "The replay is gone.")
        except (self._closed, OSError):
            pass
        finally:
            pieces.close()  # type: ignore[attr-defined]  # a generator
            self._watchers.release()

    def _listen(self, connection: Any, feed: PlayFeed) -> None:  # noqa: ANN401 - a ServerConnection
        """Pass the messages of a page on to the feed; disconnect a page that sends too many, or others than ours."""
        second, count = 0, 0
        try:
            for message in connection:
                now = int(time.monotonic())
                second, count = now, count + 1 if now == second else 1
                if count > MOST_MESSAGES_PER_SECOND or not feed.take(connection, message):
                    connection.close(1008, "This is not what the page sends.")
                    break
        except (self._closed, OSError):
            pass
        finally:
            feed.leave(connection)

    def _answer(self, connection: Any, request: Any) -> Any:  # noqa: ANN401 - of websockets
        """Return the response to a request, or None to open a WebSocket."""
        try:
            url, headers = urlsplit(request.path), request.headers
            hosts, origins = headers.get_all("Host"), [urlsplit(each).netloc for each in headers.get_all("Origin")]
            token = parse_qs(url.query).get("token", [""])[0].encode()
            upgrade, zipped = headers.get("Upgrade", ""), "gzip" in headers.get("Accept-Encoding", "")
        except (ValueError, LookupError):  # malformed address, repeated header
            return self._response(HTTPStatus.BAD_REQUEST, "Bad request.")
        if len(hosts) != 1 or (self._local and hosts[0] not in self._hosts):
            return self._response(HTTPStatus.MISDIRECTED_REQUEST, "The Host header does not match this server.")
        if any(origin != hosts[0] for origin in origins):
            return self._response(HTTPStatus.FORBIDDEN, "Requests from other pages are refused.")
        if url.path != f"/{SCRIPT}" and not secrets.compare_digest(token, self._token.encode()):
            return self._response(HTTPStatus.FORBIDDEN, "The address lacks the token that fabric-rl printed.")
        if url.path == _STREAM:
            wants = upgrade.lower() == "websocket"
            return None if wants else self._response(HTTPStatus.UPGRADE_REQUIRED, "Only the page may connect here.")
        if url.path not in self._types:
            return self._response(HTTPStatus.NOT_FOUND, "Not found.")
        name, kind = self._types[url.path]
        body = (FOLDER / name).read_bytes()
        return self._response(HTTPStatus.OK, gzip.compress(body, 6) if zipped else body, kind, zipped)

    def _response(
        self, status: HTTPStatus, body: str | bytes, kind: str = "text/plain; charset=utf-8", zipped: bool = False
    ) -> Any:  # noqa: ANN401 - of websockets
        data = body.encode() + b"\n" if isinstance(body, str) else body
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(data)),
            "Content-Security-Policy": self._policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-store",
            "Connection": "close",
        } | ({"Content-Encoding": "gzip"} if zipped else {})
        return self._http.Response(status.value, status.phrase, self._headers(headers), data)
