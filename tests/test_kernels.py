"""The compiled parts against independent computation, and against themselves as plain Python."""

from __future__ import annotations

import os
import subprocess
import sys

import mpmath
import numba
import numpy as np
import pytest
import scipy
from endurance import short_and_full
from numba.extending import is_jitted

from equipoise.kernels import assignment, decision, play, pooling, solver
from equipoise.kernels import incremental_solver as incremental
from equipoise.kernels.random import DECISION, decision_uniform, log_gamma_draw, make_normal, normal, philox, unit
from equipoise.kernels.solver import COLD, WORK_ROWS, allocate, inverse_cube_roots


def test_philox_gives_numpys_words():
    rng = np.random.default_rng(0)
    for _ in range(200):
        key = rng.integers(0, 2**64, 2, dtype=np.uint64)
        counter = rng.integers(0, 2**64, 4, dtype=np.uint64)
        # numpy counts up before it makes a block, so its first block belongs to counter + 1.
        before = int(sum(int(c) << (64 * i) for i, c in enumerate(counter))) - 1
        numpys = np.random.Philox(key=key, counter=before % 2**256).random_raw(4)
        assert list(philox(*key, *counter)) == numpys.tolist()


def test_units_are_in_range_and_use_53_bits():
    assert unit(np.uint64(0)) == 0.0
    assert unit(np.uint64(2**64 - 1)) == 1 - 2.0**-53
    assert unit(np.uint64(1 << 11)) == 2.0**-53


def test_decision_numbers_depend_on_seed_and_index_alone():
    zero = np.uint64(0)
    assert decision_uniform(7, 0, 5) == unit(philox(np.uint64(7), zero, np.uint64(5), zero, DECISION, zero)[0])
    draws = np.array([decision_uniform(seed, r, k) for seed in range(10) for r in range(2) for k in range(500)])
    assert len(np.unique(draws)) == draws.size
    # Mean and variance of 10,000 uniforms, to four standard errors.
    assert abs(draws.mean() - 0.5) < 4 / np.sqrt(12 * draws.size)
    assert abs(draws.var() - 1 / 12) < 4 * np.sqrt(1 / 180 / draws.size)


def test_inverse_cube_roots_are_right_to_one_ulp():
    x = np.exp(np.random.default_rng(1).uniform(np.log(1e-290), np.log(1e300), 5000))
    out = np.empty_like(x)
    inverse_cube_roots(x, out)
    exact = np.array([float(1 / mpmath.cbrt(mpmath.mpf(float(v)))) for v in x])
    assert np.abs(out / exact - 1).max() <= 2.0**-52


@pytest.mark.parametrize("power", [0.5, 1.0, 0.3])
@pytest.mark.parametrize("floor", [0.0, 0.4])
def test_any_start_leads_to_the_same_shares(power, floor):
    rng = np.random.default_rng(2)
    for _ in range(200):
        n = int(rng.integers(2, 30))
        mean, std, floors = rng.normal(size=n), rng.gamma(1, size=n), np.full(n, floor / n)
        cold, warm, work = np.empty(n), np.empty(n), np.empty((WORK_ROWS, n))
        level = allocate(mean, std, np.full(n, 1 / n), floors, 0.7, power, COLD, work, cold)
        for start in (0.0, level, level * 0.9, level * 1.1, 1e-12, 1e6):
            allocate(mean, std, np.full(n, 1 / n), floors, 0.7, power, start, work, warm)
            np.testing.assert_allclose(warm, cold, rtol=1e-13, atol=0)


@pytest.mark.parametrize("n_arms", [1, 2, 5, 64, 300])
@pytest.mark.parametrize("weight", [0.0, 0.4, 0.95, 0.9999])
def test_incremental_shares_follow_the_solver_through_small_and_large_changes(n_arms, weight):
    rng = np.random.default_rng([n_arms, int(1e4 * weight)])
    mean, std = 1e3 + rng.normal(size=n_arms), rng.gamma(2, size=n_arms)
    importance, floor, work = np.full(n_arms, 1 / n_arms), np.zeros(n_arms), np.empty((WORK_ROWS, n_arms))
    state, scalars = np.zeros((incremental.ROWS, n_arms)), np.empty(incremental.SCALARS)
    exact, share = np.empty(n_arms), state[incremental.SHARE]
    warm, changed = False, 0
    for step in range(600):
        arm = int(rng.integers(n_arms))
        size = 1.0 if step % 97 == 0 else 0.001 * np.sqrt(1 - weight)
        mean[arm] += size * rng.normal()
        std[arm] = 0.0 if step == 400 else max(abs(std[arm] + 0.3 * size * rng.normal()), 1e-6)
        if warm and incremental.change(arm, std[arm], mean, state, scalars, 1e-3):
            changed += 1
        else:
            warm = incremental.start(mean, std, weight, importance, floor, work, state, scalars, 1e-3)
            if std.min() == 0.0:  # left to the solver
                assert not warm
                continue
        allocate(mean, std, importance, floor, weight, 0.5, COLD, work, exact)
        assert abs(share.sum() - 1) <= 1e-13
        np.testing.assert_allclose(share, exact, rtol=1e-11, atol=0)
    if n_arms > 1:
        assert changed > 200, "most small changes should not need a solve from scratch"


def test_incremental_shares_follow_a_best_arm_that_slowly_loses_its_lead():
    mean, std, n = np.array([1.0, 0.5]), np.array([1.0, 0.5]), 2
    state, scalars = np.zeros((incremental.ROWS, n)), np.empty(incremental.SCALARS)
    share = state[incremental.SHARE]
    work, exact, even, zero = np.empty((WORK_ROWS, n)), np.empty(n), np.full(n, 0.5), np.zeros(n)
    assert incremental.start(mean, std, 0.9, even, zero, work, state, scalars, 1e-3)
    for _ in range(20_000):
        mean[0] -= 5e-5
        assert incremental.change(0, std[0], mean, state, scalars, 1e-3)
    allocate(mean, std, even, zero, 0.9, 0.5, COLD, work, exact)
    assert mean[0] == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(share, exact, rtol=1e-11, atol=0)


def test_incremental_shares_recover_from_a_jump_of_the_best_arm():
    """Far from the solution the terms of the step may cancel, which is no convergence: found with Cauchy rewards."""
    n, changed = 300, 0
    work, exact, even, zero = np.empty((WORK_ROWS, n)), np.empty(n), np.full(n, 1 / n), np.zeros(n)
    for seed in range(300):
        rng = np.random.default_rng(seed)
        mean, std = rng.normal(0, 1, n), rng.gamma(2, rng.uniform(0.1, 3), n)
        std[0], mean[0] = 14.0 * rng.uniform(0.5, 3), mean[1:].max() + rng.uniform(0.5, 4)
        state, scalars = np.zeros((incremental.ROWS, n)), np.empty(incremental.SCALARS)
        assert incremental.start(mean, std, 0.9, even, zero, work, state, scalars, 1e-3)
        mean[0], std[0] = mean[0] - 2 * rng.uniform(0.1, 1), 0.94 * std[0]
        if incremental.change(0, std[0], mean, state, scalars, 1e-3):
            changed += 1
            allocate(mean, std, even, zero, 0.9, 0.5, COLD, work, exact)
            np.testing.assert_allclose(state[incremental.SHARE], exact, rtol=1e-9, atol=0)
    assert changed > 250


def test_incremental_shares_leave_floors_and_weight_one_to_the_solver():
    mean, std, importance = np.array([1.0, 2.0]), np.array([1.0, 1.0]), np.full(2, 0.5)
    state, scalars = np.zeros((incremental.ROWS, 2)), np.empty(incremental.SCALARS)
    for weight, floor, expected in [(1.0, 0.0, [0, 1]), (0.99, 0.3, [0.3, 0.7])]:
        share = state[incremental.SHARE]
        floors, work = np.full(2, floor), np.empty((WORK_ROWS, 2))
        assert not incremental.start(mean, std, weight, importance, floors, work, state, scalars, 1e-3)
        assert share == pytest.approx(expected)


SCRIPT = """
import warnings
import numpy as np
import equipoise as eq
np.seterr(over="ignore")  # unsigned words wrap around, which numpy remarks on and machine code does not
rng = np.random.default_rng(3)
choices = []
policies = [
    eq.ForcingBalance(reward_weight=0.8),
    eq.ForcingBalance(reward_weight=0.4, forcing=0.1, floor=0.05, tracking="windowed"),
    eq.ForcingBalance(reward_weight=0.4, forcing=0.1, objective=eq.MEAN_SQUARE),
    eq.ForcingBalance(reward_weight=0.4, forcing=0.1, objective=eq.PowerObjective(power=0.7)),
    eq.ForcingBalance(information_kept=0.7, floor=0.05, tracking="windowed"),
    eq.ForcingBalance(reward_weight=0.9, forcing=0.1, floor=0.2, floor_decay=0.3),
    eq.PooledBalance(reward_weight=0.9, floor=0.2, floor_decay=0.125, tracking="windowed"),
    eq.ForcingBalance(information_kept=0.3, forcing=0.1, objective=eq.MEAN_SQUARE),
    eq.ForcingBalance(information_kept=0.3, forcing=0.1, information_about="every-arm"),
    eq.ForcingBalance(information_kept=0.3, forcing=0.1, information_about="best-arm"),
    eq.ForcingBalance(information_kept=0.8, forcing=0.1, information_about="best-arm", floor=0.03),
    eq.PooledBalance(information_kept=0.5), eq.PooledBalance(information_kept=0.9, tracking="windowed"),
    eq.PooledBalance(information_kept=0.5, information_about="best-arm", smallest_difference=0.2),
    eq.PooledBalance(reward_weight=0.6, tracking="windowed"), eq.PooledBalance(reward_weight=0.9, floor=0.1),
    eq.PooledBalance(reward_weight=0.6, tracking="windowed", window=2, window_growth=0.5),
    eq.PooledBalance(reward_weight=0.6, tracking="windowed", window_growth=0.0),
    eq.ForcingBalance(reward_weight=0.6, tracking="windowed", forcing=0.1, window=2, window_growth=0.5),
    eq.PooledBalance(reward_weight=0.9, tracking="windowed", drift="declared"),
    eq.PooledBalance(reward_weight=0.9, tracking="windowed", drift="detected"),
    eq.PooledBalance(reward_weight=0.9, tracking="windowed", prior=eq.ArmPrior(means_apart=0.1, spreads_apart=0.2)),
    eq.PooledBalance(information_kept=0.5, prior=eq.ArmPrior(means_apart=2.0, weight=20)),
    eq.GAFS(), eq.GAFSMax(), eq.UCB(), eq.NaiveUCB(reward_weight=0.5), eq.OptimisticBalance(reward_weight=0.5),
    eq.UCBExplore(reward_weight=0.5, horizon=100), eq.ThompsonBalance(reward_weight=0.5, draws=3),
    eq.ThompsonSampling(draws=3), eq.ClippedThompson(draws=3, floor=0.1), eq.PostDiff(small_difference=0.5, draws=3),
    eq.SARP(reward_weight=0.5, draws=3), eq.NARP(reward_weight=0.5, draws=3),
    eq.EpsilonGreedy(), eq.Uniform(), eq.Fixed(allocation=[0.2, 0.3, 0.5]),
]
graded = lambda arm: rng.normal(arm, 1 + arm)
yes_or_no = lambda arm: float(rng.random() < 0.1 + 0.1 * arm)
rarely = lambda arm: rng.normal() if rng.random() < 0.1 else 0.5
for policy, reward in [(policy, reward) for policy in policies for reward in (graded, yes_or_no, rarely)]:
    bandit = eq.Bandit(policy, 3, seed=4)
    for _ in range(60 if reward is graded else 20):
        choice = bandit.peek()
        choices.append((choice.arm, choice.probability.hex(), choice.forced))
        arm = bandit.ask()
        bandit.tell(arm, reward(arm))
    choices.append(bandit.stats.mean.tobytes().hex() + bandit.stats.std.tobytes().hex())
print(choices)
"""


@pytest.mark.parametrize("cache", short_and_full("as it is", "empty"))
def test_compiled_and_plain_python_take_the_same_decisions_to_the_last_bit(cache, tmp_path):
    # With an empty cache and a relaxed kernel compiled first: its relaxed arithmetic must not spread to the others.
    elsewhere = {"NUMBA_CACHE_DIR": str(tmp_path)} if cache == "empty" else {}
    relaxed_first = "import equipoise as eq; eq.simulate(eq.GAFS(), eq.Bernoulli(mean=[0.5]), 9)"
    outputs = [
        subprocess.run(
            [sys.executable, "-c", f"{first}\n{SCRIPT}"],
            env=os.environ | {"NUMBA_DISABLE_JIT": disabled} | elsewhere,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for first, disabled in ((relaxed_first, "0"), ("", "1"))
    ]
    assert len(outputs[0]) > 10_000
    assert outputs[0] == outputs[1]


def test_kernels_count_no_references():
    """If this fails because numba dropped or renamed `_nrt`: see the comment in `kernels/compiler.py`."""

    def race(x, y, steps):
        for _ in range(steps):
            if x[0] > y[0]:
                x, y = y, x
            x[0] += 1.0
        return x[0]

    def code(**options):
        function = numba.njit(**options)(race)
        assert function(np.ones(1), np.ones(1), 3) == 3.0
        return "".join(function.inspect_llvm().values())

    assert "NRT_incref" in code()
    assert "NRT_incref" not in code(_nrt=False)
    for module in (assignment, decision, incremental, play, pooling, solver):
        kernels = [value for value in vars(module).values() if is_jitted(value) and value.__module__ == module.__name__]
        counting = {kernel.__name__ for kernel in kernels if kernel.targetoptions.get("_nrt") is not False}
        assert counting == ({"advance_with"} if module is play else set())


def test_normal_numbers_are_the_quantiles_of_their_uniform_numbers():
    uniform = (
        np.concatenate([np.random.default_rng(0).integers(0, 2**53, 20_000), [0, 1, 2**52 - 1, 2**52, 2**53 - 1]])
        * 2.0**-53
    )
    # Half a step of 2^-53 above the uniform number, in the half below 0.5 where that is exact, the rest by symmetry.
    lower = np.minimum(uniform, 1 - uniform - 2.0**-53) + 2.0**-54
    expected = np.where(uniform < 0.5, 1, -1) * scipy.special.ndtri(lower)
    ours = np.array([normal(u) for u in uniform])
    np.testing.assert_allclose(ours, expected, rtol=1e-14, atol=1e-16)
    assert np.all(np.isfinite(ours)) and np.all(ours != 0)
    assert ours[-1] == -ours[-5]  # the largest word and the smallest


def test_many_normal_numbers_at_once_are_those_made_one_by_one():
    uniform = np.random.default_rng(1).integers(0, 2**53, 10_000) * 2.0**-53
    values = uniform.copy()
    make_normal(values, 3.0, 0.5)
    assert values.tolist() == [3.0 + 0.5 * normal(u) for u in uniform]


@pytest.mark.parametrize("shape", [0.05, 0.5, 1.0, 3.5, 400.0])
def test_gamma_draws_have_the_distribution_they_should_and_leave_an_independent_number(shape):
    zero = np.uint64(0)
    draws = np.array(
        [log_gamma_draw(shape, np.uint64(7), zero, np.uint64(k), zero, np.uint64(99), 0) for k in range(20_000)]
    )
    distance = scipy.stats.kstest(draws[:, 0], scipy.stats.loggamma(shape).cdf).statistic
    assert distance < 1.95 / np.sqrt(len(draws))  # passed by 999 of 1,000 right samples
    assert scipy.stats.kstest(draws[:, 1], "uniform").statistic < 1.95 / np.sqrt(len(draws))
    assert abs(np.corrcoef(draws[:, 0], draws[:, 1])[0, 1]) < 4 / np.sqrt(len(draws))
