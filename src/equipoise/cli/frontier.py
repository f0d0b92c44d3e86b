"""The command `equipoise frontier`: reward, error and shares for a range of weights."""

from typing import Annotated

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
    from equipoise import charts, goals, printing, tables

    output = output_format(as_json, as_csv)
    check_chart(chart)
    grid, lowest = _grid(reward_weights, points), floor_shares(floor)
    known = tables.chosen_arms(arms, mean, std, name)
    compile_solver()
    curve = goals.frontier(known.mean, known.std, reward_weights=grid, floor=lowest)
    if chart is not None:
        record = charts.frontier_record(known.mean, known.std, reward_weights=grid, floor=lowest, arms=known.arms)
        save_chart(charts.frontier_and_shares_chart(record), chart)
    printing.print_frontier(known, curve, output)


def _grid(weights: str | None, points: int | None) -> tuple[float, ...]:
    """Return the weights given, or evenly spaced ones."""
    from equipoise.tables import numbers

    if weights is not None and points is not None:
        raise InvalidInput("give --weights or --points; got both")
    if weights is not None:
        return numbers("--weights", weights)
    n_points = 11 if points is None else points
    if n_points < 2:
        raise InvalidInput(f"--points must be at least 2; got {n_points}")
    return tuple(i / (n_points - 1) for i in range(n_points))
