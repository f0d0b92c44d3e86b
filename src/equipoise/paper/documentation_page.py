"""The documentation page of the last full run, in Markdown: `python -m equipoise.paper.documentation_page docs`.

The run is stored beside the page. Tests rebuild the page from it, and check that the code still finds the same.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

from equipoise.files import write_file
from equipoise.paper.findings import Comparison, Finding, Item, Table, duration
from equipoise.paper.html_report import HOW_JUDGED, drawn
from equipoise.paper.reproduction import Reproduction, chosen_items, reproduce
from equipoise.simulation import available_processors

PAGE, RUN, PICTURES = "reproduction.md", "reproduction.json", "images/reproduction"
"""Paths within the folder of the documentation."""

MOST_ROWS = 24
"""Longer tables appear only in the report."""


def without_charts(result: Reproduction) -> list[Finding]:
    """Return the findings as they are stored: charts are pictures in the documentation."""
    return [
        replace(finding, figures=[replace(figure, chart={}) for figure in finding.figures])
        for finding in result.findings
    ]


def last_run(folder: Path) -> tuple[Reproduction, int]:
    """Read the run that the documentation shows, and the number of processors it had."""
    data = json.loads((folder / RUN).read_text(encoding="utf-8"))
    findings = tuple(Finding.from_json(json.dumps(finding)) for finding in data["findings"])
    items = chosen_items([finding.item for finding in findings])
    return Reproduction(items=items, findings=findings, quick=False), data["processors"]


def write_documentation(folder: Path, result: Reproduction) -> None:
    """Write the page, its pictures and the run itself into a folder; remove pictures of figures that are gone."""
    figures = [figure for finding in result.findings for figure in finding.figures]
    for path in (folder / PICTURES).glob("*.svg"):
        if path.stem not in {figure.key for figure in figures}:
            path.unlink()
    for figure in figures:
        write_file(folder / PICTURES / f"{figure.key}.svg", drawn(figure).encode())
    processors = available_processors()
    lines = ",\n".join(finding.to_json() for finding in without_charts(result))
    write_file(folder / RUN, f'{{"processors": {processors}, "findings": [\n{lines}\n]}}\n'.encode())
    write_file(folder / PAGE, page_text(result, processors).encode())


def page_text(result: Reproduction, processors: int) -> str:
    """Return the page of a run with this many processors, in Markdown."""
    sections = list(zip(result.items, result.findings, strict=True))
    contents = [
        [
            f"[{_escaped(item.title)}](#{item.name})",
            _escaped(item.place),
            str(len(finding.measured) or ""),
            str(len(finding.claims) or ""),
        ]
        for item, finding in sections
    ]
    parts = [
        "<!-- Written by `./run python -m equipoise.paper.documentation_page docs`, not by hand. -->",
        "# The paper, reproduced",
        "`equipoise reproduce` computes every table and figure of the paper again, puts our numbers beside the printed "
        "ones, tests what the text says about its curves, and writes a report with interactive charts; see [Command "
        "line](command-line.md#the-paper-reproduced-equipoise-reproduce). This page shows its last full run: "
        f"{result.n_steps:,} simulated steps in {duration(result.seconds)} on {processors} processors.",
        f"**{_sentence(result.summary)}.**",
        f"{HOW_JUDGED} [Deviations from the paper](deviations-from-the-paper.md) lists where the paper contradicts "
        f"itself or leaves something open. The numbers of this page, with all their digits, are in [{RUN}]({RUN}).",
        _markdown_table(["item", "place", "numbers", "claims"], contents, [False, False, True, True]),
    ]
    for item, finding in sections:
        parts += _section(item, finding)
    return "\n\n".join(parts) + "\n"


def _section(item: Item, finding: Finding) -> list[str]:
    parts = [
        f'<a id="{item.name}"></a>',
        f"## {_escaped(item.title)}",
        f"*{_escaped(item.place)}; {item.simulated(finding)}; `equipoise reproduce {item.name}`*",
        *_paragraphs(item.claim_heading, [item.claim]),
        *_paragraphs("What we find", finding.found),
    ]
    for figure in finding.figures:
        parts.append(f"![{_escaped(figure.caption)}]({PICTURES}/{figure.key}.svg)")
        parts.append(f"*{_escaped(figure.caption)}*")
    for table in finding.tables:
        parts += _table(table)
    parts += _paragraphs("Where we differ, and why", finding.differs)
    if finding.measured:
        parts += ["**Numbers.** Ours with its standard error, if it has one.", _numbers(finding.comparisons)]
    if finding.claims:
        claims = [
            f"- **{_sentence(one.verdict)}.** {_escaped(one.text)} *{_escaped(one.evidence)}*" for one in finding.claims
        ]
        parts += ["**Claims**, tested on our data.", "\n".join(claims)]
    return parts


def _paragraphs(heading: str, paragraphs: list[str]) -> list[str]:
    texts = [_escaped(text) for text in paragraphs]
    return [f"**{heading}.** {texts[0]}", *texts[1:]] if texts else []


def _numbers(comparisons: list[Comparison]) -> str:
    head = ["number", "paper", "expected", "ours", "tolerance", "verdict"]
    rows = []
    for one in comparisons:
        paper, expected, ours, error, tolerance = one.texts.values()
        verdict = f"{one.verdict}: {one.expected.differs}" if one.expected.differs else one.verdict
        with_error = f"{ours} ± {error}" if error else ours
        row = [one.expected.what, paper or "-", expected, with_error, tolerance, verdict]
        rows.append([_escaped(text) for text in row])
    return _markdown_table(head, rows, [False, True, True, True, True, False])


def _table(table: Table) -> list[str]:
    title = f"**{_escaped(table.title)}**"
    note = [_escaped(table.note)] if table.note else []
    if len(table.rows) > MOST_ROWS:
        return [f"{title} ({len(table.rows)} rows, in the report)", *note]
    rows = [[_escaped(text) for text in row] for row in table.texts]
    return [title, _markdown_table([_escaped(name) for name in table.columns], rows, table.is_numeric), *note]


def _markdown_table(head: list[str], rows: list[list[str]], numeric: list[bool]) -> str:
    rule = ["---:" if right else "---" for right in numeric]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _escaped(text: str) -> str:
    r"""Escape text for Markdown, except code between backticks.

    Examples
    --------
    >>> print(_escaped("a_b < c|d, `x_y`"))
    a\_b &lt; c\|d, `x_y`
    """
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(part if part.startswith("`") and len(part) > 2 else _escaped_words(part) for part in parts)


def _escaped_words(text: str) -> str:
    without_tags = text.replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*_\[\]|])", r"\\\1", without_tags)


def main(arguments: list[str]) -> None:
    """Run everything and write the page."""
    if len(arguments) != 1:
        sys.exit("usage: python -m equipoise.paper.documentation_page FOLDER")
    write_documentation(Path(arguments[0]), reproduce())


if __name__ == "__main__":
    main(sys.argv[1:])
