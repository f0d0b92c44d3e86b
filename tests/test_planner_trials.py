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
from equipoise.planner.trials import READABLE, TrialsInterrupted, Way, default_looks, play
from equipoise.planner.worlds import BETA, EMPIRICAL, GAMMA, NORMAL, YES_NO, new_world

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
        {"information_kept": 1.0},
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
        table = table_of(world, settings, seed=7, replication=number)
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


def table_of(world, settings, *, seed=1, replication=0, strict=False):
    """Return the arms and rewards of every person in a simulated experiment."""
    from equipoise.kernels.trial import new_table, play_trial

    way, people = Way.of(settings), Population(world, seed=seed, replication=replication)
    table = new_table(people.n_people, world.mean.size, weighted=way.configuration.policy.weighs_rewards)
    looks = trials._looks_of(Paths.empty(1, 1, np.array([np.inf]), world.mean.size), 0, 0)
    told, order = people.told
    known = (people.n_people, told, order, people.seed, people.replication, people.experiment_seed)
    rule, design, setting, lives = way.for_kernel()
    setting = setting._replace(strict=strict)
    play_trial(world, people.people, *known, rule, design, setting, lives, table, looks)
    return table


FAST = {
    "weight": {"reward_weight": 0.9},
    "no weight": {"reward_weight": 0.0},
    "all weight": {"reward_weight": 1.0},
    "all information": {"information_kept": 1.0},
    "much information": {"information_kept": 0.9},
    "little information": {"information_kept": 0.2},
    "floors": {"reward_weight": 0.8, "floor": 0.02, "control": "arm 0", "control_share": 0.1, "warm_up": 3},
    "marginal": {"policy": eq.PooledBalance(reward_weight=0.8)},
    "equal shares": {"policy": eq.Uniform(), "control": "arm 0", "control_share": 0.1},
}


@pytest.mark.parametrize("n_people", short_and_full(1_500, 20_000))
@pytest.mark.parametrize("way", FAST)
def test_the_fast_copy_takes_every_decision_of_the_strict_rule(way, n_people):
    n_strict = n_decisions = 0
    for n_arms in (2, 5, 20):
        mean = np.linspace(0.3, 0.5, n_arms)
        late = eq.DefaultReward(value=0.0, window_seconds=4 * HOUR, late="count")
        for kind, std, missing in (
            (YES_NO, None, None),
            (NORMAL, np.linspace(0.1, 0.4, n_arms), None),
            (YES_NO, None, late),
        ):
            world = new_world(
                mean, std, kind=kind, per_day=[100] * (n_people // 100), delay=8 * HOUR, delay_spread=1.0, missing=0.05
            )
            settings = {"arms": [f"arm {i}" for i in range(n_arms)], "missing": missing} | FAST[way]
            fast, strict = table_of(world, settings), table_of(world, settings, strict=True)
            n = Population(world, seed=1).n_people
            assert (fast.arm[:n] == strict.arm[:n]).all(), (n_arms, kind)
            assert strict.n_strict[0] == n
            n_strict, n_decisions = n_strict + int(fast.n_strict[0]), n_decisions + n
    assert n_strict < 0.25 * n_decisions


def few_trials(n_replications=6, **more):
    world = new_world([0.3, 0.5], per_day=[40] * 5, delay=HOUR, missing=0.1)
    ways = [{"arms": ["a", "b"], "policy": eq.Uniform()}, {"arms": ["a", "b"], "reward_weight": 0.9}]
    return play([world] * n_replications, ways, **{"seed": 3, "workers": 1} | more)


def same_paths(one, other):
    for name in Paths.__dataclass_fields__:
        if name == "drawn":
            assert {key: values.tolist() for key, values in one.drawn.items()} == {
                key: values.tolist() for key, values in other.drawn.items()
            }
        else:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def test_results_depend_on_neither_workers_nor_parts_nor_backend():
    drawn = {"people.per_day": np.arange(6.0)}
    whole = few_trials(drawn=drawn)
    same_paths(whole, few_trials(workers=2, drawn=drawn))
    halves = [few_trials(3, first=first, drawn={"people.per_day": np.arange(3.0) + first}) for first in (0, 3)]
    same_paths(whole, halves[0].joined(halves[1]))
    same_paths(whole, few_trials(backend="processes", workers=2, drawn=drawn))
    same_paths(whole.only([4, 5]), few_trials(2, first=4, drawn={"people.per_day": [4.0, 5.0]}))


def test_control_c_keeps_finished_replications(monkeypatch):
    plain = trials.Trials._play_one

    def interrupted(self, population, way, paths, w, r):
        plain(self, population, way, paths, w, r)
        if population.replication == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(trials.Trials, "_play_one", interrupted)
    with pytest.raises(TrialsInterrupted) as caught:
        few_trials(drawn={"guess": np.arange(6.0)})
    found = caught.value.paths
    assert found.replication.tolist() == [0, 1, 2]
    monkeypatch.undo()
    same_paths(found, few_trials(3, drawn={"guess": np.arange(3.0)}))


def test_progress_is_reported_in_experiments():
    seen = []
    few_trials(progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (12, 12)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ways": []}, "ways"),
        ({"worlds": []}, "worlds"),
        ({"ways": [{"arms": ["a", "b"], "policy": eq.Uniform(), "colour": 1}]}, "colour"),
        ({"ways": [{"arms": ["a"], "policy": eq.Uniform()}]}, "2 arms"),
        ({"look_seconds": np.array([2.0, 1.0, np.inf])}, "look_seconds"),
        ({"look_seconds": np.array([1.0])}, "look_seconds"),
        ({"read": ["everything"]}, "read"),
        ({"scheduler": "tcp://host:1"}, "scheduler"),
    ],
)
def test_bad_input_is_refused_before_anything_is_played(change, said):
    world = new_world([0.3, 0.5], per_day=[10])
    ways = [{"arms": ["a", "b"], "policy": eq.Uniform()}]
    given = {"worlds": [world], "ways": ways} | change
    with pytest.raises(eq.EquipoiseError, match=said):
        play(given.pop("worlds"), given.pop("ways"), seed=1, **given)


def test_a_policy_in_python_is_refused():
    from own_policies import LeastAssigned

    with pytest.raises(eq.InvalidInput, match="compiled"):
        Way.of({"arms": ["a", "b"], "policy": LeastAssigned()})


def test_people_are_a_function_of_seed_replication_and_person():
    world = new_world([0.2, 0.6], per_day=[500], delay=HOUR, delay_spread=0.5, missing=0.2)
    people, again, other = (Population(world, seed=2, replication=r) for r in (0, 0, 1))
    assert (people.arrived == again.arrived).all()
    assert people.arrived[0] != other.arrived[0]
    assert people.experiment_seed != other.experiment_seed
    few = Population(world._replace(most_people=10), seed=2)
    assert (few.arrived == people.arrived[:10]).all()
    rewards = np.array([[people.reward(person, arm) for arm in (0, 1)] for person in range(people.n_people)])
    assert (rewards[:, 0] <= rewards[:, 1]).all(), "one uniform number serves all arms"
    told = [people.told_at(person, 0) for person in range(people.n_people)]
    assert np.mean([at is None for at in told]) == pytest.approx(0.2, abs=0.06)
    late = np.array([at - people.arrived[person] for person, at in enumerate(told) if at is not None]) / 1e6
    assert np.median(late) == pytest.approx(HOUR, rel=0.1)


@pytest.mark.parametrize("kind", [YES_NO, NORMAL, GAMMA, BETA, EMPIRICAL])
def test_rewards_have_the_mean_and_spread_of_the_world(kind):
    mean, std = [0.4, 0.6], None if kind == YES_NO else [0.1, 0.2]
    pilot = [[0.0, 1.0, 1.0, 5.0], [1.0, 2.0]]
    world = new_world(mean, std, kind=kind, per_day=[4000], pilot=pilot)
    people = Population(world, seed=4)
    for arm in (0, 1):
        rewards = np.array([people.reward(person, arm) for person in range(people.n_people)])
        assert rewards.mean() == pytest.approx(mean[arm], abs=4 * world.std[arm] / np.sqrt(rewards.size))
        assert rewards.std() == pytest.approx(world.std[arm], rel=0.1)


def test_people_come_as_stated():
    steady = Population(new_world([0.5], per_day=[10, 0, 20], is_exact=True), seed=1)
    assert np.histogram(steady.arrived / (DAY * 1e6), bins=[0, 1, 2, 3])[0].tolist() == [10, 0, 20]
    counts = [Population(new_world([0.5], per_day=[100]), seed=1, replication=r).n_people for r in range(200)]
    assert np.mean(counts) == pytest.approx(100, abs=4 * 10 / np.sqrt(200))
    assert np.std(counts) == pytest.approx(10, rel=0.2)


def test_batches_come_when_stated():
    lots = Population(new_world([0.5], per_day=[20], is_exact=True, batch_people=5, delay=HOUR), seed=1)
    told = [lots.told_at(person, 0) for person in range(20)]
    after_enrolment = lots.arrived[19] + HOUR * 1e6
    assert after_enrolment > lots.end
    assert set(told) == {lots.arrived[4], lots.arrived[9], lots.arrived[14], lots.arrived[19], after_enrolment}
    assert all(at >= lots.arrived[person] + HOUR * 1e6 for person, at in enumerate(told))
    daily = new_world([0.5], per_day=[20], is_exact=True, batch_seconds=DAY, batch_at=9 * HOUR, delay=HOUR)
    moments = {Population(daily, seed=1).told_at(person, 0) / 3.6e9 for person in range(20)}
    assert moments == {9.0, 33.0}


def test_looks_are_evenly_spread_and_end_with_the_last_reward():
    assert default_looks(10).size == trials.N_LOOKS + 1
    paths = few_trials(2)
    assert (paths.arrived[:, -1] == paths.assigned[0, :, -1].sum(axis=-1)).all()
    assert (paths.open[:, :, -1] > 0).any(), "without a window, missing rewards are waited for"
    assert (paths.last_reward_seconds > 4.5 * DAY).all()


@pytest.mark.parametrize("hold", [False, True])
@pytest.mark.parametrize("rule", ["wait", "default", "drop"])
def test_the_end_is_when_the_last_value_that_is_waited_for_counts(rule, hold):
    window = 10 * DAY
    rules = {
        "wait": eq.WaitForReward(window_seconds=window, hold=hold),
        "default": eq.DefaultReward(value=0.0, window_seconds=window, hold=hold),
        "drop": eq.DropUnit(window_seconds=window, hold=hold),
    }
    world = new_world([0.3, 0.5], per_day=[20] * 5, delay=8 * HOUR, delay_spread=2.0, missing=0.1)
    way = {"arms": ["a", "b"], "policy": eq.Uniform(), "missing": rules[rule]}
    paths = play([world], [way], seed=3)
    people = Population(world, seed=3)
    told = [people.told_at(person, 0) for person in range(people.n_people)]  # the same under both arms
    arrived, known = people.arrived / 1e6, np.array([np.nan if at is None else at / 1e6 for at in told])
    late = known > arrived + window
    assert late.any(), "some rewards come after their window"
    in_time = ~late & ~np.isnan(known)
    expected = {
        "wait": np.nanmax(np.where(in_time & hold, arrived + window, known)),
        "drop": (arrived + window if hold else known)[in_time].max(),
        "default": arrived[-1] + window if hold or not in_time[-1] else None,
    }
    if expected["default"] is None:
        counts = np.where(in_time, known, arrived + window)
        replaced = known[late & (known <= arrived[-1] + window)]
        expected["default"] = np.concatenate([counts, replaced]).max()
    assert paths.last_reward_seconds[0, 0] == pytest.approx(expected[rule], abs=1e-5)
