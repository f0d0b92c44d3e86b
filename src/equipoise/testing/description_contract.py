"""Contract tests of what every experiment says about itself: its description, and whether it starts paused."""

from __future__ import annotations

from typing import Any

from equipoise import errors
from equipoise.experiment import sentence_of
from equipoise.testing.unit_contract import ExperimentCase, refused


class Descriptions(ExperimentCase):
    """What an experiment is about, in words."""

    def test_an_experiment_says_what_it_is_about(self) -> None:
        """In its description, status and configuration; texts that are empty are as if nobody had said them."""
        plain = self.create()
        assert plain.describe()["description"] == {}
        assert plain.status().description.title == ""
        texts: dict[str, Any] = {
            "title": "Fractions",
            "question": "Does a picture help?\nIf so, which?",
            "outcome": "solved the task",
            "reward_unit": "points",
            "owner": "Ada",
            "arms": {"pie": "a round one", "line": "from 0 to 1"},
        }
        experiment = self.create("other", description=texts | {"arms": texts["arms"] | {"none": ""}})
        assert experiment.describe()["description"] == texts
        assert experiment.configuration.description.to_dict() == experiment.status().description.to_dict() == texts
        assert self.reopened(experiment).describe() == experiment.describe()
        assert "description" not in next(plain.events()).details["configuration"]
        experiment.verify()

    def test_the_description_can_change_and_the_log_keeps_what_it_was(self) -> None:
        """Texts that are not given stay, a repeat changes nothing, and decisions are as without it."""
        experiment = self.create(description={"title": "Fractions", "owner": "Ada"})
        self.play(experiment, 10)
        experiment.change_description(title="", outcome="solved it", arms={"pie": "a round one"}, reason="clearer")
        experiment.change_description(outcome="solved it", arms={"pie": "a round one", "line": ""})
        self.play(experiment, 10, first=10)
        experiment.add_arm("cake")
        experiment.finish()
        experiment.change_description(arms={"cake": "a birthday's", "pie": ""}, expected_change=10_000)
        last, finished, added, first, _ = experiment.changes()
        assert [event.kind for event in (last, finished, added, first)] == [
            *("described", "finished", "arm_added", "described")
        ]
        assert first.who == self.author
        assert first.details == {
            "description": {"title": "", "outcome": "solved it", "arms": {"pie": "a round one"}},
            "was": {"title": "Fractions", "outcome": "", "arms": {"pie": ""}},
            "reason": "clearer",
        }
        assert sentence_of(first).endswith(
            "changed the title to nothing, the outcome to 'solved it' and the text of the arm 'pie' to 'a round one': "
            "'clearer'"
        )
        expected = {"outcome": "solved it", "owner": "Ada", "arms": {"cake": "a birthday's"}}
        assert experiment.describe()["description"] == expected
        assert self.reopened(experiment).describe()["description"] == expected
        experiment.verify()
        assert not experiment.rebuild()
        same = self.create("without words")
        self.play(same, 20)
        chances = [[e.probability for e in one.events(kinds=["assigned"])] for one in (experiment, same)]
        assert chances[0] == chances[1]

    def test_what_older_consoles_kept_in_the_metadata_is_only_metadata_now(self) -> None:
        """New experiments say it in their description."""
        experiment = self.create(metadata={"outcome": "came", "question": "who?"})
        assert experiment.describe()["description"] == {}
        experiment.verify()
        experiment.change_description(outcome="went")
        assert self.reopened(experiment).describe()["description"] == {"outcome": "went"}
        experiment.verify()

    def test_texts_that_make_no_sense_are_refused(self) -> None:
        """Before anything is written."""
        experiment = self.create()
        wrong: list[tuple[dict[str, Any], str]] = [
            ({"title": 5}, "title"),
            ({"title": "x" * 201}, "title"),
            ({"question": "x" * 1_001}, "question"),
            ({"reward_unit": "x" * 51}, "reward_unit"),
            ({"owner": "a\0b"}, "owner"),
            ({"outcome": " "}, "outcome"),
            ({"arms": {"pie": 5}}, "pie"),
            ({"arms": {"pie": "x" * 2_001}}, "pie"),
            ({"reason": ""}, "reason"),
        ]
        for texts, word in wrong:
            with refused(errors.InvalidInput, word):
                experiment.change_description(**texts)
            if "reason" not in texts:
                with refused(errors.InvalidInput, "description", word):
                    self.create("wrong", description=texts)
        with refused(errors.UnknownArm, "'cake'"):
            experiment.change_description(arms={"cake": "round"})
        for text, words in (({"arms": {"cake": "round"}}, "'cake'"), ({"name": "x"}, "name"), (["title"], "title")):
            with refused(errors.InvalidInput, "description", words):
                self.create("wrong", description=text)
        experiment.change_description(title="Fractions")
        with refused(errors.StaleChange, "changed the title to 'Fractions'"):
            experiment.change_description(title="Pies", expected_change=1)
        assert experiment.status().n_events == 2

    def test_an_experiment_can_start_paused(self) -> None:
        """From its first moment: there is no time at which somebody could be assigned."""
        experiment = self.create(paused=True)
        created, paused = experiment.events()
        assert [created.kind, paused.kind] == ["created", "paused"]
        assert (created.at, created.who) == (paused.at, paused.who)
        with refused(errors.EnrolmentClosed, "paused"):
            experiment.ask("ada")
        experiment.verify()
        experiment.resume()
        assert self.reopened(experiment).ask("ada").new
        experiment.verify()
        with refused(errors.InvalidInput, "paused"):
            self.create("wrong", paused="no")
