"""Describe a sweep (policies, arms, horizons, replications) and split it into tasks."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from equipoise import checks
from equipoise._version import __version__
from equipoise.arms import Arms
from equipoise.errors import InvalidInput
from equipoise.policies import NumbaPolicy, Policy
from equipoise.simulation.simulator import LARGEST_HORIZON, default_checkpoints

if TYPE_CHECKING:
    from equipoise.simulation.runs import Runs


@dataclasses.dataclass(frozen=True)
class Cell:
    """One policy at one horizon: the part of a study whose replications are comparable."""

    policy: Policy
    horizon: int
    checkpoints: tuple[int, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Study:
    """Policies to play on the same arms, for one or several horizons.

    Parameters
    ----------
    policies : sequence of Policy
        Policies to play; duplicates are played once.
    arms : Arms
    horizons : sequence of int
        Pulls per replication; each horizon is played separately.
    replications : int, default 100
    seed : int, default 0
    checkpoints : sequence of int, optional
        Steps to record, without those beyond a horizon and with the horizon itself; about 40 by default.
    report_weight : float, optional
        Reward weight of the regret in summaries; by default each policy's own.

    Examples
    --------
    >>> import equipoise as eq
    >>> arms = eq.Gaussian(mean=[1, 2], std=[1, 1])
    >>> policies = [eq.ForcingBalance(reward_weight=w) for w in (0.5, 0.9)]
    >>> study = Study(policies=policies, arms=arms, horizons=[100, 1000], replications=20)
    >>> len(study.cells()), study.n_steps
    (4, 44000)
    """

    policies: tuple[Policy, ...]
    arms: Arms
    horizons: tuple[int, ...]
    replications: int = 100
    seed: int = 0
    checkpoints: tuple[int, ...] | None = None
    report_weight: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.arms, Arms):
            raise InvalidInput.of("arms", "must be Arms such as Gaussian(mean=[1, 2], std=[1, 1])", self.arms)
        policies = _distinct(self.policies)
        if not policies or not all(isinstance(policy, Policy) for policy in policies):
            raise InvalidInput.of(
                "policies", "must be policies such as ForcingBalance(reward_weight=0.9)", self.policies
            )
        for policy in policies:
            policy.check_arms(self.arms.n_arms)
        horizons = tuple(dict.fromkeys(_whole_number("horizon", n, 1, LARGEST_HORIZON) for n in self.horizons))
        if not horizons:
            raise InvalidInput.of("horizon", "must be a whole number or a list of them; got an empty list")
        steps = None
        if self.checkpoints is not None:
            steps = tuple(_whole_number("checkpoints", n, 1, max(horizons)) for n in self.checkpoints)
            if not steps:
                raise InvalidInput.of("checkpoints", "must be at least one step, or left out; got an empty list")
        values = {
            "policies": policies,
            "horizons": horizons,
            "replications": _whole_number("replications", self.replications, 1),
            "seed": checks.whole_number("seed", self.seed, 0, 2**63 - 1),
            "checkpoints": steps,
        }
        if self.report_weight is not None:
            values["report_weight"] = checks.number_between("reward_weight", self.report_weight, 0, 1)
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def cells(self) -> tuple[Cell, ...]:
        """Return every policy at every horizon, horizon by horizon."""
        return tuple(
            Cell(policy, horizon, self.steps(horizon)) for horizon in self.horizons for policy in self.policies
        )

    def steps(self, horizon: int) -> tuple[int, ...]:
        """Return the checkpoints of a horizon."""
        if self.checkpoints is None:
            return tuple(default_checkpoints(horizon).tolist())
        return tuple(sorted({step for step in self.checkpoints if step < horizon} | {horizon}))

    @property
    def n_steps(self) -> int:
        """Pulls of the whole study."""
        return sum(self.horizons) * len(self.policies) * self.replications

    def fingerprints(self) -> dict[Cell, str]:
        """Return a fingerprint of each cell that changes with anything its results depend on, except replications."""
        shared = hashlib.sha256(json.dumps([__version__, self.seed, self.described_arms]).encode())
        names = {}
        for cell in self.cells():
            own = shared.copy()
            own.update(json.dumps([cell.policy.to_dict(), cell.horizon, cell.checkpoints]).encode())
            names[cell] = own.hexdigest()[:20]
        return names

    @cached_property
    def described_arms(self) -> dict[str, Any]:
        """A short description and digest of the arms, stored in partial results instead of thousands of rewards."""
        digest = hashlib.sha256()
        _feed(digest, self.arms.to_dict())
        return {"name": type(self.arms).__name__, "n_arms": self.arms.n_arms, "digest": digest.hexdigest()}

    @property
    def short_name(self) -> str:
        """A short hash of everything the results depend on, for a file name."""
        policies = [policy.to_dict() for policy in self.policies]
        numbers = [self.horizons, self.replications, self.seed, self.checkpoints]
        text = json.dumps([policies, self.described_arms, numbers])
        return hashlib.sha256(text.encode()).hexdigest()[:6]


def _whole_number(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Return a whole number, even if written as a float such as 1e5."""
    whole = isinstance(value, float) and value.is_integer()
    return checks.whole_number(name, int(value) if whole else value, low, high)


def _distinct(policies: Policy | Sequence[Policy]) -> tuple[Policy, ...]:
    values = (policies,) if isinstance(policies, Policy) else tuple(policies)
    return tuple(policy for k, policy in enumerate(values) if policy not in values[:k])


def _feed(digest: Any, data: Any) -> None:
    """Add plain data to a digest; lists of floats at once, as an experiment's data can be long."""
    if isinstance(data, dict):
        for key, value in data.items():
            digest.update(f"{key!r}:".encode())
            _feed(digest, value)
        digest.update(b"}")
    elif isinstance(data, list):
        digest.update(f"{len(data)}[".encode())
        if all(type(value) is float for value in data):
            digest.update(np.array(data, dtype="<f8").tobytes())
        else:
            for value in data:
                _feed(digest, value)
    else:
        digest.update(f"{json.dumps(data)},".encode())


TASK_SECONDS = 1.0
"""Target duration of a task: long compared with its overhead (milliseconds), short enough to lose."""


class Piece(NamedTuple):
    """Consecutive replications of a cell."""

    cell: Cell
    replications: range


def missing(study: Study, kept: dict[Cell, list[Runs]]) -> Iterator[Piece]:
    """Yield what is still to play, as ranges of consecutive replications."""
    for cell in study.cells():
        done = {number for runs in kept.get(cell, ()) for number in runs.replications.tolist()}
        first = None
        for number in range(study.replications + 1):
            if number < study.replications and number not in done:
                first = number if first is None else first
            elif first is not None:
                yield Piece(cell, range(first, number))
                first = None


def cut_into_tasks(
    pieces: Iterable[Piece], n_arms: int, n_workers: int, chunk: int | None
) -> Iterator[tuple[Piece, ...]]:
    """Split large pieces and combine small ones, so that each task takes about the target duration."""
    pieces = list(pieces)
    if chunk is not None:
        for piece in pieces:
            yield from ((part,) for part in _cut(piece, chunk))
        return
    total = sum(seconds(piece.cell, n_arms) * len(piece.replications) for piece in pieces)
    # Spread even a study of less than a second per worker over all workers.
    longest = min(TASK_SECONDS, total / (4 * n_workers))
    task: list[Piece] = []
    spent = 0.0
    for piece in pieces:
        each = seconds(piece.cell, n_arms)
        for part in _cut(piece, max(1, int(longest / each))):
            task.append(part)
            spent += each * len(part.replications)
            if spent >= 0.75 * longest:
                yield tuple(task)
                task, spent = [], 0.0
    if task:
        yield tuple(task)


def _cut(piece: Piece, size: int) -> Iterator[Piece]:
    numbers = piece.replications
    return (Piece(piece.cell, numbers[k : k + size]) for k in range(0, len(numbers), size))


def seconds(cell: Cell, n_arms: int) -> float:
    """Estimate how long a replication takes, from the times per step in docs/performance.md."""
    per_step = 1e-7 + 2e-9 * n_arms if _is_compiled(cell.policy) else 1.5e-5 + 2e-8 * n_arms
    return 5e-5 + cell.horizon * per_step


def _is_compiled(policy: Policy) -> bool:
    return (policy.is_compiled and not policy.weighs_rewards) or isinstance(policy, NumbaPolicy)


def best_backend(study: Study) -> str:
    """Return the best backend for a study on this machine: plain Python holds the GIL, so threads would not help it."""
    return "threads" if all(map(_is_compiled, study.policies)) else "processes"
