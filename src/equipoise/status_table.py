"""Format the status of an experiment for people: lines of styled text for a terminal, a file or a live display."""

from __future__ import annotations

import math
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.cells import cell_len

from equipoise.errors import visible
from equipoise.experiment.dial import dial_words
from equipoise.experiment.fidelity import figure_text
from equipoise.policies import Policy
from equipoise.terminal import aligned
from equipoise.text_layout import (
    NARROWEST_NAME,
    SHORTEST_NAME,
    WIDEST_NAME,
    Column,
    padded,
    shortened,
    shortened_names,
    table_lines,
)

if TYPE_CHECKING:
    from rich.text import Text

    from equipoise.experiment import ArmStatus, Fidelity, Progress, Status

LARGEST_PLAIN = 1e9
"""Larger numbers may be written with an exponent."""
_DIGITS = 4
_SPARE = {"std": 4, "held": 3, "defaulted": 2, "target": 1}


_INTERVALS = {
    "guaranteed": "guaranteed for rewards in the declared range",
    "low guaranteed": "the low end guaranteed for rewards in the declared range, the high end asymptotic",
    "high guaranteed": "the high end guaranteed for rewards in the declared range, the low end asymptotic",
    "asymptotic": "asymptotic, from 30 rewards on, later if they are skewed",
}


class Line(NamedTuple):
    """A line of text, and its style for terminals with colours."""

    text: str
    style: str = ""


class _Column(NamedTuple):
    head: str
    cells: list[str]
    total: str = ""
    spare: int = 0
    """On a narrow terminal, the column with the largest number is left out first; 0 always stays."""


def status_lines(status: Status, *, width: int | None = None, height: int | None = None) -> list[Line]:
    """Format the status as lines no wider than `width`; arms beyond `height` lines are only counted.

    Examples
    --------
    >>> import equipoise as eq
    >>> experiment = eq.Experiment.create("memory:", "exam", arms=["a", "b"], policy=eq.Uniform(), seed=1)
    >>> for unit, reward in enumerate([1.0, 2.0, 3.0, 4.5]):
    ...     told = experiment.tell(experiment.ask(f"student-{unit}").unit, reward)
    >>> for line in status_lines(experiment.status(), width=80)[:5]:
    ...     print(line.text)
    exam: enrolling, Uniform()
    arm    assigned  rewarded  pending   mean  +/-    std  share  target
    a             2         2        0  2.000    -  1.414  0.500       -
    b             2         2        0  3.250    -  1.768  0.500       -
    total         4         4        0  2.625
    """
    room = shutil.get_terminal_size().columns if width is None else width
    policy = repr(Policy.from_dict(status.policy))
    title = f"{visible(status.name)}: {status.state}, {policy}"
    lines = [Line(shortened(title, min(room, cell_len(title))), "bold")]
    if called := visible(status.description.title):
        lines.append(Line(shortened(called, min(room, cell_len(called)))))
    notes = [
        Line(part, note.style)
        for note in _notes(status)
        for part in textwrap.wrap(note.text, max(room, 20), subsequent_indent="  ") or [""]
    ]
    arms, left_out = status.arms, 0
    if height is not None:
        most = max(1, height - len(lines) - len(notes) - 3)
        left_out = max(0, len(arms) - most)
        arms = arms[: len(arms) - left_out]
    lines += _table(status, arms, room)
    if left_out:
        total = lines.pop()
        lines += [Line(f"... {left_out:,} more arms", "dim"), total]
    return lines + notes


def fidelity_lines(found: Fidelity, *, width: int | None = None) -> list[Line]:
    """Format the comparison of an experiment with its plan: the sentences, then what was planned and what is."""
    room = shutil.get_terminal_size().columns if width is None else width
    lines = [
        Line(f"{visible(found.name)}: day {found.day:.0f} of {found.last_day:.0f}, planned as {found.way}", "bold")
    ]
    for sentence in found.sentences:
        lines += [Line(part) for part in textwrap.wrap(visible(sentence), max(room, 20), subsequent_indent="  ")]
    shown = found.figures
    columns = [
        Column(
            "figure", [visible(one.figure if one.arm is None else f"{one.figure} {one.arm}") for one in shown], 0, True
        ),
        Column("now", [figure_text(one.figure, one.actual) for one in shown]),
        Column("planned", [figure_text(one.figure, one.middle) for one in shown]),
        Column("8 in 10 from", [figure_text(one.figure, one.low) for one in shown]),
        Column("to", [figure_text(one.figure, one.high) for one in shown]),
        Column("", ["outside" if one.inside is False else "" for one in shown]),
    ]
    return [*lines, *(Line(text) for text in table_lines(columns, room))]


def styled_text(lines: Sequence[Line]) -> Text:
    """Convert lines to Rich text that does not wrap."""
    from rich.text import Text

    text = Text(no_wrap=True, overflow="crop")
    for line in lines:
        text.append(f"{line.text}\n", style=line.style or None)
    text.right_crop(1)
    return text


def print_lines(lines: Sequence[Line]) -> None:
    """Print lines to standard output, in colour if the terminal has colours."""
    if sys.stdout.isatty():
        from rich.console import Console

        Console(highlight=False, soft_wrap=True).print(styled_text(lines), markup=False)
    else:
        sys.stdout.write("".join(f"{line.text}\n" for line in lines))
        sys.stdout.flush()


def _table(status: Status, arms: Sequence[ArmStatus], room: int) -> list[Line]:
    """Return the lines of the header, the arms and the totals."""
    columns = _columns(status, arms)
    names = [visible(arm.arm) for arm in arms]
    longest = min(WIDEST_NAME, max(cell_len(name) for name in ["total", *names]))
    while True:
        texts = [padded([column.head, *column.cells, column.total]) for column in columns]
        name_room = room - sum(cell_len(cells[0]) + 2 for cells in texts)
        first_to_go = max(columns, key=lambda column: column.spare)
        if name_room >= min(longest, NARROWEST_NAME) or not first_to_go.spare:
            break
        columns.remove(first_to_go)
    size = max(min(longest, SHORTEST_NAME), min(longest, name_room))
    dim = {"paused": "dim", "retired": "dim"}
    styles = ["bold", *(dim.get(arm.state, "") for arm in arms), "bold"]
    rows = zip(shortened_names(["arm", *names, "total"], size), *texts, strict=True)
    return [Line("  ".join(cells).rstrip(), style) for cells, style in zip(rows, styles, strict=True)]


def _columns(status: Status, arms: Sequence[ArmStatus]) -> list[_Column]:
    """Return the columns worth showing, without counts that are zero for every arm."""
    columns = []
    if any(arm.state != "active" for arm in status.arms):
        columns.append(_Column("state", [arm.state for arm in arms]))
    for name in ("assigned", "rewarded", "pending", "held", "overdue", "defaulted", "dropped", "withdrawn"):
        total = getattr(status, f"n_{name}")
        always = name in ("assigned", "rewarded", "pending")
        if total or always:
            columns.append(
                _Column(name, [f"{getattr(arm, name):,}" for arm in arms], f"{total:,}", _SPARE.get(name, 0))
            )
    widths = [arm.half_width for arm in arms]
    decimals = _decimals([width for width in widths if width])
    means = _numbers([*(arm.mean for arm in arms), status.average_reward], decimals)
    columns += [
        _Column("mean", means[:-1], means[-1] if status.average_reward is not None else ""),
        _Column("+/-", _numbers(widths, decimals)),
        _Column("std", _numbers([arm.std for arm in arms]), spare=_SPARE["std"]),
        _Column("share", [_share(arm.actual_share) for arm in arms]),
        _Column("target", [_share(arm.target_share) for arm in arms], spare=_SPARE["target"]),
    ]
    return columns


def _notes(status: Status) -> list[Line]:
    """Return notes on what the numbers mean, the rule for missing rewards, and the progress of stopping rules."""
    percent = f"{100 * status.confidence:g}%"
    kind = _INTERVALS.get(status.interval, status.interval)
    lines = [Line("")]
    for alert in status.alerts:
        of_arm = "" if alert.arm is None else f", arm {alert.arm!r}"
        text = f"{alert.severity} ({alert.check}{of_arm}): {alert.sentence}"
        lines.append(Line(visible(text), "red" if alert.severity == "problem" else "yellow"))
    if status.alerts:
        lines += [Line(f"what to do: equipoise health {visible(status.name)}"), Line("")]
    if status.sentence and status.n_rewarded and len(status.arms) > 1:
        lines.append(Line(f"Provisional: {status.sentence}" if status.provisional else status.sentence, "bold"))
        lines += [Line(f"Why provisional: {reason}", "yellow") for reason in status.provisional]
        lines.append(Line(""))
    if status.information_kept is not None:
        dial = {"information_kept": status.information_kept, "information_about": status.information_about}
        weight = "" if status.reward_weight is None else f"; weight now {status.reward_weight:.4g}"
        lines.append(Line(f"dial: {dial_words(dial)}{weight}", "dim"))
    holds = "would hold" if status.provisional else "holds"
    lines += [Line(f"+/- {holds} with {percent} for all arms and times together ({kind})", "dim")]
    lines.append(Line(f"missing rewards: {status.missing}", "dim"))
    lines += [_rule_line(progress) for progress in status.stopping]
    return lines


def _rule_line(progress: Progress) -> Line:
    goal, now = _value(progress.goal), _value(progress.now)
    largest = f"largest +/- is {now}, wanted {goal}" if progress.now is not None else f"wanted {goal}, not known yet"
    where = {
        "budget": f"{now} of {goal} units assigned",
        "precision": largest,
        "precision of differences": largest,
        "decided": f"{now} arms may still be best, wanted {goal}",
        "decided within a margin": f"the best so far is worse than another by at most {now}, wanted {goal}"
        if progress.now is not None
        else f"wanted {goal}, not known yet",
        "deadline": f"{goal}",
    }.get(progress.rule, f"{now} of {goal}")
    text = f"stopping rule {progress.rule}: {where}"
    return Line(f"{text}; met", "green") if progress.met else Line(text)


def _value(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.{_DIGITS}g}" if isinstance(value, float) else visible(str(value))


def _decimals(widths: Sequence[float]) -> int | None:
    """Return the number of decimals that shows two digits of the narrowest interval, or None if there is none."""
    if not widths or not 1e-6 <= min(widths) < LARGEST_PLAIN:
        return None
    return max(0, 1 - math.floor(math.log10(min(widths))))


def _numbers(values: Sequence[float | None], decimals: int | None = None) -> list[str]:
    """Format a column of numbers, with a dash for None."""
    numbers = [value for value in values if value is not None]
    if decimals is not None and all(abs(number) < LARGEST_PLAIN for number in numbers):
        known = iter([f"{number:.{decimals}f}" for number in numbers])
    else:
        known = iter(aligned(numbers, digits=_DIGITS))
    return ["-" if value is None else next(known) for value in values]


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.3f}"
