"""Show the list of experiments, and which of them need somebody."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.console.visits import Shown, Visit
from equipoise.experiment.records import ExperimentSummary


@dataclass(frozen=True)
class ListView:
    """The list of experiments."""

    experiments: tuple[ExperimentSummary, ...]


def show(visit: Visit) -> Shown:
    """Show the experiments that the viewer may see, newest first."""
    return Shown("list.html", ListView(tuple(reversed(visit.listed()))), "Experiments")
