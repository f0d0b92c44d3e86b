"""Sessions of the console: a key becomes a random secret in a cookie, of which the store keeps the hash.

A session ends after some hours, at sign-out, and with its key. It is the same for all processes, and nobody who reads
the store can use it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
import time
from typing import TYPE_CHECKING

from equipoise.store.schema import microseconds
from equipoise.store.transaction import Session

if TYPE_CHECKING:
    from equipoise.service.api_keys import Key, KeyRing
    from equipoise.store import Store

_SECRET = re.compile(r"[0-9A-Za-z_-]{43}")
_KNOWN_SECONDS = 1.5
"""Most seconds that a session is remembered: one that another process ended still works that long."""
_MOST_KNOWN = 10_000


class Sessions:
    """The sessions of a store, as one process of a server knows them."""

    def __init__(self, store: Store, keys: KeyRing, seconds: float) -> None:
        self._store = store
        self._keys = keys
        self._seconds = seconds
        self._known: dict[str, tuple[float, Session]] = {}
        self._knowing = threading.Lock()

    def begin(self, key: Key) -> str:
        """Begin a session with a key, and return its secret."""
        secret = secrets.token_urlsafe(32)
        now = microseconds(self._store.now())
        session = Session(_hash(secret), key.id, now, now + int(1e6 * self._seconds))
        self._store.change(None, lambda transaction: transaction.add_session(session, now))
        return secret

    def key(self, secret: str) -> Key | None:
        """Return the key of a session if both are still valid; this may read the store."""
        if not _SECRET.fullmatch(secret):
            return None
        hashed = _hash(secret)
        with self._knowing:
            read_at, session = self._known.get(hashed, (0.0, None))
        if session is None or time.monotonic() - read_at > _KNOWN_SECONDS:
            session = self._store.read(lambda transaction: transaction.session(hashed))
            with self._knowing:
                if session is None:
                    self._known.pop(hashed, None)
                else:
                    if len(self._known) >= _MOST_KNOWN:
                        self._known.clear()
                    self._known[hashed] = time.monotonic(), session
        if session is None or session.expires_at <= microseconds(self._store.now()):
            return None
        return self._keys.valid(session.key)

    def end(self, secret: str) -> None:
        """End a session; idempotent."""
        hashed = _hash(secret)
        self._store.change(None, lambda transaction: transaction.end_session(hashed))
        with self._knowing:
            self._known.pop(hashed, None)


def form_token(secret: str) -> str:
    """Return the token that forms of a session must send: whoever does not see its pages cannot know it."""
    return hmac.new(secret.encode(), b"equipoise form", hashlib.sha256).hexdigest()


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
