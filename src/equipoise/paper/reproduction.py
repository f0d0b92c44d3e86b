"""Compute the items that are asked for, keep each one as soon as it is done, and judge what came out."""

from __future__ import annotations

import hashlib
import json
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import equipoise
from equipoise.errors import InvalidInput, UnknownName
from equipoise.files import replacing
from equipoise.paper.findings import Claim, Comparison, Finding, compare
from equipoise.paper.item import Work
from equipoise.paper.items import ITEMS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from equipoise.arms import Gaussian
    from equipoise.paper.item import Item

KEPT = "items"
"""Folder of the finished items, in that of the report."""


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """Findings of the items, in the order of the report.

    Attributes
    ----------
    items : tuple of Item
    findings : tuple of Finding
        One per item.
    quick : bool
    seconds : float
        How long the items took that were computed now.
    n_kept : int
        Items that had been computed before.
    """

    items: tuple[Item, ...]
    findings: tuple[Finding, ...]
    quick: bool
    seconds: float
    n_kept: int

    @property
    def comparisons(self) -> list[Comparison]:
        """Every number that must come out, beside ours."""
        return [comparison for finding in self.findings for comparison in compare(finding.measured)]

    @property
    def claims(self) -> list[Claim]:
        """Every claim that was tested."""
        return [claim for finding in self.findings for claim in finding.claims]

    @property
    def missed(self) -> list[str]:
        """What did not come out: keys of numbers and claims."""
        numbers = [comparison.expected.key for comparison in self.comparisons if not comparison.holds]
        return numbers + [claim.key for claim in self.claims if not claim.holds]


def chosen_items(names: Sequence[str] = ()) -> tuple[Item, ...]:
    """Return items by their names, in the order of the report; all by default.

    Examples
    --------
    >>> [item.name for item in chosen_items(["table1", "fig4"])]
    ['fig4', 'table1']
    """
    known = [item.name for item in ITEMS]
    for name in names:
        if name not in known:
            raise UnknownName(f"there is no item {name!r}; there are {', '.join(known)}")
    return tuple(item for item in ITEMS if not names or item.name in names)


def reproduce(
    names: Sequence[str] = (),
    *,
    folder: Path | None = None,
    quick: bool = False,
    again: bool = False,
    treefrog: Gaussian | None = None,
    workers: int | None = None,
    on_start: Callable[[Item, bool], None] | None = None,
    on_progress: Callable[[Item, int], None] | None = None,
    on_end: Callable[[Item, Finding], None] | None = None,
) -> Reproduction:
    """Compute items and judge them.

    Parameters
    ----------
    names : sequence of str
        Of items; all by default.
    folder : path, optional
        Where finished items are kept, and taken from if they were computed by the same code with the same settings.
    quick : bool
        Fewer replications.
    again : bool
        Compute what is kept, too.
    treefrog : Gaussian, optional
        The 64 arms of the educational experiment, for those who have them; the surrogate by default.
    on_start, on_progress, on_end : functions, optional
        Called with each item, and whether it was kept, the steps simulated so far, or what was found.

    Examples
    --------
    >>> result = reproduce(["fig4"])
    >>> result.missed, [comparison.verdict for comparison in result.comparisons][3:]
    ([], ['differs, as known', 'differs, as known', 'matches'])
    """
    items = chosen_items(names)
    kept = None if folder is None else _prepared(folder)
    start = time.perf_counter()
    work = Work(quick=quick, workers=workers, treefrog=treefrog)
    findings, n_kept = [], 0
    for item in items:
        path = None if kept is None else kept / f"{item.name}.json"
        finding = None if path is None or again else _load(path, work)
        if on_start is not None:
            on_start(item, finding is not None)
        if finding is not None:
            n_kept += 1
        else:
            with _told(work, item, on_progress):
                finding = _computed(item, work)
            if path is not None:
                _keep(path, finding, work)
        findings.append(finding)
        if on_end is not None:
            on_end(item, finding)
    return Reproduction(
        items=items,
        findings=tuple(findings),
        quick=quick,
        seconds=time.perf_counter() - start,
        n_kept=n_kept,
    )


def _computed(item: Item, work: Work) -> Finding:
    before, start = work.n_steps, time.perf_counter()
    finding = item.compute(work)
    return replace(finding, n_steps=work.n_steps - before, seconds=time.perf_counter() - start)


@contextmanager
def _told(work: Work, item: Item, on_progress: Callable[[Item, int], None] | None) -> Iterator[None]:
    before = work.n_steps
    work.on_progress = None if on_progress is None else lambda done: on_progress(item, done - before)
    try:
        yield
    finally:
        work.on_progress = None


def _prepared(folder: Path) -> Path:
    """Return the folder for finished items; it is made now, so that nothing computed is lost for want of it."""
    try:
        (folder / KEPT).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{folder} must be a folder to write to; got {error.strerror or error}") from error
    return folder / KEPT


def _keep(path: Path, finding: Finding, work: Work) -> None:
    with replacing(path) as partial:
        partial.write_text(json.dumps({"made_by": _made_by(work), "finding": finding.to_json()}), encoding="utf-8")


def _load(path: Path, work: Work) -> Finding | None:
    """Return a kept finding; None if there is none, or if other code or settings made it."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return Finding.from_json(data["finding"]) if data["made_by"] == _made_by(work) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _made_by(work: Work) -> dict[str, object]:
    """Return what determines the findings: settings, and the code as it is."""
    arms = None if work.given_treefrog is None else work.given_treefrog.to_dict()
    return {"quick": work.quick, "treefrog": arms, "code": _code_digest()}


@cache
def _code_digest() -> str:
    folder = Path(equipoise.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in {".py", ".toml", ".csv"}:
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
