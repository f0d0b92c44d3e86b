"""Provide what all charts share: Altair, colours, axes, legends, bands, names, and saving to files."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from equipoise import metrics
from equipoise._types import FloatArray, IntArray
from equipoise.charts.colours import IN_CHARTS, SERIES
from equipoise.charts.themes import Theme, themed
from equipoise.charts.vega_lite import DASHES, Chart
from equipoise.errors import EquipoiseError, InvalidInput, MissingExtra
from equipoise.files import write_file

if TYPE_CHECKING:
    import altair as alt

    from equipoise.policies import Policy

AnyChart: TypeAlias = "alt.LayerChart | alt.HConcatChart | alt.FacetChart"

BLUE, VERMILION, GREY = (IN_CHARTS[name][0] for name in ("blue", "vermilion", "grey"))
BANDS = (*(IN_CHARTS[name][0] for name in ("sky", "orange", "green", "yellow", "purple")), "#999999")

# Styles of series, with colours dark enough for lines. With 7 colours and 6 dashes or shapes, the first 42 series
# differ in one or the other.
LINES = SERIES
SHAPES = ("square", "triangle-up", "diamond", "cross", "triangle-down", "circle")

FEW_STEPS = 8
"""Lines over fewer steps get points: a single step would be invisible."""


def altair() -> Any:
    """Return the module Altair, imported when the first chart is drawn: it takes half a second."""
    require("altair")
    import altair

    return altair


def require(package: str) -> None:
    """Raise if a package that charts need is not installed."""
    if find_spec(package) is None:
        raise MissingExtra(
            f"charts need the package {package.replace('_', '-')}, which is not installed",
            hint="pip install 'equipoise[charts]'",
        )


def chart_of(rows: Sequence[dict[str, Any]]) -> Any:
    """Return a chart of rows of data, without marks."""
    alt = altair()
    return alt.Chart(alt.Data(values=rows))


def finished(chart: Any, title: str, subtitle: str | list[str]) -> AnyChart:
    """Return a chart with a title in the common style; it can no longer be part of another chart."""
    return styled(titled(chart, title, subtitle))


def titled(chart: Any, title: str, subtitle: str | list[str]) -> AnyChart:
    """Return a chart with a title, which should state what the chart shows."""
    with_title: AnyChart = chart.properties(title=altair().Title(title, subtitle=subtitle))
    return with_title


def styled(chart: Any) -> AnyChart:
    """Return a finished chart in the common style; it can no longer be part of another chart."""
    # One call: every method of Altair copies the chart.
    with_look: AnyChart = chart.configure(
        background="white",
        padding=16,
        view={"stroke": None},
        title={"anchor": "start", "fontSize": 16, "subtitleFontSize": 12, "subtitleColor": GREY, "offset": 16},
        axis={"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "gridColor": "#E6E6E6"},
        axisX={"labelFlush": False},
        text={"fontSize": 12},
        legend={"labelFontSize": 12},
        header={"labelFontSize": 13, "labelFontWeight": "bold", "labelAnchor": "start"},
    )
    return with_look


def in_turn(names: Sequence[str], styles: Sequence[Any]) -> Any:
    """Return a scale with a style for each series; styles repeat when they run out."""
    return altair().Scale(domain=list(names), range=[styles[k % len(styles)] for k in range(len(names))])


def told_apart(field: str, names: Sequence[str], width: float, *, points: bool = False) -> dict[str, Any]:
    """Return encodings that tell series apart: colours and dashes of lines, or colours and shapes of points.

    The legend is above a picture of this width; a single line needs none.
    """
    alt = altair()
    key = legend(names, width, points=points) if points or len(names) > 1 else None
    colour = alt.Color(f"{field}:N", scale=in_turn(names, LINES), legend=key)
    if points:
        return {"color": colour, "shape": alt.Shape(f"{field}:N", scale=in_turn(names, SHAPES), legend=key)}
    return {"color": colour, "strokeDash": alt.StrokeDash(f"{field}:N", scale=in_turn(names, DASHES), legend=key)}


def numbers(*fields: str, digits: str = ".4~g") -> list[Any]:
    """Return tooltips of numbers."""
    return [altair().Tooltip(f"{field}:Q", format=digits) for field in fields]


def legend(names: Sequence[str], width: float, *, points: bool = False) -> Any:
    """Return a legend above the picture, of points, or of lines long enough to show dashes."""

    def taken(columns: int) -> float:
        """Return the approximate width of the legend: some pixels per letter, the symbols, and the gaps."""
        return sum(6.3 * max(map(len, names[k::columns])) + 54 for k in range(columns))

    columns = max(count for count in range(1, len(names) + 1) if count == 1 or taken(count) <= width)
    return altair().Legend(
        title=None,
        orient="top",
        columns=columns,
        columnPadding=24,
        labelLimit=1000,
        symbolStrokeWidth=2,
        **({"symbolSize": 90} if points else {"symbolSize": 500, "symbolType": "stroke"}),
    )


def pulls_axis(step: IntArray) -> Any:
    """Return a logarithmic x axis over the steps."""
    alt = altair()
    first, last = float(step.min()), float(step.max())
    # One step, or a few close together, would leave the axis without extent.
    domain = [first, max(last, 10.0)] if max(last, 10.0) > 1.5 * first else [first / 2, 2 * last]
    return alt.X(
        "step:Q",
        title="pulls so far",
        scale=alt.Scale(type="log", domain=domain, nice=False),
        axis=alt.Axis(values=log_ticks(*domain), format="~s"),
    )


def log_ticks(low: float, high: float) -> list[float]:
    """Return the powers of ten from low to high; if there are few, also their multiples by two and five.

    Examples
    --------
    >>> log_ticks(1, 1000), log_ticks(0.03, 2)
    ([1.0, 10.0, 100.0, 1000.0], [0.05, 0.1, 0.2, 0.5, 1.0, 2.0])
    """
    powers = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
    ticks = {factors: [float(f"{m}e{k}") for k in powers for m in factors] for factors in ((1,), (1, 2, 5))}
    few, many = ([tick for tick in some if low <= tick <= high] for some in ticks.values())
    return few if len(few) > 2 else many


def even_columns(count: int, most: int) -> int:
    """Return the number of columns, at most `most`, that leaves the fewest gaps in a grid of panels.

    Examples
    --------
    >>> [even_columns(count, most=3) for count in (1, 3, 4, 5)]
    [1, 3, 2, 3]
    """
    n_rows = math.ceil(count / most)
    return math.ceil(count / n_rows)


def panels(chart: Any, field: str, names: Sequence[str], columns: int) -> Any:
    """Return a chart once per name, side by side; a comma in a name starts a new line of its heading."""
    alt = altair()
    heading = alt.Header(labelExpr="split(datum.label, ', ')", labelLimit=400)
    facet = alt.Facet(f"{field}:N", title=None, sort=list(names), header=heading)
    return chart.facet(facet=facet, columns=columns, spacing=28)


QUANTILES = (0.05, 0.95)


@dataclass(frozen=True)
class Band:
    """A quantity over replications: its mean, and a lower and an upper quantile."""

    mean: FloatArray
    low: FloatArray
    high: FloatArray

    @property
    def has_width(self) -> bool:
        """Whether there is a band to draw; with one replication there is not."""
        return bool((self.high > self.low).any())


def band_of(values: FloatArray, quantiles: Sequence[float]) -> Band:
    """Return mean and quantiles over the second axis; not finite where a replication's value is not."""
    if len(quantiles) != 2 or not quantiles[0] <= quantiles[1]:
        raise InvalidInput(f"quantiles must be a lower and an upper one, such as {QUANTILES}; got {quantiles!r}")
    summary = metrics.summarise(values, quantiles=quantiles)
    return Band(summary.mean, summary.quantiles[0], summary.quantiles[1])


def band_words(count: int, quantiles: tuple[float, float], *, mean: str, band: str, is_drawn: bool) -> str:
    """Return a subtitle that describes the line and the band.

    Examples
    --------
    >>> band_words(200, (0.05, 0.95), mean="line", band="band", is_drawn=True)
    'line: mean of 200 replications; band: from the 5% to the 95% quantile'
    """
    if count == 1:
        return f"{mean}: one replication"
    low, high = (f"{100 * quantile:g}%" for quantile in quantiles)
    width = f"; {band}: from the {low} to the {high} quantile" if is_drawn else ""
    return f"{mean}: mean of {count:,} replications{width}"


def band_areas(chart: Any, field: str, colours: dict[str, str], y: Any, opacity: float = 0.18) -> list[Any]:
    """Return one layer per value of a field, in its colour: the area between low and high.

    A single layer with a colour scale would be shorter, but its legend would merge with that of the lines and lose the
    dashes.
    """
    only = altair().FieldEqualPredicate
    return [
        chart.transform_filter(only(field=field, equal=name))
        .mark_area(opacity=opacity, color=colour)
        .encode(y=y, y2="high:Q")
        for name, colour in colours.items()
    ]


def finite(value: float, *, above: float = -np.inf) -> float | None:
    """Return a number for a chart; None, which leaves a gap, if it is not finite or not above a bound."""
    number = float(value)
    return number if np.isfinite(number) and number > above else None


def arm_names(arms: Sequence[str] | None, n_arms: int) -> tuple[str, ...]:
    """Return one name per arm: the given ones, or "1", "2", ..."""
    names = tuple(str(i + 1) for i in range(n_arms)) if arms is None else tuple(arms)
    if len(names) != n_arms or len(set(names)) != n_arms:
        raise InvalidInput(f"arms must be {n_arms} different names, one per arm; got {list(names)}")
    return names


def labels(arms: tuple[str, ...]) -> tuple[str, ...]:
    """Return the arms' names for a picture, where bare numbers would say nothing."""
    return tuple(f"arm {name}" for name in arms) if all(name.isdigit() for name in arms) else arms


def policy_names(policies: Sequence[Policy], names: Sequence[str] | None) -> tuple[str, ...]:
    """Return a different name for each policy: the given ones, or the shortest that tell them apart.

    Examples
    --------
    >>> import equipoise as eq
    >>> policies = [eq.Uniform(), eq.UCB(scale=4), eq.UCB()]
    >>> policy_names(policies, None)
    ('Uniform', 'UCB, scale 4', 'UCB, scale 1')
    """
    given = short_names(policies) if names is None else one_each(policies, names)
    if len(set(given)) < len(given):
        if names is not None:
            raise InvalidInput(f"names must differ from each other; got {list(names)}")
        given = tuple(f"{name}, no. {k + 1}" if given.count(name) > 1 else name for k, name in enumerate(given))
    return given


def one_each(policies: Sequence[Policy], names: Sequence[str]) -> tuple[str, ...]:
    """Return the names; raise unless there is one per policy."""
    if isinstance(names, str) or len(names) != len(policies):
        raise InvalidInput(f"names must be {len(policies)}, one per policy; got {names!r}")
    return tuple(names)


def short_names(policies: Sequence[Policy], *, without: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the names of policies, each with the parameters in which policies of its kind differ.

    Policies that differ only in the parameters `without`, or not at all, get the same name.
    """

    def short(policy: Policy) -> str:
        alike = [other for other in policies if type(other) is type(policy)]
        words = [type(policy).__name__]
        for key in policy.to_dict():
            if key == "name" or key in without:
                continue
            value = getattr(policy, key)
            if any(getattr(other, key) != value for other in alike):
                words.append(f"{key.replace('_', ' ')} {_words(value)}")
        return ", ".join(words)

    return tuple(map(short, policies))


def _words(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value).replace("_", " ")


def pulls_words(count: int) -> str:
    """Return a number of pulls in words.

    Examples
    --------
    >>> pulls_words(1), pulls_words(2_000)
    ('1 pull', '2,000 pulls')
    """
    return f"{count:,} pull" if count == 1 else f"{count:,} pulls"


ENDINGS = ("html", "png", "svg", "pdf")
"""Kinds of files that `save_chart` writes, by their suffix."""


def save_chart(chart: AnyChart | Chart, path: str | os.PathLike[str], *, theme: Theme = "light") -> None:
    """Write a chart in the format of the file's suffix; replace an existing file.

    Charts of live experiments, which are dicts, are drawn for a light page or for a dark one; others are light.
    """
    target = checked_chart_path(path)
    ending = _ending(target)
    if isinstance(chart, dict):
        write_file(target, _drawn(themed(chart, theme), ending))
        return
    # Without `inline` a page would load its scripts from the network.
    options = {"inline": True} if ending == "html" else {"scale_factor": 2 if ending == "png" else 1}
    try:
        chart.save(str(target), format=ending, **options)  # type: ignore[arg-type]
    except OSError as error:
        raise EquipoiseError(f"cannot write {target}: {error.strerror or error}") from error


def checked_chart_path(path: str | os.PathLike[str], *, make_folder: bool = False) -> Path:
    """Return the path if a chart can be written there; call it before work that would be lost otherwise.

    With `make_folder`, create the parent folder if it does not exist.

    Examples
    --------
    >>> checked_chart_path("chart.gif")
    Traceback (most recent call last):
    ...
    equipoise.errors.InvalidInput: a chart file must end in .html, .png, .svg or .pdf; got 'chart.gif'
    """
    target = Path(path)
    if _ending(target) not in ENDINGS:
        raise InvalidInput(f"a chart file must end in .html, .png, .svg or .pdf; got {os.fspath(path)!r}")
    for package in ("altair", "vl_convert"):
        require(package)
    folder = target.parent
    if make_folder:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EquipoiseError(f"cannot make the folder {folder}: {error.strerror or error}") from error
    if not folder.is_dir():
        raise EquipoiseError(f"cannot write {target}: there is no folder {folder}", hint=f"mkdir -p {folder}")
    if target.is_dir():
        raise EquipoiseError(f"cannot write {target}: it is a folder")
    if not os.access(target if target.exists() else folder, os.W_OK):
        raise EquipoiseError(f"cannot write {target}: permission denied")
    return target


def _drawn(chart: Chart, ending: str) -> bytes:
    """Return a chart as the bytes of a file."""
    import vl_convert

    if ending == "png":
        return bytes(vl_convert.vegalite_to_png(chart, scale=2))
    if ending == "pdf":
        return bytes(vl_convert.vegalite_to_pdf(chart))
    # Without `bundle` a page would load its scripts from the network.
    text = vl_convert.vegalite_to_html(chart, bundle=True) if ending == "html" else vl_convert.vegalite_to_svg(chart)
    return str(text).encode()


def _ending(path: Path) -> str:
    return path.suffix.lower().removeprefix(".")
