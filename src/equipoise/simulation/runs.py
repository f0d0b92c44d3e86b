"""Hold the results of a simulation: pulls, estimates and targets at each checkpoint, with metrics and a summary."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from equipoise import metrics
from equipoise._types import FloatArray, IntArray
from equipoise.errors import InvalidInput
from equipoise.files import polars
from equipoise.objective_families import ROOT_MEAN_SQUARE, Objective
from equipoise.policies import Policy
from equipoise.simulation.run_files import PER_ARM, load, save

if TYPE_CHECKING:
    from equipoise.analysis.evidence import RewardRange
    from equipoise.analysis.results import Comparison


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Runs:
    """Results of a simulation, as arrays with axes (policy, replication, checkpoint[, arm]).

    Attributes
    ----------
    policies : tuple of Policy
    replications : int array (n_replications,)
        Numbers of the replications; with the seed they determine the rewards.
    checkpoints : int array (n_checkpoints,)
        Steps after which the arrays below were recorded.
    pulls, mean, std, target : arrays (n_policies, n_replications, n_checkpoints, n_arms)
        Pulls and estimates of each arm, and the policy's target allocation (NaN if it has none).
    true_mean, true_std : arrays (n_arms,)
    horizon, seed : int
    arms : dict
        Description of the arms.
    arm_names : tuple of str or None
        Names of the arms, if any.

    Examples
    --------
    >>> import equipoise as eq
    >>> arms = eq.Gaussian(mean=[1, 2], std=[1, 1])
    >>> runs = eq.simulate(eq.Uniform(), arms, horizon=100, replications=3, checkpoints=[10, 100])
    >>> runs
    Runs(1 policy, 3 replications, 2 arms, horizon 100, 2 checkpoints)
    >>> runs.pulls.shape, runs.pulls[0, 0].tolist()
    ((1, 3, 2, 2), [[5, 5], [50, 50]])
    >>> runs.reward().tolist()
    [[[1.5, 1.5], [1.5, 1.5], [1.5, 1.5]]]
    """

    policies: tuple[Policy, ...]
    horizon: int
    seed: int
    arms: dict[str, Any]
    true_mean: FloatArray
    true_std: FloatArray
    replications: IntArray
    checkpoints: IntArray
    pulls: IntArray
    mean: FloatArray
    std: FloatArray
    target: FloatArray
    arm_names: tuple[str, ...] | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """Printed names of the policies."""
        return tuple(map(repr, self.policies))

    @property
    def frequency(self) -> FloatArray:
        """Share of pulls of each arm."""
        return self.pulls / self.checkpoints[:, None]

    def index_of(self, policy: Policy) -> int:
        """Return the index of a policy on the first axis."""
        try:
            return self.policies.index(policy)
        except ValueError:
            raise InvalidInput(f"{policy!r} was not simulated; there are {', '.join(self.labels)}") from None

    # Metrics, each an array (policy, replication, checkpoint) unless its name says otherwise. Metrics with a weight use
    # the paper's objective by default.

    def reward(self) -> FloatArray:
        """Return the expected reward per pull of the pulls made (rho, Eq. 1)."""
        return metrics.reward(self.frequency, self.true_mean)

    def error(self) -> FloatArray:
        """Return the error of the pulls made, by formula (epsilon, Eq. 2); infinite if a noisy arm was not pulled."""
        return metrics.error(self.frequency, self.true_std)

    def realised_error(self) -> FloatArray:
        """Return the actual error of the estimates, over replications: an array (policy, checkpoint).

        Eq. 2 is exact for fixed allocations only; an adaptive policy's estimates may be better or worse.
        """
        return metrics.realised_error(self.mean, self.true_mean, self.checkpoints)

    def tradeoff(self, *, reward_weight: float, objective: Objective = ROOT_MEAN_SQUARE) -> FloatArray:
        """Return the trade-off of the pulls made (f_w, Eq. 3), or their value under another objective."""
        return self._judged(metrics.tradeoff, self.frequency, reward_weight, objective)

    def regret(self, *, reward_weight: float, objective: Objective = ROOT_MEAN_SQUARE) -> FloatArray:
        """Return how far the pulls made fall short of the optimum (R_n)."""
        return self._judged(metrics.regret, self.frequency, reward_weight, objective)

    def rescaled_regret(self, *, reward_weight: float, objective: Objective = ROOT_MEAN_SQUARE) -> FloatArray:
        """Return sqrt(n) times the regret."""
        return np.sqrt(self.checkpoints) * self.regret(reward_weight=reward_weight, objective=objective)

    def frequency_distance(self, *, reward_weight: float, objective: Objective = ROOT_MEAN_SQUARE) -> FloatArray:
        """Return the largest difference between an arm's share of pulls and its optimal share."""
        return self._judged(metrics.distance, self.frequency, reward_weight, objective)

    def target_distance(self, *, reward_weight: float, objective: Objective = ROOT_MEAN_SQUARE) -> FloatArray:
        """Return the largest difference between an arm's target and its optimal share; NaN without a target."""
        return self._judged(metrics.distance, self.target, reward_weight, objective)

    def reward_shortfall(
        self, *, information_kept: float, information_about: str = "average", smallest_difference: float | None = None
    ) -> FloatArray:
        """Return the most reward that keeps this share of the information, minus the reward of the pulls made.

        Negative where the pulls keep less information; see `error_excess`.
        """
        dial = information_kept, information_about, smallest_difference
        return self._compared(metrics.reward_shortfall, *dial)

    def rescaled_reward_shortfall(
        self, *, information_kept: float, information_about: str = "average", smallest_difference: float | None = None
    ) -> FloatArray:
        """Return sqrt(n) times the reward shortfall."""
        dial = information_kept, information_about, smallest_difference
        return np.sqrt(self.checkpoints) * self._compared(metrics.reward_shortfall, *dial)

    def error_excess(
        self, *, information_kept: float, information_about: str = "average", smallest_difference: float | None = None
    ) -> FloatArray:
        """Return by which part the error of the pulls made exceeds the limit for this share of the information."""
        dial = information_kept, information_about, smallest_difference
        return self._compared(metrics.error_excess, *dial)

    def rescaled_error_excess(
        self, *, information_kept: float, information_about: str = "average", smallest_difference: float | None = None
    ) -> FloatArray:
        """Return sqrt(n) times the error excess."""
        dial = information_kept, information_about, smallest_difference
        return np.sqrt(self.checkpoints) * self._compared(metrics.error_excess, *dial)

    def _compared(
        self, metric: Callable[..., FloatArray], kept: float, about: str, difference: float | None
    ) -> FloatArray:
        return metric(
            self.frequency,
            self.true_mean,
            self.true_std,
            information_kept=kept,
            information_about=about,
            smallest_difference=difference,
        )

    def _judged(
        self, metric: Callable[..., FloatArray], shares: FloatArray, reward_weight: float, objective: Objective
    ) -> FloatArray:
        return metric(shares, self.true_mean, self.true_std, reward_weight=reward_weight, objective=objective)

    def relative_dcg(self) -> FloatArray:
        """Return the loss of discounted cumulative gain by ranking arms by their estimates, in percent (RelDCG)."""
        return metrics.relative_dcg(self.mean, self.true_mean)

    def rank_error(self) -> FloatArray:
        """Return the average difference between an arm's true and estimated rank (RankErr); equal arms share ranks."""
        return metrics.rank_error(self.mean, self.true_mean)

    # Selecting and combining

    def select(
        self, *, policies: Sequence[int | Policy] | None = None, replications: Sequence[int] | None = None
    ) -> Runs:
        """Return the runs of some policies, given by value or index, and of the replications with some numbers."""
        if policies is None and replications is None:
            return self
        wanted: Sequence[int | Policy] = range(len(self.policies)) if policies is None else policies
        chosen = [self.index_of(k) if isinstance(k, Policy) else k for k in wanted]
        if not chosen:
            raise InvalidInput(f"policies must be some of {', '.join(self.labels)}; got none")
        if not all(-len(self.policies) <= k < len(self.policies) for k in chosen):
            raise InvalidInput(f"policies must be from 0 to {len(self.policies) - 1}; got {policies!r}")
        place = {number: k for k, number in enumerate(self.replications.tolist())}
        numbers = list(place) if replications is None else [int(r) for r in replications]
        if not numbers or not set(numbers) <= set(place):
            raise InvalidInput(f"replications must be among those simulated; got {replications!r}")
        places = [place[number] for number in numbers]
        return dataclasses.replace(
            self,
            policies=tuple(self.policies[k] for k in chosen),
            replications=self.replications[places],
            **{name: getattr(self, name)[chosen][:, places] for name in PER_ARM},
        )

    @staticmethod
    def joined(parts: Sequence[Runs]) -> Runs:
        """Combine runs of disjoint sets of replications, in the order of their numbers.

        Examples
        --------
        >>> import equipoise as eq
        >>> policy, arms = eq.UCB(), eq.Bernoulli(mean=[0.4, 0.6])
        >>> parts = [eq.simulate(policy, arms, 50, replications=range(k, k + 5), seed=3) for k in (5, 0)]
        >>> Runs.joined(parts) == eq.simulate(policy, arms, 50, replications=10, seed=3)
        True
        """
        parts = list(parts)
        whole = _alike(parts, "join", ("policies", "arms", "horizon", "seed", "checkpoints"))
        numbers = np.concatenate([part.replications for part in parts])
        order = np.argsort(numbers, kind="stable")
        ordered = numbers[order]
        twice = ordered[1:][ordered[1:] == ordered[:-1]]
        if twice.size:
            raise InvalidInput(f"a replication must not be in two of the parts; got {twice[0]} more than once")
        arrays: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts], axis=1)[:, order] for name in PER_ARM
        }
        return dataclasses.replace(whole, replications=ordered, **arrays)

    @staticmethod
    def stacked(parts: Sequence[Runs]) -> Runs:
        """Combine runs of several policies, simulated separately on the same arms and replications.

        Examples
        --------
        >>> import equipoise as eq
        >>> policies, arms = [eq.UCB(), eq.Uniform()], eq.Bernoulli(mean=[0.4, 0.6])
        >>> parts = [eq.simulate(policy, arms, horizon=50) for policy in policies]
        >>> Runs.stacked(parts) == eq.simulate(policies, arms, horizon=50)
        True
        """
        parts = list(parts)
        whole = _alike(parts, "stack", ("arms", "horizon", "seed", "replications", "checkpoints"))
        arrays: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in PER_ARM}
        return dataclasses.replace(whole, policies=tuple(p for part in parts for p in part.policies), **arrays)

    def configuration(self) -> dict[str, Any]:
        """Return everything that determines the results, as plain data."""
        return {
            "policies": [policy.to_dict() for policy in self.policies],
            "arms": self.arms,
            "horizon": self.horizon,
            "seed": self.seed,
            "replications": self.replications.tolist(),
            "checkpoints": self.checkpoints.tolist(),
        }

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Runs):
            return NotImplemented
        return self.configuration() == other.configuration() and all(
            np.array_equal(getattr(self, name), getattr(other, name), equal_nan=name != "pulls") for name in PER_ARM
        )

    __hash__ = None  # type: ignore[assignment]

    def compare(
        self,
        policy: int | Policy = 0,
        replication: int = 0,
        *,
        step: int | None = None,
        control: str | None = None,
        reward_range: RewardRange = None,
        confidence: float = 0.95,
        guaranteed: bool = False,
    ) -> Comparison:
        """Compare the arms of one run, as `Experiment.compare` would have compared them then.

        Parameters
        ----------
        policy : int or Policy
            Which policy, by its index or itself.
        replication : int, default 0
            Index of the replication.
        step : int, optional
            One of the checkpoints; the last by default.
        control, confidence, guaranteed
            See `Experiment.compare`.
        reward_range : pair, optional
            The lowest and the highest reward there can be. Runs keep two moments: intervals are a little wider than in
            experiments, and without a range they hold for rewards that are not skewed.

        Examples
        --------
        >>> import equipoise as eq
        >>> arms = eq.Bernoulli(mean=[0.2, 0.5], names=["plain", "prize"])
        >>> runs = eq.simulate(eq.PooledBalance(reward_weight=0.5), arms, horizon=500)
        >>> print(runs.compare(reward_range=(0, 1)).sentences[0])
        'prize' is the best arm: better than 'plain', by 0.13 to 0.40.
        """
        from equipoise.analysis.comparisons import compare
        from equipoise.analysis.evidence import Evidence

        place = self.index_of(policy) if isinstance(policy, Policy) else policy
        at = place, replication, place_of(self, step)
        evidence = Evidence.from_summary(self.pulls[at], self.mean[at], self.std[at], reward_range=reward_range)
        names = self.arm_names or tuple(str(arm + 1) for arm in range(self.true_mean.size))
        return compare(evidence, names, control=control, confidence=confidence, guaranteed=guaranteed)

    def to_frame(self) -> Any:
        """Return a polars frame with one row per policy, replication, checkpoint and arm.

        Missing values (a mean before the first reward, the target of a policy without one) are null. If the arms have
        names, the column `arm_name` follows `arm`, which is always the number of the arm from 0.

        Examples
        --------
        >>> import equipoise as eq
        >>> runs = eq.simulate(eq.Uniform(), eq.Bernoulli(mean=[0.2, 0.5]), horizon=9, checkpoints=[1, 9])
        >>> runs.to_frame().select("policy", "n", "arm", "pulls", "mean").rows()
        [('Uniform()', 1, 0, 1, 0.0), ('Uniform()', 1, 1, 0, None),
         ('Uniform()', 9, 0, 5, 0.4), ('Uniform()', 9, 1, 4, 0.5)]
        """
        pl = polars()
        policy, replication, checkpoint, arm = (index.ravel() for index in np.indices(self.pulls.shape))
        columns: dict[str, Any] = {
            "policy": pl.Series(self.labels, dtype=pl.String).gather(policy),
            "replication": self.replications[replication],
            "n": self.checkpoints[checkpoint],
            "arm": arm,
        }
        if self.arm_names is not None:
            columns["arm_name"] = pl.Series(self.arm_names, dtype=pl.String).gather(arm)
        columns |= {name: getattr(self, name).ravel() for name in PER_ARM}
        return pl.DataFrame(columns).with_columns(pl.col("mean", "std", "target").fill_nan(None))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the runs and their configuration to one file, atomically.

        A name that ends in .npz creates a file of arrays that numpy can read too; one that ends in .parquet, the table
        of `to_frame` with the configuration in its metadata, which needs polars. Both load the same way.
        """
        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Runs:
        """Read runs that `save` wrote.

        Your own policies are found by their class names, so import their module first.
        """
        return cls(**load(path))

    def __repr__(self) -> str:
        return (
            f"Runs({_count(self.policies, 'policy', 'policies')}, {_count(self.replications, 'replication')}, "
            f"{_count(self.true_mean, 'arm')}, horizon {self.horizon:,}, {_count(self.checkpoints, 'checkpoint')})"
        )


def place_of(runs: Runs, step: int | None) -> int:
    """Return the index of a step among the checkpoints; of the last by default."""
    if step is None:
        return int(runs.checkpoints.size) - 1
    places = np.flatnonzero(runs.checkpoints == step)
    if not places.size:
        known = ", ".join(map(str, runs.checkpoints))
        raise InvalidInput(
            f"step must be one of the checkpoints; got {step!r}",
            hint=f"simulate with checkpoints=[...] that hold it; there are {known}",
        )
    return int(places[0])


def _count(things: Any, one: str, many: str | None = None) -> str:
    return f"{len(things):,} {one if len(things) == 1 else many or one + 's'}"


def _alike(parts: Sequence[Runs], verb: str, names: Sequence[str]) -> Runs:
    """Return the first part; raise if there is none, or if another differs in a field that must be the same."""
    if not parts:
        raise InvalidInput(f"there must be at least one part to {verb}; got none")
    expected = parts[0].configuration()
    for part in parts[1:]:
        given = part.configuration()
        for name in names:
            if given[name] != expected[name]:
                got = f"{expected[name]} and {given[name]}"
                raise InvalidInput(f"only runs with the same {name} can be {verb}ed; got {got}")
    return parts[0]


class SummaryRow(NamedTuple):
    """One policy at one horizon; regret is measured at `reward_weight`, and None without a weight.

    `horizon` is the step of the values: the last one recorded, in a sweep always the horizon. For a policy that keeps
    information, `rescaled_shortfall` and `error_excess` are measured at what it is to keep; None otherwise.
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
    information_kept: float | None = None
    rescaled_shortfall: float | None = None
    error_excess: float | None = None


def summary(results: Sequence[Runs], *, report_weight: float | None = None) -> list[SummaryRow]:
    """Return means over replications at the last checkpoint, and the standard error of the rescaled regret.

    Regret is measured at `report_weight`, or else at each policy's own reward weight. A policy without one, such as
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
            kept = _kept(runs, k)
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
                        **kept,
                    )
                )
    return rows


def _kept(runs: Runs, place: int) -> dict[str, float]:
    """Return what a row says of a policy that keeps information: means over replications at the last checkpoint."""
    policy = runs.policies[place]
    kept = getattr(policy, "information_kept", None)
    if kept is None:
        return {}
    dial = {name: getattr(policy, name) for name in ("information_about", "smallest_difference")}
    own = runs.select(policies=[place])
    shortfall, excess = (
        float(measure(information_kept=kept, **dial)[0, :, -1].mean())
        for measure in (own.rescaled_reward_shortfall, own.error_excess)
    )
    return {"information_kept": kept, "rescaled_shortfall": shortfall, "error_excess": excess}


def weights_of(policy: Policy, policies: Sequence[Policy], report_weight: float | None) -> list[float | None]:
    """Return the weights at which a policy's regret is measured; none for one that keeps information instead."""
    if report_weight is not None:
        return [report_weight]
    own = getattr(policy, "reward_weight", None)
    if own is not None:
        return [own]
    if getattr(policy, "information_kept", None) is not None:
        return [None]
    others = {weight for other in policies if (weight := getattr(other, "reward_weight", None)) is not None}
    return sorted(others) or [None]
