"""Clients of a service: `Client` and `AsyncClient` create, open and list its experiments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from equipoise.client.async_experiment import AsyncRemoteExperiment
from equipoise.client.http_backend import HttpBackend, create_call, list_call
from equipoise.client.retries import RETRY_SECONDS
from equipoise.client.transport import AsyncTransport, Settings, Transport
from equipoise.experiment import Experiment

if TYPE_CHECKING:
    from equipoise.experiment.experiment import Summaries

P = ParamSpec("P")
T = TypeVar("T")


def _takes_what(
    _create: Callable[Concatenate[Any, P], Any],
) -> Callable[[Callable[..., T]], Callable[Concatenate[Any, P], T]]:
    """Give a method the type of `Experiment.create`, with the client instead of the store."""
    return lambda method: method


class RemoteExperiment(Experiment):
    """An experiment of a service, from `Client.create` or `Client.open`.

    It is an `Experiment` whose verbs are HTTP requests, and it raises the same errors. The differences:

    - `ask_many` and `tell_many` send groups of at most 1,000 units, each in its own transaction. If a group is refused,
      the groups before it remain recorded; repeating the call is idempotent.
    - The log names the key as author.
    - Members that need the store itself (`store`, `number`, `apply`, `apply_all` and `copy_to`) raise `InvalidInput`.
    """

    def __init__(self, client: Client, name: str) -> None:
        super().__init__(HttpBackend(client._transport, name))
        self.client = client

    def __repr__(self) -> str:
        return f"{self.client!r}.open({self.name!r})"


class Client:
    """A client of the service at a URL.

    `create` and `open` return experiments with the verbs of `Experiment`, which raise its errors. After a lost
    connection, a timeout or an overloaded service, a call is retried with exponential backoff and jitter. That is safe,
    since every verb is idempotent: a unit keeps its arm and a reward counts once. After 30 seconds, which outlasts a
    restart of the service, `StoreUnavailable` is raised. A client can be used from several threads, and after a fork.
    Close it, or use it in a `with` block.

    Parameters
    ----------
    url : str
        URL of the service, such as `https://experiments.example.org`.
    key : str, optional
        API key from `equipoise keys create`; the log names it as author.
    timeout_seconds : float
        How long to wait for an answer before a retry; calls that read a whole log may always take ten minutes.
    retry_seconds : float
        How long to retry a call after its first failure; 0 for no retries.
    attempts : int, optional
        How often to try at most, including the first time; as often as `retry_seconds` allows by default.

    Examples
    --------
    >>> import equipoise as eq
    >>> eq.Client("https://experiments.example.org/", key="eq_1_secret")
    Client('https://experiments.example.org')
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        timeout_seconds: float = 10.0,
        retry_seconds: float = RETRY_SECONDS,
        attempts: int | None = None,
    ) -> None:
        self._transport = Transport(Settings(url, key, timeout_seconds, retry_seconds, attempts))

    @property
    def url(self) -> str:
        """Where the service is."""
        return self._transport.settings.url

    @_takes_what(Experiment.create)
    def create(self, name: str, *, arms: Sequence[str], **settings: Any) -> RemoteExperiment:
        """Create an experiment; the settings are the keyword arguments of `Experiment.create`, without `who`.

        The policy must be one that the service knows too.
        """
        self._transport.send(create_call(name, {"arms": arms, **settings}))
        return self.open(name)

    def open(self, name: str) -> RemoteExperiment:
        """Return the experiment with this name.

        This sends no request: if the service has no such experiment, its first verb raises `UnknownExperiment`.
        """
        return RemoteExperiment(self, name)

    def list(self) -> Summaries:
        """Return all experiments that the key may see, oldest first."""
        found: Summaries = self._transport.send(list_call())
        return found

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.url!r})"


class AsyncClient:
    """An asyncio client of the service at a URL, like `Client`, but with every verb awaited.

    It takes the parameters of `Client`. Close it, or use it in an `async with` block; each event loop needs its own.

    Examples
    --------
    >>> import equipoise as eq
    >>> eq.AsyncClient("https://experiments.example.org", key="eq_1_secret")
    AsyncClient('https://experiments.example.org')
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        timeout_seconds: float = 10.0,
        retry_seconds: float = RETRY_SECONDS,
        attempts: int | None = None,
    ) -> None:
        self._transport = AsyncTransport(Settings(url, key, timeout_seconds, retry_seconds, attempts))

    @property
    def url(self) -> str:
        """Where the service is."""
        return self._transport.settings.url

    @_takes_what(Experiment.create)
    async def create(self, name: str, *, arms: Sequence[str], **settings: Any) -> AsyncRemoteExperiment:
        """Create an experiment, like `Client.create`."""
        await self._transport.send(create_call(name, {"arms": arms, **settings}))
        return AsyncRemoteExperiment(self, name)

    async def open(self, name: str) -> AsyncRemoteExperiment:
        """Return the experiment with this name without a request, like `Client.open`."""
        return AsyncRemoteExperiment(self, name)

    async def list(self) -> Summaries:
        """Return all experiments that the key may see, oldest first."""
        found: Summaries = await self._transport.send(list_call())
        return found

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *details: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncClient({self.url!r})"
