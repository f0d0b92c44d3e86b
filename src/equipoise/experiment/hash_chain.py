"""A hash chain over the events of an experiment: each event's hash covers the event and the hash before it.

The chain shows damage that a replay cannot see, such as a changed time, author or reason, and a log whose end is
missing. The hash of the last event identifies the whole log: write it down to show later that nothing was changed.

Units and free text can be personal data, which must be erasable. So a hash covers a commitment to them instead: their
hash with a random salt. To erase them, the row keeps the commitment and loses the salt. The chain still holds, and
without the salt nobody can find the unit by trying names.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from equipoise.errors import VerificationFailed
from equipoise.store import schema
from equipoise.store.database import RESTORE
from equipoise.store.schema import EVENT_COLUMNS

if TYPE_CHECKING:
    from equipoise.experiment.state import State
    from equipoise.store import Transaction

_HASH_BYTES = 16
_SALT_BYTES = 8
_UNIT, _DETAILS = EVENT_COLUMNS.index("unit"), EVENT_COLUMNS.index("details")
_SELECT = f"SELECT {', '.join(EVENT_COLUMNS)} FROM events WHERE experiment = ? ORDER BY number"  # noqa: S608
_OF_UNIT = f"SELECT {', '.join(EVENT_COLUMNS)} FROM events WHERE experiment = ? AND unit = ?"  # noqa: S608
_ERASE = "UPDATE events SET unit = ?, details = NULL, salt = NULL, commitment = ? WHERE experiment = ? AND number = ?"

_pack = msgspec.msgpack.Encoder().encode


def append_events(transaction: Transaction, experiment: int, state: State, events: Sequence[tuple[Any, ...]]) -> None:
    """Write events, given without their columns of the chain, and link them; `state` keeps the last hash."""
    salts = os.urandom(_SALT_BYTES * len(events))
    rows, last = [], state.hash
    for start, (*event, weight) in zip(range(0, len(salts), _SALT_BYTES), events, strict=True):
        salt = salts[start : start + _SALT_BYTES] if _is_personal(event) else None
        last = _hash(last, event, salt, None, weight)
        rows.append((*event, salt, None, last, weight))
    transaction.put(schema.events, experiment, rows)
    state.hash = last


def erase_unit(transaction: Transaction, experiment: int, unit: str) -> str:
    """Erase a unit's name, attributes and reasons from the log; return what stands there instead.

    The rows keep their commitments, so the chain holds, and lose the salts.
    """
    name = f"erased-{secrets.token_hex(8)}"
    for event in transaction.execute(_OF_UNIT, experiment, unit):
        *plain, salt, commitment, _, _ = event
        if salt is not None:
            commitment = _commitment(salt, unit, plain[_DETAILS])
        transaction.execute(_ERASE, name, commitment, experiment, event[0])
    return name


class Chain(NamedTuple):
    """A chain that holds: the last hash, if there is one, and the number of events that belong to units."""

    last: bytes | None
    n_unit_events: int


def verify_chain(transaction: Transaction, experiment: int) -> Chain:
    """Recompute a chain; raise `VerificationFailed` at the first event that does not fit."""
    first = transaction.chained_from(experiment) + 1
    last: bytes | None = None
    n_unit_events = 0
    for rows in transaction.stream(_SELECT, experiment):
        for row in rows:
            number, unit = row[0], row[_UNIT]
            *event, salt, commitment, recorded, weight = row
            if not _fits(last, event, salt, commitment, recorded, weight, is_chained=number >= first):
                raise VerificationFailed(
                    f"event {number} does not fit its hash: it, or one before it, is not what was written",
                    event=number,
                    hint=RESTORE,
                )
            last = recorded
            n_unit_events += unit is not None
    if transaction.head(experiment).hash != last:
        raise VerificationFailed(
            "the log does not end with the event that was written last: its end is missing, or the row of the "
            "experiment is wrong",
            hint=RESTORE,
        )
    return Chain(last, n_unit_events)


def _fits(
    last: bytes | None,
    event: Sequence[Any],
    salt: bytes | None,
    commitment: bytes | None,
    recorded: bytes | None,
    weight: float | None,
    *,
    is_chained: bool,
) -> bool:
    """Return whether an event has the hash it should have; one older than the chain has none."""
    if not is_chained:
        return recorded is None
    try:
        return recorded == _hash(last, event, salt, commitment, weight)
    except TypeError:  # a value of the wrong type, which SQLite's columns can hold
        return False


def _is_personal(event: Sequence[Any]) -> bool:
    """Return whether an event holds personal data of its own; other events of a unit name it by its decision."""
    return event[_UNIT] is not None and (event[1] == "assigned" or event[_DETAILS] is not None)


def _commitment(salt: bytes, unit: str, details: str | None) -> bytes:
    return blake2b(salt + _pack((unit, details)), digest_size=_HASH_BYTES).digest()


def _hash(
    last: bytes | None, event: Sequence[Any], salt: bytes | None, commitment: bytes | None, weight: float | None = None
) -> bytes:
    """Return the hash of an event after the event with the hash `last`; it covers a weight only where there is one."""
    number, kind, at, who, unit, arm, decision, reward, probability, forced, counted, replaced, details = event
    if salt is not None:
        commitment = _commitment(salt, unit, details)
    if unit is not None:
        details = None
    # SQLite returns -0.0 as 0.0; adding 0.0 makes them equal.
    reward = None if reward is None else reward + 0.0
    replaced = None if replaced is None else replaced + 0.0
    fields = (last, number, kind, at, who, commitment, arm, decision, reward, probability, forced, counted, replaced)
    more = (details,) if weight is None else (details, weight + 0.0)
    return blake2b(_pack((*fields, *more)), digest_size=_HASH_BYTES).digest()
