"""Read arms for the commands: from options, or from a CSV file with columns arm, mean and std, or arm and rate."""

from __future__ import annotations

import csv
from contextlib import suppress
from dataclasses import dataclass

from equipoise.errors import InvalidInput
from equipoise.files import CsvRows, name_of, number_in, read_text
from equipoise.quantities import fraction, rate, spread_of_rate

COLUMNS = ("arm", "mean", "std")
"""Columns that a CSV file of arms must have."""
RATE_COLUMNS = ("arm", "rate")
"""Or these, where rewards are yes or no."""


@dataclass(frozen=True)
class ArmTable:
    """Arms by name, with expected reward and standard deviation; one entry each per arm.

    Rewards are yes or no (1 or 0) where the arms were given by their rates.
    """

    arms: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    are_rates: bool = False


def chosen_arms(
    path: str | None, mean: str | None, std: str | None, name: str | None, rates: str | None = None
) -> ArmTable:
    """Return the arms from a CSV file or from comma-separated options, whichever is given.

    Examples
    --------
    >>> chosen_arms(None, "1,2", "0.5,1", None)
    ArmTable(arms=('1', '2'), mean=(1.0, 2.0), std=(0.5, 1.0), are_rates=False)
    >>> chosen_arms(None, None, None, "a,b", "50%,0.2")
    ArmTable(arms=('a', 'b'), mean=(0.5, 0.2), std=(0.5, 0.4), are_rates=True)
    """
    if path is not None:
        if (mean, std, name, rates) != (None, None, None, None):
            raise InvalidInput("give the arms either by --arms or by --mean, --std and --name, or --rates; got both")
        return read_arms(path)
    if rates is not None:
        if (mean, std) != (None, None):
            raise InvalidInput("give --rates, or --mean and --std; got both")
        means = tuple(rate(part, "rates") for part in entries(rates) or ("",))
        stds = tuple(map(spread_of_rate, means))
    elif mean is None or std is None:
        hint = "give --mean 1,2,3 --std 1,1,1, or --rates 10%,12%, or --arms FILE for a CSV with columns arm, mean, std"
        raise InvalidInput("the means and standard deviations of the arms are missing", hint=hint)
    else:
        means, stds = numbers("mean", mean, percent=True), numbers("std", std, percent=True)
    names = tuple(str(i + 1) for i in range(len(means))) if name is None else entries(name)
    for option, given in (("std", stds), ("name", names)):
        if len(given) != len(means):
            first = "--mean" if rates is None else "--rates"
            raise InvalidInput.of(option, f"must have {len(means)} entries, as many as {first}", len(given))
    for i, label in enumerate(names):
        if not label or label in names[:i]:
            raise InvalidInput.of("name", "must give each arm a name of its own", label, arm=i)
        if stds[i] < 0:
            raise InvalidInput.of("std", f"must not be negative; got {stds[i]:g} for arm {label}")
    return ArmTable(names, means, stds, rates is not None)


def read_arms(path: str) -> ArmTable:
    """Read the arms from a CSV file with columns arm, mean and std in any order, or from standard input for "-".

    With a column rate instead of mean and std, rewards are yes or no. Numbers may be percentages.
    Other columns and blank lines are skipped. Errors name the line.
    """
    return parse_arms(read_text(path), name_of(path))


def parse_arms(text: str, source: str) -> ArmTable:
    r"""Parse arms from CSV text; errors call it `source`.

    Examples
    --------
    >>> parse_arms("std,arm,mean\n0.5,a,1", "arms.csv")
    ArmTable(arms=('a',), mean=(1.0,), std=(0.5,), are_rates=False)
    >>> parse_arms("arm,rate\na,50%", "arms.csv")
    ArmTable(arms=('a',), mean=(0.5,), std=(0.5,), are_rates=True)
    >>> parse_arms("std,arm,mean\n0.5,a,one", "arms.csv")
    Traceback (most recent call last):
    ...
    equipoise.errors.EquipoiseError: arms.csv, line 2: mean must be a number; got 'one'
    """
    columns = _columns(text)
    rows = CsvRows(text, source, columns)
    line_of: dict[str, int] = {}
    values: list[tuple[float, ...]] = []
    for arm, *cells in rows:
        if not arm:
            raise rows.wrong("each arm needs a name; got none")
        if arm in line_of:
            raise rows.wrong(f"each arm needs a name of its own; got {arm!r}, which is on line {line_of[arm]} too")
        found = []
        for column, cell in zip(columns[1:], cells, strict=True):
            try:
                found.append(rate(cell) if column == "rate" else fraction(cell))
            except InvalidInput as error:
                must = error.expected if column == "rate" else "must be a number"
                raise rows.wrong(f"{column} {must}; got {cell!r}" if cell else f"{column} is missing") from None
        if found[-1] < 0:
            raise rows.wrong(f"std must not be negative; got {cells[-1]}")
        values.append(tuple(found))
        line_of[arm] = rows.line
    if not line_of:
        raise rows.wrong("expected at least one arm below the header; got none")
    means = tuple(found[0] for found in values)
    if columns == RATE_COLUMNS:
        return ArmTable(tuple(line_of), means, tuple(map(spread_of_rate, means)), are_rates=True)
    return ArmTable(tuple(line_of), means, tuple(found[1] for found in values))


def _columns(text: str) -> tuple[str, ...]:
    """Return the columns to read: arm and rate where the header has a rate, and no mean or std."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    header = {cell.strip().lower() for cell in next(csv.reader([first]), [])}
    return RATE_COLUMNS if "rate" in header and not {"mean", "std"} & header else COLUMNS


def entries(text: str) -> tuple[str, ...]:
    """Split a comma-separated option; quote a part that contains a comma, as in CSV.

    Examples
    --------
    >>> entries('pie, "line, thick"')
    ('pie', 'line, thick')
    """
    return tuple(part.strip() for part in next(csv.reader([text], skipinitialspace=True), []))


def numbers(parameter: str, text: str, *, percent: bool = False) -> tuple[float, ...]:
    """Parse the numbers of a comma-separated option, which may be percentages with `percent`.

    Examples
    --------
    >>> numbers("mean", "1, 2.5")
    (1.0, 2.5)
    >>> numbers("floor", "2%, 0.1", percent=True)
    (0.02, 0.1)
    >>> numbers("mean", "1, x")
    Traceback (most recent call last):
    ...
    equipoise.errors.InvalidInput: mean must be numbers separated by commas; got 'x'
    """
    values = []
    for part in entries(text) or ("",):
        value = number_in(part)
        if value is None:
            with suppress(InvalidInput):
                value = fraction(part) if percent else None
        if value is None:
            raise InvalidInput.of(parameter, "must be numbers separated by commas", part)
        values.append(value)
    return tuple(values)
