"""Play a study, go on where an earlier sweep of it was stopped, and put its results together."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise import checks
from equipoise.errors import EquipoiseError, InvalidInput
from equipoise.runs import Runs
from equipoise.sweeps.parts import Parts
from equipoise.sweeps.playing import play
from equipoise.sweeps.tasks import best_backend, missing

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from equipoise.policies import Policy
    from equipoise.progress import Progress
    from equipoise.sweeps.study import Cell, Study
    from equipoise.sweeps.tasks import Kept


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
