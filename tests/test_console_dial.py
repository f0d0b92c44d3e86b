"""The dial on the console: the prices of the API in words, a slider that asks nobody, and a form that turns it."""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING

import pytest
from console_visitor import Visitor
from live_courses import FOUR, played
from service_runner import serving_here

import equipoise as eq
from equipoise.console.dial_page import view_of
from equipoise.console.dial_words import arm_rows, words_of
from equipoise.experiment.gain_words import gain_words, is_yes_no
from equipoise.service import Settings
from equipoise.service.api_keys import create_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chromium_driver import Browser, Page

HOSTILE = "</script><script>alert(1)</script>&'\""


def filled(name="messages", store="memory:", *, n=300, draw=None, **settings):
    """Return an experiment with rewards of three arms."""
    settings = {"reward_weight": 0.6} | settings
    if "information_kept" in settings:
        del settings["reward_weight"]
    made = eq.Experiment.create(store, name, arms=["plain", "prize", "personal"], seed=3, **settings)
    draw = draw or (lambda arm, k: float((k * 7919) % 100 < {"plain": 30, "prize": 55, "personal": 40}[arm]))
    for begin in range(0, n, 20):
        found = made.ask_many([f"p{begin + i}" for i in range(20)])
        made.tell_many([(one.unit, draw(one.arm, begin + i)) for i, one in enumerate(found)])
    return made


def words(experiment, description=None):
    return words_of(experiment.prices(), experiment.status(), description or {})


# Words, without HTTP


def test_every_position_says_what_prices_say():
    experiment = filled()
    prices, said = experiment.prices(), words(experiment)
    assert len(said) == len(prices.positions)
    for one, shown in zip(prices.positions, said, strict=True):
        best = prices.arms.index(prices.best)
        assert shown.best == f"{one.next_100[best]} of 100"
        assert sum(shown.people) == 100
        assert (
            shown.dial == {"reward_weight": f"{one.dial['reward_weight']:.12g}"} and "from now on" in shown.button
        ) or one is prices.positions[prices.present]
        if abs(one.gain.per_100) >= 0.05:
            assert shown.gain == f"{abs(one.gain.per_100):.1f} {'more' if one.gain.per_100 > 0 else 'fewer'}"
    now = said[prices.present]
    assert (now.sentence, now.button, now.gain_range) == (
        "The dial is here now.",
        "No change",
        "this is where it is now",
    )
    right, left = said[-1], said[0]
    assert re.fullmatch(
        r"[\d.]+ more of 100 people succeed; in return it takes [\d.]+ times as many people to know every arm as well.",
        right.sentence,
    )
    assert re.fullmatch(
        r"[\d.]+ fewer of 100 people succeed; in return \d+ % fewer people are needed to know every arm as well\.",
        left.sentence,
    )


def test_words_follow_what_is_measured():
    come = words(filled(), {"outcome": "come"})[-1]
    assert come.gain_of == "of 100 people come, compared with now"
    fewer = filled("drop-outs", direction="minimise")
    assert fewer.prices().best == "plain"
    assert words(fewer)[-1].gain.endswith(" fewer") and "have a 1" in words(fewer)[-1].gain_of
    minutes = filled("minutes", direction="minimise", draw=lambda arm, k: 10.0 + len(arm) + k % 7)
    said = words(minutes, {"reward_unit": "minutes"})[-1]
    assert said.gain.endswith(" less") and said.gain_of == "minutes per person, compared with now"
    assert re.match(r"[\d.]+ minutes less per person; in return", said.sentence)
    points = words(filled("points", draw=lambda arm, k: 50.0 + 3 * len(arm) + k % 11))[-1]
    assert points.gain.endswith(" more") and points.gain_of == "per person, compared with now"
    assert is_yes_no(fewer.status()) and not is_yes_no(minutes.status())
    assert gain_words(minutes.status(), 240.0).number(240.0) == "2.4"


def test_the_cost_is_in_people_until_the_declared_precision():
    experiment = filled(stopping=[eq.Precision(half_width=0.05)])
    prices, last = experiment.prices(people_per_day=50), words(experiment)[-1]
    goal = prices.positions[-1].precisions[0]
    assert last.cost == f"{goal.people:,} people" and last.cost_of == "from now until every arm is known to ±0.05"
    in_days = words_of(prices, experiment.status(), {})[-1]
    assert in_days.cost == f"{round(goal.days):,} days" and in_days.cost_now.startswith("now ")
    reached = words(filled("wide", stopping=[eq.Precision(half_width=5.0)], reward_range=(0, 1)))[0]
    assert reached.cost == "reached"
    assert words(filled("no goal"))[-1].cost.endswith(" times")


def test_many_arms_are_shown_together():
    names = [f"arm {k}" for k in range(30)]
    made = eq.Experiment.create("memory:", "many", arms=names, reward_weight=0.6, seed=3)
    for begin in range(0, 600, 50):
        found = made.ask_many([f"p{begin + i}" for i in range(50)])
        made.tell_many([(one.unit, float(len(one.arm) + (begin + i) % 5)) for i, one in enumerate(found)])
    prices = made.prices()
    rows = arm_rows(prices, len(prices.positions) - 1)
    assert len(rows) == 13 and rows[-1].arm == "18 others"
    assert sum(row.people for row in rows) == sum(row.now for row in rows) == 100
    assert any(row.is_best for row in rows)


def test_before_there_are_enough_rewards_it_says_what_is_missing():
    experiment = filled(n=0)
    view = view_of(experiment.prices(), experiment.status(), {}, dial=experiment.configuration.dial)
    assert view.here is None and view.needs == "needs 4 rewards of each arm; 'plain' has 0"


# Pages


@pytest.fixture(scope="module")
def store() -> Iterator[eq.Store]:
    with eq.open_store("memory:") as opened:
        filled(store=opened)
        filled("young", opened, n=0)
        filled("kept", opened, information_kept=0.8)
        filled("pages", opened, stopping=[eq.Precision(half_width=0.06)], reward_range=(0, 1))
        eq.Experiment.create(opened, "uniform", arms=["a", "b"], policy=eq.Uniform(), seed=1)
        odd = eq.Experiment.create(opened, HOSTILE, arms=[HOSTILE, "b"], reward_weight=0.5, seed=1)
        odd.tell_many([(one.unit, float(k % 2)) for k, one in enumerate(odd.ask_many(map(str, range(80))))])
        yield opened


@pytest.fixture(scope="module")
def served(store: eq.Store) -> Iterator[tuple[str, dict[str, str]]]:
    keys = {role: create_key(store, role=role, name=role.title())[1] for role in ("admin", "reader", "assigner")}
    with serving_here(store, Settings()) as here:
        yield here.url, keys


@pytest.fixture
def admin(served: tuple[str, dict[str, str]]) -> Iterator[Visitor]:
    with Visitor(served[0], served[1]["admin"]) as visitor:
        yield visitor


def text_of(page: str, id_: str) -> str:
    return html.unescape(re.search(rf'id="{id_}"[^>]*>([^<]*)<', page)[1])


def test_without_scripts_a_position_is_chosen_in_a_list_looked_at_and_used(admin: Visitor, store: eq.Store) -> None:
    experiment = eq.Experiment.open(store, "messages")
    prices, said = experiment.prices(), words(experiment)
    page = admin.page("e/messages/dial")
    assert text_of(page, "sentence") == "The dial is here now."
    listed = re.findall(r'<option value="([^"]*)"', page)
    assert listed == [one.number for one in said]
    place = {preset.name: preset.position for preset in prices.presets}["balanced"]
    chosen = admin.page(f"e/messages/dial?at={listed[place]}")
    for name in ("gain", "gain_of", "gain_range", "best", "best_now", "cost", "cost_of", "sentence", "button"):
        assert text_of(chosen, name) == getattr(said[place], name), name
    number = said[place].dial["reward_weight"]
    assert f'name="reward_weight" value="{number}"' in chosen
    sent = admin.send(
        "e/messages/dial",
        {"reward_weight": number, "reason": "more of the best"},
        drawn_on=f"e/messages/dial?at={number}",
    )
    assert sent.status_code == 303 and sent.headers["location"].endswith("e/messages?done=dial")
    assert experiment.configuration.reward_weight == float(number)
    event = list(experiment.events())[-1]
    assert (event.kind, event.who, event.details["reason"]) == ("weight_changed", "Admin", "more of the best")
    done = admin.page("e/messages?done=dial")
    assert "From person" not in admin.page("e/messages")
    assert f"From person 301 on: reward weight {float(number):g} (was reward weight 0.6)." in html.unescape(done)
    undone = admin.send("e/messages/dial", {"reward_weight": "0.6", "reason": "undone"})
    assert undone.status_code == 303 and experiment.configuration.reward_weight == 0.6


def test_the_data_for_the_script_are_the_words_of_the_page(admin: Visitor, store: eq.Store) -> None:
    experiment = eq.Experiment.open(store, "messages")
    data = json.loads(admin.get("e/messages/dial/positions.json").text)
    assert data["present"] == experiment.prices().present
    assert [one["sentence"] for one in data["positions"]] == [one.sentence for one in words(experiment)]
    chart = json.loads(admin.get("e/messages/dial/prices.json?width=600").text)
    assert any(layer.get("data", {}).get("name") == "here" for layer in chart["layer"])
    rows = chart["data"]["values"]
    assert len(admin.get("e/messages/dial/positions.json").content) < 60_000
    assert rows[0]["gain"] == pytest.approx(experiment.prices().positions[0].gain.per_100)


def test_the_share_of_information_is_turned_too(admin: Visitor, store: eq.Store) -> None:
    experiment = eq.Experiment.open(store, "kept")
    page = admin.page("e/kept/dial?at=0.5")
    fields = dict(re.findall(r'<input type="hidden" name="(information_\w+)" value="([^"]*)">', page))
    assert fields["information_about"] == "average" and abs(float(fields["information_kept"]) - 0.5) < 0.05
    assert admin.send("e/kept/dial", fields, drawn_on="e/kept/dial").status_code == 303
    assert experiment.configuration.dial["information_kept"] == float(fields["information_kept"])
    done = html.unescape(admin.page("e/kept?done=dial"))
    assert "(was 80% of the information kept about the arms on average)" in done


def test_a_page_that_is_stale_changes_nothing(admin: Visitor, store: eq.Store) -> None:
    from console_visitor import SAME_ORIGIN, hidden_fields

    drawn = hidden_fields(admin.page("e/pages/dial"))
    eq.Experiment.open(store, "pages").change_weight(0.7)
    sent = admin.web.post("e/pages/dial", data=drawn | {"reward_weight": "0.9"}, headers=SAME_ORIGIN)
    assert sent.status_code == 409
    assert eq.Experiment.open(store, "pages").configuration.reward_weight == 0.7
    eq.Experiment.open(store, "pages").change_weight(0.6)


@pytest.mark.parametrize("value", ["2", "nan", "x", ""])
def test_what_cannot_be_set_is_said_on_the_page(admin: Visitor, value: str) -> None:
    sent = admin.send("e/young/dial", {"reward_weight": value, "reason": "why <not>"})
    assert sent.status_code == 422 and 'role="alert"' in sent.text and "why &lt;not&gt;" in sent.text


def test_other_addresses_are_refused_in_words(admin: Visitor) -> None:
    assert admin.get("e/messages/dial?at=x").status_code == 422
    assert admin.get("e/messages/dial?at=99").status_code == 200  # the nearest
    assert "has no dial" in admin.page("e/uniform/dial") and "Uniform" in admin.page("e/uniform/dial")
    young = html.unescape(admin.page("e/young/dial"))
    assert "it needs 4 rewards of each arm; 'plain' has 0." in young and 'type="number"' in young


def test_a_reader_sees_the_dial_without_the_button_and_an_assigner_does_not(served, store: eq.Store) -> None:
    url, keys = served
    with Visitor(url, keys["reader"]) as reader:
        page = reader.page("e/messages/dial")
        assert 'id="button"' not in page and 'name="reward_weight"' not in page and 'id="slider"' in page
        assert reader.send("e/messages/dial", {"reward_weight": "0.9"}).status_code == 403
    with Visitor(url, keys["assigner"]) as assigner:
        assert assigner.get("e/messages/dial").status_code == 403
        assert assigner.get("e/messages/dial/positions.json").status_code == 403
    assert eq.Experiment.open(store, "messages").configuration.reward_weight == 0.6


def test_names_cannot_break_the_page(admin: Visitor) -> None:
    from urllib.parse import quote

    place = f"e/{quote(HOSTILE, safe='')}/dial"
    page = admin.page(place)
    assert "<script>alert" not in page and html.escape(HOSTILE, quote=False)[:20] in page


# In the browser


@pytest.fixture(scope="module")
def window(browser: Browser, served) -> Iterator[tuple[Page, str]]:
    url, keys = served
    with browser.page() as page:
        page.open(f"{url}/console/")
        page.type(keys["admin"])
        with page.loading():
            page.press("Enter")
        yield page, f"{url}/console/"


def opened(window: tuple[Page, str], path: str) -> Page:
    page, console = window
    page.complaints.clear()
    page.requests.clear()
    page.open(console + path)
    if page.evaluate("document.getElementById('dial') !== null"):
        page.wait_for("document.getElementById('dial').dataset.ready === 'yes'")
    page.wait_for_charts()
    return page


def test_the_dial_is_moved_and_used_by_keyboard_alone(window, store: eq.Store) -> None:
    experiment = eq.Experiment.open(store, "pages")
    page = opened(window, "e/pages/dial")
    prices, said = experiment.prices(), words(experiment)
    page.tab_to("The dial, from learning about every arm to giving people what works")
    page.requests.clear()
    page.press("End")
    assert page.text("#sentence") == said[-1].sentence
    page.press("Home")
    assert page.text("#gain") == said[0].gain
    page.press(*["ArrowRight"] * (prices.present + 5))
    here = said[prices.present + 5]
    assert (page.text("#gain"), page.text("#cost"), page.text("#button")) == (here.gain, here.cost, here.button)
    assert page.evaluate("document.getElementById('slider').ariaValueText") == here.spoken
    shown = page.evaluate("[...document.querySelectorAll('#people .many')].map(one => Number(one.textContent))")
    assert tuple(shown) == here.people
    assert page.requests == [], "moving the dial asks nobody"
    page.tab_to("Why? (goes into the log)")
    page.type("people first")
    page.press("Tab")
    with page.loading():
        page.press("Enter")
    assert experiment.configuration.reward_weight == float(here.number)
    assert "From person 301 on" in page.text("main")
    page.tab_to("Undo")
    with page.loading():
        page.press("Enter")
    assert experiment.configuration.reward_weight == 0.6
    assert [one.details.get("reason") for one in experiment.events() if one.kind == "weight_changed"][-2:] == [
        "people first",
        "undone",
    ]
    assert page.complaints == []


def test_a_named_position_is_one_click(window, store: eq.Store) -> None:
    page = opened(window, "e/messages/dial")
    experiment = eq.Experiment.open(store, "messages")
    places = {preset.name: preset.position for preset in experiment.prices().presets}
    page.evaluate("[...document.querySelectorAll('.presets a')].find(one => one.innerText === 'mostly reward').click()")
    assert page.text("#sentence") == words(experiment)[places["mostly reward"]].sentence
    assert page.evaluate("document.getElementById('slider').value") == str(places["mostly reward"])


def test_a_move_takes_less_than_a_frame(window) -> None:
    page = opened(window, "e/messages/dial")
    page.wait_for("document.querySelector('#prices svg') !== null")
    times = page.evaluate(
        """(async () => {
          const slider = document.getElementById("slider"), times = [];
          for (let k = 0; k <= 120; k++) {
            slider.value = k % 41;
            const begun = performance.now();
            slider.dispatchEvent(new Event("input"));
            times.push(performance.now() - begun);
            await new Promise(done => setTimeout(done, 0));
          }
          return times.sort((a, b) => a - b);
        })()"""
    )
    # The machine may be busy: half of the moves must fit with ease, whatever else runs.
    assert times[60] < 16


@pytest.mark.parametrize(
    ("path", "widths"),
    [
        ("e/messages/dial", (320, 768, 1280)),
        ("e/young/dial", (320,)),
        ("e/pages?done=dial", (320,)),
        ("e/uniform/dial", (320,)),
    ],
)
def test_the_page_is_accessible_and_fits_in_both_themes(window, path: str, widths: tuple[int, ...]) -> None:
    page = window[0]
    try:
        for is_dark in (False, True):
            page.theme(dark=is_dark)
            for width in widths:
                page.size(width)
                opened(window, path)
                where = f"{path}, {width} px, {'dark' if is_dark else 'light'}"
                assert page.overflow <= 0, where
                assert page.violations() == [], where
                assert page.complaints == [], where
                assert {one for one in page.requests if not one.startswith(window[1])} == set()
    finally:
        page.theme(dark=False)
        page.size(1280)


def test_it_stays_where_it_is_looked_at_when_rewards_come(window, store: eq.Store) -> None:
    page = opened(window, "e/messages/dial")
    page.evaluate("document.getElementById('slider').focus()")
    page.press("End")
    before = page.text("#best")
    experiment = eq.Experiment.open(store, "messages")
    found = experiment.ask_many([f"late-{k}" for k in range(10)])
    experiment.tell_many([(one.unit, 1.0) for one in found])
    page.evaluate("document.dispatchEvent(new CustomEvent('equipoise:event', { detail: 1 }))")
    last = words(experiment)[-1]
    page.wait_for(f"document.getElementById('gain').textContent === {json.dumps(last.gain)}")
    assert page.evaluate("document.getElementById('slider').value === document.getElementById('slider').max")
    assert before


def test_the_words_work_for_a_course_of_four_messages() -> None:
    experiment = played(FOUR)[0]
    assert len(words(experiment)) == len(experiment.prices().positions)
