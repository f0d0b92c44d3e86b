"""What is true in one simulated experiment, as plain arrays: rewards of arms, who comes when, delays, who is missing.

Numbers only, without numba, so that plans can import this module cheaply.
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
    """The truth of one simulated experiment. Arrays are per arm unless said; times are in seconds from the start.

    `planner.world.new_world` fills in what is not given.
    """

    kind: IntArray
    shape: FloatArray
    """(SHAPE_ROWS, arms)."""
    pool: FloatArray
    """The rewards of a pilot, those of one arm next to each other and sorted: then a person who does well under one arm
    does well under all."""
    rounded_to: float
    """Rewards are multiples of this; 0 for no rounding."""
    lowest: float
    """Rewards below this are this: the declared range, whose ends drift or a normal distribution may pass ..."""
    highest: float
    """... and rewards above this are this."""
    mean: FloatArray
    """The true mean without drift, of which gains are computed."""
    std: FloatArray
    delay: FloatArray
    """Median time until a reward; 0 at once, inf never."""
    delay_spread: FloatArray
    """Standard deviation of the logarithm of the delay; 0 if all take the same time."""
    missing_after_good: FloatArray
    """Probability that no reward comes after one above the mean (yes, for yes/no rewards) ..."""
    missing_after_bad: FloatArray
    """... and after any other."""
    per_day: FloatArray
    """(days,) How many people come on each day, on average; enrolment ends with the last day."""
    is_exact: bool
    """Whether exactly so many come, evenly spread, instead of a Poisson number."""
    most_people: int
    """Nobody comes after this many."""
    batch_people: int
    """If positive, rewards become known just before every so many-th person comes, and after enrolment as they
    come ..."""
    batch_seconds: float
    """... or if positive, once in this time ..."""
    batch_at: float
    """... first at this time; otherwise as they come."""
    drift_per_second: float
    """How fast the level of all arms rises."""
    step: float
    """By how much the level of all arms jumps ..."""
    step_at: float
    """... at this time."""
