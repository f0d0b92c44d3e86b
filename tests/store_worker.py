"""What each process of a many-process test does; loaded and warm in the server that forks them."""

from __future__ import annotations

import equipoise as eq


def work(url, worker):
    """Ask and tell as one of several processes; half of them race for the same units."""
    seen = []
    with eq.open_store(url) as store:
        shared, own = eq.Experiment.open(store, "shared"), eq.Experiment.open(store, f"own-{worker}")
        for number in range(15):
            unit = f"unit-{number}-{worker % 4}"
            seen.append((unit, shared.ask(unit).arm))
            shared.tell(unit, float(number % 5))
            own.tell(own.ask(f"{number}").unit, 1.0)
        seen += [(one.unit, one.arm) for one in shared.ask_many([f"{worker}-{i}" for i in range(16)])]
    return seen


with eq.open_store("memory:") as _store:
    _warm = eq.Experiment.create(_store, "warm", arms=["a", "b"], policy=eq.ForcingBalance(reward_weight=0.6))
    for _unit in range(6):
        _warm.tell(_warm.ask(f"{_unit}").unit, float(_unit))
