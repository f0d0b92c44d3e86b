"""Store experiments durably: in an SQLite file, a PostgreSQL database or memory, behind one class."""

from equipoise.store.store import Store, open_store, upgrade
from equipoise.store.transaction import Transaction

__all__ = ["Store", "Transaction", "open_store", "upgrade"]
