"""Store experiments durably: in an SQLite file, a PostgreSQL database or memory, behind one class."""

from equipoise.store.store import Prepared, Store, open_store, upgrade
from equipoise.store.transaction import Transaction

__all__ = ["Prepared", "Store", "Transaction", "open_store", "upgrade"]
