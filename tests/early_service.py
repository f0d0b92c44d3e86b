"""A server with a mistake: it answers before the commit. What tests of crashes must find out."""

from __future__ import annotations

import threading
import time

from equipoise import cli
from equipoise.experiment import execution as module
from equipoise.service import group_commit as lanes

PAUSE = 0.03
"""How long the commit takes, so that hardly any kill misses it."""


def answer_before_commit():
    """Let lanes answer once everything is written and before it is committed."""
    under_way = threading.local()
    write, write_plan = lanes._Lane._write, module.write_plan

    def noted_write(lane, batch, prepared):
        under_way.lane, under_way.batch = lane, batch
        if prepared is not None:  # written already, on the event loop's thread
            lane._loop.call_soon_threadsafe(answer, batch, prepared._prepared._result.results)
            time.sleep(PAUSE)
        write(lane, batch, prepared)

    def answer(batch, results):
        for work, result in zip(batch, results, strict=True):
            if not work.answer.done():
                if isinstance(result, BaseException):
                    work.answer.set_exception(result)
                else:
                    work.answer.set_result(result)

    def write_and_answer(transaction, number, plan):
        write_plan(transaction, number, plan)
        if hasattr(under_way, "lane"):
            results = plan.results if under_way.batch[0].is_single else [plan.results]
            under_way.lane._loop.call_soon_threadsafe(answer, under_way.batch, results)
            time.sleep(PAUSE)

    lanes._Lane._write, module.write_plan = noted_write, write_and_answer


if __name__ == "__main__":
    answer_before_commit()
    cli.main()
