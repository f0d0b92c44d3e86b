"""The page of the documentation that holds the last full run: `python -m equipoise.paper.documentation_page docs`.

The run is written beside the page, so that a test can make the page from it again, and run everything once more to see
that the code still finds the same.
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.paper import report as files
from equipoise.paper import words as texts
from equipoise.paper.findings import Finding, compare
from equipoise.paper.reproduction import Reproduction, chosen_items, reproduce
from equipoise.simulation import available_processors

if TYPE_CHECKING:
    from equipoise.paper.findings import Claim, Table
    from equipoise.paper.item import Item

PAGE, RUN, PICTURES = "reproduction.md", "reproduction.json", "images/reproduction"
"""Within the folder of the documentation."""

MOST_ROWS = 24
"""Longer tables are for the report."""


@dataclass(frozen=True, kw_only=True)
class LastRun:
    """A full run without its charts, which are pictures in the documentation, and the number of processors it had."""

    findings: list[Finding]
    processors: int

    @classmethod
    def of(cls, result: Reproduction) -> LastRun:
        """Return what is kept of a reproduction."""
        findings = [
            dataclasses.replace(finding, figures=[dataclasses.replace(figure, chart={}) for figure in finding.figures])
            for finding in result.findings
        ]
        return cls(findings=findings, processors=available_processors())

    @classmethod
    def read(cls, folder: Path) -> LastRun:
        """Return the run that the documentation tells of."""
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
        return Reproduction(items=items, findings=tuple(self.findings), quick=False, seconds=0.0, n_kept=0)


def write_documentation(folder: Path, result: Reproduction) -> None:
    """Write the page, its pictures and the run itself into a folder; pictures that are no more are removed."""
    figures = [figure for finding in result.findings for figure in finding.figures]
    for path in (folder / PICTURES).glob("*.svg"):
        if path.stem not in {figure.key for figure in figures}:
            path.unlink()
    for figure in figures:
        files.write(folder / PICTURES / f"{figure.key}.svg", files.drawn(figure).encode())
    run = LastRun.of(result)
    files.write(folder / RUN, run.to_json().encode())
    files.write(folder / PAGE, page_text(run).encode())


def page_text(run: LastRun) -> str:
    """Return the page in Markdown."""
    result = run.as_reproduction()
    n_steps = sum(finding.n_steps for finding in run.findings)
    seconds = texts.duration(sum(finding.seconds for finding in run.findings))
    parts = [
        "<!-- Written by `./run python -m equipoise.paper.documentation_page docs`, not by hand. -->",
        "# The paper, reproduced",
        "`equipoise reproduce` computes every table and figure of the paper anew, puts our numbers beside the printed "
        "ones, tests what the text says about its curves, and writes a report with interactive charts; see "
        "[Command line](command-line.md#the-paper-reproduced-equipoise-reproduce). This page holds its last full run: "
        f"{n_steps:,} simulated steps in {seconds} on {run.processors} processors.",
        f"**{_sentence(str(texts.counts(result)))}.**",
        f"{texts.HOW_JUDGED} Where the paper contradicts itself or leaves something open is told in "
        "[Deviations from the paper](deviations-from-the-paper.md). The numbers of this page, with all their digits, "
        f"are in [{RUN}]({RUN}).",
        _contents(result),
    ]
    for item, finding in zip(result.items, result.findings, strict=True):
        parts += _section(item, finding)
    return "\n\n".join(parts) + "\n"


def _contents(result: Reproduction) -> str:
    rows = [
        [
            f"[{_escaped(item.title)}](#{item.name})",
            _escaped(item.place),
            str(len(finding.measured) or ""),
            str(len(finding.claims) or ""),
        ]
        for item, finding in zip(result.items, result.findings, strict=True)
    ]
    return _markdown_table(["item", "place", "numbers", "claims"], rows, [False, False, True, True])


def _section(item: Item, finding: Finding) -> list[str]:
    parts = [
        f'<a id="{item.name}"></a>',
        f"## {_escaped(item.title)}",
        f"*{_escaped(item.place)}; {texts.played(item, finding)}; `equipoise reproduce {item.name}`*",
        f"**{texts.claim_heading(item)}.** {_escaped(item.claim)}",
    ]
    parts += _told("What we find", finding.found)
    for figure in finding.figures:
        parts.append(f"![{_escaped(figure.caption)}]({PICTURES}/{figure.key}.svg)")
        parts.append(f"*{_escaped(figure.caption)}*")
    for table in finding.tables:
        parts += _table(table)
    parts += _told("Where we differ, and why", finding.differs)
    if finding.measured:
        parts += ["**Numbers.** Ours with its standard error, if it has one.", _numbers(finding)]
    if finding.claims:
        parts += ["**Claims**, tested on our data.", "\n".join(f"- {_claim(claim)}" for claim in finding.claims)]
    return parts


def _told(heading: str, paragraphs: list[str]) -> list[str]:
    told = [_escaped(text) for text in paragraphs]
    return [f"**{heading}.** {told[0]}", *told[1:]] if told else []


def _numbers(finding: Finding) -> str:
    head = ["number", "paper", "expected", "ours", "tolerance", "verdict"]
    rows = []
    for one in compare(finding.measured):
        number = texts.number_texts(one)
        spread = f" ± {number.standard_error}" if number.standard_error else ""
        why = f": {one.expected.differs}" if one.expected.differs else ""
        row = [number.what, number.paper or "-", number.expected, number.ours + spread, number.tolerance]
        rows.append([_escaped(text) for text in (*row, number.verdict + why)])
    return _markdown_table(head, rows, [False, True, True, True, True, False])


def _claim(claim: Claim) -> str:
    return f"**{_sentence(texts.claim_verdict(claim))}.** {_escaped(claim.text)} *{_escaped(claim.evidence)}*"


def _table(table: Table) -> list[str]:
    title = f"**{_escaped(table.title)}**"
    note = [_escaped(table.note)] if table.note else []
    if len(table.rows) > MOST_ROWS:
        return [f"{title} ({len(table.rows)} rows, in the report)", *note]
    rows = [[_escaped(text) for text in row] for row in texts.table_texts(table)]
    return [title, _markdown_table([_escaped(name) for name in table.columns], rows, texts.is_numeric(table)), *note]


def _markdown_table(head: list[str], rows: list[list[str]], numeric: list[bool]) -> str:
    rule = ["---:" if right else "---" for right in numeric]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _escaped(text: str) -> str:
    r"""Return text that Markdown shows as it is, but for code between backticks.

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
    result = reproduce(on_end=lambda item, _: print(item.name, file=sys.stderr))
    write_documentation(Path(arguments[0]), result)


if __name__ == "__main__":
    main(sys.argv[1:])
