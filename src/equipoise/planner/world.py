"""What is true in one simulated experiment: the rewards of arms, who comes when, how long rewards take, who is missing.

A plan has guesses; each simulated experiment draws a world from them. A world is plain arrays that compiled code reads.
"""

from __future__ import annotations

from typing import NamedTuple

from equipoise._types import FloatArray, IntArray

YES_NO, NORMAL, GAMMA, BETA, EMPIRICAL = range(5)
"""Kinds of rewards: 1 with some probability, or else 0; normal; never negative; within a range; those of a pilot."""

SHAPE_ROWS = 4
"""Numbers that describe an arm's rewards: the probability; mean and std; gamma's shape and scale; beta's two parameters
and both ends; or the first reward in the pool, their number, a factor and a shift."""


class World(NamedTuple):
    """The truth of one simulated experiment. Arrays are per arm unless said; times are in seconds from the start."""

    kind: IntArray
    shape: FloatArray
    """(SHAPE_ROWS, arms)."""
    pool: FloatArray
    """The rewards of a pilot, those of one arm next to each other."""
    rounded_to: float
    """Rewards are multiples of this; 0 for no rounding."""
    mean: FloatArray
    """The true mean without drift, of which gains are computed."""
    std: FloatArray
    delay: FloatArray
    """Median time until a reward; 0 at once, inf never."""
    delay_spread: FloatArray
    """Standard deviation of the logarithm of the delay; 0 if all take the same time."""
    missing_after_good: FloatArray
    """Probability that no reward comes after an outcome above the mean (yes, for yes/no rewards) ..."""
    missing_after_bad: FloatArray
    """... and after one below it."""
    per_day: FloatArray
    """(days,) How many people come on each day, on average; enrolment ends with the last day."""
    is_exact: bool
    """Whether exactly so many come, evenly spread, instead of a Poisson number."""
    most_people: int
    """Nobody is assigned after this many."""
    drift_per_second: float
    """How fast the level of all arms rises."""
    step: float
    """By how much the level of all arms jumps ..."""
    step_at: float
    """... at this time."""
