"""How the 64-arm surrogate follows from the printed table: constants, aggregates, fit and predictions  [Fig. 6]."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from equipoise import metrics
from equipoise.paper.educational_rows import (
    BASELINES,
    FORCING_BALANCE,
    GAFS,
    HORIZON,
    N_ARMS,
    OPTIMUM,
    REPLICATIONS,
    UCB,
    UNIFORM,
    WEIGHTS,
    printed,
)
from equipoise.paper.educational_runs import UCB_SCALE, columns_on, policies
from equipoise.paper.findings import Claim, Figure, Finding, Measured, Table
from equipoise.paper.instances import treefrog_surrogate
from equipoise.paper.item import Item
from equipoise.paper.surrogate import (
    MEAN_MAX,
    STD_MAX,
    Constants,
    aggregates,
    baseline_equations,
    fit_surrogate,
    misfit,
    possible_constants,
    printed_aggregates,
    row_equation,
    solve_constants,
)
from equipoise.paper.surrogate_charts import arms_chart, constants_chart

if TYPE_CHECKING:
    from equipoise.arms import Gaussian
    from equipoise.arrays import FloatArray
    from equipoise.paper.findings import Cell
    from equipoise.paper.work import Work

SHIPPED = "surrogate"
NOISIEST = (4, 31)
"""Which arm is the noisiest in the fits that are made here, counted from the best: the table does not say."""

FIT_REPLICATIONS = 40

PREDICTED = (
    (FORCING_BALANCE, 0.95, "regret"),
    (FORCING_BALANCE, 0.6, "regret"),
    (FORCING_BALANCE, 0.95, "rank"),
    (UCB, 0.95, "reward"),
    (UCB, 0.95, "error"),
)
"""Entries of rows that no fit has seen."""


def compute(work: Work) -> Finding:
    """Solve for the constants, fit arms anew, and compare them with the surrogate that comes with the package."""
    constants = Constants(MEAN_MAX, STD_MAX)
    solved, corners = solve_constants(baseline_equations()), possible_constants(baseline_equations())
    shipped = treefrog_surrogate()
    fits = {f"fitted, noisiest arm {k}": fit_surrogate(noisiest=k) for k in NOISIEST}
    instances = {SHIPPED: shipped} | fits
    if work.given_treefrog is not None:
        instances["given arms"] = work.given_treefrog
    predictions = {
        name: _predictions(work, arms, FIT_REPLICATIONS if name in fits else REPLICATIONS)
        for name, arms in instances.items()
    }
    return Finding(
        item=ITEM.name,
        found=_found(solved, corners, shipped, fits),
        differs=_differs(constants, {SHIPPED: shipped} | fits),
        measured=[
            Measured(key="surrogate.mean-max", value=solved.mean_max),
            Measured(key="surrogate.std-max", value=solved.std_max),
            Measured(key="surrogate.average-mean", value=float(shipped.mean.mean() / shipped.mean.max())),
            Measured(key="surrogate.average-std", value=float(shipped.std.mean() / shipped.std.max())),
        ],
        claims=[
            _rows_agree(constants, corners),
            _unused_row_agrees(constants),
            _divided_by_std(solved),
            _in_percent(shipped),
            _same_aggregates(shipped, fits),
            _same_predictions(predictions, list(fits)),
        ],
        tables=[_rows_table(constants), _aggregates_table(instances), _predictions_table(predictions)],
        figures=[
            Figure(
                key="surrogate-constants",
                caption=(
                    "The rescaled regret of a row is linear in the largest mean and the largest standard deviation, so "
                    "each row of UCB, GAFS and Uniform allows a strip of the plane, as wide as the rounding of its "
                    "numbers. All six strips meet in one small polygon."
                ),
                chart=constants_chart(baseline_equations(), corners, solved).to_dict(),
            ),
            Figure(
                key="surrogate-arms",
                caption=(
                    "The arms of the surrogate and of fits made anew: their aggregates agree equally well with the "
                    "printed table, and they have much in common: one arm ahead of all others, many close to each "
                    "other, and the noisier ones rather among the better."
                ),
                chart=arms_chart(instances).to_dict(),
            ),
        ],
    )


def _found(
    solved: Constants, corners: tuple[Constants, ...], shipped: Gaussian, fits: dict[str, Gaussian]
) -> list[str]:
    ranges = [(min(values), max(values)) for values in zip(*corners, strict=True)]
    gain = printed(GAFS, "reward", 0.95).value - printed(UNIFORM, "reward", 0.95).value
    average_std = printed(UNIFORM, "error", 0.95).value / math.sqrt(N_ARMS)
    covariance = 1.5 * average_std * STD_MAX * gain * MEAN_MAX
    return [
        f"Constants. The rescaled regret of a row is sqrt(n) times the difference between the optimum and the row in "
        f"w * reward - (1 - w) * error, and the table prints rewards and errors up to a constant each. Six rows, two "
        f"unknowns: least squares gives a largest mean of {solved.mean_max:.3f} and a largest std of "
        f"{solved.std_max:.3f}, and rounding leaves {ranges[0][0]:.2f} to {ranges[0][1]:.2f} and "
        f"{ranges[1][0]:.3f} to {ranges[1][1]:.3f}.",
        f"Aggregates. Equal shares make the reward the average mean, {printed(UNIFORM, 'reward', 0.95).value:g} of the "
        f"largest, and the error sqrt(64) times the average std, {average_std:.4f} of the largest. GAFS gives noisier "
        f"arms more pulls and gets {gain:.4f} more reward by it: noisier arms have larger means. To first order their "
        f"covariance is {covariance:.3f}; on the surrogate it is {float(np.cov(shipped.mean, shipped.std)[0, 1]):.3f}, "
        f"a correlation of {float(np.corrcoef(shipped.mean, shipped.std)[0, 1]):.2f}.",
        f"Fit. Arms with the largest mean and std and the averages as above, and the reward and error of GAFS and of "
        f"both optima as close as can be. The sum of squares, in units of rounding, is "
        f"{_squares(shipped):.0f} for the surrogate that comes with the package, and "
        f"{' and '.join(f'{_squares(arms):.0f}' for arms in fits.values())} for fits that were made now. The rows of "
        "ForcingBalance and UCB were not used, and the fits agree on them.",
    ]


def _differs(constants: Constants, instances: dict[str, Gaussian]) -> list[str]:
    row = row_equation(FORCING_BALANCE, 0.6)
    worst = {name: float(np.abs(misfit(arms.mean, arms.std)).max()) for name, arms in instances.items()}
    names = list(printed_aggregates())
    shipped = instances[SHIPPED]
    off = misfit(shipped.mean, shipped.std)
    high = [k for k, name in enumerate(names) if name.startswith("optimum reward")]
    best = printed(OPTIMUM, "reward", 0.6).value
    # The reward that makes the two sides of the equation equal.
    fitting = best - (row.regret.value - row.of_std.value * constants.std_max) / (
        0.6 * math.sqrt(HORIZON) * constants.mean_max
    )
    return [
        f"ForcingBalance's row for w = 0.6 contradicts the others: by its reward and error its rescaled regret is "
        f"{row.left_side(constants):.2f} (give or take {row.slack(constants):.2f} for rounding), better than the "
        f"optimum, where {row.regret.value:g} is printed. Either its reward is {fitting:.3f} and not "
        f"{printed(FORCING_BALANCE, 'reward', 0.6).value:.4f}, or the row of the optimum is not quite the optimum: in "
        "Fig. 4, too, the paper's solver stopped a little early.",
        f"The second would also explain why no arms were found that have all the aggregates: the largest misfit is at "
        f"least {min(worst.values()):.0f} units of rounding for each set of arms here, and on the surrogate both "
        f"optima have more reward than printed ({' and '.join(f'{off[k]:.0f}' for k in high)} units).",
    ]


def _rows_agree(constants: Constants, corners: tuple[Constants, ...]) -> Claim:
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


def _unused_row_agrees(constants: Constants) -> Claim:
    row = row_equation(FORCING_BALANCE, 0.95)
    return Claim(
        key="surrogate.unused-row-agrees",
        text="ForcingBalance's row for w = 0.95, which the constants were not solved from, agrees with them too.",
        holds=row.holds(constants),
        evidence=(
            f"{row.left_side(constants):.3f}, give or take {row.slack(constants):.2f}; printed {row.regret.value:g}"
        ),
    )


def _divided_by_std(solved: Constants) -> Claim:
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


def _in_percent(arms: Gaussian) -> Claim:
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


def _same_aggregates(shipped: Gaussian, fits: dict[str, Gaussian]) -> Claim:
    theirs = printed_aggregates()
    ours = np.array(list(aggregates(shipped.mean, shipped.std).values()))
    printed_values = np.array([number.value for number in theirs.values()])
    apart = max(
        float((np.abs(np.array(list(aggregates(arms.mean, arms.std).values())) - ours) / printed_values).max())
        for arms in fits.values()
    )
    worst = float((np.abs(ours - printed_values) / printed_values).max())
    most = max(_squares(arms) for arms in fits.values())
    return Claim(
        key="surrogate.same-aggregates",
        text="Fits made now have the aggregates of the surrogate that comes with the package, as close to the paper.",
        holds=apart < 0.002 and worst < 0.002 and most <= _squares(shipped),
        evidence=(
            f"relative difference at most {100 * apart:.2f}% between the two, and {100 * worst:.2f}% between surrogate "
            f"and paper; sums of squares up to {most:.0f} against {_squares(shipped):.0f}"
        ),
    )


def _same_predictions(predictions: dict[str, dict[tuple[str, float, str], FloatArray]], fits: list[str]) -> Claim:
    shipped = predictions[SHIPPED]
    apart = {}
    for name in fits:
        for entry, values in predictions[name].items():
            spread = math.hypot(_standard_error(values), _standard_error(shipped[entry]))
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


def _rows_table(constants: Constants) -> Table:
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


def _aggregates_table(instances: dict[str, Gaussian]) -> Table:
    columns = {name: aggregates(arms.mean, arms.std) for name, arms in instances.items()}
    rows: list[list[Cell]] = [
        [name, theirs.value, *(column[name] for column in columns.values())]
        for name, theirs in printed_aggregates().items()
    ]
    rows.append(["sum of squares", None, *(_squares(arms) for arms in instances.values())])
    return Table(
        key="surrogate-aggregates",
        title="Aggregates of the 64 arms: printed, of the surrogate, and of fits made anew",
        columns=["aggregate", "paper", *columns],
        rows=rows,
        digits=dict.fromkeys(columns, ".5g"),
        note="By formula, without simulation. The sum of squares is that of differences in units of rounding.",
    )


def _predictions_table(predictions: dict[str, dict[tuple[str, float, str], FloatArray]]) -> Table:
    rows: list[list[Cell]] = []
    for row, weight, column in PREDICTED:
        name = f"{row} {column}" + (f", w = {weight:g}" if row == FORCING_BALANCE else "")
        cells = [
            f"{values[row, weight, column].mean():.4g} ± {_standard_error(values[row, weight, column]):.2g}"
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


def _predictions(work: Work, arms: Gaussian, replications: int) -> dict[tuple[str, float, str], FloatArray]:
    known = policies(UCB_SCALE)
    chosen = {(row, weight): known[row, weight if row == FORCING_BALANCE else None] for row, weight, _ in PREDICTED}
    runs = work.simulate(list(chosen.values()), arms, HORIZON, replications, checkpoints=[HORIZON])
    places = {key: place for place, key in enumerate(chosen)}
    return {
        (row, weight, column): columns_on(runs, weight)[column][places[row, weight]]
        for row, weight, column in PREDICTED
    }


def _standard_error(values: FloatArray) -> float:
    return float(values.std(ddof=1) / math.sqrt(values.size))


def _squares(arms: Gaussian) -> float:
    return float((misfit(arms.mean, arms.std) ** 2).sum())


ITEM = Item(
    name="surrogate",
    title="Where the 64 arms come from",
    place="Fig. 6, Sect. 5.2",
    claim=(
        "The paper prints a table of an experiment with 64 arms and not their means and standard deviations. The table "
        "determines two constants and several aggregates of the arms; a surrogate with these can stand in for them."
    ),
    compute=compute,
    n_steps=3 * len(NOISIEST) * FIT_REPLICATIONS * HORIZON,
)
