"""The kinds of events in a log, which groups of them there are, and the check of a selection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from equipoise import checks
from equipoise.errors import InvalidInput
from equipoise.unit_lifecycle import UNIT_EVENTS

NOTED, DESCRIBED, REBUILT, MUTED, UNMUTED = "noted", "described", "rebuilt", "muted", "unmuted"
CHANGES = (
    "created",
    "paused",
    "resumed",
    "stopped",
    "finished",
    "arm_added",
    "arm_paused",
    "arm_resumed",
    "arm_retired",
    "weight_changed",
    "dial_changed",
    DESCRIBED,
    NOTED,
    MUTED,
    UNMUTED,
    REBUILT,
)
"""Kinds of events about the experiment, not about a unit."""
KINDS = (*UNIT_EVENTS, *CHANGES)
"""Every kind of event."""
CHANGES_NOTHING = frozenset((NOTED, MUTED, UNMUTED, REBUILT))
"""Kinds after which the experiment is as it was before."""


def checked_kinds(kinds: Any) -> tuple[str, ...]:
    """Return kinds of events, checked.

    Examples
    --------
    >>> checked_kinds(["noted", "stopped"])
    ('noted', 'stopped')
    """
    if isinstance(kinds, str) or not isinstance(kinds, Sequence):
        raise InvalidInput.of("kinds", "must be a list of kinds of events", kinds)
    for kind in kinds:
        if kind not in KINDS:
            raise InvalidInput.of("kinds", f"must be among {', '.join(KINDS)}", kind)
    return tuple(dict.fromkeys(kinds))


def selection(before: Any, kinds: Any, newest_first: Any = False) -> dict[str, Any]:
    """Return which events are selected, without what is not given."""
    found: dict[str, Any] = {}
    if before is not None:
        found["before"] = checks.whole_number("before", before, 1)
    if len(wanted := checked_kinds(kinds)):
        found["kinds"] = wanted
    return found | ({"newest_first": True} if newest_first else {})
