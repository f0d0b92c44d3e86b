"""Back up and restore the store of an SQLite file: copied while it is in use, and verified before it counts."""

from __future__ import annotations

import shlex
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import sqlalchemy as sa

from equipoise.errors import EquipoiseError, Hint, InvalidInput, StoreUnavailable, UpgradeNeeded
from equipoise.experiment.experiment import Experiment
from equipoise.files import replacing
from equipoise.store import open_store, sqlite_backups
from equipoise.store.database import database_at
from equipoise.store.sqlite import FileDatabase

if TYPE_CHECKING:
    from os import PathLike

Progress = Callable[[int, int], None]


class Copied(NamedTuple):
    """A copy of a store that was checked.

    Attributes
    ----------
    path : Path
        The new file.
    n_bytes : int
        Its size.
    n_experiments, n_events : int
        What was replayed by `Experiment.verify`; zero if the store is of an older version.
    verified : bool
        Whether every experiment was replayed. A store of an older version cannot be, before it is upgraded; then only
        SQLite's own check was made.
    replaced : Path or None
        The new name of the file that was there before.
    """

    path: Path
    n_bytes: int
    n_experiments: int
    n_events: int
    verified: bool
    replaced: Path | None = None


def backup(url: str, path: str | PathLike[str], *, replace: bool = False, progress: Progress | None = None) -> Copied:
    """Write a copy of a store to a file, while others use the store, and verify every experiment in the copy.

    The file appears when it is complete, verified and on disk.

    Parameters
    ----------
    url : str
        The store, ``sqlite:///file.db``. For PostgreSQL, the error names the commands to use.
    path : path
        The file to write.
    replace : bool, default False
        Whether to replace a file that exists.
    progress : function, optional
        Called with the bytes copied so far and the bytes in all.

    Examples
    --------
    >>> import tempfile, equipoise as eq
    >>> from equipoise.experiment import backup
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = eq.open_store(f"sqlite:///{folder}/school.db")
    ...     _ = eq.Experiment.create(store, "fractions", arms=["line", "pie"], policy=eq.Uniform(), seed=1).ask("ada")
    ...     done = backup(store.url, f"{folder}/backup.db")
    ...     store.close()
    >>> done.n_experiments, done.n_events
    (1, 2)
    """
    source = _file_at(url, lambda plain: dump_commands(plain, str(path)))
    source.require_store()
    target = _checked_target(Path(path), source.path)
    if target.exists() and not replace:
        raise EquipoiseError(f"{target} exists already", hint=Hint.REPLACE_FILE)
    with _sqlite_errors(source), _replacing_database(target) as partial:
        done = _checked_copy(source.path, partial, progress)
    return done._replace(path=target)


def restore(path: str | PathLike[str], url: str, *, replace: bool = False, progress: Progress | None = None) -> Copied:
    """Make a store from a backup, after verifying every experiment in it.

    Stop every program that uses the store first; a store that another program has open is not replaced.

    Parameters
    ----------
    path : path
        The backup.
    url : str
        The store to make, ``sqlite:///file.db``.
    replace : bool, default False
        Whether to replace a store that exists; its file is kept under another name.
    progress : function, optional
        Called with the bytes copied so far and the bytes in all.
    """
    target = _file_at(url, lambda plain: restore_commands(plain, str(path)))
    source = FileDatabase(sa.make_url("sqlite://"), Path(path))
    if not source.path.is_file():
        raise StoreUnavailable(f"there is no backup {source.path}")
    source.require_store()
    _checked_target(target.path, source.path)
    if target.path.exists():
        if not replace:
            raise EquipoiseError(f"{target.path} exists already", hint=Hint.REPLACE_FILE)
        sqlite_backups.require_unused(target.path)
    with _sqlite_errors(source), _replacing_database(target.path) as partial:
        done = _checked_copy(source.path, partial, progress)
        if target.path.exists():  # somebody may have started to use it meanwhile
            sqlite_backups.require_unused(target.path)
        replaced = sqlite_backups.set_aside(target.path)
    return done._replace(path=target.path, replaced=replaced)


def dump_commands(url: str, path: str) -> str:
    """Return the command that backs up a PostgreSQL store; pg_dump reads one snapshot, and blocks nobody.

    Examples
    --------
    >>> dump_commands("postgresql://ada:secret@db/school", "school.dump")
    'pg_dump --format=custom --file=school.dump --dbname=postgresql://ada@db/school'
    """
    plain, schema = _without_secrets(url)
    parts = ["pg_dump", "--format=custom", *([f"--schema={schema}"] if schema else []), f"--file={path}"]
    return shlex.join([*parts, f"--dbname={plain}"])


def restore_commands(url: str, path: str) -> str:
    """Return the command that restores a PostgreSQL store, all or nothing.

    Examples
    --------
    >>> restore_commands("postgresql://ada@db/school", "school.dump")
    'pg_restore --clean --if-exists --single-transaction --no-owner --dbname=postgresql://ada@db/school school.dump'
    """
    plain, _ = _without_secrets(url)
    options = ["--clean", "--if-exists", "--single-transaction", "--no-owner"]
    return shlex.join(["pg_restore", *options, f"--dbname={plain}", path])


def _without_secrets(url: str) -> tuple[str, str | None]:
    """Return the URL of a PostgreSQL database as libpq reads it, without passwords; and its schema, if it names one."""
    parsed = sa.make_url(url)
    query = {name: value for name, value in parsed.query.items() if "password" not in name}
    plain = sa.URL.create(
        "postgresql", parsed.username, host=parsed.host, port=parsed.port, database=parsed.database, query=query
    )
    options = str(parsed.query.get("options", ""))
    _, found, schema = options.partition("search_path=")
    return plain.render_as_string(), schema.split()[0].split(",")[0] if found and schema else None


def _file_at(url: str, commands: Callable[[str], str]) -> FileDatabase:
    """Return the SQLite file of a URL; for PostgreSQL, raise an error that says what to do instead."""
    database = database_at(url)
    if isinstance(database, FileDatabase):
        return database
    if url == "memory:":
        raise InvalidInput("a store in memory cannot be backed up; got 'memory:'")
    raise InvalidInput(
        f"this copies SQLite files; PostgreSQL has programs of its own; got {database.shown_url}",
        hint=f"with the password in PGPASSWORD or ~/.pgpass: {commands(url)}",
    )


def _checked_target(target: Path, source: Path) -> Path:
    if not target.parent.is_dir():
        raise StoreUnavailable(f"the directory of {target} does not exist", hint=f"mkdir -p {target.parent}")
    if target.is_dir():
        raise StoreUnavailable(f"{target} is a directory; expected the name of a file")
    if target.exists() and target.samefile(source):
        raise InvalidInput(f"the copy must be another file than the original; got {target} for both")
    return target


@contextmanager
def _sqlite_errors(database: FileDatabase) -> Iterator[None]:
    """Translate errors of SQLite, such as a full disk."""
    try:
        yield
    except sqlite3.Error as error:
        failure, _ = database.failure(error)
        raise failure or StoreUnavailable(f"{database.path} cannot be copied: {error}") from error


@contextmanager
def _replacing_database(path: Path) -> Iterator[Path]:
    """Yield a path beside `path` for a database that replaces it; whatever happens, nothing is left beside it."""
    with replacing(path) as partial:
        try:
            yield partial
        finally:
            sqlite_backups.remove_side_files(partial)


def _checked_copy(source: Path, partial: Path, progress: Progress | None) -> Copied:
    """Copy a file and verify the copy."""
    sqlite_backups.copy_file(source, partial, progress)
    sqlite_backups.check_pages(partial)
    n_experiments, n_events, verified = _verify(partial)
    sqlite_backups.make_one_file(partial)
    return Copied(partial, partial.stat().st_size, n_experiments, n_events, verified)


def _verify(path: Path) -> tuple[int, int, bool]:
    """Replay every experiment of a file; return their number and that of their events, and whether it was possible."""
    try:
        store = open_store(f"sqlite:///{path}", create=False)
    except UpgradeNeeded:
        return 0, 0, False
    with store:
        events = [Experiment.open(store, one.name).verify().n_events for one in Experiment.list(store)]
    return len(events), sum(events), True
