"""Show the health of an experiment: alerts with what to do, every check, refused calls, and the last verification.

Muting a check asks first, as every act does. Verifying replays the whole log, so it goes on beside the pages.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from equipoise.console.acts import ActView, Input, Sentence, quoted, reason_input
from equipoise.console.addresses import address
from equipoise.console.form_values import optional_text, problem_in, text_in
from equipoise.console.help_page import counted
from equipoise.console.visits import Redirect, Shown, Visit
from equipoise.errors import EquipoiseError, InvalidInput
from equipoise.experiment import Alert, Check, Health, LastVerification, RefusedCalls
from equipoise.experiment.commands import checked_check
from equipoise.experiment.event_kinds import MUTED, UNMUTED
from equipoise.monitoring import check_names as names
from equipoise.monitoring.health_records import SEVERITIES, alike

PATH, ACT = "e/{name}/health", "e/{name}/health/{act}"
VERIFY = "verify"
_SECONDS = 5.0
"""Most seconds that what was found is shown again: looking takes some 10 ms, however many look."""
_MOST_ALERTS, _MOST_ROWS = 30, 50
_SHARES = frozenset(
    (
        names.MISSING_BY_ARM,
        names.MISSING,
        names.DELAY_DRIFT,
        names.DELAY_BY_ARM,
        names.TRACKING,
        names.REFUSED,
        names.OFF_PLAN,
    )
)
"""Checks whose numbers are shares."""
_DAYS = (("1", "until tomorrow"), ("7", "for a week"), ("28", "for four weeks"), ("90", "for three months"))


@dataclass(frozen=True)
class AlertCard:
    """An alert that is open, with where to mute it or to let it be told again."""

    severity: str
    check: str
    arm: str | None
    sentence: str
    advice: str
    opened_at: datetime
    muted_until: datetime | None
    muted_by: str | None
    mute_reason: str | None
    unit: str | None
    """Address of the person whom it is about."""
    act: str
    """Address that mutes it, or unmutes it."""


@dataclass(frozen=True)
class CheckLine:
    """A check, or those of several arms of which there is nothing to say."""

    state: str
    check: str
    arm: str | None
    sentence: str
    value: str
    expected: str
    since: datetime | None


@dataclass(frozen=True)
class HealthView:
    """The health of an experiment."""

    headline: str
    alerts: tuple[AlertCard, ...]
    n_more: int
    """Alerts that are not shown."""
    checks: tuple[CheckLine, ...]
    refused: tuple[RefusedCalls, ...]
    verified: LastVerification | None
    verifying_since: datetime | None
    changes: bool
    """Whether the viewer may mute."""
    done: str | None
    day: int


def show(visit: Visit) -> Shown:
    """Show the health as it is now, or was seconds ago."""
    health, started = health_of(visit), visit.under_way(VERIFY)
    done = _DONE.get(visit.query.get("done", ""))
    shown = health.alerts[:_MOST_ALERTS]
    headline = _headline(health)
    view = HealthView(
        headline=headline,
        alerts=tuple(_card(visit, one) for one in shown),
        n_more=len(health.alerts) - len(shown),
        checks=tuple(check_lines(health.checks)),
        refused=health.refused[:_MOST_ROWS],
        verified=health.verified,
        verifying_since=started,
        changes=visit.viewer.changes and visit.description["state"] != "finished",
        done=None if done == _DONE["verifying"] and started is None else done,
        day=health.day,
    )
    return Shown("health.html", view, headline)


def _headline(health: Health) -> str:
    """Return how many alerts are open; their sentences follow. Without any, return the sentence."""
    told = [one for one in health.alerts if not one.is_muted]
    counts = [counted(sum(one.severity == severity for one in told), severity) for severity in SEVERITIES]
    found = " and ".join(one for one in counts if not one.startswith("0 "))
    return found[0].upper() + found[1:] if found else health.sentence.rstrip(".")


def health_of(visit: Visit) -> Health:
    """Return the health of the experiment; muting is seen at once, everything else after some seconds."""
    said = visit.the.changes(1, kinds=(MUTED, UNMUTED))
    last = said[0].number if said else 0
    return visit.remember(f"health {last} {visit.under_way(VERIFY)}", visit.the, visit.the.health, seconds=_SECONDS)


def act(visit: Visit) -> Redirect:
    """Begin to verify the experiment."""
    if visit.form.get("do") != VERIFY:
        raise InvalidInput("this form asks for nothing that can be done")
    visit.begin(VERIFY, visit.the.verify)
    return Redirect(f"{address(PATH, name=visit.the.name)}?done=verifying")


def check_lines(checks: Iterable[Check]) -> list[CheckLine]:
    """Return a line for each check; of many arms that are in the same state, one for all.

    Examples
    --------
    >>> rows = [Check("delay by arm", arm, "ok", f"{arm} is fine.") for arm in "abcd"]
    >>> [line.sentence for line in check_lines(rows)]
    ['4 arms, such as: a is fine.']
    """
    lines = [_line(found[0]) if len(found) == 1 else _line_of_many(found) for found in alike(checks)]
    return lines[:_MOST_ROWS]


def _line(one: Check) -> CheckLine:
    value, expected = (number_words(one.check, number) for number in (one.value, one.expected))
    return CheckLine(one.state, one.check, one.arm, one.sentence, value, expected, one.since)


def _line_of_many(found: list[Check]) -> CheckLine:
    first = found[0]
    return CheckLine(
        first.state, first.check, None, f"{len(found):,} arms, such as: {first.sentence}", "", "", first.since
    )


def number_words(check: str, value: float | None) -> str:
    """Return the number of a check as people read it.

    Examples
    --------
    >>> number_words("missing by arm", 0.0123), number_words("shares as logged", 1.0512)
    ('1.2%', '1.05')
    """
    if value is None:
        return ""
    if check in _SHARES:
        return f"{value:.1%}" if abs(value) < 0.1 else f"{value:.0%}"
    return f"{value:.3g}".replace("-", "\N{MINUS SIGN}")


def _card(visit: Visit, alert: Alert) -> AlertCard:
    name = visit.the.name
    unit = None
    if alert.event is not None:
        found = visit.the.events_page(alert.event - 1, 1)
        if found and found[0].unit is not None:
            unit = address("e/{name}/people/{unit}", name=name, unit=found[0].unit)
    to = address(ACT, name=name, act="unmute" if alert.is_muted else "mute")
    query = "check={check}" + ("" if alert.arm is None else "&arm={arm}")
    return AlertCard(
        severity=alert.severity,
        check=alert.check,
        arm=alert.arm,
        sentence=alert.sentence,
        advice=alert.advice,
        opened_at=alert.opened_at,
        muted_until=alert.muted_until,
        muted_by=alert.muted_by,
        mute_reason=alert.mute_reason,
        unit=unit,
        act=f"{to}?{address(query, check=alert.check, arm=alert.arm or '')}",
    )


# Muting


def show_act(visit: Visit) -> Shown:
    """Ask until when and why a check is to be muted, or whether it is to be told again."""
    return _asking(visit).shown()


def act_on_check(visit: Visit) -> Redirect | Shown:
    """Mute a check, or unmute it."""
    asked = _asking(visit)
    check, arm = _about(visit)
    try:
        if visit.names["act"] == "unmute":
            visit.the.unmute(check, arm=arm, reason=optional_text(visit.form, "reason"))
        else:
            visit.the.mute(check, arm=arm, until=_until(visit), reason=_reason(visit))
    except EquipoiseError as error:
        return replace(asked, problem=problem_in(error)).shown(422)
    return Redirect(f"{address(PATH, name=visit.the.name)}?done={visit.names['act']}d")


def _about(visit: Visit) -> tuple[str, str | None]:
    return checked_check(visit.query.get("check", "")), visit.query.get("arm") or None


def _asking(visit: Visit) -> ActView:
    check, arm = _about(visit)
    about = quoted(check) + ("" if arm is None else f" of {quoted(arm)}")
    form, back = visit.form, address(PATH, name=visit.the.name)
    if visit.names["act"] == "unmute":
        again = Sentence("Alerts of this check are on top of the pages again, and are sent again.")
        why = reason_input(form.get("reason", ""))
        return ActView(f"Tell alerts about {about} again?", (again,), "Unmute", (why,), back=back)
    if visit.names["act"] != "mute":
        raise InvalidInput("there is no such act", hint="the health of the experiment has all")
    words = (
        Sentence("Alerts of this check are not sent meanwhile, and stand at the end of this page only."),
        Sentence("The check goes on. If it still finds something on that day, it is told then."),
    )
    inputs = (
        Input("days", "How long?", form.get("days", "7"), kind="choice", options=_DAYS),
        Input(
            "until",
            "Or until a day of your own (may be left empty)",
            form.get("until", ""),
            "As 2027-06-30, until its begin in UTC; at most a year away.",
            longest=40,
        ),
        reason_input(form.get("reason", ""), is_required=True),
    )
    return ActView(f"Mute {about}?", words, "Mute it", inputs, back=back)


def _until(visit: Visit) -> datetime:
    text = text_in(visit.form, "until")
    if text:
        try:
            at = datetime.fromisoformat(text)
        except ValueError:
            raise InvalidInput.of("until", "must be a day, such as 2027-06-30", text) from None
        return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    days = text_in(visit.form, "days")
    if days not in dict(_DAYS):
        raise InvalidInput("say how long the check is to be muted")
    return visit.now + timedelta(days=int(days))


def _reason(visit: Visit) -> str:
    reason = text_in(visit.form, "reason")
    if not reason:
        raise InvalidInput("the reason is missing: it goes into the log")
    return reason


_DONE = {
    "muted": "Muted. The log says until when, and why.",
    "unmuted": "Alerts of this check are told again.",
    "verifying": "The log is replayed now. Open this page again to see what that found.",
}
