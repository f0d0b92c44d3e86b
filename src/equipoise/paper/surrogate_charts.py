"""Charts of how the surrogate was made: what each printed row allows, and the arms that came out  [Fig. 6]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from equipoise.charts.drawing import DASHES, LINES, SHAPES, altair, legend, styled, taken_in_turn, titled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from equipoise.arms import Gaussian
    from equipoise.charts.drawing import AnyChart
    from equipoise.paper.surrogate import Constants, RowEquation

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
