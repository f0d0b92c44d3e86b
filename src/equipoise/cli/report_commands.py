"""Commands that read an experiment or check its log: status, events, export, verify and rebuild."""

import csv
import dataclasses
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equipoise.cli.exit_codes import FAILURE, INTERRUPTED, error_text
from equipoise.cli.options import SECONDS, AsCsv, AsJson, ChartFile, check_chart, option, output_format, save_chart
from equipoise.cli.stores import (
    DEFAULT_STORE,
    At,
    ExperimentName,
    Key,
    StoredExperiments,
    StoreUrl,
    Who,
    experiments_at,
    note,
    open_experiment,
)
from equipoise.errors import EquipoiseError, InvalidInput, StoreError, UnknownExperiment, visible
from equipoise.experiment.event_sentences import sentence_of

if TYPE_CHECKING:
    from equipoise.client import Client
    from equipoise.experiment import Event, Experiment, ExperimentSummary, Status

Every = Annotated[
    float, option("--every", "Output", "TIME", "How often to look, with --watch: 5s, 1 min.", parser=SECONDS)
]


def status(
    name: ExperimentName,
    watch: Annotated[
        bool, option("--watch", "Output", None, "Refresh it until the experiment is finished, or Ctrl-C.")
    ] = False,
    every: Every = 1.0,
    chart: ChartFile = None,
    at: At = None,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Print where an experiment stands: arms, totals, intervals, stopping rules."""
    if watch and at is not None:
        raise InvalidInput.of("at", "must be left out with --watch: the past does not change", at)
    if watch and chart is not None:
        raise InvalidInput.of("chart", "must be left out with --watch", str(chart))
    check_chart(chart)
    if not 0.05 <= every <= 86_400:
        raise InvalidInput.of("every", f"must be in [0.05, 86400] seconds; got {every:g}")
    experiment = open_experiment(store, name, key, at=at)
    if not watch:
        found = experiment.status()
        if chart is not None:
            _draw(found, experiment.configuration.control, chart)
        _print_status(found, as_json)
        return
    try:
        if sys.stdout.isatty() and not as_json:
            _watch_live(experiment, every)
        else:
            _watch_lines(experiment, every, as_json)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def _draw(found: "Status", control: str | None, chart: Path) -> None:
    from equipoise.charts import live_arms_chart

    save_chart(live_arms_chart(found, control=control), chart)


def _print_status(found: "Status", as_json: bool, *, one_line: bool = False) -> None:
    from equipoise import terminal
    from equipoise.status_table import print_lines, status_lines

    if as_json and one_line:
        print(json.dumps(found.to_dict()), flush=True)
    elif as_json:
        terminal.print_json(found.to_dict())
    else:
        print_lines(status_lines(found))


def fidelity(
    name: ExperimentName,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Compare an experiment with the plan it was made from: what left its 8-in-10 range."""
    form = output_format(as_json, as_csv)
    found = open_experiment(store, name, key).fidelity()
    from equipoise import terminal
    from equipoise.status_table import fidelity_lines, print_lines

    if form == "json":
        terminal.print_json(found.to_dict())
    elif form == "csv":
        columns = ["figure", "arm", "low", "middle", "high", "actual", "inside"]
        terminal.print_csv(columns, [[getattr(one, column) for column in columns] for one in found.figures])
    else:
        print_lines(fidelity_lines(found))


def _watch_live(experiment: "Experiment", every: float) -> None:
    from rich.console import Console
    from rich.live import Live

    from equipoise.status_table import status_lines, styled_text

    console = Console(highlight=False)
    with Live(console=console, auto_refresh=False) as screen:
        while True:
            found = experiment.status()
            lines = status_lines(found, width=console.width, height=console.height - 1)
            screen.update(styled_text(lines), refresh=True)
            if found.state == "finished":
                return
            time.sleep(every)


def _watch_lines(experiment: "Experiment", every: float, as_json: bool) -> None:
    """Print the status whenever the log has grown."""
    last = -1
    while True:
        found = experiment.status()
        if found.n_events != last:
            if last >= 0 and not as_json:
                print()
            _print_status(found, as_json, one_line=True)
            last = found.n_events
        if found.state == "finished":
            return
        time.sleep(every)


After = Annotated[int, option("--after", "Events", "N", "Only events after number N.")]
_PAGE = 1_000


def events(
    name: ExperimentName,
    after: After = 0,
    before: Annotated[int | None, option("--before", "Events", "N", "Only events before number N.")] = None,
    last: Annotated[int | None, option("--last", "Events", "N", "Only the last N events.")] = None,
    newest: Annotated[
        int | None, option("--newest", "Events", "N", "Only the last N events, of those chosen, newest first.")
    ] = None,
    kinds: Annotated[
        list[str] | None, option("--kind", "Events", "KIND", "Only events of this kind, as corrected. Repeatable.")
    ] = None,
    changes: Annotated[
        bool,
        option(
            "--changes", "Events", None, "Only changes, notes and decisions, as sentences; 20 of them, newest first."
        ),
    ] = False,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Print the log: what happened, when and by whom; with --json one object per line."""
    output = output_format(as_json, as_csv)
    for option_name, value in (("last", last), ("newest", newest)):
        if value is not None and value < 1:
            raise InvalidInput.of(option_name, "must be at least 1", value)
    if last is not None and (newest is not None or changes):
        raise InvalidInput.of("last", "must be left out with --newest or --changes")
    if changes and after:
        raise InvalidInput.of("after", "must be left out with --changes")
    experiment = open_experiment(store, name, key)
    wanted = kinds or ()
    found: Iterable[Event]
    if changes:
        found = experiment.changes(newest or _LATEST, before=before, kinds=wanted)
    elif newest is not None:
        found = itertools.islice(experiment.events(after, before=before, kinds=wanted, newest_first=True), newest)
    else:
        if last is not None:
            after = max(after, experiment.status().n_events - last)
        found = experiment.events(after, before=before, kinds=wanted)
    if output == "json":
        for event in found:
            print(json.dumps(event.to_dict()))
    elif output == "csv":
        _write_csv(found)
    elif changes:
        for event in found:
            print(f"{event.number:>9,}  {event.at:%Y-%m-%d %H:%M}  {visible(sentence_of(event))}")
    else:
        _print_table(found)
    sys.stdout.flush()


_LATEST = 20
"""How many changes are printed where no number is given."""


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
    """Print the events page by page: a log may be larger than memory."""
    from equipoise.terminal import print_table

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
        for event in page:
            if event.kind in _SAY_MORE or "reason" in event.details:
                print(f"event {event.number:,}: {visible(sentence_of(event))}")


_SAY_MORE = ("weight_changed", "dial_changed", "described", "noted")
"""Events of which the table shows too little."""


def _short(text: str | None, longest: int = 24) -> str:
    if text is None:
        return ""
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def export(
    name: ExperimentName,
    out: Annotated[
        Path | None, option("--out", "Output", "FILE", "Write to .csv, .jsonl or .parquet instead of standard output.")
    ] = None,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    as_json: Annotated[bool, option("--json", "Output", None, "One JSON object per line instead of CSV.")] = False,
) -> None:
    """Write assignments and rewards, one row per unit, as CSV, JSON lines or Parquet."""
    from equipoise.terminal import counted

    experiment = open_experiment(store, name, key)
    if out is None:
        experiment.export(sys.stdout, "jsonl" if as_json else "csv")
        sys.stdout.flush()
        return
    if as_json and out.suffix.lower() not in (".jsonl", ".ndjson"):
        raise InvalidInput(f"with --json the file must end in .jsonl; got {out}")
    n_rows = experiment.export(out)
    note(f"{counted(n_rows, 'unit')} written to {out}")


Names = Annotated[
    list[str] | None, typer.Argument(metavar="NAME", help="Experiments; all by default.", show_default=False)
]


def verify(names: Names = None, store: StoreUrl = DEFAULT_STORE, key: Key = None, as_json: AsJson = False) -> None:
    """Replay the log from nothing and compare every decision, probability and statistic with what is recorded."""

    def check(experiment: "Experiment") -> tuple[str, dict[str, Any]]:
        from equipoise.terminal import counted

        found = experiment.verify()
        length = f"{counted(found.n_events, 'event')} with {counted(found.n_decisions, 'decision')}"
        text = f"{length} replayed, all as recorded"
        if found.n_chained < found.n_events:
            text += f"; {counted(found.n_events - found.n_chained, 'event')} older than the hash chain"
        return text, dataclasses.asdict(found)

    _for_each(names, experiments_at(store, key), as_json, check)


def rebuild(
    names: Names = None, store: StoreUrl = DEFAULT_STORE, key: Key = None, who: Who = None, as_json: AsJson = False
) -> None:
    """Rebuild statistics and all other tables from the log."""

    def mend(experiment: "Experiment") -> tuple[str, dict[str, Any]]:
        changed = experiment.rebuild()
        return "rebuilt from the log" if changed else "as the log says; nothing to do", {"changed": changed}

    _for_each(names, experiments_at(store, key, who), as_json, mend)


def all_names(found: "Iterable[ExperimentSummary]", url: str) -> list[str]:
    """Return the names of all experiments; raise if there are none: a command that did nothing has not succeeded."""
    names = [one.name for one in found]
    if not names:
        raise UnknownExperiment(
            f"{url} has no experiments", hint="is it the right one? --store or EQUIPOISE_STORE names another"
        )
    return names


def _for_each(
    names: list[str] | None,
    experiments: "StoredExperiments | Client",
    as_json: bool,
    work: "Callable[[Experiment], tuple[str, dict[str, Any]]]",
) -> None:
    """Run `work` on each experiment; continue with the others if one fails."""
    from equipoise.terminal import print_json

    rows, failed = [], False
    for name in names or all_names(experiments.list(), experiments.url):
        try:
            text, data = work(experiments.open(name))
            rows.append({"name": name, "passed": True} | data)
            if not as_json:
                print(f"{name}: {text}", flush=True)
        except StoreError:
            raise
        except EquipoiseError as error:
            failed = True
            rows.append({"name": name, "passed": False, "error": error.message})
            note(f"error: {name}: {error_text(error)}")
    if as_json:
        print_json({"experiments": rows})
    if failed:
        raise typer.Exit(FAILURE)
