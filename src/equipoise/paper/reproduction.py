"""Compute items, store each as soon as it is done, and compare the results with the paper."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import equipoise
from equipoise.errors import InvalidInput, UnknownName
from equipoise.files import replacing
from equipoise.paper.findings import Claim, Comparison, Finding, Item, missed_keys
from equipoise.paper.instances import Work
from equipoise.paper.items import ITEMS

if TYPE_CHECKING:
    from equipoise.arms import Gaussian


class Progress(NamedTuple):
    """Progress of an item: steps simulated so far, or its finding, from this run or an earlier one."""

    item: Item
    n_steps: int = 0
    finding: Finding | None = None


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """Findings of the items, in the order of the report.

    Attributes
    ----------
    items : tuple of Item
    findings : tuple of Finding
        One per item.
    quick : bool
    n_kept : int
        Number of findings from an earlier run.
    """

    items: tuple[Item, ...]
    findings: tuple[Finding, ...]
    quick: bool
    n_kept: int = 0

    @property
    def comparisons(self) -> list[Comparison]:
        """Our numbers beside the expected ones."""
        return [comparison for finding in self.findings for comparison in finding.comparisons]

    @property
    def claims(self) -> list[Claim]:
        """Every claim that was tested."""
        return [claim for finding in self.findings for claim in finding.claims]

    @property
    def missed(self) -> list[str]:
        """Keys of numbers that are missed and of claims that fail."""
        return missed_keys(self.comparisons, self.claims)

    @property
    def n_steps(self) -> int:
        """Steps simulated for all items."""
        return sum(finding.n_steps for finding in self.findings)

    @property
    def seconds(self) -> float:
        """Time it took to compute all items."""
        return sum(finding.seconds for finding in self.findings)

    @property
    def counts(self) -> dict[str, int]:
        """How many numbers match, are known to differ or are missed, and how many claims hold or fail."""
        verdicts = [one.verdict for one in self.comparisons] + [one.verdict for one in self.claims]
        names = {
            "matches": "matched",
            "differs, as known": "known",
            "missed": "missed",
            "holds": "hold",
            "fails": "fail",
        }
        return {name: verdicts.count(verdict) for verdict, name in names.items()}

    @property
    def summary(self) -> str:
        """The counts in words."""
        words = "numbers: {matched} match, {known} differ as known, {missed} missed; claims: {hold} hold, {fail} fail"
        return words.format(**self.counts)


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
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Reproduction:
    """Compute items and compare them with the paper.

    Parameters
    ----------
    names : sequence of str
        Names of items; all by default.
    folder : path, optional
        Where to store finished items. Items computed by the same code with the same settings are read from there.
    quick : bool
        Fewer replications.
    again : bool
        Recompute stored items.
    treefrog : Gaussian, optional
        The 64 arms of the educational experiment, if you have them; the surrogate by default.
    workers : int, optional
        Threads; one per core by default.
    on_progress : function of Progress
        Called when an item starts, while it simulates, and with its finding.

    Examples
    --------
    >>> result = reproduce(["fig4"])
    >>> result.missed, [comparison.verdict for comparison in result.comparisons][3:]
    ([], ['differs, as known', 'differs, as known', 'matches'])
    """
    items = chosen_items(names)
    kept = None if folder is None else _made(folder / "items")
    work = Work(quick=quick, workers=workers, treefrog=treefrog)
    findings, n_kept = [], 0
    for item in items:
        on_progress(Progress(item))
        path = None if kept is None else kept / f"{item.name}.json"
        finding = None if path is None or again else _load(path, work)
        n_kept += finding is not None
        if finding is None:
            finding = _compute(item, work, on_progress)
            if path is not None:
                _keep(path, finding, work)
        findings.append(finding)
        on_progress(Progress(item, finding.n_steps, finding))
    return Reproduction(items=items, findings=tuple(findings), quick=quick, n_kept=n_kept)


def _compute(item: Item, work: Work, on_progress: Callable[[Progress], None]) -> Finding:
    before, start = work.n_steps, time.perf_counter()
    work.on_progress = lambda n_steps: on_progress(Progress(item, n_steps - before))
    finding = item.compute(work)
    return replace(finding, n_steps=work.n_steps - before, seconds=time.perf_counter() - start)


def _made(folder: Path) -> Path:
    """Create a folder, before computing anything that could not be stored without it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{folder.parent} must be a folder to write to; got {error.strerror or error}") from error
    return folder


def _keep(path: Path, finding: Finding, work: Work) -> None:
    with replacing(path) as partial:
        partial.write_text(json.dumps({"made_by": _made_by(work), "finding": finding.to_json()}), encoding="utf-8")


def _load(path: Path, work: Work) -> Finding | None:
    """Read a stored finding; return None if there is none, or if other code or settings produced it."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return Finding.from_json(data["finding"]) if data["made_by"] == _made_by(work) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _made_by(work: Work) -> dict[str, object]:
    """Return what determines a finding: the settings and the code."""
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
