"""The command `equipoise reproduce`: verdicts, kept items, the report in a browser, the documentation page."""

from __future__ import annotations

import csv
import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from browser import open_page
from endurance import short_and_full
from patience import HANGS

import equipoise as eq
from equipoise import charts, cli
from equipoise.charts.pages import vega_script
from equipoise.cli.planning_commands import ITEM_NAMES
from equipoise.paper import documentation_page, findings, html_report, reproduction
from equipoise.paper.documentation_page import last_run, without_charts
from equipoise.paper.findings import Claim, Expected, Figure, Finding, Item, Measured, Table, expected_numbers
from equipoise.paper.items import ITEMS

if TYPE_CHECKING:
    from equipoise.paper.instances import Work

DOCS = Path(__file__).parents[1] / "docs"
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(eq.__file__).parents[1]), "COLUMNS": "100"}
ARMS = eq.Gaussian(mean=[1, 2], std=[1, 1])
NASTY = "</script><script>alert(1)</script> & `x < y`"


def half(work: Work) -> Finding:
    """Something simulated that comes out right, worded to break a careless page."""
    runs = work.simulate(eq.Uniform(), ARMS, 100, 200)
    reward = runs.reward()[0, :, -1]
    figures = [
        Figure(key=f"half-{metric}", caption=NASTY, chart=charts.curves_chart(record).to_dict())
        for metric in ("reward", "error")
        for record in [charts.curves_record(runs, metric)]
    ]
    return Finding(
        item="half",
        found=[NASTY],
        differs=["a | b"],
        measured=[Measured(key="half.reward", value=float(reward.mean()), standard_error=0.01)],
        claims=[Claim(key="half.claim", text=NASTY, holds=True, evidence="1 < 2")],
        tables=[Table(key="rewards", title=NASTY, columns=["policy", "n"], rows=[["=1+1", 0.1 + 0.2], [None, np.inf]])],
        figures=figures,
    )


def wrong(work: Work) -> Finding:
    """Something that does not come out."""
    return Finding(
        item="wrong",
        found=["nothing"],
        measured=[Measured(key="wrong.number", value=2.0), Measured(key="wrong.other", value=0.3)],
        claims=[Claim(key="wrong.claim", text="pigs fly", holds=False, evidence="0 of 3 did")],
    )


def never(work: Work) -> Finding:
    raise KeyboardInterrupt


def item(name: str, compute: Any, n_steps: int = 0) -> Item:
    return Item(name=name, title=f"{name} <i>", place="Fig. 0", claim=NASTY, compute=compute, n_steps=n_steps)


def number(key: str, **values: Any) -> Expected:
    return Expected(key=key, place="Fig. 0", what=f"what {key} is", tolerance=0.01, reason="because", **values)


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Compile before any test looks at stderr, where compiling is announced."""
    eq.simulate(eq.ForcingBalance(reward_weight=0.9), ARMS, 10)


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Items that are quick, one of which fails and one of which is interrupted, instead of the real ones."""
    items = (item("half", half, n_steps=20_000), item("wrong", wrong), item("never", never))
    numbers = [
        number("half.reward", paper=1.5, value=1.5, replications=200),
        number("wrong.number", paper=1.0, value=1.0),
        number("wrong.other", paper=0.2, value=0.3, differs="a misprint"),
    ]
    monkeypatch.setattr(reproduction, "ITEMS", items)
    monkeypatch.setattr(findings, "expected_numbers", lambda: {one.key: one for one in numbers})
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def command(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["equipoise", "reproduce", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "100")
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        captured = capsys.readouterr()
        return int(exit_.value.code or 0), captured.out, captured.err

    return command


# --- the command ------------------------------------------------------------------------------------------------------


def test_ours_stand_beside_the_papers_numbers_with_a_verdict(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run("fig4", "--quiet", "--out", "here")
    assert (code, err) == (0, "")
    lines = [re.split(r"  +", line) for line in out.splitlines()]
    assert lines[1] == ["number", "paper", "expected", "ours", "tolerance", "verdict"]
    known = ["optimal share of arm 4, w = 0.9", "0.0794", "0.078553", "0.07855296", "1e-07", "differs, as known"]
    assert known in lines
    assert out.splitlines()[-1] == (
        "numbers: 4 match, 2 differ as known, 0 missed; claims: 0 hold, 0 fail; report in here/report.html"
    )


@pytest.mark.usefixtures("made_up")
def test_what_is_missed_is_named_and_the_exit_code_is_1(run: Any) -> None:
    code, out, err = run("half", "wrong")
    assert code == 1
    assert re.search(r"what half.reward is +1.5 +1.5\d* +0.01 +0.01 +matches\n", out)
    assert re.search(r"what wrong.number is .* missed\n", out)
    assert re.search(r"what wrong.other is .* differs, as known\n", out)
    assert "FAILS  pigs fly\n       0 of 3 did\n" in out
    last = out.splitlines()[-1]
    assert last.startswith("numbers: 1 match, 1 differ as known, 1 missed; claims: 1 hold, 1 fail; ")
    assert last.endswith(" s, 20,000 simulated steps; report in reproduction/report.html")
    assert err == "missed: wrong.number, wrong.claim\n"


@pytest.mark.usefixtures("made_up")
def test_finished_items_are_not_computed_again_unless_asked(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def counted(work: Work) -> Finding:
        calls.append(work.quick)
        return dataclasses.replace(half(work), figures=[])

    calls: list[bool] = []
    monkeypatch.setattr(reproduction, "ITEMS", (item("half", counted),))
    first = run("--quiet")
    assert (run("--quiet"), calls) == (first, [False])
    assert "(1 of 1 items kept from before); report" in run()[1]
    run("--quiet", "--again")
    assert calls == [False, False]
    run("--quiet", "--quick")
    assert calls == [False, False, True]
    Path("reproduction/items/half.json").write_text("{")  # a file that is broken is not believed
    run("--quiet", "--quick")
    assert calls == [False, False, True, True]


@pytest.mark.usefixtures("made_up")
def test_ctrl_c_keeps_what_is_finished(run: Any) -> None:
    code, out, err = run("half", "never")
    assert code == 130
    assert out.startswith("half: half <i> (Fig. 0)\n")
    assert err == "interrupted; finished items are kept in reproduction, the same command goes on\n"
    assert [path.name for path in Path("reproduction/items").iterdir()] == ["half.json"]
    assert not Path("reproduction/report.html").exists()
    assert "1 of 1 items kept" in run("half")[1]


@pytest.mark.usefixtures("made_up")
def test_json_carries_every_digit(run: Any) -> None:
    code, out, _ = run("half", "wrong", "--json", "--quiet")
    assert code == 1
    answer = json.loads(out, parse_constant=pytest.fail)
    assert answer["missed"] == ["wrong.number", "wrong.claim"]
    assert answer["counts"] == {"matched": 1, "known": 1, "missed": 1, "hold": 1, "fail": 1}
    assert (answer["n_steps"], answer["quick"], answer["report"]) == (20_000, False, "reproduction/report.html")
    (reward,) = answer["items"][0]["numbers"]
    assert reward["ours"] == reproduction.reproduce(["half"]).findings[0].measured[0].value
    assert (reward["paper"], reward["standard_error"], reward["verdict"]) == (1.5, 0.01, "matches")


def test_nothing_is_computed_if_something_is_wrong_with_the_options(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("arms.csv").write_text("arm,mean,std\na,1,1\n")
    Path("file").write_text("")
    for arguments, code, message in (
        (["fig99"], 2, f"error: there is no item 'fig99'; there are {', '.join(ITEM_NAMES)}\n"),
        (["--workers", "0"], 2, "error: --workers must be at least 1; got 0\n"),
        (["--treefrog", "no.csv"], 1, "error: cannot read no.csv: No such file or directory\n"),
        (["--treefrog", "arms.csv"], 2, "error: --treefrog must be a file with 64 arms; got 1\n"),
        (["--out", "file/x"], 1, "error: cannot make the folder file/x: Not a directory\n"),
    ):
        assert run(*arguments) == (code, "", message)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["arms.csv", "file"]


def test_without_the_charts_extra_it_says_what_to_install(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("equipoise.charts.style.find_spec", lambda name: None)
    code, out, err = run("fig4")
    assert (code, out) == (1, "")
    assert err.endswith("is not installed\nhint: pip install 'equipoise[charts]'\n")


def test_the_help_lists_every_item() -> None:
    assert tuple(one.name for one in ITEMS) == ITEM_NAMES
    command = [sys.executable, "-m", "equipoise.cli", "reproduce", "--help"]
    out = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=True).stdout
    assert all(name in out for name in ITEM_NAMES)


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no terminals to pretend")
def test_on_a_terminal_a_bar_shows_the_item_and_leaves_the_results_alone(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "equipoise.cli", "reproduce", "fig3-left", "--quick"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=ENVIRONMENT, cwd=tmp_path, text=True)
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
    out, _ = process.communicate()
    assert process.returncode == 0, out
    assert b"fig3-left (1 of 1)" in shown
    assert b"steps/s" in shown
    assert out.startswith("fig3-left: ")
    assert "\x1b" not in out


def test_ctrl_c_stops_a_real_run_and_the_same_command_goes_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "equipoise.cli", "reproduce", "fig4", "table1", "fig3-left"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
        cwd=tmp_path,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("fig4: ")  # kept, and the next items are under way
    os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to everyone, the process that draws as well
    _, notes = process.communicate(timeout=HANGS)
    assert process.returncode == 130
    assert notes == "interrupted; finished items are kept in reproduction, the same command goes on\n"
    assert not (tmp_path / "reproduction" / "report.html").exists()


# --- the report -------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("made_up")
def test_figures_and_tables_lie_beside_the_report(run: Any) -> None:
    run("half", "--quiet")
    folder = Path("reproduction")
    for metric in ("reward", "error"):
        assert (folder / "figures" / f"half-{metric}.svg").read_text().startswith("<svg")
        assert (folder / "figures" / f"half-{metric}.png").read_bytes().startswith(b"\x89PNG")
    with (folder / "tables" / "half-rewards.csv").open() as file:
        assert list(csv.reader(file)) == [["policy", "n"], ["=1+1", "0.30000000000000004"], ["", "inf"]]


@pytest.mark.usefixtures("made_up")
def test_nothing_in_a_finding_is_taken_for_html(tmp_path: Path) -> None:
    page = html_report.report_page(reproduction.reproduce(["half", "wrong"]), vega_script())
    assert "alert(1)" in page
    assert "<script>alert" not in page
    assert "<code>x &lt; y</code>" in page
    assert "half &lt;i&gt;" in page
    assert page.lower().count("</script>") == 3
    assert not re.search(r"""(?:src|href)=["'](?:https?:)?//""", page.partition("<script")[0])
    (tmp_path / "report.html").write_text(page, encoding="utf-8")
    opened = open_page(tmp_path / "report.html", tmp_path)
    assert opened.dom.count('data-drawn="yes"') == 2
    assert (opened.complaints, opened.requests) == ([], [])


def check_in_browser(page: Path, findings: tuple[Finding, ...], scratch: Path) -> None:
    """Open a report without a network: every chart is drawn, every heading is there, nothing is asked for."""
    opened = open_page(page, scratch)
    assert opened.complaints == []
    assert opened.requests == []
    keys = [figure.key for finding in findings for figure in finding.figures]
    drawn = re.findall(r'data-chart="([^"]*)"[^>]* data-drawn="yes"', opened.dom)
    assert drawn == keys
    for key in keys:
        place = opened.dom.index(f'data-chart="{key}"')
        assert "<svg" in opened.dom[place : opened.dom.index("</figure>", place)], key
    assert "could not be drawn" not in opened.dom.partition("<script")[0]
    assert re.findall(r'<h2 id="([^"]*)-heading">', opened.dom) == ["summary", *(one.item for one in findings)]


# --- expected numbers, and the page of the documentation --------------------------------------------------------------


def test_the_page_is_made_from_the_run_beside_it() -> None:
    run, processors = last_run(DOCS)
    page = documentation_page.page_text(run, processors)
    assert (DOCS / documentation_page.PAGE).read_text(encoding="utf-8") == page, "write it again"
    assert [finding.item for finding in run.findings] == [one.name for one in ITEMS]
    assert run.missed == []


def test_every_expected_number_is_measured_once() -> None:
    measured = [one.key for finding in last_run(DOCS)[0].findings for one in finding.measured]
    assert sorted(measured) == sorted(expected_numbers())


def test_the_page_has_a_picture_for_each_figure_of_the_run() -> None:
    keys = {figure.key for finding in last_run(DOCS)[0].findings for figure in finding.figures}
    assert {path.stem for path in (DOCS / documentation_page.PICTURES).iterdir()} == keys


@pytest.mark.parametrize("items", short_and_full(("fig1", "fig4", "table1"), ITEM_NAMES))
def test_the_code_still_finds_what_the_page_says(items: tuple[str, ...], tmp_path: Path) -> None:
    result = reproduction.reproduce(items, folder=tmp_path)
    assert result.missed == []
    were = [finding for finding in last_run(DOCS)[0].findings if finding.item in items]
    for was, now in zip(were, without_charts(result), strict=True):
        check_alike(json.loads(was.to_json()), json.loads(now.to_json()), was.item)
    with html_report.ReportWriter(tmp_path) as writer:
        for finding in result.findings:
            writer.add(finding)
        page = writer.write(result)
    for key in (figure.key for finding in were for figure in finding.figures):
        picture = DOCS / documentation_page.PICTURES / f"{key}.svg"
        now_drawn = tmp_path / html_report.FIGURES / picture.name
        check_same_picture(picture.read_text(encoding="utf-8"), now_drawn.read_text(encoding="utf-8"), picture.name)
    assert page.stat().st_size < 4_000_000
    check_in_browser(page, result.findings, tmp_path)


def check_same_picture(was: str, now: str, name: str) -> None:
    """Check that two pictures have the same parts, words and lines; where a part begins depends on the fonts."""
    for part in (r"<(\w+)", r"<text[^>]*>(.*?)</text>", r'aria-label="([^"]*)"'):
        check_alike(re.findall(part, was), re.findall(part, now), name)
    lines = [[path for path in re.findall(r' d="([^"]*)"', picture) if len(path) > 40] for picture in (was, now)]
    for one, other in zip(*lines, strict=True):
        points = [[float(number) for number in re.findall(r"-?\d+\.?\d*", path)] for path in (one, other)]
        assert points[0] == pytest.approx(points[1], abs=0.2 if name.startswith("surrogate") else 0.02), name


def is_fitted(place: str) -> bool:
    """Say whether arms are concerned that are fitted and rounded, some of them the other way on another processor."""
    return place.startswith("surrogate.")


def check_alike(was: Any, is_: Any, place: str) -> None:
    """Check that two findings agree but for the time they took; another libm may change the last digits."""
    if isinstance(was, dict):
        assert was.keys() == is_.keys(), place
        for key in was.keys() - {"seconds"}:
            check_alike(was[key], is_[key], f"{place}.{key}")
    elif isinstance(was, list):
        assert len(was) == len(is_), place
        for k, (one, other) in enumerate(zip(was, is_, strict=True)):
            check_alike(one, other, f"{place}[{k}]")
    elif isinstance(was, float):
        assert is_ == pytest.approx(was, rel=1e-3 if is_fitted(place) else 1e-9, abs=1e-12, nan_ok=True), place
    elif isinstance(was, str):
        # The last digit of a number in a text may be rounded the other way.
        numbers = re.compile(r"\d[\d,]*\.?\d*(?:e[+-]?\d+)?")
        assert numbers.sub("#", was) == numbers.sub("#", is_), place
        pairs = zip(numbers.findall(was), numbers.findall(is_), strict=True)
        values = [[float(text.replace(",", "").rstrip(".")) for text in pair] for pair in pairs]
        # Standard errors of what is played on fitted arms are up to a twentieth of it.
        relative = 0.2 if is_fitted(place) else 0.02
        assert all(one == pytest.approx(other, rel=relative) for one, other in values), (place, was, is_)
    else:
        assert was == is_, place
