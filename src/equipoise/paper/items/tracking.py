"""How shares follow their target: arm 4 over time, and tracking against random draws  [Fig. 3 centre, Fig. 8]."""

from __future__ import annotations

import numpy as np

from equipoise._types import FloatArray, IntArray
from equipoise.charts import arm_share_chart, arm_share_record
from equipoise.objective import optimal_allocation
from equipoise.paper.curve_panels import Line, Panel, curve_figure, settled_from
from equipoise.paper.findings import Cell, Claim, Figure, Finding, Item, Measured, Table
from equipoise.paper.instances import (
    FIVE_ARMS,
    LONG,
    REPLICATIONS,
    SHORT,
    STEPS,
    WEIGHT,
    Work,
    tracked_and_sampled_runs,
    tracked_runs,
)
from equipoise.paper.items.regret_over_time import EXPLORED
from equipoise.simulation.runs import Runs, place_of

ARM = 3
"""Index of the noisiest arm, number 4 of the paper."""

FIRST_TARGET = 2 * FIVE_ARMS.n_arms
"""The target needs an estimate of every arm's spread, so two rewards of each."""


def compute_over_time(work: Work) -> Finding:
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
        item=FIG3_CENTRE.name,
        found=[
            f"The best share of arm 4 is {share:.7f}. The target comes near it as soon as arms have a few dozen "
            f"rewards: its average error is {target_error[place_of(runs, 200)]:.3f} at n = 200, "
            f"{target_error[place_of(runs, 1000)]:.3f} at 1,000 and {target_error[place_of(runs, SHORT)]:.4f} at "
            f"{SHORT:,}. The frequency is later, until both are so close to the optimum that the errors of the "
            f"estimates decide: from n = {_number(met)} on their average errors are the same within a tenth.",
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
        tables=[_over_time_table(runs, target_error, frequency_error)],
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
        evidence=f"after each round of pulls up to n = {EXPLORED} no share differs from {1 / FIVE_ARMS.n_arms:g} by "
        f"more than {off:.1g}",
    )


def _lags(step: IntArray, target_error: FloatArray, frequency_error: FloatArray) -> Claim:
    """Errors are relative to the best share. Both must come close and stay close, the frequency clearly later."""
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


def _over_time_table(runs: Runs, target_error: FloatArray, frequency_error: FloatArray) -> Table:
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


FIG3_CENTRE = Item(
    name="fig3-centre",
    title="Target and frequency of the noisiest arm",
    place="Fig. 3 centre, Sect. 5.1",
    claim="After an even start the target of arm 4 goes quickly to its best share, since it rests on estimates that "
    "are good by then; the share of pulls follows it somewhat later.",
    compute=compute_over_time,
    n_steps=LONG * REPLICATIONS,
)


NAMES = ("tracking the largest gap", "drawing from the target")
LATE = (5_000, 20_000)
"""Steps at which the rules are compared: estimates are good, and few pulls are forced."""


def compute_ablation(work: Work) -> Finding:
    """Play the same replications with both rules and compare targets, frequencies and regret."""
    runs = tracked_and_sampled_runs(work)
    step = runs.checkpoints
    target, frequency = (
        values(reward_weight=WEIGHT).mean(axis=1) for values in (runs.target_distance, runs.frequency_distance)
    )
    regrets = runs.rescaled_regret(reward_weight=WEIGHT)
    regret = regrets.mean(axis=1)
    share = float(optimal_allocation(FIVE_ARMS.mean, FIVE_ARMS.std, reward_weight=WEIGHT)[ARM])
    arm_error = np.abs(runs.frequency[..., ARM] - share).mean(axis=1)
    cheaper = step[regret[1] < regret[0]]
    nearer = step[arm_error[1] < arm_error[0]]
    k = place_of(runs, 1_000)
    return Finding(
        item=FIG8.name,
        found=[
            "Drawing an arm from the target leaves the target as good as it was (largest error of a share "
            f"{target[1, -1]:.4f} against {target[0, -1]:.4f} at n = {SHORT:,}), but the shares of pulls follow it "
            f"later: {frequency[1, -1]:.4f} against {frequency[0, -1]:.4f}. The rescaled regret is "
            + " and ".join(
                f"{regret[1, place_of(runs, n)]:.2f} against {regret[0, place_of(runs, n)]:.2f} at n = {n:,}"
                for n in LATE
            )
            + ". A draw never makes up for what was forced, which tracking does at once."
        ],
        differs=[
            f"It is not so at all times. From n = {cheaper.min():,} to {cheaper.max():,} drawing has the smaller "
            f"regret ({regret[1, k]:.2f} against {regret[0, k]:.2f} at n = 1,000), and from n = {nearer.min():,} to "
            f"{nearer.max():,} its share of arm 4 is nearer to the best one ({arm_error[1, k]:.3f} off against "
            f"{arm_error[0, k]:.3f} at n = 1,000): tracking serves the arm with the largest gap, arm 5, and lets arm 4 "
            "wait, while a draw serves all of them a little. Arm 4 alone, as the paper draws it, is thus not the arm "
            "that shows what tracking is good for; the largest error over all arms is.",
            "While arm 4 waits, less is learned of it, so for some time the target itself is a little better with "
            f"draws (error {target[1, k]:.4f} against {target[0, k]:.4f} at n = 1,000).",
        ],
        measured=[Measured.mean_of(f"fig8.drawing-at-{n}", regrets[1, :, place_of(runs, n)]) for n in LATE],
        claims=[_target_left_alone(runs, target), _slower_frequency(runs, frequency), _slower_regret(runs)],
        tables=[_ablation_table(runs, target, frequency, arm_error)],
        figures=[_figure(runs, target, frequency, regret), _arm_figure(runs)],
    )


def _target_left_alone(runs: Runs, target: FloatArray) -> Claim:
    late = runs.checkpoints >= LATE[0]
    ratios = target[1, late] / target[0, late]
    return Claim(
        key="fig8.target-left-alone",
        text="The target does not depend on how it is followed.",
        holds=bool(np.abs(ratios - 1).max() < 0.15),
        evidence=f"from n = {LATE[0]:,} on the error of the target with draws is between {ratios.min():.2f} and "
        f"{ratios.max():.2f} times that with tracking",
    )


def _slower_frequency(runs: Runs, frequency: FloatArray) -> Claim:
    late = runs.checkpoints >= 200
    ratios = frequency[1, late] / frequency[0, late]
    times = [settled_from(runs.checkpoints, errors, 0.02) for errors in frequency]
    tracked, drawn = (float("inf") if time is None else time for time in times)
    return Claim(
        key="fig8.slower-frequency",
        text="Without tracking, the shares of pulls come to the best ones more slowly.",
        holds=bool(ratios.min() > 1 and ratios[-1] > 1.5 and drawn > 1.3 * tracked),
        evidence=f"from n = 200 on the largest error of a share is {ratios.min():.2f} to {ratios.max():.2f} times that "
        f"with tracking; it stays below 0.02 from n = {drawn:,} on, with tracking from n = {tracked:,} on",
    )


def _slower_regret(runs: Runs) -> Claim:
    regrets = runs.rescaled_regret(reward_weight=WEIGHT)
    words, clear = [], []
    for n in LATE:
        # The same rewards were drawn for both rules, so replications are compared one by one.
        pairs = regrets[1, :, place_of(runs, n)] - regrets[0, :, place_of(runs, n)]
        error = float(pairs.std(ddof=1) / np.sqrt(pairs.size))
        words.append(f"{pairs.mean():.2f} more (standard error {error:.3f}) at n = {n:,}")
        clear.append(bool(pairs.mean() > 4 * error))
    last = regrets[:, :, -1].mean(axis=1)
    return Claim(
        key="fig8.slower-regret",
        text="Without tracking, the regret is much higher.",
        holds=all(clear) and bool(last[1] > 5 * last[0]),
        evidence=f"the rescaled regret is {' and '.join(words)}, where it is {last[1] / last[0]:.0f} times that with "
        "tracking",
    )


def _ablation_table(runs: Runs, target: FloatArray, frequency: FloatArray, arm_error: FloatArray) -> Table:
    regrets = runs.rescaled_regret(reward_weight=WEIGHT)
    errors = regrets.std(axis=1, ddof=1) / np.sqrt(runs.replications.size)
    rows: list[list[Cell]] = []
    for n in STEPS:
        k = place_of(runs, n)
        for p, name in enumerate(NAMES):
            numbers = [target[p, k], frequency[p, k], arm_error[p, k], regrets[p, :, k].mean(), errors[p, k]]
            rows.append([n, name, *map(float, numbers)])
    columns = ["error of the target", "error of the frequency", "error of arm 4", "rescaled regret", "standard error"]
    return Table(
        key="following-the-target",
        title="Two ways to follow the target (five arms, w = 0.9)",
        columns=["n", "rule", *columns],
        rows=rows,
        digits={"n": ",d"} | dict.fromkeys(columns, ".4f"),
        note=f"Means of {runs.replications.size} replications. Errors are the largest distance of an arm's share from "
        "its best share, and that of arm 4 alone; the standard error is that of the rescaled regret.",
    )


def _figure(runs: Runs, target: FloatArray, frequency: FloatArray, regret: FloatArray) -> Figure:
    def panel(title: str, y_title: str, values: FloatArray) -> Panel:
        lines = [Line(name=name, step=runs.checkpoints, value=values[p]) for p, name in enumerate(NAMES)]
        return Panel(title=title, y_title=y_title, lines=lines)

    return curve_figure(
        [
            panel("Target", "largest distance from the optimum", target),
            panel("Frequency", "largest distance from the optimum", frequency),
            panel("Regret", "regret times the square root of pulls", regret),
        ],
        title="Drawing arms from the target slows the frequency, not the target (w = 0.9)",
        subtitle=f"ForcingBalance with forcing 1 on five arms; mean of {runs.replications.size} replications",
        key="fig8",
        caption="Two ways to follow the target on the five arms. From left to right: largest error of a share aimed "
        "at, largest error of a share of pulls, and rescaled regret. All axes are logarithmic.",
    )


def _arm_figure(runs: Runs) -> Figure:
    record = arm_share_record(runs, ARM, reward_weight=WEIGHT, names=NAMES)
    return Figure(
        key="fig8-arm-4",
        caption="Share of arm 4, as aimed at and as given so far, with both ways to follow the target. Mean and 0.05- "
        "to 0.95-quantile over replications; all axes are logarithmic.",
        chart=arm_share_chart(record, log_scale=True).to_dict(),
    )


FIG8 = Item(
    name="fig8",
    title="What tracking is good for",
    place="Fig. 8, App. C",
    claim="If arms are drawn from the target instead of tracked, the target is as good as before, but the shares of "
    "pulls come to the best ones much more slowly and the regret is much higher.",
    compute=compute_ablation,
    n_steps=2 * SHORT * REPLICATIONS,
)
