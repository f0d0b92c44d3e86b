"""Commands on live experiments, continued: one unit looked up, attributes from columns, copies that are interrupted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_runner import Result, Runner

import equipoise as eq
from equipoise.progress import StepBar

STORE = "sqlite:///equipoise.db"


@pytest.fixture
def exam(run: Runner) -> eq.Experiment:
    return eq.Experiment.create(STORE, "exam", arms=["a", "b"], policy=eq.Uniform(), seed=7)


def test_a_unit_is_looked_up(run: Runner, exam: eq.Experiment) -> None:
    exam.ask("ana")
    exam.tell("ana", 0.5)
    result = run("unit", "exam", "ana")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("ana: a (decision 0, probability 1, 20")
    assert result.out.endswith(" UTC); reward 0.5, counted\n")
    assert run.data("unit", "exam", "ana") == exam.unit("ana").to_dict()  # type: ignore[union-attr]
    exam.ask("bob")
    assert run("unit", "exam", "bob").out.endswith("; no reward, waiting\n")
    error = "error: unit 'eve' was never assigned in experiment 'exam'\nhint: check the spelling and the experiment; "
    error += "equipoise export NAME lists its units\n"
    assert run("unit", "exam", "eve") == Result(1, "", error)
    assert exam.status().n_assigned == 2


def test_columns_beside_the_unit_are_attributes(run: Runner, exam: eq.Experiment) -> None:
    text = "Class, unit,Age,\n4b,ana,9,x\n,bob,,\n4c,cem,\n"
    assert run("ask", "exam", "--file", "-", "--quiet", stdin=text.encode()).code == 0
    logged = {one.unit: one.details for one in exam.events() if one.kind == "assigned"}
    assert logged == {
        "ana": {"attributes": {"Class": "4b", "Age": "9"}},
        "bob": {},
        "cem": {"attributes": {"Class": "4c"}},
    }
    twice = run("ask", "exam", "--file", "-", stdin=b"unit,age,Age\ndov,1,2\n")
    assert (twice.code, "got 'age' twice" in twice.err) == (1, True)
    exam.verify()


def test_attributes_that_are_too_long_are_told_with_their_line(run: Runner, exam: eq.Experiment) -> None:
    text = f"unit,essay\nana,short\nbob,{'x' * 20_000}\n"
    result = run("ask", "exam", "--file", "-", "--quiet", stdin=text.encode())
    assert (result.code, result.err.startswith("error: standard input, line 3: attributes must")) == (1, True)
    assert exam.unit("ana") is not None


def test_a_copy_tells_how_far_it_is(run: Runner, exam: eq.Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    exam.ask_many([f"unit-{i}" for i in range(12_000)])
    told = []
    with eq.open_store("memory:") as other:
        exam.copy_to(other, progress=lambda done, total: told.append((done, total)))
    assert told == [(5_000, 12_001), (10_000, 12_001), (12_001, 12_001)]
    shown = []
    monkeypatch.setattr(StepBar, "show", lambda _, done: shown.append(done))
    assert run("copy", "--to", "sqlite:///new.db", "--quiet").err == ""
    assert shown == []
    assert run("copy", "--to", "sqlite:///newer.db").code == 0
    assert shown == [5_000, 10_000, 12_001]


def test_a_copy_to_a_service_is_refused_by_its_option(run: Runner, exam: eq.Experiment) -> None:
    result = run("copy", "exam", "--to", "http://localhost:8000")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(
        "error: --to must be a database; got the address of a service\nhint: copy to the database"
    )


def test_a_copy_that_was_made_before_is_not_said_to_be_made_again(run: Runner, exam: eq.Experiment) -> None:
    first, again = (run("copy", "exam", "--to", "sqlite:///new.db", "--quiet") for _ in range(2))
    assert first.out == "exam: 1 event copied to sqlite:///new.db and verified there\n"
    assert again.out == "exam: 1 event in sqlite:///new.db already, as far as here, and verified there\n"
    exam.ask("ana")
    assert run("copy", "exam", "--to", "sqlite:///new.db").code == 1  # what is there is not the same any more
    rows = [run.data("copy", "--to", "sqlite:///newer.db", "--quiet")["experiments"] for _ in range(2)]
    assert [one["new"] for [one] in rows] == [True, False]  # type: ignore[attr-defined]
    assert [one["n_events"] for [one] in rows] == [2, 2]  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_copy_that_is_interrupted_leaves_nothing_behind(
    run: Runner, exam: eq.Experiment, kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    exam.ask_many([f"unit-{i}" for i in range(12_000)])
    url = "sqlite:///new.db" if kind == "sqlite" else request.getfixturevalue("postgresql_url")

    def interrupt(_: StepBar, done: int) -> None:
        if done > 5_000:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(StepBar, "show", interrupt)
        result = run("copy", "exam", "--to", url)
    assert (result.code, result.out) == (130, "")
    assert result.err.startswith("interrupted; nothing of exam is in ")
    with eq.open_store(url) as store:
        assert eq.Experiment.list(store) == []
        for table in ("experiments", "arms", "events", "pending"):
            query = f"SELECT 1 FROM {table}"  # noqa: S608
            assert store.read(lambda transaction, query=query: list(transaction.stream(query))) == []
    assert run("copy", "exam", "--to", url).code == 0
    with eq.open_store(url) as store:
        assert eq.Experiment.open(store, "exam").verify().n_events == 12_001


def test_ctrl_c_ends_a_copy_with_a_word(exam: eq.Experiment) -> None:
    """The signal itself, to a process of its own, at a moment when it is certainly copying."""
    exam.ask_many([f"unit-{i}" for i in range(12_000)])
    code = (
        "import os, signal, sys\n"
        "from equipoise import cli, progress\n"
        "def show(self, done):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "progress.StepBar.show = show\n"
        "sys.argv = ['equipoise', 'copy', '--to', 'sqlite:///new.db']\n"
        "cli.main()\n"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(eq.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (130, "", 1)
    assert done.stderr.startswith("interrupted; nothing of exam is in sqlite:///")
    assert eq.Experiment.list("sqlite:///new.db") == []
    assert exam.verify().n_events == 12_001
