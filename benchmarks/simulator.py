"""How long one simulated step takes, rewards included: ours beside river, MABWiser and a cvxpy solve, in one run.

    python benchmarks/simulator.py [--smoke]

One thread unless the line says otherwise. Times are processor time, so that other processes on the machine count
little: ours of the whole process, a peer's of its thread alone. Two threads against one, and the first call, go by the
clock on the wall. The five arms and the 64-arm surrogate are those of the paper's experiments (the surrogate's figures
are drawn here from its aggregates); 1,000 and 10,000 arms are drawn at random around them.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import numpy as np
from _timing import duration, ratio, show, verdict

import equipoise as eq
from equipoise.policies.pooled_balance import recommended

if TYPE_CHECKING:
    from collections.abc import Callable

WEIGHT = 0.9
# Little forcing: a forced step needs no solve, and with a thousand arms and forcing 0.3 half of the steps are forced.
FORCING = 0.01
KEPT = 0.7
# How many times as long as with a fixed weight a step may take that solves for the weight to keep information.
MOST_FOR_KEEPING = 1.5
# Nanoseconds that a step may take, by policy and number of arms.
GOALS = {
    "ForcingBalance": {5: 200, 64: 400, 1_000: 2_500},
    "ForcingBalance, windowed": {5: 300, 64: 450},
    "PooledBalance, windowed": {5: 350, 64: 900, 1_000: 10_000},
}


def arms(n_arms: int) -> eq.Gaussian:
    if n_arms == 5:
        return eq.Gaussian(mean=[1, 1.5, 2, 4, 5], std=np.sqrt([0.05, 0.1, 0.2, 4, 0.5]))
    rng = np.random.default_rng(n_arms)
    return eq.Gaussian(mean=rng.normal(11.3, 0.45, n_arms), std=rng.gamma(20, 0.157, n_arms))


def step_time(
    policy: eq.Policy, n_arms: int, steps: int, workers: int = 1, replications: int = 1, true: eq.Arms | None = None
) -> float:
    """Return seconds per step; the median of three runs after one that loads the kernels."""
    true = true or arms(n_arms)
    clock = time.process_time if workers == replications == 1 else time.perf_counter
    eq.simulate(policy, true, 10, 1, checkpoints=[10])
    times = []
    for seed in range(3):
        start = clock()
        eq.simulate(policy, true, steps, replications, seed=seed, checkpoints=[steps], workers=workers)
        times.append((clock() - start) / steps / replications)
    return float(np.median(times))


def peer_time(pull: Callable[[], int], update: Callable[[int, float], object], steps: int) -> float:
    """Return seconds per step of a peer, its reward drawn by numpy, after every one of 64 arms was pulled."""
    true, rng = arms(64), np.random.default_rng(0)

    def step() -> None:
        arm = pull()
        update(arm, rng.normal(true.mean[arm], true.std[arm]))

    for _ in range(4 * 64):
        step()
    start = time.thread_time()
    for _ in range(steps):
        step()
    return (time.thread_time() - start) / steps


def river_time(steps: int) -> float:
    from river import bandit

    policy, names = bandit.UCB(delta=1.0), list(range(64))
    return peer_time(lambda: policy.pull(names), policy.update, steps)


def mabwiser_time(steps: int) -> float:
    from mabwiser.mab import MAB, LearningPolicy

    mab = MAB(list(range(64)), LearningPolicy.UCB1(alpha=1.0))
    mab.fit(list(range(64)), [0.0] * 64)
    return peer_time(mab.predict, lambda arm, reward: mab.partial_fit([arm], [reward]), steps)


def cvxpy_time(steps: int) -> float:
    """Return the time of one re-solve of a parametrised problem with 64 arms; the rest of the step is left out."""
    import cvxpy as cp

    true, share = arms(64), cp.Variable(64)
    mean, std = cp.Parameter(64), cp.Parameter(64, nonneg=True)
    value = WEIGHT * (mean @ share) - (1 - WEIGHT) / 64 * (std @ cp.power(share, -0.5))
    problem = cp.Problem(cp.Maximize(value), [cp.sum(share) == 1])
    mean.value, std.value = true.mean, true.std
    problem.solve(solver=cp.CLARABEL)
    start = time.thread_time()
    for k in range(steps):
        mean.value = true.mean + 0.001 * k
        problem.solve(solver=cp.CLARABEL)
    return (time.thread_time() - start) / steps


def first_call_time() -> float:
    """Return how long the first simulate takes in a new process that finds numba's cache warm; the import apart."""
    code = (
        "import time, equipoise as eq; arms = eq.Gaussian(mean=[1, 2], std=[1, 1]); import equipoise.kernels.play; "
        "start = time.perf_counter(); eq.simulate(eq.ForcingBalance(reward_weight=0.5), arms, 100); "
        "print(time.perf_counter() - start)"
    )
    return min(float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(2))


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    smoke = "--smoke" in sys.argv
    scale = 0.005 if smoke else 1.0
    forcing_balance = eq.ForcingBalance(reward_weight=WEIGHT, forcing=FORCING)
    measured = {
        "ForcingBalance": forcing_balance,
        "ForcingBalance, windowed": eq.ForcingBalance(reward_weight=WEIGHT, forcing=FORCING, tracking="windowed"),
        "PooledBalance": eq.PooledBalance(reward_weight=WEIGHT),
        "PooledBalance, windowed": recommended(WEIGHT),
    }
    keeping = {
        "ForcingBalance": eq.ForcingBalance(information_kept=KEPT, forcing=FORCING),
        "ForcingBalance, windowed": eq.ForcingBalance(information_kept=KEPT, forcing=FORCING, tracking="windowed"),
        "PooledBalance": eq.PooledBalance(information_kept=KEPT),
        "PooledBalance, windowed": eq.PooledBalance(information_kept=KEPT, tracking="windowed"),
    }
    rows, ours, even, kept = [], {}, {}, {}
    for n_arms, steps in ((5, 4_000_000), (64, 2_000_000), (1_000, 300_000)):
        count = int(steps * scale) + 4 * n_arms
        even[n_arms] = step_time(eq.Uniform(), n_arms, count)
        for name, policy in measured.items():
            seconds = ours[name, n_arms] = step_time(policy, n_arms, count)
            rows.append([f"{name}, {n_arms:,} arms", duration(seconds), ratio(seconds, even[n_arms])])
        if n_arms <= 64:
            for name, policy in keeping.items():
                seconds = kept[name, n_arms] = step_time(policy, n_arms, count)
                what = f"{name}, information kept {KEPT}, {n_arms:,} arms"
                rows.append([what, duration(seconds), ratio(seconds, even[n_arms])])
        rows.append([f"Uniform, {n_arms:,} arms", duration(even[n_arms]), "1x"])
    yes_or_no = eq.Bernoulli(mean=np.linspace(0.05, 0.3, 64))
    seconds = step_time(recommended(WEIGHT), 64, int(2_000_000 * scale) + 256, true=yes_or_no)
    rows.append(["PooledBalance, windowed, 64 arms with yes/no rewards", duration(seconds), ratio(seconds, even[64])])
    peers = {
        "river UCB, 64 arms": river_time(int(5_000 * scale) + 50),
        "MABWiser UCB1, 64 arms": mabwiser_time(int(1_000 * scale) + 20),
        "cvxpy solve, 64 arms": cvxpy_time(int(100 * scale) + 5),
    }
    rows += [[name, duration(seconds), ratio(seconds, even[64])] for name, seconds in peers.items()]
    others = [eq.UCB(), eq.GAFS(), eq.NaiveUCB(reward_weight=WEIGHT), eq.ThompsonBalance(reward_weight=WEIGHT)]
    for policy in others:
        seconds = step_time(policy, 64, int(20_000 * scale) + 400)
        rows.append([f"{type(policy).__name__}, 64 arms", duration(seconds), ratio(seconds, even[64])])
    title = f"One simulated step, one thread, rewards included (weight {WEIGHT}, forcing {FORCING})"
    show(title, ["what", "time per step", "against Uniform"], rows)

    steps = int(1_000_000 * scale) + 1_000
    single, double = (step_time(forcing_balance, 5, steps, workers=workers, replications=8) for workers in (1, 2))
    print(f"two threads against one: {single / double:.2f} times faster")
    print(f"first call in a new process: {first_call_time():.2f} s")
    long_runs = []
    for n_arms, length in ((5, 100_000_000), (10_000, 400_000)):
        before = peak_megabytes()
        seconds = step_time_once(forcing_balance, n_arms, int(length * scale) + 4 * n_arms)
        grown = peak_megabytes() - before
        long_runs.append([f"{int(length * scale):,} steps, {n_arms:,} arms", duration(seconds), f"{grown:.0f} MB"])
    show("Long runs of ForcingBalance, one thread", ["what", "time per step", "more memory at the peak"], long_runs)

    for name, limits in GOALS.items():
        for n_arms, most in limits.items():
            verdict(f"{name} step, {n_arms:,} arms, ns", ours[name, n_arms] * 1e9, most, at_most=True)
    for (name, n_arms), seconds in kept.items():
        against = seconds / ours[name, n_arms]
        what = f"{name}, information kept {KEPT} against a fixed weight, {n_arms:,} arms"
        verdict(what, against, MOST_FOR_KEEPING, at_most=True)
    for n_arms, times in ((5, 20), (64, 40), (1_000, 250)):
        against = ours["ForcingBalance", n_arms] / even[n_arms]
        verdict(f"ForcingBalance against Uniform, {n_arms:,} arms", against, times, at_most=True)
    for (name, seconds), wanted in zip(peers.items(), (200, 1_500, 10_000), strict=True):
        verdict(f"{name} against ForcingBalance", seconds / ours["ForcingBalance", 64], wanted)
    verdict("two threads against one", single / double, 1.8)
    verdict("first call, s", first_call_time(), 1.0, at_most=True)


def step_time_once(policy: eq.Policy, n_arms: int, steps: int) -> float:
    start = time.process_time()
    eq.simulate(policy, arms(n_arms), steps, 1, checkpoints=[steps], workers=1)
    return (time.process_time() - start) / steps


if __name__ == "__main__":
    main()
