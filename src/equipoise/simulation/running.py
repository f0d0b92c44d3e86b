"""Simulate: play all replications on threads, show how far it is, and keep what is finished on Ctrl-C."""

from __future__ import annotations

import os
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

from equipoise import checks
from equipoise.arms import Arms
from equipoise.errors import InvalidInput
from equipoise.progress import reporter
from equipoise.simulation.inputs import (
    LARGEST_HORIZON,
    checked_checkpoints,
    checked_policies,
    replication_numbers,
)
from equipoise.simulation.job import Job
from equipoise.simulation.playing import compile_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from equipoise.policies import Policy
    from equipoise.progress import Progress
    from equipoise.runs import Runs


class SimulationInterrupted(KeyboardInterrupt):
    """Ctrl-C stopped a simulation; `runs` holds the replications that were finished for every policy, or None."""

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
    """Play every policy on the arms and return what happened.

    Parameters
    ----------
    policies : Policy or sequence of Policy
        Any policies, built in or your own. Those in plain Python work too, only slower.
    arms : Arms
        What rewards are drawn from. The s-th reward of arm i in replication r is the same for every policy.
    horizon : int
        Pulls per replication.
    replications : int or sequence of int
        How many, or which: `range(100, 200)` gives the second hundred of 200, wherever it is computed.
    seed : int
        Which rewards and random decisions: with the number of the replication it determines all of them.
    checkpoints : array of whole numbers, optional
        Steps after which pulls, estimates and targets are recorded; about 40 spaced evenly on a log scale by default.
    workers : int, optional
        Threads; as many as there are processors by default. Results do not depend on it.
    progress : bool or callable, optional
        True shows a bar; a function is called with (steps done, steps in all) every tenth of a second and at the end.

    Returns
    -------
    Runs

    Raises
    ------
    SimulationInterrupted
        On Ctrl-C, with the replications finished by then.

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
        raise InvalidInput(f"arms must be Arms such as Gaussian(mean=[1, 2], std=[1, 1]); got {arms!r}")
    for policy in values:
        policy.check_arms(arms.n_arms)
    horizon = checks.whole_number("horizon", horizon, 1, LARGEST_HORIZON)
    numbers = replication_numbers(replications)
    seed = checks.whole_number("seed", seed, 0, 2**63 - 1)
    steps = checked_checkpoints(checkpoints, horizon)
    n_workers = available_processors() if workers is None else checks.whole_number("workers", workers, 1)
    report = reporter(progress, horizon * numbers.size * len(values))
    job = Job(values, arms, horizon, seed, numbers, steps)

    with report, ThreadPoolExecutor(n_workers) as pool:
        waiting: set[Future[None]] = set()
        try:
            for policy in values:
                compile_for(policy, arms)
            waiting = {pool.submit(job.work) for _ in range(min(n_workers, job.n_tasks))}
            while waiting:
                ended, waiting = wait(waiting, timeout=0.1, return_when=FIRST_EXCEPTION)
                report.show(job.steps_done)
                for future in ended:
                    future.result()
        except BaseException as error:
            job.stop()
            wait(waiting)
            if isinstance(error, KeyboardInterrupt):
                raise SimulationInterrupted(job.finished_runs()) from None
            raise
    return job.runs()


def available_processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
