"""Tables of the surrogate: what each printed row says, the aggregates of the arms, and what fits predict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.paper.educational_rows import BASELINES, FORCING_BALANCE, HORIZON, WEIGHTS, printed
from equipoise.paper.educational_runs import UCB_SCALE
from equipoise.paper.findings import Table
from equipoise.paper.surrogate import aggregates, printed_aggregates, row_equation, sum_of_squares
from equipoise.paper.surrogate_predictions import PREDICTED, standard_error

if TYPE_CHECKING:
    from equipoise.arms import Gaussian
    from equipoise.paper.findings import Cell
    from equipoise.paper.surrogate import Constants
    from equipoise.paper.surrogate_predictions import Predictions


def rows_table(constants: Constants) -> Table:
    """Return what each row says of the constants, and whether it agrees."""
    rows: list[list[Cell]] = []
    for weight in WEIGHTS:
        for row in (*BASELINES, FORCING_BALANCE):
            one = row_equation(row, weight)
            rows.append(
                [
                    row,
                    weight,
                    one.of_mean.value,
                    one.of_std.value,
                    one.left_side(constants),
                    one.slack(constants),
                    one.regret.value,
                    "yes" if one.holds(constants) else "no",
                ]
            )
    return Table(
        key="surrogate-rows",
        title="What each row says of the largest mean and the largest std",
        columns=["row", "w", "times mean", "times std", "sum", "rounding", "printed regret", "agrees"],
        rows=rows,
        digits={"times mean": ".3f", "times std": ".3f", "sum": ".3f", "rounding": ".3f"},
        note=(
            f"The sum is taken with {constants.mean_max:g} and {constants.std_max:g}. ForcingBalance's rows were not "
            "used to solve for them."
        ),
    )


def aggregates_table(instances: dict[str, Gaussian]) -> Table:
    """Return the aggregates of the arms beside the printed ones."""
    columns = {name: aggregates(arms.mean, arms.std) for name, arms in instances.items()}
    rows: list[list[Cell]] = [
        [name, theirs.value, *(column[name] for column in columns.values())]
        for name, theirs in printed_aggregates().items()
    ]
    rows.append(["sum of squares", None, *(sum_of_squares(arms) for arms in instances.values())])
    return Table(
        key="surrogate-aggregates",
        title="Aggregates of the 64 arms: printed, of the surrogate, and of fits made anew",
        columns=["aggregate", "paper", *columns],
        rows=rows,
        digits=dict.fromkeys(columns, ".5g"),
        note="By formula, without simulation. The sum of squares is that of differences in units of rounding.",
    )


def predictions_table(predictions: dict[str, Predictions]) -> Table:
    """Return what each set of arms predicts beside what is printed."""
    rows: list[list[Cell]] = []
    for row, weight, column in PREDICTED:
        name = f"{row} {column}" + (f", w = {weight:g}" if row == FORCING_BALANCE else "")
        cells = [
            f"{values[row, weight, column].mean():.4g} ± {standard_error(values[row, weight, column]):.2g}"
            for values in predictions.values()
        ]
        rows.append([name, printed(row, column, weight).value, *cells])
    return Table(
        key="surrogate-predictions",
        title="What the fits say of rows that they have not seen",
        columns=["entry", "paper", *predictions],
        rows=rows,
        note=f"Means after {HORIZON:,} pulls, with standard errors. UCB has scale {UCB_SCALE:g}.",
    )
