"""The command `equipoise simulate`: options, files, tables, and Ctrl-C in a process of its own."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from patience import HANGS

import equipoise as eq
from equipoise import cli

STUDY = """\
seed = 1
replications = 5
horizon = [100, 400]
arms = {mean = [1, 2], std = [1, 1]}

[[policies]]
name = "ForcingBalance"
reward_weight = [0.5, 0.9]

[[policies]]
name = "Uniform"
"""
TWO = ("--mean", "1,2", "--std", "1,1")
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(eq.__file__).parents[1]), "COLUMNS": "100"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def command(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["equipoise", "simulate", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        captured = capsys.readouterr()
        return int(exit_.value.code or 0), captured.out, captured.err

    return command


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_study_file_ends_in_a_table_and_one_result_per_horizon(run: Any, folder: Path) -> None:
    code, out, err = run("study.toml")
    assert code == 0
    head, *lines = out.splitlines()
    assert head.split() == ["policy", "horizon", "reward", "error", "realised", "weight", "regret", "+/-"]
    assert [line.split()[:2] for line in lines[:8]] == [
        [policy, horizon] for horizon in ("100", "400") for policy in ["ForcingBalance"] * 2 + ["Uniform"] * 2
    ]
    assert max(map(len, out.splitlines())) <= 80
    assert lines[-2:] == [
        "means over 5 replications; error by formula, and as it came out (realised)",
        "regret times sqrt(horizon), +/- its standard error",
    ]
    first, last = err.splitlines()[0], err.splitlines()[-1]
    assert first == "3 policies x 2 horizons x 5 replications on 2 arms: 7,500 steps"
    assert last.startswith("results in study-100.npz, study-400.npz (")
    study = eq.read_study("study.toml")
    assert eq.Runs.load("study-400.npz") == eq.simulate(study.policies, study.arms, 400, 5, seed=1)
    assert {path.name for path in folder.iterdir()} == {"study.toml", "study-100.npz", "study-400.npz"}


def test_options_say_the_same_as_a_file(run: Any) -> None:
    from_file = run("study.toml", "--csv", "--quiet")
    policies = ("--policy", "ForcingBalance:reward_weight=[0.5,0.9]", "--policy", "Uniform")
    options = (*TWO, "--horizon", "100,400", "--replications", 5, "--seed", 1, "--csv", "--quiet")
    assert run(*policies, *options) == from_file
    assert from_file[2] == ""
    shared = ("--policy", "ForcingBalance", "--policy", "Uniform", "--reward-weight", "0.5,0.9", "--out", "x.npz")
    assert run(*shared, *options) == from_file


def test_options_take_the_place_of_what_the_file_says(run: Any) -> None:
    found = rows(run("study.toml", "--replications", 3, "--horizon", 50, "--csv")[1])
    assert {(row["horizon"], row["replications"]) for row in found} == {("50", "3")}
    assert eq.Runs.load("study.npz").replications.tolist() == [0, 1, 2]


def test_json_and_csv_carry_every_digit(run: Any) -> None:
    answer = json.loads(run("study.toml", "--json")[1])["rows"]
    table = rows(run("study.toml", "--csv")[1])
    runs = eq.Runs.load("study-100.npz")
    assert answer[0]["policy"]["name"] == "ForcingBalance"
    assert table[0]["policy"] == "ForcingBalance(reward_weight=0.5)"
    expected = runs.rescaled_regret(reward_weight=0.5)[0, :, -1].mean()
    assert answer[0]["rescaled_regret"] == float(table[0]["rescaled_regret"]) == expected
    assert [float(row["reward"]) for row in table] == [row["reward"] for row in answer]


def test_an_error_without_bound_is_null_in_json(run: Any) -> None:
    options = (*TWO, "--policy", "Fixed:allocation=[0,1]", "--horizon", 1, "--replications", 2)
    (row,) = json.loads(run(*options, "--json")[1], parse_constant=pytest.fail)["rows"]
    assert (row["error"], row["reward_weight"], row["rescaled_regret"]) == (None, None, None)
    head = run(*options)[1].splitlines()[0].split()
    assert head == ["policy", "allocation", "horizon", "reward", "error", "realised"]


def test_swept_parameters_are_columns_also_where_they_are_the_default(run: Any) -> None:
    out = run(*TWO, "--policy", "GAFS:forcing=[0.5,1]", "--policy", "Uniform", "--horizon", 20)[1]
    assert [line.split()[:3] for line in out.splitlines()[:4]] == [
        ["policy", "forcing", "horizon"],
        ["GAFS", "0.5", "20"],
        ["GAFS", "1", "20"],
        ["Uniform", "20", "1.5000"],
    ]


def test_with_a_weight_for_the_report_the_policies_own_is_a_column(run: Any) -> None:
    out = run("study.toml", "--report-weight", 0.7, "--quiet")[1].splitlines()
    heads = ["policy", "reward_weight", "horizon", "reward", "error", "realised", "weight", "regret", "+/-"]
    assert out[0].split() == heads
    assert [line.split()[1] for line in out[1:3]] == ["0.5", "0.9"]
    assert len(out) == 1 + 6 + 3


def test_a_long_parameter_and_a_huge_regret_do_not_widen_the_table(run: Any) -> None:
    many = ",".join(["0.025"] * 40)
    arms = ("--mean", ",".join(["1e100", *["0"] * 39]), "--std", ",".join(["1"] * 40))
    out = run(*arms, "--policy", f"Fixed:allocation=[{many}]", "--horizon", 100, "--report-weight", 0.5, "--quiet")[1]
    assert "0.025,0.025,0.025,0.025,...,0.025" in out
    assert max(map(len, out.splitlines())) <= 120
    assert out.splitlines()[1].split()[-2] == "4.8500e+100"


def test_the_error_that_the_estimates_had_is_in_the_table(run: Any) -> None:
    row = run("study.toml")[1].splitlines()[1].split()
    runs = eq.Runs.load("study-100.npz")
    assert float(row[3]) == pytest.approx(runs.error()[0, :, -1].mean(), abs=1e-3)
    assert float(row[4]) == pytest.approx(runs.realised_error()[0, -1], abs=1e-3)


def test_a_frame_is_written_beside_the_results(run: Any, folder: Path) -> None:
    pytest.importorskip("polars")
    assert run("study.toml", "--frame", "all.csv")[0] == 0
    found = rows((folder / "all.csv").read_text())
    assert {row["horizon"] for row in found} == {"100", "400"}


def test_names_of_arms_reach_results_and_frames(run: Any, folder: Path) -> None:
    pytest.importorskip("polars")
    (folder / "arms.csv").write_text("arm,mean,std\npie,1,1\nline,2,1\n")
    options = ("--policy", "Uniform", "--horizon", 10, "--replications", 2, "--out", "r.npz", "--frame", "r.csv")
    assert run("--arms", "arms.csv", *options)[0] == 0
    assert eq.Runs.load("r.npz").arm_names == ("pie", "line")
    assert [row["arm_name"] for row in rows((folder / "r.csv").read_text())[:2]] == ["pie", "line"]


def test_steps_to_record_can_be_chosen(run: Any) -> None:
    run("study.toml", "--checkpoints", "10,1e2,200")
    assert eq.Runs.load("study-100.npz").checkpoints.tolist() == [10, 100]
    assert eq.Runs.load("study-400.npz").checkpoints.tolist() == [10, 100, 200, 400]


@pytest.mark.parametrize("policies", [("ForcingBalance:reward_weight=[0.5,0.9]", "Uniform"), ("Uniform",)])
def test_a_chart_is_drawn(run: Any, folder: Path, policies: tuple[str, ...]) -> None:
    pytest.importorskip("altair")
    chosen = [word for policy in policies for word in ("--policy", policy)]
    code, _, err = run(*chosen, *TWO, "--horizon", 200, "--replications", 3, "--chart", "c.svg")
    assert (code, err.splitlines()[-1]) == (0, "chart written to c.svg")
    drawn = (folder / "c.svg").read_text()
    words = ("regret times the square root of pulls", "Uniform, at 0.9") if len(policies) > 1 else ("reward",)
    assert all(word in drawn for word in words)


# --- options that meet no policy --------------------------------------------------------------------------------------


def test_a_weight_that_no_policy_takes_is_told_and_measures_the_regret(run: Any) -> None:
    options = ("--policy", "Uniform", *TWO, "--horizon", 20, "--quiet")
    _, out, err = run(*options, "--reward-weight", 0.7)
    assert err == "warning: no policy takes --reward-weight; only the regret is measured at it\n"
    assert out.splitlines()[0].split()[-3:] == ["weight", "regret", "+/-"]
    _, out, err = run(*options, "--reward-weight", "0.7,0.8", "--forcing", 2)
    assert err == (
        "warning: no policy takes --reward-weight; see --report-weight\nwarning: no policy takes --forcing\n"
    )
    assert "regret" not in out


def test_a_weight_that_every_policy_sets_itself_is_told(run: Any) -> None:
    options = (*TWO, "--horizon", 20, "--quiet", "--reward-weight", 0.7)
    err = run("--policy", "ForcingBalance:reward_weight=0.9", *options)[2]
    assert err == "warning: --reward-weight is not used: every policy that takes it sets its own\n"
    assert run("--policy", "ForcingBalance", "--policy", "Uniform", *options)[2] == ""


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nowhere.toml"], 1, "cannot read nowhere.toml: No such file or directory"),
        (["bad.toml"], 1, "bad.toml: policies[1]: unknown policy 'Unifrom'; known are "),
        (["study.toml", "--replications", "0"], 2, "error: --replications must be at least 1; got 0"),
        (["study.toml", "--backend", "slurm"], 2, "error: --backend must be one of threads, processes, ray, dask"),
        (["study.toml", "--out", "x.csv"], 2, "the file for results must end in .npz; got 'x.csv'"),
        (["study.toml", "--out", "no/x.npz"], 1, "no folder no\nhint: mkdir -p no"),
        (["study.toml", "--chart", "x.gif"], 2, "a chart file must end in .html, .png, .svg or .pdf; got 'x.gif'"),
        (["study.toml", "--checkpoints", "5.5"], 2, "error: --checkpoints must be a whole number; got 5.5"),
        (["study.toml", "--checkpoints", "500"], 2, "error: --checkpoints must be at most 400; got 500"),
        (["--mean", "1,2", "--std", "1,-1"], 2, "error: --std must not be negative; got -1 for arm 2"),
        (["--mean", "1,2", "--std", "1,1e300", "--policy", "Uniform", "--horizon", "5"], 2, "got 1e+300 for arm 2"),
        (["study.toml", "--frame", "x.txt"], 2, "a file for a frame must end in .csv or .parquet; got 'x.txt'"),
        (["study.toml", "--json", "--csv"], 2, "give --json or --csv; got both"),
        ([*TWO, "--policy", "Uniform"], 2, "error: --horizon is missing\nhint: give "),
        ([*TWO, "--horizon", "5"], 2, "error: --policy is missing\nhint: give "),
        (["--policy", "Uniform", "--horizon", "5"], 2, "error: the arms are missing\nhint: give "),
        ([*TWO, "--policy", "Uniform", "--horizon", "5.5"], 2, "error: --horizon must be a whole number; got 5.5"),
        (["study.toml", "--horizon", "0"], 2, "error: --horizon must be at least 1; got 0"),
        (["study.toml", "--reward-weight", "0.5,2"], 2, "error: --reward-weight must be in [0, 1]; got 2.0"),
        (["study.toml", "--forcing", "-1"], 2, "error: --forcing must be in [0, inf); got -1.0"),
        (["study.toml", "--report-weight", "2"], 2, "error: --report-weight must be in [0, 1]; got 2.0"),
        (["study.toml", "--workers", "0"], 2, "error: --workers must be at least 1; got 0"),
        ([*TWO, "--policy", "Unifrom", "--horizon", "5"], 2, "unknown policy 'Unifrom'; known are "),
        ([*TWO, "--policy", "UCB:", "--horizon", "x"], 2, "--horizon must be numbers separated by commas; got 'x'"),
        ([*TWO, "--policy", "UCB:scale", "--horizon", "5"], 2, "policy must be NAME or NAME:parameter=value"),
        (["--mean", "1,2", "--policy", "UCB", "--horizon", "5"], 2, "standard deviations of the arms are missing"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_played(
    run: Any, folder: Path, arguments: list[str], code: int, message: str
) -> None:
    (folder / "bad.toml").write_text(STUDY.replace('"Uniform"', '"Unifrom"'))
    before = {path.name for path in folder.iterdir()}
    found, out, err = run(*arguments)
    assert (found, out) == (code, "")
    assert "error: " in err
    assert message in err
    assert {path.name for path in folder.iterdir()} == before


def test_a_parameter_of_a_policy_is_not_taken_for_the_option_of_that_name(run: Any) -> None:
    options = ("--reward-weight", 0.5, "--horizon", 5, *TWO)
    assert run("--policy", "GAFS", "--policy", "ForcingBalance:reward_weight=2", *options)[2] == (
        "error: --policy: reward_weight must be in [0, 1]; got 2\n"
    )
    assert (
        run("--policy", "UCBExplore:horizon=0", *options)[2] == "error: --policy: horizon must be at least 1; got 0\n"
    )


def test_results_of_another_study_are_not_overwritten(run: Any) -> None:
    run("study.toml", "--quiet")
    code, out, err = run("study.toml", "--seed", 2, "--quiet")
    assert (code, out) == (1, "")
    reason = "its seed is 1, not 2"
    assert err.startswith(f"error: study-100.npz holds results that are not part of this study: {reason}\nhint: ")
    assert run("study.toml", "--seed", 2, "--quiet", "--again")[0] == 0
    assert eq.Runs.load("study-100.npz").seed == 2


def test_without_a_name_for_the_results_each_study_has_its_own_file(run: Any, folder: Path) -> None:
    options = (*TWO, "--policy", "Uniform", "--replications", 3)
    assert run(*options, "--horizon", 20)[0] == 0
    assert run(*options, "--horizon", 30)[0] == 0
    files = {path.name for path in folder.glob("simulation-*.npz")}
    assert len(files) == 2
    notes = run(*options, "--horizon", 20)[2].splitlines()
    assert notes[1].startswith("all replications were finished already; results in simulation-")
    assert {path.name for path in folder.glob("simulation-*.npz")} == files


def test_it_is_said_how_much_was_found(run: Any) -> None:
    assert "finished already" not in run("study.toml")[2]
    notes = run("study.toml", "--replications", 7)[2].splitlines()
    assert notes[1] == "30 of 42 replications are finished already; playing the rest"
    assert notes[2].startswith("results in study-100.npz")


# --- Ctrl-C -----------------------------------------------------------------------------------------------------------

LONG = ("--mean", "1,2,3", "--std", "1,1,1", "--policy", "ForcingBalance", "--reward-weight", "0.9", "--seed", "4")


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "equipoise.cli", "simulate", *LONG, *arguments]


def interrupt(folder: Path, *arguments: str) -> tuple[subprocess.Popen[str], str]:
    """Start the command, press Ctrl-C when a part is finished, and return the process and its notes."""
    process = subprocess.Popen(command(*arguments), stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, cwd=folder)
    deadline = time.monotonic() + HANGS
    while not list(folder.glob("*.parts/*.npz")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, notes = process.communicate(timeout=HANGS)
    return process, notes


def test_ctrl_c_stops_and_the_same_command_goes_on(folder: Path) -> None:
    eq.simulate(eq.ForcingBalance(reward_weight=0.9), eq.Gaussian(mean=[1, 2, 3], std=[1, 1, 1]), 10)  # compiled
    options = ("--horizon", "60000", "--replications", "120", "--chunk", "5", "--workers", "2")
    process, notes = interrupt(folder, *options)
    assert process.returncode == 130
    assert notes.endswith("\nthe same command plays the rest\n")
    assert not list(folder.glob("simulation-*.npz"))
    (kept,) = folder.glob("simulation-*.npz.parts")
    parts = sorted(kept.iterdir())
    finished = sum(eq.Runs.load(part).replications.size for part in parts)
    assert 5 <= finished < 120
    assert f"{finished} of 120 replications are finished" in notes
    # What is kept is used, and the result is as if nothing had happened.
    shutil.copytree(kept, folder / "again.npz.parts")
    rest = subprocess.run(command(*options), check=True, capture_output=True, text=True, env=ENVIRONMENT, cwd=folder)
    assert f"{finished} of 120 replications are finished already; playing the rest" in rest.stderr
    study = eq.Study(
        policies=[eq.ForcingBalance(reward_weight=0.9)],
        arms=eq.Gaussian(mean=[1, 2, 3], std=[1, 1, 1]),
        horizons=[60_000],
        replications=120,
        seed=4,
    )
    told: list[int] = []
    (resumed,) = eq.sweep(study, folder / "again.npz", progress=lambda done, total: told.append(total))
    assert told[-1] == (120 - finished) * 60_000
    assert resumed == eq.Runs.load(kept.with_suffix(""))
    assert (resumed,) == eq.sweep(study)
    assert not list(folder.glob("*.parts"))


def test_after_again_and_ctrl_c_the_command_that_goes_on_is_named(folder: Path) -> None:
    options = ("--horizon", "60000", "--replications", "120", "--chunk", "5", "--workers", "2", "--out", "r.npz")
    subprocess.run(command(*options, "--horizon", "50"), check=True, capture_output=True, env=ENVIRONMENT, cwd=folder)
    _, notes = interrupt(folder, *options, "--again")
    assert notes.endswith("\nthe same command without --again plays the rest\n")
    assert eq.Runs.load(folder / "r.npz").horizon == 50
    finished = sum(eq.Runs.load(part).replications.size for part in folder.glob("r.npz.parts/*.npz"))
    rest = subprocess.run(command(*options), check=True, capture_output=True, text=True, env=ENVIRONMENT, cwd=folder)
    assert f"{finished} of 120 replications are finished already; playing the rest" in rest.stderr
    assert eq.Runs.load(folder / "r.npz").horizon == 60_000
    assert not list(folder.glob("*.parts"))


def seconds_of_work(process: subprocess.Popen[str]) -> float:
    """Return the processor's time that a process has had."""
    times = psutil.Process(process.pid).cpu_times()
    return times.user + times.system


def test_a_replication_longer_than_a_second_is_interrupted_too(folder: Path) -> None:
    process = subprocess.Popen(
        command("--horizon", "1000000000"), stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, cwd=folder
    )
    assert process.stderr is not None
    assert process.stderr.readline().startswith("1 policy x 1 horizon x 100 replications")
    before = seconds_of_work(process)
    while seconds_of_work(process) < before + 2.5:  # so it is not only loading any more
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, notes = process.communicate(timeout=HANGS)  # it would play for hours
    assert process.returncode == 130
    assert notes == "interrupted before the first replication was finished\n"
