"""The report: one HTML page that needs no network, with interactive charts, and PNG, SVG and CSV files beside it."""

from __future__ import annotations

import csv
import io
import re
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from equipoise._version import __version__
from equipoise.charts.pages import plain_specification, templates, vega_script
from equipoise.files import write_file
from equipoise.paper.findings import duration

if TYPE_CHECKING:
    from equipoise.paper.findings import Figure, Finding, Table
    from equipoise.paper.reproduction import Reproduction

PAGE, FIGURES, TABLES = "report.html", "figures", "tables"
"""The page, and the folders of figures and CSV files beside it."""

HOW_JUDGED = (
    "A number matches if it differs from the expected one by no more than the tolerance plus four standard errors of "
    "our mean, which are zero where nothing is random. Where the printed number cannot be matched, we expect another "
    "one, and the reason stands beside it."
)

MARKS = {"matches": "✓", "holds": "✓", "differs, as known": "≈", "missed": "✗", "fails": "✗"}
"""Signs beside the words of a verdict."""


class ReportWriter:
    """Write a report while it is computed; a context manager.

    Another process draws the figures while later items are computed. Drawing takes seconds, and a thread would slow
    down the simulations.

    Parameters
    ----------
    folder : path
    """

    _script: Future[str] | None = None  # shared by all reports of this process

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
        self._drawn: list[Future[None]] = []

    def __enter__(self) -> Self:
        before = active_children()
        with _ctrl_c_ignored():  # inherited by the child: only this process handles Ctrl-C
            self._pool.submit(int)
        self._processes = [child for child in active_children() if child not in before]
        script = ReportWriter._script
        if script is None or not script.done() or script.cancelled() or script.exception() is not None:
            ReportWriter._script = self._pool.submit(vega_script)
        return self

    def __exit__(self, kind: object, *details: object) -> None:
        if kind is not None:  # after an interrupt, do not wait for a drawing
            for process in self._processes:
                process.terminate()
        self._pool.shutdown(cancel_futures=True)

    def add(self, finding: Finding) -> None:
        """Write the tables of a finding, and start drawing its figures."""
        for table in finding.tables:
            # Keys of tables are unique within their item only.
            write_file(self.folder / TABLES / f"{finding.item}-{table.key}.csv", as_csv(table).encode())
        self._drawn += [self._pool.submit(write_figure, figure, self.folder / FIGURES) for figure in finding.figures]

    def write(self, result: Reproduction) -> Path:
        """Write the page when all figures are drawn, and return its path."""
        for figure in self._drawn:
            figure.result()
        path = self.folder / PAGE
        assert ReportWriter._script is not None  # noqa: S101  (for the type checker)
        write_file(path, report_page(result, ReportWriter._script.result()).encode())
        return path


@contextmanager
def _ctrl_c_ignored() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # signals can only be set there
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def report_page(result: Reproduction, script: str) -> str:
    """Return the report as HTML, with the script that draws its charts; it loads nothing from elsewhere."""
    environment = templates("equipoise.paper")
    environment.filters |= {"with_code": _with_code, "duration": duration}
    text: str = environment.get_template("report.html").render(
        result=result,
        version=__version__,
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        how_judged=HOW_JUDGED,
        marks=MARKS,
        sections=list(zip(result.items, result.findings, strict=True)),
        charts={figure.key: specification(figure) for finding in result.findings for figure in finding.figures},
        script=script,
    )
    return text


def _with_code(text: str) -> str:
    """Return text as HTML, with code where there are backticks."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704  (escaped before)


def write_figure(figure: Figure, folder: Path) -> None:
    """Write a figure as SVG and as PNG, fine enough for print."""
    import vl_convert

    picture = drawn(figure)
    write_file(folder / f"{figure.key}.svg", picture.encode())
    write_file(folder / f"{figure.key}.png", vl_convert.svg_to_png(picture, scale=2))


def drawn(figure: Figure) -> str:
    """Return a figure as SVG."""
    import vl_convert

    picture: str = vl_convert.vegalite_to_svg(specification(figure))
    return picture


def specification(figure: Figure) -> dict[str, Any]:
    """Return the chart of a figure as browsers read it, with null for nan and inf."""
    return plain_specification(figure.chart)


def as_csv(table: Table) -> str:
    """Return a table at full precision."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(table.rows)
    return buffer.getvalue()
