"""Arms pay what their distributions say, and a reward depends on (seed, replication, arm, s) alone."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import dataclass

import mpmath
import numpy as np
import polars as pl
import pytest
from scipy import stats

import equipoise as eq

N_DRAWS = 40_000

KINDS = {
    "Gaussian": eq.Gaussian(mean=[1.0, -2.0, 0.0], std=[0.5, 3.0, 0.0]),
    "Bernoulli": eq.Bernoulli(mean=[0.0, 0.3, 1.0]),
    "UniformBetween": eq.UniformBetween(low=[0.0, -3.0, 2.0], high=[1.0, 5.0, 2.0]),
    "Beta": eq.Beta(a=[2.0, 0.3, 5.0], b=[3.0, 0.6, 0.5], low=[0.0, -1.0, 10.0], high=[1.0, 1.0, 20.0]),
    "Empirical": eq.Empirical(values=[[1.0, 2.0, 2.0], [5.0], [0.5, -0.5, 3.0, 3.0, 7.0]]),
    "Distributions": eq.Distributions(
        distributions=[stats.expon(scale=2.0), stats.gamma(4.0, scale=0.5), stats.lognorm(0.5)]
    ),
    "Mixed": eq.Mixed(
        parts=[
            eq.Empirical(values=[[1.0, 2.0, 2.0], [5.0, 6.0]]),
            eq.Distributions(distributions=[stats.expon(scale=2.0)]),
            eq.Empirical(values=[[0.5, -0.5, 3.0, 3.0, 7.0]]),
            eq.Bernoulli(mean=[0.3]),
            eq.Mixed(parts=[eq.Gaussian(mean=[1.0], std=[0.5]), eq.Empirical(values=[[8.0, 9.0]])]),
            eq.Beta(a=[2.0], b=[3.0]),
        ]
    ),
}
all_kinds = pytest.mark.parametrize("arms", KINDS.values(), ids=KINDS.keys())


def draws(arms, arm, count=N_DRAWS, seed=11):
    return arms.rewards(arm, seed=seed, count=count)


# Pure functions


@all_kinds
def test_any_stretch_of_rewards_is_that_of_the_whole_stream(arms):
    for arm in range(arms.n_arms):
        whole = arms.rewards(arm, seed=5, replication=3, count=300)
        for first, count in [(0, 1), (0, 0), (3, 2), (4, 4), (7, 0), (97, 150), (255, 3), (299, 1)]:
            part = arms.rewards(arm, seed=5, replication=3, first=first, count=count)
            np.testing.assert_array_equal(part, whole[first : first + count])


@pytest.mark.parametrize("kind", ["Gaussian", "UniformBetween", "Beta", "Distributions"])
def test_seeds_replications_and_arms_have_rewards_of_their_own(kind):
    arm = {
        "Gaussian": eq.Gaussian(mean=[0.0, 0.0], std=[1.0, 1.0]),
        "UniformBetween": eq.UniformBetween(low=[0, 0], high=[1, 1]),
        "Beta": eq.Beta(a=[2, 2], b=[2, 2]),
        "Distributions": eq.Distributions(distributions=[stats.norm(), stats.norm()]),
    }[kind]
    streams = np.array(
        [
            arm.rewards(0, seed=1, replication=0, count=2000),
            arm.rewards(0, seed=2, replication=0, count=2000),
            arm.rewards(0, seed=1, replication=1, count=2000),
            arm.rewards(1, seed=1, replication=0, count=2000),
            arm.rewards(0, seed=2**63 - 1, replication=2**62, count=2000),
        ]
    )
    assert np.unique(streams).size == streams.size
    # Nor are they shifted or otherwise dependent: 10 correlations of 2,000 pairs, to four standard errors.
    correlation = np.corrcoef(streams)[np.triu_indices(5, 1)]
    assert np.abs(correlation).max() < 4 / math.sqrt(2000)
    for lag in (1, 2, 4):
        assert abs(np.corrcoef(streams[0][lag:], streams[0][:-lag])[0, 1]) < 4 / math.sqrt(2000)


# Distributions


@all_kinds
def test_means_and_spreads_are_the_true_ones(arms):
    for arm in range(arms.n_arms):
        sample, mean, std = draws(arms, arm), arms.mean[arm], arms.std[arm]
        if std == 0:
            assert np.unique(sample).tolist() == [mean]
            continue
        assert abs(sample.mean() - mean) < 4 * std / math.sqrt(N_DRAWS)
        squares = (sample - mean) ** 2
        # Two values equally likely are equally far from their mean; then all is rounding.
        assert abs(squares.mean() - std**2) < 4 * squares.std() / math.sqrt(N_DRAWS) + 1e-12


@pytest.mark.parametrize(
    ("arms", "arm", "distribution"),
    [
        (KINDS["Gaussian"], 1, stats.norm(-2, 3)),
        (KINDS["UniformBetween"], 1, stats.uniform(-3, 8)),
        (KINDS["Beta"], 0, stats.beta(2, 3)),
        (KINDS["Beta"], 1, stats.beta(0.3, 0.6, loc=-1, scale=2)),
        (KINDS["Beta"], 2, stats.beta(5, 0.5, loc=10, scale=10)),
        (eq.Beta(a=[1.0], b=[1.0]), 0, stats.uniform()),
        (KINDS["Distributions"], 0, stats.expon(scale=2)),
        (KINDS["Distributions"], 1, stats.gamma(4, scale=0.5)),
        (KINDS["Distributions"], 2, stats.lognorm(0.5)),
        (KINDS["Mixed"], 2, stats.expon(scale=2)),
        (KINDS["Mixed"], 5, stats.norm(1, 0.5)),
        (KINDS["Mixed"], 7, stats.beta(2, 3)),
    ],
    ids=lambda value: getattr(getattr(value, "dist", None), "name", None),
)
def test_continuous_rewards_have_their_distribution(arms, arm, distribution):
    assert stats.kstest(draws(arms, arm), distribution.cdf).pvalue > 1e-3


@pytest.mark.parametrize(
    ("arms", "arm", "chances"),
    [
        (KINDS["Bernoulli"], 1, {0.0: 0.7, 1.0: 0.3}),
        (KINDS["Empirical"], 0, {1.0: 1 / 3, 2.0: 2 / 3}),
        (KINDS["Empirical"], 2, {-0.5: 0.2, 0.5: 0.2, 3.0: 0.4, 7.0: 0.2}),
        (KINDS["Mixed"], 1, {5.0: 0.5, 6.0: 0.5}),
        (KINDS["Mixed"], 3, {-0.5: 0.2, 0.5: 0.2, 3.0: 0.4, 7.0: 0.2}),
        (KINDS["Mixed"], 4, {0.0: 0.7, 1.0: 0.3}),
        (KINDS["Mixed"], 6, {8.0: 0.5, 9.0: 0.5}),
    ],
)
def test_discrete_rewards_have_their_frequencies(arms, arm, chances):
    values, counts = np.unique(draws(arms, arm), return_counts=True)
    assert values.tolist() == sorted(chances)
    expected = [N_DRAWS * chances[value] for value in values.tolist()]
    assert stats.chisquare(counts, expected).pvalue > 1e-3


def test_beta_rewards_are_right_where_a_gamma_draw_is_too_small_for_a_double():
    # Half of the mass is so close to 1 that it is 1, and much of the other half as good as 0.
    sample = draws(eq.Beta(a=[0.001], b=[0.001]), 0)
    for place in (1e-200, 1e-50, 1e-5, 0.25, 0.5, 0.75):
        chance = stats.beta(0.001, 0.001).cdf(place)
        assert abs(np.mean(sample <= place) - chance) < 4 * math.sqrt(chance * (1 - chance) / N_DRAWS)


def test_true_values_have_closed_forms():
    beta = KINDS["Beta"]
    for k, frozen in enumerate(
        [stats.beta(2, 3), stats.beta(0.3, 0.6, loc=-1, scale=2), stats.beta(5, 0.5, loc=10, scale=10)]
    ):
        assert (beta.mean[k], beta.std[k]) == pytest.approx((frozen.mean(), frozen.std()), rel=1e-12)
    assert eq.UniformBetween(low=[1], high=[4]).std[0] == pytest.approx(stats.uniform(1, 3).std(), rel=1e-12)
    assert KINDS["Empirical"].std[0] == pytest.approx(np.std([1, 2, 2]), rel=1e-15)
    assert KINDS["Mixed"].mean == pytest.approx([5 / 3, 5.5, 2, 2.6, 0.3, 1, 8.5, 0.4])


@pytest.mark.parametrize(
    ("a", "b"), [(1e-200, 1e-200), (1e-300, 3e-300), (2e-170, 1.0), (1e200, 1e200), (1e308, 1e308)]
)
def test_beta_arms_have_their_spread_where_products_leave_the_range_of_doubles(a, b):
    arms = eq.Beta(a=[a], b=[b], low=1.0, high=3.0)
    x, y = mpmath.mpf(a), mpmath.mpf(b)
    mean, std = 1 + 2 * x / (x + y), 2 * mpmath.sqrt(x * y / (x + y + 1)) / (x + y)
    assert (arms.mean[0], arms.std[0]) == (pytest.approx(float(mean), rel=1e-13), pytest.approx(float(std), rel=1e-13))


def test_beta_arms_with_nearly_no_mass_inside_pay_one_end_or_the_other():
    sample = draws(eq.Beta(a=[1e-200], b=[1e-200]), 0)
    assert set(sample.tolist()) == {0.0, 1.0}
    assert abs(sample.mean() - 0.5) < 4 * 0.5 / math.sqrt(N_DRAWS)


def test_a_quantile_function_is_never_asked_at_zero(monkeypatch):
    class Spy:
        asked = 1.0

        def mean(self):
            return 0.0

        std = mean

        def ppf(self, uniform):
            Spy.asked = min(Spy.asked, uniform.min())
            return np.zeros_like(uniform)

    from equipoise.kernels import rewards

    arms = eq.Distributions(distributions=[Spy()])
    monkeypatch.setattr(rewards, "fill_rewards", lambda *arguments: arguments[-1].fill(0.0))
    arms.rewards(0, seed=1)
    assert 0 < Spy.asked < 2.0**-50


def test_rewards_that_are_not_finite_are_refused():
    @dataclass(frozen=True)
    class Odd:
        def mean(self):
            return 0.0

        std = mean

        def ppf(self, uniform):
            return uniform * np.nan

    with pytest.raises(eq.InvalidInput, match="rewards must be finite; got nan from arm 0 of Distributions"):
        eq.Distributions(distributions=[Odd()]).rewards(0, seed=1)


def test_arms_of_ones_own_need_a_quantile_function_only():
    @dataclass(frozen=True, kw_only=True, eq=False)
    class Dice(eq.Arms):
        sides: tuple[int, ...]

        def __post_init__(self):
            sides = np.array(self.sides, dtype=float)
            object.__setattr__(self, "mean", (sides + 1) / 2)
            object.__setattr__(self, "std", np.sqrt((sides**2 - 1) / 12))

        def make_drawing(self):
            return eq.Distributions(distributions=[stats.norm()] * len(self.sides)).make_drawing()

        def external_rewards(self, arm, uniform):
            return 1 + np.floor(self.sides[arm] * uniform)

    class Loaded(Dice):
        def external_rewards(self, arm, uniform):
            return 6.0

    with pytest.raises(eq.InvalidInput, match=r"one reward for each uniform number; got an array of shape \(\) for 4 "):
        Loaded(sides=(6, 20)).rewards(0, seed=1)
    dice = Dice(sides=(6, 20))
    assert set(draws(dice, 0).tolist()) == {1, 2, 3, 4, 5, 6}
    assert dice.to_dict() == {"name": "Dice", "sides": [6, 20]}
    runs = eq.simulate(eq.Uniform(), dice, 4000, 2, seed=1, checkpoints=[4000])
    assert np.abs(runs.mean[0, :, 0] - dice.mean).max() < 4 * dice.std.max() / math.sqrt(2000)


# Values


@all_kinds
def test_arms_are_values(arms):
    twin = copy.deepcopy(arms)
    assert arms == twin
    assert hash(arms) == hash(twin)
    assert arms != eq.Gaussian(mean=[9.0], std=[1.0])
    assert json.loads(json.dumps(arms.to_dict())) == arms.to_dict()
    assert arms.to_dict()["name"] == type(arms).__name__


def test_equal_arms_are_equal_and_others_are_not():
    assert eq.Gaussian(mean=[1, 2], std=[1, 1]) == eq.Gaussian(mean=np.array([1.0, 2.0]), std=(1, 1))
    assert eq.Gaussian(mean=[1, 2], std=[1, 1]) != eq.Gaussian(mean=[1, 2], std=[1, 2])
    assert eq.Bernoulli(mean=[0.5]) != eq.UniformBetween(low=[0], high=[1])
    expon, gamma = stats.expon(scale=1.0), stats.gamma(1.0)  # the same mean and std
    assert eq.Distributions(distributions=[expon]) != eq.Distributions(distributions=[gamma])
    assert eq.Distributions(distributions=[expon]) == eq.Distributions(distributions=[stats.expon(scale=1.0)])


def test_distributions_are_told_apart_by_their_quantiles():
    @dataclass(frozen=True)
    class Two:
        """A distribution of one's own, with one mean and one spread whatever the shape."""

        half: bool

        def mean(self):
            return 0.5

        def std(self):
            return 0.5

        def ppf(self, uniform):
            return np.where(uniform < 0.5, 0.0, 1.0) if self.half else stats.norm.ppf(uniform, 0.5, 0.5)

    same, other = eq.Distributions(distributions=[Two(True)]), eq.Distributions(distributions=[Two(False)])
    assert same == eq.Distributions(distributions=[Two(True)])
    assert same != other
    histograms = [stats.rv_histogram((counts, [0, 1, 2, 3])) for counts in ([1, 4, 1], [4, 1, 4])]
    one, two = (eq.Distributions(distributions=[histogram]) for histogram in histograms)
    assert one != two
    assert one.to_dict()["distributions"][0].startswith("rv_histogram, quantiles ")
    (words,) = eq.Distributions(distributions=[stats.gamma(4.0, scale=0.5)]).to_dict()["distributions"]
    assert words.startswith("gamma(4.0, scale=0.5), quantiles ")


def test_what_was_passed_in_may_change_afterwards():
    mean, std = np.array([1.0, 2.0]), np.ones(2)
    arms = eq.Gaussian(mean=mean, std=std)
    before = arms.rewards(0, seed=1, count=4)
    mean[:] = 100.0
    assert arms.mean.tolist() == [1.0, 2.0]
    np.testing.assert_array_equal(arms.rewards(0, seed=1, count=4), before)


def test_one_bound_serves_all_arms():
    assert eq.Beta(a=[2, 1], b=[2, 3], low=1, high=[2, 3]) == eq.Beta(a=[2, 1], b=[2, 3], low=[1, 1], high=[2, 3])


NAMED = {
    "Gaussian": lambda names: eq.Gaussian(mean=[1, 2], std=[1, 1], names=names),
    "Bernoulli": lambda names: eq.Bernoulli(mean=[0.1, 0.2], names=names),
    "UniformBetween": lambda names: eq.UniformBetween(low=[0, 0], high=[1, 2], names=names),
    "Beta": lambda names: eq.Beta(a=[1, 2], b=[1, 2], names=names),
    "Empirical": lambda names: eq.Empirical(values=[[1.0, 2.0], [2.0]], names=names),
    "Distributions": lambda names: eq.Distributions(distributions=[stats.expon(), stats.norm()], names=names),
    "Mixed": lambda names: eq.Mixed(parts=[eq.Gaussian(mean=[1], std=[1]), eq.Bernoulli(mean=[0.5])], names=names),
}


@pytest.mark.parametrize("kind", NAMED)
def test_arms_of_every_kind_may_have_names(kind):
    assert set(NAMED) == set(KINDS)
    plain, named = NAMED[kind](None), NAMED[kind](["pie", "line"])
    assert (plain.names, named.names) == (None, ("pie", "line"))
    assert "names" not in plain.to_dict() and "names" not in repr(plain)
    assert named.to_dict() == plain.to_dict() | {"names": ["pie", "line"]}
    assert "names=('pie', 'line')" in repr(named)
    assert named != plain
    np.testing.assert_array_equal(named.rewards(1, seed=1, count=9), plain.rewards(1, seed=1, count=9))


def test_parts_that_are_all_named_name_the_whole():
    first, second = eq.Gaussian(mean=[1], std=[1], names=["pie"]), eq.Bernoulli(mean=[0.5, 0.6], names=["bar", "line"])
    whole = eq.Mixed(parts=[first, second])
    assert whole.names == ("pie", "bar", "line")
    assert "names" not in whole.to_dict()  # they are with the parts
    assert eq.Mixed(parts=[first, eq.Bernoulli(mean=[0.5])]).names is None
    assert eq.Mixed(parts=[first, first]).names is None
    assert eq.Mixed(parts=[first, first], names=["a", "b"]).to_dict()["names"] == ["a", "b"]


# Rewards from files and frames


def test_rewards_from_a_csv_file(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("\ufeffid,treatment,score\n1,pie,0.5\n2, number line ,1\n\n3,pie,0.75\n", encoding="utf-8")
    arms = eq.Empirical.from_csv(path, arm="treatment", reward="score")
    assert arms.names == ("pie", "number line")
    assert [values.tolist() for values in arms.values] == [[0.5, 0.75], [1.0]]
    assert arms.to_dict()["names"] == ["pie", "number line"]


def test_columns_are_found_in_any_case_and_between_spaces(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(" Reward , ARM\n1,a\n , \n2,b\n", encoding="utf-8")
    assert eq.Empirical.from_csv(path) == eq.Empirical(values=[[1.0], [2.0]], names=["a", "b"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("arm,reward\na,1\nb,good\n", "people.csv, line 3: reward must be a finite number; got 'good'"),
        ("arm,reward\na,1\nb,nan\n", "people.csv, line 3: reward must be a finite number; got 'nan'"),
        ("arm,reward\na,1\nb\n", "people.csv, line 3: reward must be a finite number; got ''"),
        ('arm,reward\n"a\nb",1\nb,\n', "people.csv, line 4: reward must be a finite number; got ''"),
        ("arm,reward\na,1\n ,2\n", "people.csv, line 3: each row needs the name of its arm; got none"),
        ("arm,result\na,1\n", "line 1: expected a header with columns arm and reward, each once; got arm,result"),
        ('arm,"\x1b[1mre\nward"\na,1\n', r"columns arm and reward, each once; got arm,\\x1b\[1mre\\nward"),
        ("arm,reward,Reward \na,1,2\n", "columns arm and reward, each once; got arm,reward,Reward"),
        ("", "people.csv, line 1: expected a header with columns arm and reward; got nothing"),
        (f"arm,reward\na,1\nb,{'9' * 200_000}\n", "people.csv, line 3: expected CSV; field larger than .*\nhint: look"),
        ("arm,reward\n", "people.csv: expected at least one row; got none"),
    ],
)
def test_what_is_wrong_with_a_csv_file_is_told_with_its_line(tmp_path, text, message):
    path = tmp_path / "people.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(eq.EquipoiseError, match=message):
        eq.Empirical.from_csv(path)


def test_other_encodings_and_missing_files(tmp_path):
    path = tmp_path / "people.csv"
    path.write_bytes("arm,reward\na,1\ncafé,2\n".encode("latin-1"))
    with pytest.raises(eq.EquipoiseError, match=r"line 3: expected text in UTF-8; got the byte 0xe9, .*\nhint: save"):
        eq.Empirical.from_csv(path)
    with pytest.raises(FileNotFoundError):
        eq.Empirical.from_csv(tmp_path / "nothing.csv")


def test_rewards_from_frames():
    columns = {"arm": ["b", "a", "b"], "reward": [1.0, 2.0, 4.0]}
    expected = eq.Empirical(values=[[1.0, 4.0], [2.0]], names=["b", "a"])
    assert eq.Empirical.from_frame(columns) == expected
    assert eq.Empirical.from_frame(pl.DataFrame(columns)) == expected
    renamed = pl.DataFrame(columns).rename({"arm": "group", "reward": "y"})
    assert eq.Empirical.from_frame(renamed, arm="group", reward="y") == expected
    numbered = eq.Empirical.from_frame({"arm": [2, 1, 2], "reward": [1, 2, 4]})
    assert (numbered.names, numbered.mean.tolist()) == (("2", "1"), [2.5, 2.0])


def test_what_is_missing_in_a_frame_of_pandas_is_no_arm():
    pd = pytest.importorskip("pandas")
    columns = {"arm": ["b", "a", "b"], "reward": [1.0, 2.0, 4.0]}
    assert eq.Empirical.from_frame(pd.DataFrame(columns)) == eq.Empirical.from_frame(columns)
    for missing in (None, np.nan, pd.NA, pd.NaT):
        for frame in (pd.DataFrame({"arm": ["b", missing], "reward": [1.0, 2.0]}), {"arm": [missing], "reward": [1.0]}):
            with pytest.raises(eq.EquipoiseError, match="each row needs the name of its arm; got none"):
                eq.Empirical.from_frame(frame)
    with pytest.raises(
        eq.InvalidInput, match="expected the columns arm and reward, each once; got arm, reward, reward"
    ):
        eq.Empirical.from_frame(pd.DataFrame([["a", 1, 2]], columns=["arm", "reward", "reward"]))


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pl.DataFrame({"arm": ["a", "b"], "reward": [1.0, None]}), "row 1: reward must be a finite number; got None"),
        ({"arm": ["a", "b"], "reward": [math.nan, 1.0]}, "row 0: reward must be a finite number; got nan"),
        ({"arm": ["a", None], "reward": [1.0, 1.0]}, "row 1: each row needs the name of its arm"),
        ({"arm": ["a", math.nan], "reward": [1.0, 1.0]}, "row 1: each row needs the name of its arm"),
        ({"arm": ["a"], "y": [1.0]}, "expected the columns arm and reward, each once; got arm, y"),
        ({"arm": ["a"], "reward": [1.0, 2.0]}, "columns must be equally long; got 1 arms and 2 rewards"),
        ({"arm": [], "reward": []}, "frame: expected at least one row; got none"),
    ],
)
def test_what_is_wrong_with_a_frame_is_told_with_its_row(frame, message):
    with pytest.raises(eq.EquipoiseError, match=message):
        eq.Empirical.from_frame(frame)


# Bad input


@dataclass(frozen=True)
class Constant:
    """A distribution whose quantile function does not look at what it gets."""

    answer: object

    def mean(self):
        return 0.0

    std = mean

    def ppf(self, uniform):
        return self.answer


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: eq.Gaussian(mean=[1, 2], std=[1]), "std must have 2 entries, one per arm; got 1"),
        (lambda: eq.Gaussian(mean=[1, math.nan], std=[1, 1]), "mean must be finite; got nan for arm 1"),
        (lambda: eq.Gaussian(mean=[1], std=[-1]), "std must not be negative; got -1.0 for arm 0"),
        (lambda: eq.Gaussian(mean=[], std=[]), "mean must have at least one arm"),
        (lambda: eq.Bernoulli(mean=[0.5, 1.5]), r"mean must be a probability in \[0, 1\]; got 1.5 for arm 1"),
        (lambda: eq.Bernoulli(mean=[-0.5]), "mean must not be negative"),
        (lambda: eq.UniformBetween(low=[0, 2], high=[1, 1]), "low must not exceed high; got 2.0 and 1.0 for arm 1"),
        (lambda: eq.UniformBetween(low=[0, 2], high=[1]), "high must have 2 entries"),
        (lambda: eq.Beta(a=[1, 0], b=[1, 1]), "a must be positive; got 0.0 for arm 1"),
        (lambda: eq.Beta(a=[1], b=[-1]), "b must be positive; got -1.0 for arm 0"),
        (lambda: eq.Beta(a=[1], b=[1], low=2), "low must not exceed high; got 2.0 and 1.0 for arm 0"),
        (lambda: eq.Beta(a=[1], b=[1], low="x"), "low must be a number; got 'x'"),
        (lambda: eq.Beta(a=[1], b=[1], low=[0, 0]), "low must have 1 entries"),
        (lambda: eq.Empirical(values=[]), "values must have at least one arm; got none"),
        (lambda: eq.Empirical(values=[[1.0], []]), r"values of arm 1 must be at least one finite reward; got \[\]"),
        (lambda: eq.Empirical(values=[[1.0, math.inf]]), "values of arm 0 must be at least one finite reward"),
        (lambda: eq.Empirical(values=[["a"]]), r"values of arm 0 must be numbers; got \['a'\]"),
        (lambda: eq.Empirical(values=[1.0, 2.0]), "values of arm 0 must be at least one finite reward; got 1.0"),
        (lambda: eq.Empirical(values=3), "values must be the rewards of each arm"),
        (lambda: eq.Empirical(values=[[1.0]], names=["a", "b"]), "names must have 1 entries, one per arm; got 2"),
        (lambda: eq.Empirical(values=[[1.0], [2.0]], names=["a", "a"]), "names must differ.*; got 'a' more than once"),
        (lambda: eq.Gaussian(mean=[1], std=[1], names="a"), "names must be a list with one name per arm; got 'a'"),
        (lambda: eq.Gaussian(mean=[1], std=[1], names=[7]), r"names must be text, one per arm; got \[7\]"),
        (lambda: eq.Bernoulli(mean=[0.1, 0.2], names=["a"]), "names must have 2 entries, one per arm; got 1"),
        (lambda: eq.Gaussian(mean=[1, 1e308], std=[1, 1]), r"mean must be .* at most 1e\+100.*got 1e\+308 for arm 1"),
        (lambda: eq.Gaussian(mean=[1], std=[1e101]), r"std must be finite and at most 1e\+100 in size; got 1e\+101"),
        (lambda: eq.UniformBetween(low=[-1e308], high=[1e308]), "std must be finite and .*; got inf for arm 0"),
        (lambda: eq.UniformBetween(low=[1e308], high=[1e308]), "mean must be finite and .*; got inf for arm 0"),
        (lambda: eq.Beta(a=[1], b=[1], low=-1e308, high=1e308), "must be finite and at most"),
        (lambda: eq.Empirical(values=[[1e308, -1e308, 1e308]]), "must be finite and at most"),
        (lambda: eq.Empirical(values=[[1e200]]), "mean must be finite and at most"),
        (lambda: eq.Distributions(distributions=[stats.norm(loc=1e200)]), "mean must be finite and at most"),
        (lambda: eq.Distributions(distributions=[stats.norm(loc=[0, 1])]), r"mean\(\) of a .* number; got \[0.*arm 0"),
        (
            lambda: eq.Distributions(distributions=[Constant(np.zeros(3))]),
            r"ppf of arm 0 .*shape \(3,\) for 36 numbers",
        ),
        (lambda: eq.Distributions(distributions=[Constant(0.0)]), r"ppf of arm 0 .*shape \(\) for 36 numbers"),
        (lambda: eq.Distributions(distributions=[]), "one distribution per arm"),
        (lambda: eq.Distributions(distributions=stats.norm()), "one distribution per arm"),
        (lambda: eq.Distributions(distributions=[3]), "a distribution must have mean, std and ppf; got 3"),
        (lambda: eq.Distributions(distributions=[stats.cauchy()]), "mean must be finite; got nan for arm 0"),
        (lambda: eq.Mixed(parts=[]), "parts must be arms such as"),
        (lambda: eq.Mixed(parts=eq.Bernoulli(mean=[0.5])), "parts must be arms such as"),
        (lambda: eq.Mixed(parts=[1, 2]), "parts must be arms such as"),
        (lambda: KINDS["Gaussian"].rewards(3, seed=1), "arm must be at most 2; got 3"),
        (lambda: KINDS["Gaussian"].rewards(0, seed=-1), "seed must be at least 0; got -1"),
        (lambda: KINDS["Gaussian"].rewards(0, seed=1, replication=-1), "replication must be at least 0; got -1"),
        (lambda: KINDS["Gaussian"].rewards(0, seed=1, first=-1), "first must be at least 0; got -1"),
        (lambda: KINDS["Gaussian"].rewards(0, seed=1, count=2.5), "count must be a whole number; got 2.5"),
        (lambda: KINDS["Gaussian"].external_rewards(0, np.ones(4)), "arm 0 of Gaussian is drawn in compiled code"),
    ],
)
def test_bad_arms_are_refused(make, message):
    with pytest.raises(eq.InvalidInput, match=message):
        make()
