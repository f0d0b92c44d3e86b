"""Turn errors into HTTP answers: a table of statuses, and one shape for all headers and bodies."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import msgspec

from equipoise import errors
from equipoise.errors import EquipoiseError, Hint, hint_in

log = logging.getLogger("equipoise.service")

STATUS: dict[type[Exception], int] = {
    errors.UnknownArm: 404,
    errors.InvalidInput: 422,
    errors.NoSuchWeight: 422,
    errors.NotAuthenticated: 401,
    errors.NotAllowed: 403,
    errors.UnknownExperiment: 404,
    errors.UnknownKey: 404,
    errors.UnknownPlan: 404,
    errors.UnknownUnit: 404,
    errors.UnexpectedReward: 409,
    errors.ExperimentExists: 409,
    errors.RewardConflict: 409,
    errors.NotRewarded: 409,
    errors.WindowsOpen: 409,
    errors.HasRewards: 409,
    errors.UnitWithdrawn: 409,
    errors.EnrolmentClosed: 409,
    errors.ExperimentFinished: 409,
    errors.StaleChange: 409,
    errors.TooFewRewards: 409,
    errors.VerificationFailed: 409,
    errors.StoreMismatch: 500,
    errors.StoreError: 503,
    errors.MissingExtra: 501,
}
"""The status of each error class; subclasses inherit it unless they have their own."""

RETRY_SECONDS = 1
"""The `Retry-After` of a 503."""

CLIENT_GONE = 499
"""The status that logs and metrics show when the client disconnected first, as in nginx; it is never sent."""

KIND = "x-equipoise-error"
"""Header with the name of the error class, so that the Python client can raise the same one."""

HINT = "x-equipoise-hint"
"""Header with the code of the hint, from which the Python client chooses its own wording."""

EVENT = "x-equipoise-event"
"""Header with the number of the first event that differs, when a log does not verify, or of an unexpected change."""

SAFE_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
"""Default security headers of every answer: a browser may display it and nothing else."""


class Refused(EquipoiseError):
    """A request was refused at the HTTP level, with this status."""

    def __init__(
        self, status: int, message: str, *, hint: str | None = None, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.headers = headers or {}


class Overloaded(Refused):
    """The service has too much work, or its store is too slow: backpressure (503)."""

    def __init__(self, message: str) -> None:
        super().__init__(503, message, hint="try again in a moment; trying again is safe")


def status_of(error: BaseException) -> int:
    """Return the HTTP status for an error.

    Examples
    --------
    >>> status_of(errors.RewardConflict("...")), status_of(errors.UnknownName("...")), status_of(KeyError("..."))
    (409, 422, 500)
    """
    if isinstance(error, Refused):
        return error.status
    for kind in type(error).__mro__:
        if kind in STATUS:
            return STATUS[kind]
    return 500


def answer_to(error: BaseException) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body for an error; an unexpected one reveals no details."""
    status = status_of(error)
    if not isinstance(error, EquipoiseError) or status == 500:
        if isinstance(error, EquipoiseError):
            log.error("the store is not what it should be", extra={"data": {"error": error.message}})
        return status, {}, failure_body("something went wrong here; it was logged", "tell who runs the service")
    if isinstance(error, errors.StoreError):  # only the log may say where the database is
        log.warning("the store failed", extra={"data": {"error": error.message}})
        body = failure_body(
            "the store cannot be reached or written to just now", "try again in a moment; trying again is safe"
        )
        return status, headers_for(error, status), body
    hint = None if error.hint is None else hint_in(error.hint, "request")
    return status, headers_for(error, status), failure_body(error.message, hint)


def headers_for(error: EquipoiseError, status: int) -> dict[str, str]:
    """Return the headers for an error."""
    headers: dict[str, str] = dict(error.headers) if isinstance(error, Refused) else {KIND: type(error).__name__}
    if isinstance(error, Refused) and status in (400, 408, 413, 415, 422):
        headers[KIND] = "InvalidInput"
    if isinstance(error.hint, Hint):
        headers[HINT] = error.hint.code
    if isinstance(error, (errors.VerificationFailed, errors.StaleChange)) and error.event is not None:
        headers[EVENT] = str(error.event)
    if status == 429:
        headers[KIND] = "NotAllowed"
    if status == 503:
        headers["retry-after"] = str(RETRY_SECONDS)
        headers.setdefault(KIND, "StoreUnavailable")
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    return headers


def failure_body(message: str, hint: str | None) -> bytes:
    """Encode the JSON body of an error.

    Examples
    --------
    >>> failure_body("no such arm", None)
    b'{"error":"no such arm","hint":null}'
    """
    body: Mapping[str, str | None] = {"error": _encodable(message), "hint": None if hint is None else _encodable(hint)}
    return msgspec.json.encode(body)


def _encodable(text: str) -> str:
    """Escape lone surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-8", "backslashreplace").decode()
