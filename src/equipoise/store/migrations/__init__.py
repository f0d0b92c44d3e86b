"""The history of the schema, one file per revision, run by Alembic."""
