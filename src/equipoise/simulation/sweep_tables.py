"""A sweep in a few numbers: reward, error and regret of each policy at the end of each horizon."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equipoise import metrics
from equipoise.errors import EquipoiseError, InvalidInput, MissingExtra

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from equipoise.policies import Policy
    from equipoise.simulation.runs import Runs


class SummaryRow(NamedTuple):
    """One policy at one horizon; regret is measured at `reward_weight`, and None if no weight is known.

    `horizon` is the step that the values are from: the last that was recorded, in a sweep always the horizon.
    """

    policy: Policy
    horizon: int
    replications: int
    reward: float
    error: float
    realised_error: float
    reward_weight: float | None
    rescaled_regret: float | None
    standard_error: float | None


def summary(results: Sequence[Runs], *, report_weight: float | None = None) -> list[SummaryRow]:
    """Return means over replications at the last checkpoint, and the standard error of the rescaled regret.

    Regret is measured at `report_weight`, else at each policy's own reward weight. A policy without one, such as
    Uniform, is measured at the weights of the others, one row for each.

    Examples
    --------
    >>> import equipoise as eq
    >>> policies = [eq.ForcingBalance(reward_weight=0.5), eq.Uniform()]
    >>> runs = eq.simulate(policies, eq.Gaussian(mean=[1, 2], std=[1, 1]), 1000, 20, seed=1)
    >>> [(row.reward_weight, round(row.rescaled_regret, 3)) for row in summary([runs])]
    [(0.5, 0.009), (0.5, 1.649)]
    """
    rows = []
    for runs in results:
        last = np.s_[:, :, -1]
        rewards, errors = (metrics.summarise(values[last]).mean for values in (runs.reward(), runs.error()))
        realised = runs.realised_error()[:, -1]
        regrets: dict[float, metrics.Summary] = {}
        for k, policy in enumerate(runs.policies):
            for weight in weights_of(policy, runs.policies, report_weight):
                if weight is not None and weight not in regrets:
                    regrets[weight] = metrics.summarise(runs.rescaled_regret(reward_weight=weight)[last])
                regret = None if weight is None else regrets[weight]
                rows.append(
                    SummaryRow(
                        policy=policy,
                        horizon=int(runs.checkpoints[-1]),
                        replications=int(runs.replications.size),
                        reward=float(rewards[k]),
                        error=float(errors[k]),
                        realised_error=float(realised[k]),
                        reward_weight=weight,
                        rescaled_regret=None if regret is None else float(regret.mean[k]),
                        standard_error=None if regret is None else float(regret.standard_error[k]),
                    )
                )
    return rows


def weights_of(policy: Policy, policies: Sequence[Policy], report_weight: float | None) -> list[float | None]:
    """Return the weights at which a policy's regret is measured."""
    if report_weight is not None:
        return [report_weight]
    own = getattr(policy, "reward_weight", None)
    if own is not None:
        return [own]
    others = {weight for other in policies if (weight := getattr(other, "reward_weight", None)) is not None}
    return sorted(others) or [None]


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
