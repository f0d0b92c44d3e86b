"""Reports of experiments as pages to print or to keep, and as JSON with the same numbers."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browser import open_page
from live_courses import FOUR, played

import equipoise as eq
from equipoise import charts
from equipoise.analysis.result_tables import interval
from equipoise.charts.drawings import drawn, drawn_apart
from equipoise.charts.pages import WIDE
from equipoise.errors import InvalidInput
from equipoise.experiment_page import drawings, report_page, write_report_page

if TYPE_CHECKING:
    from chromium_driver import Browser
    from command_runner import Runner

    from equipoise.experiment.full_report import FullReport

HOSTILE = "<script>alert(1)</script>\"'>{{7*7}}&amp;</svg>\u202e"
WORDS = {
    "title": "Reminders",
    "question": "Which message brings most people to their appointment?",
    "outcome": "came to the appointment",
    "owner": "Ada",
    "arms": {"prize": "A draw of book tokens."},
}


@pytest.fixture(scope="module")
def experiment() -> eq.Experiment:
    """Four days of four messages, with a change, a decision and a stopping rule."""
    made, _ = played(FOUR, description=WORDS, stopping=[eq.Precision(half_width=0.06)], who="Ada")
    made.change_weight(0.9, reason="'prize' is ahead")
    made.note("From now on everybody gets 'prize'.\nIt costs more.", "decision")
    return made


@pytest.fixture(scope="module")
def found(experiment: eq.Experiment) -> FullReport:
    return experiment.full_report()


@pytest.fixture(scope="module")
def page(found: FullReport) -> str:
    return report_page(found)


def words(page: str) -> str:
    """Return what a page says, in one line."""
    body = re.sub(r"<(style|svg).*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", body)))


def test_it_says_what_was_asked_found_decided_and_changed(found: FullReport, page: str) -> None:
    said = words(page)
    for text in (
        "Reminders",
        WORDS["question"],
        found.status.sentence,
        "A draw of book tokens.",
        "1 if somebody came to",
    ):
        assert str(text) in said
    assert "more of 100 people came to the appointment than with equal shares" in said
    assert "Ada decided: 'From now on everybody gets 'prize'. It costs more.'" in said
    assert "Ada set the weight to 0.9 (was 0.8): ''prize' is ahead'" in said
    assert "every arm known to ±0.06" in said
    assert all(line in said for line in found.comparison.assumptions)
    assert f"after event {found.event:,}, whose hash is {found.hash}." in said
    assert f"{found.event:,} events with {found.status.n_assigned:,} decisions" in said
    headings = re.findall(r"<h2[^>]*>([^<]+)", page)
    assert headings[:5] == [
        *("What was found", "What was decided", "The arms", "Differences between arms", "How it went")
    ]
    assert headings[-4:] == [
        *("What was changed and noted, and why", "What the intervals assume", "What it was made with"),
        "How this can be checked",
    ]


def test_its_numbers_are_those_of_status_and_compare(experiment: eq.Experiment, found: FullReport, page: str) -> None:
    status, compared = experiment.status(), experiment.compare()
    assert found.status.arms == status.arms
    assert found.comparison.differences == compared.differences
    said = words(page)
    for arm in status.arms:
        assert f"{arm.arm} {arm.rewarded:,} {arm.mean:.2f} {interval(arm.low, arm.high, 2)}" in said


def test_json_has_the_same_numbers(found: FullReport, tmp_path: Path) -> None:
    data = json.loads(write_report_page(found, tmp_path / "report.json").read_text(encoding="utf-8"))
    assert data == found.to_dict()
    assert [arm["mean"] for arm in data["status"]["arms"]] == [arm.mean for arm in found.status.arms]
    assert data["report"]["comparison"] == data["comparison"]


def test_it_opens_from_disk_without_a_network_or_a_script(found: FullReport, tmp_path: Path) -> None:
    path = write_report_page(found, tmp_path / "new" / "report.html")
    opened = open_page(path, tmp_path)
    assert (opened.complaints, opened.requests) == ([], [])
    text = path.read_text(encoding="utf-8")
    assert "<script" not in text
    assert not re.search(r"""(?:src|href)=["'](?!#)""", re.sub(r'xlink:href="data:', "", text))
    assert text.count("<svg") == 10  # five charts, for wide and for narrow pages
    assert path.stat().st_size < 250_000


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [320, 768, 1280])
def test_everybody_can_read_it(page: str, browser: Browser, tmp_path: Path, width: int, dark: bool) -> None:
    (tmp_path / "report.html").write_text(page, encoding="utf-8")
    with browser.page(width=width, dark=dark) as shown:
        shown.open((tmp_path / "report.html").as_uri())
        assert shown.overflow <= 0
        assert shown.violations() == []
        assert shown.complaints == []


def test_it_prints_on_a_few_pages_in_the_colours_of_paper(page: str, browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(page, encoding="utf-8")
    with browser.page(width=700, dark=True) as shown:
        shown.open((tmp_path / "report.html").as_uri())
        pdf = shown.pdf()
        n_pages = len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf))
        assert pdf.startswith(b"%PDF")
        assert 3 <= n_pages <= 8
        shown.command("Emulation.setEmulatedMedia", media="print")
        assert shown.overflow <= 0  # tables fit on paper
        colours = "getComputedStyle(document.body).backgroundColor + getComputedStyle(document.body).color"
        assert shown.evaluate(colours) == "rgb(255, 255, 255)rgb(27, 31, 36)"
        assert shown.evaluate("[...document.querySelectorAll('details')].every(one => !one.checkVisibility())")
        assert shown.evaluate("[...document.querySelectorAll('.on-wide svg')].every(one => one.checkVisibility())")


def test_no_name_is_taken_for_html(browser: Browser, tmp_path: Path) -> None:
    made = eq.Experiment.create(
        "memory:",
        HOSTILE,
        arms=[HOSTILE, "x" * 200],
        reward_weight=0.5,
        seed=1,
        reward_range=(0, 1),
        description={
            "title": HOSTILE,
            "question": HOSTILE,
            "outcome": HOSTILE,
            "owner": HOSTILE,
            "arms": {HOSTILE: HOSTILE},
        },
        who=HOSTILE,
    )
    for number, one in enumerate(made.ask_many([f"{HOSTILE}{k}" for k in range(60)])):
        made.tell(one.unit, float(number % 3 == 0))
    made.note(HOSTILE, "decision")
    text = report_page(made.full_report())
    assert "<script" not in text
    assert "49" not in re.findall(r"alert\(1\)[^<]*", text)[0]
    (tmp_path / "report.html").write_text(text, encoding="utf-8")
    for width in (320, 1280):
        with browser.page(width=width) as shown:
            shown.open((tmp_path / "report.html").as_uri())
            assert shown.complaints == []
            assert shown.overflow <= 0
            assert shown.evaluate("document.querySelectorAll('script, img, iframe').length") == 0
            assert shown.text("h1") == HOSTILE.replace("\u202e", "\u202e")


@pytest.mark.parametrize("n_people", [0, 1, 29])
@pytest.mark.parametrize("state", ["enrolling", "paused", "stopped", "finished"])
def test_every_experiment_has_one(state: str, n_people: int) -> None:
    settings = {"reward_weight": 0.5, "seed": 1, "metadata": {"plan": "of another program"}}
    made = eq.Experiment.create("memory:", "mail", arms=["a", "b"], paused=state == "paused", **settings)  # type: ignore[arg-type]
    if state == "paused":
        made.resume()
    for number, one in enumerate(made.ask_many([f"u{k}" for k in range(n_people)])):
        if number % 4:
            made.tell(one.unit, float(number))
    if state == "paused":
        made.pause()
    elif state == "stopped":
        made.stop()
    elif state == "finished":
        made.finish()
    for found in (made.full_report(), made.full_report(log=False, verify=False), made.as_of(1).full_report()):
        said = words(report_page(found, draw=None))
        assert "nan" not in said.lower().split()
        assert "None" not in said.split()
        assert ("The log was not verified" in said) == (found.verification is None)
        assert ("As it was after event 1." in said) == (found.event == 1 and found.is_past)


def test_without_what_draws_charts_the_tables_have_the_numbers(found: FullReport) -> None:
    text = report_page(found, draw=None)
    assert "<svg" not in text
    assert text.count("<details") == text.count('<details class="data" open')
    assert "Means over time, with 95% intervals" in text


def test_charts_drawn_by_a_child_process_are_the_same(found: FullReport) -> None:
    chart = {"arms": charts.without_title(charts.live_arms_chart(found.status, width=WIDE))}
    here, apart = drawn(chart), drawn_apart(chart)
    numbered = re.compile(r"(?<=arms-clip)\d+")
    assert numbered.sub("", here["arms"]) == numbered.sub("", apart["arms"])
    assert "aria-" not in here["arms"]
    assert set(drawings(found, drawn)) == {"arms", "differences", "shares", "means", "pace"}


def test_the_command_writes_the_page(run: Runner) -> None:
    made = eq.Experiment.create("sqlite:///equipoise.db", "mail", arms=["a", "b"], reward_weight=0.5, seed=1)
    for number, one in enumerate(made.ask_many([f"u{k}" for k in range(40)])):
        made.tell(one.unit, float(number % 3))
    event = made.status().n_events
    made.add_arm("cake")
    result = run("report", "mail", "--out", "report.html")
    assert (result.code, result.out) == (0, "")
    assert result.err == f"report as of event {event + 1:,} written to report.html\n"
    assert run("report", "mail", "--out", "then.json", "--at", event, "--no-verify").code == 0
    then = json.loads(Path("then.json").read_text(encoding="utf-8"))
    assert (then["event"], len(then["status"]["arms"]), then["verification"]) == (event, 2, None)
    shown = json.loads(run("status", "mail", "--at", event, "--json").out)
    assert shown["arms"] == then["status"]["arms"]
    compared = json.loads(run("compare", "mail", "--at", event, "--json").out)
    assert compared["differences"] == then["comparison"]["differences"]
    assert run("status", "mail", "--chart", "arms.svg").err == "chart written to arms.svg\n"
    for wrong, words_ in (
        (("report", "mail", "--out", "report.pdf"), "must end in .html or .json"),
        (("report", "mail", "--out", "report.json", "--json"), "--out must be left out"),
        (("status", "mail", "--at", "0"), "--at must be at least 1; got 0"),
        (("status", "mail", "--at", "999"), f"--at must be the number of an event, from 1 to {event + 1}; got 999"),
        (("status", "mail", "--at", "3", "--watch"), "--at must be left out with --watch"),
    ):
        refused = run(*wrong)
        assert refused.code != 0
        assert words_ in refused.err


def test_what_cannot_be_written_is_said(found: FullReport) -> None:
    with pytest.raises(InvalidInput, match=r"must end in \.html or \.json; got 'report.pdf'"):
        write_report_page(found, "report.pdf")
