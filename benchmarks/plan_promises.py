"""Whether forecasts of plans keep their promises: dates, planned ranges, coverage, and the formulas.

    python benchmarks/plan_promises.py [--smoke] [--fresh 1000] [--runs 200] [--workers 2]

Dates: of fresh simulated experiments, with truths drawn from the same guesses by another seed, how many meet the goal
by the day that the forecast gives for 80 %. Ranges: experiments are made from the forecast and run as planned, with a
clock; how many of their planned figures lie inside their 8-in-10 range, half-way and in the end. Coverage: how often
all intervals hold the truth at the stop. Formulas: days by formula over simulated days, equal shares.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
from _timing import machine, show, verdict

import equipoise as eq
from equipoise.planner.forecast import Forecast
from equipoise.planner.live_play import Clock, LivePlay
from equipoise.planner.planned_experiment import create_experiment
from equipoise.planner.population import Population
from equipoise.planner.question import SECONDS_A_DAY
from equipoise.planner.refinement import simulate
from equipoise.planner.trials import play
from equipoise.planner.way_forecast import Readings

WINDOW = eq.DropUnit(window_seconds=7 * 86_400, hold=True)
SEASON: dict[str, Any] = {"start": "2027-03-01", "until": "2027-05-30"}
LOWEST_IN_TIME, HIGHEST_IN_TIME = 0.77, 0.83
LOWEST_INSIDE, HIGHEST_INSIDE = 0.75, 0.85
MOST_OFF = 0.02

PLANS = {
    "three rates, shares of information": eq.Plan(
        arms={"plain": "20% to 40%", "call": "30% to 50%", "prize": "40% to 60%"},
        people=eq.People(per_day="60 to 80", **SEASON),
        rewards=eq.Rewards(delay=("8h", "1 day"), missing="1% to 3%", rule=WINDOW),
        goals=0.1,
        ways={"information_kept": [0.9, 0.7]},
    ),
    "five rates, weights, floor and control": eq.Plan(
        arms={"a": "25% to 35%", "b": "28% to 38%", "c": "37% to 47%", "d": "45% to 55%", "e": "31% to 41%"},
        people=eq.People(per_day="80 to 110", **SEASON),
        rewards=eq.Rewards(delay="8h", missing="1%", rule=eq.DropUnit(window_seconds=2 * 86_400)),
        control="a",
        goals=0.1,
        ways={"weights": [0.5, 0.8], "floor": 0.02, "control_share": 0.1},
    ),
    "scores, late, a range declared": eq.Plan(
        arms={"old": {"mean": "52 to 58", "std": "14 to 18"}, "new": {"mean": "55 to 65", "std": "14 to 18"}},
        people=eq.People(per_day="20 to 30", **SEASON),
        rewards=eq.Rewards(range=(0, 100), delay=("2 days", "5 days"), rule=eq.DropUnit(window_seconds=30 * 86_400)),
        goals=4,
        ways={"information_kept": [0.9, 0.7]},
    ),
    "the best of four, to within 3 points": eq.Plan(
        arms={"a": "8% to 12%", "b": "9% to 13%", "c": "10% to 14%", "d": "12% to 20%"},
        people=eq.People(per_day="80 to 110", **SEASON),
        goals={"margin": 0.03},
        ways={"information_kept": [0.9, 0.7]},
    ),
    "amounts, skewed, asymptotic intervals": eq.Plan(
        arms={"a": {"mean": "18 to 22", "std": "18 to 22"}, "b": {"mean": "20 to 26", "std": "20 to 26"}},
        people=eq.People(per_day="60 to 80", **SEASON),
        rewards=eq.Rewards(range=(0, None)),
        goals=2.5,
        ways={"information_kept": [0.9, 0.7]},
    ),
}
RUN = eq.Plan(
    arms={"plain": "30%", "prize": "40% to 60%", "letter": "35% to 45%"},
    people=eq.People(per_day=60, days=12),
    rewards=eq.Rewards(delay=("4h", "1 day"), missing="2%", rule=eq.DropUnit(window_seconds=7 * 86_400)),
    control="plain",
    goals=0.2,
    ways={"weights": [0.9]},
)


def dates(name: str, plan: eq.Plan, n: int, n_fresh: int, workers: int | None) -> Iterator[tuple[list[str], float]]:
    """Yield a row for each way, and the share of fresh experiments that end by the day given for 80 %."""
    began = time.process_time()
    found = simulate(plan, replications=n, workers=workers)
    other = dataclasses.replace(plan, seed=plan.seed + 1_000)
    paths = play(
        [other.world(replication)[0] for replication in range(n_fresh)],
        [other.settings(way) for way in other.ways],
        seed=other.seed,
        look_seconds=other.look_seconds(),
        read=[] if plan.goals.margin is None else ["n_may_be_best", "most_lost"],
        workers=workers,
    )
    readings = Readings(paths, found.question)
    spent = time.process_time() - began
    for k, way in enumerate(found.ways.values()):
        ended = float((readings.goal.seconds[k] / SECONDS_A_DAY <= way.days_for_sure).mean())
        known = f"{100 * ended:.1f} ({100 * np.sqrt(ended * (1 - ended) / n_fresh):.1f})"
        if not np.isfinite(way.days_for_sure):
            known, ended = "never", np.nan
        held = f"{100 * way.coverage.value:.1f} ({100 * way.coverage.error:.1f})"
        yield [f"{name}: {way.name}", f"{way.days_for_sure:.0f}", known, held, f"{spent:.0f} s"], ended


def insides(forecast: Forecast, n_runs: int) -> Iterator[tuple[list[bool], list[bool]]]:
    """Yield which planned figures of an experiment that goes as planned are inside, in the middle and in the end."""
    for run in range(n_runs):
        replication = 20_000 + run
        people = Population(RUN.world(replication)[0], seed=99, replication=replication)
        clock = Clock(datetime(2027, 3, 1, tzinfo=UTC))
        store = eq.open_store("memory:", clock=clock)
        made = create_experiment(forecast, store, "flu", way="weight 0.9", seed=people.experiment_seed)
        live, found = LivePlay(made, clock, people), []
        for until in (people.end // 2, people.end):
            live.play_until(until)
            found.append([one.inside for one in made.fidelity().figures if one.inside is not None])
        yield found[0], found[1]


def formula_ratios(workers: int | None, replications: int) -> Iterator[tuple[str, float]]:
    """Yield days by formula over simulated days of equal shares, everything as guessed."""
    for name, plan in PLANS.items():
        if plan.goals.margin is not None:  # a decision is a matter of luck, which formulas do not know
            continue
        people = dataclasses.replace(plan.people, per_day=plan.people.per_day.value, exact=True)
        arms = [
            dataclasses.replace(
                arm,
                **{key: getattr(arm, key).value for key in ("rate", "mean", "std") if getattr(arm, key) is not None},
            )
            for arm in plan.arms
        ]
        sure = dataclasses.replace(
            plan, arms=arms, people=people, rewards=dataclasses.replace(plan.rewards, missing=0, delay=None)
        )
        simulated = simulate(sure, replications=replications, workers=workers).equal_shares.days.median
        yield name, sure.formulas().equal_shares.days.median / simulated


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--fresh", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--workers", type=int)
    given = parser.parse_args()
    n_fresh, n_runs = (8, 2) if given.smoke else (given.fresh, given.runs)
    rows, ended = [], []
    for name, plan in PLANS.items():
        for row, share in dates(name, plan, n_fresh, n_fresh, given.workers):
            rows.append(row)
            ended.append(share)
    columns = ["plan: way", "day for 80 %", "end by then, %", "intervals hold, %", "processor"]
    show(f"Fresh experiments that meet the goal by the day given for 80 % of them, {n_fresh:,} each", columns, rows)
    known = np.array([share for share in ended if np.isfinite(share)])
    print(f"from {100 * known.min():.1f} to {100 * known.max():.1f} %, {100 * known.mean():.1f} % on average")
    ratios = dict(formula_ratios(given.workers, 4 if given.smoke else 200))
    print("days by formula over simulated days:", ", ".join(f"{name} {one:.3f}" for name, one in ratios.items()))
    forecast = simulate(RUN, replications=4 if given.smoke else 400, workers=given.workers)
    middle, end = (np.concatenate(some) for some in zip(*insides(forecast, n_runs), strict=True))
    shares = [100 * float(np.mean(one)) for one in (middle, end)]
    print(f"planned figures inside their 8-in-10 range, {n_runs} experiments run as planned: {shares[0]:.1f} % of")
    print(f"{middle.size:,} half-way, {shares[1]:.1f} % of {end.size:,} in the end. Measured on {machine()}")
    verdict("% that end by the day for 80 %, the fewest", 100 * known.min(), 100 * LOWEST_IN_TIME)
    verdict("% that end by the day for 80 %, the most", 100 * known.max(), 100 * HIGHEST_IN_TIME, at_most=True)
    verdict("days by formula, the farthest off", max(abs(1 - one) for one in ratios.values()), MOST_OFF, at_most=True)
    verdict("% of figures inside in the end", shares[1], 100 * LOWEST_INSIDE)
    verdict("% of figures inside in the end", shares[1], 100 * HIGHEST_INSIDE, at_most=True)


if __name__ == "__main__":
    main()
