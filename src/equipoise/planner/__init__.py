"""Plan experiments before anybody is assigned: simulate the live experiment on guesses, and say what each way costs."""

from equipoise.planner.forecast import Forecast
from equipoise.planner.guesses import Guess
from equipoise.planner.plan import SCENARIOS, Plan
from equipoise.planner.plan_file import parse_plan, read_plan
from equipoise.planner.plan_options import plan_from_options, plan_with_options
from equipoise.planner.planned_arms import Delay, PlannedArm
from equipoise.planner.planned_goals import Costs, Goals
from equipoise.planner.planned_people import People
from equipoise.planner.planned_rewards import Drift, Rewards
from equipoise.planner.planned_ways import Way

__all__ = [
    "SCENARIOS",
    "Costs",
    "Delay",
    "Drift",
    "Forecast",
    "Goals",
    "Guess",
    "People",
    "Plan",
    "PlannedArm",
    "Rewards",
    "Way",
    "parse_plan",
    "plan_from_options",
    "plan_with_options",
    "read_plan",
]
