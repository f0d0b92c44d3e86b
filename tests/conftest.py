"""Set-up shared by all tests."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# numba's cache does not notice a change in a kernel that another file calls; a new directory per state of them does.
_root = Path(__file__).parents[1]
_state = hashlib.sha256(b"".join(p.read_bytes() for p in sorted((_root / "src/equipoise/kernels").glob("*.py"))))
os.environ.setdefault("NUMBA_CACHE_DIR", str(_root / ".numba_cache" / _state.hexdigest()[:16]))

# The first example may compile a kernel, so no example has a deadline. Derandomised: a red build must be red again.
settings.register_profile(
    "project", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], max_examples=200
)
settings.load_profile("project")


@pytest.fixture(autouse=True)
def _forget_classes_of_the_test():
    """Policies and objectives are found by name; those that a test defines are gone when it ends."""
    import equipoise as eq

    families = [eq.Policy._family, eq.Objective._family]
    before = [dict(family) for family in families]
    yield
    for family, members in zip(families, before, strict=True):
        family.clear()
        family.update(members)
