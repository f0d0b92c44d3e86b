"""Keys to the service: who may do what with which experiment; a store keeps their hashes, never the keys."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from equipoise import checks
from equipoise.errors import InvalidInput, NotAllowed, NotAuthenticated, UnknownKey
from equipoise.experiment.instants import instant, microseconds
from equipoise.experiment.texts import LONGEST_NAME, checked_text, checked_who

if TYPE_CHECKING:
    from equipoise.store import Store
    from equipoise.store.transaction import Key as Row
    from equipoise.store.transaction import Transaction

READER, ASSIGNER, ADMIN = ROLES = ("reader", "assigner", "admin")
"""Readers see everything and change nothing; assigners ask and tell and see no results; administrators do all."""

_NEVER = 2**63
_TOKEN = re.compile(r"eq_([0-9a-z]{12})_([0-9A-Za-z_-]{43})")
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # no letters that look like digits: people read ids aloud


@dataclass(frozen=True)
class Key:
    """A key as it is listed.

    Attributes
    ----------
    id : str
        What it is called in lists, logs and `revoke_key`; no secret.
    name : str
        Who the log of an experiment says it was.
    role : {"reader", "assigner", "admin"}
        What it may do.
    experiment : str or None
        The only experiment it is for, if it is for one.
    """

    id: str
    name: str
    role: str
    experiment: str | None
    created_at: datetime
    created_by: str | None
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None

    def state(self, now: datetime) -> str:
        """Return whether the key is valid, expired or revoked."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "valid"

    def require(self, roles: tuple[str, ...], experiment: str | None = None) -> None:
        """Raise `NotAllowed` unless the key has one of the roles, and is for this experiment (None: for all)."""
        if self.role not in roles:
            raise NotAllowed(f"this needs a key with the role {' or '.join(roles)}; this one is for {self.role}s")
        if self.experiment is not None and self.experiment != experiment:
            wanted = "all experiments" if experiment is None else f"experiment {experiment!r}"
            raise NotAllowed(f"this needs a key for {wanted}; this one is for {self.experiment!r} only")

    def to_dict(self) -> dict[str, Any]:
        """Return the key as plain data that JSON can hold."""
        data = dict(self.__dict__)
        return data | {name: value.isoformat() for name, value in data.items() if isinstance(value, datetime)}


OPEN = Key("open", "open", ADMIN, None, datetime(1970, 1, 1, tzinfo=UTC), None, None, None, None)
"""What everybody has at a service without keys."""


def create_key(
    store: Store,
    *,
    role: str,
    name: str | None = None,
    experiment: str | None = None,
    expires_at: datetime | None = None,
    who: str | None = None,
) -> tuple[Key, str]:
    """Make a key and return it with its text, which is not kept and cannot be shown again.

    Parameters
    ----------
    role : {"reader", "assigner", "admin"}
        What it may do.
    name : str, optional
        Who the log says it was; role and id by default.
    experiment : str, optional
        The only experiment it is for; it need not exist yet.
    expires_at : datetime, optional
        From when on it is refused.
    who : str, optional
        Who makes it.

    Examples
    --------
    >>> import equipoise as eq
    >>> store = eq.open_store("memory:")
    >>> key, text = create_key(store, role="assigner", name="web site", experiment="fractions")
    >>> text.startswith("eq_" + key.id), [one.name for one in list_keys(store)]
    (True, ['web site'])
    """
    checks.one_of("role", role, ROLES)
    if experiment is not None:
        checked_text("experiment", experiment, LONGEST_NAME)
    key_id = "".join(secrets.choice(_ALPHABET) for _ in range(12))
    called = f"{role} {key_id}" if name is None else checked_text("name", name, LONGEST_NAME)
    now = microseconds(store.now())
    until = None if expires_at is None else microseconds(_zoned(expires_at))
    if until is not None and until <= now:
        raise InvalidInput(f"a key must expire in the future; got {expires_at}")
    secret = secrets.token_urlsafe(32)
    row = (key_id, _hash(secret), role, called, experiment, now, checked_who(who), until, None, None)
    store.change(None, lambda transaction: transaction.add_key(row))
    return _find(store, key_id), f"eq_{key_id}_{secret}"


def list_keys(store: Store) -> list[Key]:
    """Return all keys, oldest first, those that are not valid any more among them."""
    return [_read(row) for row in store.read(lambda transaction: transaction.keys())]


def revoke_key(store: Store, key_id: str) -> Key:
    """Refuse a key from now on; a server that runs notices within two seconds."""
    key = _find(store, key_id)
    now = microseconds(store.now())
    store.change(None, lambda transaction: transaction.revoke_key(key.id, now))
    return _find(store, key_id)


class KeyRing:
    """The keys of a store as a server holds them: read now and then, looked up at every request."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._keys: dict[str, tuple[str, Key, int, int]] = {}
        self._used: set[str] = set()

    def read(self, *, note_uses: bool = False) -> None:
        """Read all keys anew; with `note_uses` write down first which were used since that was done last."""
        used, self._used = (self._used, set()) if note_uses else (set(), self._used)
        now = microseconds(self._store.now())

        def work(transaction: Transaction) -> list[Row]:
            transaction.touch_keys([(key_id, now) for key_id in sorted(used)])
            return transaction.keys()

        try:
            rows = self._store.change(None, work) if used else self._store.read(lambda transaction: transaction.keys())
        except BaseException:
            self._used |= used
            raise
        self._keys = {
            row.id: (row.hash, _read(row), row.expires_at or _NEVER, row.revoked_at or _NEVER) for row in rows
        }

    def find(self, token: str) -> Key | None:
        """Return the key that a text is, if it is valid now; the comparison takes as long whatever it finds."""
        parts = _TOKEN.fullmatch(token)
        if parts is None:
            return None
        hashed, key, expires_at, revoked_at = self._keys.get(parts[1], _NOBODY)
        if not hmac.compare_digest(hashed, _hash(parts[2])):
            return None
        if expires_at != _NEVER or revoked_at != _NEVER:
            now = microseconds(self._store.now())
            if now >= expires_at or now >= revoked_at:
                return None
        self._used.add(key.id)
        return key

    def why_not(self, token: str | None) -> NotAuthenticated:
        """Return why a text is no valid key; only who has the whole of it learns that it was one."""
        hint = "send Authorization: Bearer KEY; equipoise keys create makes one"
        if token is None:
            return NotAuthenticated("this needs a key", hint=hint)
        if not token:
            return NotAuthenticated("the key is empty", hint=hint)
        parts = _TOKEN.fullmatch(token)
        hashed, key, *_ = _NOBODY if parts is None else self._keys.get(parts[1], _NOBODY)
        if parts is not None and hmac.compare_digest(hashed, _hash(parts[2])):
            return NotAuthenticated(f"the key {key.id} is {key.state(self._store.now())}", hint=hint)
        return NotAuthenticated("this is no key of this service", hint=hint)

    @property
    def is_empty(self) -> bool:
        """Whether there is no key that is valid now."""
        return all(key.state(self._store.now()) != "valid" for _, key, *_ in self._keys.values())


def _hash(secret: str) -> str:
    # 256 random bits need no slow hash: nobody can try them all.
    return hashlib.sha256(secret.encode()).hexdigest()


_NOBODY = (_hash(secrets.token_urlsafe(32)), OPEN, 0, 0)


def _read(row: Row) -> Key:
    instants = (None if at is None else instant(at) for at in (row.expires_at, row.revoked_at, row.last_used_at))
    return Key(row.id, row.name, row.role, row.experiment, instant(row.created_at), row.created_by, *instants)


def _find(store: Store, key_id: str) -> Key:
    for key in list_keys(store):
        if key.id == key_id:
            return key
    raise UnknownKey(f"{store.url} has no key {key_id!r}", hint="equipoise keys list shows those it has")


def _zoned(at: Any) -> datetime:
    if not isinstance(at, datetime) or at.tzinfo is None:
        raise InvalidInput(f"expires_at must be a datetime with a zone; got {at!r}", hint="datetime.now(UTC)")
    return at
