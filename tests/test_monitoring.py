"""The checks of a running experiment: their formulas against independent ones, and what they say of sums."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from scipy import stats

from equipoise.monitoring.arrival_checks import ENROLMENT, REWARDS
from equipoise.monitoring.budget import LIFETIME, critical_evidence, critical_z, spent
from equipoise.monitoring.draw_checks import DRAWS, TRACKING
from equipoise.monitoring.draws import draw_evidence
from equipoise.monitoring.health_checks import checks_of
from equipoise.monitoring.jumps import Moments, influence, mean_jump
from equipoise.monitoring.proportions import change, evidence_of_more, excess, tally
from equipoise.monitoring.reward_checks import DELAY_BY_ARM, DELAY_DRIFT, MISSING, MISSING_BY_ARM
from equipoise.monitoring.stalls import silence, usual_arrivals
from equipoise.monitoring.sums import AGES, HourlySums
from equipoise.monitoring.value_checks import REWARD_JUMP, UNUSUAL_REWARD
from equipoise.monitoring.watched import Extreme, Watched

ARMS = ("plain", "prize", "late")
SHARES = np.array([0.5, 0.3, 0.2])
MONDAY = 4 * 24
"""The first Monday, in hours since 1970."""


def test_a_budget_is_spent_over_a_life_time_and_never_more():
    assert sum(spent(day) for day in range(1, 20_000)) == pytest.approx(LIFETIME, rel=1e-4)
    assert critical_z(30, 5) == pytest.approx(stats.norm.isf(spent(30, 5) / 2))


@pytest.mark.parametrize(
    ("units", "of_arm", "events", "seen"),
    [(2100, 100, 115, 15), (1000, 100, 50, 20), (2000, 1000, 1800, 935), (6000, 600, 300, 70), (400, 200, 30, 27)],
)
def test_tails_of_an_excess_are_those_of_the_hypergeometric_distribution(units, of_arm, events, seen):
    found = excess(tally(np.array([[of_arm, units - of_arm]]), np.array([[seen, events - seen]])).summed())
    exact = stats.hypergeom.sf(seen - 1, units, events, of_arm)
    assert stats.norm.sf(found.z[0]) == pytest.approx(exact, rel=1.0 if exact > 1e-6 else 12.0)
    assert found.z[0] == pytest.approx(-found.z[1])


def test_an_excess_compares_within_days_so_that_time_alone_makes_none():
    # The share of the first arm falls while more rewards are missing; on each day both arms miss as many.
    units = np.array([[900.0, 100.0], [100.0, 900.0]])
    found = excess(tally(units, units * [[0.05], [0.40]]).summed())
    assert np.abs(found.z).max() < 1e-6
    assert np.abs(found.difference).max() < 1e-12
    assert change(np.array(500.0), np.array(200.0), np.array(500.0), np.array(25.0)).z > 10


def test_evidence_is_a_bet_that_cannot_be_expected_to_win():
    # One day: the expectation over all outcomes, weighted by their hypergeometric probabilities, is at most 1.
    for units, of_arm, events in ((20, 5, 4), (100, 10, 50), (7, 3, 7)):
        seen = np.arange(max(0, events - (units - of_arm)), min(of_arm, events) + 1)
        table = np.stack([seen, events - seen], axis=-1)[:, None, :].astype(float)
        found = evidence_of_more(np.broadcast_to([float(of_arm), float(units - of_arm)], table.shape), table)[:, -1, 0]
        assert np.exp(found) @ stats.hypergeom.pmf(seen, units, events, of_arm) <= 1 + 1e-9


def test_evidence_against_logged_probabilities_is_no_more_than_bets_would_have_won():
    rng = np.random.default_rng(5)
    won = []
    for _ in range(2_000):
        chosen = rng.random(400) < 0.2
        n = np.array([400.0])
        won.append(
            np.exp(draw_evidence(n, np.array([chosen.sum() / 0.2]), np.array([chosen.sum() / 0.04]), n * 0 + 0.2))
        )
    assert np.mean(won) <= 1.0
    wrong = np.array([400.0 * 3])
    given = 0.1 * wrong
    assert draw_evidence(wrong, given / 0.2, given / 0.04, wrong * 0 + 0.2) > critical_evidence()


def test_two_values_alone_cannot_jump_in_spread_but_their_mean_can():
    before, recent = (Moments(*(np.array([one]) for one in (n, n * p, n * p))) for n, p in ((500.0, 0.5), (200.0, 0.1)))
    assert mean_jump(recent, before).z < -8
    assert influence(before, np.array([1.0]), np.array([0.1])) < 0.05


def test_a_silence_is_judged_by_the_same_hours_of_the_week():
    # Four weeks of working hours only: nights and week-ends are silent, and nobody is missed in them.
    hours = np.arange(4 * 168)
    counts = np.where((hours % 24 >= 8) & (hours % 24 < 16) & (hours % 168 < 120), 10.0, 0.0)
    seen, times = usual_arrivals(counts, 0, 4 * 168.0, 4 * 168.0 + 12)
    assert (seen, times) == (160.0, 4)
    assert usual_arrivals(counts, 0, 4 * 168.0 + 120, 4 * 168.0 + 168)[0] == 0
    # The predictive probability of nothing: the rate is known from as many stretches only.
    rng = np.random.default_rng(1)
    rate = rng.uniform(0, 30, 1_000_000)
    came = rng.poisson(3 * rate)
    nothing = rng.poisson(rate) == 0
    assert nothing[came == 4].mean() == pytest.approx(np.exp(silence(5, 3)), abs=0.02)  # with a flat prior


def watched(days=30, people=240, *, missing=(0.05, 0.05, 0.05), by=None, seed=1, **settings):
    """Return an experiment of some days with even arrivals; `by` may change its arrays."""
    rng = np.random.default_rng(seed)
    hours = days * 24
    assigned = rng.poisson(people / 24 * SHARES, (hours, 3)).astype(float)
    answering = rng.binomial(assigned.astype(int), 1 - np.array(missing)).astype(float)
    told = np.cumsum(rng.multinomial(answering.astype(int), [0.3, 0.4, 0.2, 0.1, 0.0]), axis=-1).astype(float)
    counted = np.roll(answering, 2, axis=0)
    yes = rng.binomial(counted.astype(int), 0.4).astype(float)
    arrays = {
        "assigned": assigned, "rewarded": counted,
        "inverses": assigned / SHARES, "inverse_squares": assigned / SHARES**2,
        "counted": counted, "totals": yes, "squares": yes, "cubes": yes, "fourths": yes,
        "removed": 0 * yes, "removed_totals": 0 * yes, "removed_squares": 0 * yes,
        "told": told, "told_in_window": told[:, :, 3], "silent": 0 * yes, "in_play": np.ones((hours, 3), bool),
    }  # fmt: skip
    if by is not None:
        by(arrays)
    first = MONDAY + 2_000 * 168
    now = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(hours=first + hours, minutes=1)
    n, total = counted.sum(axis=0), yes.sum(axis=0)
    given = {
        "arms": ARMS, "active": (True,) * 3, "sums": HourlySums(first_hour=first, **arrays), "now": now,
        "window_seconds": 72 * 3600.0, "floors": np.full(3, 0.1), "rewarded": n, "mean": total / n,
        "std": np.sqrt(total / n * (1 - total / n)), "half_width": 2 / np.sqrt(n),
        "last_assigned_at": now - timedelta(minutes=5), "last_rewarded_at": now - timedelta(minutes=5),
        "wanted": np.tile(SHARES, (days, 1)),
    }  # fmt: skip
    return Watched(**given | settings)


def found_in(experiment):
    return {(one.check, one.arm): one for one in checks_of(experiment)}


def test_a_healthy_experiment_has_no_problem_and_says_so_in_sentences():
    found = checks_of(watched())
    assert {one.state for one in found} == {"ok"}
    assert all(one.sentence.endswith(".") and not one.advice for one in found)
    assert {one.check for one in found} == {
        MISSING_BY_ARM, MISSING, DELAY_DRIFT, DELAY_BY_ARM, REWARD_JUMP, UNUSUAL_REWARD, ENROLMENT, REWARDS,
        DRAWS, TRACKING,
    }  # fmt: skip


def test_before_there_is_enough_nothing_is_decided():
    assert [
        one.state for one in checks_of(Watched(arms=ARMS, active=(True,) * 3, sums=None, now=datetime.now(UTC)))
    ] == ["not enough yet"]
    found = checks_of(watched(days=1, people=24, wanted=None))
    assert {one.state for one in found} <= {"not enough yet", "ok"}
    assert sum(one.state == "ok" for one in found) <= 3


def test_rewards_that_are_missing_from_one_arm_are_found_and_explained():
    found = found_in(watched(missing=(0.05, 0.05, 0.15)))
    late = found[MISSING_BY_ARM, "late"]
    assert late.state == "problem"
    assert late.value == pytest.approx(0.15, abs=0.03)
    assert late.expected == pytest.approx(0.05, abs=0.02)
    assert late.sentence.startswith("1") and "of the people with 'late' have no reward within 3 days" in late.sentence
    assert "may flatter it" in late.advice
    assert found[MISSING_BY_ARM, "plain"].state == "ok"
    # Where silence has a value, nobody is missing.
    assert found_in(watched(missing=(0.05, 0.05, 0.15), default=0.0))[MISSING_BY_ARM, None].state == "ok"


def test_what_changed_of_late_is_found():
    def fewer(arrays):
        arrays["told_in_window"][-10 * 24 :] *= 0.8

    def later(arrays):
        arrays["told"][-5 * 24 :, :, 0] = 0

    def moved(arrays):
        arrays["totals"][-7 * 24 :, 1] = arrays["counted"][-7 * 24 :, 1] * 0.75

    assert found_in(watched(by=fewer))[MISSING, None].state == "problem"
    drift = found_in(watched(by=later))[DELAY_DRIFT, None]
    assert drift.state == "problem"
    assert drift.sentence.startswith("0% of the people of the last 3 days had a reward within 1 hour")
    jump = found_in(watched(by=moved))[REWARD_JUMP, "prize"]
    assert jump.state == "problem"
    assert jump.since == watched().now - timedelta(days=7, minutes=1)


def test_arms_that_answer_late_matter_unless_rewards_are_held():
    def slow(arrays):
        arrays["told"][:, 2, :2] *= 0.3

    assert found_in(watched(by=slow))[DELAY_BY_ARM, "late"].state == "problem"
    assert found_in(watched(by=slow, hold=True))[DELAY_BY_ARM, None].state == "ok"


def test_a_reward_that_moves_a_mean_is_named_by_its_event():
    healthy = watched()
    n = healthy.rewarded[2]
    mean, std = healthy.mean.copy(), healthy.std.copy()
    mean[2], std[2] = mean[2] + 400.0 / n, np.hypot(std[2], 400.0 / np.sqrt(n))
    extremes = (Extreme(arm=2, reward=400.0, event=77), Extreme(arm=0, reward=1.0, event=9))
    found = found_in(watched(extremes=extremes, mean=mean, std=std, half_width=4 * std / np.sqrt(healthy.rewarded)))
    assert found[UNUSUAL_REWARD, "late"].state == "problem"
    assert found[UNUSUAL_REWARD, "late"].event == 77
    assert "event 77" in found[UNUSUAL_REWARD, "late"].advice
    assert found[UNUSUAL_REWARD, "plain"].state == "ok"


def test_people_and_rewards_that_stop_coming_are_missed():
    experiment = watched()
    long_ago = experiment.now - timedelta(hours=6)

    def silent(arrays):
        arrays["assigned"][-6:] = 0
        arrays["rewarded"][-6:] = 0

    stalled = found_in(watched(by=silent, last_assigned_at=long_ago, last_rewarded_at=long_ago))
    assert stalled[ENROLMENT, None].state == "problem"
    assert stalled[ENROLMENT, None].sentence.startswith("Nobody came for 6 hours; usually ")
    assert stalled[ENROLMENT, None].since == long_ago
    assert stalled[REWARDS, None].state == "problem"
    paused = found_in(watched(by=silent, last_assigned_at=long_ago, enrolling=False))
    assert paused[ENROLMENT, None].state == "ok"


def test_shares_off_the_record_or_off_the_target_are_found():
    def off_record(arrays):
        arrays["inverses"][:, 1] *= 1.3
        arrays["inverse_squares"][:, 1] *= 1.3

    assert found_in(watched(by=off_record))[DRAWS, "prize"].state == "problem"
    wanted = np.tile([0.3, 0.3, 0.4], (30, 1))
    tracking = found_in(watched(wanted=wanted))
    assert {arm: tracking[TRACKING, arm].state for arm in ARMS} == {
        "plain": "problem",
        "prize": "ok",
        "late": "problem",
    }
    assert len(AGES) == 5
