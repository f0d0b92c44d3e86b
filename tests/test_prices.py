"""Prices of the dial's positions: what each gives people, how sure that is, and how many more people it takes."""

import dataclasses
import math
from datetime import UTC, datetime

import numpy as np
import pytest

import equipoise as eq
from equipoise.analysis.mean_beliefs import MeanBeliefs
from equipoise.experiment.prices import prices_of
from equipoise.experiment.rewards_ahead import people_until, rewards_ahead

RATES = {"plain": 0.3, "social": 0.33, "personal": 0.42, "prize": 0.5}


def played(n_people=600, *, rates=None, sign=1.0, draw=None, **settings):
    """Return an experiment after some people."""
    rates = rates or RATES
    rng = np.random.default_rng(8)
    draw = draw or (lambda arm: float(rng.random() < rates[arm]))
    settings = {"reward_weight": 0.6} | settings
    if "policy" in settings or "information_kept" in settings:
        del settings["reward_weight"]
    experiment = eq.Experiment.create("memory:", "messages", arms=list(rates), seed=5, **settings)
    for begin in range(0, n_people, 20):
        found = experiment.ask_many([f"person-{begin + i}" for i in range(20)])
        experiment.tell_many([(one.unit, sign * draw(one.arm)) for one in found])
    return experiment


def state_of(experiment):
    return experiment._backend._read(lambda _, state: state)


def test_positions_lie_evenly_along_the_share_of_the_best_arm_and_hold_the_present_one():
    for dial in ({"reward_weight": 0.6}, {"reward_weight": 0.9371}, {"information_kept": 0.7}):
        experiment = played(floor=0.02, control="plain", control_share=0.1, **dial)
        prices = experiment.prices()
        assert prices.best == "prize" and len(prices.positions) == 41
        here = prices.positions[prices.present]
        assert here.dial == experiment.configuration.dial
        shares = np.array([one.shares[3] for one in prices.positions])
        steps = np.diff(np.delete(shares, prices.present))
        assert (steps > 0).all() and steps[:-1].max() < 2.6 * (shares[-1] - shares[0]) / 40
        assert all(math.isclose(sum(one.shares), 1.0) and sum(one.next_100) == 100 for one in prices.positions)
        assert min(one.shares[0] for one in prices.positions) >= 0.1


def test_positions_agree_with_what_if():
    for settings in ({"reward_weight": 0.6}, {"information_kept": 0.7, "information_about": "every-arm"},
                     {"information_kept": 0.7, "information_about": "best-arm"},
                     {"policy": eq.ForcingBalance(reward_weight=0.3, tracking="windowed")}):  # fmt: skip
        experiment = played(floor=0.02, **settings)
        prices = experiment.prices()
        for one in prices.positions[::8]:
            other = experiment.what_if(**one.dial)
            assert list(one.shares) == pytest.approx(list(other.allocation.values()), abs=1e-9)
            assert one.error_ratio == pytest.approx(other.error_ratio, rel=0.02)
            assert one.reward_weight == pytest.approx(other.reward_weight, abs=1e-9)


def test_a_weight_and_the_information_it_keeps_are_the_same_position():
    experiment = played()
    one = next(one for one in experiment.prices().positions if 0.7 < one.information_kept < 0.75)
    other = experiment.what_if(information_kept=one.information_kept)
    assert list(one.shares) == pytest.approx(list(other.allocation.values()), abs=0.01)


def test_the_last_position_gives_the_best_arm_all_it_can_or_takes_twenty_times_as_many_people():
    floors, none = played(floor=0.06).prices(), played().prices()
    assert floors.positions[-1].dial == {"reward_weight": 1.0}
    assert 18 < none.positions[-1].people_ratio_to_equal_shares <= 20
    beyond = played(reward_weight=1.0).prices()
    assert beyond.present == len(beyond.positions) - 1
    assert {one.people_ratio for one in beyond.positions} == {None}  # compared with what never knows every arm
    assert beyond.positions[0].people_ratio_to_equal_shares is not None


def test_presets_are_the_most_reward_for_so_many_people():
    prices = played().prices()
    named = {preset.name: prices.positions[preset.position] for preset in prices.presets}
    assert list(named) == ["costs nothing", "balanced", "mostly reward", "equal shares"]
    ratios = np.array([one.people_ratio_to_equal_shares for one in prices.positions])
    for name, most in (("costs nothing", 1.05), ("balanced", 1.5), ("mostly reward", 3.0)):
        assert named[name].people_ratio_to_equal_shares == ratios[ratios <= most].max()
    assert named["equal shares"].shares == pytest.approx([0.25] * 4, abs=0.04)
    moved = played(reward_weight=0.95).prices()
    again = {preset.name: moved.positions[preset.position] for preset in moved.presets}
    assert again["balanced"].people_ratio_to_equal_shares == pytest.approx(1.5, abs=0.1)


def test_small_rewards_can_be_good():
    larger = played(sign=1.0).prices()
    rewards = played(sign=-1.0, direction="minimise").prices()
    assert rewards.direction == "minimise"
    assert [one.dial for one in rewards.positions] == [one.dial for one in larger.positions]
    for one, other in zip(rewards.positions, larger.positions, strict=True):
        assert one.gain.per_100 == pytest.approx(other.gain.per_100, rel=1e-6, abs=1e-9)
    assert rewards.positions[-1].gain.low > 0


def test_rewards_in_another_unit_have_the_same_prices():
    rng = np.random.default_rng(3)
    noise = rng.normal(size=600).tolist()
    tables = []
    for unit, offset in ((1.0, 0.0), (1000.0, 5000.0)):
        left = iter(noise)
        tables.append(played(draw=lambda arm, left=left, u=unit, o=offset: o + u * (RATES[arm] + next(left))).prices())
    for one, other in zip(tables[0].positions, tables[1].positions, strict=True):
        assert other.gain.high == pytest.approx(1000.0 * one.gain.high, rel=1e-6, abs=1e-6)
        assert other.people_ratio == pytest.approx(one.people_ratio)


def test_arms_that_are_not_in_play_have_no_share():
    experiment = played()
    experiment.pause_arm("social")
    experiment.retire_arm("personal")
    prices = experiment.prices()
    assert prices.arms == ("plain", "prize") and prices.n_arms == 2
    assert all(len(one.shares) == 2 for one in prices.positions)
    experiment.add_arm("late")
    assert experiment.prices().needs == "needs 4 rewards of each arm; 'late' has 0"
    assert experiment.prices().arms == ("plain", "prize", "late")
    assert experiment.status().gain_over_equal_shares is None


def test_one_arm_alone_and_arms_that_are_all_the_same_have_prices():
    experiment = played()
    for arm in ("plain", "social", "personal"):
        experiment.pause_arm(arm)
    (only,) = experiment.prices().positions
    assert only.next_100 == (100,) and only.gain.per_100 == 0.0
    same = played(draw=lambda arm: 1.0).prices()
    assert same.needs == "" and all(math.isfinite(one.gain.per_100) for one in same.positions)


def test_arms_with_huge_rewards_break_nothing():
    experiment = played(draw=lambda arm: 1e100 * (arm == "prize") + 1.0)
    assert experiment.prices().best == "prize"
    assert experiment.status().gain_over_equal_shares is not None


def test_with_many_arms_those_that_get_most_are_listed():
    rates = {f"arm-{i}": 0.2 + 0.005 * i for i in range(60)}
    prices = played(1200, rates=rates).prices()
    assert prices.n_arms == 60 and len(prices.arms) == 50 and prices.best in prices.arms


def test_days_follow_from_the_pace():
    experiment = played(stopping=[eq.Precision(half_width=0.06)])
    slow, fast = experiment.prices(people_per_day=10), experiment.prices(people_per_day=100)
    for one, other in zip(slow.positions, fast.positions, strict=True):
        assert one.precisions[0].days == pytest.approx(10 * other.precisions[0].days)
        assert one.precisions[0].people == pytest.approx(10 * one.precisions[0].days)
    assert experiment.prices().positions[0].precisions[0].days is None


@pytest.mark.parametrize("of", ["arms", "differences"])
def test_a_precision_is_reached_after_as_many_people_as_predicted(of):
    """With these many further people all half-widths reach the goal, and with a few fewer they do not."""
    rule = eq.Precision(half_width=0.08, of=of)
    experiment = played(stopping=[rule], reward_range=(0, 1))
    state = state_of(experiment)
    prices = experiment.prices()
    for place in (0, prices.present, 25):
        one = prices.positions[place]
        needed = one.precisions[0]
        assert needed.people > 300
        if of == "arms":
            for more, enough in ((needed.people, True), (int(0.98 * needed.people), False)):
                widths = experiment.what_if(**one.dial, more_units=more).half_widths
                assert (max(widths.values()) <= 0.08 * (1 + 1e-3)) == enough
    shares = np.array([prices.positions[prices.present].shares])
    assert people_until(state, rule, shares)[0] == prices.positions[prices.present].precisions[0].people
    assert rewards_ahead(state, shares[0], 100).sum() == pytest.approx(700)
    assert people_until(state, eq.Precision(half_width=0.9, of=of), shares)[0] == 0
    reached = played(
        stopping=[rule],
        reward_range=(0, 1),
        n_people=600 + prices.positions[prices.present].precisions[0].people // 20 * 20,
    )
    (progress,) = reached.status().stopping
    assert progress.now == pytest.approx(0.08, rel=0.06)


def test_an_arm_that_is_paused_too_early_is_never_known():
    experiment = played(stopping=[eq.Precision(half_width=0.03)])
    experiment.pause_arm("social")
    assert {one.precisions[0].people for one in experiment.prices().positions} == {None}


def test_status_says_what_people_gained_so_far():
    experiment = played(1000, reward_weight=0.9)
    status = experiment.status()
    gain = status.gain_over_equal_shares
    share = np.array([arm.actual_share for arm in status.arms])
    truth = 100 * float(share @ np.array(list(RATES.values())) - np.mean(list(RATES.values())))
    assert 0 < gain.low < truth < gain.high
    # Shrunk towards no difference, compared with plain means.
    plain = 100 * float((share - 0.25) @ np.array([arm.mean for arm in status.arms]))
    assert gain.per_100 < plain
    assert played(0).status().gain_over_equal_shares is None
    assert played(200, policy=eq.Uniform()).status().gain_over_equal_shares.per_100 == pytest.approx(0.0, abs=0.05)


def test_beliefs_shrink_the_luck_of_the_best_of_many():
    lucky = np.array([0.0] * 19 + [2.5])
    against = np.append(np.full(19, -1 / 19), 1.0)
    middle, low, high = MeanBeliefs(lucky, np.ones(20)).ranges(against)
    assert 0 <= middle < 0.8 and low < 0.1 < high
    clear = np.append(np.linspace(-10, 10, 19), 20.0)
    middle, low, high = MeanBeliefs(clear, np.ones(20)).ranges(against)
    assert middle == pytest.approx(20.0, abs=0.6) and high - low == pytest.approx(
        2 * 1.2816 * math.sqrt(20 / 19), rel=0.05
    )


def test_ranges_are_those_of_draws():
    """The ends that are computed are the quantiles of draws from the same beliefs, made step by step."""
    rng = np.random.default_rng(4)
    mean, variance = np.array([0.3, -0.2, 1.4, 0.1, 0.4]), np.array([0.2, 0.5, 0.3, 0.1, 1.0])
    apart = np.linspace(0.0, 60.0, 60_001)[:, None]
    weight = 1.0 / (variance + apart**2)
    centre = (weight @ mean) / weight.sum(axis=1)
    log_chance = 0.5 * np.log(weight).sum(axis=1) - 0.5 * np.log(weight.sum(axis=1))
    log_chance -= 0.5 * (weight * (mean - centre[:, None]) ** 2).sum(axis=1)
    chance = np.exp(log_chance - log_chance.max())
    k = rng.choice(chance.size, 100_000, p=chance / chance.sum())
    level = centre[k] + rng.normal(size=k.size) / np.sqrt(weight[k].sum(axis=1))
    kept = apart[k] ** 2 * weight[k]
    draws = level[:, None] + kept * (mean - level[:, None]) + np.sqrt(variance * kept) * rng.normal(size=(k.size, 5))
    weights = np.array([-0.25, -0.25, 1.0, -0.25, -0.25])
    expected = [np.mean(draws @ weights), *np.quantile(draws @ weights, [0.1, 0.9])]
    found = [float(one) for one in MeanBeliefs(mean, variance).ranges(weights)]
    assert found == pytest.approx(expected, abs=0.02)


def test_a_prior_of_how_far_arms_are_apart_is_used():
    near = eq.PooledBalance(reward_weight=0.6, tracking="windowed", prior=eq.ArmPrior(means_apart=0.02, weight=50))
    wide = eq.PooledBalance(reward_weight=0.6, tracking="windowed")
    state = state_of(played(200, policy=wide))
    now = datetime(2027, 1, 1, tzinfo=UTC)
    plain = prices_of(state, now).positions[-1].gain_over_equal_shares
    state.set_configuration(dataclasses.replace(state.configuration, policy=near))
    informed = prices_of(state, now).positions[-1].gain_over_equal_shares
    assert informed.per_100 < 0.5 * plain.per_100


def test_a_policy_without_a_dial_has_no_prices():
    with pytest.raises(eq.InvalidInput, match="Uniform has no dial"):
        played(0, policy=eq.Uniform()).prices()
    thompson = played(policy=eq.ThompsonBalance(reward_weight=0.5)).prices()
    assert "steers towards no shares" in thompson.needs and thompson.positions == ()
