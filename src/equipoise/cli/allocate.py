"""The command `equipoise allocate`: the best shares for arms that are known."""

from typing import TYPE_CHECKING, Annotated

from equipoise.cli.options import (
    ArmsFile,
    AsCsv,
    AsJson,
    ChartFile,
    Floor,
    Mean,
    Name,
    Std,
    check_chart,
    compile_solver,
    floor_shares,
    option,
    output_format,
    save_chart,
)
from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from equipoise.tables import Arms

Weight = Annotated[float | None, option("--reward-weight", "Goal", "W", "The dial: 0 is accuracy only, 1 reward only.")]
Error = Annotated[float | None, option("--error", "Goal", "X", "Instead of a weight: the most reward at this error.")]
Reward = Annotated[
    float | None, option("--reward", "Goal", "X", "Instead of a weight: the least error at this reward.")
]
Horizon = Annotated[int | None, option("--horizon", "Goal", "N", "Also divide N pulls into whole numbers.")]


def allocate(
    arms: ArmsFile = None,
    mean: Mean = None,
    std: Std = None,
    name: Name = None,
    reward_weight: Weight = None,
    error: Error = None,
    reward: Reward = None,
    floor: Floor = "0",
    horizon: Horizon = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    chart: ChartFile = None,
) -> None:
    """Print the best share of pulls for each arm, when means and spreads are known or guessed."""
    from equipoise import charts, printing, tables

    output = output_format(as_json, as_csv)
    check_chart(chart)
    goal, lowest = _goal(reward_weight, error, reward), floor_shares(floor)
    known = tables.chosen_arms(arms, mean, std, name)
    compile_solver()
    weight = _weight(known, lowest, *goal)
    record = charts.allocation_record(
        known.mean, known.std, reward_weight=weight, floor=lowest, horizon=horizon, arms=known.arms
    )
    if chart is not None:
        save_chart(charts.allocation_chart(record), chart)
    printing.print_allocation(record, output)


def _goal(reward_weight: float | None, error: float | None, reward: float | None) -> tuple[str, float]:
    """Return which goal was given, and its value."""
    given = {"--reward-weight": reward_weight, "--error": error, "--reward": reward}
    goals = [(name, value) for name, value in given.items() if value is not None]
    if len(goals) != 1:
        got = " and ".join(name for name, _ in goals) or "none"
        raise InvalidInput(f"give exactly one of --reward-weight, --error and --reward; got {got}")
    return goals[0]


def _weight(known: "Arms", floor: float | tuple[float, ...], goal: str, value: float) -> float:
    """Return the weight that meets the goal."""
    from equipoise.goals import weight_for_error, weight_for_reward

    if goal == "--error":
        return weight_for_error(known.mean, known.std, error=value, floor=floor)
    if goal == "--reward":
        return weight_for_reward(known.mean, known.std, reward=value, floor=floor)
    return value
