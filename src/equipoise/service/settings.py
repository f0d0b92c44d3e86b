"""The settings of a service; the defaults suit one machine with a few thousand requests a second."""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import dataclass
from typing import Any

from equipoise import checks
from equipoise.errors import InvalidInput
from equipoise.service.webhook import Webhook

_ORIGIN = re.compile(r"(https?)://([a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?")
_PORTS = {"http": "80", "https": "443"}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Limits and options of a service.

    Attributes
    ----------
    open : bool
        Whether any client may do everything without a key; only for a laptop.
    body_bytes : int
        Largest request body, of an endpoint that takes many units; most endpoints take far less.
    units_per_request : int
        Most units that one request assigns or rewards.
    requests_in_flight : int
        Most requests that one process works on; more are refused with 503 and `Retry-After`: backpressure.
    bytes_in_flight : int
        Most bytes of request bodies that one process holds, a quarter of them with one key; more are refused in the
        same way.
    wait_seconds : float
        How long a request may wait for the store; then it is answered with 503, and a retry is safe.
    body_seconds : float
        How long a client may take to send a request: the limit against slow clients (slowloris).
    idle_seconds : int
        How long a connection may stay open without a request.
    unread_seconds : float
        How long a client may read nothing of an answer: the write timeout. An export gives up a little earlier.
    grace_seconds : int
        How long accepted requests may take to finish at shutdown.
    ending_seconds : float
        How long work on the store may take to finish after that.
    cors_origins : tuple of str
        CORS: web origins whose pages may call the service, such as https://school.example; * for all.
    access_log : bool
        Whether to log every request; otherwise assignments and rewards are logged only on a server error (5xx).
    drain_seconds : float
        How long to serve on after SIGTERM, while `/readyz` answers 503, before the port is closed: time for a load
        balancer to notice.
    batch_requests : int
        Most requests of one experiment that share a transaction (group commit).
    console : bool
        Whether to serve the console, the pages below ``/console``.
    console_hours : float
        How long somebody stays signed in to it.
    api : bool
        Whether to serve the API; False for the console alone.
    webhook : Webhook or None
        Where alerts are sent.
    watch_seconds : float
        Time between two looks at the health of an experiment.

    Examples
    --------
    >>> Settings(requests_in_flight=100).requests_in_flight
    100
    """

    open: bool = False
    body_bytes: int = 4 * 2**20
    units_per_request: int = 10_000
    requests_in_flight: int = 2_000
    bytes_in_flight: int = 256 * 2**20
    wait_seconds: float = 8.0
    body_seconds: float = 15.0
    idle_seconds: int = 75
    unread_seconds: float = 40.0
    grace_seconds: int = 20
    ending_seconds: float = 5.0
    cors_origins: tuple[str, ...] = ()
    access_log: bool = False
    drain_seconds: float = 0.0
    batch_requests: int = 512
    console: bool = True
    console_hours: float = 12.0
    api: bool = True
    webhook: Webhook | None = None
    watch_seconds: float = 60.0

    def __post_init__(self) -> None:
        whole = ("body_bytes", "units_per_request", "requests_in_flight", "batch_requests")
        for name in (*whole, "idle_seconds", "grace_seconds"):
            checks.whole_number(name, getattr(self, name), 1)
        if checks.whole_number("bytes_in_flight", self.bytes_in_flight, 1) < self.body_bytes:
            raise InvalidInput(
                f"bytes_in_flight must be at least body_bytes, {self.body_bytes:,}; got {self.bytes_in_flight:,}",
                hint="otherwise the largest body would never be taken",
            )
        for name in ("wait_seconds", "body_seconds", "unread_seconds", "ending_seconds", "watch_seconds"):
            checks.number_between(name, getattr(self, name), 0, 3600, open_low=True)
        checks.number_between("drain_seconds", self.drain_seconds, 0, 3600)
        checks.number_between("console_hours", self.console_hours, 0, 24 * 365, open_low=True)
        object.__setattr__(self, "cors_origins", tuple(map(_as_browsers_write_it, self.cors_origins)))

    @property
    def bytes_of_one_key(self) -> int:
        """Most bytes of request bodies that one process holds for one key: a quarter, or one body of the largest."""
        return max(self.body_bytes, self.bytes_in_flight // 4)

    def to_json(self) -> str:
        """Return the settings as JSON, for the processes of a server."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """Return the settings from JSON."""
        data: dict[str, Any] = json.loads(text)
        webhook = None if data["webhook"] is None else Webhook(**data["webhook"])
        return cls(**data | {"cors_origins": tuple(data["cors_origins"]), "webhook": webhook})


def _as_browsers_write_it(origin: str) -> str:
    """Normalise an origin to the form that browsers send, since the two are compared as text.

    Examples
    --------
    >>> _as_browsers_write_it("https://School.example:443"), _as_browsers_write_it("http://localhost:3000")
    ('https://school.example', 'http://localhost:3000')
    >>> _as_browsers_write_it("https://school.example/game")
    Traceback (most recent call last):
    ...
    equipoise.errors.InvalidInput: an origin must be * or like https://school.example; got 'https://school.example/game'
    hint: give scheme and host, and the port if it is a special one; no path, not even a slash at the end
    """
    if origin == "*":
        return origin
    found = _ORIGIN.fullmatch(origin.lower())
    if found is None:
        raise InvalidInput(
            f"an origin must be * or like https://school.example; got {origin!r}",
            hint="give scheme and host, and the port if it is a special one; no path, not even a slash at the end",
        )
    scheme, host, port = found.groups()
    return f"{scheme}://{host}" if port in (None, _PORTS[scheme]) else f"{scheme}://{host}:{port}"
