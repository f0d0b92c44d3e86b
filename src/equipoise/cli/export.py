"""The command `equipoise export`: assignments and rewards as a table, one row per unit."""

import sys
from pathlib import Path
from typing import Annotated

from equipoise.cli.options import option
from equipoise.cli.stores import DEFAULT_STORE, ExperimentName, Key, StoreUrl, note, open_experiment
from equipoise.errors import InvalidInput

Out = Annotated[
    Path | None, option("--out", "Output", "FILE", "Write to .csv, .jsonl or .parquet instead of standard output.")
]
AsLines = Annotated[bool, option("--json", "Output", None, "One JSON object per line instead of CSV.")]


def export(
    name: ExperimentName,
    out: Out = None,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    as_json: AsLines = False,
) -> None:
    """Write assignments and rewards, one row per unit, as CSV, JSON lines or Parquet."""
    from equipoise.printing import counted

    experiment = open_experiment(store, name, key)
    if out is None:
        experiment.export(sys.stdout, "jsonl" if as_json else "csv")
        sys.stdout.flush()
        return
    if as_json and out.suffix.lower() not in (".jsonl", ".ndjson"):
        raise InvalidInput(f"with --json the file must end in .jsonl; got {out}")
    n_rows = experiment.export(out)
    note(f"{counted(n_rows, 'unit')} written to {out}")
