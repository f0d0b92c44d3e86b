"""Tests that are run in two sizes: a short one with every change, the full one for endurance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings


def short_and_full(short: Any, full: Any) -> list[Any]:
    """Return the two values of a parameter: the full one is marked `endurance`, which `./run test` leaves out."""
    return [pytest.param(short, id="short"), pytest.param(full, id="full", marks=pytest.mark.endurance)]


def given_short_and_full(short: int, full: int, *strategies: Any) -> Callable[[Callable[..., None]], Any]:
    """Return a decorator like `hypothesis.given` for a test with two numbers of examples."""

    def decorate(check: Callable[..., None]) -> Callable[..., None]:
        @pytest.mark.parametrize("n_examples", short_and_full(short, full))
        def test(n_examples: int) -> None:
            settings(max_examples=n_examples)(given(*strategies)(check))()

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        return test

    return decorate
