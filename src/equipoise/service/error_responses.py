"""Errors as answers: one table from what went wrong to a status, and one shape for all of them."""

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
    errors.UnknownUnit: 404,
    errors.UnexpectedReward: 409,
    errors.ExperimentExists: 409,
    errors.RewardConflict: 409,
    errors.NotRewarded: 409,
    errors.RewardsHeld: 409,
    errors.EnrolmentClosed: 409,
    errors.ExperimentFinished: 409,
    errors.TooFewRewards: 409,
    errors.VerificationFailed: 409,
    errors.StoreMismatch: 500,
    errors.StoreError: 503,
    errors.MissingExtra: 501,
}
"""The status of each error, and of those derived from it unless they have their own."""

RETRY_SECONDS = 1
"""When to come again after 503."""

CLIENT_GONE = 499
"""The status of a request whose client did not wait, as logs and metrics tell it (nginx does too); nobody gets it."""

KIND = "x-equipoise-error"
"""Header that names the error's class, so that a client in Python can raise the same."""

HINT = "x-equipoise-hint"
"""Header with the code of the hint, from which a client in Python takes its own wording."""

EVENT = "x-equipoise-event"
"""Header that tells the first event that differs, when a log does not verify."""

SAFE_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
"""What every answer carries that does not say otherwise: a browser shall do nothing with it but show it."""


class Refused(EquipoiseError):
    """A request that is refused for a reason of HTTP, with its status."""

    def __init__(
        self, status: int, message: str, *, hint: str | None = None, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.headers = headers or {}


class Overloaded(Refused):
    """More than the service can take just now."""

    def __init__(self, message: str) -> None:
        super().__init__(503, message, hint="try again in a moment; trying again is safe")


def status_of(error: BaseException) -> int:
    """Return the status an error is answered with.

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
    """Return status, headers and body for an error; of one that nobody expected, nothing is told."""
    status = status_of(error)
    if not isinstance(error, EquipoiseError) or status == 500:
        if isinstance(error, EquipoiseError):
            log.error("the store is not what it should be", extra={"data": {"error": error.message}})
        return status, {}, failure_body("something went wrong here; it was logged", "tell who runs the service")
    if isinstance(error, errors.StoreError):  # where the database is, is for the log
        log.warning("the store failed", extra={"data": {"error": error.message}})
        body = failure_body(
            "the store cannot be reached or written to just now", "try again in a moment; trying again is safe"
        )
        return status, headers_for(error, status), body
    hint = None if error.hint is None else hint_in(error.hint, "request")
    return status, headers_for(error, status), failure_body(error.message, hint)


def headers_for(error: EquipoiseError, status: int) -> dict[str, str]:
    """Return the headers that belong to an error."""
    headers: dict[str, str] = dict(error.headers) if isinstance(error, Refused) else {KIND: type(error).__name__}
    if isinstance(error, Refused) and status in (400, 408, 413, 415, 422):
        headers[KIND] = "InvalidInput"
    if isinstance(error.hint, Hint):
        headers[HINT] = error.hint.code
    if isinstance(error, errors.VerificationFailed) and error.event is not None:
        headers[EVENT] = str(error.event)
    if status == 503:
        headers["retry-after"] = str(RETRY_SECONDS)
        headers.setdefault(KIND, "StoreUnavailable")
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    return headers


def failure_body(message: str, hint: str | None) -> bytes:
    """Return the body of an answer that tells of a failure.

    Examples
    --------
    >>> failure_body("no such arm", None)
    b'{"error":"no such arm","hint":null}'
    """
    body: Mapping[str, str | None] = {"error": _encodable(message), "hint": None if hint is None else _encodable(hint)}
    return msgspec.json.encode(body)


def _encodable(text: str) -> str:
    """Return text without halves of surrogate pairs, which no answer can carry."""
    return text.encode("utf-8", "backslashreplace").decode()
