"""The tables of docs/coverage-study.md, from the results of `coverage.py`."""

from __future__ import annotations

import math
from typing import Any

from _coverage_instances import CHOOSING, JUDGING

Result = dict[str, Any]
Bar = tuple[str, str, float | None, float | None, float, float]
"""What is measured, of which arms, the figure, its standard error, and the least and the most it should be."""

_TEXT = """# Coverage, studied

Do intervals and decisions keep their promise in adaptive experiments that are looked at after every reward, and what
does it cost in width? `./run python benchmarks/coverage.py --out docs/coverage-study.json` writes this page; it plays
{runs:,} runs of each set of arms unless a table says otherwise, and [the figures](coverage-study.json) have every
number. People are assigned by `PooledBalance` with windowed tracking, at a reward weight of 0.9 unless another is
named, and every reward arrives at once. The failure probability is 5 % for all arms together, or for all pairs.

*Ever missed* is the share of runs in which some interval excluded the true mean (or difference) after at least one
reward: for a valid method at most 5 %, up to the chance of simulation. *Width* is the half-width divided by that of the
t interval (Welch's for differences) that holds at one look, at the same failure probability, averaged over arms and
runs; an arm counts where it has an interval, and *shown* says how often it has one. *Former* are the methods that
Equipoise had before: an empirical-Bernstein sequence for rewards in a declared range, Robbins' normal mixture else.

Measured with Equipoise {version} on {machine}; seed {seed}.

## The bars

{bars}

## The arms that constants were chosen on

The scales of the mixtures, and what skewed rewards need, were chosen by the results of these arms.

{choosing}

Width, and arms that have an interval:

{choosing_widths}

## Arms that no constant was chosen on

{judging}

{judging_widths}

## Differences

All pairs at once. *Narrow* uses Welch's statistic from the number of rewards on that skewness allows, and joint
evidence before; *guaranteed* uses joint evidence always, which a declared range makes valid without approximation.

{pairs}

## Until the best arm is certified

Median number of people until all arms but one are beaten (looking at every tenth): by the average evidence over their
rivals, beside waiting until the leader's interval lies above all others. *Ruled out* is how often the best arm was ever
beaten. A dash means that fewer than half of the runs got there.

{certified}

## At the end

Coverage of the intervals of ordinary width for a number of people that was declared beforehand, in at most 2,000 runs:
of one arm or pair, and of all at once (95 % promised for both). Where arms are skewed or have few rewards the program
refuses these intervals; this table shows why.

{at_end}
"""


def page(results: Result) -> str:
    """Return the page in Markdown."""
    chosen, judged = (_of(results, group) for group in (CHOOSING, JUDGING))
    return _TEXT.format(
        **{name: results[name] for name in ("runs", "version", "machine", "seed")},
        bars=_table(["bar", "arms", "goal", "measured", "standard error", ""], _bar_rows(results)),
        choosing=_misses(chosen),
        choosing_widths=_widths(chosen),
        judging=_misses(judged),
        judging_widths=_widths(judged),
        pairs=_pairs(results["instances"]),
        certified=_certified(results["instances"]),
        at_end=_at_end(results["instances"]),
    )


def print_bars(results: Result) -> None:
    """Print what was measured beside what it should be."""
    print(_table(["bar", "arms", "goal", "measured", "standard error", ""], _bar_rows(results)))


def bars(results: Result) -> list[Bar]:
    """Return every bar of whose arms there are results."""
    known = {one["name"]: one for one in results["instances"]}
    found: list[Bar] = []

    def ever_missed(name: str, most: float, what: str = "arms_missed", words: str = "arms ever missed") -> None:
        if name in known:
            share = known[name]["looks"][-1][what]
            found.append((words, name, share, _error(share, known[name]["runs"]), 0.0, most))

    def width(name: str, most: float, key: str = "width", words: str = "width", place: int | None = None) -> None:
        if name in known:
            looks = known[name]["looks"]
            for look in looks[-1:] if place is None else looks[place : place + 1]:
                people = f"{name}, n = {look['people']:,}"
                found.append((words, people, look[key], look.get(f"{key}_se"), 0.0, most))

    bounded = {"3 Bernoulli, 0.1 to 0.5": 1.55, "3 Bernoulli, 0.01 to 0.03": 1.55, "22 Bernoulli, 0.02 to 0.3": 1.40}
    for name in (*bounded, "4 quiz scores"):
        ever_missed(name, 0.05)
    for name, most in bounded.items():
        width(name, most)
    width("22 Bernoulli, 0.02 to 0.3", 1.40, place=0)
    width("4 quiz scores", 0.60, "width_of_former", "width, of the former's", 1)
    gaussian = "5 Gaussian of the paper, w = 0.9", "5 Gaussian of the paper, w = 0.4"
    for name, most in (*((one, 0.05) for one in gaussian), ("5 lognormal(1)", 0.05), ("5 lognormal(1.5)", 0.08)):
        ever_missed(name, most)
    for name in gaussian:
        width(name, 1.55)
    of_pairs = {"2 Gaussian": 1.7, gaussian[0]: 1.5, gaussian[1]: 1.5, "10 Bernoulli, 0.1 to 0.2": 1.4}
    for name in (*of_pairs, "5 lognormal(1)", "3 Bernoulli, 0.1 to 0.5"):
        ever_missed(name, 0.05, "pairs_missed", "pairs ever missed")
    for name, most in of_pairs.items():
        width(name, most, "pairs_width", "width of pairs")
    for name in (*bounded, "4 quiz scores"):
        ever_missed(name, 0.05, "guaranteed_pairs_missed", "pairs ever missed, guaranteed")
    for name in (
        *gaussian,
        "5 Gaussian, one better by 0.3",
        "2 Gaussian",
        "10 Bernoulli, 0.1 to 0.2",
        "3 Bernoulli, 0.1 to 0.5",
    ):
        if name in known:
            times = known[name]["certified"]
            for words, rival in (
                ("people, of intervals apart: former", "former_apart"),
                ("the same: present", "apart"),
            ):
                if times["evidence"] and not times[rival]:
                    continue  # the rival takes longer than the runs, nobody knows by how much
                share = times["evidence"] / times[rival] if times["evidence"] else None
                found.append(
                    (f"certified after {words}", name, share, None, 0.0, 0.7 if rival == "former_apart" else 1.0)
                )
    for name in (*gaussian, "2 Gaussian", "5 lognormal(1)", "10 Bernoulli, 0.1 to 0.2"):
        ever_missed(name, 0.05, "best_missed", "best ever ruled out")
    for name in (*gaussian, "4 quiz scores", "22 Bernoulli, 0.02 to 0.3", "5 equal Gaussian"):
        if name in known:
            look, runs = known[name]["looks"][-1], min(known[name]["runs"], 2_000)
            for words, key, count in (
                ("covered at the end, one arm", "end_covered", runs * known[name]["n_arms"]),
                ("covered at the end, all arms", "end_all_covered", runs),
            ):
                found.append((words, name, look[key], _error(look[key], count), 0.94, 0.965))
    if results.get("look_ms") is not None:
        found.append(("one look, ms", "22 arms", results["look_ms"], None, 0.0, 1.0))
    return found


def is_reached(bar: Bar) -> bool:
    """Return whether a figure is where it should be, up to two standard errors of a share."""
    _, _, value, error, least, most = bar
    if value is None:
        return False
    slack = 2.0 * error if error is not None and "width" not in bar[0] else 0.0
    return least - slack <= value <= most + slack


def _bar_rows(results: Result) -> list[list[str]]:
    rows = []
    for bar in bars(results):
        what, arms, value, error, least, most = bar
        is_share = most < 0.1 or least > 0
        if is_share:
            goal = f"{_percent(least)} to {_percent(most)}" if least > 0 else f"at most {_percent(most)}"
            said = _percent(value), _percent(error)
        else:
            goal, said = f"at most {most:.2f}", (_number(value), _number(error, 3))
        rows.append([what, arms, goal, *said, "reached" if is_reached(bar) else "**missed**"])
    return rows


def _misses(instances: list[Result]) -> str:
    rows = [
        [
            one["name"],
            "yes" if one["range"] else "no",
            f"{look['people']:,}",
            f"{one['runs']:,}",
            *(_percent(look.get(key)) for key in ("arms_missed", "former_missed", "pairs_missed", "best_missed")),
        ]
        for one in instances
        for look in one["looks"][-1:]
    ]
    head = ["arms", "range declared", "n", "runs", "arms ever missed", "former", "pairs ever missed", "best ruled out"]
    return _table(head, rows)


def _widths(instances: list[Result]) -> str:
    rows = [
        [
            one["name"],
            f"{look['people']:,}",
            _percent(look["shown"], 0),
            *(_number(look[key]) for key in ("width", "former_width", "width_of_former")),
        ]
        for one in instances
        for look in one["looks"]
    ]
    return _table(["arms", "n", "shown", "width", "former", "ours / former"], rows)


def _pairs(instances: list[Result]) -> str:
    rows = [
        [
            one["name"],
            f"{look['people']:,}",
            _percent(look["pairs_missed"]),
            _percent(look["pairs_shown"], 0),
            _number(look["pairs_width"]),
            _percent(look.get("guaranteed_pairs_missed")),
            _number(look.get("guaranteed_pairs_width")),
        ]
        for one in instances
        for look in one["looks"][-1:]
        if "pairs_missed" in look
    ]
    head = ["arms", "n", "narrow: ever missed", "shown", "width", "guaranteed: ever missed", "width"]
    return _table(head, rows)


def _certified(instances: list[Result]) -> str:
    rows = []
    for one in instances:
        times = one.get("certified")
        if times and times["evidence"]:
            keys = ("evidence", "guaranteed", "apart", "former_apart")
            cells = [f"{times[key]:,.0f}" if times[key] else "-" for key in keys]
            rows.append([one["name"], *cells, _percent(one["looks"][-1]["best_missed"])])
    return _table(["arms", "evidence", "guaranteed", "intervals apart", "former ones apart", "ruled out"], rows)


def _at_end(instances: list[Result]) -> str:
    keys = ("end_covered", "end_all_covered", "end_pairs_covered", "end_all_pairs_covered")
    rows = [
        [one["name"], f"{look['people']:,}", *(_percent(look.get(key)) for key in keys)]
        for one in instances
        for look in one["looks"]
    ]
    return _table(["arms", "n", "one arm", "all arms", "one pair", "all pairs"], rows)


def _of(results: Result, group: str) -> list[Result]:
    return [one for one in results["instances"] if one["group"] == group]


def _error(share: float | None, runs: int) -> float | None:
    return None if share is None else math.sqrt(share * (1.0 - share) / runs)


def _percent(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{100 * value:.{digits}f} %"


def _number(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])
