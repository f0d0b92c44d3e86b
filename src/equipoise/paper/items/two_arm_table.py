"""The optimal allocations of the four two-arm settings  [Table 1]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.objective import optimal_allocation, tradeoff
from equipoise.paper.findings import Finding, Measured, Table
from equipoise.paper.instances import TWO_ARMS
from equipoise.paper.item import Item

if TYPE_CHECKING:
    from equipoise.paper.findings import Cell
    from equipoise.paper.work import Work

WEIGHT = 0.4
PRINTED = (0.57, 0.56, 0.28, 0.85)


def compute(work: Work) -> Finding:
    """Solve for the optimal share of the first arm; nothing is simulated."""
    measured: list[Measured] = []
    rows: list[list[Cell]] = []
    for k, arms in enumerate(TWO_ARMS):
        shares = optimal_allocation(arms.mean, arms.std, reward_weight=WEIGHT)
        best = float(tradeoff(shares, arms.mean, arms.std, reward_weight=WEIGHT))
        measured += [
            Measured(key=f"table1.setting-{k + 1}", value=float(shares[0])),
            Measured(key=f"table1.tradeoff-{k + 1}", value=best),
        ]
        pair = [", ".join(f"{x:g}" for x in values) for values in (arms.mean, arms.std**2)]
        rows.append([k + 1, *(text for text in pair), PRINTED[k], float(shares[0]), best])
    return Finding(
        item=ITEM.name,
        found=["All four shares are those of the paper, which prints two digits and cuts the rest off."],
        measured=measured,
        tables=[
            Table(
                key="two-arm-settings",
                title="Optimal share of the first of two arms (w = 0.4)",
                columns=["setting", "means", "variances", "share in the paper", "optimal share", "trade-off"],
                rows=rows,
                digits={"share in the paper": ".2f", "optimal share": ".7f", "trade-off": ".10f"},
            )
        ],
    )


ITEM = Item(
    name="table1",
    title="Four settings with two arms",
    place="Table 1, App. C",
    claim=(
        "With w = 0.4 the best share is near one half where mean and variance pull in opposite directions or the "
        "variances are equal, and far from it where one of the two dominates."
    ),
    compute=compute,
)
