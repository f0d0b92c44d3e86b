"""Create an experiment: its configuration, its arms and the first event of its log, in one transaction."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from equipoise.errors import ExperimentExists
from equipoise.experiment.changes import created_state
from equipoise.experiment.draft import Plan
from equipoise.experiment.instants import microseconds
from equipoise.experiment.texts import checked_who
from equipoise.experiment.writing import write_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from equipoise.experiment.configuration import Configuration
    from equipoise.store import Store, Transaction


def create(
    store: Store, name: str, configuration: Configuration, arms: Sequence[tuple[str, float]], who: str | None
) -> int:
    """Write a new experiment, whose arms come with the shares kept for them, and return its number."""
    details: dict[str, Any] = {
        "configuration": configuration.to_dict(),
        "arms": [{"name": arm, "floor": share} for arm, share in arms],
    }
    state = created_state(name, microseconds(store.now()), details)
    state.decider  # noqa: B018  (raises if the policy does not fit the arms)
    first = Plan(state, touched=set(range(len(state.names))))
    text = state.configuration.to_json()
    created = (1, "created", state.created_at, checked_who(who), *[None] * 8, json.dumps(details, allow_nan=False))
    first.events.append(created)

    def work(transaction: Transaction) -> int:
        number = transaction.find(name)
        if number is not None:
            # After a connection was lost while committing, what is found may be what was written.
            if transaction.configuration(number) == (name, state.created_at, text):
                return number
            raise ExperimentExists(
                f"{store.url} has an experiment {name!r} already", hint="choose another name, or open it"
            )
        number = transaction.create(name, state.state, state.created_at, text)
        write_plan(transaction, number, first)
        return number

    return store.change(None, work)
