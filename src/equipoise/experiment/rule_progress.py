"""Say how far the stopping rules of an experiment are: in words, as part of the way, and when they may be met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from equipoise.experiment.records import Outlook, Progress, RuleOutlook, Status


@dataclass(frozen=True)
class RuleLine:
    """The progress of a stopping rule."""

    rule: str
    goal: str
    """What it waits for, as a sentence without a full stop."""
    now: str
    share: float | None
    """The part of the way, from 0 to 1; of a precision, in people. None if that is not known."""
    is_met: bool
    forecast: str = ""


def rule_lines(status: Status, outlook: Outlook | None = None) -> list[RuleLine]:
    """Return the progress of every stopping rule, with the dates of an outlook."""
    lines = [_line(one, status) for one in status.stopping]
    if outlook is None:
        return lines
    return [replace(line, forecast=_forecast(one)) for line, one in zip(lines, outlook.rules, strict=True)]


def _forecast(one: RuleOutlook) -> str:
    """Return when a rule may be met, as a sentence; empty if it says nothing new."""
    if one.met or one.rule == "deadline":
        return ""
    if one.expected_at is None or one.days is None:
        return f"No date yet: {one.reason}." if one.reason else ""
    return f"If all goes on as it does: about {one.expected_at:%-d %B %Y}, after {one.people:,} more people."


def nearest(lines: Sequence[RuleLine]) -> RuleLine | None:
    """Return the rule that is met, or else is furthest on its way."""
    return max(lines, key=lambda line: (line.is_met, line.share or 0.0), default=None)


def _line(progress: Progress, status: Status) -> RuleLine:
    now, goal = progress.now, progress.goal
    known = now is not None
    if progress.rule == "budget":
        return RuleLine("budget", f"{_number(goal)} people", f"{_number(now)} so far", _part(now, goal), progress.met)
    if progress.rule == "deadline":
        end = datetime.fromisoformat(str(goal))
        length = (end - status.created_at).total_seconds()
        passed = (status.at - status.created_at).total_seconds() / length if length > 0 else 1.0
        return RuleLine(
            "deadline", f"until {end:%Y-%m-%d %H:%M} UTC", _left(end, status.at), _clipped(passed), progress.met
        )
    if progress.rule in ("precision", "precision of differences"):
        what = "every arm" if progress.rule == "precision" else "every difference"
        share = None if not known or not now else _clipped((float(goal) / float(now)) ** 2)
        text = f"now \u00b1{_number(now)}" if known else "not known yet: some arm has too few rewards"
        return RuleLine("precision", f"{what} known to \u00b1{_number(goal)}", text, share, progress.met)
    if progress.rule == "decided":
        n_left = int(now or 0)
        n_arms = len([arm for arm in status.arms if arm.state != "retired"])
        share = 1.0 if n_left == 1 else _clipped((n_arms - n_left) / max(1, n_arms - 1))
        text = f"{n_left:,} may still be best"
        return RuleLine("decided", "only one arm may still be best", text, share, progress.met)
    if progress.rule == "decided within a margin":
        text = f"it could be {_number(now)} worse" if known else "not known yet"
        return RuleLine("decided", f"choosing the best so far costs at most {_number(goal)}", text, None, progress.met)
    return RuleLine(progress.rule, _number(goal), _number(now) if known else "not known yet", None, progress.met)


def _part(now: Any, goal: Any) -> float | None:
    return _clipped(float(now) / float(goal)) if goal else None


def _clipped(share: float) -> float:
    return min(1.0, max(0.0, share))


def _left(end: datetime, now: datetime) -> str:
    seconds = (end - now).total_seconds()
    if seconds <= 0:
        return "it has passed"
    days = seconds / 86_400
    if days >= 2:
        return f"{days:.0f} days left"
    hours = seconds / 3_600
    return f"{hours:.0f} hours left" if hours >= 2 else f"{max(1, round(seconds / 60))} minutes left"


def _number(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
