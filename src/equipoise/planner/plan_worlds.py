"""Draw the truth of one simulated experiment from the guesses of a plan."""

from __future__ import annotations

import math
import zlib
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise import checks
from equipoise._types import FloatArray
from equipoise.planner.guesses import NINE_OF_TEN
from equipoise.planner.plan_parts import DAY
from equipoise.planner.planned_arms import Delay, PlannedArm
from equipoise.planner.worlds import BETA, EMPIRICAL, GAMMA, NORMAL, SHAPE_ROWS, UNLIMITED, YES_NO, World

if TYPE_CHECKING:
    from equipoise.planner.plan import Plan

_GUESS = int.from_bytes(b"guess", "big")
"""Purpose of a random number, as `kernels.random` has them."""
_NODES = 4096


def uniform(seed: int, replication: int, path: str) -> float:
    """Return the uniform number of one guess in one replication.

    Examples
    --------
    >>> round(uniform(1, 0, "people.per_day"), 6), round(uniform(1, 1, "people.per_day"), 6)
    (0.856451, 0.881475)
    """
    counter = [0, zlib.crc32(path.encode()), _GUESS, 0]
    words = np.random.Philox(key=[seed, replication], counter=counter)
    return float(words.random_raw() >> 11) * 2.0**-53


def make_world(plan: Plan, replication: int | None) -> tuple[World, dict[str, float]]:
    """Return the truth of one replication and the guesses with ranges that it drew; all as guessed for None."""
    if replication is not None:
        checks.whole_number("replication", replication, 0, 2**63 - 1)
    truth, drawn = {}, {}
    for path, guess in plan.guesses.items():
        is_drawn = replication is not None and not guess.is_sure
        truth[path] = guess.draw(uniform(plan.seed, replication or 0, path)) if is_drawn else guess.value
        if not guess.is_sure:
            drawn[path] = truth[path]
    return _world(plan, truth), drawn


def _world(plan: Plan, truth: dict[str, float]) -> World:
    rewards, n_arms = plan.rewards, len(plan.arms)
    kind, shape = np.empty(n_arms, np.int64), np.zeros((SHAPE_ROWS, n_arms))
    mean, std, above = np.empty(n_arms), np.empty(n_arms), np.empty(n_arms)
    pools: list[FloatArray] = []
    delay, spread, good, bad = np.zeros((4, n_arms))
    by_outcome = truth["rewards.missing_ratio"] != 1.0
    for i, arm in enumerate(plan.arms):
        kind[i], shape[:, i] = _shape(plan, arm, truth, sum(pool.size for pool in pools))
        if kind[i] == EMPIRICAL:
            pools.append(np.sort(np.array(arm.rewards)))
        mean[i], std[i], above[i] = _moments(plan, int(kind[i]), shape[:, i], pools[-1] if pools else None, by_outcome)
        delay[i], spread[i] = _delay(f"arms.{arm.name}" if arm.delay else "rewards", arm.delay or rewards.delay, truth)
        share = truth.get(f"arms.{arm.name}.missing", truth["rewards.missing"])
        chance = above[i] if rewards.direction == "maximise" else 1.0 - above[i]
        after = missing_by_outcome(share, truth["rewards.missing_ratio"], chance)
        if after[1] > 1.0:  # a range may lead beyond what is possible: then all bad outcomes are missing
            after = (max(0.0, (share - (1.0 - chance)) / chance), 1.0) if chance > 0 else (0.0, 1.0)
        good[i], bad[i] = after if rewards.direction == "maximise" else after[::-1]
    pace = truth.get("people.per_day")
    days = plan.days_at(pace)
    has_calendar = plan.people.has_calendar
    per_day = plan.people.expected(pace or 0.0, days) if has_calendar else np.array([float(plan.people.most)])
    low, high = plan.reward_range or (None, None)
    return World(
        kind=kind,
        shape=shape,
        pool=np.concatenate(pools) if pools else np.zeros(0),
        rounded_to=rewards.rounded_to or 0.0,
        lowest=-math.inf if low is None else low,
        highest=math.inf if high is None else high,
        mean=mean,
        std=std,
        delay=delay,
        delay_spread=spread,
        missing_after_good=good,
        missing_after_bad=bad,
        per_day=per_day,
        is_exact=plan.people.exact or not has_calendar,
        most_people=plan.most_people or UNLIMITED,
        batch_people=rewards.batch_people,
        batch_seconds=0.0 if math.isnan(rewards.batch_seconds) else DAY,
        batch_at=0.0 if math.isnan(rewards.batch_seconds) else rewards.batch_seconds,
        drift_per_second=plan.drift.per_week / (7 * DAY),
        step=plan.drift.step,
        step_at=_step_at(plan),
    )


def missing_by_outcome(share: float, ratio: float, good: float) -> tuple[float, float]:
    """Return the probabilities of a missing reward after a good and after a bad outcome.

    Parameters
    ----------
    share : float
        The share missing in all.
    ratio : float
        How many times likelier after a bad outcome.
    good : float
        The share of good outcomes.

    Examples
    --------
    >>> [round(one, 4) for one in missing_by_outcome(0.06, 3.0, 0.5)]
    [0.03, 0.09]
    """
    after_good = share / (good + ratio * (1.0 - good))
    return after_good, ratio * after_good


def _step_at(plan: Plan) -> float:
    on = plan.drift.step_on
    if on is None or isinstance(on, timedelta):
        return 0.0 if on is None else on.total_seconds()
    return float((on - plan.people.first_day).days) * DAY


def _delay(place: str, delay: Delay | None, truth: dict[str, float]) -> tuple[float, float]:
    if delay is None or delay.median.value == 0:
        return 0.0, 0.0
    median = truth[f"{place}.delay.median"]
    last = truth.get(f"{place}.delay.nine_of_ten", median)
    return median, math.log(max(last / median, 1.0)) / NINE_OF_TEN


def _shape(plan: Plan, arm: PlannedArm, truth: dict[str, float], first: int) -> tuple[int, Any]:
    """Return the kind of an arm's rewards, and the numbers that describe them."""
    if arm.rate is not None:
        return YES_NO, (truth[f"arms.{arm.name}.rate"], 0.0, 0.0, 0.0)
    mean, (low, high) = truth[f"arms.{arm.name}.mean"], plan.reward_range or (None, None)
    if arm.std is None:
        return EMPIRICAL, (first, len(arm.rewards), *_moved(np.array(arm.rewards), mean, low, high))
    std = truth[f"arms.{arm.name}.std"]
    if low is None and high is None:
        return NORMAL, (mean, std, 0.0, 0.0)
    if low is None or high is None:
        return GAMMA, ((mean / std) ** 2, std * std / mean, 0.0, 0.0)
    width = high - low
    share, variance = (mean - low) / width, (std / width) ** 2
    # A drawn spread may be more than a drawn mean near an end allows; then it is almost all that can be.
    strength = max(share * (1.0 - share) / variance - 1.0, 0.02)
    return BETA, (share * strength, (1.0 - share) * strength, low, high)


def _moved(rewards: FloatArray, mean: float, low: float | None, high: float | None) -> tuple[float, float]:
    """Return the factor and the shift that give rewards another mean, so that they stay in their range."""
    measured = float(rewards.mean())
    end = low if mean < measured else high
    if mean == measured:
        return 1.0, 0.0
    if end is None and low is not None and high is None:
        end = low  # stretched from the only end
    elif end is None and high is not None:
        end = high
    if end is None or measured == end:
        return 1.0, mean - measured
    factor = (mean - end) / (measured - end)
    return factor, end - factor * end


def _moments(
    plan: Plan, kind: int, shape: FloatArray, pool: FloatArray | None, by_outcome: bool
) -> tuple[float, float, float]:
    """Return mean and standard deviation of what counts of an arm's rewards, and the share of good ones.

    That share is computed only if rewards are missing by outcome.
    """
    cap, unit = plan.rewards.cap, plan.rewards.rounded_to
    if kind == YES_NO:
        rate = float(shape[0])
        return rate, math.sqrt(rate * (1.0 - rate)), rate
    if unit is None and cap is None and kind != EMPIRICAL and not by_outcome:
        return *_exact(kind, shape), 0.5
    values, weights = _quadrature(kind, shape, pool)
    mean = centre = float(values @ weights)
    if unit is not None:
        values = unit * np.round(values / unit)
    if cap is not None:
        values = np.minimum(values, cap)
    if unit is not None or cap is not None:
        mean = float(values @ weights)
    std = math.sqrt(max(float((values - mean) ** 2 @ weights), 0.0))
    if unit is None and cap is None and kind != EMPIRICAL:
        mean, std = _exact(kind, shape)
    return mean, std, float(weights[values > centre].sum())


def _exact(kind: int, shape: FloatArray) -> tuple[float, float]:
    a, b, low, high = shape.tolist()
    if kind == NORMAL:
        return a, b
    if kind == GAMMA:
        return a * b, math.sqrt(a) * b
    return low + (high - low) * a / (a + b), (high - low) * math.sqrt(a * b / (a + b + 1.0)) / (a + b)


def _quadrature(kind: int, shape: FloatArray, pool: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Return values and weights whose sums are expectations of the rewards, before rounding and capping.

    By the trapezoidal rule after a change of variable that makes the density smooth and fast to vanish: the logarithm
    for gamma, the logit for beta.
    """
    if kind == EMPIRICAL and pool is not None:
        return shape[2] * pool + shape[3], np.full(pool.size, 1.0 / pool.size)
    if kind == NORMAL:
        z = np.linspace(-9.0, 9.0, _NODES)
        weights = np.exp(-0.5 * z * z)
        return shape[0] + shape[1] * z, weights / weights.sum()
    a, b = float(shape[0]), float(shape[1])
    if kind == GAMMA:
        u = np.linspace(
            math.log(a) - 9.0 / math.sqrt(a) - 40.0 / a, math.log(a + 12.0 * math.sqrt(a) + 50.0), 8 * _NODES
        )
        log_density = a * u - np.exp(u)
        values = b * np.exp(u)
    else:
        t = np.linspace(-9.0 / math.sqrt(a) - 40.0 / a, 9.0 / math.sqrt(b) + 40.0 / b, 8 * _NODES) + math.log(a / b)
        log_share, log_rest = -np.logaddexp(0.0, -t), -np.logaddexp(0.0, t)
        log_density = a * log_share + b * log_rest
        values = shape[2] + (shape[3] - shape[2]) * np.exp(log_share)
    weights = np.exp(log_density - log_density.max())
    return values, weights / weights.sum()
