"""Show how an experiment stands: a sentence, its stopping rules, its arms with intervals, and its last changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from equipoise.console.arm_table import ArmTable, arm_table
from equipoise.console.course_pictures import pictures_of
from equipoise.console.dial_change import DialChange, change_just_made
from equipoise.console.log_page import EventLine, event_line
from equipoise.console.pictures import Picture
from equipoise.console.plan_fidelity import FidelityView, fidelity_view
from equipoise.console.visits import Shown, Visit
from equipoise.experiment.gain_words import gain_sentence
from equipoise.experiment.records import Event, Outlook, Status
from equipoise.experiment.rule_progress import RuleLine, rule_lines

LAST_CHANGES, MOST_ALERTS = 5, 5
_GUARANTEES = {
    "guaranteed": "They are guaranteed for any rewards in the declared range.",
    "low guaranteed": "Their low ends are guaranteed for rewards in the declared range, their high ends asymptotic.",
    "high guaranteed": "Their high ends are guaranteed for rewards in the declared range, their low ends asymptotic.",
    "asymptotic": "They are asymptotic: they appear from 30 rewards of an arm on, later if rewards are skewed.",
}


@dataclass(frozen=True)
class AlertLine:
    """An alert that is open."""

    severity: str
    sentence: str
    advice: str


@dataclass(frozen=True)
class Example:
    """How a program gives somebody an arm, in one language."""

    language: str
    code: str


@dataclass(frozen=True)
class OverviewView:
    """How an experiment stands."""

    name: str
    state: str
    question: str
    sentence: str
    summary: str
    provisional: tuple[str, ...]
    alerts: tuple[AlertLine, ...]
    n_more: int
    """Alerts that are on the page about health only."""
    rules: tuple[RuleLine, ...]
    table: ArmTable
    intervals: tuple[str, ...]
    settings: tuple[tuple[str, str], ...]
    changes: tuple[EventLine, ...]
    pictures: tuple[Picture, ...]
    examples: tuple[Example, ...]
    dial_change: DialChange | None = None
    fidelity: FidelityView | None = None


def show(visit: Visit) -> Shown:
    """Show how it stands now."""
    status = visit.status
    view = overview_of(
        status,
        visit.description["configuration"],
        visit.the.changes(LAST_CHANGES),
        query=dict(visit.query),
        address=visit.address,
        pictures=pictures_of(visit),
        outlook=visit.the.outlook() if status.stopping else None,
    )
    return Shown(
        "overview.html",
        replace(view, dial_change=change_just_made(visit), fidelity=fidelity_view(visit)),
        view.sentence,
    )


def overview_of(
    status: Status,
    configuration: dict[str, Any],
    changes: list[Event],
    *,
    query: dict[str, str] | None = None,
    address: str = "",
    pictures: tuple[Picture, ...] = (),
    outlook: Outlook | None = None,
) -> OverviewView:
    """Return the overview of a status, with the settings of the experiment and its last changes."""
    table = arm_table(status, configuration.get("control"), query or {})
    return OverviewView(
        name=status.name,
        state=status.state,
        question=status.description.question,
        sentence=_sentence(status),
        summary=_summary(status, table.average),
        provisional=status.provisional,
        alerts=tuple(AlertLine(alert.severity, alert.sentence, alert.advice) for alert in status.alerts[:MOST_ALERTS]),
        n_more=max(len(status.alerts) - MOST_ALERTS, 0),
        rules=tuple(rule_lines(status, outlook)),
        table=table,
        intervals=_intervals(status),
        settings=_settings(status, configuration),
        changes=tuple(map(event_line, changes)),
        pictures=pictures,
        examples=_examples(status, address),
    )


def _sentence(status: Status) -> str:
    if not status.n_assigned:
        return "Nobody has been assigned yet"
    if not status.n_rewarded:
        return f"{_people(status.n_assigned)} so far, and no reward yet"
    return status.sentence.rstrip(".")


def _summary(status: Status, average: str) -> str:
    """Return who came and what they gained, in a sentence or two."""
    if not status.n_assigned:
        return "The first people to be assigned and their rewards will be here."
    parts = [f"{_people(status.n_assigned)} so far, {status.n_rewarded:,} rewards counted"]
    if status.n_pending:
        parts.append(f"{status.n_pending:,} still to come")
    said = ", ".join(parts) + "."
    if average:
        said += f" The average reward is {average}."
    gain = status.gain_over_equal_shares
    if gain is not None:
        said += f" {gain_sentence(status, gain)}"
    return said


def _people(number: int) -> str:
    return "1 person" if number == 1 else f"{number:,} people"


def _intervals(status: Status) -> tuple[str, ...]:
    percent = f"{100 * status.confidence:g}%"
    holds = "would hold" if status.provisional else "hold"
    return (
        f"The intervals of all arms {holds} together, at all times, with {percent} confidence: look as often as you "
        "like, and stop whenever you like.",
        _GUARANTEES.get(status.interval, ""),
    )


def _settings(status: Status, configuration: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    policy = status.policy.get("name", "")
    rows = [("a reward says", status.description.outcome)] if status.description.outcome else []
    if status.description.owner:
        rows.append(("responsible", status.description.owner))
    rows.append(("policy", f"{policy}, {'more' if status.direction == 'maximise' else 'less'} is better"))
    if status.information_kept is not None:
        rows.append(
            ("dial", f"keeps {100 * status.information_kept:.0f}% of the information ({status.information_about})")
        )
    elif status.reward_weight is not None:
        rows.append(("dial", f"weight {status.reward_weight:.3g} between learning (0) and reward (1)"))
    bounds = configuration.get("reward_range")
    if bounds is not None:
        ends = [None if end is None else f"{end:g}" for end in bounds]
        rows.append(("rewards", f"from {ends[0] or 'any number'} to {ends[1] or 'any number'}"))
    rows.append(("missing rewards", status.missing))
    if configuration.get("control") is not None:
        share = configuration.get("control_share") or 0
        rows.append(("control", str(configuration["control"]) + (f", at least {100 * share:.0f}%" if share else "")))
    return tuple(rows)


def _examples(status: Status, address: str) -> tuple[Example, ...]:
    """Return how to assign the first person, if nobody is assigned yet."""
    if status.n_assigned or status.state != "enrolling":
        return ()
    from urllib.parse import quote

    url, name = address or "http://127.0.0.1:8000", status.name
    path = f"{url}/experiments/{quote(name, safe='')}/assignments"
    return (
        Example(
            "curl",
            f"curl -X POST {path} \\\n  -H 'Authorization: Bearer KEY' -H 'Content-Type: application/json' \\\n"
            '  -d \'{"unit": "person-1"}\'',
        ),
        Example(
            "Python",
            f'import equipoise as eq\n\nwith eq.Client("{url}", "KEY") as client:\n'
            f"    experiment = client.open({name!r})\n"
            '    arm = experiment.ask("person-1").arm\n    experiment.tell("person-1", 1.0)',
        ),
        Example(
            "JavaScript",
            f'const answer = await fetch("{path}", {{\n  method: "POST",\n'
            '  headers: { authorization: "Bearer KEY", "content-type": "application/json" },\n'
            '  body: JSON.stringify({ unit: "person-1" }),\n});\nconst { arm } = await answer.json();',
        ),
    )
