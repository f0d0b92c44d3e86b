"""Where a store is, from the URL a user gives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from equipoise.errors import InvalidInput, MissingExtra, StoreUnavailable

if TYPE_CHECKING:
    from equipoise.store.database import Database

MEMORY = "memory:"
_HINT = "use sqlite:///file.db, postgresql://user@host/database or memory:"


def database_at(url: Any) -> Database:
    """Return the database a URL names, without opening it.

    Examples
    --------
    >>> database_at("memory:").shown_url
    'memory:'
    >>> database_at("mysql://localhost/school")
    Traceback (most recent call last):
    ...
    equipoise.errors.InvalidInput: a store must be SQLite, PostgreSQL or memory; got 'mysql://localhost/school'
    hint: use sqlite:///file.db, postgresql://user@host/database or memory:
    """
    if url == MEMORY:
        from equipoise.store.sqlite import MemoryDatabase

        return MemoryDatabase()
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, TypeError, ValueError):
        raise InvalidInput(f"a store must be given by a URL; got {url!r}", hint=_HINT) from None
    if parsed.drivername == "sqlite":
        from equipoise.store.sqlite import FileDatabase

        if parsed.query:
            options = str(parsed).partition("?")[2]
            raise InvalidInput(f"the address of an SQLite file takes no options; got ?{options}", hint=_HINT)
        if parsed.host:
            right = f"sqlite:///{parsed.host}" + (f"/{parsed.database}" if parsed.database else "")
            raise InvalidInput(f"the address of an SQLite file has three slashes; got {shown(parsed)!r}", hint=right)
        path = _checked_path(parsed.database)
        return FileDatabase(parsed.set(database=str(path)), path)
    if parsed.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        try:
            import psycopg  # noqa: F401

            from equipoise.store.postgresql import PostgreSQLDatabase
        except ImportError as error:
            hint = "pip install 'equipoise[postgres]'"
            raise MissingExtra("a PostgreSQL store needs the package psycopg", hint=hint) from error

        return PostgreSQLDatabase(parsed.set(drivername="postgresql+psycopg"))
    hint = "what a service has is reached with equipoise.Client" if parsed.drivername in ("http", "https") else _HINT
    raise InvalidInput(f"a store must be SQLite, PostgreSQL or memory; got {shown(parsed)!r}", hint=hint)


def shown(url: sa.URL) -> str:
    """Return a URL as it may be printed: without its password, wherever in it that stands."""
    hidden = {name: "***" for name in url.query if "password" in name}
    return url.update_query_dict(hidden).set(drivername=url.get_backend_name()).render_as_string(hide_password=True)


def _checked_path(path: str | None) -> Path:
    if not path or path == ":memory:":
        raise InvalidInput("an SQLite store must name a file; got none", hint=_HINT)
    if "\0" in path:
        raise InvalidInput(f"an SQLite store must name a file; got {path!r}")
    try:
        file = Path(path).expanduser()
    except RuntimeError:
        raise InvalidInput(f"an SQLite store must name a file; {path!r} is in a home directory unknown here") from None
    if not file.parent.is_dir():
        raise StoreUnavailable(f"the directory of {file} does not exist", hint=f"mkdir -p {file.parent}")
    if file.is_dir():
        raise StoreUnavailable(f"{file} is a directory, not an SQLite file")
    return file
