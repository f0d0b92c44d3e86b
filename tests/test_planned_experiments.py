"""Experiments that are made from a plan: as it says, and compared with it later."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

import equipoise as eq
from equipoise.errors import InvalidInput, UnknownName
from equipoise.planner.formulas import forecast_by_formula
from equipoise.planner.live_play import Clock, LivePlay
from equipoise.planner.planned_experiment import MOST_DAYS, create_experiment, creation_settings, planned_bands
from equipoise.planner.population import Population
from equipoise.planner.refinement import simulate

PLAN = eq.Plan(
    title="flu",
    arms={"plain": "30%", "prize": eq.Guess(0.5, 0.4, 0.6), "letter": "35% to 45%"},
    people=eq.People(per_day=60, days=12),
    rewards=eq.Rewards(delay=("4h", "1 day"), missing="2%", rule=eq.DropUnit(window_seconds=604_800)),
    control="plain",
    goals=eq.Goals(precision=0.2),
    ways={"weights": [0.9]},
)


@pytest.fixture(scope="module")
def forecast():
    return simulate(PLAN, replications=80)


def in_memory(clock=None):
    return eq.open_store("memory:", clock=clock or Clock())


def test_the_experiment_is_the_one_that_was_planned(forecast):
    made = create_experiment(forecast, in_memory(), "flu", way="weight 0.9", seed=3, metadata={"class": "4b"})
    found, settings = made.configuration, PLAN.settings("weight 0.9")
    assert (found.policy, found.missing, found.control) == (settings["policy"], settings["missing"], "plain")
    assert (found.seed, found.reward_range, list(found.stopping)) == (3, (0, 1), settings["stopping"])
    assert [arm.arm for arm in made.status().arms] == ["plain", "prize", "letter"]
    kept = found.metadata
    assert kept["class"] == "4b"
    assert (kept["plan"]["way"], kept["plan"]["digest"]) == ("weight 0.9", PLAN.digest)
    assert eq.Plan.from_dict(kept["plan"]["inputs"]) == PLAN


def test_bands_are_those_of_the_simulated_experiments(forecast):
    kept = planned_bands(forecast, "weight 0.9")
    paths, way = forecast.paths, forecast.question.ways.index("weight 0.9")
    assert kept["days"][0] == 0
    assert len(kept["days"]) <= MOST_DAYS + 1
    last = int(np.flatnonzero(np.isfinite(paths.look_seconds))[-1])
    assert kept["days"][-1] == pytest.approx(paths.look_seconds[last] / 86_400, rel=1e-4)
    bands = {(band["figure"], band.get("arm")): band for band in kept["bands"]}
    people = paths.assigned[way, :, last].sum(axis=-1)
    share = paths.assigned[way, :, last, 1] / people
    missing = paths.missing[way, :, last].sum(axis=-1) / people
    for place, values in ((("people", None), people), (("share of arm", "prize"), share), (("missing", None), missing)):
        low, middle, high = (bands[place][end][-1] for end in ("low", "middle", "high"))
        assert low <= middle <= high
        inside = (values >= low * (1 - 1e-4)) & (values <= high * (1 + 1e-4))
        assert 0.75 <= inside.mean() <= 1
    assert bands["people", None]["low"][0] == 0
    assert bands["mean of arm", "plain"]["low"][0] is None


def test_without_a_way_the_recommended_one_is_taken_if_there_is_one(forecast):
    from equipoise.planner.recommendation import chosen_way

    recommended = chosen_way(forecast)
    assert recommended is not None
    assert creation_settings(forecast, None)[0] == recommended.name
    hopeless = simulate(
        eq.Plan(arms={"a": "30%", "b": "50%"}, people=200, goals=eq.Goals(precision=0.02)), replications=5
    )
    with pytest.raises(InvalidInput, match="no way meets the goal"):
        creation_settings(hopeless, None)


def test_what_cannot_be_made_is_said(forecast):
    with pytest.raises(UnknownName, match=r"way must be one of 'equal shares', 'weight 0.9'; got 'fast'"):
        create_experiment(forecast, in_memory(), "flu", way="fast")
    with pytest.raises(InvalidInput, match="from a forecast of simulations; this one is by formula"):
        create_experiment(forecast_by_formula(PLAN), in_memory(), "flu", way="equal shares")


def played(forecast, replication):
    """Return the fidelity of an experiment that goes as planned, in the end."""
    people = Population(PLAN.world(replication)[0], seed=99, replication=replication)
    clock = Clock(datetime(2027, 3, 1, tzinfo=UTC))
    made = create_experiment(forecast, in_memory(clock), "flu", way="weight 0.9", seed=people.experiment_seed)
    live = LivePlay(made, clock, people)
    live.play_until(people.end)
    return made.fidelity()


def test_planned_figures_lie_in_their_bands_in_8_of_10_experiments_that_go_as_planned(forecast):
    inside = [one.inside for r in range(12) for one in played(forecast, 10_000 + r).figures if one.inside is not None]
    assert len(inside) >= 100
    # Figures of one experiment depend on each other: its 12 figures count as three.
    error = np.sqrt(0.8 * 0.2 / (12 * 3))
    assert abs(np.mean(inside) - 0.8) <= 3 * error


@pytest.mark.endurance
def test_planned_figures_lie_in_their_bands_in_8_of_10_of_200_experiments():
    many = simulate(PLAN, replications=400)
    inside = [one.inside for r in range(200) for one in played(many, 20_000 + r).figures if one.inside is not None]
    assert 0.75 <= np.mean(inside) <= 0.85
