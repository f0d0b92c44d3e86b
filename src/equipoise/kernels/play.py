"""Play one replication of one policy in compiled code, with the same decisions as `Bandit.ask` and `tell`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from equipoise._types import FloatArray, IntArray
from equipoise.kernels.compiler import approximate_inlined, compiled, compiled_for_caller, inlined
from equipoise.kernels.decision import (
    RANDOM,
    WORK_ROWS,
    decide,
    draw,
    has_growing_window,
    is_forced,
    window_at,
    write_target,
)
from equipoise.kernels.incremental_information import MOST_KEPT, MOST_KEPT_BY_RATIO, change_keeping, start_keeping
from equipoise.kernels.incremental_information import SCALARS as INFORMATION_SCALARS
from equipoise.kernels.incremental_pooling import ROWS as POOLING_ROWS
from equipoise.kernels.incremental_pooling import SCALARS as POOLING_SCALARS
from equipoise.kernels.incremental_pooling import begin, count_pull, learn, next_pull
from equipoise.kernels.incremental_solver import COUNT, SCALARS, SCORE, SCRATCH, SHARE, change, start
from equipoise.kernels.incremental_solver import ROWS as INCREMENTAL_ROWS
from equipoise.kernels.moments import SUM_ROWS, add_reward
from equipoise.kernels.pooling import LOST, expected_squares
from equipoise.kernels.random import decision_uniform
from equipoise.kernels.rewards import EXTERNAL, fill_rewards
from equipoise.kernels.rules import (
    AVERAGE,
    BALANCE,
    DIFFERENCE,
    FLOOR,
    IMPORTANCE,
    POOLED_BALANCE,
    RATIO,
    SAMPLE,
    STATED_WEIGHT,
    UNIFORM,
    WINDOWED,
    Rule,
)

STEP, FEWEST, WARM, CHECKPOINT, EMPTY, STRICT = 0, 1, 2, 3, 4, 5
COUNTERS = 6
"""Steps played, arm with the fewest pulls, whether what is kept is up to date, checkpoints passed, arm out of rewards,
steps decided by the strict rule."""

# Incremental shares and those of a solve from scratch both add up to 1 within some 1e-14 and all move the same way with
# the level, so none differs by more; the tests find 1e-14. Scores further apart than this sort the same way in both.
# Closer ones are decided by a solve from scratch, as `Bandit` always does.
_MARGIN = 1e-12
_FEW = 16


class Arena(NamedTuple):
    """The arms of a simulation and its progress: arrays that `advance` reads and writes."""

    kind: IntArray
    shape: FloatArray
    pool: FloatArray
    buffer: FloatArray
    pulls: IntArray
    mean: FloatArray
    std: FloatArray
    sums: FloatArray
    work: FloatArray
    state: FloatArray
    scalars: FloatArray
    score: FloatArray
    pooled: FloatArray
    pooled_scalars: FloatArray
    counters: IntArray


def new_arena(kind: IntArray, shape: FloatArray, pool: FloatArray, buffered: int) -> Arena:
    """Return an arena before the first step; `buffered`, a power of 2, is how many rewards are drawn at a time."""
    n = kind.size
    return Arena(
        kind=kind,
        shape=shape,
        pool=pool,
        buffer=np.empty((n, buffered)),
        pulls=np.zeros(n, dtype=np.int64),
        mean=np.full(n, np.nan),
        std=np.full(n, np.nan),
        sums=np.zeros((SUM_ROWS, n)),
        work=np.empty((WORK_ROWS, n)),
        state=np.zeros((INCREMENTAL_ROWS, n)),
        scalars=np.empty(max(SCALARS, INFORMATION_SCALARS)),
        score=np.empty(n),
        pooled=np.empty((POOLING_ROWS, n)),
        pooled_scalars=np.empty(POOLING_SCALARS),
        counters=np.zeros(COUNTERS, dtype=np.int64),
    )


@approximate_inlined
def _clear_winner(score: FloatArray, bits: IntArray) -> int:
    """Return the arm with the largest score (all are positive), or -1 if the best two are too close to call."""
    n = score.size
    if n <= _FEW:
        arm, best, second = 0, 0.0, 0.0
        for i in range(n):
            if score[i] > best:
                arm, best, second = i, score[i], best
            elif score[i] > second:
                second = score[i]
        return arm if second < best - _MARGIN * best else -1
    # Compilers vectorise the maximum of integers, not of floats; the bits of positive floats sort like the floats.
    largest = bits[0]
    for i in range(n):
        largest = bits[i] if bits[i] > largest else largest
    first = bits[0]
    bits[0] = largest
    bar = score[0] * (1.0 - _MARGIN)
    bits[0] = first
    near, arm = 0, 0
    for i in range(n):
        near += 1 if score[i] >= bar else 0
        arm += i if score[i] >= bar else 0
    return arm if near == 1 else -1


@approximate_inlined
def _clear_draw(t: int, window: float, mixing: float, uniform: float, state: FloatArray) -> int:
    """Return the arm that windowed tracking of the kept shares draws, or -1 if the number falls too close to a border.

    See `track` and `draw` in `kernels.decision`.
    """
    n, steps = state.shape[1], t - 1 + window
    total = 0.0
    for i in range(n):
        lack = steps * state[SHARE, i] - state[COUNT, i]
        lack = lack if lack > 0.0 else 0.0
        state[SCRATCH, i] = lack
        total += lack
    even, per_lack = mixing / n, (1.0 - mixing) / total
    # What arms lack may be wrong by the margin of the shares, times the steps; the sums of both kernels by rounding.
    margin = _MARGIN * (1.0 + 4.0 * steps * per_lack)
    below, arm = 0.0, 0
    while arm < n - 1:
        above = below + even + per_lack * state[SCRATCH, arm]
        if above > uniform:
            break
        below = above
        arm += 1
    above = below + even + per_lack * state[SCRATCH, arm]
    return arm if uniform - below > margin and above - uniform > margin else -1


@inlined
def fewest_after(arm: int, fewest: int, pulls: IntArray) -> int:
    """Return the first arm with the fewest pulls after `arm` was pulled; amortised one or two steps."""
    if arm != fewest:
        return fewest
    least = pulls[fewest] - 1
    while fewest < pulls.size and pulls[fewest] > least:
        fewest += 1
    if fewest == pulls.size:  # every arm has more: continue with the first that has one more
        fewest = 0
        while pulls[fewest] > least + 1:
            fewest += 1
    return fewest


@inlined
def keeps_information(rule: Rule) -> bool:
    """Return whether a rule keeps a share of the information that can be kept up to date from step to step."""
    most_kept = MOST_KEPT_BY_RATIO if rule.tracking == RATIO else MOST_KEPT
    return rule.criterion == AVERAGE and rule.information_kept <= most_kept


@inlined
def has_weight(rule: Rule) -> bool:
    """Return whether a rule's weight is known beforehand: it is stated, or 0 as all information is to be kept."""
    return rule.criterion == STATED_WEIGHT or (rule.criterion == AVERAGE and rule.information_kept == 1.0)


@inlined
def known_weight(rule: Rule) -> float:
    """Return that weight."""
    return rule.reward_weight if rule.criterion == STATED_WEIGHT else 0.0


@inlined
def pools_arms(rule: Rule, per_arm: FloatArray) -> bool:
    """Return whether the beliefs of a rule can be kept up to date, by `incremental_pooling`."""
    floor, importance = per_arm[FLOOR], per_arm[IMPORTANCE]
    pooling = rule.kind == POOLED_BALANCE and rule.tracking != DIFFERENCE and floor.size > 1
    pooling = pooling and (has_growing_window(rule) or rule.tracking != WINDOWED)
    pooling = pooling and (has_weight(rule) or (keeps_information(rule) and rule.power == 0.5))
    pooling = pooling and rule.prior_weight == 0.0  # only the strict rule knows priors
    for i in range(floor.size):
        if floor[i] > 0.0 or importance[i] != importance[0]:
            pooling = False
    return pooling


@compiled
def advance(
    rule: Rule,
    per_arm: FloatArray,
    seed: int,
    replication: int,
    checkpoints: IntArray,
    arena: Arena,
    out_pulls: IntArray,
    out_mean: FloatArray,
    out_std: FloatArray,
    out_target: FloatArray,
    until: int,
) -> bool:
    """Play up to step `until`; return False if an external arm runs out of rewards first."""
    # Unpack the arrays once: passing the record on would count references to all of them at every step.
    kind, shape, pool, buffer = arena.kind, arena.shape, arena.pool, arena.buffer
    pulls, mean, std, sums = arena.pulls, arena.mean, arena.std, arena.sums
    work, state, scalars, score = arena.work, arena.state, arena.scalars, arena.score
    pooled, pooled_scalars, counters = arena.pooled, arena.pooled_scalars, arena.counters
    probability, kept_score = state[SCRATCH], state[SCORE]
    bits = kept_score.view(np.int64)
    floor, importance = per_arm[FLOOR], per_arm[IMPORTANCE]
    n_arms, buffered = pulls.size, buffer.shape[1]
    keeping = keeps_information(rule)
    weighing = rule.criterion == STATED_WEIGHT and rule.reward_weight < 1.0
    kept_up = rule.kind == BALANCE and rule.power == 0.5 and rule.tracking != SAMPLE and (keeping or weighing)
    drawn = rule.kind == POOLED_BALANCE and rule.tracking == WINDOWED
    pooling = pools_arms(rule, per_arm)
    information_kept = rule.information_kept if keeping else 0.0
    for i in range(n_arms):
        if floor[i] > 0.0 or importance[i] != importance[0]:
            kept_up = False
    weight, curiosity = known_weight(rule), rule.exploration
    squares_expected = expected_squares(rule.caution, n_arms) if n_arms > LOST else 1.0
    fewest, warm, passed = counters[FEWEST], counters[WARM] == 1, counters[CHECKPOINT]
    for t in range(counters[STEP] + 1, until + 1):
        least = pulls[fewest]
        # A copy of `decision.decide` for the commonest cases, without its loops over the arms: one count says which arm
        # is forced, and shares are kept up to date. The tests compare every decision with that of `Bandit`.
        if not drawn and (rule.kind == UNIFORM or is_forced(rule, t, least, least)):
            arm = fewest
        else:
            arm = -1
            if kept_up:
                if not warm:
                    per_step = 0.0 if rule.tracking == RATIO else 1.0 / (t - 1)
                    if keeping:
                        kept = rule.information_kept
                        warm = start_keeping(mean, std, kept, importance, floor, work, state, scalars, per_step)
                    else:
                        warm = start(mean, std, rule.reward_weight, importance, floor, work, state, scalars, per_step)
                if warm and rule.tracking == WINDOWED:
                    uniform = decision_uniform(seed, replication, t - 1)
                    arm = _clear_draw(t, window_at(rule, t), rule.mixing, uniform, state)
                elif warm:
                    arm = _clear_winner(kept_score, bits)
            elif pooling and not is_forced(rule, t, least, least):
                if not warm:
                    begin(curiosity, importance[0], pulls, pulls, mean, std, pooled, pooled_scalars)
                    warm = True
                uniform = decision_uniform(seed, replication, t - 1) if drawn else 0.0
                window = int(window_at(rule, t)) if drawn else 0
                arm = next_pull(
                    t,
                    t - 1,
                    uniform,
                    window,
                    rule.mixing,
                    weight,
                    information_kept,
                    curiosity,
                    importance[0],
                    rule.pooling,
                    squares_expected,
                    pulls,
                    pulls,
                    mean,
                    std,
                    pooled,
                    pooled_scalars,
                )
            if arm < 0:
                arm, _, _ = decide(rule, per_arm, t, pulls, pulls, mean, std, t, pulls, work, probability)
                counters[STRICT] += 1
                if arm == RANDOM:
                    arm = draw(probability, decision_uniform(seed, replication, t - 1))

        place = pulls[arm] & (buffered - 1)  # the remainder; a division would cost more than the rest of the line
        if place == 0 and counters[EMPTY] != arm + 1:
            if kind[arm] == EXTERNAL:
                counters[STEP], counters[FEWEST], counters[WARM], counters[CHECKPOINT] = t - 1, fewest, warm, passed
                counters[EMPTY] = arm + 1
                return False
            fill_rewards(kind[arm], shape, pool, seed, replication, arm, pulls[arm], buffer[arm])
        counters[EMPTY] = 0
        old_mean, old_std = mean[arm], std[arm]
        add_reward(arm, buffer[arm, place], 1.0, pulls, mean, std, sums)
        state[COUNT, arm] += 1.0
        fewest = fewest_after(arm, fewest, pulls)
        if warm and pooling:
            count_pull(arm, curiosity, importance[0], pulls, pooled)
            learn(arm, old_mean, old_std, pulls, mean, std, pooled, pooled_scalars)
        elif warm:
            per_step = 0.0 if rule.tracking == RATIO else 1.0 / t
            if keeping:
                warm = change_keeping(arm, std[arm], mean, state, scalars, per_step)
            else:
                warm = change(arm, std[arm], mean, state, scalars, per_step)

        if passed < checkpoints.size and t == checkpoints[passed]:
            wanted = pulls[fewest] >= rule.rewards_needed
            if wanted:
                wanted, _ = write_target(rule, per_arm, t + 1, pulls, mean, std, work, score)
            for i in range(n_arms):
                out_pulls[passed, i], out_mean[passed, i], out_std[passed, i] = pulls[i], mean[i], std[i]
                out_target[passed, i] = score[i] if wanted else np.nan
            passed += 1
    counters[STEP], counters[FEWEST], counters[WARM], counters[CHECKPOINT] = until, fewest, warm, passed
    return True


INVALID = -1
"""Stored instead of an arm out of rewards: the function did not fill probabilities."""


@compiled_for_caller
def advance_with(
    filler: Any,
    parameters: Any,
    seed: int,
    replication: int,
    checkpoints: IntArray,
    arena: Arena,
    out_pulls: IntArray,
    out_mean: FloatArray,
    out_std: FloatArray,
    out_target: FloatArray,
    until: int,
) -> bool:
    """Play up to step `until`; return False if an external arm runs out of rewards first.

    Also return False, with the counter `EMPTY` below 0, if the function did not fill valid probabilities.
    """
    kind, shape, pool, buffer = arena.kind, arena.shape, arena.pool, arena.buffer
    pulls, mean, std, sums, probability = arena.pulls, arena.mean, arena.std, arena.sums, arena.score
    counters, buffered = arena.counters, arena.buffer.shape[1]
    passed = counters[CHECKPOINT]
    for t in range(counters[STEP] + 1, until + 1):
        for i in range(pulls.size):
            probability[i] = 0.0
        filler(parameters, t, pulls, pulls, mean, std, probability)
        total, smallest = 0.0, 0.0
        for i in range(pulls.size):
            total += probability[i]
            smallest = min(smallest, probability[i])
        if not (smallest >= 0.0 and abs(total - 1.0) <= 1e-9):
            counters[STEP], counters[CHECKPOINT], counters[EMPTY] = t - 1, passed, INVALID
            return False
        arm = draw(probability, decision_uniform(seed, replication, t - 1))
        place = pulls[arm] & (buffered - 1)
        if place == 0 and counters[EMPTY] != arm + 1:
            if kind[arm] == EXTERNAL:
                counters[STEP], counters[CHECKPOINT], counters[EMPTY] = t - 1, passed, arm + 1
                return False
            fill_rewards(kind[arm], shape, pool, seed, replication, arm, pulls[arm], buffer[arm])
        counters[EMPTY] = 0
        add_reward(arm, buffer[arm, place], 1.0, pulls, mean, std, sums)
        if passed < checkpoints.size and t == checkpoints[passed]:
            for i in range(pulls.size):
                out_pulls[passed, i], out_mean[passed, i], out_std[passed, i] = pulls[i], mean[i], std[i]
                out_target[passed, i] = np.nan
            passed += 1
    counters[STEP], counters[CHECKPOINT] = until, passed
    return True
