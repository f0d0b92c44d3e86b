"""Limits of a key: requests, bytes and new units per hour, and the token buckets that enforce them in one process."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from equipoise import checks
from equipoise.errors import InvalidInput
from equipoise.service.error_responses import Refused

_HOUR = 3600.0


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a key may use per hour; None is no limit.

    Attributes
    ----------
    requests : int or None
        Requests.
    bytes : int or None
        Bytes of the bodies of requests.
    units : int or None
        New units assigned.

    Examples
    --------
    >>> Limits.parse(["requests=1000", "units=200"])
    Limits(requests=1000, bytes=None, units=200)
    """

    requests: int | None = None
    bytes: int | None = None
    units: int | None = None

    def __post_init__(self) -> None:
        for name, most in asdict(self).items():
            if most is not None:
                checks.whole_number(name, most, 1)

    @classmethod
    def parse(cls, texts: list[str]) -> Limits:
        """Return the limits given as `requests=1000`, `bytes=...` and `units=...`."""
        given: dict[str, int] = {}
        for text in texts:
            name, _, most = text.partition("=")
            if name not in cls.__dataclass_fields__ or not most.isdecimal() or name in given:
                raise InvalidInput.of(
                    "limit", "must be requests=N, bytes=N or units=N per hour, each at most once", text
                )
            given[name] = int(most)
        return cls(**given)

    def or_else(self, others: Limits) -> Limits:
        """Return these limits, with those of `others` where there is none.

        Examples
        --------
        >>> Limits(units=100).or_else(Limits(requests=1000, units=200))
        Limits(requests=1000, bytes=None, units=100)
        """
        return Limits(**asdict(others) | {name: most for name, most in asdict(self).items() if most is not None})

    @classmethod
    def from_json(cls, text: str | None) -> Limits | None:
        """Return the limits in a row of the store, if there are any; those of a newer version are left out."""
        if text is None:
            return None
        data: dict[str, Any] = json.loads(text)
        return cls(**{name: data.get(name) for name in cls.__dataclass_fields__})

    def to_json(self) -> str:
        """Return the limits for a row of the store."""
        return json.dumps({name: most for name, most in asdict(self).items() if most is not None})

    def __str__(self) -> str:
        return ", ".join(f"{most:,} {name}/h" for name, most in asdict(self).items() if most is not None)


PUBLIC = Limits(requests=20_000, bytes=20_000_000, units=2_000)
"""What a public key may use per hour unless it has limits of its own: a busy web page's worth."""


class Bucket:
    """A token bucket: full with what may be used in an hour, and refilled evenly.

    Examples
    --------
    >>> bucket = Bucket(3600, now=0.0)
    >>> bucket.take(3600, now=0.0), bucket.take(2, now=0.0), bucket.take(2, now=2.0)
    (0.0, 2.0, 0.0)
    """

    def __init__(self, per_hour: int, now: float) -> None:
        self.per_hour = per_hour
        self._tokens = float(per_hour)
        self._filled_at = now

    def take(self, n_tokens: int, now: float) -> float:
        """Take tokens and return 0, or take none and return the seconds until there may be enough."""
        refill = max(0.0, now - self._filled_at) * self.per_hour / _HOUR
        self._tokens, self._filled_at = min(float(self.per_hour), self._tokens + refill), now
        if n_tokens <= self._tokens:
            self._tokens -= n_tokens
            return 0.0
        # More than the bucket holds is never there; an hour is as good an answer as any.
        return _HOUR if n_tokens > self.per_hour else (n_tokens - self._tokens) * _HOUR / self.per_hour

    def give_back(self, n_tokens: int) -> None:
        """Return tokens that were not used."""
        self._tokens = min(float(self.per_hour), self._tokens + n_tokens)


class Budgets:
    """The buckets of all keys with limits, in this process."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._buckets: dict[tuple[str, str], Bucket] = {}

    def take(self, key_id: str, limits: Limits, what: str, n_tokens: int) -> None:
        """Count a use of a key, or raise `Refused` (429) with `Retry-After` if it goes beyond its limit."""
        bucket, now = self._bucket(key_id, limits, what), self._clock()
        wait = 0.0 if bucket is None else bucket.take(n_tokens, now)
        if bucket is None or not wait:
            return
        hint = "try again later" if n_tokens <= bucket.per_hour else "send several smaller requests"
        raise Refused(
            429,
            f"this key may use {bucket.per_hour:,} {what} per hour; this needs {n_tokens:,}, more than are left",
            hint=hint,
            headers={"retry-after": str(math.ceil(wait))},
        )

    def give_back(self, key_id: str, limits: Limits, what: str, n_tokens: int) -> None:
        """Return what was counted and not used."""
        bucket = self._bucket(key_id, limits, what)
        if bucket is not None:
            bucket.give_back(n_tokens)

    def _bucket(self, key_id: str, limits: Limits, what: str) -> Bucket | None:
        most: int | None = getattr(limits, what)
        if most is None:
            return None
        bucket = self._buckets.get((key_id, what))
        if bucket is None or bucket.per_hour != most:
            bucket = self._buckets[key_id, what] = Bucket(most, self._clock())
        return bucket
