"""Lay out text in columns of a terminal, in which a letter may be two cells wide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

SHORTEST_NAME = 8
"""Names are never cut to fewer cells than this."""
NARROWEST_NAME = 24
"""Optional columns are left out before names are cut to fewer cells than this."""
WIDEST_NAME = 40
"""Names are cut to this many cells, and to fewer on a narrow terminal."""


class Column(NamedTuple):
    """A column of text: its head, its cells, and how important it is.

    On a narrow terminal, the column with the largest `spare` is left out first; 0 always stays. Columns of `names` are
    aligned left, and cut where there is no room.
    """

    head: str
    cells: Sequence[str]
    spare: int = 0
    names: bool = False


def padded(cells: Sequence[str], *, left: bool = False) -> list[str]:
    """Pad the cells of a column to equal width, aligned right or left."""
    sizes = [cell_len(text) for text in cells]
    width = max(sizes)
    pads = [" " * (width - size) for size in sizes]
    return [text + pad if left else pad + text for text, pad in zip(cells, pads, strict=True)]


def shortened(text: str, cells: int) -> str:
    """Fit text into `cells` cells, with dots in the middle if it is too long: names often differ at the end.

    Examples
    --------
    >>> shortened("1 cent per 100 in 2 weeks", 20)
    '1 cent pe... 2 weeks'
    """
    if cell_len(text) <= cells:
        return set_cell_size(text, cells)
    tail = (cells - 3) // 2
    return set_cell_size(set_cell_size(text, cells - 3 - tail) + "..." + text[len(text) - tail :], cells)


def shortened_names(names: Sequence[str], cells: int) -> list[str]:
    """Fit names into `cells` cells: cut in the middle, or where more of them stay different at an end.

    Examples
    --------
    >>> shortened_names(["prize of 10 now", "prize of 20 now"], 10)
    ['... 10 now', '... 20 now']
    >>> shortened_names(["prize 10 at the end of the year", "prize 20 at the end of the year"], 14)
    ['prize 10 at...', 'prize 20 at...']
    """
    longest = max(map(cell_len, names), default=0)
    if longest <= cells:
        return [set_cell_size(name, cells) for name in names]
    cuts = [
        [shortened(name, cells) for name in names],
        [name if cell_len(name) <= cells else set_cell_size(name, cells - 3) + "..." for name in names],
        [name if cell_len(name) <= cells else "..." + _tail(name, cells - 3) for name in names],
    ]
    best = max(cuts, key=lambda one: len(set(one)))
    return [set_cell_size(name, cells) for name in best]


def _tail(text: str, cells: int) -> str:
    """Return the end of a text, of at most this many cells."""
    while cell_len(text) > cells:
        text = text[1:]
    return text


def table_lines(columns: Sequence[Column], room: int) -> list[str]:
    """Return the lines of a table that fits `room` cells if it can: it drops optional columns, then cuts names.

    Examples
    --------
    >>> names, means = Column("arm", ["plain", "a prize of a hundred"], names=True), Column("mean", ["1.5", "20.0"])
    >>> for line in table_lines([names, means, Column("std", ["1", "2"], spare=1)], 20):
    ...     print(line)
    arm             mean
    plain            1.5
    a priz...ndred  20.0
    """
    kept, share = _kept(columns, room)
    size = min(WIDEST_NAME, max(SHORTEST_NAME, share))
    texts = [
        shortened_names([one.head, *one.cells], min(size, _width(one))) if one.names else padded([one.head, *one.cells])
        for one in kept
    ]
    return ["  ".join(row).rstrip() for row in zip(*texts, strict=True)]


def left_out(columns: Sequence[Column], room: int) -> str:
    """Return what `table_lines` leaves out, in words; nothing if all columns fit.

    Examples
    --------
    >>> columns = [Column("arm", ["plain"], names=True), Column("mean", ["1.5"]), Column("std", ["1"], spare=1)]
    >>> left_out(columns, 12), left_out(columns, 80)
    ('Too wide for this screen: std.', '')
    """
    kept, _ = _kept(columns, room)
    gone = [one.head.strip() for one in columns if one not in kept]
    return f"Too wide for this screen: {', '.join(gone)}." if gone else ""


def _kept(columns: Sequence[Column], room: int) -> tuple[list[Column], int]:
    """Return the columns that fit, and the room for each column of names."""
    kept = list(columns)
    while True:
        fixed = sum(_width(one) for one in kept if not one.names) + 2 * (len(kept) - 1)
        names = [one for one in kept if one.names]
        share = (room - fixed) // max(len(names), 1)
        wanted = min(NARROWEST_NAME, max((_width(one) for one in names), default=0))
        first_to_go = max(kept, key=lambda one: one.spare)
        if share >= wanted or not first_to_go.spare:
            return kept, share
        kept.remove(first_to_go)


def _width(column: Column) -> int:
    return max(cell_len(text) for text in (column.head, *column.cells))
