"""Simulate policies on a thread pool, with progress, keeping finished replications on Ctrl-C."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from equipoise import checks
from equipoise._types import IntArray
from equipoise.arms import Arms
from equipoise.errors import InvalidInput
from equipoise.policies import Policy
from equipoise.progress import Progress, Reporter, reporter
from equipoise.simulation.players import Pace, Replication, mover, new_arena, play
from equipoise.simulation.runs import Runs


class SimulationInterrupted(KeyboardInterrupt):
    """Ctrl-C stopped a simulation; `runs` holds the replications finished for every policy, or None."""

    def __init__(self, runs: Runs | None) -> None:
        super().__init__("the simulation was interrupted")
        self.runs = runs


def simulate(
    policies: Policy | Sequence[Policy],
    arms: Arms,
    horizon: int,
    replications: int | Sequence[int] = 1,
    seed: int = 0,
    checkpoints: ArrayLike | None = None,
    workers: int | None = None,
    progress: Progress | bool | None = None,
) -> Runs:
    """Play every policy on the arms and return the results.

    Parameters
    ----------
    policies : Policy or sequence of Policy
        Any policies, built-in or your own. Policies in plain Python work too, but more slowly.
    arms : Arms
        Distributions of the rewards. The s-th reward of arm i in replication r is the same for every policy.
    horizon : int
        Pulls per replication.
    replications : int or sequence of int
        How many, or which: `range(100, 200)` is the second hundred of 200, on any machine.
    seed : int
        Determines, with the number of the replication, all rewards and random decisions.
    checkpoints : array of whole numbers, optional
        Steps after which pulls, estimates and targets are recorded; about 40 spaced evenly on a log scale by default.
    workers : int, optional
        Threads; by default one per available processor. Results do not depend on it.
    progress : bool or callable, optional
        True shows a bar; a function is called with (steps done, total steps) every tenth of a second and at the end.

    Returns
    -------
    Runs

    Raises
    ------
    SimulationInterrupted
        On Ctrl-C, with the replications finished so far.

    Examples
    --------
    >>> import equipoise as eq
    >>> arms = eq.Gaussian(mean=[1, 2], std=[1, 1])
    >>> policies = [eq.ForcingBalance(reward_weight=0.5), eq.Uniform()]
    >>> runs = simulate(policies, arms, horizon=1000, replications=20, seed=1)
    >>> runs.regret(reward_weight=0.5)[:, :, -1].mean(axis=1).round(4)
    array([0.0003, 0.0521])
    """
    values = checked_policies(policies)
    if not isinstance(arms, Arms):
        raise InvalidInput.of("arms", "must be Arms such as Gaussian(mean=[1, 2], std=[1, 1])", arms)
    for policy in values:
        policy.check_arms(arms.n_arms)
    horizon = checks.whole_number("horizon", horizon, 1, LARGEST_HORIZON)
    numbers = replication_numbers(replications)
    seed = checks.whole_number("seed", seed, 0, 2**63 - 1)
    steps = checked_checkpoints(checkpoints, horizon)
    n_workers = available_processors() if workers is None else checks.whole_number("workers", workers, 1)
    report = reporter(progress, horizon * numbers.size * len(values))
    job = Job(values, arms, arms.to_dict(), horizon, seed, numbers, steps)
    job.play(n_workers, report)
    return job.runs


def available_processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Job:
    """Every policy in every replication, and the runs that they fill.

    Parameters
    ----------
    policies : tuple of Policy
    arms : Arms
    described : dict
        Description of the arms for the runs.
    horizon, seed : int
    numbers : array (n_replications,)
        Numbers of the replications.
    checkpoints : array (n_checkpoints,)
    """

    def __init__(
        self,
        policies: tuple[Policy, ...],
        arms: Arms,
        described: dict[str, Any],
        horizon: int,
        seed: int,
        numbers: IntArray,
        checkpoints: IntArray,
    ) -> None:
        shape = (len(policies), numbers.size, checkpoints.size, arms.n_arms)
        self.runs = Runs(
            policies=policies,
            horizon=horizon,
            seed=seed,
            arms=described,
            true_mean=arms.mean,
            true_std=arms.std,
            replications=numbers,
            checkpoints=checkpoints,
            pulls=np.zeros(shape, dtype=np.int64),
            mean=np.full(shape, np.nan),
            std=np.full(shape, np.nan),
            target=np.full(shape, np.nan),
            arm_names=arms.names,
        )
        self._arms = arms
        self._finished = np.zeros((numbers.size, len(policies)), dtype=bool)
        # Replication by replication, so that an interrupted simulation has whole replications of all policies.
        self._tasks = iter(np.ndindex(self._finished.shape))
        self._paces = [Pace() for _ in policies]
        self._lock, self._stopped = threading.Lock(), threading.Event()
        self._steps_done = 0

    def play(self, n_workers: int, report: Reporter) -> None:
        """Play everything on threads; on Ctrl-C, raise `SimulationInterrupted` with the finished replications."""
        with report, ThreadPoolExecutor(n_workers) as pool:
            waiting: set[Future[None]] = set()
            try:
                for k, policy in enumerate(self.runs.policies):
                    mover(policy, self._replication(0, k))(0)  # compile in the main thread, which receives Ctrl-C
                waiting = {pool.submit(self._work) for _ in range(min(n_workers, self._finished.size))}
                while waiting:
                    ended, waiting = wait(waiting, timeout=0.1, return_when=FIRST_EXCEPTION)
                    report.show(self._steps_done)
                    for future in ended:
                        future.result()
            except BaseException as error:
                self._stopped.set()
                wait(waiting)
                if isinstance(error, KeyboardInterrupt):
                    whole = self.runs.replications[self._finished.all(axis=1)].tolist()
                    raise SimulationInterrupted(self.runs.select(replications=whole) if whole else None) from None
                raise

    def _work(self) -> None:
        """Play one task after another until none is left, or until stopped."""
        while not self._stopped.is_set():
            with self._lock:
                task = next(self._tasks, None)
            if task is None:
                return
            r, k = task
            self._finished[r, k] = play(
                self.runs.policies[k], self._replication(r, k), self.runs.horizon, tick=self._tick, pace=self._paces[k]
            )

    def _replication(self, r: int, k: int) -> Replication:
        """Return a replication before its first step, for one of the policies."""
        runs = self.runs
        outputs = (runs.pulls[k, r], runs.mean[k, r], runs.std[k, r], runs.target[k, r])
        number = int(runs.replications[r])
        return Replication(self._arms, runs.seed, number, runs.checkpoints, new_arena(self._arms), outputs)

    def _tick(self, count: int) -> bool:
        with self._lock:
            self._steps_done += count
        return not self._stopped.is_set()


LARGEST_HORIZON = 10**15


def checked_policies(policies: Any) -> tuple[Policy, ...]:
    """Return one or several policies as a tuple; raise unless they differ."""
    values = (policies,) if isinstance(policies, Policy) or not hasattr(policies, "__iter__") else tuple(policies)
    if not values or not all(isinstance(policy, Policy) for policy in values):
        raise InvalidInput.of("policies", "must be policies such as ForcingBalance(reward_weight=0.9)", policies)
    labels = []
    for policy in values:
        policy.to_dict()  # reject a policy that cannot be recorded now, not after the work
        labels.append(repr(policy))
    twice = next((label for k, label in enumerate(labels) if label in labels[:k]), None)
    if twice is not None:  # it would repeat the same decisions, and share its label in frames
        raise InvalidInput.of("policies", f"must differ from each other; got {twice} more than once")
    return values


def default_checkpoints(horizon: int) -> IntArray:
    """Return about 40 steps from 1 to the horizon, evenly spaced on a log scale.

    Examples
    --------
    >>> default_checkpoints(1000)[::6]
    array([   1,    7,   20,   59,  170,  492])
    """
    return np.unique(np.rint(np.geomspace(1, horizon, 40)).astype(np.int64))


def checked_checkpoints(checkpoints: ArrayLike | None, horizon: int) -> IntArray:
    """Return checkpoints in increasing order, without duplicates, none beyond the horizon."""
    if checkpoints is None:
        return default_checkpoints(horizon)
    steps = _whole_numbers(checkpoints)
    if steps is None or steps.min() < 1 or steps.max() > horizon:
        raise InvalidInput.of("checkpoints", f"must be whole numbers from 1 to {horizon}, the horizon", checkpoints)
    return np.unique(steps)


def replication_numbers(replications: int | Sequence[int]) -> IntArray:
    """Return the numbers of the replications to play."""
    if not hasattr(replications, "__len__"):
        return np.arange(checks.whole_number("replications", replications, 1), dtype=np.int64)
    numbers = _whole_numbers(replications)
    if numbers is None or numbers.min() < 0 or np.unique(numbers).size != numbers.size:
        raise InvalidInput.of(
            "replications", "must be how many, or which: different whole numbers from 0", replications
        )
    return numbers


def _whole_numbers(values: Any) -> IntArray | None:
    """Return a one-dimensional array of integers, or None if the values are anything else."""
    try:
        array = np.atleast_1d(np.asarray(values))
    except ValueError:  # rows of different lengths
        return None
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iuf":
        return None
    # Floats such as 1e3 or those of numpy.geomspace(...).round() are whole numbers too.
    if array.dtype.kind == "f" and not (np.isfinite(array) & (array == np.rint(array))).all():
        return None
    return array.astype(np.int64) if array.min() >= -(2**63) and array.max() < 2**63 else None
