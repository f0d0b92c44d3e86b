"""A server that keeps something of every request: memory, now and then a file, and more and more time."""

from __future__ import annotations

import os
import time

from equipoise import cli
from equipoise.service.middleware import Middleware


def leak():
    """Make the outermost layer forget nothing, from the first request for an experiment on."""
    answer, kept, instants = Middleware.__call__, [], []

    async def leaky(self, scope, receive, send):
        if scope["type"] == "http" and scope["path"].startswith("/experiments"):
            instants.append(time.monotonic())
            kept.append(b"x" * 300_000)
            if len(kept) % 5 == 0:
                os.dup(1)
            time.sleep(0.0003 * (instants[-1] - instants[0]) ** 3)
        await answer(self, scope, receive, send)

    Middleware.__call__ = leaky


if __name__ == "__main__":
    leak()
    cli.main()
