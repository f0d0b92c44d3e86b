"""Provide what HTML pages with charts share: templates, styles, and the script that draws them without a network."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from equipoise.charts import style
from equipoise.charts.colours import IN_CHARTS
from equipoise.errors import InvalidInput

DARK = {
    **{light: dark for light, dark in IN_CHARTS.values() if light != dark},
    "white": IN_CHARTS["white"][1],
    "black": IN_CHARTS["black"][1],
    "#000": IN_CHARTS["black"][1],
    "#404040": "#c3c9d0",
    "#888": IN_CHARTS["axis"][1],
    "#ddd": IN_CHARTS["tick"][1],
}
"""What the colours of charts become on a dark page; others are good on both."""


WIDE, NARROW = 640, 264
"""Pixels of pictures on screens and paper, and on phones."""


class Cell(NamedTuple):
    """A figure in a table: what stands first, and what is said below it."""

    text: str
    notes: tuple[str, ...] = ()


class Table(NamedTuple):
    """A table of texts; the first column names the rows."""

    caption: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]


class Picture(NamedTuple):
    """A chart on the page: its words, and its data as a table."""

    key: str
    title: str
    notes: list[str]
    wide: dict[str, Any]
    narrow: dict[str, Any]
    data: Table

    @property
    def description(self) -> str:
        """What the picture is, for those who do not see it."""
        return ". ".join([self.title, *self.notes, "The data are in the table below"])


def page_path(path: str | os.PathLike[str], what: str) -> Path:
    """Return the path of a page to write, if it ends in .html and what pages need is installed."""
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise InvalidInput(f"{what} must end in .html; got {os.fspath(path)!r}")
    for package in ("altair", "vl_convert", "jinja2"):
        style.require(package)
    return target


@cache
def vega_script() -> str:
    """Return Vega, Vega-Lite and their embedding as one script; bundling takes two seconds."""
    style.require("vl_convert")
    import vl_convert

    script: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return script


def templates(package: str) -> Any:
    """Return the templates in the folder `page` of a package, with ours; they escape everything that is not our own.

    In a template, `source(name)` is a file of those folders as it is: our styles and scripts.
    """
    style.require("jinja2")
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    folders = dict.fromkeys((package, "equipoise.charts"))
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name, "page") for name in folders]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    loader: Any = environment.loader
    environment.globals["source"] = lambda name: Markup(loader.get_source(environment, name)[0])  # noqa: S704  (ours)
    return environment


def plain_specification(chart: dict[str, Any]) -> dict[str, Any]:
    """Return a chart as browsers read it, with null for nan and inf."""
    found: dict[str, Any] = json.loads(json.dumps(chart), parse_constant=lambda _: None)
    return found


def dark_colours() -> str:
    """Return styles that draw charts in their dark colours, for a page in the dark."""
    rules = [
        f'.chart svg [{attribute}="{light}" i] {{ {attribute}: {dark}; }}'
        for light, dark in DARK.items()
        for attribute in ("fill", "stroke")
    ]
    return "\n".join(rules)
