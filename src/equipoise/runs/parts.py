"""Parts and wholes of runs: some of their policies and replications, and several runs as one."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import InvalidInput
from equipoise.policies import Policy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from equipoise.runs.runs import Runs

PER_ARM = ("pulls", "mean", "std", "target")
"""The arrays of runs that have all four axes: policy, replication, checkpoint and arm."""


def selected(runs: Runs, policies: Sequence[int | Policy] | None, replications: Sequence[int] | None) -> Runs:
    """Return the runs of some policies, given by value or place, and of the replications with some numbers."""
    wanted: Sequence[int | Policy] = range(len(runs.policies)) if policies is None else policies
    chosen = [runs.index_of(k) if isinstance(k, Policy) else k for k in wanted]
    if not chosen or not all(-len(runs.policies) <= k < len(runs.policies) for k in chosen):
        raise InvalidInput(f"policies must be from 0 to {len(runs.policies) - 1}; got {policies!r}")
    place = {number: k for k, number in enumerate(runs.replications.tolist())}
    numbers = runs.replications.tolist() if replications is None else [int(r) for r in replications]
    if not numbers or not set(numbers) <= set(place):
        raise InvalidInput(f"replications must be among those simulated; got {replications!r}")
    places = [place[number] for number in numbers]
    parts: dict[str, Any] = {name: getattr(runs, name)[chosen][:, places] for name in PER_ARM}
    return dataclasses.replace(
        runs,
        policies=tuple(runs.policies[k] for k in chosen),
        replications=runs.replications[places],
        **parts,
    )


def joined(parts: Sequence[Runs]) -> Runs:
    """Return the runs of disjoint sets of replications as one, in the order of their numbers."""
    parts = list(parts)
    if not parts:
        raise InvalidInput("there must be at least one part to join; got none")
    _expect_equal(parts, ("policies", "arms", "horizon", "seed", "checkpoints"), "joined")
    numbers = np.concatenate([part.replications for part in parts])
    order = np.argsort(numbers, kind="stable")
    if np.unique(numbers).size != numbers.size:
        twice = np.sort(numbers)[1:][np.diff(np.sort(numbers)) == 0]
        raise InvalidInput(f"a replication must not be in two of the parts; got {twice[0]} more than once")
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts], axis=1)[:, order] for name in PER_ARM
    }
    return dataclasses.replace(parts[0], replications=numbers[order], **arrays)


def stacked(parts: Sequence[Runs]) -> Runs:
    """Return the runs of several policies, simulated one by one on the same arms and replications, as one."""
    parts = list(parts)
    if not parts:
        raise InvalidInput("there must be at least one part to stack; got none")
    _expect_equal(parts, ("arms", "horizon", "seed", "replications", "checkpoints"), "stacked")
    arrays: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in PER_ARM}
    return dataclasses.replace(parts[0], policies=tuple(p for part in parts for p in part.policies), **arrays)


def _expect_equal(parts: Sequence[Runs], names: Sequence[str], verb: str) -> None:
    """Raise if the parts differ in something that must be the same."""
    expected = parts[0].configuration()
    for part in parts[1:]:
        given = part.configuration()
        for name in names:
            if given[name] != expected[name]:
                got = f"{expected[name]} and {given[name]}"
                raise InvalidInput(f"only runs with the same {name} can be {verb}; got {got}")
