"""Remember what was read of experiments while nothing happens in them, for pages about many of them."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from equipoise.experiment import Experiment

Result = TypeVar("Result")

_SECONDS = 20.0
"""Most seconds that something is remembered: windows and deadlines pass without an event."""
_MOST = 2_000


class Memory:
    """What was read of experiments, by the number of their last event."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int], tuple[int, float, Any]] = OrderedDict()
        self._keeping = threading.Lock()

    def remember(
        self, what: str, experiment: Experiment, read: Callable[[], Result], /, *, seconds: float | None = None
    ) -> Result:
        """Return what `read` returns, or what it returned under this name if nothing has happened since.

        With `seconds`, also what it returned so long ago, whatever has happened.
        """
        key = what, experiment.number
        event = experiment.store.read(lambda transaction: transaction.head(experiment.number)).n_events
        now = time.monotonic()
        with self._keeping:
            kept = self._kept.get(key)
        length = _SECONDS if seconds is None else seconds
        if kept is not None and (kept[0] == event or seconds is not None) and now - kept[1] < length:
            found: Result = kept[2]
            return found
        found = read()
        with self._keeping:
            self._kept[key] = event, now, found
            self._kept.move_to_end(key)
            while len(self._kept) > _MOST:
                self._kept.popitem(last=False)
        return found
