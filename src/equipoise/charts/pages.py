"""Provide what HTML pages with charts share: templates, styles, and the script that draws them without a network."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from equipoise.charts import style
from equipoise.charts.colours import IN_CHARTS

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
