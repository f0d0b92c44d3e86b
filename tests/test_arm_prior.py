"""A prior of PooledBalance: what it makes of the rewards, what it costs if it is wrong, and where it comes from."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, special

import equipoise as eq
from equipoise.kernels.pooling import believe, expected_between
from equipoise.simulation import parse_study, policy_from_text

PRIOR = eq.ArmPrior(means_apart=0.1, spreads_apart=0.2, weight=4)
WINDOWED = {"reward_weight": 0.9, "tracking": "windowed"}


def summary(pulls, mean, std):
    return eq.ArmStats.from_summary(pulls, mean, std)


def rates(pulls, successes):
    pulls, mean = np.asarray(pulls), np.asarray(successes) / pulls
    return summary(pulls, mean, np.sqrt(mean * (1 - mean) * pulls / (pulls - 1)))


def beliefs(stats, prior):
    """Return what the kernel believes of means and spreads, and their unit."""
    believed = np.empty((2, stats.n_arms))
    expected = (prior.weight, prior.means_apart**2, prior.spreads_apart**2)
    unit = believe(1, 2.0, stats.pulls, stats.mean, stats.std, np.empty((2, stats.n_arms)), *believed, *expected)
    return *believed, unit


# Beliefs, against the posterior in NumPy and SciPy


def loss(logarithm, weight, prior, noise, value):
    """Return minus twice the log posterior of a variance between arms, by its logarithm, for one or an array of these.

    The likelihood is that of the differences between the arms (restricted maximum likelihood), the prior a scaled
    inverse chi-square with `weight` degrees of freedom.
    """
    between = np.exp(logarithm)
    precision = 1 / (noise + np.expand_dims(between, -1))
    total = precision.sum(axis=-1)
    centre = (precision * value).sum(axis=-1, keepdims=True) / np.expand_dims(total, -1)
    likelihood = (precision * (value - centre) ** 2 - np.log(precision)).sum(axis=-1) + np.log(total)
    return likelihood + weight * (logarithm + prior / between)


def likely_between(weight, prior, noise, value):
    grid = np.linspace(math.log(prior) - 12, math.log(prior) + 12, 600)
    start = grid[np.argmin(loss(grid, weight, prior, noise, value))]
    near = (start - 0.05, start + 0.05)
    return math.exp(optimize.minimize_scalar(loss, near, args=(weight, prior, noise, value), tol=1e-10).x)


def shrunk(between, noise, value):
    centre = np.average(value, weights=1 / (noise + between))
    return (between * value + noise * centre) / (noise + between)


def expected_beliefs(stats, prior):
    """Return means and spreads in units of the typical spread, by scipy and the exact digamma and trigamma."""
    pulls, mean, std = stats.pulls, stats.mean, stats.std
    seen, d = std > 0, stats.pulls - 1
    z = np.log(std[seen] ** 2) + np.log(d[seen] / 2) - special.digamma(d[seen] / 2)
    u = 2 * special.polygamma(1, d[seen] / 2)
    v = np.clip(likely_between(prior.weight, prior.spreads_apart**2, u, z), 0.0025, 9.0)
    typical = np.average(z, weights=1 / (u + v))
    strength = (1 + math.sqrt(1 + 2 * v)) / v
    scale = math.exp(typical - 1 / strength - 1 / (3 * strength**2))
    unit, rare = math.exp(typical / 2), max(strength, 4)
    spread = np.where(
        seen, np.sqrt((strength * scale + d * std**2) / (strength + d - 1.5)), unit * np.sqrt(rare / (rare + d))
    )
    noise, value = (spread / unit) ** 2 / pulls, (mean - mean.mean()) / unit
    return shrunk(likely_between(prior.weight, prior.means_apart**2, noise, value), noise, value), spread / unit


@pytest.mark.parametrize("weight", [4.0, 10.0, 1000.0])
@pytest.mark.parametrize("n_arms", [2, 3, 4, 12, 40])
def test_the_variance_between_arms_is_the_mode_of_its_posterior(n_arms, weight):
    rng = np.random.default_rng(n_arms)
    for _ in range(20):
        noise = rng.gamma(2, 0.5, n_arms) * 10.0 ** rng.uniform(-4, 1)
        prior = 10.0 ** rng.uniform(-3, 0)
        value = rng.normal(5, np.sqrt(noise + prior * 10.0 ** rng.uniform(-1, 1)))
        ours = math.log(expected_between(weight, prior, noise, value))
        best = math.log(likely_between(weight, prior, noise, value))
        assert ours == pytest.approx(best, abs=0.01)


@pytest.mark.parametrize("n_arms", [2, 3, 12])
def test_where_prior_and_rewards_contradict_each_other_the_larger_variance_is_believed(n_arms):
    rng, several = np.random.default_rng(n_arms), 0
    for _ in range(300):
        noise, value = rng.gamma(2, 0.05, n_arms), rng.normal(0, 1.0, n_arms)
        ours = math.log(expected_between(2.0, 0.001, noise, value))
        grid = np.linspace(math.log(0.001) - 3, math.log(0.001) + 15, 2_000)
        losses = loss(grid, 2.0, 0.001, noise, value)
        modes = grid[1:-1][(losses[1:-1] < losses[:-2]) & (losses[1:-1] < losses[2:])]
        if modes.size > 1:
            assert ours == pytest.approx(modes[-1], abs=0.05)
            several += 1
    assert several > 5


@pytest.mark.parametrize("n_arms", [2, 3, 5, 20])
def test_beliefs_are_those_of_the_posterior(n_arms):
    rng = np.random.default_rng(n_arms)
    for _ in range(10):
        pulls = rng.integers(5, 200, n_arms)
        std = rng.lognormal(0, 0.2, n_arms)
        if n_arms > 3:
            std[0] = 0.0
        stats = summary(pulls, rng.normal(7, 0.3, n_arms), std)
        prior = eq.ArmPrior(means_apart=rng.choice([0.1, 0.3]), spreads_apart=0.3, weight=rng.choice([2.0, 5.0]))
        mean, spread, _ = beliefs(stats, prior)
        expected_mean, expected_spread = expected_beliefs(stats, prior)
        assert mean - mean[0] == pytest.approx(expected_mean - expected_mean[0], rel=0.01, abs=0.003)
        assert spread == pytest.approx(expected_spread, rel=0.01)


@pytest.mark.parametrize("n_arms", [2, 3, 8])
def test_beliefs_of_rates_are_those_of_the_posterior(n_arms):
    rng = np.random.default_rng(n_arms)
    for _ in range(10):
        pulls = rng.integers(20, 400, n_arms)
        successes = rng.binomial(pulls, 0.1)
        stats, typical = rates(pulls, successes), (0.5 + successes.sum()) / (1 + pulls.sum())
        noise, value = typical * (1 - typical) / pulls, (successes / pulls - typical) * pulls / (pulls + 2)
        between = likely_between(PRIOR.weight, PRIOR.means_apart**2 * typical * (1 - typical), noise, value)
        wanted = shrunk(between, noise, value)
        mean, spread, unit = beliefs(stats, PRIOR)
        assert unit == pytest.approx(1)
        assert mean == pytest.approx(wanted, abs=1e-5)
        assert spread == pytest.approx(np.sqrt((typical + wanted) * (1 - typical - wanted)), rel=1e-4)


def test_two_arms_are_believed_to_be_as_far_apart_as_the_prior_says():
    """With a large weight the prior is the truth: a difference is kept by the part of its variance that is no noise."""
    prior = eq.ArmPrior(means_apart=0.1, spreads_apart=0.05, weight=1e6)
    for n in (4, 100, 10_000):
        mean, spread, unit = beliefs(summary([n, n], [1.0, 2.9], [1.9, 1.9]), prior)
        assert mean[1] - mean[0] == pytest.approx(1.9 / unit * 0.01 / (0.01 + spread[0] ** 2 / n), rel=1e-4)


@pytest.mark.parametrize("off", [1 / 30, 1.0, 30.0])
def test_arms_that_are_known_speak_for_themselves_whatever_the_prior(off):
    mean, std = [1.0, 1.1, 1.3], [1.0, 0.5, 2.0]
    prior = eq.ArmPrior(means_apart=0.1 * off, spreads_apart=max(0.05, 0.05 * off), weight=10)
    policy, wanted = (
        eq.PooledBalance(reward_weight=0.9, prior=prior),
        eq.optimal_allocation(mean, std, reward_weight=0.9),
    )
    far = [np.abs(policy.target(summary([n] * 3, mean, std)) - wanted).max() for n in (10, 1_000, 10_000_000)]
    assert far[2] < 1e-3
    assert far[2] < far[0]


def test_many_arms_win_over_a_wrong_prior():
    """They differ by 0.6 standard deviations and are known to 0.2; the prior says 0.05."""
    means, stats = np.linspace(-1.0, 1.0, 200), summary([20] * 200, np.linspace(-1.0, 1.0, 200), np.ones(200))
    for weight, low, high in ((1e6, 0.0, 0.1), (4, 0.8, 0.9)):
        mean, _, _ = beliefs(stats, eq.ArmPrior(means_apart=0.05, spreads_apart=0.05, weight=weight))
        assert low < np.ptp(mean) / np.ptp(means) < high


@given(scale=st.floats(1e-9, 1e9), shift=st.floats(-1e3, 1e3), weight=st.floats(1, 1e6), apart=st.floats(0.001, 100))
def test_the_unit_of_the_rewards_makes_no_difference(scale, shift, weight, apart):
    mean, std, pulls = np.array([0.3, 1.0, 1.2]), np.array([1.0, 0.4, 1.3]), [5, 9, 200]
    policy = eq.PooledBalance(reward_weight=0.8, prior=eq.ArmPrior(means_apart=apart, weight=weight))
    moved = summary(pulls, scale * (mean + shift), scale * std)
    assert policy.target(moved) == pytest.approx(policy.target(summary(pulls, mean, std)), rel=1e-6, abs=1e-9)


@given(
    pulls=st.lists(st.integers(4, 10**9), min_size=1, max_size=6),
    sizes=st.lists(st.integers(-40, 40), min_size=6, max_size=6),
    apart=st.floats(0.001, 100),
    weight=st.floats(1, 1e6),
)
def test_arms_of_any_size_and_without_spread_have_beliefs(pulls, sizes, apart, weight):
    n_arms = len(pulls)
    size = 10.0 ** np.array(sizes[:n_arms])
    prior = eq.ArmPrior(means_apart=apart, weight=weight)
    for std in (size, np.where(np.arange(n_arms) % 2, size, 0.0), np.zeros(n_arms)):
        mean, spread, unit = beliefs(summary(pulls, np.linspace(-1, 1, n_arms) * size[::-1], std), prior)
        assert np.isfinite(mean).all()
        assert (np.isfinite(spread) & (spread >= 0)).all()
        assert 0 < unit < math.inf


# Decisions


def test_without_a_prior_nothing_changes():
    policy = eq.PooledBalance(**WINDOWED)
    assert "prior" not in policy.to_dict()
    assert repr(policy) == "PooledBalance(reward_weight=0.9, tracking='windowed')"
    rule = policy.rule()
    assert (rule.prior_weight, rule.prior_means, rule.prior_spreads) == (0.0, 0.0, 0.0)
    stats = summary([9, 9, 12, 30], [0.0, 0.1, 0.3, 0.2], [1.0, 1.1, 0.8, 1.3])
    without = np.empty((2, 4))
    believe(1, 2.0, stats.pulls, stats.mean, stats.std, np.empty((2, 4)), *without)
    zero = np.empty((2, 4))
    believe(1, 2.0, stats.pulls, stats.mean, stats.std, np.empty((2, 4)), *zero, 0.0, 0.5, 0.5)
    assert zero.tobytes() == without.tobytes()


@pytest.mark.parametrize("dial", [{"reward_weight": 0.9}, {"information_kept": 0.6}])
@pytest.mark.parametrize("arms", [eq.Gaussian(mean=[1.0, 1.1], std=[1.0, 1.2]), eq.Bernoulli(mean=[0.1, 0.12, 0.2])])
@pytest.mark.parametrize("tracking", ["marginal", "windowed", "difference"])
def test_the_simulator_decides_as_a_bandit_does(tracking, arms, dial):
    policy = eq.PooledBalance(**dial, tracking=tracking, prior=PRIOR)
    steps = 200
    pulls = eq.simulate(policy, arms, steps, 1, seed=5, checkpoints=range(1, steps + 1)).pulls[0, 0]
    rewards = [arms.rewards(i, seed=5, replication=0, count=steps) for i in range(arms.n_arms)]
    bandit = eq.Bandit(policy, arms.n_arms, seed=5)
    for k in range(steps):
        arm = bandit.ask()
        bandit.tell(arm, rewards[arm][bandit.stats.pulls[arm]])
        assert pulls[k].tolist() == bandit.stats.pulls.tolist()


def test_a_right_prior_lowers_the_regret_of_two_arms():
    """Two arms a tenth of a standard deviation apart, where four rewards each would mislead."""
    arms = eq.Gaussian(mean=[0.0, 0.1], std=[1.0, 1.0])
    policies = [eq.PooledBalance(reward_weight=0.9), eq.PooledBalance(reward_weight=0.9, prior=PRIOR)]
    regret = eq.simulate(policies, arms, 200, 400, seed=1).rescaled_regret(reward_weight=0.9)[:, :, -1]
    gain = regret[0] - regret[1]
    assert gain.mean() > 5 * gain.std(ddof=1) / math.sqrt(400)
    assert regret[1].mean() < 0.7 * regret[0].mean()


def test_every_parameter_reaches_the_decision():
    stats = summary([9, 9, 12], [0.0, 0.5, 0.3], [1.0, 1.4, 0.8])
    data = PRIOR.to_dict()
    targets = {
        tuple(eq.PooledBalance(reward_weight=0.9, prior=data | change).target(stats))
        for change in ({}, {"means_apart": 0.3}, {"spreads_apart": 0.6}, {"weight": 2})
    }
    assert len(targets) == 4


# JSON, files, live experiments


def test_a_prior_survives_json():
    policy = eq.PooledBalance(**WINDOWED, prior=PRIOR)
    data = json.loads(policy.to_json())
    assert data["prior"] == {"means_apart": 0.1, "spreads_apart": 0.2, "weight": 4.0}
    assert eq.Policy.from_dict(data) == policy
    assert eq.PooledBalance(**WINDOWED, prior={"means_apart": 0.1, "spreads_apart": 0.2}) == policy
    assert eval(repr(policy), {"PooledBalance": eq.PooledBalance, "ArmPrior": eq.ArmPrior}) == policy  # noqa: S307
    assert hash(policy) == hash(eq.Policy.from_json(policy.to_json()))


def test_files_and_commands_name_a_prior_in_a_table():
    text = "PooledBalance:reward_weight=0.9,prior={means_apart=.1,spreads_apart=0.2}"
    assert eq.Policy.from_dict(policy_from_text(text)) == eq.PooledBalance(reward_weight=0.9, prior=PRIOR)
    study = parse_study(
        """
        horizon = 100
        arms = {mean = [1, 2], std = [1, 1]}
        [[policies]]
        name = "PooledBalance"
        reward_weight = 0.9
        prior = [{means_apart = 0.1}, {means_apart = 0.3, weight = 10}]
        """
    )
    assert [policy.prior.means_apart for policy in study.policies] == [0.1, 0.3]


@pytest.mark.parametrize("yes_or_no", [False, True])
def test_a_live_experiment_logs_its_prior_and_replays(yes_or_no):
    rng = np.random.default_rng(1)
    found = []
    for prior in (None, PRIOR):
        policy = eq.PooledBalance(**WINDOWED, prior=prior)
        experiment = eq.Experiment.create("memory:", "exam", arms=["a", "b", "c"], policy=policy, seed=1)
        for k in range(80):
            arm = experiment.ask(f"unit {k}").arm
            p = {"a": 0.2, "b": 0.3, "c": 0.5}[arm]
            experiment.tell(f"unit {k}", float(rng.random() < p) if yes_or_no else rng.normal(p))
        if prior is not None:
            experiment.change_weight(0.5)
            experiment.pause_arm("a")
            experiment.ask_many([f"late {k}" for k in range(20)])
            assert experiment.configuration.policy.prior == PRIOR
            settings = next(iter(experiment.events())).details["configuration"]
            assert settings["policy"]["prior"] == PRIOR.to_dict()
        found.append([event.probability for event in experiment.events() if event.kind == "assigned"])
        assert experiment.verify().n_decisions == (80 if prior is None else 100)
    assert found[0][:12] == found[1][:12]  # until each arm has its first rewards, nothing is believed
    assert found[0] != found[1][:80]


def test_a_saved_bandit_keeps_its_prior():
    bandit = eq.Bandit(eq.PooledBalance(reward_weight=0.9, prior=PRIOR), 2, seed=1)
    for reward in (0.1, 0.2, 0.4, 0.3, 0.8, 0.7, 0.1, 0.3, 0.5):
        bandit.tell(bandit.ask(), reward)
    again = eq.Bandit.from_dict(json.loads(json.dumps(bandit.to_dict())))
    assert again.policy.prior == PRIOR
    assert again.ask(5) == bandit.ask(5)


# Where priors come from


def experiments_of(rng, n_experiments, n_arms, means_apart, spreads_apart, n_rewards):
    found = []
    for _ in range(n_experiments):
        unit, pulls = 10.0 ** rng.uniform(-2, 2), rng.integers(n_rewards // 2, 2 * n_rewards, n_arms)
        std = unit * np.exp(0.5 * spreads_apart * rng.normal(size=n_arms))
        mean = unit * (rng.normal(0, 10) + means_apart * rng.normal(size=n_arms)) + std / np.sqrt(pulls) * rng.normal(
            size=n_arms
        )
        found.append(summary(pulls, mean, std * np.sqrt(rng.chisquare(pulls - 1) / (pulls - 1))))
    return found


@pytest.mark.parametrize("means_apart", [0.05, 0.5])
@pytest.mark.parametrize("n_arms", [2, 5])
def test_earlier_experiments_show_how_far_apart_arms_are(n_arms, means_apart):
    n_experiments = 400 // (n_arms - 1)
    earlier = experiments_of(np.random.default_rng(7), n_experiments, n_arms, means_apart, 0.4, 300)
    prior = eq.ArmPrior.from_experiments(earlier)
    # The noise of a mean is 0.06; the variance it leaves has this standard error, with 400 degrees of freedom.
    error = math.sqrt(2 / 400) * (1 + 0.004 / means_apart**2) / 2
    assert prior.means_apart == pytest.approx(means_apart, rel=4 * error)
    assert prior.spreads_apart == pytest.approx(0.4, rel=0.15)
    assert prior.weight == 10


def test_earlier_rates_show_how_far_apart_they_are():
    rng = np.random.default_rng(3)
    earlier = []
    for _ in range(100):
        pulls = rng.integers(500, 900, 4)
        earlier.append(rates(pulls, rng.binomial(pulls, np.clip(rng.normal(0.2, 0.04, 4), 0.01, 0.99))))
    prior = eq.ArmPrior.from_experiments(earlier)
    assert prior.means_apart == pytest.approx(0.1, rel=0.2)
    assert prior.spreads_apart == eq.ArmPrior(means_apart=1).spreads_apart


def test_differences_that_noise_explains_leave_room_for_what_could_not_be_seen():
    same = eq.ArmPrior.from_experiments([summary([100, 100], [1.0, 1.0], [1.0, 1.0])])
    closer = eq.ArmPrior.from_experiments([summary([10_000, 10_000], [1.0, 1.0], [1.0, 1.0])])
    assert 0.03 < same.means_apart < 0.1
    assert closer.means_apart == pytest.approx(same.means_apart / 10, rel=0.01)
    assert same.weight == 1


def test_experiments_that_say_nothing_are_left_out():
    some = summary([90, 80, 3], [1.0, 2.0, 50.0], [3.0, 2.5, 0.1])
    nothing = [eq.ArmStats(2), summary([9, 3], [1, 2], [1, 1]), rates([50, 40], [0, 0])]
    assert eq.ArmPrior.from_experiments([*nothing, some]) == eq.ArmPrior.from_experiments([some])


def test_an_experiment_is_read_as_its_status_says():
    experiment = eq.Experiment.create("memory:", "exam", arms=["a", "b", "new"], policy=eq.Uniform(), seed=1)
    rng = np.random.default_rng(2)
    arms, rewards = [], []
    for k in range(60):
        arm = experiment.ask(f"unit {k}").arm
        arms.append("ab".find(arm)), rewards.append(rng.normal(arms[-1], 1.0))
        if arm != "new":
            experiment.tell(f"unit {k}", rewards[-1])
    known = [i for i, arm in enumerate(arms) if arm >= 0]
    stats = eq.ArmStats.from_rewards([arms[i] for i in known], [rewards[i] for i in known], 2)
    assert eq.ArmPrior.from_experiments([experiment]) == eq.ArmPrior.from_experiments([stats])


def test_guesses_say_how_far_apart_arms_are():
    prior = eq.ArmPrior.from_guesses([10.0, 12.0, 14.0], [4.0, 4.0, 4.0], mean_unsure=[1.0, 2.0, 1.0])
    assert prior.means_apart == pytest.approx(math.sqrt(4 + 2) / 4, rel=1e-3)
    assert prior.spreads_apart == 0.05
    prior = eq.ArmPrior.from_guesses([10.0, 10.0], [4.0, 5.0], mean_unsure=1.0, std_unsure=0.5, weight=2)
    assert prior.means_apart == pytest.approx(1 / math.sqrt(20), rel=1e-3)
    assert prior.spreads_apart == pytest.approx(
        math.sqrt(np.var(np.log([16, 25]), ddof=1) + np.mean([0.25**2, 0.2**2])), rel=1e-3
    )
    assert prior.weight == 2
    assert eq.ArmPrior.from_guesses([0.5], mean_unsure=0.1).means_apart == pytest.approx(0.2)


# Bad input


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: eq.ArmPrior(means_apart=0), r"means_apart must be in \[0.001, 100\]; got 0"),
        (lambda: eq.ArmPrior(means_apart="far"), "means_apart must be a number; got 'far'"),
        (lambda: eq.ArmPrior(means_apart=1, spreads_apart=4), r"spreads_apart must be in \[0.05, 3\]; got 4"),
        (lambda: eq.ArmPrior(means_apart=1, weight=0.5), r"weight must be in \[1, 1e\+06\]; got 0.5"),
        (lambda: eq.PooledBalance(reward_weight=1, prior=0.1), "prior must be an ArmPrior; got 0.1"),
        (lambda: eq.PooledBalance(reward_weight=1, prior={}), "prior: ArmPrior needs the parameter means_apart"),
        (
            lambda: eq.PooledBalance(reward_weight=1, prior={"apart": 1}),
            "ArmPrior has no parameter apart; allowed are means_apart, spreads_apart, weight",
        ),
        (
            lambda: eq.PooledBalance(reward_weight=1, prior={"means_apart": -1}),
            r"prior.means_apart must be in \[0.001, 100\]; got -1",
        ),
        (
            lambda: eq.PooledBalance(reward_weight=1, pooling=False, prior=PRIOR),
            "prior says how much arms have in common, and needs pooling=True",
        ),
        (lambda: eq.ArmPrior.from_dict([1]), r"expected means_apart, spreads_apart, weight; got \[1\]"),
        (
            lambda: eq.ArmPrior.from_experiments([]),
            "experiments must have one with rewards that differ and two arms with 4 rewards or more; got 0 without",
        ),
        (
            lambda: eq.ArmPrior.from_experiments([summary([9, 3], [1, 2], [1, 1]), summary([9, 9], [1, 2], [0, 0])]),
            "got 2 without",
        ),
        (lambda: eq.ArmPrior.from_experiments(summary([9], [1], [1])), "experiments must be a list of them"),
        (
            lambda: eq.ArmPrior.from_experiments([3]),
            r"experiments\[0\]: expected an Experiment, or the ArmStats of one",
        ),
        (lambda: eq.ArmPrior.from_guesses([10, 12]), "mean must be rates from 0 to 1"),
        (lambda: eq.ArmPrior.from_guesses([1, 2], [1, 0]), "std must be above 0; got 0.0 for arm 1"),
        (lambda: eq.ArmPrior.from_guesses([1, 2], [1, 1], mean_unsure=[1]), "mean_unsure must have 2 entries"),
        (lambda: eq.ArmPrior.from_guesses([1, 2], [1, 1], std_unsure=-1), r"std_unsure must be in \[0, inf\)"),
        (lambda: eq.ArmPrior.from_guesses([0.1, 0.1]), "mean_unsure must say how far off the guesses may be"),
    ],
)
def test_a_wrong_prior_says_what_would_be_right(make, message):
    with pytest.raises(eq.InvalidInput, match=message):
        make()
