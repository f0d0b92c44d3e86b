"""The command `equipoise events`: the log of an experiment."""

import csv
import itertools
import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

from equipoise.cli.options import AsCsv, AsJson, option, output_format
from equipoise.cli.stores import DEFAULT_STORE, ExperimentName, Key, StoreUrl, open_experiment
from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable

    from equipoise.experiment import Event

After = Annotated[int, option("--after", "Events", "N", "Only events after number N.")]
Last = Annotated[int | None, option("--last", "Events", "N", "Only the last N events.")]
_PAGE = 1_000


def events(
    name: ExperimentName,
    after: After = 0,
    last: Last = None,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Print the log: what happened, when and by whom; with --json one object per line."""
    output = output_format(as_json, as_csv)
    if last is not None and last < 1:
        raise InvalidInput(f"--last must be at least 1; got {last}")
    experiment = open_experiment(store, name, key)
    if last is not None:
        after = max(after, experiment.status().n_events - last)
    found = experiment.events(after)
    if output == "json":
        for event in found:
            print(json.dumps(event.to_dict()))
    elif output == "csv":
        _write_csv(found)
    else:
        _print_table(found)
    sys.stdout.flush()


def _write_csv(found: "Iterable[Event]") -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    header: list[str] | None = None
    for event in found:
        data = event.to_dict()
        if header is None:
            header = list(data)
            writer.writerow(header)
        writer.writerow([_cell(value) for value in data.values()])


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, dict) else value


def _print_table(found: "Iterable[Event]") -> None:
    """Print a page at a time: a log may be longer than memory."""
    from equipoise.printing import print_table

    pages = iter(found)
    while page := list(itertools.islice(pages, _PAGE)):
        print_table(
            [
                ("event", [f"{event.number:,}" for event in page]),
                ("kind", [event.kind for event in page]),
                ("unit", [_short(event.unit) for event in page]),
                ("arm", [_short(event.arm) for event in page]),
                ("reward", ["" if event.reward is None else f"{event.reward:g}" for event in page]),
                ("probability", ["" if event.probability is None else f"{event.probability:.4g}" for event in page]),
                ("who", [_short(event.who) for event in page]),
                ("at", [f"{event.at:%Y-%m-%d %H:%M:%S}" for event in page]),
            ],
            always=5,
            words=("kind", "unit", "arm", "who", "at"),
        )


def _short(text: str | None, longest: int = 24) -> str:
    if text is None:
        return ""
    return text if len(text) <= longest else f"{text[: longest - 3]}..."
