"""What all charts share: Altair itself, the colours and the look."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

from equipoise.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from collections.abc import Sequence

    import altair as alt

    AnyChart: TypeAlias = alt.LayerChart | alt.HConcatChart | alt.FacetChart

# Colours of Okabe and Ito, which people with the common kinds of colour blindness tell apart.
BLUE, VERMILION, GREY = "#0072B2", "#D55E00", "#6B6B6B"
BANDS = ("#56B4E9", "#E69F00", "#009E73", "#F0E442", "#CC79A7", "#999999")


def altair() -> Any:
    """Return the module Altair, loaded when the first chart is drawn: it takes half a second."""
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


def titled(chart: Any, title: str, subtitle: str) -> AnyChart:
    """Return a chart with a title, which should say what there is to see."""
    with_title: AnyChart = chart.properties(title=altair().Title(title, subtitle=subtitle))
    return with_title


def styled(chart: Any) -> AnyChart:
    """Return a finished chart with the look that all share; such a chart cannot be part of another."""
    with_look: AnyChart = (
        chart.configure(background="white", padding=16)
        .configure_view(stroke=None)
        .configure_title(anchor="start", fontSize=16, subtitleFontSize=12, subtitleColor=GREY, offset=16)
        .configure_axis(labelFontSize=12, titleFontSize=12, titleFontWeight="normal", gridColor="#E6E6E6")
        .configure_axisX(labelFlush=False)
        .configure_text(fontSize=12)
        .configure_legend(labelFontSize=12)
        .configure_header(labelFontSize=13, labelFontWeight="bold", labelAnchor="start")
    )
    return with_look


def arm_names(arms: Sequence[str] | None, n_arms: int) -> tuple[str, ...]:
    """Return one name per arm: those given, or "1", "2", ..."""
    names = tuple(str(i + 1) for i in range(n_arms)) if arms is None else tuple(arms)
    if len(names) != n_arms or len(set(names)) != n_arms:
        raise InvalidInput(f"arms must be {n_arms} different names, one per arm; got {list(names)}")
    return names


def labels(arms: tuple[str, ...]) -> tuple[str, ...]:
    """Return what a picture calls the arms: bare numbers would say nothing."""
    return tuple(f"arm {name}" for name in arms) if all(name.isdigit() for name in arms) else arms
