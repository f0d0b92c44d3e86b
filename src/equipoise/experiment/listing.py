"""The experiments of a store, as they are listed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from equipoise.experiment.instants import instant

if TYPE_CHECKING:
    from datetime import datetime

    from equipoise.store import Store


@dataclass(frozen=True)
class ExperimentSummary:
    """An experiment as it is listed."""

    name: str
    state: str
    created_at: datetime
    policy: dict[str, Any]
    n_arms: int
    n_assigned: int
    n_rewarded: int


def summaries(store: Store) -> list[ExperimentSummary]:
    """Return all experiments of a store, oldest first."""
    return [
        ExperimentSummary(name, state, instant(created_at), _policy(configuration), n_arms, assigned, pulls)
        for name, state, created_at, configuration, n_arms, assigned, pulls in store.read(
            lambda transaction: transaction.summaries()
        )
    ]


def _policy(configuration: str) -> dict[str, Any]:
    """Return the policy in a configuration; of one that is damaged nothing, as it must not hide the others."""
    try:
        return dict(json.loads(configuration)["policy"])
    except (ValueError, TypeError, LookupError):
        return {}
