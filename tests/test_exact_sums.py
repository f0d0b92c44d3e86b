"""A mistake that was corrected leaves no trace in the statistics, whatever its size and whatever came in between."""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import sqlite3
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.kernels import exact_digits
from equipoise.store import upgrade

DATA = Path(__file__).parent / "data"
MISTAKES = [7.7e15, 1.7e18, -3e40, 1e100]

sizes = st.floats(1e-10, 1e100, exclude_min=True)
rewards = st.floats(0.0, 1.0) | st.builds(math.copysign, sizes, st.sampled_from([1.0, -1.0]))
steps = st.lists(st.tuples(rewards, st.none() | st.integers(0, 10**6), st.booleans()), min_size=1, max_size=40)


def moments(values):
    """Return mean and standard deviation in rational arithmetic."""
    numbers = [Fraction(value) for value in values]
    mean = sum(numbers) / len(numbers)
    variance = sum((x - mean) ** 2 for x in numbers) / (len(numbers) - 1)
    # The root of a fraction that may be far outside a double's range.
    scale = max(variance.denominator.bit_length() - variance.numerator.bit_length(), 0) // 2 * 2 + 200
    return float(mean), float(Fraction(math.isqrt(int(variance * 2**scale)), 2 ** (scale // 2)))


def played(story):
    """Count a reward at each step, or replace or remove one; return the statistics and the rewards that count."""
    stats, counted = eq.ArmStats(1), []
    for reward, place, removes in story:
        if place is None or not counted:
            stats.update(0, reward)
            counted.append(reward)
            continue
        old = counted.pop(place % len(counted))
        if removes:
            stats.remove(0, old)
        else:
            stats.replace(0, old, reward)
            counted.append(reward)
    return stats, counted


@given(steps)
def test_any_way_to_the_same_rewards_gives_the_same_statistics(story):
    stats, counted = played(story)
    for power, total in enumerate(stats.exact_sums(0), 1):
        # A power's bits below the smallest double are cut off, when it is added and when it is removed alike: up to
        # one unit for each of the doubles that it is the sum of.
        cut = [0, 1, 4, 6][power - 1] * sum(map(bool, counted))
        assert abs(total - 2**1074 * sum(Fraction(value) ** power for value in counted)) <= cut
    assert stats.pulls[0] == len(counted)
    if len(counted) < 2:
        return
    mean, std = moments(counted)
    size = max(map(abs, counted))
    # Relative to the rewards that count now; a spread below 2^-49 of them counts as none, as in one pass over them.
    assert stats.mean[0] == pytest.approx(mean, rel=1e-12, abs=1e-25 * size)
    # The last term is the root of what squares lose by underflow.
    assert stats.std[0] == pytest.approx(std, rel=1e-12, abs=1e-14 * size + 1e-161)


@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=20), st.lists(sizes, min_size=1, max_size=8), st.data())
def test_corrected_mistakes_leave_mean_and_spread_as_they_are(values, mistakes, data):
    """A chain of wrong corrections, each of its own size, before and between the other rewards."""
    place = data.draw(st.integers(0, len(values) - 1))
    stats, wrong = eq.ArmStats(1), iter(mistakes)
    last = next(wrong)
    stats.update(0, last)
    for index, value in enumerate(values):
        if index != place:
            stats.update(0, value)
        for again in wrong:
            stats.replace(0, last, again)
            last = again
            break
    for again in wrong:
        stats.replace(0, last, again)
        last = again
    stats.replace(0, last, values[place])
    mean, std = moments(values)
    assert stats.mean[0] == pytest.approx(mean, rel=1e-12)
    assert stats.std[0] == pytest.approx(std, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("mistakes", [[1.7e18], [1e18, 1e13, 1e8], [1e100, -1e100, 1e-10]])
def test_mistakes_are_undone_to_the_last_digit(mistakes):
    values = [0.1, 0.5, 0.7, 0.3, 0.9]
    clean, stats = eq.ArmStats(1), eq.ArmStats(1)
    for value in values:
        clean.update(0, value)
    stats.update(0, mistakes[0])
    for value in values[1:]:
        stats.update(0, value)
    for old, new in zip(mistakes, [*mistakes[1:], values[0]], strict=True):
        stats.replace(0, old, new)
    assert (stats.mean[0], stats.std[0]) == pytest.approx((clean.mean[0], clean.std[0]), rel=1e-15)
    assert stats.exact_sums(0) == clean.exact_sums(0)


@pytest.mark.parametrize("count", [2, 3, 1000])
@pytest.mark.parametrize("value", [0.1, -1 / 3, 1e9 + 0.1])
def test_equal_rewards_have_no_spread_after_a_mistake(value, count):
    stats = eq.ArmStats(1)
    for reward in [1e30, *[value] * count]:
        stats.update(0, reward)
    stats.remove(0, 1e30)
    assert (stats.mean[0], stats.std[0]) == (value, 0.0)


@given(st.lists(st.floats(1e-65, 1e100) | st.floats(-1e100, -1e-65) | st.just(0.0), min_size=1, max_size=20))
def test_sums_of_four_powers_are_exact(values):
    stats = eq.ArmStats(1)
    for value in values:
        stats.update(0, value)
    for power, total in enumerate(stats.exact_sums(0), 1):
        assert Fraction(total, 2**1074) == sum(Fraction(value) ** power for value in values)


@given(st.lists(rewards, max_size=20), st.lists(rewards, max_size=20), st.randoms())
def test_exact_sums_depend_neither_on_the_order_nor_on_where_rewards_were_counted(first, second, random):
    both = [*first, *second]
    random.shuffle(both)
    parts = [eq.ArmStats(1), eq.ArmStats(1), eq.ArmStats(1)]
    for stats, values in zip(parts, (first, second, both), strict=True):
        for value in values:
            stats.update(0, value)
    assert parts[0].merge(parts[1]).exact_sums(0) == parts[2].exact_sums(0)


@given(st.lists(rewards, min_size=1, max_size=20), sizes)
def test_statistics_that_subtract_keep_the_same_exact_sums(values, mistake):
    exact, subtracting = eq.ArmStats(1), eq.ArmStats(1, exact=False)
    for value in values:
        for stats in (exact, subtracting):
            stats.update(0, value)
    assert np.array_equal(exact.sums, subtracting.sums)
    for stats in (exact, subtracting):
        stats.update(0, mistake)
        stats.remove(0, mistake)
    assert exact.exact_sums(0) == subtracting.exact_sums(0)
    assert subtracting.exact is subtracting.copy().exact is subtracting.only([0]).extended(2).exact is False


def test_subtracted_mistakes_leave_a_residue_in_the_rounded_sums_alone():
    stats = eq.ArmStats(1, exact=False)
    for reward in (1e18, 0.25, 0.5):
        stats.update(0, reward)
    stats.remove(0, 1e18)
    assert stats.std[0] == 0.0
    assert stats.central_moments(0)[1] == 1 / 64


def test_copies_parts_and_saved_data_keep_exact_sums():
    stats = eq.ArmStats(2)
    for reward in (1.7e18, 0.25, 0.5):
        stats.update(1, reward)
    saved = json.loads(json.dumps(stats.to_dict()))
    twins = [stats.copy(), stats.only([0, 1]), stats.permuted([1, 0]).permuted([1, 0]), eq.ArmStats.from_dict(saved)]
    twins.append(stats.merge(eq.ArmStats(2)))
    for twin in twins:
        assert twin == stats
        twin.replace(1, 1.7e18, 0.75)
        assert (twin.mean[1], twin.std[1]) == (0.5, 0.25)
    assert stats.mean[1] > 1e17  # none of them is shared


def test_saved_data_without_exact_sums_are_read():
    stats = eq.ArmStats(1)
    for reward in (0.25, 0.5, 1e10):
        stats.update(0, reward)
    saved = stats.to_dict()
    total, squares, *_ = stats.exact_sums(0)
    for texts in ([None], [" ".join(stats.to_dict()["exact_sums"][0].split(" ")[:2])]):
        old = eq.ArmStats.from_dict(saved | {"exact_sums": texts})
        assert old.exact_sums(0) == (total, squares)
        assert (old.mean[0], old.std[0]) == (stats.mean[0], stats.std[0])
        assert eq.ArmStats.from_dict(old.to_dict()) == old
        # What is unknown stays so, with more rewards and together with others, until none is left.
        assert np.isnan(old.central_moments(0)).tolist() == [False, False, True, True]
        assert np.isnan(old.moments_within(0, 0.0, 1e10)).sum() == 4
        assert len(old.merge(stats).exact_sums(0)) == 2
        for reward in (0.25, 0.5, 1e10):
            old.remove(0, reward)
        old.update(0, 0.5)
        assert len(old.exact_sums(0)) == 4
    del saved["exact_sums"]
    assert eq.ArmStats.from_dict(saved).exact_sums(0) == (total, squares)


@pytest.mark.parametrize(
    "bad",
    [
        *(7, [], ["0p0"], [5], ["x y"], ["1p0 1p0 1p0"], ["1p0 4p0"], ["9p0 1p0"], ["1p9999 1p0"], ["1p-1075 1p0"]),
        *(["1p0 1p0 1p0 0p0"], ["1p0 1p0 9p0 1p0"], ["1p0 1p0 1p0 1p0 1p0"], ["1p0 1p0  1p0"]),
    ],
)
def test_bad_exact_sums_are_refused(bad):
    stats = eq.ArmStats(1)
    stats.update(0, 1.0)
    with pytest.raises(eq.InvalidInput, match="exact_sums must"):
        eq.ArmStats.from_dict(stats.to_dict() | {"exact_sums": bad})


def test_a_bandit_forgets_a_mistake_over_save_and_load(tmp_path):
    bandit = eq.Bandit(eq.ForcingBalance(reward_weight=0.5), n_arms=1)
    for reward in (1e90, 0.25, 0.5):
        bandit.record(0, reward)
    bandit.save(tmp_path / "bandit.json")
    loaded = eq.Bandit.load(tmp_path / "bandit.json")
    loaded.correct(0, 1e90, 0.75)
    assert (loaded.stats.mean[0], loaded.stats.std[0]) == (0.5, 0.25)


numbers = st.integers(-(2**2450), 2**2450)


@given(st.tuples(*[numbers] * 2) | st.tuples(*[numbers] * 4))
def test_digits_and_text_stand_for_the_same_numbers(sums):
    assert exact_digits.from_digits(exact_digits.to_digits(sums)) == sums
    assert exact_digits.from_text(exact_digits.to_text(sums)) == sums


# Live experiments


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def url(request, tmp_path):
    if request.param == "postgresql":
        return request.getfixturevalue("postgresql_url")
    return "memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 'store.db'}"


def create(store, name, **settings):
    settings = {"policy": eq.ForcingBalance(reward_weight=0.0), "seed": 3} | settings
    return eq.Experiment.create(store, name, arms=["line", "pie"], **settings)


VALUES = (np.random.default_rng(1).random(60) * 0.7 + 0.1).round(3).tolist()


def enrol(experiment, mistake=None):
    """Assign units, record their rewards, the first by mistake, and correct it in the end."""
    units = [f"unit-{number}" for number in range(len(VALUES))]
    experiment.ask_many(units)
    for unit, value in zip(units, VALUES, strict=True):
        experiment.tell(unit, mistake if mistake is not None and unit == "unit-0" else value)
    if mistake is not None:
        experiment.correct("unit-0", VALUES[0], "typing error")


def estimates(experiment):
    return [(arm.assigned, arm.rewarded, arm.mean, arm.std) for arm in experiment.status().arms if arm.rewarded]


def assert_same(one, other):
    for left, right in zip(estimates(one), estimates(other), strict=True):
        assert left == pytest.approx(right, rel=1e-14)


@pytest.mark.parametrize("direction", ["maximise", "minimise"])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_people_after_a_mistake_are_assigned_as_without_it(url, mistake, direction):
    with eq.open_store(url) as store:
        clean, other = (create(store, name, direction=direction) for name in ("clean", "mistaken"))
        enrol(clean)
        enrol(other, mistake)
        assert_same(clean, other)
        for experiment in (clean, other):
            experiment.ask_many([f"later-{number}" for number in range(1000)])
            experiment.verify()
            assert not experiment.rebuild()
        assert_same(clean, other)
        assert min(arm.assigned for arm in other.status().arms) > 400


def test_a_restart_in_the_middle_of_a_mistake_changes_nothing(tmp_path):
    """States are loaded from the tables, by another store object as by another process."""
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with eq.open_store(url) as store:
        create(store, "clean")
        create(store, "mistaken")
        for name, first in (("clean", VALUES[0]), ("mistaken", 1.7e18)):
            experiment = eq.Experiment.open(store, name)
            experiment.ask_many([f"unit-{number}" for number in range(20)])
            experiment.tell_many({f"unit-{number}": VALUES[number] if number else first for number in range(20)})
    with eq.open_store(url) as store:
        clean, other = (eq.Experiment.open(store, name) for name in ("clean", "mistaken"))
        other.correct("unit-0", VALUES[0], "typing error")
        assert_same(clean, other)
    with eq.open_store(url) as store:
        clean, other = (eq.Experiment.open(store, name) for name in ("clean", "mistaken"))
        for experiment in (clean, other):
            experiment.add_arm("cake")
            experiment.ask_many([f"later-{number}" for number in range(50)])
            experiment.verify()
        assert_same(clean, other)


def test_a_mistaken_default_leaves_no_trace():
    """Units expire with a default of 1e60 and are rewarded after that."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    store = eq.open_store("memory:", clock=lambda: now)
    missing = eq.DefaultReward(value=1e60, window_seconds=10)
    clean, other = create(store, "clean"), create(store, "expired", missing=missing)
    units = [f"unit-{number}" for number in range(len(VALUES))]
    for experiment in (clean, other):
        experiment.ask_many(units)
    now += timedelta(seconds=60)
    other.settle()
    assert [arm.defaulted for arm in other.status().arms] == [arm.assigned for arm in clean.status().arms]
    for experiment in (clean, other):
        experiment.tell_many(dict(zip(units, VALUES, strict=True)))
    assert_same(clean, other)
    other.verify()


def test_rebuild_restores_damaged_exact_sums(tmp_path):
    path = tmp_path / "store.db"
    damages = {
        "'1p0 1p0'": "exact_sums of arm 'line' should be",
        "NULL": "exact_sums of arm 'line' should be",
        "'1p0'": "exact sums must be text such as",
        "'1p9999 1p0'": "exact sums must be within the range",
    }
    for damage, message in damages.items():
        with eq.open_store(f"sqlite:///{path}") as store:
            experiment = create(store, f"damaged by {damage}")
            enrol(experiment, 1.7e18)
            before = estimates(experiment)
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute(f"UPDATE arms SET exact_sums = {damage}")  # noqa: S608
            connection.commit()
        with eq.open_store(f"sqlite:///{path}") as store:
            experiment = eq.Experiment.open(store, experiment.name)
            with pytest.raises((eq.VerificationFailed, eq.StoreMismatch), match=message):
                experiment.verify()
            assert experiment.rebuild()
            experiment.verify()
            assert estimates(experiment) == before


def test_a_log_of_the_first_arithmetic_replays_by_it(tmp_path):
    """The file has a mistake that was corrected, and decisions that saw what it left: a spread of 0."""
    path = tmp_path / "old.db"
    shutil.copy(DATA / "schema_2_mistake.db", path)
    upgrade(f"sqlite:///{path}")
    with eq.open_store(f"sqlite:///{path}") as store:
        old = eq.Experiment.open(store, "mistake")
        assert old.verify().n_decisions == 120
        assert old.status().arms[0].std == 0.0
        old.ask_many(["after-1", "after-2"])
        old.tell("after-1", 0.25)
        old.correct("after-1", 0.5, "misread")
        old.add_arm("cake")
        old.ask_many(["after-3", "after-4"])
        old.verify()
        assert not old.rebuild()
        copy = old.copy_to("memory:")
        copy.verify()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "UPDATE events SET details = json_set(details, '$.configuration.kernels', 2) WHERE kind = 'created'"
        )
        connection.commit()
    with eq.open_store(f"sqlite:///{path}") as store, pytest.raises(eq.VerificationFailed, match="should assign"):
        eq.Experiment.open(store, "mistake").verify()
