"""Make the script that draws charts (Vega, Vega-Lite and their embedding) once, and keep it for later processes.

Bundling takes some four seconds and 140 MB, so a child process does it; the result is kept gzipped in a file with the
version of the package in its name.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import tempfile
from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from pathlib import Path

from equipoise.errors import EquipoiseError

FOLDER = "EQUIPOISE_CACHE"
"""Environment variable that names the folder for what is made once."""
_SECONDS = 120
_NAMES = "window.vegaEmbed = vegaEmbed; window.vega = vega;"


@cache
def version() -> str | None:
    """Return the version of the package that bundles the script; None if it is not installed."""
    try:
        return version_of("vl-convert-python")
    except PackageNotFoundError:
        return None


def zipped_bundle() -> bytes:
    """Return the script, gzipped; make it if this is the first time on this machine."""
    name = f"vega-{version()}.js.gz"
    for folder in _folders():
        kept = folder / name
        try:
            return kept.read_bytes()
        except OSError:
            pass
        made = _made_in(folder, kept)
        if made is not None:
            return made
    raise EquipoiseError("the script that draws charts could not be kept", hint=f"set {FOLDER} to a folder to write to")


def _folders() -> list[Path]:
    """Return where to keep it: as the environment says, in the user's cache, or with the files of the moment."""
    given = os.environ.get(FOLDER)
    if given:
        return [Path(given)]
    user = os.environ.get("XDG_CACHE_HOME")
    owner = os.getuid() if hasattr(os, "getuid") else "user"
    try:
        cache_folder = Path(user) if user else Path.home() / ".cache"
    except RuntimeError:  # there is no home
        return [Path(tempfile.gettempdir()) / f"equipoise-{owner}"]
    return [cache_folder / "equipoise", Path(tempfile.gettempdir()) / f"equipoise-{owner}"]


def _made_in(folder: Path, kept: Path) -> bytes | None:
    """Make the script in a folder; return None if nothing can be written there, or others might write there too."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if hasattr(os, "getuid") and folder.stat().st_uid != os.getuid():
            return None
        file, draft = tempfile.mkstemp(dir=folder)
        os.close(file)
    except OSError:
        return None
    try:
        command = [sys.executable, "-m", "equipoise.console.vega_bundle", draft]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)  # noqa: S603
        if done.returncode:
            raise EquipoiseError(f"the script that draws charts could not be made: {done.stderr[-300:].strip()}")
        Path(draft).replace(kept)  # so that no process reads half of it
        return kept.read_bytes()
    finally:
        Path(draft).unlink(missing_ok=True)


def _make(target: str) -> None:
    import vl_convert

    Path(target).write_bytes(gzip.compress(vl_convert.javascript_bundle(_NAMES).encode(), mtime=0))


if __name__ == "__main__":
    _make(sys.argv[1])
