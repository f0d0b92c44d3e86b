"""Two experiments for tests that kill processes, and a check of what is left of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import equipoise as eq

NAMES = ("one", "other")


def create(url: str) -> None:
    """Make the two experiments."""
    with eq.open_store(url) as store:
        for name, missing in zip(NAMES, (None, eq.WaitForReward(window_seconds=1e6)), strict=True):
            policy = eq.ForcingBalance(reward_weight=0.6, tracking="windowed")
            eq.Experiment.create(store, name, arms=["line", "pie", "none"], policy=policy, seed=7, missing=missing)


def problems(url: str, answers: Iterable[tuple[str, str, Any]]) -> list[str]:
    """Return what is wrong with a store, given what it has answered; nothing, it is hoped.

    An answer is a kind, an experiment, and pairs of a unit and its arm or reward; an error is a kind and a message.
    """
    wrong = [f"error shown: {name}" for kind, name, _ in answers if kind == "error"]
    with eq.open_store(url) as store:
        for name in NAMES:
            experiment = eq.Experiment.open(store, name)
            try:
                experiment.verify()
            except eq.VerificationFailed as failed:
                wrong.append(f"verify: {failed}")
            facts = recorded(experiment)
            for kind, of, pairs in answers:
                if of == name:
                    wrong += [
                        f"{kind} {unit}: answered {value}, recorded {facts[kind].get(unit)}"
                        for unit, value in pairs
                        if facts[kind].get(unit) != [value]
                    ]
            for kind in ("asked", "told"):
                wrong += [f"{unit} was {kind} twice" for unit, values in facts[kind].items() if len(values) > 1]
                together = Counter(
                    (*unit.split("/")[:2], int(unit.split("/")[3]))
                    for unit in facts[kind]
                    if not unit.startswith("contested")
                )
                wrong += [f"half of {key} was {kind}" for key, count in together.items() if count != key[-1]]
    return wrong


def recorded(experiment: eq.Experiment) -> dict[str, dict[str, list[Any]]]:
    """Return arms, rewards and corrections by unit, as the log has them."""
    facts: dict[str, dict[str, list[Any]]] = {kind: defaultdict(list) for kind in ("asked", "told", "corrected")}
    for event in experiment.events():
        if event.kind == "assigned":
            facts["asked"][str(event.unit)].append(event.arm)
        elif event.kind in ("rewarded", "corrected"):
            facts["told" if event.kind == "rewarded" else "corrected"][str(event.unit)].append(event.reward)
    return facts
