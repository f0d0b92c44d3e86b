"""The study of PooledBalance: its page says what its file of results says."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def study():
    """What prints the tables of the study."""
    spec = importlib.util.spec_from_file_location("beyond_tables", ROOT / "benchmarks" / "_beyond_tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def results():
    return json.loads((DOCS / "pooled-balance.json").read_text(encoding="utf-8"))["instances"]


def test_the_results_are_of_all_instances_and_of_two_hundred_runs(results):
    names = [one["name"] for one in results]
    assert len(names) == len(set(names)) == 236
    groups = [one["group"] for one in results]
    assert [groups.count(group) for group in ("paper", "real", "judging", "tuning")] == [9, 27, 100, 100]
    assert {one["policies"][name]["runs"] for one in results for name in ("eta = 1", "PooledBalance")} == {200}


def test_the_tables_of_the_page_follow_from_the_results(study, results, capsys):
    names = list(dict.fromkeys(name for one in results for name in one["policies"]))
    ablations = names[names.index("PooledBalance, as it is") :]
    study.print_tables(results, "PooledBalance", "eta = 1", "PooledBalance, windowed", ablations)
    printed = [line for line in capsys.readouterr().out.splitlines() if line]
    assert len(printed) > 200
    lines = (DOCS / "pooled-balance-study.md").read_text(encoding="utf-8").splitlines()
    begin = lines.index(printed[0])
    assert [line for line in lines[begin:] if line] == printed, "benchmarks/beyond.py prints it anew from its results"
    # The page has parts of these tables, and examples in one of its own.
    page = (DOCS / "pooled-balance.md").read_text(encoding="utf-8")
    page = page[page.index("## What was measured") : page.index("## When rewards change over time")]
    rows = [line for line in page.splitlines() if line.startswith("|")]
    own = rows.index("| where | example | n | eta = 1 | PooledBalance |")
    assert len(rows) > 60
    assert set(rows[:own] + rows[own + 11 :]) <= set(lines)
