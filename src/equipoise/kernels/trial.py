"""Play one simulated experiment in continuous time: arrivals, decisions, late rewards, windows, looks.

What happens at one instant happens in this order: windows pass, rewards become known, the next person comes. A live
experiment settles windows before each command, so the same people get the same arms there; `planner.live_play` plays
them, and a test compares. Decisions are those of `assignment.next_assignment`, and units live as `unit_lifecycle` says.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equipoise._types import FloatArray, IntArray
from equipoise.kernels import arm_evidence as rows
from equipoise.kernels.assignment import Design, next_assignment
from equipoise.kernels.compiler import compiled, inlined
from equipoise.kernels.decision import draw, is_forced, window_at
from equipoise.kernels.drift_sums import DRIFT_ROWS, add_weighted, write_estimates
from equipoise.kernels.exact_digits import DIGITS
from equipoise.kernels.exact_sums import add_reward_exactly
from equipoise.kernels.incremental_pooling import ROWS as POOLING_ROWS
from equipoise.kernels.incremental_pooling import SCALARS as POOLING_SCALARS
from equipoise.kernels.incremental_pooling import begin, count_pull, learn, next_pull
from equipoise.kernels.moments import SUM_ROWS, add_reward
from equipoise.kernels.people import DAY, MICROSECONDS, NEVER, People, delay_of, is_good, level_at, reward_of, told_at
from equipoise.kernels.play import keeps_information, known_weight, pools_arms
from equipoise.kernels.pooling import LOST, expected_squares
from equipoise.kernels.random import decision_uniform
from equipoise.kernels.rules import IMPORTANCE, PLAIN, UNIFORM, WINDOWED
from equipoise.kernels.wealth import points
from equipoise.unit_lifecycle import (
    COUNTED,
    COUNTERS,
    DEFAULT_VALUE,
    EXPIRED,
    HELD,
    N_DROPPED,
    N_HELD,
    N_OVERDUE,
    NOTHING,
    OVERDUE,
    REWARDED,
    WAITING,
)

if TYPE_CHECKING:
    from equipoise.kernels.log_replay import Lives
    from equipoise.kernels.rules import Rule
    from equipoise.kernels.world import World

_POWERS = 11
"""Rows of running sums per arm: three powers of rewards from the true mean, four from either end of their range."""


class Setting(NamedTuple):
    """How an experiment assigns and counts: the numbers of its configuration.

    `strict` asks for every decision by the rule that live experiments use, instead of its faster copy: to compare.
    `window` is in microseconds, `NEVER` if there is none. `removes` says whether a counted value may be removed again,
    `has_default` whether a unit whose window has passed counts. `n_most` is how many units there are at most; `tuned`
    and `failure` are those of `arm_evidence`. An arm is ruled out as the best by evidence of `log_threshold`, from at
    most `most_rivals` others.
    """

    strict: bool
    warm_up: int
    window: int
    removes: bool
    has_default: bool
    n_most: int
    low: float
    high: float
    unit: float
    tuned: float
    failure: FloatArray
    log_threshold: float
    most_rivals: int


class Looks(NamedTuple):
    """What is recorded at each look: arrays (looks, arms).

    `n_may_be_best` (looks,) and the evidence in `moments` (looks, rows, arms) are left out if they have no looks.
    """

    at: IntArray
    assigned: IntArray
    counted: IntArray
    open: IntArray
    held: IntArray
    missing: IntArray
    estimate: FloatArray
    spread: FloatArray
    low: FloatArray
    high: FloatArray
    n_may_be_best: IntArray
    moments: FloatArray


class Table(NamedTuple):
    """Scratch of one simulated experiment: a row per person, then a column per arm, then a heap of expected rewards.

    `n_strict` is how many decisions the strict rule took.
    """

    arm: IntArray
    state: IntArray
    reward: FloatArray
    probability: FloatArray
    told: IntArray
    assigned: IntArray
    pulls: IntArray
    mean: FloatArray
    std: FloatArray
    sums: FloatArray
    digits: IntArray
    drift: FloatArray
    counters: IntArray
    powers: FloatArray
    evidence: FloatArray
    mirrored: FloatArray
    seen: IntArray
    rivals: IntArray
    beaten: FloatArray
    pooled: FloatArray
    pooled_scalars: FloatArray
    n_strict: IntArray
    heap_at: IntArray
    heap_person: IntArray


def new_table(n_people: int, n_arms: int, *, weighted: bool) -> Table:
    """Allocate the scratch of an experiment with at most this many people; `play_trial` clears it."""
    return Table(
        arm=np.empty(n_people, np.int64),
        state=np.empty(n_people, np.int64),
        reward=np.empty(n_people),
        probability=np.empty(n_people),
        told=np.empty(n_people, np.int64),
        assigned=np.empty(n_arms, np.int64),
        pulls=np.empty(n_arms, np.int64),
        mean=np.empty(n_arms),
        std=np.empty(n_arms),
        sums=np.empty((SUM_ROWS, n_arms)),
        digits=np.empty((n_arms, 2, DIGITS), np.int64),
        drift=np.empty((DRIFT_ROWS if weighted else 0, n_arms)),
        counters=np.empty((COUNTERS, n_arms), np.int64),
        powers=np.empty((_POWERS, n_arms)),
        evidence=np.empty((rows.ROWS, n_arms)),
        mirrored=np.empty((rows.ROWS, n_arms)),
        seen=np.empty(n_arms, np.int64),
        rivals=np.empty(n_arms, np.int64),
        beaten=np.empty(n_arms),
        pooled=np.empty((POOLING_ROWS, n_arms)),
        pooled_scalars=np.empty(POOLING_SCALARS),
        n_strict=np.zeros(1, np.int64),
        heap_at=np.empty(n_people, np.int64),
        heap_person=np.empty(n_people, np.int64),
    )


@compiled
def _clear(table: Table, setting: Setting) -> None:
    """Begin an experiment."""
    table.n_strict[0] = 0
    for i in range(table.assigned.size):
        table.assigned[i], table.pulls[i] = 0, 0
        table.mean[i], table.std[i] = np.nan, np.nan
        for row in range(SUM_ROWS):
            table.sums[row, i] = 0.0
        for row in range(table.drift.shape[0]):
            table.drift[row, i] = 0.0
        for row in range(COUNTERS):
            table.counters[row, i] = 0
        for row in range(_POWERS):
            table.powers[row, i] = 0.0
        if setting.removes:
            for row in range(table.digits.shape[1]):
                for place in range(DIGITS):
                    table.digits[i, row, place] = 0
        table.evidence[rows.LOW, i], table.evidence[rows.HIGH, i] = setting.low, setting.high
        table.evidence[rows.SCALE, i], table.evidence[rows.TUNED, i] = setting.unit, setting.tuned


@inlined
def _push(heap_at: IntArray, heap_person: IntArray, size: int, at: int, person: int) -> None:
    """Add an expected reward to the heap."""
    place = size
    while place > 0:
        parent = (place - 1) // 2
        if heap_at[parent] < at or (heap_at[parent] == at and heap_person[parent] < person):
            break
        heap_at[place], heap_person[place] = heap_at[parent], heap_person[parent]
        place = parent
    heap_at[place], heap_person[place] = at, person


@inlined
def _pop(heap_at: IntArray, heap_person: IntArray, size: int) -> None:
    """Remove the first of the expected rewards."""
    last = size - 1
    at, person, place = heap_at[last], heap_person[last], 0
    while True:
        child = 2 * place + 1
        if child >= last:
            break
        other = child + 1
        if other < last and (
            heap_at[other] < heap_at[child]
            or (heap_at[other] == heap_at[child] and heap_person[other] < heap_person[child])
        ):
            child = other
        if at < heap_at[child] or (at == heap_at[child] and person < heap_person[child]):
            break
        heap_at[place], heap_person[place] = heap_at[child], heap_person[child]
        place = child
    heap_at[place], heap_person[place] = at, person


@inlined
def _add_powers(
    arm: int, value: float, sign: float, centre: float, low: float, high: float, unit: float, powers: FloatArray
) -> None:
    """Add a counted value to the running sums of powers, or take it out again: approximate, for evidence only."""
    x = value - centre
    power = sign * x
    for row in range(3):
        powers[row, arm] += power
        power *= x
    if low > -np.inf:
        x = (value - low) / unit
        power = sign * x
        for row in range(3, 7):
            powers[row, arm] += power
            power *= x
    if high < np.inf:
        x = (high - value) / unit
        power = sign * x
        for row in range(7, 11):
            powers[row, arm] += power
            power *= x


@compiled
def _count(
    person: int, arm: int, reward: float, sign: float, true_mean: float, setting: Setting, lives: Lives, table: Table
) -> None:
    """Count a value of a unit (sign 1.0), or remove it again (sign -1.0)."""
    counted = min(reward, lives.cap)
    value = lives.sign * counted
    if setting.removes:
        add_reward_exactly(
            arm, value, sign, table.pulls, table.mean, table.std, table.sums, table.digits[arm], lives.exact
        )
    else:
        add_reward(arm, value, sign, table.pulls, table.mean, table.std, table.sums)
    if table.drift.shape[0] > 0:
        add_weighted(arm, value, table.probability[person], person, sign, table.pulls, table.drift)
    _add_powers(arm, counted, sign, true_mean, setting.low, setting.high, setting.unit, table.powers)


@compiled
def _happen(
    kind: int, person: int, reward: float, world_mean: FloatArray, setting: Setting, lives: Lives, table: Table
) -> bool:
    """Let an event of a unit happen, as `log_replay` does; return whether it changed the estimates."""
    arm, state = table.arm[person], table.state[person]
    after = lives.steps[state, kind, 0]
    counts, takes = lives.steps[state, kind, 1] == 1, lives.steps[state, kind, 2]
    if takes != NOTHING:
        replaces = lives.default if takes == DEFAULT_VALUE else table.reward[person]
        _count(person, arm, replaces, -1.0, world_mean[arm], setting, lives, table)
    if counts:
        _count(person, arm, reward, 1.0, world_mean[arm], setting, lives, table)
    if after != state:
        if lives.counter_of[state] >= 0:
            table.counters[lives.counter_of[state], arm] -= 1
        if lives.counter_of[after] >= 0:
            table.counters[lives.counter_of[after], arm] += 1
        table.state[person] = after
    return bool(counts or takes != NOTHING)


@compiled
def write_evidence(sign: float, table: Table) -> None:
    """Write the moments that evidence reads, as `analysis.evidence` does, from the running sums."""
    evidence, powers = table.evidence, table.powers
    for i in range(table.pulls.size):
        n = float(table.pulls[i])
        evidence[rows.COUNT, i], evidence[rows.STD, i] = n, table.std[i]
        evidence[rows.MEAN, i], evidence[rows.SKEW, i] = sign * table.mean[i], np.nan
        for row in range(rows.LOW_Y1, rows.LOW_Y1 + 8):
            evidence[row, i] = np.nan
        if table.pulls[i] == 0:
            continue
        m1, m2, m3 = powers[0, i] / n, powers[1, i] / n, powers[2, i] / n
        second, third = m2 - m1 * m1, m3 - 3.0 * m1 * m2 + 2.0 * m1 * m1 * m1
        known = table.std[i] > 0.0 and second > 1e-13 * m2
        evidence[rows.SKEW, i] = third / (second * math.sqrt(second)) if known else 0.0
        if evidence[rows.LOW, i] > -np.inf:
            y1, p1, y2, p2 = points(powers[3, i] / n, powers[4, i] / n, powers[5, i] / n, powers[6, i] / n)
            evidence[rows.LOW_Y1, i], evidence[rows.LOW_P1, i] = y1, p1
            evidence[rows.LOW_Y2, i], evidence[rows.LOW_P2, i] = y2, p2
        if evidence[rows.HIGH, i] < np.inf:
            y1, p1, y2, p2 = points(powers[7, i] / n, powers[8, i] / n, powers[9, i] / n, powers[10, i] / n)
            evidence[rows.HIGH_Y1, i], evidence[rows.HIGH_P1, i] = y1, p1
            evidence[rows.HIGH_Y2, i], evidence[rows.HIGH_P2, i] = y2, p2


@compiled
def _mirror(evidence: FloatArray, mirrored: FloatArray) -> None:
    """Write the evidence about rewards times -1, as `Evidence.mirrored` does."""
    for i in range(evidence.shape[1]):
        for row in range(rows.ROWS):
            mirrored[row, i] = evidence[row, i]
        mirrored[rows.LOW, i], mirrored[rows.HIGH, i] = -evidence[rows.HIGH, i], -evidence[rows.LOW, i]
        for row in range(4):
            mirrored[rows.LOW_Y1 + row, i] = evidence[rows.HIGH_Y1 + row, i]
            mirrored[rows.HIGH_Y1 + row, i] = evidence[rows.LOW_Y1 + row, i]
        mirrored[rows.MEAN, i], mirrored[rows.SKEW, i] = -evidence[rows.MEAN, i], -evidence[rows.SKEW, i]


@compiled
def _n_may_be_best(setting: Setting, sign: float, table: Table) -> int:
    """Return how many arms may still be the best, as `analysis.best_arm` says."""
    arms, seen, rivals, n_arms = table.evidence, table.seen, table.rivals, table.pulls.size
    if n_arms < 2:
        return n_arms
    if sign < 0.0:
        _mirror(table.evidence, table.mirrored)
        arms = table.mirrored
    n_seen = 0
    for i in range(n_arms):
        if table.pulls[i] == 0:
            continue
        seen[n_seen] = i
        place = n_seen
        while place > 0 and arms[rows.MEAN, rivals[place - 1]] < arms[rows.MEAN, i]:
            rivals[place] = rivals[place - 1]
            place -= 1
        rivals[place] = i
        n_seen += 1
    n_rivals, n_beaten = min(n_seen, setting.most_rivals), 0
    rows.write_log_beaten(arms, seen[:n_seen], rivals[:n_rivals], n_arms - 1, False, table.beaten[:n_seen])
    for k in range(n_seen):
        n_beaten += 0 if table.beaten[k] < setting.log_threshold else 1
    return n_arms - n_beaten


@compiled
def _look(place: int, setting: Setting, lives: Lives, table: Table, looks: Looks) -> None:
    """Record a look."""
    counters = table.counters
    for i in range(table.assigned.size):
        held, dropped = counters[N_HELD, i], counters[N_DROPPED, i]
        looks.assigned[place, i], looks.counted[place, i], looks.held[place, i] = (
            table.assigned[i],
            table.pulls[i],
            held,
        )
        looks.open[place, i] = table.assigned[i] - table.pulls[i] - dropped - held
        looks.missing[place, i] = dropped + (0 if setting.has_default else counters[N_OVERDUE, i])
        looks.estimate[place, i], looks.spread[place, i] = lives.sign * table.mean[i], table.std[i]
    write_evidence(lives.sign, table)
    rows.write_intervals(table.evidence, setting.failure, looks.low[place], looks.high[place])
    if looks.n_may_be_best.size > 0:
        looks.n_may_be_best[place] = _n_may_be_best(setting, lives.sign, table)
    if looks.moments.shape[0] > 0:
        for row in range(rows.ROWS):
            for i in range(table.assigned.size):
                looks.moments[place, row, i] = table.evidence[row, i]


@compiled
def play_trial(
    world: World,
    people: People,
    n_people: int,
    told: IntArray,
    order: IntArray,
    seed: int,
    replication: int,
    trial_seed: int,
    rule: Rule,
    design: Design,
    setting: Setting,
    lives: Lives,
    table: Table,
    looks: Looks,
) -> int:
    """Play an experiment to the end, looking on the way; return when a value last counted, in microseconds.

    The end is when all rewards have come; or when the last window has passed, if units whose window has passed are
    dropped or count with a default value. Nobody waits for the rewards that would come later.

    If `told` is not empty, it is when each person's reward would be told under any arm, and `order` sorts it.
    Arms, rewards and when they are told stay in `table`.
    """
    _clear(table, setting)
    arrived, uniforms, delays, missing_uniforms = people.arrived, people.reward, people.delay, people.missing
    kind, shape, pool, world_mean = world.kind, world.shape, world.pool, world.mean
    rounded_to, lowest, highest = world.rounded_to, world.lowest, world.highest
    batch, first_batch = int(world.batch_seconds * MICROSECONDS), int(world.batch_at * MICROSECONDS)
    end = world.per_day.size * DAY
    arm_of, state_of, reward_of_person = table.arm, table.state, table.reward
    assigned, pulls, mean, std = table.assigned, table.pulls, table.mean, table.std
    heap_at, heap_person = table.heap_at, table.heap_person
    pooled, pooled_scalars = table.pooled, table.pooled_scalars
    drifts, sorted_ahead = table.drift.shape[0] > 0, told.size > 0
    # A copy of `assignment.next_assignment` for the commonest cases: only the arm is wanted, not its probability.
    share, importance, curiosity = design.share, design.per_arm[IMPORTANCE], rule.exploration
    copied = not (drifts or setting.strict)
    drawn, even = rule.tracking == WINDOWED, rule.kind == UNIFORM and copied
    pooling = pools_arms(rule, design.per_arm) and copied
    information_kept = rule.information_kept if keeps_information(rule) else 0.0
    squares_expected = expected_squares(rule.caution, share.size) if share.size > LOST else 1.0
    reserved, warm, n_rewards = 0.0, False, 0
    for k in range(share.size):
        reserved += share[k]
    gives_up = setting.window < NEVER and lives.steps[WAITING, EXPIRED, 0] != OVERDUE
    n_assigned, next_window, next_told, n_expected, passed, last_counted = 0, 0, 0, 0, 0, 0
    for i in range(n_people + 1):
        arrival = arrived[i] if i < n_people else NEVER
        all_came = i == n_people or i >= setting.n_most
        end_at = arrived[n_assigned - 1] + setting.window if gives_up and all_came and n_assigned > 0 else NEVER
        while True:
            # Let everything happen until the next look or the next arrival, whichever is first.
            looking = passed < looks.at.size and looks.at[passed] < arrival
            until = looks.at[passed] if looking else arrival
            until = end_at if until >= NEVER else until
            while True:
                passes_at, reward_at, person = NEVER, NEVER, -1
                if next_window < n_assigned and setting.window < NEVER:
                    passes_at = arrived[next_window] + setting.window
                if sorted_ahead:
                    if next_told < n_people and order[next_told] < i:
                        person = order[next_told]
                        reward_at = told[person]
                elif n_expected > 0:
                    reward_at, person = heap_at[0], heap_person[0]
                if min(passes_at, reward_at) > until or min(passes_at, reward_at) >= NEVER:
                    break
                if passes_at <= reward_at:
                    person = next_window
                    next_window += 1
                    if state_of[person] != HELD and state_of[person] != WAITING:
                        continue
                    event = COUNTED if state_of[person] == HELD else EXPIRED
                    value = reward_of_person[person] if state_of[person] == HELD else lives.default
                else:
                    if sorted_ahead:
                        next_told += 1
                        if person >= n_assigned or np.isnan(reward_of_person[person]):
                            continue
                    else:
                        _pop(heap_at, heap_person, n_expected)
                        n_expected -= 1
                    event, value = REWARDED, reward_of_person[person]
                arm = arm_of[person]
                pulls_before, mean_before, std_before = pulls[arm], mean[arm], std[arm]
                if _happen(event, person, value, world_mean, setting, lives, table):
                    if min(passes_at, reward_at) <= end_at:
                        last_counted = min(passes_at, reward_at)
                    n_rewards += pulls[arm] - pulls_before
                    if warm:
                        learn(arm, mean_before, std_before, pulls, mean, std, pooled, pooled_scalars)
            if not looking:
                break
            _look(passed, setting, lives, table, looks)
            passed += 1
        if all_came:
            continue
        arm, probability = -1, np.nan
        if even or pooling:
            fewest, fewest_rewards = 0, pulls[0]
            for k in range(1, share.size):
                fewest = k if assigned[k] < assigned[fewest] else fewest
                fewest_rewards = min(fewest_rewards, pulls[k])
            uniform = decision_uniform(trial_seed, 0, i)
            if uniform < reserved:
                arm = draw(share, uniform)
            elif assigned[fewest] < setting.warm_up:
                arm = -1
            elif even:
                arm = fewest
            elif not is_forced(rule, i + 1, assigned[fewest], fewest_rewards):
                if not warm:
                    begin(curiosity, importance[0], assigned, pulls, mean, std, pooled, pooled_scalars)
                    warm = True
                arm = next_pull(
                    i + 1,
                    n_rewards,
                    (uniform - reserved) / (1.0 - reserved) if drawn else 0.0,
                    int(window_at(rule, i + 1)) if drawn else 0,
                    rule.mixing,
                    known_weight(rule),
                    information_kept,
                    curiosity,
                    importance[0],
                    rule.pooling,
                    squares_expected,
                    assigned,
                    pulls,
                    mean,
                    std,
                    pooled,
                    pooled_scalars,
                )
        read_pulls, read_mean, read_std = pulls, mean, std
        if drifts and design.steering != PLAIN:
            read_pulls, read_mean, read_std = design.seen_pulls, design.seen_mean, design.seen_std
            write_estimates(
                design.steering,
                rule.rewards_needed,
                design.active,
                pulls,
                mean,
                std,
                table.sums,
                table.drift,
                read_pulls,
                read_mean,
                read_std,
            )
        if arm < 0:
            arm, probability, _, _ = next_assignment(
                rule, design, setting.warm_up, trial_seed, i, assigned, read_pulls, read_mean, read_std
            )
            table.n_strict[0] += 1
        assigned[arm] += 1
        if warm:
            count_pull(arm, curiosity, importance[0], assigned, pooled)
        n_assigned += 1
        arm_of[i], state_of[i], table.probability[i] = arm, WAITING, probability
        level = level_at(arrival, world.drift_per_second, world.step, world.step_at)
        reward = reward_of(
            kind, shape, pool, rounded_to, lowest, highest, level, seed, replication, i, arm, uniforms[i]
        )
        good = is_good(kind[arm], reward, world_mean[arm])
        chance = world.missing_after_good[arm] if good else world.missing_after_bad[arm]
        if missing_uniforms[i] < chance:
            reward_of_person[i], table.told[i] = np.nan, NEVER
            continue
        reward_of_person[i] = reward
        if sorted_ahead:
            table.told[i] = told[i]
            continue
        due = arrival + delay_of(world.delay[arm], world.delay_spread[arm], delays[i])
        at = told_at(due, i, arrived, n_people, world.batch_people, batch, first_batch, end)
        table.told[i] = at
        if at < NEVER:
            _push(heap_at, heap_person, n_expected, at, i)
            n_expected += 1
    # The last looks, when nothing more will come.
    while passed < looks.at.size:
        _look(passed, setting, lives, table, looks)
        passed += 1
    return last_counted
