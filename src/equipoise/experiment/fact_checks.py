"""Checks that state facts: a rule is met, a deadline passed, a key expires, a log does not verify, a plan is left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from equipoise.experiment.fidelity import fidelity_of, is_off_plan, is_planned
from equipoise.monitoring.check_names import (
    DEADLINE_PASSED,
    KEY_EXPIRES,
    OFF_PLAN,
    RULE_MET,
    SUMS_BY_HOUR,
    VERIFICATION,
    WINDOWS_OVER,
)
from equipoise.monitoring.health_records import NOT_ENOUGH, NOTE, OK, PROBLEM, Check, LastVerification
from equipoise.store.schema import instant

if TYPE_CHECKING:
    from equipoise.experiment.records import Progress, Status
    from equipoise.store.transaction import Key

EXPIRES_SOON = timedelta(days=7)
"""A key that expires within this time is worth a note."""


def fact_checks(
    status: Status,
    metadata: Mapping[str, Any],
    keys: Sequence[Key],
    verified: LastVerification | None,
    damage: str | None,
) -> Iterator[Check]:
    """Yield the facts about an experiment.

    Parameters
    ----------
    status : Status
        How it stands.
    metadata : mapping
        Its metadata, which hold the plan it was made from, if any.
    keys : sequence of Key
        All keys of the store.
    verified : LastVerification or None
        What the last verification found.
    damage : str or None
        Why the sums by hour could not be read, if so.
    """
    yield _rules(status)
    yield _deadline(status)
    yield _windows(status)
    yield _keys(status, keys)
    if is_planned(metadata):
        yield _plan(status, metadata)
    yield _sums(damage)
    yield _verified(verified)


_RULES = {
    "budget": "the budget of {goal} people is reached",
    "precision": "the largest plus or minus is {now}, wanted was {goal}",
    "precision of differences": "the widest difference between arms is known to {now}, wanted was {goal}",
    "decided": "{now} arm may still be best",
    "decided within a margin": "the best so far is worse than another by at most {now}, wanted was {goal}",
}


def _rules(status: Status) -> Check:
    met = [one for one in status.stopping if one.met and one.rule != "deadline"]
    if not met or status.state not in ("enrolling", "paused"):
        return Check(RULE_MET, None, OK, "No stopping rule is met that waits for a decision.")
    said = "; ".join(
        _RULES.get(one.rule, "{now} of {goal}").format(now=_text(one.now), goal=_text(one.goal)) for one in met
    )
    return Check(
        RULE_MET,
        None,
        NOTE,
        f"{'A stopping rule is' if len(met) == 1 else f'{len(met)} stopping rules are'} met: {said}.",
        advice="Compare the arms, decide, and stop the experiment; the log keeps the decision if you note it.",
    )


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _deadline(status: Status) -> Check:
    passed: list[Progress] = [one for one in status.stopping if one.met and one.rule == "deadline"]
    if not passed or status.state not in ("enrolling", "paused"):
        return Check(DEADLINE_PASSED, None, OK, "No deadline has passed while people are still taken.")
    return Check(
        DEADLINE_PASSED,
        None,
        NOTE,
        f"The deadline {passed[0].goal} has passed, and the experiment is {status.state}.",
        advice="Stop it, so that nobody new is assigned; rewards are still taken.",
    )


def _windows(status: Status) -> Check:
    if status.state != "stopped" or status.last_window_at is not None or status.n_pending > status.n_overdue:
        return Check(WINDOWS_OVER, None, OK, "It is not stopped, or windows are still open.")
    return Check(
        WINDOWS_OVER,
        None,
        NOTE,
        "The experiment is stopped, and no window is open any more.",
        advice="Finish it when no late reward is awaited: then its numbers are final.",
    )


def _keys(status: Status, keys: Sequence[Key]) -> Check:
    soon = sorted(
        (instant(one.expires_at), one)
        for one in keys
        if one.experiment in (None, status.name) and one.revoked_at is None and one.expires_at is not None
    )
    soon = [(at, one) for at, one in soon if status.at < at <= status.at + EXPIRES_SOON]
    if not soon or status.state == "finished":
        return Check(KEY_EXPIRES, None, OK, "No key for this experiment expires within 7 days.")
    listed = ", ".join(f"{one.name!r} ({one.id}) on {at:%Y-%m-%d at %H:%M} UTC" for at, one in soon[:5])
    more = f" and {len(soon) - 5} more" if len(soon) > 5 else ""
    return Check(
        KEY_EXPIRES,
        None,
        NOTE,
        f"{'A key expires' if len(soon) == 1 else f'{len(soon)} keys expire'} within 7 days: {listed}{more}.",
        advice="Make a new key with equipoise keys create, give it to the client, then revoke the old one.",
    )


def _plan(status: Status, metadata: Mapping[str, Any]) -> Check:
    found = fidelity_of(status, metadata)
    known = [one for one in found.figures if one.inside is not None]
    if not known:
        return Check(OFF_PLAN, None, NOT_ENOUGH, "Nothing that was planned can be compared yet.")
    inside = len(known) - len(found.outside)
    off = is_off_plan(found.figures) and status.state in ("enrolling", "paused")
    return Check(
        OFF_PLAN,
        None,
        NOTE if off else OK,
        f"On day {found.day:.0f}, {inside} of {len(known)} planned figures are inside their 8-in-10 range.",
        inside / len(known),
        0.8,
        f"{' '.join(found.sentences[:2])} Plan again from here." if off else "",
    )


def _sums(damage: str | None) -> Check:
    if damage is None:
        return Check(SUMS_BY_HOUR, None, OK, "The sums by hour reach the end of the log.")
    return Check(
        SUMS_BY_HOUR,
        None,
        PROBLEM,
        f"The sums by hour cannot be read, so most checks are not made: {damage}.",
        advice="Verify the experiment, which says where the log or the tables are damaged.",
    )


def _verified(verified: LastVerification | None) -> Check:
    if verified is None:
        return Check(VERIFICATION, None, NOT_ENOUGH, "The experiment was never verified.")
    when = f"{verified.at:%Y-%m-%d at %H:%M} UTC"
    if verified.error is None:
        return Check(VERIFICATION, None, OK, f"All {verified.n_events:,} events verified on {when}.")
    return Check(
        VERIFICATION,
        None,
        PROBLEM,
        f"The experiment does not verify, as of {when}.",  # the error may name a unit, and alerts are sent around
        advice="Keep the store as it is, and restore the last backup that verifies; rebuild mends the tables if only "
        "they differ.",
        since=verified.at,
    )


def last_verification(rows: Sequence[Sequence[Any]]) -> LastVerification | None:
    """Return the last verification from rows of its table."""
    if not rows:
        return None
    at, n_events, seconds, error = rows[0]
    when: datetime = instant(at)
    return LastVerification(when, n_events, seconds, error)
