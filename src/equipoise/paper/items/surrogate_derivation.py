"""How the 64-arm surrogate follows from the printed table: constants, aggregates, fit and predictions  [Fig. 6]."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from equipoise.paper.educational_policies import (
    FORCING_BALANCE,
    GAFS,
    HORIZON,
    N_ARMS,
    OPTIMUM,
    REPLICATIONS,
    UNIFORM,
    printed,
)
from equipoise.paper.findings import Figure, Finding, Measured
from equipoise.paper.instances import treefrog_surrogate
from equipoise.paper.item import Item
from equipoise.paper.surrogate import (
    MEAN_MAX,
    STD_MAX,
    Constants,
    baseline_equations,
    fit_surrogate,
    misfit,
    possible_constants,
    printed_aggregates,
    row_equation,
    solve_constants,
    sum_of_squares,
)
from equipoise.paper.surrogate_report import (
    aggregates_table,
    arms_chart,
    constants_chart,
    divided_by_std,
    in_percent,
    predict,
    predictions_table,
    rows_agree,
    rows_table,
    same_aggregates,
    same_predictions,
    unused_row_agrees,
)

if TYPE_CHECKING:
    from equipoise.arms import Gaussian
    from equipoise.paper.item import Work

SHIPPED = "surrogate"
NOISIEST = (4, 31)
"""Which arm is the noisiest in the fits that are made here, counted from the best: the table does not say."""

FIT_REPLICATIONS = 40


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
        name: predict(work, arms, FIT_REPLICATIONS if name in fits else REPLICATIONS)
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
            rows_agree(constants, corners),
            unused_row_agrees(constants),
            divided_by_std(solved),
            in_percent(shipped),
            same_aggregates(shipped, fits),
            same_predictions(predictions[SHIPPED], {name: predictions[name] for name in fits}),
        ],
        tables=[rows_table(constants), aggregates_table(instances), predictions_table(predictions)],
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
        f"{sum_of_squares(shipped):.0f} for the surrogate that comes with the package, and "
        f"{' and '.join(f'{sum_of_squares(arms):.0f}' for arms in fits.values())} for fits that were made now. The "
        "rows of ForcingBalance and UCB were not used, and the fits agree on them.",
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
