"""Save and load runs with their configuration, as .npz or Parquet, and write tables for other programs."""

from __future__ import annotations

import json
import math
import os
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import EquipoiseError, InvalidInput, MissingExtra, UnknownName
from equipoise.files import polars, replacing
from equipoise.policies import Policy

if TYPE_CHECKING:
    from equipoise.simulation.runs import Runs

FORMAT = "equipoise-runs/1"
PER_ARM = ("pulls", "mean", "std", "target")
_ARRAYS = ("replications", "checkpoints", "true_mean", "true_std", *PER_ARM)
ENDINGS = (".npz", ".parquet")
"""Kinds of files that runs can be saved to."""
FRAME_ENDINGS = (".csv", ".parquet")
"""Kinds of files that a sweep's table can be written to."""
_KEY = "equipoise"
"""Key of the header in the metadata of a Parquet file."""


def save(runs: Runs, path: str | os.PathLike[str]) -> None:
    """Write runs and their configuration to one file, atomically."""
    target = Path(path)
    if target.suffix not in ENDINGS:
        raise InvalidInput(
            f"a file for runs must end in {' or '.join(ENDINGS)}; got {str(target)!r}",
            hint="runs.to_frame().write_csv(...) writes a table for other programs",
        )
    header = {"format": FORMAT} | runs.configuration()
    if runs.arm_names is not None:
        header["arm_names"] = list(runs.arm_names)
    if target.suffix == ".parquet":
        _polars_with_metadata()
        header |= {name: getattr(runs, name).tolist() for name in ("true_mean", "true_std")}
        frame = runs.to_frame()
        with replacing(target) as partial:
            frame.write_parquet(partial, metadata={_KEY: json.dumps(header)})
    else:
        arrays: dict[str, Any] = {name: getattr(runs, name) for name in _ARRAYS}
        # As bytes: numpy would store text with four bytes per letter, and recorded arms are long.
        text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
        with replacing(target) as partial, partial.open("wb") as file:  # given a path, numpy would add .npz
            np.savez_compressed(file, header=text, **arrays)


def load(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the fields of runs that `save` wrote."""
    file = Path(path)
    with file.open("rb") as stream:
        start = stream.read(4)
    if start not in (b"PK\x03\x04", b"PAR1"):
        raise _not_runs(file, "those are .npz or .parquet files that `save` wrote")
    header, arrays = _read_npz(file) if start[:2] == b"PK" else _read_parquet(file)
    try:
        policies = tuple(Policy.from_dict(data) for data in header["policies"])
        # Files from before runs had names may store them in the description of the arms.
        names = header.get("arm_names", header["arms"].get("names"))
        return {
            "policies": policies,
            "horizon": header["horizon"],
            "seed": header["seed"],
            "arms": header["arms"],
            "arm_names": None if names is None else tuple(names),
            **arrays,
        }
    except UnknownName as error:
        raise UnknownName(f"{path}: {error.message}", hint="import the module that defines it first") from error
    except (AttributeError, KeyError, TypeError) as error:
        raise _not_runs(file, "its header is not whole") from error


def _read_npz(file: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return header and arrays of an .npz file."""
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            if "header" not in arrays:
                raise _not_runs(file, "there is no header in it")
            text = arrays["header"]
            header = _checked_header(file, str(text) if text.dtype.kind == "U" else text.tobytes().decode())
            return header, {name: arrays[name] for name in _ARRAYS}
    except KeyError as error:
        raise _not_runs(file, "an array is missing") from error
    except InvalidInput:
        raise
    except (AttributeError, EOFError, TypeError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise _not_runs(file, "it is damaged, or was written by another program") from error


def _read_parquet(file: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return header and arrays of a Parquet file."""
    pl = _polars_with_metadata()
    try:
        text = pl.read_parquet_metadata(file).get(_KEY)
        if text is None:
            raise _not_runs(file, "it is a table without their configuration")
        header = _checked_header(file, text)
        frame = pl.read_parquet(file, hive_partitioning=False)
        arrays: dict[str, Any] = {
            name: np.array(header[name], dtype=dtype)
            for name, dtype in (
                ("replications", np.int64),
                ("checkpoints", np.int64),
                ("true_mean", np.float64),
                ("true_std", np.float64),
            )
        }
        n_arms = arrays["true_mean"].size
        shape = (len(header["policies"]), arrays["replications"].size, arrays["checkpoints"].size, n_arms)
        # Rows that another program sorted or dropped would end up in the wrong places.
        places = np.indices(shape)
        for name, expected in (
            ("replication", arrays["replications"][places[1]]),
            ("n", arrays["checkpoints"][places[2]]),
            ("arm", places[3]),
        ):
            if not np.array_equal(frame[name].to_numpy(), expected.ravel()):
                raise _not_runs(file, "its rows are not those that were saved")
        arrays["pulls"] = frame["pulls"].to_numpy().reshape(shape).astype(np.int64)
        for name in PER_ARM[1:]:
            arrays[name] = frame[name].fill_null(math.nan).to_numpy().reshape(shape).copy()
    except InvalidInput:
        raise
    except (KeyError, TypeError, ValueError, OSError, pl.exceptions.PolarsError) as error:
        raise _not_runs(file, "it is damaged, or was written by another program") from error
    return header, arrays


def _checked_header(file: Path, text: str) -> dict[str, Any]:
    header: dict[str, Any] = json.loads(text)
    if header.get("format") != FORMAT:
        raise InvalidInput(f"{file}: expected runs in the format {FORMAT}; got {header.get('format')!r}")
    return header


def _not_runs(file: Path, why: str) -> InvalidInput:
    return InvalidInput(f"{file} is not a file of saved runs; {why}")


def _polars_with_metadata() -> Any:
    """Return polars; raise unless its version can store a header in a Parquet file."""
    package = polars()
    if not hasattr(package, "read_parquet_metadata"):
        raise MissingExtra("Parquet files of runs need polars 1.30 or newer", hint="pip install --upgrade polars")
    return package


def checked_frame_path(path: str | os.PathLike[str]) -> Path:
    """Return the path if `write_frame` can write there; call it before the work that fills the table."""
    file = Path(path)
    if file.suffix not in FRAME_ENDINGS:
        raise InvalidInput(f"a file for a frame must end in {' or '.join(FRAME_ENDINGS)}; got {str(file)!r}")
    if not file.parent.is_dir():
        raise EquipoiseError(f"no folder {file.parent}", hint=f"mkdir -p {file.parent}")
    polars()
    return file


def write_frame(results: Sequence[Runs], path: str | os.PathLike[str]) -> None:
    """Write one row per horizon, policy, replication, checkpoint and arm."""
    file, pl = checked_frame_path(path), polars()
    frames = [runs.to_frame().select(pl.lit(runs.horizon, pl.Int64).alias("horizon"), pl.all()) for runs in results]
    whole = pl.concat(frames)
    with replacing(file) as partial:
        (whole.write_csv if file.suffix == ".csv" else whole.write_parquet)(partial)
