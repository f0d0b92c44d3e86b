"""PooledBalance under drift: its sums against a pass over the log, replay of its decisions, and where it steers."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import sqlite3
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import msgspec
import numpy as np
import pytest

import equipoise as eq
from equipoise.experiment.decider import Decider
from equipoise.http_api import NewExperiment
from equipoise.kernels.random import decision_uniform
from equipoise.stats import ArmStats
from equipoise.testing import PolicyContract

DECLARED = eq.PooledBalance(reward_weight=0.9, tracking="windowed", drift="declared")
DETECTED = dataclasses.replace(DECLARED, drift="detected")
PLAIN = dataclasses.replace(DECLARED, drift="none")


class TestPoliciesForDrift(PolicyContract):
    policies = (DECLARED, DETECTED)


def test_drift_needs_probabilities_to_weight_by():
    for tracking in ("marginal", "difference"):
        with pytest.raises(eq.InvalidInput, match="drift can only be handled with tracking"):
            eq.PooledBalance(reward_weight=0.5, tracking=tracking, drift="declared")
    with pytest.raises(eq.InvalidInput, match="none, declared, detected"):
        eq.PooledBalance(reward_weight=0.5, tracking="windowed", drift="maybe")


def test_policies_without_drift_are_written_as_before():
    assert "drift" not in PLAIN.to_dict()
    assert DETECTED.to_dict()["drift"] == "detected"


# The sums


def weighted(rows, n_arms):
    """The sums of (arm, reward, probability, number), without rounding but that of each weight."""
    sums = [[Fraction(0)] * n_arms for _ in range(7)]
    for arm, reward, probability, number in rows:
        w, y, t = Fraction(1.0 / max(probability, 0.001)), Fraction(reward), Fraction(number)
        for row, value in enumerate((w, w * w, w * y, w * y * y, t, t * t, t * y)):
            sums[row][arm] += value
    return sums


def assert_sums(found, rows):
    wanted = weighted(rows, found.shape[1])
    for row, arm in itertools.product(range(7), range(found.shape[1])):
        high, low = found[2 * row : 2 * row + 2, arm].tolist()
        exact = wanted[row][arm]
        size = sum(abs(one[row][arm]) for one in (weighted([each], found.shape[1]) for each in rows))
        assert abs(Fraction(high) + Fraction(low) - exact) <= size * Fraction(2) ** -95, (row, arm)


def drawn(rng, count, n_arms=3):
    return [
        (int(rng.integers(n_arms)), float(rng.normal(2, 3)), float(rng.uniform(0.0002, 1)), int(rng.integers(10**7)))
        for _ in range(count)
    ]


def counted(rows, n_arms=3):
    stats = ArmStats(n_arms, weighted=True)
    for arm, reward, probability, number in rows:
        stats.assign(arm)
        stats.update(arm, reward, probability=probability, number=number)
    return stats


def test_sums_are_those_of_the_rewards_that_count():
    rng = np.random.default_rng(0)
    rows = drawn(rng, 80)
    stats = counted(rows)
    assert_sums(stats.drift_sums, rows)
    for arm, reward, probability, number in rows[:30]:
        stats.remove(arm, reward, probability=probability, number=number)
    arm, reward, probability, number = rows[30]
    stats.replace(arm, reward, -7.0, probability=probability, number=number)
    assert_sums(stats.drift_sums, [(arm, -7.0, probability, number), *rows[31:]])


def test_an_arm_without_rewards_keeps_no_residue():
    stats = counted([(0, 1e30, 0.1, 3)])
    stats.remove(0, 1e30, probability=0.1, number=3)
    assert not stats.drift_sums.any()


def test_sums_are_merged_copied_permuted_extended_and_saved():
    rng = np.random.default_rng(1)
    first, second = drawn(rng, 40), drawn(rng, 30)
    one, two = counted(first), counted(second)
    assert_sums(one.merge(two).drift_sums, first + second)
    twin = one.copy()
    twin.update(0, 1.0)
    assert_sums(one.drift_sums, first)
    assert (one.permuted([2, 0, 1]).drift_sums == one.drift_sums[:, [2, 0, 1]]).all()
    assert (one.only([2, 1]).drift_sums == one.drift_sums[:, [2, 1]]).all()
    assert (one.extended(5).drift_sums == np.pad(one.drift_sums, ((0, 0), (0, 2)))).all()
    assert ArmStats.from_dict(one.to_dict()) == one != counted(second)
    with pytest.raises(eq.InvalidInput, match="both statistics must be weighted"):
        one.merge(ArmStats(3))


def test_statistics_without_weights_have_no_such_sums():
    stats = ArmStats(2)
    stats.update(0, 1.0, probability=0.5, number=3)
    assert stats.drift_sums is None
    assert "drift_sums" not in stats.to_dict()


@pytest.mark.parametrize("rows", [None, [[0.0]], [[math.nan] * 2] * 14, "sums"])
def test_damaged_sums_are_refused(rows):
    with pytest.raises(eq.InvalidInput, match="drift_sums must be 14 rows"):
        ArmStats.from_dict(ArmStats(2, weighted=True).to_dict() | {"drift_sums": rows})


# What choices read of them


def test_estimates_are_the_weighted_ones():
    """Against numpy, from the definitions."""
    rows = drawn(np.random.default_rng(2), 200)
    pulls, mean, std = DECLARED._estimates(counted(rows))
    for arm in range(3):
        y = np.array([row[1] for row in rows if row[0] == arm])
        w = np.array([1 / max(row[2], 0.001) for row in rows if row[0] == arm])
        average, n = np.average(y, weights=w), w.sum() ** 2 / (w**2).sum()
        variance = np.average((y - average) ** 2, weights=w) * n / max(n - 1, 1)
        assert mean[arm] == pytest.approx(average, rel=1e-12)
        assert std[arm] == pytest.approx(math.sqrt(variance), rel=1e-9)
        assert pulls[arm] == max(4, round(n))


def test_equal_weights_change_nothing_that_matters():
    rows = [(arm, reward, 0.5, number) for arm, reward, _, number in drawn(np.random.default_rng(3), 90)]
    stats = counted(rows)
    pulls, mean, std = DECLARED._estimates(stats)
    assert (pulls == stats.pulls).all()
    np.testing.assert_allclose(mean, stats.mean, rtol=1e-15)
    np.testing.assert_allclose(std, stats.std, rtol=1e-14)


def slope(rows, n_arms=3):
    """The statistic of the check, from the rewards one by one."""
    along = spread = 0.0
    for arm in range(n_arms):
        y, t = (np.array([row[k] for row in rows if row[0] == arm], float) for k in (1, 3))
        variance = y.var(ddof=1)
        along += ((t - t.mean()) * y).sum() / variance
        spread += ((t - t.mean()) ** 2).sum() / variance
    return along / math.sqrt(spread)


def test_the_check_speaks_beyond_3_9_standard_errors():
    rng, spoke = np.random.default_rng(4), []
    for trend in np.linspace(0, 2.5, 40):
        arms, noise = rng.integers(3, size=150), rng.normal(0, 1, 150)
        rows = [(int(a), float(a + trend * t / 150 + noise[t]), 0.2, t) for t, a in enumerate(arms)]
        plain = ArmStats.from_rewards(arms, [row[1] for row in rows], 3).mean
        weights = [(*row[:2], 0.1 + 0.8 * (row[3] % 2), row[3]) for row in rows]
        speaks = bool((DETECTED._estimates(counted(weights))[1] != plain).any())
        assert speaks == (abs(slope(rows)) > 3.9)
        spoke.append(speaks)
    assert {True, False} == set(spoke)


# Live


def told(experiment):
    """What counts by the events: (arm, what the reward counts as, probability, number of the decision)."""
    configuration, assigned, found = experiment.configuration, {}, {}
    names = [arm.arm for arm in experiment.status().arms]
    for event in experiment.events():
        if event.kind == "assigned":
            assigned[event.unit] = event.probability, event.decision
        if event.replaced is not None:
            del found[event.unit]
        if event.counted:
            counts_as = configuration.sign * configuration.counted(event.reward)
            found[event.unit] = names.index(event.arm), counts_as, *assigned[event.unit]
    return list(found.values())


def sums_of(experiment):
    return experiment._backend._read(lambda _, state: state.stats.drift_sums)


LIVES = {
    "declared": {"policy": DECLARED},
    "detected": {"policy": DETECTED},
    "small is good": {"policy": DECLARED, "direction": "minimise", "warm_up": 2},
    "floors": {"policy": DECLARED, "floor": 0.1, "control": "b", "control_share": 0.2},
    "information": {
        "policy": eq.PooledBalance(
            information_kept=0.7, information_about="best-arm", tracking="windowed", drift="declared"
        )
    },
    "capped": {"policy": DECLARED, "reward_cap": 2.0},
    "defaults": {"policy": DETECTED, "missing": eq.DefaultReward(value=0.5, window_seconds=10)},
    "held": {"policy": DECLARED, "missing": eq.DefaultReward(value=0.5, window_seconds=10, hold=True)},
}


@pytest.mark.parametrize("settings", LIVES.values(), ids=LIVES)
def test_decisions_replay_and_sums_are_those_of_the_log(settings):
    """With late, corrected and withdrawn rewards, arms that come and go, and a trend that steers decisions."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    store, rng = eq.open_store("memory:", clock=lambda: now), np.random.default_rng(5)
    settings = {"reward_range": (-50, 50)} | settings
    made = eq.Experiment.create(store, "exam", arms=["a", "b", "c"], seed=3, **settings)
    for number in range(120):
        now += timedelta(seconds=1)
        made.ask(f"u{number}")
        reward = float(number / 20 + rng.normal(0, 0.3))
        if number % 4:
            made.tell(f"u{number}", reward)
        if number % 4 and number % 7 == 4:
            made.correct(f"u{number}", reward / 2, "misread")
        if number >= 48 and number % 6 == 0:
            made.tell(f"u{number - (38 if number % 4 else 40)}", reward)
        if number % 17 == 16:
            made.withdraw(f"u{number - 12}", "asked to")
        if number == 60:
            made.add_arm("d")
        if number == 90:
            made.retire_arm("c")
    assert made.verify().n_decisions == 120
    found = sums_of(made).copy()
    assert_sums(found, told(made))
    read = steered(made)
    store.states.clear()
    assert (sums_of(made) == found).all()  # as stored
    assert not made.rebuild()
    copied = made.copy_to("memory:")
    assert copied.verify().n_decisions == 120
    assert (sums_of(copied) == found).all()
    assert read


def steered(experiment):
    """Whether the present estimates are weighted."""
    state = experiment._backend._read(lambda _, state: state)
    active = state.decider.active
    return bool((state.decider._estimates(state.stats)[1] != state.stats.mean)[active].any())


def test_a_damaged_store_is_rebuilt_from_the_log(tmp_path):
    path, rng = f"sqlite:///{tmp_path}/experiments.db", np.random.default_rng(6)
    made = eq.Experiment.create(path, "exam", arms=["a", "b"], policy=DECLARED, seed=1)
    for number in range(30):
        made.ask(f"u{number}")
        made.tell(f"u{number}", float(rng.normal()))
    before = sums_of(made).copy()
    for text in ("[]", "null", "[1, 2", '["x"]', None):
        with sqlite3.connect(tmp_path / "experiments.db") as connection:
            connection.execute("UPDATE arms SET drift_sums = ?", (text,))
        with eq.open_store(path) as store:
            again = eq.Experiment.open(store, "exam")
            with pytest.raises(eq.EquipoiseError, match="damaged"):
                again.ask("new")
            assert again.rebuild()
            assert (sums_of(again) == before).all()
            again.verify()


def test_other_policies_store_no_sums(tmp_path):
    made = eq.Experiment.create(f"sqlite:///{tmp_path}/x.db", "exam", arms=["a", "b"], policy=PLAIN, seed=1)
    made.ask("one")
    with sqlite3.connect(tmp_path / "x.db") as connection:
        assert connection.execute("SELECT drift_sums FROM arms").fetchall() == [(None,), (None,)]


@pytest.mark.parametrize("policy", [DECLARED, DETECTED, dataclasses.replace(DECLARED, floor=(0.1, 0.0, 0.2))])
@pytest.mark.parametrize("paused", [False, True])
def test_compiled_and_interpreted_decisions_are_equal(policy, paused):
    settings = {"policy": policy, "seed": 1, "warm_up": 3}
    made = eq.Experiment.create("memory:", "exam", arms=["a", "b", "c"], **settings)
    decider = Decider(made.configuration, ["active", "paused" if paused else "active", "active"], [0.1, 0.05, 0.0])
    assert decider.is_compiled
    interpreted, stats, rng = decider._interpreted(), ArmStats(3, weighted=True), np.random.default_rng(7)
    for index in range(150):
        choice = decider.decide(stats, index)
        assert choice[:3] == interpreted(stats, index)[:3]
        stats.assign(choice[0])
        if rng.random() < 0.7:
            reward = rng.normal(choice[0] + index / 30, 1.0)
            stats.update(choice[0], reward, probability=choice[1], number=index)


def test_decisions_in_a_batch_are_those_one_by_one():
    made, twin = (eq.Experiment.create("memory:", name, arms=["a", "b"], policy=DECLARED, seed=4) for name in "xy")
    rng = np.random.default_rng(8)
    for first in range(0, 60, 12):
        units = [f"u{i}" for i in range(first, first + 12)]
        together = made.ask_many(units)
        assert [one[:5] for one in together] == [twin.ask(unit)[:5] for unit in units]
        rewards = [(unit, float(i / 10 + rng.normal())) for i, unit in enumerate(units, first)]
        made.tell_many(rewards)
        for unit, reward in rewards:
            twin.tell(unit, reward)


SETTINGS = {"arms": ["a", "b"], "seed": 1}


@pytest.mark.parametrize("dial", [{"reward_weight": 0.9}, {"information_kept": 0.7}, {"half_width": 0.2, "units": 900}])
def test_an_experiment_declares_drift_beside_the_dial(dial):
    made = eq.Experiment.create("memory:", "exam", drift="detected", reward_range=(0, 1), **dial, **SETTINGS)
    plain = eq.Experiment.create("memory:", "exam", reward_range=(0, 1), **dial, **SETTINGS)
    assert made.configuration.policy == dataclasses.replace(plain.configuration.policy, drift="detected")
    made.change_dial(reward_weight=0.5)
    assert made.configuration.policy == eq.PooledBalance(reward_weight=0.5, tracking="windowed", drift="detected")


def test_drift_is_for_the_recommended_policy():
    with pytest.raises(eq.InvalidInput, match="drift sets the recommended policy, and must be left out"):
        eq.Experiment.create("memory:", "exam", drift="declared", policy=eq.Uniform(), **SETTINGS)
    with pytest.raises(eq.InvalidInput, match="none, declared, detected"):
        eq.Experiment.create("memory:", "exam", drift="often", reward_weight=0.5, **SETTINGS)


def test_drift_on_the_command_line_and_over_http(run, tmp_path):
    made = run("create", "exam", "--arms", "a,b", "--reward-weight", "0.9", "--drift", "declared", "--json")
    assert json.loads(made.out)["policy"] == DECLARED.to_dict()
    file = tmp_path / "experiment.toml"
    file.write_text('name = "file"\narms = ["a", "b"]\nreward_weight = 0.9\ndrift = "detected"\n', encoding="utf-8")
    assert json.loads(run("create", "--file", str(file), "--json").out)["policy"] == DETECTED.to_dict()
    assert "drift" in run("create", "x", "--arms", "a,b", "--policy", "Uniform", "--drift", "declared").err
    body = msgspec.json.decode(b'{"name": "x", "arms": ["a"], "drift": "declared"}', type=NewExperiment)
    assert body.drift == "declared"


# In memory and in the simulator


def asked(policy, level, seed, steps=150):
    """Choices of a bandit and of plain statistics alike, where rewards come at once."""
    bandit, rng, choices = eq.Bandit(policy, 2, seed=seed), np.random.default_rng(seed), []
    for step in range(steps):
        arm = bandit.ask()
        bandit.tell(arm, float(level * step + 0.1 * arm + rng.normal(0, 0.3)))
        choices.append(bandit.last_choice)
    return bandit, choices


def test_detected_drift_changes_nothing_until_the_check_speaks():
    detecting, plain = asked(DETECTED, 0.0, 1)[1], asked(PLAIN, 0.0, 1)[1]
    assert detecting == plain
    detecting, plain, declared = (asked(policy, 0.02, 1)[1] for policy in (DETECTED, PLAIN, DECLARED))
    rows, rng = [], np.random.default_rng(1)
    for step, choice in enumerate(plain):
        rows.append((choice.arm, 0.02 * step + 0.1 * choice.arm + rng.normal(0, 0.3), choice.probability, step))
        stats = counted(rows, 2)
        if (DETECTED._estimates(stats)[1] != stats.mean).any() and stats.pulls.min() >= 4:
            break
    assert 10 < step < 100
    assert detecting[: step + 1] == plain[: step + 1]
    assert detecting != plain
    assert detecting != declared != plain


@pytest.mark.parametrize("policy", [DECLARED, DETECTED])
def test_under_a_strong_trend_the_worse_arm_is_not_favoured(policy):
    """By plain estimates it gets most people; see the study in docs/pooled-balance.md."""
    steps, seeds = 800, 24
    worse = [asked(policy, 1.2 / steps, seed, steps)[0].stats.pulls[0] / steps for seed in range(seeds)]
    assert np.mean(worse) + 3 * np.std(worse, ddof=1) / math.sqrt(seeds) < 0.5


@pytest.mark.parametrize("policy", [DECLARED, DETECTED])
def test_the_simulator_decides_as_a_bandit(policy):
    arms, steps = eq.Gaussian(mean=[0.0, 0.5, 0.2], std=[1.0, 0.5, 2.0]), 120
    runs = eq.simulate(policy, arms, steps, 2, seed=9, checkpoints=range(1, steps + 1))
    for run in range(2):
        stats, choose, drawn = ArmStats(3, weighted=True), policy.prepare(3), np.zeros((3, steps))
        for arm in range(3):
            arms.fill(arm, 9, run, 0, drawn[arm])
        for step in range(steps):
            arm, probability, _ = choose(stats, decision_uniform(9, run, step))
            stats.assign(arm)
            stats.update(arm, drawn[arm, stats.pulls[arm]], probability=probability, number=step)
            assert runs.pulls[0, run, step].tolist() == stats.pulls.tolist()


def test_a_bandit_weights_rewards_by_the_asks_in_order():
    bandit, rows = eq.Bandit(DECLARED, 3, seed=2), []
    rng = np.random.default_rng(9)
    for _ in range(12):
        arms = [(bandit.ask(), bandit.stats.n_assigned - 1, bandit.last_choice.probability) for _ in range(7)]
        for place in rng.permutation(7)[:6]:  # one is left open
            reward = float(rng.normal())
            bandit.tell(arms[place][0], reward)
            rows.append((arms[place][0], reward))
        again = eq.Bandit.from_dict(json.loads(json.dumps(bandit.to_dict())))
        assert again._open == bandit._open
        assert again.peek() == bandit.peek()
    asks = [(one.arm, one.probability) for one in ask_again(12 * 7, bandit, rows)]
    expected, places = [], [[i for i, ask in enumerate(asks) if ask[0] == arm] for arm in range(3)]
    for arm, reward in rows:
        number = places[arm].pop(0)
        expected.append((arm, reward, asks[number][1], number))
    assert_sums(bandit.stats.drift_sums, expected)


def ask_again(count, bandit, rows):
    """The choices of the same bandit, told the same rewards in the same order."""
    twin, choices = eq.Bandit(bandit.policy, 3, seed=bandit.seed), []
    for first in range(0, count, 7):
        for _ in range(7):
            twin.ask()
            choices.append(twin.last_choice)
        for arm, reward in rows[first // 7 * 6 : first // 7 * 6 + 6]:
            twin.tell(arm, reward)
    return choices


def test_a_bandit_cannot_correct_weighted_rewards():
    bandit = eq.Bandit(DECLARED, 2)
    bandit.record(0, 1.0)
    with pytest.raises(eq.InvalidInput, match="does not know whose"):
        bandit.correct(0, 1.0, 2.0)


def test_a_saved_bandit_must_fit_its_policy():
    saved = eq.Bandit(DECLARED, 2).to_dict()
    with pytest.raises(eq.InvalidInput, match="open must be a list per arm"):
        eq.Bandit.from_dict(saved | {"open": [[[0, 0.5]], []]})
    with pytest.raises(eq.InvalidInput, match="drift_sums must be there"):
        eq.Bandit.from_dict(saved | {"policy": PLAIN.to_dict()})
