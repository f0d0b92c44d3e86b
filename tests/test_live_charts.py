"""Charts of live experiments: plain dicts that are valid, say what they show, and are drawn under a strict policy."""

from __future__ import annotations

import dataclasses
import functools
import http.server
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import altair
import numpy as np
import pytest
from browser import open_page
from live_courses import FOUR, course_of, played, rates_of

import equipoise as eq
from equipoise import charts
from equipoise.charts.colours import IN_CHARTS
from equipoise.charts.pages import vega_script
from equipoise.charts.vega_lite import number_text

HOSTILE = ("</script><b>", "#0072B2", "a, b & 'c'", 'datum.x" {{y}}', "x" * 90)
DAYS = [date(2027, 3, 1) + timedelta(days=day) for day in range(5)]
CHANGES = (
    charts.Mark(datetime(2027, 3, 2, 12, tzinfo=UTC), 90, "weight 0.6 to 0.8 (Ada)"),
    charts.Mark(datetime(2027, 3, 3, tzinfo=UTC), 240, "note: holiday"),
)
PRICES = [
    charts.PricePoint(0.5, -0.4, -0.7, -0.1, 0.95),
    charts.PricePoint(0.6, 0.0, 0.0, 0.0, 1.0),
    charts.PricePoint(0.9, 4.1, 3.2, 5.0, 1.84),
]


@functools.cache
def messages(n_arms: int = 4) -> tuple[eq.experiment.Status, eq.experiment.Comparison, charts.Course]:
    experiment, statuses = played(rates_of(n_arms), people=max(15.0, 6.0 * n_arms))
    return statuses[-1], experiment.compare(), course_of(statuses, *CHANGES)


def every_chart(n_arms: int = 4, *, width: int = 640) -> dict[str, charts.Chart]:
    status, compared, course = messages(n_arms)
    found = {
        "shares": charts.live_shares_chart(course, width=width),
        "means": charts.live_means_chart(course, width=width),
        "precision": charts.live_precision_chart(course, goal=0.06, width=width),
        "pace": charts.live_pace_chart(DAYS, [90, 80, 120, 70, 20], [60, 80, 95, 80, 30], width=width),
        "arms": charts.live_arms_chart(status, control=course.arms[0], width=width),
        "prices": charts.live_prices_chart(PRICES, present=0.6, chosen=0.9, width=width),
    }
    if n_arms > 1:
        found["differences"] = charts.live_differences_chart(compared, width=width)
    return found


def renamed(status: eq.experiment.Status, course: charts.Course) -> tuple[eq.experiment.Status, charts.Course]:
    arms = tuple(dataclasses.replace(arm, arm=name) for arm, name in zip(status.arms, HOSTILE, strict=False))
    marks = tuple(dataclasses.replace(mark, text=name) for mark, name in zip(course.marks, HOSTILE, strict=False))
    status = dataclasses.replace(
        status, arms=arms, may_be_best=HOSTILE[:1], sentence=f"{HOSTILE[0]!r} is the best arm."
    )
    return status, dataclasses.replace(course, arms=HOSTILE[:4], marks=marks)


@pytest.mark.parametrize(("n_arms", "width"), [(1, 300), (4, 640), (20, 640)])
def test_every_chart_is_valid_plain_data(n_arms: int, width: int) -> None:
    for key, drawn in every_chart(n_arms, width=width).items():
        plain = json.loads(json.dumps(drawn, allow_nan=False))
        assert plain == drawn, key
        altair.Chart.from_dict(plain, validate=True)


def test_making_charts_loads_no_altair(tmp_path: Path) -> None:
    """They are made while people wait for assignments."""
    import subprocess
    import sys

    code = (
        "import sys; from datetime import date; from equipoise import charts; "
        "drawn = charts.live_pace_chart([date(2027, 3, 1)], [9], [5]); charts.table_of(drawn); "
        "print([name for name in ('altair', 'vl_convert', 'jinja2') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_titles_are_sentences_with_the_numbers_of_the_status() -> None:
    status, compared, course = messages()
    found = {key: charts.title_of(drawn) for key, drawn in every_chart().items()}
    best = max(status.arms, key=lambda arm: arm.mean or 0.0)
    most = max(status.arms, key=lambda arm: arm.assigned)
    assert found["shares"].startswith(f"{most.arm!r} has got {100 * most.assigned / status.n_assigned:.0f} of 100")
    assert f"{100 * most.target_share:.0f} of 100 are wanted for it now" in found["shares"]
    assert (
        found["means"] == f"{best.arm!r} has the best mean so far: {best.mean:.2f}, {best.low:.2f} to {best.high:.2f}"
    )
    widest = max(arm.half_width for arm in status.arms)
    assert found["precision"] == f"Every arm is known to ±{widest:.2f} now; the goal is ±0.06"
    assert found["arms"] == status.sentence
    assert found["differences"] == compared.sentences[0]
    assert found["pace"] == "90 people and 79 rewards a day, on average over the last 4 whole days"
    assert found["prices"] == "Weight 0.9 gains 4.1 per 100 people and takes 1.8 times as many"
    wide = charts.live_precision_chart(course, goal=0.5)
    assert charts.title_of(wide).endswith("which meets the goal of ±0.5")


@pytest.mark.parametrize("n_arms", [2, 4, 20])
def test_tables_have_the_numbers_of_the_status(n_arms: int) -> None:
    status, compared, course = messages(n_arms)
    found = every_chart(n_arms)
    arms = {arm.arm: arm for arm in status.arms}
    table = charts.table_of(found["arms"])
    assert {row[0] for row in table.rows} == set(arms)
    for name, mean, interval, rewards, standing in table.rows:
        arm = arms[name]
        assert (mean, interval) == (f"{arm.mean:.2f}", f"{arm.low:.2f} to {arm.high:.2f}")
        assert rewards == f"{arm.rewarded:,}"
        assert (standing == "ruled out") == (name not in status.may_be_best)
    shares = charts.table_of(found["shares"])
    last = dict(zip(shares.columns, shares.rows[-1], strict=True))
    assert last["time (UTC)"] == f"{status.at:%Y-%m-%d %H:%M}"
    named = [course.arms[k] for k in course.shown]
    assert {name: last[f"{name}: given"] for name in named} == {
        name: f"{100 * arms[name].assigned / status.n_assigned:.1f}%" for name in named
    }
    means = charts.table_of(found["means"])
    last = dict(zip(means.columns, means.rows[-1], strict=True))
    decimals = 2
    for name in named:
        arm = arms[name]
        expected = f"{arm.mean:.{decimals}f} ({arm.low:.{decimals}f} to {arm.high:.{decimals}f})"
        assert last[name] == expected
    pairs = charts.table_of(found["differences"]).rows
    assert len(pairs) == len(compared.differences)
    for pair in compared.differences:
        [row] = [row for row in pairs if row[0] == f"{pair.arm} \N{MINUS SIGN} {pair.other}"]
        ends = [number_text(end, 2) for end in (pair.low, pair.high)]
        assert row[1:] == (number_text(pair.difference, 2, sign=True), " to ".join(ends), pair.verdict)


def test_a_long_table_can_be_thinned_out_and_keeps_its_ends() -> None:
    drawn = every_chart()["precision"]
    whole, thin = charts.table_of(drawn), charts.table_of(drawn, 5)
    assert len(whole.rows) == len(charts.rows_of(drawn)) > 5 == len(thin.rows)
    assert (thin.rows[0], thin.rows[-1]) == (whole.rows[0], whole.rows[-1])
    assert set(thin.rows) <= set(whole.rows)
    with pytest.raises(eq.InvalidInput, match="most_rows must be at least 2"):
        charts.table_of(drawn, 1)


def test_of_many_arms_twelve_series_are_drawn_and_the_rest_is_together() -> None:
    _, _, course = messages(20)
    drawn = charts.live_shares_chart(course)
    rows = charts.rows_of(drawn)
    names = list(dict.fromkeys(row["arm"] for row in rows))
    assert (len(names), names[-1]) == (12, "9 others")
    last = [row["given"] for row in rows if row.get("at") == rows[-1]["at"]]
    assert sum(last) == pytest.approx(1.0, abs=1e-4)
    told_apart = drawn["layer"][-1]["encoding"]["color"]["scale"]["domain"]
    assert "the other 9 have" in " ".join(charts.notes_of(drawn))
    assert len(told_apart) <= 12
    looks = {(k % 7, k % 6) for k in range(12)}
    assert len(looks) == 12
    assert "are left out" in " ".join(charts.notes_of(charts.live_means_chart(course)))


def test_changes_and_notes_are_marked_by_number_and_in_words() -> None:
    for key in ("shares", "means", "precision"):
        drawn = every_chart()[key]
        assert "1: weight 0.6 to 0.8 (Ada); 2: note: holiday" in " ".join(charts.notes_of(drawn))
        marked = [layer["data"]["values"] for layer in drawn["layer"] if "number" in str(layer.get("data"))]
        assert [row["at"] for row in marked[0]] == ["2027-03-02T12:00:00Z", "2027-03-03T00:00:00Z"]


def test_an_experiment_that_took_no_time_is_drawn_over_people() -> None:
    _, _, course = messages()
    now = dataclasses.replace(course, at=(course.at[0],) * len(course.at))
    for drawn in (charts.live_shares_chart(now), charts.live_means_chart(now), charts.live_precision_chart(now)):
        altair.Chart.from_dict(drawn, validate=True)
        assert charts.table_of(drawn).columns[0] == "people"
        assert charts.table_of(drawn).rows[-1][0] == f"{course.people[-1]:,}"


def test_minimise_has_the_smallest_mean_as_the_best() -> None:
    experiment, statuses = played(FOUR, direction="minimise")
    drawn = charts.live_means_chart(course_of(statuses))
    best = min(statuses[-1].arms, key=lambda arm: arm.mean or 0.0)
    assert charts.title_of(drawn).startswith(f"{best.arm!r} has the best mean so far: {best.mean:.2f}")
    assert charts.rows_of(charts.live_arms_chart(statuses[-1]))[0]["arm"] == best.arm
    assert experiment.compare().arms


def test_without_data_there_is_no_chart_and_that_is_said() -> None:
    experiment, statuses = played(FOUR, hours=4, people=0.0)
    course = course_of(statuses)
    for make in (
        lambda: charts.live_shares_chart(course),
        lambda: charts.live_means_chart(course),
        lambda: charts.live_precision_chart(course),
        lambda: charts.live_arms_chart(statuses[-1]),
        lambda: charts.live_differences_chart(experiment.compare()),
        lambda: charts.live_pace_chart(DAYS, [0] * 5, [0] * 5),
        lambda: charts.live_prices_chart(PRICES[:1], present=0.6),
    ):
        with pytest.raises(eq.InvalidInput, match="there is no chart to draw"):
            make()


def test_an_arm_without_rewards_and_open_ends_are_shown() -> None:
    status, _, _ = messages()
    bare = dataclasses.replace(status.arms[3], mean=None, low=None, high=None, half_width=None, rewarded=0)
    half = dataclasses.replace(status.arms[0], high=None)
    drawn = charts.live_arms_chart(dataclasses.replace(status, arms=(half, *status.arms[1:3], bare)))
    table = {row[0]: row for row in charts.table_of(drawn).rows}
    assert table[bare.arm][1:3] == ("-", "-")
    assert table[half.arm][2].startswith("from ")
    row = next(row for row in charts.rows_of(drawn) if row["arm"] == half.arm)
    assert row["to"] == max(other["to"] for other in charts.rows_of(drawn) if other["arm"] != bare.arm)


def test_a_chart_of_one_day_and_of_many() -> None:
    first = charts.live_pace_chart(DAYS[:1], [1], [0])
    assert charts.title_of(first) == "1 person and 0 rewards on the first day so far"
    many = [date(2027, 1, 1) + timedelta(days=k) for k in range(400)]
    drawn = charts.live_pace_chart(many, [3] * 400, [2] * 400, so_far=False)
    assert charts.title_of(drawn) == "3.0 people and 2.0 rewards a day, on average over the last 7 whole days"
    altair.Chart.from_dict(drawn, validate=True)


def test_a_dark_chart_has_dark_colours_and_the_same_words() -> None:
    status, course = renamed(*messages()[::2])
    for drawn in (charts.live_arms_chart(status), charts.live_shares_chart(course)):
        dark = charts.themed(drawn, "dark")
        assert dark["data"] == drawn["data"]
        assert dark["usermeta"] == drawn["usermeta"]
        assert dark["config"]["background"] == IN_CHARTS["white"][1]
        texts = json.dumps({key: part for key, part in dark.items() if key not in ("data", "usermeta")})
        for light, in_dark in IN_CHARTS.values():
            if light != in_dark and light not in HOSTILE:
                assert light.lower() not in texts.lower()
    with pytest.raises(eq.InvalidInput, match="theme must be light or dark; got 'grey'"):
        charts.themed(drawn, "grey")  # type: ignore[arg-type]


def test_charts_are_written_as_files(tmp_path: Path) -> None:
    drawn = every_chart()["arms"]
    for ending, start in (("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<svg")):
        charts.save_chart(drawn, tmp_path / f"arms.{ending}", theme="dark")
        assert (tmp_path / f"arms.{ending}").read_bytes().startswith(start)
    picture = (tmp_path / "arms.svg").read_text()
    words = "\n".join(re.findall(r">([^<>]+)</text>", picture))
    assert "plain (control)" in words
    assert "0.52 (0.45 to 0.59)" not in words or "prize" in words
    assert f'fill="{IN_CHARTS["white"][1]}"' in picture


PAGE = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Charts</title>
<link rel="icon" href="data:,"></head><body>{places}<script src="vega.js"></script>
<script type="module" src="draw.js"></script></body></html>"""
DRAW = """
const charts = await (await fetch("charts.json")).json();
for (const place of document.querySelectorAll("[data-chart]")) {
  await window.vegaEmbed(place, charts[place.dataset.chart], {
    ast: true, renderer: "svg", actions: false, defaultStyle: false, tooltip: { disableDefaultStyle: true },
  });
  place.dataset.drawn = "yes";
}
"""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


@contextmanager
def site(folder: Path) -> Iterator[str]:
    """Serve a folder under the policy of the console."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def end_headers(self) -> None:
            self.send_header("Content-Security-Policy", POLICY)
            super().end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_every_chart_is_drawn_under_a_policy_without_eval_and_without_styles(tmp_path: Path) -> None:
    shown = every_chart() | {f"{key}-narrow": drawn for key, drawn in every_chart(width=300).items()}
    shown |= {f"{key}-many": drawn for key, drawn in every_chart(20).items()}
    status, course = renamed(*messages()[::2])
    shown |= {
        "hostile-arms": charts.live_arms_chart(status, control=HOSTILE[0]),
        "hostile-shares": charts.live_shares_chart(course),
        "hostile-means": charts.live_means_chart(course, utc=False),
    }
    folder = tmp_path / "site"
    folder.mkdir()
    places = "".join(f'<div data-chart="{key}"></div>' for key in shown)
    (folder / "index.html").write_text(PAGE.format(places=places), encoding="utf-8")
    (folder / "vega.js").write_text(vega_script(), encoding="utf-8")
    (folder / "draw.js").write_text(DRAW, encoding="utf-8")
    (folder / "charts.json").write_text(json.dumps({key: charts.without_title(one) for key, one in shown.items()}))
    with site(folder) as address:
        opened = open_page(address, tmp_path)
    assert opened.complaints == []
    assert [url for url in opened.requests if not url.startswith((address, "data:"))] == []
    assert opened.dom.count('data-drawn="yes"') == len(shown)
    assert "<b>" not in re.sub(r"<script.*?</script>", "", opened.dom, flags=re.DOTALL)


def test_numbers_over_time_have_six_digits() -> None:
    _, _, course = messages()
    point = len(course.at) - 1
    for row in charts.rows_of(charts.live_means_chart(course))[-1:]:
        k = course.arms.index(row["arm"])
        assert row["mean"] == pytest.approx(float(course.mean[point, k]), rel=1e-5)
        assert np.isfinite(row["low"])
