"""Results that the solver computes exactly: the trade-off and its optima  [Fig. 1, Fig. 4, Table 1]."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from equipoise._types import FloatArray
from equipoise.charts.style import BLUE, VERMILION, altair, chart_of, finished, numbers
from equipoise.objective import optimal_allocation, tradeoff
from equipoise.paper.findings import Cell, Claim, Figure, Finding, Item, Measured, Table, compare, expected_numbers
from equipoise.paper.instances import FIGURE_1, FIVE_ARMS, TWO_ARMS, Work

CURVE_WEIGHTS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Weights of the curves that are drawn."""

LOWEST = -3.0
"""Curves fall without bound towards the edges, where an arm is not pulled; the picture ends here."""


def compute_surface(work: Work) -> Finding:
    """Evaluate the trade-off on a grid and solve for its optima; nothing is simulated."""
    grid = np.linspace(0.0, 1.0, 401)
    with np.errstate(divide="ignore"):
        curves = {weight: _values(grid, weight) for weight in CURVE_WEIGHTS}
    ridge_weights = np.linspace(0.0, 1.0, 101)
    ridge = np.array([_best_share(weight) for weight in ridge_weights])
    tops = {weight: _best_share(weight) for weight in CURVE_WEIGHTS}
    start, end = float(ridge[0]), float(ridge[-1])
    steps = np.diff(ridge)
    # A curve with a single top rises at all points of the grid before it and falls at all after it.
    single = all(
        (np.diff(values[grid <= tops[weight]]) > 0).all() and (np.diff(values[grid >= tops[weight]]) < 0).all()
        for weight, values in curves.items()
    )
    behind = max(float(values.max() - _value(tops[weight], weight)) for weight, values in curves.items())
    rows: list[list[Any]] = [[weight, top, _value(top, weight)] for weight, top in tops.items()]
    return Finding(
        item=FIG1.name,
        found=[
            f"The best share of arm 2 is {start:.4g} at w = 0, where equal spreads ask for equal shares, "
            f"{_best_share(0.5):.4f} at w = 0.5 and {end:.4g} at w = 1. Half of the way is only reached at w = "
            f"{float(np.interp(0.75, ridge, ridge_weights)):.2f}: the ridge bends late, since the error grows without "
            "end where an arm is hardly pulled."
        ],
        differs=[
            "The paper draws a surface in three dimensions; here each weight has a curve, from which values can be "
            "read."
        ],
        measured=[Measured(key="fig1.ridge-start", value=start), Measured(key="fig1.ridge-end", value=end)],
        claims=[
            Claim(
                key="fig1.ridge",
                text="The optimum moves from even shares to all pulls on the better arm as w grows from 0 to 1.",
                holds=bool((steps > 0).all()) and abs(start - 0.5) < 1e-12 and end == 1.0,
                evidence=f"over {ridge.size} weights the share goes from {start:.4g} to {end:.4g}, and every step is "
                f"upwards, by {steps.min():.2g} to {steps.max():.2g}",
            ),
            Claim(
                key="fig1.one-top",
                text="For each weight the trade-off has one top, and the solver finds it.",
                holds=bool(single) and behind < 1e-12,
                evidence=f"each of {len(CURVE_WEIGHTS)} curves rises up to the solution and falls after it on a grid "
                f"of {grid.size} shares, and none is higher anywhere on the grid",
            ),
        ],
        tables=[
            Table(
                key="ridge",
                title="Best share of arm 2",
                columns=["w", "share of arm 2", "trade-off"],
                rows=rows,
                digits={"w": ".1f", "share of arm 2": ".4f", "trade-off": ".4f"},
            )
        ],
        figures=[
            Figure(
                key="fig1",
                caption="The trade-off of two arms with means 1 and 2 and standard deviation 1. Left: over the share "
                "of arm 2, one curve per weight w, with the ridge through their tops. Right: the best share of arm 2 "
                "for each w.",
                chart=_chart(grid, curves, ridge_weights, ridge).to_dict(),
            )
        ],
    )


def _values(shares: FloatArray, weight: float) -> FloatArray:
    allocation = np.stack([1 - shares, shares], axis=-1)
    return np.asarray(tradeoff(allocation, FIGURE_1.mean, FIGURE_1.std, reward_weight=weight))


def _value(share: float, weight: float) -> float:
    return float(_values(np.array(share), weight))


def _best_share(weight: float) -> float:
    return float(optimal_allocation(FIGURE_1.mean, FIGURE_1.std, reward_weight=weight)[1])


def _chart(grid: FloatArray, curves: dict[float, FloatArray], ridge_weights: FloatArray, ridge: FloatArray) -> Any:
    alt = altair()
    lines = [
        {"weight": weight, "share": float(share), "value": float(value)}
        for weight, values in curves.items()
        for share, value in zip(grid, values, strict=True)
        if value >= LOWEST
    ]
    tops = [
        {"weight": float(weight), "share": float(share), "value": _value(float(share), float(weight))}
        for weight, share in zip(ridge_weights, ridge, strict=True)
    ]
    named = [row | {"label": f"w = {row['weight']:g}"} for row in tops if round(row["weight"], 6) in curves]
    share = alt.X("share:Q", title="share of arm 2", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%"))
    value = alt.Y("value:Q", title="trade-off", scale=alt.Scale(domain=[LOWEST, 2.4], nice=False))
    tooltip = numbers("weight", "share", "value")
    line, mark = {"color": VERMILION, "strokeWidth": 3}, {"color": VERMILION, "filled": True, "opacity": 1, "size": 70}

    def layer(rows: list[dict[str, Any]]) -> Any:
        return chart_of(rows).encode(x=share, y=value, tooltip=tooltip)

    surface = (
        layer(lines).mark_line(color=BLUE, strokeWidth=1.4).encode(detail="weight:N")
        + layer(tops).mark_line(**line).encode(order="weight:Q")
        + layer(named).mark_point(**mark)
        + layer(named).mark_text(align="right", dx=-6, dy=-9, color="black").encode(text="label:N")
    ).properties(width=400, height=320, title=alt.Title("Trade-off", fontSize=13, anchor="start"))
    weight = alt.X("weight:Q", title="weight w of the reward", scale=alt.Scale(domain=[0, 1]))
    shares = alt.Scale(domain=[0.4, 1.03], nice=False)
    best = alt.Y("share:Q", title="best share of arm 2", scale=shares, axis=alt.Axis(format="%"))
    ridge_only = (
        chart_of(tops).mark_line(**line).encode(x=weight, y=best, tooltip=tooltip)
        + chart_of(named).mark_point(**mark).encode(x=weight, y=best)
    ).properties(width=240, height=320, title=alt.Title("Its optimum", fontSize=13, anchor="start"))
    return finished(
        alt.hconcat(surface, ridge_only, spacing=36),
        "The best share moves from even to all on the better arm",
        "Thin lines: the trade-off for each weight; thick line: the ridge of its optima",
    )


FIG1 = Item(
    name="fig1",
    title="The trade-off and its optima",
    place="Fig. 1, Sect. 2",
    claim="With two arms of equal spread the best shares are even at w = 0; as w grows the arm with the larger mean is "
    "given more and more, up to all pulls at w = 1.",
    compute=compute_surface,
)


def compute_two_arms(work: Work) -> Finding:
    """Solve for the optimal share of the first arm; nothing is simulated."""
    measured: list[Measured] = []
    rows: list[list[Cell]] = []
    for k, arms in enumerate(TWO_ARMS, 1):
        shares = optimal_allocation(arms.mean, arms.std, reward_weight=0.4)
        best = float(tradeoff(shares, arms.mean, arms.std, reward_weight=0.4))
        first = Measured(key=f"table1.setting-{k}", value=float(shares[0]))
        measured += [first, Measured(key=f"table1.tradeoff-{k}", value=best)]
        pair = [", ".join(f"{x:g}" for x in values) for values in (arms.mean, arms.std**2)]
        rows.append([k, *pair, expected_numbers()[first.key].paper, first.value, best])
    return Finding(
        item=TABLE1.name,
        found=["All four shares are those of the paper, which prints two digits and cuts the rest off."],
        measured=measured,
        tables=[
            Table(
                key="two-arm-settings",
                title="Optimal share of the first of two arms (w = 0.4)",
                columns=["setting", "means", "variances", "share in the paper", "optimal share", "trade-off"],
                rows=rows,
                digits={"share in the paper": ".2f", "optimal share": ".7f", "trade-off": ".10f"},
            )
        ],
    )


TABLE1 = Item(
    name="table1",
    title="Four settings with two arms",
    place="Table 1, App. C",
    claim="With w = 0.4 the best share is near one half where mean and variance pull in opposite directions or the "
    "variances are equal, and far from it where one of the two dominates.",
    compute=compute_two_arms,
)


def compute_five_arms(work: Work) -> Finding:
    """Solve for the optimal shares; nothing is simulated."""
    arms = FIVE_ARMS
    shares = optimal_allocation(arms.mean, arms.std, reward_weight=0.9)
    measured = [Measured(key=f"fig4.arm-{k}", value=float(share)) for k, share in enumerate(shares, 1)]
    printed = [one.expected.paper or math.nan for one in compare(measured)]
    best, theirs = (tradeoff(some, arms.mean, arms.std, reward_weight=0.9) for some in (shares, printed))
    rows: list[list[Cell]] = [
        [k + 1, arms.mean[k], arms.std[k] ** 2, printed[k], measured[k].value] for k in range(arms.n_arms)
    ]
    return Finding(
        item=FIG4.name,
        found=[f"The optimal shares are {', '.join(f'{share:.4f}' for share in shares)}; the trade-off is {best:.6f}."],
        differs=[
            f"The paper's shares of arms 4 and 5 are worth {best - theirs:.1e} less than the optimum: its solver "
            "stopped a little early. Ours agree with three independent computations (see the tests of the solver)."
        ],
        measured=[*measured, Measured(key="fig4.tradeoff", value=float(best))],
        tables=[
            Table(
                key="five-arms",
                title="The five arms and their optimal shares (w = 0.9)",
                columns=["arm", "mean", "variance", "share in the paper", "optimal share"],
                rows=rows,
                digits={"share in the paper": ".4f", "optimal share": ".7f"},
            )
        ],
    )


FIG4 = Item(
    name="fig4",
    title="Five arms and their optimal shares",
    place="Fig. 4, Sect. 5.1",
    claim="With w = 0.9 nearly nine in ten pulls should go to the arm with the largest mean, eight in a hundred to the "
    "noisiest arm, and less than two in a hundred to each of the others.",
    compute=compute_five_arms,
)
