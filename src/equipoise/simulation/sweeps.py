"""Play a study, resume an interrupted sweep, and combine the results."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise import checks
from equipoise.errors import EquipoiseError, InvalidInput
from equipoise.progress import Progress, Reporter, reporter
from equipoise.simulation.run_files import PER_ARM
from equipoise.simulation.runs import Runs
from equipoise.simulation.simulator import Job, SimulationInterrupted
from equipoise.simulation.study import Cell, Piece, Study, best_backend, cut_into_tasks, missing
from equipoise.simulation.workers import connected

if TYPE_CHECKING:
    from equipoise.arms import Arms


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
    on_resume: Callable[[int, int], None] | None = None,
) -> tuple[Runs, ...]:
    """Play a study and return its runs, one `Runs` per horizon with all policies.

    Results are the same on any backend and however the work is split.

    Parameters
    ----------
    study : Study
    out : path, optional
        File for the results, .npz; with several horizons each gets its own file, see `result_paths`. While the sweep
        runs, finished replications are kept beside it in a folder of the same name with .parts added. Calling again
        resumes: it computes only what is missing, even after policies, horizons or replications were added to the
        study. With several horizons, a file named as for one horizon is found too, and vice versa.
    backend : {"threads", "processes", "ray", "dask"}, optional
        Threads by default, or processes if a policy is plain Python, which threads cannot run in parallel.
    workers : int, optional
        Threads or processes; by default one per available processor.
    scheduler : str, optional
        Address of the cluster for "ray" and "dask".
    chunk : int, optional
        Replications per task; by default as many as take about a second.
    progress : bool or callable, optional
        True shows a bar; a function is called with (steps done, total steps).
    again : bool
        Recompute everything, and replace the results of another study. Earlier parts are discarded; to resume this
        sweep after an interruption, call without `again`.
    on_resume : callable, optional
        Called with (replications found, total replications) before the rest is played.

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
    paths = () if out is None else result_paths(study, out)
    kept = Kept(study, None if out is None else Path(out))
    if not again:
        kept.load()
    if on_resume is not None:
        on_resume(kept.n_replications, len(study.cells()) * study.replications)
    pieces = list(missing(study, kept.runs))
    if pieces:
        report = reporter(progress, sum(piece.cell.horizon * len(piece.replications) for piece in pieces))
        backend = backend or best_backend(study)
        watch = _Watch(report, in_threads=backend == "threads")
        # The progress bar is outermost: it draws its final state when nothing updates it any more.
        with report, connected(backend, workers, scheduler, study.arms) as (n_at_once, results_of), watch.heeding():
            if again:
                kept.start_again()
            heard = watch if watch.in_threads else None
            tasks = cut_into_tasks(pieces, study.arms.n_arms, n_at_once, chunk)
            calls = ((study.seed, task, study.described_arms, heard) for task in tasks)
            interrupted = _collect(results_of(_played, calls), kept, watch)
        if interrupted:
            raise SweepInterrupted(kept.n_replications, len(study.cells()) * study.replications, kept.folder)
    results = tuple(_together(study, kept, horizon) for horizon in study.horizons)
    for path, runs in zip(paths, results, strict=out is not None):
        if path not in kept.complete:
            runs.save(path)
    for path in kept.moved:
        path.unlink(missing_ok=True)
    kept.remove_parts()
    return results


def result_paths(study: Study, out: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Return the file of each horizon's results: `out` itself for one horizon, else with the horizon in its name.

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
    return tuple(_with_horizon(path, horizon) for horizon in study.horizons)


def _with_horizon(path: Path, horizon: int) -> Path:
    return path.with_name(f"{path.stem}-{horizon}{path.suffix}")


class SweepInterrupted(KeyboardInterrupt):
    """Ctrl-C stopped a sweep; finished replications are in the folder `kept`, if any, for the next call."""

    def __init__(self, n_finished: int, n_replications: int, kept: Path | None) -> None:
        super().__init__(f"the sweep was interrupted after {n_finished:,} of {n_replications:,} replications")
        self.n_finished, self.n_replications, self.kept = n_finished, n_replications, kept


class Kept:
    """Cache of a study's finished replications: in memory and, if the sweep has a file, in a folder of parts beside it.

    There is one small file per piece. Its name starts with the fingerprint of its cell, so that a changed study never
    reads the parts of another. Parts identify their arms by a digest alone. (`joblib.Memory` looks calls up by their
    arguments: with another number of workers, which splits the replications differently, it would find nothing.)
    """

    _MARK = "again.json"
    """A file that records which study is being recomputed, so that earlier results do not count."""

    def __init__(self, study: Study, out: Path | None) -> None:
        self.runs: dict[Cell, list[Runs]] = {}
        self.complete: list[Path] = []
        """Result files that need not be written again."""
        self.moved: list[Path] = []
        """Files whose content moves to another name."""
        self.folder = None if out is None else Path(f"{out}.parts")
        self._study, self._out, self._names = study, out, study.fingerprints()
        if out is not None and not out.parent.is_dir():
            raise EquipoiseError(f"no folder {out.parent}", hint=f"mkdir -p {out.parent}")

    @property
    def n_replications(self) -> int:
        """Number of finished replications, over all cells."""
        return sum(runs.replications.size for cell in self.runs.values() for runs in cell)

    def add(self, cell: Cell, runs: Runs) -> None:
        """Add the replications of a cell that are not in the cache yet."""
        seen = {number for before in self.runs.get(cell, ()) for number in before.replications.tolist()}
        new = [number for number in runs.replications.tolist() if number not in seen]
        if new:
            self.runs.setdefault(cell, []).append(runs if not seen else runs.select(replications=new))

    def save(self, cell: Cell, runs: Runs) -> None:
        """Add the replications of a piece, and write them to a file."""
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            first, last = runs.replications[0], runs.replications[-1]
            runs.save(self.folder / f"{self._names[cell]}-{first}-{last}.npz")
        self.runs.setdefault(cell, []).append(runs)

    def load(self) -> None:
        """Load existing results and parts."""
        if self.folder is None or self._out is None:
            return
        if not self._is_begun_again():
            self._load_results(self._out)
        for cell, name in self._names.items():
            for file in sorted(self.folder.glob(f"{name}-*.npz")):
                with suppress(InvalidInput, OSError):  # ignore a damaged file
                    self.add(cell, Runs.load(file))

    def _load_results(self, out: Path) -> None:
        study, own = self._study, result_paths(self._study, out)
        cells = {(cell.horizon, cell.policy.to_json()): cell for cell in study.cells()}
        # The result file has another name with one horizon than with several.
        other = out if len(study.horizons) > 1 else _with_horizon(out, study.horizons[0])
        for path in filter(Path.exists, (*own, other)):
            try:
                runs = Runs.load(path)
            except InvalidInput:
                if path == other:
                    continue
                raise
            horizon = runs.horizon if path == other else study.horizons[own.index(path)]
            wrong = _differences(study, horizon, runs)
            if wrong and path == other:
                continue
            if wrong:
                hint = "choose another file, or replace it with --again"
                raise EquipoiseError(f"{path} holds results that are not part of this study: {wrong}", hint=hint)
            if path != other and runs.policies == study.policies and runs.replications.size == study.replications:
                self.complete.append(path)
            if path == other == out:
                self.moved.append(path)
            runs = dataclasses.replace(runs, arms=study.described_arms)
            for k, policy in enumerate(runs.policies):
                self.add(cells[horizon, policy.to_json()], runs.select(policies=[k]))

    def _is_begun_again(self) -> bool:
        """Return whether a sweep that recomputed this study, or a part of it, was interrupted."""
        try:
            begun = json.loads((self.folder / self._MARK).read_text(encoding="utf-8"))  # type: ignore[operator]
        except (OSError, ValueError):
            return False
        return set(begun) <= set(self._names.values())

    def start_again(self) -> None:
        """Remove the parts, and record that earlier results are to be replaced."""
        self.remove_parts()
        if self.folder is not None:
            self.folder.mkdir(parents=True)
            (self.folder / self._MARK).write_text(json.dumps(list(self._names.values())), encoding="utf-8")

    def remove_parts(self) -> None:
        """Remove the folder of parts with its contents."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


def _differences(study: Study, horizon: int, runs: Runs) -> str:
    """Describe why runs are not part of a study; return an empty string if they are."""
    differences = []
    if runs.horizon != horizon or horizon not in study.horizons:
        differences.append(f"its horizon is {runs.horizon}, not {' or '.join(map(str, study.horizons))}")
    elif runs.checkpoints.tolist() != list(study.steps(horizon)):
        differences.append("its checkpoints are others")
    if runs.seed != study.seed:
        differences.append(f"its seed is {runs.seed}, not {study.seed}")
    if runs.arms != study.arms.to_dict():
        differences.append("its arms are others")
    texts = {policy.to_json() for policy in study.policies}
    strange = [repr(policy) for policy in runs.policies if policy.to_json() not in texts]
    if strange:
        more = f" and {len(strange) - 1} more" if len(strange) > 1 else ""
        differences.append(f"the study does not have its policy {strange[0]}{more}")
    if not set(range(study.replications)).issuperset(runs.replications.tolist()):
        differences.append(f"it has {runs.replications.max() + 1} replications, not {study.replications}")
    return "; ".join(differences)


def _together(study: Study, kept: Kept, horizon: int) -> Runs:
    """Combine the cells of a horizon, with policies in the order of the study."""
    cells = [cell for cell in study.cells() if cell.horizon == horizon]
    wholes = [Runs.joined(kept.runs[cell]) for cell in cells]
    arrays: dict[str, Any] = {name: np.concatenate([getattr(whole, name) for whole in wholes]) for name in PER_ARM}
    # The parts carry only a digest of the arms; put the full description back.
    return dataclasses.replace(wholes[0], policies=study.policies, arms=study.arms.to_dict(), **arrays)


class _Watch:
    """Count steps, and turn the first Ctrl-C into a request to stop, so that finished work is kept whole."""

    def __init__(self, report: Reporter, *, in_threads: bool) -> None:
        self.in_threads, self.stop = in_threads, threading.Event()
        self.keeping = False
        """Whether results are being written, which Ctrl-C does not interrupt."""
        self._report, self._done, self._lock = report, 0, threading.Lock()

    def add(self, steps: int) -> None:
        """Count steps."""
        with self._lock:
            self._done += steps
            self._report.show(self._done)

    @contextmanager
    def heeding(self) -> Iterator[None]:
        """Handle Ctrl-C in the main thread, unless the program has its own handler."""
        here = threading.current_thread() is threading.main_thread()
        if not here or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield
            return

        def ask(_number: int, _frame: Any) -> None:
            again = self.stop.is_set()
            self.stop.set()
            # Threads notice by themselves; for remote workers this thread is waiting, and must be woken.
            if again or not (self.in_threads or self.keeping):
                raise KeyboardInterrupt

        signal.signal(signal.SIGINT, ask)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)


class _Counter(Reporter):
    """Count the steps of one simulation in a local thread, and stop it when the sweep stops."""

    def __init__(self, watch: _Watch) -> None:
        self._watch, self._before = watch, 0

    def show(self, done: int) -> None:
        """Count the steps since the last call."""
        self._watch.add(done - self._before)
        self._before = done
        if self._watch.stop.is_set():
            raise KeyboardInterrupt


def _collect(results: Any, kept: Kept, watch: _Watch) -> bool:
    """Store results as they arrive; return True if Ctrl-C came first."""
    watch.add(0)  # the clock starts when the workers do
    try:
        for played in results:
            watch.keeping = True
            for cell, runs in played:
                kept.save(cell, runs)
                if not watch.in_threads:
                    watch.add(cell.horizon * runs.replications.size)
            watch.keeping = False
            if watch.stop.is_set() and not watch.in_threads:
                break
    except KeyboardInterrupt:
        watch.stop.set()
    finally:
        interrupted = watch.stop.is_set()
        watch.stop.set()  # after an error, stop the remaining threads too
        with suppress(KeyboardInterrupt):
            results.throw(KeyboardInterrupt)  # if closed instead, joblib would warn of unused results
    return interrupted


def _played(
    arms: Arms, seed: int, task: Sequence[Piece], described: dict[str, Any], watch: _Watch | None
) -> list[tuple[Cell, Runs]]:
    """Play the pieces of a task; when stopped, return the finished replications."""
    played: list[tuple[Cell, Runs]] = []
    for cell, replications in task:
        if watch is not None and watch.stop.is_set():
            break
        numbers, steps = (np.array(values, dtype=np.int64) for values in (replications, cell.checkpoints))
        job = Job((cell.policy,), arms, described, cell.horizon, seed, numbers, steps)
        try:
            job.play(1, Reporter() if watch is None else _Counter(watch))
        except SimulationInterrupted as interrupted:
            if interrupted.runs is not None:
                played.append((cell, interrupted.runs))
            break
        played.append((cell, job.runs))
    return played
