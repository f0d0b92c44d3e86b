"""Many units or rewards at a time: a transaction per group, so that what was told is kept and a repeat is harmless."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import typer

from equipoise.cli.errors import told
from equipoise.cli.stores import note
from equipoise.cli.unit_files import Row
from equipoise.errors import EquipoiseError, NotAllowed, NotAuthenticated, ServiceError, StoreError

GROUP = 500
"""Units of one transaction: more would not be faster, and would make others wait."""
_NOT_ABOUT_A_ROW = (StoreError, NotAllowed, NotAuthenticated, ServiceError)


def feed(
    rows: Sequence[Row],
    source: str,
    send: Callable[[Sequence[Row]], list[Any]],
    receive: Callable[[Any], None],
    *,
    noun: str,
    show: bool,
    keep_going: bool,
) -> None:
    """Send rows in groups and hand on the answers, each group's when it is durable.

    A group is recorded whole or not at all. If something in it is refused, its rows are sent one by one up to the
    first that is refused, which is told with its line; with `keep_going` all others are sent as well.
    """
    from equipoise.progress import StepBar

    n_done, refused = 0, 0
    bar = StepBar(len(rows), f"sending {noun}", noun=noun) if show else None

    def send_singly(group: Sequence[Row]) -> None:
        nonlocal n_done, refused
        for row in group:
            try:
                (answer,) = send([row])
            except _NOT_ABOUT_A_ROW:
                raise
            except EquipoiseError as error:
                wrong = EquipoiseError(f"{source}, line {row.line}: {error.message}", hint=error.hint)
                if not keep_going:
                    raise wrong from None
                refused += 1
                note(f"refused: {told(wrong)}")
            else:
                n_done += 1
                receive(answer)

    try:
        with bar or nullcontext():
            for start in range(0, len(rows), GROUP):
                group = rows[start : start + GROUP]
                try:
                    answers = send(group)
                except _NOT_ABOUT_A_ROW:
                    raise
                except EquipoiseError:
                    send_singly(group)
                else:
                    n_done += len(group)
                    for answer in answers:
                        receive(answer)
                if bar is not None:
                    bar.show(start + len(group))
    except KeyboardInterrupt:
        note(f"interrupted; {_so_far(n_done, len(rows), noun)}, the same command does the rest")
        raise typer.Exit(130) from None
    except EquipoiseError as error:
        if n_done:
            more = f"{_so_far(n_done, len(rows), noun)}; the same command again is harmless"
            error.hint = more if error.hint is None else f"{error.hint}\n{more}"
        raise
    if refused:
        raise EquipoiseError(f"{refused:,} of {len(rows):,} {noun} of {source} were refused; the others are recorded")


def _so_far(n_done: int, n_rows: int, noun: str) -> str:
    return f"{n_done:,} of {n_rows:,} {noun} are recorded"
