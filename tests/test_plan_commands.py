"""`equipoise plan` and `create --plan`: from files, options and experiments, to tables, pages and JSON."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from command_runner import Runner

import equipoise as eq
from equipoise.planner import parse_plan

FILE = """
title = "Reminders"
control = "plain"
people = {per_day = 50, start = 2027-03-01, until = 2027-03-31}
rewards = {missing = "1%", rule = "drop", window = "2 days"}
ways = {weights = [0.8]}
goals = {precision = 0.15}
[[arms]]
name = "plain"
rate = "25% to 35%"
[[arms]]
name = "prize"
rate = "50%"
"""
OPTIONS = ("--rates", "10%,20%", "--people", "3,000", "--precision", "6%", "--information-kept", "90%,70%")


@pytest.fixture(autouse=True)
def _workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plan.toml").write_text(FILE)


def test_a_price_list_shows_what_is_paid_also_where_there_is_little_room(
    run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    by_people = run("plan", *OPTIONS, "--replications", 20, "--quiet")
    assert (by_people.code, by_people.err) == (0, "")
    assert [line.split()[:2] for line in by_people.out.splitlines() if line.startswith("way")] == [["way", "people"]]
    by_days = run("plan", "plan.toml", "--replications", 20, "--quiet").out
    assert [line.split()[:2] for line in by_days.splitlines() if line.startswith("way")] == [["way", "days"]]
    assert max(map(len, by_people.out.splitlines() + by_days.splitlines())) <= 80


def test_json_csv_and_page_say_the_same(run: Runner) -> None:
    found = run("plan", "plan.toml", "--formula", "--json")
    data = json.loads(found.out)
    assert (found.code, found.err) == (0, "")
    assert list(data["ways"]) == ["equal shares", "weight 0.8"]
    table = run("plan", "plan.toml", "--formula", "--csv").out.splitlines()
    assert table[0].startswith("way,days,")
    assert table[2].split(",")[:2] == ["weight 0.8", str(data["ways"]["weight 0.8"]["days"]["median"])]
    drawn = run("plan", "plan.toml", "--formula", "--page", "plan.html")
    assert (drawn.code, drawn.err) == (0, "page written to plan.html\n")
    assert data["recommendation"][0]["text"] in Path("plan.html").read_text()


def test_options_change_the_plan_of_a_file_and_toml_keeps_the_change(run: Runner) -> None:
    changed = run("plan", "plan.toml", "--precision", "7%", "--weights", "0.5,0.9", "--toml")
    plan = parse_plan(changed.out)
    assert plan.goals.precision == 0.07 and [way.label for way in plan.ways][1:] == ["weight 0.5", "weight 0.9"]
    assert plan.people == parse_plan(FILE).people and plan.control == "plain"
    half = parse_plan(run("plan", "plan.toml", "--scenario", "half the differences", "--toml").out)
    assert [round(arm.rate.value, 2) for arm in half.arms] == [0.35, 0.45]


def test_formulas_answer_without_a_simulation(run: Runner) -> None:
    found = run("plan", *OPTIONS, "--formula", "--json")
    data = json.loads(found.out)
    assert data["by_formula"] and data["replications"] == 0
    assert (
        0 < data["ways"]["equal shares"]["people"]["median"] < data["ways"]["information kept 0.7"]["people"]["median"]
    )


def test_an_experiment_is_made_from_a_plan_kept_beside_it_and_planned_again(run: Runner) -> None:
    made = run("create", "flu", "--plan", "plan.toml", "--way", "weight 0.8", "--seed", 1)
    assert made.code == 0 and "PooledBalance(reward_weight=0.8" in made.out
    status = json.loads(run("status", "flu", "--json").out)
    assert {rule["rule"] for rule in status["stopping"]} == {"deadline", "precision"}
    assert "planned as weight 0.8" in run("fidelity", "flu").out
    missing = run("plan", "--from-experiment", "flu")
    assert missing.code == 1 and "needs rewards of every arm" in missing.err
    with eq.open_store("sqlite:///equipoise.db") as store:
        experiment, rng = eq.Experiment.open(store, "flu"), random.Random(1)
        for one in experiment.ask_many([f"person-{i}" for i in range(300)]):
            experiment.tell(one.unit, float(rng.random() < (0.3 if one.arm == "plain" else 0.5)))
    again = run("plan", "--from-experiment", "flu", "--days", 30, "--weights", "0.9", "--replications", 20, "--json")
    assert again.code == 0, again.err
    assert list(json.loads(again.out)["ways"]) == ["equal shares", "as now", "weight 0.9"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "there is nothing to plan\nhint: give a PLAN.toml, or options such as --rates 10%,12%,14% --people 3000"),
        (
            ["--rates", "10%,12%"],
            "people is missing\nhint: give people: how many there are at most, or per_day: how many come a day",
        ),
        (["--rates", "10%", "--people", "100"], "arms must be at least two"),
        (["--rates", "10%,120%", "--people", "100"], "--rates of arm B must be from 0 to 1; got '120%'"),
        (["--rates", "14% to 10%,12%", "--people", "9"], "hint: turn them round: 0.1 to 0.14"),
        (["--rates", "10%,12%", "--people", "0"], "--people must be at least 1; got 0"),
        (["--rates", "10%,12%", "--people", "3k"], "--people must be a whole number, such as 1000 or 1,000; got '3k'"),
        ([*OPTIONS, "--precision", "0"], "--precision must be in (0, inf)"),
        (
            [*OPTIONS, "--delay", "2 days"],
            "--delay takes time, of which this plan knows nothing; got '2 days'\nhint: give per_day",
        ),
        ([*OPTIONS, "--weights", "2"], "--weights must be from 0 to 1, or 0% to 100%; got '2'"),
        ([*OPTIONS, "--control", "C"], "--control must be one of the arms, A, B; got 'C'"),
        ([*OPTIONS, "--scenario", "worse"], "--scenario must be one of as guessed, no difference"),
        ([*OPTIONS, "--page", "plan.pdf"], "--page must end in .html; got 'plan.pdf'"),
        (
            ["--rates", "1%,2%", "--per-day", "9", "--days", "9", "--delay", "20 days"],
            "--delay must be shorter than the 9",
        ),
        (["--means", "5,6", "--people", "100"], "stds is missing: rewards other than yes/no have means and stds"),
        (["plan.toml", "--rates", "1%,2%"], "--rates must be left out: the plan has its arms"),
        (["plan.toml", "--from-experiment", "x"], "give a PLAN.toml or --from-experiment; got both"),
    ],
)
def test_wrong_options_exit_with_2_and_say_what_would_work(run: Runner, arguments: list[str], message: str) -> None:
    result = run("plan", *arguments)
    assert (result.code, result.out) == (2, "")
    assert message in result.err


def test_options_beside_a_plan_and_unknown_ways_are_refused(run: Runner) -> None:
    for more, message in (
        (["--floor", "2%"], "--floor must be left out where --plan says it"),
        (["--way", "weight 0.7"], "no way is called 'weight 0.7'; the ways are equal shares, weight 0.8"),
    ):
        result = run("create", "flu", "--plan", "plan.toml", *more)
        assert result.code != 0 and message in result.err
    assert not Path("equipoise.db").exists()
