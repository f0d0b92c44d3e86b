"""The tables of `beyond.py`, in Markdown, from its file of results."""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.paper.items.outlook import RIVALS

Result = dict[str, Any]
STEPS = (1_000, 5_000, 25_000)


def print_tables(results: list[Result], ours: str, paper: str, randomised: str, ablations: list[str]) -> None:
    """Print all tables."""
    print("\n## Is it ever worse?\n")
    _print_never_worse(results, ours)
    print("\n## Where it is worse by more than two standard errors\n")
    _print_failures(results, ours, paper)
    print("\n## How much better in the middle phase\n")
    _print_middle_phase(results, ours, paper)
    print("\n## Some instances\n")
    _print_instances(results, [paper, "eta = 0.3", "eta = 0.1", ours, randomised])
    print("\n## Other policies that aim at the trade-off\n")
    _print_others(results, ours, paper)
    print("\n## What each part contributes\n")
    _print_ablations(results, ablations)


def groups(results: list[Result]) -> dict[str, list[Result]]:
    """Return the instances by group, in order, and all of them."""
    found: dict[str, list[Result]] = {}
    for one in results:
        found.setdefault(one["group"], []).append(one)
    return found | {"all": results}


def worse(one: Result, name: str) -> np.ndarray:
    """Say at which checkpoints a policy is worse than the paper's by more than two standard errors."""
    figures = one["policies"][name]
    return np.array(figures["difference"]) > 2 * np.array(figures["difference_se"]) + 1e-9


def longer_tail(one: Result, name: str, paper: str) -> np.ndarray:
    """Say at which checkpoints the 0.95-quantile is larger by more than two standard errors (bootstrap)."""
    figures, other = one["policies"][name], one["policies"][paper]
    gap = np.array(figures["quantile"]) - np.array(other["quantile"])
    return gap > 2 * np.array(figures["quantile_difference_se"]) + 1e-9


def ratios(one: Result, name: str, paper: str) -> np.ndarray:
    """Return how many times smaller the mean regret is than the paper's."""
    return np.array(one["policies"][paper]["mean"]) / np.maximum(one["policies"][name]["mean"], 1e-12)


def in_middle_phase(one: Result) -> np.ndarray:
    """Say at which checkpoints the paper's forcing exceeds the smallest optimal number of pulls; 3 rounds at least."""
    steps = np.array(one["checkpoints"])
    return (np.sqrt(steps) > steps * one["smallest_share"]) & (steps > 3 * one["n_arms"])


def _print_never_worse(results: list[Result], ours: str) -> None:
    _print_row(
        "instances", "comparisons", "better", "worse", "0.95-quantile worse", "worse, of those that differ", head=True
    )
    for group, members in groups(results).items():
        bad = np.concatenate([worse(one, ours) for one in members])
        tails = np.concatenate([longer_tail(one, ours, "eta = 1") for one in members])
        good = np.concatenate(
            [
                np.array(one["policies"][ours]["difference"])
                < -2 * np.array(one["policies"][ours]["difference_se"]) - 1e-9
                for one in members
            ]
        )
        differ = np.concatenate([np.abs(one["policies"][ours]["difference"]) > 1e-9 for one in members])
        counts = [f"{int(some.sum()):,} ({100 * some.mean():.1f}%)" for some in (good, bad, tails)]
        of_those = f"{100 * bad.sum() / max(1, differ.sum()):.1f}%"
        _print_row(f"{group} ({len(members)})", f"{bad.size:,}", *counts, of_those)


def _print_failures(results: list[Result], ours: str, paper: str) -> None:
    """Print every one, the largest first."""
    _print_row("instance", "n", "eta = 1", "PooledBalance", "excess in s.e.", "of the largest of eta = 1", head=True)
    found = []
    for one in results:
        mine, other = one["policies"][ours], one["policies"][paper]
        for k in np.flatnonzero(worse(one, ours)):
            error = mine["difference"][k] / max(mine["difference_se"][k], 1e-12)
            excess = mine["difference"][k] / max(other["mean"])
            found.append((excess, error, one["name"], one["checkpoints"][k], other["mean"][k], mine["mean"][k]))
    for excess, error, name, step, other, mine in sorted(found, reverse=True):
        _print_row(name, f"{step:,}", f"{other:.3g}", f"{mine:.3g}", f"{error:.1f}", f"{100 * excess:.1f}%")
    small = sum(excess < 0.05 for excess, *_ in found)
    clear = sum(error > 3 for _, error, *_ in found)
    print(f"\n{len(found)} in all, {clear} of them by more than three standard errors;")
    print(f"{small} by less than 5% of the largest mean that eta = 1 has there.")
    never = sum(not worse(one, ours).any() for one in results)
    print(f"On {never} of {len(results)} instances it is worse at no checkpoint.")


def _print_middle_phase(results: list[Result], ours: str, paper: str) -> None:
    head = ("instances", "median", "at its last step", "best")
    _print_row("smallest optimal share, times K", *head, *(f"judging {word}" for word in head), head=True)
    judging = [one for one in results if one["group"] == "judging"]
    classes = {"any": (0.0, 1.1), "below 0.2": (0.0, 0.2), "0.2 to 0.6": (0.2, 0.6), "above 0.6": (0.6, 1.1)}
    for label, bounds in classes.items():
        _print_row(label, *_middle_phase(results, ours, paper, *bounds), *_middle_phase(judging, ours, paper, *bounds))


def _middle_phase(results: list[Result], ours: str, paper: str, low: float, high: float) -> list[str]:
    found = [
        (float(np.median(some)), float(some[-1]), float(some.max()))
        for one in results
        if low <= one["smallest_share"] * one["n_arms"] < high
        for some in [ratios(one, ours, paper)[in_middle_phase(one)]]
        if some.size
    ]
    return [str(len(found)), *(f"{value:.2g}" for value in (np.median(found, axis=0) if found else ()))]


def _print_instances(results: list[Result], names: list[str]) -> None:
    _print_row("instance", "n", *names, head=True)
    for one in results:
        if one["group"] in ("paper", "real"):
            for step in STEPS:
                if step in one["checkpoints"]:
                    k = one["checkpoints"].index(step)
                    means = [one["policies"][name]["mean"][k] if name in one["policies"] else None for name in names]
                    _print_row(one["name"], f"{step:,}", *("" if mean is None else f"{mean:.3g}" for mean in means))


def _print_others(results: list[Result], ours: str, paper: str) -> None:
    rivals = ["eta = 0.3", "eta = 0.1", "ThompsonBalance", *RIVALS, "OptimisticBalance", "NaiveUCB", "UCBExplore"]
    names = [paper, ours, *rivals]
    _print_row("instance", "n", *names, head=True)
    members = [one for one in results if one["group"] == "paper" and rivals[-1] in one["policies"]]
    for one, step in ((one, step) for one in members for step in STEPS if step in one["checkpoints"]):
        k = one["checkpoints"].index(step)
        _print_row(one["name"], f"{step:,}", *(f"{one['policies'][name]['mean'][k]:.3g}" for name in names))
    print("\nRegret, times ours: geometric mean over instances and checkpoints after the first three rounds\n")
    _print_row("instances", *rivals, paper, head=True)
    played = [one for one in results if rivals[-1] in one["policies"]]
    for group, some in groups(played).items():
        _print_row(group, *(f"{np.exp(np.mean(_log_ratios(some, name, ours))):.2f}" for name in [*rivals, paper]))
    print("\nHow often a policy that samples is better or worse than ours, by more than two standard errors\n")
    _print_row("policy", "up to 20 rounds: better", "worse", "after 20 rounds: better", "worse", head=True)
    sampling, best = ["ThompsonBalance", *RIVALS], []
    for name in sampling:
        cells = []
        for late in (False, True):
            excess = np.concatenate([_excess(one, name, ours, late=late) for one in played])
            cells += [f"{100 * np.mean(some):.0f}%" for some in (excess < -2, excess > 2)]
        _print_row(name, *cells)
        found = [_best_ratio(one, name, ours) for one in played]
        best += [(name, *some) for some in sorted(filter(None, found), reverse=True)[:4]]
    print("\nWhere each of them is best in comparison, after 20 rounds\n")
    _print_row("policy", "instance", "n", "its regret", "PooledBalance", "difference in s.e.", head=True)
    for name, _, instance, step, theirs, mine, errors in best:
        _print_row(name, instance, f"{step:,}", f"{theirs:.3g}", f"{mine:.3g}", f"{errors:.1f}")


def _excess(one: Result, name: str, ours: str, *, late: bool) -> np.ndarray:
    """Return by how many standard errors a policy has more regret than ours, after 20 rounds or before.

    Both are known by their differences to the paper's rule in the same runs, of which we have more.
    """
    steps, rounds = np.array(one["checkpoints"]), one["n_arms"]
    theirs, mine = one["policies"][name], one["policies"][ours]
    gap = np.array(theirs["difference"]) - np.array(mine["difference"])
    error = np.hypot(theirs["difference_se"], mine["difference_se"])
    chosen = steps > 20 * rounds if late else (steps > 2 * rounds) & (steps <= 20 * rounds)
    return (gap / np.maximum(error, 1e-12))[chosen]


def _best_ratio(one: Result, name: str, ours: str) -> tuple[float, str, int, float, float, float] | None:
    """Return where, after 20 rounds, a policy is best in comparison, by two standard errors; None if nowhere."""
    excess, steps = _excess(one, name, ours, late=True), np.array(one["checkpoints"])
    late = np.flatnonzero(steps > 20 * one["n_arms"])[excess < -2]
    found = []
    for k in late:
        theirs, mine = one["policies"][name]["mean"][k], one["policies"][ours]["mean"][k]
        errors = float(-excess[np.flatnonzero(steps > 20 * one["n_arms"]) == k][0])
        found.append((mine / max(theirs, 1e-12), one["name"], int(steps[k]), theirs, mine, errors))
    return max(found, default=None)


def _log_ratios(results: list[Result], name: str, ours: str) -> np.ndarray:
    """Return log(regret / ours) at all checkpoints of all instances after three rounds."""
    found = []
    for one in results:
        means, base = (np.maximum(one["policies"][some]["mean"], 1e-12) for some in (name, ours))
        found.append(np.log(means / base)[np.array(one["checkpoints"]) > 3 * one["n_arms"]])
    return np.concatenate(found)


def _print_ablations(results: list[Result], ablations: list[str]) -> None:
    """Print how each compares with the first, which is the whole rule in as many runs."""
    members = [one for one in results if ablations and ablations[0] in one["policies"]]
    if not members:  # a file of results without them
        return
    _print_row("rule", "regret, times that of the whole rule", "largest", "worse than eta = 1", head=True)
    for name in ablations:
        every = _log_ratios(members, name, ablations[0])
        share = 100 * np.concatenate([worse(one, name) for one in members]).mean()
        _print_row(name, f"{np.exp(every.mean()):.2f}", f"{np.exp(every.max()):.1f}", f"{share:.1f}%")


def _print_row(*cells: str, head: bool = False) -> None:
    print("| " + " | ".join(cells) + " |")
    if head:
        print("|" + "---|" * len(cells))
