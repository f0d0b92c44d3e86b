"""What a simulation returns: pulls, estimates and targets at the checkpoints of every replication of every policy."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise import metrics
from equipoise.errors import InvalidInput, MissingExtra, UnknownName
from equipoise.policies import Policy
from equipoise.separable import ROOT_MEAN_SQUARE, Objective

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from equipoise.arrays import FloatArray, IntArray

FORMAT = "equipoise-runs/1"
_PER_ARM = ("pulls", "mean", "std", "target")
_ARRAYS = ("replications", "checkpoints", "true_mean", "true_std", *_PER_ARM)
ENDINGS = (".npz", ".parquet")
"""Kinds of files that runs can be saved to."""
_KEY = "equipoise"
"""Where the header is in the metadata of a Parquet file."""


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
    arm_names : tuple of str or None
        What the arms are called, if they have names.

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

    # Metrics, each an array (policy, replication, checkpoint) unless its name says otherwise. Those with a weight judge
    # by the paper's objective unless they are given another.

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

    def tradeoff(self, *, reward_weight: float, objective: Objective = ROOT_MEAN_SQUARE) -> FloatArray:
        """Return the trade-off of the pulls made (f_w, Eq. 3), or their value by another objective."""
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
        """Return the largest difference between an arm's target and its optimal share; NaN before there is a target."""
        return self._judged(metrics.distance, self.target, reward_weight, objective)

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
        _expect_equal(parts, ("policies", "arms", "horizon", "seed", "checkpoints"), "joined")
        numbers = np.concatenate([part.replications for part in parts])
        order = np.argsort(numbers, kind="stable")
        if np.unique(numbers).size != numbers.size:
            twice = np.sort(numbers)[1:][np.diff(np.sort(numbers)) == 0]
            raise InvalidInput(f"a replication must not be in two of the parts; got {twice[0]} more than once")
        arrays: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts], axis=1)[:, order] for name in _PER_ARM
        }
        return dataclasses.replace(parts[0], replications=numbers[order], **arrays)

    @staticmethod
    def stacked(parts: Sequence[Runs]) -> Runs:
        """Return the runs of several policies, simulated one by one on the same arms and replications, as one.

        Examples
        --------
        >>> import equipoise as eq
        >>> policies, arms = [eq.UCB(), eq.Uniform()], eq.Bernoulli(mean=[0.4, 0.6])
        >>> parts = [eq.simulate(policy, arms, horizon=50) for policy in policies]
        >>> Runs.stacked(parts) == eq.simulate(policies, arms, horizon=50)
        True
        """
        parts = list(parts)
        if not parts:
            raise InvalidInput("there must be at least one part to stack; got none")
        _expect_equal(parts, ("arms", "horizon", "seed", "replications", "checkpoints"), "stacked")
        arrays: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _PER_ARM}
        return dataclasses.replace(parts[0], policies=tuple(p for part in parts for p in part.policies), **arrays)

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

        What is not there yet (a mean before the first reward, a target of a policy without) is null. If the arms have
        names, the column `arm_name` follows `arm`, which is the number of the arm from 0 in any case.

        Examples
        --------
        >>> import equipoise as eq
        >>> runs = eq.simulate(eq.Uniform(), eq.Bernoulli(mean=[0.2, 0.5]), horizon=9, checkpoints=[1, 9])
        >>> runs.to_frame().select("policy", "n", "arm", "pulls", "mean").rows()
        [('Uniform()', 1, 0, 1, 0.0), ('Uniform()', 1, 1, 0, None),
         ('Uniform()', 9, 0, 5, 0.4), ('Uniform()', 9, 1, 4, 0.5)]
        """
        pl = _polars()
        shape = self.pulls.shape
        policy, replication, checkpoint, arm = (index.ravel() for index in np.indices(shape))
        columns: dict[str, Any] = {
            "policy": pl.Series(self.labels, dtype=pl.String).gather(policy),
            "replication": self.replications[replication],
            "n": self.checkpoints[checkpoint],
            "arm": arm,
        }
        if self.arm_names is not None:
            columns["arm_name"] = pl.Series(self.arm_names, dtype=pl.String).gather(arm)
        columns |= {name: getattr(self, name).ravel() for name in _PER_ARM}
        return pl.DataFrame(columns).with_columns(pl.col("mean", "std", "target").fill_nan(None))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the runs and their configuration to one file, in whole or not at all.

        A name that ends in .npz gives a file of arrays that numpy can read too; one that ends in .parquet the table of
        `to_frame`, with the configuration in its metadata, for which polars is needed. Both load alike.
        """
        target = Path(path)
        if target.suffix not in ENDINGS:
            raise InvalidInput(
                f"a file for runs must end in {' or '.join(ENDINGS)}; got {str(target)!r}",
                hint="runs.to_frame().write_csv(...) writes a table for other programs",
            )
        header = {"format": FORMAT} | self.configuration()
        if self.arm_names is not None:
            header["arm_names"] = list(self.arm_names)
        if target.suffix == ".parquet":
            _polars_for_parquet()
            header |= {name: getattr(self, name).tolist() for name in ("true_mean", "true_std")}
            frame, metadata = self.to_frame(), {_KEY: json.dumps(header)}
            _replace(target, lambda file: frame.write_parquet(file, metadata=metadata))
        else:
            arrays: dict[str, Any] = {name: getattr(self, name) for name in _ARRAYS}
            # As bytes: numpy would write text with four bytes a letter, and recorded arms are long.
            text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
            _replace(target, lambda file: np.savez_compressed(file, header=text, **arrays))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Runs:
        """Return the runs that `save` wrote.

        Policies of your own are found by their class names, so their module must be imported before.
        """
        file = Path(path)
        with file.open("rb") as stream:
            start = stream.read(4)
        if start not in (b"PK\x03\x04", b"PAR1"):
            raise _not_runs(file, "those are .npz or .parquet files that `save` wrote")
        header, arrays = _read_npz(file) if start[:2] == b"PK" else _read_parquet(file)
        try:
            policies = tuple(Policy.from_dict(data) for data in header["policies"])
            # Files from before runs had names may have them with the description of the arms.
            names = header.get("arm_names", header["arms"].get("names"))
            return cls(
                policies=policies,
                horizon=header["horizon"],
                seed=header["seed"],
                arms=header["arms"],
                arm_names=None if names is None else tuple(names),
                **arrays,
            )
        except UnknownName as error:
            raise UnknownName(f"{path}: {error.message}", hint="import the module that defines it first") from error
        except (AttributeError, KeyError, TypeError) as error:
            raise _not_runs(file, "its header is not whole") from error

    def __repr__(self) -> str:
        return (
            f"Runs({_count(self.policies, 'policy', 'policies')}, {_count(self.replications, 'replication')}, "
            f"{_count(self.true_mean, 'arm')}, horizon {self.horizon:,}, {_count(self.checkpoints, 'checkpoint')})"
        )


def _replace(target: Path, write: Callable[[Any], None]) -> None:
    """Write a file beside its place and move it there when it is whole."""
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


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
    pl = _polars_for_parquet()
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
        # Rows that another program has sorted or left out would end up in the wrong places.
        places = np.indices(shape)
        for name, expected in (
            ("replication", arrays["replications"][places[1]]),
            ("n", arrays["checkpoints"][places[2]]),
            ("arm", places[3]),
        ):
            if not np.array_equal(frame[name].to_numpy(), expected.ravel()):
                raise _not_runs(file, "its rows are not those that were saved")
        arrays["pulls"] = frame["pulls"].to_numpy().reshape(shape).astype(np.int64)
        for name in _PER_ARM[1:]:
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


def _polars() -> Any:
    """Return the module polars, which frames and Parquet files need."""
    try:
        import polars
    except ImportError as error:
        raise MissingExtra("frames need polars", hint="pip install 'equipoise[frames]'") from error
    return polars


def _polars_for_parquet() -> Any:
    polars = _polars()
    if not hasattr(polars, "read_parquet_metadata"):
        raise MissingExtra("Parquet files of runs need polars 1.30 or newer", hint="pip install --upgrade polars")
    return polars


def _expect_equal(parts: Sequence[Runs], names: Sequence[str], verb: str) -> None:
    """Raise if the parts differ in something that must be the same."""
    expected = parts[0].configuration()
    for part in parts[1:]:
        given = part.configuration()
        for name in names:
            if given[name] != expected[name]:
                got = f"{expected[name]} and {given[name]}"
                raise InvalidInput(f"only runs with the same {name} can be {verb}; got {got}")


def _count(things: Any, one: str, many: str | None = None) -> str:
    return f"{len(things):,} {one if len(things) == 1 else many or one + 's'}"
