"""Following the target by its largest gap against drawing arms from it  [Fig. 8, App. C]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from equipoise.charts import arm_share_chart, arm_share_record
from equipoise.objective import optimal_allocation
from equipoise.paper.curve_panels import Line, Panel, curve_panels_chart, settled_from
from equipoise.paper.findings import Claim, Figure, Finding, Measured, Table
from equipoise.paper.instances import FIVE_ARMS, REPLICATIONS, SHORT, STEPS, WEIGHT, tracked_and_sampled_runs
from equipoise.paper.item import Item
from equipoise.paper.items.tracking_over_time import ARM
from equipoise.simulation.runs import place_of

if TYPE_CHECKING:
    from equipoise._types import FloatArray
    from equipoise.paper.findings import Cell
    from equipoise.paper.item import Work
    from equipoise.simulation.runs import Runs

NAMES = ("tracking the largest gap", "drawing from the target")
LATE = (5_000, 20_000)
"""Where the rules are compared: estimates are good, and shares are not all forced any more."""


def compute(work: Work) -> Finding:
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
        item=ITEM.name,
        found=[
            f"Drawing an arm from the target leaves the target as good as it was (largest error of a share "
            f"{target[1, -1]:.4f} against {target[0, -1]:.4f} at n = {SHORT:,}), but the shares of pulls follow it "
            f"later: {frequency[1, -1]:.4f} against {frequency[0, -1]:.4f}. The rescaled regret is "
            + " and ".join(
                f"{regret[1, place_of(runs, n)]:.2f} against {regret[0, place_of(runs, n)]:.2f} at n = {n:,}"
                for n in LATE
            )
            + ". A draw never makes up for what was forced, which tracking does at once.",
        ],
        differs=[
            f"It is not so at all times. From n = {cheaper.min():,} to {cheaper.max():,} drawing has the smaller "
            f"regret ({regret[1, k]:.2f} against {regret[0, k]:.2f} at n = 1,000), and from n = {nearer.min():,} to "
            f"{nearer.max():,} its share of arm 4 is nearer to the best one ({arm_error[1, k]:.3f} off against "
            f"{arm_error[0, k]:.3f} at n = 1,000): tracking serves the arm with the largest gap, arm 5, and lets arm 4 "
            "wait, while a draw serves all of them a little. Arm 4 alone, as the paper draws it, is thus not the arm "
            "that shows what tracking is good for; the largest error over all arms is.",
            f"While arm 4 waits, less is learned of it, so for some time the target itself is a little better with "
            f"draws (error {target[1, k]:.4f} against {target[0, k]:.4f} at n = 1,000).",
        ],
        measured=[Measured.mean_of(f"fig8.drawing-at-{n}", regrets[1, :, place_of(runs, n)]) for n in LATE],
        claims=[_target_left_alone(runs, target), _slower_frequency(runs, frequency), _slower_regret(runs)],
        tables=[_table(runs, target, frequency, arm_error)],
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


def _table(runs: Runs, target: FloatArray, frequency: FloatArray, arm_error: FloatArray) -> Table:
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

    chart = curve_panels_chart(
        [
            panel("Target", "largest distance from the optimum", target),
            panel("Frequency", "largest distance from the optimum", frequency),
            panel("Regret", "regret times the square root of pulls", regret),
        ],
        title="Drawing arms from the target slows the frequency, not the target (w = 0.9)",
        subtitle=f"ForcingBalance with forcing 1 on five arms; mean of {runs.replications.size} replications",
    )
    return Figure(
        key="fig8",
        caption="Two ways to follow the target on the five arms. From left to right: largest error of a share aimed "
        "at, largest error of a share of pulls, and rescaled regret. All axes are logarithmic.",
        chart=chart.to_dict(),
    )


def _arm_figure(runs: Runs) -> Figure:
    record = arm_share_record(runs, ARM, reward_weight=WEIGHT, names=NAMES)
    return Figure(
        key="fig8-arm-4",
        caption="Share of arm 4, as aimed at and as given so far, with both ways to follow the target. Mean and 0.05- "
        "to 0.95-quantile over replications; all axes are logarithmic.",
        chart=arm_share_chart(record, log_scale=True).to_dict(),
    )


ITEM = Item(
    name="fig8",
    title="What tracking is good for",
    place="Fig. 8, App. C",
    claim=(
        "If arms are drawn from the target instead of tracked, the target is as good as before, but the shares of "
        "pulls come to the best ones much more slowly and the regret is much higher."
    ),
    compute=compute,
    n_steps=2 * SHORT * REPLICATIONS,
)
