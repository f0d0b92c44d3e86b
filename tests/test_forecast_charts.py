"""Charts of forecasts show the forecast's numbers, in words that name them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forecast_samples import FIVE_ARMS, five_arms, forecast_with
from test_charts import data_of

from equipoise import charts
from equipoise.charts.forecasts import label_places, wrapped
from equipoise.charts.vega_lite import spread_apart
from equipoise.errors import InvalidInput
from equipoise.planner.forecast import Forecast
from equipoise.planner.recommendation import chosen_way

CHARTS: dict[str, Callable[..., Any]] = {
    "price": charts.price_chart,
    "precision": charts.precision_chart,
    "chance": charts.chance_chart,
    "effects": charts.effects_chart,
    "shares": charts.shares_over_time_chart,
    "experiment": charts.simulated_experiment_chart,
}


@pytest.fixture(scope="module")
def found() -> Forecast:
    return five_arms()


def text_of(chart: Any, folder: Path) -> str:
    """Return the words in a chart, also those of several lines."""
    charts.save_chart(chart, folder / "chart.svg")
    return "\n".join(re.findall(r">([^<>]+)</(?:text|tspan)>", (folder / "chart.svg").read_text()))


def rows_of(chart: Any, **chosen: Any) -> list[dict[str, Any]]:
    return [row for row in data_of(chart) if all(row.get(name) == value for name, value in chosen.items())]


def test_the_price_of_the_dial_is_the_forecast_s(found: Forecast, tmp_path: Path) -> None:
    chart = charts.price_chart(found)
    for way in found.ways.values():
        (row, *_) = rows_of(chart, way=way.name, kind="equal shares" if way is found.equal_shares else "dial")
        assert row["gain"] == way.gain_per_100.median
        assert (row["gain_low"], row["gain_high"]) == (way.gain_per_100.low, way.gain_per_100.high)
        assert way.luck_alone is not None
        assert row["sure_gain_low"] == way.luck_alone.gain_per_100.low
        if np.isfinite(way.days.high):
            assert (row["taken"], row["low"], row["high"]) == (way.days.median, way.days.low, way.days.high)
            assert row["is_reached"]
    said = text_of(chart, tmp_path)
    assert "days until one knows every arm to ±0.06" in said
    assert "deadline 30 June" in said
    assert all(name in said for name in found.ways)


def test_ways_that_do_not_get_there_stand_apart(tmp_path: Path) -> None:
    found = forecast_with(precision=0.01)
    chart = charts.price_chart(found)
    points = {row["way"]: row for row in rows_of(chart) if "is_reached" in row}
    assert [row["is_reached"] for row in points.values()] == [False] * 3
    assert all(row["taken"] > found.question.deadline_days for row in points.values())
    assert len({row["taken"] for row in points.values()}) == 3
    assert "open mark, on grey: most do not get there" in text_of(chart, tmp_path)


def test_without_a_goal_the_price_is_in_precision_and_without_a_calendar_in_people() -> None:
    record = charts.price_record(forecast_with())
    assert (record.unit, record.limit) == ("half-width", 122.0 if record.unit == "days" else None)
    people = charts.price_record(forecast_with(precision=0.06, has_calendar=False, deadline_seconds=None))
    assert people.unit == "people"
    assert people.taken.median[0] == pytest.approx(2222, rel=0.05)  # (2 / 0.06)^2 of each of two arms


def test_precision_over_time_is_that_of_the_bands(found: Forecast, tmp_path: Path) -> None:
    record = charts.precision_record(found)
    for k, way in enumerate(found.ways.values()):
        assert way.bands is not None
        for drawn, band in zip((record.low, record.median, record.high), way.bands.widest, strict=True):
            np.testing.assert_array_equal(drawn[k], band)
    chart = charts.precision_chart(record)
    last = rows_of(chart, kind="way", way="weight 0.9")[-1]
    assert last["middle"] == record.median[2, -1]
    assert {row["middle"] for row in rows_of(chart, kind="goal")} == {0.06}
    assert {row["time"] for row in rows_of(chart, kind="deadline")} == {122.0}
    said = text_of(chart, tmp_path)
    assert "dashed: the goal, ±0.06; dotted: the deadline, 30 June" in said
    assert f"recommended: {chosen_way(found).name}" in said


def test_chances_are_those_of_the_stopping_rules(found: Forecast, tmp_path: Path) -> None:
    chart = charts.chance_chart(found)
    for choice in found.stopping:
        rows = rows_of(chart, way=choice.way)
        drawn = {row["half_width"]: row["chance"] for row in rows}
        expected = dict(zip(choice.half_widths.tolist(), (100 * choice.goal_chances).tolist(), strict=True))
        assert drawn == expected
        if choice.precision is not None:
            assert drawn[choice.precision] >= 80
    assert "How likely each precision is by 30 June" in text_of(chart, tmp_path)


def test_effects_are_drawn_with_two_standard_errors(tmp_path: Path) -> None:
    found = five_arms()
    name = chosen_way(found).name
    effects = [one for one in found.effects if one.way == name and one.figure == "days"]
    assert effects
    chart = charts.effects_chart(found)
    rows = [row for row in data_of(chart) if "guess" in row]
    assert [row["change"] for row in rows] == [one.change for one in effects]
    assert [row["high"] - row["low"] for row in rows] == pytest.approx([4 * one.error for one in effects])
    assert f"{effects[0].change:+.1f} days" in text_of(chart, tmp_path)


def test_shares_over_time_are_those_of_the_people_who_come(found: Forecast, tmp_path: Path) -> None:
    record = charts.shares_over_time_record(found, "weight 0.9")
    np.testing.assert_allclose(record.share, np.tile([0.05, 0.05, 0.1, 0.75, 0.05], (record.time.size, 1)))
    assert record.met == found.ways["weight 0.9"].days.median or np.isinf(found.ways["weight 0.9"].days.median)
    said = text_of(charts.shares_over_time_chart(record), tmp_path)
    assert "prize, 75" in said
    assert all(f"{arm}, " in said for arm in FIVE_ARMS)


def test_of_many_arms_the_smallest_shares_are_added_up(found: Forecast, tmp_path: Path) -> None:
    share = np.full((3, 20), 0.02)
    share[:, :2] = 0.32
    record = dataclasses.replace(
        charts.shares_over_time_record(found),
        arms=tuple(f"a{k}" for k in range(20)),
        share=share,
        time=np.arange(1.0, 4),
    )
    said = text_of(charts.shares_over_time_chart(record), tmp_path)
    assert "a0, 32" in said
    assert "13 others, 26" in said


def test_the_experiment_to_watch_is_the_one_in_the_middle(found: Forecast) -> None:
    record = charts.simulated_experiment_record(found, "equal shares")
    assert record.met == pytest.approx(found.ways["equal shares"].days.median, rel=0.02)
    other = charts.simulated_experiment_record(found, "equal shares", replication=7)
    assert found.paths is not None
    np.testing.assert_array_equal(other.mean, found.paths.estimate[0, 7])
    np.testing.assert_array_equal(other.truth, found.paths.mean[7])
    rows = rows_of(charts.simulated_experiment_chart(other), kind="so far", arm="prize")
    assert rows[-1]["high"] == found.paths.high[0, 7, -1, 3]
    with pytest.raises(InvalidInput, match="replication must be"):
        charts.simulated_experiment_record(found, replication=1000)


@pytest.mark.parametrize("name", CHARTS)
@pytest.mark.parametrize("width", [640, 264])
def test_every_chart_is_drawn_at_every_width(found: Forecast, name: str, width: int, tmp_path: Path) -> None:
    charts.save_chart(CHARTS[name](found, width=width), tmp_path / "chart.svg")
    assert (tmp_path / "chart.svg").read_text().startswith("<svg")


def test_the_chart_of_a_forecast_has_its_price_and_its_rules(found: Forecast, tmp_path: Path) -> None:
    said = text_of(charts.forecast_chart(found), tmp_path)
    assert "What each way gains, and how long it takes" in said
    assert "How likely each precision is by 30 June" in said


def test_without_simulated_experiments_there_is_only_the_price(found: Forecast) -> None:
    bare = {name: dataclasses.replace(way, bands=None, luck_alone=None) for name, way in found.ways.items()}
    formula = dataclasses.replace(found, ways=bare, paths=None, stopping=(), effects=(), by_formula=True)
    charts.forecast_chart(formula)
    for name in ("precision", "chance", "effects", "shares", "experiment"):
        with pytest.raises(InvalidInput, match="there is no chart to draw"):
            CHARTS[name](formula)
    with pytest.raises(InvalidInput, match="way must be one of equal shares"):
        charts.shares_over_time_record(found, "weight 2")


def test_labels_cover_neither_each_other_nor_points() -> None:
    rng = np.random.default_rng(1)
    points = [(float(x), float(y)) for x, y in rng.uniform(60, 340, (8, 2))]
    texts = [f"way {k}" for k in range(8)]
    boxes = [(x, y - 6, x + 6 * 5, y + 6) for x, y in label_places(texts, points, [], 400, 400)]
    for k, (left, top, right, bottom) in enumerate(boxes):
        assert not any(left < x < right and top < y < bottom for x, y in points)
        assert not any(
            left < other[2] and other[0] < right and top < other[3] and other[1] < bottom for other in boxes[k + 1 :]
        )


def test_names_at_the_edge_are_spread_apart() -> None:
    places = spread_apart([100.0, 99.0, 98.0, 10.0], 15.0, 100.0)
    assert (np.diff(np.sort(places)) >= 15 - 1e-9).all()
    assert max(places) <= 100 + 1e-9
    assert np.argsort(places).tolist() == [3, 2, 1, 0]
    assert wrapped("a b", 1) == ["a", "b"]
