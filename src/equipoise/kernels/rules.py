"""Describe a policy to the kernels: one record for all policies, read by field name, and the codes it uses.

Numbers only, without numba, so that policies can import this module cheaply.
"""

from __future__ import annotations

from typing import NamedTuple

from equipoise.kernels import VERSION

(
    UNIFORM,
    FIXED,
    BALANCE,
    VARIANCE_SHARES,
    CONFIDENCE_BALANCE,
    UCB_EXPLORE,
    UCB,
    EPSILON_GREEDY,
    THOMPSON_SAMPLING,
    THOMPSON_BALANCE,
    POOLED_BALANCE,
    POST_DIFF,
    STATIC_RATE,
    NEYMAN_RATE,
) = range(14)
"""Kinds of rules."""

DIFFERENCE, RATIO, SAMPLE, WINDOWED, MARGINAL = range(5)
"""Ways to choose a pull: four follow a target; the last pulls what raises the trade-off most and needs no target."""

TRACKINGS = {"difference": DIFFERENCE, "ratio": RATIO, "sample": SAMPLE, "windowed": WINDOWED, "marginal": MARGINAL}
"""The same codes, by the names that policies use."""

STATED_WEIGHT, AVERAGE, EVERY_ARM, BEST_ARM = range(4)
"""What sets the dial: a stated weight, or the share of the information to keep about one of three things."""

CRITERIA = {"average": AVERAGE, "every-arm": EVERY_ARM, "best-arm": BEST_ARM}
"""The same codes, by the names that policies use."""

SMALLEST_DIFFERENCE = 0.05
"""For `BEST_ARM`: differences of means below this share of the typical spread count as this share, unless stated."""

PLAIN, WEIGHTED, DETECTED = range(3)
"""What decisions read of the arms: plain estimates; estimates weighted by 1 / probability; these if rewards drift."""

DRIFTS = {"none": PLAIN, "declared": WEIGHTED, "detected": DETECTED}
"""The same codes, by what a policy is told of drift."""

FLOOR, IMPORTANCE, ALLOCATION = 0, 1, 2
PER_ARM_ROWS = 3
"""Rows of a policy's numbers per arm."""


class Rule(NamedTuple):
    """A policy as plain numbers. Fields that a kind does not use keep their defaults."""

    kind: int
    tracking: int = 0
    rewards_needed: int = 2
    draws: int = 1
    forcing: float = 0.0
    reward_weight: float = 0.0
    power: float = 0.5
    window: float = 1.0
    window_growth: float = 0.0
    """At step t the window is at least this times t; 0 for the constant window before version 4 of the kernels."""
    mixing: float = 0.0
    scale: float = 1.0
    """Factor of confidence radii; in `POST_DIFF`, which shares the field, the difference that counts as small."""
    failure_probability: float = 0.1
    std_bound: float = 1.0
    smallest_std: float = 0.0
    exploration: float = 0.0
    """Share of random pulls in `EPSILON_GREEDY`; in `POOLED_BALANCE`, which shares the field, the curiosity."""
    horizon: float = 1.0
    pooling: int = 0
    caution: float = 0.0
    criterion: int = STATED_WEIGHT
    information_kept: float = 1.0
    smallest_difference: float = 0.0
    """For `BEST_ARM`: differences of means below this count as this; 0 for the default."""
    floor_decay: float = 0.0
    """Floors at step t are the stated ones times t^-floor_decay."""
    prior_weight: float = 0.0
    """For `POOLED_BALANCE`: how many arms its prior is worth; 0 for no prior."""
    prior_means: float = 0.0
    """Variance between means that the prior expects, in units of the typical variance."""
    prior_spreads: float = 0.0
    """Variance between the logarithms of variances that the prior expects."""
    version: int = VERSION
    """Version of the kernels that an experiment started with: its decisions replay by the rules of that version."""
