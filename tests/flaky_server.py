"""A tiny HTTP server on a real socket that fails as it is told, and then works."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import ssl


class Received(NamedTuple):
    line: str
    headers: dict[str, str]
    body: bytes


def answer(status: int, data: object = None, *, error: str | None = None, **headers: str) -> bytes:
    """Bytes of an answer with JSON in it."""
    body = data if isinstance(data, bytes) else json.dumps(data).encode()
    if error is not None:
        headers["X-Equipoise-Error"] = error
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


REFUSED = {"error": "too much to do", "hint": "try again"}
OVERLOADED = answer(503, REFUSED, error="StoreUnavailable")
RESET, SILENCE = b"reset", b"silence"


def half(whole: bytes) -> bytes:
    """An answer that breaks off in its body."""
    return whole[:-5]


class FlakyServer:
    """Gives each request the next of the answers it was told, and the last of them ever after.

    An answer is bytes to send before the connection is closed, `RESET` or `SILENCE`. It takes so many seconds, and one
    request is answered after the other.
    """

    def __init__(self, *answers: bytes, seconds: float = 0.0, tls: ssl.SSLContext | None = None, port: int = 0) -> None:
        self.answers, self._seconds, self._tls = list(answers), seconds, tls
        self.n_connections = 0
        self.received: list[Received] = []
        self._listener = socket.create_server(("127.0.0.1", port))
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self._listener.getsockname()[1]}"
        self._silent: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.settimeout(10)
            following = b""
            self.n_connections += 1
            try:
                if self._tls is not None:
                    connection = self._tls.wrap_socket(connection, server_side=True)
                self.received.append(_read(connection))
                time.sleep(self._seconds)
                following = self.answers[min(len(self.received), len(self.answers)) - 1]
                if following == SILENCE:
                    self._silent.append(connection)
                    continue
                if following == RESET:  # closing with nothing to linger for resets
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                else:
                    connection.sendall(following)
                    connection.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            if following != SILENCE:
                connection.close()

    def __enter__(self) -> FlakyServer:
        return self

    def __exit__(self, *details: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)
        for connection in self._silent:
            connection.close()


def _read(connection: socket.socket) -> Received:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65_536)
        if not piece:
            raise OSError("the client left")
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    line, *rest = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (one.partition(": ") for one in rest)}
    while len(body) < int(headers.get("content-length", 0)):
        body += connection.recv(65_536)
    return Received(line, headers, body)
