"""What an experiment knows of the units of a file: who has an arm already, and whose name is like an unknown one."""

from __future__ import annotations

import csv
import difflib
import tempfile
from typing import TYPE_CHECKING

from equipoise.errors import EquipoiseError, Hint, NotAllowed, hint_in

if TYPE_CHECKING:
    from equipoise.cli.unit_files import UnitFile
    from equipoise.experiment import Experiment

_FIRST = 3
"""Units that a summary shows."""
_MOST_COMPARED = 50_000
"""Units of an experiment above which no similar ones are looked for: comparing with each takes a second."""
_MOST_EXPLAINED = 20
"""Unknown units for which similar ones are looked for."""


class KnownUnits:
    """The units of an experiment, read when they are first needed."""

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        self._n_explained = 0
        self._units: set[str] | None = None
        self._is_read = False

    @property
    def units(self) -> set[str] | None:
        """The units, or None if the key may not see them."""
        if not self._is_read:
            self._is_read = True
            try:
                self._units = _exported(self._experiment)
            except NotAllowed:  # a key that may only assign
                self._units = None
        return self._units

    def summary(self, file: UnitFile) -> str:
        """Say what assigning the units of a file would do."""
        units = list(dict.fromkeys(row.unit for row in file.rows))
        where = "one unit per line" if file.column is None else f"column {file.column}"
        first = ", ".join(units[:_FIRST]) + (", ..." if len(units) > _FIRST else "")
        lines = [f"{file.source}, {where}: {len(units):,} units: {first or 'none'}"]
        if self.units is None:
            lines.append("how many of them have an arm already is not shown to this key")
        else:
            n_known = sum(unit in self.units for unit in units)
            lines.append(f"{len(units) - n_known:,} new, to be assigned for good; {n_known:,} with an arm already")
        n_repeated = len(file.rows) - len(units)
        if n_repeated or file.n_blank:
            lines.append(f"left out: {n_repeated:,} repeated, {file.n_blank:,} blank")
        return "\n".join(lines)

    def hint(self, unit: str) -> str:
        """Return what to look at where a unit is unknown: names like it, but never a call that would assign it."""
        usual = hint_in(Hint.CHECK_UNIT, "command")
        self._n_explained += 1
        if self._n_explained > _MOST_EXPLAINED:
            return usual
        try:
            units = self.units
        except EquipoiseError:  # the error about the unit matters more
            return usual
        if units is None or len(units) > _MOST_COMPARED:
            return usual
        similar = difflib.get_close_matches(unit, units, n=_FIRST, cutoff=0.8)
        return f"check the spelling; similar units are {', '.join(sorted(similar))}" if similar else usual


def _exported(experiment: Experiment) -> set[str]:
    with tempfile.TemporaryFile("w+", encoding="utf-8", newline="") as file:
        experiment.export(file, "csv")
        file.seek(0)
        return {row["unit"] for row in csv.DictReader(file)}
