"""Serve the console's own styles and scripts under the hash of their content, so that browsers keep them."""

from __future__ import annotations

import gzip
import hashlib
from functools import cached_property
from importlib.resources import files
from typing import NamedTuple

from equipoise.charts.colours import style_sheet
from equipoise.console import vega_bundle

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml; charset=utf-8",
}


class StaticFile(NamedTuple):
    """A file as it is sent."""

    content_type: str
    plain: bytes
    zipped: bytes


class StaticFiles:
    """The styles, scripts and pictures of the console."""

    @cached_property
    def _files(self) -> dict[str, StaticFile]:
        found = {}
        for entry in sorted(files("equipoise.console").joinpath("static").iterdir(), key=lambda entry: entry.name):
            ending = entry.name[entry.name.rfind(".") :]
            if ending not in TYPES:
                continue
            content = entry.read_bytes()
            if entry.name == "console.css":
                content = style_sheet().encode() + content
            found[entry.name] = StaticFile(TYPES[ending], content, gzip.compress(content, mtime=0))
        return found

    @cached_property
    def address(self) -> str:
        """Their folder below the console; the hash of all of them is in it, since scripts import each other."""
        digest = hashlib.sha256()
        for name, file in self._files.items():
            digest.update(name.encode() + b"\0" + hashlib.sha256(file.plain).digest())
        return f"static/{digest.hexdigest()[:16]}/"

    @cached_property
    def vega_address(self) -> str:
        """Address of the script that draws charts, below the console; empty if its package is not installed."""
        version = vega_bundle.version()
        return "" if version is None else f"static/vega-{version}/vega.js"

    def find(self, path: str) -> StaticFile | None:
        """Return the file at an address below the console, if it is the present one."""
        return self._files.get(path.removeprefix(self.address)) if path.startswith(self.address) else None
