"""Play a study, go on where an earlier sweep of it was stopped, and put its results together."""

from __future__ import annotations

import dataclasses
import json
import shutil
import signal
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise import checks
from equipoise.errors import EquipoiseError, InvalidInput
from equipoise.progress import reporter
from equipoise.simulation import SimulationInterrupted, simulate
from equipoise.simulation.runs import Runs
from equipoise.simulation.study import best_backend, cut_into_tasks, missing
from equipoise.simulation.workers import DescribedArms, Parcel, parallel_calls

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence

    from equipoise.policies import Policy
    from equipoise.progress import Progress, Reporter
    from equipoise.simulation.study import Cell, Kept, Piece, Study


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
    """Play a study and return its runs, one `Runs` per horizon with all policies in it.

    Results are the same wherever and in whatever pieces they are computed.

    Parameters
    ----------
    study : Study
    out : path, optional
        File for the results, .npz; with several horizons each gets a file of its own, see `result_paths`. While the
        sweep runs, finished replications are kept beside it in a folder of the same name with .parts added. Calling
        again computes only what is missing, also after policies, horizons or replications were added to the study.
        A file with the name that it has with one horizon is found, too, when there are several, and the other way
        round.
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
        Compute everything anew, and replace the results of another study. Parts from before are discarded; if this
        sweep is interrupted, its own parts are used by calling without `again`.
    on_resume : callable, optional
        Called with (replications found, replications in all) before the rest is played.

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
    found = _Found()
    paths = None if out is None else result_paths(study, out)
    parts = None if out is None else Parts(Path(f"{out}.parts"), study)
    if out is not None and parts is not None:
        folder = parts.folder.parent
        if not folder.is_dir():
            raise EquipoiseError(f"no folder {folder}", hint=f"mkdir -p {folder}")
        if not again:
            found = _finished(study, Path(out), parts)
    if on_resume is not None:
        on_resume(found.n_replications, len(study.cells()) * study.replications)
    kept = found.kept
    pieces = list(missing(study, kept))
    if pieces:
        play(study, pieces, kept, parts, backend or best_backend(study), workers, scheduler, chunk, progress, again)
    results = tuple(_together(study, kept, horizon) for horizon in study.horizons)
    if paths is not None and parts is not None:
        for path, runs in zip(paths, results, strict=True):
            if path not in found.whole:
                runs.save(path)
        for path in found.moved:
            path.unlink(missing_ok=True)
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
    return tuple(_with_horizon(path, horizon) for horizon in study.horizons)


def _with_horizon(path: Path, horizon: int) -> Path:
    return path.with_name(f"{path.stem}-{horizon}{path.suffix}")


@dataclasses.dataclass
class _Found:
    """What is there already of a study."""

    kept: Kept = dataclasses.field(default_factory=dict)
    whole: list[Path] = dataclasses.field(default_factory=list)
    """Files of results that need not be written anew."""
    moved: list[Path] = dataclasses.field(default_factory=list)
    """Files whose content goes to one with another name."""

    @property
    def n_replications(self) -> int:
        return sum(runs.replications.size for cell in self.kept.values() for runs in cell)

    def add(self, cell: Cell, runs: Runs) -> None:
        """Keep the replications of a cell that were not found before."""
        seen = {number for before in self.kept.get(cell, ()) for number in before.replications.tolist()}
        new = [number for number in runs.replications.tolist() if number not in seen]
        if new:
            self.kept.setdefault(cell, []).append(runs.select(replications=new))


def _finished(study: Study, out: Path, parts: Parts) -> _Found:
    """Return what is there already, in results and parts."""
    found, own = _Found(), result_paths(study, out)
    cells = {(cell.horizon, _text(cell.policy)): cell for cell in study.cells()}
    # A study with one horizon has another name for its file than one with several.
    other = out if len(study.horizons) > 1 else _with_horizon(out, study.horizons[0])
    for path in () if parts.are_to_replace else (*own, other):
        if not path.exists():
            continue
        try:
            runs = Runs.load(path)
        except InvalidInput:
            if path == other:
                continue
            raise
        horizon = runs.horizon if path == other else study.horizons[own.index(path)]
        wrong = _differences(study, horizon, runs)
        if wrong:
            if path == other:
                continue
            hint = "choose another file, or replace it with --again"
            raise EquipoiseError(f"{path} holds results that are not part of this study: {wrong}", hint=hint)
        if path != other and runs.policies == study.policies and runs.replications.size == study.replications:
            found.whole.append(path)
        if path == other == out:
            found.moved.append(path)
        runs = dataclasses.replace(runs, arms=study.described_arms)
        for k, policy in enumerate(runs.policies):
            found.add(cells[horizon, _text(policy)], runs.select(policies=[k]))
    for cell, pieces in parts.load().items():
        for piece in pieces:
            found.add(cell, piece)
    return found


def _differences(study: Study, horizon: int, runs: Runs) -> str:
    """Say in what runs are not part of a study; nothing if they are."""
    differences = []
    if runs.horizon != horizon or horizon not in study.horizons:
        differences.append(f"its horizon is {runs.horizon}, not {' or '.join(map(str, study.horizons))}")
    elif runs.checkpoints.tolist() != list(study.steps(horizon)):
        differences.append("its checkpoints are others")
    if runs.seed != study.seed:
        differences.append(f"its seed is {runs.seed}, not {study.seed}")
    if runs.arms != study.arms.to_dict():
        differences.append("its arms are others")
    texts = set(map(_text, study.policies))
    strange = [repr(policy) for policy in runs.policies if _text(policy) not in texts]
    if strange:
        more = f" and {len(strange) - 1} more" if len(strange) > 1 else ""
        differences.append(f"the study does not have its policy {strange[0]}{more}")
    if not set(range(study.replications)).issuperset(runs.replications.tolist()):
        differences.append(f"it has {runs.replications.max() + 1} replications, not {study.replications}")
    return "; ".join(differences)


def _together(study: Study, kept: Kept, horizon: int) -> Runs:
    """Return the cells of a horizon as one, its policies in the order of the study."""
    cells = [cell for cell in study.cells() if cell.horizon == horizon]
    wholes = [Runs.joined(kept[cell]) for cell in cells]
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(whole, name) for whole in wholes]) for name in ("pulls", "mean", "std", "target")
    }
    # What was played carries a digest of the arms.
    return dataclasses.replace(wholes[0], policies=study.policies, arms=study.arms.to_dict(), **arrays)


def _text(policy: Policy) -> str:
    return policy.to_json()


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


class Parts:
    """A folder beside the result with the replications finished so far, one small file per piece.

    A file's name starts with the fingerprint of its cell, so that a changed study never meets the parts of another.
    Parts know their arms by a digest alone.
    """

    _MARK = "again.json"
    """A file that says which study is being computed anew, so that the results of before do not count."""

    def __init__(self, folder: Path, study: Study) -> None:
        self.folder = folder
        self._arms = study.described_arms
        self._names = study.fingerprints()

    def load(self) -> dict[Cell, list[Runs]]:
        """Return the finished replications of each cell; a replication that is in two files is taken once."""
        found: dict[Cell, list[Runs]] = {}
        for cell, name in self._names.items():
            seen: set[int] = set()
            for file in sorted(self.folder.glob(f"{name}-*.npz")):
                try:
                    runs = Runs.load(file)
                except (InvalidInput, OSError):
                    continue  # a damaged file is as good as none
                new = [number for number in runs.replications.tolist() if number not in seen]
                if new:
                    seen.update(new)
                    found.setdefault(cell, []).append(runs.select(replications=new))
        return found

    def start_again(self) -> None:
        """Remove what there is, and take note that results from before are to be replaced."""
        self.remove()
        self.folder.mkdir(parents=True)
        (self.folder / self._MARK).write_text(json.dumps(list(self._names.values())), encoding="utf-8")

    @property
    def are_to_replace(self) -> bool:
        """Whether a sweep that was to compute this study anew, or a part of it, was interrupted."""
        try:
            begun = json.loads((self.folder / self._MARK).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        return set(begun) <= set(self._names.values())

    def save(self, cell: Cell, runs: Runs) -> None:
        """Keep the replications of a piece."""
        self.folder.mkdir(parents=True, exist_ok=True)
        first, last = runs.replications[0], runs.replications[-1]
        runs = dataclasses.replace(runs, arms=self._arms)
        runs.save(self.folder / f"{self._names[cell]}-{first}-{last}.npz")

    def remove(self) -> None:
        """Remove the folder and what is in it."""
        shutil.rmtree(self.folder, ignore_errors=True)
