"""Write a plan: events, arms and what is pending, in the transaction it was planned in."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equipoise.experiment.draft import Plan
    from equipoise.store import Transaction


def write_plan(transaction: Transaction, experiment: int, plan: Plan) -> None:
    """Write what a plan changes; nothing is committed here."""
    if not plan.events:
        return
    state = plan.state
    if plan.forget_pending:
        transaction.forget_pending(experiment, plan.forget_pending)
    if plan.configured is not None:
        transaction.configure(experiment, state.configuration.to_json(), plan.configured)
    transaction.begin_last_writes()
    transaction.append(experiment, plan.events)
    if plan.touched:
        rows = [state.arm_row(position, state.n_events) for position in sorted(plan.touched)]
        transaction.put_arms(experiment, rows)
    if plan.put_pending:
        transaction.put_pending(experiment, list(plan.put_pending.values()))
    transaction.advance(experiment, state.state, state.n_events, state.n_decisions)
