"""What experiments are about, in words, where the store and the command line are concerned."""

from __future__ import annotations

import json

import equipoise as eq
from equipoise.experiment.configuration import Configuration
from equipoise.experiment.description import ExperimentDescription


def test_what_older_consoles_kept_in_the_metadata_is_the_description(tmp_path) -> None:
    """An experiment that was made before there were descriptions has the words that its console kept."""
    made = eq.Experiment.create(
        "memory:",
        "mail",
        arms=["a", "b"],
        policy=eq.Uniform(),
        metadata={"outcome": "came", "question": "who?", "n": 1},
    )
    data = made.configuration.to_dict()
    assert data.pop("description") == {}  # the metadata says nothing of a new one
    old = Configuration.from_dict(json.loads(json.dumps(data)))
    assert old.description == ExperimentDescription(question="who?", outcome="came")
    assert old.to_dict() == data  # as it was written
    changed = old.with_description({"outcome": ""})
    assert changed.description == ExperimentDescription(question="who?")
    assert Configuration.from_dict(changed.to_dict()) == changed
    emptied = changed.with_description({"question": ""})
    assert Configuration.from_dict(emptied.to_dict()).description == ExperimentDescription()


def test_a_store_of_before_goes_on_with_descriptions(tmp_path) -> None:
    """A change of the words is replayed, copied and read by another process like any other."""
    url = f"sqlite:///{tmp_path}/store.db"
    with eq.open_store(url) as store, eq.open_store(url) as other:
        experiment = eq.Experiment.create(store, "mail", arms=["a", "b"], policy=eq.Uniform(), seed=1)
        elsewhere = eq.Experiment.open(other, "mail")
        assert elsewhere.describe()["description"] == {}
        experiment.change_description(title="Reminders", arms={"b": "a draw"})
        assert elsewhere.status().description.title == "Reminders"
        copied = experiment.copy_to("memory:")
        assert copied.describe() == experiment.describe()
        copied.verify()
        experiment.verify()
        store.change(experiment.number, lambda t: t.configure(experiment.number, "{}", 1))
        store.states.clear()
        assert experiment.rebuild()
        assert experiment.describe()["description"] == {"title": "Reminders", "arms": {"b": "a draw"}}
        experiment.verify()


def test_a_plan_gives_its_experiment_its_words() -> None:
    plan = eq.plan(rates="10%,12%", people=300, title="Reminders", outcome="came", replications=20, seed=1)
    made = plan.create("memory:", "mail", way=plan.ways and next(iter(plan.ways)), description={"owner": "Ada"})
    assert made.describe()["description"] == {"title": "Reminders", "outcome": "came", "owner": "Ada"}
