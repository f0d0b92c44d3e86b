"""Target and frequency of arm 4 over time: the frequency lags the target  [Fig. 3 centre, Sect. 5.1]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from equipoise.charts import arm_share_chart, arm_share_record
from equipoise.objective import optimal_allocation
from equipoise.paper.curve_panels import settled_from
from equipoise.paper.findings import Claim, Figure, Finding, Measured, Table
from equipoise.paper.instances import FIVE_ARMS, LONG, REPLICATIONS, SHORT, STEPS, WEIGHT, tracked_runs
from equipoise.paper.item import Item
from equipoise.paper.items.regret_over_time import EXPLORED
from equipoise.simulation.runs import place_of

if TYPE_CHECKING:
    from equipoise._types import FloatArray, IntArray
    from equipoise.paper.findings import Cell
    from equipoise.paper.item import Work
    from equipoise.simulation.runs import Runs

ARM = 3
"""Place of the noisiest arm, number 4 of the paper."""

FIRST_TARGET = 2 * FIVE_ARMS.n_arms
"""The target needs an estimate of every arm's spread, so two rewards of each."""


def compute(work: Work) -> Finding:
    """Compare the target and the frequency of arm 4 with its best share."""
    runs = tracked_runs(work)
    step = runs.checkpoints
    best = optimal_allocation(FIVE_ARMS.mean, FIVE_ARMS.std, reward_weight=WEIGHT)
    share = float(best[ARM])
    targets, frequencies = runs.target[0, :, :, ARM], runs.frequency[0, :, :, ARM]
    target_error, frequency_error = (np.abs(values - share).mean(axis=0) for values in (targets, frequencies))
    first, explored = runs.target[0].mean(axis=0)[[place_of(runs, n) for n in (FIRST_TARGET, EXPLORED)]]
    frequency = frequencies.mean(axis=0)
    bottom = int(frequency.argmin())
    met = settled_from(step, np.abs(frequency_error / target_error - 1), 0.1)
    return Finding(
        item=ITEM.name,
        found=[
            f"The best share of arm 4 is {share:.7f}. The target comes near it as soon as arms have a few dozen "
            f"rewards: its average error is {target_error[place_of(runs, 200)]:.3f} at n = 200, "
            f"{target_error[place_of(runs, 1000)]:.3f} at 1,000 and {target_error[place_of(runs, SHORT)]:.4f} at "
            f"{SHORT:,}. The frequency is later, until both are so close to the "
            f"optimum that the errors of the estimates decide: from n = {_number(met)} on their average errors are the "
            "same within a tenth.",
            f"The frequency does not come down to the best share: it passes it and goes on to {frequency[bottom]:.3f} "
            f"at n = {step[bottom]:,}. The rule pulls the arm that is furthest below its target; that is arm 5 as long "
            "as forced pulls take from its share, so arm 4 gets little more than is forced. Once arm 5 has caught up, "
            "arm 4 does.",
        ],
        differs=[
            "The paper prints a best share of 0.0794, which is not quite the optimum (see fig4).",
            "The paper calls the target nearly uniform while all pulls are forced. Ours does not exist before every "
            f"arm has two rewards (n = {FIRST_TARGET}), and is far from uniform from then on: on average "
            f"{', '.join(f'{x:.2f}' for x in first)} at n = {FIRST_TARGET} and "
            f"{', '.join(f'{x:.2f}' for x in explored)} at n = {EXPLORED}, because it is the optimum for the estimates "
            "whether or not it is followed. What is uniform in that phase are the pulls.",
        ],
        measured=[
            Measured(key="fig3-centre.optimum-4", value=share),
            Measured.mean_of("fig3-centre.frequency-4", frequencies[:, place_of(runs, SHORT)]),
        ],
        claims=[
            _pulls_are_even(runs),
            _lags(step, target_error / share, frequency_error / share),
            _meets(runs, frequency_error / share),
        ],
        tables=[_table(runs, target_error, frequency_error)],
        figures=[
            Figure(
                key="fig3-centre",
                caption="Share of arm 4: the best one, the target of ForcingBalance and the share of pulls given so "
                "far. Mean and 0.05- to 0.95-quantile over replications; both axes are logarithmic.",
                chart=arm_share_chart(arm_share_record(runs, ARM, reward_weight=WEIGHT), log_scale=True).to_dict(),
            )
        ],
    )


def _pulls_are_even(runs: Runs) -> Claim:
    rounds = [place_of(runs, n) for n in range(FIVE_ARMS.n_arms, EXPLORED + 1, FIVE_ARMS.n_arms)]
    off = float(np.abs(runs.frequency[0][:, rounds] - 1 / FIVE_ARMS.n_arms).max())
    return Claim(
        key="fig3-centre.even-at-first",
        text="At first all pulls are forced, and every arm has the same share.",
        holds=off < 1e-12,
        evidence=f"after each round of pulls up to n = {EXPLORED} no share differs from "
        f"{1 / FIVE_ARMS.n_arms:g} by more than {off:.1g}",
    )


def _lags(step: IntArray, target_error: FloatArray, frequency_error: FloatArray) -> Claim:
    """Errors are relative to the best share; both must come close for good, and the frequency clearly later."""
    bounds = (0.2, 0.1)
    times = [(settled_from(step, target_error, b), settled_from(step, frequency_error, b)) for b in bounds]
    words = [
        f"within {bound:.0%} of it from n = {_number(target)} on, the frequency from {_number(frequency)}"
        for bound, (target, frequency) in zip(bounds, times, strict=True)
    ]
    return Claim(
        key="fig3-centre.frequency-lags",
        text="The target comes close to the best share first, and the frequency follows it with a delay.",
        holds=all(t is not None and f is not None and f >= 1.2 * t for t, f in times),
        evidence=f"on average the target of arm 4 is {'; '.join(words)}",
    )


def _meets(runs: Runs, frequency_error: FloatArray) -> Claim:
    k = place_of(runs, SHORT)
    gap = float(np.abs(runs.frequency - runs.target)[0, :, k, ARM].mean())
    return Claim(
        key="fig3-centre.both-converge",
        text="Target and frequency both tend to the best share.",
        holds=bool(frequency_error[k] < 0.05 and frequency_error[-1] < frequency_error[k] and gap < 1e-3),
        evidence=f"at n = {SHORT:,} the frequency is off by {frequency_error[k]:.1%} on average, at n = {LONG:,} by "
        f"{frequency_error[-1]:.1%}; at n = {SHORT:,} it differs from the target by {gap:.0e}",
    )


def _number(step: int | None) -> str:
    return "never" if step is None else f"{step:,}"


def _table(runs: Runs, target_error: FloatArray, frequency_error: FloatArray) -> Table:
    rows: list[list[Cell]] = []
    for n in (FIRST_TARGET, EXPLORED, *STEPS, LONG):
        k = place_of(runs, n)
        shares = [float(values[0, :, k, ARM].mean()) for values in (runs.target, runs.frequency)]
        rows.append([n, *shares, float(target_error[k]), float(frequency_error[k])])
    numbers = ["target", "frequency", "error of the target", "error of the frequency"]
    return Table(
        key="arm-4",
        title="Arm 4: what ForcingBalance aims at and gives (w = 0.9)",
        columns=["n", *numbers],
        rows=rows,
        digits={"n": ",d"} | dict.fromkeys(numbers, ".4f"),
        note=f"Means of {runs.replications.size} replications; an error is the average distance from the best share.",
    )


ITEM = Item(
    name="fig3-centre",
    title="Target and frequency of the noisiest arm",
    place="Fig. 3 centre, Sect. 5.1",
    claim=(
        "After an even start the target of arm 4 goes quickly to its best share, since it rests on estimates that are "
        "good by then; the share of pulls follows it somewhat later."
    ),
    compute=compute,
    n_steps=LONG * REPLICATIONS,
)
