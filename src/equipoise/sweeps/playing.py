"""Play the tasks of a sweep, keep what comes back at once, and stop on Ctrl-C without losing what is finished."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from equipoise.progress import reporter
from equipoise.simulation import SimulationInterrupted, simulate
from equipoise.sweeps.backends import parallel_calls
from equipoise.sweeps.parcels import DescribedArms, Parcel
from equipoise.sweeps.tasks import cut_into_tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from equipoise.progress import Progress, Reporter
    from equipoise.runs import Runs
    from equipoise.sweeps.parts import Parts
    from equipoise.sweeps.study import Cell, Study
    from equipoise.sweeps.tasks import Kept, Piece


class SweepInterrupted(KeyboardInterrupt):
    """Ctrl-C stopped a sweep; finished replications are in the folder `kept`, if it had one, and will be used."""

    def __init__(self, n_finished: int, n_replications: int, kept: Path | None) -> None:
        super().__init__(f"the sweep was interrupted after {n_finished:,} of {n_replications:,} replications")
        self.n_finished, self.n_replications, self.kept = n_finished, n_replications, kept


class _Watch:
    """Counts steps of tasks that run in this process, and stops them."""

    def __init__(self, report: Reporter) -> None:
        self.stop = threading.Event()
        self.keeping = False
        """Whether results are being written, which Ctrl-C does not cut short."""
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


def play(
    study: Study,
    pieces: Sequence[Piece],
    kept: Kept,
    parts: Parts | None,
    backend: str,
    workers: int | None,
    scheduler: str | None,
    chunk: int | None,
    progress: Progress | bool | None,
    again: bool,
) -> None:
    """Play pieces and add what comes back to `kept`; `again` discards the parts of before when all is ready."""
    import joblib

    report = reporter(progress, sum(piece.cell.horizon * len(piece.replications) for piece in pieces))
    watch, shared = _Watch(report), backend == "threads"
    # The bar is the outermost: its last picture is drawn when nothing moves it any more.
    with report, parallel_calls(backend, workers, scheduler) as (parallel, n_workers, share), _stopping(watch, shared):
        if again and parts is not None:
            parts.start_again()
        tasks = cut_into_tasks(pieces, study.arms.n_arms, n_workers, chunk)
        call = joblib.delayed(_played)
        arms = DescribedArms(study.arms, study.described_arms)
        sent = arms if shared else share(Parcel.of(arms))
        calls = (call(sent, study.seed, task, watch if shared else None) for task in tasks)
        watch.add(0)  # the clock starts when the workers do
        try:
            with _results(parallel, calls) as results:
                for played in results:
                    watch.keeping = True
                    for cell, runs in played:
                        if parts is not None:
                            parts.save(cell, runs)
                        kept.setdefault(cell, []).append(runs)
                        if not shared:
                            watch.add(cell.horizon * runs.replications.size)
                    watch.keeping = False
                    if watch.stop.is_set() and not shared:
                        break
        except KeyboardInterrupt:
            watch.stop.set()
        finally:
            interrupted = watch.stop.is_set()
            watch.stop.set()  # after an error, threads that still play end as well
    if interrupted:
        n_finished = sum(runs.replications.size for found in kept.values() for runs in found)
        n_replications = len(study.cells()) * study.replications
        raise SweepInterrupted(n_finished, n_replications, None if parts is None else parts.folder) from None


@contextmanager
def _results(parallel: Any, calls: Iterator[Any]) -> Iterator[Iterator[list[tuple[Cell, Runs]]]]:
    """Give what calls return, as it comes; calls that have not returned at the end are given up."""
    results = parallel(calls)
    try:
        yield results
    finally:
        with suppress(KeyboardInterrupt):
            results.throw(KeyboardInterrupt)  # closed instead, joblib would warn of results that nobody used


def _played(
    sent: DescribedArms | Parcel, seed: int, task: Sequence[Piece], watch: _Watch | None
) -> list[tuple[Cell, Runs]]:
    """Play the pieces of a task; when stopped, return the replications that were finished."""
    arms: DescribedArms = sent.opened() if isinstance(sent, Parcel) else sent
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
def _stopping(watch: _Watch, shared: bool) -> Iterator[None]:
    """Turn the first Ctrl-C into a request to stop, so that what is finished is handed over and written in whole."""
    here = threading.current_thread() is threading.main_thread()
    if not here or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def ask(_number: int, _frame: Any) -> None:
        again = watch.stop.is_set()
        watch.stop.set()
        # Threads hear of it by themselves; for workers elsewhere this thread waits, and must be woken.
        if again or not (shared or watch.keeping):
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
