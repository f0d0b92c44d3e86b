"""Export assignments and rewards as CSV, JSON lines or Parquet, one row per unit, streamed from the store."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from equipoise import checks
from equipoise.errors import InvalidInput
from equipoise.files import polars, replacing
from equipoise.store.schema import instant
from equipoise.unit_lifecycle import COUNTED, DEFAULT_VALUE, EXPIRED, REWARD, REWARDED, STATES, WAITING, WITHDRAWN

if TYPE_CHECKING:
    from equipoise.experiment.state import State
    from equipoise.store import Transaction

COLUMNS = (
    "decision",
    "unit",
    "arm",
    "assigned_at",
    "probability",
    "forced",
    "reward",
    "rewarded_at",
    "state",
    "counted_reward",
    "attributes",
    "reward_weight",
)
"""`reward` is as reported or corrected; `counted_reward` is what is in the estimates, which may be a default or the
cap; `reward_weight` is the one that the policy solved for to decide, if it did. New columns come last."""

_SELECT = """
SELECT a.decision, a.unit, a.arm, a.at, a.probability, a.forced, r.reward, r.at, x.number, c.number,
    a.details, a.reward_weight
FROM events AS a
LEFT JOIN events AS r {by_unit} ON r.experiment = a.experiment AND r.unit = a.unit AND r.kind = 'rewarded'
LEFT JOIN events AS x {by_unit} ON x.experiment = a.experiment AND x.unit = a.unit AND x.kind = 'expired'
LEFT JOIN events AS c {by_unit} ON c.experiment = a.experiment AND c.unit = a.unit AND c.kind = 'counted'
WHERE a.experiment = ? AND a.kind = 'assigned' ORDER BY a.number
"""

_WITHDRAWN = "SELECT decision FROM events WHERE experiment = ? AND kind = 'withdrawn'"
_CORRECTED = "SELECT decision, reward FROM events WHERE experiment = ? AND kind = 'corrected' ORDER BY number"


def export(
    transaction: Transaction,
    experiment: int,
    state: State,
    target: str | os.PathLike[str] | IO[str] | IO[bytes],
    form: str | None,
) -> int:
    """Write the table of an experiment and return the number of rows."""
    chosen, path = export_target(target, form)
    pieces = _pieces(transaction, experiment, state)
    if path is None:
        return _write_open(pieces, target, chosen)
    with replacing(path) as partial:
        if chosen == "parquet":
            return _write_parquet(pieces, partial)
        with partial.open("w", encoding="utf-8", newline="") as file:
            return _write_text(pieces, file, chosen)


def _write_open(pieces: Iterator[list[tuple[Any, ...]]], file: Any, form: str) -> int:
    """Write to a file that the caller has opened."""
    if form != "parquet":
        return _write_text(pieces, file, form)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "table.parquet"
        count = _write_parquet(pieces, path)
        with path.open("rb") as table:
            shutil.copyfileobj(table, file)
    return count


def _pieces(transaction: Transaction, experiment: int, state: State) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows of the table in batches."""
    names, default, counted_as = state.names, state.configuration.missing.default, state.configuration.counted
    after = state.configuration.missing.life.after
    corrected = {decision: reward for rows in transaction.stream(_CORRECTED, experiment) for decision, reward in rows}
    withdrawn = {decision for rows in transaction.stream(_WITHDRAWN, experiment) for (decision,) in rows}
    for rows in transaction.stream(_SELECT.format(by_unit=transaction.database.by_unit), experiment):
        piece = []
        for row in rows:
            decision, unit, arm, at, probability, forced, told, told_at, expired, counted, details, weight = row
            unit_state = WAITING
            for event, happened in ((EXPIRED, expired), (REWARDED, told_at), (COUNTED, counted)):
                if happened is not None:
                    unit_state = after(unit_state, event)
            reward = corrected.get(decision, told)
            if decision in withdrawn:
                unit_state, reward, told_at = after(unit_state, WITHDRAWN), None, None
            meaning = STATES[unit_state]
            in_use = reward if meaning.estimate == REWARD else default if meaning.estimate == DEFAULT_VALUE else None
            in_use = None if in_use is None else counted_as(in_use)
            attributes = None if details is None else json.loads(details).get("attributes")
            piece.append(
                (
                    decision,
                    unit,
                    names[arm],
                    instant(at),
                    probability,
                    bool(forced),
                    reward,
                    None if told_at is None else instant(told_at),
                    meaning.name,
                    in_use,
                    attributes,
                    weight,
                )
            )
        yield piece


def _write_text(pieces: Iterator[list[tuple[Any, ...]]], file: IO[str], form: str) -> int:
    count = 0
    if form == "csv":
        file.write(",".join(COLUMNS) + "\n")
    for piece in pieces:
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        for row in piece:
            cells = [value.isoformat() if hasattr(value, "isoformat") else value for value in row]
            if form == "csv":
                flat = [str(value).lower() if isinstance(value, bool) else value for value in _flat(cells)]
                writer.writerow(flat)
            else:
                buffer.write(json.dumps(dict(zip(COLUMNS, cells, strict=True))) + "\n")
        file.write(buffer.getvalue())
        count += len(piece)
    return count


def _flat(row: Sequence[Any]) -> list[Any]:
    """Return a row with its attributes as JSON text."""
    return [json.dumps(value) if isinstance(value, dict) else value for value in row]


def _write_parquet(pieces: Iterator[list[tuple[Any, ...]]], path: Path) -> int:
    pl = polars()
    from polars.io.plugins import register_io_source

    instants = pl.Datetime("us", "UTC")
    assigned: Any = (pl.Int64, pl.String, pl.String, instants, pl.Float64, pl.Boolean)
    rewarded: Any = (pl.Float64, instants, pl.String, pl.Float64)
    schema = pl.Schema(dict(zip(COLUMNS, (*assigned, *rewarded, pl.String, pl.Float64), strict=True)))
    count = 0

    def frames(*_: Any) -> Iterator[Any]:
        nonlocal count
        for piece in pieces:
            count += len(piece)
            yield pl.DataFrame([_flat(row) for row in piece], schema=schema, orient="row")

    if (first := next(frames(), None)) is None:
        pl.DataFrame(schema=schema).write_parquet(path)
        return 0

    def with_first(*_: Any) -> Iterator[Any]:
        yield first
        yield from frames()

    register_io_source(with_first, schema=schema).sink_parquet(path)
    return count


FORMATS = ("csv", "jsonl", "parquet")
_ENDINGS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}


def export_target(target: Any, form: str | None) -> tuple[str, Path | None]:
    """Return the format, and the path unless the target is an open file; raise `InvalidInput` if they do not fit.

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
