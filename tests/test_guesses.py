"""Guesses with ranges: how they are written, and what is drawn from them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.planner.guesses import ANY, DURATION, POSITIVE, SHARE, Guess, Scale

SCALES = {"any": ANY, "positive": POSITIVE, "share": SHARE, "quiz": Scale(0.0, 20.0), "below": Scale(None, 5.0)}


@st.composite
def ranged(draw):
    scale = SCALES[draw(st.sampled_from(sorted(SCALES)))]
    low, high = scale.low, scale.high
    bottom = low + 1e-6 if low is not None else -1e4
    top = high - 1e-6 if high is not None else 1e4
    ends = sorted(draw(st.lists(st.floats(bottom, top), min_size=3, max_size=3, unique=True)))
    if ends[2] - ends[0] < 1e-6:
        ends[2] = min(top, ends[0] + 1e-3)
        ends[0], ends[1] = min(ends[0], ends[2] - 1e-4), min(max(ends[1], ends[0]), ends[2])
        ends[1] = max(ends[0], ends[1])
    return Guess(ends[1], ends[0], ends[2], scale)


@given(ranged())
def test_the_range_holds_exactly_eight_in_ten(guess):
    for probability, value in ((0.1, guess.low), (0.5, guess.value), (0.9, guess.high)):
        assert guess.draw(probability) == pytest.approx(value, rel=1e-9, abs=1e-9)


@given(ranged(), st.floats(0, 1), st.floats(0, 1))
def test_draws_grow_with_the_uniform_number_and_stay_within_what_is_possible(guess, first, second):
    low, high = sorted((guess.draw(first), guess.draw(second)))
    assert (guess.draw(min(first, second)), guess.draw(max(first, second))) == (low, high)
    assert guess.scale.low is None or low >= guess.scale.low
    assert guess.scale.high is None or high <= guess.scale.high


def test_draws_have_the_stated_quantiles():
    guess = Guess.of("rate", "30% (20% to 55%)", SHARE)
    n = 20_000
    drawn = np.array([guess.draw(uniform) for uniform in np.random.default_rng(1).random(n)])
    for probability, value in ((0.1, 0.2), (0.5, 0.3), (0.9, 0.55)):
        error = math.sqrt(probability * (1 - probability) / n)
        assert abs(np.mean(drawn < value) - probability) < 4 * error


def test_a_guess_without_a_range_draws_its_value():
    guess = Guess("10%")
    assert guess.is_sure and {guess.draw(uniform) for uniform in (0.0, 0.3, 0.999)} == {0.1}
    assert guess.ends == (0.1, 0.1)


@pytest.mark.parametrize(
    ("scale", "given", "expected"),
    [
        (SHARE, "10%", (0.1, None, None)),
        (SHARE, 0.1, (0.1, None, None)),
        (SHARE, 1, (1.0, None, None)),
        (SHARE, "40% to 60%", (0.5, 0.4, 0.6)),
        (SHARE, "40 to 60%", (0.5, 0.4, 0.6)),
        (SHARE, "0.4 to 0.6", (0.5, 0.4, 0.6)),
        (SHARE, (0.4, 0.6), (0.5, 0.4, 0.6)),
        (SHARE, ["40%", "60%"], (0.5, 0.4, 0.6)),
        (SHARE, (0.4, 0.45, 0.6), (0.45, 0.4, 0.6)),
        (SHARE, "45% (40% to 60%)", (0.45, 0.4, 0.6)),
        (SHARE, {"guess": "45%", "low": 0.4, "high": 0.6}, (0.45, 0.4, 0.6)),
        (SHARE, {"guess": 0.45}, (0.45, None, None)),
        (SHARE, Guess("45%", "40%", "60%"), (0.45, 0.4, 0.6)),
        (SHARE, Guess("40% to 60%"), (0.5, 0.4, 0.6)),
        (POSITIVE, "1,000 to 4,000", (2000.0, 1000.0, 4000.0)),
        (POSITIVE, 96, (96.0, None, None)),
        (DURATION, "8h", (28_800.0, None, None)),
        (DURATION, "4 to 9 h", (21_600.0, 14_400.0, 32_400.0)),
        (DURATION, ("1 day", "4 days"), (172_800.0, 86_400.0, 345_600.0)),
        (ANY, "-2 to 4", (1.0, -2.0, 4.0)),
        (ANY, -3, (-3.0, None, None)),
    ],
)
def test_forms_in_which_people_write_guesses(scale, given, expected):
    guess = Guess.of("it", given, scale)
    assert (guess.value, guess.low, guess.high) == pytest.approx(expected)
    assert Guess.of("it", guess.plain(), scale) == guess


WRONG = [
    (
        SHARE,
        "often",
        "rate must be a guess such as 10%, or a range that is 8 in 10 sure such as 8% to 12%; got 'often'",
    ),
    (SHARE, True, "rate must be a guess such as 10%, or a range that is 8 in 10 sure such as 8% to 12%; got True"),
    (SHARE, None, "rate must be a guess such as 10%, or a range that is 8 in 10 sure such as 8% to 12%; got None"),
    (
        SHARE,
        float("nan"),
        "rate must be a guess such as 10%, or a range that is 8 in 10 sure such as 8% to 12%; got nan",
    ),
    (SHARE, 30, "rate must be from 0 to 1; got 30\nhint: 30 in a hundred is 30%"),
    (
        SHARE,
        "9-11%",
        "rate must be a guess such as 10%, or a range that is 8 in 10 sure such as 8% to 12%; got '9-11%'\n"
        "hint: write 9% to 11%",
    ),
    (SHARE, "130%", "rate must be from 0 to 1; got '130%'"),
    (SHARE, -0.1, "rate must be from 0 to 1; got -0.1"),
    (SHARE, "60% to 40%", "rate.low must be less than high, which is 0.4; got 0.6\nhint: turn them round: 0.4 to 0.6"),
    (SHARE, "40% to 40%", "rate.low must be less than high, which is 0.4; got 0.4\nhint: leave the range out"),
    (
        SHARE,
        "0% to 10%",
        "rate.low must be between 0 and 1, as one in ten lies beyond it; got 0.0\n"
        "hint: move that end inwards, or give the guess without a range",
    ),
    (
        SHARE,
        (0.5, 1.2),
        "rate.high must be between 0 and 1, as one in ten lies beyond it; got 1.2\n"
        "hint: move that end inwards, or give the guess without a range",
    ),
    (SHARE, (0.4, 0.7, 0.6), "rate.guess must be within its range, 0.4 to 0.6; got 0.7"),
    (SHARE, {"low": 0.4}, "rate.high is missing: a range has both ends; got only low"),
    (SHARE, {"guess": 0.4, "hi": 0.5}, "rate.hi is unknown; a guess has guess, low and high"),
    (SHARE, {}, "rate must be a guess such as 10%, or a range that is 8 in 10 sure such as 8% to 12%; got {}"),
    (POSITIVE, "-5", "rate must be at least 0; got '-5'"),
    (
        DURATION,
        "soon",
        "rate must be a guess such as 8h, or a range that is 8 in 10 sure such as 6h to 10h; got 'soon'",
    ),
]


@pytest.mark.parametrize(("scale", "given", "message"), WRONG)
def test_errors_say_what_would_work(scale, given, message):
    with pytest.raises(eq.InvalidInput) as caught:
        Guess.of("rate", given, scale)
    assert str(caught.value) == message


def test_a_measurement_is_a_guess_whose_range_is_its_standard_error():
    guess = Guess.measured(10.0, 2.0, ANY)
    assert guess.ends == pytest.approx((10 - 1.2816 * 2, 10 + 1.2816 * 2), abs=1e-3)
    assert Guess.measured(0.02, 0.02, SHARE).low > 0
    assert Guess.measured(3.0, 0.0, ANY).is_sure
