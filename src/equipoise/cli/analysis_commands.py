"""Commands that say what an experiment has found: compare and report."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equipoise.cli.exit_codes import INTERRUPTED
from equipoise.cli.options import (
    FRACTION,
    AsCsv,
    AsJson,
    ChartFile,
    Quiet,
    check_chart,
    option,
    output_format,
    save_chart,
)
from equipoise.cli.stores import DEFAULT_STORE, At, ExperimentName, Key, StoreUrl, note, open_experiment
from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from equipoise.analysis.results import Comparison

Confidence = Annotated[
    float | None,
    option("--confidence", "Analysis", "P", "Of all differences together; 95% unless declared.", parser=FRACTION),
]
Control = Annotated[
    str | None, option("--control", "Analysis", "ARM", "Compare the others with this arm; the declared control.")
]


def compare(
    name: ExperimentName,
    control: Control = None,
    all_pairs: Annotated[
        bool, option("--all-pairs", "Analysis", None, "Compare all pairs although there is a control.")
    ] = False,
    arm: Annotated[
        str | None, option("--arm", "Analysis", "ARM", "Compare this arm only, with --other: declare it before.")
    ] = None,
    other: Annotated[str | None, option("--other", "Analysis", "ARM", "The arm to compare --arm with.")] = None,
    confidence: Confidence = None,
    guaranteed: Annotated[
        bool, option("--guaranteed", "Analysis", None, "Differences that hold for any rewards in the declared range.")
    ] = False,
    chart: ChartFile = None,
    at: At = None,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Compare the arms of an experiment: which differ, which may be best, what choosing one can cost."""
    form = output_format(as_json, as_csv)
    check_chart(chart)
    found = open_experiment(store, name, key, at=at).compare(
        control=control, all_pairs=all_pairs, arm=arm, other=other, confidence=confidence, guaranteed=guaranteed
    )
    _draw(found, chart)
    from equipoise import terminal
    from equipoise.analysis.result_tables import comparison_sections, record_columns, text_of
    from equipoise.analysis.results import Difference

    if form == "json":
        terminal.print_json(found.to_dict())
    elif form == "csv":
        columns = list(record_columns(Difference))
        terminal.print_csv(columns, [[getattr(pair, column) for column in columns] for pair in found.differences])
    else:
        print(text_of(comparison_sections(found)), flush=True)


def report(
    name: ExperimentName,
    control: Control = None,
    adjust: Annotated[
        str | None,
        option(
            "--adjust", "Analysis", "A,B", "Take out the effect of these attributes; those declared; '' is of none."
        ),
    ] = None,
    by: Annotated[
        str | None, option("--by", "Analysis", "A,B", "Compare the arms within the values of these attributes.")
    ] = None,
    confidence: Confidence = None,
    out: Annotated[
        Path | None, option("--out", "Output", "FILE", "Write a page to print or keep, or its numbers: .html or .json.")
    ] = None,
    no_verify: Annotated[
        bool,
        option("--no-verify", "Output", None, "With --out: do not replay the log to verify it, which takes longer."),
    ] = False,
    chart: ChartFile = None,
    at: At = None,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    quiet: Quiet = False,
) -> None:
    """Report everything that can be said of an experiment, from its log, with checks of what it assumes."""
    form = output_format(as_json, as_csv)
    check_chart(chart)
    if out is not None:
        from equipoise.experiment_page import checked_report_path

        if form != "table":
            raise InvalidInput.of("out", "must be left out with --json and --csv: FILE.json has all", str(out))
        checked_report_path(out)
    to_adjust, to_split = _listed("adjust", adjust), _listed("by", by) or []
    try:
        experiment = open_experiment(store, name, key, at=at, quiet=quiet)
        asked: dict[str, Any] = {"control": control, "adjust": to_adjust, "by": to_split, "confidence": confidence}
        if out is not None:
            from equipoise.experiment_page import write_report_page

            whole = experiment.full_report(**asked, verify=not no_verify)
            write_report_page(whole, out)
            _draw(whole.comparison, chart)
            note(f"report as of event {whole.event:,} written to {out}")
            return
        found = experiment.report(**asked)
    except KeyboardInterrupt:
        note("interrupted; a report only reads, so nothing has changed")
        raise typer.Exit(INTERRUPTED) from None
    _draw(found.comparison, chart)
    from equipoise import terminal
    from equipoise.analysis.result_tables import ROW_COLUMNS, report_rows, report_sections, text_of

    if form == "json":
        terminal.print_json(found.to_dict())
    elif form == "csv":
        terminal.print_csv(ROW_COLUMNS, [list(row.values()) for row in report_rows(found)])
    else:
        print(text_of(report_sections(found)), flush=True)


def _listed(name: str, text: str | None) -> list[str] | None:
    """Return the attributes that an option names; none for an empty text."""
    from equipoise.arm_tables import entries

    if text is None:
        return None
    names = list(entries(text))
    if "" in names:
        raise InvalidInput.of(name, "must be names of attributes, separated by commas", text)
    return names


def _draw(found: "Comparison", chart: ChartFile) -> None:
    if chart is not None:
        from equipoise.charts import comparison_chart

        save_chart(comparison_chart(found), chart)
