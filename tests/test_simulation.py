"""The simulator takes exactly the decisions of ask and tell, whoever computes them, and its figures are the known ones.

`./run python tests/test_simulation.py` compares a million decisions with an exact solver, the suite some ten thousand.
"""

from __future__ import annotations

import inspect
import itertools
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import golden
import numba
import numpy as np
import pytest
from endurance import short_and_full
from own_policies import CHANCE, Contrary, Curious, CuriousCompiled, DOptimal, W
from patience import HANGS
from scipy import stats

import equipoise as eq
from equipoise.kernels.random import decision_uniform
from equipoise.paper.instances import treefrog_surrogate

FIVE = eq.Gaussian(mean=golden.FIVE_MEANS, std=golden.FIVE_STDS)


# Policies and arms for the parity tests


def policies_for(n_arms):
    shares = np.arange(1, n_arms + 1) / np.arange(1, n_arms + 1).sum()
    rising = list(range(1, n_arms + 1))
    return [
        eq.ForcingBalance(**W),
        eq.ForcingBalance(reward_weight=0.0),
        eq.ForcingBalance(reward_weight=1.0, forcing=0.3),
        eq.ForcingBalance(reward_weight=0.97, forcing=0.1),
        eq.ForcingBalance(**W, tracking="ratio"),
        eq.ForcingBalance(**CHANCE, tracking="sample"),
        eq.ForcingBalance(**CHANCE, tracking="windowed", window=1.5, mixing=0.2),
        eq.ForcingBalance(**W, forcing=0.1, floor=0.5 / n_arms),
        eq.ForcingBalance(**W, forcing=0.1, floor=0.8 * shares),
        eq.ForcingBalance(**W, forcing=0.1, objective=eq.MEAN_SQUARE),
        eq.ForcingBalance(**W, forcing=0.1, objective=eq.PowerObjective(power=0.75, importance=rising)),
        eq.ForcingBalance(**W, forcing=0.1, objective=eq.PowerObjective(importance=rising)),
        eq.ForcingBalance(**W, forcing=0.1, objective=DOptimal()),
        eq.ForcingBalance(**CHANCE, tracking="sample", objective=DOptimal()),
        eq.PooledBalance(**W),
        eq.PooledBalance(reward_weight=0.0, pooling=False, first_rewards=3),
        eq.PooledBalance(reward_weight=1.0, floor=0.8 * shares),
        eq.PooledBalance(**W, tracking="difference", caution=0.0),
        eq.PooledBalance(**CHANCE, tracking="windowed", window=4, floor=0.5 / n_arms),
        eq.PooledBalance(information_kept=0.5),
        eq.PooledBalance(information_kept=0.9, tracking="windowed"),
        eq.ForcingBalance(information_kept=0.5, forcing=0.1),
        eq.ForcingBalance(information_kept=0.9, forcing=0.1, tracking="ratio"),
        eq.ForcingBalance(information_kept=0.1, forcing=0.1, tracking="windowed"),
        eq.GAFS(),
        eq.GAFSMax(forcing=0.3),
        eq.UCB(scale=0.7),
        eq.NaiveUCB(**W),
        eq.OptimisticBalance(**W, scale=0.5),
        eq.UCBExplore(**W, horizon=500),
        eq.EpsilonGreedy(exploration=0.2),
        eq.Uniform(),
        eq.Fixed(allocation=shares),
        eq.Fixed(allocation=shares, tracking="windowed"),
        eq.ThompsonBalance(**W, draws=3),
        eq.ThompsonSampling(draws=5),
        eq.ClippedThompson(draws=2, floor=0.5 / n_arms),
        eq.PostDiff(small_difference=0.5, draws=2),
        eq.SARP(**W, draws=2),
        eq.NARP(**W, draws=2),
        Curious(patience=3.0),
        CuriousCompiled(patience=3.0),
        Contrary(**W),
    ]


def mixed(n_arms):
    """One arm of each kind in turn."""
    kinds = [
        lambda i: eq.Empirical(values=[[0.0, 1.0, 1.5, 3.0 + i]]),
        lambda i: eq.Gaussian(mean=[1.0 + 0.1 * i], std=[0.5]),
        lambda i: eq.Beta(a=[0.5 + i], b=[0.7], high=3.0),
        lambda i: eq.Distributions(distributions=[stats.expon(scale=1.0 + 0.2 * i)]),
        lambda i: eq.UniformBetween(low=[0.0], high=[2.0 + i]),
        lambda i: eq.Bernoulli(mean=[0.5]),
    ]
    return eq.Mixed(parts=[kinds[i % len(kinds)](i) for i in range(n_arms)])


def gaussian(n_arms):
    rng = np.random.default_rng(n_arms)
    return eq.Gaussian(mean=rng.normal(1, 0.5, n_arms), std=rng.gamma(2, 0.3, n_arms))


def bernoulli(n_arms):
    """Many ties, and no spread at all in the beginning."""
    return eq.Bernoulli(mean=np.linspace(0.05, 0.6, n_arms))


def played(policy, arms, horizon, seed, replication):
    """Ask and tell on the simulator's rewards; yield what there is to know after each step."""
    rewards = [arms.rewards(i, seed=seed, replication=replication, count=horizon) for i in range(arms.n_arms)]
    if replication == 0:
        bandit = eq.Bandit(policy, arms.n_arms, seed=seed)
        for _ in range(horizon):
            arm = bandit.ask()
            bandit.tell(arm, rewards[arm][bandit.stats.pulls[arm]])
            yield bandit.stats
        return
    known, choose = eq.ArmStats(arms.n_arms), policy.prepare(arms.n_arms)
    for k in range(horizon):
        arm = choose(known, decision_uniform(seed, replication, k)).arm
        known.assign(arm)
        known.update(arm, rewards[arm][known.pulls[arm]])
        yield known


def assert_same_as_asking(policy, arms, horizon, seed, replications):
    runs = eq.simulate(policy, arms, horizon, replications, seed=seed, checkpoints=range(1, horizon + 1), workers=2)
    for place, replication in enumerate(runs.replications.tolist()):
        for k, known in enumerate(played(policy, arms, horizon, seed, replication)):
            where = f"{policy!r}, replication {replication}, step {k + 1}"
            np.testing.assert_array_equal(runs.pulls[0, place, k], known.pulls, where)
            np.testing.assert_array_equal(runs.mean[0, place, k], known.mean, where)
            np.testing.assert_array_equal(runs.std[0, place, k], known.std, where)
            target = policy.target(known)
            np.testing.assert_array_equal(runs.target[0, place, k], np.nan if target is None else target, where)


N_POLICIES = len(policies_for(2))


@pytest.mark.parametrize("make", [gaussian, bernoulli, mixed])
@pytest.mark.parametrize("index", range(N_POLICIES), ids=lambda k: f"{k}-{type(policies_for(2)[k]).__name__}")
def test_compiled_decisions_are_those_of_ask_and_tell(index, make):
    policy = policies_for(5)[index]
    in_python = isinstance(getattr(policy, "objective", None), DOptimal)  # a millisecond per step
    assert_same_as_asking(policy, make(5), 60 if in_python else 250, seed=17, replications=[0, 1, 9])


@pytest.mark.parametrize("n_arms", [1, 2, 64])
@pytest.mark.parametrize("index", range(N_POLICIES), ids=lambda k: f"{k}-{type(policies_for(2)[k]).__name__}")
def test_so_they_are_with_few_and_with_many_arms(index, n_arms):
    assert_same_as_asking(policies_for(n_arms)[index], gaussian(n_arms), 60 + 3 * n_arms, seed=4, replications=[0, 2])


@pytest.mark.parametrize("horizon", short_and_full(1000, 2500))
@pytest.mark.parametrize("weight", [0.0, 0.3, 0.9, 0.99])
def test_long_runs_of_forcing_balance_take_the_same_decisions(weight, horizon):
    for tracking in ("difference", "ratio"):
        policy = eq.ForcingBalance(reward_weight=weight, forcing=0.2, tracking=tracking)
        assert_same_as_asking(policy, FIVE, horizon, seed=8, replications=1)


@pytest.mark.parametrize("horizon", short_and_full(1000, 2500))
@pytest.mark.parametrize("kept", [0.99, 0.9, 0.5, 0.1, 0.01])
def test_so_do_long_runs_that_keep_information(kept, horizon):
    for tracking in ("difference", "ratio", "windowed"):
        policy = eq.ForcingBalance(information_kept=kept, forcing=0.2, tracking=tracking)
        assert_same_as_asking(policy, FIVE, horizon, seed=8, replications=1)
    for tracking in ("marginal", "windowed"):
        assert_same_as_asking(
            eq.PooledBalance(information_kept=kept, tracking=tracking), FIVE, horizon, seed=8, replications=1
        )


def test_every_policy_of_the_package_is_compared():
    compared = {type(policy).__name__ for policy in policies_for(2)}
    public = {name: getattr(eq, name) for name in eq.__all__}
    policies = {name: kind for name, kind in public.items() if inspect.isclass(kind) and issubclass(kind, eq.Policy)}
    shipped = {name for name, kind in policies.items() if not inspect.isabstract(kind)}
    assert len(shipped) == 17
    assert shipped <= compared


# Exact decisions


@numba.njit(cache=True)
def exact_scores(weight, t, pulls, mean, std, ratio, score):
    """Scores of the arms at step t from shares by bisection on the multiplier, to the last digits of a double."""
    n_arms = mean.size
    best = mean.max()
    low, high = 0.0, 0.0
    for i in range(n_arms):
        cost = 0.5 * (1.0 - weight) * std[i] / n_arms
        low = max(low, cost - weight * (best - mean[i]))
        high += cost ** (2.0 / 3.0)
    high = high**1.5
    while high - low > 1e-15 * high:
        level = 0.5 * (low + high)
        if level <= low or level >= high:
            break
        total = 0.0
        for i in range(n_arms):
            cost = 0.5 * (1.0 - weight) * std[i] / n_arms
            total += (cost / (level + weight * (best - mean[i]))) ** (2.0 / 3.0)
        if total > 1.0:
            low = level
        else:
            high = level
    for i in range(n_arms):
        cost = 0.5 * (1.0 - weight) * std[i] / n_arms
        share = (cost / (high + weight * (best - mean[i]))) ** (2.0 / 3.0)
        score[i] = share * (t - 1) / pulls[i] if ratio else share - pulls[i] / (t - 1)


@numba.njit(cache=True)
def compare_decisions(weight, forcing, ratio, first, pulls, mean, std, counts):
    """Count solves, decisions other than the exact one's, and those of them that are no ties within rounding."""
    n_arms = pulls.shape[1]
    score = np.empty(n_arms)
    for k in range(pulls.shape[0] - 1):
        t = first + k + 1
        if pulls[k].min() < max(2.0, forcing * math.sqrt(t)):
            continue
        chosen = 0
        while pulls[k + 1, chosen] == pulls[k, chosen]:
            chosen += 1
        exact_scores(weight, t, pulls[k], mean[k], std[k], ratio, score)
        counts[0] += 1
        if score.argmax() != chosen:
            counts[1] += 1
            gap = score.max() - score[chosen]
            if gap > 1e-10 * (score.max() if ratio else 1.0):
                counts[2] += 1


def exact_comparison(n_arms, solves, seed=1):
    """Compare about this many decisions; return solves, decisions that differ, and those that are no ties."""
    counts = np.zeros(3, dtype=np.int64)
    rng = np.random.default_rng(n_arms)
    forcing = 0.1 if n_arms < 10 else 0.01
    weights = (0.0, 0.5, 0.9, 0.99)
    window = max(20, min(1000, solves // (2 * len(weights))))
    replication = 0
    while counts[0] < solves:
        arms = eq.Gaussian(mean=rng.normal(1.0, 0.5, n_arms), std=rng.gamma(2.0, 0.3, n_arms))
        for weight, tracking in ((w, tracking) for w in weights for tracking in ("difference", "ratio")):
            policy = eq.ForcingBalance(reward_weight=weight, forcing=forcing, tracking=tracking)
            first = int(2 * n_arms + rng.integers(0, 20 * n_arms))
            steps = range(first, first + window)
            runs = eq.simulate(policy, arms, steps[-1], [replication], seed=seed, checkpoints=steps, workers=1)
            record = (runs.pulls[0, 0], runs.mean[0, 0], runs.std[0, 0])
            compare_decisions(weight, forcing, tracking == "ratio", first, *record, counts)
        replication += 1
    return counts.tolist()


@pytest.mark.parametrize(("n_arms", "solves"), [(2, 20_000), (5, 20_000), (64, 8_000), (1000, 400)])
def test_decisions_are_those_of_an_exact_solver(n_arms, solves):
    compared, different, wrong = exact_comparison(n_arms, solves)
    assert compared >= solves
    assert wrong == 0
    assert different <= 1e-3 * compared  # ties within rounding are rare


def test_the_comparison_would_notice_a_wrong_decision():
    runs = eq.simulate(eq.ForcingBalance(**W, forcing=0.1), FIVE, 600, 1, seed=1, checkpoints=range(100, 601))
    record = [runs.pulls[0, 0], runs.mean[0, 0], runs.std[0, 0]]
    for weight, expected in ((0.7, 0), (0.72, 1)):
        counts = np.zeros(3, dtype=np.int64)
        compare_decisions(weight, 0.1, False, 100, *record, counts)
        assert counts[0] > 300 and min(counts[2], 1) == expected


# Whoever computes it


def test_results_do_not_depend_on_the_number_of_workers():
    policies = [eq.ForcingBalance(reward_weight=0.9), eq.ThompsonSampling(draws=3), Curious(), CuriousCompiled()]
    one, two, three = (eq.simulate(policies, mixed(6), 700, 7, seed=3, workers=n) for n in (1, 2, 3))
    assert one == two == three
    assert one == eq.simulate(policies, mixed(6), 700, 7, seed=3)


def test_results_do_not_depend_on_how_replications_are_split():
    policies = [eq.ForcingBalance(reward_weight=0.9), eq.UCB()]
    whole = eq.simulate(policies, FIVE, 500, 9, seed=3)
    for cuts in ([0, 1, 9], [0, 4, 5, 9], list(range(10))):
        parts = [eq.simulate(policies, FIVE, 500, range(a, b), seed=3) for a, b in itertools.pairwise(cuts)]
        assert eq.Runs.joined(parts[::-1]) == whole
    assert eq.simulate(policies, FIVE, 500, [7, 2], seed=3) == whole.select(replications=[7, 2])
    assert eq.simulate(policies[1], FIVE, 500, 9, seed=3) == whole.select(policies=[1])


def test_results_do_not_depend_on_how_a_replication_is_sliced(monkeypatch):
    policies = [eq.ForcingBalance(reward_weight=0.9), Curious(), CuriousCompiled()]
    whole = eq.simulate(policies, mixed(6), 400, 2, seed=3)
    monkeypatch.setattr("equipoise.simulation.players.FIRST_SLICE_STEPS", 1)
    monkeypatch.setattr("equipoise.simulation.players.SHORT_SLICE", 0.0)  # never longer
    assert eq.simulate(policies, mixed(6), 400, 2, seed=3) == whole


def test_every_policy_meets_the_same_rewards():
    for arms in (FIVE, mixed(5)):
        runs = eq.simulate([eq.Uniform(), eq.UCB(), eq.GAFS()], arms, 1000, 2, seed=6, checkpoints=[1000])
        for k, r, i in np.ndindex(3, 2, 5):
            count = runs.pulls[k, r, 0, i]
            rewards = arms.rewards(i, seed=6, replication=r, count=count)
            assert runs.mean[k, r, 0, i] == pytest.approx(rewards.mean(), rel=1e-12, abs=1e-12)
            if count > 1:
                assert runs.std[k, r, 0, i] == pytest.approx(rewards.std(ddof=1), rel=1e-11)


WITHOUT_COMPILER = """
import warnings
import equipoise as eq
import test_simulation as tests

warnings.simplefilter("ignore", RuntimeWarning)  # unsigned words wrap around, which machine code does not remark on
eq.simulate(tests.SOME_POLICIES, tests.mixed(6), 80, 2, seed=7, checkpoints=[30, 80]).save({path!r})
"""
SOME_POLICIES = [
    eq.ForcingBalance(reward_weight=0.9, forcing=0.2),
    eq.ForcingBalance(reward_weight=0.6, tracking="windowed"),
    eq.PooledBalance(reward_weight=0.9, floor=0.05),
    eq.PooledBalance(reward_weight=0.6, tracking="windowed"),
    eq.ForcingBalance(information_kept=0.7, forcing=0.2),
    eq.PooledBalance(information_kept=0.7, tracking="windowed"),
    eq.UCB(),
    CuriousCompiled(),
]


def test_results_are_the_same_without_the_compiler(tmp_path):
    path = tmp_path / "runs.npz"
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(Path(__file__).parent)}
    code = WITHOUT_COMPILER.format(path=str(path))
    done = subprocess.run([sys.executable, "-c", code], check=True, env=environment, capture_output=True, text=True)
    assert done.stderr == ""
    plain = eq.Runs.load(path)
    compiled = eq.simulate(SOME_POLICIES, mixed(6), 80, 2, seed=7, checkpoints=[30, 80])
    np.testing.assert_array_equal(plain.pulls, compiled.pulls)
    for name in ("mean", "std", "target"):
        np.testing.assert_allclose(getattr(plain, name), getattr(compiled, name), rtol=1e-12, atol=1e-15)


def test_seeds_and_replications_differ():
    def means(seed, replications):
        return eq.simulate(eq.Uniform(), FIVE, 50, replications, seed=seed, checkpoints=[50]).mean.ravel().tolist()

    assert means(1, [0]) == means(1, [0])
    assert len({tuple(means(seed, [r])) for seed in (1, 2) for r in (0, 1)}) == 4


# Known figures of an independent simulation. Both sides were simulated, so their standard errors add up, and a
# printed figure is off by up to half a unit of its last digit.


def agrees(ours, standard_error, printed, digits, *, replications=200, printed_replications=200):
    both = standard_error * math.sqrt(1 + replications / printed_replications)
    return abs(ours - printed) <= 4 * both + 0.5 * 10.0**-digits


def test_the_five_arm_experiment_has_the_known_regret():
    checkpoints = [50, 200, 1000, 5000, 20_000]
    policies = [eq.ForcingBalance(reward_weight=0.9), eq.ForcingBalance(reward_weight=0.9, tracking="sample")]
    runs = eq.simulate(policies, FIVE, 20_000, 200, seed=1, checkpoints=checkpoints)
    found = eq.metrics.summarise(runs.rescaled_regret(reward_weight=0.9))
    tracked = [(8.4, 1), (7.0, 1), (4.6, 1), (0.98, 2), (0.02, 2)]
    for ours, error, (printed, digits) in zip(found.mean[0], found.standard_error[0], tracked, strict=True):
        assert agrees(ours, error, printed, digits), (ours, error, printed)
    for ours, error, printed in zip(found.mean[1, 3:], found.standard_error[1, 3:], [1.40, 0.31], strict=True):
        assert agrees(ours, error, printed, 2), (ours, error, printed)
    assert found.mean[0, -1] < found.mean[1, -1] / 5  # what tracking is good for (Fig. 8)


def two_arms(mean, variance):
    policies = [eq.NaiveUCB(reward_weight=0.4, failure_probability=0.1), eq.ForcingBalance(reward_weight=0.4)]
    arms = eq.Gaussian(mean=mean, std=np.sqrt(variance))
    checkpoints = [100, 200, 300, 400, 500, 600, 800, 1000, 2000, 3000, 4000, 5000]
    runs = eq.simulate(policies, arms, 5000, 200, seed=1, checkpoints=checkpoints)
    found = eq.metrics.summarise(runs.rescaled_regret(reward_weight=0.4))
    return runs.checkpoints, found.mean, found.standard_error


def test_naive_ucb_errs_and_recovers_in_setting_2():
    n, mean, error = two_arms([2, 1], [1, 2])
    peak = mean[0].argmax()
    assert 300 <= n[peak] <= 800
    assert agrees(mean[0, peak], error[0, peak], 25, 0)
    assert mean[0, -1] < 0.05


def test_naive_ucb_does_not_recover_in_setting_3():
    n, mean, error = two_arms([1.1, 1], [0.1, 2])
    assert (np.diff(mean[0, n >= 600]) > 0).all()
    assert agrees(mean[0, -1], error[0, -1], 12, 0)
    assert mean[1, -1] + 4 * error[1, -1] < 0.01


SURROGATE = {
    # weight, policy: error / largest std, reward / largest mean, rescaled regret, RelDCG, RankErr; as printed.
    (0.95, "ForcingBalance"): ["6.58", "0.941", "1.83", "0.075", "5.47"],
    (0.95, "GAFS"): ["5.856", "0.918", "20.1", "0.102", "5.20"],
    (0.95, "Uniform"): ["5.861", "0.917", "22.2", "0.107", "5.20"],
    (0.95, "UCB"): ["11.7", "0.971", "121", "0.11", "7.96"],
    (0.6, "ForcingBalance"): ["5.86", "0.920", "0.43", "0.10", "5.30"],
    (0.6, "GAFS"): [None, None, "1.44", None, None],
    (0.6, "Uniform"): [None, None, "3.96", None, None],
}


def test_the_64_arm_surrogate_has_the_known_rows():
    arms = treefrog_surrogate()
    policies = [eq.ForcingBalance(reward_weight=0.95), eq.ForcingBalance(reward_weight=0.6)]
    policies += [eq.GAFS(), eq.Uniform(), eq.UCB(scale=4.0)]
    runs = eq.simulate(policies, arms, 25_000, 100, seed=1, checkpoints=[25_000])
    for (weight, name), printed in SURROGATE.items():
        place = next(
            k
            for k, policy in enumerate(policies)
            if type(policy).__name__ == name and getattr(policy, "reward_weight", weight) == weight
        )
        metrics = [
            runs.error() / arms.std.max(),
            runs.reward() / arms.mean.max(),
            runs.rescaled_regret(reward_weight=weight),
            runs.relative_dcg(),
            runs.rank_error(),
        ]
        for figure, values in zip(printed, metrics, strict=True):
            if figure is None:
                continue
            found = eq.metrics.summarise(values[[place]])
            digits = len(figure.partition(".")[2])
            ours, error = found.mean[0, 0], found.standard_error[0, 0]
            assert agrees(ours, error, float(figure), digits), (weight, name, figure, ours, error)


# Edge cases


def test_a_horizon_too_short_to_pull_every_arm_twice():
    for policy in policies_for(5):
        if isinstance(policy, (Curious, CuriousCompiled, Contrary, eq.Fixed)):
            continue
        runs = eq.simulate(policy, FIVE, 3, 1, seed=1, checkpoints=[1, 2, 3])
        if isinstance(policy, eq.PooledBalance) and policy.tracking == "windowed":  # the order of its rounds is drawn
            assert sorted(runs.pulls[0, 0, -1].tolist()) == [0, 0, 1, 1, 1]
        else:
            assert runs.pulls[0, 0].tolist() == [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0]]
        assert np.isnan(runs.std).all() and np.isnan(runs.target).all()
        assert np.isinf(runs.error()).all()


def test_one_arm_one_step_one_replication():
    runs = eq.simulate(eq.ForcingBalance(reward_weight=0.5), eq.Gaussian(mean=[3.0], std=[2.0]), horizon=1)
    assert runs.pulls.tolist() == [[[[1]]]]
    assert runs.reward().tolist() == [[[3.0]]]
    assert runs.regret(reward_weight=0.5).tolist() == [[[0.0]]]


@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
def test_arms_without_spread(weight):
    arms = eq.Gaussian(mean=[1.0, 2.0, 3.0], std=[0.0, 0.0, 0.0])
    runs = eq.simulate(eq.ForcingBalance(reward_weight=weight), arms, 3000, 2, checkpoints=[3000])
    assert runs.mean[0, 0, 0].tolist() == [1.0, 2.0, 3.0]
    assert runs.std[0, 0, 0].tolist() == [0.0, 0.0, 0.0]
    assert runs.target[0, 0, 0].tolist() == ([1 / 3] * 3 if weight == 0 else [0.0, 0.0, 1.0])
    forced = math.ceil(math.sqrt(3000))
    assert runs.pulls[0, 0, 0].tolist() == ([1000] * 3 if weight == 0 else [forced, forced, 3000 - 2 * forced])


def test_some_arms_without_spread():
    arms = eq.Gaussian(mean=[1.0, 1.5, 1.0], std=[1.0, 0.0, 2.0])
    runs = eq.simulate(eq.ForcingBalance(reward_weight=0.6), arms, 20_000, 3, checkpoints=[20_000])
    assert np.abs(runs.target - runs.frequency).max() < 0.005
    # Shares go with (distance from 1.5)^(-2/3), and the noisier mean has the standard error 2 / sqrt(11,600).
    share = eq.optimal_allocation(arms.mean, arms.std, reward_weight=0.6)[2]
    assert runs.target_distance(reward_weight=0.6).max() < 4 * share * (2 / 3) * (2 / math.sqrt(11_600)) / 0.5


def test_weights_zero_and_one():
    runs = eq.simulate([eq.ForcingBalance(reward_weight=w) for w in (0.0, 1.0)], FIVE, 20_000, 5, checkpoints=[20_000])
    assert runs.frequency_distance(reward_weight=0.0)[0].max() < 0.02
    forced = math.ceil(math.sqrt(20_000))
    assert runs.pulls[1, 0, 0].tolist() == [forced] * 4 + [20_000 - 4 * forced]


def test_equal_means():
    arms = eq.Gaussian(mean=[2.0, 2.0, 2.0], std=[1.0, 1.0, 1.0])
    runs = eq.simulate(eq.ForcingBalance(reward_weight=0.5), arms, 20_000, 5, checkpoints=[20_000])
    assert np.abs(runs.frequency - 1 / 3).max() < 0.02


def test_checkpoints_may_be_unsorted_repeated_and_miss_the_horizon():
    runs = eq.simulate(eq.UCB(), FIVE, 300, 2, seed=1, checkpoints=[200, 7, 7, 50])
    assert runs.checkpoints.tolist() == [7, 50, 200]
    assert runs.horizon == 300
    every = eq.simulate(eq.UCB(), FIVE, 300, 2, seed=1, checkpoints=np.arange(1, 301))
    np.testing.assert_array_equal(runs.pulls, every.pulls[:, :, [6, 49, 199]])
    assert eq.simulate(eq.UCB(), FIVE, 300, checkpoints=300).checkpoints.tolist() == [300]


def test_checkpoints_may_be_floats_that_are_whole_numbers():
    for steps in ([1e1, 1e2], np.array([100.0, 10.0]), np.geomspace(10, 100, 2).round()):
        runs = eq.simulate(eq.UCB(), FIVE, 100, checkpoints=steps)
        assert runs.checkpoints.tolist() == [10, 100]
        assert runs.checkpoints.dtype == np.int64
    assert eq.simulate(eq.UCB(), FIVE, 5, [2**63 - 1]).replications.tolist() == [2**63 - 1]


@pytest.mark.parametrize("horizon", [1, 2, 39, 1000, 10**6])
def test_default_checkpoints_go_from_one_to_the_horizon(horizon):
    from equipoise.simulation import default_checkpoints

    steps = default_checkpoints(horizon)
    assert (steps[0], steps[-1]) == (1, horizon)
    assert steps.size <= 40 and (np.diff(steps) > 0).all()
    if horizon >= 1000:
        ratio = steps[1:] / steps[:-1]
        assert ratio[-15:].max() / ratio[-15:].min() < 1.05  # evenly spaced, up to whole numbers


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policies": []}, "policies must be policies such as"),
        ({"policies": "ucb"}, "policies must be policies such as ForcingBalance.*got 'ucb'"),
        ({"policies": 3}, "policies must be policies such as"),
        ({"policies": [eq.UCB(), "ucb"]}, "policies must be policies such as"),
        (
            {"policies": [eq.UCB(), eq.Uniform(), eq.UCB(scale=1)]},
            r"policies must differ.*; got UCB\(\) more than once",
        ),
        ({"policies": eq.Fixed(allocation=[0.5, 0.5])}, "must have 5 entries"),
        ({"policies": [eq.UCB(), eq.ForcingBalance(**W, floor=[0.1, 0.2])]}, "floor must have 5 entries"),
        ({"arms": [1, 2]}, r"arms must be Arms such as Gaussian\(mean=\[1, 2\], std=\[1, 1\]\); got \[1, 2\]"),
        ({"horizon": 0}, "horizon must be at least 1; got 0"),
        ({"horizon": 10.5}, "horizon must be a whole number; got 10.5"),
        ({"horizon": 10**16}, "horizon must be at most"),
        ({"replications": 0}, "replications must be at least 1; got 0"),
        ({"replications": 2.5}, "replications must be a whole number; got 2.5"),
        ({"replications": range(0)}, r"which: different whole numbers from 0; got range\(0, 0\)"),
        ({"replications": [1, 1]}, r"which: different whole numbers from 0; got \[1, 1\]"),
        ({"replications": range(-1, 3)}, "different whole numbers from 0"),
        ({"replications": [[1], [2, 3]]}, "different whole numbers from 0"),
        ({"seed": -1}, "seed must be at least 0; got -1"),
        ({"seed": 2**63}, "seed must be at most"),
        ({"checkpoints": []}, r"checkpoints must be whole numbers from 1 to 100, the horizon; got \[\]"),
        ({"checkpoints": [0, 5]}, r"checkpoints must be whole numbers from 1 to 100, the horizon; got \[0, 5\]"),
        ({"checkpoints": [5, 101]}, "whole numbers from 1 to 100"),
        ({"checkpoints": [1.5]}, "whole numbers from 1 to 100"),
        ({"checkpoints": [1.0, math.nan]}, "whole numbers from 1 to 100"),
        ({"checkpoints": [1e300]}, "whole numbers from 1 to 100"),
        ({"checkpoints": [True]}, "whole numbers from 1 to 100"),
        ({"checkpoints": [[1, 2]]}, "whole numbers from 1 to 100"),
        ({"checkpoints": [[1], [2, 3]]}, "whole numbers from 1 to 100"),
        ({"checkpoints": "all"}, "whole numbers from 1 to 100"),
        ({"workers": 0}, "workers must be at least 1; got 0"),
        ({"progress": 7}, r"progress must be True, False or a function of \(done, total\); got 7"),
    ],
)
def test_bad_arguments_are_refused_before_any_work(change, message, monkeypatch):
    def never(*arguments, **options):
        raise AssertionError("work began")

    monkeypatch.setattr("equipoise.simulation.simulator.new_arena", never)
    arguments = {"policies": eq.UCB(), "arms": FIVE, "horizon": 100, "replications": 2, "seed": 1} | change
    with pytest.raises(eq.InvalidInput, match=message):
        eq.simulate(**arguments)


# Policies of one's own


def test_a_numba_policy_takes_the_decisions_of_its_python_twin_at_compiled_speed():
    arms, every = gaussian(5), range(1, 2001)
    fast, slow = (
        eq.simulate(policy, arms, 2000, seed=2, checkpoints=every) for policy in (CuriousCompiled(), Curious())
    )
    np.testing.assert_array_equal(fast.pulls, slow.pulls)
    np.testing.assert_array_equal(fast.mean, slow.mean)

    def seconds(policy):
        started = time.process_time()  # what others do meanwhile does not count
        eq.simulate(policy, arms, 20_000, seed=2, workers=1)
        return time.process_time() - started

    assert seconds(Curious()) > 20 * min(seconds(CuriousCompiled()) for _ in range(3))


@numba.njit
def fill_too_much(parameters, t, assigned, pulls, mean, std, probability):
    probability[0] = 1.0
    if t > 7:
        probability[1] = 0.5


@numba.njit
def fill_first(parameters, t, assigned, pulls, mean, std, probability):
    probability[t % 2] = 1.0  # the others are 0 before, whatever they were in the last step


@dataclass(frozen=True, kw_only=True, repr=False)
class Filling(eq.NumbaPolicy):
    function: str = "too much"

    def filler(self):
        return {"too much": fill_too_much, "first": fill_first, "plain": print}[self.function]

    def parameters(self):
        return ()


def test_what_a_numba_policy_fills_is_checked():
    with pytest.raises(eq.InvalidInput, match=r"function of Filling\(\) must fill 3 probabilities.*at step 8"):
        eq.simulate(Filling(), gaussian(3), 100)
    with pytest.raises(eq.InvalidInput, match=r"must return a function compiled by numba; got .*print.*\nhint: decor"):
        eq.simulate(Filling(function="plain"), gaussian(3), 100)
    assert eq.simulate(Filling(function="first"), gaussian(3), 9, checkpoints=[9]).pulls.tolist() == [[[[4, 5, 0]]]]


@numba.njit
def fill_without_spread(parameters, t, assigned, pulls, mean, probability):
    probability[0] = 1.0


@numba.njit
def fill_nonsense(parameters, t, assigned, pulls, mean, std, probability):
    probability[0] = pulls.most


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            fill_without_spread,
            r"filler of Misfilling must return a function fill\(parameters, t, assigned, pulls, mean, std, probability"
            r"\); got fill_without_spread\(parameters, t, assigned, pulls, mean, probability\)$",
        ),
        (
            fill_nonsense,
            r"the function of Misfilling\(\) must be one that numba can compile; got: Unknown attribute 'most' of type "
            r"array\(int64, 1d, C\) \(File .*test_simulation.py\", line \d+\)\nhint: it is called as fill\(parameters, "
            r"t, .*, where parameters is \(2.0,\)$",
        ),
    ],
)
def test_a_function_that_numba_cannot_use_is_told_in_a_line(function, message):
    @dataclass(frozen=True, kw_only=True, repr=False)
    class Misfilling(eq.NumbaPolicy):
        taste: float = 2.0

        def filler(self):
            return function

    for act in (lambda: eq.simulate(Misfilling(), gaussian(3), 10), eq.Bandit(Misfilling(), 3).ask):
        with pytest.raises(eq.InvalidInput, match=message) as caught:
            act()
        assert caught.value.__suppress_context__  # numba's own words fill a screen


def test_fields_of_a_numba_policy_are_numbers():
    with pytest.raises(eq.InvalidInput, match="patience of CuriousCompiled must be a number; got 'long'\nhint: define"):
        eq.simulate(CuriousCompiled(patience="long"), gaussian(3), 100)


@pytest.mark.parametrize("name", ["assigned", "pulls", "mean", "std", "sums"])
def test_a_policy_cannot_change_the_statistics_it_is_shown(name):
    @dataclass(frozen=True, kw_only=True, repr=False)
    class Meddling(eq.Policy):
        in_target: bool = False

        def probabilities(self, stats):
            if not self.in_target:
                getattr(stats, name)[...] = 7
            return np.full(stats.n_arms, 1 / stats.n_arms)

        def target(self, stats):
            getattr(stats, name)[...] = 7

    @dataclass(frozen=True, kw_only=True, repr=False)
    class MeddlingCompiled(CuriousCompiled):
        target = Meddling.target

    policies = [Meddling(), Meddling(in_target=True), *([] if name == "sums" else [MeddlingCompiled()])]
    for policy in policies:
        with pytest.raises(ValueError, match="read-only"):
            eq.simulate(policy, FIVE, 10)


def test_what_a_subclass_of_a_built_in_policy_writes_is_not_kept():
    @dataclass(frozen=True, kw_only=True, repr=False)
    class Meddling(eq.ForcingBalance):
        def probabilities(self, stats):
            probability = super().probabilities(stats)
            for array in (stats.assigned, stats.pulls, stats.mean, stats.std, stats.sums):
                array[...] = 7
            return probability

    runs, plain = (eq.simulate(kind(**W), FIVE, 60, 2, seed=1) for kind in (Meddling, eq.ForcingBalance))
    for array in ("pulls", "mean", "std", "target"):
        np.testing.assert_array_equal(getattr(runs, array), getattr(plain, array))


def test_an_error_in_a_policy_stops_the_simulation():
    @dataclass(frozen=True, kw_only=True, repr=False)
    class Broken(eq.Policy):
        def probabilities(self, stats):
            if stats.n_assigned == 20:
                raise RuntimeError("out of ideas")
            return np.full(stats.n_arms, 1 / stats.n_arms)

    with pytest.raises(RuntimeError, match="out of ideas"):
        eq.simulate([eq.Uniform(), Broken()], FIVE, 100, 50)


# Progress, Ctrl-C, memory


def test_progress_counts_up_to_the_total():
    seen = []
    eq.simulate([eq.UCB(), Curious()], FIVE, 3000, 4, progress=lambda done, total: seen.append((done, total)))
    counts = [done for done, _ in seen]
    assert counts == sorted(counts)
    assert seen[-1] == (24_000, 24_000)
    assert {total for _, total in seen} == {24_000}


def test_the_progress_bar_is_silent_where_there_is_no_terminal(capfd):
    eq.simulate(eq.UCB(), FIVE, 100, progress=True)
    eq.simulate(eq.UCB(), FIVE, 100, progress=False)
    assert capfd.readouterr() == ("", "")


def test_the_progress_bar_shows_speed_and_time_left(monkeypatch, capfd):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    eq.simulate(Curious(), FIVE, 12_000, progress=True, workers=1)
    shown = capfd.readouterr().err
    assert "simulating" in shown
    assert "steps/s" in shown


INTERRUPTED = """
import sys, threading
import equipoise as eq

def show(done, total):
    if done >= {until}:
        print("playing", flush=True)

arms = eq.Gaussian(mean=[1, 1.5, 2, 4, 5], std=[0.2, 0.3, 0.4, 2, 0.7])
try:
    eq.simulate({policies}, arms, {horizon}, 100_000, seed=5, checkpoints=[10, {horizon}], progress=show)
except eq.SimulationInterrupted as interrupted:
    print("stopped", threading.active_count(), flush=True)
    if interrupted.runs is not None:
        interrupted.runs.save({path!r})
"""


@pytest.mark.parametrize(
    ("policies", "horizon", "until", "finishes"),
    [
        ("[eq.ForcingBalance(reward_weight=0.9), eq.Uniform()]", 20_000, 1_000_000, True),
        ("eq.ThompsonBalance(reward_weight=0.9, draws=2000)", 10**9, 20, False),
    ],
)
def test_ctrl_c_stops_within_a_second_and_keeps_finished_replications(tmp_path, policies, horizon, until, finishes):
    path = tmp_path / "runs.npz"
    code = INTERRUPTED.format(policies=policies, horizon=horizon, until=until, path=str(path))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "playing\n"
        process.send_signal(signal.SIGINT)
        sent = time.monotonic()
        line = process.stdout.readline()
        while line == "playing\n":
            line = process.stdout.readline()
        waited = time.monotonic() - sent
        assert line == "stopped 1\n"
        assert process.wait(HANGS) == 0
    assert waited < HANGS  # to play them all takes hours
    assert path.exists() == finishes
    if finishes:
        kept = eq.Runs.load(path)
        numbers = kept.replications.tolist()
        assert len(numbers) >= 10 and len(numbers) == len(set(numbers))
        some = [numbers[0], numbers[len(numbers) // 2], numbers[-1]]
        again = eq.simulate(
            kept.policies, eq.Gaussian(**MEANS_AND_STDS), horizon, some, seed=5, checkpoints=[10, horizon]
        )
        assert kept.select(replications=some) == again


MEANS_AND_STDS = {"mean": [1, 1.5, 2, 4, 5], "std": [0.2, 0.3, 0.4, 2, 0.7]}


def test_ctrl_c_before_anything_is_finished_leaves_no_runs():
    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(eq.SimulationInterrupted) as caught:
        eq.simulate(Curious(), FIVE, 10**9, 2, progress=interrupt)
    assert caught.value.runs is None
    assert isinstance(caught.value, KeyboardInterrupt)


MEMORY = """
import resource
import equipoise as eq

arms = eq.Gaussian(mean=[1, 1.5, 2, 4, 5], std=[0.2, 0.3, 0.4, 2, 0.7])
def peak(horizon):
    eq.simulate([eq.ForcingBalance(reward_weight=0.9), eq.UCB()], arms, horizon, 2, seed=1, workers=1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
peak(1000)
print(peak(100_000), peak(2_000_000))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs the resource module")
def test_memory_does_not_grow_with_the_horizon():
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    short, long = map(int, done.stdout.split())
    assert long - short < 2048  # kilobytes; one double per step would take 16,000


def main():
    """Compare a million decisions with an exact solver and print the counts."""
    print(f"{'arms':>6} {'solves':>10} {'different':>10} {'beyond ties':>12} {'seconds':>8}")
    total = np.zeros(3, dtype=np.int64)
    for n_arms, solves in ((2, 400_000), (5, 400_000), (64, 200_000), (1000, 20_000)):
        started = time.perf_counter()
        counts = exact_comparison(n_arms, solves)
        total += counts
        print("{:6,} {:10,} {:10,} {:12,}".format(n_arms, *counts), f"{time.perf_counter() - started:8.1f}", flush=True)
    print("{:>6} {:10,} {:10,} {:12,}".format("all", *total.tolist()))
    return int(total[2] > 0)


if __name__ == "__main__":
    sys.exit(main())
