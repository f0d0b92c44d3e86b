"""Live experiments on the command line: what is printed and kept, files of thousands, errors with lines, exit codes."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from command_runner import Result, Runner
from typer.main import get_command

import equipoise as eq
from equipoise.cli import app
from equipoise.cli import unit_commands as feeding
from equipoise.cli.unit_files import Row, UnitFile
from equipoise.status_table import status_lines
from equipoise.store.schema import REVISION

SOURCE = Path(eq.__file__).parent
ENVIRONMENT = os.environ | {"PYTHONPATH": str(SOURCE.parent), "COLUMNS": "100"}
COMMAND = [sys.executable, "-m", "equipoise.cli"]
STORE = "sqlite:///equipoise.db"


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Compile before any test looks at stderr, where compiling is announced."""
    experiment = eq.Experiment.create("memory:", "x", arms=["a", "b"], policy=eq.ForcingBalance(reward_weight=0.5))
    for i in range(6):
        experiment.tell(experiment.ask(f"unit-{i}").unit, i)
    experiment.what_if(0.9)
    experiment.status()
    experiment.verify()


@pytest.fixture
def exam(run: Runner) -> eq.Experiment:
    """An experiment made by the command."""
    arguments = ("--arms", "line,pie,none", "--reward-weight", "0.6", "--seed", "7", "--range", "0,1")
    assert run("create", "exam", *arguments).code == 0
    return eq.Experiment.open(STORE, "exam")


def units(count: int) -> str:
    return "".join(f"unit-{i}\n" for i in range(count))


# --- making -----------------------------------------------------------------------------------------------------------

OPTIONS = (
    ("--arms", "phonics,whole word,as always"),
    ("--policy", "ForcingBalance:reward_weight=0.8,forcing=0.5"),
    ("--seed", 7),
    ("--warm-up", 10),
    ("--floor", "0.05"),
    ("--control", "as always"),
    ("--control-share", 0.1),
    ("--range", "0,100"),
    ("--minimise",),
    ("--failure-probability", 0.1),
    ("--missing", "default"),
    ("--default", 0),
    ("--window", "2 weeks"),
    ("--hold",),
    ("--late", "ignore"),
    ("--budget", 5000),
    ("--deadline", "2027-06-30T18:00:00+02:00"),
    ("--precision", 2.5),
    ("--precision-of-differences", 4),
    ("--decided", 0.5),
    ("--covariates", "age,school"),
    ("--metadata", "school=Hill Road"),
)
FILE = """
name = "reading"
arms = ["phonics", "whole word", "as always"]
policy = {name = "ForcingBalance", reward_weight = 0.8, forcing = 0.5}
seed = 7
warm_up = 10
floor = 0.05
control = "as always"
control_share = 0.1
reward_range = [0, 100]
direction = "minimise"
failure_probability = 0.1
covariates = ["age", "school"]
missing = {rule = "default", value = 0, window = "14 days", hold = true, late = "ignore"}
metadata = {school = "Hill Road"}
[stopping]
budget = 5000
deadline = "2027-06-30T18:00:00+02:00"
precision = 2.5
precision_of_differences = 4
decided = 0.5
"""


def test_options_and_a_file_make_what_the_library_makes(run: Runner) -> None:
    library = eq.Experiment.create(
        STORE,
        "library",
        arms=["phonics", "whole word", "as always"],
        policy=eq.ForcingBalance(reward_weight=0.8, forcing=0.5),
        seed=7,
        warm_up=10,
        floor=0.05,
        control="as always",
        control_share=0.1,
        reward_range=(0, 100),
        direction="minimise",
        failure_probability=0.1,
        missing=eq.DefaultReward(value=0, window_seconds=14 * 86_400, hold=True, late="ignore"),
        stopping=[
            eq.Budget(units=5000),
            eq.Deadline(at="2027-06-30T18:00:00+02:00"),
            eq.Precision(half_width=2.5),
            eq.Precision(half_width=4, of="differences"),
            eq.Decided(margin=0.5),
        ],
        covariates=["age", "school"],
        metadata={"school": "Hill Road"},
    )
    assert run("create", "options", *[part for option in OPTIONS for part in option]).code == 0
    Path("reading.toml").write_text(FILE)
    assert run("create", "--file", "reading.toml") == Result(
        0, "reading: 3 arms, ForcingBalance(reward_weight=0.8, forcing=0.5), seed 7, in sqlite:///equipoise.db\n", ""
    )
    made = [next(iter(eq.Experiment.open(STORE, name).events())).details for name in ("library", "options", "reading")]
    assert made[0] == made[1] == made[2]
    assert library.status().arms[0].arm == "phonics"


def test_options_take_the_place_of_what_the_file_says(run: Runner) -> None:
    Path("reading.toml").write_text(FILE)
    options = ("--seed", 8, "--window", "1d", "--budget", 9, "--policy", "Uniform", "--metadata", "class=4b")
    made = run.data("create", "other", "--file", "reading.toml", *options)
    assert (made["name"], made["seed"]) == ("other", 8)
    assert made["missing"] == {
        "name": "DefaultReward", "value": 0.0, "window_seconds": 86400.0, "hold": True, "late": "ignore"
    }  # fmt: skip
    assert made["policy"] == {"name": "Uniform"}
    assert made["stopping"][0] == {"name": "Budget", "units": 9}  # type: ignore[index]
    assert made["metadata"] == {"school": "Hill Road", "class": "4b"}


def test_arms_can_be_tables_with_floors(run: Runner) -> None:
    Path("x.toml").write_text('reward_weight = 0.5\n[[arms]]\nname = "a"\nfloor = 0.2\n[[arms]]\nname = "b"\n')
    assert run("create", "x", "--file", "x.toml").code == 0
    first = next(iter(eq.Experiment.open(STORE, "x").events()))
    assert first.details["arms"] == [{"name": "a", "floor": 0.2}, {"name": "b", "floor": 0.0}]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seed = 7", "sead = 7", "x.toml: unknown key 'sead'; allowed are name, arms, "),
        ("reward_weight = 0.8", "reward_weight = 8", "x.toml: policy.reward_weight must be in [0, 1]; got 8"),
        ("forcing = 0.5", "forcing = [0.5, 1]", "x.toml: policy: an experiment has one policy; lists of values"),
        ('"ForcingBalance"', '"ForcingBalanse"', "x.toml: policy: unknown policy 'ForcingBalanse'; known are "),
        (
            "floor = 0.05",
            "floor = 0.5",
            "x.toml: floor and control_share must add up to less than 1 over all arms; got",
        ),
        ('control = "as always"', 'control = "none"', "x.toml: control must be one of the arms; got 'none'"),
        ("warm_up = 10", "warm_up = -1", "x.toml: warm_up must be at least 0; got -1"),
        ("[0, 100]", "[100, 0]", "x.toml: reward_range must be a lowest and a highest reward"),
        ('"14 days"', '"14 dayz"', "x.toml: missing.window must be a duration such as 7 days, 36h or 90 (seconds)"),
        ('rule = "default"', 'rule = "guess"', "x.toml: missing.rule must be one of wait, default, drop"),
        ("value = 0,", "", "x.toml: missing.value is missing; the rule default needs it"),
        ("budget = 5000", "budget = 0", "x.toml: stopping.budget must be at least 1; got 0"),
        ("+02:00", "", "x.toml: stopping.deadline must be an instant with a zone"),
        ("precision", "precizion", "x.toml: stopping: unknown key 'precizion'; allowed are budget, "),
        ("seed = 7", "seed = ", "x.toml: expected TOML; Invalid value (at line 5,"),
    ],
)
def test_an_error_in_a_file_names_its_key_and_nothing_is_made(run: Runner, old: str, new: str, message: str) -> None:
    assert old in FILE
    Path("x.toml").write_text(FILE.replace(old, new))
    result = run("create", "--file", "x.toml")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"error: {message}")
    assert not Path("equipoise.db").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "arms is missing\nhint: give --arms A,B,C"),
        (["--arms", "a,b"], "policy is missing\nhint: give --information-kept Q or --reward-weight W"),
        (["--arms", "a,b", "--information-kept", "0"], "--information-kept must be in (0, 1]; got 0"),
        (
            ["--arms", "a,b", "--information-kept", "0.5", "--information-about", "all"],
            "--information-about must be one of average, every-arm, best-arm; got 'all'",
        ),
        (
            ["--arms", "a,b", "--information-kept", "0.5", "--reward-weight", "0.5"],
            "give one of --reward-weight, --information-kept and --half-width; got --reward-weight and --information-",
        ),
        (["--arms", "a,b", "--half-width", "0.1"], "units is missing: a goal is a half_width after some units"),
        (
            ["--arms", "a,b", "--half-width", "0.1", "--units", "100"],
            "--half-width needs the range of rewards; got 0.1\nhint: give --range LOW,HIGH",
        ),
        (
            ["--arms", "a,b", "--half-width", "0.1", "--units", "100", "--range", "0,1"],
            "--half-width must be at least 0.1387 for 100 units; got 0.1\n"
            "hint: a half_width of 0.1 takes at least 193 units",
        ),
        (
            ["--arms", "a,b", "--policy", "Uniform", "--information-kept", "0.5"],
            "--information-kept must be left out: Uniform takes none",
        ),
        (["--arms", "a,b", "--reward-weight", "2"], "--reward-weight must be in [0, 1]; got 2"),
        (["--arms", "a,b", "--policy", "Uniform", "--reward-weight", "1"], "--reward-weight must be left out: Uniform"),
        (["--arms", "a,b", "--policy", "Uniform:x"], "--policy must be NAME or NAME:parameter=value"),
        (["--arms", "a,a", "--policy", "Uniform"], "--arms must have different names; got 'a' more than once"),
        (["--arms", "a,b", "--policy", "Uniform", "--floor", "0.5"], "--floor and control_share must add up to less"),
        (["--arms", "a,b", "--policy", "Uniform", "--control-share", "0.5"], "hint: give --control ARM"),
        (["--arms", "a,b", "--policy", "Uniform", "--hold"], "--hold needs a window"),
        (["--arms", "a,b", "--policy", "Uniform", "--window", "soon"], "--window must be a duration"),
        (["--arms", "a,b", "--policy", "Uniform", "--budget", "0"], "--budget must be at least 1; got 0"),
        (["--arms", "a,b", "--policy", "Uniform", "--deadline", "soon"], "--deadline must be an instant with a zone"),
        (["--arms", "a,b", "--policy", "Uniform", "--metadata", "x"], "--metadata must be KEY=TEXT; got 'x'"),
        (["--arms", "a,b", "--policy", "Uniform", "--store", "memory:"], "a store in memory is gone"),
        (["--arms", "a,b", "--policy", "Uniform", "--store", "mysql://x"], "a store must be SQLite, PostgreSQL"),
    ],
)
def test_wrong_options_exit_with_2(run: Runner, arguments: list[str], message: str) -> None:
    result = run("create", "x", *arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: ")
    assert message in result.err
    assert not Path("equipoise.db").exists()


def test_a_file_that_can_be_read_only_once_describes_an_experiment(run: Runner) -> None:
    reading, writing = os.pipe()
    os.write(writing, FILE.encode())
    os.close(writing)
    result = run("create", "--file", f"/dev/fd/{reading}")
    os.close(reading)
    assert (result.code, result.err) == (0, "")


# --- one unit at a time -----------------------------------------------------------------------------------------------


def test_ask_and_tell_can_be_repeated(run: Runner, exam: eq.Experiment) -> None:
    arm = exam.ask("ana").arm
    assert run("ask", "exam", "ana") == Result(0, f"{arm}\n", "")
    told = Result(0, f"ana, on {arm}: 0.75, in the estimates\n", "")
    assert run("tell", "exam", "ana", "0.75") == told
    assert run("tell", "exam", "ana", "0.75").out == told.out.replace("\n", "; told before\n")
    conflict = run("tell", "exam", "ana", "0.5")
    assert (conflict.code, conflict.out) == (1, "")
    assert conflict.err == (
        "error: the reward of unit 'ana' was told before and is 0.75; got 0.5\n"
        "hint: equipoise correct replaces it, and logs why\n"
    )
    corrected = run.data("correct", "exam", "ana", "0.5", "--reason", "second marker")
    assert corrected == {"unit": "ana", "arm": arm, "reward": 0.5, "counted": True, "new": True}
    assert [event.kind for event in exam.events()] == ["created", "assigned", "rewarded", "corrected"]
    assert list(exam.events())[-1].details == {"reason": "second marker"}


def test_after_the_end_nobody_is_sent_to_correct(run: Runner, exam: eq.Experiment) -> None:
    exam.tell(exam.ask("ana").unit, 0.75)
    exam.finish()
    assert run("tell", "exam", "ana", "0.5").err == (
        "error: the reward of unit 'ana' was told before and is 0.75; got 0.5\n"
    )


def test_a_reward_may_be_negative_and_is_not_an_option(run: Runner) -> None:
    assert run("create", "x", "--arms", "a,b", "--policy", "Uniform").code == 0
    assert run("ask", "x", "ana").code == 0
    assert run.data("tell", "x", "ana", "-3.5")["reward"] == -3.5
    assert run.data("correct", "x", "ana", "-1e-3", "--reason", "typo")["reward"] == -0.001
    assert run("tell", "x", "ana", "--nonsense").code == 2


def test_attributes_are_logged(run: Runner, exam: eq.Experiment) -> None:
    found = run.data("ask", "exam", "ana", "--attributes", '{"age": 7}')
    assert found["new"] is True
    assert list(exam.events())[-1].details == {"attributes": {"age": 7}}
    assert "must be a JSON object" in run("ask", "exam", "bob", "--attributes", "[1]").err
    assert "must be a JSON object" in run("ask", "exam", "bob", "--attributes", "{").err
    assert "must be a JSON object" in run("ask", "exam", "bob", "--attributes", "[" * 5_000).err


def test_the_log_says_who(run: Runner, exam: eq.Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "carla")
    run("ask", "exam", "ana")
    run("ask", "exam", "bob", "--who", "nurse 3")
    assert [event.who for event in exam.events(after=1)] == ["carla", "nurse 3"]


def test_the_store_comes_from_the_environment_and_the_option_wins(
    run: Runner, exam: eq.Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EQUIPOISE_STORE", "sqlite:///other.db")
    assert "there is no store other.db" in run("list").err
    assert run("list", "--store", STORE).out.splitlines()[1].split() == [
        "exam", "enrolling", "3", "0", "0", "PooledBalance", "0.6"
    ]  # fmt: skip


@pytest.mark.parametrize("command", ["list", "verify", "rebuild", "upgrade"])
def test_looking_makes_no_store(run: Runner, command: str, tmp_path: Path) -> None:
    result = run(command)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error: there is no store equipoise.db\nhint: equipoise create makes one; ")
    assert list(tmp_path.iterdir()) == []


EXISTING_ONLY = [
    ["list"],
    ["ask", "exam", "ana"],
    ["tell", "exam", "ana", "1"],
    ["correct", "exam", "ana", "1", "--reason", "typo"],
    ["unit", "exam", "ana"],
    ["units", "exam"],
    ["status", "exam"],
    ["compare", "exam"],
    ["report", "exam"],
    ["fidelity", "exam"],
    ["health"],
    ["health", "exam"],
    ["mute", "exam", "enrolment", "--until", "2d", "--reason", "holidays"],
    ["unmute", "exam", "enrolment"],
    ["plan", "--from-experiment", "exam"],
    ["pause", "exam"],
    ["resume", "exam"],
    ["stop", "exam"],
    ["finish", "exam"],
    ["note", "exam", "all is well"],
    ["describe", "exam", "--title", "Exam"],
    ["weight", "exam", "0.5"],
    ["what-if", "exam", "0.5"],
    ["prices", "exam"],
    ["timeline", "exam"],
    ["outlook", "exam"],
    ["dial", "exam", "--information-kept", "0.5"],
    ["arm", "add", "exam", "x"],
    ["arm", "pause", "exam", "x"],
    ["arm", "resume", "exam", "x"],
    ["arm", "retire", "exam", "x"],
    ["events", "exam"],
    ["export", "exam"],
    ["verify"],
    ["verify", "exam"],
    ["withdraw", "exam", "ana", "--reason", "left"],
    ["delete", "exam", "--yes"],
    ["rebuild"],
    ["copy", "--to", "sqlite:///copy.db"],
    ["backup", "--to", "backup.db"],
    ["upgrade"],
    ["serve", "--port", "0"],
    ["console", "--port", "0"],
    ["keys", "create", "--role", "admin"],
    ["keys", "list"],
    ["keys", "revoke", "x"],
]
"""Every command on a store that must not make one, with arguments that are right."""
MAY_MAKE_A_STORE = {"create", "restore"}


def test_every_command_on_a_store_is_checked_below() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    pairs = [
        (name, *more)
        for name, one in commands.items()
        for more in ([(sub,) for sub in getattr(one, "commands", {})] or [()])
    ]
    with_store = {
        pair
        for pair in pairs
        if "store"
        in {one.name for one in (commands[pair[0]] if len(pair) == 1 else commands[pair[0]].commands[pair[1]]).params}
    }
    checked = {tuple(one[:2]) if one[0] in ("arm", "keys") else (one[0],) for one in EXISTING_ONLY}
    assert with_store == checked | {(name,) for name in MAY_MAKE_A_STORE}


@pytest.mark.parametrize("command", EXISTING_ONLY, ids=" ".join)
def test_a_mistyped_store_is_an_error_and_makes_nothing(run: Runner, command: list[str], tmp_path: Path) -> None:
    missing = run(*command, "--store", "sqlite:///scool.db")
    assert (missing.code, missing.out) == (1, "")
    assert missing.err.startswith("error: there is no store scool.db\nhint: ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", EXISTING_ONLY, ids=" ".join)
def test_a_file_without_a_store_is_an_error_and_left_alone(run: Runner, command: list[str], tmp_path: Path) -> None:
    Path("empty.db").touch()
    with closing(sqlite3.connect("other.db")) as other:
        other.execute("CREATE TABLE bookmarks (url)")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for name, what in (("empty.db", "an empty file"), ("other.db", "a database of another program")):
        found = run(*command, "--store", f"sqlite:///{name}")
        assert (found.code, found.out) == (1, "")
        assert found.err.startswith(f"error: there is no store in {name}, which is {what}\nhint: ")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_postgresql_database_without_a_store_is_an_error(run: Runner, postgresql_url: str) -> None:
    for command in (["verify"], ["keys", "create", "--role", "admin"], ["upgrade"]):
        found = run(*command, "--store", postgresql_url)
        assert (found.code, found.out) == (1, "")
        assert found.err.startswith("error: there is no store in postgresql://")
    assert run("create", "x", "--arms", "a,b", "--policy", "Uniform", "--store", postgresql_url).code == 0
    assert run("verify", "--store", postgresql_url).code == 0


@pytest.mark.parametrize(
    "command", [["verify"], ["verify", "--json"], ["rebuild"], ["copy", "--to", "sqlite:///copy.db"]]
)
def test_a_store_without_experiments_is_no_success(run: Runner, command: list[str]) -> None:
    eq.open_store(STORE).close()
    found = run(*command)
    assert (found.code, found.out) == (1, "")
    assert found.err.startswith(f"error: {STORE} has no experiments\nhint: ")
    assert not Path("copy.db").exists()


def test_verifying_an_unknown_experiment_fails(run: Runner, exam: eq.Experiment) -> None:
    found = run("verify", "exams", "exam")
    assert (found.code, found.out) == (1, "exam: 1 event with 0 decisions replayed, all as recorded\n")
    assert found.err.startswith(f"error: exams: {STORE} has no experiment 'exams'")


def test_what_is_not_there_is_told_with_the_next_step(run: Runner, exam: eq.Experiment) -> None:
    assert run("ask", "exams", "ana") == Result(
        1, "", f"error: {STORE} has no experiment 'exams'\nhint: equipoise list shows its experiments\n"
    )
    assert (
        "hint: check the spelling and the experiment; equipoise export NAME lists its units"
        in run("tell", "exam", "ana", 1).err
    )
    assert run("tell", "exam", "ana").code == 2
    assert run("ask", "exam").code == 2
    assert run("ask", "exam", "ana", "--file", "-").code == 2


# --- files ------------------------------------------------------------------------------------------------------------


def test_a_file_of_units_gives_what_single_asks_give(run: Runner, exam: eq.Experiment) -> None:
    Path("units.txt").write_text(units(1203))
    result = run("ask", "exam", "--file", "units.txt")
    assert (result.code, result.err) == (0, "1,203 units: 1,203 assigned now, 0 before\n")
    rows = list(csv.DictReader(io.StringIO(result.out)))
    policy = eq.PooledBalance(reward_weight=0.6, tracking="windowed")
    twin = eq.Experiment.create("memory:", "exam", arms=["line", "pie", "none"], policy=policy, seed=7)
    expected = [twin.ask(f"unit-{i}") for i in range(1203)]
    assert [(row["unit"], row["arm"]) for row in rows] == [(one.unit, one.arm) for one in expected]
    assert [float(row["probability"]) for row in rows] == [one.probability for one in expected]
    again = run("ask", "exam", "--file", "units.txt")
    assert (again.out, again.err) == (result.out, "1,203 units: 0 assigned now, 1,203 before\n")


@pytest.mark.parametrize(
    "text",
    ["ana\nbob, jr\n\n", "\ufeffage, Unit\n7,ana\n\n8,'bob'\n9,\"bob, jr\"\n", "ana\r\nbob, jr\r\n"],
    ids=["lines", "CSV", "Windows"],
)
def test_units_come_as_lines_or_as_csv(run: Runner, exam: eq.Experiment, text: str) -> None:
    options = [] if "Unit" in text else ["--no-header"]
    result = run("ask", "exam", "--file", "-", "--json", "--quiet", *options, stdin=text.encode())
    assert (result.code, result.err) == (0, "")
    found = [json.loads(line)["unit"] for line in result.out.splitlines()]
    assert found == (["ana", "'bob'", "bob, jr"] if "'bob'" in text else ["ana", "bob, jr"])


@pytest.mark.parametrize(
    "text", ["unit,reward\nana,1\nbob,0.5\n", "ana,1\nbob,0.5\n", "reward;x,Unit , REWARD\n1,ana,1\n2,bob,.5"]
)
def test_rewards_come_as_csv_with_or_without_a_header(run: Runner, exam: eq.Experiment, text: str) -> None:
    exam.ask_many(["ana", "bob"])
    result = run("tell", "exam", "--file", "-", stdin=text.encode())
    assert result == Result(0, "2 rewards: 2 new, 0 told before; 2 are in the estimates\n", "")
    assert exam.status().average_reward == 0.75
    assert run("tell", "exam", "--file", "-", stdin=text.encode()).out.startswith("2 rewards: 0 new, 2 told before")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "unit,reward\nana,1\nbob,one\n",
            "standard input, line 3, column reward: expected a number; got 'one'; nothing",
        ),
        ("unit,reward\nana,1\n\nbob,\n", "standard input, line 4, column reward: expected a number; got nothing"),
        ("ana,1\nbob,nan\n", "standard input, line 2, column reward: expected a number; got 'nan'"),
        ("ana,1\n,1\n", "standard input, line 2, column unit: expected a unit; got nothing"),
        ("unit,score\nana,1\n", "standard input, line 1: expected a header with columns unit and reward"),
        ("", "standard input, line 1: expected a header with columns unit and reward; got nothing"),
    ],
)
def test_a_file_that_is_wrong_is_refused_before_anything_is_recorded(
    run: Runner, exam: eq.Experiment, text: str, message: str
) -> None:
    exam.ask_many(["ana", "bob"])
    result = run("tell", "exam", "--file", "-", stdin=text.encode())
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"error: {message}")
    assert exam.status().n_rewarded == 0


def test_a_refused_line_is_named_and_what_came_before_is_kept(run: Runner, exam: eq.Experiment) -> None:
    exam.ask_many([f"unit-{i}" for i in range(1200)])
    lines = [f"unit-{i},0.5" for i in range(1200)]
    exam.tell("unit-700", 0.25)
    Path("rewards.csv").write_text("\n".join(lines))
    result = run("tell", "exam", "--file", "rewards.csv")
    assert result == Result(
        1,
        "",
        "error: rewards.csv, line 701: the reward of unit 'unit-700' was told before and is 0.25; got 0.5\n"
        "hint: equipoise correct replaces it, and logs why\n"
        "700 of 1,200 rewards are recorded; the same command again is harmless\n",
    )
    assert exam.status().n_rewarded == 701
    kept = run("tell", "exam", "--file", "rewards.csv", "--keep-going")
    assert kept == Result(
        1,
        "",
        "refused: rewards.csv, line 701: the reward of unit 'unit-700' was told before and is 0.25; got 0.5\n"
        "hint: equipoise correct replaces it, and logs why\n"
        "error: 1 of 1,200 rewards of rewards.csv were refused; the others are recorded\n",
    )
    assert exam.status().n_rewarded == 1200
    lines[700] = "unit-700,0.25"
    Path("rewards.csv").write_text("\n".join(lines))
    assert run("tell", "exam", "--file", "rewards.csv").out.startswith("1,200 rewards: 0 new, 1,200 told before")
    assert exam.verify().n_decisions == 1200


def test_units_known_before_a_pause_are_answered_up_to_the_first_new_one(run: Runner, exam: eq.Experiment) -> None:
    exam.ask_many(["unit-0", "unit-1"])
    exam.pause()
    result = run("ask", "exam", "--file", "-", stdin=units(4).encode())
    assert [line.split(",")[0] for line in result.out.splitlines()] == ["unit", "unit-0", "unit-1"]
    assert result.err == (
        "error: standard input, line 3: experiment 'exam' is paused and takes no new units; got 'unit-2'\n"
        "hint: equipoise resume NAME takes new units again\n"
        "2 of 4 units are recorded; the same command again is harmless\n"
    )


def test_a_group_that_fails_in_the_database_is_not_sent_one_by_one(run: Runner, exam: eq.Experiment) -> None:
    calls = []

    def send(group: object) -> list[object]:
        calls.append(group)
        raise eq.StoreUnavailable("gone")

    rows = [Row(i, f"unit-{i}") for i in range(3)]
    with pytest.raises(eq.StoreUnavailable, match="gone"):
        feeding.feed(UnitFile("x", None, rows, []), send, calls.append, noun="units", show=False, keep_going=True)
    assert len(calls) == 1


def test_control_c_keeps_what_was_recorded_and_the_same_command_does_the_rest(run: Runner, exam: eq.Experiment) -> None:
    Path("units.txt").write_text(units(60_000))
    command = [*COMMAND, "ask", "exam", "--file", "units.txt"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as process:
        assert process.stdout is not None
        for _ in range(600):
            process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.startswith("interrupted; ")
    assert err.endswith(" of 60,000 units are recorded, the same command does the rest\n")
    printed = 600 + rest.count("\n") - 1
    assert printed <= exam.status().n_assigned < 60_000
    assert exam.verify().n_decisions == exam.status().n_assigned


# --- the experiment itself --------------------------------------------------------------------------------------------


def test_enrolment_pauses_resumes_stops_and_ends(run: Runner, exam: eq.Experiment) -> None:
    exam.ask("ana")
    for command, state in (("pause", "paused"), ("resume", "enrolling"), ("stop", "stopped")):
        assert run(command, "exam") == Result(0, f"exam is {state}; rewards pending: 1\n", "")
    assert run("resume", "exam").code == 1
    assert run.data("finish", "exam") == {"name": "exam", "state": "finished", "n_pending": 1}
    assert run("tell", "exam", "ana", 1).code == 1


def test_arms_come_and_go(run: Runner, exam: eq.Experiment) -> None:
    assert run("arm", "add", "exam", "video", "--floor", 0.1).out == "video is active; arms in play: 4\n"
    assert run("arm", "pause", "exam", "pie").out == "pie is paused; arms in play: 3\n"
    assert run("arm", "resume", "exam", "pie").out == "pie is active; arms in play: 4\n"
    retired = run.data("arm", "retire", "exam", "pie")
    assert retired == {"name": "exam", "arm": "pie", "state": "retired", "n_active": 3}
    assert run("arm", "add", "exam", "audio", "--floor", 2).err == "error: --floor must be in [0, 1]; got 2.0\n"
    assert "a changed arm is a new arm" in run("arm", "resume", "exam", "pie").err
    assert "unknown" in run("arm", "pause", "exam", "nix").err


def test_the_dial_is_tried_and_turned(run: Runner, exam: eq.Experiment) -> None:
    assert run("what-if", "exam", 0.9).code == 1
    for i in range(60):
        found = exam.ask(f"unit-{i}")
        exam.tell(found.unit, {"line": 0.5, "pie": 0.7, "none": 0.3}[found.arm] + 0.01 * (i % 5))
    other = exam.what_if(0.9)
    data = run.data("what-if", "exam", 0.9)
    assert data["allocation"] == other.allocation
    assert data["error_ratio"] == other.error_ratio
    table = run("what-if", "exam", 0.9).out.splitlines()
    assert table[0].split() == ["arm", "at", "0.6", "at", "0.9", "+/-", "at", "0.6", "+/-", "at", "0.9"]
    shares = [f"{other.present_allocation['pie']:.4f}", f"{other.allocation['pie']:.4f}"]
    widths = [other.present_half_widths["pie"], other.half_widths["pie"]]
    assert table[2].split()[:3] == ["pie", *shares]
    assert [float(text) for text in table[2].split()[3:]] == pytest.approx(widths, abs=0.005)
    assert data["half_widths"] == other.half_widths and data["more_units"] == 60
    later = run.data("what-if", "exam", "90%", "--more-units", "6,000")
    assert later["more_units"] == 6000 and later["half_widths"]["pie"] < other.half_widths["pie"]
    last = run("what-if", "exam", 0.9, "--more-units", 6000).out
    assert f"-> {max(later['half_widths'].values()):.3f}"[:6] in last and "in status after 6,000 more units" in last
    assert run("weight", "exam", 0.9).out == "exam: the weight is 0.9, it was 0.6\n"
    assert exam.configuration.reward_weight == 0.9
    assert "reward_weight must be in [0, 1]" in run("weight", "exam", 3).err


def test_the_positions_of_the_dial_have_prices(run: Runner, exam: eq.Experiment) -> None:
    assert run("prices", "exam").out == "exam: no prices yet; it needs 4 rewards of each arm; 'line' has 0\n"
    for i in range(80):
        found = exam.ask(f"unit-{i}")
        exam.tell(found.unit, {"line": 0.5, "pie": 0.7, "none": 0.3}[found.arm] + 0.07 * (i % 5))
    prices = exam.prices(people_per_day=20)
    data = run.data("prices", "exam", "--people-per-day", 20)
    assert data | {"at": ""} == json.loads(json.dumps(prices.to_dict())) | {"at": ""}
    lines = run("prices", "exam").out.splitlines()
    assert lines[0].split()[:3] == ["dial", "get", prices.best]
    (now,) = [line for line in lines[: lines.index("")] if "now" in line]
    assert now.split()[0] == f"{exam.configuration.reward_weight:g}" and "x 1.00" in now
    every = run("prices", "exam", "--all").out.splitlines()
    assert every.index("") - 1 == len(prices.positions) > lines.index("") - 1
    rows = run("prices", "exam", "--csv").out.splitlines()
    assert len(rows) == 1 + len(prices.positions) and rows[0].startswith("position,name,reward_weight")
    assert "must be" in run("prices", "exam", "--people-per-day", -1).err


def test_the_dial_is_set_by_the_information_to_keep(run: Runner, exam: eq.Experiment) -> None:
    for i in range(60):
        found = exam.ask(f"unit-{i}")
        exam.tell(found.unit, {"line": 0.5, "pie": 0.7, "none": 0.3}[found.arm] + 0.01 * (i % 5))
    other = exam.what_if(information_kept=0.5, information_about="every-arm")
    arguments = ("--information-kept", 0.5, "--information-about", "every-arm")
    data = run.data("what-if", "exam", *arguments)
    assert (data["allocation"], data["information"]) == (other.allocation, other.information)
    lines = run("what-if", "exam", *arguments).out.splitlines()
    assert lines[0].split() == ["arm", "now", "then", "+/-", "if", "kept", "+/-", "if", "changed"]
    assert lines[5] == "+/-: in status after 60 more units"
    assert lines[7:9] == ["now   reward weight 0.6", "then  50% of the information kept about every arm"]
    first = next(i for i, line in enumerate(lines) if line.startswith("information  "))
    assert [line.partition(" about ")[2] for line in lines[first : first + 3]] == [
        "the arms on average",
        "every arm",
        "which arm is best",
    ]
    assert abs(other.information["every-arm"] - 0.5) > 0.02
    assert lines[first + 4].startswith("The last lines measure the shares by the estimates so far.")
    exact = run("what-if", "exam", "--information-kept", 1).out
    assert "The last lines" not in exact or abs(exam.what_if(information_kept=1).information["average"] - 1) > 0.02
    turned = "exam: 50% of the information kept about every arm; it was reward weight 0.6\n"
    assert run("dial", "exam", *arguments).out == turned
    assert exam.status().information_kept == 0.5
    last = run("events", "exam", "--last", 1).out.splitlines()[-1]
    words = "set the dial to 50% of the information kept about every arm (was reward weight 0.6)"
    assert last.startswith(f"event {exam.status().n_events}: ") and last.endswith(words)
    data = run.data("dial", "exam", "--information-kept", 0.7, "--information-about", "average")
    about = {"information_kept": 0.7, "information_about": "average"}
    assert data == {"name": "exam", "dial": about, "was": {"information_kept": 0.5, "information_about": "every-arm"}}
    weight = exam.status().reward_weight
    words = f"dial: 70% of the information kept about the arms on average; weight now {weight:.4g}"
    assert words in run("status", "exam").out.splitlines()
    assert "PooledBalance 70% average" in run("list").out
    goal = run.data("dial", "exam", "--half-width", 0.005, "--units", 100)["dial"]
    assert goal == exam.configuration.dial and goal["information_about"] == "every-arm"
    assert run("weight", "exam", 0.9).out.startswith("exam: the weight is 0.9, it was ")
    one_of = "error: give one of --reward-weight, --information-kept and --half-width; got "
    assert run("dial", "exam").err == f"{one_of}none\n"
    assert run("what-if", "exam").err == f"{one_of}none\n"
    both = run("what-if", "exam", 0.5, "--information-kept", 0.5).err
    assert both == f"{one_of}--reward-weight and --information-kept\n"
    assert run("dial", "exam", "--information-kept", 2).err == "error: --information-kept must be in (0, 1]; got 2.0\n"
    assert "--half-width must be at least" in run("dial", "exam", "--half-width", 1e-6, "--units", 100).err


def test_a_file_sets_the_dial_and_options_set_it_instead(run: Runner) -> None:
    beginning = 'arms = ["a", "b"]\nreward_range = [0, 1]\n'
    best = 'information_kept = 0.7\ninformation_about = "best-arm"\nsmallest_difference = 0.02\n'
    goal = "half_width = 0.05\nunits = 1000\n"
    full = {"information_kept": 0.7, "information_about": "best-arm", "smallest_difference": 0.02}

    def dial(text: str, *options: object) -> dict[str, object]:
        Path("x.toml").write_text(beginning + text)
        made = run.data("create", f"exam-{dial.__dict__.setdefault('n', 0)}", "--file", "x.toml", *options)
        dial.__dict__["n"] += 1
        return eq.Experiment.open(STORE, made["name"]).configuration.dial

    assert dial(best) == full
    assert dial('policy = "ForcingBalance"\n' + best) == full
    assert dial(best, "--information-kept", 0.5) == full | {"information_kept": 0.5}
    assert dial(best, "--reward-weight", 0.5) == {"reward_weight": 0.5}
    assert dial("reward_weight = 0.5\n", "--information-kept", 0.5)["information_kept"] == 0.5
    kept = dial(goal)
    assert kept["information_about"] == "every-arm"
    assert dial(goal, "--units", 2000)["information_kept"] == pytest.approx(kept["information_kept"] / 2)
    assert dial(goal, "--information-kept", 0.5) == {"information_kept": 0.5, "information_about": "average"}
    for text, message in (
        ("information_kept = 7\n", "information_kept must be in (0, 1]; got 7"),
        ('policy = "ForcingBalance"\ninformation_kept = 7\n', "information_kept must be in (0, 1]; got 7"),
        (best + "reward_weight = 0.5\n", "give either reward_weight or information_kept; got both (0.5 and 0.7)"),
        ("half_width = 0.01\nunits = 100\n", "half_width must be at least 0.1387 for 100 units; got 0.01"),
    ):
        Path("x.toml").write_text(beginning + text)
        result = run("create", "never", "--file", "x.toml")
        assert result.err.startswith(f"error: x.toml: {message}"), result.err


# --- looking ----------------------------------------------------------------------------------------------------------


def test_the_status_is_the_librarys(run: Runner, exam: eq.Experiment) -> None:
    for i in range(40):
        exam.tell(exam.ask(f"unit-{i}").unit, i % 4 / 4)
    exam.ask("ana")
    status, shown = exam.status(), run.data("status", "exam")
    assert shown == {**json.loads(json.dumps(status.to_dict())), "at": shown["at"]}
    table = run("status", "exam").out.splitlines()
    assert table[0] == "exam: enrolling, PooledBalance(reward_weight=0.6, tracking='windowed')"
    assert table[1].split() == ["arm", "assigned", "rewarded", "pending", "mean", "+/-", "std", "share", "target"]
    for line, arm in zip(table[2:5], status.arms, strict=True):
        name, assigned, rewarded, pending, mean, half_width, std, share, target = line.split()
        assert (name, int(assigned), int(rewarded), int(pending)) == (arm.arm, arm.assigned, arm.rewarded, arm.pending)
        assert [float(mean), float(half_width)] == pytest.approx([arm.mean, arm.half_width], abs=5.1e-3)
        assert [float(std), float(share), float(target)] == pytest.approx(
            [arm.std, arm.actual_share, arm.target_share], abs=5.1e-4
        )
    assert table[5].split() == ["total", "41", "40", "1", f"{status.average_reward:.2f}"]


def test_an_interval_is_shown_with_two_digits_however_round_the_means_are() -> None:
    experiment = eq.Experiment.create("memory:", "exam", arms=["a", "b"], policy=eq.Uniform(), seed=1)
    experiment.ask_many([f"unit-{i}" for i in range(2000)])
    experiment.tell_many([(f"unit-{i}", 3 + i // 2 % 3 - 1) for i in range(1998)])
    found = experiment.status().arms[0]
    assert found.mean == 3
    line = status_lines(experiment.status(), width=80)[2].text.split()
    assert line[4:6] == ["3.000", f"{found.half_width:.3f}"]
    assert 0.01 < float(line[5]) < 0.1


@pytest.mark.parametrize("width", [75, 80, 100, 200])
def test_the_status_fits_the_terminal(width: int) -> None:
    names = [f"{'x' * 60}{i}" for i in range(30)]
    experiment = eq.Experiment.create(
        "memory:",
        "exam",
        arms=names,
        policy=eq.Uniform(),
        seed=1,
        stopping=eq.Precision(half_width=1),
        missing=eq.DropUnit(window_seconds=1e-6),
    )
    experiment.ask_many([f"unit-{i}" for i in range(100)])
    experiment.settle()
    experiment.tell_many([(f"unit-{i}", 12345.678 * i) for i in range(0, 100, 3)])
    lines = status_lines(experiment.status(), width=width, height=20)
    table = [line.text for line in lines[1 : 2 + 30]]
    assert max(len(line.text) for line in lines) <= width
    assert len(lines) <= 20
    assert any(line.text.startswith("... ") and line.text.endswith(" more arms") for line in lines)
    assert ("std" in table[0].split()) == (width >= 100)
    assert len({line.split()[0] for line in table[1:8]}) == 7, "names that are cut can be told apart"


def test_watching_ends_with_the_experiment(run: Runner, exam: eq.Experiment) -> None:
    command = [*COMMAND, "status", "exam", "--watch", "--every", "0.05", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["n_assigned"] == 0
        exam.ask("ana")
        assert json.loads(process.stdout.readline())["n_assigned"] == 1
        exam.finish()
        assert json.loads(process.stdout.readline())["state"] == "finished"
        assert process.wait(60) == 0
    assert run("status", "exam", "--watch").out == run("status", "exam").out
    assert run("status", "exam", "--every", 0).code == 2


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_watching_on_a_terminal_is_ended_by_control_c(run: Runner, exam: eq.Experiment) -> None:
    import pty

    exam.ask("ana")
    ours, theirs = pty.openpty()
    environment = ENVIRONMENT | {"TERM": "xterm-256color", "LINES": "40"}
    command = [*COMMAND, "status", "exam", "--watch", "--every", "0.05"]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=theirs, env=environment) as process:
        os.close(theirs)
        seen, ends = b"", time.monotonic() + 60
        while seen.count(b"assigned") < 3 and time.monotonic() < ends:
            seen += os.read(ours, 65536)
        process.send_signal(signal.SIGINT)
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the other side is closed
                break
            if not piece:
                break
            seen += piece
        assert process.wait(60) == 130
    os.close(ours)
    screen = seen.decode()
    assert "exam: enrolling" in screen
    assert screen.rindex("\x1b[?25h") > screen.rindex("\x1b[?25l"), "the cursor comes back"
    assert "Traceback" not in screen


def test_events_are_the_log(run: Runner, exam: eq.Experiment) -> None:
    exam.ask("ana")
    exam.tell("ana", 1)
    log = [event.to_dict() for event in exam.events()]
    assert [json.loads(line) for line in run("events", "exam", "--json").out.splitlines()] == log
    rows = list(csv.DictReader(io.StringIO(run("events", "exam", "--after", 1, "--csv").out)))
    assert [(row["number"], row["kind"], row["unit"]) for row in rows] == [
        ("2", "assigned", "ana"),
        ("3", "rewarded", "ana"),
    ]
    table = run("events", "exam", "--last", 1).out.splitlines()
    assert table[1].split()[:3] == ["3", "rewarded", "ana"]
    assert len(table) == 2
    assert run("events", "exam", "--last", 0).code == 2


def test_the_export_adds_up_to_the_status(run: Runner, exam: eq.Experiment) -> None:
    exam.ask_many([f"unit-{i}" for i in range(50)])
    exam.tell_many([(f"unit-{i}", 0.5) for i in range(20)])
    rows = list(csv.DictReader(io.StringIO(run("export", "exam").out)))
    assert len(rows) == run.data("status", "exam")["n_assigned"] == 50
    assert sum(row["counted_reward"] != "" for row in rows) == 20
    lines = [json.loads(line) for line in run("export", "exam", "--json").out.splitlines()]
    assert [line["unit"] for line in lines] == [row["unit"] for row in rows]
    assert run("export", "exam", "--out", "x.csv") == Result(0, "", "50 units written to x.csv\n")
    assert Path("x.csv").read_text() == run("export", "exam").out
    assert run("export", "exam", "--out", "x.csv", "--json").code == 2
    assert run("export", "exam", "--out", "x.doc").code == 2


def test_finishing_with_rewards_held_back_must_be_meant(run: Runner) -> None:
    with eq.open_store("sqlite:///equipoise.db") as store:
        missing = eq.WaitForReward(window_seconds=3600, hold=True)
        held = eq.Experiment.create(store, "held", arms=["a", "b"], policy=eq.Uniform(), missing=missing)
        held.ask("ada")
        held.tell("ada", 1.0)
    refused = run("finish", "held")
    assert refused.code == 1
    assert "has 1 unit whose window is open and holds back 1 reward; " in refused.err
    assert "--anyway" in refused.err
    assert run.data("finish", "held", "--anyway")["state"] == "finished"


def test_finishing_while_a_reward_may_still_come_must_be_meant(run: Runner) -> None:
    assert (
        run("create", "week", "--arms", "a,b", "--policy", "Uniform", "--missing", "drop", "--window", "7d").code == 0
    )
    closes = eq.Experiment.open(STORE, "week").ask("ada").at + timedelta(days=7)
    refused = run("finish", "week", "--yes")
    assert refused == Result(
        1,
        "",
        "error: experiment 'week' has 1 unit whose window is open; if it were finished now, their rewards would never "
        f"be counted; the last window passes at {closes:%Y-%m-%d %H:%M:%S} UTC\n"
        "hint: finish after that, or now with --anyway\n",
    )
    assert run.data("status", "week")["state"] == "enrolling"
    assert run.data("finish", "week", "--anyway")["state"] == "finished"


def test_finish_asks_at_a_terminal_for_the_name(run: Runner, exam: eq.Experiment) -> None:
    exam.ask("ana")
    for answer in ("y\n", "exams\n", "\n", "\x04"):
        declined = run.at_terminal("finish", "exam", answer=answer)
        assert (declined.code, declined.out) == (1, "")
        assert declined.err == (
            "finish closes exam for good, and nothing can undo it; rewards pending: 1, which will be refused\n"
            "type exam to go on: nothing was changed\n"
        )
        assert exam.status().state == "enrolling"
    done = run.at_terminal("finish", "exam", answer="exam\n")
    assert (done.code, done.out) == (0, "exam is finished; rewards pending: 1\n")
    assert run.at_terminal("finish", "exam") == Result(0, done.out, ""), "there is nothing left to ask"


def test_finish_asks_nobody_who_said_yes(run: Runner, exam: eq.Experiment) -> None:
    assert run.at_terminal("finish", "exam", "--yes") == Result(0, "exam is finished; rewards pending: 0\n", "")


def test_delete_asks_at_a_terminal_for_the_name(run: Runner, exam: eq.Experiment) -> None:
    exam.ask("ana")
    declined = run.at_terminal("delete", "exam", answer="y\n")
    assert (declined.code, declined.out) == (1, "")
    assert declined.err == (
        "delete removes exam and its log, and nothing can undo it; assignments forgotten: 1\n"
        "type exam to go on: nothing was changed\n"
    )
    assert exam.status().n_assigned == 1
    assert run.at_terminal("delete", "exam", answer="exam\n")[:2] == (0, "exam is deleted\n")
    assert run("status", "exam").code == 1


def test_an_experiment_with_rewards_is_not_deleted(run: Runner, exam: eq.Experiment) -> None:
    exam.ask("ana")
    exam.tell("ana", 1.0)
    refused = run("delete", "exam", "--yes")
    assert refused.code == 1 and "has rewards" in refused.err and "equipoise finish" in refused.err
    assert exam.status().n_rewarded == 1


def test_units_are_listed_by_state_and_name(run: Runner, exam: eq.Experiment) -> None:
    exam.ask_many(["bob", "ana", "al"])
    exam.tell("ana", 0.5)
    exam.correct("ana", 0.25, "misread")

    def listed(*options: str) -> list[str]:
        result = run("units", "exam", *options, "--json")
        assert result.code == 0, result.err
        return [json.loads(line)["unit"] for line in result.out.splitlines()]

    assert listed() == ["al", "ana", "bob"]
    assert listed("--prefix", "a") == ["al", "ana"]
    assert listed("--waiting") == listed("--state", "waiting") == ["bob", "al"]
    assert listed("--state", "counted", "--prefix", "a") == ["ana"]
    assert listed("--overdue") == listed("--held") == []
    first = run("units", "exam", "--limit", "1")
    assert first.out.splitlines()[1].split()[:3:2] == ["al", "waiting"] and "there may be more" in first.err
    [header, row] = csv.reader(run("units", "exam", "--state", "counted", "--csv").out.splitlines())
    assert dict(zip(header, row, strict=True)) | {"at": ""} == {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in (exam.unit("ana").to_dict() | {"at": ""}).items()
    }
    both = run("units", "exam", "--held", "--overdue")
    assert both.code == 2 and "give one state; got overdue and held" in both.err
    log = run("unit", "exam", "ana", "--events").out
    assert "corrected 0.25" in log and log.rstrip().endswith("misread")
    data = json.loads(run("unit", "exam", "ana", "--events", "--json").out)
    assert data["events"] == [event.to_dict() for event in exam.unit_events("ana")]


def test_a_unit_is_withdrawn_and_erased(run: Runner, exam: eq.Experiment) -> None:
    for unit in ("ana", "ben"):
        exam.ask(unit, {"class": "4b"})
        exam.tell(unit, 1.0)
    assert run("withdraw", "exam", "ana", "--reason", "left the school").code == 0
    assert exam.status().n_rewarded == 1 and exam.unit("ana").state == "withdrawn"
    assert list(exam.events())[-1].details == {"reason": "left the school"}
    refused = run("tell", "exam", "ana", "1")
    assert refused.code == 1 and "withdrawn" in refused.err
    assert run("withdraw", "exam", "ana", "--reason", "left the school", "--erase").code == 0
    assert not any(word in run("events", "exam", "--json").out for word in ("ana", "left the school"))
    assert run("unit", "exam", "ana").code == 1
    assert run("verify").code == 0


def test_nobody_is_assigned_beyond_the_limit(run: Runner) -> None:
    assert run("create", "small", "--arms", "a,b", "--policy", "Uniform", "--most-units", "2").code == 0
    assert [run("ask", "small", unit).code for unit in ("ana", "ben", "cyd", "ana")] == [0, 0, 1, 0]


def test_verify_finds_what_was_tampered_with_and_rebuild_mends_it(run: Runner, exam: eq.Experiment) -> None:
    assert run("create", "other", "--arms", "a,b", "--policy", "Uniform").code == 0
    exam.ask_many([f"unit-{i}" for i in range(10)])
    exam.tell_many([(f"unit-{i}", 0.5) for i in range(10)])
    good = "exam: 21 events with 10 decisions replayed, all as recorded\n"
    other = "other: 1 event with 0 decisions replayed, all as recorded\n"
    assert run("verify") == Result(0, good + other, "")
    with sqlite3.connect("equipoise.db") as connection:
        connection.execute("UPDATE arms SET pulls = pulls + 1 WHERE position = 0 AND name = 'line'")
    connection.close()
    bad = run("verify")
    assert (bad.code, bad.out) == (1, other), "one that fails does not hide the others"
    assert bad.err.startswith("error: exam: pulls of arm 'line' should be ")
    assert "hint: equipoise rebuild NAME restores the tables from the log" in bad.err
    assert run("rebuild", "exam", "--who", "ana").out == "exam: rebuilt from the log\n"
    assert list(exam.events())[-1].who == "ana"
    assert run("rebuild").out.startswith("exam: as the log says; nothing to do\n")
    checked = run.data("verify", "exam")["experiments"][0]  # type: ignore[index]
    assert (checked["passed"], checked["n_events"]) == (True, 22), "that it was rebuilt is in the log"


# --- stores -----------------------------------------------------------------------------------------------------------


def test_an_experiment_moves_from_sqlite_to_postgresql_and_goes_on(
    run: Runner, exam: eq.Experiment, postgresql_url: str
) -> None:
    exam.ask_many([f"unit-{i}" for i in range(30)])
    exam.tell_many([(f"unit-{i}", i % 3 / 3) for i in range(20)])
    twin = exam.copy_to("memory:")
    result = run("copy", "--to", postgresql_url)
    assert result.code == 0
    assert result.out.startswith("exam: 51 events copied to postgresql://")
    assert result.err.startswith(f"note: exam still takes units in {STORE} as well; ")
    moved = ("--store", postgresql_url)
    late = run("tell", "exam", "unit-25", 1, *moved)
    assert late.out == run("tell", "exam", "unit-25", 1, "--store", STORE).out
    twin.tell("unit-25", 1)
    for i in range(30, 60):
        assert run("ask", "exam", f"unit-{i}", *moved).out.strip() == twin.ask(f"unit-{i}").arm
    assert run("verify", *moved).out == "exam: 82 events with 60 decisions replayed, all as recorded\n"
    assert "experiment 'exam' already" in run("copy", "exam", "--to", postgresql_url).err
    assert "is where 'exam' is already" in run("copy", "exam", "--to", STORE).err
    assert run("copy", "nix", "--to", postgresql_url).code == 1


def test_upgrade_says_what_it_did(run: Runner, exam: eq.Experiment) -> None:
    assert run("upgrade") == Result(0, f"the store has schema {REVISION}; nothing to do\n", "")
    assert run.data("upgrade") == {"store": STORE, "before": REVISION, "after": REVISION}
    with sqlite3.connect("foreign.db") as connection:
        connection.execute("CREATE TABLE experiments (x)")
    connection.close()
    assert "there is no store in foreign.db" in run("upgrade", "--store", "sqlite:///foreign.db").err


def test_a_password_is_never_shown(run: Runner) -> None:
    result = run("list", "--store", "postgresql://ana:secret@localhost:1/x")
    assert result.code == 1
    assert "secret" not in result.out + result.err
    assert "postgresql://ana:***@localhost:1/x" in result.err


@pytest.mark.parametrize("arguments", [["list"], ["keys", "list"]])
def test_what_looks_at_no_rewards_loads_no_compiler(exam: eq.Experiment, arguments: list[str]) -> None:
    script = (
        "import sys\nfrom equipoise.cli import main\n"
        f"sys.argv = {['equipoise', *arguments, '--store', STORE]!r}\n"
        "try:\n    main()\nexcept SystemExit as exit:\n    assert not exit.code\n"
        "assert 'numba' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], env=ENVIRONMENT, check=True, timeout=120)


# --- the help ---------------------------------------------------------------------------------------------------------


def test_the_help_groups_the_commands(run: Runner) -> None:
    text = run("--help").out
    places = [text.index(f" {panel} ") for panel in ("Planning", "Simulation", "Live experiments", "Records")]
    assert places == sorted(places)
    assert places[2] < text.index("\u2502 arm ") < places[3]


@pytest.mark.parametrize("command", ["create", "ask", "status", "copy", "arm"])
def test_help_of_a_live_command_loads_nothing_heavy(command: str) -> None:
    script = (
        "import sys\nfrom equipoise.cli import main\n"
        f"sys.argv = ['equipoise', {command!r}, '--help']\n"
        "try:\n    main()\nexcept SystemExit as exit:\n    assert not exit.code\n"
        "heavy = {'numpy', 'numba', 'sqlalchemy', 'alembic', 'polars'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=ENVIRONMENT, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")
