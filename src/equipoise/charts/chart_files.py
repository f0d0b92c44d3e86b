"""Charts as files: HTML that needs no network, PNG, SVG and PDF, by the ending of the name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.charts.style import require
from equipoise.errors import EquipoiseError, InvalidInput

if TYPE_CHECKING:
    from equipoise.charts.style import AnyChart

ENDINGS = ("html", "png", "svg", "pdf")
"""Kinds of files that `save_chart` writes, by their ending."""


def save_chart(chart: AnyChart, path: str | os.PathLike[str]) -> None:
    """Write a chart as the file's ending says; an existing file is replaced."""
    target = checked_chart_path(path)
    ending = _ending(target)
    # Without `inline` a page would load its scripts from the network.
    options = {"inline": True} if ending == "html" else {"scale_factor": 2 if ending == "png" else 1}
    try:
        chart.save(str(target), format=ending, **options)  # type: ignore[arg-type]
    except OSError as error:
        raise EquipoiseError(f"cannot write {target}: {error.strerror or error}") from error


def checked_chart_path(path: str | os.PathLike[str], *, make_folder: bool = False) -> Path:
    """Return the path if a chart can be written there; call it before work that would be lost otherwise.

    With `make_folder` the folder it is in is made if there is none.

    Examples
    --------
    >>> checked_chart_path("chart.gif")
    Traceback (most recent call last):
    ...
    equipoise.errors.InvalidInput: a chart file must end in .html, .png, .svg or .pdf; got 'chart.gif'
    """
    target = Path(path)
    if _ending(target) not in ENDINGS:
        raise InvalidInput(f"a chart file must end in .html, .png, .svg or .pdf; got {os.fspath(path)!r}")
    for package in ("altair", "vl_convert"):
        require(package)
    folder = target.parent
    if make_folder:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EquipoiseError(f"cannot make the folder {folder}: {error.strerror or error}") from error
    if not folder.is_dir():
        raise EquipoiseError(f"cannot write {target}: there is no folder {folder}", hint=f"mkdir -p {folder}")
    if target.is_dir():
        raise EquipoiseError(f"cannot write {target}: it is a folder")
    if not os.access(target if target.exists() else folder, os.W_OK):
        raise EquipoiseError(f"cannot write {target}: permission denied")
    return target


def _ending(path: Path) -> str:
    return path.suffix.lower().removeprefix(".")
