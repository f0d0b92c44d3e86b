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


FRAME = {"arm": ["a", "b"] * 50, "reward": [0.0, 1.0, 1.0, 1.0] * 25, "age": [30, 40] * 50}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"probabilities": ["px", "py"]}, "probabilities must name a column or a number for each arm"),
        ({"reward_weight": "0.5"}, "reward_weight must be a number"),
        ({"reward_weight": 2}, r"reward_weight must be in \[0, 1\]; got 2"),
        ({"adjust": "age"}, "adjust must be a list of names of columns; got 'age'"),
        ({"adjust": ["reward"]}, "adjust must hold what was known before the assignment; got 'reward'"),
        ({"by": ["arm"]}, "by must hold what was known before the assignment; got 'arm'"),
        ({"arm": "reward"}, "reward must be another column than that of the arm"),
        ({"reward": "Reward"}, "hint: name the column as the frame does: 'reward'"),
    ],
)
def test_wrong_arguments_of_an_analysis_are_named(settings, words):
    with pytest.raises(InvalidInput, match=words):
        eq.analyse(FRAME, **settings)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("arm;reward\na;1\nb;0\n", "separate the columns by commas, not by semicolons"),
        ('arm,reward\na,"0,5"\nb,1\n', "write numbers with a decimal point"),
        ("arm,reward\na,yes\nb,no\n", "write 1 for yes and 0 for no"),
    ],
)
def test_files_that_spreadsheets_write_get_a_hint(tmp_path, text, words):
    path = tmp_path / "data.csv"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=words):
        eq.analyse(path)


def test_a_directory_is_no_file():
    with pytest.raises(InvalidInput, match="must be a data frame, or the path of a CSV file"):
        eq.analyse("")


def test_only_the_times_that_are_missing_are_asked_for():
    given = FRAME | {"at": list(range(100))}
    assert any(note.startswith("No times of rewards are given") for note in eq.analyse(given, at="at").notes)
    both = eq.analyse(given, at="at", rewarded_at="at")
    assert not any("times of" in note for note in both.notes)


def test_data_of_a_bandit_get_no_intervals_of_ordinary_width():
    frame = {"arm": ["a", "b"] * 50, "reward": [0.0, 1.0, 1.0, 1.0, 0.0] * 20}
    settled, bandit = (eq.analyse(frame, budget=100, shares_settle=one) for one in (True, False))
    assert settled.at_end.means
    assert any("shares_settle=False" in note for note in settled.notes)
    assert "shares of this policy need not settle" in bandit.at_end.refused[0]


def test_published_figures_that_cannot_be_are_refused():
    summary = eq.analysis.Evidence.from_summary
    with pytest.raises(InvalidInput, match="std must be at most"):
        summary([40, 40], [0.5, 0.5], [0.5, 5.0], reward_range=(0, 1))
    with pytest.raises(InvalidInput, match="mean must have 2 entries"):
        summary([40, 40], [0.5], [0.5, 0.5])
    two = summary([40, 40], [0.2, 0.5], [0.4, 0.5], reward_range=(0, 1))
    with pytest.raises(InvalidInput, match="names must be different"):
        eq.analysis.compare(two, ["a", "a"])
    with pytest.raises(InvalidInput, match="pairs must hold each pair once"):
        eq.analysis.compare(two, ["a", "b"], pairs=[("a", "b"), ("b", "a")])


def test_a_comparison_that_was_not_declared_says_so():
    running = experiment(arms=["a", "b", "c"], control="a")
    enrol(running, 90, lambda arm, i: {"a": 0.3, "b": 0.5, "c": 0.4}[arm])

    def remarks(**choice):
        return [one for one in running.compare(**choice).assumptions if "not declared beforehand" in one]

    assert remarks() == remarks(control="a") == remarks(all_pairs=True) == []
    assert remarks(control="b")[0].startswith("This control was not declared")
    assert remarks(arm="b", other="c")[0].startswith("These two arms were not declared")
