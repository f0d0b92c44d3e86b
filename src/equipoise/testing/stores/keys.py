"""The keys of the service, which live in the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from equipoise.store.transaction import Key
from equipoise.testing.stores.case import StoreCase

if TYPE_CHECKING:
    from collections.abc import Callable

    from equipoise.store import Transaction


class Keys(StoreCase):
    """The keys of the service, which live in the store."""

    def test_keys_are_kept_used_and_revoked(self) -> None:
        """The last use and the first revocation stand, in whatever order they are told."""
        old = Key("k-1", "ab" * 32, "reader", "ann", "fractions", 10, "root", 99)
        new = Key("k-2", "cd" * 32, "owner", "bob", None, 20)
        self.write(lambda transaction: transaction.add_key(new))
        self.write(lambda transaction: transaction.add_key(tuple(old)))
        assert self.keys() == [old, new]
        self.write(lambda transaction: transaction.touch_keys([("k-1", 30), ("k-2", 31), ("nobody", 32)]))
        self.write(lambda transaction: transaction.touch_keys([("k-1", 29), ("k-2", 35)]))
        self.write(lambda transaction: transaction.touch_keys([]))
        self.write(lambda transaction: transaction.revoke_key("k-1", 40))
        self.write(lambda transaction: transaction.revoke_key("k-1", 41))
        assert self.keys() == [old._replace(last_used_at=30, revoked_at=40), new._replace(last_used_at=35)]

    def test_no_two_keys_have_one_name(self) -> None:
        """A second key of the same id is an error, and the first stays."""
        key = Key("k-1", "ab" * 32, "reader", "ann", None, 10)
        self.write(lambda transaction: transaction.add_key(key))
        try:
            self.write(lambda transaction: transaction.add_key(key._replace(role="owner")))
        except sa.exc.IntegrityError:
            pass
        else:
            raise AssertionError("two keys with one id")
        assert self.keys() == [key]

    def test_a_key_is_found_by_its_id(self) -> None:
        """Alone, with all that is known of it."""
        keys = [Key(f"k-{i}", "ab" * 32, "reader", "ann", None, 10, expires_at=9) for i in range(3)]
        for key in keys:
            self.write(lambda transaction, key=key: transaction.add_key(key))  # type: ignore[misc]
        self.write(lambda transaction: transaction.revoke_key("k-1", 40))
        found = [self.store.read(lambda transaction, i=i: transaction.key(f"k-{i}")) for i in (1, 2, 3)]  # type: ignore[misc]
        assert found == [keys[1]._replace(revoked_at=40), keys[2], None]

    def test_new_and_revoked_keys_leave_a_mark(self) -> None:
        """Also at the same instant; a use leaves none."""
        marks = [self.mark()]
        for key in (Key("k-1", "ab" * 32, "reader", "ann", None, 10), Key("k-2", "ab" * 32, "reader", "ann", None, 10)):
            self.write(lambda transaction, key=key: transaction.add_key(key))  # type: ignore[misc]
            marks.append(self.mark())
        for name in ("k-1", "k-2"):
            self.write(lambda transaction, name=name: transaction.revoke_key(name, 40))  # type: ignore[misc]
            marks.append(self.mark())
        assert len(set(marks)) == len(marks)
        self.write(lambda transaction: transaction.touch_keys([("k-1", 50)]))
        assert self.mark() == marks[-1]

    def mark(self) -> object:
        """Return the mark of the keys in the store."""
        return self.store.read(lambda transaction: transaction.keys_mark())

    def keys(self) -> list[Key]:
        """Return the keys in the store."""
        return self.store.read(lambda transaction: transaction.keys())

    def write(self, work: Callable[[Transaction], None]) -> None:
        """Write in a transaction of its own."""
        self.store.change(None, work)
