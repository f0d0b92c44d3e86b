"""Check a history: what clients called and were answered, against the log that is left. Pure: it opens nothing.

Times are those of any clock that all clients share. A call that got no answer may have had its effect, or not, at any
time since it was invoked. After a loss (a backup put back, a failover to a standby that was behind) only the answers
given before the copy was taken, and those to calls made afterwards, must hold.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import accumulate, combinations
from typing import NamedTuple

import equipoise as eq

REFUSALS = {"UnknownUnit": "arm", "NotRewarded": "reward"}
"""The refusals that the calls of a history may get, by name, and what of the unit was missing."""


class Seen(NamedTuple):
    """What an answer says of a unit; `number` and `at` tell two assignments of one unit apart."""

    unit: str
    arm: str | None = None
    reward: float | None = None
    number: int | None = None
    at: datetime | None = None
    new: bool = False


@dataclass(frozen=True)
class Call:
    """One call of a client, with the units and rewards that it sent.

    `deliveries` counts how often it was sent, for want of an answer or by the network. `n_assigned` is what a call of
    `status` was answered.
    """

    verb: str
    sent: tuple[tuple[str, float | None], ...]
    invoked: float
    returned: float = math.inf
    seen: tuple[Seen, ...] = ()
    error: str | None = None
    deliveries: int = 1
    n_assigned: int | None = None

    @property
    def answered(self) -> bool:
        """Whether an answer came back that is no refusal."""
        return self.returned < math.inf and self.error is None

    @property
    def units(self) -> set[str]:
        """The units that it names."""
        return {unit for unit, _ in self.sent}


class Loss(NamedTuple):
    """What was written between two moments may be gone: `since` the copy was taken, `until` it surely was in use.

    `stopped` is the last moment at which the copy surely was not in use yet.
    """

    since: float
    until: float
    stopped: float

    def touches(self, call: Call) -> bool:
        """Whether what the call did may be lost."""
        return call.returned > self.since and call.invoked < self.until

    def parts(self, earlier: Call, later: Call) -> bool:
        """Whether `later` may have been answered without what `earlier` did."""
        return self.touches(earlier) and later.returned > self.stopped


class Logged(NamedTuple):
    """An event of the log."""

    kind: str
    unit: str | None
    arm: str | None
    reward: float | None
    decision: int | None
    at: datetime
    counted: bool


class Arm(NamedTuple):
    """An arm in the status."""

    name: str
    assigned: int
    rewarded: int
    mean: float | None


@dataclass(frozen=True)
class History:
    """Calls in any order, what is left of them, and the error of `verify`, if any."""

    calls: tuple[Call, ...]
    log: tuple[Logged, ...]
    arms: tuple[Arm, ...]
    verify: str | None = None
    losses: tuple[Loss, ...] = ()
    by_unit: dict[str, list[Call]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        calls = defaultdict(list)
        for call in self.calls:
            for unit in call.units:
                calls[unit].append(call)
        object.__setattr__(self, "by_unit", calls)

    def must_hold(self, call: Call) -> bool:
        """Whether the call was answered and no loss can have undone it."""
        return call.answered and not any(loss.touches(call) for loss in self.losses)

    def must_see(self, earlier: Call, later: Call) -> bool:
        """Whether `earlier` was answered before `later` was called, and nothing was lost in between."""
        return (
            earlier.answered
            and earlier.returned < later.invoked
            and not any(loss.parts(earlier, later) for loss in self.losses)
        )


def what_is_left(experiment: eq.Experiment) -> tuple[tuple[Logged, ...], tuple[Arm, ...], str | None]:
    """Return the log, the arms of the status, and the error of `verify`."""
    try:
        experiment.verify()
        error = None
    except eq.EquipoiseError as failed:
        error = f"{type(failed).__name__}: {failed}"
    log = tuple(
        Logged(event.kind, event.unit, event.arm, event.reward, event.decision, event.at, bool(event.counted))
        for event in experiment.events()
    )
    arms = tuple(Arm(arm.arm, arm.assigned, arm.rewarded, arm.mean) for arm in experiment.status().arms)
    return log, arms, error


def violations(history: History) -> list[str]:
    """Return what is wrong with a history, each as `property: what`."""
    return [f"{name}: {one}" for name, check in PROPERTIES.items() for one in check(history)]


def stickiness(history: History) -> Iterator[str]:
    """A unit never gets two arms, in the log or in answers that no loss parts."""
    logged = _values(history.log, "assigned", lambda event: event.arm)
    for unit, arms in logged.items():
        if len(arms) > 1:
            yield f"{unit} was assigned {len(arms)} times: {arms}"
    for unit, calls in history.by_unit.items():
        shown = [
            (one.arm, call)
            for call in calls
            if call.answered
            for one in call.seen
            if one.unit == unit and one.arm is not None
        ]
        several = len({arm for arm, _ in shown}) > 1
        for (arm, call), (other, another) in combinations(shown, 2) if several else ():
            parted = any(loss.parts(call, another) or loss.parts(another, call) for loss in history.losses)
            if arm != other and not parted:
                yield f"{unit} was answered {arm} and {other}"
                break
        for arm, call in shown:
            if history.must_hold(call) and logged.get(unit, [arm]) != [arm]:
                yield f"{unit} was answered {arm}, the log has {logged[unit]}"


def acknowledged(history: History) -> Iterator[str]:
    """What was answered is in the log."""
    logged = {kind: _values(history.log, kind, lambda event: event.reward) for kind in ("rewarded", "corrected")}
    assigned = _values(history.log, "assigned", lambda event: event.arm)
    for call in filter(history.must_hold, history.calls):
        for unit, value in call.sent:
            if call.verb in ("ask", "tell", "correct") and unit not in assigned:
                yield f"{call.verb} of {unit} was answered, the log does not know the unit"
            kind = {"tell": "rewarded", "correct": "corrected"}.get(call.verb)
            if kind is not None and value not in logged[kind].get(unit, []):
                yield f"{call.verb} of {unit}, {value} was answered, the log has {logged[kind].get(unit)}"


def once(history: History) -> Iterator[str]:
    """Each reward is there at most once, nothing is there that nobody sent, and the estimates count each once."""
    sent: dict[str, Counter[tuple[str, float | None]]] = defaultdict(Counter)
    for call in history.calls:
        for pair in call.sent:
            sent[call.verb][pair if call.verb != "ask" else (pair[0], None)] += call.deliveries
    for kind, verb in (("assigned", "ask"), ("rewarded", "tell"), ("corrected", "correct")):
        found = Counter((event.unit, event.reward) for event in history.log if event.kind == kind)
        for pair, count in found.items():
            if count > sent[verb][pair]:
                yield f"{pair} is {kind} {count} times, it was sent {sent[verb][pair]} times"
    for unit, rewards in _values(history.log, "rewarded", lambda event: event.reward).items():
        if len(rewards) > 1:
            yield f"{unit} is rewarded {len(rewards)} times: {rewards}"
    assigned, values = Counter(), {}
    for event in history.log:
        assigned[event.arm] += event.kind == "assigned"
        if event.counted:
            values[event.unit] = (event.arm, event.reward)
    for arm in history.arms:
        rewards = [reward for name, reward in values.values() if name == arm.name and reward is not None]
        mean = math.fsum(rewards) / len(rewards) if rewards else None
        same_mean = mean == arm.mean or (
            mean is not None and arm.mean is not None and math.isclose(mean, arm.mean, rel_tol=1e-9, abs_tol=1e-12)
        )
        if (assigned[arm.name], len(rewards)) != (arm.assigned, arm.rewarded) or not same_mean:
            yield f"{arm} by the status, recounted {assigned[arm.name]}, {len(rewards)}, {mean}"


def real_time(history: History) -> Iterator[str]:
    """What was answered is seen by every call that is made afterwards, and the log is in that order too."""
    yield from _stale_answers(history)
    yield from _stale_totals(history)
    yield from _disorder(history)


def _stale_answers(history: History) -> Iterator[str]:
    for unit, calls in history.by_unit.items():
        for later in calls:
            if later.returned == math.inf:
                continue
            before = [call for call in calls if history.must_see(call, later)]
            known = {"arm": any(one.arm is not None for call in before for one in call.seen if one.unit == unit)}
            known["reward"] = any(call.verb in ("tell", "correct") for call in before)
            # A refusal of several units does not say which it is about.
            missing = REFUSALS.get(later.error or "") if len(later.sent) == 1 else None
            if missing is not None and known[missing]:
                yield f"{later.verb} of {unit} was refused with {later.error} after its {missing} was answered"
            for one in later.seen:
                if one.unit == unit and later.verb != "ask":
                    if (known["arm"] and one.arm is None) or (known["reward"] and one.reward is None):
                        yield f"{later.verb} of {unit} shows {one.arm}, {one.reward} after another was answered"
                    elif one.reward is not None:
                        yield from _stale_reward(history, unit, one.reward, before, later)


def _stale_reward(history: History, unit: str, reward: float, before: Iterable[Call], later: Call) -> Iterator[str]:
    """Say whether a reward that was shown had been replaced by then, or had not been sent yet."""
    writers = [
        call
        for call in history.by_unit[unit]
        if call.verb in ("tell", "correct") and (unit, reward) in call.sent and call.invoked < later.returned
    ]
    if not writers:
        yield f"{later.verb} of {unit} shows {reward}, which nobody had sent"
        return
    for newer in before:
        if newer.verb == "correct" and (unit, reward) not in newer.sent:
            # A first report is always older than a correction. One sent twice may arrive again after the newer one.
            replaced = [
                call.verb == "tell" or (call.deliveries == 1 and call.returned < newer.invoked) for call in writers
            ]
            if all(replaced):
                yield f"{later.verb} of {unit} shows {reward} after it was corrected to {newer.sent}"
                return


def _stale_totals(history: History) -> Iterator[str]:
    for later in history.calls:
        if later.n_assigned is not None:
            known = {
                one.unit
                for call in history.calls
                if history.must_see(call, later)
                for one in call.seen
                if one.arm is not None
            }
            asked = {
                unit
                for call in history.calls
                if call.verb == "ask" and call.invoked < later.returned
                for unit in call.units
            }
            if not len(known) <= later.n_assigned <= len(asked):
                yield f"status shows {later.n_assigned} units; {len(known)} were answered, {len(asked)} asked for"


def _disorder(history: History) -> Iterator[str]:
    place = {event.unit: number for number, event in enumerate(history.log) if event.kind == "assigned"}
    written = [
        (call, [place[one.unit] for one in call.seen if one.new and one.unit in place])
        for call in history.calls
        if call.verb == "ask" and history.must_hold(call)
    ]
    written = sorted(((call, places) for call, places in written if places), key=lambda one: one[0].returned)
    returns = [call.returned for call, _ in written]
    last = list(accumulate((max(places) for _, places in written), max))
    for call, places in written:
        n_before = bisect_left(returns, call.invoked)
        if n_before and last[n_before - 1] > min(places):
            yield f"ask of {sorted(call.units)} is in the log before one that was answered before it was called"


def suffix(history: History) -> Iterator[str]:
    """Of what a loss may take, it takes the end: no answer is lost while a later one is still there."""
    left = {(event.unit, event.arm, event.decision, event.at) for event in history.log if event.kind == "assigned"}
    for loss in history.losses:
        touched = sorted(
            (call for call in history.calls if call.verb == "ask" and call.answered and loss.touches(call)),
            key=lambda call: call.returned,
        )
        first_lost = math.inf
        for call in touched:
            if call.returned <= loss.stopped and any(
                one.new and (one.unit, one.arm, one.number, one.at) not in left for one in call.seen
            ):
                first_lost = min(first_lost, call.returned)
        for call in touched:
            for one in call.seen:
                kept = one.new and (one.unit, one.arm, one.number, one.at) in left
                if kept and first_lost < call.invoked and call.returned <= loss.stopped:
                    yield f"ask of {one.unit} survived, one that was answered before it was called did not"


def replay(history: History) -> Iterator[str]:
    """`verify` is green."""
    if history.verify is not None:
        yield history.verify


def refusals(history: History) -> Iterator[str]:
    """No call is refused for a reason that its client cannot have given."""
    for call in history.calls:
        if call.error is not None and call.error not in REFUSALS:
            yield f"{call.verb} of {sorted(call.units)} was refused with {call.error}"


PROPERTIES: dict[str, Callable[[History], Iterator[str]]] = {
    check.__name__: check for check in (stickiness, acknowledged, once, real_time, suffix, replay, refusals)
}


def _values(log: Iterable[Logged], kind: str, value: Callable[[Logged], object]) -> dict[str | None, list[object]]:
    found: dict[str | None, list[object]] = defaultdict(list)
    for event in log:
        if event.kind == kind:
            found[event.unit].append(value(event))
    return found
