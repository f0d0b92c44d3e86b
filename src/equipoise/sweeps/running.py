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
    from collections.abc import Sequence

    from equipoise.policies import Policy
    from equipoise.progress import Progress
    from equipoise.sweeps.study import Study
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
    pieces = list(missing(study, kept))
    if pieces:
        play(study, pieces, kept, parts, backend or best_backend(study), workers, scheduler, chunk, progress)
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
