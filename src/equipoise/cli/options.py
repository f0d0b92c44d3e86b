"""Options that several commands share, and parsers for their values."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equipoise import quantities
from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from equipoise.terminal import Format


def option(
    name: str,
    panel: str,
    metavar: str | None,
    text: str,
    envvar: str | None = None,
    parser: Callable[[str], Any] | None = None,
    also: str | None = None,
) -> Any:
    """Return an option, with a second name if it has one; the help text lists it under the heading `panel`."""
    names = (name,) if also is None else (name, also)
    return typer.Option(
        *names, help=text, metavar=metavar, rich_help_panel=panel, envvar=envvar, show_envvar=False, parser=parser
    )


def _written(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a parser of an option from one of `quantities`; its errors are those of the command line."""

    def parse(text: Any) -> Any:
        try:
            return read(text)
        except InvalidInput as error:
            raise typer.BadParameter(f"{error.expected}; got {text!r}") from None

    parse.__name__ = read.__name__
    return parse


FRACTION = _written(quantities.fraction)
"""Parser of numbers that may be written in percent; what they are for checks their range."""
COUNT = _written(quantities.whole_number)
"""Parser of whole numbers, with or without commas between thousands."""
SECONDS = _written(quantities.duration_seconds)
"""Parser of durations."""


ArmsFile = Annotated[
    str | None, option("--arms", "Arms", "FILE", "CSV with columns arm, mean, std, or arm, rate; - reads stdin.")
]
Rates = Annotated[
    str | None, option("--rates", "Arms", "10%,12%", "Instead of --mean and --std: rates of yes/no rewards.")
]
Mean = Annotated[str | None, option("--mean", "Arms", "1,2,3", "Mean rewards of the arms.")]
Std = Annotated[str | None, option("--std", "Arms", "1,1,1", "Standard deviations of the arms' rewards.")]
Name = Annotated[str | None, option("--name", "Arms", "A,B,C", "Names of the arms, if not 1, 2, ...")]
Floor = Annotated[
    str, option("--floor", "Goal", "X", "Smallest share of every arm, as 2%; or one per arm, as 10%,0,0.")
]
AsJson = Annotated[bool, option("--json", "Output", None, "Print one JSON object, at full precision.")]
AsCsv = Annotated[bool, option("--csv", "Output", None, "Print CSV, at full precision.")]
Quiet = Annotated[bool, option("--quiet", "Output", None, "No progress and no notes.")]
ChartFile = Annotated[Path | None, option("--chart", "Output", "FILE", "Draw it: .html, .png, .svg or .pdf.")]

RewardWeight = Annotated[
    float | None,
    option("--reward-weight", "Dial", "W", "0 is accuracy only, 1 reward only; or in other words:", parser=FRACTION),
]
InformationKept = Annotated[
    float | None,
    option(
        "--information-kept",
        "Dial",
        "Q",
        "As accurate as the best design with this share of the units, as 70%: 100% is accuracy only.",
        parser=FRACTION,
    ),
]
InformationAbout = Annotated[
    str | None,
    option("--information-about", "Dial", "WHAT", "Accurate about: average (of the arms), every-arm or best-arm."),
]
SmallestDifference = Annotated[
    float | None,
    option(
        "--smallest-difference",
        "Dial",
        "X",
        "For best-arm: smaller differences of means count as this.",
        parser=FRACTION,
    ),
]
HalfWidth = Annotated[
    float | None,
    option(
        "--half-width",
        "Dial",
        "X",
        "Or a goal: every arm known to within X after --units, or their average.",
        parser=FRACTION,
    ),
]
Units = Annotated[
    int | None,
    option("--units", "Dial", "N", "After how many units in all --half-width is to be reached.", parser=COUNT),
]


def check_one_dial(options: dict[str, Any]) -> None:
    """Raise, with the names of the options, if several of them set the dial."""
    ways = [key for key in ("reward_weight", "information_kept", "half_width") if options[key] is not None]
    if len(ways) > 1:
        named = [f"--{key.replace('_', '-')}" for key in ways]
        raise InvalidInput(
            f"give one of --reward-weight, --information-kept and --half-width; got {' and '.join(named)}"
        )


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

    lowest = numbers("floor", text, percent=True)
    return lowest if len(lowest) > 1 else lowest[0]


def range_ends(text: str) -> tuple[float, float]:
    """Parse both ends of a range, of which one may be -inf or inf."""
    from equipoise.arm_tables import entries, numbers

    ends = [float(end) if end in ("-inf", "inf") else numbers("reward_range", end)[0] for end in entries(text)]
    if len(ends) != 2:
        raise InvalidInput.of("reward_range", "must be a lowest and a highest reward, as 0,1", text)
    return ends[0], ends[1]
