"""Play one replication: in the compiled loop by a policy's rule or a user's compiled function, or in Python."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from equipoise._types import FloatArray, IntArray
from equipoise.errors import InvalidInput
from equipoise.policies import NumbaPolicy, Policy
from equipoise.policies.compiled import CompiledPolicy, checked_filler, explain
from equipoise.policies.policy import inherits
from equipoise.stats import ArmStats

if TYPE_CHECKING:
    from equipoise.arms import Arms
    from equipoise.kernels.play import Arena

Mover = Callable[[int], bool]
"""Plays up to a step; returns False if it needs something first, such as rewards that only Python can draw."""


class Replication(NamedTuple):
    """Everything besides the policy that determines a replication, and its progress."""

    arms: Arms
    seed: int
    number: int
    checkpoints: IntArray
    arena: Arena
    outputs: tuple[IntArray, FloatArray, FloatArray, FloatArray]
    """Pulls, mean, std and target, one row per checkpoint."""


def new_arena(arms: Arms) -> Arena:
    """Return an arena before the first step.

    With few arms, and where Python has to draw rewards, more of them are drawn at a time.
    """
    from equipoise.kernels import play, rewards

    buffered = 64
    while buffered > 4 and buffered * arms.n_arms > 8192:
        buffered //= 2
    if (arms.drawing.kind == rewards.EXTERNAL).any():
        buffered = 256
    return play.new_arena(*arms.drawing, buffered=buffered)


# A replication is played in slices of about this many seconds, with Ctrl-C and progress handled in between.
SHORT_SLICE, LONG_SLICE = 0.02, 0.1
FIRST_SLICE_STEPS = 16


class Pace:
    """Steps to play between two ticks, adapted to how long they take. Results do not depend on it."""

    def __init__(self) -> None:
        self.steps = FIRST_SLICE_STEPS

    def learn(self, seconds: float, *, whole: bool) -> None:
        """Record how long a slice took; `whole` means that the horizon did not cut it short."""
        if seconds > LONG_SLICE:
            self.steps = max(1, self.steps // 2)
        elif seconds < SHORT_SLICE and whole:
            self.steps *= 4


def play(policy: Policy, replication: Replication, horizon: int, *, tick: Callable[[int], bool], pace: Pace) -> bool:
    """Play one replication into its outputs; return False if `tick` asked to stop."""
    move = mover(policy, replication)
    played = 0
    while played < horizon:
        started = time.perf_counter()
        until = min(horizon, played + pace.steps)
        while not move(until):
            _draw_rewards(policy, replication)
        pace.learn(time.perf_counter() - started, whole=until < horizon)
        if not tick(until - played):
            return False
        played = until
    return True


def mover(policy: Policy, replication: Replication) -> Mover:
    """Return the function that plays a replication up to a step; called with 0, it only compiles what it needs."""
    if isinstance(policy, CompiledPolicy) and policy.is_compiled and not policy.weighs_rewards:
        from equipoise.kernels.play import advance

        arms, seed, number, checkpoints, arena, outputs = replication
        return partial(advance, policy.rule(), policy.per_arm(arms.n_arms), seed, number, checkpoints, arena, *outputs)
    if isinstance(policy, NumbaPolicy) and inherits(policy, NumbaPolicy, ("prepare", "choose", "probabilities")):
        return _user_mover(policy, replication)
    return _python_mover(policy, replication)


def _draw_rewards(policy: Policy, replication: Replication) -> None:
    """Draw the rewards the compiled loop waits for; if it waits for none, raise: the probabilities are invalid."""
    from equipoise.kernels.play import EMPTY, STEP

    arms, arena = replication.arms, replication.arena
    arm = int(arena.counters[EMPTY]) - 1
    if arm < 0:
        raise InvalidInput(
            f"the function of {policy!r} must fill {arms.n_arms} probabilities that add up to 1; "
            f"got {arena.score} at step {arena.counters[STEP] + 1}"
        )
    arms.fill(arm, replication.seed, replication.number, int(arena.pulls[arm]), arena.buffer[arm])


def _user_mover(policy: NumbaPolicy, replication: Replication) -> Mover:
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
            return bool(advance_with(filler, parameters, seed, number, checkpoints, arena, *outputs, until))
        except Exception as error:
            explain(policy, error)
            raise

    if inherits(policy, Policy, ("target",)):
        return move
    stats = ArmStats(arena.pulls.size)  # a view of the arena
    stats.assigned = stats.pulls = _read_only(arena.pulls)
    stats.mean, stats.std = _read_only(arena.mean), _read_only(arena.std)

    def move_with_targets(until: int) -> bool:
        while True:
            passed = int(arena.counters[CHECKPOINT])
            stop = min(until, int(checkpoints[passed])) if passed < checkpoints.size else until
            if not move(stop):
                return False
            if arena.counters[CHECKPOINT] > passed:
                stats.n_assigned = stop
                outputs[3][passed] = _recorded(policy.target(stats))
            if stop == until:
                return True

    return move_with_targets


def _python_mover(policy: Policy, replication: Replication) -> Mover:
    """Return a function that plays up to a step by calling the policy in Python."""
    from equipoise.kernels.play import CHECKPOINT, STEP
    from equipoise.kernels.random import decision_uniform

    arms, seed, number, checkpoints, arena, outputs = replication
    weighted = policy.weighs_rewards
    stats, choose = ArmStats(arms.n_arms, weighted=weighted), policy.prepare(arms.n_arms)
    # A policy that writes into its input must not change the run: it gets read-only views, or copies if it calls
    # compiled functions, which were compiled for writable arrays.
    shown, names = ArmStats(arms.n_arms, weighted=weighted), ["assigned", "pulls", "mean", "std", "_sums"]
    if weighted:
        names.append("_drift")
    copies = []
    if isinstance(policy, CompiledPolicy | NumbaPolicy):
        copies = [(getattr(shown, name), getattr(stats, name)) for name in names]
    else:
        for name in names:
            setattr(shown, name, _read_only(getattr(stats, name)))
    counters, buffer = arena.counters, arena.buffer

    def move(until: int) -> bool:
        while counters[STEP] < until:
            step = stats.n_assigned
            arm, probability, _ = choose(shown, decision_uniform(seed, number, step))
            stats.assign(arm)
            place = int(stats.pulls[arm]) % buffer.shape[1]
            if place == 0:
                arms.fill(arm, seed, number, int(stats.pulls[arm]), buffer[arm])
            stats.update(arm, float(buffer[arm, place]), probability=probability, number=step)
            shown.n_assigned = stats.n_assigned
            for copy, original in copies:
                copy[...] = original
            counters[STEP] += 1
            passed = int(counters[CHECKPOINT])
            if passed < checkpoints.size and counters[STEP] == checkpoints[passed]:
                row = (stats.pulls, stats.mean, stats.std, _recorded(policy.target(shown)))
                for output, value in zip(outputs, row, strict=True):
                    output[passed] = value
                counters[CHECKPOINT] += 1
        return True

    return move


def _read_only(array: Any) -> Any:
    view = array.view()
    view.flags.writeable = False
    return view


def _recorded(target: FloatArray | None) -> FloatArray | float:
    return np.nan if target is None else target
