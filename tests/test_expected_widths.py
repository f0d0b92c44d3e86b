"""Planning speaks in the plus-or-minus of `status`: predicted half-widths are those that experiments show."""

import numpy as np
import pytest

import equipoise as eq
from equipoise.analysis.evidence import TIGHTEST_AT, tightest_for
from equipoise.analysis.expected_widths import expected_half_widths, steered

RATES, SHARES = np.array([0.1, 0.3, 0.5]), (0.5, 0.2, 0.3)


def shown(seed, n_people, draw, **settings):
    """Play an experiment at a fixed allocation, and return it with what status shows."""
    experiment = eq.Experiment.create(
        "memory:", "x", arms=["a", "b", "c"], policy=eq.Fixed(allocation=SHARES), seed=seed, **settings
    )
    rng = np.random.default_rng(seed)
    told = [(one.unit, draw(rng, "abc".index(one.arm))) for one in experiment.ask_many(map(str, range(n_people)))]
    experiment.tell_many(told)
    status = experiment.status()
    return experiment, np.array([arm.rewarded for arm in status.arms]), [arm.half_width for arm in status.arms]


@pytest.mark.parametrize(("n_people", "budget"), [(400, None), (1500, None), (1500, 6000)])
def test_status_shows_the_half_widths_that_were_predicted_for_rates(n_people, budget):
    rules = {} if budget is None else {"stopping": [eq.Budget(units=budget)]}
    found = [
        shown(seed, n_people, lambda rng, arm: float(rng.random() < RATES[arm]), reward_range=(0, 1), **rules)[2]
        for seed in range(25)
    ]
    spread = np.sqrt(RATES * (1 - RATES))
    expected = expected_half_widths(np.array(SHARES) * n_people, RATES, spread, reward_range=(0, 1), budget=budget)
    # The median of 25 has 1.25 / 5 of their standard deviation as its error; a sample's spread is the larger part.
    noise = 3 * 0.25 * np.std(found, axis=0)
    assert (np.abs(np.median(found, axis=0) - expected) < 0.02 * expected + noise * (n_people < 1000)).all()


def test_status_shows_the_half_widths_that_were_predicted_without_a_range():
    mean, std = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 0.5])
    found = [
        shown(seed, 2000, lambda rng, arm: float(rng.normal(mean[arm], std[arm])), failure_probability=0.1)[2]
        for seed in range(25)
    ]
    expected = expected_half_widths(np.array(SHARES) * 2000, mean, std, failure_probability=0.1)
    assert np.median(found, axis=0) == pytest.approx(expected, rel=0.02)


def test_on_the_figures_of_a_sample_the_prediction_is_what_status_shows():
    experiment, counts, widths = shown(1, 900, lambda rng, arm: float(rng.random() < RATES[arm]), reward_range=(0, 1))
    mean = np.array([arm.mean for arm in experiment.status().arms])
    expected = expected_half_widths(counts, mean, np.sqrt(mean * (1 - mean)), reward_range=(0, 1))
    assert expected == pytest.approx(widths, rel=1e-9)


def test_nothing_is_predicted_where_status_shows_nothing():
    assert np.isnan(expected_half_widths([29, 0], [1, 2], [1, 1])).all()
    few = expected_half_widths([1, 0], [0.5, 0.5], [0.5, 0.5], reward_range=(0, 1))
    assert few[0] > 0.4 and np.isnan(few[1])
    with pytest.raises(eq.errors.InvalidInput, match="mean must have 2 entries"):
        expected_half_widths([30, 30], [1], [1])
    assert (tightest_for([], 2), tightest_for([4000, 900], 2), tightest_for([1], 2)) == (TIGHTEST_AT, 450, 30)


def test_more_people_and_a_larger_failure_probability_make_intervals_narrower():
    widths = [expected_half_widths([n, n], [0.2, 0.4], [0.4, 0.49], reward_range=(0, 1)) for n in (50, 500, 5000)]
    assert (np.diff(widths, axis=0) < 0).all()
    bold = expected_half_widths([500, 500], [0.2, 0.4], [0.4, 0.49], reward_range=(0, 1), failure_probability=0.2)
    assert (bold < widths[1]).all()


def test_people_are_steered_to_the_target_as_far_as_floors_leave_them():
    assert steered([10, 90], [0.5, 0.5], [0, 0], 80).tolist() == [80, 0]
    assert steered([10, 90], [0.5, 0.5], [0.1, 0.1], 80) == pytest.approx([72, 8])
    assert steered([50, 50], [0.3, 0.7], [0, 0], 100) == pytest.approx([10, 90])
    assert steered([0, 0], [0.3, 0.7], [0, 0], 0).tolist() == [0, 0]


def test_what_if_predicts_the_half_widths_of_a_later_status():
    def draw(rng, arm):
        return float(rng.random() < RATES[arm])

    settings = {"arms": ["a", "b", "c"], "reward_weight": 0.0, "floor": 0.05, "reward_range": (0, 1), "seed": 4}
    experiment, rng = eq.Experiment.create("memory:", "x", **settings), np.random.default_rng(5)

    def play(start, end):
        for unit in range(start, end):
            experiment.tell(str(unit), draw(rng, "abc".index(experiment.ask(str(unit)).arm)))

    play(0, 600)
    assert experiment.what_if(0.95).more_units == 600
    tried = experiment.what_if(0.95, more_units=1800)
    assert tried.more_units == 1800
    assert tried.half_widths["c"] < tried.present_half_widths["c"]
    assert max(tried.half_widths.values()) > max(tried.present_half_widths.values())
    now = {arm.arm: arm.half_width for arm in experiment.status().arms}
    assert experiment.what_if(0.95, more_units=0).half_widths == pytest.approx(now)
    experiment.change_dial(reward_weight=0.95)
    play(600, 2400)
    then = {arm.arm: arm.half_width for arm in experiment.status().arms}
    assert tried.half_widths == pytest.approx(then, rel=0.1)
    with pytest.raises(eq.errors.InvalidInput, match="more_units must be at least 0"):
        experiment.what_if(0.5, more_units=-1)
