"""Runs as a table, and the package that makes tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import MissingExtra
from equipoise.runs.parts import PER_ARM

if TYPE_CHECKING:
    from equipoise.runs.runs import Runs


def frame_of(runs: Runs) -> Any:
    """Return a polars frame with one row per policy, replication, checkpoint and arm."""
    pl = polars()
    shape = runs.pulls.shape
    policy, replication, checkpoint, arm = (index.ravel() for index in np.indices(shape))
    columns: dict[str, Any] = {
        "policy": pl.Series(runs.labels, dtype=pl.String).gather(policy),
        "replication": runs.replications[replication],
        "n": runs.checkpoints[checkpoint],
        "arm": arm,
    }
    if runs.arm_names is not None:
        columns["arm_name"] = pl.Series(runs.arm_names, dtype=pl.String).gather(arm)
    columns |= {name: getattr(runs, name).ravel() for name in PER_ARM}
    return pl.DataFrame(columns).with_columns(pl.col("mean", "std", "target").fill_nan(None))


def polars() -> Any:
    """Return the module polars, which frames and Parquet files need."""
    try:
        import polars as package
    except ImportError as error:
        raise MissingExtra("frames need polars", hint="pip install 'equipoise[frames]'") from error
    return package


def polars_for_parquet() -> Any:
    """Return polars, of a version that keeps a header with a Parquet file."""
    package = polars()
    if not hasattr(package, "read_parquet_metadata"):
        raise MissingExtra("Parquet files of runs need polars 1.30 or newer", hint="pip install --upgrade polars")
    return package
