"""The comparison on the console: the numbers of the API, what may be said, and choices in the address."""

from __future__ import annotations

import dataclasses
import html
import re
from typing import TYPE_CHECKING

import pytest
from console_visitor import Visitor
from live_courses import FOUR, played, rates_of
from service_runner import serving_here

import equipoise as eq
from equipoise.analysis import Evidence, compare
from equipoise.analysis.decisions import decision_of
from equipoise.console.comparison import Choice, view_of
from equipoise.service import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

HOSTILE = "</td><script>alert(1)</script>&'\""


@pytest.fixture(scope="module")
def messages() -> eq.Experiment:
    return played(FOUR)[0]


@pytest.fixture(scope="module")
def visitor(messages: eq.Experiment) -> Iterator[Visitor]:
    store = messages.store
    eq.Experiment.create(store, "empty", arms=["a", "b"], reward_weight=0.5, seed=1)
    eq.Experiment.create(store, "alone", arms=["a"], policy=eq.Uniform(), seed=1)
    hostile = eq.Experiment.create(store, HOSTILE, arms=[HOSTILE, "b"], policy=eq.Uniform(), seed=1)
    hostile.tell_many([(one.unit, float(k % 2)) for k, one in enumerate(hostile.ask_many(map(str, range(80))))])
    with serving_here(store, Settings(open=True)) as here, Visitor(here.url) as opened:
        yield opened


def cells(page: str, id_: str) -> list[list[str]]:
    """Return the texts of a table's rows."""
    table = page.split(f'id="{id_}"')[1].split("</table>")[0]
    rows = re.findall(r"<tr>(.*?)</tr>", table, flags=re.DOTALL)
    found = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, flags=re.DOTALL) for row in rows]
    return [[html.unescape(re.sub(r"<[^>]+>", "", cell)).strip() for cell in row] for row in found[1:]]


def ends(low: float, high: float) -> str:
    return f"{low:.2f} to {high:.2f}".replace("-", "\N{MINUS SIGN}")


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("", {}),
        ("?control=*", {"all_pairs": True}),
        ("?control=prize&confidence=90%25", {"control": "prize", "confidence": 0.9}),
        ("?control=*&guaranteed=1", {"all_pairs": True, "guaranteed": True}),
    ],
)
def test_the_page_has_the_numbers_of_the_api(
    visitor: Visitor, messages: eq.Experiment, query: str, asked: dict[str, object]
) -> None:
    page, found = visitor.page(f"e/messages/compare{query}"), messages.compare(**asked)
    shown = {row[0].removesuffix(" control"): row for row in cells(page, "arms")}
    for arm in found.arms:
        _, rewards, mean, interval, standing, _, lost = shown[arm.arm]
        assert (rewards, mean, interval) == (f"{arm.rewarded:,}", f"{arm.mean:.2f}", ends(arm.low, arm.high))
        assert (standing == "ruled out") is not arm.may_be_best
        assert lost == f"{arm.most_lost:.2f}"
    pairs = {(row[0], row[1]): row for row in cells(page, "differences-table")}
    assert len(pairs) == len(found.differences)
    for pair in found.differences:
        row = pairs.get((pair.arm, pair.other))
        if row is None:
            row = pairs[pair.other, pair.arm]
            pair = dataclasses.replace(pair, difference=-pair.difference, low=-pair.high, high=-pair.low)
        assert row[3] == ends(pair.low + 0.0, pair.high + 0.0).replace("\N{MINUS SIGN}0.00", "0.00")
        assert row[6] == pair.interval
    decision = decision_of(found)
    text = html.unescape(page)
    for sentence in (*decision.may_be_said, *decision.cost, *decision.not_yet):
        assert sentence in text
    drawn = visitor.get(f"e/messages/compare/differences.json{query}").json()
    assert {row["arm"] for row in drawn["data"]["values"]} == {" \N{MINUS SIGN} ".join(pair) for pair in pairs}
    assert "title" not in drawn


def test_the_address_keeps_the_choice(visitor: Visitor) -> None:
    page = visitor.page("e/messages/compare?control=prize&confidence=0.9&guaranteed=1")
    assert '<option value="prize" selected>' in page
    assert 'value="0.9"' in page
    assert 'value="1" checked' in page
    assert (
        'data-chart="../../e/messages/compare/differences.json?control=prize&amp;confidence=0.9&amp;guaranteed=1"'
        in page
    )
    assert "90% for all of them together" in page
    data = visitor.get("e/messages/compare?control=prize&format=json").json()
    assert data["comparison"]["control"] == "prize"


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("control=nobody", "must be one of the arms"),
        ("confidence=2", "must be in (0, 1)"),
        ("confidence=much", "confidence"),
    ],
)
def test_what_cannot_be_compared_is_said_on_the_page(visitor: Visitor, query: str, said: str) -> None:
    answer = visitor.get(f"e/messages/compare?{query}")
    assert answer.status_code == 422
    assert said in html.unescape(answer.text)
    assert 'class="problem"' in answer.text
    assert "Compare otherwise" in answer.text


def test_charts_are_as_wide_as_the_page_asks_for(visitor: Visitor) -> None:
    wide, narrow, least = (
        visitor.get(f"e/messages/compare/differences.json?width={width}").json()["width"] for width in (900, 400, 1)
    )
    assert wide > narrow > least > 0
    assert visitor.get("e/messages/compare/differences.json?width=x").status_code == 422


def test_without_data_the_page_says_so(visitor: Visitor) -> None:
    page = visitor.page("e/empty/compare")
    assert "There are no rewards yet." in page
    assert "data-chart" not in page
    assert visitor.get("e/empty/compare/differences.json").status_code == 422
    assert "there is nothing to compare it with" in visitor.page("e/alone/compare")


def test_no_name_becomes_html(visitor: Visitor) -> None:
    from equipoise.console.addresses import address

    page = visitor.page(address("e/{name}/compare", name=HOSTILE))
    assert "<script>alert" not in page
    assert html.escape(HOSTILE, quote=False).split("'")[0] in page


def test_of_many_arms_the_best_are_listed_and_the_control_is_typed() -> None:
    n = 150
    evidence = Evidence.from_summary([400] * n, [0.2 + 0.004 * k for k in range(n)], [0.4] * n, reward_range=(0, 1))
    found = compare(evidence, [f"arm {k}" for k in range(n)])
    view = view_of(found, Choice("", "", guaranteed=False), source="x", names=())
    assert (len(view.arms), view.n_more_arms, view.arms[0].arm) == (60, 90, "arm 149")
    assert len(view.differences) <= 60
    assert any("more pairs are not shown" in note for note in view.notes)


@pytest.mark.parametrize("direction", ["maximise", "minimise"])
def test_a_decision_says_what_is_sure_what_it_costs_and_what_is_open(direction: str) -> None:
    experiment = played(rates_of(4), direction=direction)[0]
    found = experiment.compare(all_pairs=True)
    decision = decision_of(found)
    arms = {arm.arm: arm for arm in found.arms}
    best = max if direction == "maximise" else min
    assert decision.leader == best(arms, key=lambda arm: arms[arm].mean or 0.0)
    assert set(decision.may_be_best) | set(decision.ruled_out) == set(arms)
    assert decision.most_lost == arms[decision.leader].most_lost
    if found.best is None:
        assert decision.cost[0].startswith(
            f"Choosing {decision.leader!r} costs at most {decision.most_lost:.2f} a person"
        )
        word = "larger" if direction == "maximise" else "smaller"
        assert f"no other arm's mean is {word}" in decision.cost[0]
    for sentence in decision.not_yet:
        assert any(repr(arm) in sentence for arm in decision.may_be_best if arm != decision.leader)
