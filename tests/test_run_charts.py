"""Charts of simulations: records agree with the runs, pictures can be read whatever the runs are like."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any

import golden
import numpy as np
import pytest
from test_charts import data_of, text_of

import equipoise as eq
from equipoise import charts
from equipoise.charts.style import policy_names

if TYPE_CHECKING:
    from pathlib import Path

FIVE = eq.Gaussian(mean=golden.FIVE_MEANS, std=golden.FIVE_STDS)
BALANCE, SAMPLED = (eq.ForcingBalance(reward_weight=0.9, tracking=tracking) for tracking in ("difference", "sample"))
TRACKED = "ForcingBalance, tracking difference"  # what BALANCE is called beside SAMPLED
UCB, UNIFORM = eq.UCB(scale=1.0), eq.Uniform()
STARVING = eq.Fixed(allocation=[0.5, 0.5, 0.0, 0.0, 0.0])


@pytest.fixture(scope="module")
def runs() -> eq.Runs:
    """Return a few policies, one of which never pulls three of the arms."""
    return eq.simulate([BALANCE, SAMPLED, UCB, STARVING], FIVE, 400, 12, seed=1)


@pytest.fixture(scope="module")
def weights() -> eq.Runs:
    """Return one policy at several weights, and one without a weight."""
    policies = [*(eq.ForcingBalance(reward_weight=w) for w in (0.2, 0.6, 0.9)), UNIFORM]
    return eq.simulate(policies, FIVE, 1000, 4, seed=1, checkpoints=[50, 200, 1000])


def every_chart(runs: eq.Runs, **options: Any) -> list[Any]:
    """Return each chart of the runs once."""
    return [
        charts.curves_chart(charts.curves_record(runs, reward_weight=0.9, **options)),
        charts.arm_share_chart(charts.arm_share_record(runs, 0, reward_weight=0.9, **options)),
        charts.policy_frontier_chart(charts.policy_frontier_record(runs, **options)),
        charts.final_shares_chart(charts.final_shares_record(runs, reward_weight=0.9, **options)),
    ]


def notes_of(chart: Any) -> str:
    """Return what stands below the title of a chart."""
    subtitle = chart.to_dict()["title"]["subtitle"]
    return subtitle if isinstance(subtitle, str) else "\n".join(subtitle)


# --- records ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", charts.METRICS)
def test_curves_are_means_and_quantiles_of_the_metric_over_replications(metric: str, runs: eq.Runs) -> None:
    record = charts.curves_record(runs, metric, reward_weight=0.9, policies=[UCB, BALANCE], quantiles=(0.1, 0.8))
    weighted = metric in {"rescaled_regret", "regret", "tradeoff", "frequency_distance", "target_distance"}
    values = getattr(runs, metric)(**({"reward_weight": 0.9} if weighted else {}))[[2, 0]]
    if metric == "realised_error":  # one number for all replications
        np.testing.assert_allclose(record.value.mean, values)
        np.testing.assert_allclose(record.value.high, values)
        return
    later = runs.checkpoints >= 5  # before, an arm has not been pulled
    values = np.sort(values[:, :, later], axis=1)
    np.testing.assert_allclose(record.value.mean[:, later], values.sum(axis=1) / 12)
    # Of 12 values the 0.1-quantile is a tenth of the way from the second to the third, the 0.8-quantile eight tenths
    # of that from the ninth to the tenth.
    np.testing.assert_allclose(record.value.low[:, later], 0.9 * values[:, 1] + 0.1 * values[:, 2])
    np.testing.assert_allclose(record.value.high[:, later], 0.2 * values[:, 8] + 0.8 * values[:, 9])
    assert record.reward_weight == (0.9 if weighted else None)
    assert record.n_replications == 12


def test_a_share_is_compared_with_the_known_optimum(runs: eq.Runs) -> None:
    record = charts.arm_share_record(runs, 3, reward_weight=0.9, policies=[SAMPLED])
    assert record.optimum == pytest.approx(golden.OPTIMA[1].allocation[3], abs=5.1e-8)
    assert record.arm == "4"
    np.testing.assert_allclose(record.frequency.mean[0], runs.pulls[1, :, :, 3].mean(axis=0) / runs.checkpoints)
    assert np.isnan(record.target.mean[0, runs.checkpoints < 10]).all()
    later = runs.checkpoints >= 10
    np.testing.assert_allclose(record.target.mean[0, later], runs.target[1, :, later, 3].mean(axis=1))
    np.testing.assert_allclose(record.target.high[0, later], np.quantile(runs.target[1, :, later, 3], 0.95, axis=1))


def test_policies_are_placed_by_their_mean_reward_and_error(weights: eq.Runs) -> None:
    record = charts.policy_frontier_record(weights, steps=[1000, 50])
    assert record.step.tolist() == [50, 1000]
    assert record.series == ("ForcingBalance",) * 3 + ("Uniform",)
    share = weights.pulls[..., [0, 2], :] / np.array([[50], [1000]])
    np.testing.assert_allclose(record.reward, (share @ FIVE.mean).mean(axis=1))
    np.testing.assert_allclose(record.error, (FIVE.std / np.sqrt(share)).mean(axis=-1).mean(axis=1))
    assert record.frontier.marked.reward_weight.tolist() == [0.2, 0.6, 0.9]
    marked = charts.policy_frontier_record(weights, reward_weights=[0.0, 0.5], policies=[UNIFORM]).frontier.marked
    assert marked.reward_weight.tolist() == [0.0, 0.5]
    assert charts.policy_frontier_record(weights, policies=[UNIFORM]).frontier.marked.reward_weight.size == 11


def test_the_frontier_is_long_enough_for_the_policies_and_never_below_them() -> None:
    runs = eq.simulate([UCB, UNIFORM, BALANCE], FIVE, 5000, 4, seed=1)
    record = charts.policy_frontier_record(runs)
    curve = record.frontier.curve
    finite = np.isfinite(curve.error)
    assert curve.error[finite].max() >= record.error.max() * (1 - 1e-6) > 20
    best = np.interp(record.error[:, 0], curve.error[finite], curve.reward[finite])
    assert (record.reward[:, 0] <= best + 1e-3).all()


def test_final_shares_are_those_of_the_last_checkpoint_or_of_another(runs: eq.Runs) -> None:
    record = charts.final_shares_record(runs, reward_weight=0.9)
    assert record.optimum == pytest.approx(golden.OPTIMA[1].allocation, abs=5.1e-8)
    assert record.step == 400
    np.testing.assert_allclose(record.share.mean, runs.pulls[:, :, -1].mean(axis=1) / 400)
    np.testing.assert_allclose(record.share.low, np.quantile(runs.pulls[:, :, -1] / 400, 0.05, axis=1))
    earlier = charts.final_shares_record(runs, reward_weight=0.9, step=int(runs.checkpoints[-5]))
    np.testing.assert_allclose(earlier.share.mean, runs.frequency[:, :, -5].mean(axis=1))


def test_names_are_as_short_as_tells_policies_apart() -> None:
    assert policy_names([BALANCE, UCB], None) == ("ForcingBalance", "UCB")
    assert policy_names([BALANCE, SAMPLED], None) == (TRACKED, "ForcingBalance, tracking sample")
    several = [eq.ForcingBalance(reward_weight=w, forcing=f) for w, f in ((0.1, 1.0), (0.9, 1.0), (0.9, 0.25))]
    assert policy_names(several, None) == (
        "ForcingBalance, reward weight 0.1, forcing 1",
        "ForcingBalance, reward weight 0.9, forcing 1",
        "ForcingBalance, reward weight 0.9, forcing 0.25",
    )
    assert policy_names([UCB, UNIFORM, UNIFORM], None) == ("UCB", "Uniform, no. 2", "Uniform, no. 3")
    assert policy_names([BALANCE, UCB], ["ours", "theirs"]) == ("ours", "theirs")


# --- what cannot be asked for -----------------------------------------------------------------------------------------


def test_an_unknown_metric_is_refused_with_those_there_are(runs: eq.Runs) -> None:
    with pytest.raises(eq.InvalidInput, match=r"metric must be one of rescaled_regret, .*rank_error; got 'fun'"):
        charts.curves_record(runs, "fun", reward_weight=0.9)


def test_a_weight_is_wanted_only_where_it_matters(runs: eq.Runs) -> None:
    assert charts.curves_record(runs, "reward").reward_weight is None
    with pytest.raises(eq.InvalidInput, match="reward_weight must be given for regret"):
        charts.curves_record(runs, "regret")
    with pytest.raises(eq.InvalidInput, match=re.escape("reward_weight must be in [0, 1]; got 1.3")):
        charts.curves_record(runs, reward_weight=1.3)


@pytest.mark.parametrize(("arm", "message"), [(5, "arm must be at most 4; got 5"), (-1, "arm must be at least 0")])
def test_an_arm_out_of_range_is_refused(arm: int, message: str, runs: eq.Runs) -> None:
    with pytest.raises(eq.InvalidInput, match=message):
        charts.arm_share_record(runs, arm, reward_weight=0.9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policies": [eq.GAFS()]}, r"GAFS\(\) was not simulated; there are ForcingBalance"),
        ({"policies": []}, "policies must be some of .*; got none"),
        ({"names": ["one"]}, "names must be 4, one per policy; got .'one'."),
        ({"names": "abcd"}, "names must be 4, one per policy; got 'abcd'"),
    ],
)
def test_policies_and_names_are_checked_by_every_record(options: dict[str, Any], message: str, runs: eq.Runs) -> None:
    for record in (charts.curves_record, charts.final_shares_record, charts.policy_frontier_record):
        weight: dict[str, Any] = {} if record is charts.policy_frontier_record else {"reward_weight": 0.9}
        with pytest.raises(eq.InvalidInput, match=message):
            record(runs, **weight, **options)
    with pytest.raises(eq.InvalidInput, match=message):
        charts.arm_share_record(runs, 0, reward_weight=0.9, **options)


def test_lines_need_different_names_and_marks_do_not(runs: eq.Runs) -> None:
    with pytest.raises(eq.InvalidInput, match="names must differ"):
        charts.curves_record(runs, reward_weight=0.9, names=["a", "a", "b", "c"])
    assert charts.policy_frontier_record(runs, names=["a", "a", "b", "c"]).series == ("a", "a", "b", "c")


@pytest.mark.parametrize("quantiles", [(0.9, 0.1), (0.5,), (0.1, 1.2)])
def test_quantiles_are_a_lower_and_an_upper_one(quantiles: Any, runs: eq.Runs) -> None:
    with pytest.raises(eq.InvalidInput, match="quantiles must be"):
        charts.curves_record(runs, reward_weight=0.9, quantiles=quantiles)


def test_a_step_that_was_not_recorded_is_refused_with_those_that_were(runs: eq.Runs) -> None:
    with pytest.raises(eq.InvalidInput, match=r"one of the checkpoints; got 399\nhint: .* 1, 2, .*, 400$"):
        charts.final_shares_record(runs, reward_weight=0.9, step=399)
    with pytest.raises(eq.InvalidInput, match="got 399"):
        charts.policy_frontier_record(runs, steps=[400, 399])
    with pytest.raises(eq.InvalidInput, match="steps must be at least one"):
        charts.policy_frontier_record(runs, steps=[])


# --- pictures ---------------------------------------------------------------------------------------------------------


def test_infinite_values_leave_a_gap_and_are_said(runs: eq.Runs) -> None:
    chart = charts.curves_chart(charts.curves_record(runs, reward_weight=0.9))
    rows = data_of(chart)
    assert {row["value"] for row in rows if row["policy"] == "Fixed"} == {None}
    assert {row["step"] for row in rows if row["policy"] == "UCB" and row["value"] is None} == {1, 2, 3, 4}
    assert all(isinstance(row["high"], float) for row in rows if row["policy"] == "UCB" and row["step"] >= 5)
    assert "no line where the mean is not finite: Fixed" in notes_of(chart)
    # The axis begins where there is something to see.
    assert chart.to_dict()["layer"][0]["encoding"]["x"]["scale"]["domain"] == [5, 400]


def test_one_infinite_replication_hides_the_mean_and_not_the_rest(runs: eq.Runs) -> None:
    """A policy that starved an arm in one replication only has an infinite mean, with finite quantiles."""
    pulls = runs.pulls.copy()
    pulls[0, 0, -1] = [400, 0, 0, 0, 0]
    record = charts.curves_record(dataclasses.replace(runs, pulls=pulls), reward_weight=0.9, quantiles=(0.05, 0.9))
    row = data_of(charts.curves_chart(record))[runs.checkpoints.size - 1]
    assert (row["policy"], row["step"], row["value"]) == (TRACKED, 400, None)
    assert 0 < row["low"] < row["high"] < 10


def test_nothing_finite_is_refused(runs: eq.Runs) -> None:
    record = charts.curves_record(runs, reward_weight=0.9, policies=[STARVING])
    with pytest.raises(eq.InvalidInput, match="nothing to draw: rescaled_regret is nowhere finite"):
        charts.curves_chart(record)


def test_a_policy_without_targets_has_no_line_for_them(runs: eq.Runs) -> None:
    rows = data_of(charts.arm_share_chart(charts.arm_share_record(runs, 0, reward_weight=0.9, policies=[UCB])))
    shares = {
        kind: {row["share"] for row in rows if row["kind"].startswith(kind)} for kind in ("aimed", "given", "best")
    }
    assert shares["aimed"] == {None}
    assert len(shares["best"]) == 1
    assert None not in shares["given"]


def test_on_a_logarithmic_axis_only_positive_numbers_are_drawn(runs: eq.Runs) -> None:
    record = charts.curves_record(runs, "frequency_distance", reward_weight=0.9, policies=[BALANCE, UCB])
    record.value.mean[0, -1] = 0.0
    record.value.low[1, -1] = 0.0
    chart = charts.curves_chart(record, log_scale=True)
    rows = data_of(chart)
    assert rows[runs.checkpoints.size - 1]["value"] is None
    assert min(row[key] for row in rows for key in ("value", "low", "high") if row[key] is not None) > 0
    assert chart.to_dict()["layer"][-1]["encoding"]["y"]["scale"]["type"] == "log"
    shares = charts.arm_share_record(runs, 4, reward_weight=0.9, policies=[STARVING])
    drawn = data_of(charts.arm_share_chart(shares, log_scale=True))
    assert {row["share"] for row in drawn if row["kind"] == "given so far"} == {None}


def test_one_replication_has_no_band(runs: eq.Runs) -> None:
    one = runs.select(replications=[3])
    for chart in every_chart(one, policies=[BALANCE, UCB]):
        words = notes_of(chart)
        assert "one replication" in words
        assert "quantile" not in words
    assert len(charts.curves_chart(charts.curves_record(one, reward_weight=0.9)).to_dict()["layer"]) == 1


def test_bands_can_be_left_out(runs: eq.Runs) -> None:
    record = charts.curves_record(runs, reward_weight=0.9, quantiles=(0.25, 0.75))
    assert "band: from the 25% to the 75% quantile" in notes_of(charts.curves_chart(record))
    without = charts.curves_chart(record, band=False)
    assert "quantile" not in notes_of(without)
    assert [layer["mark"]["type"] for layer in without.to_dict()["layer"]] == ["line"]


def test_lines_and_marks_can_be_told_apart_without_colour(tmp_path: Path) -> None:
    six = [BALANCE, SAMPLED, UCB, UNIFORM, eq.GAFS(), eq.EpsilonGreedy()]
    runs = eq.simulate(six, FIVE, 50, 2, seed=1)
    lines, _, marks, _ = every_chart(runs)
    dashes = lines.to_dict()["layer"][-1]["encoding"]["strokeDash"]["scale"]
    assert len({tuple(dash) for dash in dashes["range"]}) == len(dashes["domain"]) == 6
    shapes = next(layer["encoding"]["shape"] for layer in marks.to_dict()["layer"] if "shape" in layer["encoding"])
    assert len(set(shapes["scale"]["range"])) == 6
    for chart in (lines, marks):
        assert {TRACKED, "ForcingBalance, tracking sample", "GAFS"} <= set(text_of(chart, tmp_path).splitlines())


def test_the_lines_legend_shows_lines(runs: eq.Runs, tmp_path: Path) -> None:
    """With bands or points on the lines Vega would show circles, and no dashes."""
    few = dataclasses.replace(
        runs,
        checkpoints=runs.checkpoints[-3:],
        **{name: getattr(runs, name)[:, :, -3:] for name in ("pulls", "mean", "std", "target")},
    )
    for some in (runs, few):
        chart = charts.curves_chart(charts.curves_record(some, reward_weight=0.9))
        charts.save_chart(chart, tmp_path / "chart.svg")
        symbols = (tmp_path / "chart.svg").read_text().split("role-legend-symbol")[1:]
        assert len(symbols) == 4
        assert sum("stroke-dasharray" in symbol.split("</g>")[0] for symbol in symbols) >= 3
        assert not any("A" in symbol.split(' d="')[1].split('"')[0] for symbol in symbols), "an arc is a circle"


def test_a_policy_of_infinite_error_is_named_instead_of_placed(runs: eq.Runs) -> None:
    chart = charts.policy_frontier_chart(charts.policy_frontier_record(runs))
    assert "which makes the error infinite: Fixed" in notes_of(chart)
    assert {row["policy"] for row in data_of(chart) if "policy" in row} == {
        TRACKED,
        "ForcingBalance, tracking sample",
        "UCB",
    }


def test_policies_that_differ_in_weight_are_joined_at_each_step_and_others_over_steps(weights: eq.Runs) -> None:
    chart = charts.policy_frontier_chart(charts.policy_frontier_record(weights, steps=[50, 200, 1000]))
    joined: dict[str, set[Any]] = {}
    for row in data_of(chart):
        if "line" in row:
            joined.setdefault(row["line"], set()).add((row["label"], row["step"]))
    assert sorted((len(points), len({step for _, step in points})) for points in joined.values()) == [
        (3, 1),
        (3, 1),
        (3, 1),
        (3, 3),
    ]
    assert "size" in chart.to_dict()["layer"][1]["encoding"]


def test_final_shares_mark_arms_that_were_never_pulled(runs: eq.Runs) -> None:
    chart = charts.final_shares_chart(charts.final_shares_record(runs, reward_weight=0.9, policies=[STARVING]))
    marks = {row["arm"]: row["mark"] for row in data_of(chart)}
    assert marks == {"1": "pulled", "2": "pulled", "3": "never pulled", "4": "never pulled", "5": "never pulled"}
    assert "cross: never pulled" in notes_of(chart)
    assert all(row["place"] > 0 for row in data_of(chart)), "there is no 0 on a logarithmic axis"


def test_final_shares_are_on_a_linear_axis_where_zero_is_an_answer(runs: eq.Runs) -> None:
    chart = charts.final_shares_chart(charts.final_shares_record(runs, reward_weight=1.0))
    scales = [layer["encoding"]["x"].get("scale", {}) for layer in chart.to_dict()["spec"]["layer"]]
    assert not any(scale.get("type") == "log" for scale in scales)
    assert {row["optimum"] for row in data_of(chart)} == {0.0, 1.0}


@pytest.mark.parametrize(("n_arms", "n_rows"), [(1, 1), (2, 2), (64, 64), (90, 80)])
def test_every_chart_is_drawn_for_few_and_many_arms(n_arms: int, n_rows: int) -> None:
    arms = eq.Gaussian(mean=np.linspace(0, 1, n_arms), std=np.linspace(2, 1, n_arms))
    for count in (1, 2):
        runs = eq.simulate([BALANCE, eq.ThompsonSampling()][:count], arms, 3 * n_arms, 2, seed=1)
        for chart in every_chart(runs):
            assert chart.to_dict()["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
        assert len({row["arm"] for row in data_of(chart)}) == n_rows
        assert ("80 largest optimal shares, 10 more arms not shown" in notes_of(chart)) == (n_arms == 90)


def test_arms_have_the_names_given(runs: eq.Runs, tmp_path: Path) -> None:
    names = ["none", "pie", "bar", "line", "number line"]
    share = charts.arm_share_record(runs, 4, reward_weight=0.9, arms=names)
    assert "Share of number line over time (reward weight 0.9)" in text_of(charts.arm_share_chart(share), tmp_path)
    final = charts.final_shares_record(runs, reward_weight=0.9, arms=names)
    assert re.search("^number line$.*^pie$.*^none$", text_of(charts.final_shares_chart(final), tmp_path), re.M | re.S)


def test_arms_of_the_runs_bring_their_names(tmp_path: Path) -> None:
    arms = eq.Bernoulli(mean=[0.2, 0.6], names=["pie", "number line"])
    runs = eq.simulate(BALANCE, arms, 50, 2, checkpoints=[1, 50])
    assert charts.arm_share_record(runs, 1, reward_weight=0.9).arm == "number line"
    assert charts.final_shares_record(runs, reward_weight=0.9).arms == ("pie", "number line")
    assert charts.final_shares_record(runs, reward_weight=0.9, arms=["a", "b"]).arms == ("a", "b")


def test_one_pull_is_one_pull(runs: eq.Runs, tmp_path: Path) -> None:
    final = charts.final_shares_record(runs, reward_weight=0.9, step=1)
    assert "Shares after 1 pull (reward weight 0.9)" in text_of(charts.final_shares_chart(final), tmp_path)
    frontier = charts.policy_frontier_record(runs, steps=[1])
    assert "mean of 12 replications after 1 pull" in notes_of(charts.policy_frontier_chart(frontier)).splitlines()[0]


@pytest.mark.parametrize("ending", ["html", "png", "svg", "pdf"])
def test_every_chart_is_written_as_every_kind_of_file(ending: str, runs: eq.Runs, tmp_path: Path) -> None:
    starts = {"html": b"<!DOCTYPE html>", "png": b"\x89PNG", "svg": b"<svg", "pdf": b"%PDF-"}
    for k, chart in enumerate(every_chart(runs)):
        file = tmp_path / f"chart{k}.{ending}"
        charts.save_chart(chart, file)
        assert file.read_bytes().lstrip().startswith(starts[ending])
        if ending == "html":
            assert not re.search(r"<(script|link)\b[^>]*\b(src|href)\s*=", file.read_text()), "it needs no network"


def test_policies_that_keep_information_lie_on_the_frontier_at_the_weights_that_it_takes() -> None:
    arms = eq.Gaussian(mean=[1, 1.5, 2], std=[1, 1, 1])
    shares = (0.9, 0.5)
    policies = [eq.PooledBalance(information_kept=share) for share in shares] + [
        eq.PooledBalance(information_kept=0.5, information_about="every-arm"),
        eq.Uniform(),
    ]
    record = charts.policy_frontier_record(eq.simulate(policies, arms, 500, 4, seed=1))
    wanted = [eq.weight_for_information(arms.mean, arms.std, information_kept=share) for share in shares]
    assert record.frontier.marked.reward_weight == pytest.approx(wanted, abs=1e-4)
    assert len(set(record.series)) == 3  # one line for the dial, and one point each for the others
    charts.policy_frontier_chart(record).to_dict()
