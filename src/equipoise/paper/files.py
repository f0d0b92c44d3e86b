"""What lies beside the report: every figure as PNG and SVG, every table as CSV."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

from equipoise.errors import EquipoiseError

if TYPE_CHECKING:
    from pathlib import Path

    from equipoise.paper.findings import Figure, Finding, Table

FIGURES, TABLES = "figures", "tables"
"""Folders, in that of the report."""


def write_tables(finding: Finding, folder: Path) -> None:
    """Write the tables of a finding into a folder of their own."""
    for table in finding.tables:
        write(folder / TABLES / table_file(finding, table), as_csv(table).encode())


def write_figure(figure: Figure, folder: Path) -> None:
    """Write a figure as PNG and SVG into a folder of their own."""
    picture = drawn(figure)
    write(folder / FIGURES / f"{figure.key}.svg", picture.encode())
    write(folder / FIGURES / f"{figure.key}.png", rasterised(picture))


def table_file(finding: Finding, table: Table) -> str:
    """Return the name of a table's file; the keys of tables are unique within their items only."""
    return f"{finding.item}-{table.key}.csv"


def drawn(figure: Figure) -> str:
    """Return a figure as SVG."""
    import vl_convert

    picture: str = vl_convert.vegalite_to_svg(specification(figure))
    return picture


def specification(figure: Figure) -> dict[str, Any]:
    """Return the chart of a figure as browsers read it: JSON has null where Python has nan or inf."""
    chart: dict[str, Any] = json.loads(json.dumps(figure.chart), parse_constant=lambda _: None)
    return chart


def rasterised(picture: str) -> bytes:
    """Return an SVG picture as PNG, fine enough for print; quicker than drawing it anew."""
    import vl_convert

    pixels: bytes = vl_convert.svg_to_png(picture, scale=2)
    return pixels


def as_csv(table: Table) -> str:
    """Return a table at full precision."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(table.rows)
    return buffer.getvalue()


def write(path: Path, content: bytes) -> None:
    """Write a file, and the folder it is in if there is none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise EquipoiseError(f"cannot write {path}: {error.strerror or error}") from error
