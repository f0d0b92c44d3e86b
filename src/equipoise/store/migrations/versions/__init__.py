"""One file per revision of the schema; a released one is never edited."""
