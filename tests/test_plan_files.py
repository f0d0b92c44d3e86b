"""Plans in files: what they say, what is wrong with them, pilots, and plans from experiments."""

from __future__ import annotations

import datetime
import json
import math

import numpy as np
import pytest
from both_clients import serving
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise.planner import parse_plan
from equipoise.planner.guesses import plain_duration
from equipoise.planner.live_play import Clock, LivePlay
from equipoise.planner.population import Population
from equipoise.service.api_keys import create_key

FLU = """\
title = "Reminders for the flu shot"
outcome = "came to the appointment"
[people]
per_day = 96
start = 2027-03-01
until = 2027-06-30
[[arms]]
name = "plain"
control = true
rate = {guess = 0.30, low = 0.25, high = 0.35}      # 8 in 10 sure
[[arms]]
name = "prize"
rate = {guess = 0.50, low = 0.40, high = 0.60}
[rewards]
delay = {median = "8h", nine_of_ten = "2 days"}
missing = 0.05
rule = "drop"
window = "2 days"
[ways]
weights = [0, 0.5, 0.8, 0.9, 0.95]
floor = 0.02
control_share = 0.1
[goals]
precision = 0.06
by = 0.8
"""


def test_the_example_of_the_specification_is_read():
    found = parse_plan(FLU)
    assert found == eq.Plan(
        title="Reminders for the flu shot",
        outcome="came to the appointment",
        arms={"plain": "30% (25% to 35%)", "prize": "40% to 60%"},
        control="plain",
        people=eq.People(per_day=96, start=datetime.date(2027, 3, 1), until=datetime.date(2027, 6, 30)),
        rewards=eq.Rewards(delay=("8h", "2 days"), missing=0.05, rule=eq.DropUnit(window_seconds=172_800)),
        ways=[eq.Way.weighing(weight, floor=0.02, control_share=0.1) for weight in (0, 0.5, 0.8, 0.9, 0.95)],
        goals=eq.Goals(precision=0.06, by=0.8),
    )
    text = found.to_toml()
    assert (
        "weights = [0, 0.5, 0.8, 0.9, 0.95]" in text and 'median = "8 hours"' in text and "start = 2027-03-01" in text
    )


names = st.text(min_size=1, max_size=12).filter(
    lambda name: name.isprintable() and name.strip() == name and name.strip(".")
)
shares = st.floats(0.01, 0.99)
quantities = st.floats(2, 1e6)


def guesses(values):
    ranges = st.lists(values, min_size=3, max_size=3, unique=True).map(sorted)
    return values | ranges.filter(lambda ends: ends[0] < ends[2]).map(tuple)


def in_seconds(given):
    return tuple(map(plain_duration, given)) if isinstance(given, tuple) else plain_duration(given)


def seconds(low, high):
    return st.floats(low, high).map(plain_duration)


delays = (
    st.sampled_from([None, "at once", "8h, 2 days"])
    | guesses(st.floats(1, 5e4)).map(in_seconds)
    | st.tuples(seconds(1, 5e4), seconds(6e4, 1e6))
)
dates = st.dates(datetime.date(2026, 1, 1), datetime.date(2030, 1, 1))


@st.composite
def plans(draw):
    keys = draw(st.lists(names, min_size=2, max_size=4, unique=True))
    is_yes_no = draw(st.booleans())
    range_ = None if is_yes_no else draw(st.sampled_from([None, (0, None), (0, 2e6)]))
    arms = []
    for key in keys:
        arm = {"name": key, "delay": draw(delays), "missing": draw(st.none() | guesses(st.floats(0.01, 0.3)))}
        if is_yes_no:
            arm["rate"] = draw(guesses(shares))
        elif draw(st.booleans()):
            arm["rewards"] = draw(st.lists(quantities, min_size=2, max_size=5))
        else:
            arm |= {"mean": draw(guesses(st.floats(1e4, 1e6))), "std": draw(guesses(st.floats(1, 9e3)))}
        arms.append(eq.PlannedArm(**{name: value for name, value in arm.items() if value is not None}))
    start = draw(
        dates | st.just(datetime.datetime(2027, 3, 1, 8, tzinfo=datetime.timezone(datetime.timedelta(hours=1))))
    )
    people = eq.People(
        per_day=draw(guesses(st.floats(1, 100))),
        start=start,
        days=draw(st.integers(30, 200)),
        most=draw(st.none() | st.integers(1, 10_000)),
        weekdays=draw(st.none() | st.lists(st.floats(0.1, 2), min_size=7, max_size=7)),
        ramp=draw(st.none() | seconds(1, 1e6)),
        exact=draw(st.booleans()),
    )
    rules = [eq.WaitForReward(), eq.DropUnit(window_seconds=172_800, hold=True, late="count")]
    rules += [eq.DefaultReward(value=0.25, window_seconds=1234.5), eq.WaitForReward(window_seconds=7.25)]
    rewards = eq.Rewards(
        delay=draw(delays),
        missing=draw(guesses(st.floats(0.01, 0.2))),
        missing_ratio=draw(guesses(st.floats(1, 2))),
        rule=draw(st.sampled_from(rules)),
        batches=draw(st.sampled_from([None, 50, "daily", "daily at 18:05"])),
        rounded_to=draw(st.none() | st.floats(0.1, 2)) if not is_yes_no else None,
        range=range_,
        cap=draw(st.none() | st.floats(1e3, 1e7)) if not is_yes_no else None,
        direction=draw(st.sampled_from(["maximise", "minimise"])),
    )
    ways = draw(
        st.none()
        | st.fixed_dictionaries(
            {"weights": st.lists(shares, min_size=1, max_size=3, unique_by=lambda x: f"{x:g}")},
            optional={
                "information_kept": st.lists(shares, min_size=1, max_size=3, unique_by=lambda x: f"{x:g}"),
                "floor": st.floats(0, 0.2),
                "warm_up": st.integers(0, 10),
            },
        )
        | st.just(
            [
                eq.Way(policy=eq.ThompsonSampling(), label="Thompson", floor={keys[0]: 0.1}),
                eq.Way(policy=eq.ForcingBalance(reward_weight=0.3, forcing=0.5)),
                eq.Way.keeping(0.7, information_about="best-arm", smallest_difference=0.03, warm_up=3),
            ]
        )
    )
    goals = eq.Goals(
        precision=draw(st.none() | st.floats(1e-3, 0.4)),
        precision_of=draw(st.sampled_from(["arms", "differences"])),
        margin=draw(st.none() | st.floats(0, 0.5)),
        by=draw(shares),
        failure_probability=draw(st.floats(0.001, 0.2)),
    )
    return eq.Plan(
        arms=arms,
        people=people,
        rewards=rewards,
        control=draw(st.none() | st.sampled_from(keys)),
        goals=goals,
        ways=ways,
        costs=eq.Costs(per_person=draw(st.floats(0, 100))),
        title=draw(st.none() | st.text(max_size=20)),
        seed=draw(st.integers(0, 2**63 - 1)),
    )


@given(plans())
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much], deadline=None)
def test_every_plan_is_read_from_the_file_and_the_json_that_it_writes(made):
    again = parse_plan(made.to_toml())
    assert again == made and again.to_toml() == made.to_toml() and again.digest == made.digest
    assert eq.Plan.from_dict(json.loads(made.to_json())) == made
    for one, other in zip(made.world(1)[0], again.world(1)[0], strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("0.30, low = 0.25, high = 0.35", "0.30, low = 0.35, high = 0.25"),
            "arms.plain.rate.low must be less than high",
        ),
        (
            ("per_day = 96", "per_day = 96\nper_week = 3"),
            "people: unknown key 'per_week'; allowed are per_day, weekdays,",
        ),
        (
            ("[goals]", "[golas]"),
            "unknown key 'golas'; allowed are arms, people, rewards, control, goals, ways, drift,",
        ),
        (("weights = [", "weight = ["), "ways: unknown key 'weight'; allowed are weights, information_kept,"),
        (('window = "2 days"', ""), "rewards.window is missing; the rule drop needs it"),
        (
            ("precision = 0.06", "precision = 6"),
            "goals.precision must be less than 0.5, which the range of rewards says",
        ),
        (("until = 2027-06-30", "until = 2026-06-30"), "people.until must not be before the start, 2027-03-01; got"),
        (("[people]", "[people"), "expected TOML;"),
        (('name = "prize"\n', ""), "arms must have names with rates, or tables with a name; got {'rate':"),
        (('name = "prize"', 'name = "prize"\ncontrol = true'), "control must be one arm; got 'plain, prize'"),
        (("per_day = 96", 'counts = "none.csv"'), "people.counts: cannot read"),
        (('title = "Reminders for the flu shot"', 'pilot = "none.csv"'), "pilot: cannot read"),
        (
            ('title = "Reminders for the flu shot"', 'from = "messages"'),
            "from must be a store and an experiment, such as",
        ),
        (('title = "Reminders for the flu shot"', "title = 3"), "title must be text; got 3"),
    ],
)
def test_errors_name_the_file_and_the_key(change, message, tmp_path):
    path = tmp_path / "plan.toml"
    assert change[0] in FLU
    path.write_text(FLU.replace(*change))
    with pytest.raises(eq.EquipoiseError) as caught:
        eq.read_plan(path)
    assert str(caught.value).startswith(f"{path}: {message}")


def test_people_per_day_come_from_a_file(tmp_path):
    (tmp_path / "people.csv").write_text("date,people\n2027-03-01,5\n2027-03-02,7.5\n")
    path = tmp_path / "plan.toml"
    path.write_text('people = {counts = "people.csv"}\narms = [{name = "a", rate = 0.1}, {name = "b", rate = "20%"}]\n')
    assert eq.read_plan(path).people.counts == (5.0, 7.5)
    (tmp_path / "people.csv").write_text("date,people\n2027-03-01,many\n")
    with pytest.raises(eq.EquipoiseError, match=r"people\.counts: .*line 2: people must be a number; got 'many'"):
        eq.read_plan(path)


def test_a_pilot_gives_means_with_their_standard_errors(tmp_path):
    rng = np.random.default_rng(1)
    scores = {"a": rng.normal(10, 3, 40).round(1), "b": rng.normal(12, 2, 30).round(1)}
    rows = [f"{name},{score}" for name, values in scores.items() for score in values]
    (tmp_path / "pilot.csv").write_text("\n".join(["arm,reward", *rows]))
    path = tmp_path / "plan.toml"
    path.write_text(
        'pilot = "pilot.csv"\npeople = 500\n[[arms]]\nname = "b"\ndelay = "0s"\n'.replace('delay = "0s"\n', "")
    )
    found = eq.read_plan(path)
    for arm in found.arms:
        values = scores[arm.name]
        error = values.std(ddof=1) / math.sqrt(values.size)
        assert arm.rewards == tuple(values)
        assert arm.mean.value == pytest.approx(values.mean())
        assert arm.mean.ends == pytest.approx(
            (values.mean() - 1.28155 * error, values.mean() + 1.28155 * error), abs=1e-4
        )
    assert parse_plan(found.to_toml()) == found
    world, drawn = found.world(0)
    assert world.mean.tolist() == pytest.approx([drawn["arms.a.mean"], drawn["arms.b.mean"]])
    assert world.std.tolist() == pytest.approx([values.std() for values in scores.values()])


def test_a_pilot_with_yes_and_no_gives_rates(tmp_path):
    (tmp_path / "pilot.csv").write_text("arm,reward\n" + "a,1\na,0\n" * 20 + "b,0\n" * 30)
    path = tmp_path / "plan.toml"
    path.write_text('pilot = "pilot.csv"\npeople = 500\n[[arms]]\nname = "c"\nrate = "10% to 30%"\n')
    found = eq.read_plan(path)
    assert found.is_yes_no and found.arm_names == ("a", "b", "c")
    a, b, _ = (arm.rate for arm in found.arms)
    assert a.ends == pytest.approx((0.4, 0.6), abs=0.01)
    assert 0 < b.low < b.value < b.high < 0.1  # nobody said yes, which does not mean that nobody ever will


@pytest.fixture
def running(tmp_path):
    """Return an experiment half way through, and the plan that it follows."""
    made = eq.Plan(
        arms={"plain": "30%", "prize": "50%"},
        people=eq.People(per_day=100, start="2027-03-01", days=20),
        rewards=eq.Rewards(delay=("8h", "2 days"), missing="20%", rule=eq.DropUnit(window_seconds=4 * 86_400)),
        control="plain",
        goals=eq.Goals(precision=0.05, margin=0.01),
        ways={"information_kept": [0.7], "control_share": 0.2, "floor": 0.05},
    )
    clock = Clock()
    url = f"sqlite:///{tmp_path}/old.db"
    store = eq.open_store(url, clock=clock)
    experiment = eq.Experiment.create(store, "messages", **made.settings("information kept 0.7"), seed=1)
    people = Population(made.at_guesses()[0], seed=1)
    play = LivePlay(experiment, clock, people)
    play.play_until(12 * 86_400 * 10**6)
    return experiment, made, f"{url}#messages"


def test_a_plan_from_an_experiment_has_what_it_measured(running):
    experiment, made, _ = running
    status, found = experiment.status(), eq.Plan.from_experiment(experiment)
    for arm, truth in zip(found.arms, (0.3, 0.5), strict=True):
        mean = next(one.mean for one in status.arms if one.arm == arm.name)
        assert arm.rate.value == pytest.approx(mean, abs=0.01)
        assert arm.rate.low - 0.1 < truth < arm.rate.high + 0.1 and not arm.rate.is_sure
    assert found.people.per_day.value == pytest.approx(100, rel=0.15)
    assert found.people.start == datetime.date(2027, 3, 13) and found.people.until == datetime.date(2027, 3, 20)
    delay = found.rewards.delay
    assert delay.median.value == pytest.approx(8 * 3600, rel=0.25)
    assert delay.nine_of_ten.value == pytest.approx(2 * 86_400, rel=0.3)
    assert found.rewards.missing.value == pytest.approx(0.2, abs=0.06)
    assert found.rewards.rule == made.rewards.rule and found.control == "plain"
    assert found.goals == made.goals
    now = found.way("as now")
    assert now.policy == experiment.configuration.policy and dict(now.floor) == {"plain": 0.2, "prize": 0.05}
    assert parse_plan(found.to_toml()) == found
    found.settings(now)


def test_a_file_says_what_differs_from_the_experiment_it_comes_from(running):
    _, _, origin = running
    own = 'people = {days = 30}\ngoals = {precision = 0.02}\n[[arms]]\nname = "third"\nrate = "20% to 40%"\n'
    text = f'from = "{origin}"\n{own}'
    found = parse_plan(text)
    assert (
        found.arm_names == ("plain", "prize", "third") and found.goals.precision == 0.02 and found.goals.margin == 0.01
    )
    assert found.people.days == 30 and found.people.until is None and found.people.per_day.value > 50
    with pytest.raises(eq.EquipoiseError, match=r"plan: from: .* has no experiment 'other'"):
        parse_plan(text.replace("#messages", "#other"))


def test_a_service_gives_the_same_plan(tmp_path):
    url = f"sqlite:///{tmp_path}/service.db"
    with eq.open_store(url) as store:
        admin = create_key(store, role="admin", name="the tests")[1]
        kept = eq.Experiment.create(
            store, "exam", arms=["a", "b"], information_kept=0.7, seed=1, reward_range=(0, 10), most_units=400
        )
        for k, one in enumerate(kept.ask_many([f"{k}" for k in range(100)])):
            kept.tell(one.unit, 5 + k % 3)
        with serving(url) as running, eq.Client(running.url, key=admin) as client:
            here, there = (eq.Plan.from_experiment(one) for one in (kept, client.open("exam")))
    assert here.arms == there.arms and here.ways == there.ways and here.rewards == there.rewards
    assert here.people.most == there.people.most == 300


def test_people_assigned_already_are_not_planned_again():
    experiment = eq.Experiment.create(
        "memory:",
        "exam",
        arms=["a", "b"],
        policy=eq.Uniform(),
        seed=1,
        stopping=eq.Budget(units=400),
        reward_range=(0, 10),
    )
    rng = np.random.default_rng(1)
    for one in experiment.ask_many([f"{k}" for k in range(100)]):
        experiment.tell(one.unit, rng.uniform(2, 8))
    found = eq.Plan.from_experiment(experiment, goals=0.5)
    assert found.people.most == 300 and found.goals.precision == 0.5
    for arm in found.arms:
        assert arm.mean.value == pytest.approx(5, abs=1) and arm.std.value == pytest.approx(6 / math.sqrt(12), rel=0.2)
    assert found.rewards.range == (0, 10) and found.rewards.delay is None


def test_capped_rewards_stay_as_they_were():
    experiment = eq.Experiment.create(
        "memory:", "rides", arms=["a", "b"], policy=eq.Uniform(), seed=1, reward_range=(0, None), reward_cap=20
    )
    rng = np.random.default_rng(1)
    for one in experiment.ask_many([f"{k}" for k in range(200)]):
        experiment.tell(one.unit, rng.exponential(10))
    world, _ = eq.Plan.from_experiment(experiment).at_guesses()
    for arm, mean in zip(experiment.status().arms, world.mean, strict=True):
        assert mean == pytest.approx(arm.mean)


def test_an_experiment_without_rewards_says_what_to_do():
    experiment = eq.Experiment.create("memory:", "exam", arms=["a", "b"], policy=eq.Uniform(), seed=1)
    with pytest.raises(eq.TooFewRewards) as caught:
        eq.Plan.from_experiment(experiment)
    assert str(caught.value) == (
        "a plan from an experiment needs rewards of every arm; 'a' has 0\n"
        "hint: wait for rewards, pause the arm, or write a plan with guesses of your own"
    )
