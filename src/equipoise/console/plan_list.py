"""List the plans that the service keeps: those asked for last first, with what they say and how far they are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from equipoise.console.help_page import counted
from equipoise.console.visits import Plans, Shown, Visit

AT_WORK = ("waiting", "working")
"""States of a plan that is not done yet."""


@dataclass(frozen=True)
class PlanLine:
    """A plan in the list."""

    id: str
    title: str
    state: str
    words: str
    asked_at: datetime
    says: str
    """The first sentence of the recommendation, if there is one."""


@dataclass(frozen=True)
class PlanListView:
    """The plans."""

    plans: tuple[PlanLine, ...]


def show(visit: Visit) -> Shown:
    """Show the plans."""
    lines = tuple(_line(one, visit.plans) for one in visit.plans.summaries())
    n_at_work = sum(line.state in AT_WORK for line in lines)
    return Shown("plans.html", PlanListView(lines), f"Plans: {n_at_work} at work" if n_at_work else "Plans")


def _line(summary: dict[str, Any], plans: Plans) -> PlanLine:
    contents = plans.contents(summary["id"])
    said = [] if contents is None else contents.paragraphs
    return PlanLine(
        id=summary["id"],
        title=summary["title"],
        state=summary["state"],
        words=state_words(summary),
        asked_at=datetime.fromisoformat(summary["asked_at"]),
        says=said[0][0] if said else "",
    )


def state_words(record: dict[str, Any]) -> str:
    """Return how far a plan is, in words.

    Examples
    --------
    >>> state_words({"state": "working", "replications": 40})
    '40 simulated experiments of each way so far'
    """
    state, number = record["state"], record["replications"]
    simulated = f"{counted(number, 'simulated experiment')} of each way"
    if state == "waiting":
        return "waits for its turn"
    if state == "working":
        return f"{simulated} so far" if number else "the first experiments are being simulated"
    if state == "failed":
        return f"failed: {record.get('error', '')}"
    if state == "cancelled":
        return f"cancelled after {simulated}" if number else "cancelled"
    return simulated
