"""What a sweep has finished: results and parts of results in files, found again by what they were made from."""

from __future__ import annotations

import dataclasses
import json
import shutil
from typing import TYPE_CHECKING

from equipoise.errors import InvalidInput
from equipoise.runs import Runs

if TYPE_CHECKING:
    from pathlib import Path

    from equipoise.sweeps.study import Cell, Study


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
