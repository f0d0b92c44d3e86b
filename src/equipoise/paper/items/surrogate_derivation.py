"""How the 64-arm surrogate follows from the printed table: constants, aggregates, fit and predictions  [Fig. 6]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from equipoise import metrics
from equipoise._types import FloatArray
from equipoise.charts.style import altair, chart_of, finished, numbers, told_apart
from equipoise.paper import educational_runs as fig6
from equipoise.paper import surrogate
from equipoise.paper.findings import Cell, Claim, Figure, Finding, Item, Measured, Table
from equipoise.paper.instances import Work, treefrog_surrogate

if TYPE_CHECKING:
    from equipoise.arms import Gaussian

SHIPPED = "surrogate"
NOISIEST = (4, 31)
"""Which arm, counted from the best, is the noisiest in our fits; the table does not say."""

FIT_REPLICATIONS = 40

WIDTH = 520
MEAN_RANGE, STD_RANGE = (11.5, 13.2), (4.2, 4.4)
"""The part of the plane of constants that is drawn."""

Predictions = dict[tuple[str, float, str], FloatArray]
"""Values over replications by row, weight and column."""

PREDICTED = (
    (fig6.FORCING_BALANCE, 0.95, "regret"),
    (fig6.FORCING_BALANCE, 0.6, "regret"),
    (fig6.FORCING_BALANCE, 0.95, "rank"),
    (fig6.UCB, 0.95, "reward"),
    (fig6.UCB, 0.95, "error"),
)
"""Entries of rows that no fit used."""


def compute(work: Work) -> Finding:
    """Solve for the constants, fit arms again, and compare them with the surrogate that comes with the package."""
    equations = surrogate.baseline_equations()
    solved, corners = surrogate.solve_constants(equations), surrogate.possible_constants(equations)
    shipped = treefrog_surrogate()
    fits = {f"fitted, noisiest arm {k}": surrogate.fit_surrogate(noisiest=k) for k in NOISIEST}
    instances = {SHIPPED: shipped} | fits
    if work.given_treefrog is not None:
        instances["given arms"] = work.given_treefrog
    predictions = {
        name: _predict(work, arms, FIT_REPLICATIONS if name in fits else fig6.REPLICATIONS)
        for name, arms in instances.items()
    }
    return Finding(
        item=ITEM.name,
        found=_found(solved, corners, shipped, fits),
        differs=_differs({SHIPPED: shipped} | fits),
        measured=[
            Measured(key="surrogate.mean-max", value=solved.mean_max),
            Measured(key="surrogate.std-max", value=solved.std_max),
            Measured(key="surrogate.average-mean", value=float(shipped.mean.mean() / shipped.mean.max())),
            Measured(key="surrogate.average-std", value=float(shipped.std.mean() / shipped.std.max())),
        ],
        claims=[
            _rows_agree(corners),
            _unused_row_agrees(),
            _divided_by_std(solved),
            _in_percent(shipped),
            _same_aggregates(shipped, fits),
            _same_predictions(predictions[SHIPPED], {name: predictions[name] for name in fits}),
        ],
        tables=[_rows_table(), _aggregates_table(instances), _predictions_table(predictions)],
        figures=[_constants_figure(corners, solved), _arms_figure(instances)],
    )


def _found(
    solved: surrogate.Constants, corners: tuple[surrogate.Constants, ...], shipped: Gaussian, fits: dict[str, Gaussian]
) -> list[str]:
    ranges = [(min(values), max(values)) for values in zip(*corners, strict=True)]
    gain = fig6.printed(fig6.GAFS, "reward", 0.95).value - fig6.printed(fig6.UNIFORM, "reward", 0.95).value
    average_std = fig6.printed(fig6.UNIFORM, "error", 0.95).value / math.sqrt(fig6.N_ARMS)
    covariance = 1.5 * average_std * surrogate.CONSTANTS.std_max * gain * surrogate.CONSTANTS.mean_max
    return [
        "Constants. The rescaled regret of a row is sqrt(n) times the difference between the optimum and the row in w "
        "* reward - (1 - w) * error, and the table prints rewards and errors up to a constant each. Six rows, two "
        f"unknowns: least squares gives a largest mean of {solved.mean_max:.3f} and a largest std of "
        f"{solved.std_max:.3f}, and rounding leaves {ranges[0][0]:.2f} to {ranges[0][1]:.2f} and {ranges[1][0]:.3f} to "
        f"{ranges[1][1]:.3f}.",
        "Aggregates. Equal shares make the reward the average mean, "
        f"{fig6.printed(fig6.UNIFORM, 'reward', 0.95).value:g} of the largest, and the error sqrt(64) times the "
        f"average std, {average_std:.4f} of the largest. GAFS gives noisier arms more pulls and gets {gain:.4f} more "
        f"reward by it: noisier arms have larger means. To first order their covariance is {covariance:.3f}; on the "
        f"surrogate it is {float(np.cov(shipped.mean, shipped.std)[0, 1]):.3f}, a correlation of "
        f"{float(np.corrcoef(shipped.mean, shipped.std)[0, 1]):.2f}.",
        "Fit. Arms with the largest mean and std and the averages as above, and the reward and error of GAFS and of "
        "both optima as close as can be. The sum of squares, in units of rounding, is "
        f"{surrogate.sum_of_squares(shipped):.0f} for the surrogate that comes with the package, and "
        f"{' and '.join(f'{surrogate.sum_of_squares(arms):.0f}' for arms in fits.values())} for fits that were made "
        "now. The rows of ForcingBalance and UCB were not used, and the fits agree on them.",
    ]


def _differs(instances: dict[str, Gaussian]) -> list[str]:
    constants, row = surrogate.CONSTANTS, surrogate.row_equation(fig6.FORCING_BALANCE, 0.6)
    worst = {name: float(np.abs(surrogate.misfit(arms.mean, arms.std)).max()) for name, arms in instances.items()}
    names = list(surrogate.printed_aggregates())
    shipped = instances[SHIPPED]
    off = surrogate.misfit(shipped.mean, shipped.std)
    high = [k for k, name in enumerate(names) if name.startswith("optimum reward")]
    best = fig6.printed(fig6.OPTIMUM, "reward", 0.6).value
    # The reward that makes the two sides of the equation equal.
    fitting = best - (row.regret.value - row.of_std.value * constants.std_max) / (
        0.6 * math.sqrt(fig6.HORIZON) * constants.mean_max
    )
    return [
        "ForcingBalance's row for w = 0.6 contradicts the others: by its reward and error its rescaled regret is "
        f"{row.left_side():.2f} (give or take {row.slack():.2f} for rounding), better than the optimum, where "
        f"{row.regret.value:g} is printed. Either its reward is {fitting:.3f} and not "
        f"{fig6.printed(fig6.FORCING_BALANCE, 'reward', 0.6).value:.4f}, or the row of the optimum is not quite the "
        "optimum: in Fig. 4, too, the paper's solver stopped a little early.",
        "The second would also explain why no arms were found that have all the aggregates: the largest misfit is at "
        f"least {min(worst.values()):.0f} units of rounding for each set of arms here, and on the surrogate both "
        f"optima have more reward than printed ({' and '.join(f'{off[k]:.0f}' for k in high)} units).",
    ]


def _constants_figure(corners: Sequence[surrogate.Constants], solution: surrogate.Constants) -> Figure:
    """Draw the edges of the strip that each row allows, and their intersection in grey."""
    alt = altair()
    drawn = {f"{one.row}, w = {one.reward_weight:g}": _edges(one) for one in surrogate.baseline_equations()}
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
    lines = chart_of(rows).mark_line(clip=True, strokeWidth=1.8)
    outline = [{"mean": c.mean_max, "std": c.std_max, "order": k} for k, c in enumerate([*corners, corners[0]])]
    common = chart_of(outline).mark_line(filled=True, fill="black", fillOpacity=0.3, strokeWidth=0)
    mean, std = solution
    point = chart_of([{"mean": mean, "std": std, "label": f"{mean:.3f}, {std:.3f}"}]).encode(x=x, y=y)
    layers = alt.layer(
        common.encode(x=x, y=y, order="order:Q"),
        lines.encode(x=x, y=y, detail="edge:N", **told_apart("row", names, WIDTH)),
        point.mark_point(filled=True, color="black", size=50, opacity=1),
        point.mark_text(align="left", dx=50, dy=36, color="black").encode(text="label:N"),
    ).properties(width=WIDTH, height=340)
    return Figure(
        key="surrogate-constants",
        caption="The rescaled regret of a row is linear in the largest mean and the largest standard deviation, so "
        "each row of UCB, GAFS and Uniform allows a strip of the plane, as wide as the rounding of its numbers. All "
        "six strips meet in one small polygon.",
        chart=finished(layers, "The rows of the table agree on the two constants", notes).to_dict(),
    )


def _arms_figure(instances: dict[str, Gaussian]) -> Figure:
    """Draw mean and standard deviation of the arms, with different marks for each instance."""
    alt = altair()
    rows = [
        {"instance": name, "arm": k + 1, "mean": float(arms.mean[k]), "std": float(arms.std[k])}
        for name, arms in instances.items()
        for k in range(arms.n_arms)
    ]
    points = chart_of(rows).mark_point(size=45, strokeWidth=1.6, opacity=1)
    marks = points.encode(
        x=alt.X("mean:Q", title="mean of an arm", scale=alt.Scale(zero=False)),
        y=alt.Y("std:Q", title="standard deviation of an arm", scale=alt.Scale(zero=False)),
        **told_apart("instance", list(instances), WIDTH, points=True),
        tooltip=["instance:N", "arm:O", *numbers("mean", "std")],
    )
    chart = finished(
        alt.layer(marks).properties(width=WIDTH, height=320),
        "Different arms, the same aggregates",
        "each mark is one of 64 arms; the printed table does not tell these sets apart",
    )
    return Figure(
        key="surrogate-arms",
        caption="The arms of the surrogate and of new fits: their aggregates agree equally well with the printed "
        "table, and they have much in common: one arm ahead of all others, many close to each other, and the noisier "
        "ones rather among the better.",
        chart=chart.to_dict(),
    )


def _edges(one: surrogate.RowEquation) -> list[list[float]]:
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


def _seen_part(edge: Sequence[float]) -> list[tuple[float, float]]:
    """Return the ends of a line within the picture; invisible parts far outside make drawing slow."""
    (left, right), (first, last) = MEAN_RANGE, edge
    stds = [min(max(std, STD_RANGE[0]), STD_RANGE[1]) for std in edge]
    return [
        (left + (right - left) * ((std - first) / (last - first) if last != first else k), std)
        for k, std in enumerate(stds)
    ]


def _rows_agree(corners: tuple[surrogate.Constants, ...]) -> Claim:
    """Claim that the rows of the baselines have one solution."""
    equations = surrogate.baseline_equations()
    apart = [abs(one.left_side() - one.regret.value) / one.slack() for one in equations]
    return Claim(
        key="surrogate.rows-agree",
        text=f"All six rows of {', '.join(fig6.BASELINES)} agree, to rounding, on a largest mean of "
        f"{surrogate.CONSTANTS.mean_max:g} and a largest std of {surrogate.CONSTANTS.std_max:g}.",
        holds=bool(corners) and all(one.holds() for one in equations),
        evidence="differences as shares of what rounding allows: "
        + ", ".join(f"{one.row} {one.reward_weight:g} {x:.2f}" for one, x in zip(equations, apart, strict=True)),
    )


def _unused_row_agrees() -> Claim:
    """Claim that a row that was not used to solve for the constants agrees."""
    row = surrogate.row_equation(fig6.FORCING_BALANCE, 0.95)
    return Claim(
        key="surrogate.unused-row-agrees",
        text="ForcingBalance's row for w = 0.95, which the constants were not solved from, agrees with them too.",
        holds=row.holds(),
        evidence=f"{row.left_side():.3f}, give or take {row.slack():.2f}; printed {row.regret.value:g}",
    )


def _divided_by_std(solved: surrogate.Constants) -> Claim:
    """Claim that errors are printed in units of the largest std."""
    # If errors were divided by the variance, the solution would be the variance.
    largest = math.sqrt(solved.std_max)
    average = fig6.printed(fig6.UNIFORM, "error", 0.95).value / math.sqrt(fig6.N_ARMS) * solved.std_max
    return Claim(
        key="surrogate.divided-by-std",
        text="Errors are divided by the largest std, as the text says, and not by the variance in the heading.",
        holds=average > largest,
        evidence=f"divided by the variance, that would be {solved.std_max:.3f} and the largest std {largest:.3f}, less "
        f"than the average one, {average:.3f}",
    )


def _in_percent(arms: Gaussian) -> Claim:
    """Claim that the loss of discounted cumulative gain is printed in percent."""
    backwards = float(metrics.relative_dcg(-arms.mean, arms.mean))
    least = min(fig6.printed(row, "dcg", 0.95).value for row in (fig6.FORCING_BALANCE, *fig6.BASELINES))
    return Claim(
        key="surrogate.in-percent",
        text="RelDCG is printed in percent.",
        holds=100 * least > backwards,
        evidence=f"the smallest one printed for w = 0.95 is {least:g}; if that were a share, it would be "
        f"{100 * least:.1f} percent, and a ranking of the surrogate that is backwards loses {backwards:.1f} percent",
    )


def _same_aggregates(shipped: Gaussian, fits: dict[str, Gaussian]) -> Claim:
    """Claim that new fits are as close to the paper as the surrogate that comes with the package."""
    theirs = np.array([number.value for number in surrogate.printed_aggregates().values()])
    ours, *others = (
        np.array(list(surrogate.aggregates(arms.mean, arms.std).values())) for arms in (shipped, *fits.values())
    )
    apart = max(float((np.abs(other - ours) / theirs).max()) for other in others)
    worst = float((np.abs(ours - theirs) / theirs).max())
    most = max(surrogate.sum_of_squares(arms) for arms in fits.values())
    return Claim(
        key="surrogate.same-aggregates",
        text="Fits made now have the aggregates of the surrogate that comes with the package, as close to the paper.",
        holds=apart < 0.002 and worst < 0.002 and most <= surrogate.sum_of_squares(shipped),
        evidence=f"relative difference at most {100 * apart:.2f}% between the two, and {100 * worst:.2f}% between "
        f"surrogate and paper; sums of squares up to {most:.0f} against {surrogate.sum_of_squares(shipped):.0f}",
    )


def _same_predictions(shipped: Predictions, fits: dict[str, Predictions]) -> Claim:
    """Claim that new fits predict the same rows, which they did not use."""
    apart = {}
    for name, predicted in fits.items():
        for entry, values in predicted.items():
            spread = math.hypot(_standard_error(values), _standard_error(shipped[entry]))
            apart[name, entry] = (float(values.mean() / shipped[entry].mean() - 1), 4 * spread / shipped[entry].mean())
    # Numbers that the aggregates do not determine may differ a little between fits.
    holds = all(abs(off) < 0.1 + allowed for off, allowed in apart.values())
    (worst_fit, worst_entry), (off, _) = max(apart.items(), key=lambda pair: abs(pair[1][0]))
    return Claim(
        key="surrogate.same-predictions",
        text="Fits that differ in their arms predict the same rows of ForcingBalance and UCB, within a tenth.",
        holds=holds,
        evidence=f"the largest difference from the surrogate is {100 * off:+.0f}%, of "
        f"{' '.join(map(str, worst_entry))} in the one {worst_fit}",
    )


def _predict(work: Work, arms: Gaussian, replications: int) -> Predictions:
    """Play the policies of the `PREDICTED` rows."""
    known = fig6.policies(fig6.UCB_SCALE)
    chosen = {
        (row, weight): known[row, weight if row == fig6.FORCING_BALANCE else None] for row, weight, _ in PREDICTED
    }
    runs = work.simulate(list(chosen.values()), arms, fig6.HORIZON, replications, checkpoints=[fig6.HORIZON])
    places = {key: place for place, key in enumerate(chosen)}
    return {
        (row, weight, column): fig6.columns_on(runs, weight)[column][places[row, weight]]
        for row, weight, column in PREDICTED
    }


def _standard_error(values: FloatArray) -> float:
    """Return the standard error of the mean over replications."""
    return float(values.std(ddof=1) / math.sqrt(values.size))


def _rows_table() -> Table:
    """Return what each row says about the constants, and whether it agrees."""
    rows: list[list[Cell]] = []
    for weight in fig6.WEIGHTS:
        for row in (*fig6.BASELINES, fig6.FORCING_BALANCE):
            one = surrogate.row_equation(row, weight)
            sides = [one.of_mean.value, one.of_std.value, one.left_side(), one.slack(), one.regret.value]
            rows.append([row, weight, *sides, "yes" if one.holds() else "no"])
    return Table(
        key="surrogate-rows",
        title="What each row says of the largest mean and the largest std",
        columns=["row", "w", "times mean", "times std", "sum", "rounding", "printed regret", "agrees"],
        rows=rows,
        digits={"times mean": ".3f", "times std": ".3f", "sum": ".3f", "rounding": ".3f"},
        note=f"The sum is taken with {surrogate.CONSTANTS.mean_max:g} and {surrogate.CONSTANTS.std_max:g}. "
        "ForcingBalance's rows were not used to solve for them.",
    )


def _aggregates_table(instances: dict[str, Gaussian]) -> Table:
    """Return the aggregates of the arms beside the printed ones."""
    columns = {name: surrogate.aggregates(arms.mean, arms.std) for name, arms in instances.items()}
    rows: list[list[Cell]] = [
        [name, theirs.value, *(column[name] for column in columns.values())]
        for name, theirs in surrogate.printed_aggregates().items()
    ]
    rows.append(["sum of squares", None, *(surrogate.sum_of_squares(arms) for arms in instances.values())])
    return Table(
        key="surrogate-aggregates",
        title="Aggregates of the 64 arms: printed, of the surrogate, and of new fits",
        columns=["aggregate", "paper", *columns],
        rows=rows,
        digits=dict.fromkeys(columns, ".5g"),
        note="By formula, without simulation. The sum of squares is that of differences in units of rounding.",
    )


def _predictions_table(predictions: dict[str, Predictions]) -> Table:
    """Return what each set of arms predicts beside what is printed."""
    rows: list[list[Cell]] = []
    for row, weight, column in PREDICTED:
        name = f"{row} {column}" + (f", w = {weight:g}" if row == fig6.FORCING_BALANCE else "")
        cells = [
            f"{values[row, weight, column].mean():.4g} ± {_standard_error(values[row, weight, column]):.2g}"
            for values in predictions.values()
        ]
        rows.append([name, fig6.printed(row, column, weight).value, *cells])
    return Table(
        key="surrogate-predictions",
        title="What the fits say of rows that they have not seen",
        columns=["entry", "paper", *predictions],
        rows=rows,
        note=f"Means after {fig6.HORIZON:,} pulls, with standard errors. UCB has scale {fig6.UCB_SCALE:g}.",
    )


ITEM = Item(
    name="surrogate",
    title="Where the 64 arms come from",
    place="Fig. 6, Sect. 5.2",
    claim="The paper prints a table of an experiment with 64 arms and not their means and standard deviations. The "
    "table determines two constants and several aggregates of the arms; a surrogate with these can stand in for them.",
    compute=compute,
    n_steps=3 * len(NOISIEST) * FIT_REPLICATIONS * fig6.HORIZON,
)
