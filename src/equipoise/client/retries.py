"""The retry policy of the client: which failures to retry, with backoff and jitter, and which error to raise."""

from __future__ import annotations

import email.utils
import json
import logging
import math
import random
import ssl
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import httpx

from equipoise import errors
from equipoise.errors import EquipoiseError, Hint, ServiceError, StoreMismatch, StoreUnavailable, UpgradeNeeded, visible

HEADER, EVENT_HEADER, HINT_HEADER = "X-Equipoise-Error", "X-Equipoise-Event", "X-Equipoise-Hint"
TRY_AGAIN = frozenset({502, 503, 504})
"""Statuses to retry: the service is overloaded or lacks its store, or a proxy cannot reach the service."""
RETRY_SECONDS = 30.0
"""How long to retry by default, after the first failure: a rolling restart takes less."""
FIRST_WAIT = 0.25
LONGEST_WAIT = 4.0
LONGEST_ADVICE = 30.0
"""Seconds of backoff; the last is the longest `Retry-After` that is obeyed."""

_log = logging.getLogger("equipoise.client")


class Attempts:
    """The retry policy for one call: pass in the outcome of each attempt, and wait as long as it says.

    It does no I/O, so the synchronous and the asynchronous transport share it. A call is retried after a lost
    connection, a timeout, or a status in `TRY_AGAIN`; that is safe because every verb is idempotent. Waits follow an
    exponential backoff with full jitter, so that clients refused together do not come back together. The last attempt
    is `retry_seconds` after the first failure, by the `clock`; time before it does not count, since a call may be slow.
    """

    response: httpx.Response
    """The last response received."""

    def __init__(
        self,
        url: str,
        retry_seconds: float,
        most: int | None,
        clock: Callable[[], float],
        *,
        has_begun: Callable[[], bool] = lambda: False,
    ) -> None:
        self.n_failed = 0
        self._url = url
        self._retry_seconds = retry_seconds
        self._most = math.inf if most is None else most
        self._clock = clock
        self._last_at: float | None = None
        self._has_begun = has_begun

    def wait_after(self, outcome: httpx.Response | httpx.RequestError) -> float | None:
        """Return the seconds before the next attempt, or None after success; raise an error that should not be retried.

        A call is not retried once part of its answer has been passed on (`has_begun`).
        """
        if isinstance(outcome, httpx.Response):
            self.response = outcome
            return None if outcome.is_success else self._wait_after_status(outcome)
        if self._has_begun():
            raise StoreUnavailable(
                f"{self._url} broke off in the middle of its answer: {_reason(outcome)}", hint="try again"
            ) from outcome
        if not isinstance(outcome, (httpx.TimeoutException, httpx.NetworkError, httpx.RemoteProtocolError)):
            raise ServiceError(f"{self._url} cannot be reached: {_reason(outcome)}") from outcome
        failed = StoreUnavailable(
            f"{self._url} cannot be reached: {_reason(outcome)}",
            hint="check the address and that the service runs; `equipoise serve` starts one",
        )
        if _is_about_certificates(outcome):
            failed.hint = "the certificate of the service is not one that this machine trusts"
            raise failed from outcome
        return self._next(failed, 0.0, outcome)

    def _wait_after_status(self, response: httpx.Response) -> float:
        failed = failure(response, self._url)
        if response.status_code not in TRY_AGAIN or isinstance(failed, (StoreMismatch, UpgradeNeeded)):
            raise failed
        if not isinstance(failed, StoreUnavailable):
            failed = StoreUnavailable(failed.message, hint=failed.hint)
        return self._next(failed, _advised(response.headers), None)

    def _next(self, failed: EquipoiseError, at_least: float, cause: Exception | None) -> float:
        self.n_failed += 1
        now = self._clock()
        if self._last_at is None:
            self._last_at = now + self._retry_seconds
        left = self._last_at - now
        if self.n_failed >= self._most or left <= 0 or at_least > left:
            if self.n_failed > 1:
                failed.message += f"; tried {self.n_failed} times"
                failed.args = (failed.message,)
            raise failed from cause
        longest = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(self.n_failed - 1, 30))
        wait = min(left, at_least + random.uniform(0.0, longest))  # noqa: S311  (jitter, not security)
        _log.info("trying again in %.2f s, for at most %.0f s: %s", wait, left, failed.message)
        return wait


def failure(response: httpx.Response, url: str) -> EquipoiseError:
    """Return the error that a response describes: its class from a header, its message from the body."""
    kind: Any = getattr(errors, response.headers.get(HEADER, ""), None)
    data = _object(response)
    if not (isinstance(kind, type) and issubclass(kind, EquipoiseError) and isinstance(data.get("error"), str)):
        return _unexpected(response, url)
    hint, known = data.get("hint"), Hint.from_code(response.headers.get(HINT_HEADER, ""))
    error: EquipoiseError = kind(data["error"], hint=known or (hint if isinstance(hint, str) else None))
    if isinstance(error, (errors.VerificationFailed, errors.StaleChange)):
        event = response.headers.get(EVENT_HEADER, "")
        error.event = int(event) if event.isdecimal() else None
    return error


def _unexpected(response: httpx.Response, url: str) -> ServiceError:
    place = response.headers.get("Location") if response.is_redirect else None
    said = " ".join(response.text.split())[:200]
    text = f"{url} answered {response.status_code} {response.reason_phrase}".rstrip()
    return ServiceError(
        visible(f"{text}: {said}" if said and place is None else text),
        hint=visible(f"it points to {place}; use that address")
        if place
        else "is this the address of an equipoise service?",
    )


def _object(response: httpx.Response) -> dict[str, Any]:
    try:
        data = json.loads(response.content)
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def _advised(headers: Mapping[str, str]) -> float:
    """Return the seconds of a `Retry-After` header, which may also be a date."""
    text = headers.get("Retry-After", "")
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = (email.utils.parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            return 0.0
    return min(seconds, LONGEST_ADVICE) if seconds > 0 else 0.0  # NaN is not > 0


def _reason(error: httpx.RequestError) -> str:
    if isinstance(error, httpx.TimeoutException):
        return "there was no answer in time"
    return visible(str(error)) or type(error).__name__


def _is_about_certificates(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False
