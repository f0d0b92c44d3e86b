"""Instants as the store keeps them, whole microseconds since 1970 in UTC, and as Python does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def microseconds(instant: datetime) -> int:
    """Return an instant as the store keeps it.

    Examples
    --------
    >>> microseconds(datetime(1970, 1, 2, tzinfo=UTC))
    86400000000
    """
    return (instant - _EPOCH) // _MICROSECOND


def instant(microseconds: int) -> datetime:
    """Return an instant in UTC.

    Examples
    --------
    >>> instant(86_400_000_000).isoformat()
    '1970-01-02T00:00:00+00:00'
    """
    return _EPOCH + timedelta(microseconds=microseconds)
