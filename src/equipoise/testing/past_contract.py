"""Contract tests of views of the past: what an experiment says as of an event is what it said then."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from equipoise import errors
from equipoise.experiment import Budget, DefaultReward, DropUnit, Experiment, Precision
from equipoise.experiment.full_report import FullReport
from equipoise.policies import PooledBalance, ThompsonBalance
from equipoise.testing.unit_contract import RANDOM, ExperimentCase, refused


class Past(ExperimentCase):
    """Views as of an event."""

    def test_a_view_of_the_past_says_what_was_said_then(self) -> None:
        """Whatever happened since: late and corrected rewards, windows, withdrawals, arms, dials and words."""
        cases: list[tuple[str, dict[str, Any]]] = [
            ("plain", {"policy": RANDOM, "reward_range": (-5, 5)}),
            ("default", {"policy": RANDOM, "missing": DefaultReward(value=0, window_seconds=50, hold=True)}),
            ("drop", {"policy": ThompsonBalance(reward_weight=0.5), "missing": DropUnit(window_seconds=50)}),
            ("drift", {"policy": PooledBalance(reward_weight=0.5, tracking="windowed", drift="declared")}),
            ("small", {"policy": RANDOM, "direction": "minimise", "reward_cap": 2.0}),
        ]
        for name, settings in cases:
            rules = [Budget(units=50), Precision(half_width=0.5)]
            experiment = self.create(name, stopping=rules, control="line", **settings)
            seen = self._play_and_look(experiment)
            assert len(seen) >= 10
            for event, said in [*seen.items(), *reversed(seen.items())]:
                assert _said(experiment.as_of(event)) == said, (name, event)
            event = next(reversed(seen))
            assert _said(self.reopened(experiment).as_of(event)) == seen[event]
            experiment.verify()

    def _play_and_look(self, experiment: Experiment) -> dict[int, Any]:
        """Do all that can be done with an experiment, and return what it said after some of its events."""
        rng = np.random.default_rng(3)
        told: list[str] = []
        asked: list[str] = []
        gone: set[str] = set()

        def tell() -> None:
            unit = asked.pop(int(rng.integers(len(asked))))
            experiment.tell(unit, float(rng.normal(1.0, 0.5)))
            told.append(unit)

        def withdraw() -> None:
            gone.add(told[0])
            experiment.withdraw(told[0], "asked to")

        changes: list[Callable[[], None]] = [
            lambda: experiment.change_weight(0.8),
            lambda: experiment.add_arm("cake", floor=0.1),
            lambda: experiment.change_description(title="Fractions", arms={"cake": "round"}),
            withdraw,
            lambda: experiment.pause_arm("pie", reason="a holiday"),
            lambda: experiment.resume_arm("pie"),
            lambda: experiment.retire_arm("none"),
            experiment.settle,
            experiment.stop,
        ]
        seen = {}
        for number in range(90):
            if number < 80:
                asked.append(experiment.ask(f"unit-{number}", {"age": number % 7}).unit)
            if asked and rng.random() < 0.7:
                tell()
            if rng.random() < 0.1 and len(told) > 3:
                unit = told[int(rng.integers(1, len(told)))]
                if unit not in gone:
                    experiment.correct(unit, float(rng.normal(1.0, 0.5)), "misread")
            if number % 10 == 9:
                changes[number // 10]()
            if number % 7 == 3 or number % 10 == 9:
                seen[experiment.status().n_events] = _said(experiment)
            self.clock.advance(3)
        return seen

    def test_reports_and_logs_of_the_past_end_with_the_event(self) -> None:
        """Reports count the decisions so far; changes, events and history are those up to the event."""
        experiment = self.create(reward_range=(0, 1), covariates=["age"])
        for number in range(60):
            experiment.ask(f"unit-{number}", {"age": number % 5})
            experiment.tell(f"unit-{number}", float(number % 3 == 0))
        at_first, event = experiment.report(), experiment.status().n_events
        timeline, history = experiment.timeline("hour"), experiment.history(7)
        experiment.correct("unit-1", 1.0, "misread")
        experiment.add_arm("cake")
        for number in range(60, 90):
            experiment.ask(f"unit-{number}", {"age": 3})
        experiment.note("much later")
        view = experiment.as_of(event)
        then = view.report()
        assert then.n_decisions == 60
        assert _without_times(then.to_dict()) == _without_times(at_first.to_dict())
        assert [one.kind for one in view.changes()] == ["created"]
        assert [one.number for one in view.events()] == list(range(1, event + 1))
        assert view.events_page(0, 5, newest_first=True)[0].number == event
        assert view.history(7).mean.tolist() == history.mean.tolist()
        found = view.timeline("hour")
        assert found.event == timeline.event == event
        same = ("assigned", "rewarded", "mean", "std", "share_wanted", "counted_so_far")
        for column in same:
            assert np.array_equal(getattr(found, column), getattr(timeline, column), equal_nan=True), column
        assert view.as_of(5).status().n_events == 5

    def test_a_full_report_has_the_numbers_of_its_parts(self) -> None:
        """All of one event: present or past, with the log or without it."""
        experiment = self.create(
            reward_range=(0, 1),
            control="line",
            stopping=[Budget(units=50)],
            missing=DropUnit(window_seconds=3600),
            description={"title": "Fractions", "outcome": "solved it"},
        )
        for number in range(60):
            experiment.ask(f"unit-{number}", {"age": number % 5})
            if number % 10:
                experiment.tell(f"unit-{number}", float(number % 3 == 0))
        experiment.change_weight(0.8, reason="it is time")
        experiment.note("All get pies.", "decision")
        whole = experiment.full_report(control="none", by=["age"])
        self._same_numbers(whole, experiment)
        assert whole.report is not None
        assert whole.report.comparison == whole.comparison
        assert _without_times(whole.report.to_dict()) == _without_times(
            experiment.report(control="none", by=["age"]).to_dict()
        )
        assert [event.kind for event in whole.changes] == ["created", "weight_changed", "noted"]
        assert not whole.has_earlier_changes
        assert whole.fidelity is None
        assert whole.verification is not None
        checked = experiment.verify()
        assert (whole.verification.n_events, whole.hash) == (checked.n_events, checked.last_hash)
        quick = experiment.full_report(control="none", log=False, verify=False)
        assert (quick.report, quick.verification) == (None, None)
        assert dataclasses.replace(quick.comparison, at=None) == dataclasses.replace(whole.comparison, at=None)
        self.clock.advance(4_000)
        experiment.correct("unit-1", 1.0, "misread")
        experiment.settle()
        experiment.add_arm("cake")
        then = experiment.as_of(whole.event).full_report(control="none", by=["age"], verify=False)
        assert then.is_past
        assert not whole.is_past
        assert _plain(then) == _plain(whole)
        with refused(errors.InvalidInput, "control must be one of the arms", "'sponge'"):
            experiment.full_report(control="sponge")
        with refused(errors.InvalidInput, "by must be a list"):
            experiment.full_report(by="age")

    def _same_numbers(self, whole: FullReport, experiment: Experiment) -> None:
        status = experiment.status()
        assert dataclasses.replace(whole.status, at=status.at) == status
        assert whole.event == status.n_events
        compared = experiment.compare(control="none")
        assert dataclasses.replace(whole.comparison, at=compared.at) == compared
        assert whole.settings == experiment.describe()
        assert whole.timeline is not None
        assert whole.timeline.event == whole.event
        timeline = experiment.timeline(whole.timeline.every)
        assert whole.timeline.to_dict() | {"at": None} == timeline.to_dict() | {"at": None}

    def test_nothing_of_the_past_can_be_changed(self) -> None:
        """Nor is there a future, or a unit of then."""
        experiment = self.create()
        experiment.ask("ada")
        view = experiment.as_of(1)
        changes: list[Callable[[], Any]] = [
            lambda: view.ask("bob"),
            lambda: view.tell("ada", 1.0),
            lambda: view.tell_many({"ada": 1.0}),
            lambda: view.change_weight(0.9),
            lambda: view.note("hello"),
            lambda: view.finish(),
            lambda: view.settle(),
            lambda: view.rebuild(),
            lambda: view.erase("ada"),
            lambda: view.delete(),
            lambda: view.unit("ada"),
            lambda: view.units(),
            lambda: view.unit_events("ada"),
        ]
        for change in changes:
            with refused(errors.InvalidInput, "as of event 1"):
                change()
        assert view.status().n_assigned == 0
        for number in (0, -1, 2.5, "3"):
            with refused(errors.InvalidInput, "event"):
                experiment.as_of(number)  # type: ignore[arg-type]
        with refused(errors.InvalidInput, "at must be the number of an event, from 1 to 2", "got 3"):
            experiment.as_of(3).status()
        assert experiment.status().n_events == 2


def _plain(whole: FullReport) -> dict[str, Any]:
    """Return the numbers of a report, without times and what is about the whole log."""
    data = whole.to_dict()
    for part in ("status", "report", "comparison", "timeline"):
        data[part] |= {"at": None}
    data["report"] |= {"until": None, "comparison": data["comparison"]}
    return data | {"at": None, "made_at": None, "verification": None}


def _without_times(report: dict[str, Any]) -> dict[str, Any]:
    comparison = report["comparison"] | {"at": None}
    return report | {"at": None, "until": None, "comparison": comparison}


def _said(experiment: Experiment) -> Any:
    """Return what an experiment says of itself, without the time at which it was asked."""
    status = experiment.status()
    data = status.to_dict()
    prices = dataclasses.asdict(experiment.prices())
    compared = experiment.compare(all_pairs=True)
    return (
        {name: value for name, value in data.items() if name != "at"},
        dataclasses.replace(compared, at=status.created_at),
        {name: value for name, value in prices.items() if name != "at"},
        {name: value for name, value in experiment.describe().items() if name != "configuration"},
        experiment.configuration,
    )
