"""Requests to a service as tests make them; whatever is answered must have the shape that every answer has."""

from __future__ import annotations

import json
import ssl
from typing import Any
from urllib.parse import quote

import httpx

from equipoise import errors

_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Never used, but to read the certificates of all authorities for every client takes longer than most tests."""

SAFE = {"x-content-type-options": "nosniff", "referrer-policy": "no-referrer"}
NAMELESS = {404, 405, 421, 500}
"""Refusals of HTTP itself, which are no error of the library."""


class Api:
    """A service seen with one key."""

    def __init__(self, url: str, key: str | None = None) -> None:
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        self.http = httpx.Client(base_url=url, headers=headers, timeout=30, verify=_NO_TLS, trust_env=False)

    def __call__(self, method: str, path: str, body: Any = None, **options: Any) -> httpx.Response:
        """Send a request; a body is JSON, bytes go as they are."""
        if isinstance(body, bytes):
            headers = {"content-type": "application/json"} | options.pop("headers", {})
            options |= {"content": body, "headers": headers}
        elif body is not None:
            options["json"] = body
        return checked(self.http.request(method, path, **options))

    def data(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """Send a request that must succeed, and return what is in its answer."""
        answer = self(method, path, body, **options)
        assert answer.status_code < 300, answer.text
        return answer.json()

    def refused(self, status: int, kind: str | None, method: str, path: str, body: Any = None, **options: Any) -> str:
        """Send a request that must be refused in this way, and return the error and the hint."""
        answer = self(method, path, body, **options)
        assert (answer.status_code, answer.headers.get("x-equipoise-error")) == (status, kind), answer.text
        told = answer.json()
        return told["error"] if told["hint"] is None else f"{told['error']}\n{told['hint']}"

    def close(self) -> None:
        self.http.close()


def checked(answer: httpx.Response) -> httpx.Response:
    """Return an answer that has what every answer must have."""
    for name, value in SAFE.items():
        assert answer.headers[name] == value
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert answer.headers["cache-control"] in ("no-store", "max-age=86400")
    assert answer.headers["x-request-id"]
    assert "server" not in answer.headers
    if answer.status_code >= 400 and answer.request.method != "HEAD":
        told = json.loads(answer.content)
        assert set(told) == {"error", "hint"}
        assert isinstance(told["error"], str) and told["error"]
        assert told["hint"] is None or told["hint"]
        assert answer.headers["content-type"] == "application/json"
        kind = answer.headers.get("x-equipoise-error")
        if kind is None:
            assert answer.status_code in NAMELESS
        else:
            assert issubclass(getattr(errors, kind), errors.EquipoiseError)
        assert ("retry-after" in answer.headers) == (answer.status_code in (429, 503))
        assert ("www-authenticate" in answer.headers) == (answer.status_code == 401)
    return answer


def path_of(experiment: str, *rest: str) -> str:
    """Return the path of something of an experiment, every part encoded whole."""
    return "/experiments/" + "/".join(quote(part, safe="") for part in (experiment, *rest))
