"""Draw charts as SVG that stands in a page: no script, no network, and names of their own for what they refer to.

Drawing takes some 140 MB and a second or two before the first chart. A service has that done by a child process.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from equipoise.charts import style
from equipoise.errors import EquipoiseError

if TYPE_CHECKING:
    from equipoise.charts.vega_lite import Chart

_SECONDS = 120
_TAG = re.compile(r"<[A-Za-z][^>]*>")
_ROLE = re.compile(r' (?:role|aria-[a-z]+)="[^"]*"')
_REFERENCE = re.compile(r'(id="|url\(#)(?=clip)')


def can_draw() -> bool:
    """Return whether what draws charts is installed."""
    try:
        style.require("vl_convert")
    except EquipoiseError:
        return False
    return True


def drawn(charts: Mapping[str, Chart]) -> dict[str, str]:
    """Return charts as SVG by their names, which must be letters."""
    import vl_convert

    return {name: _inline(name, str(vl_convert.vegalite_to_svg(chart))) for name, chart in charts.items()}


def drawn_apart(charts: Mapping[str, Chart]) -> dict[str, str]:
    """Return charts as SVG by their names, drawn by a child process."""
    command = [sys.executable, "-m", "equipoise.charts.drawings"]
    text = json.dumps(charts)
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=_SECONDS, check=False)  # noqa: S603
    if done.returncode:
        raise EquipoiseError(f"the charts could not be drawn: {done.stderr[-300:].strip()}")
    found: dict[str, str] = json.loads(done.stdout)
    return found


def _inline(name: str, svg: str) -> str:
    """Return an SVG for pages with several: its names are its own, and the page says what it is, not its parts."""
    return _TAG.sub(lambda tag: _REFERENCE.sub(rf"\g<1>{name}-", _ROLE.sub("", tag[0])), svg)


if __name__ == "__main__":
    print(json.dumps(drawn(json.load(sys.stdin))))
