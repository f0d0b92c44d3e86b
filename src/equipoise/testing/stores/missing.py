"""Rewards that are late or never come."""

from __future__ import annotations

from equipoise.experiment import DefaultReward, DropUnit, WaitForReward
from equipoise.policies import Uniform
from equipoise.testing.stores.case import StoreCase


class MissingRewards(StoreCase):
    """Rewards that are late or never come."""

    def test_waiting_for_ever_shows_what_is_overdue(self) -> None:
        """Nothing else happens to those units; a late reward counts as any."""
        experiment = self.create(missing=WaitForReward(window_seconds=60), policy=Uniform())
        experiment.ask_many([f"unit-{i}" for i in range(6)])
        experiment.tell("unit-0", 1.0)
        assert self.counts(experiment) == (6, 1, 5, 0, 0, 0, 0)
        self.clock.advance(61)
        assert self.counts(experiment) == (6, 1, 5, 0, 5, 0, 0)
        experiment.ask("late")
        assert self.counts(experiment) == (7, 1, 6, 0, 5, 0, 0)
        experiment.tell("unit-1", 1.0)
        assert self.counts(experiment) == (7, 2, 5, 0, 4, 0, 0)
        assert [event.kind for event in experiment.events()].count("expired") == 5
        experiment.verify()

    def test_a_default_is_counted_after_the_window(self) -> None:
        """A reward that comes later takes its place, or is only logged; as was declared."""
        for late, after in (("count", (3, 3, 0, 0, 0, 1, 0)), ("ignore", (3, 3, 0, 0, 0, 2, 0))):
            missing = DefaultReward(value=0.0, window_seconds=60, late=late)
            experiment = self.create(f"default-{late}", missing=missing, policy=Uniform())
            experiment.ask_many(["a", "b", "c"])
            experiment.tell("a", 1.0)
            self.clock.advance(61)
            experiment.settle()
            assert self.counts(experiment) == (3, 3, 0, 0, 0, 2, 0)
            told = experiment.tell("b", 0.5)
            assert told.counted == (late == "count")
            assert self.counts(experiment) == after
            assert experiment.status().average_reward == (0.5 if late == "count" else 1 / 3)
            assert not experiment.tell("b", 0.5).new
            experiment.correct("b", 0.25, "misread")
            assert experiment.status().average_reward == (1.25 / 3 if late == "count" else 1 / 3)
            experiment.verify()
            self.compare_export(experiment)

    def test_a_unit_is_dropped_after_the_window(self) -> None:
        """It no longer counts as pending; a late reward brings it back, or is only logged."""
        for late, after in (("count", (3, 2, 0, 0, 0, 0, 1)), ("ignore", (3, 1, 0, 0, 0, 0, 2))):
            missing = DropUnit(window_seconds=60, late=late)
            experiment = self.create(f"drop-{late}", missing=missing, policy=Uniform())
            experiment.ask_many(["a", "b", "c"])
            experiment.tell("a", 1.0)
            self.clock.advance(61)
            # Telling settles first, so the reward is late although nothing else happened since.
            assert experiment.tell("b", 0.5).counted == (late == "count")
            assert self.counts(experiment) == after
            experiment.verify()
            self.compare_export(experiment)

    def test_rewards_can_be_held_until_everyone_had_the_same_time(self) -> None:
        """No arm is favoured for answering fast; corrections of what is held count when it does."""
        missing = DefaultReward(value=0.0, window_seconds=60, hold=True)
        experiment = self.create(missing=missing, policy=Uniform())
        experiment.ask_many(["a", "b", "c"])
        assert not experiment.tell("a", 1.0).counted
        assert not experiment.correct("a", 2.0, "misread").counted
        experiment.tell("b", 1.0)
        assert self.counts(experiment) == (3, 0, 3, 2, 0, 0, 0)
        experiment.verify()
        self.compare_export(experiment)
        self.clock.advance(61)
        assert self.counts(experiment) == (3, 0, 3, 2, 1, 0, 0)
        experiment.settle()
        assert self.counts(experiment) == (3, 3, 0, 0, 0, 1, 0)
        assert [arm.mean for arm in experiment.status().arms] == [2.0, 1.0, 0.0]
        experiment.verify()
        self.compare_export(experiment)

    def test_many_units_falling_due_at_once_are_settled_in_pieces(self) -> None:
        """Each transaction deals with some; a unit it did not reach is settled when its reward comes."""
        experiment = self.create(missing=DropUnit(window_seconds=60, late="ignore"), policy=Uniform())
        experiment.ask_many([f"unit-{i}" for i in range(1100)])
        self.clock.advance(61)
        assert not experiment.tell("unit-1090", 1.0).counted
        assert self.counts(experiment)[-1] == 1001
        experiment.settle()
        assert self.counts(experiment) == (1100, 0, 0, 0, 0, 0, 1100)
        experiment.verify()
