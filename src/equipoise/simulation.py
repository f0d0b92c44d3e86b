"""Play policies on arms, many times: exact, fast, and the same for any number of workers  [Sect. 5]."""

from __future__ import annotations

import itertools
import os
import threading
import time
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise import checks
from equipoise.arms import Arms
from equipoise.errors import InvalidInput
from equipoise.policies import NumbaPolicy, Policy
from equipoise.policies.compiled import CompiledPolicy
from equipoise.policies.forcing_balance import ForcingBalance
from equipoise.progress import reporter
from equipoise.runs import Runs
from equipoise.separable import PowerObjective
from equipoise.stats import ArmStats

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from equipoise.arrays import FloatArray, IntArray
    from equipoise.kernels.play import Arena
    from equipoise.progress import Progress

    Mover = Callable[[int], bool]
    Outputs = tuple[IntArray, FloatArray, FloatArray, FloatArray]

LARGEST_HORIZON = 10**15

# A replication is played in slices of about this many seconds, so that Ctrl-C is heard and progress seen between them.
_SHORT_SLICE, _LONG_SLICE = 0.02, 0.1
_FIRST_SLICE_STEPS = 16


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
    checkpoints : array of int, optional
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
    array([0.0002, 0.0521])
    """
    values = _checked_policies(policies)
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

    shape = (len(values), numbers.size, steps.size, arms.n_arms)
    pulls = np.zeros(shape, dtype=np.int64)
    mean, std, target = (np.full(shape, np.nan) for _ in range(3))
    finished = np.zeros((numbers.size, len(values)), dtype=bool)
    # Replication by replication, so that an interrupted simulation has whole replications of all policies.
    tasks = itertools.product(range(numbers.size), range(len(values)))
    paces = [[_FIRST_SLICE_STEPS] for _ in values]
    done, lock, stop = 0, threading.Lock(), threading.Event()

    def tick(count: int) -> bool:
        nonlocal done
        with lock:
            done += count
        return not stop.is_set()

    def work() -> None:
        while not stop.is_set():
            with lock:
                task = next(tasks, None)
            if task is None:
                return
            r, k = task
            outputs = (pulls[k, r], mean[k, r], std[k, r], target[k, r])
            finished[r, k] = _play(
                values[k], arms, horizon, seed, int(numbers[r]), steps, outputs, tick=tick, pace=paces[k]
            )

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

    with report, ThreadPoolExecutor(n_workers) as pool:
        waiting: set[Future[None]] = set()
        try:
            for policy in values:
                _compile(policy, arms)
            waiting = {pool.submit(work) for _ in range(min(n_workers, finished.size))}
            while waiting:
                ended, waiting = wait(waiting, timeout=0.1, return_when=FIRST_EXCEPTION)
                report.show(done)
                for future in ended:
                    future.result()
        except BaseException as error:
            stop.set()
            wait(waiting)
            if isinstance(error, KeyboardInterrupt):
                whole = finished.all(axis=1)
                raise SimulationInterrupted(result(whole) if whole.any() else None) from None
            raise
    return result(slice(None))


def default_checkpoints(horizon: int) -> IntArray:
    """Return about 40 steps from 1 to the horizon, evenly spaced on a log scale.

    Examples
    --------
    >>> default_checkpoints(1000)[::6]
    array([   1,    7,   20,   59,  170,  492])
    """
    return np.unique(np.rint(np.geomspace(1, horizon, 40)).astype(np.int64))


def checked_checkpoints(checkpoints: ArrayLike | None, horizon: int) -> IntArray:
    """Return checkpoints in increasing order, each once, none beyond the horizon."""
    if checkpoints is None:
        return default_checkpoints(horizon)
    steps = _whole_numbers(checkpoints)
    if steps is None or steps.min() < 1 or steps.max() > horizon:
        raise InvalidInput(f"checkpoints must be whole numbers from 1 to {horizon}, the horizon; got {checkpoints!r}")
    return np.unique(steps)


def replication_numbers(replications: int | Sequence[int]) -> IntArray:
    """Return the numbers of the replications to play."""
    if not hasattr(replications, "__len__"):
        return np.arange(checks.whole_number("replications", replications, 1), dtype=np.int64)
    numbers = _whole_numbers(replications)
    if numbers is None or numbers.min() < 0 or np.unique(numbers).size != numbers.size:
        raise InvalidInput(
            f"replications must be how many, or which: different whole numbers from 0; got {replications!r}"
        )
    return numbers


def available_processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _checked_policies(policies: Any) -> tuple[Policy, ...]:
    values = (policies,) if isinstance(policies, Policy) or not hasattr(policies, "__iter__") else tuple(policies)
    if not values or not all(isinstance(policy, Policy) for policy in values):
        raise InvalidInput(f"policies must be policies such as ForcingBalance(reward_weight=0.9); got {policies!r}")
    return values


def _whole_numbers(values: Any) -> IntArray | None:
    """Return a one-dimensional array of integers, or None if that is not what the values are."""
    try:
        array = np.atleast_1d(np.asarray(values))
    except ValueError:  # rows of different lengths
        return None
    whole = array.ndim == 1 and array.size > 0 and np.issubdtype(array.dtype, np.integer)
    return array.astype(np.int64) if whole and array.max() < 2**63 else None


def _play(
    policy: Policy,
    arms: Arms,
    horizon: int,
    seed: int,
    replication: int,
    checkpoints: IntArray,
    outputs: Outputs,
    *,
    tick: Callable[[int], bool],
    pace: list[int],
) -> bool:
    """Play one replication into the outputs; return False if `tick` said to stop.

    `pace` holds the steps to play between two ticks, learned from how long they take. Results do not depend on it.
    """
    from equipoise.kernels.play import EMPTY, STEP

    arena = _new_arena(arms)
    move = _mover(policy, arms, seed, replication, checkpoints, arena, outputs)
    played = 0
    while played < horizon:
        started = time.perf_counter()
        until = min(horizon, played + pace[0])
        while not move(until):
            arm = int(arena.counters[EMPTY]) - 1
            if arm < 0:
                raise InvalidInput(
                    f"the function of {policy!r} must fill {arms.n_arms} probabilities that add up to 1; "
                    f"got {arena.score} at step {arena.counters[STEP] + 1}"
                )
            arms.fill(arm, seed, replication, int(arena.pulls[arm]), arena.buffer[arm])
        spent = time.perf_counter() - started
        if spent > _LONG_SLICE:
            pace[0] = max(1, pace[0] // 2)
        elif spent < _SHORT_SLICE and until < horizon:
            pace[0] *= 4
        if not tick(until - played):
            return False
        played = until
    return True


def _new_arena(arms: Arms) -> Arena:
    from equipoise.kernels.play import new_arena

    return new_arena(*arms.drawing, buffered=_buffer_size(arms.n_arms, arms.drawing.kind))


def _compile(policy: Policy, arms: Arms) -> None:
    """Play no steps, so that what is to be compiled is compiled in the main thread, where Ctrl-C is heard at once."""
    counts, numbers = np.zeros((0, arms.n_arms), dtype=np.int64), np.zeros((0, arms.n_arms))
    outputs = (counts, numbers, numbers, numbers)
    _mover(policy, arms, 0, 0, np.zeros(0, dtype=np.int64), _new_arena(arms), outputs)(0)


def _mover(
    policy: Policy,
    arms: Arms,
    seed: int,
    replication: int,
    checkpoints: IntArray,
    arena: Arena,
    outputs: Outputs,
) -> Mover:
    """Return the function that plays one replication up to a step; it returns False if it needs something first."""
    if is_compiled(policy):
        from equipoise.kernels.play import advance

        rule, per_arm = policy.rule(), policy.per_arm(arms.n_arms)  # type: ignore[attr-defined]

        def move(until: int) -> bool:
            return advance(rule, per_arm, seed, replication, until, checkpoints, arena, *outputs)

        return move
    if isinstance(policy, NumbaPolicy) and _keeps(policy, NumbaPolicy, ("prepare", "choose", "probabilities")):
        return _numba_mover(policy, seed, replication, checkpoints, arena, outputs)
    return _python_mover(policy, arms, seed, replication, checkpoints, arena, outputs)


def is_compiled(policy: Policy) -> bool:
    """Say whether the compiled loop knows the policy's rule; not so for an objective or a method written in Python."""
    if isinstance(policy, ForcingBalance) and not isinstance(policy.objective, PowerObjective):
        return False
    kind = ForcingBalance if isinstance(policy, ForcingBalance) else CompiledPolicy
    return isinstance(policy, kind) and _keeps(
        policy, kind, ("prepare", "choose", "probabilities", "target", "_decider")
    )


def _keeps(policy: Policy, kind: type, methods: tuple[str, ...]) -> bool:
    """Say whether a policy's class left the methods as they are in `kind`."""
    return all(getattr(type(policy), method) is getattr(kind, method) for method in methods)


def _buffer_size(n_arms: int, kind: IntArray) -> int:
    """Return how many rewards per arm to make at a time: more for few arms, and where Python has to make them."""
    from equipoise.kernels.rewards import EXTERNAL

    if (kind == EXTERNAL).any():
        return 256
    size = 64
    while size > 4 and size * n_arms > 8192:
        size //= 2
    return size


def _numba_mover(
    policy: NumbaPolicy, seed: int, replication: int, checkpoints: IntArray, arena: Arena, outputs: Outputs
) -> Mover:
    """Return a function that plays up to a step with a user's compiled function."""
    from equipoise.kernels.play import CHECKPOINT
    from equipoise.kernels.play_with import advance_with, is_compiled

    filler, parameters = policy.filler(), policy.parameters()
    if not is_compiled(filler):
        raise InvalidInput(
            f"filler of {type(policy).__name__} must return a function compiled by numba; got {filler!r}",
            hint="decorate it with @numba.njit, or write a Policy with a method `probabilities` instead",
        )

    def move(until: int) -> bool:
        return bool(advance_with(filler, parameters, seed, replication, until, checkpoints, arena, *outputs))

    if _keeps(policy, Policy, ("target",)):
        return move
    stats = ArmStats(arena.pulls.size)  # a view of the arena
    stats.assigned, stats.pulls, stats.mean, stats.std = arena.pulls, arena.pulls, arena.mean, arena.std

    def move_with_targets(until: int) -> bool:
        while True:
            passed = int(arena.counters[CHECKPOINT])
            stop = min(until, int(checkpoints[passed])) if passed < checkpoints.size else until
            if not move(stop):
                return False
            if arena.counters[CHECKPOINT] > passed:
                stats.n_assigned = stop
                outputs[3][passed] = _or_nan(policy.target(stats))
            if stop == until:
                return True

    return move_with_targets


def _python_mover(
    policy: Policy,
    arms: Arms,
    seed: int,
    replication: int,
    checkpoints: IntArray,
    arena: Arena,
    outputs: Outputs,
) -> Mover:
    """Return a function that plays up to a step by asking the policy in Python."""
    from equipoise.kernels.play import CHECKPOINT, STEP
    from equipoise.kernels.random import decision_uniform

    stats, choose = ArmStats(arms.n_arms), policy.prepare(arms.n_arms)
    counters, buffer = arena.counters, arena.buffer

    def move(until: int) -> bool:
        while counters[STEP] < until:
            arm = choose(stats, decision_uniform(seed, replication, stats.n_assigned)).arm
            stats.assign(arm)
            place = int(stats.pulls[arm]) % buffer.shape[1]
            if place == 0:
                arms.fill(arm, seed, replication, int(stats.pulls[arm]), buffer[arm])
            stats.update(arm, float(buffer[arm, place]))
            counters[STEP] += 1
            passed = int(counters[CHECKPOINT])
            if passed < checkpoints.size and counters[STEP] == checkpoints[passed]:
                row = (stats.pulls, stats.mean, stats.std, _or_nan(policy.target(stats)))
                for output, value in zip(outputs, row, strict=True):
                    output[passed] = value
                counters[CHECKPOINT] += 1
        return True

    return move


def _or_nan(target: FloatArray | None) -> FloatArray | float:
    return np.nan if target is None else target
