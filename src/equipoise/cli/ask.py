"""The command `equipoise ask`: the arm of a unit, or of every unit of a file."""

import sys
from collections import Counter
from typing import Annotated, Any

import typer

from equipoise.cli.options import AsJson, option
from equipoise.cli.stores import (
    DEFAULT_STORE,
    ExperimentName,
    Key,
    Quiet,
    StoreUrl,
    Who,
    note,
    open_experiment,
    print_answer,
)
from equipoise.errors import InvalidInput

Unit = Annotated[str | None, typer.Argument(metavar="UNIT", help="Who is assigned.", show_default=False)]
UnitFile = Annotated[
    str | None,
    option("--file", "Units", "FILE", "Units: one per line, or CSV with a column unit and attributes; - reads stdin."),
]
Attributes = Annotated[
    str | None, option("--attributes", "Units", "JSON", "An object to log with a new assignment of UNIT.")
]
KeepGoing = Annotated[bool, option("--keep-going", "Units", None, "Go on after a line that is refused.")]
COLUMNS = ("unit", "arm", "number", "probability", "forced")


def ask(
    name: ExperimentName,
    unit: Unit = None,
    file: UnitFile = None,
    attributes: Attributes = None,
    keep_going: KeepGoing = False,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    who: Who = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Print the arm of a unit, assigning one if it has none; or of every unit of a file, as CSV."""
    if (unit is None) == (file is None):
        raise InvalidInput(f"give a UNIT or --file; got {'neither' if unit is None else 'both'}")
    experiment = open_experiment(store, name, key, who, quiet=quiet)
    if unit is not None:
        found = experiment.ask(unit, _object(attributes))
        print_answer(found._asdict() | {"at": found.at.isoformat()}, found.arm, as_json)
        return
    from equipoise.cli.feeding import feed
    from equipoise.cli.unit_files import read_units

    source, rows = read_units(str(file))
    write, new = _writer(as_json), Counter[bool]()

    def receive(found: Any) -> None:
        write(found)
        new[found.new] += 1

    feed(
        rows,
        source,
        lambda group: experiment.ask_many([(row.unit, row.attributes) for row in group]),
        receive,
        noun="units",
        show=not quiet and not sys.stdout.isatty(),  # on one screen, the bar and the assignments would mix
        keep_going=keep_going,
    )
    if not quiet:
        note(f"{len(rows):,} units: {new[True]:,} assigned now, {new[False]:,} before")


def _writer(as_json: bool) -> Any:
    """Return what prints an assignment: a row of CSV, or a line of JSON."""
    import csv
    import json

    if as_json:
        return lambda found: print(json.dumps(found._asdict() | {"at": found.at.isoformat()}), flush=True)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)

    def write(found: Any) -> None:
        writer.writerow([found.unit, found.arm, found.number, found.probability, str(found.forced).lower()])

    return write


def _object(text: str | None) -> dict[str, Any] | None:
    import json

    if text is None:
        return None
    try:
        data = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidInput(f"--attributes must be a JSON object; {error}") from None
    if not isinstance(data, dict):
        raise InvalidInput(f"--attributes must be a JSON object; got {text}")
    return data
