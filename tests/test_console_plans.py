"""Plans in the console: written in a form, answered at once, simulated, made into experiments, and compared later."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import httpx
import pytest
from console_visitor import SAME_ORIGIN, Visitor
from service_runner import serving_here

import equipoise as eq
from equipoise.console.page_table import PAGES
from equipoise.console.plan_draft import PlanDraft
from equipoise.console.plan_fields import fields_of, holds_all
from equipoise.console.plan_form import EXAMPLE
from equipoise.service import Settings
from equipoise.service.api_keys import create_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chromium_driver import Browser

MOST_SECONDS = 300
WRITTEN = EXAMPLE | {"days": "40", "ways": "0.9, 0.5", "half_width": "0.1"}
START = datetime(2027, 3, 1, tzinfo=UTC)


class Clock:
    now = START

    def __call__(self) -> datetime:
        return self.now


class Console(NamedTuple):
    """A service, its store, a key of each role, and one for a single experiment."""

    url: str
    store: eq.Store
    keys: dict[str, str]
    clock: Clock

    def api(self, path: str, method: str = "GET", **body: Any) -> Any:
        headers = {"authorization": f"Bearer {self.keys['reader']}"}
        found = httpx.request(method, self.url + path, headers=headers, json=body or None, timeout=60)
        assert found.status_code in (200, 202), found.text
        return found.json()


@pytest.fixture(scope="module")
def console() -> Iterator[Console]:
    clock = Clock()
    store = eq.open_store("memory:", clock=clock)
    keys = {role: create_key(store, role=role, name=f"Ada {role}")[1] for role in ("reader", "assigner", "admin")}
    keys["one"] = create_key(store, role="admin", experiment="flu")[1]
    with serving_here(store, Settings()) as here:
        yield Console(here.url, store, keys, clock)


@pytest.fixture(scope="module")
def simulated(console: Console) -> str:
    """A plan that is simulated: its address below the console."""
    with Visitor(console.url, console.keys["reader"]) as reader:
        answer = reader.send("plans/new", WRITTEN)
    assert answer.status_code == 303, answer.text
    to = answer.headers["location"].removeprefix("../")
    assert dict(parse_qsl(urlsplit(to).query)) == WRITTEN
    identity = urlsplit(to).path.removeprefix("plans/")
    end = time.monotonic() + MOST_SECONDS
    while (found := console.api(f"/plans/{identity}"))["state"] != "done":
        assert found["state"] in ("waiting", "working"), found
        assert time.monotonic() < end, found["state"]
        time.sleep(0.2)
    return to


def text_of(page: str) -> str:
    main = page.split('<main id="main"')[1].split("</main>")[0]
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", main)).split())


def test_the_form_answers_by_formula_and_everything_is_in_the_address(console: Console) -> None:
    with Visitor(console.url, console.keys["reader"]) as reader:
        page = reader.page(f"plans/new?{urlencode(WRITTEN)}")
    forecast = PlanDraft(WRITTEN).plan.formulas()
    said = text_of(page)
    for sentence in forecast.recommendation():
        assert sentence.text in said
    assert list(forecast.ways) == ["equal shares", "keep 90%", "keep 50%"]
    assert f"{forecast.ways['keep 90%'].people.median:,.0f}" in said
    for name, value in WRITTEN.items():
        if not name.startswith(("silence", "rewards")):
            assert f'name="{name}" value="{value}"' in page, name


def test_a_page_of_a_plan_says_what_the_api_says(console: Console, simulated: str) -> None:
    identity = urlsplit(simulated).path.removeprefix("plans/")
    found = console.api(f"/plans/{identity}")
    with Visitor(console.url, console.keys["reader"]) as reader:
        page = reader.page(simulated)
        listed = text_of(reader.page("plans"))
        chart = reader.get(f"plans/{identity}/price.json?width=300").json()
    said = text_of(page)
    for sentence in found["forecast"]["recommendation"]:
        if sentence["about"] != "source":
            assert sentence["text"] in said
    for name, way in found["forecast"]["ways"].items():
        assert name in said
        assert f"{way['people']['median']:,.0f}" in said
        assert f"{100 * way['best_share']['median']:.0f}%" in said
    for choice in found["forecast"]["stopping"]:
        assert choice["precision"] is None or f"±{choice['precision']:g}" in said
    assert page.count("data-chart=") == page.count("<h3 id=") >= 5
    assert "Make an experiment of this" not in page  # a reader makes none
    assert WRITTEN["title"] in listed
    assert found["forecast"]["recommendation"][0]["text"] in listed
    assert [found["title"]] == [one["title"] for one in console.api("/plans")["plans"] if one["id"] == identity]
    assert chart["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
    assert "title" not in chart


def test_who_may_see_plans(console: Console, simulated: str) -> None:
    paths = ("plans", "plans/new", urlsplit(simulated).path)
    for role, status in (("reader", 200), ("admin", 200), ("assigner", 403), ("one", 404)):
        with Visitor(console.url, console.keys[role]) as visitor:
            assert [visitor.get(path).status_code for path in paths] == 3 * [status], role


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"arm2": ""}, "arm 2 has no name"),
        ({"arm2": "plain"}, "is there twice"),
        ({"guess1": "many", "at_least1": "", "at_most1": ""}, "rates of arm plain"),
        ({"guess2": "130", "at_least2": "", "at_most2": ""}, "must be from 0 to 1"),
        ({"at_least1": "", "at_most1": "35"}, "a range has both ends"),
        ({"guess2": "", "at_least2": "", "at_most2": ""}, "how many of 100"),
        ({"per_day": "few"}, "the number of people a day must be a number"),
        ({"days": "0"}, "days"),
        ({"until": "tomorrow", "days": ""}, "until must be a date"),
        ({"delay": "soon"}, "delay"),
        ({"delay": "", "nine_of_ten": "2 days"}, "until half of the answers"),
        ({"half_width": "6"}, "must be less than 0.5"),
        ({"control": "other"}, "must be one of the arms"),
        ({"ways": "2"}, "information_kept"),
        ({"rewards": "range", "low": "0", "high": "1"}, "the spread of 'plain' is missing"),
        ({"rewards": "range", "low": "1", "high": "0", "spread1": "1", "spread2": "1"}, "must be below the highest"),
        ({"now": "[]"}, "plan again"),
        ({"now": "{" * 9}, "plan again"),
        ({"about": "nothing"}, "must be one of"),
        ({"window": ""}, "how long a reward is waited for"),
    ],
)
def test_what_makes_no_sense_is_said(console: Console, changed: dict[str, str], words: str) -> None:
    with Visitor(console.url, console.keys["reader"]) as reader:
        answer = reader.get(f"plans/new?{urlencode(WRITTEN | changed)}")
        sent = reader.send("plans/new", WRITTEN | changed)
    assert (answer.status_code, sent.status_code) == (200, 422)  # while one writes, nothing is wrong yet
    for one in (answer, sent):
        problem = unescape(one.text.split('<p class="problem" role="status">')[1].split("</p>")[0])
        assert words.lower() in problem.lower()


PLANS = (
    eq.Plan(arms={"plain": "30%", "prize": "40% to 60%"}, people=3000),
    eq.Plan(
        arms={"a": {"mean": 12, "std": 4}, "b": {"mean": "8 to 10", "std": 3.25}},
        people={"per_day": "80 to 112", "start": "2027-03-01", "until": "2027-06-30", "most": 5000},
        rewards={"range": [0, 20], "direction": "minimise", "delay": ("8h", "2 days"), "missing": "3% to 8%",
                 "rule": "default", "value": 7.5, "window": "10 days", "hold": True, "batches": 50},
        control="a",
        goals={"precision": 0.5, "margin": 0.1, "by": 0.9},
        ways={"information_kept": [0.8], "information_about": "best-arm", "control_share": 0.1, "floor": 0.02},
        title="Days until they came",
        outcome="days",
    ),
    eq.Plan(arms={"x y": "0.1%", "'z'": "33.3%"}, people={"per_day": 7.5, "days": 60}, goals={"margin": 0.0},
            ways={"information_kept": [1, 0.25], "information_about": "every-arm"}),
    eq.Plan(arms={"a": {"mean": 1, "std": 2}, "b": {"mean": -3, "std": 2}}, people=100),
)  # fmt: skip


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.title or plan.arms[0].name)
def test_the_fields_of_a_plan_say_the_same_plan(plan: eq.Plan) -> None:
    fields = fields_of(plan)
    assert holds_all(plan, fields)
    again = PlanDraft(fields).plan
    assert fields_of(again) == fields
    assert again.guesses == plan.guesses


def test_a_plan_that_says_more_than_the_form_is_told_apart() -> None:
    pilot = eq.Plan(arms={"a": {"rewards": [1.0, 2.5, 4.0]}, "b": {"mean": 2, "std": 1}}, people=100)
    ramp = eq.Plan(arms={"a": "1%", "b": "2%"}, people={"per_day": 9, "days": 20, "ramp": "7 days"})
    for plan in (pilot, ramp):
        assert not holds_all(plan, fields_of(plan))
        assert PlanDraft(fields_of(plan)).plan.arm_names == plan.arm_names


def test_a_guess_that_was_perhaps_meant_as_a_share_is_doubted(console: Console) -> None:
    with Visitor(console.url, console.keys["reader"]) as reader:
        guesses = {"guess1": "0.3", "at_least1": "", "at_most1": "", "guess2": ".5", "at_least2": "", "at_most2": ""}
        assert "0.3 means 0.3 of 100" in text_of(reader.page(f"plans/new?{urlencode(WRITTEN | guesses)}"))
        assert "of 100. Write" not in text_of(reader.page(f"plans/new?{urlencode(WRITTEN)}"))


def steps_from(simulated: str, way: str) -> str:
    return f"plan={urlsplit(simulated).path.removeprefix('plans/')}&way={quote(way)}"


def hidden_of(page: str) -> dict[str, str]:
    """Return all hidden fields of the forms on a page."""
    found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page.split('<main id="main"')[1])
    return {name: unescape(value) for name, value in found}


@pytest.fixture(scope="module")
def flu(console: Console, simulated: str) -> eq.Experiment:
    """An experiment that was made from the plan, two days ago."""
    with Visitor(console.url, console.keys["admin"]) as admin:
        first = admin.page(f"new?{steps_from(simulated, 'keep 90%')}")
        assert "plain\nprize</textarea>" in first
        written = hidden_of(first) | {"name": "flu", "arms": "plain\nprize", "control": "plain"}
        check = admin.page(f"new/check?{urlencode(written | {'outcome': WRITTEN['outcome']})}")
        assert "The dial is as planned: keep 90%." in text_of(check)
        assert "equipoise create flu --plan plan.toml --way 'keep 90%'" in text_of(check)
        assert admin.web.post("new/check", data=hidden_of(check), headers=SAME_ORIGIN).status_code == 303
    made = eq.Experiment.open(console.store, "flu")
    made.ask_many([f"person-{k}" for k in range(30)])
    console.clock.now += timedelta(days=2)
    return made


def test_an_experiment_made_from_a_plan_keeps_it(flu: eq.Experiment) -> None:
    plan = PlanDraft(WRITTEN).plan
    settings, configuration = plan.settings("keep 90%"), flu.configuration
    for name in ("policy", "control", "control_share", "reward_range", "missing", "failure_probability"):
        assert getattr(configuration, name) == settings[name], name
    assert list(configuration.stopping) == settings["stopping"]
    kept = configuration.metadata["plan"]
    assert (kept["way"], kept["digest"]) == ("keep 90%", plan.digest)
    assert configuration.description.outcome == plan.outcome
    assert next(flu.events()).who == "Ada admin"


def test_an_experiment_made_from_a_plan_is_compared_with_it(console: Console, flu: eq.Experiment) -> None:
    fidelity = flu.fidelity()
    with Visitor(console.url, console.keys["reader"]) as reader:
        overview = text_of(reader.page("e/flu"))
    with Visitor(console.url, console.keys["one"]) as visitor:
        assert "Plan again from here" not in text_of(visitor.page("e/flu"))  # a key for one experiment sees no plans
    for sentence in fidelity.sentences:
        assert sentence in overview
    people = next(one for one in fidelity.figures if one.figure == "people")
    assert (people.actual, people.inside) == (30, False)
    assert people.middle is not None
    assert f"people assigned {people.middle:,.0f} (" in overview
    assert "Plan again from here" in overview


def test_metadata_that_only_looks_like_a_plan_is_left_alone(console: Console) -> None:
    eq.Experiment.create(
        console.store, "mine", arms=["a", "b"], information_kept=0.7, seed=1, metadata={"plan": {"days": "my own"}}
    )
    with Visitor(console.url, console.keys["reader"]) as reader:
        assert "Plan against now" not in text_of(reader.page("e/mine"))


def test_what_is_changed_in_the_steps_is_changed_and_the_rest_is_as_planned(console: Console, simulated: str) -> None:
    plan = PlanDraft(WRITTEN).plan
    with Visitor(console.url, console.keys["admin"]) as admin:
        fields = hidden_of(admin.page(f"new?{steps_from(simulated, 'keep 50%')}"))
        fields |= {"name": "other", "arms": "plain\nprize\nnone", "control": "plain", "kept": "0.7", "guesses": ""}
        answer = admin.send("new/check", fields, drawn_on=f"new/check?{urlencode(fields)}")
        assert answer.status_code == 303, text_of(answer.text)
    made = eq.Experiment.open(console.store, "other")
    assert [arm["name"] for arm in made.describe()["arms"]] == ["plain", "prize", "none"]
    assert made.configuration.dial == {"information_kept": 0.7, "information_about": "every-arm"}
    assert made.configuration.missing == plan.rewards.rule
    assert made.configuration.metadata["plan"]["way"] == "keep 50%"


def test_a_way_that_is_not_simulated_and_a_plan_that_is_gone_make_no_experiment(
    console: Console, simulated: str
) -> None:
    with Visitor(console.url, console.keys["admin"]) as admin:
        gone = admin.get(f"new?plan={64 * '0'}&way=x")
        other = admin.get(f"new?{steps_from(simulated, 'keep 1%')}")
    assert gone.status_code == 404
    assert "not kept any more" in text_of(gone.text)
    assert other.status_code == 422
    assert "no simulated way" in text_of(other.text)


def test_a_plan_goes_on_from_what_an_experiment_measured(console: Console) -> None:
    experiment = eq.Experiment.create(
        console.store, "mail", arms=["plain", "prize"], information_kept=0.7, seed=1, most_units=900
    )
    for i, one in enumerate(experiment.ask_many([f"person-{i}" for i in range(300)])):
        experiment.tell(one.unit, float(i % 10 < (3 if one.arm == "plain" else 6)))
    with Visitor(console.url, console.keys["reader"]) as reader:
        page = reader.page("plans/new?from=mail")
        said = text_of(page)
        assert "at most 600" in said
        assert "as now" in said
        values = {name: unescape(value) for name, value in re.findall(r'name="(\w+)" value="([^"]*)"', page)}
        assert json.loads(values["now"])["label"] == "as now"
        status = experiment.status()
        assert float(values["guess1"]) == pytest.approx(100 * status.arms[0].mean, abs=1)  # type: ignore[operator]
        assert float(values["at_least1"]) < float(values["guess1"]) < float(values["at_most1"])
        assert "there is no experiment 'no-such'" in unescape(reader.page("plans/new?from=no-such")).lower()
        eq.Experiment.create(console.store, "empty", arms=["a", "b"], information_kept=0.7, seed=1)
        assert "needs rewards of every arm" in text_of(reader.get("plans/new?from=empty").text)


def test_a_plan_is_cancelled_and_forgotten_and_its_address_still_holds_it(console: Console) -> None:
    large = WRITTEN | {"per_day": "5000", "title": "Large"}
    with Visitor(console.url, console.keys["reader"]) as reader:
        to = reader.send("plans/new", large).headers["location"].removeprefix("../")
        path = urlsplit(to).path
        assert "Cancel</button>" in reader.page(to)
        for _ in range(2):  # the second time there is nothing to cancel
            assert reader.send(path, {"do": "cancel"}, drawn_on=to).headers["location"] == f"../{path}"
            assert "Cancelled" in text_of(reader.page(to))
        assert reader.send(path, {"do": "forget"}, drawn_on=to).headers["location"] == "../plans"
        assert reader.get(path).status_code == 404
        page = reader.page(to)
        assert 'value="5000"' in page
        assert "Simulate it" in page
        assert "Large" not in text_of(reader.page("plans"))


def test_live_says_when_a_plan_has_changed(console: Console, simulated: str) -> None:
    path = urlsplit(simulated).path
    with Visitor(console.url, console.keys["reader"]) as reader:
        event = reader.get(f"{path}/live?after=0").json()["event"]
        assert reader.get(f"{path}/live?after={event}").status_code == 204
        assert f'data-event="{event}" data-live-url="../{path}/live"' in reader.page(simulated)


def test_the_answer_follows_what_is_typed(console: Console, browser: Browser) -> None:
    with browser.page() as page:
        page.open(f"{console.url}/console/plans/new?{urlencode(WRITTEN)}")
        page.type(console.keys["reader"])
        with page.loading():
            page.press("Enter")
        if "plans/new" not in page.address or "arm1" not in page.address:
            page.open(f"{console.url}/console/plans/new?{urlencode(WRITTEN)}")
        page.wait_for("document.getElementById('plan').dataset.ready")
        before = page.text("#answer")
        page.evaluate("document.querySelector('[name=half_width]').select()")
        page.type("0.065")
        page.wait_for("document.querySelector('#answer').innerText.includes('±0.065')")
        assert page.text("#answer") != before
        page.wait_for("location.search.includes('half_width=0.065')")
        assert page.evaluate("new URLSearchParams(location.search).get('arm1')") == "plain"
        page.evaluate("document.querySelector('[name=half_width]').select()")
        page.type("x")
        page.wait_for("document.querySelector('#answer .problem') !== null")
        assert page.complaints == []


@pytest.mark.endurance
def test_a_page_follows_the_simulation_while_it_is_open(console: Console, browser: Browser) -> None:
    written = WRITTEN | {"title": "Followed", "per_day": "200"}
    with browser.page() as page:
        page.open(f"{console.url}/console/plans")
        page.type(console.keys["admin"])
        with page.loading():
            page.press("Enter")
        page.open(f"{console.url}/console/plans/new?{urlencode(written)}")
        page.tab_to("Simulate it")
        with page.loading():
            page.press("Enter")
        page.evaluate("window.isTheSamePage = true")
        page.wait_for("document.querySelectorAll('#charts [data-chart]').length > 0")
        page.wait_for_charts()
        page.wait_for("document.querySelector('#make option') !== null")
        page.wait_for("document.querySelector('#stopping table') !== null")
        page.wait_for("!document.querySelector('#progress').innerText.includes('Being simulated')")
        assert page.evaluate("window.isTheSamePage")
        assert page.overflow <= 0
        assert page.violations() == []
        assert page.complaints == []


def test_a_plan_is_written_and_simulated_without_scripts_by_keyboard_alone(console: Console, browser: Browser) -> None:
    with browser.page(scripts=False) as page:
        page.open(f"{console.url}/console/plans")
        page.type(console.keys["reader"])
        with page.loading():
            page.press("Enter")
        page.tab_to("Plans")
        with page.loading():
            page.press("Enter")
        page.tab_to("New plan")
        with page.loading():
            page.press("Enter")
        for name, text in (
            ("What is it about? (may be left empty)", "By keyboard"),
            ("Arm 1", "plain"),
            ("Guess of arm 1", "30"),
            ("Arm 2", "prize"),
            ("Guess of arm 2", "50"),
            ("People a day", "96"),
            ("For how many days?", "20"),
            ("How exactly do you want to know each arm?", "0.1"),
        ):
            page.tab_to(name)
            page.type(text)
        with page.loading():
            page.press("Enter")
        assert "guess2=50" in page.address
        assert "±0.1" in page.text("#answer h1 ~ p")
        page.tab_to("Simulate it")
        with page.loading():
            page.press("Enter")
        assert "By keyboard" in page.text("main")
        assert "arm2=prize" in page.address
        end = time.monotonic() + MOST_SECONDS
        while "simulated experiments of each way" not in page.text("#progress"):
            assert time.monotonic() < end
            page.open(page.address)
        assert page.complaints == []


@pytest.mark.parametrize("is_dark", [False, True])
def test_pages_of_plans_are_accessible_fit_and_draw_their_charts(
    console: Console, simulated: str, flu: eq.Experiment, browser: Browser, is_dark: bool
) -> None:
    with browser.page(dark=is_dark) as page:
        page.open(f"{console.url}/console/plans")
        page.type(console.keys["admin"])
        with page.loading():
            page.press("Enter")
        for path in ("plans", "plans/new", f"plans/new?{urlencode(WRITTEN)}", simulated, "service", "e/flu"):
            for width in (320, 768, 1280):
                page.size(width)
                page.open(f"{console.url}/console/{path}")
                page.wait_for_charts()
                where = f"{path}, {width} px"
                assert page.overflow <= 0, where
                assert page.violations() == [], where
        assert page.complaints == []
        assert {one for one in page.requests if not one.startswith(f"{console.url}/console/")} == set()


def test_every_page_of_plans_is_in_the_table() -> None:
    assert {"plans", "plans/new", "plans/{id}"} <= {page.path for page in PAGES}
