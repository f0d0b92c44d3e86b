"""Send requests to a service over httpx, with retries and downloads: the only module of the client that does I/O."""

from __future__ import annotations

import asyncio
import codecs
import ipaddress
import json
import os
import shutil
import tempfile
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import msgspec

from equipoise import checks
from equipoise.client.retries import Attempts
from equipoise.errors import EquipoiseError, ExperimentExists, Hint, InvalidInput, ServiceError
from equipoise.files import polars, replacing

CONNECTIONS = 32
"""Most concurrent calls; others wait, without a timeout. With more connections, the client would spend more time
finding a connection than using it; more would help only where an answer takes longer than 100 ms."""
PATIENCE = 600.0
"""Timeout in seconds for calls whose time grows with the experiment, such as replaying its log."""


@dataclass(frozen=True)
class Call:
    """One request to a service, and how to read the answer.

    Attributes
    ----------
    method, path : str
        The path is percent-encoded and may have a query.
    read : callable
        Converts the data of the answer to the result.
    content : bytes or None
        JSON body.
    slow : bool
        Whether its time grows with the experiment.
    absent : tuple of exception types
        Errors for which the result is None.
    creates : str or None
        Name of the experiment to create, if only the status (200 or 201) shows whether it existed before.
    """

    method: str
    path: str
    read: Callable[[Any], Any]
    content: bytes | None = None
    slow: bool = False
    absent: tuple[type[EquipoiseError], ...] = ()
    creates: str | None = None


class Settings:
    """URL, key and limits, shared by both transports."""

    def __init__(
        self, url: str, key: str | None, timeout_seconds: float, retry_seconds: float, attempts: int | None
    ) -> None:
        self.url = checked_url(url)
        self.timeout = checks.number_between("timeout_seconds", timeout_seconds, 0, 86_400, open_low=True)
        self.retry_seconds = checks.number_between("retry_seconds", retry_seconds, 0, 86_400)
        self.most = None if attempts is None else checks.whole_number("attempts", attempts, 1, 1_000)
        self._key = checked_key(key)
        warn_if_exposed(self.url, self._key)

    def options(self) -> dict[str, Any]:
        """Return the arguments of httpx's client."""
        headers = {"Accept": "application/json"}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        return {
            "headers": headers,
            "timeout": self.timeout,
            # Keep all connections open: httpx would close some by default, and reconnecting costs more than the call.
            "limits": httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS),
            # A proxy from the environment cannot reach this machine as localhost.
            "trust_env": not is_loopback(self.url),
        }

    def request(self, call: Call) -> dict[str, Any]:
        """Return the arguments of httpx's request."""
        patience = max(self.timeout, PATIENCE) if call.slow else self.timeout
        return {
            "method": call.method,
            "url": f"{self.url}{call.path}",
            "content": call.content,
            "headers": {} if call.content is None else {"Content-Type": "application/json"},
            "timeout": httpx.Timeout(self.timeout, read=patience, pool=None),
        }

    def closed(self) -> InvalidInput:
        """Return the error for a call after the client was closed."""
        return InvalidInput(
            f"the client must be open; got that of {self.url}, which was closed",
            hint="make another, or call it inside its `with` block",
        )

    def attempts(self, download: Download | None) -> Attempts:
        """Return the retry policy for one call."""
        return Attempts(
            self.url,
            self.retry_seconds,
            self.most,
            time.monotonic,
            has_begun=lambda: download is not None and download.n_bytes > 0,
        )

    def result(self, call: Call, attempts: Attempts) -> Any:
        """Return the result of a successful response."""
        if call.creates is not None and attempts.response.status_code == httpx.codes.OK and not attempts.n_failed:
            raise ExperimentExists(f"{self.url} has an experiment {call.creates!r} already", hint=Hint.ANOTHER_NAME)
        try:
            return call.read(json.loads(attempts.response.content))
        except EquipoiseError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError, msgspec.ValidationError) as error:
            raise ServiceError(
                f"{self.url} answered something else than a service of this version would ({type(error).__name__})",
                hint="compare the versions of both sides, and check the address",
            ) from error


class Transport:
    """Sends calls synchronously, from any thread."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._is_closed = False
        self._http = self._connect()

    def send(self, call: Call, download: Download | None = None) -> Any:
        """Send a call, with retries, and return its result; or write it to `download` as it arrives."""
        attempts = self.settings.attempts(download)
        try:
            while (wait := attempts.wait_after(self._attempt(call, download))) is not None:
                time.sleep(wait)
        except call.absent:
            return None
        return self.settings.result(call, attempts) if download is None else None

    def send_all(self, calls: list[Call]) -> list[Any]:
        """Send one call after the other, and return all results in one list."""
        return [result for call in calls for result in self.send(call)]

    def download(self, call: Call, target: AbstractContextManager[Download]) -> int:
        """Write the answer to a call to a file, and return its number of rows."""
        with target as download:
            self.send(call, download)
        return download.n_rows

    def close(self) -> None:
        """Close all connections."""
        self._is_closed = True
        self._http.close()

    def _attempt(self, call: Call, download: Download | None) -> httpx.Response | httpx.RequestError:
        try:
            with self._connected().stream(**self.settings.request(call)) as response:
                if download is None or not response.is_success:
                    response.read()
                else:
                    for chunk in response.iter_bytes():
                        download.write(chunk)
                return response
        except httpx.RequestError as error:
            return error

    def _connected(self) -> httpx.Client:
        if self._is_closed:
            raise self.settings.closed()
        # After a fork, both processes would write to the same connections.
        if self._process != os.getpid():
            self._http = self._connect()
        return self._http

    def _connect(self) -> httpx.Client:
        self._process = os.getpid()
        http = httpx.Client(**self.settings.options())
        weakref.finalize(self, http.close)  # if it is never closed
        return http


class AsyncTransport:
    """Sends calls asynchronously, in one event loop."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._http = httpx.AsyncClient(**settings.options())
        # httpx checks every waiting call whenever one ends, which is slow for thousands; let them wait here.
        self._turns = asyncio.Semaphore(CONNECTIONS)

    async def send(self, call: Call, download: Download | None = None) -> Any:
        """Send a call, with retries, and return its result, like `Transport.send`."""
        attempts = self.settings.attempts(download)
        try:
            while (wait := attempts.wait_after(await self._attempt(call, download))) is not None:
                await asyncio.sleep(wait)
        except call.absent:
            return None
        return self.settings.result(call, attempts) if download is None else None

    async def send_all(self, calls: list[Call]) -> list[Any]:
        """Send one call after the other, and return all results in one list."""
        return [result for call in calls for result in await self.send(call)]

    async def download(self, call: Call, target: AbstractContextManager[Download]) -> int:
        """Write the answer to a call to a file, and return its number of rows."""
        with target as download:
            await self.send(call, download)
        return download.n_rows

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def _attempt(self, call: Call, download: Download | None) -> httpx.Response | httpx.RequestError:
        if self._http.is_closed:
            raise self.settings.closed()
        try:
            async with self._turns, self._http.stream(**self.settings.request(call)) as response:
                if download is None or not response.is_success:
                    await response.aread()
                else:
                    async for chunk in response.aiter_bytes():
                        download.write(chunk)
                return response
        except httpx.RequestError as error:
            return error


_HINT = "use http://host:port or https://host, as `equipoise serve` prints it"


def checked_url(url: Any) -> str:
    """Check the URL of a service and return it without a trailing slash.

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
        # A URL that does not parse may still hold a password before its last @.
        shown = url.rpartition("@")[2] if isinstance(url, str) else url
        raise InvalidInput(f"url must be the address of a service; got {shown!r}", hint=_HINT) from None
    if parsed.userinfo:
        raise InvalidInput("the url of a service must not hold a user or a password", hint="pass the key as key=...")
    # httpx escapes characters that are invalid in a host name instead of refusing them.
    has_place = parsed.host and "%" not in parsed.host and (parsed.port is None or 0 < parsed.port < 65_536)
    if parsed.scheme not in ("http", "https") or not has_place or parsed.query or parsed.fragment:
        raise InvalidInput(f"url must be the address of a service; got {str(parsed)!r}", hint=_HINT)
    return str(parsed).rstrip("/")


def checked_key(key: Any) -> str | None:
    """Check a key and return it without surrounding space; the error for a bad key does not show it."""
    if key is None:
        return None
    # With a line break, as at the end of a file, httpx would raise an error that shows the key.
    stripped = key.strip() if isinstance(key, str) else ""
    if not (stripped and stripped.isascii() and stripped.isprintable() and " " not in stripped):
        raise InvalidInput.of("key", "must be text as `equipoise keys create` prints it, without blanks")
    return stripped


def is_loopback(url: str) -> bool:
    """Return whether a URL points to this machine.

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
    """Warn if the key would be sent over the network unencrypted."""
    if key is not None and url.startswith("http:") and not is_loopback(url):
        host = httpx.URL(url).host
        warnings.warn(f"the key is sent to {host} unencrypted, for others to read: use https", stacklevel=4)


class Download:
    """A download in progress: passes chunks on, and counts bytes and rows."""

    def __init__(self, form: str, write: Callable[[bytes], object]) -> None:
        self.n_bytes = 0
        self.n_rows = -1 if form == "csv" else 0  # a header is not a row
        self._write = write

    def write(self, chunk: bytes) -> None:
        """Write the next chunk; values in a table contain no line breaks, so lines are rows."""
        self.n_bytes += len(chunk)
        self.n_rows += chunk.count(b"\n")
        self._write(chunk)


@contextmanager
def downloading(target: Any, form: str, path: Path | None) -> Iterator[Download]:
    """Download to a path, or to an open target, which gets text as it arrives and Parquet once complete.

    After an error, the file at the path is unchanged.
    """
    if path is None and form != "parquet":
        decode = codecs.getincrementaldecoder("utf-8")().decode
        yield Download(form, lambda chunk: target.write(decode(chunk)))
        return
    pl = polars() if form == "parquet" else None  # if Polars is missing, fail before the download
    with ExitStack() as stack:
        if path is None:
            partial = Path(stack.enter_context(tempfile.TemporaryDirectory()), "table.parquet")
        else:
            partial = stack.enter_context(replacing(path))
        with partial.open("wb") as file:
            download = Download(form, file.write)
            yield download
        if pl is not None:
            download.n_rows = int(pl.scan_parquet(partial).select(pl.len()).collect().item())
        if path is None:
            with partial.open("rb") as table:
                shutil.copyfileobj(table, target)
