"""One replication to be played: its place among all, the arena it is played in and the rows it fills."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard, TypeVar

import numpy as np

from equipoise.errors import InvalidInput
from equipoise.policies import NumbaPolicy, Policy
from equipoise.policies.compiled import CompiledPolicy
from equipoise.policies.numba_policy import checked_filler, explain
from equipoise.policies.policy import inherits
from equipoise.stats import ArmStats

if TYPE_CHECKING:
    from collections.abc import Callable

    from equipoise.arms import Arms

if TYPE_CHECKING:
    from collections.abc import Callable

    from equipoise._types import FloatArray, IntArray
    from equipoise.arms import Arms
    from equipoise.kernels.play import Arena

    Mover = Callable[[int], bool]
    """Plays up to a step; returns False if it needs something first, such as rewards that only Python can draw."""
    Outputs = tuple[IntArray, FloatArray, FloatArray, FloatArray]
    """Pulls, mean, std and target, one row per checkpoint."""


AnyArray = TypeVar("AnyArray", bound="np.ndarray[Any, Any]")


class Replication(NamedTuple):
    """All that decides how a replication goes, besides the policy."""

    arms: Arms
    seed: int
    number: int
    checkpoints: IntArray
    arena: Arena
    outputs: Outputs


def new_replication(arms: Arms, seed: int, number: int, checkpoints: IntArray, outputs: Outputs) -> Replication:
    """Return a replication before its first step."""
    from equipoise.kernels.play import new_arena

    arena = new_arena(*arms.drawing, buffered=_buffer_size(arms.n_arms, arms.drawing.kind))
    return Replication(arms, seed, number, checkpoints, arena, outputs)


def empty_replication(arms: Arms) -> Replication:
    """Return a replication without checkpoints, to be played for no steps."""
    counts, numbers = np.zeros((0, arms.n_arms), dtype=np.int64), np.zeros((0, arms.n_arms))
    return new_replication(arms, 0, 0, np.zeros(0, dtype=np.int64), (counts, numbers, numbers, numbers))


def read_only(array: AnyArray) -> AnyArray:
    """Return a view that shows what is in an array and refuses to change it: a policy looks at statistics only."""
    view = array.view()
    view.flags.writeable = False
    return view


def or_nan(target: FloatArray | None) -> FloatArray | float:
    """Return a target as it is recorded."""
    return np.nan if target is None else target


def _buffer_size(n_arms: int, kind: IntArray) -> int:
    """Return how many rewards per arm to make at a time: more for few arms, and where Python has to make them."""
    from equipoise.kernels.rewards import EXTERNAL

    if (kind == EXTERNAL).any():
        return 256
    size = 64
    while size > 4 and size * n_arms > 8192:
        size //= 2
    return size


# A replication is played in slices of about this many seconds, so that Ctrl-C is heard and progress seen between them.
SHORT_SLICE, LONG_SLICE = 0.02, 0.1
FIRST_SLICE_STEPS = 16


class Pace:
    """Steps to play between two ticks, learned from how long they take. Results do not depend on it."""

    def __init__(self) -> None:
        self.steps = FIRST_SLICE_STEPS

    def learn(self, seconds: float, *, whole: bool) -> None:
        """Take in how long a slice took; `whole` says that it was not cut short by the horizon."""
        if seconds > LONG_SLICE:
            self.steps = max(1, self.steps // 2)
        elif seconds < SHORT_SLICE and whole:
            self.steps *= 4


def play(policy: Policy, replication: Replication, horizon: int, *, tick: Callable[[int], bool], pace: Pace) -> bool:
    """Play one replication into its outputs; return False if `tick` said to stop."""
    move = mover(policy, replication)
    played = 0
    while played < horizon:
        started = time.perf_counter()
        until = min(horizon, played + pace.steps)
        while not move(until):
            _provide(policy, replication)
        pace.learn(time.perf_counter() - started, whole=until < horizon)
        if not tick(until - played):
            return False
        played = until
    return True


def compile_for(policy: Policy, arms: Arms) -> None:
    """Play no steps, so that what is to be compiled is compiled in the main thread, where Ctrl-C is heard at once."""
    mover(policy, empty_replication(arms))(0)


def mover(policy: Policy, replication: Replication) -> Mover:
    """Return the function that plays a replication up to a step; it returns False if it needs something first."""
    if isinstance(policy, CompiledPolicy) and policy.is_compiled:
        return built_in_mover(policy, replication)
    if is_compiled_by_user(policy):
        return user_mover(policy, replication)
    return python_mover(policy, replication)


def _provide(policy: Policy, replication: Replication) -> None:
    """Draw the rewards that the compiled loop waits for; if it waits for none, it was given no probabilities."""
    from equipoise.kernels.play import EMPTY, STEP

    arms, arena = replication.arms, replication.arena
    arm = int(arena.counters[EMPTY]) - 1
    if arm < 0:
        raise InvalidInput(
            f"the function of {policy!r} must fill {arms.n_arms} probabilities that add up to 1; "
            f"got {arena.score} at step {arena.counters[STEP] + 1}"
        )
    arms.fill(arm, replication.seed, replication.number, int(arena.pulls[arm]), arena.buffer[arm])


def built_in_mover(policy: Policy, replication: Replication) -> Mover:
    """Return a function that plays up to a step by the policy's rule."""
    from equipoise.kernels.play import advance

    arms, seed, number, checkpoints, arena, outputs = replication
    rule, per_arm = policy.rule(), policy.per_arm(arms.n_arms)  # type: ignore[attr-defined]

    def move(until: int) -> bool:
        return advance(rule, per_arm, seed, number, until, checkpoints, arena, *outputs)

    return move


def is_compiled_by_user(policy: Policy) -> TypeGuard[NumbaPolicy]:
    """Say whether the policy's function alone decides."""
    return isinstance(policy, NumbaPolicy) and inherits(policy, NumbaPolicy, ("prepare", "choose", "probabilities"))


def user_mover(policy: NumbaPolicy, replication: Replication) -> Mover:
    """Return a function that plays up to a step with a user's compiled function."""
    from equipoise.kernels.compiler import is_compiled
    from equipoise.kernels.play import CHECKPOINT, advance_with

    _, seed, number, checkpoints, arena, outputs = replication
    filler, parameters = checked_filler(policy), policy.parameters()
    if not is_compiled(filler):
        raise InvalidInput(
            f"filler of {type(policy).__name__} must return a function compiled by numba; got {filler!r}",
            hint="decorate it with @numba.njit, or write a Policy with a method `probabilities` instead",
        )

    def move(until: int) -> bool:
        try:
            return bool(advance_with(filler, parameters, seed, number, until, checkpoints, arena, *outputs))
        except Exception as error:
            explain(policy, error)
            raise

    if inherits(policy, Policy, ("target",)):
        return move
    stats = ArmStats(arena.pulls.size)  # a view of the arena
    stats.assigned = stats.pulls = read_only(arena.pulls)
    stats.mean, stats.std = read_only(arena.mean), read_only(arena.std)

    def move_with_targets(until: int) -> bool:
        while True:
            passed = int(arena.counters[CHECKPOINT])
            stop = min(until, int(checkpoints[passed])) if passed < checkpoints.size else until
            if not move(stop):
                return False
            if arena.counters[CHECKPOINT] > passed:
                stats.n_assigned = stop
                outputs[3][passed] = or_nan(policy.target(stats))
            if stop == until:
                return True

    return move_with_targets


def python_mover(policy: Policy, replication: Replication) -> Mover:
    """Return a function that plays up to a step by asking the policy in Python."""
    from equipoise.kernels.play import CHECKPOINT, STEP
    from equipoise.kernels.random import decision_uniform

    arms, seed, number, checkpoints, arena, outputs = replication
    stats, choose = ArmStats(arms.n_arms), policy.prepare(arms.n_arms)
    # A policy that writes into what it is shown must not change the run.
    shown, show = _guarded(stats, copied=isinstance(policy, CompiledPolicy | NumbaPolicy))
    counters, buffer = arena.counters, arena.buffer

    def move(until: int) -> bool:
        while counters[STEP] < until:
            arm = choose(shown, decision_uniform(seed, number, stats.n_assigned)).arm
            stats.assign(arm)
            place = int(stats.pulls[arm]) % buffer.shape[1]
            if place == 0:
                arms.fill(arm, seed, number, int(stats.pulls[arm]), buffer[arm])
            stats.update(arm, float(buffer[arm, place]))
            show()
            counters[STEP] += 1
            passed = int(counters[CHECKPOINT])
            if passed < checkpoints.size and counters[STEP] == checkpoints[passed]:
                row = (stats.pulls, stats.mean, stats.std, or_nan(policy.target(shown)))
                for output, value in zip(outputs, row, strict=True):
                    output[passed] = value
                counters[CHECKPOINT] += 1
        return True

    return move


def _guarded(stats: ArmStats, *, copied: bool) -> tuple[ArmStats, Callable[[], None]]:
    """Return statistics to show to a policy, and the function that brings them up to date.

    They are read-only views, or copies for compiled functions, which were compiled for arrays that can be written.
    """
    shown = ArmStats(stats.n_arms)
    names = ("assigned", "pulls", "mean", "std", "_sums")
    pairs = [(getattr(shown, name), getattr(stats, name)) for name in names]
    if not copied:
        for name in names:
            setattr(shown, name, read_only(getattr(stats, name)))

    def show() -> None:
        shown.n_assigned = stats.n_assigned
        if copied:
            for copy, original in pairs:
                copy[...] = original

    return shown, show
