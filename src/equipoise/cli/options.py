"""Options that several commands share, and parsers for their values."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from equipoise.terminal import Format


def option(name: str, panel: str, metavar: str | None, text: str, envvar: str | None = None) -> Any:
    """Return an option; the help text lists it under the heading `panel`."""
    return typer.Option(name, help=text, metavar=metavar, rich_help_panel=panel, envvar=envvar, show_envvar=False)


ArmsFile = Annotated[str | None, option("--arms", "Arms", "FILE", "CSV with columns arm, mean, std; - reads stdin.")]
Mean = Annotated[str | None, option("--mean", "Arms", "1,2,3", "Mean rewards of the arms.")]
Std = Annotated[str | None, option("--std", "Arms", "1,1,1", "Standard deviations of the arms' rewards.")]
Name = Annotated[str | None, option("--name", "Arms", "A,B,C", "Names of the arms, if not 1, 2, ...")]
Floor = Annotated[str, option("--floor", "Goal", "X", "Smallest share of every arm; or one per arm, as 0.1,0,0.")]
AsJson = Annotated[bool, option("--json", "Output", None, "Print one JSON object, at full precision.")]
AsCsv = Annotated[bool, option("--csv", "Output", None, "Print CSV, at full precision.")]
Quiet = Annotated[bool, option("--quiet", "Output", None, "No progress and no notes.")]
ChartFile = Annotated[Path | None, option("--chart", "Output", "FILE", "Draw it: .html, .png, .svg or .pdf.")]

InformationKept = Annotated[
    float | None,
    option(
        "--information-kept",
        "Dial",
        "Q",
        "As accurate as the best design with this share of the units: 1 is accuracy only.",
    ),
]
InformationAbout = Annotated[
    str | None,
    option("--information-about", "Dial", "WHAT", "Accurate about: average (of the arms), every-arm or best-arm."),
]
SmallestDifference = Annotated[
    float | None,
    option("--smallest-difference", "Dial", "X", "For best-arm: smaller differences of means count as this."),
]
HalfWidth = Annotated[
    float | None,
    option("--half-width", "Dial", "X", "Or a goal: every arm known to within X after --units, or their average."),
]
Units = Annotated[
    int | None, option("--units", "Dial", "N", "After how many units in all --half-width is to be reached.")
]


def output_format(as_json: bool, as_csv: bool) -> "Format":
    """Return the output format."""
    if as_json and as_csv:
        raise InvalidInput("give --json or --csv; got both")
    return "json" if as_json else "csv" if as_csv else "table"


def check_chart(path: Path | None) -> None:
    """Raise before any computation if a requested chart could not be drawn or written."""
    if path is not None:
        from equipoise.charts import checked_chart_path

        checked_chart_path(path)


def save_chart(chart: Any, path: Path) -> None:
    """Write a chart and report its path on stderr."""
    from equipoise import charts

    charts.save_chart(chart, path)
    print(f"chart written to {path}", file=sys.stderr)


def floor_shares(text: str) -> float | tuple[float, ...]:
    """Parse one floor for all arms, or one per arm."""
    from equipoise.arm_tables import numbers

    lowest = numbers("floor", text)
    return lowest if len(lowest) > 1 else lowest[0]
