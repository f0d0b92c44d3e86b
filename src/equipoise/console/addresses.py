"""Write the addresses of pages, relative to the console, so that it works below any prefix."""

from __future__ import annotations

from urllib.parse import quote


def address(path: str, **names: str) -> str:
    """Return the address of a page below the console, percent-encoded.

    Examples
    --------
    >>> address("e/{name}/log", name="4b/spring 2")
    'e/4b%2Fspring%202/log'
    """
    return path.format(**{name: quote(value, safe="") for name, value in names.items()})


def root(depth: int) -> str:
    """Return the relative address of the console, seen from a page with so many segments below it.

    Examples
    --------
    >>> root(1), root(3)
    ('./', '../../')
    """
    return "../" * (depth - 1) or "./"
