"""The runs of a sweep as one long table, for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.errors import EquipoiseError, InvalidInput, MissingExtra

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from equipoise.runs import Runs

ENDINGS = (".csv", ".parquet")
"""Kinds of files a table can be written to."""


def checked_frame_path(path: str | os.PathLike[str]) -> Path:
    """Return a path that a table can be written to, before the work that fills it."""
    file = Path(path)
    if file.suffix not in ENDINGS:
        raise InvalidInput(f"a file for a frame must end in {' or '.join(ENDINGS)}; got {str(file)!r}")
    if not file.parent.is_dir():
        raise EquipoiseError(f"no folder {file.parent}", hint=f"mkdir -p {file.parent}")
    try:
        import polars  # noqa: F401  (asked for now, not when the work is done)
    except ImportError as error:
        raise MissingExtra("frames need polars", hint="pip install 'equipoise[frames]'") from error
    return file


def write_frame(results: Sequence[Runs], path: str | os.PathLike[str]) -> None:
    """Write one row per horizon, policy, replication, checkpoint and arm."""
    file = checked_frame_path(path)
    import polars as pl

    frames = [runs.to_frame().select(pl.lit(runs.horizon, pl.Int64).alias("horizon"), pl.all()) for runs in results]
    whole = pl.concat(frames)
    partial = file.with_name(f".{file.name}.partial")
    try:
        if file.suffix == ".csv":
            whole.write_csv(partial)
        else:
            whole.write_parquet(partial)
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)
