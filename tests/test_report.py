"""Reports of live experiments: they agree with status and compare, and neither drift nor odd attributes mislead."""

from __future__ import annotations

import numpy as np
import pytest

import equipoise as eq
from equipoise.errors import InvalidInput


def experiment(**settings):
    given = {"arms": ["a", "b"], "policy": eq.Uniform(), "seed": 1, "reward_range": (0, 1)}
    return eq.Experiment.create("memory:", "x", **given | settings)


def enrol(running, n, rate, *, attributes=lambda i: None):
    """Enrol people one after another, whose rewards are 1 with the rate of (arm, number)."""
    rng, start = np.random.default_rng(4), running.status().n_assigned
    for i in range(start, start + n):
        one = running.ask(f"p{i}", attributes=attributes(i))
        running.tell(one.unit, float(rng.random() < rate(one.arm, i)))


@pytest.mark.parametrize("units", [300, 20_000])
def test_status_compare_and_report_have_the_same_intervals_whatever_the_budget(units):
    running = experiment(stopping=[eq.Budget(units=units)])
    enrol(running, 200, lambda arm, i: {"a": 0.3, "b": 0.5}[arm])
    status, compared, report = running.status(), running.compare(), running.report()
    ends = pytest.approx(np.array([(arm.low, arm.high) for arm in status.arms]), abs=1e-12)
    for found in (compared, report.comparison):
        assert np.array([(arm.low, arm.high) for arm in found.arms]) == ends
    assert report.comparison.sentences == (status.sentence,)


def test_the_budget_of_data_collected_elsewhere_tunes_their_intervals():
    frame = {"arm": ["a", "b"] * 50, "reward": [0.0, 1.0, 1.0, 1.0] * 25}
    plain, tuned = (eq.analyse(frame, reward_range=(0, 1), **more).comparison for more in ({}, {"budget": 100}))
    assert tuned.arms[0].half_width < plain.arms[0].half_width


def drifting(**settings):
    """Two arms alike, whose rewards rise while the arm that seems better gets more and more people."""
    running = experiment(
        arms=["old", "new"], policy=None, information_kept=0.7, floor=0.1, seed=2, stopping=[eq.Decided()], **settings
    )
    rate = lambda arm, i: 0.15 + 0.4 * i / 1500  # noqa: E731
    enrol(running, 750, rate)
    running.change_weight(0.95)
    enrol(running, 750, rate)
    return running


def test_under_drift_a_report_says_of_plain_means_that_they_are_of_different_people():
    report = drifting().report()
    assert report.trend.speaks
    assert report.sentences[0].startswith("Over the same people")
    [plain] = report.comparison.sentences
    assert plain.startswith("'new' is the best arm: better than 'old'")
    assert report.sentences[1] == f"By plain means, of different people: {plain}"
    assert plain not in str(report).replace("\n", " ").partition("By plain means")[0]
    assert "Rewards change over time: these means are of different people." in str(report)


def test_decided_is_not_met_where_drift_is_seen():
    blind, seeing = drifting(), drifting(drift="detected")
    assert blind.status().stopping[0].met
    assert any("a report checks this" in one for one in blind.compare().assumptions)
    status = seeing.status()
    assert "Rewards change over time" in status.provisional[0]
    assert not status.stopping[0].met
    assert seeing.compare().sentences[0].startswith("Provisional: ")


@pytest.mark.parametrize("odd", ["old", [1, 2], True])
def test_a_mistyped_attribute_counts_as_missing_and_is_noted(odd):
    running = experiment(covariates=["age"])
    enrol(running, 60, lambda arm, i: 0.5, attributes=lambda i: {"age": odd if i == 30 else 20 + i % 40})
    report = running.report()
    note = f"attribute 'age': 1 value is no number, and counts as missing: {odd!r} (unit 'p30')"
    assert note in report.notes
    assert report.adjusted.columns == ("age", "age is missing")


def test_covariates_of_mixed_types_or_that_nobody_has_are_left_out_unless_they_are_asked_for():
    running = experiment(covariates=["age", "town"])
    enrol(running, 40, lambda arm, i: 0.5, attributes=lambda i: {"age": i if i % 2 else "old"})
    report = running.report()
    assert report.adjusted is None
    mixed, unknown = report.notes
    assert "attribute 'age' must be of one type" in mixed
    assert "no unit of experiment 'x' has an attribute 'town'" in unknown
    for asked in ({"adjust": ["age"]}, {"by": ["town"]}):
        with pytest.raises(InvalidInput):
            running.report(**asked)


def test_a_retired_arm_does_not_keep_decided_from_being_met_and_is_named_as_retired():
    running = experiment(arms=["a", "b", "c"], stopping=[eq.Decided(), eq.Decided(margin=0.05)])
    rate = {"a": 0.3, "b": 0.6, "c": 0.5}
    enrol(running, 18, lambda arm, i: rate[arm])
    running.retire_arm("c")
    enrol(running, 400, lambda arm, i: rate[arm])
    status = running.status()
    assert status.may_be_best == ("b",)
    assert [rule.met for rule in status.stopping] == [True, True]
    assert status.sentence.endswith(" 'c' is retired and left out.")
    assert running.compare().sentences[0] == status.sentence
    assert [arm.retired for arm in running.report().comparison.arms] == [False, False, True]


def test_an_arm_that_is_ruled_out_stays_so_when_arms_are_added():
    running = experiment(stopping=[eq.Decided()])
    enrol(running, 600, lambda arm, i: {"a": 0.3, "b": 0.5}[arm])
    before = running.status()
    assert before.may_be_best == ("b",)
    for i in range(4):
        running.add_arm(f"c{i}")
    after = running.status()
    assert "a" not in after.may_be_best
    assert after.sentence.startswith("'b' is better than 'a'")
    assert not after.stopping[0].met
