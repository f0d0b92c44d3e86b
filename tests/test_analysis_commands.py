"""What an experiment has found, on the command line, in notebooks and as frames: `compare` and `report`."""

from __future__ import annotations

import csv
import io
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_runner import Runner
from rich.cells import cell_len

import equipoise as eq
from equipoise.analysis.result_tables import ROW_COLUMNS, interval, number, report_sections, text_of
from equipoise.serialization import json_data
from equipoise.text_layout import Column, shortened_names, table_lines

STORE = "sqlite:///equipoise.db"
LONG = [f"incentive {i}: {'very ' * 8}long name" for i in range(40)]


def make(name, arms, rates, n_units, *, store=STORE, drift=0.0, **settings):
    """Make an experiment with yes or no as reward, and with `drift` a number that grows with time."""
    settings = {"reward_weight": 0.5, "seed": 1, "reward_range": None if drift else (0, 1)} | settings
    experiment, rng = eq.Experiment.create(store, name, arms=arms, **settings), np.random.default_rng(1)
    means = dict(zip(arms, rates, strict=True))
    for start in range(0, n_units, 100):
        units = {f"u{i}": {"age": i % 7 + 20, "school": "nm"[i % 2]} for i in range(start, min(start + 100, n_units))}
        told = {}
        for one in experiment.ask_many(units):
            if drift:
                told[one.unit] = rng.normal(means[one.arm] + drift * one.number / n_units, 0.3)
            else:
                told[one.unit] = float(rng.random() < means[one.arm])
        experiment.tell_many(told)
    return experiment


@pytest.fixture
def mail(run):
    """Three arms and 600 people."""
    return make("mail", ["plain", "prize", "personal"], [0.2, 0.6, 0.55], 600, covariates=["age"])


def lines_of(result):
    assert (result.code, result.err) == (0, "")
    return result.out.splitlines()


def without_times(data):
    """Leave out what differs between two calls."""
    if isinstance(data, dict):
        return {key: without_times(value) for key, value in data.items() if key not in ("at", "until")}
    return [without_times(one) for one in data] if isinstance(data, list) else data


# --- for people -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [60, 100])
@pytest.mark.parametrize("command", ["compare", "report"])
def test_what_may_be_said_comes_first_and_tables_fit_the_terminal(run: Runner, mail, monkeypatch, command, width):
    monkeypatch.setenv("COLUMNS", str(width))
    lines = lines_of(run(command, "mail"))
    assert max(map(cell_len, lines)) <= width
    found = mail.compare()
    text = " ".join(lines)
    assert text.index(found.sentences[0][:30]) < text.index("Arms: 95%") < text.index("Differences: 95%")
    for arm in found.arms:
        [row] = [line for line in lines if re.match(rf"{arm.arm} .* (yes|maybe|no)\b", line)]
        assert f"{arm.mean:.2f}" in row and f"{arm.low:.2f} to {arm.high:.2f}" in row
    assert any(re.match(r"prize +plain +\+0\.\d\d ", line) for line in lines)  # the better arm first
    assert text.rstrip().endswith("settle.")  # what is assumed comes last


def test_a_report_names_the_checks_and_says_why_there_is_nothing_narrower(run: Runner, mail):
    text = " ".join(lines_of(run("report", "mail", "--by", "school")))
    assert "600 units, of which 600 rewards count" in text
    assert "Nothing found in: change over time, assignment as recorded, balance of attributes" in text
    assert "no narrower intervals" in text and "Enrolment did not end at a number of people" in text
    assert "adjusted for age" in text
    assert "Exploratory: " in text and "Nothing found by school." in text
    assert "over the same people (weighted by the probabilities of all arms: AIPW)" in text


def test_groups_that_were_declared_are_compared_within(run: Runner):
    make("groups", ["plain", "prize"], [0.2, 0.6], 400, covariates=["school"], stopping=[eq.Budget(units=400)]).stop()
    lines = lines_of(run("report", "groups", "--by", "school"))
    assert "Differences from 'plain' within the groups of 'school'" in lines
    assert sum(bool(re.match("[nm] +prize ", line)) for line in lines) == 3  # two groups, one interaction
    text = " ".join(lines)
    assert "At the number of units declared beforehand, arms: 95%" in text
    assert "Wilson" in text and "Newcombe" in text and "no narrower" not in text


def test_where_rewards_drift_differences_over_the_same_people_come_first(run: Runner):
    make("drift", ["plain", "prize"], [0.2, 0.6], 600, drift=1.0)
    text = " ".join(lines_of(run("report", "drift")))
    places = [
        text.index(part)
        for part in ("Over the same people, 'prize' is better", "Rewards rose", "over the same people (", "Arms: 95%")
    ]
    assert places == sorted(places)
    assert text.count("Rewards rose") == 1  # among the checks, not among what may be said too


@pytest.mark.parametrize("command", ["compare", "report"])
def test_one_arm_and_no_rewards_are_no_error(run: Runner, command):
    make("one", ["only"], [0.5], 50)
    make("none", ["a", "b"], [0.5, 0.5], 0)
    one, none = (lines_of(run(command, name)) for name in ("one", "none"))
    assert any(re.match(r"only +50 +0\.\d+ +0\.\d+ to 0\.\d+$", line) for line in one)
    assert not any("best?" in line or line.startswith("Differences") for line in one)
    assert "There are no rewards yet." in none
    assert not any(line.startswith("Differences") for line in none)


def test_forty_arms_with_long_names_can_be_told_apart_on_a_narrow_terminal(run: Runner, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    make("forty", LONG, np.linspace(0.1, 0.6, 40), 1200, policy=eq.Uniform(), reward_weight=None)
    for command in ("compare", "report"):
        lines = lines_of(run(command, "forty"))
        assert max(map(cell_len, lines)) <= 60
        arms = [line for line in lines if re.search(" (no|maybe|yes)( |$)", line) and line.startswith("incentive")]
        assert len({line.partition(":")[0] for line in arms}) == 40
        assert len(lines) < 200
        assert "741 more pairs are not shown" in " ".join(lines)


# --- for programs -----------------------------------------------------------------------------------------------------


def test_json_is_what_the_library_returns(run: Runner, mail):
    assert without_times(run.data("compare", "mail")) == without_times(json_data(mail.compare().to_dict()))
    options = ("--adjust", "school", "--by", "age", "--control", "plain", "--confidence", "0.9")
    report = mail.report(adjust=["school"], by=["age"], control="plain", confidence=0.9)
    shown = run.data("report", "mail", *options)
    assert without_times(shown) == without_times(report.to_dict())
    assert shown["comparison"]["compared"] == "control"
    assert shown["adjusted"]["columns"] == ["school = n"]
    assert run.data("report", "mail", "--adjust", "")["adjusted"] is None
    assert run.data("report", "mail")["adjusted"]["columns"] == ["age"]


def test_csv_has_a_row_per_difference_or_per_arm_and_difference_of_every_section(run: Runner, mail):
    compared = list(csv.DictReader(io.StringIO(run("compare", "mail", "--csv").out)))
    assert [(row["arm"], row["other"]) for row in compared] == [
        (one.arm, one.other) for one in mail.compare().differences
    ]
    rows = list(csv.DictReader(io.StringIO(run("report", "mail", "--by", "school", "--csv").out)))
    report = mail.report(by=["school"])
    assert list(rows[0]) == list(ROW_COLUMNS)
    counts = {section: sum(row["section"] == section for row in rows) for section in {row["section"] for row in rows}}
    assert counts == {
        "arms": 3,
        "differences": 3,
        "same_people.means": 3,
        "same_people.differences": 3,
        "same_people.differences_at_end": 3,
        "adjusted.means": 3,
        "adjusted.means_at_end": 3,
        "adjusted.differences": 3,
        "adjusted.differences_at_end": 3,
        "explored": len(report.explored),
        "explored_at_end": len(report.explored),
    }
    assert [float(row["estimate"]) for row in rows[:3]] == [arm.mean for arm in report.comparison.arms]
    assert {row["attribute"] for row in rows if row["section"] == "explored"} == {"school"}


def test_a_chart_is_drawn_beside_the_result(run: Runner, mail):
    for command in ("compare", "report"):
        found = run(command, "mail", "--chart", f"{command}.svg")
        assert (found.code, found.err) == (0, f"chart written to {command}.svg\n")
        assert "may be best" in Path(f"{command}.svg").read_text()
    assert run("report", "mail", "--chart", "mail.gif").code == 2


# --- what cannot be had -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["compare", "--control", "cake"], "--control must be one of the arms, plain, prize, personal; got 'cake'"),
        (["report", "--control", "cake"], "--control must be one of the arms, plain, prize, personal; got 'cake'"),
        (["compare", "--confidence", "1"], "--confidence must be in (0, 1), such as 0.95; got 1.0"),
        (["report", "--confidence", "0"], "--confidence must be in (0, 1), such as 0.95; got 0.0"),
        (["compare", "--arm", "prize"], "other must be given too: a pair has two arms"),
        (["compare", "--other", "prize"], "arm must be given too: a pair has two arms"),
        (["compare", "--arm", "prize", "--other", "cake"], "--other must be one of the arms, plain, prize, personal; "),
        (["compare", "--all-pairs", "--control", "plain"], "--control must be left out where all pairs are compared"),
        (["report", "--adjust", "a,,b"], "--adjust must be names of attributes, separated by commas; got 'a,,b'"),
        (["report", "--by", "age,age"], "--by must have different names; got ['age', 'age']"),
        (["report", "--json", "--csv"], "give --json or --csv; got both"),
    ],
)
def test_wrong_options_are_refused_before_the_log_is_read(run: Runner, mail, monkeypatch, options, message):
    from equipoise.experiment import observed_log

    monkeypatch.setattr(observed_log, "read_observations", lambda *_, **__: pytest.fail("the log was read"))
    command, *rest = options
    found = run(command, "mail", *rest)
    assert (found.code, found.out) == (2, "")
    assert found.err.startswith(f"error: {message}")


def test_attributes_that_nobody_has_or_that_are_of_mixed_type_are_refused_with_what_there_is(run: Runner):
    experiment = make("mixed", ["a", "b"], [0.3, 0.6], 0)
    experiment.ask("ada", {"age": 9})
    experiment.ask("bob", {"age": "ten"})
    for option in ("--adjust", "--by"):
        nobody, mixed = (run("report", "mixed", option, name) for name in ("school", "age"))
        assert nobody.code == mixed.code == 2
        assert nobody.err.startswith("error: no unit of experiment 'mixed' has an attribute 'school'\nhint: ")
        assert "'age' must be of one type" in mixed.err and "'ada'" in mixed.err and "'bob'" in mixed.err


def test_ctrl_c_says_that_nothing_has_changed(run: Runner, mail, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(eq.Experiment, "report", interrupted)
    found = run("report", "mail")
    assert (found.code, found.out) == (130, "")
    assert found.err == "interrupted; a report only reads, so nothing has changed\n"


def test_the_help_loads_nothing_heavy():
    code = (
        "import sys; sys.argv = ['equipoise', 'report', '--help']\n"
        "from equipoise.cli import main\n"
        "try: main()\n"
        "except SystemExit: print([m for m in ('numba', 'numpy', 'sqlalchemy', 'altair') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "--adjust" in out
    assert out.splitlines()[-1] == "[]"


# --- in notebooks and as frames ---------------------------------------------------------------------------------------


def test_printing_shows_what_the_command_shows(run: Runner, mail):
    assert f"{mail.compare()}\n" == run("compare", "mail").out
    shown, printed = run("report", "mail").out, f"{mail.report()}\n"
    assert re.sub("to [-0-9: ]+ UTC", "", shown) == re.sub("to [-0-9: ]+ UTC", "", printed)


def test_notebooks_show_tables_and_no_name_can_break_out_of_them(run: Runner):
    script, red = "<script>alert(1)</script>", "b\x1b[31m"
    experiment = make("html", [script, "b"], [0.3, 0.6], 100)
    elsewhere = eq.analyse({"arm": [script, red] * 100, "reward": [0, 1, 1, 1] * 50}, reward_range=(0, 1))
    for found in (experiment.compare(), experiment.report(), elsewhere):
        shown = found._repr_html_()
        assert shown.count("<table>") >= 2
        assert "<script" not in shown and "&lt;script&gt;" in shown
        assert "\x1b" not in shown + str(found)
        for sentence in found.sentences:
            assert sentence.partition("'")[0] in shown


def test_frames_have_a_row_per_record(mail):
    found = mail.compare()
    assert found.to_frame().height == 3
    assert found.to_frame()["difference"].to_list() == [one.difference for one in found.differences]
    assert found.to_frame("arms")["arm"].to_list() == ["plain", "prize", "personal"]
    with pytest.raises(eq.InvalidInput, match="of must be differences or arms; got 'pairs'"):
        found.to_frame("pairs")
    frame = mail.report().to_frame()
    assert frame.columns == list(ROW_COLUMNS)
    assert frame.filter(section="arms")["low"].to_list() == pytest.approx([arm.low for arm in found.arms])


def test_frames_without_rows_have_the_same_columns(run: Runner):
    with_rows = make("two", ["a", "b"], [0.3, 0.6], 50).compare().to_frame()
    without = make("one", ["a"], [0.3], 50).compare().to_frame()
    assert without.height == 0
    assert without.schema == with_rows.schema


# --- layout -----------------------------------------------------------------------------------------------------------


def test_numbers_have_the_decimals_that_intervals_justify():
    assert interval(-0.0001, 0.25, 2, sign=True) == "+0.00 to +0.25"
    assert interval(float("-inf"), 3.14, 1) == "up to 3.1"
    assert interval(float("nan"), float("nan"), 1) == "-"
    assert number(1e12, None) == "1e+12"
    frame = {"arm": ["a", "b"] * 500, "reward": list(np.random.default_rng(1).normal(2000, 300, 1000))}
    arms = text_of(report_sections(eq.analyse(frame)), 100).split("\n\n")[3]
    assert re.search(r"^a +500 +\d{4} +\d{4} to \d{4} ", arms, re.MULTILINE)


def test_names_are_cut_where_they_stay_different():
    names = ["prize now", "a prize of ten at the end of the year", "a prize of two at the end of the year"]
    for cells in range(12, 40):
        cut = shortened_names(names, cells)
        assert {cell_len(name) for name in cut} == {cell_len(cut[0])} and cell_len(cut[0]) <= cells
        assert len(set(cut)) == 3 or cells < 16
    assert all(cell_len(name) == 9 for name in shortened_names(["日本語の名前です", "b"], 9))


def test_columns_that_matter_least_are_left_out_first():
    columns = [
        Column("arm", ["a" * 30], names=True),
        Column("mean", ["1.0"]),
        Column("std", ["2.0"], 1),
        Column("share", ["0.5"], 2),
    ]
    heads = [table_lines(columns, room)[0].split() for room in (60, 38, 33, 20)]
    assert heads == [["arm", "mean", "std", "share"], ["arm", "mean", "std"], ["arm", "mean"], ["arm", "mean"]]
