"""What a simulation returns: pulls, estimates and targets at the checkpoints of every replication of every policy."""

from __future__ import annotations

import dataclasses
import json
import os
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise import metrics
from equipoise.errors import InvalidInput, MissingExtra, UnknownName
from equipoise.policies import Policy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from equipoise.arrays import FloatArray, IntArray

FORMAT = "equipoise-runs/1"
_PER_ARM = ("pulls", "mean", "std", "target")
_ARRAYS = ("replications", "checkpoints", "true_mean", "true_std", *_PER_ARM)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Runs:
    """Results of a simulation, as arrays with axes (policy, replication, checkpoint[, arm]).

    Attributes
    ----------
    policies : tuple of Policy
    replications : int array (n_replications,)
        Numbers of the replications, which with the seed determine their rewards.
    checkpoints : int array (n_checkpoints,)
        Steps after which the rest was recorded.
    pulls, mean, std, target : arrays (n_policies, n_replications, n_checkpoints, n_arms)
        Pulls and estimates of each arm, and the allocation the policy wanted next (NaN if it wants none).
    true_mean, true_std : arrays (n_arms,)
    horizon, seed : int
    arms : dict
        Description of the arms.

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

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the policies as they print."""
        return tuple(map(repr, self.policies))

    @property
    def frequency(self) -> FloatArray:
        """Share of pulls of each arm."""
        return self.pulls / self.checkpoints[:, None]

    def index_of(self, policy: Policy) -> int:
        """Return the place of a policy on the first axis."""
        try:
            return self.policies.index(policy)
        except ValueError:
            raise InvalidInput(f"{policy!r} was not simulated; there are {', '.join(self.labels)}") from None

    # Metrics, each an array (policy, replication, checkpoint) unless its name says otherwise.

    def reward(self) -> FloatArray:
        """Return the expected reward per pull of the pulls made (rho, Eq. 1)."""
        return metrics.reward(self.frequency, self.true_mean)

    def error(self) -> FloatArray:
        """Return the error of the pulls made, by formula (epsilon, Eq. 2); infinite if a noisy arm was not pulled."""
        return metrics.error(self.frequency, self.true_std)

    def realised_error(self) -> FloatArray:
        """Return the error that the estimates actually had, over replications: an array (policy, checkpoint).

        Eq. 2 is exact for fixed allocations only; an adaptive policy's estimates may be better or worse.
        """
        return metrics.realised_error(self.mean, self.true_mean, self.checkpoints)

    def tradeoff(self, *, reward_weight: float) -> FloatArray:
        """Return the trade-off of the pulls made (f_w, Eq. 3)."""
        return metrics.tradeoff(self.frequency, self.true_mean, self.true_std, reward_weight=reward_weight)

    def regret(self, *, reward_weight: float) -> FloatArray:
        """Return how far the pulls made fall short of the optimum (R_n)."""
        return metrics.regret(self.frequency, self.true_mean, self.true_std, reward_weight=reward_weight)

    def rescaled_regret(self, *, reward_weight: float) -> FloatArray:
        """Return sqrt(n) times the regret."""
        return np.sqrt(self.checkpoints) * self.regret(reward_weight=reward_weight)

    def frequency_distance(self, *, reward_weight: float) -> FloatArray:
        """Return the largest difference between an arm's share of pulls and its optimal share."""
        return metrics.distance(self.frequency, self.true_mean, self.true_std, reward_weight=reward_weight)

    def target_distance(self, *, reward_weight: float) -> FloatArray:
        """Return the largest difference between an arm's target and its optimal share; NaN before there is a target."""
        return metrics.distance(self.target, self.true_mean, self.true_std, reward_weight=reward_weight)

    def relative_dcg(self) -> FloatArray:
        """Return the loss of discounted cumulative gain by ranking arms by their estimates, in percent (RelDCG)."""
        return metrics.relative_dcg(self.mean, self.true_mean)

    def rank_error(self) -> FloatArray:
        """Return the average difference between an arm's true and estimated rank (RankErr)."""
        return metrics.rank_error(self.mean, self.true_mean)

    # Parts and wholes

    def select(
        self, *, policies: Sequence[int | Policy] | None = None, replications: Sequence[int] | None = None
    ) -> Runs:
        """Return the runs of some policies, given by value or place, and of the replications with some numbers."""
        wanted: Sequence[int | Policy] = range(len(self.policies)) if policies is None else policies
        chosen = [self.index_of(k) if isinstance(k, Policy) else k for k in wanted]
        if not chosen or not all(-len(self.policies) <= k < len(self.policies) for k in chosen):
            raise InvalidInput(f"policies must be from 0 to {len(self.policies) - 1}; got {policies!r}")
        place = {number: k for k, number in enumerate(self.replications.tolist())}
        numbers = self.replications.tolist() if replications is None else [int(r) for r in replications]
        if not numbers or not set(numbers) <= set(place):
            raise InvalidInput(f"replications must be among those simulated; got {replications!r}")
        places = [place[number] for number in numbers]
        parts: dict[str, Any] = {name: getattr(self, name)[chosen][:, places] for name in _PER_ARM}
        return dataclasses.replace(
            self,
            policies=tuple(self.policies[k] for k in chosen),
            replications=self.replications[places],
            **parts,
        )

    @staticmethod
    def joined(parts: Sequence[Runs]) -> Runs:
        """Return the runs of disjoint sets of replications as one, in the order of their numbers.

        Examples
        --------
        >>> import equipoise as eq
        >>> policy, arms = eq.UCB(), eq.Bernoulli(mean=[0.4, 0.6])
        >>> parts = [eq.simulate(policy, arms, 50, replications=range(k, k + 5), seed=3) for k in (5, 0)]
        >>> Runs.joined(parts) == eq.simulate(policy, arms, 50, replications=10, seed=3)
        True
        """
        parts = list(parts)
        if not parts:
            raise InvalidInput("there must be at least one part to join; got none")
        first = parts[0]
        expected = first.configuration()
        for part in parts[1:]:
            given = part.configuration()
            for name in ("policies", "arms", "horizon", "seed", "checkpoints"):
                if given[name] != expected[name]:
                    raise InvalidInput(
                        f"only runs with the same {name} can be joined; got {expected[name]} and {given[name]}"
                    )
        numbers = np.concatenate([part.replications for part in parts])
        order = np.argsort(numbers, kind="stable")
        if np.unique(numbers).size != numbers.size:
            twice = np.sort(numbers)[1:][np.diff(np.sort(numbers)) == 0]
            raise InvalidInput(f"a replication must not be in two of the parts; got {twice[0]} more than once")
        arrays: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts], axis=1)[:, order] for name in _PER_ARM
        }
        return dataclasses.replace(first, replications=numbers[order], **arrays)

    def configuration(self) -> dict[str, Any]:
        """Return all that determines the results, as plain data."""
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
            np.array_equal(getattr(self, name), getattr(other, name), equal_nan=name != "pulls") for name in _PER_ARM
        )

    __hash__ = None  # type: ignore[assignment]

    def to_frame(self) -> Any:
        """Return a polars frame with one row per policy, replication, checkpoint and arm.

        What is not there yet (a mean before the first reward, a target of a policy without) is null.

        Examples
        --------
        >>> import equipoise as eq
        >>> runs = eq.simulate(eq.Uniform(), eq.Bernoulli(mean=[0.2, 0.5]), horizon=9, checkpoints=[1, 9])
        >>> runs.to_frame().select("policy", "n", "arm", "pulls", "mean").rows()
        [('Uniform()', 1, 0, 1, 0.0), ('Uniform()', 1, 1, 0, None),
         ('Uniform()', 9, 0, 5, 0.4), ('Uniform()', 9, 1, 4, 0.5)]
        """
        try:
            import polars as pl
        except ImportError as error:
            raise MissingExtra("frames need polars", hint="pip install 'equipoise[frames]'") from error
        shape = self.pulls.shape
        policy, replication, checkpoint, arm = (index.ravel() for index in np.indices(shape))
        return pl.DataFrame(
            {
                "policy": pl.Series(self.labels, dtype=pl.String).gather(policy),
                "replication": self.replications[replication],
                "n": self.checkpoints[checkpoint],
                "arm": arm,
                "pulls": self.pulls.ravel(),
                "mean": self.mean.ravel(),
                "std": self.std.ravel(),
                "target": self.target.ravel(),
            }
        ).with_columns(pl.col("mean", "std", "target").fill_nan(None))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the runs and their configuration to one .npz file, in whole or not at all.

        The file is given exactly this name; numpy can read it too.
        """
        target = Path(path)
        header = json.dumps({"format": FORMAT} | self.configuration())
        partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
        arrays: dict[str, Any] = {name: getattr(self, name) for name in _ARRAYS}
        try:
            with partial.open("wb") as file:
                np.savez_compressed(file, header=np.array(header), **arrays)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Runs:
        """Return the runs that `save` wrote.

        Policies of your own are found by their class names, so their module must be imported before.
        """
        try:
            with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as file:
                header = json.loads(str(file["header"]))
                found = header.get("format")
                arrays = {name: file[name] for name in _ARRAYS} if found == FORMAT else {}
        except (AttributeError, EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
            raise InvalidInput(f"{path} is not a file of saved runs; {error}") from error
        if found != FORMAT:
            raise InvalidInput(f"{path}: expected runs in the format {FORMAT}; got {found!r}")
        try:
            policies = tuple(Policy.from_dict(data) for data in header["policies"])
        except UnknownName as error:
            raise UnknownName(f"{path}: {error.message}", hint="import the module that defines it first") from error
        return cls(policies=policies, horizon=header["horizon"], seed=header["seed"], arms=header["arms"], **arrays)

    def __repr__(self) -> str:
        return (
            f"Runs({_count(self.policies, 'policy', 'policies')}, {_count(self.replications, 'replication')}, "
            f"{_count(self.true_mean, 'arm')}, horizon {self.horizon:,}, {_count(self.checkpoints, 'checkpoint')})"
        )


def _count(things: Any, one: str, many: str | None = None) -> str:
    return f"{len(things):,} {one if len(things) == 1 else many or one + 's'}"
