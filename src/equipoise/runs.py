"""What a simulation returns: pulls, estimates and targets at the checkpoints of every replication of every policy."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise import metrics
from equipoise.errors import InvalidInput, MissingExtra
from equipoise.policies import Policy

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from equipoise.arrays import FloatArray, IntArray

FORMAT = "equipoise-runs/1"
_ARRAYS = ("replications", "checkpoints", "true_mean", "true_std", "pulls", "mean", "std", "target")


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

    def select(self, *, policies: Sequence[int] | None = None, replications: ArrayLike | None = None) -> Runs:
        """Return the runs of some policies and replications, by their places on the axes."""
        chosen = list(range(len(self.policies))) if policies is None else list(policies)
        places = np.arange(self.replications.size) if replications is None else np.asarray(replications)
        parts: dict[str, Any] = {
            name: getattr(self, name)[chosen][:, places] for name in ("pulls", "mean", "std", "target")
        }
        return dataclasses.replace(
            self,
            policies=tuple(self.policies[k] for k in chosen),
            replications=self.replications[places],
            **parts,
        )

    @staticmethod
    def joined(parts: Sequence[Runs]) -> Runs:
        """Return the runs of disjoint sets of replications as one, in the order of their numbers."""
        if not parts:
            raise InvalidInput("there must be at least one part to join; got none")
        first = parts[0]
        for part in parts[1:]:
            same = part.configuration() | {"replications": None} == first.configuration() | {"replications": None}
            if not same:
                raise InvalidInput("only runs of the same policies, arms, horizon, seed and checkpoints can be joined")
        numbers = np.concatenate([part.replications for part in parts])
        order = np.argsort(numbers, kind="stable")
        if np.unique(numbers).size != numbers.size:
            raise InvalidInput("a replication must not be in two of the parts")
        arrays: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts], axis=1)[:, order]
            for name in ("pulls", "mean", "std", "target")
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
            np.array_equal(getattr(self, name), getattr(other, name), equal_nan=name != "pulls")
            for name in ("pulls", "mean", "std", "target")
        )

    __hash__ = None  # type: ignore[assignment]

    def to_frame(self) -> Any:
        """Return a polars frame with one row per policy, replication, checkpoint and arm."""
        try:
            import polars as pl
        except ImportError as error:
            raise MissingExtra("frames need polars", hint="pip install 'equipoise[frames]'") from error
        shape = self.pulls.shape
        policy, replication, checkpoint, arm = (index.ravel() for index in np.indices(shape))
        return pl.DataFrame(
            {
                "policy": np.array(self.labels, dtype=object)[policy].astype(str),
                "replication": self.replications[replication],
                "n": self.checkpoints[checkpoint],
                "arm": arm,
                "pulls": self.pulls.ravel(),
                "mean": self.mean.ravel(),
                "std": self.std.ravel(),
                "target": self.target.ravel(),
            }
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the runs and their configuration to one .npz file, in whole or not at all."""
        target = Path(path)
        header = json.dumps({"format": FORMAT} | self.configuration())
        partial = target.with_name(f".{target.name}.partial")
        try:
            with partial.open("wb") as file:
                np.savez_compressed(
                    file, allow_pickle=False, header=np.array(header), **{name: getattr(self, name) for name in _ARRAYS}
                )
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Runs:
        """Return the runs that `save` wrote."""
        try:
            with np.load(path, allow_pickle=False) as file:
                header = json.loads(str(file["header"]))
                arrays = {name: file[name] for name in _ARRAYS}
        except (KeyError, ValueError) as error:
            raise InvalidInput(f"{path} is not a file of saved runs; {error}") from error
        if header.get("format") != FORMAT:
            raise InvalidInput(f"expected runs in the format {FORMAT}; got {header.get('format')!r}")
        policies = tuple(Policy.from_dict(data) for data in header["policies"])
        return cls(policies=policies, horizon=header["horizon"], seed=header["seed"], arms=header["arms"], **arrays)

    def __repr__(self) -> str:
        return (
            f"Runs({len(self.policies)} policies, {self.replications.size} replications, "
            f"{self.true_mean.size} arms, horizon {self.horizon:,}, {self.checkpoints.size} checkpoints)"
        )
