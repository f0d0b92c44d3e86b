"""Plans: what they say, what is wrong with them, and the worlds that simulated experiments draw from them."""

from __future__ import annotations

import dataclasses
import datetime
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise.planner import SCENARIOS, plan_from_options, plan_with_options
from equipoise.planner.population import Population
from equipoise.planner.trials import play
from equipoise.planner.worlds import BETA, EMPIRICAL, GAMMA, NORMAL, YES_NO

RATES = {"plain": "30%", "prize": "40% to 60%"}
PEOPLE = eq.People(per_day=96, start="2027-03-01", until="2027-06-30")
SCORES = {"plain": {"mean": 12, "std": 4}, "prize": {"mean": "13 to 15", "std": "3 to 5"}}


def plan(**given):
    return eq.Plan(**({"arms": RATES, "people": PEOPLE} | given))


# What plans say


def test_defaults_are_what_most_people_want():
    made = plan()
    assert [way.label for way in made.ways] == [
        "equal shares",
        *(f"information kept {kept}" for kept in ("1", "0.9", "0.7", "0.5", "0.25")),
    ]
    assert made.reward_range == (0.0, 1.0) and made.goals.by == 0.8 and made.rewards.delay is None
    assert made.expected_people == 96 * 122
    assert made.deadline == datetime.datetime(2027, 7, 1, tzinfo=datetime.UTC)


def test_parts_may_be_mappings():
    made = plan(
        people={"per_day": "80 to 112", "days": 60},
        rewards={"delay": ("8h", "2 days"), "missing": "5%", "rule": "drop", "window": "2 days", "hold": True},
        goals={"precision": "6%", "by": "90%"},
        drift={"per_week": "0.1%"},
        costs={"per_person": 2},
    )
    assert made.rewards.rule == eq.DropUnit(window_seconds=172_800, hold=True)
    assert made.goals == eq.Goals(precision=0.06, by=0.9)
    assert plan(goals=0.06).goals == eq.Goals(precision=0.06) and plan(people=3000).people == eq.People(most=3000)


def test_equal_shares_are_always_among_the_ways_and_others_keep_their_order():
    made = plan(ways=[eq.Way.weighing(0.8, floor=0.02), eq.ThompsonSampling(), "UCB"])
    assert [way.label for way in made.ways] == ["equal shares", "weight 0.8", "ThompsonSampling", "UCB"]
    made = plan(ways={"weights": [0.5], "information_kept": ["70%"], "information_about": "every-arm", "floor": "2%"})
    assert [way.label for way in made.ways] == ["equal shares", "information kept 0.7 about every-arm", "weight 0.5"]
    assert [way.floor for way in made.ways] == [0.0, 0.02, 0.02]
    assert made.way("weight 0.5").policy == eq.PooledBalance(reward_weight=0.5, tracking="windowed")


def test_weekdays_and_a_ramp_shape_the_days():
    monday = eq.People(per_day=70, weekdays=[2, 1, 1, 1, 1, 0.5, 0.5], start="2027-03-01", days=14)
    counts = monday.expected(70, 14)
    assert (
        counts[:7].mean() == pytest.approx(70) and counts[0] == pytest.approx(140) and (counts[7:] == counts[:7]).all()
    )
    sunday = eq.People(per_day=70, weekdays=[2, 1, 1, 1, 1, 0.5, 0.5], start="2027-03-07", days=14)
    assert sunday.expected(70, 2).tolist() == pytest.approx([35, 140])
    ramp = eq.People(per_day=100, ramp="4 days", days=6).expected(100, 6)
    assert ramp.tolist() == pytest.approx([12.5, 37.5, 62.5, 87.5, 100, 100])


def test_enrolment_ends_when_people_dates_or_the_goal_say():
    assert plan(people=eq.People(per_day=10, most=100, exact=True)).enrolment_days == 10
    assert plan(people=eq.People(per_day=10, most=100)).enrolment_days == 16  # almost surely
    assert plan(people=eq.People(counts=[5, 0, 7])).enrolment_days == 3
    fine, coarse = (plan(people=eq.People(per_day=100), goals=width) for width in (0.05, 0.1))
    assert fine.enrolment_days == pytest.approx(4 * coarse.enrolment_days, rel=0.15)
    assert fine.most_people is not None and fine.people.most is None
    assert not any(isinstance(rule, eq.Budget) for rule in fine.settings("equal shares")["stopping"])


@given(
    st.builds(
        eq.People,
        per_day=st.sampled_from([50, "20 to 60"]),
        days=st.none() | st.integers(1, 200),
        most=st.integers(10, 5000),
        exact=st.booleans(),
    ),
    st.sampled_from([None, "8h", ("8h", "20h"), "2h to 12h"]),
)
@settings(max_examples=50)
def test_looks_increase_cover_enrolment_and_end_at_the_very_end(people, delay):
    made = plan(people=people, rewards={"delay": delay} if made_longer(people) else {})
    looks = made.look_seconds()
    assert (np.diff(looks) > 0).all() and math.isinf(looks[-1]) and 40 <= looks.size <= 80
    for replication in range(20):
        world, _ = made.world(replication)
        assert people.days is not None or looks[-2] >= world.per_day.size * 86_400 * 0.5
    assert looks[-2] >= made.enrolment_days * 86_400 * (1 - 1e-12)


def made_longer(people):
    return people.days is None or people.days > 1


def test_settings_create_the_experiment():
    made = plan(
        rewards=eq.Rewards(rule=eq.DropUnit(window_seconds=172_800), delay="8h"),
        control="plain",
        goals=eq.Goals(precision=0.06, margin=0.02, failure_probability=0.1),
        ways={"weights": [0.8], "floor": 0.02, "control_share": 0.1, "warm_up": 5},
    )
    experiment = eq.Experiment.create("memory:", "flu", **made.settings("weight 0.8"), seed=1)
    configuration = experiment.configuration
    assert configuration.stopping == (
        eq.Deadline(at="2027-07-01T00:00:00+00:00"),
        eq.Precision(half_width=0.06),
        eq.Decided(margin=0.02),
    )
    assert (configuration.control, configuration.warm_up, configuration.failure_probability) == ("plain", 5, 0.1)
    assert [arm["floor"] for arm in experiment.describe()["arms"]] == [0.1, 0.02]
    for way in made.ways:
        eq.Experiment.create("memory:", "flu", **made.settings(way), seed=1)


def test_scenarios_say_what_if():
    made = plan(arms={"a": "30%", "b": "50%", "c": "60%"}, control="a")
    found = {name: [arm.rate.value for arm in made.scenario(name).arms] for name in SCENARIOS}
    assert found["as guessed"] == [0.3, 0.5, 0.6]
    assert found["no difference"] == pytest.approx([1.4 / 3] * 3)
    assert found["half the differences"] == pytest.approx([(one + 1.4 / 3) / 2 for one in (0.3, 0.5, 0.6)])
    assert found["another arm is best"] == [0.6, 0.5, 0.3]
    half = made.scenario("half as many people")
    assert half.people.per_day.value == 48 and half.arms == made.arms
    smaller = plan(arms=SCORES, rewards={"direction": "minimise"}).scenario("another arm is best")
    assert [arm.mean.value for arm in smaller.arms] == [14, 12]


# Worlds


def test_a_world_is_a_function_of_seed_and_replication():
    made, again = (
        plan(people=eq.People(per_day="80 to 112", days=30)),
        plan(people=eq.People(per_day="80 to 112", days=30)),
    )
    (first, drawn), (same, drawn_again) = made.world(3), again.world(3)
    assert drawn == drawn_again and all(np.array_equal(a, b) for a, b in zip(first, same, strict=True))
    assert made.world(4)[1] != drawn
    assert set(drawn) == {"arms.prize.rate", "people.per_day"}
    at = made.at_guesses()[0]
    assert at.mean.tolist() == [0.3, 0.5] and at.per_day[0] == pytest.approx(math.sqrt(80 * 112))


def test_what_one_guess_draws_does_not_depend_on_the_others():
    other = plan(people=eq.People(per_day="80 to 112", days=30), arms=RATES | {"third": "10% to 20%"})
    assert plan().world(5)[1]["arms.prize.rate"] == other.world(5)[1]["arms.prize.rate"]


def test_drawn_truths_have_the_stated_quantiles():
    made = plan(
        arms={"plain": "25% (10% to 30%)", "prize": {"rate": "50%", "missing": "1% to 4%", "delay": "6h to 20h"}},
        people=eq.People(per_day="80 to 112", days=30),
        rewards=eq.Rewards(delay=("6h to 10h", "2 days (1 day to 4 days)"), missing="3% to 8%", missing_ratio=(1, 3)),
    )
    n = 1000
    drawn = [made.world(replication)[1] for replication in range(n)]
    guesses = made.guesses
    assert {path for path, guess in guesses.items() if not guess.is_sure} == set(drawn[0])
    for path in drawn[0]:
        values = np.array([one[path] for one in drawn])
        for probability, end in ((0.1, guesses[path].low), (0.5, guesses[path].value), (0.9, guesses[path].high)):
            error = math.sqrt(probability * (1 - probability) / n)
            assert abs(np.mean(values < end) - probability) < 4 * error, (path, probability)


PILOT = {"a": [3.0, 5.0, 5.5, 7.0, 9.5], "b": [1.0, 6.0, 8.0, 8.0]}
WORLDS = {
    "yes/no": (RATES, {}, YES_NO),
    "normal": (SCORES, {}, NORMAL),
    "never negative": (SCORES, {"range": (0, None)}, GAMMA),
    "in a range": (SCORES, {"range": (0, 20)}, BETA),
    "rounded": (SCORES, {"range": (0, None), "rounded_to": 5}, GAMMA),
    "capped": (SCORES, {"range": (0, None), "cap": 14}, GAMMA),
    "capped and rounded scores": (SCORES, {"range": (0, 20), "cap": 15, "rounded_to": 2}, BETA),
    "capped normal": (SCORES, {"cap": 13}, NORMAL),
    "pilot": ({name: {"rewards": values} for name, values in PILOT.items()}, {}, EMPIRICAL),
    "pilot in a range": ({name: {"rewards": values} for name, values in PILOT.items()}, {"range": (0, 10)}, EMPIRICAL),
    "pilot, capped": ({name: {"rewards": values} for name, values in PILOT.items()}, {"cap": 7}, EMPIRICAL),
}


@pytest.mark.parametrize("name", WORLDS)
def test_rewards_of_people_have_the_mean_and_spread_of_their_world(name):
    arms, rewards, kind = WORLDS[name]
    made = plan(arms=arms, rewards=rewards, people=eq.People(per_day=4000, days=1, exact=True))
    cap = rewards.get("cap", math.inf)
    for replication in (None, 1, 2):
        world, _ = made.world(replication)
        assert (world.kind == kind).all()
        people = Population(world, seed=made.seed, replication=replication or 0)
        for arm in range(2):
            values = np.array([min(people.reward(person, arm), cap) for person in range(people.n_people)])
            mean, std = world.mean[arm], world.std[arm]
            assert abs(values.mean() - mean) < 4 * std / math.sqrt(values.size)
            fourth = float(((values - mean) ** 4).mean())
            error = math.sqrt(max(fourth - std**4, 1e-12) / values.size)
            assert abs(((values - mean) ** 2).mean() - std**2) < 4 * error
            low, high = rewards.get("range", (None, None))
            assert low is None or values.min() >= low - 1e-9
            assert high is None or values.max() <= high + 1e-9


@pytest.mark.parametrize("direction", ["maximise", "minimise"])
@pytest.mark.parametrize("name", ["yes/no", "normal", "never negative", "in a range", "pilot in a range"])
def test_rewards_are_missing_as_often_as_stated_and_after_bad_ones_more_often(name, direction):
    arms, rewards, _ = WORLDS[name]
    made = plan(
        arms=arms,
        rewards=rewards | {"missing": 0.2, "missing_ratio": 3, "direction": direction},
        people=eq.People(per_day=8000, days=1, exact=True),
    )
    world, _ = made.world(None)
    people = Population(world, seed=1)
    for arm in range(2):
        missing = np.array([people.told_at(person, arm) is None for person in range(people.n_people)])
        values = np.array([people.reward(person, arm) for person in range(people.n_people)])
        above = values > (0.5 if name == "yes/no" else world.mean[arm])
        good = above if direction == "maximise" else ~above
        assert abs(missing.mean() - 0.2) < 4 * math.sqrt(0.2 * 0.8 / missing.size)
        ratio = missing[~good].mean() / missing[good].mean()
        assert abs(ratio - 3) < 4 * 3 * math.sqrt(1 / missing[~good].sum() + 1 / missing[good].sum())


def test_delays_have_the_stated_median_and_nine_of_ten():
    made = plan(rewards=eq.Rewards(delay=("8h", "2 days")), people=eq.People(per_day=4000, days=3))
    world, _ = made.at_guesses()
    people = Population(world, seed=1)
    told = np.array([people.told_at(person, 0) for person in range(4000)]) - people.arrived[:4000]
    for share, seconds in ((0.5, 28_800), (0.9, 172_800)):
        assert abs(np.mean(told < seconds * 1e6) - share) < 4 * math.sqrt(share * (1 - share) / told.size)


def test_an_arm_may_be_quicker_than_the_others_or_answer_more_often():
    arms = {"plain": {"rate": 0.3, "delay": "at once", "missing": 0}, "prize": 0.5}
    world, _ = plan(arms=arms, rewards={"delay": ("8h", "2 days"), "missing": 0.1}).at_guesses()
    assert world.delay.tolist() == [0, 28_800] and world.delay_spread[0] == 0
    assert world.missing_after_bad.tolist() == [0, 0.1]


def test_people_batches_and_drift_reach_the_world():
    made = plan(
        people=eq.People(per_day=96, most=1000, start="2027-03-03", until="2027-03-31"),
        rewards={"batches": "daily at 18:30", "range": None},
        drift=eq.Drift(per_week="0.7%", step="-5%", step_on="2027-03-10"),
    )
    world, _ = made.at_guesses()
    assert world.most_people == 1000 and world.per_day.size == 29
    assert (world.batch_seconds, world.batch_at, world.batch_people) == (86_400, 18.5 * 3600, 0)
    assert world.drift_per_second * 604_800 == pytest.approx(0.007)
    assert (world.step, world.step_at) == (-0.05, 7 * 86_400)
    assert plan(rewards={"batches": "every 50 people"}).at_guesses()[0].batch_people == 50


def test_a_plan_can_be_played():
    made = plan(people=eq.People(per_day=50, days=10), ways={"weights": [0.9], "control_share": 0.1}, control="plain")
    worlds = [made.world(replication)[0] for replication in range(5)]
    paths = play(worlds, [made.settings(way) for way in made.ways], seed=made.seed, look_seconds=made.look_seconds())
    assert paths.assigned[0, :, -1].sum(axis=1).mean() == pytest.approx(500, rel=0.1)


# What is wrong with a plan, and what would work

WRONG = [
    ({"arms": {"plain": "30%"}}, "arms must be at least two, as an experiment compares them; got 1"),
    ({"arms": []}, "arms must be at least two, as an experiment compares them; got 0"),
    ({"arms": "a,b"}, "arms must be arms by name, such as {'plain': '30%', 'prize': '40% to 60%'}; got 'a,b'"),
    ({"arms": {"a": "30%", "b": 30}}, "arms.b.rate must be from 0 to 1; got 30\nhint: 30 in a hundred is 30%"),
    (
        {"arms": {"a": "30%", "b": "60% to 50%"}},
        "arms.b.rate.low must be less than high, which is 0.5; got 0.6\nhint: turn them round: 0.5 to 0.6",
    ),
    (
        {"arms": [{"name": "a", "rate": 0.1}, {"name": "a", "rate": 0.2}]},
        "arms must have different names; got 'a' more than once",
    ),
    (
        {"arms": {"a": {"rate": 0.1, "std": 0.3}, "b": 0.2}},
        "arms.a.std must be left out: a yes/no arm needs no spread; got 0.3",
    ),
    (
        {"arms": {"a": {"mean": 0.1}, "b": 0.2}},
        "arms.a.std is missing: rewards other than yes/no have a mean and a std\n"
        "hint: for yes/no rewards give a rate, which needs no std",
    ),
    (
        {"arms": {"a": {"mean": 3, "std": 1}, "b": 0.2}},
        "arms.a.rate is missing: some arms have a rate, so all need one",
    ),
    (
        {"arms": {"a": {"maen": 3, "std": 1}, "b": 0.2}},
        "arms.a: unknown key 'maen'; allowed are name, rate, mean, std, rewards, delay, missing\n"
        "hint: did you mean mean?",
    ),
    (
        {"arms": {"a": {"rewards": [1.0]}, "b": 0.2}},
        "arms.a.rewards must be at least 2, to know their spread; give a mean and a std; got 1",
    ),
    ({"arms": SCORES, "rewards": {"range": (0, 10)}}, "arms.plain.mean must be between 0 and 10; got 12.0"),
    (
        {"arms": {"a": {"mean": 5, "std": 6}, "b": {"mean": 5, "std": 1}}, "rewards": {"range": (0, 10)}},
        "arms.a.std must be less than 5: no rewards from 0 to 10 with this mean spread more; got 6.0",
    ),
    ({"rewards": {"cap": 0.5}}, "rewards.cap must be left out: yes/no rewards are 0 and 1; got 0.5"),
    ({"control": "plan"}, "control must be one of the arms, plain, prize; got 'plan'"),
    ({"people": 0}, "people.most must be at least 1; got 0"),
    (
        {"people": {"per_day": 9, "total": 50}},
        "people: unknown key 'total'; allowed are per_day, weekdays, ramp, counts, start, until, days, most, exact\n"
        "hint: did you mean most?",
    ),
    (
        {"people": {}},
        "people.per_day is missing\nhint: give per_day: how many people come a day, or most: how many in all",
    ),
    ({"people": {"per_day": 0, "days": 3}}, "people.per_day must be above 0; got 0"),
    ({"people": {"counts": [0, 0]}}, "people.counts must not all be 0: nobody would come"),
    (
        {"people": {"per_dya": 3}},
        "people: unknown key 'per_dya'; allowed are per_day, weekdays, ramp, counts, start, until, days, most, exact\n"
        "hint: did you mean per_day?",
    ),
    (
        {"people": {"per_day": 96}},
        "people.until is missing: nothing says when the experiment ends\n"
        "hint: give people.until, days or most, or goals.precision",
    ),
    (
        {"people": {"per_day": 96, "until": "2027-06-30"}},
        "people.start is missing: without it, until has no meaning\nhint: or give days",
    ),
    (
        {"people": {"per_day": 96, "start": "2027-07-01", "until": "2027-06-30"}},
        "people.until must not be before the start, 2027-07-01; got '2027-06-30'",
    ),
    (
        {"people": {"per_day": 96, "start": "2027-03-01T08:00", "days": 3}},
        "people.start must be a date such as 2027-03-01, or a time with a zone such as 2027-03-01T08:00+01:00; "
        "got '2027-03-01T08:00'",
    ),
    (
        {"people": {"per_day": 96, "days": 30, "weekdays": [1, 1]}},
        "people.weekdays must be seven numbers, Monday first, not all 0; got [1, 1]",
    ),
    ({"people": {"most": 96, "days": 3}}, "people.days needs per_day: how many people come a day; got 3"),
    (
        {"people": {"per_day": 10**6, "days": 300}},
        "people.most must be given: 300,000,000 are expected, and at most 10,000,000 can be simulated",
    ),
    (
        {"people": {"per_day": 96, "days": 30}, "rewards": {"delay": "60 days"}},
        "rewards.delay must be shorter than the 30 days that people are assigned: nothing would be learnt in time; "
        "got '60 days'\nhint: assign people for longer, or look at an outcome that is known sooner",
    ),
    (
        {"people": 3000, "rewards": {"delay": "8h"}},
        "rewards.delay takes time, of which this plan knows nothing; got '8 hours'\n"
        "hint: give per_day: how many people come a day",
    ),
    (
        {"rewards": {"delay": ("2 days", "8h")}},
        "rewards.delay.nine_of_ten must be longer than the median, 2 days; got '8h'\n"
        "hint: leave nine_of_ten out if all rewards take the same time",
    ),
    (
        {"rewards": {"delay": "soon"}},
        "rewards.delay must be a duration such as 8h, or a median and nine_of_ten such as 8h, 2 days; got 'soon'",
    ),
    (
        {"rewards": {"delay": 7}},
        "rewards.delay must be a duration such as 8h, or a median and nine_of_ten such as 8h, 2 days; got 7\n"
        'hint: write "7 days", or "7 seconds"',
    ),
    (
        {"rewards": {"delay": {"median": "8h", "nine_of_ten": "2"}}},
        "rewards.delay.nine_of_ten must be a guess such as 8h, or a range that is 8 in 10 sure such as 6h to 10h; "
        'got \'2\'\nhint: write "2 days", or "2 seconds"',
    ),
    ({"rewards": {"rule": "drop", "window": 10}}, "rewards.window must be a duration with its unit..."),
    ({"people": {"per_day": 96, "days": 30, "ramp": "4"}}, "people.ramp must be a duration with its unit..."),
    ({"rewards": {"rule": "default"}}, "rewards.value and window are missing; the rule default needs both"),
    ({"rewards": {"missing": "105%"}}, "rewards.missing must be from 0 to 1; got '105%'"),
    ({"rewards": {"missing": 1}}, "rewards.missing must be less than 100%: no reward would ever be known; got 1.0"),
    (
        {"rewards": {"missing": "90%", "missing_ratio": 10}},
        "rewards.missing must be at most 0.73 for 'plain' with a missing_ratio of 10; got 0.9\n"
        "hint: at more, rewards would be missing after all bad outcomes and then some",
    ),
    ({"rewards": {"rule": "drop"}}, "rewards.window is missing; the rule drop needs it"),
    ({"rewards": {"rule": "default", "window": "2 days"}}, "rewards.value is missing; the rule default needs it"),
    ({"rewards": {"rule": "forget"}}, "rewards.rule must be one of wait, default, drop; got 'forget'"),
    (
        {"rewards": {"rule": "default", "window": "2 days", "value": 5}},
        "rewards.value must be in [0, 1], the declared range; got 5.0",
    ),
    (
        {"rewards": {"range": (10, 0)}},
        "rewards.range must be a lowest and a highest reward, of which one may be open: [0, 10], or [0, inf]; "
        "got (10, 0)\nhint: turn it round: [0, 10]",
    ),
    (
        {"rewards": {"batches": "weekly"}},
        "rewards.batches must be a number of people such as 50, or text such as \"daily at 18:00\"; got 'weekly'",
    ),
    ({"rewards": {"direction": "up"}}, "rewards.direction must be one of maximise, minimise; got 'up'"),
    (
        {"goals": {"precision": 6}},
        "goals.precision must be less than 0.5, which the range of rewards says already; got 6.0\n"
        "hint: 6 in a hundred is 6%",
    ),
    (
        {"goals": {"precision": "60%"}},
        "goals.precision must be less than 0.5, which the range of rewards says already; got 0.6",
    ),
    ({"goals": 0}, "goals.precision must be in (0, inf); got 0.0"),
    ({"goals": {"by": 1}}, "goals.by must be between 0 and 1: nothing is certain; got 1\nhint: 0.8 is usual"),
    (
        {"goals": {"deadline": "2027-02-01"}},
        "goals.deadline must not be before the start, 2027-03-01; got '2027-02-01'",
    ),
    (
        {"people": {"per_day": 96}, "goals": "0.01%"},
        "goals.precision takes some 492,340,846 people with equal shares, too many to simulate; got 0.0001\n"
        "hint: 0.0014 is within reach; or say how many people there are: people.most or until",
    ),
    ({"drift": {"per_week": "10%"}}, "drift must leave the mean of 'plain' from 0 to 1; in the end it would be 2.043"),
    ({"drift": {"step": "10%"}}, "drift.step_on is missing: when the step comes"),
    ({"costs": {"per_person": -1}}, "costs.per_person must be in [0, inf); got -1.0"),
    (
        {"ways": [0.5]},
        "ways[0].policy must be a policy, its name, or a Way; got 0.5\n"
        'hint: shares of information go into a table: {"information_kept": [0.9, 0.5]}',
    ),
    (
        {"ways": {"weights": [0.5, 1.5]}},
        "ways.weights must be from 0 to 1, or 0% to 100%; got 1.5\nhint: 1.5 in a hundred is 1.5%",
    ),
    ({"ways": {"information_kept": [0]}}, "ways.information_kept must be in (0, 1]; got 0"),
    ({"ways": {"weights": [0.5, 0.5]}}, "ways must be different; got 'weight 0.5' more than once"),
    (
        {"ways": {"weights": [0.5], "floor": 0.5}},
        "ways.weight 0.5.floor and control_share must add up to less than 1 over all arms; got 1 for 2 arms\n"
        "hint: what they leave is what the policy can decide about",
    ),
    (
        {"ways": {"weights": [0.5], "control_share": 0.1}},
        "ways.weight 0.5.control_share needs the name of the control arm\nhint: give control=...",
    ),
    ({"ways": ["Thompson"]}, "ways[0].policy: unknown policy 'Thompson'; known are ..."),
    ({"seed": -1}, "seed must be at least 0; got -1"),
    ({"title": 3}, "title must be text; got 3"),
]


@pytest.mark.parametrize(("given", "message"), WRONG, ids=[str(k) for k in range(len(WRONG))])
def test_errors_say_what_would_work(given, message):
    with pytest.raises(eq.InvalidInput) as caught:
        plan(**given)
    # Other tests have policies of their own, which are known too.
    start, known, _ = message.partition("...")
    assert str(caught.value).startswith(start) if known else str(caught.value) == message


def test_every_error_starts_with_the_place_in_the_plan():
    for _, message in WRONG:
        assert re.match(r"(arms|people|rewards|goals|drift|costs|ways|control|seed|title)\b", message)


def test_notebooks_show_what_a_plan_assumes_as_text():
    shown = plan(arms={"<b>": "30%", "prize": "40% to 60%"}, title="A & B", goals=0.06)._repr_html_()
    assert "&lt;b&gt;" in shown and "<b>" not in shown and "A &amp; B" in shown
    assert "rate 50% (8 in 10 sure: 40% to 60%)" in shown and "every arm known to ±0.06" in shown
    assert "information kept 0.7" in shown


# Options


def test_options_make_the_same_plan_as_values():
    made = plan_from_options(
        rates="plain=30%,prize=40% to 60%",
        per_day=96,
        start="2027-03-01",
        until="2027-06-30",
        precision="6%",
        delay="8h",
        missing="5%",
        rule="drop",
        window="2 days",
        weights="0.5,0.8",
        control="plain",
        control_share=0.1,
    )
    rewards = eq.Rewards(delay="8h", missing="5%", rule=eq.DropUnit(window_seconds=172_800))
    ways = {"weights": [0.5, 0.8], "control_share": 0.1}
    assert made == plan(goals=0.06, rewards=rewards, ways=ways, control="plain")
    made = plan_from_options(means=[10, 12], stds=3, people=500, reward_range=(0, 20))
    assert [arm.std.value for arm in made.arms] == [3, 3] and made.arm_names == ("A", "B")


def test_options_replace_what_a_plan_says_except_its_arms():
    made = plan(goals=0.06, rewards={"missing": "3%", "rule": "default", "value": 0, "window": "2 days"})
    changed = plan_with_options(made, days=30, precision="5%", weights="0.9", rule="drop", window="9 days")
    assert changed.arms == made.arms and changed.goals.precision == 0.05
    assert changed.people == dataclasses.replace(made.people, days=30, until=None)
    assert changed.rewards == eq.Rewards(missing="3%", rule=eq.DropUnit(window_seconds=777_600))
    assert [way.label for way in changed.ways] == ["equal shares", "weight 0.9"]
    assert plan_with_options(made) == made
    with pytest.raises(eq.InvalidInput, match="names must be left out: the plan has its arms"):
        plan_with_options(made, names="a,b")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "rates is missing\nhint: give rates such as 10%,12% for yes/no rewards, or means and stds"),
        (
            {"rates": "10%,12%"},
            "people is missing\nhint: give people: how many there are at most, or per_day: how many come a day",
        ),
        ({"rates": "10%", "people": 30}, "arms must be at least two, as an experiment compares them; got 1"),
        (
            {"rates": "10%,often", "people": 30},
            "rates of arm B must be a guess such as 10%, or a range that is 8 in 10 sure such as 8% to 12%; "
            "got 'often'",
        ),
        (
            {"rates": "10,12", "people": 30},
            "rates of arm A must be from 0 to 1; got '10'\nhint: 10 in a hundred is 10%",
        ),
        ({"rates": "10%,20%", "people": 30, "stds": 1}, "stds must be left out: yes/no rewards need no spread; got 1"),
        (
            {"rates": "10%,20% to 15%", "people": 30},
            "rates of arm B (low) must be less than high, which is 0.15; got 0.2\nhint: turn them round: 0.15 to 0.2",
        ),
        (
            {"rates": "10%,a=20%", "people": 30},
            "rates must name all arms or none, as in plain=30%,prize=50%; got '10%,a=20%'",
        ),
        (
            {"means": "1,2", "people": 30},
            "stds is missing: rewards other than yes/no have means and stds\n"
            "hint: one number for all arms, or one for each; for yes/no rewards give rates instead",
        ),
        ({"means": "1,2", "stds": "1,2,3", "people": 30}, "stds must be one, or 2: one for each arm; got 3"),
        (
            {"rates": "10%,20%", "people": 30, "precision": 5},
            "precision must be less than 0.5, which the range of rewards says already; got 5.0\n"
            "hint: 5 in a hundred is 5%",
        ),
        (
            {"rates": "10%,20%", "people": 30, "weights": "2"},
            "weights must be from 0 to 1, or 0% to 100%; got '2'\nhint: 2 in a hundred is 2%",
        ),
        ({"rates": "10%,20%", "people": "many"}, "people must be a whole number, such as 1000 or 1,000; got 'many'"),
        ({"rates": "10%,20%", "people": 30, "control": "c"}, "control must be one of the arms, A, B; got 'c'"),
        (
            {"rates": "10%,20%", "people": 30, "delay": "8h"},
            "delay takes time, of which this plan knows nothing; got '8 hours'\n"
            "hint: give per_day: how many people come a day",
        ),
    ],
)
def test_errors_name_the_option(options, message):
    with pytest.raises(eq.InvalidInput) as caught:
        plan_from_options(**options)
    assert str(caught.value) == message
