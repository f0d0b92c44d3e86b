"""Ask and tell: by index or name, one or many, late and out of order, saved and loaded; bad input changes nothing."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pytest

import equipoise as eq
from equipoise.kernels.random import decision_uniform

POLICY = eq.ForcingBalance(reward_weight=0.8, forcing=0.3)
RANDOM = eq.ForcingBalance(reward_weight=0.8, forcing=0.3, tracking="windowed")


def play(bandit, steps, seed=0):
    """Ask and tell with rewards that depend on the arm and its count alone; return the arms."""
    arms = []
    for _ in range(steps):
        arm = bandit.ask()
        index = bandit.index(arm)
        noise = np.random.default_rng([seed, index, int(bandit.stats.pulls[index])]).normal()
        bandit.tell(arm, index + noise)
        arms.append(arm)
    return arms


@pytest.mark.parametrize("policy", [POLICY, RANDOM, eq.ThompsonBalance(reward_weight=0.5)])
def test_the_same_seed_gives_the_same_choices(policy):
    runs = [play(eq.Bandit(policy, 4, seed=seed), 200) for seed in (11, 11, 12)]
    assert runs[0] == runs[1]
    if policy is RANDOM:
        assert runs[0] != runs[2]


def test_arms_by_name_and_by_index_are_the_same_arms():
    names = ["pie", "line", "none"]
    named, numbered = eq.Bandit(RANDOM, arms=names, seed=3), eq.Bandit(RANDOM, 3, seed=3)
    assert [names.index(arm) for arm in play(named, 100)] == play(numbered, 100)
    named.record(1, 5.0)
    assert named.stats.pulls[1] == numbered.stats.pulls[1] + 1


def test_late_and_out_of_order_rewards_give_the_statistics_of_those_in_order():
    prompt, late = eq.Bandit(eq.Uniform(), 3), eq.Bandit(eq.Uniform(), 3)
    rewards = np.random.default_rng(1).normal(size=60).tolist()
    pairs = list(zip(prompt.ask(60), rewards, strict=True))
    late.ask(60)
    for arm, reward in pairs:
        prompt.tell(arm, reward)
    for arm, reward in reversed(pairs):
        late.tell(arm, reward)
    np.testing.assert_array_equal(prompt.stats.mean, late.stats.mean)
    np.testing.assert_allclose(prompt.stats.std, late.stats.std, rtol=1e-15)


def test_a_batch_spreads_over_arms():
    bandit = eq.Bandit(eq.ForcingBalance(reward_weight=0.5, forcing=0.1), 3)
    play(bandit, 300)
    target = np.array(list(bandit.target().values()))
    before = bandit.stats.assigned.copy()
    bandit.ask(1000)
    share = bandit.stats.assigned / 1300
    assert np.abs(share - target).max() < 2 / 1300
    assert (bandit.stats.assigned > before).all()


def test_peek_says_what_ask_will_do():
    bandit = eq.Bandit(RANDOM, 3, seed=8)
    play(bandit, 50)
    for _ in range(20):
        choice = bandit.peek()
        assert bandit.peek() == choice
        assert bandit.ask() == choice.arm
        assert bandit.last_choice == choice


def test_tell_many_at_once():
    one, many = eq.Bandit(eq.Uniform(), 2), eq.Bandit(eq.Uniform(), 2)
    one.ask(4)
    many.ask(4)
    for arm, reward in zip([0, 1, 0, 1], [1.0, 2.0, 3.0, 4.0], strict=True):
        one.tell(arm, reward)
    many.tell(np.array([0, 1, 0, 1]), np.array([1.0, 2.0, 3.0, 4.0]))
    assert one.stats == many.stats


def test_correct_replaces_a_reward():
    bandit = eq.Bandit(eq.Uniform(), arms=["a", "b"])
    bandit.ask(4)
    bandit.tell(["a", "b", "a", "b"], [1.0, 2.0, 300.0, 4.0])
    bandit.correct("a", 300.0, 3.0)
    assert bandit.stats.mean.tolist() == [2.0, 3.0]


def test_target_is_none_until_every_arm_is_known():
    bandit = eq.Bandit(POLICY, arms=["a", "b"])
    assert bandit.target() is None
    play(bandit, 10)
    assert set(bandit.target()) == {"a", "b"}
    assert sum(bandit.target().values()) == pytest.approx(1)
    assert eq.Bandit(eq.UCB(), 2).target() is None


@pytest.mark.parametrize("arms", [{"n_arms": 3}, {"arms": ["x", "y", "ä"]}])
def test_save_and_load_go_on_as_if_nothing_had_happened(tmp_path, arms):
    bandit = eq.Bandit(RANDOM, **arms, seed=21)
    play(bandit, 80)
    bandit.ask(5)
    bandit.save(tmp_path / "bandit.json")
    loaded = eq.Bandit.load(tmp_path / "bandit.json")
    assert loaded.stats == bandit.stats
    assert loaded.policy == bandit.policy
    assert loaded.arms == bandit.arms
    assert play(loaded, 100, seed=5) == play(bandit, 100, seed=5)
    assert [p.name for p in tmp_path.iterdir()] == ["bandit.json"]


@pytest.mark.parametrize("kind", [eq.ForcingBalance, eq.PooledBalance])
def test_a_bandit_that_was_saved_before_windows_grew_keeps_its_constant_window(kind):
    bandit = eq.Bandit(kind(reward_weight=0.8, tracking="windowed", window_growth=0.0), 3, seed=4)
    play(bandit, 900)
    data = bandit.to_dict()
    del data["policy"]["window_growth"]
    assert play(eq.Bandit.from_dict(data), 100) == play(bandit, 100)


def test_a_failed_save_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "bandit.json"
    bandit = eq.Bandit(POLICY, 2)
    bandit.save(path)
    before = path.read_text()
    play(bandit, 10)

    def no_room(*args, **kwargs):
        raise OSError("no space left on device")

    monkeypatch.setattr("os.fsync", no_room)
    with pytest.raises(OSError, match="no space"):
        bandit.save(path)
    assert path.read_text() == before
    assert [p.name for p in tmp_path.iterdir()] == ["bandit.json"]


def test_a_pickled_bandit_goes_on_as_the_original():
    bandit = eq.Bandit(RANDOM, arms=["a", "b"], seed=4)
    play(bandit, 50)
    twin = pickle.loads(pickle.dumps(bandit))  # noqa: S301
    assert play(twin, 50, seed=1) == play(bandit, 50, seed=1)


def test_every_decision_of_a_batch_has_a_random_number_of_its_own():
    bandit = eq.Bandit(eq.Fixed(allocation=[0.5, 0.5], tracking="sample"), 2, seed=1)
    expected = [int(decision_uniform(1, 0, k) >= 0.5) for k in range(40)]
    assert bandit.ask(40) == expected
    assert len(set(expected)) == 2


def test_shows_what_it_is():
    assert repr(eq.Bandit(eq.UCB(), 2)) == "Bandit(UCB(), n_arms=2, seed=0; 0 assigned)"
    assert repr(eq.Bandit(eq.UCB(), arms=["a"])) == "Bandit(UCB(), arms=['a'], seed=0; 0 assigned)"


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda b: b.tell("c", 1.0), eq.UnknownArm, "unknown arm 'c'; the arms are a, b"),
        (lambda b: b.tell(2, 1.0), eq.UnknownArm, "unknown arm 2; the arms are a, b"),
        (lambda b: b.tell(True, 1.0), eq.UnknownArm, "unknown arm True"),
        (lambda b: b.tell("a", math.nan), eq.InvalidInput, "reward must be finite.*got nan"),
        (lambda b: b.tell("a", math.inf), eq.InvalidInput, "reward must be finite"),
        (lambda b: b.tell("a", "good"), eq.InvalidInput, "reward must be a number; got 'good'"),
        (lambda b: b.tell(["a", "b"], [1.0, math.nan]), eq.InvalidInput, "reward must be finite"),
        (lambda b: b.tell(["a", "x"], [1.0, 2.0]), eq.UnknownArm, "unknown arm 'x'"),
        (lambda b: b.tell(["a", ["b"]], [1.0, 2.0]), eq.UnknownArm, r"unknown arm \['b'\]"),
        (lambda b: b.tell(["a", "b"], [1.0]), eq.InvalidInput, "as many rewards as arms"),
        (lambda b: b.tell(["a", "b"], 1.0), eq.InvalidInput, "as many rewards as arms"),
        (lambda b: b.tell(None, 1.0), eq.InvalidInput, "as many rewards as arms"),
        (lambda b: b.tell([1.0], [1.0]), eq.UnknownArm, "unknown arm 1.0"),
        (lambda b: b.tell("a", 10**400), eq.InvalidInput, "reward must be a number"),
        (lambda b: b.ask(True), eq.InvalidInput, "count must be a whole number; got True"),
        (lambda b: b.tell(["a"] * 3, [1.0] * 3), eq.UnexpectedReward, "arm 'a' has 2 pending assignments; got 3"),
        (lambda b: b.record("c", 1.0), eq.UnknownArm, "unknown arm"),
        (lambda b: b.record("a", math.nan), eq.InvalidInput, "reward must be finite"),
        (lambda b: b.correct("a", 7.0, math.nan), eq.InvalidInput, "reward must be finite"),
        (lambda b: b.correct("b", 7.0, 8.0), eq.InvalidInput, "arm 1 has no rewards"),
        (lambda b: b.ask(-1), eq.InvalidInput, "count must be at least 0; got -1"),
        (lambda b: b.ask(2.5), eq.InvalidInput, "count must be a whole number; got 2.5"),
    ],
)
def test_bad_input_changes_nothing(call, kind, message):
    bandit = eq.Bandit(eq.Uniform(), arms=["a", "b"])
    bandit.ask(5)
    bandit.tell("a", 7.0)
    before, choice = bandit.stats.copy(), bandit.peek()
    with pytest.raises(kind, match=message):
        call(bandit)
    assert bandit.stats == before
    assert bandit.peek() == choice


def test_a_reward_nobody_asked_for_is_refused_with_a_way_out():
    bandit = eq.Bandit(eq.Uniform(), 2)
    with pytest.raises(eq.UnexpectedReward, match="0 pending assignments; got 1 rewards\nhint: record"):
        bandit.tell(0, 1.0)
    bandit.record(0, 1.0)
    assert (bandit.stats.assigned[0], bandit.stats.pulls[0]) == (1, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_arms": 0}, "n_arms must be at least 1; got 0"),
        ({"n_arms": 2.5}, "n_arms must be a whole number"),
        ({}, "give either n_arms or arms, the names; got neither"),
        ({"n_arms": 2, "arms": ["a", "b"]}, "got both"),
        ({"arms": []}, "arms must have at least one name; got none"),
        ({"arms": ["a", "a", "b"]}, "arm names must differ; got a more than once"),
        ({"arms": "ab"}, "arms must be a list of names; got 'ab'"),
        ({"arms": ["a", 3]}, "arms must be a list of names"),
        ({"arms": ["a", ""]}, "arms must be a list of names"),
        ({"arms": 3}, "arms must be a list of names; got 3"),
        ({"n_arms": 2, "seed": -1}, "seed must be at least 0"),
        ({"n_arms": 2, "seed": 2**63}, "seed must be at most"),
    ],
)
def test_bad_bandits_are_refused(arguments, message):
    with pytest.raises(eq.InvalidInput, match=message):
        eq.Bandit(eq.Uniform(), **arguments)


def test_a_policy_is_needed():
    with pytest.raises(eq.InvalidInput, match="policy must be a Policy"):
        eq.Bandit("ucb", 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other/9"}, "expected data in the format equipoise-bandit/1; got 'other/9'"),
        ({"policy": None}, "a policy must be an object with a name"),
        ({"arms": []}, "arms must be a list with at least one arm"),
        ({"arms": ["a", "b", "c"]}, "stats must have 3 arms; got 2"),
        ({"seed": "x"}, "seed must be a whole number"),
        ({"stats": {}}, "statistics must have"),
        (
            {"stats": {"assigned": [0, 0], "pulls": [1, 0], "sums": [[1.0, 0.0], [0.0, 0.0]] * 2}},
            "more rewards than assignments",
        ),
    ],
)
def test_bad_files_are_refused(tmp_path, change, message):
    data = eq.Bandit(eq.Uniform(), 2).to_dict() | change
    path = tmp_path / "bandit.json"
    path.write_text(json.dumps(data))
    with pytest.raises(eq.InvalidInput, match=message):
        eq.Bandit.load(path)


def test_files_that_are_no_bandit(tmp_path):
    path = tmp_path / "bandit.json"
    path.write_text("hello")
    with pytest.raises(eq.InvalidInput, match="is not a saved bandit"):
        eq.Bandit.load(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(eq.InvalidInput, match="is not a saved bandit"):
        eq.Bandit.load(path)
    path.write_text("[]")
    with pytest.raises(eq.InvalidInput, match=r"expected data in the format equipoise-bandit/1; got \[\]"):
        eq.Bandit.load(path)
    data = eq.Bandit(eq.Uniform(), 2).to_dict()
    del data["seed"], data["stats"]
    path.write_text(json.dumps(data))
    with pytest.raises(eq.InvalidInput, match="seed, stats missing"):
        eq.Bandit.load(path)
