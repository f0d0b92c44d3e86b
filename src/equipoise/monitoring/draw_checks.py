"""Checks of how people were assigned: by the probabilities on record, and with the shares that the policy wanted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from equipoise._types import FloatArray, IntArray
from equipoise.monitoring.budget import critical_evidence, critical_z
from equipoise.monitoring.check_names import DRAWS, TRACKING
from equipoise.monitoring.draws import draw_evidence
from equipoise.monitoring.health_records import NOT_ENOUGH, Check
from equipoise.monitoring.proportions import signed_root
from equipoise.monitoring.sums import DAY
from equipoise.monitoring.watched import LEVELS, Watched, percent

FEWEST_DECISIONS, FEWEST_TRACKED = 1000, 200
EXPLORING_DAYS, LASTING_DAYS = 7, 3
"""Days in which a policy may still explore, and at the ends of how many days a gap must be there."""

_TRACKING_ADVICE = (
    "Late rewards, floors, warm-up or a change of arms keep shares from where the policy steers. If none of them "
    "explains it, verify the experiment."
)


def draws_level(evidence: FloatArray, decisions: FloatArray, inverse: FloatArray) -> tuple[IntArray, NDArray[np.bool_]]:
    """Return the level of each arm, and whether there are enough decisions: arrays (..., K)."""
    enough = decisions >= FEWEST_DECISIONS
    evident = enough & (evidence > critical_evidence(evidence.shape[-1]))
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.abs(inverse / decisions - 1.0)
    return np.where(evident, 1 + (off >= 0.01), 0), enough


def tracking_level(
    given: FloatArray, wanted: FloatArray, variance: FloatArray, so_far: FloatArray, day: int
) -> IntArray:
    """Return the level of the gap between given and wanted shares: arrays (..., K).

    A policy that steers the shares of all people towards a target gives an arm more than its target when that rises,
    until it has caught up; one that draws by the target leaves the shares of all people behind. So a gap counts only if
    the arm got too few or too many people in the last days, and of all people too, on each of some days.

    Parameters
    ----------
    given, wanted, variance : array (..., K)
        Of the last 7 days: people who got the arm, how many were wanted, and the variance of `given` if every one was
        drawn with the wanted share.
    so_far : array (..., days, K)
        Share of all people who had the arm at the end of each of the last days, less the share wanted then; NaN where
        that is not known.
    day : int
        Whole days so far. In the first week a policy still explores.
    """
    n = given.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        recent = (given - wanted) / n
    z = signed_root(given, wanted, n, variance)
    lasting = np.nan_to_num(np.abs(so_far)).min(axis=-2) * (np.sign(so_far) == np.sign(recent)[..., None, :]).all(
        axis=-2
    )
    gap = np.minimum(np.abs(recent), lasting)
    evident = (day >= EXPLORING_DAYS) & (n >= FEWEST_TRACKED) & (np.abs(z) > critical_z(day, given.shape[-1]))
    return np.where(evident, (gap > 0.05).astype(np.int64) + (gap > 0.10), 0)


def check_draws(watched: Watched) -> Iterator[Check]:
    """Yield, for each arm, whether it was given as often as the probabilities on record say."""
    sums = watched.sums
    assert sums is not None  # noqa: S101
    rows = sums.in_play
    decisions = (sums.assigned.sum(axis=1, keepdims=True) * rows).sum(axis=0)
    inverse, squares = ((one * rows).sum(axis=0) for one in (sums.inverses, sums.inverse_squares))
    evidence = draw_evidence(decisions, inverse, squares, watched.floors)
    level, enough = draws_level(evidence, decisions, inverse)
    for arm, name in enumerate(watched.arms):
        if not enough[arm]:
            yield Check(
                DRAWS,
                name,
                NOT_ENOUGH,
                f"{name!r} has been in play for {decisions[arm]:,.0f} people; the check needs {FEWEST_DECISIONS:,}.",
            )
            continue
        ratio = float(inverse[arm] / decisions[arm])
        yield Check(
            DRAWS,
            name,
            LEVELS[int(level[arm])],
            f"{name!r} was given {ratio:.2f} times as often as the probabilities on record say."
            if level[arm] or watched.floors[arm] > 0
            else f"{name!r} was not given more often than the probabilities on record say. Too few would not show "
            "without a share kept for it; verify is exact.",
            ratio,
            1.0,
            "Chance is not as logged: verify the experiment, which recomputes every decision." if level[arm] else "",
        )


def check_tracking(watched: Watched) -> Iterator[Check]:
    """Yield, for each arm, whether it got the share that the policy wanted in the last 7 days."""
    sums, wanted = watched.sums, watched.wanted
    assert sums is not None  # noqa: S101
    days = 0 if wanted is None else min(watched.day, wanted.shape[0])
    begin = max(days - 7, 0)
    if wanted is None or days == 0:
        yield Check(TRACKING, None, NOT_ENOUGH, "What the policy wanted is not known yet.")
        return
    given = sums.by_day(sums.assigned, min(days * DAY, sums.n_hours))[begin:days]
    shares = wanted[begin : begin + given.shape[0]]
    known = ~np.any(np.isnan(shares), axis=1)
    people = np.asarray(given.sum(axis=1) * known)[:, None]
    got = (given * known[:, None]).sum(axis=0)
    if got.sum() < FEWEST_TRACKED:
        yield Check(TRACKING, None, NOT_ENOUGH, f"Fewer than {FEWEST_TRACKED} people in the last 7 days.")
        return
    asked = np.nansum(people * shares, axis=0)
    variance = np.nansum(people * shares * (1 - shares), axis=0)
    every = sums.by_day(sums.assigned, min(days * DAY, sums.n_hours)).cumsum(axis=0)[-LASTING_DAYS:]
    with np.errstate(divide="ignore", invalid="ignore"):
        so_far = every / every.sum(axis=1, keepdims=True) - wanted[days - every.shape[0] : days]
    level = tracking_level(got, asked, variance, so_far, watched.day)
    for arm, name in enumerate(watched.arms):
        share, goal = got.item(arm) / got.sum(), asked.item(arm) / got.sum()
        yield Check(
            TRACKING,
            name,
            LEVELS[int(level[arm])],
            f"{name!r} was given to {percent(share)} of the people of the last 7 days; wanted were {percent(goal)}.",
            share,
            goal,
            _TRACKING_ADVICE if level[arm] else "",
        )
