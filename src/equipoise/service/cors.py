"""Pages of other web sites that may call the service: what a browser asks before it lets them."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response

from equipoise.service.error_responses import SAFE_HEADERS, failure_body
from equipoise.service.middleware import REQUEST_ID

if TYPE_CHECKING:
    from starlette.datastructures import Headers


class Origins(CORSMiddleware):
    """Answers a browser's question in the shape that all our answers have, and adds what it needs to the others."""

    def preflight_response(self, request_headers: Headers) -> Response:
        """Return whether the page may send what it is about to send."""
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
    """Return the id that a client sent, if it is one that the gate would take over, or else a new one."""
    return given if REQUEST_ID.fullmatch(given.encode("latin-1")) else secrets.token_hex(8)
