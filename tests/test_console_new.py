"""Making an experiment in the console: five steps that one can go back, and the same as a file and a request."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec
import pytest
from console_visitor import Visitor
from service_runner import serving_here

import equipoise as eq
from equipoise.console.drafts import Draft
from equipoise.console.new_experiment import STEPS
from equipoise.service import Settings
from equipoise.service.api_keys import create_key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WRITTEN = {
    "name": "4b/spring é",
    "title": "Letters in spring",
    "question": "Does a 'prize' help?",
    "outcome": "days until they came",
    "arm_texts": 'the date\n\nfrom "us"',
    "owner": "Ada",
    "reward_unit": "days",
    "arms": 'plain\nprize <b>\n"social"',
    "control": "plain",
    "control_share": "10%",
    "rewards": "range",
    "low": "0",
    "high": "20",
    "good": "small",
    "window": "2 days",
    "silence": "default",
    "default_value": "7.5",
    "hold": "yes",
    "kept": "own",
    "kept_own": "80%",
    "about": "best-arm",
    "guesses": "12 ± 4\n10 ± 4\n11 ± 4",
    "people": "500",
    "budget": "2,000",
    "deadline": "2027-06-30",
    "half_width": "0.5",
    "decided": "yes",
    "margin": "0.1",
}


@pytest.fixture(scope="module")
def store() -> eq.Store:
    return eq.open_store("memory:")


@pytest.fixture(scope="module")
def admin(store: eq.Store) -> Iterator[Visitor]:
    keys = {role: create_key(store, role=role, name=f"Ada {role}")[1] for role in ("reader", "admin")}
    with serving_here(store, Settings()) as here, Visitor(here.url, keys["admin"]) as visitor:
        yield visitor


def fields_of(page: str) -> dict[str, str]:
    """Return the hidden fields of the form on a page."""
    form = page.split("<main")[1].split("</main>")[0]
    return {name: unescape(value) for name, value in re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form)}


def test_five_steps_lead_to_an_experiment(admin: Visitor, store: eq.Store) -> None:
    carried: dict[str, str] = {}
    for place, step in enumerate(STEPS[:-1]):
        own = {field.name for field in step.fields({})}
        written = carried | {name: value for name, value in WRITTEN.items() if name in own}
        page = admin.page(f"{STEPS[place + 1].path}?{urlencode(written)}")
        carried = fields_of(page) | {name: value for name, value in written.items() if name not in ("token", "change")}
    assert "Is this what you want?" in page
    assert "<b>" not in page
    sent = {name: value for name, value in fields_of(page).items() if name not in ("token", "change")}
    assert sent == WRITTEN
    answer = admin.send("new/check", {**sent, "start": "paused"}, drawn_on=f"new/check?{urlencode(sent)}")
    assert answer.status_code == 303, answer.text
    made = eq.Experiment.open(store, WRITTEN["name"])
    settings = made.configuration
    assert made.describe()["state"] == "paused"
    assert [arm["name"] for arm in made.describe()["arms"]] == ["plain", "prize <b>", '"social"']
    assert (settings.reward_range, settings.direction, settings.control) == ((0.0, 20.0), "minimise", "plain")
    assert settings.missing == eq.DefaultReward(value=7.5, window_seconds=2 * 86_400, hold=True)
    assert settings.dial == {"information_kept": 0.8, "information_about": "best-arm"}
    assert (
        settings.stopping == Draft(WRITTEN).settings["stopping"] == tuple(Draft(WRITTEN).rules)
        or list(settings.stopping) == Draft(WRITTEN).rules
    )
    assert settings.metadata == {}
    assert made.describe()["description"] == {
        **{name: WRITTEN[name] for name in ("title", "question", "outcome", "reward_unit", "owner")},
        "arms": {"plain": "the date", '"social"': 'from "us"'},
    }
    created, paused = made.events()
    assert (created.kind, paused.kind, created.at) == ("created", "paused", paused.at)
    assert next(made.events()).who == "Ada admin"
    again = admin.send("new/check", sent, drawn_on=f"new/check?{urlencode(sent)}")
    assert again.status_code == 422
    assert "choose another name" in again.text


def test_going_back_shows_what_was_written(admin: Visitor) -> None:
    page = admin.page(f"new/check?{urlencode(WRITTEN)}")
    links = re.findall(r'<li><a href="\./([^"]+)">\d', page) or re.findall(r'<li><a href="\.\./([^"]+)">\d', page)
    assert len(links) == 4
    for link in links:
        query = dict(parse_qsl(urlsplit(unescape(link)).query))
        assert query == WRITTEN
        assert admin.get(unescape(link)).status_code == 200
    assert 'value="4b/spring é"' in admin.page(unescape(links[0]))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"arms": "plain"}, "at least two arms"),
        ({"arms": "a\na"}, "is there twice"),
        ({"name": " "}, "the name must not be empty"),
        ({"control": "other"}, "must be one of the arms"),
        ({"control": ""}, "say which arm the control is"),
        ({"low": "20"}, "must be below the highest"),
        ({"window": "soon"}, "must be a duration"),
        ({"window": ""}, "how long a reward is waited for"),
        ({"default_value": ""}, "the value that counts instead is missing"),
        ({"kept_own": "0"}, "must be above 0"),
        ({"about": "nothing"}, "must be one of"),
        ({"guesses": "12"}, "one guess for each of the 3 arms"),
        ({"guesses": "1\n2\n3"}, "mean and spread"),
        ({"deadline": "tomorrow"}, "must be a day"),
        ({"budget": "many"}, "must be a whole number"),
        ({"half_width": "-1"}, "half_width"),
    ],
)
def test_what_makes_no_sense_is_said_where_it_stands(admin: Visitor, changed: dict[str, str], words: str) -> None:
    answer = admin.get(f"new/check?{urlencode(WRITTEN | changed)}")
    assert answer.status_code == 422
    problem = unescape(answer.text.split('role="alert">')[1].split("</p>")[0])
    assert words.lower() in problem.lower()
    [name] = changed
    assert f'name="{name}"' in answer.text.split("<form")[1]


def test_a_file_and_a_request_make_the_same_experiment(tmp_path: Path) -> None:
    from equipoise import http_api
    from equipoise.cli.input_files import Description
    from equipoise.cli.stores import StoredExperiments
    from equipoise.service.handlers import create_arguments

    draft = Draft(WRITTEN)
    (tmp_path / "experiment.toml").write_text(draft.toml, encoding="utf-8")
    stores = [eq.open_store("memory:") for _ in range(3)]
    eq.Experiment.create(stores[0], draft.name, **draft.settings, seed=1)
    Description(tmp_path / "experiment.toml", {"seed": 1}).create_in(StoredExperiments(stores[1]))
    body = msgspec.convert(draft.body | {"seed": 1}, http_api.NewExperiment)
    eq.Experiment.create(stores[2], body.name, **create_arguments(body))
    made = [eq.Experiment.open(one, draft.name).describe() | {"created_at": None} for one in stores]
    assert made[0] == made[1] == made[2]
    text = draft.curl("http://x").split("--json '")[1][:-1].replace("'\\''", "'")
    assert json.loads(text) == json.loads(json.dumps(draft.body))


def test_guesses_show_what_the_dial_brings(admin: Visitor) -> None:
    written = WRITTEN | {"rewards": "yesno", "guesses": "30%\n40% to 60%\n35%", "good": "large", "half_width": ""}
    page = admin.page(f"new/dial?{urlencode(written)}")
    assert "gain per 100 people" in page
    assert page.count('<th scope="row">') == 6


def test_others_make_no_experiments(admin: Visitor, store: eq.Store) -> None:
    url = str(admin.web.base_url).removesuffix("/console/")
    keys = [create_key(store, role="reader")[1], create_key(store, role="admin", experiment="other")[1]]
    for key, status in zip(keys, (403, 404), strict=True):
        with Visitor(url, key) as visitor:
            assert visitor.get("new").status_code == status
            assert visitor.get(f"new/check?{urlencode(WRITTEN)}").status_code == status
