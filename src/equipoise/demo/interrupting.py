"""Ctrl-C as something to look at between two steps, rather than an error raised wherever the program happens to be."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self


class Interruption:
    """Whether Ctrl-C was pressed within a `with` block.

    An interrupt that is raised while Python cleans up behind the scenes is reported there and lost, so that a program
    would go on as if nothing had been pressed.
    """

    def __init__(self) -> None:
        self.asked = threading.Event()
        self._before: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, lambda *_: self.asked.set())
        return self

    def __exit__(self, *details: object) -> None:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._before)
