"""Where a service is and what lets one in: checked once, and never shown with a secret."""

from __future__ import annotations

import ipaddress
import warnings
from typing import Any

import httpx

from equipoise.errors import InvalidInput

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
        raise InvalidInput("key must be text as `equipoise keys create` prints it, without blanks")
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
