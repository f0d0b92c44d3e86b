"""The port that a server listens on: of one process, or of several among which the system shares out connections."""

from __future__ import annotations

import socket
import sys
from typing import Any

from equipoise.errors import StoreUnavailable

BACKLOG = 4096
"""How many connections may wait to be taken up."""


def open_port(host: str, port: int, processes: int = 1) -> socket.socket:
    """Return a socket for the processes of a server, so that the port is known and a taken one is told.

    From a socket that processes share, whoever is quickest takes all connections that come at once. On Linux each
    therefore listens at a socket of its own at the same port, and the system deals connections out evenly.
    """
    listening = _bound(socket.socket, host, port)
    if processes > 1 and sys.platform == "linux":
        # Only now: a port that may be shared could be shared with another server.
        listening.close()
        return _bound(OwnInEachProcess, host, port)
    listening.listen(BACKLOG)
    listening.set_inheritable(True)
    return listening


class OwnInEachProcess(socket.socket):
    """A port that is taken, but at which nobody answers; in a process that this is sent to, it becomes one's own."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _own, (self.family, self.getsockname())


def _own(family: int, address: Any) -> socket.socket:
    """Return a socket that listens as soon as its process is ready to answer."""
    own = socket.socket(family, socket.SOCK_STREAM)
    _share(own)
    own.bind(address)
    return own


def _bound(kind: type[socket.socket], host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        found = kind(family, socket.SOCK_STREAM)
        if kind is OwnInEachProcess:
            _share(found)
        else:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
    except OSError as error:
        raise StoreUnavailable(
            f"cannot listen on {host} port {port}: {error.strerror or error}", hint="choose another with --port"
        ) from None
    return found


def _share(own: socket.socket) -> None:
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
