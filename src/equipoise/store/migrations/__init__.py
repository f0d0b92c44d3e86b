"""Migrate the schema with Alembic: one file per revision; never edit a released one."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from equipoise.errors import StoreMismatch, UpgradeNeeded
from equipoise.store import schema

DIRECTORY = Path(__file__).parent


def revision_of(connection: sa.Connection) -> str | None:
    """Return the schema revision of a database, or None if it has no tables of ours."""
    if not sa.inspect(connection).has_table(schema.VERSION_TABLE):
        return None
    found: str | None = connection.execute(
        sa.text(f"SELECT version_num FROM {schema.VERSION_TABLE}")  # noqa: S608
    ).scalar()
    return found


def migrate(connection: sa.Connection, url: str, *, even_with_experiments: bool) -> tuple[str | None, str]:
    """Run the missing revisions, all or none, and return the revision before and after.

    Call it in a transaction that holds the schema's lock: another process may be migrating too. `url` is for messages.
    """
    revision = revision_of(connection)
    if revision == schema.REVISION:
        return revision, revision

    # Import Alembic only here: it takes a third of a second, and most databases need no migration.
    from alembic.migration import MigrationContext
    from alembic.operations import Operations
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory(DIRECTORY, version_locations=[DIRECTORY])
    if revision is not None:
        if revision not in {script.revision for script in scripts.walk_revisions()}:
            raise StoreMismatch(
                f"{url} has schema revision {revision}; this version of equipoise knows up to {schema.REVISION}",
                hint="pip install --upgrade equipoise",
            )
        if not even_with_experiments and connection.execute(sa.text("SELECT 1 FROM experiments LIMIT 1")).first():
            raise UpgradeNeeded(
                f"{url} has schema revision {revision} and holds experiments; this version of equipoise needs "
                f"{schema.REVISION}",
                hint=f"make a copy, then: equipoise upgrade --store {url}",
            )
    _refuse_foreign_tables(connection, url, int(revision or 0))
    context = MigrationContext.configure(connection, opts={"version_table": schema.VERSION_TABLE})
    with Operations.context(context):
        for script in reversed(list(scripts.iterate_revisions(schema.REVISION, revision or "base"))):
            script.module.upgrade()
    context.stamp(scripts, schema.REVISION)
    return revision, schema.REVISION


def _refuse_foreign_tables(connection: sa.Connection, url: str, revision: int) -> None:
    """Raise if a table that a missing revision creates already exists."""
    missing = {name for name, table in schema.metadata.tables.items() if table.info.get("since", 1) > revision}
    foreign = sorted(set(sa.inspect(connection).get_table_names()) & missing)
    if foreign:
        raise StoreMismatch(
            f"{url} has tables called {', '.join(foreign)} that equipoise did not make",
            hint="name a new file or database, or another schema with ?options=-csearch_path%3Dequipoise",
        )
