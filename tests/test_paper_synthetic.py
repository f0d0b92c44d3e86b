"""The paper's figures on synthetic arms: numbers, claims, tables and pictures of Fig. 1, 3, 7 and 8."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import equipoise as eq
from equipoise.paper.curve_panels import Line, Panel, curve_figure, growth_power, settled_from
from equipoise.paper.findings import Finding, compare, expected_numbers
from equipoise.paper.instances import FIVE_ARMS, LONG, TWO_ARMS, Work, checkpoints, tracked_and_sampled_runs
from equipoise.paper.items import ITEMS, naive_ucb_failure, regret_over_time, tracking

AXES = {"fig1": "share of arm 2", "fig3-right": "average reward per pull"}
NAMES = ["fig1", "fig3-left", "fig3-centre", "fig3-right", "fig7", "fig8"]
CHOSEN = {item.name: item for item in ITEMS if item.name in NAMES}


@pytest.fixture(scope="module")
def work():
    return Work(quick=True)


@pytest.fixture(scope="module")
def findings(work):
    return {name: item.compute(work) for name, item in CHOSEN.items()}


def test_every_item_is_in_the_reproduction_once():
    assert list(CHOSEN) == NAMES
    assert len({item.name for item in ITEMS}) == len(ITEMS)


@pytest.mark.parametrize("name", NAMES)
def test_every_claim_holds_and_says_why(findings, name):
    claims = findings[name].claims
    assert claims
    for claim in claims:
        assert claim.key.startswith(f"{name}.")
        assert claim.holds is True, claim
        assert any(letter.isdigit() for letter in claim.evidence)


@pytest.mark.parametrize("name", NAMES)
def test_every_number_is_measured_and_comes_out(findings, name):
    comparisons = compare(findings[name].measured)
    assert {c.expected.key for c in comparisons} == {key for key, n in expected_numbers().items() if n.item == name}
    for comparison in comparisons:
        assert comparison.holds, comparison
        # What is simulated has a standard error, what is computed has none.
        assert (comparison.measured.standard_error is not None) == (comparison.expected.replications > 0)


@pytest.mark.parametrize("name", NAMES)
def test_tables_and_figures_are_whole(findings, name):
    finding = findings[name]
    assert Finding.from_json(finding.to_json()) == finding
    assert finding.found and all(finding.found) and all(finding.differs)
    for table in finding.tables:
        assert table.rows and all(len(row) == len(table.columns) for row in table.rows)
        assert set(table.digits) <= set(table.columns)
        for row in table.rows:
            for column, cell in zip(table.columns, row, strict=True):
                assert not isinstance(cell, float) or math.isfinite(cell), (table.key, row)
                if column in table.digits and cell is not None:
                    assert format(cell, table.digits[column])
    assert finding.figures
    for figure in finding.figures:
        assert figure.key.startswith(name) and figure.caption.endswith(".")
        text = json.dumps(figure.chart)
        assert "NaN" not in text and "Infinity" not in text
        assert len(text) < 200_000


def test_figures_can_be_drawn(findings):
    # Straight to the drawing: checking every row against the schema again would take ten times as long.
    import vl_convert

    figures = [figure for finding in findings.values() for figure in finding.figures]
    assert len({figure.key for figure in figures}) == len(figures)
    for figure in figures:
        drawn = vl_convert.vegalite_to_svg(figure.chart)
        assert AXES.get(figure.key, "pulls so far") in drawn


def test_runs_are_shared_between_items(work, findings):
    before = work.n_steps
    CHOSEN["fig3-centre"].compute(work)
    assert work.n_steps == before


def test_items_say_about_how_many_steps_they_simulate():
    assert CHOSEN["fig3-left"].n_steps == 100_000 * 200
    assert CHOSEN["fig7"].n_steps == 4 * 25_000 * 100 + 2 * 5_000 * 100


def test_beyond_the_paper_naive_ucb_recovers_in_setting_3(findings):
    (table,) = findings["fig7"].tables
    by_step = {row[0]: row for row in table.rows}
    column = table.columns.index("setting 3: NaiveUCB")
    assert by_step[25_000][column] < 0.05 * by_step[5_000][column]


def test_in_setting_3_naive_ucb_starves_the_arm_of_little_spread(work):
    """The paper says the opposite, which holds for the first pulls alone."""
    steps = [20, 5_000]
    runs = eq.simulate(naive_ucb_failure.NAIVE, TWO_ARMS[2], 5_000, 20, seed=1, checkpoints=steps)
    share = runs.frequency[0, :, :, 0].mean(axis=0)
    best = eq.optimal_allocation(TWO_ARMS[2].mean, TWO_ARMS[2].std, reward_weight=0.4)[0]
    assert share[0] > 0.5 > best > 3 * share[1]


def test_sampling_is_better_for_a_while(findings):
    """Between some hundred and some thousand pulls tracking lets arm 4 wait."""
    (table,) = findings["fig8"].tables
    tracked, drawn = (row for row in table.rows if row[0] == 1_000)
    arm = table.columns.index("error of arm 4")
    assert drawn[arm] < tracked[arm]


# A claim that cannot fail says nothing.


def broken(claims):
    return {claim.key.partition(".")[2] for claim in claims if not claim.holds}


def test_uniform_pulls_have_no_second_and_third_phase(monkeypatch, work):
    def uniform(work):
        return work.simulate(eq.Uniform(), FIVE_ARMS, LONG, 20, checkpoints=checkpoints(LONG))

    monkeypatch.setattr(regret_over_time, "tracked_runs", uniform)
    finding = regret_over_time.compute_regret(work)
    assert broken(finding.claims) == {"falls", "flat-at-the-end"}
    assert not any(comparison.holds for comparison in compare(finding.measured))


def test_with_the_rules_exchanged_nothing_is_slower(monkeypatch, work):
    both = tracked_and_sampled_runs(work)
    monkeypatch.setattr(tracking, "tracked_and_sampled_runs", lambda _: both.select(policies=[1, 0]))
    assert broken(tracking.FIG8.compute(work).claims) == {"slower-frequency", "slower-regret"}


def test_with_the_weights_in_reverse_none_is_faster(monkeypatch, work):
    monkeypatch.setattr(regret_over_time, "WEIGHTS", regret_over_time.WEIGHTS[::-1])
    assert "faster-for-small-weights" in broken(regret_over_time.compute_frontier(work).claims)


def test_forcing_balance_in_place_of_naive_ucb_neither_errs_nor_recovers(monkeypatch, work):
    monkeypatch.setattr(naive_ucb_failure, "NAIVE", naive_ucb_failure.FORCING)
    assert broken(naive_ucb_failure.compute(work).claims) == {"recovers-in-setting-2", "does-not-recover-in-setting-3"}


# Facts of curves, and panels


def test_a_curve_settles_after_its_last_excursion():
    assert settled_from([1, 2, 3], [0.1, 0.1, 0.1], 0.2) == 1
    assert settled_from([1, 2, 3], [0.1, math.nan, 0.1], 0.2) == 3
    assert settled_from([1, 2, 3], [0.1, 0.1, 0.2], 0.2) is None


def test_growth_is_found_in_spite_of_noise():
    step = np.geomspace(10, 10_000, 50)
    noise = np.exp(0.05 * np.random.default_rng(1).normal(size=50))
    assert growth_power(step, 3 * step**-0.5 * noise) == pytest.approx(-0.5, abs=0.02)


def test_a_band_stays_positive_on_a_logarithmic_axis():
    line = Line(name="a", step=np.array([1, 10]), value=np.array([1.0, 0.1]), spread=np.array([0.5, 0.3]))
    for log_scale in (True, False):
        panel = Panel(title="", y_title="y", lines=[line], log_scale=log_scale, rules={5.0: "here"})
        chart = curve_figure([panel], key="k", caption="c", title="t", subtitle="s").chart
        (rows,) = [
            data["values"]
            for data in (layer.get("data", {}) for layer in chart["hconcat"][0]["layer"])
            if "values" in data and "low" in data["values"][0]
        ][:1]
        lows = [row["low"] for row in rows]
        assert (min(lows) > 0) == log_scale


def test_an_infinite_value_leaves_a_gap():
    line = Line(name="a", step=np.array([1, 2, 3]), value=np.array([math.inf, 1.0, 2.0]))
    panel = Panel(title="", y_title="y", lines=[line])
    figure = curve_figure([panel], key="k", caption="c", title="t", subtitle="s")
    assert "Infinity" not in json.dumps(figure.chart)
