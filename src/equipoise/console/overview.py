"""Show how an experiment stands: a sentence, its stopping rules, its arms with intervals."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.console.visits import Shown, Visit
from equipoise.experiment import Status


@dataclass(frozen=True)
class OverviewView:
    """How an experiment stands."""

    status: Status


def show(visit: Visit) -> Shown:
    """Show the status."""
    return Shown("overview.html", OverviewView(visit.status), "Overview")
