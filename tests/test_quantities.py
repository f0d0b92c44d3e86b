"""Quantities as people write them: percentages, durations, thousands; in options and in files."""

import csv
import io
from datetime import timedelta
from pathlib import Path

import pytest
from command_runner import Runner
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise import quantities, simulation
from equipoise.arm_tables import parse_arms


@given(st.integers(0, 10**6))
def test_a_percentage_is_the_double_next_to_its_hundredth(thousandths):
    text = f"{thousandths // 1000}.{thousandths % 1000:03}"
    assert quantities.fraction(f"{text}%") == float(f"{thousandths / 10**5:.5f}")


def test_shares_and_rates_are_numbers_or_percentages():
    assert [quantities.share(one) for one in ("10%", " 10 % ", "0.1", 0.1, ".1")] == [0.1] * 5
    assert [quantities.rate(one) for one in ("0%", "100%", 0, 1)] == [0, 1, 0, 1]
    for wrong in ("110%", "-1%", 10, "ten", "", "%", None, True, "1,5%", float("nan"), "10%%", [0.1]):
        with pytest.raises(eq.errors.InvalidInput, match=r"^rate must be from 0 to 1, or 0% to 100%; got"):
            quantities.rate(wrong)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("2 days", 172_800),
        ("8h", 28_800),
        ("90 minutes", 5_400),
        ("1 week", 604_800),
        ("1 Day and 2 hours", 93_600),
        ("1d12h", 129_600),
        ("1,000 s", 1_000),
        ("45", 45),
        (3600, 3600),
        (timedelta(days=1), 86_400),
    ],
)
def test_durations_are_seconds_or_have_units(written, seconds):
    assert quantities.duration_seconds(written) == seconds


@pytest.mark.parametrize("wrong", ["", "soon", "2 moons", "-3d", "5 5", "1 day 5", "nan", None, True, float("inf")])
def test_what_is_no_duration_is_refused_with_what_is_one(wrong):
    with pytest.raises(eq.errors.InvalidInput, match="delay must be a duration such as 7 days, 36h or 90"):
        quantities.duration_seconds(wrong, "delay")


@given(st.integers(1, 10**7))
def test_a_duration_in_words_is_read_back(seconds):
    assert quantities.duration_seconds(quantities.duration_text(seconds)) == seconds


def test_thousands_may_have_commas_and_nothing_else_may():
    assert (quantities.number("1,000,000.5"), quantities.whole_number("3,000")) == (1_000_000.5, 3000)
    for wrong in ("1,5", "10,00", "1_000", "1.5e400", "x"):
        with pytest.raises(eq.errors.InvalidInput, match=r"must be a number, such as 1000, 1,000 or 2.5"):
            quantities.number(wrong)
    with pytest.raises(eq.errors.InvalidInput, match="must be a whole number"):
        quantities.whole_number("1.5")


@pytest.mark.parametrize(
    ("plain", "written"),
    [
        (["--reward-weight", "0.9", "--floor", "0.1,0,0"], ["--reward-weight", "90%", "--floor", "10%,0,0"]),
        (["--information-kept", "0.7", "--floor", "0.02"], ["--information-kept", "70%", "--floor", "2%"]),
        (["--half-width", "0.03", "--units", "2000"], ["--half-width", "3%", "--units", "2,000"]),
    ],
)
def test_yes_no_arms_need_no_spread_and_shares_may_be_percentages(run: Runner, plain, written):
    spreads = ",".join(str(quantities.spread_of_rate(rate)) for rate in (0.1, 0.12, 0.14))
    numbers = run.data("allocate", "--mean", "0.1,0.12,0.14", "--std", spreads, *plain)
    assert run.data("allocate", "--rates", "10%,12%,0.14", *written) == numbers


def test_rates_come_from_files_too(run: Runner, tmp_path: Path):
    file = tmp_path / "arms.csv"
    file.write_text("arm,rate\na,10%\nb,0.2\n")
    table = run.data("frontier", "--arms", file, "--weights", "0%,50%")
    assert table["arms"] == run.data("frontier", "--rates", "10%,20%", "--name", "a,b", "--points", 2)["arms"]
    assert [point["reward_weight"] for point in table["points"]] == [0.0, 0.5]
    with pytest.raises(eq.errors.EquipoiseError, match=r"line 2: rate must be from 0 to 1, or 0% to 100%; got '1.2'"):
        parse_arms("arm,rate\na,1.2", "arms.csv")
    with pytest.raises(eq.errors.EquipoiseError, match="line 2: rate is missing"):
        parse_arms("arm,rate\na,", "arms.csv")
    assert not parse_arms("arm,mean,std,rate\na,1,2,3", "arms.csv").are_rates
    assert "--rates, or --mean and --std" in run("allocate", "--rates", "10%", "--mean", 1, "--reward-weight", 0).err
    assert "--rates must be from 0 to 1" in run("allocate", "--rates", "10", "--reward-weight", 0).err


def test_simulations_of_rates_have_yes_no_rewards(run: Runner, tmp_path: Path):
    policy = {"name": "Uniform"}
    study = simulation.study_from_dict({"horizon": 10, "arms": {"rate": [0.1, 0.2]}, "policies": [policy]})
    assert type(study.arms) is eq.Bernoulli and study.arms.mean.tolist() == [0.1, 0.2]
    text = 'horizon = 10\narms = {rate = ["10%", "20%"]}\n[[policies]]\nname = "PooledBalance"\n'
    read = simulation.parse_study(text + 'information_kept = "70%"\nfloor = "1%"\n')
    assert read.arms.mean.tolist() == [0.1, 0.2]
    assert read.policies[0].information_kept == 0.7
    with pytest.raises(eq.errors.EquipoiseError, match=r"arms\.rate must be a probability in \[0, 1\]"):
        simulation.parse_study(text.replace("20%", "120%") + "reward_weight = 0\n")
    out = tmp_path / "found.npz"
    arguments = ["--policy", "Uniform", "--horizon", 100, "--replications", 2, "--out", out, "--quiet", "--csv"]
    (row,) = csv.DictReader(io.StringIO(run("simulate", "--rates", "10%,20%", *arguments).out))
    assert 100 * float(row["reward"]) == pytest.approx(15, abs=5)


def test_an_experiment_is_described_as_people_write(run: Runner, tmp_path: Path):
    file = tmp_path / "x.toml"
    file.write_text(
        'name = "exam"\narms = ["a", "b"]\ninformation_kept = "70%"\nfloor = "2%"\ncontrol = "a"\n'
        'control_share = "10%"\nfailure_probability = "10%"\nreward_range = [0, 1]\n[missing]\nrule = "drop"\n'
        'window_seconds = "2 days"\n[stopping]\nprecision = "5%"\n[metadata]\nfloor = "50%"\n'
    )
    made = run.data("create", "--file", file)
    assert made["policy"]["information_kept"] == 0.7 and made["failure_probability"] == 0.1
    assert made["missing"]["window_seconds"] == 172_800 and made["metadata"] == {"floor": "50%"}
    options = "--information-kept 70% --floor 2% --control a --control-share 10% --failure-probability 10% --range 0,1"
    stopping = ["--missing", "drop", "--window", "2 days", "--precision", "5%", "--metadata", "floor=50%"]
    same = run.data("create", "other", "--arms", "a,b", *options.split(), *stopping, "--seed", made["seed"])
    assert {key: value for key, value in made.items() if same[key] != value} == {"name": "exam"}
    shares = {arm["name"]: arm["floor"] for arm in eq.Experiment.open(made["store"], "exam").describe()["arms"]}
    assert shares == {"a": 0.1, "b": 0.02}
    file.write_text(file.read_text().replace("window_seconds", 'window = "1d"\nwindow_seconds'))
    assert "missing.window must be left out where window_seconds is given" in run("create", "--file", file).err
