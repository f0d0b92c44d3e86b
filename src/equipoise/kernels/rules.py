"""What the compiled choice needs to know of a policy: one record for all of them, read by name."""

from __future__ import annotations

from typing import NamedTuple

from equipoise.kernels.solver import WORK_ROWS as SOLVER_ROWS

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
) = range(11)

WORK_ROWS = SOLVER_ROWS + 2
"""Rows of scratch a choice needs: those of the solver, and the means and stds it is to solve for."""

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
    mixing: float = 0.0
    scale: float = 1.0
    failure_probability: float = 0.1
    std_bound: float = 1.0
    smallest_std: float = 0.0
    exploration: float = 0.0
    horizon: float = 1.0
    pooling: int = 0
    caution: float = 0.0
