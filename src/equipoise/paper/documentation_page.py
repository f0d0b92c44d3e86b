"""The documentation page of the last full run, in Markdown: `python -m equipoise.paper.documentation_page docs`.

The run is stored beside the page. Tests rebuild the page from it, and check that the code still finds the same.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from equipoise.paper.findings import Finding
from equipoise.paper.html_report import drawn, write_file
from equipoise.paper.report_sections import HOW_JUDGED, Section, TableText, duration, sections_of, summary_of
from equipoise.paper.reproduction import Reproduction, chosen_items, reproduce
from equipoise.simulation import available_processors

PAGE, RUN, PICTURES = "reproduction.md", "reproduction.json", "images/reproduction"
"""Paths within the folder of the documentation."""

MOST_ROWS = 24
"""Longer tables appear only in the report."""


@dataclass(frozen=True, kw_only=True)
class LastRun:
    """A full run without its charts, which are pictures in the documentation, and the number of processors it had."""

    findings: list[Finding]
    processors: int

    @classmethod
    def of(cls, result: Reproduction) -> LastRun:
        """Return the part of a reproduction that is stored."""
        findings = [
            replace(finding, figures=[replace(figure, chart={}) for figure in finding.figures])
            for finding in result.findings
        ]
        return cls(findings=findings, processors=available_processors())

    @classmethod
    def read(cls, folder: Path) -> LastRun:
        """Read the run that the documentation shows."""
        data = json.loads((folder / RUN).read_text(encoding="utf-8"))
        findings = [Finding.from_json(json.dumps(finding)) for finding in data["findings"]]
        return cls(findings=findings, processors=data["processors"])

    def to_json(self) -> str:
        """Return the run as text, with a line for each finding."""
        lines = ",\n".join(finding.to_json() for finding in self.findings)
        return f'{{"processors": {self.processors}, "findings": [\n{lines}\n]}}\n'

    def as_reproduction(self) -> Reproduction:
        """Return the run as if it had just ended."""
        items = chosen_items([finding.item for finding in self.findings])
        return Reproduction(items=items, findings=tuple(self.findings), quick=False)


def write_documentation(folder: Path, result: Reproduction) -> None:
    """Write the page, its pictures and the run itself into a folder; remove pictures of figures that are gone."""
    figures = [figure for finding in result.findings for figure in finding.figures]
    for path in (folder / PICTURES).glob("*.svg"):
        if path.stem not in {figure.key for figure in figures}:
            path.unlink()
    for figure in figures:
        write_file(folder / PICTURES / f"{figure.key}.svg", drawn(figure).encode())
    run = LastRun.of(result)
    write_file(folder / RUN, run.to_json().encode())
    write_file(folder / PAGE, page_text(run).encode())


def page_text(run: LastRun) -> str:
    """Return the page in Markdown."""
    result = run.as_reproduction()
    summary, sections = summary_of(result), sections_of(result)
    parts = [
        "<!-- Written by `./run python -m equipoise.paper.documentation_page docs`, not by hand. -->",
        "# The paper, reproduced",
        "`equipoise reproduce` computes every table and figure of the paper again, puts our numbers beside the printed "
        "ones, tests what the text says about its curves, and writes a report with interactive charts; see [Command "
        "line](command-line.md#the-paper-reproduced-equipoise-reproduce). This page shows its last full run: "
        f"{summary.n_steps:,} simulated steps in {duration(summary.seconds)} on {run.processors} processors.",
        f"**{_sentence(str(summary))}.**",
        f"{HOW_JUDGED} [Deviations from the paper](deviations-from-the-paper.md) lists where the paper contradicts "
        f"itself or leaves something open. The numbers of this page, with all their digits, are in [{RUN}]({RUN}).",
        _contents(sections),
    ]
    for section in sections:
        parts += _section(section)
    return "\n\n".join(parts) + "\n"


def _contents(sections: list[Section]) -> str:
    rows = [
        [
            f"[{_escaped(section.title)}](#{section.name})",
            _escaped(section.place),
            str(len(section.numbers) or ""),
            str(len(section.claims) or ""),
        ]
        for section in sections
    ]
    return _markdown_table(["item", "place", "numbers", "claims"], rows, [False, False, True, True])


def _section(section: Section) -> list[str]:
    parts = [
        f'<a id="{section.name}"></a>',
        f"## {_escaped(section.title)}",
        f"*{_escaped(section.place)}; {section.simulated}; `equipoise reproduce {section.name}`*",
        *_paragraphs(section.claim_heading, [section.claim]),
        *_paragraphs("What we find", section.found),
    ]
    for figure in section.figures:
        parts.append(f"![{_escaped(figure.caption)}]({PICTURES}/{figure.key}.svg)")
        parts.append(f"*{_escaped(figure.caption)}*")
    for table in section.tables:
        parts += _table(table)
    parts += _paragraphs("Where we differ, and why", section.differs)
    if section.numbers:
        parts += ["**Numbers.** Ours with its standard error, if it has one.", _numbers(section)]
    if section.claims:
        claims = [
            f"- **{_sentence(one.verdict)}.** {_escaped(one.text)} *{_escaped(one.evidence)}*" for one in section.claims
        ]
        parts += ["**Claims**, tested on our data.", "\n".join(claims)]
    return parts


def _paragraphs(heading: str, paragraphs: list[str]) -> list[str]:
    texts = [_escaped(text) for text in paragraphs]
    return [f"**{heading}.** {texts[0]}", *texts[1:]] if texts else []


def _numbers(section: Section) -> str:
    head = ["number", "paper", "expected", "ours", "tolerance", "verdict"]
    rows = []
    for one in section.numbers:
        ours = f"{one.ours} ± {one.standard_error}" if one.standard_error else one.ours
        verdict = f"{one.verdict}: {one.differs}" if one.differs else one.verdict
        row = [one.what, one.paper or "-", one.expected, ours, one.tolerance, verdict]
        rows.append([_escaped(text) for text in row])
    return _markdown_table(head, rows, [False, True, True, True, True, False])


def _table(table: TableText) -> list[str]:
    title = f"**{_escaped(table.title)}**"
    note = [_escaped(table.note)] if table.note else []
    if len(table.rows) > MOST_ROWS:
        return [f"{title} ({len(table.rows)} rows, in the report)", *note]
    rows = [[_escaped(text) for text in row] for row in table.rows]
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
