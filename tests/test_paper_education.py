"""The educational table and the surrogate it is played on: constants, fit, rows, order of the policies, given arms."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest

import equipoise as eq
from equipoise.paper.educational_runs import (
    COLUMNS,
    HORIZON,
    ON_THE_SURROGATE,
    ROWS,
    WEIGHTS,
    columns_of,
    educational_runs,
    key_of,
    order_claims,
    printed,
    printed_order,
)
from equipoise.paper.findings import Finding, compare, expected_numbers
from equipoise.paper.instances import Work, treefrog_surrogate
from equipoise.paper.items import ITEMS, educational_table, surrogate_derivation
from equipoise.paper.surrogate import (
    CONSTANTS,
    Constants,
    aggregates,
    baseline_equations,
    fit_surrogate,
    misfit,
    possible_constants,
    row_equation,
    solve_constants,
)

MODULES = (educational_table, surrogate_derivation)


@pytest.fixture(scope="module")
def work():
    return Work(quick=True)


@pytest.fixture(scope="module")
def findings(work):
    return {module.ITEM.name: module.ITEM.compute(work) for module in MODULES}


@pytest.fixture(scope="module")
def fitted():
    return fit_surrogate()


# The printed table


def test_every_printed_number_is_expected_with_its_rounding():
    for row, weight in itertools.product(ROWS, WEIGHTS):
        for column in columns_of(row):
            number = expected_numbers()[key_of(row, column, weight)]
            digits = math.floor(math.log10(number.paper)) - 3  # four digits, zeros at the end left out
            assert number.rounding == pytest.approx(0.5 * 10.0**digits), number
            assert number.place == "Fig. 6"
            assert number.tolerance > 0


def test_a_number_that_differs_says_why_and_the_others_are_the_printed_ones():
    for key, number in expected_numbers().items():
        if key.startswith("fig6."):
            assert bool(number.differs) == (number.value != number.paper), key


# Constants


def test_six_rows_agree_on_the_constants_to_rounding():
    equations = baseline_equations()
    assert len(equations) == 6
    assert solve_constants(equations) == pytest.approx(CONSTANTS, abs=5e-4)
    assert all(one.holds(CONSTANTS) for one in equations)


def test_any_two_precise_rows_find_the_constants():
    rows = [one for one in baseline_equations() if one.reward_weight == 0.95 or one.row == "UCB"]
    for pair in itertools.combinations(rows, 2):
        if {one.row for one in pair} != {"GAFS", "Uniform"}:  # these two say almost the same
            assert solve_constants(pair) == pytest.approx(CONSTANTS, rel=0.01)


def test_the_polygon_of_constants_is_where_all_rows_agree():
    equations = baseline_equations()
    corners = possible_constants(equations)
    centre = np.mean(corners, axis=0)
    assert min(corner.mean_max for corner in corners) < CONSTANTS.mean_max < max(corner.mean_max for corner in corners)
    for corner in corners:
        inside, outside = (Constants(*(centre + k * (np.array(corner) - centre))) for k in (0.99, 1.01))
        assert all(one.holds(inside) for one in equations)
        assert not all(one.holds(outside) for one in equations)


def test_rows_that_contradict_each_other_leave_no_constants():
    equations = list(baseline_equations())
    equations[0] = replace(equations[0], regret=equations[0].regret._replace(value=50.0))
    assert possible_constants(equations) == ()


def test_one_row_of_forcing_balance_agrees_and_the_other_does_not():
    assert row_equation("ForcingBalance", 0.95).holds(CONSTANTS)
    assert not row_equation("ForcingBalance", 0.6).holds(CONSTANTS)


# The fit


def test_aggregates_are_those_of_the_policies(work):
    arms = treefrog_surrogate()
    runs = work.simulate([eq.GAFS(), eq.Uniform()], arms, HORIZON, 100, checkpoints=[HORIZON])
    ours = aggregates(arms.mean, arms.std)
    for k, row in enumerate(("GAFS", "Uniform")):
        assert runs.reward()[k].mean() / arms.mean.max() == pytest.approx(ours[f"{row} reward"], abs=1e-4)
        assert runs.error()[k].mean() / arms.std.max() == pytest.approx(ours[f"{row} error"], abs=3e-4)


def test_the_fit_has_what_was_asked(fitted):
    assert fitted.n_arms == 64
    assert (fitted.mean.max(), fitted.std.max()) == CONSTANTS
    assert fitted.std.argmax() == 3
    assert (np.diff(fitted.mean) < 0).all()
    assert fitted.std.min() > 0.5 * fitted.std.mean()
    assert fitted.mean.mean() / CONSTANTS.mean_max == pytest.approx(0.9168, abs=1e-6)
    assert fitted.std.mean() / CONSTANTS.std_max == pytest.approx(5.861 / 8, abs=1e-5)


def test_the_fit_is_no_worse_than_the_surrogate_and_always_the_same(fitted):
    shipped = treefrog_surrogate()
    assert (misfit(fitted.mean, fitted.std) ** 2).sum() < (misfit(shipped.mean, shipped.std) ** 2).sum()
    again = fit_surrogate()
    assert (again.mean == fitted.mean).all() and (again.std == fitted.std).all()


# The items


@pytest.mark.parametrize("module", MODULES)
def test_claims_hold_and_numbers_come_out(findings, module):
    assert module.ITEM.name in [item.name for item in ITEMS]
    finding = findings[module.ITEM.name]
    assert [claim for claim in finding.claims if not claim.holds] == []
    assert all(any(letter.isdigit() for letter in claim.evidence) for claim in finding.claims)
    assert [one for one in compare(finding.measured) if not one.holds] == []
    known = {key for key in expected_numbers() if key.startswith(f"{module.ITEM.name}.")}
    assert {one.key for one in finding.measured} == known
    assert len(finding.measured) == len(known)
    assert Finding.from_json(finding.to_json()) == finding
    json.dumps([figure.chart for figure in finding.figures], allow_nan=False)


def test_the_table_has_ours_and_theirs(findings):
    finding = findings["fig6"]
    assert len(finding.claims) == len(COLUMNS) * len(WEIGHTS)
    for table, weight in zip(finding.tables, WEIGHTS, strict=True):
        assert table.columns[2:] == list(COLUMNS.values())
        papers = [row for row in table.rows if row[1] == "paper"]
        assert [row[2] for row in papers] == [printed(row, "error", weight).value for row in ROWS]
        assert [row[0] for row in table.rows if row[1] == "surrogate"] == list(ROWS)
    titles = [json.dumps(figure.chart["title"]) for figure in finding.figures]
    assert all("surrogate" in text for text in [*titles, *(table.title for table in finding.tables)])


def test_the_text_says_what_the_surrogate_contradicts(findings):
    text = " ".join(findings["fig6"].differs)
    assert "RelDCG, w = 0.95: the paper has GAFS before ForcingBalance" in text
    assert "error/std, w = 0.6: the paper has optimum before GAFS" in text
    assert "the paper does not give the scale" in text
    assert "better than the optimum" in " ".join(findings["surrogate"].differs)


def test_the_order_of_a_column_can_fail(work):
    table = educational_runs(work)
    swapped = dict(table.values)
    ours, theirs = ("ForcingBalance", "regret", 0.95), ("UCB", "regret", 0.95)
    swapped[ours], swapped[theirs] = swapped[theirs], swapped[ours]
    failed = {claim.key for claim in order_claims(replace(table, values=swapped)) if not claim.holds}
    assert failed == {"fig6.order-of-regret-0.95"}


def test_what_holds_is_the_printed_order_except_where_the_text_says_so():
    for (column, weight), order in ON_THE_SURROGATE.items():
        place = {row: k for k, group in enumerate(order) for row in group}
        theirs = {row: k for k, group in enumerate(printed_order(column, weight)) for row in group}
        turned = {(a, b) for a, b in itertools.permutations(place, 2) if place[a] < place[b] and theirs[a] > theirs[b]}
        allowed = {
            ("dcg", 0.95): {("ForcingBalance", "GAFS"), ("ForcingBalance", "Uniform")},
            ("error", 0.6): {("GAFS", "optimum")},
        }
        assert turned == allowed.get((column, weight), set())


def test_given_arms_are_compared_with_the_paper_and_not_called_a_surrogate():
    known = treefrog_surrogate()
    finding = educational_table.compute(Work(quick=True, treefrog=eq.Gaussian(mean=known.mean, std=1.01 * known.std)))
    comparisons = compare(finding.measured)
    assert all(one.expected.value == one.expected.paper and not one.expected.differs for one in comparisons)
    assert all(one.expected.tolerance == one.expected.rounding for one in comparisons)
    verdicts = {one.expected.key: one.verdict for one in comparisons}
    assert verdicts["fig6.uniform.reward"] == "matches"  # the means are those of the surrogate
    assert verdicts["fig6.optimum-0.95.reward"] == "missed"
    assert "surrogate" not in finding.to_json()
    assert "given arms" in finding.tables[0].title
