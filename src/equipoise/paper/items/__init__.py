"""Every item of the reproduction, in the order of the report."""

from equipoise.paper.findings import Item
from equipoise.paper.items import (
    educational_table,
    naive_ucb_failure,
    optimal_allocations,
    outlook,
    real_trials,
    regret_over_time,
    surrogate_derivation,
    tracking,
)

ITEMS: tuple[Item, ...] = (
    optimal_allocations.FIG1,
    optimal_allocations.FIG4,
    regret_over_time.FIG3_LEFT,
    tracking.FIG3_CENTRE,
    regret_over_time.FIG3_RIGHT,
    educational_table.ITEM,
    surrogate_derivation.ITEM,
    optimal_allocations.TABLE1,
    naive_ucb_failure.ITEM,
    tracking.FIG8,
    outlook.ITEM,
    real_trials.EFFORT,
    real_trials.HEALTH,
)
