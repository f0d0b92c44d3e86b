"""What can be set about a service; the defaults are for one machine with a few thousand requests a second."""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import dataclass
from typing import Any

from equipoise import checks
from equipoise.errors import InvalidInput

_ORIGIN = re.compile(r"(https?)://([a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?")
_PORTS = {"http": "80", "https": "443"}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Limits and choices of a service.

    Attributes
    ----------
    open : bool
        Whether everybody may do everything without a key; only for a laptop.
    body_bytes : int
        Largest body of a request.
    units_per_request : int
        Most units that one request assigns or rewards.
    requests_in_flight : int
        How many requests one process works on; those beyond are refused with 503 and told when to come again.
    bytes_in_flight : int
        How much of their bodies one process holds; what would be beyond is refused like that too.
    wait_seconds : float
        How long a request may wait for the store; then it is answered 503, and may be sent again.
    body_seconds : float
        How long a client may take to send a request.
    idle_seconds : int
        How long a connection may stay open without a request.
    cors_origins : tuple of str
        Web sites whose pages may call the service from a browser, such as https://school.example; * for all.
    access_log : bool
        Whether to log every request; without it, of assignments and rewards only those at which the service failed.
    batch_requests : int
        Most requests of one experiment that share a transaction.

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
    cors_origins: tuple[str, ...] = ()
    access_log: bool = False
    batch_requests: int = 512

    def __post_init__(self) -> None:
        for name in ("body_bytes", "units_per_request", "requests_in_flight", "idle_seconds", "batch_requests"):
            checks.whole_number(name, getattr(self, name), 1)
        if checks.whole_number("bytes_in_flight", self.bytes_in_flight, 1) < self.body_bytes:
            raise InvalidInput(
                f"bytes_in_flight must be at least body_bytes, {self.body_bytes:,}; got {self.bytes_in_flight:,}",
                hint="otherwise the largest body would never be taken",
            )
        for name in ("wait_seconds", "body_seconds"):
            checks.number_between(name, getattr(self, name), 0, 3600, open_low=True)
        object.__setattr__(self, "cors_origins", tuple(map(_as_browsers_write_it, self.cors_origins)))

    def to_json(self) -> str:
        """Return the settings as text, for the processes of a server."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """Return the settings from text."""
        data: dict[str, Any] = json.loads(text)
        return cls(**data | {"cors_origins": tuple(data["cors_origins"])})


def _as_browsers_write_it(origin: str) -> str:
    """Return an origin in the only form in which a browser sends it, as the two are compared letter by letter.

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
