"""Simulated experiments take every decision of live ones on the same people, and know what those know."""

from __future__ import annotations

import math

import numpy as np
import pytest
from endurance import short_and_full

import equipoise as eq
from equipoise.planner import trials
from equipoise.planner.live_play import Clock, LivePlay
from equipoise.planner.paths import Paths
from equipoise.planner.population import Population
from equipoise.planner.trials import READABLE, Way, play
from equipoise.planner.world import BETA, EMPIRICAL, GAMMA, NORMAL, YES_NO, new_world

HOUR, DAY = 3600.0, 86_400.0


def pick(rng, *options):
    return options[rng.integers(len(options))]


def random_world(rng, n_arms, n_people, direction):
    """Return a world with about this many people, and the settings that declare its rewards."""
    kind = pick(rng, YES_NO, YES_NO, NORMAL, GAMMA, BETA, EMPIRICAL)
    mean = rng.uniform(0.15, 0.85, n_arms)
    std = None if kind == YES_NO else rng.uniform(0.05, 0.3, n_arms)
    declared = {}
    if kind == EMPIRICAL:
        declared["pilot"] = [rng.gamma(2.0, 1.0, 30).round(1) for _ in range(n_arms)]
    if kind in (NORMAL, GAMMA):
        mean = 5 * mean
        declared["rounded_to"] = pick(rng, 0.0, 0.1)
    ranges = [None, (0.0, None)] if kind in (GAMMA, NORMAL) else [None]
    reward_range = pick(rng, None, (0.0, 1.0)) if kind in (YES_NO, BETA) else ranges[rng.integers(len(ranges))]
    days = int(pick(rng, 1, 3, 10))
    delay = pick(rng, 0.0, HOUR, 20 * HOUR, rng.uniform(0, 2 * DAY, n_arms))
    batch = pick(rng, {}, {}, {"batch_people": 7}, {"batch_seconds": DAY, "batch_at": 9 * HOUR})
    drift = pick(rng, {}, {}, {"drift_per_day": 0.05}, {"step": 0.2, "step_at": 0.5 * DAY * days})
    world = new_world(
        mean,
        std,
        kind=kind,
        per_day=rng.dirichlet(np.ones(days)) * n_people,
        is_exact=bool(rng.integers(2)),
        reward_range=reward_range,
        delay=delay,
        delay_spread=pick(rng, 0.0, 1.0),
        missing=pick(rng, 0.0, 0.1, rng.uniform(0, 0.4, n_arms)),
        missing_after_good=pick(rng, None, 0.3),
        **declared,
        **batch,
        **drift,
    )
    settings = {"reward_range": reward_range, "direction": direction}
    if reward_range is None:
        settings["reward_cap"] = pick(rng, None, float(np.mean(mean)))
    return world, settings


def random_missing(rng):
    window, hold, late = pick(rng, 6 * HOUR, 2 * DAY), bool(rng.integers(2)), pick(rng, "count", "ignore")
    rules = [
        eq.WaitForReward(),
        eq.WaitForReward(window_seconds=window, hold=hold),
        eq.DefaultReward(value=0.0, window_seconds=window, hold=hold, late=late),
        eq.DropUnit(window_seconds=window, hold=hold, late=late),
    ]
    return pick(rng, *rules)


def random_policy(rng, n_arms):
    windowed = {"tracking": "windowed"}
    return pick(
        rng,
        {"reward_weight": float(rng.uniform(0, 1))},
        {"reward_weight": 0.9},
        {"information_kept": float(rng.uniform(0.2, 1))},
        {"information_kept": 0.6, "information_about": pick(rng, "every-arm", "best-arm")},
        {"reward_weight": 0.7, "drift": pick(rng, "declared", "detected")},
        {"policy": eq.PooledBalance(reward_weight=0.8, **windowed, window_growth=0.0, floor=0.2 / n_arms)},
        {"policy": eq.PooledBalance(reward_weight=0.8)},
        {"policy": eq.PooledBalance(reward_weight=0.4, **windowed, floor=0.5 / n_arms, floor_decay=0.2)},
        {"policy": eq.ForcingBalance(reward_weight=0.8, **windowed)},
        {"policy": eq.ForcingBalance(information_kept=0.7)},
        {"policy": eq.Uniform()},
        {"policy": eq.ThompsonSampling(draws=3)},
        {"policy": eq.UCB()},
    )


def random_plan(number, n_people):
    """Return a world and the settings of a way to assign."""
    rng = np.random.default_rng([16, number])
    n_arms = int(pick(rng, 2, 3, 5, 8, 20))
    world, settings = random_world(rng, n_arms, n_people, pick(rng, "maximise", "maximise", "minimise"))
    names = [f"arm {i}" for i in range(n_arms)]
    settings |= {"arms": names, "missing": random_missing(rng), "warm_up": int(pick(rng, 0, 0, 2))}
    settings |= pick(rng, {}, {"floor": 0.3 / n_arms}, {"control": names[1], "control_share": 0.25})
    settings |= pick(rng, {}, {"most_units": n_people // 2})
    rules = [eq.Precision(half_width=0.1, of="differences"), eq.Decided(margin=0.1)]
    settings["stopping"] = pick(rng, rules, [*rules, eq.Budget(units=n_people)])
    return world, settings | random_policy(rng, n_arms)


def played_live(world, settings, seed, replication):
    """Play the people through an experiment; return it and the arms that they got."""
    people, clock = Population(world, seed=seed, replication=replication), Clock()
    store = eq.open_store("memory:", clock=clock)
    experiment = eq.Experiment.create(store, "plan", seed=people.experiment_seed, **settings)
    live = LivePlay(experiment, clock, people)
    return people, live, experiment


def same_status(paths, place, status, configuration):
    """Compare what a look recorded with what the status says."""
    look = {name: getattr(paths, name)[0, 0, place] for name in ("assigned", "counted", "open", "held", "missing")}
    overdue = 0 if configuration.missing.default is not None else 1
    assert paths.n_may_be_best[0, 0, place] == len(status.may_be_best)
    same_number(paths.most_lost[0, 0, place], status.most_lost)
    same_number(paths.widest_difference[0, 0, place], status.widest_difference)
    for i, arm in enumerate(status.arms):
        assert look["assigned"][i] == arm.assigned
        assert look["counted"][i] == arm.rewarded
        assert look["held"][i] == arm.held
        assert look["open"][i] == arm.pending - arm.held
        assert look["missing"][i] == arm.dropped + overdue * arm.overdue
        for name, value in (("estimate", arm.mean), ("spread", arm.std)):
            found = getattr(paths, name)[0, 0, place, i]
            assert found == value or (math.isnan(found) and value is None), name
        same_number(paths.low[0, 0, place, i], arm.low)
        same_number(paths.high[0, 0, place, i], arm.high)


def same_number(found, expected):
    """Compare up to the rounding of running sums; None stands for NaN."""
    assert math.isnan(found) if expected is None else found == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("size", short_and_full((60, 50), (200, 300)))
def test_every_person_gets_the_arm_that_a_live_experiment_gives(size):
    (n_plans, n_people), seen, n_narrow = size, set(), 0
    for number in range(n_plans):
        world, settings = random_plan(number, n_people)
        looks = np.array([0.4 * DAY * world.per_day.size, DAY * world.per_day.size, np.inf])
        paths = play([world], [settings], seed=7, first=number, look_seconds=looks, read=READABLE, workers=1)
        table = trials_table(world, settings, seed=7, replication=number)
        people, live, experiment = played_live(world, settings, 7, number)
        for place, seconds in enumerate(looks):
            if place < 2:
                live.play_until(int(seconds * 1e6))
            else:
                live.play()
            same_status(paths, place, experiment.status(), experiment.configuration)
        assert live.arms == table.arm[: len(live.arms)].tolist(), settings
        assert (
            paths.assigned[0, 0, -1].sum() == len(live.arms) == min(people.n_people, settings.get("most_units", 10**9))
        )
        seen |= {type(experiment.configuration.policy).__name__, experiment.configuration.missing.describe()[:4]}
        n_narrow += np.isfinite(paths.widest_difference).sum()
    assert n_narrow > 0.5 * n_plans
    assert seen >= {"PooledBalance", "ForcingBalance", "Uniform", "ThompsonSampling", "wait", "coun", "drop"}


def trials_table(world, settings, *, seed, replication):
    """Return the arms and rewards of every person in a simulated experiment."""
    from equipoise.kernels.trial import new_table, play_trial

    way, people = Way.of(settings), Population(world, seed=seed, replication=replication)
    table = new_table(people.n_people, world.mean.size, weighted=way.configuration.policy.weighs_rewards)
    looks = trials._looks_of(Paths.empty(1, 1, np.array([np.inf]), world.mean.size), 0, 0, evidence=False)
    told, order = people.told
    known = (people.n_people, told, order, people.seed, people.replication, people.experiment_seed)
    play_trial(world, people.people, *known, *way.for_kernel(), table, looks)
    return table
