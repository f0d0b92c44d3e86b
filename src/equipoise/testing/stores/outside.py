"""Whatever comes from outside: a clear error, or correct work."""

from __future__ import annotations

import math
from typing import Any

from equipoise import errors
from equipoise.experiment import DefaultReward, Experiment
from equipoise.policies import Fixed, ForcingBalance, Uniform
from equipoise.testing.stores.case import StoreCase, refused


class Outside(StoreCase):
    """Whatever comes from outside: a clear error, or correct work."""

    def test_any_text_is_a_name(self) -> None:
        """Names and units are kept as they are, in any script; SQL is text."""
        texts = [
            "élève",
            "学生",
            "👩🏽‍🚀",
            "e\u0301",
            "é",
            "'; DROP TABLE events; --",
            '"x"',
            "%s ? :a",
            "a b\u2028c",
            "a" * 200,
        ]
        experiment = self.create("'; DROP TABLE experiments; --", arms=texts, policy=Uniform())
        assigned = experiment.ask_many(texts)
        assert [one.arm for one in assigned] == texts
        assert [experiment.assignment(text).unit for text in texts] == texts  # type: ignore[union-attr]
        experiment.tell_many(dict.fromkeys(texts, 1.0))
        experiment.ask("x" * 500)
        experiment.ask("y", {"text": "\0 \ud800 né", "nested": [1, {"a": None}]})
        again = self.reopened(experiment)
        assert [arm.arm for arm in again.status().arms] == texts
        assert list(again.events())[-1].details["attributes"]["text"] == "\0 \ud800 né"
        again.verify()
        self.compare_export(again)

    def test_what_is_no_text_or_too_much_is_refused(self) -> None:
        """With a message that does not repeat a megabyte."""
        experiment = self.create()
        for text in (
            "",
            " ",
            "a ",
            "\u2028a",
            "a\0b",
            "a\nb",
            "\x1b[31m",
            "\ud800",
            "a" * 501,
            "a" * 10**6,
            42,
            None,
            b"a",
            ["a"],
        ):
            for attempt in (
                lambda text=text: experiment.ask(text),
                lambda text=text: experiment.tell(text, 1.0),
                lambda text=text: experiment.add_arm(text),
                lambda text=text: self.create(text),
                lambda text=text: self.create("never", arms=["a", text]),
                lambda text=text: Experiment.open(self.store, text),
            ):
                with refused(errors.InvalidInput) as refusal:
                    attempt()
                assert len(str(refusal[0])) < 300
        deep: dict[str, Any] = {}
        for _ in range(100):
            deep = {"a": deep}
        for attributes in ("text", {1: 2}, {"a": math.nan}, {"a": object()}, {"a": "x" * 10_001}, deep):
            with refused(errors.InvalidInput, "attributes"):
                experiment.ask("unit", attributes)  # type: ignore[arg-type]
        for units in ("abc", 5):
            with refused(errors.InvalidInput, "units must be a list"):
                experiment.ask_many(units)  # type: ignore[arg-type]
        assert experiment.status().n_events == 1

    def test_settings_that_make_no_sense_are_refused(self) -> None:
        """Before anything is written."""
        nonsense: list[dict[str, Any]] = [
            {"arms": []},
            {"arms": ["a", "a"]},
            {"arms": "ab"},
            {"policy": "ForcingBalance"},
            {"policy": Fixed(allocation=(0.5, 0.5))},
            {"seed": -1},
            {"warm_up": 1.5},
            {"reward_range": (1, 0)},
            {"reward_range": 3},
            {"direction": "up"},
            {"missing": "drop"},
            {"missing": DefaultReward(value=5, window_seconds=1), "reward_range": (0, 1)},
            {"stopping": ["budget"]},
            {"failure_probability": 0},
            {"metadata": {"a": math.inf}},
        ]
        for settings in nonsense:
            with refused(errors.InvalidInput):
                self.create("never", **settings)
        assert Experiment.list(self.store) == []

    def test_ten_thousand_arms(self) -> None:
        """Work, if not as fast as three."""
        arms = [f"arm {i}" for i in range(10_000)]
        experiment = self.create(arms=arms, policy=ForcingBalance(reward_weight=0.9), floor=1e-5)
        experiment.ask_many([f"unit-{i}" for i in range(300)])
        experiment.tell_many({f"unit-{i}": float(i) for i in range(300)})
        experiment.ask("one more")
        again = self.reopened(experiment)
        assert again.ask("and one").new
        assert again.status().n_assigned == 302
        again.verify()
