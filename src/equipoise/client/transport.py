"""Carry out calls: the only place that waits, for a network or before another attempt."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os
import time
import warnings
import weakref
from typing import TYPE_CHECKING, Any, TypeVar

import httpx

from equipoise import checks
from equipoise.client.failures import not_understood
from equipoise.client.retries import Attempts
from equipoise.errors import EquipoiseError, ExperimentExists, Hint, InvalidInput

if TYPE_CHECKING:
    from equipoise.client.calls import Call
    from equipoise.client.downloads import Download

Result = TypeVar("Result")

CONNECTIONS = 32
"""Calls under way at a time; more wait their turn, which is no reason to give up. More would keep this side busier with
finding a connection than with using it, and would be faster only where an answer takes longer than 100 ms."""
PATIENCE = 600.0
"""Seconds for a call that takes as long as the experiment is large, such as replaying its log."""


class Settings:
    """Where to send and how; what both senders have in common."""

    def __init__(self, url: str, key: str | None, timeout_seconds: float, attempts: int) -> None:
        self.url = checked_url(url)
        self.timeout = checks.number_between("timeout_seconds", timeout_seconds, 0, 86_400, open_low=True)
        self.most = checks.whole_number("attempts", attempts, 1, 1_000)
        self._key = checked_key(key)
        warn_if_exposed(self.url, self._key)

    def options(self) -> dict[str, Any]:
        """Return what an HTTP client is made with."""
        headers = {"Accept": "application/json"}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        return {
            "headers": headers,
            "timeout": self.timeout,
            # All stay open between calls: by default some would be closed, and cost more than the call itself.
            "limits": httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS),
            # A proxy of the environment cannot reach this machine by the name it has for itself.
            "trust_env": not is_loopback(self.url),
        }

    def request(self, call: Call[Any]) -> dict[str, Any]:
        """Return a call in the words of httpx."""
        headers = {} if call.content is None else {"Content-Type": "application/json"}
        patience = max(self.timeout, PATIENCE) if call.slow else self.timeout
        return {
            "method": call.method,
            "url": f"{self.url}{call.path}",
            "content": call.content,
            "headers": headers,
            "timeout": httpx.Timeout(self.timeout, read=patience, pool=None),
        }

    def closed(self) -> InvalidInput:
        """Return the error for a call of a client that was closed before."""
        return InvalidInput(
            f"the client must be open; got that of {self.url}, which was closed",
            hint="make another, or call it inside its `with` block",
        )

    def attempts(self) -> Attempts:
        """Return the attempts at a call, none made yet."""
        return Attempts(self.url, self.most)

    def result(self, call: Call[Result], response: httpx.Response, attempts: Attempts) -> Result:
        """Return what a successful answer says."""
        if call.makes is not None and response.status_code == httpx.codes.OK and not attempts.n_failed:
            raise ExperimentExists(f"{self.url} has an experiment {call.makes!r} already", hint=Hint.ANOTHER_NAME)
        try:
            return call.read(json.loads(response.content))
        except EquipoiseError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise not_understood(self.url, error) from error


def forgiven(call: Call[Any], error: EquipoiseError) -> Any:
    """Return None in the place of an error that stands for it; raise any other."""
    if call.forgives is None or not isinstance(error, call.forgives):
        raise error
    return None


class Sender:
    """Sends calls, from any thread."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._is_closed = False
        self._http = self._connect()

    def send(self, call: Call[Result]) -> Result:
        """Return the result of a call, after as many attempts as it takes."""
        attempts, request = self.settings.attempts(), self.settings.request(call)
        while True:
            try:
                response = self._connected().request(**request)
                wait = attempts.wait_before_next(response)
            except httpx.RequestError as error:
                wait = attempts.wait_after(error)
            except EquipoiseError as error:
                return forgiven(call, error)  # type: ignore[no-any-return]
            if wait is None:
                return self.settings.result(call, response, attempts)
            time.sleep(wait)

    def download(self, call: Call[None], target: Download) -> None:
        """Write what a call gives to where it belongs; another attempt is made only before the first byte."""
        attempts, request = self.settings.attempts(), self.settings.request(call)
        while True:
            try:
                with self._connected().stream(**request) as response:
                    if not response.is_success:
                        response.read()
                    wait = attempts.wait_before_next(response)
                    if wait is None:
                        target.begin(response.headers)
                        for chunk in response.iter_bytes():
                            target.write(chunk)
                        return
            except httpx.RequestError as error:
                wait = attempts.wait_after(error, begun=target.n_bytes > 0)
            time.sleep(wait)

    def close(self) -> None:
        """Close all connections."""
        self._is_closed = True
        self._http.close()

    def _connected(self) -> httpx.Client:
        if self._is_closed:
            raise self.settings.closed()
        # After a fork both processes would write to the same connections.
        if self._process != os.getpid():
            self._http = self._connect()
        return self._http

    def _connect(self) -> httpx.Client:
        self._process = os.getpid()
        http = httpx.Client(**self.settings.options())
        weakref.finalize(self, http.close)  # for those who never close it
        return http


class AsyncSender:
    """Sends calls, in one event loop; line by line the same as `Sender`, but for taking turns."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._http = httpx.AsyncClient(**settings.options())
        # httpx looks at every call that waits whenever one ends; thousands are better kept from it.
        self._turns = asyncio.Semaphore(CONNECTIONS)

    async def send(self, call: Call[Result]) -> Result:
        """Return the result of a call, after as many attempts as it takes."""
        attempts, request = self.settings.attempts(), self.settings.request(call)
        while True:
            try:
                async with self._turns:
                    response = await self._connected().request(**request)
                wait = attempts.wait_before_next(response)
            except httpx.RequestError as error:
                wait = attempts.wait_after(error)
            except EquipoiseError as error:
                return forgiven(call, error)  # type: ignore[no-any-return]
            if wait is None:
                return self.settings.result(call, response, attempts)
            await asyncio.sleep(wait)

    async def download(self, call: Call[None], target: Download) -> None:
        """Write what a call gives to where it belongs; another attempt is made only before the first byte."""
        attempts, request = self.settings.attempts(), self.settings.request(call)
        while True:
            try:
                async with self._turns, self._connected().stream(**request) as response:
                    if not response.is_success:
                        await response.aread()
                    wait = attempts.wait_before_next(response)
                    if wait is None:
                        target.begin(response.headers)
                        async for chunk in response.aiter_bytes():
                            target.write(chunk)
                        return
            except httpx.RequestError as error:
                wait = attempts.wait_after(error, begun=target.n_bytes > 0)
            await asyncio.sleep(wait)

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    def _connected(self) -> httpx.AsyncClient:
        if self._http.is_closed:
            raise self.settings.closed()
        return self._http


_HINT = "use http://host:port or https://host, as `equipoise serve` prints it"


def checked_url(url: Any) -> str:
    """Return the address of a service, without a slash at its end.

    Examples
    --------
    >>> checked_url("https://example.org/equipoise/")
    'https://example.org/equipoise'
    >>> checked_url("http://ana:secret@example.org")
    Traceback (most recent call last):
    ...
    equipoise.errors.InvalidInput: the url of a service must not hold a user or a password
    hint: pass the key as key=...
    """
    try:
        parsed = httpx.URL(url)
    except (TypeError, httpx.InvalidURL):
        # What does not parse may still hold a password before its last @.
        shown = url.rpartition("@")[2] if isinstance(url, str) else url
        raise InvalidInput(f"url must be the address of a service; got {shown!r}", hint=_HINT) from None
    if parsed.userinfo:
        raise InvalidInput("the url of a service must not hold a user or a password", hint="pass the key as key=...")
    # What no host may have in its name was escaped, not refused.
    has_place = parsed.host and "%" not in parsed.host and (parsed.port is None or 0 < parsed.port < 65_536)
    if parsed.scheme not in ("http", "https") or not has_place or parsed.query or parsed.fragment:
        raise InvalidInput(f"url must be the address of a service; got {str(parsed)!r}", hint=_HINT)
    return str(parsed).rstrip("/")


def checked_key(key: Any) -> str | None:
    """Return a key as it is sent; what is wrong with one is told without it."""
    if key is None:
        return None
    # A line break, as files end with, would be refused on its way out by an error that shows the key.
    stripped = key.strip() if isinstance(key, str) else ""
    if not (stripped and stripped.isascii() and stripped.isprintable() and " " not in stripped):
        raise InvalidInput.of("key", "must be text as `equipoise keys create` prints it, without blanks")
    return stripped


def is_loopback(url: str) -> bool:
    """Return whether an address is that of this machine.

    Examples
    --------
    >>> [is_loopback(url) for url in ("http://localhost:8000", "http://[::1]:80", "http://127.8.0.1", "http://10.0.0.1")]
    [True, True, True, False]
    """
    host = httpx.URL(url).host
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def warn_if_exposed(url: str, key: str | None) -> None:
    """Warn when everybody between here and the service could read the key."""
    if key is not None and url.startswith("http:") and not is_loopback(url):
        host = httpx.URL(url).host
        warnings.warn(f"the key is sent to {host} unencrypted, for others to read: use https", stacklevel=4)
