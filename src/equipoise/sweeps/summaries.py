"""A sweep in a few numbers: reward, error and regret of each policy at the end of each horizon."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equipoise import metrics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from equipoise.policies import Policy
    from equipoise.runs import Runs


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
