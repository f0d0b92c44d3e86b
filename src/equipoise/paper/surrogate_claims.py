"""What is claimed of the surrogate: that printed rows agree, in which units, and that fits agree with each other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from equipoise import metrics
from equipoise.paper.educational_rows import BASELINES, FORCING_BALANCE, N_ARMS, UNIFORM, printed
from equipoise.paper.findings import Claim
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
from equipoise.paper.surrogate_predictions import standard_error

if TYPE_CHECKING:
    from equipoise.arms import Gaussian
    from equipoise.paper.surrogate_predictions import Predictions


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
