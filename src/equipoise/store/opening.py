"""Open a store: make the tables in an empty database, refuse a foreign one, upgrade an older one on request."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from equipoise.errors import StoreMismatch, UpgradeNeeded
from equipoise.store import schema
from equipoise.store.store import Store
from equipoise.store.url import database_at

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from alembic.script import ScriptDirectory

    from equipoise.store.transaction import Transaction

MIGRATIONS = Path(__file__).parent / "migrations"


def open_store(url: str, *, clock: Callable[[], datetime] | None = None) -> Store:
    """Open a store of experiments, making its tables if the database is empty.

    Parameters
    ----------
    url : str
        ``sqlite:///file.db`` for a file that needs nothing started, ``postgresql://user@host/database`` for many
        machines, or ``memory:`` for a test or a notebook.
    clock : function, optional
        What tells the time, as a datetime with a zone; the system's clock by default.

    Examples
    --------
    >>> import equipoise as eq
    >>> store = eq.open_store("memory:")
    >>> experiment = eq.Experiment.create(
    ...     store, "fractions", arms=["number line", "pie"], policy=eq.ForcingBalance(reward_weight=0.8), seed=1
    ... )
    >>> experiment.ask("student-42").arm
    'number line'
    """
    store = Store(database_at(url), clock)
    try:
        if store.read(lambda transaction: _revision(transaction.connection)) != schema.REVISION:
            store.change(None, lambda transaction: _migrate(transaction, store, even_with_experiments=False))
    except BaseException:
        store.close()
        raise
    return store


def upgrade(url: str) -> tuple[str | None, str]:
    """Bring a database to the present schema and return its revision before and after.

    Examples
    --------
    >>> upgrade("memory:")
    (None, '2')
    """
    store = Store(database_at(url))
    try:
        return store.change(None, lambda transaction: _migrate(transaction, store, even_with_experiments=True))
    finally:
        store.close()


def _migrate(transaction: Transaction, store: Store, *, even_with_experiments: bool) -> tuple[str | None, str]:
    """Run the missing revisions, all or none; called with the lock, as another process may be doing the same."""
    connection = transaction.connection
    revision = _revision(connection)
    if revision == schema.REVISION:
        return revision, revision
    if revision is not None:
        known = {script.revision for script in _scripts().walk_revisions()}
        if revision not in known:
            raise StoreMismatch(
                f"{store.url} has schema revision {revision}; this version of equipoise knows up to {schema.REVISION}",
                hint="pip install --upgrade equipoise",
            )
        if not even_with_experiments and connection.execute(sa.text("SELECT 1 FROM experiments LIMIT 1")).first():
            raise UpgradeNeeded(
                f"{store.url} has schema revision {revision} and holds experiments; this version of equipoise needs "
                f"{schema.REVISION}",
                hint=f"make a copy, then: equipoise upgrade --store {store.url}",
            )
    _refuse_strangers(connection, store.url, int(revision or 0))
    _run_revisions(connection)
    return revision, schema.REVISION


def _refuse_strangers(connection: sa.Connection, url: str, revision: int) -> None:
    """Raise if a table that is still to be made is there."""
    ours = {name for name, table in schema.metadata.tables.items() if table.info.get("since", 1) > revision}
    strangers = sorted(set(sa.inspect(connection).get_table_names()) & ours)
    if strangers:
        raise StoreMismatch(
            f"{url} has tables called {', '.join(strangers)} that equipoise did not make",
            hint="name a new file or database, or another schema with ?options=-csearch_path%3Dequipoise",
        )


def _revision(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table(schema.VERSION_TABLE):
        return None
    found: str | None = connection.execute(
        sa.text(f"SELECT version_num FROM {schema.VERSION_TABLE}")  # noqa: S608
    ).scalar()
    return found


def _run_revisions(connection: sa.Connection) -> None:
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext

    script = _scripts()

    def missing(revision: Any, _context: Any) -> Any:
        return script._upgrade_revs(schema.REVISION, revision)

    with EnvironmentContext(Config(), script, fn=missing) as environment:
        environment.configure(connection=connection, version_table=schema.VERSION_TABLE)
        environment.run_migrations()


def _scripts() -> ScriptDirectory:
    from alembic.script import ScriptDirectory

    return ScriptDirectory(str(MIGRATIONS))
