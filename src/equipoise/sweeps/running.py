"""Play a study in pieces, keep each as soon as it is finished, and go on where an earlier sweep was stopped."""

from __future__ import annotations

import dataclasses
import signal
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from equipoise import checks
from equipoise.errors import EquipoiseError, InvalidInput
from equipoise.policies import NumbaPolicy
from equipoise.progress import reporter
from equipoise.runs import Runs
from equipoise.simulation import SimulationInterrupted, simulate
from equipoise.sweeps.backends import BACKENDS as BACKENDS
from equipoise.sweeps.backends import parallel_calls
from equipoise.sweeps.parts import Parts

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from equipoise.arms import Arms
    from equipoise.policies import Policy
    from equipoise.progress import Progress, Reporter
    from equipoise.sweeps.study import Cell, Study

    Kept = dict[Cell, list[Runs]]

_TASK_SECONDS = 1.0
"""How long a task should take: long against what handing it out costs (milliseconds), short enough to lose."""


class SweepInterrupted(KeyboardInterrupt):
    """Ctrl-C stopped a sweep; finished replications are in the folder `kept`, if it had one, and will be used."""

    def __init__(self, n_finished: int, n_replications: int, kept: Path | None) -> None:
        super().__init__(f"the sweep was interrupted after {n_finished:,} of {n_replications:,} replications")
        self.n_finished, self.n_replications, self.kept = n_finished, n_replications, kept


class Piece(NamedTuple):
    """Consecutive replications of a cell."""

    cell: Cell
    replications: range


def sweep(
    study: Study,
    out: str | os.PathLike[str] | None = None,
    *,
    backend: str | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    chunk: int | None = None,
    progress: Progress | bool | None = None,
    again: bool = False,
) -> tuple[Runs, ...]:
    """Play a study and return its runs, one `Runs` per horizon with all policies in it.

    Results are the same wherever and in whatever pieces they are computed.

    Parameters
    ----------
    study : Study
    out : path, optional
        File for the results, .npz; with several horizons each gets a file of its own, see `result_paths`. While the
        sweep runs, finished replications are kept beside it in a folder of the same name with .parts added. Calling
        again computes only what is missing, also after policies, horizons or replications were added to the study.
    backend : {"threads", "processes", "ray", "dask"}, optional
        Threads by default, or processes if a policy is plain Python, which threads cannot run side by side.
    workers : int, optional
        Threads or processes; as many as there are processors by default.
    scheduler : str, optional
        Address of the cluster for "ray" and "dask".
    chunk : int, optional
        Replications per task; by default as many as take about a second.
    progress : bool or callable, optional
        True shows a bar; a function is called with (steps done, steps to do).
    again : bool
        Compute everything anew, and replace the results of another study.

    Examples
    --------
    >>> import equipoise as eq
    >>> study = eq.Study(policies=[eq.Uniform(), eq.GAFS()], arms=eq.Bernoulli(mean=[0.1, 0.5]), horizons=[50, 100])
    >>> sweep(study)
    (Runs(2 policies, 100 replications, 2 arms, horizon 50, 26 checkpoints),
     Runs(2 policies, 100 replications, 2 arms, horizon 100, 29 checkpoints))
    """
    if chunk is not None:
        chunk = checks.whole_number("chunk", chunk, 1)
    paths = None if out is None else result_paths(study, out)
    parts = None if out is None else Parts(Path(f"{out}.parts"), study)
    kept: Kept = {}
    if paths is not None and parts is not None:
        folder = parts.folder.parent
        if not folder.is_dir():
            raise EquipoiseError(f"no folder {folder}", hint=f"mkdir -p {folder}")
        if again:
            parts.remove()
        else:
            kept = _finished(study, paths, parts)
    pieces = list(_missing(study, kept))
    if pieces:
        _play(study, pieces, kept, parts, backend or _backend(study), workers, scheduler, chunk, progress)
    results = tuple(_together(study, kept, horizon) for horizon in study.horizons)
    if paths is not None and parts is not None:
        for path, runs in zip(paths, results, strict=True):
            if pieces or not path.exists():
                runs.save(path)
        parts.remove()
    return results


def result_paths(study: Study, out: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Return the file of each horizon's results: `out` itself if there is one, else with the horizon in its name.

    Examples
    --------
    >>> import equipoise as eq
    >>> study = eq.Study(policies=[eq.Uniform()], arms=eq.Bernoulli(mean=[0.1, 0.5]), horizons=[50, 100])
    >>> [str(path) for path in result_paths(study, "coins.npz")]
    ['coins-50.npz', 'coins-100.npz']
    """
    path = Path(out)
    if path.suffix != ".npz":
        raise InvalidInput(f"the file for results must end in .npz; got {str(path)!r}")
    if len(study.horizons) == 1:
        return (path,)
    return tuple(path.with_name(f"{path.stem}-{horizon}{path.suffix}") for horizon in study.horizons)


def _finished(study: Study, paths: Sequence[Path], parts: Parts) -> Kept:
    """Return what is there already, in results and parts."""
    kept = parts.load()
    cells = {(cell.horizon, _text(cell.policy)): cell for cell in study.cells()}
    for path, horizon in zip(paths, study.horizons, strict=True):
        if not path.exists():
            continue
        runs, known = Runs.load(path), set(range(study.replications))
        same = (runs.horizon, runs.seed, runs.arms) == (horizon, study.seed, study.arms.to_dict())
        same = same and runs.checkpoints.tolist() == list(study.steps(horizon))
        wanted = all((horizon, _text(policy)) in cells for policy in runs.policies)
        if not same or not wanted or not known.issuperset(runs.replications.tolist()):
            hint = "choose another file, or replace it with --again"
            raise EquipoiseError(f"{path} holds results that are not part of this study", hint=hint)
        for k, policy in enumerate(runs.policies):
            cell = cells[horizon, _text(policy)]
            more = (part for part in kept.get(cell, ()) if not np.isin(part.replications, runs.replications).any())
            kept[cell] = [runs.select(policies=[k]), *more]
    return kept


def _missing(study: Study, kept: Kept) -> Iterator[Piece]:
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


def _tasks(pieces: Iterable[Piece], n_arms: int, n_workers: int, chunk: int | None) -> Iterator[tuple[Piece, ...]]:
    """Cut pieces, and put small ones together, so that each task takes about as long as tasks should."""
    pieces = list(pieces)
    if chunk is not None:
        for piece in pieces:
            yield from ((part,) for part in _cut(piece, chunk))
        return
    total = sum(_seconds(piece.cell, n_arms) * len(piece.replications) for piece in pieces)
    # A study of less than a second per worker is still spread over all of them.
    longest = min(_TASK_SECONDS, total / (4 * n_workers))
    task: list[Piece] = []
    spent = 0.0
    for piece in pieces:
        each = _seconds(piece.cell, n_arms)
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


def _seconds(cell: Cell, n_arms: int) -> float:
    """Return about how long a replication takes, from the times per step in docs/performance.md."""
    per_step = 1e-7 + 2e-9 * n_arms if _is_compiled(cell.policy) else 1.5e-5 + 2e-8 * n_arms
    return 5e-5 + cell.horizon * per_step


def _is_compiled(policy: Policy) -> bool:
    from equipoise.simulation import is_compiled

    return is_compiled(policy) or isinstance(policy, NumbaPolicy)


def _backend(study: Study) -> str:
    return "threads" if all(map(_is_compiled, study.policies)) else "processes"


class _Watch:
    """Counts steps of tasks that run in this process, and stops them."""

    def __init__(self, report: Reporter) -> None:
        self.stop = threading.Event()
        self._report, self._done, self._lock = report, 0, threading.Lock()

    def add(self, steps: int) -> None:
        """Count steps."""
        with self._lock:
            self._done += steps
            self._report.show(self._done)

    def during(self) -> Callable[[int, int], None]:
        """Return a progress function for a simulation, which counts its steps and stops it when it should stop."""
        before = 0

        def progress(done: int, _total: int) -> None:
            nonlocal before
            self.add(done - before)
            before = done
            if self.stop.is_set():
                raise KeyboardInterrupt

        return progress


def _play(
    study: Study,
    pieces: Sequence[Piece],
    kept: Kept,
    parts: Parts | None,
    backend: str,
    workers: int | None,
    scheduler: str | None,
    chunk: int | None,
    progress: Progress | bool | None,
) -> None:
    """Play pieces and add what comes back to `kept`."""
    import joblib

    report = reporter(progress, sum(piece.cell.horizon * len(piece.replications) for piece in pieces))
    watch, shared = _Watch(report), backend == "threads"
    # The bar is the outermost: its last picture is drawn when nothing moves it any more.
    with report, parallel_calls(backend, workers, scheduler) as (parallel, n_workers), _stopping(watch.stop, shared):
        tasks = _tasks(pieces, study.arms.n_arms, n_workers, chunk)
        call = joblib.delayed(_played)
        try:
            for played in parallel(call(study.arms, study.seed, task, watch if shared else None) for task in tasks):
                for cell, runs in played:
                    kept.setdefault(cell, []).append(runs)
                    if parts is not None:
                        parts.save(cell, runs)
                    if not shared:
                        watch.add(cell.horizon * runs.replications.size)
        except KeyboardInterrupt:
            watch.stop.set()
        finally:
            interrupted = watch.stop.is_set()
            watch.stop.set()  # after an error, threads that still play end as well
    if interrupted:
        n_finished = sum(runs.replications.size for found in kept.values() for runs in found)
        n_replications = len(study.cells()) * study.replications
        raise SweepInterrupted(n_finished, n_replications, None if parts is None else parts.folder) from None


def _played(arms: Arms, seed: int, task: Sequence[Piece], watch: _Watch | None) -> list[tuple[Cell, Runs]]:
    """Play the pieces of a task; when stopped, return the replications that were finished."""
    played: list[tuple[Cell, Runs]] = []
    for cell, replications in task:
        if watch is not None and watch.stop.is_set():
            break
        progress = None if watch is None else watch.during()
        total = cell.horizon * len(replications)
        try:
            runs = simulate(
                cell.policy, arms, cell.horizon, replications, seed, cell.checkpoints, workers=1, progress=progress
            )
        except SimulationInterrupted as interrupted:
            if interrupted.runs is not None:
                played.append((cell, interrupted.runs))
            break
        if progress is not None:
            with suppress(KeyboardInterrupt):  # it is finished, so it counts
                progress(total, total)
        played.append((cell, runs))
    return played


@contextmanager
def _stopping(stop: threading.Event, wanted: bool) -> Iterator[None]:
    """Turn the first Ctrl-C into a request to stop, so that threads can hand over what they have finished."""
    here = threading.current_thread() is threading.main_thread()
    if not wanted or not here or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def ask(_number: int, _frame: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _together(study: Study, kept: Kept, horizon: int) -> Runs:
    """Return the cells of a horizon as one, its policies in the order of the study."""
    cells = [cell for cell in study.cells() if cell.horizon == horizon]
    wholes = [Runs.joined(kept[cell]) for cell in cells]
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(whole, name) for whole in wholes]) for name in ("pulls", "mean", "std", "target")
    }
    return dataclasses.replace(wholes[0], policies=study.policies, **arrays)


def _text(policy: Policy) -> str:
    return policy.to_json()
