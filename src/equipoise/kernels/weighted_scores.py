"""Sum up scores that estimate arms' means over the same people from the logged probabilities of all arms.

The score of an arm at a decision, phi = f + 1{it was chosen} (reward - f) / probability, has the arm's mean at that
time for its expectation, whatever f is, if f and the probability were known before the draw (augmented inverse
probability weighting; Robins, Rotnitzky, Zhao 1994). f is the average of the arm's latest rewards, so it follows a
drift. Scores of different arms are averaged with the same weights, so they are about the same people  [ours; cf. Hadad
et al. 2021].
"""

from __future__ import annotations

import math

import numpy as np

from equipoise._types import FloatArray, IntArray
from equipoise.kernels.compiler import compiled

LATEST = 25
"""How many of an arm's latest rewards its forecast averages."""

(WEIGHT, SCORE, OTHER_SCORE, SQUARED_WEIGHT, SQUARED_TIMES_GAP, SQUARED_TIMES_GAP_SQUARED) = range(6)
PAIR_SUMS = 6
"""Sums per pair: weights h; h times the scores of both arms; h^2 times 1, the scores' difference, and its square."""

(USED, WITHOUT_REWARD, IMPROBABLE, ARM_REWARDS, OTHER_REWARDS) = range(5)
PAIR_COUNTS = 5
"""Decisions used, left out for want of their reward, and left out as a probability was too small; rewards of both arms
among those used."""

(ARM_WEIGHT, ARM_SCORE, ARM_SQUARED_WEIGHT, ARM_SQUARED_TIMES_SCORE, ARM_SQUARED_TIMES_SCORE_SQUARED, ARM_USED) = range(
    6
)
ARM_SUMS = 6
"""The same sums per arm of a group, with weights that all arms of it share, and the decisions used."""

N_COUNTED, NEXT, SQUARES = 0, 1, 2
FORECAST_ROWS = 3
"""Per arm: rewards counted so far, the place of the next among the latest, and the sum of squared distances of rewards
from what was forecast."""


@compiled
def _count(arm: int, reward: float, latest: FloatArray, state: FloatArray, forecast: FloatArray) -> None:
    """Count a reward: replace the oldest of the latest, and forecast their average."""
    n_latest = latest.shape[1]
    counted = state[N_COUNTED, arm]
    if counted > 0.0:
        known = min(counted, float(n_latest))
        # An average of k rewards is itself 1/k of their variance off.
        distance = reward - forecast[arm]
        state[SQUARES, arm] += distance * distance * known / (known + 1.0)
    place = int(state[NEXT, arm])
    latest[arm, place] = reward
    state[NEXT, arm] = 0.0 if place + 1 == n_latest else place + 1.0
    state[N_COUNTED, arm] = counted + 1.0
    known_now = int(min(counted + 1.0, float(n_latest)))
    total = 0.0
    for k in range(known_now):
        total += latest[arm, k]
    forecast[arm] = total / known_now


@compiled
def measure_noise(
    arms: IntArray, rewards: FloatArray, order: IntArray, latest: FloatArray, state: FloatArray, forecast: FloatArray
) -> None:
    """Forecast every reward from those counted before; `state` receives the squared distances."""
    for k in range(order.size):
        _count(arms[order[k]], rewards[order[k]], latest, state, forecast)


@compiled
def add_scores(
    arms: IntArray,
    rewards: FloatArray,
    probability: FloatArray,
    counted_after: IntArray,
    order: IntArray,
    least: float,
    variance: FloatArray,
    in_play_from: IntArray,
    in_play_until: IntArray,
    pairs: IntArray,
    group: IntArray,
    latest: FloatArray,
    state: FloatArray,
    forecast: FloatArray,
    pair_sums: FloatArray,
    pair_counts: IntArray,
    arm_sums: FloatArray,
    scores: FloatArray,
    noise: FloatArray,
) -> None:
    """Add every decision's weighted scores to the sums of the pairs, and to those of the arms of a group.

    `probability` has a column per arm, or one with those of the arms that were chosen; then all decisions weigh the
    same. Rewards are counted in `order`, each before the first decision at which `counted_after` decisions had been
    taken. NaN is a reward that is missing: the chosen arm's score without its correction would be wrong, so such a
    decision is left out for all arms. So is one at which an arm was not in play or had less than the least probability.
    """
    n_arms, n_entered, of_all = variance.size, 0, probability.shape[1] == variance.size
    total, n_total = 0.0, 0
    for t in range(arms.size):
        while n_entered < order.size and counted_after[order[n_entered]] <= t:
            at = order[n_entered]
            _count(arms[at], rewards[at], latest, state, forecast)
            total += rewards[at]
            n_total += 1
            n_entered += 1
        chosen, reward = arms[t], rewards[t]
        missing = np.isnan(reward)
        for a in range(n_arms):
            # Before an arm's first reward: what all arms had on average.
            scores[a] = forecast[a] if state[N_COUNTED, a] > 0.0 else total / n_total if n_total > 0 else 0.0
            usable = t >= in_play_from[a] and t < in_play_until[a]
            if of_all:  # an arm that was not in play may also have NaN for its probability
                usable = usable and probability[t, a] >= least
                noise[a] = variance[a] / probability[t, a] if usable else np.inf
            else:
                noise[a] = 0.5 if usable else np.inf
        if not missing:
            scores[chosen] += (reward - scores[chosen]) / probability[t, chosen if of_all else 0]
        for k in range(pairs.shape[0]):
            a, b = pairs[k, 0], pairs[k, 1]
            together = noise[a] + noise[b]
            if together == np.inf:
                pair_counts[k, IMPROBABLE] += 1
                continue
            if missing:
                pair_counts[k, WITHOUT_REWARD] += 1
                continue
            squared, gap = 1.0 / together, scores[a] - scores[b]
            weight = math.sqrt(squared)
            pair_sums[k, WEIGHT] += weight
            pair_sums[k, SCORE] += weight * scores[a]
            pair_sums[k, OTHER_SCORE] += weight * scores[b]
            pair_sums[k, SQUARED_WEIGHT] += squared
            pair_sums[k, SQUARED_TIMES_GAP] += squared * gap
            pair_sums[k, SQUARED_TIMES_GAP_SQUARED] += squared * gap * gap
            pair_counts[k, USED] += 1
            if chosen == a:
                pair_counts[k, ARM_REWARDS] += 1
            elif chosen == b:
                pair_counts[k, OTHER_REWARDS] += 1
        if missing:
            continue
        together = 0.0
        for k in range(group.size):
            together += noise[group[k]]
        if 0.0 < together < np.inf:
            squared = 1.0 / together
            weight = math.sqrt(squared)
            for k in range(group.size):
                score = scores[group[k]]
                arm_sums[ARM_WEIGHT, k] += weight
                arm_sums[ARM_SCORE, k] += weight * score
                arm_sums[ARM_SQUARED_WEIGHT, k] += squared
                arm_sums[ARM_SQUARED_TIMES_SCORE, k] += squared * score
                arm_sums[ARM_SQUARED_TIMES_SCORE_SQUARED, k] += squared * score * score
                arm_sums[ARM_USED, k] += 1.0


(N, MEAN_TIME, MEAN_REWARD, TIME_SQUARES, PRODUCTS, REWARD_SQUARES) = range(6)
TREND_ROWS = 6
"""Per arm: rewards, their average time and average, and squares and products around these."""


@compiled
def add_to_trends(arms: IntArray, rewards: FloatArray, time: FloatArray, trends: FloatArray) -> None:
    """Add rewards to the sums of each arm's regression on time; NaN is a reward that is missing."""
    for t in range(arms.size):
        if np.isnan(rewards[t]):
            continue
        a = arms[t]
        trends[N, a] += 1.0
        n = trends[N, a]
        ahead, above = time[t] - trends[MEAN_TIME, a], rewards[t] - trends[MEAN_REWARD, a]
        trends[MEAN_TIME, a] += ahead / n
        trends[MEAN_REWARD, a] += above / n
        trends[TIME_SQUARES, a] += ahead * (time[t] - trends[MEAN_TIME, a])
        trends[PRODUCTS, a] += ahead * (rewards[t] - trends[MEAN_REWARD, a])
        trends[REWARD_SQUARES, a] += above * (rewards[t] - trends[MEAN_REWARD, a])
