"""Contract tests that every policy must pass; subclass `PolicyContract` to test your own.

Do so in a pytest module and list the policies; pytest finds the tests::

    class TestMine(PolicyContract):
        policies = [LeastKnown(patience=2)]
"""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from equipoise.bandit import Bandit
from equipoise.policies import Policy
from equipoise.stats import ArmStats

_UNIFORMS = (np.arange(500) + 0.5) / 500


class PolicyContract:
    """Contract tests for every policy in `policies`, each of which must accept `n_arms` arms.

    `tolerance` is how far probabilities may move when arms are reordered; 0 unless a policy estimates them. Set
    `gives_up` to True for policies that are meant to give up arms, such as a greedy one.
    """

    policies: ClassVar[Sequence[Policy]] = ()
    n_arms: ClassVar[int] = 4
    tolerance: ClassVar[float] = 1e-9
    gives_up: ClassVar[bool] = False

    def states(self) -> Iterator[ArmStats]:
        """Yield statistics as they occur: none, few, many, some rewards pending, an arm without spread, yes or no."""
        rng = np.random.default_rng(1)
        for rounds, share_pending, with_constant_arm in [(0, 0, 0), (1, 0, 0), (30, 0, 0), (30, 0.3, 0), (60, 0, 1)]:
            stats = ArmStats(self.n_arms)
            # Different counts, so that no choice depends on the order of tied arms.
            for arm, count in enumerate(rounds * (3 + rng.permutation(self.n_arms))):
                mean, std = rng.normal(), rng.gamma(2.0)
                for _ in range(count):
                    stats.assign(arm)
                    if rng.random() >= share_pending:
                        stats.update(arm, mean if with_constant_arm and arm == 0 else rng.normal(mean, std))
            yield stats
        yes_or_no = ArmStats(self.n_arms)
        for arm in range(self.n_arms):
            for _ in range(100 + 50 * arm):
                yes_or_no.assign(arm)
                yes_or_no.update(arm, float(rng.random() < 0.05 + 0.1 * arm))
        yield yes_or_no

    def cases(self) -> Iterator[tuple[Policy, ArmStats]]:
        """Yield every policy with every set of statistics."""
        assert self.policies, f"{type(self).__name__} must name the policies to test"
        for policy in self.policies:
            for stats in self.states():
                yield policy, stats

    def test_a_choice_is_an_arm_with_its_probability(self) -> None:
        """The arm exists and its probability is the one that `probabilities` returns."""
        for policy, stats in self.cases():
            probability = policy.probabilities(stats)
            assert probability.shape == (self.n_arms,), policy
            assert probability.min() >= 0, policy
            assert abs(probability.sum() - 1) < 1e-9, policy
            for uniform in (0.0, 0.3, 1 - 2.0**-53):
                choice = policy.choose(stats, uniform)
                assert 0 <= choice.arm < self.n_arms, policy
                assert choice.probability > 0, policy
                assert abs(choice.probability - probability[choice.arm]) < 1e-12, policy

    def test_the_same_state_gives_the_same_choice(self) -> None:
        """Choosing has no side effects; a prepared chooser agrees with a fresh one."""
        for policy, stats in self.cases():
            before = stats.copy()
            chooser = policy.prepare(self.n_arms)
            for uniform in _UNIFORMS[::50]:
                choice = policy.choose(stats, uniform)
                assert chooser(stats, uniform) == chooser(stats, uniform) == choice, policy
            assert stats == before, policy

    def test_probabilities_match_the_frequencies_of_repeated_draws(self) -> None:
        """Over an even grid of uniform numbers each arm comes up as often as its probability says, to one grid cell."""
        for policy, stats in self.cases():
            chooser = policy.prepare(self.n_arms)
            drawn = np.bincount([chooser(stats, u).arm for u in _UNIFORMS], minlength=self.n_arms)
            assert np.abs(drawn / _UNIFORMS.size - policy.probabilities(stats)).max() <= 1.01 / _UNIFORMS.size, policy

    def test_a_batch_is_as_many_single_asks(self) -> None:
        """Without rewards in between, one batch and single asks choose the same arms."""
        rng = np.random.default_rng(2)
        for policy in self.policies:
            batch, single = Bandit(policy, self.n_arms, seed=5), Bandit(policy, self.n_arms, seed=5)
            for size in (1, 7, 3 * self.n_arms, 40):
                arms = batch.ask(size)
                assert arms == [single.ask() for _ in range(size)], policy
                rewards = rng.normal(size=size).tolist()
                batch.tell(arms, rewards)
                single.tell(arms, rewards)

    def test_permuting_arms_permutes_probabilities(self) -> None:
        """No arm is special because of its position."""
        order = np.random.default_rng(3).permutation(self.n_arms)
        for policy, stats in self.cases():
            if stats.n_assigned == 0:
                continue  # all arms are tied, and the first is chosen
            moved = _permuted(policy, order).probabilities(stats.permuted(order))
            assert np.abs(moved - policy.probabilities(stats)[order]).max() <= self.tolerance, policy

    def test_an_arm_whose_first_rewards_are_all_the_same_is_pulled_again(self) -> None:
        """Three equal rewards are no proof that an arm has no spread; without another pull nothing would show it."""
        if self.gives_up:
            return
        rng = np.random.default_rng(4)
        kinds: dict[str, tuple[float, Callable[[], float]]] = {
            "yes or no": (0.0, lambda: float(rng.random() < 0.2)),
            "graded": (0.5, lambda: rng.normal(0.6, 0.2)),
            "mostly 0": (0.0, lambda: rng.gamma(2.0) if rng.random() < 0.2 else 0.0),
        }
        for kind, (same, reward) in kinds.items():
            known = ArmStats(self.n_arms)
            for arm in range(self.n_arms):
                for _ in range(1000 if arm else 3):
                    known.assign(arm)
                    known.update(arm, reward() if arm else same)
            for policy in self.policies:
                stats, chooser = known.copy(), policy.prepare(self.n_arms)
                for _ in range(400 * self.n_arms):
                    arm = chooser(stats, rng.random()).arm
                    stats.assign(arm)
                    if arm == 0:
                        break
                    stats.update(arm, reward())
                assert stats.pending[0] == 1, (policy, kind)

    def test_policies_are_values(self) -> None:
        """Equal when their parameters are, hashable, printable, picklable, and frozen."""
        for policy in self.policies:
            twin = pickle.loads(pickle.dumps(policy))  # noqa: S301
            assert twin == policy
            assert hash(twin) == hash(policy)
            assert repr(policy).startswith(type(policy).__name__ + "(")
            for field in dataclasses.fields(policy):  # type: ignore[arg-type]
                try:
                    setattr(policy, field.name, None)
                except dataclasses.FrozenInstanceError:
                    continue
                raise AssertionError(f"{policy} must be frozen")

    def test_json_round_trip(self) -> None:
        """A policy written as JSON and read back by its name is equal."""
        for policy in self.policies:
            assert Policy.from_json(policy.to_json()) == policy

    def test_one_arm_is_always_chosen(self) -> None:
        """With a single arm there is nothing to choose."""
        for policy in self.policies:
            try:
                bandit = Bandit(policy, 1)
            except ValueError:
                continue  # the policy has one parameter per arm, for more arms
            for _ in range(20):
                bandit.tell(bandit.ask(), 0.5)
            assert bandit.stats.pulls.tolist() == [20], policy


def _permuted(policy: Policy, order: Any) -> Policy:
    """Return the policy with its per-arm parameters in another order."""
    changed: dict[str, Any] = {}
    for field in dataclasses.fields(policy):  # type: ignore[arg-type]
        value = getattr(policy, field.name)
        if isinstance(value, tuple) and len(value) == len(order):
            changed[field.name] = tuple(value[i] for i in order)
        elif getattr(value, "importance", None) is not None:
            importance = tuple(value.importance[i] for i in order)
            changed[field.name] = dataclasses.replace(value, importance=importance)
    return dataclasses.replace(policy, **changed)  # type: ignore[type-var]
