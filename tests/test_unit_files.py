"""Files of units and rewards as people have them: what is understood, what is refused, and what is asked before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_runner import Result, Runner

import equipoise as eq

STORE = "sqlite:///equipoise.db"


@pytest.fixture
def exam(run: Runner) -> eq.Experiment:
    return eq.Experiment.create(
        STORE, "exam", arms=["line", "pie"], policy=eq.Uniform(), seed=1, reward_range=(0, 2_000)
    )


def enrolled(experiment: eq.Experiment) -> list[str | None]:
    return [event.unit for event in experiment.events() if event.kind == "assigned"]


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (b"unit\nana@x\nbob@x\n", []),
        (b"ana@x\nbob@x\n", []),
        (b"email,city\nana@x,Rome\nbob@x,Bonn\n", ["--column", "email"]),
        (b"\xef\xbb\xbfemail;city\r\nana@x;Rome\r\nbob@x;Bonn\r\n", ["--column", "Email"]),
        ("\ufeffStadt;Unit\r\nKöln, Süd;ana@x\r\n;bob@x\r\n".encode(), []),
        (b"city\tunit\nRome\tana@x\n\n\tbob@x\n", []),
        (b"sep=;\nunit;city\nana@x;Rome\nbob@x;Bonn\n", []),
        (b"email\nana@x\nbob@x\n", ["--column", "email"]),
        (b"ana@x\n\nbob@x\n", ["--yes"]),
        (b'unit,city\n"ana@x","Rome, Italy"\nbob@x,Bonn\n', []),
    ],
)
def test_units_are_found(run: Runner, exam: eq.Experiment, data: bytes, options: list[str]) -> None:
    Path("units.csv").write_bytes(data)
    result = run("ask", "exam", "--file", "units.csv", *options)
    assert (result.code, result.err) == (0, "2 units: 2 assigned now, 0 before\n")
    assert enrolled(exam) == ["ana@x", "bob@x"]


def test_other_columns_are_attributes(run: Runner, exam: eq.Experiment) -> None:
    Path("units.csv").write_text("email;city;age\nana@x;Rome;7\n", encoding="utf-8-sig")
    assert run("ask", "exam", "--file", "units.csv", "--column", "email").code == 0
    assert list(exam.events())[-1].details == {"attributes": {"city": "Rome", "age": "7"}}


AMBIGUOUS = "may be a unit or the name of the column"


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"email,city\nana@x,Rome\n", "units.csv has 2 columns, and none is called unit; got email, city\nhint: say"),
        (
            b"\xef\xbb\xbfemail;city\r\nana@x;Rome\r\n",
            "got email, city\nhint: say which one has the units, as in: --column",
        ),
        (b"email\nana@x\nbob@x\n", f"line 1: 'email' {AMBIGUOUS}\nhint: if it is the name: --column email; if it is a"),
        (b"Participant ID\na\nb\n", f"line 1: 'Participant ID' {AMBIGUOUS}"),
        (b"user_id\na\nb\n", f"line 1: 'user_id' {AMBIGUOUS}"),
        (b"Names\nana\nbob\n", f"line 1: 'Names' {AMBIGUOUS}"),
        (b"E-Post\nana@x\nbob@x\n", f"line 1: 'E-Post' {AMBIGUOUS}"),
        (b"Matrikel\n4711\n4712\n", f"line 1: 'Matrikel' {AMBIGUOUS}"),
        (b"Class 4b\n\nemail,city\nana@x,Rome\n", "line 3: expected one unit per line, as in line 1; got 2 cells"),
        (b"unit,unit\nana,bob\n", "line 1: expected a header with column unit, each once; got unit, unit"),
        (b"a;b,c\n1;2,3\n", "expected cells separated by commas, semicolons or tabs; got commas and semicolons"),
        (b"unit,city\nana,Rome,Italy\n", "line 2: expected 2 cells, as in the header; got 'ana,Rome,Italy'"),
        (
            b"unit,city\n,Rome\nbob,Bonn\n,Oslo\n",
            "2 cells are not as expected; nothing is recorded\n  line 2, column unit",
        ),
        (
            "unit\nJosé\n".encode("cp1252"),
            "line 2: expected text in UTF-8; got the byte 0xe9, which is 'é' in Windows-1252",
        ),
        (
            "unit\nana\n".encode("utf-16"),
            "units.csv: expected text in UTF-8; got UTF-16, which Excel calls Unicode Text",
        ),
        (b"PK\x03\x04rest", "units.csv: expected text in UTF-8; got a workbook of a spreadsheet"),
    ],
)
def test_what_may_mean_two_things_enrols_nobody(run: Runner, exam: eq.Experiment, data: bytes, told: str) -> None:
    Path("units.csv").write_bytes(data)
    result = run("ask", "exam", "--file", "units.csv")
    assert (result.code, result.out) == (1, "")
    assert told in result.err
    assert enrolled(exam) == []


def test_a_list_without_a_header_can_be_meant(run: Runner, exam: eq.Experiment) -> None:
    Path("units.txt").write_text("email\nana, jr\n")
    assert run("ask", "exam", "--file", "units.txt", "--no-header").code == 0
    assert enrolled(exam) == ["email", "ana, jr"]
    Path("table.csv").write_text("ana,7\nbob,8\n")
    refused = run("ask", "exam", "--file", "table.csv", "--no-header")
    assert refused.code == 1
    assert "--no-header is for one unit per line; every line here has 2 cells" in refused.err
    assert run("ask", "exam", "--file", "units.txt", "--no-header", "--column", "email").code == 2
    assert run("ask", "exam", "ana", "--no-header").code == 2
    wrong = run("ask", "exam", "--file", "table.csv", "--column", "email")
    assert "expected a header with column email, each once; got ana, 7" in wrong.err


SUMMARY = (
    "units.csv, column email: 4 units: ana, bob, cyd, ...\n"
    "3 new, to be assigned for good; 1 with an arm already\n"
    "left out: 1 repeated, 1 blank\n"
)


def some_units() -> None:
    Path("units.csv").write_text("email,city\nana,Rome\nbob,\n\ncyd,\ndan,\nana,Rome\n")


def test_a_terminal_is_asked_before_anybody_is_enrolled(run: Runner, exam: eq.Experiment) -> None:
    some_units()
    exam.ask("ana")
    command = ("ask", "exam", "--file", "units.csv", "--column", "email")
    for answer in ("n\n", "\n", "\x04"):
        declined = run.at_terminal(*command, answer=answer)
        assert declined == Result(1, "", f"{SUMMARY}assign them? [y/N] nothing was changed\n")
    assert enrolled(exam) == ["ana"]
    accepted = run.at_terminal(*command, "--quiet", answer="y\n")
    assert accepted.code == 0
    assert enrolled(exam) == ["ana", "bob", "cyd", "dan"]
    assert "assign them?" not in run.at_terminal(*command, "--yes").err


def test_a_dry_run_assigns_nobody(run: Runner, exam: eq.Experiment) -> None:
    some_units()
    exam.ask("ana")
    assert run("ask", "exam", "--file", "units.csv", "--column", "email", "--dry-run") == Result(0, SUMMARY, "")
    assert enrolled(exam) == ["ana"]
    assert run("ask", "exam", "bob", "--dry-run").code == 2


def test_wrong_rewards_are_listed_all_at_once(run: Runner, exam: eq.Experiment) -> None:
    exam.ask_many(["ana", "bob", "cyd", "dan"])
    Path("scores.csv").write_text("unit,reward\nana,1\nbob,one\ncyd,-5\ndan,\n,3\nana,0,5\n")
    refused = run("tell", "exam", "--file", "scores.csv")
    assert refused == Result(
        1,
        "",
        "error: scores.csv: 5 cells are not as expected; nothing is recorded\n"
        "  line 3, column reward: expected a number; got 'one'\n"
        "  line 4, column reward: expected a number in [0, 2000], the declared range; got '-5'\n"
        "  line 5, column reward: expected a number; got nothing\n"
        "  line 6, column unit: expected a unit; got nothing\n"
        "  line 7: expected 2 cells, as in the header; got 'ana,0,5'\n"
        "hint: mend the file, or record the other lines with --keep-going\n",
    )
    assert exam.status().n_rewarded == 0


def test_keep_going_records_the_rest_and_lists_what_was_not(run: Runner, exam: eq.Experiment) -> None:
    exam.ask_many(["student-1", "student-2", "bob"])
    Path("scores.csv").write_text("unit,reward\nstudent-1,1\nbob,one\nstudnet-2,3\nstudent-2,2\n")
    kept = run("tell", "exam", "--file", "scores.csv", "--keep-going", "--quiet")
    assert kept == Result(
        1,
        "",
        "refused: scores.csv, line 3, column reward: expected a number; got 'one'\n"
        "refused: scores.csv, line 4: unit 'studnet-2' was never assigned in experiment 'exam'\n"
        "hint: check the spelling; similar units are student-2\n"
        "error: 2 of 4 rewards of scores.csv were refused; the others are recorded\n",
    )
    assert exam.status().n_rewarded == 2


@pytest.mark.parametrize("command", [["tell", "exam", "zoe", "1"], ["unit", "exam", "zoe"]])
def test_nobody_is_invited_to_enrol_a_typing_error(run: Runner, exam: eq.Experiment, command: list[str]) -> None:
    refused = run(*command)
    assert refused.code == 1
    assert "hint: check the spelling and the experiment" in refused.err
    assert "equipoise ask" not in refused.err


def test_rewards_have_columns_of_any_name(run: Runner, exam: eq.Experiment) -> None:
    exam.ask_many(["ana", "bob"])
    Path("scores.csv").write_text("score,email\n1,ana\n2,bob\n")
    refused = run("tell", "exam", "--file", "scores.csv", "--column", "email")
    assert "expected a header with columns email and reward, each once; got score, email" in refused.err
    assert "hint: --reward-column NAME says which column it is" in refused.err
    assert run("tell", "exam", "--file", "scores.csv", "--column", "email", "--reward-column", "score").code == 0
    assert exam.status().n_rewarded == 2


@pytest.mark.parametrize(
    ("text", "rewards"),
    [
        ("unit;reward\nana;0,5\nbob;1,25\n", [0.5, 1.25]),
        ("unit\treward\nana\t1,500\nbob\t0,5\n", [1.5, 0.5]),
        ("unit;reward\nana;0.5\nbob;1\n", [0.5, 1.0]),
    ],
)
def test_decimal_commas_are_read_where_they_can_mean_nothing_else(
    run: Runner, exam: eq.Experiment, text: str, rewards: list[float]
) -> None:
    exam.ask_many(["ana", "bob"])
    done = run("tell", "exam", "--file", "-", stdin=text.encode())
    assert done.code == 0
    assert ("note: standard input: commas in rewards are read as decimal marks" in done.err) == ("," in text)
    assert [exam.unit(unit).reward for unit in ("ana", "bob")] == rewards  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("unit;reward\nana;1,500\nbob;1,250\n", "'1,500'"),
        ("unit;reward\nana;0,5\nbob;1.5\n", "'0,5'"),
        ('unit,reward\nana,"0,5"\n', "'0,5'"),
    ],
)
def test_commas_that_may_mean_thousands_are_refused(run: Runner, exam: eq.Experiment, text: str, cell: str) -> None:
    exam.ask_many(["ana", "bob"])
    refused = run("tell", "exam", "--file", "-", stdin=text.encode())
    assert refused.code == 1
    assert f"expected a number with a decimal point; got {cell}" in refused.err
    assert exam.status().n_rewarded == 0


def test_the_json_of_a_file_is_as_before(run: Runner, exam: eq.Experiment) -> None:
    Path("units.csv").write_text("email;city\nana;Rome\n")
    asked = run("ask", "exam", "--file", "units.csv", "--column", "email", "--json", "--quiet")
    assert set(json.loads(asked.out)) == {"unit", "arm", "number", "probability", "forced", "at", "new"}
    Path("scores.csv").write_text("unit;reward\nana;1\n")
    assert run.data("tell", "exam", "--file", "scores.csv") == {"n_rewards": 1, "n_new": 1, "n_counted": 1}
