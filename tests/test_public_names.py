"""The package shows what it says it shows, and importing it costs little."""

from __future__ import annotations

import subprocess
import sys

import pytest

import equipoise as eq


def test_every_public_name_exists_and_is_documented():
    for name in eq.__all__:
        value = getattr(eq, name)
        assert callable(value) or isinstance(value, eq.Objective), name
        assert value.__doc__, name


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="nonsense"):
        eq.nonsense  # noqa: B018
    assert set(dir(eq)) >= set(eq.__all__)


def test_importing_loads_nothing_heavy():
    code = (
        "import sys, equipoise; "
        "heavy = ('numpy', 'numba', 'altair', 'typer', 'rich', 'sqlalchemy', 'alembic'); "
        "print([m for m in heavy if m in sys.modules]); "
        "equipoise.ForcingBalance(reward_weight=0.5); print('numba' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.split("\n")[:2] == ["[]", "False"]
