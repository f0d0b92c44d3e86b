"""The report: one page that opens without a network, with everything that was found and charts to point at."""

from __future__ import annotations

import csv
import io
import json
import re
import signal
import threading
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from multiprocessing import active_children, get_context
from typing import TYPE_CHECKING, Any

from equipoise._version import __version__
from equipoise.errors import EquipoiseError
from equipoise.paper import words as texts
from equipoise.paper.findings import compare

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Self

    from equipoise.paper.findings import Figure, Finding, Table
    from equipoise.paper.item import Item
    from equipoise.paper.reproduction import Reproduction

PAGE = "report.html"

MARKS = {"matches": "✓", "holds": "✓", "differs, as known": "≈", "missed": "✗", "fails": "✗"}
"""Signs beside the words of a verdict."""


class ReportWriter:
    """Writes a report, with the figures and tables beside it; a context manager.

    A process of its own draws the figures while later items are computed: that takes seconds, during which a thread
    would hold up the simulations.

    Parameters
    ----------
    folder : path
    """

    _scripts: Future[str] | None = None  # for all reports of this process

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
        self._drawn: list[Future[None]] = []

    def __enter__(self) -> Self:
        before = active_children()
        with _deaf_to_ctrl_c():  # what is started now stays so, and Ctrl-C is told by us alone
            self._pool.submit(int)
        self._processes = [child for child in active_children() if child not in before]
        if ReportWriter._scripts is None or not _is_at_hand(ReportWriter._scripts):
            ReportWriter._scripts = self._pool.submit(scripts)
        return self

    def __exit__(self, kind: object, *details: object) -> None:
        if kind is not None:  # what is interrupted shall not wait for a drawing
            for process in self._processes:
                process.terminate()
        self._pool.shutdown(cancel_futures=True)

    def add(self, finding: Finding) -> None:
        """Write the tables of a finding, and begin with its figures."""
        write_tables(finding, self.folder)
        self._drawn += [self._pool.submit(write_figure, figure, self.folder) for figure in finding.figures]

    def write(self, result: Reproduction) -> Path:
        """Write the page when all figures are drawn, and return its path."""
        for figure in self._drawn:
            figure.result()
        path = self.folder / PAGE
        assert ReportWriter._scripts is not None  # noqa: S101  (for the type checker)
        write(path, report_page(result, ReportWriter._scripts.result()).encode())
        return path


def write_report(result: Reproduction, folder: Path) -> Path:
    """Write the report of a reproduction and all that lies beside it; return the path of the page."""
    with ReportWriter(folder) as writer:
        for finding in result.findings:
            writer.add(finding)
        return writer.write(result)


def scripts() -> str:
    """Return Vega, Vega-Lite and what embeds them, as one script; it takes two seconds to put together."""
    import vl_convert

    script: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return script


def _is_at_hand(text: Future[str]) -> bool:
    return text.done() and not text.cancelled() and text.exception() is None


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # only there can it be set
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def report_page(result: Reproduction, script: str) -> str:
    """Return the report as HTML, with the script that draws its charts; nothing in it comes from elsewhere."""
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
    return environment.get_template("report.html").render(
        result=result,
        counts=texts.counts(result),
        n_steps=sum(finding.n_steps for finding in result.findings),
        seconds=texts.duration(sum(finding.seconds for finding in result.findings)),
        version=__version__,
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        how_judged=texts.HOW_JUDGED,
        marks=MARKS,
        sections=[_section(item, finding) for item, finding in zip(result.items, result.findings, strict=True)],
        charts={figure.key: specification(figure) for finding in result.findings for figure in finding.figures},
        script=script,
    )


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
        "file": f"{TABLES}/{table_file(finding, table)}",
    }


def _with_code(text: str) -> str:
    """Return text as HTML, with what stands between backticks as code."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704  (escaped before)


def _source(environment: Any, name: str) -> str:
    """Return a file of this package, as it is."""
    from markupsafe import Markup

    return Markup(environment.loader.get_source(environment, name)[0])  # noqa: S704  (our own file)


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
