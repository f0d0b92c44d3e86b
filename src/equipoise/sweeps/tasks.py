"""What is left to play of a study, cut into tasks that take about a second each."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from equipoise.policies import NumbaPolicy
from equipoise.policies.overriding import is_compiled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from equipoise.policies import Policy
    from equipoise.runs import Runs
    from equipoise.sweeps.study import Cell, Study

    Kept = dict[Cell, list[Runs]]

TASK_SECONDS = 1.0
"""How long a task should take: long against what handing it out costs (milliseconds), short enough to lose."""


class Piece(NamedTuple):
    """Consecutive replications of a cell."""

    cell: Cell
    replications: range


def missing(study: Study, kept: Kept) -> Iterator[Piece]:
    """Yield what is still to play, as stretches of consecutive replications."""
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
    """Cut pieces, and put small ones together, so that each task takes about as long as tasks should."""
    pieces = list(pieces)
    if chunk is not None:
        for piece in pieces:
            yield from ((part,) for part in _cut(piece, chunk))
        return
    total = sum(seconds(piece.cell, n_arms) * len(piece.replications) for piece in pieces)
    # A study of less than a second per worker is still spread over all of them.
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
    """Return about how long a replication takes, from the times per step in docs/performance.md."""
    per_step = 1e-7 + 2e-9 * n_arms if _is_compiled(cell.policy) else 1.5e-5 + 2e-8 * n_arms
    return 5e-5 + cell.horizon * per_step


def _is_compiled(policy: Policy) -> bool:
    return is_compiled(policy) or isinstance(policy, NumbaPolicy)


def best_backend(study: Study) -> str:
    """Return where a study runs best on this machine: plain Python keeps its lock, so threads would not help it."""
    return "threads" if all(map(_is_compiled, study.policies)) else "processes"
