"""The page of a forecast: what it says, that no name becomes HTML, and what a browser makes of it without a network."""

from __future__ import annotations

import dataclasses
import html
import re
from pathlib import Path
from types import MappingProxyType

import pytest
from browser import open_page
from forecast_samples import FIVE_ARMS, FIVE_MEANS, five_arms, forecast_with

from equipoise import forecast_contents, forecast_page
from equipoise.charts.pages import vega_script
from equipoise.errors import EquipoiseError, InvalidInput
from equipoise.planner import Plan
from equipoise.planner.forecast import Forecast

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "a, b & 'c'",
    'datum.x \\" {{y}}',
    "${z}",
)
NO_SCRIPT = "window.vegaEmbed = null;"


def plan_of(arms: tuple[str, ...]) -> Plan:
    rates = dict(zip(arms, FIVE_MEANS, strict=True))
    rates |= {arms[3]: "50% (40% to 60%)"}
    people = {"per_day": 96, "start": "2027-03-01", "until": "2027-06-30"}
    goals = {"precision": 0.06}
    return Plan(
        arms=rates, people=people, goals=goals, control=arms[0], ways={"weights": [0.5, 0.9]}, title="Reminders"
    )


@pytest.fixture(scope="module")
def found() -> Forecast:
    return dataclasses.replace(five_arms(), plan=plan_of(FIVE_ARMS))


@pytest.fixture(scope="module")
def page(found: Forecast) -> str:
    return forecast_page.forecast_page(found, NO_SCRIPT)


def words(page: str) -> str:
    """Return the text of a page, without its styles and scripts."""
    body = re.sub(r"<(style|script)[^>]*>.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def test_it_says_what_the_forecast_recommends_and_where_that_comes_from(found: Forecast, page: str) -> None:
    said = words(page)
    for sentence in found.recommendation():
        if sentence.about != "source":
            assert sentence.text in said
    assert "From 80 simulated experiments of each way. Ranges hold 8 in 10 of them." in said
    assert "In 40 every guess is right: ranges by luck alone are narrower." in said
    assert "How to assign people to 5 arms, to know every arm to ±0.06 by 30 June?" in said


def test_the_price_list_has_the_figures_of_the_table(found: Forecast) -> None:
    prices = forecast_contents.price_list(found)
    assert [row[0].text for row in prices.rows] == list(found.ways)
    for row, cells in zip(found.table(), prices.rows, strict=True):
        shown = dict(zip(prices.columns, cells, strict=True))
        days = shown["days until the goal"]
        if row["days"] is None:
            assert days.text == "not reached"
        else:
            assert days.text == f"{row['days']:.0f}"
            assert days.notes[0].startswith(f"{row['days_low']:.0f} ")
        assert shown["with the best arm"].text == f"{100 * row['best_share']:.0f}%"
        assert len(days.notes) <= 2
    assert "in brackets: by luck alone" in prices.caption


def test_tables_name_their_rows_and_columns(page: str) -> None:
    assert page.count("<table") == page.count("<caption>") == page.count("</table>")
    assert page.count("<table") == 8  # prices, rules, and the data of six charts
    assert page.count('<th scope="row"') == page.count("<tr") - page.count("<table")
    assert '<th scope="col"' in page
    assert page.count('class="badge"') == 2
    assert re.findall(r"<h2[^>]*>([^<]+)", page) == [
        "Recommendation",
        "What each way brings",
        "What each way gains, and how long it takes",
        "How likely each precision is by 30 June",
        "Stopping rules to declare",
        "How precise each way is, and when",
        "Who gets what: weight 0.5",
        "What to be surer of: weight 0.5",
        "One simulated experiment to watch: weight 0.5",
        "What is assumed",
    ]


def test_it_says_what_is_assumed_in_words_and_as_a_file(found: Forecast, page: str) -> None:
    said = words(page)
    assert "Arm 'prize' rate 50% (8 in 10 sure: 40% to 60%)" in said
    assert "96 a day; from 1 March 2027; until 30 June 2027" in said
    assert found.plan is not None
    assert html.escape(found.plan.to_toml(), quote=True).replace("&#x27;", "&#39;").replace("&quot;", "&#34;") in page
    assert found.plan.digest[:16] in page


def test_stopping_rules_are_those_of_the_forecast(found: Forecast) -> None:
    rules = forecast_contents.stopping_rules(found)
    assert rules is not None
    for choice, row in zip(found.stopping, rules.rows, strict=True):
        shown = dict(zip(rules.columns, row, strict=True))
        assert shown["way"].text == choice.way
        assert shown["finest precision by 30 June"].text == f"±{choice.precision:g}"
        budget = "more than come" if choice.budget is None else f"{choice.budget:,.0f}"
        assert shown["people that suffice"].text == budget


def test_it_opens_in_a_browser_without_a_network(found: Forecast, tmp_path: Path) -> None:
    path = forecast_page.write_forecast_page(found, tmp_path / "new" / "forecast.html")
    opened = open_page(path, tmp_path)
    assert (opened.complaints, opened.requests) == ([], [])
    assert opened.dom.count('data-drawn="yes"') == 12  # six charts, for wide and for narrow pages
    assert "could not be drawn" not in opened.dom.partition("<script")[0]


def test_no_name_is_taken_for_html(tmp_path: Path) -> None:
    hostile = dataclasses.replace(five_arms(HOSTILE, title="<b>bold</b>", outcome="<i>x</i>"), plan=plan_of(HOSTILE))
    page = forecast_page.forecast_page(hostile, vega_script())
    assert page.lower().count("</script>") == 3
    assert "<script>alert" not in page
    assert "<img" not in page.partition('<script type="application/json"')[0]
    assert "<b>bold" not in page
    assert "<i>x" not in page
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    opened = open_page(tmp_path / "page.html", tmp_path)
    assert (opened.complaints, opened.requests) == ([], [])
    assert opened.dom.count('data-drawn="yes"') == 12
    assert "<img" not in opened.dom.partition('<script type="application/json"')[0]


def test_a_forecast_by_formula_has_a_page_without_ranges(found: Forecast) -> None:
    bare = {name: dataclasses.replace(way, bands=None, luck_alone=None) for name, way in found.ways.items()}
    formula = dataclasses.replace(
        found, ways=bare, paths=None, stopping=(), effects=(), by_formula=True, luck_replications=0, plan=None
    )
    page = forecast_page.forecast_page(formula, NO_SCRIPT)
    assert "By formula, before the cost of learning." in words(page)
    assert re.findall(r'data-chart="([^"]+)"', page) == ["price", "price-narrow"]
    assert "What is assumed" not in page


@pytest.mark.parametrize(
    "asked",
    [
        MappingProxyType({}),
        MappingProxyType({"precision": 0.01}),
        MappingProxyType({"margin": 0.0, "control": None}),
        MappingProxyType({"precision": 0.06, "has_calendar": False, "deadline_seconds": None, "start": None}),
        MappingProxyType({"precision": 0.06, "cost_per_person": 2.5, "direction": "minimise"}),
    ],
)
def test_every_kind_of_forecast_has_a_page(asked: MappingProxyType[str, object]) -> None:
    found = forecast_with(**asked)
    said = words(forecast_page.forecast_page(found, NO_SCRIPT))
    assert "nan" not in re.sub(r"finan", "", said).lower().split()
    assert all(name in said for name in found.ways)
    assert ("costs" in said) is ("cost_per_person" in asked)


def test_what_cannot_be_written_is_said(found: Forecast, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"must end in \.html; got 'page.pdf'"):
        forecast_page.write_forecast_page(found, "page.pdf")
    (tmp_path / "file").write_text("")
    with pytest.raises(EquipoiseError, match="cannot write"):
        forecast_page.write_forecast_page(found, tmp_path / "file" / "page.html")
