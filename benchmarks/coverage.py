"""Do intervals and decisions hold as often as they promise, and how wide are they: the study of docs/coverage-study.md.

    python benchmarks/coverage.py [--smoke] [--runs 10000] [--workers 2] [--only NAME] [--out docs/coverage-study.json]

Plays adaptive experiments and looks after every reward: did an interval ever exclude the truth? It plays what the file
of results lacks (so it can be stopped and started again) and writes it, and beside it the page in Markdown.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

if __name__ != "__main__":
    # numba imports the package `coverage` if there is one, and finds this file from any script beside it.
    raise ImportError("benchmarks/coverage.py is a script")

from _coverage_results import measure
from _coverage_tables import page, print_bars


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--runs", type=int, default=10_000, help="of each set of arms")
    parser.add_argument("--workers", type=int, default=None, help="threads; one per core by default")
    parser.add_argument("--only", default="", help="play only arms whose name contains this")
    parser.add_argument("--out", type=Path, default=Path("coverage-study.json"))
    chosen = parser.parse_args()
    if chosen.smoke:
        chosen.runs, chosen.only = 20, "quiz"
        chosen.out = Path(tempfile.mkdtemp()) / "coverage-study.json"
    results = measure(chosen.out, chosen.runs, chosen.workers, chosen.only, smoke=chosen.smoke)
    print_bars(results)
    if not chosen.only:
        chosen.out.with_suffix(".md").write_text(page(results), encoding="utf-8")
        print(f"{chosen.out.with_suffix('.md')} has all tables", file=sys.stderr)


main()
