"""Play a `NumbaPolicy`: the compiled loop calls the function that a user compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

from equipoise.errors import InvalidInput
from equipoise.policies import NumbaPolicy, Policy
from equipoise.policies.numba_policy import checked_filler, explain
from equipoise.policies.overriding import keeps
from equipoise.simulation.replication import or_nan, read_only
from equipoise.stats import ArmStats

if TYPE_CHECKING:
    from equipoise.simulation.replication import Mover, Replication


def is_compiled_by_user(policy: Policy) -> TypeGuard[NumbaPolicy]:
    """Say whether the policy's function alone decides."""
    return isinstance(policy, NumbaPolicy) and keeps(policy, NumbaPolicy, ("prepare", "choose", "probabilities"))


def user_mover(policy: NumbaPolicy, replication: Replication) -> Mover:
    """Return a function that plays up to a step with a user's compiled function."""
    from equipoise.kernels.play import CHECKPOINT
    from equipoise.kernels.play_with import advance_with, is_compiled

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

    if keeps(policy, Policy, ("target",)):
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
