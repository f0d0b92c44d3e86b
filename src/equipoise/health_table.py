"""Format the health of experiments for people: alerts with what to do, then every check in a line."""

from __future__ import annotations

import shutil
import textwrap
from typing import TYPE_CHECKING

from equipoise.errors import visible
from equipoise.monitoring.health_records import alike
from equipoise.status_table import Line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from equipoise.experiment import Alert, Health

STYLES = {"problem": "red", "note": "yellow"}


def health_lines(found: Health, *, width: int | None = None, with_checks: bool = True) -> list[Line]:
    """Format the health of an experiment as lines no wider than `width`.

    Examples
    --------
    >>> import equipoise as eq
    >>> experiment = eq.Experiment.create("memory:", "exam", arms=["a", "b"], policy=eq.Uniform(), seed=1)
    >>> for line in health_lines(experiment.health(), width=80)[:3]:
    ...     print(line.text)
    exam: ok. Nothing is known to be wrong. Most checks begin after 24 hours and 100
      people.
    <BLANKLINE>
    """
    room = max(shutil.get_terminal_size().columns if width is None else width, 20)
    lines = _wrapped(f"{found.name}: {found.state}. {found.sentence}", room, "bold")
    for alert in found.alerts:
        lines += [Line(""), *alert_lines(alert, room)]
    if not with_checks:
        return lines
    lines.append(Line(""))
    longest = max(len(one.state) for one in found.checks)
    for check, *others in alike(found.checks):
        of_arm = f", {1 + len(others):,} arms" if others else "" if check.arm is None else f", {check.arm!r}"
        text = f"{check.state:{longest}}  {check.check}{of_arm}: {check.sentence}"
        lines += _wrapped(text, room, STYLES.get(check.state, "dim" if check.state == "not enough yet" else ""))
    if found.refused:
        listed = ", ".join(f"{one.error} {one.day:,}" for one in found.refused)
        lines += [Line(""), *_wrapped(f"calls refused in the last 24 hours: {listed}", room)]
    return lines


def alert_lines(alert: Alert, room: int, *, with_advice: bool = True) -> list[Line]:
    """Format an alert, with what to do."""
    of_arm = "" if alert.arm is None else f", arm {alert.arm!r}"
    since = f"since {alert.opened_at:%Y-%m-%d %H:%M} UTC"
    if alert.muted_until is not None:
        since += f", muted until {alert.muted_until:%Y-%m-%d %H:%M} UTC"
    style = "dim" if alert.is_muted else STYLES[alert.severity]
    lines = _wrapped(f"{alert.severity} ({alert.check}{of_arm}, {since}): {alert.sentence}", room, style)
    return lines + (_wrapped(f"  {alert.advice}", room) if with_advice and alert.advice else [])


def all_lines(found: Iterable[Health], *, width: int | None = None) -> list[Line]:
    """Format the health of several experiments: a sentence and the alerts of each."""
    return [line for one in found for line in health_lines(one, width=width, with_checks=False)]


def _wrapped(text: str, room: int, style: str = "") -> list[Line]:
    return [Line(part, style) for part in textwrap.wrap(visible(text), room, subsequent_indent="  ")]
