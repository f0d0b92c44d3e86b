"""Whether arms were drawn as recorded: against brute-force products, false alarms, and what should be found."""

from __future__ import annotations

import math

import numpy as np
import pytest

import equipoise as eq
from equipoise.analysis.attributes import Attribute
from equipoise.analysis.observations import Observations
from equipoise.analysis.randomisation import check_balance, check_draws
from equipoise.experiment.observed_log import read_observations

TILTS = [sign * size for sign in (-1, 1) for size in (0.01, 0.03, 0.1, 0.3)]
STAKES = [0.003, 0.01, 0.03, 0.1, 0.3]
LEVEL = 0.05


def drawn(rng, n, chances=None, *, given=None, **columns):
    """Decisions drawn with `chances` (by default those on record), which say `given`."""
    recorded = rng.dirichlet([2.0, 2.0, 2.0], n) if given is None else np.broadcast_to(given, (n, len(given)))
    true = recorded if chances is None else chances
    true = np.broadcast_to(true, recorded.shape)
    arm = (rng.random((n, 1)) > true.cumsum(axis=1)[:, :-1]).sum(axis=1)
    names = tuple("abcdef"[: recorded.shape[1]])
    return Observations(arms=names, arm=arm, reward=np.zeros(n), probabilities=np.array(recorded), **columns)


def only_chosen(observations):
    return Observations(
        arms=observations.arms,
        arm=observations.arm,
        reward=observations.reward,
        probability=observations.probability,
        attributes=observations.attributes,
    )


def brute_products(observations, score):
    """The evidence after every decision, by the definition, in exact order and one factor at a time."""
    n_arms = observations.n_arms
    wealth = np.ones((n_arms, len(TILTS)))
    running = [1.0]
    for arm, chances, value in zip(observations.arm, observations.probabilities, score, strict=True):
        for a in range(n_arms):
            for k, tilt in enumerate(TILTS):
                won = math.exp(tilt * value)
                wealth[a, k] *= (won if arm == a else 1.0) / (1.0 + chances[a] * (won - 1.0))
        running.append(wealth.mean())
    return running


def test_the_evidence_is_the_product_of_the_factors():
    rng = np.random.default_rng(1)
    for n in (1, 31, 32, 33, 100):
        observations = drawn(rng, n, chances=[0.6, 0.2, 0.2])
        check = check_draws(observations)
        running = brute_products(observations, np.ones(n))
        assert check.log_e_value == pytest.approx(math.log(running[-1]), abs=1e-9)
        # Looked at after every 32 decisions and after the last.
        seen = [running[i] for i in range(0, n, 32)] + [running[-1]]
        assert check.p_value == pytest.approx(min(1.0, 1.0 / max(seen)), rel=1e-9)


def test_the_evidence_from_chosen_arms_is_the_product_of_its_factors():
    rng = np.random.default_rng(2)
    observations = only_chosen(drawn(rng, 100, chances=[0.7, 0.15, 0.15]))
    wealth, seen = np.ones((3, len(STAKES))), set()
    for arm, chance in zip(observations.arm, observations.probability, strict=True):
        for a in seen:
            wealth[a] *= 1.0 + np.array(STAKES) * ((1.0 / chance if arm == a else 0.0) - 1.0)
        seen.add(arm)
    check = check_draws(observations)
    assert check.basis == "chosen arm"
    assert check.log_e_value == pytest.approx(math.log(wealth.mean()), abs=1e-9)


def test_balance_is_the_product_with_scores():
    rng = np.random.default_rng(3)
    age = rng.normal(10, 2, 90)
    age[5] = np.nan
    observations = drawn(rng, 90, attributes={"age": Attribute.of("age", age)})
    score, before = np.zeros(90), []
    for i, value in enumerate(age):
        if not np.isnan(value):
            if len(before) >= 10:
                score[i] = np.clip((value - np.mean(before)) / np.std(before), -3, 3)
            before.append(value)
    running = brute_products(observations, score)
    assert check_balance(observations, "age").log_e_value == pytest.approx(math.log(running[-1]), abs=1e-9)
    groups = rng.choice(["x", "y"], 90)
    observations = drawn(rng, 90, attributes={"group": Attribute.of("group", groups)})
    first = groups[0]
    parts = [brute_products(observations, groups == name)[-1] for name in (first, "y" if first == "x" else "x")]
    wanted = parts[0] / 2 + parts[1] / 6 + 1 / 3  # weights by the order of appearance, the rest is not bet
    assert check_balance(observations, "group").log_e_value == pytest.approx(math.log(wanted), abs=1e-9)


@pytest.mark.parametrize("kind", ["draws", "number", "category"])
@pytest.mark.parametrize("has_all", [True, False])
def test_right_probabilities_are_doubted_no_more_often_than_the_p_value_says(kind, has_all):
    """Also with arms that are seldom drawn, and with the p-value after the worst decision of each run."""
    rng, runs = np.random.default_rng(4), 400
    low = 0
    for _ in range(runs):
        n = 400
        chances = rng.dirichlet([0.3, 1.0, 3.0], n)
        chances = 0.01 + 0.97 * chances
        attributes = {"number": Attribute.of("number", rng.standard_t(3, n))}
        attributes["category"] = Attribute.of("category", rng.choice(list("pqrs"), n, p=[0.7, 0.2, 0.05, 0.05]))
        arm = (rng.random((n, 1)) > chances.cumsum(axis=1)[:, :-1]).sum(axis=1)
        observations = Observations(
            arms=("a", "b", "c"), arm=arm, reward=np.zeros(n), probabilities=chances, attributes=attributes
        )
        observations = observations if has_all else only_chosen(observations)
        check = check_draws(observations) if kind == "draws" else check_balance(observations, kind)
        low += check.p_value <= LEVEL
    assert low / runs <= LEVEL + 2 * math.sqrt(LEVEL * (1 - LEVEL) / runs)


def test_the_expectation_of_the_evidence_is_one():
    rng = np.random.default_rng(5)
    values = [math.exp(check_draws(drawn(rng, 50)).log_e_value) for _ in range(2000)]
    assert abs(np.mean(values) - 1) < 4 * np.std(values) / math.sqrt(len(values))


def test_a_biased_assigner_is_found_with_either_basis():
    """An arm that should have a third has 40 %; after 3,000 units there is no doubt, and the arm is named."""
    rng, found = np.random.default_rng(6), []
    for _ in range(40):
        observations = drawn(rng, 3000, chances=[0.40, 0.30, 0.30], given=[1 / 3, 1 / 3, 1 / 3])
        checks = check_draws(observations), check_draws(only_chosen(observations))
        found += [check.p_value < 0.001 and check.arm == "a" for check in checks]
    assert np.mean(found) > 0.95
    check = check_draws(observations)
    assert check.observed == pytest.approx(1200, abs=5 * math.sqrt(3000 * 0.24)) and check.expected == pytest.approx(
        1000
    )
    assert check.n_drawn == check.n_decisions == 3000


def test_half_a_percent_too_many_is_found_in_a_million():
    """A sample-ratio mismatch that no eye would see."""
    rng = np.random.default_rng(7)
    observations = drawn(rng, 1_000_000, chances=[0.505, 0.495], given=[0.5, 0.5])
    assert check_draws(observations).p_value < 1e-9
    assert check_draws(only_chosen(observations)).p_value < 1e-9
    assert check_draws(drawn(rng, 1_000_000, given=[0.5, 0.5])).p_value > 0.01


def test_units_that_choose_their_arm_are_found_by_their_attributes():
    """The shares are right, but the old get arm a: only the balance shows it."""
    rng, n = np.random.default_rng(8), 2000
    old = rng.random(n) < 0.5
    arm = np.where(rng.random(n) < np.where(old, 0.6, 0.4), 0, 1)
    attributes = {
        "age": Attribute.of("age", np.where(old, 60.0, 30.0) + rng.normal(size=n)),
        "old": Attribute.of("old", old),
    }
    chances = np.full((n, 2), 0.5)
    observations = Observations(
        arms=("a", "b"), arm=arm, reward=np.zeros(n), probabilities=chances, attributes=attributes
    )
    assert check_draws(observations).p_value > 0.01
    by_age, by_group = check_balance(observations, "age"), check_balance(observations, "old")
    assert by_age.p_value < 1e-6 and by_group.p_value < 1e-6
    assert by_age.attribute == "age" and by_age.group is None and by_group.group in ("true", "false")
    mean = {arm_name: observations.attributes["age"].values[arm == i].mean() for i, arm_name in enumerate("ab")}
    assert by_age.observed == pytest.approx(mean[by_age.arm]) and by_age.expected == pytest.approx(45, abs=1)
    assert check_balance(only_chosen(observations), "age").p_value < 1e-6
    assert check_balance(only_chosen(observations), "old").p_value < 1e-6


def test_without_probabilities_or_without_chance_nothing_is_said():
    frame = {"arm": ["a", "b"] * 20, "reward": [1.0] * 40, "x": [1, 2] * 20}
    bare = Observations.from_frame(frame, attributes=["x"])
    assert check_draws(bare) is None and check_balance(bare, "x") is None
    fixed = Observations.from_frame(frame | {"probability": [1.0] * 40}, attributes=["x"])
    check = check_draws(fixed)
    assert check.n_drawn == 0 and check.p_value == 1.0
    with pytest.raises(eq.errors.InvalidInput, match="attribute must be one of x; got 'y'"):
        check_balance(bare, "y")


def test_arms_that_come_and_go_are_no_reason_for_doubt():
    experiment = eq.Experiment.create("memory:", "x", arms=["a", "b"], reward_weight=0.6, seed=11, floor=0.05)
    rng = np.random.default_rng(9)
    for number in range(1500):
        unit = experiment.ask(f"unit-{number}", {"age": int(rng.integers(20, 60))})
        experiment.tell(unit.unit, float(rng.random()))
        if number == 400:
            experiment.add_arm("c", floor=0.05)
        if number == 900:
            experiment.retire_arm("a")
    observations = experiment.store.read(lambda t: read_observations(t, experiment.number, "x", attributes=["age"]))
    for one in (observations, only_chosen(observations)):
        for check in (check_draws(one), check_balance(one, "age")):
            assert check.p_value > 0.05 and check.n_drawn > 1400
