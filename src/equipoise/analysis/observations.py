"""Columns of decisions and rewards, which every report reads, from any data frame or from an experiment's log."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise import checks
from equipoise._types import FloatArray, IntArray
from equipoise.analysis.attributes import Attribute
from equipoise.analysis.data_tables import DataTable, same_chances
from equipoise.analysis.evidence import RewardRange
from equipoise.errors import InvalidInput

DIRECTIONS = ("maximise", "minimise")


@dataclass(frozen=True, eq=False, kw_only=True)
class Observations:
    """Decisions and their rewards, one entry per decision (n) in the order taken, over K arms.

    Attributes
    ----------
    arms : tuple of str
        Names of the arms.
    arm : int array (n,)
        Position of the chosen arm.
    reward : float array (n,)
        The reward that counts now, as reported; NaN where none counts.
    probability : float array (n,) or None
        With which the chosen arm was chosen, given everything before.
    probabilities : float array (n, K) or None
        Of every arm at each decision; 0 for an arm that was not in play.
    at, rewarded_at : float array (n,) or None
        When the decision was taken and its reward reported first, in seconds since 1970; NaN where there is no reward.
    counted_after : int array (n,)
        How many decisions had been taken when the reward that counts now entered the estimates; -1 where none counts. A
        corrected reward enters again. The default: rewards come at once.
    counted_order : int array
        The decisions with a reward that counts, in the order in which these rewards entered the estimates.
    state : int array (n,) or None
        State of each unit, a code of `equipoise.unit_lifecycle`; None outside of experiments.
    first_reward : float array (n,) or None
        The reward as first reported, whatever became of it; NaN where none was.
    attributes : mapping of Attribute by name
        What is known of each unit.
    reward_range : pair of float or None, or None
        Lowest and highest possible reward, None for an end that is open.
    default : float or None
        What counts for a unit whose window has passed without a reward, if anything.
    direction : {"maximise", "minimise"}
        Whether large or small rewards are good.
    window_seconds : float or None
        How long the experiment waits for a reward.
    hold : bool
        Whether no reward counts before its window has passed.
    until : float or None
        When these data were read: nothing later could be in them. The default: the latest time in them.
    notes : tuple of str
        What could not be read, and why.

    Examples
    --------
    >>> found = Observations(arms=("a", "b"), arm=[0, 1, 0], reward=[1.0, np.nan, 0.0])
    >>> found.counted_order, found.counted_after
    (array([0, 2]), array([ 1, -1,  3]))
    """

    arms: tuple[str, ...]
    arm: IntArray
    reward: FloatArray
    probability: FloatArray | None = None
    probabilities: FloatArray | None = None
    at: FloatArray | None = None
    rewarded_at: FloatArray | None = None
    counted_after: IntArray = None  # type: ignore[assignment]
    counted_order: IntArray = None  # type: ignore[assignment]
    state: IntArray | None = None
    first_reward: FloatArray | None = None
    attributes: Mapping[str, Attribute] = field(default_factory=lambda: MappingProxyType({}))
    reward_range: RewardRange = None
    default: float | None = None
    direction: str = "maximise"
    window_seconds: float | None = None
    hold: bool = False
    until: float | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        arm, reward = np.asarray(self.arm, np.int64), np.asarray(self.reward, np.float64)
        counts = ~np.isnan(reward)
        found: dict[str, Any] = {"arm": arm, "reward": reward}
        if self.probability is None and self.probabilities is not None:
            found["probability"] = self.probabilities[np.arange(arm.size), arm]
        if self.counted_after is None:
            found["counted_after"] = np.where(counts, np.arange(1, arm.size + 1), -1)
        if self.counted_order is None:
            # Of rewards that came between the same two decisions, any order will do.
            after = found.get("counted_after", self.counted_after)
            order = np.argsort(after, kind="stable")
            found["counted_order"] = order[order.size - np.count_nonzero(counts) :]
        if self.until is None and self.at is not None:
            times = [values for values in (self.at, self.rewarded_at) if values is not None]
            latest = max(np.max(values, initial=-np.inf, where=~np.isnan(values)) for values in times)
            found["until"] = float(latest) if np.isfinite(latest) else None
        for name, value in found.items():
            object.__setattr__(self, name, value)

    @property
    def n_decisions(self) -> int:
        """Number of decisions."""
        return self.arm.size

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return len(self.arms)

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Whether each decision has a reward that counts: an array (n,)."""
        return ~np.isnan(self.reward)

    @property
    def sign(self) -> float:
        """1 where large rewards are good, else -1."""
        return 1.0 if self.direction == "maximise" else -1.0

    def per_arm(self, which: NDArray[np.bool_] | None = None, weights: FloatArray | None = None) -> FloatArray:
        """Return the number of decisions for each arm, or the sum of their weights: an array (K,).

        Examples
        --------
        >>> found = Observations(arms=("a", "b"), arm=[0, 1, 0], reward=[1.0, np.nan, 0.5])
        >>> found.per_arm(found.counted), found.per_arm(found.counted, found.reward)
        (array([2., 0.]), array([1.5, 0. ]))
        """
        arm = self.arm if which is None else self.arm[which]
        chosen = weights if weights is None or which is None else weights[which]
        return np.bincount(arm, chosen, minlength=self.n_arms).astype(np.float64)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        arm: str = "arm",
        reward: str = "reward",
        probability: str | None = None,
        probabilities: Mapping[str, str | float] | None = None,
        at: str | None = None,
        rewarded_at: str | None = None,
        attributes: Sequence[str] = (),
        reward_range: RewardRange = None,
        direction: str = "maximise",
        arms: Sequence[str] | None = None,
    ) -> Observations:
        """Read a table with one row per decision; its rows are taken in the order of `at`, or else as they are.

        Parameters
        ----------
        frame : pandas, polars or Arrow table, mapping of columns, sequence of mappings, or path of a CSV file
            The table. Columns that are not named below are ignored.
        arm, reward : str
            The columns of the arm and its reward. A row without a reward is a unit without one: leave the cell empty
            (None or NaN) instead of leaving the row out.
        probability : str, optional
            The column with the probability of the chosen arm; the column `probability`, if there is one.
        probabilities : mapping of str or float, optional
            By arm, the column with its probability at each decision, or a number for all of them.
        at, rewarded_at : str, optional
            The columns with the times of decisions and rewards: times, text in ISO 8601, or seconds since 1970. Without
            `rewarded_at`, rewards are taken to have come at once.
        attributes : sequence of str
            Columns with what is known of each unit: numbers, text, or true and false.
        reward_range : pair, optional
            Lowest and highest possible reward, None for an open end.
        direction : {"maximise", "minimise"}
            Whether large or small rewards are good.
        arms : sequence of str, optional
            All arms, in the order to show them; those in the table, in the order they appear, by default.

        Examples
        --------
        >>> frame = {"arm": ["pie", "line", "pie"], "reward": [0.5, 1.0, None], "day": [3, 1, 2], "age": [9, 8, 9]}
        >>> found = Observations.from_frame(frame, at="day", attributes=["age"])
        >>> found.arms, found.arm, found.reward, found.attributes["age"].values
        (('pie', 'line'), array([1, 0, 0]), array([1. , nan, 0.5]), array([8., 9., 9.]))
        """
        named = [arm, reward, probability, at, rewarded_at, *attributes]
        if probabilities is not None:
            if not isinstance(probabilities, Mapping):
                raise InvalidInput.of("probabilities", "must name a column or a number for each arm", probabilities)
            named += [column for column in probabilities.values() if isinstance(column, str)]
        table = DataTable(frame, [name for name in named if name is not None], may_have=["probability"])
        names, codes = table.arms(arm, arms)
        bounds = checked_bounds(reward_range)
        found: dict[str, Any] = {"arm": codes, "reward": table.rewards(reward, bounds)}
        if probabilities is not None:
            found["probabilities"] = table.shares(probabilities, names)
            found["probability"] = own = found["probabilities"][np.arange(codes.size), codes]
            table.refuse(own <= 0, arm, "must be an arm that could be chosen, but has probability 0")
        if probability is not None or "probability" in table:
            column = "probability" if probability is None else probability
            chances = table.chances(column)
            if probabilities is not None:
                table.refuse(~same_chances(chances, own), column, "must agree with the probabilities of all arms")
            found["probability"] = chances
        if at is not None:
            found["at"] = table.times(at)
            table.refuse(np.isnan(found["at"]), at, "must be a time in every row")
        if rewarded_at is not None:
            found["rewarded_at"] = np.where(np.isnan(found["reward"]), np.nan, table.times(rewarded_at))
            if at is not None:
                table.refuse(found["rewarded_at"] < found["at"], rewarded_at, "must not be before the decision")
        read = {name: Attribute.of(name, table.values(name), table.where) for name in attributes}
        if at is not None:
            order = np.argsort(found["at"], kind="stable")
            found = {name: values[order] for name, values in found.items()}
            read = {name: attribute.taken(order) for name, attribute in read.items()}
            if rewarded_at is not None:
                found |= _entries(found["reward"], found["at"], found["rewarded_at"])
        return cls(
            arms=names,
            attributes=MappingProxyType(read),
            reward_range=bounds,
            direction=checks.one_of("direction", direction, DIRECTIONS),
            **found,
        )


def checked_bounds(reward_range: Any) -> RewardRange:
    """Return the lowest and the highest reward, None for an end that is open or infinite; None if both are.

    Examples
    --------
    >>> checked_bounds((0, math.inf)), checked_bounds((None, None))
    ((0.0, None), None)
    """
    if reward_range is None:
        return None
    try:
        low, high = reward_range
        low, high = -math.inf if low is None else float(low), math.inf if high is None else float(high)
    except (TypeError, ValueError):
        low, high = math.nan, math.nan
    if not low < high:
        raise InvalidInput.of("reward_range", "must be a lowest and a highest reward", reward_range)
    bounds = low if math.isfinite(low) else None, high if math.isfinite(high) else None
    return None if bounds == (None, None) else bounds


def _entries(reward: FloatArray, at: FloatArray, rewarded_at: FloatArray) -> dict[str, IntArray]:
    """Return when rewards entered the estimates, by decisions in time order and times of rewards.

    A reward reported at the instant of a decision comes after it, and one without a time came at once.
    """
    own = np.arange(1, at.size + 1)
    timed = ~np.isnan(rewarded_at)
    after = np.where(timed, np.maximum(np.searchsorted(at, rewarded_at, side="right"), own), own)
    counts = ~np.isnan(reward)
    arrival = np.lexsort((own, np.where(timed, rewarded_at, at), after))
    return {"counted_after": np.where(counts, after, -1), "counted_order": arrival[counts[arrival]]}
