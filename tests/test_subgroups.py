"""Subgroups and shrunken estimates: against brute force, and how often chance makes a finding."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.analysis.attributes import Attribute
from equipoise.analysis.shrinkage import shrink
from equipoise.analysis.subgroups import by_subgroup, explore


def data(seed, n=900, n_groups=3, effect=0.0):
    rng = np.random.default_rng(seed)
    arm, group = rng.integers(2, size=n), rng.integers(n_groups, size=n)
    reward = rng.normal(group + effect * arm * (group == 1), 1.0 + group)
    return arm, reward, group


def named(group, name="class"):
    return Attribute.of(name, [None if one < 0 else f"g{one}" for one in group])


@pytest.mark.parametrize("seed", range(3))
def test_groups_are_those_of_the_data(seed):
    arm, reward, group = data(seed)
    reward[::9], group[::10] = np.nan, -1
    found = by_subgroup(arm, reward, named(group), n_arms=2)
    seen = ~np.isnan(reward)

    def own(g, a):
        return reward[seen & (group == g) & (arm == a)]

    for one in found.means:
        some = own(int(one.group[1:]), one.arm)
        assert (one.mean, one.n_used) == (pytest.approx(some.mean()), some.size)
        assert one.standard_error == pytest.approx(some.std(ddof=1) / math.sqrt(some.size))
    for one in found.differences:
        a, b = (own(int(one.group[1:]), k) for k in (one.arm, one.other))
        assert one.difference == pytest.approx(a.mean() - b.mean())
        assert one.standard_error == pytest.approx(math.hypot(a.std(ddof=1) / a.size**0.5, b.std(ddof=1) / b.size**0.5))
        assert one.low < one.low_at_end < one.difference < one.high_at_end < one.high
    for one in found.interactions:
        g = int(one.group[1:])
        cells = [own(g, 1), own(g, 0)]
        rest = [np.concatenate([own(other, a) for other in range(3) if other != g]) for a in (1, 0)]
        gaps = [cells[0].mean() - cells[1].mean(), rest[0].mean() - rest[1].mean()]
        assert one.difference == pytest.approx(gaps[0] - gaps[1])
        error = math.sqrt(sum(some.var(ddof=1) / some.size for some in (*cells, *rest)))
        assert one.standard_error == pytest.approx(error)
    assert found.n_left_out == (seen & (group < 0)).sum()
    assert len(found.interactions) == 3


def test_two_groups_have_one_interaction():
    arm, reward, group = data(1, n_groups=2, effect=2.0)
    [one] = by_subgroup(arm, reward, named(group), n_arms=2).interactions
    assert (one.group, one.is_discovery) == ("g1", True)
    assert one.low > 0


def test_intervals_of_all_groups_hold_together():
    runs, missed = 300, np.zeros((3, 2))
    for seed in range(runs):
        arm, reward, group = data(seed, n=600, n_groups=4)
        found = by_subgroup(arm, reward, named(group), n_arms=2)
        for place, (some, truths) in enumerate(
            (
                (found.means, [int(one.group[1:]) for one in found.means]),
                (found.differences, [0] * 4),
                (found.interactions, [0] * 4),
            )
        ):
            missed[place, 0] += any(not m.low <= t <= m.high for m, t in zip(some, truths, strict=True))
            missed[place, 1] += any(not m.low_at_end <= t <= m.high_at_end for m, t in zip(some, truths, strict=True))
    assert (missed[:, 0] / runs <= 0.05).all()
    assert (missed[:, 1] / runs <= 0.05 + 2.5 * math.sqrt(0.05 * 0.95 / runs)).all()


def test_shrunken_differences_lie_between_their_own_and_that_of_all():
    arm, reward, group = data(2, n=300, n_groups=6)
    found = by_subgroup(arm, reward, named(group), n_arms=2).differences
    errors = [abs(one.difference) - abs(one.shrunken) for one in found]
    assert np.mean(errors) > 0
    assert np.std([one.shrunken for one in found]) < 0.5 * np.std([one.difference for one in found])


def test_exploring_makes_few_false_discoveries_and_finds_what_is_there():
    runs, false, power = 80, [], 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        arm, values = rng.integers(2, size=1_500), rng.integers(2, size=(1_500, 20))
        reward = rng.normal(0.8 * arm * (values[:, 0] == 1), 1.0)
        attributes = [named(values[:, k], f"question {k}") for k in range(20)]
        made = [one.attribute for one in explore(arm, reward, attributes, n_arms=2) if one.is_discovery]
        false.append(sum(name != "question 0" for name in made) / max(len(made), 1))
        power += "question 0" in made
    assert np.mean(false) <= 0.05
    assert power / runs > 0.9


def test_what_is_explored_comes_with_the_clearest_first():
    arm, reward, group = data(3, effect=2.0)
    other = named(np.random.default_rng(0).integers(5, size=arm.size), "other")
    found = explore(arm, reward, [other, named(group)], n_arms=2)
    assert (found[0].attribute, found[0].group) == ("class", "g1")
    assert [one.p_value for one in found] == sorted(one.p_value for one in found)
    assert explore(arm, reward, [], n_arms=2) == ()


def test_groups_with_few_units_say_nothing():
    found = by_subgroup([0, 1, 0, 1], [1.0, 2.0, 3.0, np.nan], named([0, 0, 1, 1]), n_arms=2)
    assert all((one.low, one.high_at_end) == (-math.inf, math.inf) for one in found.differences)
    assert math.isnan(found.differences[1].difference)
    [one] = by_subgroup([0, 1] * 5, np.arange(10.0), named([0] * 10), n_arms=2).differences
    assert (one.low, math.isfinite(one.low_at_end)) == (-math.inf, True)
    assert by_subgroup([0, 1] * 5, np.arange(10.0), named([0] * 10), n_arms=2).interactions == ()


def test_numbers_are_no_groups():
    with pytest.raises(eq.InvalidInput, match="must be a category") as error:
        by_subgroup([0, 1], [1.0, 2.0], Attribute.of("age", [9, 10]), n_arms=2)
    assert "as_category" in str(error.value)
    with pytest.raises(eq.InvalidInput, match="arm must be from 0 to 0"):
        by_subgroup([0, 1], [1.0, 2.0], named([0, 1]), n_arms=1)
    with pytest.raises(eq.InvalidInput, match="must have 2 entries"):
        by_subgroup([0, 1], [1.0], named([0, 1]), n_arms=2)


numbers = st.lists(st.tuples(st.floats(-100, 100), st.floats(0.01, 10)), min_size=2, max_size=12)


@given(numbers, st.floats(-1e3, 1e3), st.floats(1e-3, 1e3))
def test_shrinking_moves_towards_the_average_and_has_no_unit(given_, shift, scale):
    estimate, error = np.array(given_).T
    found = shrink(estimate, error)
    for own, moved, kept in zip(estimate, found.estimate, found.kept, strict=True):
        assert 0 <= kept <= 1
        assert min(own, found.centre) - 1e-9 <= moved <= max(own, found.centre) + 1e-9
    other = shrink(shift + scale * estimate, scale * error)
    np.testing.assert_allclose(other.estimate, shift + scale * np.array(found.estimate), rtol=1e-6, atol=1e-5 * scale)


def test_shrinking_takes_the_luck_out_of_the_winner():
    rng, runs, n_arms, error = np.random.default_rng(0), 300, 22, 0.068
    for spread in (0.0, 0.1, 0.3):
        plain, shrunken = np.zeros(runs), np.zeros(runs)
        for run in range(runs):
            truth = rng.normal(0, spread, n_arms)
            own = rng.normal(truth, error)
            winner = own.argmax()
            plain[run] = own[winner] - truth[winner]
            shrunken[run] = shrink(own, np.full(n_arms, error)).estimate[winner] - truth[winner]
        noise = plain.std() / math.sqrt(runs)
        assert plain.mean() > 5 * noise
        assert abs(shrunken.mean()) < 0.25 * error + 3 * noise
        assert np.sqrt(np.mean(shrunken**2)) < np.sqrt(np.mean(plain**2))


def test_what_is_not_known_is_not_shrunk():
    found = shrink([1.0, math.nan, 3.0], [0.5, 0.5, math.nan])
    assert (found.estimate[0], math.isnan(found.estimate[1]), math.isnan(found.spread)) == (1.0, True, True)
    assert math.isnan(shrink([math.nan], [1.0]).centre)
    known = shrink([1.0, 2.0, 5.0], [0.0, 0.5, 0.5])
    assert (known.estimate[0], known.kept[0]) == (1.0, 1.0)
    with pytest.raises(eq.InvalidInput):
        shrink([1.0, 2.0], [0.5])
    with pytest.raises(eq.InvalidInput):
        shrink([1.0, math.inf], [0.5, 0.5])
