"""Play policies on arms, many times: exact, fast, and the same for any number of workers  [Sect. 5]."""

from __future__ import annotations

import os
import threading
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise import checks
from equipoise.arms import Arms
from equipoise.errors import InvalidInput
from equipoise.policies import NumbaPolicy, Policy
from equipoise.policies.compiled import CompiledPolicy
from equipoise.policies.forcing_balance import ForcingBalance
from equipoise.runs import Runs
from equipoise.separable import PowerObjective
from equipoise.stats import ArmStats

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from equipoise.arrays import IntArray
    from equipoise.kernels.play import Arena

    Progress = Callable[[int, int], None]

# About this many arm updates between two looks at the clock and at Ctrl-C: some hundredths of a second.
_SLICE = 2_000_000
_PYTHON_SLICE = 500


class SimulationInterrupted(KeyboardInterrupt):
    """Ctrl-C stopped a simulation; `runs` holds the replications that were finished for every policy, or None."""

    def __init__(self, runs: Runs | None) -> None:
        super().__init__("the simulation was interrupted")
        self.runs = runs


def simulate(
    policies: Policy | Sequence[Policy],
    arms: Arms,
    horizon: int,
    replications: int | range = 1,
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
    replications : int or range
        How many, or which: `range(100, 200)` gives the second hundred of 200, wherever it is computed.
    seed : int
    checkpoints : array of int, optional
        Steps after which pulls, estimates and targets are recorded; about 40 spaced evenly on a log scale by default.
    workers : int, optional
        Threads; as many as there are processors by default. Results do not depend on it.
    progress : bool or callable, optional
        True shows a bar; a function is called with (steps done, steps in all).

    Returns
    -------
    Runs

    Examples
    --------
    >>> import equipoise as eq
    >>> arms = eq.Gaussian(mean=[1, 2], std=[1, 1])
    >>> policies = [eq.ForcingBalance(reward_weight=0.5), eq.Uniform()]
    >>> runs = simulate(policies, arms, horizon=1000, replications=20, seed=1)
    >>> runs.regret(reward_weight=0.5)[:, :, -1].mean(axis=1).round(4)
    array([0.0002, 0.0521])
    """
    values = (policies,) if isinstance(policies, Policy) else tuple(policies)
    if not values or not all(isinstance(policy, Policy) for policy in values):
        raise InvalidInput(f"policies must be policies such as ForcingBalance(reward_weight=0.9); got {policies!r}")
    if not isinstance(arms, Arms):
        raise InvalidInput(f"arms must be Arms such as Gaussian(mean=[1, 2], std=[1, 1]); got {arms!r}")
    for policy in values:
        policy.check_arms(arms.n_arms)
    horizon = checks.whole_number("horizon", horizon, 1, 10**15)
    numbers = replication_numbers(replications)
    seed = checks.whole_number("seed", seed, 0, 2**63 - 1)
    steps = checked_checkpoints(checkpoints, horizon)
    shape = (len(values), numbers.size, steps.size, arms.n_arms)
    pulls = np.zeros(shape, dtype=np.int64)
    mean, std, target = (np.full(shape, np.nan) for _ in range(3))
    finished = np.zeros((len(values), numbers.size), dtype=bool)
    stop = threading.Event()
    total, done, lock = horizon * numbers.size * len(values), [0], threading.Lock()
    report = _reporter(progress, total)

    def tick(count: int) -> bool:
        with lock:
            done[0] += count
        return not stop.is_set()

    def task(k: int, r: int) -> None:
        outputs = (pulls[k, r], mean[k, r], std[k, r], target[k, r])
        finished[k, r] = _play(values[k], arms, horizon, seed, int(numbers[r]), steps, outputs, tick)

    def result(places: Any) -> Runs:
        return Runs(
            policies=values,
            horizon=horizon,
            seed=seed,
            arms=arms.to_dict(),
            true_mean=arms.mean,
            true_std=arms.std,
            replications=numbers[places],
            checkpoints=steps,
            pulls=pulls[:, places],
            mean=mean[:, places],
            std=std[:, places],
            target=target[:, places],
        )

    n_workers = (os.cpu_count() or 1) if workers is None else checks.whole_number("workers", workers, 1)
    with report, ThreadPoolExecutor(n_workers) as pool:
        # Replication by replication, so that an interrupted simulation has whole replications of all policies.
        waiting = {pool.submit(task, k, r) for r in range(numbers.size) for k in range(len(values))}
        try:
            while waiting:
                ended, waiting = wait(waiting, timeout=0.1, return_when=FIRST_EXCEPTION)
                report.show(done[0])
                for future in ended:
                    future.result()
        except BaseException as error:
            stop.set()
            for future in waiting:
                future.cancel()
            wait(waiting)
            if isinstance(error, KeyboardInterrupt):
                whole = finished.all(axis=0)
                raise SimulationInterrupted(result(whole) if whole.any() else None) from None
            raise
    return result(slice(None))


def default_checkpoints(horizon: int) -> IntArray:
    """Return about 40 steps from 1 to the horizon, evenly spaced on a log scale."""
    return np.unique(np.rint(np.geomspace(1, horizon, 40)).astype(np.int64))


def checked_checkpoints(checkpoints: ArrayLike | None, horizon: int) -> IntArray:
    """Return checkpoints in increasing order, none beyond the horizon."""
    if checkpoints is None:
        return default_checkpoints(horizon)
    steps = np.atleast_1d(np.asarray(checkpoints))
    whole = steps.ndim == 1 and steps.size > 0 and np.issubdtype(steps.dtype, np.integer)
    if not whole or steps.min() < 1 or steps.max() > horizon:
        raise InvalidInput(f"checkpoints must be whole numbers from 1 to {horizon}; got {checkpoints!r}")
    return np.unique(steps).astype(np.int64)


def replication_numbers(replications: int | range) -> IntArray:
    """Return the numbers of the replications to play."""
    if isinstance(replications, range):
        if len(replications) == 0 or min(replications) < 0:
            raise InvalidInput(f"replications must be a range of numbers from 0; got {replications!r}")
        return np.array(replications, dtype=np.int64)
    return np.arange(checks.whole_number("replications", replications, 1), dtype=np.int64)


def _play(
    policy: Policy,
    arms: Arms,
    horizon: int,
    seed: int,
    replication: int,
    checkpoints: IntArray,
    outputs: tuple[Any, ...],
    tick: Callable[[int], bool],
) -> bool:
    """Play one replication into the outputs; return False if `tick` said to stop."""
    from equipoise.kernels.play import EMPTY, STEP, advance, new_arena

    drawing = arms.drawing()
    arena = new_arena(*drawing, buffered=_buffer_size(arms.n_arms, drawing.kind))
    move: Callable[[int], bool]
    slice_steps = max(100, _SLICE // arms.n_arms)
    if _is_compiled(policy):
        rule, per_arm = policy.rule(), policy.per_arm(arms.n_arms)  # type: ignore[attr-defined]

        def move(until: int) -> bool:
            return advance(rule, per_arm, seed, replication, until, checkpoints, arena, *outputs)
    elif isinstance(policy, NumbaPolicy):
        from equipoise.kernels.play_with import advance_with

        filler, parameters = policy.filler(), policy.parameters()

        def move(until: int) -> bool:
            return bool(advance_with(filler, parameters, seed, replication, until, checkpoints, arena, *outputs))
    else:
        slice_steps = _PYTHON_SLICE
        move = _python_player(policy, arms, seed, replication, checkpoints, arena, outputs)

    while arena.counters[STEP] < horizon:
        before = int(arena.counters[STEP])
        while not move(min(horizon, before + slice_steps)):
            arm = int(arena.counters[EMPTY]) - 1
            arms.fill(arm, seed, replication, int(arena.pulls[arm]), arena.buffer[arm])
        if not tick(int(arena.counters[STEP]) - before):
            return False
    return True


def _is_compiled(policy: Policy) -> bool:
    """Say whether the compiled loop knows the policy's rule; not so for an objective written in Python."""
    if isinstance(policy, ForcingBalance):
        return isinstance(policy.objective, PowerObjective)
    return isinstance(policy, CompiledPolicy)


def _buffer_size(n_arms: int, kind: IntArray) -> int:
    """Return how many rewards per arm to make at a time: more for few arms, and where Python has to make them."""
    from equipoise.kernels.rewards import EXTERNAL

    if (kind == EXTERNAL).any():
        return 256
    size = 64
    while size > 4 and size * n_arms > 8192:
        size //= 2
    return size


def _python_player(
    policy: Policy,
    arms: Arms,
    seed: int,
    replication: int,
    checkpoints: IntArray,
    arena: Arena,
    outputs: tuple[Any, ...],
) -> Callable[[int], bool]:
    """Return a function that plays up to a step by asking the policy in Python."""
    from equipoise.kernels.play import CHECKPOINT, STEP
    from equipoise.kernels.random import decision_uniform

    stats, choose = ArmStats(arms.n_arms), policy.prepare(arms.n_arms)
    counters, buffer = arena.counters, arena.buffer

    def move(until: int) -> bool:
        while counters[STEP] < until:
            arm = choose(stats, decision_uniform(seed, replication, stats.n_assigned)).arm
            place = int(stats.pulls[arm]) % buffer.shape[1]
            if place == 0:
                arms.fill(arm, seed, replication, int(stats.pulls[arm]), buffer[arm])
            stats.assign(arm)
            stats.update(arm, float(buffer[arm, place]))
            counters[STEP] += 1
            passed = counters[CHECKPOINT]
            if passed < checkpoints.size and counters[STEP] == checkpoints[passed]:
                wanted = policy.target(stats)
                row = (stats.pulls, stats.mean, stats.std, np.nan if wanted is None else wanted)
                for output, value in zip(outputs, row, strict=True):
                    output[passed] = value
                counters[CHECKPOINT] += 1
        return True

    return move


class _Silent:
    """Progress that nobody wants to see."""

    def __enter__(self) -> None: ...
    def __exit__(self, *details: object) -> None: ...
    def show(self, done: int) -> None:
        """Show nothing."""


class _Called(_Silent):
    """Progress told to a function."""

    def __init__(self, function: Progress, total: int) -> None:
        self.function, self.total = function, total

    def show(self, done: int) -> None:
        """Call the function."""
        self.function(done, self.total)


def _reporter(progress: Progress | bool | None, total: int) -> Any:
    if progress is None or progress is False:
        return _Silent()
    if progress is True:
        from equipoise.progress import StepBar

        return StepBar(total)
    return _Called(progress, total)
