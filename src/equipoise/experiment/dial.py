"""The dial of an experiment as people state it: a weight, information to keep, or a goal that becomes such a share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from equipoise import checks
from equipoise.errors import GoalOutOfReach, InvalidInput

if TYPE_CHECKING:
    from equipoise._types import FloatArray

POLICY_DIAL = ("reward_weight", "information_kept", "information_about", "smallest_difference")
"""The dial as policies have it."""
DIAL = (*POLICY_DIAL, "half_width", "units")
"""All that can be stated about the dial of an experiment."""
GOALS_ABOUT = ("every-arm", "average")
"""What a goal can be about; the first by default."""


ABOUT_WORDS = {"average": "the arms on average", "every-arm": "every arm", "best-arm": "which arm is best"}
"""What information is kept about, in words."""


def dial_words(dial: Mapping[str, Any]) -> str:
    """Return a dial in words.

    Examples
    --------
    >>> dial_words({"reward_weight": 0.8})
    'reward weight 0.8'
    >>> dial_words({"information_kept": 0.7, "information_about": "best-arm", "smallest_difference": 0.02})
    '70% of the information kept about which arm is best, to within 0.02'
    """
    if "information_kept" not in dial:
        return f"reward weight {dial['reward_weight']:g}" if dial else "none"
    difference = dial.get("smallest_difference")
    to_within = "" if difference is None else f", to within {difference:g}"
    about = ABOUT_WORDS[dial["information_about"]]
    return f"{100 * dial['information_kept']:.4g}% of the information kept about {about}{to_within}"


def stated_dial(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is stated of the dial; raise for errors that can be found without knowing the experiment.

    Examples
    --------
    >>> stated_dial({"information_kept": 0.7, "reward_weight": None})
    {'information_kept': 0.7}
    >>> stated_dial({"half_width": 0.03, "reward_weight": 0.5, "units": 600})
    Traceback (most recent call last):
    ...
    equipoise.errors.InvalidInput: half_width must be left out where reward_weight sets the dial; got 0.03
    """
    stated = {name: given[name] for name in DIAL if given.get(name) is not None}
    if "half_width" not in stated and "units" not in stated:
        about = "best-arm" if "information_kept" in stated and "smallest_difference" in stated else "average"
        checked = checks.dial(
            stated.get("reward_weight"),
            stated.get("information_kept"),
            stated.get("information_about", about),
            stated.get("smallest_difference"),
        )
        return stated | {name: value for name, value in checked._asdict().items() if name in stated}
    for name in ("reward_weight", "information_kept"):
        for goal in ("half_width", "units"):
            if name in stated and goal in stated:
                raise InvalidInput.of(goal, f"must be left out where {name} sets the dial", stated[goal])
    if "smallest_difference" in stated:
        raise InvalidInput.of(
            "smallest_difference",
            "goes with information_about 'best-arm', and no half_width",
            given["smallest_difference"],
        )
    for name, other in (("half_width", "units"), ("units", "half_width")):
        if name not in stated:
            raise InvalidInput.of(name, f"is missing: a goal is a half_width after some units; got only {other}")
    if "information_about" in stated:
        checks.one_of("information_about", stated["information_about"], GOALS_ABOUT)
    width = checks.number_between("half_width", stated["half_width"], 0, math.inf, open_low=True)
    units = checks.whole_number("units", stated["units"], 1, checks.LARGEST_COUNT)
    return stated | {"half_width": width, "units": units}


def settled_dial(
    stated: Mapping[str, Any], present: Mapping[str, Any], kept_for: Callable[[str], float]
) -> dict[str, Any]:
    """Return the dial that a policy takes, from what is stated and the present dial.

    Whoever states another share keeps it about what the share was about before.
    `kept_for` returns the share of the information that a goal about something takes.

    Examples
    --------
    >>> present = {"information_kept": 0.7, "information_about": "best-arm", "smallest_difference": 0.02}
    >>> settled_dial({"information_kept": 0.5}, present, lambda about: 1.0)
    {'information_kept': 0.5, 'information_about': 'best-arm', 'smallest_difference': 0.02}
    >>> settled_dial({"half_width": 0.05, "units": 900}, present, lambda about: 0.9)
    {'information_kept': 0.9, 'information_about': 'every-arm'}
    """
    if "reward_weight" in stated:
        return {"reward_weight": stated["reward_weight"]}
    if "half_width" in stated:
        about = stated.get("information_about", GOALS_ABOUT[0])
        return {"information_kept": kept_for(about), "information_about": about}
    about = stated.get("information_about", present.get("information_about"))
    dial = {"information_kept": stated["information_kept"], "information_about": about or "average"}
    difference = stated.get("smallest_difference")
    if difference is None and about == "best-arm":
        difference = present.get("smallest_difference")
    return dial if difference is None else dial | {"smallest_difference": difference}


def kept_for_goal(
    std: FloatArray, floors: FloatArray, *, half_width: float, units: int, about: str, failure_probability: float
) -> float:
    """Return the share of the information that the policy must keep for a goal, with the floors of the experiment.

    The shares that floors reserve count towards the goal; the policy decides about what they leave.

    Examples
    --------
    >>> import numpy as np
    >>> goal = {"half_width": 0.05, "units": 1200, "about": "every-arm", "failure_probability": 0.05}
    >>> kept = [kept_for_goal(np.full(3, 0.5), np.full(3, floor), **goal) for floor in (0.0, 0.1)]
    >>> [round(one, 3) for one in kept]
    [0.96, 0.943]
    """
    import numpy as np

    from equipoise.information import information_for_half_width

    reserved = float(floors.sum())
    goal: dict[str, Any] = {"units": units, "about": about, "failure_probability": failure_probability}
    if reserved == 0.0 or not std.any():
        return information_for_half_width(std, half_width=half_width, **goal)
    size = std * std if about == "every-arm" else np.cbrt(std * std)
    best = size / size.sum()  # the best design of the policy, without floors
    loss = _error(std, best, about) / _error(std, floors + (1.0 - reserved) * best, about)
    try:
        # As much as the best design without floors would have to keep, if it had as many units.
        kept = loss * loss * information_for_half_width(std, half_width=half_width * loss, **goal)
    except GoalOutOfReach as error:
        raise _out_of_reach(half_width, units, (error.smallest_half_width or 0.0) / loss, error.units_needed) from None
    if about == "every-arm":
        needed = float(np.max(kept - floors[size > 0] / best[size > 0])) / (1.0 - reserved)
    else:
        needed = kept / (1.0 - reserved)  # enough, whatever the reserved shares add
    return min(max(needed, float(np.finfo(float).tiny)), 1.0)


def _error(std: FloatArray, share: FloatArray, about: str) -> float:
    """Return the largest error of the arms, or their average, times sqrt(n); arms without spread have none."""
    own = std[std > 0] / share[std > 0] ** 0.5
    return float(own.max() if about == "every-arm" else own.sum() / std.size)


def _out_of_reach(half_width: float, units: int, smallest: float, units_needed: int | None) -> GoalOutOfReach:
    error = GoalOutOfReach.of(
        "half_width",
        f"must be at least {smallest * (1 + 5e-4):.4g} for {units:,} units with these floors",
        half_width,
        hint=None if units_needed is None else f"a half_width of {half_width:g} takes at least {units_needed:,} units",
    )
    error.smallest_half_width, error.units_needed = smallest, units_needed
    return error


def information_in(
    share: FloatArray, mean: FloatArray, std: FloatArray, objective: Any, smallest_difference: float | None
) -> dict[str, float]:
    """Return the share of the information that an allocation keeps about each criterion.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.objective_families import ROOT_MEAN_SQUARE
    >>> kept = information_in(np.array([0.2, 0.8]), np.array([1.0, 2.0]), np.ones(2), ROOT_MEAN_SQUARE, None)
    >>> {about: round(share, 3) for about, share in kept.items()}
    {'average': 0.711, 'every-arm': 0.4, 'best-arm': 0.64}
    """
    import numpy as np

    from equipoise.information import share_of_information
    from equipoise.objective_families import ROOT_MEAN_SQUARE, PowerObjective

    measured = objective if isinstance(objective, PowerObjective) else ROOT_MEAN_SQUARE
    found, floor = {}, np.zeros(std.size)
    for about in checks.INFORMATION_ABOUT:
        difference = smallest_difference if about == "best-arm" else None
        kind = measured if about == "average" else ROOT_MEAN_SQUARE
        found[about] = float(share_of_information(share, mean, std, about, difference, floor, kind))
    return found
