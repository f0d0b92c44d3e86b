"""Charts of how the surrogate was made: what each printed row allows, and the arms that came out  [Fig. 6]."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from equipoise import metrics
from equipoise._types import FloatArray
from equipoise.charts.style import DASHES, LINES, SHAPES, altair, legend, styled, taken_in_turn, titled
from equipoise.paper.educational_policies import (
    BASELINES,
    FORCING_BALANCE,
    HORIZON,
    N_ARMS,
    UCB,
    UCB_SCALE,
    UNIFORM,
    WEIGHTS,
    columns_on,
    policies,
    printed,
)
from equipoise.paper.findings import Claim, Table
from equipoise.paper.surrogate import (
    MEAN_MAX,
    STD_MAX,
    Constants,
    aggregates,
    baseline_equations,
    printed_aggregates,
    row_equation,
    sum_of_squares,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from equipoise.arms import Gaussian
    from equipoise.charts.style import AnyChart
    from equipoise.paper.findings import Cell
    from equipoise.paper.item import Work
    from equipoise.paper.surrogate import RowEquation

MEAN_RANGE, STD_RANGE = (11.5, 13.2), (4.2, 4.4)
"""The part of the plane of constants that is drawn."""


def constants_chart(equations: Sequence[RowEquation], corners: Sequence[Constants], solution: Constants) -> AnyChart:
    """Draw the two edges of the strip of each row, and in grey what lies in all strips."""
    alt = altair()
    drawn = {f"{one.row}, w = {one.reward_weight:g}": _edges(one) for one in equations}
    names = [name for name, edges in drawn.items() if any(map(_is_seen, edges))]
    unseen = [name for name in drawn if name not in names]
    rows = [
        {"row": name, "edge": f"{name} {k}", "mean": mean, "std": std}
        for name in names
        for k, edge in enumerate(drawn[name])
        for mean, std in _seen_part(edge)
    ]
    notes = ["two lines of a kind: what a row allows, for all its numbers were rounded; grey: what all rows allow"]
    if unseen:
        notes.append(f"allow the whole picture, and more: {'; '.join(unseen)}")
    x = alt.X("mean:Q", title="largest mean", scale=alt.Scale(domain=MEAN_RANGE, nice=False))
    y = alt.Y("std:Q", title="largest standard deviation", scale=alt.Scale(domain=STD_RANGE, nice=False))
    width = 520
    key = legend(names, width)
    edges = (
        alt.Chart(alt.Data(values=rows))
        .mark_line(clip=True, strokeWidth=1.8)
        .encode(
            x=x,
            y=y,
            detail="edge:N",
            color=alt.Color("row:N", scale=_in_turn(names, LINES), legend=key),
            strokeDash=alt.StrokeDash("row:N", scale=_in_turn(names, [list(dash) for dash in DASHES]), legend=key),
        )
    )
    outline = [{"mean": c.mean_max, "std": c.std_max, "order": k} for k, c in enumerate([*corners, corners[0]])]
    common = (
        alt.Chart(alt.Data(values=outline))
        .mark_line(filled=True, fill="black", fillOpacity=0.3, strokeWidth=0)
        .encode(x=x, y=y, order="order:Q")
    )
    point = alt.Chart(
        alt.Data(
            values=[
                {
                    "mean": solution.mean_max,
                    "std": solution.std_max,
                    "label": f"{solution.mean_max:.3f}, {solution.std_max:.3f}",
                }
            ]
        )
    ).encode(x=x, y=y)
    return styled(
        titled(
            alt.layer(
                common,
                edges,
                point.mark_point(filled=True, color="black", size=50, opacity=1),
                point.mark_text(align="left", dx=50, dy=36, color="black").encode(text="label:N"),
            ).properties(width=width, height=340),
            "The rows of the table agree on the two constants",
            notes,
        )
    )


def arms_chart(instances: Mapping[str, Gaussian]) -> AnyChart:
    """Draw mean and standard deviation of the arms of some instances, each with marks of its own."""
    alt = altair()
    names = list(instances)
    rows = [
        {"instance": name, "arm": k + 1, "mean": float(arms.mean[k]), "std": float(arms.std[k])}
        for name, arms in instances.items()
        for k in range(arms.n_arms)
    ]
    width = 520
    key = legend(names, width, points=True)
    marks = (
        alt.Chart(alt.Data(values=rows))
        .mark_point(size=45, strokeWidth=1.6, opacity=1)
        .encode(
            x=alt.X("mean:Q", title="mean of an arm", scale=alt.Scale(zero=False)),
            y=alt.Y("std:Q", title="standard deviation of an arm", scale=alt.Scale(zero=False)),
            shape=alt.Shape("instance:N", scale=_in_turn(names, SHAPES), legend=key),
            color=alt.Color("instance:N", scale=_in_turn(names, LINES), legend=key),
            tooltip=["instance:N", "arm:O", *(alt.Tooltip(f"{c}:Q", format=".4~g") for c in ("mean", "std"))],
        )
    )
    return styled(
        titled(
            alt.layer(marks).properties(width=width, height=320),
            "Different arms, the same aggregates",
            "each mark is one of 64 arms; the printed table does not tell these sets apart",
        )
    )


def _edges(one: RowEquation) -> list[list[float]]:
    """Return the two lines between which a row agrees with the constants, to rounding: stds at both ends."""
    edges = []
    for sign in (1, -1):
        of_mean = one.of_mean.value - sign * one.of_mean.rounding
        of_std = one.of_std.value - sign * one.of_std.rounding
        right = one.regret.value + sign * one.regret.rounding
        edges.append([(right - of_mean * mean) / of_std for mean in MEAN_RANGE])
    return edges


def _is_seen(edge: list[float]) -> bool:
    return min(edge) < STD_RANGE[1] and max(edge) > STD_RANGE[0]


def _in_turn(names: list[str], styles: Sequence[Any]) -> Any:
    return altair().Scale(domain=names, range=taken_in_turn(styles, len(names)))


def _seen_part(edge: Sequence[float]) -> list[tuple[float, float]]:
    """Return the ends of a line within the picture; what lies far outside makes drawing slow, though it is not seen."""
    (left, right), (first, last) = MEAN_RANGE, edge
    stds = [min(max(std, STD_RANGE[0]), STD_RANGE[1]) for std in edge]
    return [
        (left + (right - left) * ((std - first) / (last - first) if last != first else k), std)
        for k, std in enumerate(stds)
    ]


def rows_agree(constants: Constants, corners: tuple[Constants, ...]) -> Claim:
    """Claim that the rows of the baselines have one solution."""
    equations = baseline_equations()
    apart = [abs(one.left_side(constants) - one.regret.value) / one.slack(constants) for one in equations]
    return Claim(
        key="surrogate.rows-agree",
        text=(
            f"All six rows of {', '.join(BASELINES)} agree, to rounding, on a largest mean of {MEAN_MAX:g} and a "
            f"largest std of {STD_MAX:g}."
        ),
        holds=bool(corners) and all(one.holds(constants) for one in equations),
        evidence=(
            "differences as shares of what rounding allows: "
            + ", ".join(f"{one.row} {one.reward_weight:g} {x:.2f}" for one, x in zip(equations, apart, strict=True))
        ),
    )


def unused_row_agrees(constants: Constants) -> Claim:
    """Claim that a row which was not solved from agrees."""
    row = row_equation(FORCING_BALANCE, 0.95)
    return Claim(
        key="surrogate.unused-row-agrees",
        text="ForcingBalance's row for w = 0.95, which the constants were not solved from, agrees with them too.",
        holds=row.holds(constants),
        evidence=(
            f"{row.left_side(constants):.3f}, give or take {row.slack(constants):.2f}; printed {row.regret.value:g}"
        ),
    )


def divided_by_std(solved: Constants) -> Claim:
    """Claim that errors are printed in units of the largest std."""
    # If errors were divided by the variance, what was solved for would be the variance.
    largest = math.sqrt(solved.std_max)
    average = printed(UNIFORM, "error", 0.95).value / math.sqrt(N_ARMS) * solved.std_max
    return Claim(
        key="surrogate.divided-by-std",
        text="Errors are divided by the largest std, as the text says, and not by the variance in the heading.",
        holds=average > largest,
        evidence=(
            f"divided by the variance, that would be {solved.std_max:.3f} and the largest std {largest:.3f}, less than "
            f"the average one, {average:.3f}"
        ),
    )


def in_percent(arms: Gaussian) -> Claim:
    """Claim that the loss of discounted cumulative gain is printed in percent."""
    backwards = float(metrics.relative_dcg(-arms.mean, arms.mean))
    least = min(printed(row, "dcg", 0.95).value for row in (FORCING_BALANCE, *BASELINES))
    return Claim(
        key="surrogate.in-percent",
        text="RelDCG is printed in percent.",
        holds=100 * least > backwards,
        evidence=(
            f"the smallest one printed for w = 0.95 is {least:g}; if that were a share, it would be {100 * least:.1f} "
            f"percent, and a ranking of the surrogate that is backwards loses {backwards:.1f} percent"
        ),
    )


def same_aggregates(shipped: Gaussian, fits: dict[str, Gaussian]) -> Claim:
    """Claim that fits made anew are as close to the paper as the surrogate that comes with the package."""
    theirs = printed_aggregates()
    ours = np.array(list(aggregates(shipped.mean, shipped.std).values()))
    printed_values = np.array([number.value for number in theirs.values()])
    apart = max(
        float((np.abs(np.array(list(aggregates(arms.mean, arms.std).values())) - ours) / printed_values).max())
        for arms in fits.values()
    )
    worst = float((np.abs(ours - printed_values) / printed_values).max())
    most = max(sum_of_squares(arms) for arms in fits.values())
    return Claim(
        key="surrogate.same-aggregates",
        text="Fits made now have the aggregates of the surrogate that comes with the package, as close to the paper.",
        holds=apart < 0.002 and worst < 0.002 and most <= sum_of_squares(shipped),
        evidence=(
            f"relative difference at most {100 * apart:.2f}% between the two, and {100 * worst:.2f}% between surrogate "
            f"and paper; sums of squares up to {most:.0f} against {sum_of_squares(shipped):.0f}"
        ),
    )


def same_predictions(shipped: Predictions, fits: dict[str, Predictions]) -> Claim:
    """Claim that fits made anew say the same of rows that they have not seen."""
    apart = {}
    for name, predicted in fits.items():
        for entry, values in predicted.items():
            spread = math.hypot(standard_error(values), standard_error(shipped[entry]))
            apart[name, entry] = (float(values.mean() / shipped[entry].mean() - 1), 4 * spread / shipped[entry].mean())
    # What is not in the aggregates differs a little with the arms; the rows must stay what they are.
    holds = all(abs(off) < 0.1 + allowed for off, allowed in apart.values())
    (worst_fit, worst_entry), (off, _) = max(apart.items(), key=lambda pair: abs(pair[1][0]))
    return Claim(
        key="surrogate.same-predictions",
        text="Fits that differ in their arms predict the same rows of ForcingBalance and UCB, within a tenth.",
        holds=holds,
        evidence=(
            f"the largest difference from the surrogate is {100 * off:+.0f}%, of {' '.join(map(str, worst_entry))} in "
            f"the one {worst_fit}"
        ),
    )


Predictions: TypeAlias = dict[tuple[str, float, str], FloatArray]
"""Values over replications by row, weight and column."""

PREDICTED = (
    (FORCING_BALANCE, 0.95, "regret"),
    (FORCING_BALANCE, 0.6, "regret"),
    (FORCING_BALANCE, 0.95, "rank"),
    (UCB, 0.95, "reward"),
    (UCB, 0.95, "error"),
)
"""Entries of rows that no fit has seen."""


def predict(work: Work, arms: Gaussian, replications: int) -> Predictions:
    """Play the policies of those rows on the arms."""
    known = policies(UCB_SCALE)
    chosen = {(row, weight): known[row, weight if row == FORCING_BALANCE else None] for row, weight, _ in PREDICTED}
    runs = work.simulate(list(chosen.values()), arms, HORIZON, replications, checkpoints=[HORIZON])
    places = {key: place for place, key in enumerate(chosen)}
    return {
        (row, weight, column): columns_on(runs, weight)[column][places[row, weight]]
        for row, weight, column in PREDICTED
    }


def standard_error(values: FloatArray) -> float:
    """Return the standard error of the mean over replications."""
    return float(values.std(ddof=1) / math.sqrt(values.size))


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
