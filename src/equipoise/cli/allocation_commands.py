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
    floor_shares,
    option,
    output_format,
    save_chart,
)
from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from equipoise.arm_tables import Arms

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
    from equipoise import arm_tables, charts, terminal

    output = output_format(as_json, as_csv)
    check_chart(chart)
    goal, lowest = _goal(reward_weight, error, reward), floor_shares(floor)
    known = arm_tables.chosen_arms(arms, mean, std, name)
    terminal.announce_compiling()
    weight = _weight(known, lowest, *goal)
    record = charts.allocation_record(
        known.mean, known.std, reward_weight=weight, floor=lowest, horizon=horizon, arms=known.arms
    )
    if chart is not None:
        save_chart(charts.allocation_chart(record), chart)
    terminal.print_allocation(record, output)


def _goal(reward_weight: float | None, error: float | None, reward: float | None) -> tuple[str, float]:
    """Return which goal was given, and its value."""
    given = {"--reward-weight": reward_weight, "--error": error, "--reward": reward}
    pareto = [(name, value) for name, value in given.items() if value is not None]
    if len(pareto) != 1:
        got = " and ".join(name for name, _ in pareto) or "none"
        raise InvalidInput(f"give exactly one of --reward-weight, --error and --reward; got {got}")
    return pareto[0]


def _weight(known: "Arms", floor: float | tuple[float, ...], goal: str, value: float) -> float:
    """Return the weight that meets the goal."""
    from equipoise.pareto import weight_for_error, weight_for_reward

    if goal == "--error":
        return weight_for_error(known.mean, known.std, error=value, floor=floor)
    if goal == "--reward":
        return weight_for_reward(known.mean, known.std, reward=value, floor=floor)
    return value


Weights = Annotated[str | None, option("--weights", "Goal", "0,0.5,1", "Reward weights to solve for.")]
Points = Annotated[int | None, option("--points", "Goal", "N", "That many weights from 0 to 1; 11 by default.")]


def frontier(
    arms: ArmsFile = None,
    mean: Mean = None,
    std: Std = None,
    name: Name = None,
    reward_weights: Weights = None,
    points: Points = None,
    floor: Floor = "0",
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    chart: ChartFile = None,
) -> None:
    """Print reward, error and shares of the best allocation for a range of reward weights."""
    from equipoise import arm_tables, charts, pareto, terminal

    output = output_format(as_json, as_csv)
    check_chart(chart)
    grid, lowest = _grid(reward_weights, points), floor_shares(floor)
    known = arm_tables.chosen_arms(arms, mean, std, name)
    terminal.announce_compiling()
    curve = pareto.frontier(known.mean, known.std, reward_weights=grid, floor=lowest)
    if chart is not None:
        record = charts.frontier_record(known.mean, known.std, reward_weights=grid, floor=lowest, arms=known.arms)
        save_chart(charts.frontier_and_shares_chart(record), chart)
    terminal.print_frontier(known, curve, output)


def _grid(weights: str | None, points: int | None) -> tuple[float, ...]:
    """Return the weights given, or evenly spaced ones."""
    from equipoise.arm_tables import numbers

    if weights is not None and points is not None:
        raise InvalidInput("give --weights or --points; got both")
    if weights is not None:
        return numbers("--weights", weights)
    n_points = 11 if points is None else points
    if n_points < 2:
        raise InvalidInput(f"--points must be at least 2; got {n_points}")
    return tuple(i / (n_points - 1) for i in range(n_points))
