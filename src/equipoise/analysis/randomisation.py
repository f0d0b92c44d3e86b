"""Test whether arms were drawn with the probabilities on record, and alike whoever came, by betting against them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from equipoise._types import FloatArray
from equipoise.analysis.attributes import CATEGORY
from equipoise.analysis.observations import Observations
from equipoise.analysis.results import DrawCheck
from equipoise.errors import InvalidInput

ALL_ARMS, CHOSEN_ARM = "all arms", "chosen arm"
"""Which probabilities a check had."""

_TILTS = np.array([-0.3, -0.1, -0.03, -0.01, 0.01, 0.03, 0.1, 0.3])
_STAKES = np.array([0.003, 0.01, 0.03, 0.1, 0.3])
"""Bets with the probabilities of all arms, and with that of the chosen arm only.

The small ones see what is slightly wrong for long: an arm that gets 50.5 instead of 50 % of a million units loses every
bet with a tilt of 0.1, and is beyond doubt with 0.03.
"""

_EVERY = 32
"""Decisions from one look at the evidence to the next."""

_MOST_GROUPS = 20
_FEWEST_TO_SCALE = 10
_LARGEST_SCORE = 3.0


def check_draws(observations: Observations) -> DrawCheck | None:
    """Test the probabilities on record against the arms that were chosen; None where there are none.

    For each arm a and tilt theta, the product over decisions of ``exp(theta [a chosen]) / (1 + e(a) (exp(theta) - 1))``
    is a martingale if a is chosen with probability e(a) given everything before, and so is the average of them all.
    By Ville's inequality it ever exceeds 1 / p with probability at most p. Whatever changes the ratio of arms shows up
    here: a draw that is not random, units that were left out, arms that were swapped.

    Where only the probability of the chosen arm is known, it is ``1 + stake ([a chosen] / e(a) - 1)``, from the first
    time that a is chosen.

    References
    ----------
    Lindon and Malek (2022). Anytime-valid inference for multinomial count data. NeurIPS 35.

    Examples
    --------
    >>> frame = {"arm": ["a", "b", "b", "b"] * 50, "reward": [1, 0, 1, 0] * 50}
    >>> found = Observations.from_frame(frame, probabilities={"a": 0.5, "b": 0.5})
    >>> check = check_draws(found)
    >>> check.arm, check.observed, check.expected, check.p_value < 1e-4
    ('a', 50.0, 100.0, True)
    """
    found = _evidence(observations, None)
    return None if found is None else _judged(observations, [(None, None, found)], [1.0], None)


def check_balance(observations: Observations, attribute: str) -> DrawCheck | None:
    """Test whether units with different values of an attribute got the arms alike; None without probabilities.

    The same product as in `check_draws`, with tilts times a score of the unit: for a category, 1 in one of its groups
    (the first 20 that appeared) and 0 elsewhere; for a number, its distance from the mean of the units before, in their
    standard deviations and at most 3. Whatever the score, the product is a martingale if the policy does not see it.

    Examples
    --------
    >>> old = [True, False, False, True] * 50
    >>> frame = {"arm": ["a" if one else "b" for one in old], "reward": [1] * 200, "old": old}
    >>> found = Observations.from_frame(frame, probabilities={"a": 0.5, "b": 0.5}, attributes=["old"])
    >>> check = check_balance(found, "old")
    >>> check.attribute, check.group, check.expected, check.p_value < 1e-4
    ('old', 'true', 50.0, True)
    """
    if attribute not in observations.attributes:
        known = ", ".join(observations.attributes) or "none"
        raise InvalidInput.of("attribute", f"must be one of {known}", attribute)
    given = observations.attributes[attribute]
    tried = []
    if given.kind == CATEGORY:
        codes = given.codes
        present, first = np.unique(codes[codes >= 0], return_index=True)
        # In the order in which groups appeared, and with weights by that order: both are known at the time.
        for code in present[np.argsort(first)][:_MOST_GROUPS].tolist():
            found = _evidence(observations, None, codes == code)
            tried.append((given.categories[code], codes == code, found))
        weights = [1.0 / ((i + 1) * (i + 2)) for i in range(len(tried))]
    else:
        score = _standardised(given.values)
        halves = [np.maximum(side, 0.0) / _LARGEST_SCORE for side in (score, -score)]
        sides = [score] if observations.probabilities is not None else halves
        tried = [(None, None, _evidence(observations, side)) for side in sides]
        weights = [1.0 / len(sides)] * len(sides)
    kept = [(group, units, found) for group, units, found in tried if found is not None]
    return _judged(observations, kept, weights, attribute) if kept else None


def _judged(
    observations: Observations,
    tried: list[tuple[str | None, NDArray[np.bool_] | None, FloatArray]],
    weights: list[float],
    attribute: str | None,
) -> DrawCheck:
    """Return the record of a mixture of evidence, each array (times, arms)."""
    parts = [
        math.log(weight / observations.n_arms) + found for weight, (_, _, found) in zip(weights, tried, strict=True)
    ]
    # What a mixture has not bet on anything keeps its value of 1.
    rest = max(1.0 - sum(weights), 0.0)
    columns = [*parts, np.full((len(parts[0]), 1), math.log(rest) if rest > 1e-9 else -np.inf)]
    running = _log_sum(np.concatenate(columns, axis=1))
    place = max(range(len(parts)), key=lambda i: float(parts[i].max()))
    arm = int(parts[place].max(axis=0).argmax())
    group, units, _ = tried[place]
    drawn = _drawn(observations)
    observed, expected = _numbers(observations, arm, units, attribute if group is None else None)
    return DrawCheck(
        p_value=math.exp(-max(0.0, float(running.max()))),
        log_e_value=float(running[-1]),
        basis=CHOSEN_ARM if observations.probabilities is None else ALL_ARMS,
        n_decisions=observations.n_decisions,
        n_drawn=int(np.count_nonzero(drawn)),
        arm=observations.arms[arm],
        observed=observed,
        expected=expected,
        attribute=attribute,
        group=group,
    )


def _drawn(observations: Observations) -> NDArray[np.bool_]:
    """Return which decisions could have been others."""
    assert observations.probability is not None  # noqa: S101
    return observations.probability < 1.0


def _numbers(
    observations: Observations, arm: int, units: NDArray[np.bool_] | None, number: str | None
) -> tuple[float, float]:
    """Return what was observed of an arm, and what was expected."""
    chosen = observations.arm == arm
    if observations.probabilities is None:
        assert observations.probability is not None  # noqa: S101
        among = np.ones(chosen.size, bool) if units is None else units
        return float((1.0 / observations.probability[chosen & among]).sum()), float(np.count_nonzero(among))
    chance = observations.probabilities[:, arm]
    if number is not None:
        attribute = observations.attributes[number]
        known, values = attribute.known, attribute.values
        with np.errstate(invalid="ignore"):
            return (
                float(values[known & chosen].sum() / np.count_nonzero(known & chosen)),
                float((values[known] * chance[known]).sum() / chance[known].sum()),
            )
    if units is not None:
        chosen, chance = chosen[units], chance[units]
    return float(np.count_nonzero(chosen)), float(chance.sum())


def _standardised(values: FloatArray) -> FloatArray:
    """Return the distances of numbers from the mean of those before, in their standard deviations; 0 if unknown."""
    known = ~np.isnan(values)
    score = np.zeros(values.size)
    given = values[known]
    if given.size <= _FEWEST_TO_SCALE:
        return score
    given = given - np.median(given[:_FEWEST_TO_SCALE])
    count = np.arange(given.size)
    before = np.maximum(count, 1)
    mean = (np.cumsum(given) - given) / before
    variance = (np.cumsum(given * given) - given * given) / before - mean * mean
    usable = (count >= _FEWEST_TO_SCALE) & (variance > 1e-12 * (mean * mean + 1e-300))
    scaled = np.zeros(given.size)
    scaled[usable] = (given[usable] - mean[usable]) / np.sqrt(variance[usable])
    score[known] = np.clip(scaled, -_LARGEST_SCORE, _LARGEST_SCORE)
    return score


class _Looks:
    """The times at which evidence is looked at: after every `_EVERY` decisions and the last; sums of units by them.

    Units that a bet leaves out need no factor, so that all groups of a category together cost as much as no groups.
    """

    def __init__(self, n_decisions: int, units: NDArray[np.bool_] | None) -> None:
        self.units = np.arange(n_decisions) if units is None else np.flatnonzero(units)
        self.n = -(-n_decisions // _EVERY)
        look = self.units // _EVERY
        self._first = np.flatnonzero(np.diff(look, prepend=-1))
        self._look = look[self._first]

    def sums(self, values: FloatArray) -> FloatArray:
        """Return the sum of the values of the units before each look, since the one before it."""
        return self._placed(np.add.reduceat(values, self._first) if self._first.size else values)

    def log_products(self, values: FloatArray) -> FloatArray:
        """Return the logarithm of their product: one logarithm for each look instead of one for each unit."""
        return self._placed(np.log(np.multiply.reduceat(values, self._first)) if self._first.size else values)

    def _placed(self, values: FloatArray) -> FloatArray:
        found = np.zeros(self.n)
        found[self._look] = values
        return found


def _evidence(
    observations: Observations, score: FloatArray | None, units: NDArray[np.bool_] | None = None
) -> FloatArray | None:
    """Return the log evidence of each arm at every look: an array (looks, K); None if there are no probabilities.

    Only the units given bet, with their scores or with 1. The first look is before all decisions, when it is 0.
    """
    if observations.n_decisions == 0:
        return None
    looks = _Looks(observations.n_decisions, units)
    if observations.probabilities is not None:
        columns = _with_all_arms(observations, observations.probabilities, score, looks)
    elif observations.probability is not None:
        columns = _with_chosen_arm(observations, observations.probability, score, looks)
    else:
        return None
    found = np.zeros((1 + looks.n, observations.n_arms))
    for arm, bets in enumerate(columns):
        found[1:, arm] = _log_sum(np.cumsum(bets, axis=0)) - math.log(bets.shape[1])
    return found


def _with_all_arms(
    observations: Observations, chances: FloatArray, score: FloatArray | None, looks: _Looks
) -> Iterator[FloatArray]:
    """Yield, for each arm, the logarithms of the factors between looks: arrays (looks, bets)."""
    scores = np.ones(looks.units.size) if score is None else score[looks.units]
    won = [math.expm1(tilt) if score is None else np.expm1(tilt * scores) for tilt in _TILTS.tolist()]
    for arm in range(observations.n_arms):
        chance = chances[looks.units, arm]
        gained = looks.sums(np.where(observations.arm[looks.units] == arm, scores, 0.0))
        expected = [looks.log_products(1.0 + chance * gain) for gain in won]
        yield np.outer(gained, _TILTS) - np.column_stack(expected)


def _with_chosen_arm(
    observations: Observations, chance: FloatArray, score: FloatArray | None, looks: _Looks
) -> Iterator[FloatArray]:
    """Do the same with scores in [0, 1], and the probability of the chosen arm only."""
    for arm in range(observations.n_arms):
        chosen = observations.arm == arm
        first = int(chosen.argmax()) if chosen.any() else chosen.size
        gain = np.where(chosen, 1.0 / chance - 1.0, -1.0)
        gain[: first + 1] = 0.0  # the arm may not have been in play before it was chosen first
        gain = gain[looks.units] if score is None else (gain * score)[looks.units]
        yield np.column_stack([looks.sums(np.log1p(stake * gain)) for stake in _STAKES.tolist()])


def _log_sum(terms: FloatArray) -> FloatArray:
    """Return the logarithm of the sum of exponentials in each row."""
    largest = terms.max(axis=1)
    return np.asarray(largest + np.log(np.exp(terms - largest[:, None]).sum(axis=1)))
