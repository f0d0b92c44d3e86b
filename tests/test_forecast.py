"""Forecasts say what simulated experiments did: on paths that are known exactly, and on those of the engine."""

from __future__ import annotations

import dataclasses
import json
import math
import time

import numpy as np
import pytest
from synthetic_paths import paths_of, question

import equipoise as eq
from equipoise.planner.forecast import forecast_of
from equipoise.planner.question import SECONDS_A_DAY
from equipoise.planner.refinement import simulate
from equipoise.planner.sensitivity import regressed
from equipoise.planner.stopping_choice import round_up
from equipoise.planner.trials import TrialsInterrupted
from equipoise.planner.way_forecast import Readings

EVEN, STEEP = [0.5, 0.5], [0.25, 0.75]


def forecast(asked, *, shares=(EVEN, STEEP), means=(0.3, 0.5), **given):
    paths = paths_of(shares, means, **{"noise": 2.0} | given)
    return forecast_of(question(len(shares), **asked), paths)


# Figures


def test_days_and_people_are_those_of_the_first_passage():
    found = forecast({"precision": 0.1})
    for way, share in zip(found.ways.values(), (0.5, 0.25), strict=True):
        assert way.people.median == pytest.approx((2.0 / 0.1) ** 2 / share)
        assert way.days.median == pytest.approx((2.0 / 0.1) ** 2 / share / 100.0)
        assert way.days[:3] == pytest.approx((way.days.median,) * 3)
        assert way.chance.value == 1.0


def test_the_gain_is_of_expected_rewards_up_to_the_stop_and_to_the_end():
    way = forecast({"precision": 0.1}).ways["information kept 0.8"]
    assert way.gain_per_100.median == pytest.approx(100 * (0.25 * 0.3 + 0.75 * 0.5 - 0.4))
    assert way.gain.median == pytest.approx(0.05 * way.people.median)
    assert way.gain_at_end.median == pytest.approx(0.05 * 4000)
    assert way.best_share.median == pytest.approx(0.75)
    assert way.best_people.median == pytest.approx(0.75 * way.people.median)


def test_small_rewards_are_gains_where_they_are_good():
    up, down = (forecast({"direction": direction}) for direction in ("maximise", "minimise"))
    for one, other in zip(up.ways.values(), down.ways.values(), strict=True):
        assert one.gain_per_100.median == pytest.approx(-other.gain_per_100.median, abs=1e-12)
    assert down.ways["information kept 0.8"].best_share.median == pytest.approx(0.25)


def test_chances_count_experiments():
    pace = np.where(np.arange(40) < 30, 1.0, 0.1)  # a quarter is too slow
    found = forecast({"precision": 0.1, "deadline_seconds": 20 * SECONDS_A_DAY}, pace=pace)
    for way in found.ways.values():
        assert way.chance.value == 0.75
        assert math.isinf(way.days.high)
        assert way.days_for_sure == math.inf or way.days_for_sure > 20


def test_doing_worse_than_equal_shares_is_counted_and_never_asked_of_equal_shares():
    means = np.where(np.arange(40)[:, None] < 10, [0.5, 0.3], [0.3, 0.5])
    found = forecast({}, means=means)
    assert found.ways["information kept 0.8"].chance_worse.value == 0.25
    assert found.equal_shares.chance_worse is None


def test_people_worse_off_than_with_the_control_are_those_of_worse_arms():
    shares = ([0.25] * 4, [0.1, 0.2, 0.3, 0.4])
    found = forecast(
        {"control": 1, "arms": ("a", "b", "c", "d")}, shares=shares, means=(0.2, 0.3, 0.3, 0.1), n_replications=5
    )
    assert [way.worse_than_control.median for way in found.ways.values()] == pytest.approx([2000, 2000])
    assert forecast({}).equal_shares.worse_than_control is None


def test_coverage_and_bias_are_counted_at_the_stop_with_the_right_sign():
    found = forecast({"precision": 0.1}, bias=-0.15).equal_shares
    assert found.coverage.value == 0.0
    assert found.bias["plain"].value == pytest.approx(-0.15)
    assert forecast({"precision": 0.1}, bias=0.05).equal_shares.coverage.value == 1.0


def test_the_best_arm_is_named_by_the_estimates():
    found = forecast({"margin": 0.05}, means=(0.30, 0.33)).equal_shares
    assert (found.names_best.value, found.names_within_margin.value) == (1.0, 1.0)
    paths = paths_of([EVEN], (0.30, 0.33))
    paths = dataclasses.replace(paths, estimate=paths.estimate[..., ::-1].copy())
    for margin, chance in ((0.02, 0.0), (0.05, 1.0)):
        way = forecast_of(question(1, margin=margin), paths).equal_shares
        assert (way.names_best.value, way.names_within_margin.value) == (0.0, chance)


def test_the_last_reward_comes_as_long_after_the_last_person_as_rewards_take():
    found = forecast({"precision": 0.2}, delay_days=5.0).equal_shares
    assert found.last_person_day.median == pytest.approx(found.days.median)
    assert found.last_reward_day.median == pytest.approx(found.days.median + 5.0, abs=0.1)
    never = forecast({"precision": 1e-5}, delay_days=5.0).equal_shares
    assert never.last_person_day.median == pytest.approx(40.0)
    assert never.last_reward_day.median == pytest.approx(45.0)


def test_costs_are_of_people_and_days_until_the_stop():
    way = forecast({"precision": 0.1, "cost_per_person": 2.0, "cost_per_day": 10.0}).equal_shares
    assert way.cost.median == pytest.approx(2.0 * way.people.median + 10.0 * way.days.median)
    assert forecast({"precision": 0.1}).equal_shares.cost is None


def test_the_most_rewards_pending_are_those_of_the_time_until_the_stop():
    way = forecast({"precision": 0.1}, delay_days=3.0).equal_shares
    assert way.most_pending.median == pytest.approx(300.0)


def test_enrolment_that_goes_on_after_the_deadline_does_not_count():
    found = forecast({"deadline_seconds": 10 * SECONDS_A_DAY})
    assert found.equal_shares.stop_people.median == pytest.approx(1000.0)
    assert found.equal_shares.widest.median == pytest.approx(2.0 / math.sqrt(500))


def test_bands_hold_eight_in_ten_by_day():
    pace = np.random.default_rng(0).uniform(0.5, 1.5, 200)
    paths = paths_of([EVEN], (0.3, 0.5), pace=pace, n_replications=200)
    bands = forecast_of(question(1), paths).equal_shares.bands
    low, middle, high = bands.people
    people = pace[:, None] * 100.0 * bands.days
    assert ((people >= low) & (people <= high)).mean(axis=0) == pytest.approx(0.8, abs=0.02)
    assert middle == pytest.approx(100.0 * np.median(pace) * bands.days)
    assert bands.average_reward[1] == pytest.approx(0.4)
    assert bands.leading_share[1] == pytest.approx(0.5)


def test_luck_alone_is_told_apart_from_guesses():
    rng = np.random.default_rng(0)
    wide = paths_of([EVEN, STEEP], (0.3, 0.5), noise=rng.normal(2.0, 0.3, 40))
    narrow = paths_of([EVEN, STEEP], (0.3, 0.5), noise=rng.normal(2.0, 0.03, 20), n_replications=20)
    way = forecast_of(question(2, precision=0.15), wide, narrow).ways["information kept 0.8"]
    assert way.days.low < way.luck_alone.days.low < way.luck_alone.days.high < way.days.high
    assert (way.replications, way.luck_alone.replications) == (40, 20)


# What follows from the figures


def test_round_precisions_are_the_next_coarser_ones():
    assert [round_up(width) for width in (0.011, 0.016, 0.021, 0.049, 0.051, 0.08, 1.0)] == [
        *(0.012, 0.02, 0.025, 0.05, 0.06, 0.08, 1.0)
    ]


def test_the_goal_itself_is_offered_if_it_is_the_finest_that_enough_reach():
    given = {"noise": np.linspace(2.9, 3.1, 40), "shares": [[0.5, 0.5]]}
    reached = 3.1 / math.sqrt(2000)
    assert round_up(reached) > 1.001 * reached, "no round half-width is as fine"
    found = forecast({"precision": 1.001 * reached}, **given)
    assert found.stopping[0].precision == 1.001 * reached


def test_the_best_is_never_rounded_onto_a_goal_out_of_reach():
    for above in (1.0001, 1.01):
        goal = float(f"{2.0 / math.sqrt(2000):.2g}")
        noise = goal * above * math.sqrt(2000)
        found = forecast({"precision": goal}, noise=noise, shares=[[0.5, 0.5]])
        said = next(one for one in found.recommendation() if one.about == "closest")
        assert goal < said.numbers["reached"] == pytest.approx(goal * above, rel=3e-3)


def test_the_precision_offered_is_the_finest_round_one_that_enough_reach():
    found = forecast({"sureness": 0.8}, noise=np.linspace(1.0, 3.0, 40))
    for choice, share in zip(found.stopping, (0.5, 0.25), strict=True):
        widths = np.linspace(1.0, 3.0, 40) / math.sqrt(4000 * share)
        assert (widths <= choice.precision).mean() >= 0.8
        finer = [1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9]
        next_finer = max(
            one * 10.0**-k for one in [1, *finer] for k in (1, 2, 3) if one * 10.0**-k < 0.999 * choice.precision
        )
        assert (widths <= next_finer).mean() < 0.8
        assert choice.chance.value == (widths <= choice.precision).mean()


def test_the_chance_falls_as_the_precision_gets_finer():
    for choice in forecast({"precision": 0.06}, noise=np.linspace(1.0, 3.0, 40)).stopping:
        assert (np.diff(choice.half_widths) < 0).all()
        assert (np.diff(choice.goal_chances) <= 0).all()
        assert 0.06 in choice.half_widths


def test_the_budget_is_enough_for_nine_in_ten():
    rng = np.random.default_rng(5)
    noise = rng.uniform(1.0, 2.0, 200)
    found = forecast({"precision": 0.1}, noise=noise, n_replications=200)
    for way, choice in zip((0.5, 0.25), found.stopping, strict=True):
        needed = (noise / 0.1) ** 2 / way
        assert (needed <= choice.budget).mean() >= 0.9
        assert (needed <= 0.95 * choice.budget).mean() < 0.95


def test_a_guess_that_matters_is_found_with_its_effect():
    rng = np.random.default_rng(0)
    pace, other = rng.normal(1.0, 0.1, 200), rng.normal(0.0, 1.0, 200)
    drawn = {"people.per_day": 100.0 * pace, "arms.plain.rate": other}
    found = forecast({"precision": 0.1}, pace=pace, drawn=drawn, n_replications=200)
    days = [effect for effect in found.effects if effect.figure == "days"]
    assert {effect.guess for effect in days} == {"people.per_day"}
    effect = next(one for one in days if one.way == "equal shares")
    assert effect.step == 10.0
    assert effect.change == pytest.approx(-0.8, rel=0.1)  # 8 days at 100 people a day
    assert effect.explained > 0.95


def test_effects_have_the_standard_errors_of_repetitions():
    rng = np.random.default_rng(0)
    slopes, errors = [], []
    for _ in range(400):
        x = rng.normal(size=(60, 2))
        y = 2.0 * x[:, 0] + rng.normal(size=60) * (1.0 + np.abs(x[:, 0]))
        slope, error, _ = regressed(x, y)
        slopes.append(slope)
        errors.append(error)
    assert np.mean(slopes, axis=0) == pytest.approx([2.0, 0.0], abs=0.05)
    assert np.mean(errors, axis=0) == pytest.approx(np.std(slopes, axis=0), rel=0.15)


def test_few_experiments_say_nothing_about_guesses():
    assert forecast({"precision": 0.1}, n_replications=8, drawn={"a": np.arange(8.0)}).effects == ()


def test_tables_have_plain_values_and_none_where_the_goal_is_never_met():
    rows = forecast({"precision": 1e-5}).table()
    assert [row["way"] for row in rows] == ["equal shares", "information kept 0.8"]
    assert rows[0]["days"] is None
    assert rows[0]["chance"] == 0.0
    json.dumps(rows, allow_nan=False)


def test_notebooks_show_names_as_text():
    paths = paths_of([EVEN], (0.3, 0.5))
    shown = forecast_of(question(1, ways=("<b>",)), paths)._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown


# With the engine


def plan(**given):
    arms = {"plain": "30%", "prize": "50%"}
    people = eq.People(per_day=100, days=60, exact=True)
    return eq.Plan(**{"arms": arms, "people": people, "goals": 0.08, "ways": {"information_kept": [0.7]}} | given)


RANGES = {"plain": "30% (20% to 40%)", "prize": "50% (40% to 60%)", "call": "40% (30% to 50%)"}

FORMULA_CASES = {
    "two rates": {"goals": 0.06},
    "five rates": {"arms": {"a": "30%", "b": "33%", "c": "42%", "d": "50%", "e": "36%"}, "goals": 0.08},
    "small rates": {
        "arms": {"a": "3%", "b": "5%", "c": "4%"},
        "people": eq.People(per_day=200, days=80, exact=True),
        "goals": 0.02,
    },
    "means": {"arms": {"a": {"mean": 12, "std": 4}, "b": {"mean": 13, "std": 4}}, "goals": 0.5},
    "scores in a range": {
        "arms": {"a": {"mean": 55, "std": 16}, "b": {"mean": 60, "std": 16}},
        "people": eq.People(per_day=30, days=80, exact=True),
        "rewards": {"range": (0, 100)},
        "goals": 4,
    },
    "amounts": {
        "arms": {"a": {"mean": 20, "std": 20}, "b": {"mean": 23, "std": 23}},
        "rewards": {"range": (0, None)},
        "goals": 2.0,
    },
    "differences": {"goals": {"precision": 0.1, "precision_of": "differences"}},
    "differences from a control": {
        "arms": {"a": "30%", "b": "50%", "c": "40%"},
        "goals": {"precision": 0.1, "precision_of": "differences"},
        "control": "a",
    },
}


@pytest.mark.parametrize("case", FORMULA_CASES)
def test_formulas_agree_with_simulations_of_equal_shares_within_two_percent(case):
    planned = plan(**{"ways": [eq.Uniform()]} | FORMULA_CASES[case])
    ours, simulated = planned.formulas().equal_shares, planned.simulate(replications=60).equal_shares
    assert ours.days.median == pytest.approx(simulated.days.median, rel=0.02)
    assert ours.people.median == pytest.approx(simulated.people.median, rel=0.02)
    assert ours.widest.median == pytest.approx(simulated.widest.median, rel=0.02)
    for pair, width in simulated.differences.items():
        assert ours.differences[pair].median == pytest.approx(width.median, rel=0.02)


def test_formulas_follow_the_delay_the_missing_and_the_calendar():
    sooner = plan().formulas().equal_shares
    late = plan(rewards={"delay": "3 days", "missing": "0.1%"}).formulas().equal_shares
    assert late.days.median == pytest.approx(sooner.days.median / 0.999 + 3.0, rel=1e-4)
    assert late.people.median == pytest.approx(100.0 * late.days.median)
    assert late.last_reward_day.median == pytest.approx(late.days.median + 3.0)


def test_formulas_never_exceed_what_rewards_in_their_range_allow():
    for people in (1, 2, 10):
        found = plan(people=people, goals=None).formulas()
        assert max(way.widest.median for way in found.ways.values()) <= 0.7


def test_the_factor_of_people_by_formula_is_enough():
    # Intervals are narrowest at the number of people that is planned, so it is not exact.
    for people, goal in ((2, 0.4), (40, 0.2), (500, 0.03)):
        found = plan(people=people, goals=goal).formulas()
        assert found.equal_shares.chance.value == 0.0
        factor = found.alternatives.people_factor
        assert factor > 1
        way = found.alternatives.way
        assert plan(people=math.ceil(1.001 * factor * people), goals=goal).formulas().ways[way].chance.value == 1.0
        assert plan(people=math.floor(0.8 * factor * people), goals=goal).formulas().ways[way].chance.value == 0.0


def test_too_few_people_are_told_that_nothing_will_be_learnt():
    for found in (plan(people=10, goals=None).formulas(), plan(people=10, goals=None).simulate(replications=4)):
        first, enough, _ = found.recommendation()
        assert first.numbers["people"] == 10 and first.numbers["widest"] > 0.4, "and no way is recommended"
        more = plan(people=enough.numbers["enough"], goals=None).formulas()
        assert more.equal_shares.widest.median == pytest.approx(enough.numbers["useful"], rel=0.1)


def test_guesses_that_come_from_hardly_any_rewards_are_warned_of():
    pilot = {"plain": {"rewards": [4.0, 6.0]}, "prize": {"rewards": [5.0, 8.0]}}
    vague = {"plain": "10% to 70%", "prize": "50%"}
    for arms, number in ((pilot, 2), (vague, 70)):
        found = plan(arms=arms, goals=None).formulas()
        said = next(one for one in found.recommendation() if one.about == "few")
        assert number in said.numbers.values() and "'plain'" in said.text
        assert str(found) == "\n".join(one.text for one in found.recommendation())
    assert not [one for one in plan().formulas().recommendation() if one.about == "few"]


def test_the_limit_of_the_plan_is_declared_where_no_number_of_people_suffices():
    few = {"most_people": 4000, "precision": 0.06, "sureness": 0.5}
    found = forecast(few, noise=np.linspace(1.0, 3.4, 40), shares=[[0.5, 0.5]])
    assert found.stopping[0].budget is None
    said = next(one for one in found.recommendation() if one.about == "declare")
    assert said.numbers["budget"] == 4000 and "at most 4,000 people" in said.text


def test_formulas_know_when_numbers_stay_provisional():
    """Rewards that come after the window are left out; those that never come are waited for without one."""
    late = plan(rewards={"delay": ("1 day", "3 days"), "rule": eq.DropUnit(window_seconds=259_200)}).formulas()
    assert late.recommendation()[0].about == "provisional", "the cause leads"
    waited_for = plan(rewards={"missing": "5%"}).formulas()
    many = "are missing, 10 of 100 where at most 5 may be"
    for found, why in ((late, many), (waited_for, "never come and are waited for")):
        assert found.equal_shares.chance.value == 0.0
        texts = [sentence.text for sentence in found.recommendation()]
        assert f"The goal would not count as met: too many rewards {why}." in texts
    said = " ".join(sentence.text for sentence in late.recommendation())
    assert "You could wait longer for rewards (10 of 100 come after their window), see to it" in said
    counted = {"missing": "15%", "rule": eq.DefaultReward(value=0, window_seconds=86_400)}
    assert plan(rewards=counted).formulas().equal_shares.chance.value == 1.0


def test_formulas_of_the_dial_say_what_it_gains_and_costs():
    ways = list(plan(ways={"information_kept": [1.0, 0.9, 0.5]}).formulas().ways.values())
    gains = [way.gain_per_100.median for way in ways]
    assert gains[0] == pytest.approx(0.0, abs=1e-9)
    assert gains[1] < gains[2] < gains[3]
    assert ways[1].days.median < ways[2].days.median < ways[3].days.median


def test_formulas_take_at_most_a_tenth_of_a_second():
    planned = plan(
        arms={"a": "30%", "b": "33%", "c": "42%", "d": "50%", "e": "36%"},
        people=eq.People(per_day=96, start="2027-03-01", until="2027-06-30"),
        rewards=eq.Rewards(delay="8h", missing="5%", rule=eq.DropUnit(window_seconds=172_800)),
        ways={"weights": [0, 0.5, 0.8, 0.9, 0.95], "floor": 0.02},
        control="a",
    )
    planned.formulas()
    times = []
    for _ in range(5):
        began = time.process_time()
        found = planned.formulas()
        times.append(time.process_time() - began)
    assert min(times) < 0.1
    assert found.by_formula
    assert len(found.ways) == 6
    assert found.recommendation()[-1].text == "By formula, before the cost of learning."
    json.loads(found.to_json())


def test_a_decision_by_formula_takes_fewer_people_the_more_may_be_lost():
    people = [
        plan(goals=eq.Goals(margin=margin), arms={"a": "30%", "b": "34%"}, people=50_000)
        .formulas()
        .equal_shares.people.median
        for margin in (0.0, 0.05, 0.1)
    ]
    assert people[0] > people[1] > people[2] > 0


def test_a_forecast_is_the_same_in_every_run_and_in_parts():
    planned = plan(arms=RANGES, control="plain")
    whole, again = planned.simulate(replications=45), planned.simulate(replications=45, workers=1)
    assert whole.to_dict() == again.to_dict()
    assert whole.replications == 45
    assert whole.luck_replications == 22
    assert plan().simulate(replications=20).luck_replications == 0


def test_refinement_shows_partial_forecasts_and_ends_when_they_are_precise():
    seen = []
    found = plan(arms=RANGES).simulate(seconds=600, on_partial=seen.append)
    assert [one.replications for one in seen][:2] == [20, 40]
    assert found.is_settled()
    assert found.replications == seen[-1].replications
    assert not any(one.is_settled() for one in seen[:-1])


def test_time_ends_a_refinement_that_is_not_precise_yet():
    began = time.monotonic()
    found = plan(arms=RANGES).simulate(seconds=0.5)
    assert found.replications >= 20
    assert found.seconds <= time.monotonic() - began


def test_progress_is_reported_and_ends_at_the_number_asked_for():
    seen = []
    plan(arms=RANGES).simulate(replications=20, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (20, 20)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_ctrl_c_returns_what_is_done(monkeypatch):
    from equipoise.planner import refinement

    calls, played = [], refinement.play

    def play(*args, **given):
        calls.append(1)
        if len(calls) == 2:
            raise TrialsInterrupted(None)
        return played(*args, **given)

    monkeypatch.setattr(refinement, "play", play)
    found = plan().simulate(replications=80)
    assert (found.replications, found.interrupted) == (20, True)
    calls[:] = [1]
    with pytest.raises(KeyboardInterrupt):
        plan().simulate(replications=80)


def test_ctrl_c_keeps_what_is_done_of_a_later_round(monkeypatch):
    from equipoise.planner import refinement

    played = refinement.play

    def play(worlds, ways, *, first, **given):
        if first == 0:
            return played(worlds, ways, first=first, **given)
        raise TrialsInterrupted(played(worlds[:5], ways, first=first, **given))

    monkeypatch.setattr(refinement, "play", play)
    found = plan().simulate(replications=80)
    monkeypatch.undo()
    assert found.interrupted
    assert found.table() == plan().simulate(replications=25).table()


def test_simulations_need_a_number_and_a_time_that_make_sense():
    for wrong in ({"replications": 0}, {"seconds": 0}, {"seconds": -1}):
        with pytest.raises(eq.InvalidInput, match=next(iter(wrong))):
            plan().simulate(**wrong)


def test_one_call_plans_and_simulates():
    options = {"rates": "plain=30%,prize=50%", "people": 3000, "precision": 0.08, "information_kept": [0.7]}
    found = eq.plan(**options, replications=20)
    assert isinstance(found, eq.Forecast)
    assert found.to_dict() == eq.plan(found.plan, replications=20).to_dict()
    assert found.question.has_calendar is False


def test_missing_rewards_that_keep_numbers_provisional_are_named_as_the_reason():
    found = plan(rewards={"missing": "15%", "rule": eq.DropUnit(window_seconds=86_400)}).simulate(replications=20)
    texts = " ".join(sentence.text for sentence in found.recommendation())
    assert "too many rewards are missing" in texts
    assert "times as many people" not in texts


def test_rewards_that_never_come_keep_a_goal_from_being_met_if_they_are_waited_for():
    """`status` calls numbers provisional for ever, by simulation as by formula; rewards that only take long do not."""
    never = plan(rewards={"missing": "4%"})
    for found in (never.simulate(replications=20), never.formulas()):
        assert found.equal_shares.chance.value == 0.0
        assert any("never come and are waited for" in sentence.text for sentence in found.recommendation())
    assert plan(rewards={"delay": "2 days"}).simulate(replications=20).equal_shares.chance.value == 1.0


def test_eight_in_ten_fresh_experiments_end_by_the_day_given_for_them_in_brief():
    _calibrated(120, 100, ways=[0.7], within=(0.8 - 3 * 0.055, 0.8 + 3 * 0.055))


@pytest.mark.endurance
@pytest.mark.parametrize("seed", [77, 78])
def test_eight_in_ten_fresh_experiments_end_by_the_day_given_for_them(seed):
    """Of 500 fresh ones 77 to 83 % do; the forecast has so many experiments that its own error is small beside that."""
    _calibrated(1600, 500, ways=[0.9, 0.7], within=(0.77, 0.83), seed=seed)


def _calibrated(n, n_fresh, *, ways, within, seed=77):
    planned = plan(
        arms=RANGES,
        people=eq.People(per_day="60 to 80", start="2027-03-01", until="2027-05-30"),
        rewards=eq.Rewards(
            delay=("8h", "1 day"), missing="1% to 3%", rule=eq.DropUnit(window_seconds=345_600, hold=True)
        ),
        goals=eq.Goals(precision=0.1),
        ways={"information_kept": ways},
    )
    found = simulate(planned, replications=n)
    fresh = simulate(dataclasses.replace(planned, seed=seed), replications=n_fresh)
    readings = Readings(fresh.paths, fresh.question)
    for k, way in enumerate(found.ways.values()):
        ended = (readings.goal.seconds[k] / SECONDS_A_DAY <= way.days_for_sure).mean()
        assert math.isfinite(way.days_for_sure)
        assert within[0] <= ended <= within[1], (way.name, ended)
        assert way.coverage.value + 3 * way.coverage.error >= 0.95
