"""How long one optimal allocation takes: ours beside cvxpy (Clarabel) and SciPy (SLSQP), in one run.

    python benchmarks/solver.py [--smoke]

"public" is `equipoise.optimal_allocation` with all its checks. "warm kernel" is the compiled solver as a simulation
calls it: one arm's estimate has changed since the last solve, by about 1% of a typical spread. cvxpy re-solves a
parametrised problem, which is its fast path, except at 100,000 arms, where that does not fit into memory and it solves
once from scratch; SciPy starts from the uniform allocation.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import cvxpy as cp
import numba
import numpy as np
from _timing import duration, ratio, seconds_per_call, show, verdict
from scipy.optimize import minimize

import equipoise as eq
from equipoise.kernels import incremental_solver as incremental
from equipoise.kernels.incremental_solver import change, start
from equipoise.kernels.solver import WORK_ROWS

if TYPE_CHECKING:
    from equipoise._types import FloatArray

REWARD_WEIGHT = 0.9
LARGEST_FOR_PARAMETERS = 1_000  # cvxpy's parametrised form is quadratic in the arms: 447 GiB at 100,000
LARGEST_FOR_SCIPY = 64  # SLSQP's time grows with the cube of the arms; at 1,000 it is minutes


def arms(n_arms: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(n_arms)
    return rng.normal(size=n_arms), rng.gamma(2.0, 0.5, size=n_arms)


@numba.njit
def resolve_many(
    mean: FloatArray, std: FloatArray, changes: FloatArray, importance: FloatArray, work: FloatArray, state: FloatArray
) -> int:
    """Change one mean at a time, as a pull does, and solve again; return how often that was from scratch."""
    floor, scalars = np.zeros(mean.size), np.zeros(incremental.SCALARS)
    warm, cold_starts = False, 0
    for k in range(changes.size):
        arm = k % mean.size
        mean[arm] += changes[k]
        if warm and change(arm, std[arm], mean, state, scalars, 1e-3):
            continue
        warm = start(mean, std, REWARD_WEIGHT, importance, floor, work, state, scalars, 1e-3)
        cold_starts += 1
    return cold_starts


def time_warm_kernel(n_arms: int, budget: float) -> float:
    mean, std = arms(n_arms)
    importance = np.full(n_arms, 1 / n_arms)
    work, state = np.empty((WORK_ROWS, n_arms)), np.zeros((incremental.ROWS, n_arms))
    count = max(10, min(20_000, 2_000_000 // n_arms))
    changes = np.random.default_rng(0).normal(scale=0.01, size=count)

    def run() -> FloatArray:
        moved = mean.copy()
        resolve_many(moved, std, changes, importance, work, state)
        return moved

    final = eq.optimal_allocation(run(), std, reward_weight=REWARD_WEIGHT)
    assert np.allclose(state[incremental.SHARE], final, rtol=1e-12, atol=0), "the incremental solver drifted"
    return seconds_per_call(run, budget=budget, rounds=3) / count


def time_cvxpy(n_arms: int, budget: float) -> float:
    mean, std = arms(n_arms)
    share = cp.Variable(n_arms)
    parametrised = n_arms <= LARGEST_FOR_PARAMETERS
    mean_parameter = cp.Parameter(n_arms) if parametrised else cp.Constant(mean)
    std_parameter = cp.Parameter(n_arms, nonneg=True) if parametrised else cp.Constant(std)
    error = std_parameter @ cp.power(share, -0.5) / n_arms
    value = REWARD_WEIGHT * (mean_parameter @ share) - (1 - REWARD_WEIGHT) * error
    problem = cp.Problem(cp.Maximize(value), [cp.sum(share) == 1])

    def solve() -> None:
        if parametrised:
            mean_parameter.value, std_parameter.value = mean, std
        problem.solve(solver=cp.CLARABEL)

    if parametrised:
        solve()  # compiles the problem; the solves that are timed reuse that
        elapsed = seconds_per_call(solve, budget=budget)
    else:
        start = time.perf_counter()
        solve()
        elapsed = time.perf_counter() - start
    found = np.maximum(share.value, 1e-12)
    ours = eq.tradeoff(
        eq.optimal_allocation(mean, std, reward_weight=REWARD_WEIGHT), mean, std, reward_weight=REWARD_WEIGHT
    )
    theirs = eq.tradeoff(found / found.sum(), mean, std, reward_weight=REWARD_WEIGHT)
    assert ours >= theirs - 1e-9 * abs(theirs), "cvxpy found a better allocation"
    return elapsed


def time_scipy(n_arms: int, budget: float) -> float:
    mean, std = arms(n_arms)
    cost = (1 - REWARD_WEIGHT) * std / n_arms

    def loss(share: FloatArray) -> float:
        return float((cost / np.sqrt(share)).sum() - REWARD_WEIGHT * share @ mean)

    def gradient(share: FloatArray) -> FloatArray:
        return np.asarray(-0.5 * cost / share**1.5 - REWARD_WEIGHT * mean)

    def solve() -> None:
        minimize(
            loss,
            np.full(n_arms, 1 / n_arms),
            jac=gradient,
            bounds=[(1e-9, 1.0)] * n_arms,
            constraints={"type": "eq", "fun": lambda x: x.sum() - 1, "jac": np.ones_like},
            method="SLSQP",
            options={"ftol": 1e-10, "maxiter": 500},
        )

    return seconds_per_call(solve, budget=budget)


def main() -> None:
    smoke = "--smoke" in sys.argv
    budget = 0.02 if smoke else 1.0
    sizes = (2, 5, 64, 1_000) if smoke else (2, 5, 64, 1_000, 100_000)
    started, rows, public, warm, conic = time.perf_counter(), [], {}, {}, {}
    for n_arms in sizes:
        mean, std = arms(n_arms)

        def solve(mean: FloatArray = mean, std: FloatArray = std) -> None:
            eq.optimal_allocation(mean, std, reward_weight=REWARD_WEIGHT)

        public[n_arms] = seconds_per_call(solve, budget=budget)
        warm[n_arms] = time_warm_kernel(n_arms, budget)
        conic[n_arms] = time_cvxpy(n_arms, budget)
        sequential = time_scipy(n_arms, budget) if n_arms <= LARGEST_FOR_SCIPY else None
        rows.append(
            [
                f"{n_arms:,}",
                *(duration(x) for x in (public[n_arms], warm[n_arms], conic[n_arms], sequential)),
                ratio(conic[n_arms], public[n_arms]),
                ratio(conic[n_arms], warm[n_arms]),
                ratio(sequential, public[n_arms]),
            ]
        )
    columns = ["arms", "public", "warm kernel", "cvxpy", "SciPy", "cvxpy / public", "cvxpy / warm", "SciPy / public"]
    show(f"One optimal allocation, reward weight {REWARD_WEIGHT}", columns, rows)
    verdict("public call against cvxpy at 64 arms", conic[64] / public[64], 300)
    verdict("warm kernel against cvxpy at 64 arms", conic[64] / warm[64], 5_000)
    if not smoke:
        per_arm = {n: public[n] / n for n in (1_000, 100_000)}
        verdict("cost per arm, 100,000 arms against 1,000", per_arm[100_000] / per_arm[1_000], 1.5, at_most=True)
    print(f"({time.perf_counter() - started:.0f} s)")


if __name__ == "__main__":
    main()
