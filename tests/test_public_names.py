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


def test_every_name_of_the_analysis_exists_and_is_documented():
    assert {"analyse", "compare", "Comparison", "Evidence", "Observations", "Report"} <= set(eq.analysis.__all__)
    for name in eq.analysis.__all__:
        assert getattr(eq.analysis, name).__doc__, name
    assert eq.analyse is eq.analysis.analyse


def test_unknown_names_are_attribute_errors():
    for module in (eq, eq.analysis):
        with pytest.raises(AttributeError, match="nonsense"):
            module.nonsense  # noqa: B018
        assert set(dir(module)) >= set(module.__all__)


def test_importing_loads_nothing_heavy():
    code = (
        "import sys, equipoise; "
        "heavy = ('numpy', 'numba', 'altair', 'typer', 'rich', 'sqlalchemy', 'alembic'); "
        "print([m for m in heavy if m in sys.modules]); "
        "equipoise.analysis.Report, equipoise.analysis.Comparison, equipoise.Client, equipoise.Experiment; "
        "print([m for m in heavy if m in sys.modules and m != 'rich']); "  # which httpx brings along
        "equipoise.ForcingBalance(reward_weight=0.5); equipoise.analyse; print('numba' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.split("\n")[:3] == ["[]", "[]", "False"]
