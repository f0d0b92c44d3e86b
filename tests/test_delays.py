"""Whether good news, or some arms' rewards, come faster: against SciPy, false alarms, and a real experiment."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import equipoise as eq
from equipoise.analysis.delays import check_arrivals, check_news
from equipoise.analysis.observations import Observations
from equipoise.experiment.observed_log import read_observations
from equipoise.store.schema import microseconds
from equipoise.testing.unit_contract import StoppedClock

DAY = 86_400.0


def reported(rng, n=400, n_arms=3, *, until=None, delay=None, reward=None, **columns):
    """Decisions at whole hours, rewards after an exponential delay; those after `until` are not in yet."""
    at = np.arange(n) * 1.0
    delays = rng.exponential(60.0, n) if delay is None else delay
    rewards = rng.normal(size=n) if reward is None else reward
    until = at[-1] + 1 if until is None else until
    told = np.where(at + delays <= until, at + delays, np.nan)
    return Observations(
        arms=tuple("abcdef"[:n_arms]),
        arm=rng.integers(n_arms, size=n),
        reward=np.where(np.isnan(told), np.nan, rewards),
        at=at,
        rewarded_at=told,
        until=until,
        **columns,
    )


def test_news_is_spearmans_correlation_within_arms():
    rng = np.random.default_rng(1)
    observations = reported(rng, reward=rng.integers(0, 4, 400) / 3)
    total, weight = 0.0, 0
    for arm in range(3):
        here = (observations.arm == arm) & observations.counted
        delays = (observations.rewarded_at - observations.at)[here]
        n = delays.size
        total += stats.spearmanr(delays, observations.reward[here]).statistic * (n - 1)
        weight += n - 1
    assert check_news(observations).z == pytest.approx(total / math.sqrt(weight), rel=1e-12)


def test_arrivals_are_a_log_rank_test_and_kaplan_meier():
    rng = np.random.default_rng(2)
    observations = reported(rng, n_arms=2)
    found = check_arrivals(observations)
    age = np.where(observations.counted, observations.rewarded_at, observations.until) - observations.at
    samples = [
        stats.CensoredData.right_censored(age[here], ~observations.counted[here])
        for here in (observations.arm == 0, observations.arm == 1)
    ]
    wanted = stats.logrank(*samples)
    assert abs(found.z[0]) == pytest.approx(abs(wanted.statistic), rel=1e-9)
    assert found.z[0] == pytest.approx(-found.z[1])
    for arm, sample in enumerate(samples):
        curve = stats.ecdf(sample).cdf
        inside = found.age <= curve.quantiles.max()
        np.testing.assert_allclose(found.reported[arm, inside], curve.evaluate(found.age[inside]), atol=1e-12)


def test_thousands_of_ages_are_grouped_with_little_change():
    rng = np.random.default_rng(3)
    observations = reported(rng, 6000, n_arms=2, delay=rng.exponential(np.where(np.arange(6000) % 2, 60, 50)))
    found = check_arrivals(observations)
    age = np.where(observations.counted, observations.rewarded_at, observations.until) - observations.at
    samples = [
        stats.CensoredData.right_censored(age[here], ~observations.counted[here])
        for here in (observations.arm == 0, observations.arm == 1)
    ]
    assert found.age.size <= 1000
    assert abs(found.z[0]) == pytest.approx(abs(stats.logrank(*samples).statistic), abs=0.05)


def test_neither_check_speaks_by_chance():
    """One in 10,000 would; z of each is a standard normal number, also with arms of different shares and ages."""
    rng = np.random.default_rng(4)
    news, arrivals, spoken = [], [], 0
    for _ in range(500):
        n = 300
        observations = reported(rng, n, delay=rng.lognormal(3, 1.5, n))
        observations.arm[:] = (rng.random(n) < np.linspace(0.1, 0.9, n)) * (1 + (rng.random(n) < 0.3))
        first, second = check_news(observations), check_arrivals(observations)
        news.append(first.z)
        arrivals.append(second.z[0])
        spoken += first.speaks + second.speaks
    assert spoken == 0
    for z in (news, arrivals):
        assert abs(np.mean(z)) < 4 / math.sqrt(500)
        assert abs(np.std(z) - 1) < 4 / math.sqrt(2 * 500)


@pytest.mark.parametrize("direction", ["maximise", "minimise"])
def test_good_news_first_is_found(direction):
    rng = np.random.default_rng(5)
    good = rng.random(400) < 0.4
    reward = np.where(good, 1.0, 0.0) if direction == "maximise" else np.where(good, 0.0, 1.0)
    delay = rng.exponential(np.where(good, 20.0, 100.0))
    found = check_news(reported(rng, reward=reward, delay=delay, direction=direction))
    assert found.speaks and found.good_first and (found.z < 0) == (direction == "maximise")
    assert found.median_good < 25 < found.median_other
    slow = check_news(reported(rng, reward=1 - reward, delay=delay, direction=direction))
    assert slow.speaks and not slow.good_first and slow.median_other < 25 < slow.median_good


def test_an_arm_whose_rewards_come_faster_or_at_all_is_found():
    rng, n = np.random.default_rng(6), 900
    observations = reported(rng, n)
    speed = np.array([1.0, 1.0, 2.5])[observations.arm]
    told = observations.at + rng.exponential(60 / speed)
    fast = Observations(
        arms=observations.arms,
        arm=observations.arm,
        reward=np.where(told < 1000, 1.0, np.nan),
        at=observations.at,
        rewarded_at=np.where(told < 1000, told, np.nan),
        until=1000.0,
    )
    found = check_arrivals(fast)
    assert found.speaks and found.fastest == "c"
    shares = dict(zip(found.arms, found.reported_by(30.0), strict=True))
    assert shares["c"] == pytest.approx(1 - math.exp(-30 * 2.5 / 60), abs=0.1)
    assert shares["a"] == pytest.approx(1 - math.exp(-30 / 60), abs=0.1)
    assert (found.reported_by(-1.0) == 0).all()


def test_without_times_or_rewards_nothing_is_said():
    bare = Observations(arms=("a", "b"), arm=[0, 1], reward=[1.0, 2.0])
    assert check_news(bare) is None and check_arrivals(bare) is None
    rng = np.random.default_rng(7)
    early = reported(rng, 5, until=0.0)
    assert check_news(early) is None and check_arrivals(early) is None
    same = reported(rng, 50, reward=np.ones(50))
    assert check_news(same) is None  # rewards that are all alike have no order
    lone = reported(rng, 60, n_arms=1)
    assert check_arrivals(lone) is None


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5), st.booleans()), min_size=2, max_size=40))
def test_arrivals_of_any_data_are_numbers_and_do_not_depend_on_the_order(rows):
    arm, delay, told = (np.array(column) for column in zip(*rows, strict=True))
    at = np.zeros(arm.size)

    def check(order):
        return check_arrivals(
            Observations(
                arms=("a", "b", "c"),
                arm=arm[order],
                reward=np.where(told, 1.0, np.nan)[order],
                at=at,
                rewarded_at=np.where(told, delay, np.nan)[order],
                until=6.0,
            )
        )

    found, again = check(np.arange(arm.size)), check(np.arange(arm.size)[::-1])
    assert (found is None) == (again is None)
    if found is not None:
        np.testing.assert_allclose(found.z, again.z)
        shares = found.reported[~np.isnan(found.reported)]
        assert (shares >= 0).all() and (shares <= 1).all()
        here = np.bincount(arm, minlength=3) > 0
        wanted = np.bincount(arm, told, 3)[here] / np.bincount(arm, minlength=3)[here]
        np.testing.assert_allclose(found.reported_by(6.0)[here], wanted, atol=1e-12)


def test_a_live_experiment_in_which_yes_comes_at_once_and_no_after_days():
    clock = StoppedClock()
    store = eq.open_store("memory:", clock=clock)
    rng = np.random.default_rng(8)
    experiment = eq.Experiment.create(store, "x", arms=["a", "b"], reward_weight=0.5, seed=1)
    waiting = []
    for number in range(600):
        unit = experiment.ask(f"unit-{number}").unit
        yes = rng.random() < 0.4
        waiting.append((number + (2 if yes else rng.integers(20, 60)), unit, float(yes)))
        for _when, name, reward in [one for one in waiting if one[0] <= number]:
            experiment.tell(name, reward)
            if rng.random() < 0.1:
                experiment.correct(name, 1 - reward, "misread")  # news is what was reported first
        waiting = [one for one in waiting if one[0] > number]
        if number == 100:
            experiment.withdraw(waiting[0][1], "asked to")
            waiting.pop(0)
        clock.advance(3600)
    now = microseconds(clock())
    found = experiment.store.read(lambda t: read_observations(t, experiment.number, "x", now=now))
    news, arrivals = check_news(found), check_arrivals(found)
    assert news.speaks and news.good_first and news.median_good < 3 * 3600 < 19 * 3600 < news.median_other
    assert not arrivals.speaks
