"""Charts: records agree with the library, pictures show what they should, files are what their ending says."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import golden
import numpy as np
import pytest

import equipoise as eq
from equipoise import charts
from equipoise.charts import style as drawing


def five(reward_weight: float = 0.9, **options: Any) -> charts.AllocationRecord:
    return charts.allocation_record(golden.FIVE_MEANS, golden.FIVE_STDS, reward_weight=reward_weight, **options)


def curve(**options: Any) -> charts.FrontierRecord:
    return charts.frontier_record(golden.FIVE_MEANS, golden.FIVE_STDS, **options)


def many(n_arms: int) -> tuple[list[float], list[float]]:
    return np.linspace(0, 1, n_arms).tolist(), np.linspace(2, 1, n_arms).tolist()


def run_of(n_arms: int, n_notes: int) -> charts.TrackingRecord:
    shares = np.full((n_notes, n_arms), 1 / n_arms)
    names = tuple(str(i + 1) for i in range(n_arms))
    return charts.TrackingRecord(names, np.arange(1, n_notes + 1), shares, shares.copy(), shares[0].copy(), 0.5)


def text_of(chart: Any, folder: Path) -> str:
    """Return the words in a chart, as a reader of the picture would find them."""
    charts.save_chart(chart, folder / "chart.svg")
    return "\n".join(re.findall(r">([^<>]+)</text>", (folder / "chart.svg").read_text()))


def data_of(chart: Any) -> list[dict[str, Any]]:
    """Return all rows that a chart draws; layers that share their data count once."""
    tables: list[list[dict[str, Any]]] = []

    def collect(part: Any) -> None:
        if isinstance(part, list):
            for inner in part:
                collect(inner)
        elif isinstance(part, dict):
            if "values" in part.get("data", {}) and part["data"]["values"] not in tables:
                tables.append(part["data"]["values"])
            for inner in part.values():
                collect(inner)

    collect({key: part for key, part in chart.to_dict().items() if key != "config"})
    return [row for table in tables for row in table]


# --- records ----------------------------------------------------------------------------------------------------------


def test_an_allocation_record_holds_the_known_optimum() -> None:
    known, record = golden.OPTIMA[1], five()
    assert record.share == pytest.approx(known.allocation, abs=5.1e-8)
    assert record.tradeoff == pytest.approx(known.tradeoff, abs=5.1e-11)
    assert record.arms == ("1", "2", "3", "4", "5")
    assert record.pulls is None
    assert record.error_at_horizon is None


def test_a_frontier_record_goes_through_its_marked_points() -> None:
    record = curve(reward_weights=[0.0, 0.5, 0.9])
    assert record.marked.tradeoff[0] == pytest.approx(golden.OPTIMA[0].tradeoff, abs=5.1e-11)
    # Interpolating the smooth curve at the marked errors gives the marked rewards.
    finite = np.isfinite(record.curve.error)
    drawn = np.interp(record.marked.error, record.curve.error[finite], record.curve.reward[finite])
    assert drawn == pytest.approx(record.marked.reward, abs=2e-3)
    assert record.equal_reward == np.mean(golden.FIVE_MEANS)
    assert record.equal_error == pytest.approx(np.mean(golden.FIVE_STDS) * np.sqrt(5))


def test_the_curve_reaches_the_largest_marked_weight() -> None:
    assert curve(reward_weights=[0.5]).curve.reward_weight[-2] == pytest.approx(0.99)
    assert curve(reward_weights=[0.9999, 1.0]).curve.reward_weight[-2] == pytest.approx(0.9999)


@pytest.mark.parametrize("arms", [["a"], ["a", "a"]])
def test_records_want_one_name_per_arm(arms: list[str]) -> None:
    for record in (charts.allocation_record, charts.frontier_record):
        options: dict[str, Any] = {"reward_weight": 0.5} if record is charts.allocation_record else {}
        with pytest.raises(eq.InvalidInput, match="arms must be 2 different names"):
            record([1, 2], [1, 1], arms=arms, **options)


# --- pictures ---------------------------------------------------------------------------------------------------------


def test_the_allocation_chart_shows_names_and_shares_largest_first(tmp_path: Path) -> None:
    record = five(arms=["a", "b", "c", "d", "e"], horizon=1000)
    words = text_of(charts.allocation_chart(record), tmp_path)
    assert re.search("89.0%.*7.9%.*1.4%.*1.0%.*0.7%", words, re.DOTALL)
    assert re.search("^e$.*^d$.*^c$.*^b$.*^a$", words, re.DOTALL | re.MULTILINE)
    assert "Where the pulls go at reward weight 0.9" in words
    assert "reward 4.815, error 3.491" in words
    assert {row["pulls"] for row in data_of(charts.allocation_chart(record))} == set(record.pulls.tolist())  # type: ignore[union-attr]


@pytest.mark.parametrize(("n_arms", "n_bars"), [(1, 1), (2, 2), (64, 64), (300, 80)])
def test_the_allocation_chart_is_readable_for_few_and_many_arms(n_arms: int, n_bars: int, tmp_path: Path) -> None:
    record = charts.allocation_record(*many(n_arms), reward_weight=0.5)
    chart = charts.allocation_chart(record)
    drawn = [row["share"] for row in data_of(chart)]
    assert drawn == sorted(record.share.tolist(), reverse=True)[:n_bars]
    note = "the 80 largest shares, 220 more arms not shown"
    assert (note in text_of(chart, tmp_path)) == (n_arms == 300)


def test_the_frontier_chart_labels_weights_and_leaves_out_infinite_errors(tmp_path: Path) -> None:
    words = text_of(charts.frontier_chart(curve(reward_weights=[1.0, 0.5, 0.0])), tmp_path).splitlines()
    assert {"0", "0.5", "equal shares", "average reward per pull"} <= set(words)
    assert all(np.isfinite(row["error"]) for row in data_of(charts.frontier_chart(curve(reward_weights=[0.0, 1.0]))))
    with_floor = charts.frontier_chart(curve(reward_weights=[0.0, 1.0], floor=0.05))
    assert max(row["reward_weight"] for row in data_of(with_floor) if "reward_weight" in row) == 1.0


def test_labels_of_close_weights_are_left_out_rather_than_drawn_over_each_other() -> None:
    weights = np.linspace(0, 0.9, 200)
    record = curve(reward_weights=weights)
    points = charts.frontier_chart(record).to_dict()["layer"][1]
    assert points["mark"]["type"] == "point"
    assert 5 < len(points["data"]["values"]) < 40


def test_a_frontier_that_spans_decades_of_error_is_drawn_on_a_log_axis() -> None:
    def scale(largest: float) -> str:
        layers = charts.frontier_chart(curve(reward_weights=[largest])).to_dict()["layer"]
        return str(layers[0]["encoding"]["x"]["scale"]["type"])

    assert (scale(0.9), scale(0.99999)) == ("linear", "log")


def test_a_frontier_without_any_finite_error_is_refused() -> None:
    record = charts.frontier_record([1, 2], [1, 1], floor=[1.0, 0.0])
    with pytest.raises(eq.InvalidInput, match="no frontier to draw"):
        charts.frontier_chart(record)


def test_the_shares_chart_names_every_band_or_says_which_are_too_narrow(tmp_path: Path) -> None:
    assert {f"arm {i}" for i in range(1, 6)} <= set(text_of(charts.shares_chart(curve()), tmp_path).splitlines())
    thin = charts.frontier_record([1, 2, 3], [1, 1e-6, 1], arms=["a", "b", "c"])
    words = text_of(charts.shares_chart(thin), tmp_path).splitlines()
    assert "Each band is an arm; too narrow to be named: b" in words
    assert {"a", "c"} <= set(words)
    assert "b" not in words


def test_shares_are_drawn_beside_the_frontier_unless_there_are_too_many_arms(tmp_path: Path) -> None:
    twelve, thirteen = (charts.frontier_record(*many(n)) for n in (12, 13))
    assert "Who gets the pulls" in text_of(charts.frontier_and_shares_chart(twelve), tmp_path)
    words = text_of(charts.frontier_and_shares_chart(thirteen), tmp_path)
    assert "Who gets the pulls" not in words
    assert "The most reward at each error" in words
    with pytest.raises(eq.InvalidInput, match="at most 12 arms; got 13"):
        charts.shares_chart(thirteen)


def test_the_tracking_chart_can_be_read_without_colour(tmp_path: Path) -> None:
    chart = charts.tracking_chart(run_of(5, 30))
    encoding = chart.to_dict()["spec"]["encoding"]
    dashes = encoding["strokeDash"]["scale"]["range"]
    assert len({tuple(dash) for dash in dashes}) == 3
    assert encoding["x"]["scale"]["type"] == encoding["y"]["scale"]["type"] == "log"
    words = text_of(chart, tmp_path).splitlines()
    assert {*(f"arm {i}" for i in range(1, 6)), "given so far", "aimed at, from the estimates"} <= set(words)


def test_shares_of_zero_and_missing_targets_have_no_place_on_the_log_axis() -> None:
    record = run_of(2, 3)
    record.target[0] = np.nan
    record.frequency[0] = [1.0, 0.0]
    drawn = [row for row in data_of(charts.tracking_chart(record)) if row["step"] == 1]
    assert sorted((row["arm"], row["kind"][:5], row["share"]) for row in drawn) == [
        ("arm 1", "best,", 0.5),
        ("arm 1", "given", 1.0),
        ("arm 2", "best,", 0.5),
    ]


def test_long_runs_are_drawn_beyond_altairs_limit_of_5000_rows(tmp_path: Path) -> None:
    chart = charts.tracking_chart(run_of(5, 400))
    assert len(data_of(chart)) == 6000
    charts.save_chart(chart, tmp_path / "chart.svg")


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ending", "first_bytes"),
    [
        ("html", b"<!DOCTYPE html>"),
        ("png", b"\x89PNG\r\n\x1a\n"),
        ("svg", b"<svg"),
        ("pdf", b"%PDF-"),
        ("PNG", b"\x89PNG"),
    ],
)
def test_a_file_is_what_its_ending_says(ending: str, first_bytes: bytes, tmp_path: Path) -> None:
    file = tmp_path / f"chart.{ending}"
    file.write_text("something older")
    charts.save_chart(charts.allocation_chart(five()), file)
    assert file.read_bytes().lstrip().startswith(first_bytes)


def test_a_page_needs_no_network(tmp_path: Path) -> None:
    file = tmp_path / "chart.html"
    charts.save_chart(charts.frontier_and_shares_chart(curve()), file)
    page = file.read_text()
    assert "vegaEmbed" in page
    assert not re.search(r"<(script|link)\b[^>]*\b(src|href)\s*=", page)
    assert not re.search(r"\bimport\s*\(?\s*[\"']https?:", page)


def test_png_is_twice_as_large_as_svg(tmp_path: Path) -> None:
    for ending in ("png", "svg"):
        charts.save_chart(charts.allocation_chart(five()), tmp_path / f"chart.{ending}")
    png_width = int.from_bytes((tmp_path / "chart.png").read_bytes()[16:20], "big")
    found = re.search(r'width="([\d.]+)"', (tmp_path / "chart.svg").read_text())
    assert found is not None
    assert png_width == pytest.approx(2 * float(found[1]), abs=2)


@pytest.mark.parametrize("name", ["chart", "chart.jpg", "chart.json", "html"])
def test_other_endings_are_refused_with_those_that_are_not(name: str, tmp_path: Path) -> None:
    with pytest.raises(eq.InvalidInput, match=re.escape("must end in .html, .png, .svg or .pdf; got")):
        charts.save_chart(charts.allocation_chart(five()), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_places_that_cannot_be_written_are_told(tmp_path: Path) -> None:
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(eq.EquipoiseError, match="it is a folder"):
        charts.checked_chart_path(tmp_path / "folder.svg")
    with pytest.raises(eq.EquipoiseError, match=r"there is no folder .*none\nhint: mkdir -p"):
        charts.checked_chart_path(tmp_path / "none" / "chart.svg")
    (tmp_path / "file").touch()
    with pytest.raises(eq.EquipoiseError, match=r"cannot make the folder .*file"):
        charts.checked_chart_path(tmp_path / "file" / "chart.svg", make_folder=True)
    assert charts.checked_chart_path(tmp_path / "new" / "chart.svg", make_folder=True).parent.is_dir()


def test_permission_is_checked_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)  # root may write everywhere
    with pytest.raises(eq.EquipoiseError, match="permission denied"):
        charts.checked_chart_path(tmp_path / "chart.svg")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_told(tmp_path: Path) -> None:
    (tmp_path / "chart.svg").symlink_to("/dev/full")
    with pytest.raises(eq.EquipoiseError, match=r"cannot write .*chart.svg: No space left on device"):
        charts.save_chart(charts.allocation_chart(five()), tmp_path / "chart.svg")


@pytest.mark.parametrize("package", ["altair", "vl_convert"])
def test_a_missing_extra_says_how_to_install_it(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chart = charts.allocation_chart(five())
    monkeypatch.setattr(drawing, "find_spec", lambda name: None if name == package else object())
    with pytest.raises(eq.MissingExtra) as error:
        charts.save_chart(chart, tmp_path / "chart.svg")
    assert error.value.hint == "pip install 'equipoise[charts]'"
    assert package.replace("_", "-") in error.value.message
    if package == "altair":
        with pytest.raises(eq.MissingExtra):
            charts.allocation_chart(five())


# --- comparisons ------------------------------------------------------------------------------------------------------


def compared(n_arms: int, n: int = 400, **options: Any) -> eq.analysis.Comparison:
    mean = np.linspace(0.2, 0.6, n_arms)
    names = [f"arm {i}" for i in range(n_arms)]
    evidence = eq.analysis.Evidence.from_summary([n] * n_arms, mean, np.sqrt(mean * (1 - mean)), reward_range=(0, 1))
    return eq.analysis.compare(evidence, names, **options)


@pytest.mark.parametrize("direction", ["maximise", "minimise"])
def test_a_comparison_record_has_the_best_mean_first_and_the_better_arm_of_a_pair(direction: str) -> None:
    found = compared(4, 320, direction=direction)
    record = charts.comparison_record(found)
    best_first = ("arm 3", "arm 2", "arm 1", "arm 0")
    assert record.arms == (best_first if direction == "maximise" else best_first[::-1])
    assert record.standing == ("is best", "ruled out", "ruled out", "ruled out")
    assert found.may_be_best == (record.arms[0],)
    assert [record.arms.index(a) < record.arms.index(b) for a, b in record.pairs] == [True] * 6
    assert set(record.verdict) == {"better", "undecided"}
    sure = (record.difference_low > 0) | (record.difference_high < 0)
    assert sure.tolist() == [verdict == "better" for verdict in record.verdict]
    assert (record.difference > 0).all() == (direction == "maximise")


@pytest.mark.parametrize(("n_arms", "n_pairs"), [(1, 0), (2, 1), (3, 3), (22, 21), (40, 39)])
def test_a_comparison_chart_is_readable_for_few_and_many_arms(n_arms: int, n_pairs: int, tmp_path: Path) -> None:
    found = compared(n_arms)
    rows = data_of(charts.comparison_chart(found))
    words = text_of(charts.comparison_chart(found), tmp_path)
    assert sum("middle" in row for row in rows) == n_arms + n_pairs
    for arm in found.arms:
        assert f"{arm.mean:.2f} ({arm.low:.2f} to {arm.high:.2f})" in words
        assert f"{arm.arm}\n" in words
    assert "lines: 95% intervals, for all of them together and at all times" in words
    if n_arms > 1:
        assert {"zero": 0.0} in rows
        assert {"may be best" if found.best is None else "is best", "ruled out"} & set(words.splitlines())


def test_a_comparison_chart_can_be_read_without_colour() -> None:
    """What is ruled out or undecided is hollow: white inside, whatever its colour."""
    panels = charts.comparison_chart(compared(5)).to_dict()["vconcat"]
    for panel, hollow, filled in zip(panels, ("ruled out", "undecided"), ("may be best", "better"), strict=True):
        [fill] = [one["encoding"]["fill"]["scale"] for one in panel["layer"] if "fill" in one.get("encoding", {})]
        inside = dict(zip(fill["domain"], fill["range"], strict=True))
        assert inside[hollow] == "white" != inside[filled]


def test_a_comparison_chart_names_the_control_and_says_if_it_is_provisional(tmp_path: Path) -> None:
    chart = charts.comparison_chart(compared(3, control="arm 0", name="mail", provisional=("Rewards are missing.",)))
    words = text_of(chart, tmp_path).splitlines()
    assert {"arm 0 (control)", "mean reward minus that of arm 0", "mail: what is known of the arms"} <= set(words)
    assert any("provisional: rewards are missing or still to come" in line for line in words)
    assert words.count("arm 1") == words.count("arm 2") == 2


def test_an_interval_without_an_end_runs_to_the_edge_and_an_arm_without_rewards_is_named(tmp_path: Path) -> None:
    evidence = eq.analysis.Evidence.from_summary([20, 20, 0], [1.0, 2.0, 0.0], [1.0, 1.0, 0.0], reward_range=(0, None))
    found = eq.analysis.compare(evidence, ["a", "b", "c"])
    assert found.arms[0].low is not None and found.arms[0].high is None
    rows = {row["arm"]: row for row in data_of(charts.comparison_chart(found)) if row.get("kind", "").endswith("best")}
    assert rows["a"]["to"] == rows["b"]["to"] > 2
    assert "no rewards" in text_of(charts.comparison_chart(found), tmp_path)
    nothing = eq.analysis.compare(eq.analysis.Evidence.from_summary([0, 0], [0, 0], [0, 0]), ["a", "b"])
    with pytest.raises(eq.InvalidInput, match="no arm has a reward yet"):
        charts.comparison_chart(nothing)
