"""Checks of what the rewards are: whether they changed of late, and whether one of them moves a mean."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from equipoise._types import FloatArray, IntArray
from equipoise.monitoring.check_names import REWARD_JUMP, UNUSUAL_REWARD
from equipoise.monitoring.health_records import NOT_ENOUGH, OK, Check
from equipoise.monitoring.jumps import Jump, Moments, influence, mean_jump, variance_jump
from equipoise.monitoring.sums import DAY
from equipoise.monitoring.watched import LEVELS, Watched

CRITICAL_Z = 5.5
LEAST_RATIO, LEAST_SHIFT = 1.5, 0.3
"""A problem from this ratio of standard deviations, or this shift of the mean in standard deviations of before."""
FEWEST = 50
PROBLEM_INFLUENCE, NOTE_INFLUENCE, FEWEST_TO_MOVE, LEAST_LEAD = 0.5, 0.25, 30, 8.0

_RECENT = 7 * DAY

_SPREAD_ADVICE = (
    "A unit of measurement may have changed, a client may report something else, or other people come. If rewards are "
    "wrong, correct them."
)
_SHIFT_ADVICE = (
    "Something changed for everybody, or for this arm: look at the other arms, and at what happened then. If all "
    "changed, the policy's option drift compares arms over the same people."
)


_CAP_ADVICE = "If it is, a cap on rewards keeps single ones from deciding, in a new experiment."


def jump_level(
    mean: Jump, spread: Jump, recent: Moments, before: Moments
) -> tuple[IntArray, IntArray, NDArray[np.bool_]]:
    """Return the levels of a change of the mean and of the spread, and whether there are enough: arrays (..., K)."""
    enough = (recent.n >= FEWEST) & (before.n >= FEWEST)
    mean_level = np.where(enough & (np.abs(mean.z) > CRITICAL_Z) & (np.abs(mean.size) >= LEAST_SHIFT), 2, 0)
    ratio = np.maximum(spread.size, 1.0 / np.maximum(spread.size, 1e-300))
    spread_level = np.where(enough & (np.abs(spread.z) > CRITICAL_Z) & (ratio >= LEAST_RATIO), 2, 0)
    return mean_level, spread_level, enough


def influence_level(moved: FloatArray, count: FloatArray, lead: FloatArray) -> IntArray:
    """Return the level of rewards by how far they move a mean, in half-widths.

    Where rewards have a long tail, the largest always moves the mean. It matters only if it is many times as far out as
    the next one, as an error of entry or of units is: `lead` is that ratio.
    """
    evident = (count >= FEWEST_TO_MOVE) & (lead >= LEAST_LEAD)
    return np.where(evident, (moved > NOTE_INFLUENCE).astype(np.int64) + (moved > PROBLEM_INFLUENCE), 0)


def check_jumps(watched: Watched) -> Iterator[Check]:
    """Yield, for each arm, whether its rewards of the last 7 days are like those before."""
    sums = watched.sums
    assert sums is not None  # noqa: S101
    split = watched.decided_at - _RECENT
    recent, before = sums.moments(split, watched.decided_at), sums.moments(0, split)
    mean, spread = mean_jump(recent, before), variance_jump(recent, before, sums.kurtosis)
    mean_level, spread_level, enough = jump_level(mean, spread, recent, before)
    for arm, name in enumerate(watched.arms):
        if not enough[arm]:
            yield Check(
                REWARD_JUMP, name, NOT_ENOUGH, f"Fewer than {FEWEST} rewards of {name!r} in the last 7 days, or before."
            )
        elif spread_level[arm]:
            ratio = spread.size.item(arm)
            how = f"{ratio:.1f} times as much" if ratio >= 1 else f"{1 / ratio:.1f} times less"
            yield Check(
                REWARD_JUMP,
                name,
                LEVELS[int(spread_level[arm])],
                f"Rewards of {name!r} vary {how} in the last 7 days than before.",
                ratio,
                1.0,
                _SPREAD_ADVICE,
                sums.begin(split),
            )
        else:
            shift = mean.size.item(arm)
            changed = mean_level.item(arm)
            yield Check(
                REWARD_JUMP,
                name,
                LEVELS[changed],
                f"Rewards of {name!r} are {abs(shift):.1f} standard deviations {'higher' if shift > 0 else 'lower'} "
                "in the last 7 days than before."
                if changed
                else f"Rewards of {name!r} in the last 7 days are like those before.",
                shift,
                0.0,
                _SHIFT_ADVICE if changed else "",
                sums.begin(split) if changed else None,
            )


def check_unusual(watched: Watched) -> Iterator[Check]:
    """Yield, for each arm, whether one reward moves its mean by a good part of its half-width."""
    for arm, name in enumerate(watched.arms):
        count = float(watched.rewarded[arm])
        width, std, mean = (float(one[arm]) for one in (watched.half_width, watched.std, watched.mean))
        if count < FEWEST_TO_MOVE or not np.isfinite(width):
            yield Check(UNUSUAL_REWARD, name, NOT_ENOUGH, f"Fewer than {FEWEST_TO_MOVE} rewards of {name!r}.")
            continue
        around = Moments(*(np.array(one) for one in (count, 0.0, (count - 1.0) * std * std)))
        moved = {
            one: float(influence(around, np.array(one.reward - mean), np.array(width)))
            for one in watched.extremes
            if one.arm == arm
        }
        if not moved:
            yield Check(UNUSUAL_REWARD, name, OK, f"No reward of {name!r} moves its mean by itself.")
            continue
        quiet = f"No reward of {name!r} moves its mean by more than a quarter of its plus or minus."
        worst = max(moved, key=lambda one: moved[one])
        next_out = sorted((abs(one.reward - mean) for one in moved), reverse=True)[1:2]
        lead = abs(worst.reward - mean) / next_out[0] if next_out and next_out[0] > 0 else np.inf
        level = int(influence_level(np.array(moved[worst]), np.array(count), np.array(lead)))
        yield Check(
            UNUSUAL_REWARD,
            name,
            LEVELS[level],
            _unusual(name, worst.reward, mean, moved[worst]) if level else quiet,
            moved[worst],
            0.0,
            f"Is {worst.reward:g} right? Correct it if not (event {worst.event}). {_CAP_ADVICE}" if level else "",
            None,
            worst.event if level else None,
        )


def _unusual(name: str, reward: float, mean: float, moved: float) -> str:
    return f"One reward of {name!r}, {reward:g}, moves its mean of {mean:.4g} by {moved:.2g} times its plus or minus."
