"""People, desk and settings of the console: what is shown, what is asked before, who may do it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

import pytest
from console_visitor import SAME_ORIGIN, Visitor, hidden_fields
from service_runner import serving_here

import equipoise as eq
from equipoise.experiment import WaitForReward
from equipoise.service import Settings
from equipoise.service.api_keys import create_key

if TYPE_CHECKING:
    from collections.abc import Iterator

HOSTILE = ("<script>alert(1)</script>", "\"'&<b>", "\u202etxt.exe", "a" * 500, "4b/spring é?#%")


class Clinic(NamedTuple):
    """A service with an experiment that has a window of two days, and a key of each role."""

    url: str
    store: eq.Store
    keys: dict[str, str]
    clock: list[datetime]

    def experiment(self, name: str, n_people: int = 4, **settings: object) -> eq.Experiment:
        """Make an experiment in which people came an hour apart, and the first has a reward."""
        chosen = {"arms": ["plain", "prize"], "reward_weight": 0.6, "seed": 7, "reward_range": (0, 1)} | settings
        missing = WaitForReward(window_seconds=2 * 86_400)
        made = eq.Experiment.create(self.store, name, missing=missing, who="ann", **chosen)  # type: ignore[arg-type]
        for number in range(n_people):
            made.ask(f"patient-{number}")
            self.clock[0] += timedelta(hours=1)
        if n_people:
            made.tell("patient-0", 1.0)
        return made

    def visitor(self, role: str) -> Visitor:
        return Visitor(self.url, self.keys[role])


@pytest.fixture(scope="module")
def clinic() -> Iterator[Clinic]:
    clock = [datetime(2027, 4, 1, 8, tzinfo=UTC)]

    def now() -> datetime:
        clock[0] += timedelta(microseconds=1)
        return clock[0]

    store = eq.open_store("memory:", clock=now)
    keys = {role: create_key(store, role=role, name=f"Ada {role}")[1] for role in ("reader", "assigner", "admin")}
    with serving_here(store, Settings(console_hours=8_000)) as here:
        yield Clinic(here.url, store, keys, clock)


def test_people_are_listed_by_state_and_found_by_how_their_ids_begin(clinic: Clinic) -> None:
    made = clinic.experiment("found")
    with clinic.visitor("reader") as visitor:
        page = visitor.page("e/found/people")
        assert "patient-1" in page
        assert "patient-0" not in page  # has a reward
        assert "patient-0" in visitor.page("e/found/people?find=patient-0")
        assert "Nobody with such an id" in visitor.page("e/found/people?find=nobody")
        clinic.clock[0] += timedelta(days=3)
        assert "window passed" in visitor.page("e/found/people?state=overdue")
        found = json.loads(visitor.page("e/found/people?state=overdue&format=json"))
        assert [one["unit"] for one in found["people"]] == [one.unit for one in made.units("overdue").units]


def test_a_list_goes_on_page_by_page(clinic: Clinic) -> None:
    made = clinic.experiment("long", 0)
    made.ask_many([f"patient-{number:03}" for number in range(120)])
    with clinic.visitor("reader") as visitor:
        seen, path = [], "e/long/people?state=waiting"
        while path:
            found = json.loads(visitor.page(f"{path}&format=json"))
            seen += [one["unit"] for one in found["people"]]
            path = found["more"]
    assert seen == [f"patient-{number:03}" for number in range(120)]


def test_a_person_is_shown_with_all_events(clinic: Clinic) -> None:
    made = clinic.experiment("one")
    made.correct("patient-0", 0.5, "misread <b>it</b>")
    with clinic.visitor("reader") as visitor:
        page = visitor.page("e/one/people/patient-0")
        for words in ("reward 1 recorded, and counted", "reward corrected from 1 to 0.5", "misread &lt;b&gt;it"):
            assert words in page, words
        assert "<form" not in page.split("<main")[1].split("</main>")[0]
        assert visitor.get("e/one/people/nobody").status_code == 404
        assert visitor.send("e/one/people/patient-0", {"do": "withdraw", "reason": "x"}).status_code == 403


def test_an_admin_records_corrects_and_withdraws_after_being_asked(clinic: Clinic) -> None:
    made = clinic.experiment("mended")
    there = "e/mended/people/patient-1"
    with clinic.visitor("admin") as visitor:
        for do, fields, state in (
            ("tell", {"reward": "0.25"}, 0.25),
            ("correct", {"reward": "0.75", "reason": "misread"}, 0.75),
            ("withdraw", {"reason": "left"}, None),
        ):
            before = made.unit("patient-1")
            asked = visitor.send(there, {"do": do, **fields})
            assert asked.status_code == 200
            assert 'name="sure"' in asked.text
            assert made.unit("patient-1") == before
            was = "" if before is None or before.reward is None else repr(before.reward)
            done = visitor.send(there, {"do": do, **fields, "sure": "yes", "was": was})
            assert done.status_code == 303, done.text
            after = made.unit("patient-1")
            assert after is not None
            assert after.reward == state
        assert [event.who for event in made.unit_events("patient-1")][1:] == 3 * ["Ada admin"]
        assert made.unit_events("patient-1")[-1].details == {"reason": "left"}


def test_what_cannot_be_recorded_is_said_on_the_page(clinic: Clinic) -> None:
    made = clinic.experiment("wrong")
    with clinic.visitor("admin") as visitor:
        for fields, words in (
            ({"do": "tell", "reward": "7"}, "Reward must be in [0, 1]"),
            ({"do": "tell", "reward": "yes"}, "must be a number"),
            ({"do": "correct", "reward": "0.5"}, "The reason is missing"),
        ):
            answer = visitor.send("e/wrong/people/patient-0", fields)
            assert answer.status_code == 422
            assert words in answer.text
        late = {"do": "correct", "reward": "0.5", "reason": "x", "sure": "yes", "was": "1.0"}
        made.correct("patient-0", 0.25, "somebody else was here")
        answer = visitor.send("e/wrong/people/patient-0", late)
        assert answer.status_code == 409
        assert "somebody else has recorded 0.25" in answer.text
        assert made.unit("patient-0").reward == 0.25  # type: ignore[union-attr]


def test_the_desk_assigns_and_records_after_being_asked(clinic: Clinic) -> None:
    made = clinic.experiment("front", 2)
    with clinic.visitor("assigner") as visitor:
        given = visitor.send("e/front/desk", {"do": "give", "unit": "ben"}).text
        arm = made.assignment("ben").arm  # type: ignore[union-attr]
        assert f"<strong><bdi>{arm}</bdi></strong>" in given
        again = visitor.send("e/front/desk", {"do": "give", "unit": "ben"}).text
        assert "has had it since" in again
        asked = visitor.send("e/front/desk", {"do": "tell", "unit": "ben", "reward": "0.5", "seen": "ben"}).text
        assert "Is this right?" in asked
        assert made.unit("ben").reward is None  # type: ignore[union-attr]
        told = visitor.send("e/front/desk", {"do": "record", "unit": "ben", "reward": "0.5", "n_told": "2"}).text
        assert "The reward 0.5 of" in told
        assert "3 rewards recorded" in told
        assert made.unit("ben").reward == 0.5  # type: ignore[union-attr]
        assert made.unit_events("ben")[-1].who == "Ada assigner"
        for fields, words in (
            ({"do": "tell", "unit": "ben", "reward": "1"}, "was recorded before and is 0.5; an admin can correct it"),
            ({"do": "tell", "unit": "eve", "reward": "1"}, "has no arm in this experiment"),
            ({"do": "give", "unit": " "}, "id is missing"),
        ):
            answer = visitor.send("e/front/desk", fields)
            assert answer.status_code == 422
            assert words in answer.text


def test_the_desk_shows_no_results_and_only_its_own_people(clinic: Clinic) -> None:
    made = clinic.experiment("blind")
    with clinic.visitor("assigner") as visitor:
        page = visitor.page("e/blind/desk")
        assert "patient-0" not in page
        seen = visitor.send("e/blind/desk", {"do": "give", "unit": "ben", "seen": "patient-1"}).text
        assert seen.index("ben") < seen.rindex("patient-1")
        assert "patient-2" not in seen
        for path in ("e/blind", "e/blind/people", "e/blind/people/ben", "e/blind/settings", "e/blind/settings/stop"):
            assert visitor.get(path).status_code == 403, path
        made.stop()
        assert "takes no new people" in visitor.page("e/blind/desk")
    with clinic.visitor("reader") as visitor:
        assert visitor.get("e/blind/desk").status_code == 403


@pytest.mark.parametrize("name", HOSTILE[:3])
def test_hostile_names_and_people_stay_text(clinic: Clinic, name: str) -> None:
    made = clinic.experiment(f"x {name}", 0, arms=["plain", name])
    for unit in HOSTILE:
        made.ask(unit)
    with clinic.visitor("admin") as visitor:
        here = f"e/{quote(f'x {name}', safe='')}"
        retiring = f"settings/retire-arm?arm={quote(name, safe='')}"
        for path in ("people", "people?find=%3C", "desk", "settings", retiring):
            page = visitor.page(f"{here}/{path}")
            assert "<script>alert" not in page, path
            assert "<b>" not in page, path
        for unit in HOSTILE:
            assert "What happened" in visitor.page(f"{here}/people/{quote(unit, safe='')}")


ACTS = {
    "pause": ({}, "No new people, until somebody resumes it"),
    "resume": ({}, "New people get an arm again"),
    "settle": ({}, "rule for missing rewards"),
    "weight": ({"reward_weight": "0.8"}, "Now it is 0.6"),
    "add-arm": ({"arm": "social", "floor": "5%"}, "never deleted"),
    "pause-arm?arm=prize": ({}, "until somebody resumes it"),
    "resume-arm?arm=prize": ({}, "New people can get it again"),
    "retire-arm?arm=prize": ({"typed": "prize"}, "No new people get \u2018prize\u2019, for good"),
    "stop": ({}, "4 people keep their arm"),
}


def test_every_act_says_what_will_happen_and_does_it(clinic: Clinic) -> None:
    made = clinic.experiment("acted")
    with clinic.visitor("admin") as visitor:
        for act, (fields, words) in ACTS.items():
            there = f"e/acted/settings/{act}"
            assert words in visitor.page(there), act
            before = made.status().n_events
            answer = visitor.send(there, {**fields, "reason": f"because {act}"})
            assert answer.status_code == 303, (act, answer.text)
            assert '<p class="done"' in visitor.page(f"e/acted/settings?done={act.partition('?')[0]}")
            if act != "settle":
                [event] = list(made.events(before))
                assert event.details["reason"] == f"because {act}", act
                assert event.who == "Ada admin"
        page = visitor.page("e/acted/settings/finish")
        assert "the last window passes on" in page
        assert "3 rewards are awaited" in page or "3 rewards are still to come" in page
        refused = visitor.send("e/acted/settings/finish", {"typed": "acted"})
        assert refused.status_code == 422
        wrong = visitor.send("e/acted/settings/finish", {"typed": "other", "anyway": "yes"})
        assert wrong.status_code == 422
        assert "type acted" in wrong.text
        assert visitor.send("e/acted/settings/finish", {"typed": "acted", "anyway": "yes"}).status_code == 303
        assert made.status().state == "finished"


def test_a_rehearsal_has_the_settings_and_another_seed(clinic: Clinic) -> None:
    made = clinic.experiment("played", control="plain", control_share=0.1)
    with clinic.visitor("admin") as visitor:
        answer = visitor.send("e/played/settings/rehearse", {"new_name": "played: try"})
        assert answer.headers["location"] == "../../../e/played%3A%20try"
        taken = visitor.send("e/played/settings/rehearse", {"new_name": "acted"})
        assert taken.status_code == 422
    copy = eq.Experiment.open(clinic.store, "played: try")
    one, other = (dict(found.configuration.to_dict()) for found in (made, copy))
    assert one.pop("seed") != other.pop("seed")
    assert other.pop("metadata") == {"rehearsal_of": "played"}
    del one["metadata"]
    assert one == other
    assert copy.describe()["arms"] == made.describe()["arms"]


def test_a_form_drawn_before_another_change_is_refused(clinic: Clinic) -> None:
    made = clinic.experiment("stale")
    with clinic.visitor("admin") as visitor:
        drawn = visitor.page("e/stale/settings/weight")
        made.change_weight(0.9)
        fields = hidden_fields(drawn) | {"reward_weight": "0.7"}
        answer = visitor.web.post("e/stale/settings/weight", data=fields, headers=SAME_ORIGIN)
        assert answer.status_code == 409
    assert made.configuration.reward_weight == 0.9


@pytest.mark.parametrize("n_people", [0, 1, 29])
def test_pages_stand_in_every_state_and_for_every_role(clinic: Clinic, n_people: int) -> None:
    made = clinic.experiment(f"state {n_people}", n_people)
    here = f"e/state%20{n_people}"
    for change in (lambda: None, made.pause, made.stop, lambda: made.finish(anyway=True)):
        change()
        for role in clinic.keys:
            with clinic.visitor(role) as visitor:
                wanted = ["desk"] if role != "reader" else []
                wanted += ["people", "people?state=held", "settings"] if role != "assigner" else []
                for path in wanted:
                    assert "<h1" in visitor.page(f"{here}/{path}"), (role, path)
