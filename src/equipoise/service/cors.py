"""CORS: decide which web origins may call the service from a browser."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING

from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response

from equipoise.service.error_responses import SAFE_HEADERS, failure_body
from equipoise.service.middleware import REQUEST_ID

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.types import ASGIApp


class Cors(CORSMiddleware):
    """CORS middleware that refuses preflight requests with our JSON errors and adds CORS headers to other responses."""

    def __init__(self, app: ASGIApp, origins: Sequence[str]) -> None:
        super().__init__(
            app,
            allow_origins=origins,
            allow_methods=["GET", "HEAD", "POST", "PUT"],
            allow_headers=["authorization", "content-type", "x-request-id"],
            expose_headers=["x-request-id", "x-equipoise-error", "x-equipoise-event", "retry-after"],
            max_age=600,
        )

    def preflight_response(self, request_headers: Headers) -> Response:
        """Answer a preflight request; a refusal has the same JSON shape and headers as every other error."""
        answer = super().preflight_response(request_headers)
        if answer.status_code >= 400:
            given = {name: value for name, value in answer.headers.items() if not name.startswith("content-")}
            body = failure_body("pages of this origin may not call the service, or not like this", None)
            answer = Response(body, 403, given, media_type="application/json")
            answer.headers["x-equipoise-error"] = "NotAllowed"
        for name, value in SAFE_HEADERS:
            answer.headers[name.decode()] = value.decode()
        answer.headers["x-request-id"] = _request_id(request_headers.get("x-request-id", ""))
        return answer


def _request_id(given: str) -> str:
    """Return the client's request id if the middleware would accept it, otherwise a new one."""
    return given if REQUEST_ID.fullmatch(given.encode("latin-1")) else secrets.token_hex(8)
