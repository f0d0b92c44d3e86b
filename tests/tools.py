"""Programs beyond Python that some tests need."""

from __future__ import annotations

import os
import shutil

import pytest


def need(name: str) -> str:
    """Return where a program is; without it the test is skipped, or fails where nothing may be left out (.ci/run)."""
    found = shutil.which(name)
    if found is not None:
        return found
    reason = f"there is no {name}"
    if os.environ.get("EQUIPOISE_LEAVE_NOTHING_OUT"):
        pytest.fail(reason)
    pytest.skip(reason)
