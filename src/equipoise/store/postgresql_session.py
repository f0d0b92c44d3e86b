"""Set up a PostgreSQL session: set what we depend on, whatever the server's defaults, and check that it works."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from equipoise.errors import StoreMismatch, StoreUnavailable
from equipoise.store.libpq import SNAPSHOT, Connection, Statement, as_array, as_text

MOST_SKEW_SECONDS = 300.0
"""Largest difference between the clocks of this machine and of the server, as in Kerberos."""

_SETTINGS = {
    "tcp_keepalives_idle": "15",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "30000",
    # A plan made for a small table is kept when the table is large; using the index is right for both.
    "enable_seqscan": "off",
    "jit": "off",
    # Durable before acknowledged, whatever the server's default; keep a stricter setting.
    "synchronous_commit": "on",
    # We read doubles as text, and need all digits: 3 on servers before 12, anything positive on later ones.
    "extra_float_digits": "3",
    # Otherwise NULL in an array is the text "NULL".
    "array_nulls": "on",
    # Our own timeouts count, which are longer than waiting for a lock and shorter than an export.
    "statement_timeout": "0",
    "transaction_timeout": "0",
}
# Older servers lack some settings. For the transaction only if the session is not ours alone: a pooler in between has
# process ids of its own, since it must route requests to cancel.
_SET = (
    "SELECT set_config(name, wanted, $3::integer <> pg_backend_pid()) "
    "FROM unnest($1::text[], $2::text[]) AS ours(name, wanted) "
    "WHERE current_setting(name, true) IS NOT NULL AND (name <> 'synchronous_commit' OR current_setting(name) = 'off')"
)
_CHECK = (
    # As texts: a double that was cut to fewer digits may be too large to be one.
    "SELECT $1::float8[]::text[], $2::float8, $3::text[], $4::text, "
    "$5::integer <> pg_backend_pid(), extract(epoch FROM clock_timestamp())::float8"
)
_DOUBLES = [0.1 + 0.2, 1 / 3, 5e-324, 1.7976931348623157e308, -0.0, None]
_TEXTS = ["\"'\\", "é 雪 \U0001d6fc", "NULL", "{a,b}", "", None]


def set_up(connection: Connection, url: str, timeouts: Mapping[str, float], *, check_clock: bool) -> None:
    """Configure and check a new connection, in one message; raise if the database cannot store our data.

    Parameters
    ----------
    url : str
        For messages.
    timeouts : dict of float
        More settings, in seconds.
    check_clock : bool
        Whether this machine's clock must agree with the server's.
    """
    _check_encoding(connection, url)
    settings = _SETTINGS | {name: f"{1000 * seconds:.0f}" for name, seconds in timeouts.items()}
    arrays = as_array(list(settings)), as_array(list(settings.values()))
    own_pid = as_text(connection.info.backend_pid)
    values = as_array(_DOUBLES), as_text(_DOUBLES[0]), as_array(_TEXTS), as_text(_TEXTS[0])
    # Until we know better, as through a pooler; nobody has process id 0.
    connection.settings = Statement(_SET, *arrays, own_pid)
    sent_at = time.time()
    [row], _ = connection.send(Statement(_CHECK, *values, own_pid), Statement("COMMIT"), begin=SNAPSHOT)
    received_at = time.time()
    *found, pooled, server_at = row
    connection.settings = Statement(_SET, *arrays, b"0") if pooled else None
    found[0] = [None if text is None else float(text) for text in found[0]]
    _check_values(found, url)
    if check_clock:
        _check_clock(sent_at, server_at, received_at, url)


def _check_encoding(connection: Connection, url: str) -> None:
    encoding = connection.info.parameter_status("server_encoding")
    if encoding not in ("UTF8", None):  # None: a proxy does not say
        raise StoreMismatch(
            f"{url} must be a database with encoding UTF8; got {encoding}",
            hint="CREATE DATABASE equipoise ENCODING 'UTF8' TEMPLATE template0, and name it in the URL",
        )


def _check_values(found: list[Any], url: str) -> None:
    """Raise unless awkward values came back bit for bit; only then are decisions the same on every store."""
    for sent, got in zip((_DOUBLES, _DOUBLES[0], _TEXTS, _TEXTS[0]), found, strict=True):
        if repr(got) != repr(sent):  # -0.0 == 0.0, but not their texts
            raise StoreMismatch(
                f"{url} must return what it was given; expected {sent!r}; got {got!r}",
                hint="name the PostgreSQL server itself in the URL, without a proxy that changes values",
            )


def _check_clock(sent_at: float, server_at: float, received_at: float, url: str) -> None:
    """Raise if the clocks differ so much that this machine would close the windows of missing rewards too early."""
    ahead = sent_at - server_at
    behind = server_at - received_at
    if max(ahead, behind) > MOST_SKEW_SECONDS:
        words = f"{ahead:,.0f} seconds ahead of" if ahead > 0 else f"{behind:,.0f} seconds behind"
        raise StoreUnavailable(
            f"the clock of this machine must agree with the database's to {MOST_SKEW_SECONDS:g} seconds; "
            f"it is {words} that of {url}",
            hint="synchronise the clocks of both machines (NTP), then try again",
        )
