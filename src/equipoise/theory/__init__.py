"""Compute the theoretical guarantees: confidence radii, lemmas, and Theorem 1 (Sect. 4, App. A and B).

Rewards lie in an interval of length `reward_range` (the paper takes [0, 1]); every bound in the unit of the rewards
grows with it. The bounds are loose: they show what a guarantee depends on, not what to expect of an experiment. Where
the paper contradicts itself, `docs/deviations-from-the-paper.md` says which version is used here.
"""

from equipoise.theory.assumptions import LARGEST_FORCING, LARGEST_HORIZON
from equipoise.theory.confidence import (
    estimated_optimum_gap,
    mean_confidence_radius,
    std_confidence_radius,
    step_failure_probability,
    tradeoff_error,
    uniform_tradeoff_error,
)
from equipoise.theory.incompatibility import error_and_loss, least_error, least_total_loss
from equipoise.theory.lemmas import (
    allocation_distance,
    exploration_bound,
    exploration_end,
    least_pulls,
    tracking_error,
    value_gap,
)
from equipoise.theory.regret import STEP_8_CONSTANT, RegretBound, regret_bound, third_phase_start, third_phase_threshold

__all__ = [
    "LARGEST_FORCING",
    "LARGEST_HORIZON",
    "STEP_8_CONSTANT",
    "RegretBound",
    "allocation_distance",
    "error_and_loss",
    "estimated_optimum_gap",
    "exploration_bound",
    "exploration_end",
    "least_error",
    "least_pulls",
    "least_total_loss",
    "mean_confidence_radius",
    "regret_bound",
    "std_confidence_radius",
    "step_failure_probability",
    "third_phase_start",
    "third_phase_threshold",
    "tracking_error",
    "tradeoff_error",
    "uniform_tradeoff_error",
    "value_gap",
]
