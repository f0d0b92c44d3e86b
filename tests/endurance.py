"""Tests that are run in two sizes: a short one with every change, the full one for endurance."""

from __future__ import annotations

from typing import Any

import pytest


def short_and_full(short: Any, full: Any) -> list[Any]:
    """Return the two values of a parameter: the full one is marked `endurance`, which `./run test` leaves out."""
    return [pytest.param(short, id="short"), pytest.param(full, id="full", marks=pytest.mark.endurance)]
