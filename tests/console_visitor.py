"""Somebody who uses the console without a browser: signs in, opens pages, and sends their forms."""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from types import TracebackType

SAME_ORIGIN = {"sec-fetch-site": "same-origin"}


class Visitor:
    """A visitor of the console at `url`, who keeps cookies and follows redirects only if asked."""

    def __init__(self, url: str, key: str | None = None) -> None:
        self.web = httpx.Client(base_url=f"{url}/console/", timeout=60)
        if key is not None:
            assert self.sign_in(key).status_code == 303

    def __enter__(self) -> Visitor:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.web.close()

    def sign_in(self, key: str, to: str = "") -> httpx.Response:
        return self.web.post("sign-in", data={"key": key, "next": to}, headers=SAME_ORIGIN)

    def get(self, path: str = "", **more: Any) -> httpx.Response:
        return self.web.get(path, **more)

    def page(self, path: str = "") -> str:
        """Return a page that must be there."""
        found = self.get(path)
        assert found.status_code == 200, (found.status_code, found.headers.get("location"), found.text)
        return found.text

    def send(
        self, path: str, fields: dict[str, str], *, drawn_on: str | None = None, headers: dict[str, str] = SAME_ORIGIN
    ) -> httpx.Response:
        """Send a form with the hidden fields of the page it is drawn on, by default the one it is sent to."""
        drawn = self.page(path if drawn_on is None else drawn_on)
        return self.web.post(path, data=hidden_fields(drawn) | fields, headers=headers)


def hidden_fields(page: str) -> dict[str, str]:
    """Return the token and the mark of the settings that a page's forms carry."""
    names = ("token", "change")
    found = {name: re.search(rf'<input type="hidden" name="{name}" value="([^"]*)">', page) for name in names}
    return {name: unescape(one[1]) for name, one in found.items() if one is not None}
