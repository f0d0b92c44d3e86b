"""Records of the prices of a dial's positions, and of what people gained so far."""

import dataclasses
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class Gain:
    """What 100 people gain under one way of assigning them compared with another, in the unit of rewards.

    Attributes
    ----------
    per_100 : float
        Expected gain of 100 people together. More than 0 is better in both directions: with `direction="minimise"`, it
        is by how much less there is of what is measured.
    low, high : float
        The true gain lies between these in 8 of 10 cases, whatever the arms are like: they allow for the luck of the
        arm that did best so far.
    """

    per_100: float
    low: float
    high: float


@dataclass(frozen=True)
class PrecisionReached:
    """When a declared precision will be reached with one position of the dial.

    Attributes
    ----------
    rule : str
        As `Progress.rule` names it.
    half_width : float
        The goal.
    people : int or None
        Further people until then; None if it will not be reached, or nobody can say yet.
    days : float or None
        Days until so many have come, where the pace is known.
    """

    rule: str
    half_width: float
    people: int | None
    days: float | None


@dataclass(frozen=True)
class DialPosition:
    """One position of the dial and its price, on the present estimates.

    Attributes
    ----------
    dial : dict
        How to set it: the arguments of `change_dial`.
    reward_weight : float or None
        The weight that it is, or that it takes at present; None if no weight leads to its shares.
    information_kept : float or None
        The share of the information that the policy keeps about `Prices.information_about`.
    shares : tuple of float
        The share of each arm of `Prices.arms`, floors and the control's share included.
    next_100 : tuple of int
        Of the next 100 people, how many get each arm.
    gain : Gain
        Compared with the present position.
    gain_over_equal_shares : Gain
        Compared with equal shares of the arms in play.
    people_ratio : float or None
        How many times as many people it takes until the least known arm is known as well as with the present position;
        None if it never will be.
    people_ratio_to_equal_shares : float or None
        The same compared with equal shares.
    error_ratio : float or None
        The average error of the arms for as many people, as a multiple of the present one.
    precisions : tuple of PrecisionReached
        When each declared `Precision` will be reached, if this is the dial from now on.
    """

    dial: dict[str, Any]
    reward_weight: float | None
    information_kept: float | None
    shares: tuple[float, ...]
    next_100: tuple[int, ...]
    gain: Gain
    gain_over_equal_shares: Gain
    people_ratio: float | None
    people_ratio_to_equal_shares: float | None
    error_ratio: float | None
    precisions: tuple[PrecisionReached, ...]


@dataclass(frozen=True)
class DialPreset:
    """A position with a name; `position` is its place in `Prices.positions`."""

    name: str
    position: int


@dataclass(frozen=True)
class Prices:
    """What every position of an experiment's dial gives and costs, on the present estimates.

    Attributes
    ----------
    name, direction : str
        The experiment, and whether large or small rewards are good.
    at : datetime
        When this was computed.
    n_events, n_assigned : int
        The last event that it knows of, and the people so far.
    needs : str
        What is missing before there are prices, in words; empty if nothing is.
    arms : tuple of str
        The arms in play that `shares` and `next_100` are about: of more than 50, those that get most.
    n_arms : int
        Number of arms in play.
    best : str or None
        The arm that seems best so far, which gets what the dial gives to reward.
    information_about : str
        What `DialPosition.information_kept` is about.
    positions : tuple of DialPosition
        Up to 41, evenly along the share of the best arm, from accuracy to reward. The last gives it as much as it can,
        or so much that the least known arm takes 20 times as many people as with equal shares.
    present : int or None
        Which of them is the present one; it always is one of them.
    presets : tuple of DialPreset
        Up to four: "costs nothing" (the most reward for at most 5% more people than equal shares), "balanced" (at most
        1.5 times as many), "mostly reward" (at most 3 times) and "equal shares" (closest to them).
    people_per_day : float or None
        The pace that days are computed by.
    """

    name: str
    direction: str
    at: datetime
    n_events: int
    n_assigned: int
    needs: str
    arms: tuple[str, ...]
    n_arms: int
    best: str | None
    information_about: str
    positions: tuple[DialPosition, ...]
    present: int | None
    presets: tuple[DialPreset, ...]
    people_per_day: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the prices as plain data that JSON can hold."""
        return dataclasses.asdict(self) | {"at": self.at.isoformat()}
