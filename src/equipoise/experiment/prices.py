"""Compute what every position of the dial gives and costs, and what people gained so far."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise._types import FloatArray, IntArray
from equipoise.analysis.comparisons import finite
from equipoise.analysis.mean_beliefs import REWARDS_NEEDED, MeanBeliefs, spreads
from equipoise.errors import InvalidInput
from equipoise.experiment.configuration import policy_with_dial
from equipoise.experiment.price_records import DialPosition, DialPreset, Gain, PrecisionReached, Prices
from equipoise.experiment.rewards_ahead import people_until
from equipoise.experiment.stopping import Precision
from equipoise.information import share_of_information
from equipoise.objective_families import ROOT_MEAN_SQUARE, PowerObjective
from equipoise.policies.dial_policy import DialPolicy

if TYPE_CHECKING:
    from equipoise.experiment.state import State
    from equipoise.policies import Policy
    from equipoise.policies.arm_prior import ArmPrior
    from equipoise.stats import ArmStats

POSITIONS = 41
"""Number of positions: a slider of this many steps moves the best arm's share by one or two people in 100."""
MOST_PEOPLE_RATIO = 20.0
"""How many times as many people as equal shares the last position may take until every arm is known as well."""
PRESETS = (("costs nothing", 1.05), ("balanced", 1.5), ("mostly reward", 3.0))
"""Names of positions, and how many times as many people as equal shares they take at most."""
EQUAL_SHARES = "equal shares"
MOST_ARMS_SHOWN = 50
_MOST_PLACES, _MOST_TARGETS, _SMALLEST_STEP = 12, 250, 1e-9


def prices_of(state: State, now: datetime, people_per_day: float | None = None) -> Prices:
    """Return the price of every position of the dial; raise if the policy has none.

    Parameters
    ----------
    state : State
        Of the experiment.
    now : datetime
        The time.
    people_per_day : float, optional
        The pace that days are computed by.
    """
    configuration, stats, decider = state.configuration, state.stats, state.decider
    if not configuration.dial:
        raise InvalidInput(f"{type(configuration.policy).__name__} has no dial that could have prices")
    own = stats.only(decider.active)
    about = configuration.dial.get("information_about", "average")
    known: dict[str, Any] = {
        "name": state.name,
        "direction": configuration.direction,
        "at": now,
        "n_events": state.n_events,
        "n_assigned": stats.n_assigned,
        "n_arms": own.n_arms,
        "information_about": about,
        "people_per_day": people_per_day,
    }
    names = [state.names[i] for i in decider.active]
    needs = _needs(names, own, decider.policy)
    dial = _Dial(decider.policy, configuration.dial, own, decider.share)
    present = None if needs else dial.shares(dial.present)
    if present is None:
        needs = needs or f"{type(configuration.policy).__name__} steers towards no shares that could have prices"
        listed = tuple(names[:MOST_ARMS_SHOWN])
        nothing: dict[str, Any] = {"best": None, "positions": (), "present": None, "presets": ()}
        return Prices(**known, needs=needs, arms=listed, **nothing)
    std, unit = spreads(own)
    best, places = dial.places(present, std)
    shares = np.array([dial.known[place] for place in places])
    at = places.index(dial.present)
    here = shares[at]
    beliefs = _beliefs(own, decider.policy)
    equal = np.full(own.n_arms, 1.0 / own.n_arms)
    gains = _gains(beliefs, np.concatenate([shares - here, shares - equal]), unit)
    ratios, ratios_to_equal = (_times(_people(shares, std), _people(one, std)) for one in (here, equal))
    objective = _objective(decider.policy)
    errors = _times(objective.error(shares, std), objective.error(here, std))
    whole = np.zeros((len(places), stats.n_arms))
    whole[:, decider.active] = shares
    reached = _precisions(state, whole, people_per_day)
    shown = np.sort(np.argsort(-shares.max(axis=0), kind="stable")[:MOST_ARMS_SHOWN])
    kept = dial.information(places, shares, std, about)
    positions = tuple(
        DialPosition(
            dial=dial.stated(place),
            reward_weight=dial.weight(place),
            information_kept=kept[k],
            shares=tuple(shares[k, shown].tolist()),
            next_100=tuple(people_of_100(shares[k])[shown].tolist()),
            gain=gains[k],
            gain_over_equal_shares=gains[len(places) + k],
            people_ratio=finite(ratios[k]),
            people_ratio_to_equal_shares=finite(ratios_to_equal[k]),
            error_ratio=finite(errors[k]),
            precisions=reached[k],
        )
        for k, place in enumerate(places)
    )
    return Prices(
        **known,
        needs="",
        arms=tuple(names[i] for i in shown),
        best=names[best],
        positions=positions,
        present=at,
        presets=tuple(_presets(shares, ratios_to_equal, equal)),
    )


def gain_so_far(state: State) -> Gain | None:
    """Return what 100 people gained so far over equal shares of the arms in play, since these last changed.

    None before every arm in play has four rewards, or anybody was assigned.
    """
    active = state.decider.active
    own = state.stats.only(active)
    assigned = own.assigned - state.tracked_from[active]
    if own.n_arms < 2 or int(own.pulls.min()) < REWARDS_NEEDED or int(assigned.sum()) <= 0:
        return None
    with np.errstate(all="ignore"):
        _, unit = spreads(own)
        beliefs = _beliefs(own, state.decider.policy)
        found = _gains(beliefs, (assigned / assigned.sum() - 1.0 / own.n_arms)[None, :], unit)[0]
    return found if all(map(math.isfinite, (found.per_100, found.low, found.high))) else None


def people_of_100(shares: FloatArray) -> IntArray:
    """Return how many of 100 people get each arm: whole numbers that add up to 100, nearest to the shares.

    Examples
    --------
    >>> people_of_100(np.array([0.505, 0.333, 0.162]))
    array([51, 33, 16])
    """
    exact = 100.0 * shares
    people = np.floor(exact).astype(np.int64)
    left = 100 - int(people.sum())
    people[np.argsort(people - exact, kind="stable")[:left]] += 1
    return people


class _Dial:
    """The dial of a policy as one number from accuracy (0) to reward (1), and the shares it leads to.

    The number is the weight, or the part of the information that is given up.
    """

    def __init__(self, policy: Policy, dial: dict[str, Any], stats: ArmStats, reserved: FloatArray) -> None:
        self._policy, self._dial, self._stats, self._reserved = policy, dial, stats, reserved
        self._targets = policy.targets(stats) if isinstance(policy, DialPolicy) else None
        self._left = 1.0 - float(reserved.sum())
        self._is_weight = "reward_weight" in dial
        self.present: float = dial["reward_weight"] if self._is_weight else 1.0 - dial["information_kept"]
        self.known: dict[float, FloatArray] = {}
        """Shares at the places that were looked at."""

    def stated(self, place: float) -> dict[str, Any]:
        """Return the dial at a place, as `change_dial` takes it."""
        if place == self.present:
            return dict(self._dial)
        if self._is_weight:
            return {"reward_weight": place}
        return self._dial | {"information_kept": round(1.0 - place, _MOST_PLACES)}

    def weight(self, place: float) -> float | None:
        """Return the weight at a place: stated, or solved for."""
        if self._is_weight:
            return place
        policy = self._at(place)
        return policy.weight(self._stats) if isinstance(policy, DialPolicy) else None

    def _at(self, place: float) -> Policy:
        return self._policy if place == self.present else policy_with_dial(self._policy, self.stated(place))

    def shares(self, place: float) -> FloatArray | None:
        """Return the shares at a place, floors included; None if the policy has no target."""
        if place not in self.known:
            if self._targets is None:
                target = self._at(place).target(self._stats)
            else:
                target = self._targets(place if self._is_weight else round(1.0 - place, _MOST_PLACES))
            if target is None:
                return None
            self.known[place] = self._reserved + self._left * target
        return self.known[place]

    def information(self, places: list[float], shares: FloatArray, std: FloatArray, about: str) -> list[float | None]:
        """Return the share of the information that the policy keeps at each place: stated, or as its shares have it."""
        if not self._is_weight:
            return [self.stated(place)["information_kept"] for place in places]
        own = (shares - self._reserved) / self._left
        n_arms, mean = self._stats.n_arms, self._stats.mean - self._stats.mean.mean()
        floor = np.asarray(getattr(self._policy, "per_arm", lambda n: np.zeros((1, n)))(n_arms)[0])
        found = share_of_information(own, mean, std, about, None, floor, _objective(self._policy))
        return [finite(one) for one in np.atleast_1d(found)]

    def places(self, present: FloatArray, std: FloatArray) -> tuple[int, list[float]]:
        """Return the best arm, and places evenly along its share, of which the present one is one."""
        last = 1.0 if self._is_weight else 1.0 - 10.0**-_MOST_PLACES
        best = int(np.argmax(self._share(last)))
        equal = _people(np.full(present.size, 1.0 / present.size), std)
        first = 0.0
        low, high = first, last
        if self._ratio(high, std) > MOST_PEOPLE_RATIO * equal:
            while not 0.95 < self._ratio(low, std) / (MOST_PEOPLE_RATIO * equal) <= 1.0:
                middle = roundest(low, high)
                if middle is None:
                    break
                is_too_far = self._ratio(middle, std) > MOST_PEOPLE_RATIO * equal
                low, high = (low, middle) if is_too_far else (middle, high)
            last = low
        last = max(last, self.present)
        step = float(self._share(last)[best] - self._share(first)[best]) / (POSITIONS - 1)
        if step < _SMALLEST_STEP:
            return best, [self.present]
        seen = sorted(place for place in self.known if place <= last)
        if self.present not in seen:
            insort(seen, self.present)
        k = 0
        while k < len(seen) - 1:
            # Each place that is added may be the neighbour of another one: look at the same gap again.
            wide = abs(self._share(seen[k + 1])[best] - self._share(seen[k])[best]) > 0.5 * step
            between = roundest(seen[k], seen[k + 1]) if wide and len(self.known) < _MOST_TARGETS else None
            if between is None:
                k += 1
            else:
                self._share(between)
                seen.insert(k + 1, between)
        along = np.array([self._share(place)[best] for place in seen])
        wanted = along[0] + step * np.arange(POSITIONS)
        chosen = sorted({int(np.argmin(np.abs(along - one))) for one in wanted})
        here = seen.index(self.present)
        if here not in chosen:
            nearest = min(chosen[1:-1] or chosen, key=lambda one: abs(one - here))
            chosen = sorted({*chosen, here} - ({nearest} if len(chosen) >= POSITIONS else set()))
        return best, [seen[one] for one in chosen]

    def _share(self, place: float) -> FloatArray:
        found = self.shares(place)
        assert found is not None  # noqa: S101  # a policy that has a target at the present dial has one at any
        return found

    def _ratio(self, place: float, std: FloatArray) -> float:
        return float(_people(self._share(place), std))


def roundest(low: float, high: float) -> float | None:
    """Return the number with the fewest decimals near the middle of two others; None if they are too close.

    Examples
    --------
    >>> roundest(0.0, 1.0), roundest(0.8, 0.9), roundest(0.875, 0.9), roundest(0.5, 0.5)
    (0.5, 0.85, 0.89, None)
    """
    middle, reach = 0.5 * (low + high), 0.25 * (high - low)
    for places in range(1, _MOST_PLACES + 1):
        found = round(middle, places)
        if abs(found - middle) <= reach and low < found < high:
            return found
    return None


def _needs(names: list[str], stats: ArmStats, policy: Policy) -> str:
    """Return which rewards are missing before beliefs can be formed, in words; "" if none are."""
    rule: Callable[[], Any] | None = getattr(policy, "rule", None)
    needed = max(REWARDS_NEEDED, 0 if rule is None else int(rule().rewards_needed))
    fewest = int(np.argmin(stats.pulls))
    if int(stats.pulls[fewest]) >= needed:
        return ""
    return f"needs {needed} rewards of each arm; {names[fewest]!r} has {int(stats.pulls[fewest])}"


def _beliefs(stats: ArmStats, policy: Policy) -> MeanBeliefs:
    """Return what is believed of the means of arms, with the policy's prior if it has one."""
    prior: ArmPrior | None = getattr(policy, "prior", None)
    return MeanBeliefs.of(stats) if prior is None else MeanBeliefs.of(stats, prior.means_apart, prior.weight)


def _gains(beliefs: MeanBeliefs, weights: FloatArray, unit: float) -> list[Gain]:
    """Return gains per 100 people in the unit of rewards."""
    ends = (100.0 * unit * one + 0.0 for one in beliefs.ranges(weights))
    return [Gain(*row) for row in zip(*(one.tolist() for one in ends), strict=True)]


def _people(shares: FloatArray, std: FloatArray) -> FloatArray:
    """Return the variance of the least known arm's mean, times the number of people: how many a precision takes."""
    with np.errstate(divide="ignore"):
        found: FloatArray = np.max(std * std / shares, axis=-1)
    return found


def _times(values: FloatArray, one: FloatArray) -> FloatArray:
    """Return values as multiples of one, NaN if that is infinite or 0."""
    with np.errstate(invalid="ignore"):
        return values / one if 0.0 < float(one) < math.inf else np.full(values.shape, np.nan)


def _objective(policy: Policy) -> PowerObjective:
    objective = getattr(policy, "objective", ROOT_MEAN_SQUARE)
    return objective if isinstance(objective, PowerObjective) else ROOT_MEAN_SQUARE


def _precisions(state: State, shares: FloatArray, people_per_day: float | None) -> list[tuple[PrecisionReached, ...]]:
    """Return when each declared precision is reached with each of some shares."""
    rules = [rule for rule in state.configuration.stopping if isinstance(rule, Precision)]
    found: list[list[PrecisionReached]] = [[] for _ in shares]
    for rule in rules:
        name = "precision" if rule.of == "arms" else "precision of differences"
        for k, needed in enumerate(people_until(state, rule, shares).tolist()):
            people = int(needed) if math.isfinite(needed) else None
            days = people / people_per_day if people is not None and people_per_day else None
            found[k].append(PrecisionReached(name, rule.half_width, people, days))
    return [tuple(row) for row in found]


def _presets(shares: FloatArray, ratios: FloatArray, equal: FloatArray) -> list[DialPreset]:
    """Return the positions that have names."""
    found = []
    for name, most in PRESETS:
        within = np.flatnonzero(ratios <= most)
        if within.size:
            found.append(DialPreset(name, int(within[-1])))
    return [*found, DialPreset(EQUAL_SHARES, int(np.argmin(np.abs(shares - equal).sum(axis=1))))]
