"""Give operators on the console's page what the service knows of itself, and let them revoke keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.console.operations import KeyLine, RollupLag, StoreFigures, Traffic
from equipoise.errors import UnknownKey
from equipoise.service.api_keys import Key, list_keys, revoke_key

if TYPE_CHECKING:
    from equipoise.service.service import Service


class OperatingDesk:
    """What operators see and do, for one who signed in with a key."""

    def __init__(self, service: Service, key: Key) -> None:
        self._service, self._key = service, key

    def traffic(self) -> Traffic:
        """Return the requests of the last minutes."""
        return self._service.traffic.read()

    def store(self) -> StoreFigures:
        """Return what the store takes, and how far its sums by hour reach."""
        store = self._service.store
        size = store.size()
        return StoreFigures(
            url=store.url,
            n_bytes=size.data,
            log_bytes=size.log,
            oldest_read_seconds=store.oldest_read_seconds,
            lags=tuple(RollupLag(name, n_events - event, n_events) for name, n_events, event in store.rollup_marks()),
        )

    def known_keys(self) -> tuple[KeyLine, ...]:
        """Return all keys that are valid, those made last first; then those that are not."""
        now = self._service.store.now()
        found = [self._line(one, one.state(now)) for one in reversed(list_keys(self._service.store))]
        return tuple(sorted(found, key=lambda one: one.state != "valid"))

    def _line(self, key: Key, state: str) -> KeyLine:
        return KeyLine(
            id=key.id,
            name=key.name,
            role=key.role,
            experiment=key.experiment,
            state=state,
            created_at=key.created_at,
            last_used_at=key.last_used_at,
            expires_at=key.expires_at,
            is_own=key.id == self._key.id,
        )

    def revoke(self, key_id: str) -> None:
        """Revoke a key; every process of the service notices within two seconds."""
        if all(one.id != key_id for one in self.known_keys()):
            raise UnknownKey(f"there is no key {key_id!r}")
        revoke_key(self._service.store, key_id)
