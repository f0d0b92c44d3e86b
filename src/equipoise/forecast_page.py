"""Write a forecast as one HTML page that opens without a network: recommendation, price list, charts, assumptions."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise._version import __version__
from equipoise.charts.pages import dark_colours, page_path, templates, vega_script
from equipoise.files import write_file
from equipoise.forecast_contents import contents_of, pictures

if TYPE_CHECKING:
    from equipoise.planner.forecast import Forecast


def write_forecast_page(forecast: Forecast, path: str | os.PathLike[str]) -> Path:
    """Write the page of a forecast; replace an existing file, and create its folder if needed.

    Parameters
    ----------
    forecast : Forecast
    path : path
        Ends in ``.html``.

    Returns
    -------
    Path
        Of the page.
    """
    target = page_path(path, "the page of a forecast")
    write_file(target, forecast_page(forecast, vega_script()).encode())
    return target


def forecast_page(forecast: Forecast, script: str) -> str:
    """Return the page as HTML, with the script that draws its charts; it loads nothing from elsewhere."""
    shown = pictures(forecast)
    specifications = {one.key: one.wide for one in shown} | {f"{one.key}-narrow": one.narrow for one in shown}
    text: str = (
        templates("equipoise.charts")
        .get_template("forecast.html")
        .render(
            contents=contents_of(forecast),
            pictures=shown,
            version=__version__,
            date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            charts=specifications,
            script=script,
            dark=dark_colours(),
        )
    )
    return text
