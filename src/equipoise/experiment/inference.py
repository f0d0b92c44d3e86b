"""What may be said of an experiment's arms from their sums: evidence, which may be best, comparisons."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.analysis.best_arm import facing_up, loss_of_choosing, may_be_best
from equipoise.analysis.comparisons import (
    checked_confidence,
    compare,
    difference_ends,
    finite,
    leading,
    position,
    standing_sentence,
)
from equipoise.analysis.evidence import Evidence, tightest_for
from equipoise.analysis.report import Design, report_on
from equipoise.errors import InvalidInput
from equipoise.experiment.configuration import checked_attributes
from equipoise.experiment.state import FINISHED, RETIRED, STOPPED
from equipoise.experiment.stopping import Budget
from equipoise.policies import GAFS, Fixed, GAFSMax, Uniform
from equipoise.policies.dial_policy import DialPolicy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise._types import FloatArray
    from equipoise.analysis.observations import Observations
    from equipoise.analysis.results import Comparison, Report
    from equipoise.experiment.configuration import Configuration
    from equipoise.experiment.records import Status
    from equipoise.experiment.state import State

_CONVERGING = (DialPolicy, Fixed, Uniform, GAFS, GAFSMax)
"""Policies whose shares converge to positive numbers; of those with a dial, unless it is at reward."""
_LATE = 0.05
"""How far enrolment may go beyond the declared number of people: a class or a day's batch."""
_SIMULATIONS, _LONGEST_SIMULATION = 40, 5_000
MOST_IN_SENTENCE = 100
"""With more arms than this, the sentence of `status` only counts them."""


def evidence_of(state: State) -> Evidence:
    """Return the evidence about the means of the arms, as rewards are reported."""
    configuration = state.configuration
    return Evidence.of(
        state.stats,
        reward_range=configuration.counted_range,
        sign=configuration.sign,
        tightest_at=tightest_at(configuration, state.n_first),
    )


def tightest_at(configuration: Configuration, n_first: int) -> float:
    """Return the number of rewards per arm at which intervals are narrowest: what a budget leaves for each arm."""
    budgets = [rule.units for rule in configuration.stopping if isinstance(rule, Budget)]
    return tightest_for(budgets, n_first)


def standing(state: State, evidence: Evidence, read: frozenset[str]) -> dict[str, Any]:
    """Return which arms may be best, a sentence about it, and what the stopping rules read besides."""
    configuration, n_first, retired = state.configuration, state.n_first, retired_arms(state)
    delta, up = configuration.failure_probability, configuration.direction == "maximise"
    in_play = np.array([name not in retired for name in state.names])
    still = may_be_best(evidence, delta, larger_is_better=up, n_first=n_first, in_play=in_play)
    remaining = tuple(state.names[i] for i in np.flatnonzero(still))
    found: dict[str, Any] = {"may_be_best": remaining}
    if len(state.names) > MOST_IN_SENTENCE:
        found["sentence"] = f"{len(remaining):,} of {int(in_play.sum()):,} arms may still be best."
    else:
        found["sentence"] = standing_sentence(
            evidence,
            state.names,
            remaining,
            failure_probability=delta,
            control=configuration.control,
            n_first=n_first,
            retired=retired,
            up=up,
        )
    if "most_lost" in read:
        found["most_lost"] = leader_lost(configuration, evidence, n_first=n_first, in_play=in_play)
    if "widest_difference" in read:
        found["widest_difference"] = widest_difference(
            configuration, state.names, evidence, n_first=n_first, retired=retired
        )
    return found


def retired_arms(state: State) -> tuple[str, ...]:
    """Return the arms that can no longer be chosen."""
    return tuple(name for name, one in zip(state.names, state.arm_states, strict=True) if one == RETIRED)


def leader_lost(
    configuration: Configuration,
    evidence: Evidence,
    *,
    n_first: int | None = None,
    in_play: NDArray[np.bool_] | None = None,
) -> float | None:
    """Return the most that choosing the arm with the best mean can cost; None while nothing can be said.

    By default no arm was added or retired so far.
    """
    up, chosen = configuration.direction == "maximise", np.ones(evidence.n_arms, bool) if in_play is None else in_play
    leader = leading(facing_up(evidence, up), chosen)
    if leader is None:
        return None
    first = evidence.n_arms if n_first is None else n_first
    delta = configuration.failure_probability
    return finite(loss_of_choosing(evidence, leader, delta, larger_is_better=up, n_first=first, in_play=chosen))


def widest_difference(
    configuration: Configuration, names: list[str], evidence: Evidence, *, n_first: int, retired: Collection[str] = ()
) -> float | None:
    """Return the widest half-width of the differences between arms, retired ones aside; None while one is unknown."""
    first, second, low, high = difference_ends(
        evidence,
        names,
        failure_probability=configuration.failure_probability,
        control=configuration.control,
        direction=configuration.direction,
        n_first=n_first,
    )
    widest = None
    for a, b, least, most in zip(first.tolist(), second.tolist(), low.tolist(), high.tolist(), strict=True):
        if names[a] in retired or names[b] in retired:
            continue
        difference = float(evidence.mean[a] - evidence.mean[b])
        if not all(map(math.isfinite, (difference, least, most))):
            return None
        widest = max(difference - least, most - difference, -math.inf if widest is None else widest)
    return widest


def comparison_of(state: State, status: Status, given: dict[str, Any]) -> Comparison:
    """Compare the arms of an experiment.

    Parameters
    ----------
    state : State
        Of the experiment.
    status : Status
        At the same time.
    given : dict
        As the caller of `Experiment.compare` set it.
    """
    settings = dict(given)
    control, all_pairs = settings.pop("control", None), settings.pop("all_pairs", False)
    arm, other = settings.pop("arm", None), settings.pop("other", None)
    pair = {"arm": arm, "other": other}
    for parameter, one in (pair | {"control": control}).items():
        if one is not None:
            position(state.names, one, parameter=parameter)
    if arm is None and other is None:
        if all_pairs and control is not None:
            raise InvalidInput.of("control", "must be left out where all pairs are compared", control)
        control = state.configuration.control if control is None and not all_pairs else control
    elif arm is None or other is None or arm == other:
        missing = "arm" if arm is None else "other"
        raise InvalidInput.of(missing, "must be given too: a pair has two arms", *([other] if arm == other else []))
    elif control is not None or all_pairs:
        raise InvalidInput.of("arm", "must be left out where arms are compared with a control, or all pairs", arm)
    else:
        settings["pairs"] = [(arm, other)]
    settings = {"control": control, "name": state.name, "at": status.at, "provisional": status.provisional} | settings
    return _remarked(_compared(state, evidence_of(state), settings), state)


def _remarked(found: Comparison, state: State) -> Comparison:
    """Return a comparison that says so if it is of arms that were not declared for it."""
    is_pair = found.compared == "pair"
    if len(state.names) < 3 or (not is_pair and found.control in (None, state.configuration.control)):
        return found
    chosen = "These two arms were" if is_pair else "This control was"
    remark = f"{chosen} not declared beforehand: if the data suggested the choice, the intervals are too narrow."
    return dataclasses.replace(found, assumptions=(*found.assumptions, remark))


def report_settings(state: State, given: dict[str, Any]) -> dict[str, Any]:
    """Check what a report is asked for, before the log is read, and fill in what the experiment declared."""
    configuration = state.configuration
    declared: dict[str, Any] = {
        "confidence": 1 - configuration.failure_probability,
        "adjust": configuration.covariates,
        "by": (),
    }
    settings = declared | {"control": configuration.control} | given
    checked_confidence(settings["confidence"])
    if settings["control"] is not None:
        position(state.names, settings["control"], parameter="control")
    for name in ("adjust", "by"):
        settings[name] = checked_attributes(name, settings[name])
    # Covariates that were declared, and then not logged as declared, must not stand in the way of a report.
    settings["optional"] = frozenset() if "adjust" in given else frozenset(settings["adjust"]) - {*settings["by"]}
    return settings


def report_of(state: State, status: Status, observations: Observations, settings: dict[str, Any]) -> Report:
    """Report on an experiment.

    Parameters
    ----------
    state, status : State and Status
        Of the experiment, at the same time.
    observations : Observations
        Its log.
    settings : dict
        As `report_settings` returns them.
    """
    configuration = state.configuration
    design = Design(
        name=state.name,
        control=configuration.control,
        declared=frozenset(configuration.covariates),
        n_first=state.n_first,
        stopped_by_budget=_stopped_by_budget(state),
        reward_weight=status.reward_weight,
        shares_converge=isinstance(configuration.policy, _CONVERGING),
        simulated_shares=partial(_simulated_shares, state),
        retired=retired_arms(state),
        provisional=status.provisional,
        tightest_at=tightest_at(configuration, state.n_first),
    )
    optional = settings["optional"] - observations.attributes.keys()
    chosen = {name: value for name, value in settings.items() if name != "optional"}
    chosen["adjust"] = tuple(name for name in settings["adjust"] if name not in optional)
    found = report_on(observations, design, stats=state.stats, at=status.at, **chosen)
    return dataclasses.replace(found, comparison=_remarked(found.comparison, state))


def _stopped_by_budget(state: State) -> bool:
    """Return whether enrolment ended at a declared number of people, or so soon after that nobody chose when."""
    if state.state not in (STOPPED, FINISHED):
        return False
    configuration, n_assigned = state.configuration, state.stats.n_assigned
    limits = [rule.units for rule in configuration.stopping if isinstance(rule, Budget)]
    limits += [] if configuration.most_units is None else [configuration.most_units]
    return any(limit <= n_assigned <= limit * (1 + _LATE) for limit in limits)


def _simulated_shares(state: State) -> FloatArray:
    """Return the shares of the arms in simulations of the experiment at its estimates: an array (runs, n_arms)."""
    from equipoise.arms import Gaussian
    from equipoise.simulation import simulate

    decider, stats = state.decider, state.stats.only(state.decider.active)
    horizon = min(state.stats.n_assigned, _LONGEST_SIMULATION)
    arms = Gaussian(mean=stats.mean.tolist(), std=stats.std.tolist())
    runs = simulate(decider.policy, arms, horizon=horizon, replications=_SIMULATIONS, seed=0, progress=False)
    own: FloatArray = runs.pulls[0, :, -1] / horizon
    reserved, total = decider.share, float(decider.share.sum())
    return reserved + (1.0 - total) * own


def _compared(state: State, evidence: Evidence, settings: dict[str, Any]) -> Comparison:
    configuration = state.configuration
    if settings.get("confidence") is None:
        settings["confidence"] = 1 - configuration.failure_probability
    return compare(
        evidence,
        state.names,
        direction=configuration.direction,
        n_first=state.n_first,
        retired=retired_arms(state),
        **settings,
    )
