"""Charts of allocations, frontiers and runs: compute a small record, then draw it with Altair.

Records need nothing but numpy; drawing needs the extra ``charts``. Every chart can be read without colour.

Examples
--------
>>> from equipoise import charts
>>> record = charts.allocation_record([1, 2], [1, 1], reward_weight=0.5, arms=["number line", "pie"])
>>> charts.save_chart(charts.allocation_chart(record), "shares.html")  # doctest: +SKIP
"""

from equipoise.charts.allocation import AllocationRecord, allocation_chart, allocation_record
from equipoise.charts.files import ENDINGS, checked_chart_path, save_chart
from equipoise.charts.frontier import (
    FrontierRecord,
    frontier_and_shares_chart,
    frontier_chart,
    frontier_record,
    shares_chart,
)
from equipoise.charts.tracking import TrackingRecord, tracking_chart

__all__ = [
    "ENDINGS",
    "AllocationRecord",
    "FrontierRecord",
    "TrackingRecord",
    "allocation_chart",
    "allocation_record",
    "checked_chart_path",
    "frontier_and_shares_chart",
    "frontier_chart",
    "frontier_record",
    "save_chart",
    "shares_chart",
    "tracking_chart",
]
