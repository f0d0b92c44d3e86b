"""Work that goes on beside the pages, one of a kind for each experiment, such as a verification."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import datetime
from typing import Any

from equipoise.errors import EquipoiseError

log = logging.getLogger("equipoise.service")


class LongWork:
    """What is under way in this process, by its kind and the number of the experiment."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, int], datetime] = {}
        self._changing = threading.Lock()

    def since(self, what: str, number: int) -> datetime | None:
        """Return when work began, or None if none is under way."""
        return self._since.get((what, number))

    def begin(
        self,
        submit: Callable[[Callable[[], None]], Any],
        what: str,
        number: int,
        now: datetime,
        action: Callable[[], object],
    ) -> None:
        """Begin work, unless the same is under way. What it finds is in the store; an error is only logged."""
        key = what, number
        with self._changing:
            if key in self._since:
                return
            self._since[key] = now

        def work() -> None:
            try:
                action()
            except EquipoiseError as error:
                log.warning("work for a page failed", extra={"data": {"what": what, "error": type(error).__name__}})
            finally:
                self._since.pop(key, None)

        try:
            submit(work)
        except BaseException:
            self._since.pop(key, None)
            raise
