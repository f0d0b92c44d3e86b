"""Answers of a service that are errors, as the exceptions that `Experiment` raises."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from equipoise import errors
from equipoise.errors import EquipoiseError, Hint, ServiceError, visible

if TYPE_CHECKING:
    import httpx

HEADER, EVENT_HEADER, HINT_HEADER = "X-Equipoise-Error", "X-Equipoise-Event", "X-Equipoise-Hint"


def failure(response: httpx.Response, url: str) -> EquipoiseError:
    """Return the error that an answer describes: its class from a header, its words from the body."""
    kind: Any = getattr(errors, response.headers.get(HEADER, ""), None)
    data = _object(response)
    if not (isinstance(kind, type) and issubclass(kind, EquipoiseError) and isinstance(data.get("error"), str)):
        return _unexpected(response, url)
    hint, known = data.get("hint"), Hint.from_code(response.headers.get(HINT_HEADER, ""))
    error: EquipoiseError = kind(data["error"], hint=known or (hint if isinstance(hint, str) else None))
    if isinstance(error, errors.VerificationFailed):
        event = response.headers.get(EVENT_HEADER, "")
        error.event = int(event) if event.isdecimal() else None
    return error


def not_understood(url: str, reason: Exception) -> ServiceError:
    """Return the error for an answer that is none of a service of this version."""
    return ServiceError(
        f"{url} answered something else than a service of this version would ({type(reason).__name__})",
        hint="compare the versions of both sides, and check the address",
    )


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
