"""API keys: create, list, revoke and check them. A key has a role; the store keeps its hash, never the key itself."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from equipoise import checks
from equipoise.errors import Hint, InvalidInput, NotAllowed, NotAuthenticated, UnknownKey
from equipoise.experiment.names import LONGEST_NAME, checked_text, checked_who
from equipoise.http_api import ADMIN, EVERY_KEY
from equipoise.service.key_limits import PUBLIC, Limits
from equipoise.store.schema import instant, microseconds

if TYPE_CHECKING:
    from equipoise.store import Store
    from equipoise.store.transaction import Key as Row
    from equipoise.store.transaction import Transaction

ROLES = EVERY_KEY
"""Readers see everything and change nothing; assigners ask and tell but see no results; admins may do everything."""

_TOKEN = re.compile(r"eq_([0-9a-z]{12})_([0-9A-Za-z_-]{43})")
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # no letters that look like digits: people read ids aloud


@dataclass(frozen=True)
class Key:
    """A key, without its secret.

    Attributes
    ----------
    id : str
        Names the key in lists, logs and `revoke_key`; not secret.
    name : str
        The author of its changes in the log of an experiment.
    role : {"reader", "assigner", "admin"}
        What the key may do.
    experiment : str or None
        The only experiment it is valid for; None for all.
    limits : Limits or None
        What it may use per hour; None for no limits.
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
    limits: Limits | None = None

    def state(self, now: datetime) -> str:
        """Return whether the key is valid, expired or revoked."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "valid"

    def require(self, roles: tuple[str, ...], experiment: str | None = None) -> None:
        """Raise `NotAllowed` unless the key has one of the roles, and is valid for this experiment (None: for all)."""
        if self.role not in roles:
            raise NotAllowed(f"this needs a key with the role {' or '.join(roles)}; this one is for {self.role}s")
        if self.experiment is not None and self.experiment != experiment:
            wanted = "all experiments" if experiment is None else f"experiment {experiment!r}"
            raise NotAllowed(f"this needs a key for {wanted}; this one is for {self.experiment!r} only")

    def to_dict(self) -> dict[str, Any]:
        """Return the key as plain data for JSON."""
        data = dict(self.__dict__) | {"limits": None if self.limits is None else asdict(self.limits)}
        return data | {name: value.isoformat() for name, value in data.items() if isinstance(value, datetime)}


OPEN = Key("open", "open", ADMIN, None, datetime(1970, 1, 1, tzinfo=UTC), None, None, None, None)
"""The key of every request to a service without keys."""


def create_key(
    store: Store,
    *,
    role: str,
    name: str | None = None,
    experiment: str | None = None,
    expires_at: datetime | None = None,
    limits: Limits | None = None,
    public: bool = False,
    who: str | None = None,
) -> tuple[Key, str]:
    """Create a key and return it with its text, which is not stored and cannot be shown again.

    Parameters
    ----------
    role : {"reader", "assigner", "admin"}
        What the key may do.
    name : str, optional
        The author of its changes in the log; role and id by default.
    experiment : str, optional
        The only experiment it is valid for; it need not exist yet.
    expires_at : datetime, optional
        When it expires.
    limits : Limits, optional
        What it may use per hour in each process of a service; by default no limits, or those of a public key.
    public : bool, default False
        Whether strangers can read it, as in a web page or a game. Such a key must be an assigner's for one experiment,
        and `equipoise.service.key_limits.PUBLIC` applies to whatever `limits` does not limit.
    who : str, optional
        Who creates it.

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
    if public:
        if role != "assigner" or experiment is None:
            of = "all experiments" if experiment is None else f"experiment {experiment!r}"
            raise InvalidInput(f"a public key must be an assigner's for one experiment; got {role} of {of}")
        limits = PUBLIC if limits is None else limits.or_else(PUBLIC)
    key_id = "".join(secrets.choice(_ALPHABET) for _ in range(12))
    called = f"{role} {key_id}" if name is None else checked_text("name", name, LONGEST_NAME)
    now = microseconds(store.now())
    until = None if expires_at is None else microseconds(_zoned(expires_at))
    if until is not None and until <= now:
        raise InvalidInput(f"a key must expire in the future; got {expires_at}")
    secret = secrets.token_urlsafe(32)
    text = None if limits is None else limits.to_json()
    row = (key_id, _hash(secret), role, called, experiment, now, checked_who(who), until, None, None, text)
    store.change(None, lambda transaction: transaction.add_key(row))
    return _find(store, key_id), f"eq_{key_id}_{secret}"


def list_keys(store: Store) -> list[Key]:
    """Return all keys, oldest first, including expired and revoked ones."""
    return [_read(row) for row in store.read(lambda transaction: transaction.keys())]


def revoke_key(store: Store, key_id: str) -> Key:
    """Revoke a key; a running server notices within two seconds."""
    key = _find(store, key_id)
    now = microseconds(store.now())
    store.change(None, lambda transaction: transaction.revoke_key(key.id, now))
    return _find(store, key_id)


class KeyRing:
    """A server's cache of the keys of a store: refreshed every few seconds, consulted at every request."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows: dict[str, Row] = {}
        self._keys: dict[str, Key] = {}
        """Parsed on first use, since most keys are never used."""
        self._mark: Sequence[Any] | None = None
        self._used: set[str] = set()

    def read(self, *, note_uses: bool = False) -> None:
        """Refresh the cache if a key was created or revoked.

        With `note_uses`, first record which keys were used since the last time, and always refresh, in case a key was
        changed by hand.
        """
        used, self._used = (self._used, set()) if note_uses else (set(), self._used)
        now = microseconds(self._store.now())

        def work(transaction: Transaction) -> tuple[Sequence[Any], list[Row] | None]:
            transaction.touch_keys([(key_id, now) for key_id in sorted(used)])
            mark = transaction.keys_mark()
            return mark, None if mark == self._mark and not note_uses else transaction.keys()

        try:
            mark, rows = self._store.change(None, work) if used else self._store.read(work)
        except BaseException:
            self._used |= used
            raise
        if rows is not None:
            self._mark, self._rows, self._keys = mark, {row.id: row for row in rows}, {}

    def is_new(self, token: str) -> bool:
        """Return whether a token may be a key that was created since the last refresh."""
        parts = _TOKEN.fullmatch(token)
        return parts is not None and parts[1] not in self._rows

    def look_up(self, token: str) -> None:
        """Read the key of a token from the store; do not call it while `read` runs."""
        parts = _TOKEN.fullmatch(token)
        if parts is not None:
            row = self._store.read(lambda transaction: transaction.key(parts[1]))
            if row is not None:
                self._rows[row.id] = row

    def find(self, token: str) -> Key | None:
        """Return the key of a token if it is valid now; the comparison takes constant time."""
        row = self._row(token)
        return None if row is None else self._valid(row)

    def valid(self, key_id: str) -> Key | None:
        """Return the key with this id if it is valid now; for those who have shown its secret before.

        This may read the store, if another process has made the key since the last refresh.
        """
        row = self._rows.get(key_id)
        if row is None:
            row = self._store.read(lambda transaction: transaction.key(key_id))
        return None if row is None else self._valid(row)

    @property
    def first(self) -> str | None:
        """The id of the oldest key, which every process that serves the store knows; None if there is no key."""
        return min(self._rows.values(), key=lambda row: (row.created_at, row.id)).id if self._rows else None

    def _valid(self, row: Row) -> Key | None:
        # Revoked is revoked, even if the clock that recorded it is ahead of ours.
        if row.revoked_at is not None:
            return None
        if row.expires_at is not None and row.expires_at <= microseconds(self._store.now()):
            return None
        self._used.add(row.id)
        key = self._keys.get(row.id)
        if key is None:
            key = self._keys[row.id] = _read(row)
        return key

    def why_not(self, token: str | None) -> NotAuthenticated:
        """Return why a token is not a valid key; only a caller with the whole secret learns that it once was."""
        if token is None:
            return NotAuthenticated("this needs a key", hint=Hint.SEND_KEY)
        if not token:
            return NotAuthenticated("the key is empty", hint=Hint.SEND_KEY)
        row = self._row(token)
        if row is None:
            return NotAuthenticated("this is no key of this service", hint=Hint.SEND_KEY)
        return NotAuthenticated(f"the key {row.id} is {_read(row).state(self._store.now())}", hint=Hint.SEND_KEY)

    def _row(self, token: str) -> Row | None:
        parts = _TOKEN.fullmatch(token)
        if parts is None:
            return None
        row = self._rows.get(parts[1])
        is_it = hmac.compare_digest(_NOBODY if row is None else row.hash, _hash(parts[2]))
        return row if is_it else None


def _hash(secret: str) -> str:
    # 256 random bits need no slow hash: trying them all is impossible.
    return hashlib.sha256(secret.encode()).hexdigest()


_NOBODY = _hash(secrets.token_urlsafe(32))


def _read(row: Row) -> Key:
    expires_at, revoked_at, last_used_at = (
        None if at is None else instant(at) for at in (row.expires_at, row.revoked_at, row.last_used_at)
    )
    return Key(
        id=row.id,
        name=row.name,
        role=row.role,
        experiment=row.experiment,
        created_at=instant(row.created_at),
        created_by=row.created_by,
        expires_at=expires_at,
        revoked_at=revoked_at,
        last_used_at=last_used_at,
        limits=Limits.from_json(row.limits),
    )


def _find(store: Store, key_id: str) -> Key:
    row = store.read(lambda transaction: transaction.key(key_id))
    if row is not None:
        return _read(row)
    raise UnknownKey(f"{store.url} has no key {key_id!r}", hint="equipoise keys list shows those it has")


def _zoned(at: Any) -> datetime:
    if not isinstance(at, datetime) or at.tzinfo is None:
        raise InvalidInput(f"expires_at must be a datetime with a zone; got {at!r}", hint="datetime.now(UTC)")
    return at
