"""Charts of allocations, comparisons, forecasts, frontiers and runs: compute a record, then draw it with Altair.

Records need only numpy; drawing needs the extra ``charts``. Every chart can be read without colour.

Examples
--------
>>> from equipoise import charts
>>> record = charts.allocation_record([1, 2], [1, 1], reward_weight=0.5, arms=["number line", "pie"])
>>> charts.save_chart(charts.allocation_chart(record), "shares.html")  # doctest: +SKIP
"""

from equipoise.charts.curves import (
    METRICS,
    ArmShareRecord,
    CurvesRecord,
    TrackingRecord,
    arm_share_chart,
    arm_share_record,
    curves_chart,
    curves_record,
    tracking_chart,
)
from equipoise.charts.experiment_course import course_of, course_of_timeline, period_for
from equipoise.charts.forecasts import (
    ChanceRecord,
    EffectsRecord,
    PrecisionRecord,
    PriceRecord,
    chance_chart,
    chance_record,
    effects_chart,
    effects_record,
    forecast_chart,
    precision_chart,
    precision_record,
    price_chart,
    price_record,
)
from equipoise.charts.frontiers import (
    FrontierRecord,
    PolicyFrontierRecord,
    frontier_and_shares_chart,
    frontier_chart,
    frontier_record,
    policy_frontier_chart,
    policy_frontier_record,
    shares_chart,
)
from equipoise.charts.intervals import ComparisonRecord, comparison_chart, comparison_record
from equipoise.charts.live_course import (
    Course,
    Mark,
    live_means_chart,
    live_pace_chart,
    live_precision_chart,
    live_shares_chart,
)
from equipoise.charts.live_intervals import live_arms_chart, live_differences_chart
from equipoise.charts.live_prices import PricePoint, live_prices_chart
from equipoise.charts.shares import (
    AllocationRecord,
    FinalSharesRecord,
    allocation_chart,
    allocation_record,
    final_shares_chart,
    final_shares_record,
)
from equipoise.charts.simulated_experiments import (
    SharesOverTimeRecord,
    SimulatedExperimentRecord,
    shares_over_time_chart,
    shares_over_time_record,
    simulated_experiment_chart,
    simulated_experiment_record,
)
from equipoise.charts.style import ENDINGS, Band, checked_chart_path, save_chart
from equipoise.charts.themes import THEMES, Theme, themed
from equipoise.charts.vega_lite import Chart, ChartTable, notes_of, rows_of, table_of, title_of, without_title

__all__ = [
    "ENDINGS",
    "METRICS",
    "THEMES",
    "AllocationRecord",
    "ArmShareRecord",
    "Band",
    "ChanceRecord",
    "Chart",
    "ChartTable",
    "ComparisonRecord",
    "Course",
    "CurvesRecord",
    "EffectsRecord",
    "FinalSharesRecord",
    "FrontierRecord",
    "Mark",
    "PolicyFrontierRecord",
    "PrecisionRecord",
    "PricePoint",
    "PriceRecord",
    "SharesOverTimeRecord",
    "SimulatedExperimentRecord",
    "Theme",
    "TrackingRecord",
    "allocation_chart",
    "allocation_record",
    "arm_share_chart",
    "arm_share_record",
    "chance_chart",
    "chance_record",
    "checked_chart_path",
    "comparison_chart",
    "comparison_record",
    "course_of",
    "course_of_timeline",
    "curves_chart",
    "curves_record",
    "effects_chart",
    "effects_record",
    "final_shares_chart",
    "final_shares_record",
    "forecast_chart",
    "frontier_and_shares_chart",
    "frontier_chart",
    "frontier_record",
    "live_arms_chart",
    "live_differences_chart",
    "live_means_chart",
    "live_pace_chart",
    "live_precision_chart",
    "live_prices_chart",
    "live_shares_chart",
    "notes_of",
    "period_for",
    "policy_frontier_chart",
    "policy_frontier_record",
    "precision_chart",
    "precision_record",
    "price_chart",
    "price_record",
    "rows_of",
    "save_chart",
    "shares_chart",
    "shares_over_time_chart",
    "shares_over_time_record",
    "simulated_experiment_chart",
    "simulated_experiment_record",
    "table_of",
    "themed",
    "title_of",
    "tracking_chart",
    "without_title",
]
