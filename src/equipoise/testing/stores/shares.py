"""Shares that are kept for arms, warm-up, and which rewards are good."""

from __future__ import annotations

import math
from typing import Any

from equipoise import errors
from equipoise.experiment import Experiment
from equipoise.policies import Fixed, ForcingBalance
from equipoise.testing.stores.case import StoreCase, refused


class Shares(StoreCase):
    """Shares that are kept for arms, warm-up, and which rewards are good."""

    def test_shares_kept_for_arms_are_added_and_logged(self) -> None:
        """An arm's probability is its share plus what all shares leave, times the policy's."""
        experiment = self.create(
            policy=Fixed(allocation=(0.2, 0.3, 0.5), tracking="sample"),
            floor={"line": 0.1, "pie": 0.05},
            control="none",
            control_share=0.25,
        )
        expected = {"line": 0.1 + 0.6 * 0.2, "pie": 0.05 + 0.6 * 0.3, "none": 0.25 + 0.6 * 0.5}
        drawn = experiment.ask_many([f"unit-{i}" for i in range(2000)])
        for arm, probability in expected.items():
            mine = [one for one in drawn if one.arm == arm]
            assert all(math.isclose(one.probability, probability, rel_tol=1e-12) for one in mine)
            deviation = abs(len(mine) / 2000 - probability)
            assert deviation < 4 * math.sqrt(probability * (1 - probability) / 2000)
        target = {arm.arm: arm.target_share for arm in experiment.status().arms}
        assert all(math.isclose(target[arm] or 0, share, rel_tol=1e-12) for arm, share in expected.items())
        experiment.verify()

    def test_shares_keep_every_arm_alive_under_a_policy_that_would_not(self) -> None:
        """Forcing is only forced where the policy chose; its probability is what is left."""
        experiment = self.create(policy=ForcingBalance(reward_weight=1.0, forcing=0.0), floor=0.1)
        for number in range(150):
            assignment = experiment.ask(f"unit-{number}")
            assert min(abs(assignment.probability - 0.1), abs(assignment.probability - 0.8)) < 1e-12
            assert not assignment.forced or assignment.probability > 0.5
            experiment.tell(assignment.unit, {"line": 0.0, "pie": 1.0, "none": 0.5}[assignment.arm] + number % 2)
        assert min(arm.assigned for arm in experiment.status().arms) >= 5
        experiment.verify()

    def test_shares_that_leave_nothing_are_refused(self) -> None:
        """When the experiment is made, and when an arm is added."""
        too_much: list[dict[str, Any]] = [
            {"floor": 1 / 3},
            {"floor": [0.5, 0.5, 0.0]},
            {"floor": 0.3, "control": "pie", "control_share": 0.4},
        ]
        for settings in too_much:
            with refused(errors.InvalidInput, "less than 1"):
                self.create("never", **settings)
        nonsense: list[dict[str, Any]] = [
            {"floor": -0.1},
            {"floor": {"cake": 0.1}},
            {"control": "cake"},
            {"control_share": 0.1},
        ]
        for settings in nonsense:
            with refused(errors.InvalidInput):
                self.create("never", **settings)
        experiment = self.create(floor=0.3)
        with refused(errors.InvalidInput, "less than 1"):
            experiment.add_arm("cake", floor=0.1)
        assert [one.name for one in Experiment.list(self.store)] == ["fractions"]

    def test_warm_up_gives_every_arm_its_units_in_random_order(self) -> None:
        """In each round over the arms every arm comes once."""
        experiment = self.create(warm_up=4, policy=ForcingBalance(reward_weight=1.0, forcing=0.0))
        assigned = experiment.ask_many([f"unit-{i}" for i in range(13)])
        rounds = [[one.arm for one in assigned[i : i + 3]] for i in range(0, 12, 3)]
        assert all(sorted(arms) == ["line", "none", "pie"] for arms in rounds)
        assert len({tuple(arms) for arms in rounds}) > 1
        assert [one.probability for one in assigned[:12]] == [1 / 3, 1 / 2, 1.0] * 4
        assert all(one.forced for one in assigned[:12])
        experiment.verify()

    def test_small_rewards_can_be_the_good_ones(self) -> None:
        """The policy sees them negated, people see them as they were told."""
        small, large = self.create("small", direction="minimise"), self.create("large")
        for number in range(60):
            one, other = small.ask(f"unit-{number}"), large.ask(f"unit-{number}")
            assert one.arm == other.arm
            reward = {"line": 1.0, "pie": 2.0, "none": 3.0}[one.arm] + math.sin(number)
            small.tell(one.unit, reward)
            large.tell(other.unit, -reward)
        for left, right in zip(small.status().arms, large.status().arms, strict=True):
            assert left.mean == -(right.mean or 0)
            assert (left.std, left.target_share) == (right.std, right.target_share)
        assert small.status().arms[0].assigned > small.status().arms[2].assigned
        small.correct("unit-0", 1.5, "misread")
        small.verify()
