"""Every item of the reproduction, in the order of the report; each module computes and draws one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.paper.items import (
    educational_table,
    effort,
    health,
    naive_ucb_failure,
    objective_surface,
    optimal_allocations,
    outlook,
    pareto_over_time,
    regret_over_time,
    surrogate_derivation,
    tracking_ablation,
    tracking_over_time,
)

if TYPE_CHECKING:
    from equipoise.paper.item import Item

ITEMS: tuple[Item, ...] = (
    objective_surface.ITEM,
    optimal_allocations.FIVE_ARMS_ITEM,
    regret_over_time.ITEM,
    tracking_over_time.ITEM,
    pareto_over_time.ITEM,
    educational_table.ITEM,
    surrogate_derivation.ITEM,
    optimal_allocations.TWO_ARMS_ITEM,
    naive_ucb_failure.ITEM,
    tracking_ablation.ITEM,
    outlook.ITEM,
    effort.ITEM,
    health.ITEM,
)
