"""Read arms for the commands: from options, or from a CSV file with columns arm, mean and std."""

from __future__ import annotations

import csv
from dataclasses import dataclass

from equipoise.errors import InvalidInput
from equipoise.files import CsvRows, name_of, number_in, read_text

COLUMNS = ("arm", "mean", "std")
"""Columns that a CSV file of arms must have."""


@dataclass(frozen=True)
class ArmTable:
    """Arms by name, with expected reward and standard deviation; one entry each per arm."""

    arms: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]


def chosen_arms(path: str | None, mean: str | None, std: str | None, name: str | None) -> ArmTable:
    """Return the arms from a CSV file or from comma-separated options, whichever is given.

    Examples
    --------
    >>> chosen_arms(None, "1,2", "0.5,1", None)
    ArmTable(arms=('1', '2'), mean=(1.0, 2.0), std=(0.5, 1.0))
    """
    if path is not None:
        if (mean, std, name) != (None, None, None):
            raise InvalidInput("give the arms either by --arms or by --mean, --std and --name; got both")
        return read_arms(path)
    if mean is None or std is None:
        hint = "give --mean 1,2,3 --std 1,1,1, or --arms FILE for a CSV with columns arm, mean, std"
        raise InvalidInput("the means and standard deviations of the arms are missing", hint=hint)
    means, stds = numbers("mean", mean), numbers("std", std)
    names = tuple(str(i + 1) for i in range(len(means))) if name is None else entries(name)
    for option, given in (("std", stds), ("name", names)):
        if len(given) != len(means):
            raise InvalidInput.of(option, f"must have {len(means)} entries, as many as --mean", len(given))
    for i, label in enumerate(names):
        if not label or label in names[:i]:
            raise InvalidInput.of("name", "must give each arm a name of its own", label, arm=i)
        if stds[i] < 0:
            raise InvalidInput.of("std", f"must not be negative; got {stds[i]:g} for arm {label}")
    return ArmTable(names, means, stds)


def read_arms(path: str) -> ArmTable:
    """Read the arms from a CSV file with columns arm, mean and std in any order, or from standard input for "-".

    Other columns and blank lines are skipped. Errors name the line.
    """
    return parse_arms(read_text(path), name_of(path))


def parse_arms(text: str, source: str) -> ArmTable:
    r"""Parse arms from CSV text; errors call it `source`.

    Examples
    --------
    >>> parse_arms("std,arm,mean\n0.5,a,1", "arms.csv")
    ArmTable(arms=('a',), mean=(1.0,), std=(0.5,))
    >>> parse_arms("std,arm,mean\n0.5,a,one", "arms.csv")
    Traceback (most recent call last):
    ...
    equipoise.errors.EquipoiseError: arms.csv, line 2: mean must be a number; got 'one'
    """
    rows = CsvRows(text, source, COLUMNS)
    line_of: dict[str, int] = {}
    means: list[float] = []
    stds: list[float] = []
    for arm, mean, std in rows:
        if not arm:
            raise rows.wrong("each arm needs a name; got none")
        if arm in line_of:
            raise rows.wrong(f"each arm needs a name of its own; got {arm!r}, which is on line {line_of[arm]} too")
        for column, cell, values in (("mean", mean, means), ("std", std, stds)):
            value = number_in(cell)
            if value is None:
                raise rows.wrong(f"{column} must be a number; got {cell!r}" if cell else f"{column} is missing")
            values.append(value)
        if stds[-1] < 0:
            raise rows.wrong(f"std must not be negative; got {std}")
        line_of[arm] = rows.line
    if not line_of:
        raise rows.wrong("expected at least one arm below the header; got none")
    return ArmTable(tuple(line_of), tuple(means), tuple(stds))


def entries(text: str) -> tuple[str, ...]:
    """Split a comma-separated option; quote a part that contains a comma, as in CSV.

    Examples
    --------
    >>> entries('pie, "line, thick"')
    ('pie', 'line, thick')
    """
    return tuple(part.strip() for part in next(csv.reader([text], skipinitialspace=True), []))


def numbers(parameter: str, text: str) -> tuple[float, ...]:
    """Parse the numbers of a comma-separated option.

    Examples
    --------
    >>> numbers("mean", "1, 2.5")
    (1.0, 2.5)
    >>> numbers("mean", "1, x")
    Traceback (most recent call last):
    ...
    equipoise.errors.InvalidInput: mean must be numbers separated by commas; got 'x'
    """
    values = []
    for part in entries(text) or ("",):
        value = number_in(part)
        if value is None:
            raise InvalidInput.of(parameter, "must be numbers separated by commas", part)
        values.append(value)
    return tuple(values)
