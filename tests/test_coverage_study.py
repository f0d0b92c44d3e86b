"""How often intervals and decisions exclude the truth: the study's page, and a smaller study that is played here."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
FAILURE, RUNS = 0.05, 400
ALLOWED = {"5 lognormal(1.5)": 0.08}
"""How often intervals may exclude the truth where that is more than the failure probability: heavy tails, no range."""
PROMISED = [
    "3 Bernoulli, 0.1 to 0.5",
    "4 quiz scores",
    "5 Gaussian of the paper, w = 0.9",
    "5 equal Gaussian",
    "5 lognormal(1)",
    "5 lognormal(1.5)",
    "5 exponential",
    "5 Poisson(0.3)",
    "5 Laplace",
    "5 t, 5 degrees of freedom",
    "5 Beta(0.3, 3), in [0, 1]",
    "5 Bernoulli, 0.9 to 0.99, in [0, 1]",
    "5 rare amounts, 2 % of up to 1, in [0, 1]",
]


@pytest.fixture(scope="module")
def benchmarks():
    """Makes the modules of the benchmarks importable; at the end of the path, as one is named like a package."""
    sys.path.append(str(ROOT / "benchmarks"))
    yield
    sys.path.remove(str(ROOT / "benchmarks"))


@pytest.fixture(scope="module")
def results():
    return json.loads((DOCS / "coverage-study.json").read_text(encoding="utf-8"))


def most(name: str, runs: int) -> float:
    """Return the share of runs that may miss: what is allowed, and two standard errors."""
    allowed = ALLOWED.get(name, FAILURE)
    return allowed + 2.0 * math.sqrt(allowed * (1.0 - allowed) / runs)


def test_the_page_follows_from_the_results(benchmarks, results):
    from _coverage_instances import choosing, judging
    from _coverage_tables import page

    assert [one["name"] for one in results["instances"]] == [one.name for one in choosing() + judging()]
    assert (DOCS / "coverage-study.md").read_text(encoding="utf-8") == page(results)


def test_what_is_guaranteed_was_kept_in_all_runs_of_the_study(results):
    bounded = [one for one in results["instances"] if one["range"] is not None]
    assert len(bounded) >= 10
    for one in bounded:
        for look in one["looks"]:
            for key in ("arms_missed", "guaranteed_pairs_missed", "best_missed"):
                assert look.get(key, 0.0) <= most("", one["runs"]), (one["name"], look["people"], key)


@pytest.mark.endurance
@pytest.mark.parametrize("name", PROMISED)
def test_intervals_and_decisions_hold_at_all_times_as_often_as_they_promise(benchmarks, name):
    from _coverage_instances import choosing, judging
    from _coverage_runs import ARMS, BEST, JOINT, PAIRS, play

    (one,) = (one for one in choosing() + judging() if one.name == name)
    one = dataclasses.replace(one, checkpoints=one.checkpoints[:1])
    # Another seed than the study's, so that the study cannot have chosen what is played here.
    peaks = play(one, RUNS, seed=1_015, failure=FAILURE, workers=1).peaks[:, 0]
    n_pairs = one.n_arms * (one.n_arms - 1) / 2
    thresholds = {ARMS: math.log(2.0 * one.n_arms / FAILURE), BEST: -math.log(FAILURE)}
    thresholds |= dict.fromkeys((PAIRS, JOINT), math.log(2.0 * n_pairs / FAILURE))
    for which, threshold in thresholds.items():
        assert (peaks[:, which] >= threshold).mean() <= most(name, RUNS), which
    assert peaks[:, ARMS].max() > 0
