"""Every item of the reproduction, in the order of the report; each module computes and draws one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.paper.items import (
    educational_table,
    effort,
    five_arm_table,
    health,
    naive_ucb,
    objective_surface,
    outlook,
    pareto_over_time,
    regret_over_time,
    surrogate_derivation,
    tracking_ablation,
    tracking_over_time,
    two_arm_table,
)

if TYPE_CHECKING:
    from equipoise.paper.item import Item

ITEMS: tuple[Item, ...] = (
    objective_surface.ITEM,
    five_arm_table.ITEM,
    regret_over_time.ITEM,
    tracking_over_time.ITEM,
    pareto_over_time.ITEM,
    educational_table.ITEM,
    surrogate_derivation.ITEM,
    two_arm_table.ITEM,
    naive_ucb.ITEM,
    tracking_ablation.ITEM,
    outlook.ITEM,
    effort.ITEM,
    health.ITEM,
)
