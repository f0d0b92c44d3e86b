"""Columns of decisions from data frames: what is read, and what is said of a frame that cannot be read."""

from __future__ import annotations

from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.analysis.attributes import Attribute
from equipoise.analysis.observations import Observations

COLUMNS = {
    "arm": ["pie", "line", "pie", "bar"],
    "reward": [0.5, 1, None, 0.25],
    "day": [3, 1, 2, 4],
    "age": [9, None, 8, 10],
    "class": ["4b", "4a", None, "4b"],
    "new": [True, None, False, True],
}
FRAMES = {
    "lists": lambda: COLUMNS,
    "rows": lambda: [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)],
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas, nullable": lambda: pd.DataFrame(COLUMNS).convert_dtypes(),
    "pandas, categories": lambda: pd.DataFrame(COLUMNS).astype({"arm": "category", "class": "category"}),
    "pandas, objects": lambda: pd.DataFrame(COLUMNS, dtype=object),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "polars, lazy": lambda: pl.LazyFrame(COLUMNS),
    "polars, categories": lambda: pl.DataFrame(COLUMNS).with_columns(pl.col("arm", "class").cast(pl.Categorical)),
}


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_any_table_gives_the_same_columns(make):
    found = Observations.from_frame(make(), at="day", attributes=["age", "class", "new"])
    assert found.arms == ("pie", "line", "bar")
    assert found.arm.tolist() == [1, 0, 0, 2]
    np.testing.assert_array_equal(found.reward, [1, np.nan, 0.5, 0.25])
    assert found.counted_after.tolist() == [1, -1, 3, 4]
    assert found.counted_order.tolist() == [0, 2, 3]
    age, school_class, new = found.attributes.values()
    np.testing.assert_array_equal(age.values, [np.nan, 8, 9, 10])
    assert school_class.categories == ("4a", "4b") and school_class.codes.tolist() == [0, -1, 1, 1]
    assert new.categories == ("false", "true") and new.codes.tolist() == [-1, 0, 1, 1]
    assert found.probability is None and found.probabilities is None and found.until == 4


def test_a_csv_file_gives_the_same_columns(tmp_path):
    path = tmp_path / "people.csv"
    text = pd.DataFrame(COLUMNS).to_csv(index=False)
    path.write_text(text.replace("\n", "\n\n", 1), encoding="utf-8")
    found = Observations.from_frame(path, at="day", attributes=["age", "class", "new"])
    assert found.arm.tolist() == [1, 0, 0, 2]
    np.testing.assert_array_equal(found.reward, [1, np.nan, 0.5, 0.25])
    np.testing.assert_array_equal(found.attributes["age"].values, [np.nan, 8, 9, 10])
    assert found.attributes["class"].codes.tolist() == [0, -1, 1, 1]
    path.write_text("arm,reward\na,1\n\nb,much\n", encoding="utf-8")
    with pytest.raises(
        eq.errors.InvalidInput, match=r"column 'reward' must be a number or empty; got 'much' \(line 4\)"
    ):
        Observations.from_frame(path)


def test_times_are_instants_texts_or_seconds():
    instants = [datetime(1970, 1, 2, tzinfo=UTC), datetime(1970, 1, 1, 12, tzinfo=UTC)]
    frames = [
        {"at": instants},
        {"at": [one.replace(tzinfo=None) for one in instants]},
        {"at": ["1970-01-02T01:00+01:00", "1970-01-01T12:00:00"]},
        {"at": [86_400, 43_200]},
        {"at": np.array(["1970-01-02", "1970-01-01T12"], "datetime64[ns]")},
        pd.DataFrame({"at": instants}),
        pl.DataFrame({"at": instants}),
    ]
    for frame in frames:
        columns = {"arm": ["a", "b"], "reward": [1, 2], "at": frame["at"]}
        assert Observations.from_frame(columns, at="at").at.tolist() == [43_200, 86_400]
    days = {"arm": ["a", "b"], "reward": [1, 2], "at": [date(1970, 1, 2), date(1970, 1, 1)]}
    assert Observations.from_frame(days, at="at").at.tolist() == [0, 86_400]


def test_rewards_enter_when_they_are_reported():
    frame = {"arm": list("abab"), "reward": [1, 2, 3, None], "at": [0, 10, 20, 30], "told": [25, 10, None, None]}
    found = Observations.from_frame(frame, at="at", rewarded_at="told")
    # The third has no time, so it came at once; the second came right after its decision.
    assert found.counted_after.tolist() == [3, 2, 3, -1]
    assert found.counted_order.tolist() == [1, 2, 0]
    np.testing.assert_array_equal(found.rewarded_at, [25, 10, np.nan, np.nan])


@given(
    st.lists(st.tuples(st.integers(0, 20), st.none() | st.integers(0, 10)), min_size=2, max_size=30),
    st.randoms(use_true_random=False),
)
def test_what_had_been_counted_before_a_decision_is_what_had_been_reported(delays, random):
    at = sorted(when for when, _ in delays)
    told = [None if delay is None else when + delay for when, (_, delay) in zip(at, delays, strict=True)]
    arms = ["a", "b"] + [random.choice("ab") for _ in delays[2:]]
    frame = {"arm": arms, "reward": [0.0] * len(at), "at": at, "told": told}
    found = Observations.from_frame(frame, at="at", rewarded_at="told")
    for decision in range(len(at)):
        for other in range(decision):
            # Reported before the decision; what is reported at its instant counts after it.
            early = told[other] is None or told[other] < at[decision]
            assert (found.counted_after[other] <= decision) == early
    after = found.counted_after[found.counted_order]
    assert (np.diff(after) >= 0).all() and sorted(found.counted_order) == list(range(len(at)))


def test_probabilities_are_columns_or_numbers():
    frame = {"arm": ["a", "b", "b"], "reward": [1, 0, 1], "pa": [0.25, 0.5, 1 / 3], "probability": [0.25, 0.5, 2 / 3]}
    frame["pb"] = [1 - share for share in frame["pa"]]
    found = Observations.from_frame(frame, probabilities={"b": "pb", "a": "pa"})
    assert found.probabilities.tolist() == [[0.25, 0.75], [0.5, 0.5], [1 / 3, 1 - 1 / 3]]
    np.testing.assert_allclose(found.probability, [0.25, 0.5, 2 / 3])
    constant = Observations.from_frame({"arm": ["a", "b"], "reward": [1, 0]}, probabilities={"a": 0.2, "b": 0.8})
    assert constant.probability.tolist() == [0.2, 0.8]


def frame(**columns):
    return {"arm": ["a", "b", "b"], "reward": [1, 0, 1]} | columns


@pytest.mark.parametrize(
    ("columns", "settings", "message"),
    [
        (frame(), {"reward": "score"}, "the frame has no column 'score'; its columns are arm, reward"),
        (frame(reward=[1, "x", 2]), {}, r"column 'reward' must be a number or empty; got 'x' \(row 1\)"),
        (frame(reward=[1, "2", 2]), {}, r"must be a number or empty; got '2' \(row 1\)"),
        (frame(reward=[1, 2, np.inf]), {}, r"must be finite and at most 1e\+70|must be finite"),
        (frame(reward=[None] * 3), {}, "must have at least one reward; it is empty"),
        (frame(), {"reward_range": (0, 0.5)}, r"must be at most 0.5, as reward_range says; got 1 \(row 0\)"),
        (frame(), {"reward_range": (1, 0)}, r"reward_range must be a lowest and a highest reward; got \(1, 0\)"),
        (frame(probability=[0.5, 0, 1]), {}, r"must be in \(0, 1\], .* got 0 \(row 1\)"),
        (frame(probability=[0.5, None, 1]), {}, r"must be in \(0, 1\], .* got None \(row 1\)"),
        (frame(), {"probability": "p"}, "has no column 'p'"),
        (frame(), {"probabilities": {"a": 1.0}}, "probabilities must name every arm once: a, b; got a"),
        (frame(), {"probabilities": {"a": 0.5, "b": 0.6}}, r"must add up to 1 in every row; got 1.1 \(row 0\)"),
        (
            frame(),
            {"probabilities": {"a": 1.0, "b": 0.0}},
            r"could be chosen, but has probability 0; got 'b' \(row 1\)",
        ),
        (frame(), {"probabilities": {"a": 0.5, "b": True}}, "a column or a number in \\[0, 1\\]; got True for arm 'b'"),
        (frame(probability=[0.5, 0.4, 0.5]), {"probabilities": {"a": 0.5, "b": 0.5}}, r"must agree with .* \(row 1\)"),
        (frame(), {"arms": ["a", "c"]}, r"must be one of a, c; got 'b' \(row 1\)"),
        (frame(arm=["a", None, "b"]), {}, r"must name the arm of every row; got none \(row 1\)"),
        (frame(arm=["a", " ", "b"]), {}, r"must name the arm of every row; got none \(row 1\)"),
        (frame(arm=["a", "a", "a"]), {}, "must name at least two arms to compare; got only 'a'"),
        (frame(reward=[1, 2]), {}, "all columns must have one value per row; got: arm has 3, reward has 2"),
        ({"arm": [], "reward": []}, {}, "frame must have at least one row"),
        (7, {}, "frame must be a data frame or a mapping of columns; got 'int'"),
        (frame(at=[1, "soon", 2]), {"at": "at"}, r"must be a time, as .* got 'soon' \(row 1\)"),
        (frame(at=[1, None, 2]), {"at": "at"}, r"must be a time in every row; got None \(row 1\)"),
        (
            frame(at=[1, 2, 3], told=[1, 1, 3]),
            {"at": "at", "rewarded_at": "told"},
            r"before the decision; got 1.*row 1",
        ),
        (frame(), {"direction": "up"}, "direction must be one of maximise, minimise; got 'up'"),
        (
            frame(x=[1, 2, "3"]),
            {"attributes": ["x"]},
            r"of one type; got the number 1 \(row 0\) and the text '3' \(row 2\)",
        ),
        (frame(x=[None, "a", True]), {"attributes": ["x"]}, r"got the text 'a' \(row 1\) and True \(row 2\)"),
        (
            frame(x=[1, [2], 3]),
            {"attributes": ["x"]},
            r"must be numbers, texts, or true and false; got \[2\] \(row 1\)",
        ),
        (frame(x=[1, 2, np.inf]), {"attributes": ["x"]}, r"must be finite numbers; got inf \(row 2\)"),
    ],
)
def test_what_is_wrong_with_a_frame_is_said_with_its_row(columns, settings, message):
    with pytest.raises(eq.errors.InvalidInput, match=message):
        Observations.from_frame(columns, **settings)


def test_two_columns_of_one_name_are_refused():
    twice = pd.DataFrame([["a", 1, 2], ["b", 3, 4]], columns=["arm", "reward", "reward"])
    with pytest.raises(eq.errors.InvalidInput, match="the frame has several columns 'reward'"):
        Observations.from_frame(twice)


def test_arms_of_a_frame_are_named_in_the_order_given_and_may_have_no_rows():
    found = Observations.from_frame(frame(), arms=["c", "b", "a"])
    assert found.arms == ("c", "b", "a") and found.arm.tolist() == [2, 1, 1]
    assert found.per_arm().tolist() == [0, 2, 1]
    numbered = Observations.from_frame({"arm": [1, 0, 1], "reward": [1, 2, 3]})
    assert numbered.arms == ("1", "0")


def test_few_numbers_can_be_groups_and_many_cannot():
    grade = Attribute.of("grade", [10, 9.5, None, -1])
    assert grade.as_category().categories == ("-1", "9.5", "10")
    assert grade.as_category().codes.tolist() == [2, 1, -1, 0]
    with pytest.raises(eq.errors.InvalidInput, match="'grade' is a number"):
        _ = grade.codes
    with pytest.raises(eq.errors.InvalidInput, match="has 30 different values; at most 20 can make groups"):
        Attribute.of("score", range(30)).as_category()


@given(st.lists(st.none() | st.text(max_size=3), max_size=20), st.randoms(use_true_random=False))
def test_categories_stand_for_their_texts(texts, random):
    attribute = Attribute.of("x", texts)
    if attribute.kind == "category":
        read = [None if code < 0 else attribute.categories[code] for code in attribute.codes]
        assert read == texts
        order = np.array(random.sample(range(len(texts)), len(texts)), np.int64)
        assert attribute.taken(order).codes.tolist() == attribute.codes[order].tolist()
    else:
        assert not attribute.known.any()


def test_a_report_says_what_data_collected_elsewhere_lack():
    frame = {"arm": ["a", "b"] * 10, "reward": [0, 1, 1, 0] * 5}
    assert [note.partition(":")[0] for note in eq.analyse(frame).notes] == [
        "No probabilities are given",
        "No times of assignments and times of rewards are given",
    ]
    times = [f"2027-03-{1 + i:02}" for i in range(20)]
    table = frame | {"p": [0.5] * 20, "asked": times, "told": times}
    report = eq.analyse(table, probabilities={"a": "p", "b": 0.5}, at="asked", rewarded_at="told")
    assert report.notes == ()
