"""Contract tests about lists of units and the events of one unit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from equipoise import errors
from equipoise.experiment import DefaultReward, DropUnit, Experiment, UnitStatus, WaitForReward
from equipoise.experiment.records import UNIT_STATES
from equipoise.policies import Uniform
from equipoise.testing.unit_contract import ExperimentCase, refused


def pages(experiment: Experiment, state: str | None = None, **filters: Any) -> Iterator[tuple[UnitStatus, ...]]:
    """Yield the pages of a list up to its end."""
    after = None
    while True:
        page = experiment.units(state, after=after, **filters)
        yield page.units
        after = page.next
        if after is None:
            return


class UnitLists(ExperimentCase):
    """Lists of units agree with what is known of each unit, page by page."""

    def test_lists_have_the_units_in_each_state(self) -> None:
        """Under every rule for missing rewards, before and after windows pass, in an experiment that is finished."""
        for number, missing in enumerate(
            [
                None,
                WaitForReward(window_seconds=60),
                WaitForReward(window_seconds=60, hold=True),
                DefaultReward(value=0.5, window_seconds=60),
                DropUnit(window_seconds=60, late="ignore", hold=True),
            ]
        ):
            experiment = self.create(f"list-{number}", missing=missing, policy=Uniform())
            names = [f"unit-{i}" for i in range(8)]
            experiment.ask_many(names[:5])
            experiment.tell_many([("unit-0", 1.0), ("unit-3", 2.0)])
            experiment.withdraw("unit-4", "left")
            self._compare(experiment, names)
            self.clock.advance(61)
            self._compare(experiment, names)  # nothing has settled them yet
            experiment.settle()
            experiment.ask_many(names[5:])
            experiment.tell_many([("unit-1", 3.0), ("unit-5", 4.0)])
            experiment.withdraw("unit-2", "left")
            self._compare(experiment, names)
            experiment.finish(anyway=True)
            self._compare(experiment, names)

    def _compare(self, experiment: Experiment, names: list[str]) -> None:
        known = [found for name in names if (found := experiment.unit(name)) is not None]
        assert experiment.units(limit=100).units == tuple(known)
        for state in UNIT_STATES:
            wanted = [one for one in known if one.state == state]
            for limit in (2, 100):
                listed = [one for page in pages(experiment, state, limit=limit) for one in page]
                assert sorted(listed, key=lambda one: one.unit) == wanted, (state, limit)
            by_name = [one for page in pages(experiment, state, prefix="unit", limit=3) for one in page]
            assert by_name == wanted

    def test_those_who_wait_longest_come_first(self) -> None:
        """In the order of assignment, whatever their names."""
        for name, missing in (("open", None), ("window", WaitForReward(window_seconds=60))):
            experiment = self.create(name, missing=missing, policy=Uniform())
            for unit in ("c", "a", "b"):
                experiment.ask(unit)
                self.clock.advance(1)
            assert [one.unit for one in experiment.units("waiting").units] == ["c", "a", "b"]
        self.clock.advance(57.5)
        assert [one.unit for one in experiment.units("waiting").units] == ["a", "b"]
        assert [one.unit for one in experiment.units("overdue").units] == ["c"]

    def test_units_are_found_by_how_their_names_begin(self) -> None:
        """Any text, in the order of code points; names are no patterns."""
        experiment = self.create(policy=Uniform())
        names = ["a", "a%", "a%b", "a*", "ab", "b", "é", "école", "\N{GRINNING FACE}", "\ud7ff", "<script>", "' OR 1=1"]
        experiment.ask_many(names)
        assert [one.unit for one in experiment.units().units] == sorted(names)
        for prefix in ("a", "a%", "b", "é", "\N{GRINNING FACE}", "\ud7ff", "<", "'", "none", "\U0010ffff"):
            wanted = sorted(name for name in names if name.startswith(prefix))
            assert [one.unit for page in pages(experiment, prefix=prefix, limit=1) for one in page] == wanted, prefix

    def test_a_list_that_makes_no_sense_is_refused(self) -> None:
        """States, limits and places."""
        experiment = self.create()
        wrong: list[dict[str, Any]] = [
            {"state": "late"},
            {"limit": 0},
            {"limit": 1_001},
            {"prefix": ""},
            {"prefix": "a\0"},
            {"state": "waiting", "after": "nonsense"},
            {"state": "waiting", "after": "0.x"},
            {"state": "waiting", "after": "7.1"},
            {"state": "waiting", "after": "0.1.1.1"},
        ]
        for settings in wrong:
            with refused(errors.InvalidInput, next(name for name in reversed(settings))):
                experiment.units(**settings)

    def test_the_events_of_a_unit_are_in_the_order_of_the_log(self) -> None:
        """Of others there is nothing; of an erased unit nothing is left."""
        experiment = self.create(missing=WaitForReward(window_seconds=60), policy=Uniform())
        experiment.ask_many([("ada", {"class": "4b"}), ("bob", None)])
        self.clock.advance(61)
        experiment.tell("ada", 1.0)
        experiment.tell("bob", 1.0)
        experiment.correct("ada", 0.5, "misread")
        experiment.withdraw("ada", "left")
        wanted = [event for event in experiment.events() if event.unit == "ada"]
        assert experiment.unit_events("ada") == wanted
        assert [event.kind for event in wanted] == ["assigned", "expired", "rewarded", "corrected", "withdrawn"]
        assert experiment.unit_events("eve") == []
        experiment.erase("ada")
        assert experiment.unit_events("ada") == []
