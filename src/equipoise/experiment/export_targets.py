"""Where a table may be exported to, and in which format: one answer for experiments and for clients of a service."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from equipoise import checks
from equipoise.errors import InvalidInput

FORMATS = ("csv", "jsonl", "parquet")
_ENDINGS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}


def export_target(target: Any, form: str | None) -> tuple[str, Path | None]:
    """Return the format and, unless the target is an open file, its path; raise `InvalidInput` if there cannot be any.

    Examples
    --------
    >>> form, path = export_target("table.CSV", None)
    >>> form, path.name
    ('csv', 'table.CSV')
    """
    path = Path(os.fspath(target)) if isinstance(target, (str, os.PathLike)) else None
    if form is None and path is not None:
        form = _ENDINGS.get(path.suffix.lower())
        if form is None:
            raise InvalidInput(f"a file to export to must end in .csv, .jsonl or .parquet; got {str(path)!r}")
    if form is None:
        raise InvalidInput("an open file to export to needs a format: csv, jsonl or parquet")
    checks.one_of("format", form, FORMATS)
    if path is None:
        _check_file(target, form)
    elif not path.parent.is_dir():
        raise InvalidInput(f"the folder {path.parent} does not exist", hint=f"mkdir -p {path.parent}")
    elif path.is_dir():
        raise InvalidInput(f"{path} is a folder, not a file to export to")
    return form, path


def _check_file(file: Any, form: str) -> None:
    if not hasattr(file, "write"):
        raise InvalidInput(f"what to export to must be a path or an open file; got {file!r}")
    kind, nothing = ("binary", b"") if form == "parquet" else ("text", "")
    try:
        file.write(nothing)
    except TypeError:
        raise InvalidInput(f"a file to export {form} to must be opened as {kind}; got {file!r}") from None
