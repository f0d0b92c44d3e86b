"""The report: one page that opens without a network, with everything that was found and charts to point at."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from equipoise import __version__
from equipoise.paper import files, texts
from equipoise.paper.expected import compare

if TYPE_CHECKING:
    from pathlib import Path

    from equipoise.paper.findings import Finding, Table
    from equipoise.paper.item import Item
    from equipoise.paper.reproduction import Reproduction

PAGE = "report.html"

MARKS = {"matches": "✓", "holds": "✓", "differs, as known": "≈", "missed": "✗", "fails": "✗"}
"""Signs beside the words of a verdict."""


def write_report(result: Reproduction, folder: Path) -> Path:
    """Write the page, and the figures and tables beside it; return the path of the page."""
    files.write_files(result.findings, folder)
    path = folder / PAGE
    files.write(path, report_page(result).encode())
    return path


def report_page(result: Reproduction, *, date: datetime | None = None) -> str:
    """Return the report as HTML; nothing in it comes from elsewhere."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    # Everything is escaped by the template, but the scripts and styles that come with this package and with vl_convert.
    environment = Environment(
        loader=PackageLoader("equipoise.paper", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["with_code"] = _with_code
    environment.globals["source"] = lambda name: _source(environment, name)
    when = date or datetime.now(UTC)
    return environment.get_template("report.html").render(
        result=result,
        counts=texts.counts(result),
        n_steps=sum(finding.n_steps for finding in result.findings),
        seconds=texts.duration(sum(finding.seconds for finding in result.findings)),
        version=__version__,
        date=when.strftime("%Y-%m-%d %H:%M UTC"),
        how_judged=texts.HOW_JUDGED,
        marks=MARKS,
        sections=[_section(item, finding) for item, finding in zip(result.items, result.findings, strict=True)],
        charts={figure.key: files.specification(figure) for finding in result.findings for figure in finding.figures},
        scripts=_scripts(),
    )


@cache
def _scripts() -> str:
    """Return Vega, Vega-Lite and what embeds them, as one script; it takes two seconds to put together."""
    import vl_convert

    script: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return script


def _section(item: Item, finding: Finding) -> dict[str, Any]:
    """Return what the template shows of an item."""
    comparisons = compare(finding.measured)
    return {
        "item": item,
        "finding": finding,
        "heading": texts.claim_heading(item),
        "numbers": [(one.expected, texts.number_texts(one)) for one in comparisons],
        "claims": [(claim, texts.claim_verdict(claim)) for claim in finding.claims],
        "tables": [_table(finding, table) for table in finding.tables],
        "missed": sum(not one.holds for one in comparisons) + sum(not claim.holds for claim in finding.claims),
        "duration": texts.duration(finding.seconds),
        "played": texts.played(item, finding),
    }


def _table(finding: Finding, table: Table) -> dict[str, Any]:
    return {
        "table": table,
        "rows": texts.table_texts(table),
        "numeric": texts.is_numeric(table),
        "file": f"{files.TABLES}/{files.table_file(finding, table)}",
    }


def _with_code(text: str) -> str:
    """Return text as HTML, with what stands between backticks as code."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704  (escaped before)


def _source(environment: Any, name: str) -> str:
    """Return a file of this package, as it is."""
    from markupsafe import Markup

    return Markup(environment.loader.get_source(environment, name)[0])  # noqa: S704  (our own file)
