"""The command line: what it prints, how it reads arms, what it says when something is wrong, and with which code."""

from __future__ import annotations

import copy
import csv
import io
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import golden
import numpy as np
import pytest
import typer
import typer.main
from command_runner import Result, Runner

import equipoise as eq
from equipoise import cli, terminal
from equipoise.cli.exit_codes import Command

FIVE = ("--mean", "1,1.5,2,4,5", "--std", ",".join(repr(float(std)) for std in golden.FIVE_STDS))
TWO = ("--mean", "1,2", "--std", "1,1")
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(eq.__file__).parents[1]), "COLUMNS": "100"}


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Compile before any test looks at stderr, where compiling is announced."""
    eq.optimal_allocation([0, 1], [1, 1], reward_weight=0.5)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runner:
    monkeypatch.setenv("COLUMNS", "100")
    return Runner(monkeypatch, capsys)


def start(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    command = [sys.executable, "-m", "equipoise.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT | variables, timeout=120)


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


# --- allocate ---------------------------------------------------------------------------------------------------------


def test_allocate_prints_the_known_optimum_of_the_five_arms(run: Runner) -> None:
    known = golden.OPTIMA[1]
    answer = json.loads(run("allocate", *FIVE, "--reward-weight", 0.9, "--json").out)
    shares = [arm["share"] for arm in answer["arms"]]
    assert shares == pytest.approx([0.0072685, 0.0100081, 0.0139701, 0.0785530, 0.8902003], abs=5.1e-8)
    assert shares == pytest.approx(known.allocation, abs=5.1e-8)
    assert answer["tradeoff"] == pytest.approx(3.9848346259, abs=5.1e-11)


def test_json_and_csv_carry_the_numbers_of_the_library_to_the_last_digit(run: Runner) -> None:
    best = eq.optimal_allocation(golden.FIVE_MEANS, golden.FIVE_STDS, reward_weight=0.3, floor=0.1)
    arguments = ("allocate", *FIVE, "--reward-weight", 0.3, "--floor", 0.1)
    answer = json.loads(run(*arguments, "--json").out)
    assert [arm["share"] for arm in answer["arms"]] == best.tolist()
    assert answer["reward"] == eq.reward(best, golden.FIVE_MEANS)
    assert answer["error"] == eq.error(best, golden.FIVE_STDS)
    assert answer["tradeoff"] == eq.tradeoff(best, golden.FIVE_MEANS, golden.FIVE_STDS, reward_weight=0.3)
    assert [float(row["share"]) for row in rows(run(*arguments, "--csv").out)] == best.tolist()


def test_the_table_is_what_people_expect_to_read(run: Runner) -> None:
    result = run("allocate", *TWO, "--name", "number line,pie", "--reward-weight", 0.5)
    assert result == Result(
        0,
        """\
arm          mean  std   share
number line     1    1  0.3115
pie             2    1  0.6885

reward weight  0.5
reward         1.68845
error          1.4984
trade-off      0.0950268
""",
        "",
    )


def test_a_horizon_adds_whole_pulls_and_the_error_they_leave(run: Runner) -> None:
    arguments = ("allocate", *FIVE, "--reward-weight", 0.9, "--horizon", 1000)
    pulls = eq.optimal_pulls(golden.FIVE_MEANS, golden.FIVE_STDS, horizon=1000, reward_weight=0.9)
    answer = json.loads(run(*arguments, "--json").out)
    assert [arm["pulls"] for arm in answer["arms"]] == pulls.tolist()
    assert answer["horizon"] == 1000
    # The definition, written out: the average over arms of std / sqrt(pulls).
    expected = np.mean(golden.FIVE_STDS / np.sqrt(pulls))
    assert answer["error_at_horizon"] == pytest.approx(expected, rel=1e-12)
    assert [int(row["pulls"]) for row in rows(run(*arguments, "--csv").out)] == pulls.tolist()
    table = run(*arguments).out
    assert table.splitlines()[0].split() == ["arm", "mean", "std", "share", "people", "+/-"]
    assert f"error after 1000 people  {expected:.6g}" in table
    assert answer["widest_half_width"] is None and answer["arms"][0]["half_width"] is None  # fewer than 30 people


def test_a_number_of_people_predicts_what_status_will_show(run: Runner) -> None:
    arguments = ("allocate", "--rates", "10%,30%", "--reward-weight", 0, "--people", "1,000")
    plain, bold = (run.data(*arguments, *more) for more in ((), ("--failure-probability", "20%")))
    assert plain["widest_half_width"] == max(arm["half_width"] for arm in plain["arms"]) > bold["widest_half_width"]
    assert (plain["horizon"], plain["reward_range"], bold["failure_probability"]) == (1000, [0, 1], 0.2)
    assert f"widest +/- in status     {plain['widest_half_width']:.3g}" in run(*arguments).out
    assert run.data(*arguments, "--range", "0,2")["widest_half_width"] > plain["widest_half_width"]
    assert "--range goes with --horizon" in run(*arguments[:-2], "--range", "0,1").err


@pytest.mark.parametrize(("goal", "value"), [("error", 3.0), ("reward", 4.5)])
def test_a_goal_may_be_given_instead_of_a_weight(run: Runner, goal: str, value: float) -> None:
    answer = json.loads(run("allocate", *FIVE, f"--{goal}", value, "--json").out)
    assert answer[goal] == pytest.approx(value, rel=1e-9)
    again = json.loads(run("allocate", *FIVE, "--reward-weight", answer["reward_weight"], "--json").out)
    assert again == answer


def test_floors_are_one_for_all_or_one_each(run: Runner) -> None:
    def shares(floor: str) -> list[float]:
        return [
            float(row["share"])
            for row in rows(run("allocate", *TWO, "--reward-weight", 1, "--floor", floor, "--csv").out)
        ]

    assert shares("0.25") == [0.25, 0.75]
    assert shares("0.4,0") == [0.4, 0.6]


def test_an_infinite_error_is_null_in_json_and_inf_elsewhere(run: Runner) -> None:
    text = run("allocate", *TWO, "--reward-weight", 1, "--json").out
    assert json.loads(text, parse_constant=pytest.fail)["error"] is None
    assert "error          inf" in run("allocate", *TWO, "--reward-weight", 1).out
    last = rows(run("frontier", *TWO, "--weights", "0,1", "--csv").out)[-1]
    assert last["error"] == "inf"
    points = json.loads(run("frontier", *TWO, "--weights", "0,1", "--json").out, parse_constant=pytest.fail)["points"]
    assert [point["error"] is None for point in points] == [False, True]


def test_large_rewards_that_differ_by_little_keep_the_difference(run: Runner) -> None:
    table = run("allocate", "--mean", "1e9,1000000001", "--std", "0,0", "--reward-weight", 0.5).out
    assert [line.split()[1] for line in table.splitlines()[1:3]] == ["1000000000", "1000000001"]
    assert "\nreward         1000000001\n" in table


def test_negative_means_and_names_with_commas_are_understood(run: Runner) -> None:
    found = rows(run("allocate", "--mean", "-1,2", "--std", "1,1", "--name", '"a, b",c', "--error", 2, "--csv").out)
    assert [(row["arm"], float(row["mean"])) for row in found] == [("a, b", -1.0), ("c", 2.0)]


# --- frontier ---------------------------------------------------------------------------------------------------------


def test_frontier_prints_what_the_library_computes(run: Runner) -> None:
    curve = eq.frontier(golden.FIVE_MEANS, golden.FIVE_STDS, reward_weights=[0, 0.5, 0.9])
    arguments = ("frontier", *FIVE, "--weights", "0,0.5,0.9")
    points = json.loads(run(*arguments, "--json").out)["points"]
    table = rows(run(*arguments, "--csv").out)
    for name in ("reward_weight", "reward", "error", "tradeoff"):
        expected = getattr(curve, name).tolist()
        assert [point[name] for point in points] == expected
        assert [float(row[name]) for row in table] == expected
    assert [point["allocation"] for point in points] == curve.allocation.tolist()
    assert [[float(row[f"share_{arm}"]) for arm in range(1, 6)] for row in table] == curve.allocation.tolist()
    assert points[0]["tradeoff"] == pytest.approx(golden.OPTIMA[0].tradeoff, abs=5.1e-11)


def test_points_are_evenly_spaced_weights(run: Runner) -> None:
    assert [row["reward_weight"] for row in rows(run("frontier", *TWO, "--points", 3, "--csv").out)] == [
        "0.0",
        "0.5",
        "1.0",
    ]
    assert len(rows(run("frontier", *TWO, "--csv").out)) == 11


def test_the_frontier_table_has_a_column_per_arm(run: Runner) -> None:
    result = run("frontier", *TWO, "--name", "error,pie", "--weights", "0.5")
    assert result.out == (
        "weight  reward   error  trade-off   kept  units   error     pie\n"
        "0.5     1.6885  1.4984   0.095027  0.891   1.12  0.3115  0.6885\n"
    )


def test_allocate_keeps_a_share_of_the_information(run: Runner) -> None:
    arms = ("--mean", "1,2", "--std", "1,3")
    data = json.loads(run("allocate", *arms, "--information-kept", "0.6", "--horizon", "100", "--json").out)
    assert data["information_kept"] == 0.6 and data["information_about"] == "average"
    assert data["units_needed"] == pytest.approx(1 / 0.6)
    assert data["reward_weight"] == pytest.approx(eq.weight_for_information([1, 2], [1, 3], information_kept=0.6))
    about = ("--information-about", "best-arm", "--smallest-difference", "0.5")
    data = json.loads(run("allocate", *arms, "--information-kept", "0.6", *about, "--json").out)
    assert data["reward_weight"] is None and data["tradeoff"] is None
    assert "reward weight" not in run("allocate", *arms, "--information-kept", "0.6", *about).out
    goal = ("--half-width", "0.5", "--units", "500")
    for floor in ("0", "0.3"):
        data = json.loads(run("allocate", *arms, *goal, "--floor", floor, "--json").out)
        width = 1.959963984540054 * np.array([1, 3]) / np.sqrt(500 * np.array([arm["share"] for arm in data["arms"]]))
        assert width.max() == pytest.approx(0.5) if floor == "0" else width.max() < 0.5
    by_weight = json.loads(run("allocate", *arms, "--reward-weight", "0.5", "--json").out)
    assert by_weight["information_kept"] == eq.information_for_weight([1, 2], [1, 3], reward_weight=0.5)


def test_of_many_arms_the_frontier_table_shows_those_that_fit_and_says_so(
    run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = ("--mean", ",".join(map(str, range(64))), "--std", ",".join(["1"] * 64))
    for columns in (60, 80, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        *table, blank, note = run("frontier", *many, "--points", 2).out.splitlines()
        n_shown = table[0].count("arm ")
        assert max(map(len, table)) <= columns < max(map(len, table)) + len("  0.00000")
        assert blank == ""
        assert note == f"{64 - n_shown} of 64 arms do not fit the width; --json and --csv have them all"
    assert len(rows(run("frontier", *many, "--points", 2, "--csv").out)[0]) == 6 + 64
    assert len(json.loads(run("frontier", *many, "--points", 2, "--json").out)["points"][0]["allocation"]) == 64


def test_numbers_keep_their_digits_on_a_terminal_that_is_too_narrow(
    run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = run("allocate", *TWO, "--reward-weight", 0.5).out
    monkeypatch.setenv("COLUMNS", "10")
    assert run("allocate", *TWO, "--reward-weight", 0.5).out == wide


# --- arms from a file -------------------------------------------------------------------------------------------------

PLAIN = "arm,mean,std\n1,1.0,1.0\n2,2.0,1.0\n"


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        "\ufeff" + PLAIN,
        PLAIN.replace("\n", "\r\n"),
        "std,note,arm,mean\n1.0,first,1,1.0\n1.0,second,2,2.0",
        "\n\narm,mean,std\n\n1,1.0,1.0\n , ,\n2,2.0,1.0,,\n\n",
        ' Arm , MEAN,Std\n"1", 1.0 ,1.0\n2,2.0,1\n',
    ],
    ids=["plain", "byte order mark", "CRLF", "other order and columns", "blank lines", "spaces, case and quotes"],
)
def test_a_csv_file_gives_the_same_as_options(run: Runner, tmp_path: Path, text: str) -> None:
    file = tmp_path / "arms.csv"
    file.write_bytes(text.encode())
    expected = run("allocate", *TWO, "--reward-weight", 0.5, "--json")
    assert expected.code == 0
    assert run("allocate", "--arms", file, "--reward-weight", 0.5, "--json") == expected
    assert run("allocate", "--arms", "-", "--reward-weight", 0.5, "--json", stdin=text.encode()) == expected


def test_the_csv_output_can_be_read_again(run: Runner) -> None:
    first = run("allocate", *TWO, "--name", 'né "x",日本', "--reward-weight", 0.5, "--csv")
    assert run("allocate", "--arms", "-", "--reward-weight", 0.5, "--csv", stdin=first.out.encode()) == first


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: expected a header with columns arm, mean and std; got nothing"),
        ("arm,mean\na,1\n", "line 1: expected a header with columns arm, mean and std, each once; got arm,mean"),
        (
            "\narm;mean;std\na;1;1\n",
            "line 2: expected a header with columns arm, mean and std, each once; got arm;mean;std",
        ),
        ("arm,mean,std,mean\na,1,1,2\n", "line 1: expected a header with columns arm, mean and std, each once"),
        ("arm,mean,std\n\n", "expected at least one arm below the header; got none"),
        ("arm,mean,std\na,1,1\nb,one,1\n", "line 3: mean must be a number; got 'one'"),
        ("arm,mean,std\na,1,nan\n", "line 2: std must be a number; got 'nan'"),
        ("arm,mean,std\na,inf,1\n", "line 2: mean must be a number; got 'inf'"),
        ("arm,mean,std\n\na,1,-2\n", "line 3: std must not be negative; got -2"),
        ("arm,mean,std\na,1\n", "line 2: std is missing"),
        ("arm,mean,std\n,1,1\n", "line 2: each arm needs a name; got none"),
        (
            "arm,mean,std\na,1,1\nb,1,1\na,2,1\n",
            "line 4: each arm needs a name of its own; got 'a', which is on line 2 too",
        ),
    ],
)
def test_a_bad_csv_file_is_told_with_file_line_and_what_was_expected(
    run: Runner, tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "arms.csv"
    file.write_text(text)
    result = run("allocate", "--arms", file, "--reward-weight", 0.5)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"error: {file}, line ")
    assert message in result.err


def test_bytes_that_are_not_utf8_are_told_with_their_line(run: Runner) -> None:
    result = run("allocate", "--arms", "-", "--error", 2, stdin=b"arm,mean,std\na,1,1\n\xe9,2,1\n")
    assert result.code == 1
    assert result.err.startswith(
        "error: standard input, line 3: expected text in UTF-8; got the byte 0xe9, which is 'é'"
    )


def test_control_characters_of_a_file_are_shown_and_not_obeyed(run: Runner, tmp_path: Path) -> None:
    file = tmp_path / "arms.csv"
    file.write_text('arm,\x1b[31mmean,"std\nhint: none\x07"\na,1,1\n')
    result = run("allocate", "--arms", file, "--error", 2)
    assert result.code == 1
    assert result.err.endswith("each once; got arm,\\x1b[31mmean,std\\nhint: none\\x07\n")
    renamed = file.rename(tmp_path / "a\x1b[1mb.csv")
    assert "a\\x1b[1mb.csv, line 2: expected" in run("allocate", "--arms", renamed, "--error", 2).err


# --- errors and exit codes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["allocate", "--arms", "nowhere.csv", "--error", "2"], "cannot read nowhere.csv: No such file or directory"),
        (["allocate", "--arms", ".", "--error", "2"], "cannot read .: Is a directory"),
        (["allocate", *TWO, "--error", "1"], "no reward weight has error 1; it runs from 1.41421 (weight 0) to inf"),
        (
            ["allocate", *TWO, "--reward", "3"],
            "no reward weight has reward 3; it runs from 1.5 (weight 0) to 2 (weight 1)",
        ),
        (
            ["allocate", *TWO, "--error", "2", "--chart", "no/where/x.png"],
            "no folder no/where\nhint: mkdir -p no/where",
        ),
    ],
)
def test_what_fails_exits_with_1(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error: ")
    assert message in result.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["allocate", "--reward-weight", "0.5"],
            "standard deviations of the arms are missing\nhint: give --mean 1,2,3",
        ),
        (["allocate", *TWO], "--error, --reward, --information-kept and --half-width; got none"),
        (["allocate", *TWO, "--information-kept", "1.2"], "--information-kept must be in (0, 1]; got 1.2"),
        (["allocate", *TWO, "--half-width", "0.1"], "--units is missing"),
        (["allocate", *TWO, "--reward-weight", "0.5", "--units", "9"], "--units goes with --half-width; got 9"),
        (
            ["allocate", *TWO, "--half-width", "9", "--units", "9", "--information-about", "best-arm"],
            "--information-about must be every-arm or average for --half-width; got 'best-arm'",
        ),
        (["allocate", *TWO, "--half-width", "0.1", "--units", "9"], "--half-width must be at least 0.9244 for 9 units"),
        (["allocate", *TWO, "--error", "2", "--reward", "1"], "--half-width; got --error and --reward"),
        (["allocate", *TWO, "--reward-weight", "1.3"], "error: --reward-weight must be in [0, 1]; got 1.3"),
        (["allocate", *TWO, "--error", "2", "--json", "--csv"], "give --json or --csv; got both"),
        (["allocate", *TWO, "--arms", "x.csv", "--error", "2"], "either by --arms or by --mean, --std and --name"),
        (
            ["allocate", "--mean", "1,x", "--std", "1,1", "--error", "2"],
            "--mean must be numbers separated by commas; got 'x'",
        ),
        (
            ["allocate", "--mean", "", "--std", "1", "--error", "2"],
            "--mean must be numbers separated by commas; got ''",
        ),
        (["allocate", "--mean", "1,nan", "--std", "1,1", "--error", "2"], "--mean must be numbers"),
        (
            ["allocate", "--mean", "1,2", "--std", "1", "--error", "2"],
            "--std must have 2 entries, as many as --mean; got 1",
        ),
        (
            ["allocate", "--mean", "1,2", "--std", "1,-1", "--error", "2"],
            "--std must not be negative; got -1 for arm 2",
        ),
        (["allocate", *TWO, "--name", "a", "--error", "2"], "--name must have 2 entries, as many as --mean; got 1"),
        (["allocate", *TWO, "--name", "a,a", "--error", "2"], "name of its own; got 'a' for arm 2"),
        (
            ["allocate", *TWO, "--floor", "0.6", "--error", "2"],
            "error: --floor must add up to at most 1 over all arms; got 1.2",
        ),
        (
            ["allocate", *TWO, "--floor", "0,0,0", "--error", "2"],
            "error: --floor must have 2 entries, one per arm; got 3",
        ),
        (["allocate", *TWO, "--horizon", "0", "--error", "2"], "error: --horizon must be at least 1; got 0"),
        (["allocate", *TWO, "--error", "2", "--chart", "x.gif"], "must end in .html, .png, .svg or .pdf; got 'x.gif'"),
        (["frontier", *TWO, "--weights", "0,2"], "error: --weights must be in [0, 1]; got 2.0"),
        (["frontier", *TWO, "--points", "1"], "--points must be at least 2; got 1"),
        (["frontier", *TWO, "--points", "3", "--weights", "0"], "give --weights or --points; got both"),
        (["demo", "--reward-weight", "2"], "error: --reward-weight must be in [0, 1]; got 2.0"),
        (["demo", "--out", "x.txt"], "must end in .html, .png, .svg or .pdf; got 'x.txt'"),
    ],
)
def test_bad_options_exit_with_2(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: ")
    assert message in result.err


OF_FLOOR = eq.InvalidInput.of("floor", "must be in [0, 1]", 9)


@pytest.mark.parametrize(
    ("arguments", "error", "told"),
    [
        (["--share", "9"], lambda: OF_FLOOR, "--share must be in [0, 1]; got 9"),
        (["--share", "9"], lambda: copy.copy(OF_FLOOR).within("missing"), "--share must be in [0, 1]; got 9"),
        (["--share", "9"], lambda: eq.InvalidInput.of("window", "is odd").within("floor", 0), "--share: window is odd"),
        (["--share", "9"], lambda: eq.InvalidInput.of("floors", "must be dry"), "floors must be dry"),
        (["--share", "9"], lambda: eq.InvalidInput("floor must be dry"), "floor must be dry"),
        (["--share", "9"], lambda: eq.InvalidInput("no such rule").within("floor"), "--share: no such rule"),
        ([], lambda: OF_FLOOR, "floor must be in [0, 1]; got 9"),
    ],
)
def test_errors_name_the_option_that_was_typed(arguments: list[str], error: Any, told: str) -> None:
    app = typer.Typer()

    @app.command(cls=Command)
    def command(floor: Annotated[float, typer.Option("--share")] = 0.0) -> None:
        raise copy.copy(error())

    with pytest.raises(eq.InvalidInput) as raised:
        app(arguments, standalone_mode=False)
    assert str(raised.value) == told


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("nonsense", "nonsense"),
        ("--nonsense", "--nonsense"),
        ("arm nonsense", "nonsense"),
        ("keys --nonsense", "--nonsense"),
        ("ask exam --stor", "--store"),
        ("allocate --error x", "--error"),
        ("demo --steps 0", "--steps"),
        ("tell exam ana high", "REWARD"),
        ("ask", "NAME"),
        ("arm add exam", "ARM"),
        ("keys create", "--role"),
        ("ask exam --store", "--store"),
        ("list --json=3", "--json"),
        ("list of all", "of all"),
    ],
)
def test_a_wrong_command_line_exits_with_2_and_names_what_is_wrong(run: Runner, line: str, names: str) -> None:
    result = run(*line.split())
    assert (result.code, result.out) == (2, "")
    assert names in result.err


def test_a_bad_chart_file_is_noticed_before_anything_is_read(run: Runner) -> None:
    assert "must end in" in run("allocate", "--arms", "nowhere.csv", "--error", 2, "--chart", "x.jpg").err


# --- output -----------------------------------------------------------------------------------------------------------


def test_a_chart_is_written_and_said_on_stderr(run: Runner, tmp_path: Path) -> None:
    for command in (("allocate", *TWO, "--reward-weight", 0.5), ("frontier", *TWO)):
        file = tmp_path / f"{command[0]}.svg"
        result = run(*command, "--chart", file)
        assert result == Result(0, run(*command).out, f"chart written to {file}\n")
        assert "<svg" in file.read_text()


def test_names_cannot_write_control_codes_or_markup_to_the_terminal(run: Runner) -> None:
    text = "arm,mean,std\n\x1b[31mred,1,1\n[bold]b[/bold] :smile:,2,1\n"
    table = run("allocate", "--arms", "-", "--reward-weight", 0.5, stdin=text.encode()).out
    assert "\x1b" not in table
    assert table.splitlines()[1].startswith("?[31mred ")
    assert table.splitlines()[2].startswith("[bold]b[/bold] :smile: ")


def test_columns_of_wide_characters_line_up(run: Runner) -> None:
    table = run("allocate", *TWO, "--name", "日本,ab", "--reward-weight", 0.5).out.splitlines()
    assert table[1].startswith("日本     1")
    assert table[2].startswith("ab       2")


def test_names_that_the_encoding_lacks_do_not_end_in_a_traceback() -> None:
    arguments = ("allocate", *TWO, "--name", "né,b", "--reward-weight", "0.5")
    result = start(*arguments, PYTHONIOENCODING="ascii")
    assert (result.returncode, result.stderr) == (0, "")
    assert "n\\xe9" in result.stdout
    as_json = start(*arguments, "--json", PYTHONIOENCODING="ascii")
    assert json.loads(as_json.stdout)["arms"][0]["arm"] == "né"


def test_a_reader_that_leaves_early_is_no_error_message() -> None:
    many = ("--mean", ",".join(["1"] * 20_000), "--std", ",".join(["1"] * 20_000))
    command = [sys.executable, "-m", "equipoise.cli", "allocate", *many, "--reward-weight", "0.5"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().split()[0] == b"arm"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_output_that_cannot_be_written_is_a_failure() -> None:
    command = [sys.executable, "-m", "equipoise.cli", "allocate", *TWO, "--reward-weight", "0.5"]
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, timeout=60)
    assert (result.returncode, result.stderr) == (1, "error: No space left on device\n")


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([1, 2.5], ["1.0", "2.5"]),
        ([0.0, 0.0], ["0", "0"]),
        ([1e9 + 1, 1e9], ["1000000001", "1000000000"]),
        ([1234567.0, 0.25], ["1234567", "2.5e-01"]),
        ([math.nan, 0.5], ["nan", "0.5"]),
        ([-math.inf, -0.123456789], ["-inf", "-0.12346"]),
        ([100.0, 20.0], ["100", "20"]),
        ([1.5e300, 2.0], ["1.5e+300", "2"]),
        ([], []),
    ],
)
def test_numbers_of_a_column_are_rounded_alike(values: list[float], texts: list[str]) -> None:
    assert terminal.aligned(values) == texts


# --- the command itself -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["allocate", "--help"], ["demo", "--help"]])
def test_help_and_version_load_nothing_heavy(arguments: list[str]) -> None:
    """They come within half a second on an idle machine, which a busy one cannot measure: count what is loaded."""
    script = (
        "import sys\nfrom equipoise.cli import main\n"
        f"sys.argv = ['equipoise', *{arguments!r}]\n"
        "try:\n    main()\nexcept SystemExit as exit:\n    assert not exit.code\n"
        "heavy = {'numpy', 'numba', 'altair', 'vl_convert', 'scipy'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy} and {len(sys.modules)} in all' if heavy or len(sys.modules) > 500 else 0)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=ENVIRONMENT, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")
    assert "equipoise" in result.stdout


def test_the_version_is_the_packages(run: Runner) -> None:
    assert run("--version") == Result(0, f"equipoise {eq.__version__}\n", "")


def test_without_a_command_there_is_help(run: Runner) -> None:
    result = run()
    assert result.code in (0, 2)  # depends on the version of Click inside Typer
    assert "allocate" in result.out + result.err


def test_every_command_and_option_is_documented() -> None:
    page = (Path(__file__).parents[1] / "docs" / "command-line.md").read_text()
    group = typer.main.get_command(cli.app)
    commands = dict(group.commands)  # type: ignore[attr-defined]
    for several in ("arm", "keys", "webhook"):
        commands |= {f"{several} {name}": command for name, command in commands.pop(several).commands.items()}
    for name, command in commands.items():
        assert f"equipoise {name}" in page, name
        for parameter in command.params:
            if parameter.param_type_name == "option":
                assert f"`{parameter.opts[0]}" in page, (name, parameter.opts[0])


def test_help_lists_flags_without_a_type(run: Runner) -> None:
    for command in ([], ["keys"], ["allocate"], ["serve"]):
        told = run(*command, "--help").out
        assert "--help" in told and "bool" not in told


def test_options_of_serve_may_come_from_the_environment(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Process managers and containers set these."""
    monkeypatch.setenv("EQUIPOISE_SERVE_LOG_FORMAT", "xml")
    refused = run("serve")
    assert (refused.code, refused.out) == (2, "")
    assert "must be text or json; got 'xml'" in refused.err


def test_a_shell_can_complete_commands(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_EQUIPOISE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "equipoise wh")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert run().out.split() == ["what-if"]
