"""Compute the status of an experiment, compare dials (`what_if`), describe its settings, and list a store."""

from __future__ import annotations

import dataclasses
import json
import math
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.analysis.comparisons import finite, half_width
from equipoise.analysis.expected_widths import half_widths
from equipoise.analysis.multiplicity import arm_failures
from equipoise.experiment.decider import Decider
from equipoise.experiment.dial import information_in
from equipoise.experiment.inference import evidence_of, standing
from equipoise.experiment.prices import gain_so_far
from equipoise.experiment.provisional import provisional_reasons
from equipoise.experiment.records import ArmStatus, ExperimentSummary, Status, WhatIf
from equipoise.experiment.rewards_ahead import rewards_ahead
from equipoise.experiment.state import dial_from, too_few_rewards
from equipoise.objective_families import ROOT_MEAN_SQUARE
from equipoise.policies.dial_policy import DialPolicy
from equipoise.store.schema import instant, microseconds
from equipoise.unit_lifecycle import N_DEFAULTED, N_DROPPED, N_HELD, N_OVERDUE, N_WITHDRAWN

if TYPE_CHECKING:
    from equipoise.experiment.state import State
    from equipoise.store import Store, Transaction


def read_status(transaction: Transaction, experiment: int, state: State, now: datetime) -> Status:
    """Return the status of an experiment in a store, counting units that fell due since its last event."""
    windowed = state.configuration.missing.window_seconds is not None
    if not windowed:
        return status_of(state, now, {})
    last = transaction.last_window(experiment)
    open_until = None if last is None or last <= microseconds(now) else instant(last)
    status = status_of(state, now, transaction.n_due(experiment, microseconds(now)))
    return dataclasses.replace(status, last_window_at=open_until)


def describe(state: State) -> dict[str, Any]:
    """Return name, state, arms, description and settings as plain data that JSON can hold."""
    rows = zip(state.names, state.arm_states, state.floors, strict=True)
    return {
        "name": state.name,
        "state": state.state,
        "created_at": instant(state.created_at).isoformat(),
        "arms": [{"name": arm, "state": arm_state, "floor": floor} for arm, arm_state, floor in rows],
        "description": state.configuration.description.to_dict(),
        "configuration": state.configuration.to_dict(),
    }


def status_of(state: State, now: datetime, n_due: dict[int, int]) -> Status:
    """Compute the status from a state; `n_due` is the number of units per arm that fell due since the last event."""
    configuration, stats, counters = state.configuration, state.stats, state.counters
    evidence = evidence_of(state)
    delta, n_first = configuration.failure_probability, state.n_first
    lows, highs = evidence.intervals(arm_failures(delta, stats.n_arms, n_first))
    targets = state.decider.target(stats)
    total = stats.n_assigned
    arms = []
    for i, name in enumerate(state.names):
        assigned, pulls = stats.assigned.item(i), stats.pulls.item(i)
        dropped, withdrawn = counters[N_DROPPED].item(i), counters[N_WITHDRAWN].item(i)
        mean = finite(configuration.sign * stats.mean.item(i))
        arms.append(
            ArmStatus(
                arm=name,
                state=state.arm_states[i],
                assigned=assigned,
                rewarded=pulls,
                pending=assigned - pulls - dropped - withdrawn,
                held=counters[N_HELD].item(i),
                overdue=counters[N_OVERDUE].item(i) + n_due.get(i, 0),
                defaulted=counters[N_DEFAULTED].item(i),
                dropped=dropped,
                withdrawn=withdrawn,
                mean=None if mean is None else mean + 0.0,
                std=finite(stats.std.item(i)),
                target_share=None if targets is None else targets.item(i),
                actual_share=assigned / total if total else None,
                low=finite(lows.item(i)),
                high=finite(highs.item(i)),
                half_width=half_width(configuration.sign * stats.mean.item(i), lows.item(i), highs.item(i)),
            )
        )
    n_rewarded = int(stats.pulls.sum())
    rewards = configuration.sign * math.fsum(stats.sums[:2].ravel().tolist())
    read = frozenset[str]().union(*(rule.reads for rule in configuration.stopping))
    status = Status(
        name=state.name,
        state=state.state,
        created_at=instant(state.created_at),
        at=now,
        policy=configuration.policy.to_dict(),
        direction=configuration.direction,
        missing=configuration.missing.describe(),
        n_events=state.n_events,
        n_assigned=total,
        n_rewarded=n_rewarded,
        **{
            f"n_{name}": sum(getattr(arm, name) for arm in arms)
            for name in ("pending", "held", "overdue", "defaulted", "dropped", "withdrawn")
        },
        average_reward=rewards / n_rewarded if n_rewarded else None,
        interval=evidence.kind,
        confidence=1 - delta,
        arms=tuple(arms),
        stopping=(),
        reward_weight=_weight(state, state.decider),
        information_kept=configuration.dial.get("information_kept"),
        information_about=configuration.dial.get("information_about"),
        gain_over_equal_shares=gain_so_far(state),
        description=configuration.description,
        **standing(state, evidence, read),
    )
    drifts = state.decider.sees_drift(stats)
    status = dataclasses.replace(status, provisional=provisional_reasons(status, configuration, drifts=drifts))
    return dataclasses.replace(status, stopping=tuple(rule.progress(status) for rule in configuration.stopping))


def _weight(state: State, decider: Decider) -> float | None:
    """Return the weight between reward and accuracy, which a policy may have to solve for."""
    if isinstance(decider.policy, DialPolicy):
        return decider.policy.weight(state.stats.only(decider.active))
    return state.configuration.reward_weight


def what_if(state: State, stated: dict[str, Any]) -> WhatIf:
    """Compare another dial with the present one, on the present estimates.

    `stated` is the dial, and may have `more_units`: after how many further units half-widths are predicted, which is as
    many as there have been by default.
    """
    dial = {name: value for name, value in stated.items() if name != "more_units"}
    more = stated.get("more_units", state.stats.n_assigned)
    configuration = state.configuration.with_dial(dial_from(state, dial))
    decider = Decider(configuration, state.arm_states, state.floors)
    other, present = _measured(state, decider), _measured(state, state.decider)
    (allocation, reward, error, information), (now_allocation, now_reward, now_error, now_information) = other, present
    return WhatIf(
        reward_weight=_weight(state, decider) if configuration.reward_weight is None else configuration.reward_weight,
        present_weight=_weight(state, state.decider),
        allocation=allocation,
        present_allocation=now_allocation,
        reward=reward,
        present_reward=now_reward,
        error=error,
        present_error=now_error,
        dial=configuration.dial,
        present_dial=state.configuration.dial,
        information=information,
        present_information=now_information,
        more_units=more,
        half_widths=_expected_half_widths(state, allocation, more),
        present_half_widths=_expected_half_widths(state, now_allocation, more),
    )


def _expected_half_widths(state: State, allocation: dict[str, float], more: int) -> dict[str, float | None]:
    """Return the half-widths of a later status, if the policy steers towards an allocation from now on."""
    shares = np.array(list(allocation.values()))
    later = evidence_of(state).continued(rewards_ahead(state, shares, more))
    delta = state.configuration.failure_probability
    widths = half_widths(later, arm_failures(delta, state.stats.n_arms, state.n_first))
    return dict(zip(state.names, map(finite, widths.tolist()), strict=True))


def _measured(state: State, decider: Decider) -> tuple[dict[str, float], float, float, dict[str, float]]:
    """Return the allocation that a decider steers towards, with its reward, its error and the information it keeps."""
    target = decider.target(state.stats)
    if target is None:
        raise too_few_rewards(state)
    active = decider.active
    shares, mean, std = target[active], state.stats.mean[active], state.stats.std[active]
    objective = getattr(decider.policy, "objective", ROOT_MEAN_SQUARE)
    error = float(objective.error(shares, std)) if hasattr(objective, "error") else np.nan
    allocation = dict(zip(state.names, target.tolist(), strict=True))
    difference = getattr(decider.policy, "smallest_difference", None)
    information = information_in(shares, mean, std, objective, difference)
    return allocation, state.configuration.sign * float(shares @ mean), error, information


def summaries(store: Store) -> list[ExperimentSummary]:
    """Return all experiments of a store, oldest first."""
    return [
        ExperimentSummary(name, state, instant(created_at), _policy(configuration), n_arms, assigned, pulls)
        for name, state, created_at, configuration, n_arms, assigned, pulls in store.read(
            lambda transaction: transaction.summaries()
        )
    ]


def _policy(configuration: str) -> dict[str, Any]:
    """Return the policy in a configuration, or {} if it is damaged, so that the others can still be listed."""
    try:
        return dict(json.loads(configuration)["policy"])
    except (ValueError, TypeError, LookupError):
        return {}
