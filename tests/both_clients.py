"""Both clients, used alike: the asynchronous one with its awaiting done, so that a test reads the same for both."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import contextmanager

from service_runner import Service

from equipoise.client import AsyncClient, AsyncRemoteExperiment, Client

KINDS = ["sync", "async"]


class Waited:
    """Something with methods to await, as if they were not: results are waited for, and what they return is so too."""

    def __init__(self, inner, loop):
        self._inner, self._loop = inner, loop

    def __getattr__(self, name):
        value = getattr(self._inner, name)
        if inspect.isawaitable(value):
            return self._loop.run_until_complete(value)
        return (lambda *args, **kwargs: self._wait(value(*args, **kwargs))) if callable(value) else value

    def __repr__(self):
        return repr(self._inner)

    def _wait(self, value):
        if hasattr(value, "__aiter__"):
            return self._each(value)
        value = self._loop.run_until_complete(value)
        return Waited(value, self._loop) if isinstance(value, AsyncRemoteExperiment) else value

    def _each(self, iterator):
        while True:
            try:
                yield self._loop.run_until_complete(anext(iterator))
            except StopAsyncIteration:
                return


@contextmanager
def connecting(kind):
    """What makes a client of one kind; all of them are closed in the end."""
    clients = []
    with asyncio.Runner() as runner:

        def connect(*args, **kwargs):
            clients.append((Client if kind == "sync" else AsyncClient)(*args, **kwargs))
            return clients[-1] if kind == "sync" else Waited(clients[-1], runner.get_loop())

        yield connect
        for client in clients:
            if kind == "sync":
                client.close()
            else:
                runner.run(client.close())


def remote(client, name="exam"):
    """An experiment of a client; opening one sends nothing."""
    return client.open(name)


def members(kind):
    return {name: value for name, value in vars(kind).items() if not name.startswith("_")}


@contextmanager
def serving(*arguments, **options):
    """A server while it is needed; also the pipe it wrote to is closed then."""
    running = Service(*arguments, **options)
    try:
        yield running
    finally:
        running.kill()
        running.process.stderr.close()
