"""Arms compared by evidence: shares of the failure probability, differences, who may be best, what choosing costs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from equipoise.analysis.best_arm import chance_of_best, loss_of_choosing, may_be_best, most_lost
from equipoise.analysis.comparisons import compare
from equipoise.analysis.evidence import Evidence
from equipoise.analysis.multiplicity import (
    arm_failures,
    best_arm_failures,
    control_failures,
    discoveries,
    holm,
    pair_failures,
)
from equipoise.analysis.sentences import standing
from equipoise.errors import InvalidInput, UnknownArm

NAMES = ["a", "b", "c", "d", "e"]


def yes_no(*counts: tuple[int, int]) -> Evidence:
    """Evidence of arms with so many successes of so many rewards."""
    n, k = np.array(counts, float).T
    rate = k / n
    return Evidence.from_summary(n, rate, np.sqrt(rate * (1 - rate) * n / (n - 1)), reward_range=(0, 1))


EMPTY = Evidence.from_summary([0, 0], [0.0, 0.0], [0.0, 0.0], reward_range=(0, 1))

# Shares


@given(st.integers(1, 8), st.integers(0, 8))
def test_failures_of_arms_pairs_and_controls_never_add_up_to_more_than_allowed(n_first, n_later):
    n_arms, delta = n_first + n_later, 0.05
    first, second = np.triu_indices(n_arms, 1)
    for shares in (arm_failures(delta, n_arms, n_first), pair_failures(delta, first, second, n_first, n_arms=n_arms)):
        assert (shares > 0).all()
        assert shares.sum() <= delta * (1 + 1e-12)


@given(st.integers(2, 6), st.integers(1, 5))
def test_what_was_shown_stays_right_when_an_arm_is_added(n_first, n_later):
    before, after = n_first + n_later - 1, n_first + n_later
    assert arm_failures(0.05, after, n_first)[:before].tolist() == arm_failures(0.05, before, n_first).tolist()
    first, second = np.triu_indices(before, 1)
    assert (
        pair_failures(0.05, first, second, n_first, n_arms=after).tolist()
        == pair_failures(0.05, first, second, n_first, n_arms=before).tolist()
    )


@given(st.integers(1, 8), st.integers(0, 8), st.data())
def test_failures_of_differences_from_a_control_add_up_to_at_most_delta_whenever_the_control_came(
    n_first, n_later, data
):
    n_arms = n_first + n_later
    control = data.draw(st.integers(0, n_arms - 1))
    others = [arm for arm in range(n_arms) if arm != control]
    shares = control_failures(0.05, others, n_first, control=control, n_arms=n_arms)
    assert (shares > 0).all()
    assert shares.sum() <= 0.05 * (1 + 1e-12)
    if n_later and control < n_arms - 1:  # the last arm changes nothing for those before it
        before = control_failures(0.05, others[:-1], n_first, control=control, n_arms=n_arms - 1)
        assert shares[:-1].tolist() == before.tolist()
    if not n_later:
        closed = control_failures(0.05, others, control=control, n_arms=n_arms)
        assert closed == pytest.approx(np.full(len(others), 0.05 / max(len(others), 1)))


@given(st.integers(1, 8), st.integers(0, 8), st.data())
def test_failures_of_what_is_said_if_an_arm_is_best_add_up_to_at_most_delta_and_stay(n_first, n_later, data):
    n_arms = n_first + n_later
    best = data.draw(st.integers(0, n_arms - 1))
    shares = best_arm_failures(0.05, best, n_first, n_arms=n_arms)
    assert shares[best] == 0
    assert (np.delete(shares, best) > 0).all()
    assert shares.sum() <= 0.05 * (1 + 1e-12)
    assert best_arm_failures(0.05, best, n_first, n_arms=n_arms + 3)[:n_arms].tolist() == shares.tolist()
    assert best_arm_failures(0.05, best, n_arms=n_arms).sum() == pytest.approx(0.05 if n_arms > 1 else 0.0)


@pytest.mark.parametrize(("n_arms", "wanted"), [(1, 0.05), (4, 0.0125)])
def test_without_later_arms_all_share_equally(n_arms, wanted):
    assert arm_failures(0.05, n_arms).tolist() == [wanted] * n_arms


@given(st.lists(st.floats(0, 1), min_size=1, max_size=7))
def test_holm_rejects_what_the_step_down_procedure_rejects(p_values):
    adjusted = holm(p_values)
    for alpha in (0.01, 0.05, 0.2):
        rejected: set[int] = set()
        for place, k in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
            if p_values[k] * (len(p_values) - place) > alpha:
                break
            rejected.add(k)
        assert {k for k, p in enumerate(adjusted) if p <= alpha} == rejected


@given(st.lists(st.floats(1e-300, 1), min_size=2, max_size=7), st.data())
def test_holm_with_shares_rejects_no_less_than_bonferroni_and_adding_claims_takes_nothing_back(p_values, data):
    shares = np.array(data.draw(st.lists(st.floats(0.1, 1), min_size=len(p_values), max_size=len(p_values))))
    shares /= 1.1 * shares.sum()
    adjusted = holm(p_values, shares, 1.0)
    for p, share, one in zip(p_values, shares, adjusted, strict=True):
        assert p <= one <= min(1.0, p / share) * (1 + 1e-12)
    fewer = holm(p_values[:-1], shares[:-1], 1.0)
    assert all(now <= before * (1 + 1e-12) for now, before in zip(adjusted, fewer, strict=False))


@given(st.lists(st.floats(0, 1e4), min_size=1, max_size=6), st.sampled_from([0.05, 0.1, 0.5]))
def test_discoveries_are_the_largest_set_whose_e_values_are_large_enough_for_its_size(e_values, alpha):
    n = len(e_values)
    fits = [
        set(chosen)
        for size in range(n + 1)
        for chosen in itertools.combinations(range(n), size)
        if all(e_values[k] * alpha * size >= n for k in chosen)
    ]
    assert len(discoveries(e_values, alpha)) == max(map(len, fits))
    assert set(discoveries(e_values, alpha)) in fits


# Differences


def test_differences_of_all_pairs_of_a_control_and_of_one_pair_are_narrower_the_fewer_they_are():
    evidence = yes_no((400, 100), (400, 150), (400, 170))
    widths = []
    for chosen in ({}, {"control": "a"}, {"pairs": [("b", "a")]}):
        found = compare(evidence, NAMES[:3], **chosen)
        [pair] = [one for one in found.differences if {one.arm, one.other} == {"a", "b"}]
        assert min(pair.low, pair.high) < pair.difference < max(pair.low, pair.high)
        widths.append(pair.high - pair.low)
    assert widths[0] > widths[1] > widths[2]


def test_a_guaranteed_difference_contains_the_asymptotic_one():
    evidence = yes_no((4000, 1000), (4000, 1200))
    narrow, wide = (compare(evidence, NAMES[:2], guaranteed=one).differences[0] for one in (False, True))
    assert (narrow.interval, wide.interval) == ("asymptotic", "guaranteed")
    assert wide.low < narrow.low < narrow.difference < narrow.high < wide.high


def test_arms_with_few_rewards_are_compared_by_joint_evidence():
    found = compare(yes_no((12, 0), (12, 12)), NAMES[:2]).differences[0]
    assert found.interval == "guaranteed"
    assert found.verdict == "worse"


some_arms = st.lists(st.tuples(st.sampled_from([5, 60, 400]), st.floats(0, 1)), min_size=2, max_size=5).map(
    lambda arms: yes_no(*[(n, round(n * rate)) for n, rate in arms])
)


@settings(max_examples=60)
@given(some_arms, st.integers(1, 5), st.sampled_from([None, "a", "b"]), st.booleans(), st.booleans())
def test_p_is_at_most_delta_where_the_interval_leaves_zero_out_and_only_there(evidence, first, control, up, guaranteed):
    found = compare(
        evidence,
        NAMES[: evidence.n_arms],
        control=control,
        guaranteed=guaranteed,
        direction="maximise" if up else "minimise",
        n_first=min(first, evidence.n_arms),
    )
    for pair in found.differences:
        assume(abs(pair.p_adjusted - 0.05) > 1e-4)
        assert (pair.p_adjusted < 0.05) == (pair.verdict != "undecided")
        assert pair.p_adjusted >= pair.p_value


@settings(max_examples=60)
@given(some_arms, st.integers(1, 5), st.sets(st.sampled_from(NAMES[:5]), max_size=2))
def test_ranks_agree_with_which_arms_may_be_best_and_leave_retired_ones_aside(evidence, first, retired):
    names = NAMES[: evidence.n_arms]
    assume(not retired >= set(names))
    found = compare(evidence, names, n_first=min(first, len(names)), retired=retired)
    n_in_play = sum(name not in retired for name in names)
    for arm in found.arms:
        assert arm.retired == (arm.arm in retired)
        if arm.retired:
            assert (arm.rank_low, arm.rank_high, arm.most_lost, arm.may_be_best) == (None, None, None, False)
            continue
        assert 1 <= arm.rank_low <= arm.rank_high <= n_in_play
        assert arm.may_be_best or arm.rank_low > 1
        assert arm.arm != found.best or arm.rank_high == 1
    assert set(found.may_be_best) == {arm.arm for arm in found.arms if arm.may_be_best}
    assert not {name for name in retired if repr(name) in found.sentences[0].partition("retired")[0].partition(".")[0]}


@settings(max_examples=60)
@given(some_arms, some_arms, st.integers(1, 5), st.booleans())
def test_an_arm_that_is_ruled_out_stays_so_whatever_arms_are_added(before, added, first, up):
    first = min(first, before.n_arms)
    after = Evidence(np.hstack([before.moments, added.moments]))
    nothing = Evidence(np.hstack([before.moments, EMPTY.moments]))
    given_first = {"larger_is_better": up, "n_first": first}
    still = may_be_best(before, 0.05, **given_first)
    assert not (may_be_best(after, 0.05, **given_first)[: before.n_arms] & ~still).any()
    assert may_be_best(nothing, 0.05, **given_first)[: before.n_arms].tolist() == still.tolist()
    of_those = np.arange(after.n_arms) < before.n_arms
    lost = most_lost(after, 0.05, in_play=of_those, **given_first)[: before.n_arms]
    assert lost == pytest.approx(most_lost(before, 0.05, **given_first), nan_ok=True)


def test_with_a_wrong_direction_nothing_is_compared():
    with pytest.raises(InvalidInput, match="direction must be one of maximise, minimise; got 'maximize'"):
        compare(yes_no((40, 10), (40, 20)), NAMES[:2], direction="maximize")


def test_a_retired_arm_is_compared_but_neither_best_nor_in_the_way():
    evidence = yes_no((900, 270), (900, 540), (6, 4))
    assert compare(evidence, NAMES[:3]).may_be_best == ("b", "c")
    found = compare(evidence, NAMES[:3], retired=["c"])
    assert (found.best, found.may_be_best) == ("b", ("b",))
    assert found.sentences == ("'b' is the best arm: better than 'a', by 0.22 to 0.38. 'c' is retired and left out.",)
    assert len(found.differences) == 3
    assert "retired" in str(found)
    alone = compare(evidence, NAMES[:3], retired=["a", "c"])
    assert alone.best is None
    assert alone.sentences[0].startswith("'b' is the only arm in play.")


def test_minimising_turns_verdicts_ranks_and_the_best_arm_around():
    evidence = yes_no((600, 120), (600, 300), (600, 480))
    up = compare(evidence, NAMES[:3])
    down = compare(evidence, NAMES[:3], direction="minimise")
    assert (up.best, down.best) == ("c", "a")
    assert [one.verdict for one in up.differences] == ["worse"] * 3
    assert [one.verdict for one in down.differences] == ["better"] * 3
    assert [(one.low, one.high) for one in up.differences] == [(one.low, one.high) for one in down.differences]
    assert [one.rank_low for one in up.arms] == [3, 2, 1]
    assert [one.rank_low for one in down.arms] == [1, 2, 3]
    assert up.arms[2].most_lost == pytest.approx(0.0) or up.arms[2].most_lost < 0.01


def test_the_order_of_arms_does_not_matter():
    counts = [(300, 60), (500, 150), (400, 200), (200, 90)]
    straight = compare(yes_no(*counts), NAMES[:4])
    turned = compare(yes_no(*counts[::-1]), NAMES[:4][::-1])
    assert {arm.arm: arm for arm in straight.arms}.keys() == {arm.arm: arm for arm in turned.arms}.keys()
    for one in straight.arms:
        [other] = [arm for arm in turned.arms if arm.arm == one.arm]
        assert (one.low, one.high, one.may_be_best) == pytest.approx((other.low, other.high, other.may_be_best))
        assert one.chance_of_best == pytest.approx(other.chance_of_best)
    assert straight.sentences == turned.sentences


def test_the_lift_is_the_ratio_of_means_and_its_interval_agrees_with_the_difference_about_zero():
    found = compare(yes_no((2000, 400), (2000, 600)), NAMES[:2], pairs=[("b", "a")], guaranteed=True)
    [pair] = found.differences
    assert pair.lift == pytest.approx(0.5)
    assert pair.lift_low < 0.5 < pair.lift_high
    assert (pair.lift_low > 0) == (pair.low > 0)


def test_there_is_no_lift_where_rewards_may_be_negative():
    evidence = Evidence.from_summary([100, 100], [1.0, 2.0], [1.0, 1.0])
    assert compare(evidence, NAMES[:2]).differences[0].lift is None


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"control": "x"}, UnknownArm, "control must be one of the arms, a, b; got 'x'"),
        ({"pairs": [("a", "a")]}, InvalidInput, "pairs must hold pairs of two different arms"),
        ({"pairs": []}, InvalidInput, "at least one pair"),
        ({"pairs": [("a", "b")], "control": "a"}, InvalidInput, "left out where a control is named"),
        ({"confidence": 95}, InvalidInput, "confidence must be in (0, 1), such as 0.95; got 95"),
    ],
)
def test_wrong_settings_are_refused_with_what_was_expected(settings, error, words):
    with pytest.raises(error) as refused:
        compare(yes_no((10, 5), (10, 5)), NAMES[:2], **settings)
    assert words in str(refused.value)


# The best arm


def test_arms_without_rewards_may_be_the_best_and_nothing_is_said():
    evidence = Evidence.from_summary([0, 500], [0, 0.5], [0, 0.5], reward_range=(0, 1))
    found = compare(evidence, NAMES[:2])
    assert found.may_be_best == ("a", "b")
    assert found.arms[0].low is None
    assert math.isnan(loss_of_choosing(evidence, 1, 0.05)) or loss_of_choosing(evidence, 1, 0.05) >= 0.4


def test_one_arm_is_compared_with_nobody():
    found = compare(yes_no((50, 20)), ["a"])
    assert (found.differences, found.best, found.sentences) == ((), None, ())


def test_the_best_arm_is_hardly_ever_ruled_out_and_losses_are_hardly_ever_larger_than_said():
    """200 runs of 5 arms, looked at 12 times; at most 5 % may fail, 1.6 % is their standard error."""
    rng = np.random.default_rng(5)
    truth = np.array([0.3, 0.35, 0.4, 0.45, 0.5])
    looks = np.array([20, 40, 60, 90, 130, 180, 250, 350, 500, 700, 1000, 1400])
    out, lost = 0, 0
    for _ in range(200):
        rewards = rng.random((looks[-1], 5)) < truth
        best_out, too_small = False, False
        for n in looks.tolist():
            mean = rewards[:n].mean(axis=0)
            evidence = yes_no(*[(n, round(one * n)) for one in mean.tolist()])
            best_out |= not may_be_best(evidence, 0.05)[4]
            too_small |= bool((most_lost(evidence, 0.05) < truth[4] - truth - 1e-12).any())
        out, lost = out + best_out, lost + too_small
    assert out <= 0.05 * 200 + 2 * 3.1
    assert lost <= 0.05 * 200 + 2 * 3.1


def test_losses_of_one_arm_are_those_of_all():
    evidence = yes_no((300, 60), (300, 90), (300, 120))
    everything = most_lost(evidence, 0.05)
    assert [loss_of_choosing(evidence, arm, 0.05) for arm in range(3)] == pytest.approx(everything.tolist())


def test_the_chance_of_being_best_is_that_of_the_shrunken_beliefs():
    evidence = Evidence.from_summary([50, 60, 70], [0.0, 0.1, 0.3], [1.0, 0.8, 1.2])
    chance = chance_of_best(evidence)
    from equipoise.analysis.shrinkage import shrink

    believed = shrink(evidence.mean, evidence.std / np.sqrt(evidence.pulls))
    draws = np.random.default_rng(1).normal(believed.estimate, believed.standard_error, (200_000, 3))
    drawn = np.bincount(draws.argmax(axis=1), minlength=3) / len(draws)
    assert chance.sum() == pytest.approx(1.0)
    assert chance == pytest.approx(drawn, abs=4 * 0.5 / math.sqrt(200_000))


# Words


@pytest.mark.parametrize(
    ("leader", "gaps", "may_be_best", "arms", "words"),
    [
        ("b", {}, ["a", "b"], ["a", "b"], "No arm can be ruled out as the best yet."),
        ("b", {"a": (0.1, 0.3)}, ["b"], ["a", "b"], "'b' is the best arm: better than 'a', by 0.10 to 0.30."),
        (
            "c",
            {"a": (0.12, 0.27)},
            ["b", "c"],
            ["a", "b", "c"],
            "'c' is better than 'a', by 0.12 to 0.27. 'b' may still be best.",
        ),
        ("c", {}, ["b", "c"], ["a", "b", "c"], "'a' is not the best. 'c' and 'b' may still be best."),
    ],
)
def test_the_standing_of_the_arms_in_words(leader, gaps, may_be_best, arms, words):
    assert standing(leader, gaps, may_be_best, arms) == words


def test_many_arms_are_counted_in_words():
    gaps = {f"x{i}": (0.1 + i / 100, 0.3 + i / 100) for i in range(6)}
    arms = ["best", *gaps, "near", "nearer"]
    words = standing("best", gaps, ["best", "near", "nearer"], arms)
    assert words == "'best' is better than 6 of the 8 others, by at least 0.10. 'near' and 'nearer' may still be best."


def test_provisional_numbers_are_called_so_first():
    found = compare(yes_no((100, 10), (100, 80)), NAMES[:2], provisional=("Rewards are missing.",))
    assert found.sentences[0].startswith("Provisional: 'b' is the best arm")
    assert "Rewards are missing." in found.sentences
