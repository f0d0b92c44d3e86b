"""A server with a mistake: it answers before the commit. What tests of crashes must find out."""

from __future__ import annotations

import threading
import time

from equipoise import cli
from equipoise.experiment import execution as module
from equipoise.service import group_commit

PAUSE = 0.03
"""How long the commit takes, so that hardly any kill misses it."""


def answer_before_commit():
    """Let queues answer once everything is written and before it is committed."""
    under_way = threading.local()
    write, write_transition = group_commit._Queue._write, module.write_transition

    def noted_write(queue, batch):
        under_way.queue, under_way.batch = queue, batch
        write(queue, batch)

    def answer(batch, results):
        for one, result in zip(batch, results, strict=True):
            if not one.answer.done():
                if isinstance(result, BaseException):
                    one.answer.set_exception(result)
                else:
                    one.answer.set_result(result)

    def write_and_answer(transaction, number, made):
        write_transition(transaction, number, made)
        if hasattr(under_way, "queue"):
            results = made.results if under_way.batch[0].is_single else [made.results]
            under_way.queue._loop.call_soon_threadsafe(answer, under_way.batch, results)
            time.sleep(PAUSE)

    group_commit._Queue._write, module.write_transition = noted_write, write_and_answer


if __name__ == "__main__":
    answer_before_commit()
    cli.main()
