"""How long one ask and one tell take with 64 arms: ours beside river's and MABWiser's UCB, in one run.

    python benchmarks/ask_tell.py [--smoke]

Every library learns from the same stream of rewards after the same warm-up, one decision and one reward at a time.
Times are processor time of the calling thread, so that other processes on the machine count little.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import numpy as np
from _timing import duration, ratio, show, verdict
from mabwiser.mab import MAB, LearningPolicy
from river import bandit as river_bandit

import equipoise as eq
from equipoise.policies.pooled_balance import recommended

if TYPE_CHECKING:
    from collections.abc import Callable

N_ARMS = 64


def time_ours(policy: eq.Policy, steps: int) -> float:
    bandit = eq.Bandit(policy, N_ARMS, seed=1)

    def step(reward: float) -> None:
        bandit.tell(bandit.ask(), reward)

    return seconds_per_step(step, steps)


def time_river(steps: int) -> float:
    policy = river_bandit.UCB(delta=1.0)
    arms = list(range(N_ARMS))

    def step(reward: float) -> None:
        policy.update(policy.pull(arms), reward)

    return seconds_per_step(step, steps)


def time_mabwiser(steps: int) -> float:
    mab = MAB(list(range(N_ARMS)), LearningPolicy.UCB1(alpha=1.0))
    mab.fit(list(range(N_ARMS)), [0.0] * N_ARMS)

    def step(reward: float) -> None:
        mab.partial_fit([mab.predict()], [reward])

    return seconds_per_step(step, steps)


def seconds_per_step(step: Callable[[float], None], steps: int, rounds: int = 5) -> float:
    """Return the median over rounds of the time per step, after a warm-up in which every arm was pulled often."""
    rewards = np.random.default_rng(0).normal(size=10 * N_ARMS + rounds * steps).tolist()
    for reward in rewards[: 10 * N_ARMS]:
        step(reward)
    times = []
    for k in range(rounds):
        batch = rewards[10 * N_ARMS + k * steps : 10 * N_ARMS + (k + 1) * steps]
        start = time.thread_time()
        for reward in batch:
            step(reward)
        times.append((time.thread_time() - start) / steps)
    return float(np.median(times))


def main() -> None:
    smoke = "--smoke" in sys.argv
    scale = 0.02 if smoke else 1.0
    # Peers take turns with ours, so that a slow minute of the machine hits all of them.
    forcing_balance = time_ours(eq.ForcingBalance(reward_weight=0.9), int(10_000 * scale))
    river = time_river(int(4_000 * scale))
    ucb = time_ours(eq.UCB(), int(10_000 * scale))
    mabwiser = time_mabwiser(int(1_000 * scale))
    randomised = time_ours(eq.ForcingBalance(reward_weight=0.9, tracking="windowed"), int(10_000 * scale))
    river_again = time_river(int(4_000 * scale))
    pooled = time_ours(recommended(0.9), int(10_000 * scale))
    thompson = time_ours(eq.ThompsonBalance(reward_weight=0.9), int(2_000 * scale))
    river = (river + river_again) / 2
    rows = [
        [name, duration(seconds), ratio(river, seconds), ratio(mabwiser, seconds)]
        for name, seconds in [
            ("equipoise ForcingBalance", forcing_balance),
            ("equipoise ForcingBalance, windowed", randomised),
            ("equipoise PooledBalance, windowed (recommended)", pooled),
            ("equipoise UCB", ucb),
            ("equipoise ThompsonBalance, 16 draws", thompson),
            ("river UCB", river),
            ("MABWiser UCB1", mabwiser),
        ]
    ]
    show(f"One ask and one tell, {N_ARMS} arms", ["policy", "time", "river / this", "MABWiser / this"], rows)
    verdict("ForcingBalance against river's UCB", river / forcing_balance, 4)
    verdict("PooledBalance, windowed, against river's UCB", river / pooled, 4)
    verdict("ForcingBalance against MABWiser's UCB1", mabwiser / forcing_balance, 25)


if __name__ == "__main__":
    main()
