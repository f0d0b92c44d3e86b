"""What can be set about a service; the defaults are for one machine with a few thousand requests a second."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

from equipoise import checks
from equipoise.errors import InvalidInput


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
    wait_seconds: float = 8.0
    body_seconds: float = 15.0
    idle_seconds: int = 75
    cors_origins: tuple[str, ...] = ()
    access_log: bool = False
    batch_requests: int = 512

    def __post_init__(self) -> None:
        for name in ("body_bytes", "units_per_request", "requests_in_flight", "idle_seconds", "batch_requests"):
            checks.whole_number(name, getattr(self, name), 1)
        for name in ("wait_seconds", "body_seconds"):
            checks.number_between(name, getattr(self, name), 0, 3600, open_low=True)
        for origin in self.cors_origins:
            if origin != "*" and not origin.startswith(("http://", "https://")):
                raise InvalidInput(f"an origin must be * or like https://school.example; got {origin!r}")

    def to_json(self) -> str:
        """Return the settings as text, for the processes of a server."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """Return the settings from text."""
        data: dict[str, Any] = json.loads(text)
        return cls(**data | {"cors_origins": tuple(data["cors_origins"])})
