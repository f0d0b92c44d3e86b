"""A simulation's work, divided into one task per replication and policy that any thread may take."""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.runs import Runs
from equipoise.simulation.playing import Pace, play
from equipoise.simulation.replication import new_replication

if TYPE_CHECKING:
    from equipoise.arms import Arms
    from equipoise.arrays import IntArray
    from equipoise.policies import Policy


class Job:
    """Every policy in every replication, and the arrays they fill.

    Parameters
    ----------
    policies : tuple of Policy
    arms : Arms
    horizon, seed : int
    numbers : array (n_replications,)
        Which replications.
    checkpoints : array (n_checkpoints,)
    """

    def __init__(
        self,
        policies: tuple[Policy, ...],
        arms: Arms,
        horizon: int,
        seed: int,
        numbers: IntArray,
        checkpoints: IntArray,
    ) -> None:
        self._policies, self._arms, self._horizon, self._seed = policies, arms, horizon, seed
        self._numbers, self._checkpoints = numbers, checkpoints
        shape = (len(policies), numbers.size, checkpoints.size, arms.n_arms)
        self._pulls = np.zeros(shape, dtype=np.int64)
        self._mean, self._std, self._target = (np.full(shape, np.nan) for _ in range(3))
        self._finished = np.zeros((numbers.size, len(policies)), dtype=bool)
        # Replication by replication, so that an interrupted simulation has whole replications of all policies.
        self._tasks = itertools.product(range(numbers.size), range(len(policies)))
        self._paces = [Pace() for _ in policies]
        self._lock, self._stopped = threading.Lock(), threading.Event()
        self.n_tasks = self._finished.size
        self.steps_done = 0

    def work(self) -> None:
        """Take tasks and play them until there are none left, or `stop` is called; for any number of threads."""
        while not self._stopped.is_set():
            with self._lock:
                task = next(self._tasks, None)
            if task is None:
                return
            r, k = task
            outputs = (self._pulls[k, r], self._mean[k, r], self._std[k, r], self._target[k, r])
            replication = new_replication(self._arms, self._seed, int(self._numbers[r]), self._checkpoints, outputs)
            self._finished[r, k] = play(
                self._policies[k], replication, self._horizon, tick=self._tick, pace=self._paces[k]
            )

    def stop(self) -> None:
        """Let every thread stop within a tick."""
        self._stopped.set()

    def runs(self) -> Runs:
        """Return what happened in all replications."""
        return self._runs(slice(None))

    def finished_runs(self) -> Runs | None:
        """Return what happened in the replications finished for every policy, or None if there are none."""
        whole = self._finished.all(axis=1)
        return self._runs(whole) if whole.any() else None

    def _tick(self, count: int) -> bool:
        with self._lock:
            self.steps_done += count
        return not self._stopped.is_set()

    def _runs(self, places: Any) -> Runs:
        return Runs(
            policies=self._policies,
            horizon=self._horizon,
            seed=self._seed,
            arms=self._arms.to_dict(),
            true_mean=self._arms.mean,
            true_std=self._arms.std,
            replications=self._numbers[places],
            checkpoints=self._checkpoints,
            pulls=self._pulls[:, places],
            mean=self._mean[:, places],
            std=self._std[:, places],
            target=self._target[:, places],
            arm_names=self._arms.names,
        )
