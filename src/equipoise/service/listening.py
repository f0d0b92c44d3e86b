"""The port that a server listens on: of one process, or of several among which the system shares out connections."""

from __future__ import annotations

import socket
import sys
from typing import Any

from equipoise.errors import StoreUnavailable

BACKLOG = 4096
"""How many connections may wait to be taken up."""


class Port(socket.socket):
    """A port that is ours until this is closed."""

    _reservation: socket.socket | None = None

    def reserve(self) -> None:
        """Keep other servers from the port even while nobody listens at it, or all who do share it.

        Linux would let two servers that start at the same time have one port. A name that is no file can be had once,
        and is free when its owner ends, however that comes.
        """
        if sys.platform == "linux":
            self._reservation = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._reservation.bind("\0equipoise {} {}".format(*self.getsockname()[:2]))

    def close(self) -> None:
        """Leave the port to others."""
        super().close()
        if self._reservation is not None:
            self._reservation.close()


class SharedPort(Port):
    """A port at which nobody answers; in a process that this is sent to, it becomes a socket of one's own."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _own, (self.family, self.getsockname())


def open_port(host: str, port: int, processes: int = 1) -> Port:
    """Return the port for the processes of a server, so that it is known and a taken one is told.

    From a socket that processes share, whoever is quickest takes all connections that come at once. On Linux each
    therefore listens at a socket of its own at the same port, and the system deals connections out evenly.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    except OSError as error:
        raise StoreUnavailable(
            f"cannot listen on {host}: {error.strerror or error}", hint="choose another with --host"
        ) from None
    try:
        listening = _bound(Port(family, socket.SOCK_STREAM), (host, port))
        if processes > 1 and sys.platform == "linux":
            # Only now: a port that may be shared would be had even where another server listens.
            listening.close()
            listening = _bound(_shareable(SharedPort(family, socket.SOCK_STREAM)), (host, port))
            listening.reserve()
            return listening
        listening.reserve()
        listening.listen(BACKLOG)
    except OSError as error:
        raise StoreUnavailable(
            f"cannot listen on {host} port {port}: {error.strerror or error}", hint="choose another with --port"
        ) from None
    listening.set_inheritable(True)
    return listening


def _own(family: int, address: Any) -> socket.socket:
    """Return a socket that listens as soon as its process is ready to answer."""
    return _bound(_shareable(Port(family, socket.SOCK_STREAM)), address)


def _bound(port: Port, address: Any) -> Port:
    port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    port.bind(address)
    return port


def _shareable(port: Port) -> Port:
    port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    return port
