"""Play one replication: the fastest way that a policy allows, in slices short enough to be interrupted."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from equipoise.errors import InvalidInput
from equipoise.policies.overriding import is_compiled
from equipoise.simulation.built_in import built_in_mover
from equipoise.simulation.compiled_by_user import is_compiled_by_user, user_mover
from equipoise.simulation.plain_python import python_mover
from equipoise.simulation.replication import empty_replication

if TYPE_CHECKING:
    from collections.abc import Callable

    from equipoise.arms import Arms
    from equipoise.policies import Policy
    from equipoise.simulation.replication import Mover, Replication

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
    if is_compiled(policy):
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
