"""What `status` says one may decide on: intervals that hold together, who may be best, and when it is provisional."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

import equipoise as eq
from equipoise.status_table import status_lines
from equipoise.testing.unit_contract import StoppedClock

HOUR = 3600.0
RULES = [
    eq.Precision(half_width=0.4),
    eq.Precision(half_width=0.5, of="differences"),
    eq.Decided(),
    eq.Decided(margin=1),
]


@pytest.fixture
def clock():
    return StoppedClock()


@pytest.fixture
def create(clock):
    """Make experiments with yes or no as reward, in a store whose clock stands still."""
    with eq.open_store("memory:", clock=clock) as store:

        def make(arms=("plain", "prize"), **settings):
            settings = {"policy": eq.Uniform(), "seed": 1, "reward_range": (0, 1), "missing": None} | settings
            return eq.Experiment.create(store, f"experiment {len(eq.Experiment.list(store))}", arms=arms, **settings)

        yield make


def assign(experiment, n_units):
    """Assign units in turn, and return them with the reward that each will have: 60 of 100 with 'prize', else 30."""
    rates = {"prize": 0.6, "personal": 0.55}
    return rewards_of(experiment, n_units, lambda arm: rates.get(arm, 0.3))


def rewards_of(experiment, n_units, rate, *, first=0):
    """Assign units; return their rewards, 1 or 0, such that the mean of each arm is its rate after few units."""
    seen, rewards = Counter(), {}
    for one in experiment.ask_many([f"unit {i}" for i in range(first, first + n_units)]):
        k, p = seen[one.arm], rate(one.arm)
        rewards[one.unit] = float(int((k + 1) * p + 1e-9) > int(k * p + 1e-9))
        seen[one.arm] += 1
    return rewards


def filled(experiment, n_per_arm, rates):
    """Give each arm as many rewards with this mean."""
    means = dict(zip([arm.arm for arm in experiment.status().arms], rates, strict=True))
    experiment.tell_many(rewards_of(experiment, n_per_arm * len(rates), means.__getitem__))
    return experiment.status()


def met(status):
    return [rule.met for rule in status.stopping]


def screen(status, width=100):
    return "\n".join(line.text for line in status_lines(status, width=width))


# --- provisional ------------------------------------------------------------------------------------------------------


def test_where_silence_means_no_everything_is_provisional_until_the_rest_is_in(create):
    """Only the yes come in; all intervals would be far too high, and no rule may be met by them."""
    experiment = create(stopping=RULES)
    rewards = assign(experiment, 400)
    experiment.tell_many({unit: reward for unit, reward in rewards.items() if reward})
    status = experiment.status()
    [reason] = status.provisional
    assert reason.startswith("140 of 200 units of 'plain' have no reward yet, and rewards count as they come")
    assert met(status) == [False] * 4
    assert status.arms[0].low > 0.3  # what it would promise is wrong
    assert json.loads(json.dumps(status.to_dict()))["provisional"] == [reason]
    shown = screen(status)
    assert f"Provisional: {status.sentence}"[:60] in shown
    assert "Why provisional: 140 of 200 units" in shown
    assert "+/- would hold with 95%" in shown
    assert experiment.compare().provisional == status.provisional
    assert experiment.compare().sentences[0].startswith("Provisional: ")

    experiment.tell_many(rewards)
    status = experiment.status()
    assert status.provisional == ()
    assert met(status) == [True] * 4
    assert status.arms[0].low < 0.3 < status.arms[0].high
    assert "rovisional" not in screen(status)
    assert "+/- holds with 95%" in screen(status)


@pytest.mark.parametrize("hold", [False, True])
def test_quick_good_news_is_a_reason_unless_rewards_are_held(create, clock, hold):
    experiment = create(missing=eq.DropUnit(window_seconds=HOUR, hold=hold), stopping=RULES)
    rewards = assign(experiment, 200)
    experiment.tell_many({unit: reward for unit, reward in rewards.items() if reward})
    status = experiment.status()
    assert bool(status.provisional) == (not hold)
    assert not any(met(status))  # with hold, as nothing counts yet
    experiment.tell_many(rewards)
    clock.advance(HOUR + 1)
    experiment.settle()
    status = experiment.status()
    assert (status.n_rewarded, status.provisional) == (200, ())
    assert met(status) == [True] * 4


@pytest.mark.parametrize(("n_missing", "is_provisional"), [(0, False), (5, False), (6, True), (100, True)])
def test_units_that_are_dropped_are_a_reason_beyond_five_percent_of_an_arm(create, clock, n_missing, is_provisional):
    experiment = create(missing=eq.DropUnit(window_seconds=HOUR), stopping=[eq.Precision(half_width=0.9)])
    rewards = assign(experiment, 200)
    units = {arm: [unit for unit in rewards if experiment.assignment(unit).arm == arm] for arm in ("plain", "prize")}
    for unit in units["prize"][:n_missing]:
        del rewards[unit]
    experiment.tell_many(rewards)
    clock.advance(HOUR + 1)
    experiment.settle()
    status = experiment.status()
    assert status.n_dropped == n_missing
    assert bool(status.provisional) == is_provisional
    if is_provisional:
        assert status.provisional[0].startswith(f"{n_missing} of 100 units of 'prize' are without a reward for good")
    assert met(status) == [not is_provisional and n_missing < 100]


def test_units_that_are_overdue_or_withdrawn_count_as_missing_and_a_default_does_not(create, clock):
    for missing, expected in (
        (eq.WaitForReward(window_seconds=HOUR), True),
        (eq.DefaultReward(value=0, window_seconds=HOUR), False),
    ):
        experiment = create(missing=missing)
        rewards = assign(experiment, 100)
        experiment.tell_many(dict(list(rewards.items())[:80]))
        clock.advance(HOUR + 1)
        experiment.settle()
        assert bool(experiment.status().provisional) == expected
    experiment = create()
    experiment.tell_many(assign(experiment, 40))
    assert experiment.status().provisional == ()
    for i in range(8):
        experiment.withdraw(f"unit {i}", "left")
    assert "without a reward for good" in experiment.status().provisional[0]


def test_a_few_open_rewards_among_many_are_no_reason(create):
    experiment = create(stopping=RULES)
    rewards = assign(experiment, 800)
    experiment.tell_many(dict(list(rewards.items())[:-1]))
    assert experiment.status().n_pending == 1
    assert experiment.status().provisional == ()
    assert met(experiment.status()) == [True] * 4


# --- intervals --------------------------------------------------------------------------------------------------------


def test_the_intervals_of_all_arms_hold_together(create):
    """Those of four arms are those of an arm alone at a quarter of the failure probability."""
    several = filled(create(arms=list("abcd")), 100, [0.3, 0.5, 0.3, 0.5])
    alone = filled(create(arms=["a"], failure_probability=0.05 / 4), 100, [0.3])
    assert several.arms[0].low == pytest.approx(alone.arms[0].low, rel=1e-9)
    assert several.arms[2].high == pytest.approx(alone.arms[0].high, rel=1e-9)
    assert (several.confidence, several.interval) == (0.95, "guaranteed")


def test_arms_that_are_added_later_change_nothing_that_was_shown(create):
    experiment = create()
    before = filled(experiment, 100, [0.3, 0.6])
    for name in ("late", "later"):
        experiment.add_arm(name)
    after = experiment.status()
    assert [(arm.low, arm.high) for arm in after.arms[:2]] == [(arm.low, arm.high) for arm in before.arms]
    assert after.arms[2].low is after.arms[2].half_width is None
    # Those who came first keep nine tenths of the failure probability, so the others pay more.
    experiment.pause_arm("plain")
    experiment.pause_arm("prize")
    experiment.tell_many(rewards_of(experiment, 200, lambda _: 0.3, first=1000))
    first, _, late, later = experiment.status().arms
    assert first.mean == late.mean == later.mean == pytest.approx(0.3)
    assert first.half_width < late.half_width < later.half_width


def test_a_half_width_is_the_larger_distance_to_an_end(create):
    """Near an end of the range the interval is not symmetric."""
    for arm in filled(create(), 200, [0.02, 0.98]).arms:
        below, above = arm.mean - arm.low, arm.high - arm.mean
        assert arm.half_width == max(below, above) > 1.5 * min(below, above)


def test_every_interval_contains_its_mean_and_a_wider_one_comes_with_more_confidence(create):
    widths = []
    for failure in (0.2, 0.05, 0.001):
        status = filled(create(failure_probability=failure), 60, [0.1, 0.7])
        assert all(arm.low <= arm.mean <= arm.high for arm in status.arms)
        widths.append([arm.half_width for arm in status.arms])
    assert widths == sorted(widths)


# --- who may be best --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("control", [None, "a", "c"])
def test_status_says_of_the_arms_what_the_comparison_says(control):
    rng = np.random.default_rng(7)
    experiment = eq.Experiment.create(
        "memory:", "exam", arms=["a", "b", "c"], reward_weight=0.5, control=control, reward_range=(0, 1), seed=1
    )
    rates = {"a": 0.2, "b": 0.5, "c": 0.6}
    for unit in range(600):
        given = experiment.ask(f"student-{unit}")
        experiment.tell(given.unit, float(rng.random() < rates[given.arm]))
        if unit % 150 == 149:
            said = experiment.compare().sentences[0]
            assert said.removeprefix("Provisional: ") == experiment.status().sentence
    assert "'c' is" in experiment.status().sentence


def test_one_sentence_says_what_may_be_said():
    sizes = {}
    for rates in ([0.3, 0.6], [0.1, 0.4, 0.45], [0.2 + 0.02 * i for i in range(22)]):
        names = ["plain", "prize", "personal"] if len(rates) < 4 else [f"arm {i}" for i in range(22)]
        experiment = eq.Experiment.create(
            "memory:", "x", arms=names[: len(rates)], policy=eq.Uniform(), seed=1, reward_range=(0, 1)
        )
        status = filled(experiment, 400, rates)
        sizes[len(rates)] = status
        lines = screen(status, width=60).splitlines()
        assert all(len(line) <= 60 for line in lines)
        assert status.sentence in " ".join(line.strip() for line in lines)
        assert status.sentence == experiment.compare().sentences[0]
    assert sizes[2].sentence.startswith("'prize' is the best arm: better than 'plain', by 0.")
    assert sizes[2].may_be_best == ("prize",)
    assert sizes[3].sentence.startswith("'personal' is better than 'plain', by 0.")
    assert sizes[3].sentence.endswith(". 'prize' may still be best.")
    assert sizes[3].may_be_best == ("prize", "personal")
    assert sizes[22].sentence.startswith("'arm 21' is better than ")
    assert " of the 21 others, by at least 0." in sizes[22].sentence
    assert f"{len(sizes[22].may_be_best) - 1} other arms may still be best." in sizes[22].sentence


def test_before_there_are_rewards_all_arms_may_be_best(create):
    experiment = create(stopping=RULES)
    status = experiment.status()
    assert (status.sentence, status.may_be_best) == ("There are no rewards yet.", ("plain", "prize"))
    assert [(rule.met, rule.now) for rule in status.stopping] == [
        (False, None),
        (False, None),
        (False, 2),
        (False, None),
    ]
    assert "no rewards yet" not in screen(status)
    assert "wanted 0.4, not known yet" in screen(status)


def test_a_single_arm_has_nothing_to_be_compared_with(create):
    status = filled(create(arms=["only"], stopping=[eq.Precision(half_width=0.5, of="differences")]), 50, [0.5])
    assert status.may_be_best == ("only",)
    assert "best" not in screen(status)
    assert [(rule.met, rule.now) for rule in status.stopping] == [(False, None)]


def test_where_small_rewards_are_good_the_smallest_mean_is_best(create):
    experiment = create(direction="minimise", stopping=RULES)
    status = filled(experiment, 300, [0.3, 0.6])
    assert status.may_be_best == ("plain",)
    assert status.sentence.startswith("'plain' is the best arm: better than 'prize', by 0.")
    assert met(status) == [True] * 4
    # The mirror image of the same experiment with large rewards good.
    mirrored = filled(create(), 300, [0.7, 0.4])
    assert [1 - arm.high for arm in mirrored.arms] == pytest.approx([arm.low for arm in status.arms], abs=1e-6)


# --- stopping rules ---------------------------------------------------------------------------------------------------


def test_decided_counts_the_arms_that_may_still_be_best(create):
    experiment = create(arms=("plain", "prize", "personal"), stopping=[eq.Decided(), eq.Decided(margin=0.2)])
    status = filled(experiment, 150, [0.1, 0.45, 0.5])
    whole, within = status.stopping
    assert (whole.rule, whole.met, whole.now, whole.goal) == ("decided", False, 2, 1)
    [lost] = [arm.most_lost for arm in experiment.compare().arms if arm.arm == "personal"]
    assert (within.rule, within.goal) == ("decided within a margin", 0.2)
    assert within.now == status.most_lost == pytest.approx(lost)
    assert within.met == (lost <= 0.2)
    assert "stopping rule decided: 2 arms may still be best, wanted 1" in screen(status)
    assert "the best so far is worse than another by at most" in screen(status)


def test_precision_of_differences_is_that_of_compare(create):
    """From the control if there is one; a retired arm does not count."""
    for settings in ({}, {"control": "plain"}):
        experiment = create(
            arms=("plain", "prize", "personal"), stopping=[eq.Precision(half_width=0.3, of="differences")], **settings
        )
        filled(experiment, 60, [0.3, 0.6, 0.5])
        differences = experiment.compare().differences
        assert len(differences) == 3 - len(settings)
        widest = max(max(one.difference - one.low, one.high - one.difference) for one in differences)
        [rule] = experiment.status().stopping
        assert (rule.rule, rule.now, rule.goal) == ("precision of differences", pytest.approx(widest), 0.3)
        assert rule.met == (widest <= 0.3)
        experiment.retire_arm("personal")
        [rule] = experiment.status().stopping
        [left] = [one for one in differences if "personal" not in (one.arm, one.other)]
        assert rule.now == pytest.approx(max(left.difference - left.low, left.high - left.difference))


def test_what_takes_long_is_only_computed_for_rules_that_read_it(create):
    plain = filled(create(), 50, [0.3, 0.6])
    assert plain.most_lost is plain.widest_difference is None
    asked = filled(create(stopping=RULES), 50, [0.3, 0.6])
    assert asked.most_lost is not None
    assert asked.widest_difference > 0
