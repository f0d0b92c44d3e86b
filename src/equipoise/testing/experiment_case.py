"""What the tests of an experiment have in common, wherever it lives."""

from __future__ import annotations

import csv
import io
import json
import math
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.policies import ForcingBalance

if TYPE_CHECKING:
    from collections.abc import Iterator

    from equipoise import errors
    from equipoise.experiment import Experiment, ExperimentSummary

BALANCE = ForcingBalance(reward_weight=0.6)
RANDOM = ForcingBalance(reward_weight=0.6, tracking="windowed")


class StoppedClock:
    """A clock that goes on when told to."""

    def __init__(self) -> None:
        self.now = datetime(2027, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        """Return the time; no two calls at the same."""
        self.now += timedelta(microseconds=1)
        return self.now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)


class ExperimentCase:
    """Empty experiments to start with, and help for the tests; subclasses say where the experiments live."""

    author = "ann"
    """Who is in the log."""

    def setup_method(self) -> None:
        """Start with a clock that stands still."""
        self.clock = StoppedClock()

    def create(self, name: str = "fractions", **settings: Any) -> Experiment:
        """Create an experiment, with three arms by default."""
        chosen: dict[str, Any] = {"arms": ["line", "pie", "none"], "policy": BALANCE, "seed": 7, **settings}
        return self.new(name, **chosen)

    def new(self, name: str, **settings: Any) -> Experiment:
        """Create an experiment by `author`, with the arguments of `Experiment.create`."""
        raise NotImplementedError

    def find(self, name: str) -> Experiment:
        """Open the experiment of that name."""
        raise NotImplementedError

    def listed(self) -> list[ExperimentSummary]:
        """List all experiments."""
        raise NotImplementedError

    def reopened(self, experiment: Experiment) -> Experiment:
        """Return the experiment as a new process would find it."""
        return self.find(experiment.name)

    def play(self, experiment: Experiment, n_units: int, *, seed: int = 1, first: int = 0) -> None:
        """Assign units one by one and tell most of their rewards, some of them late."""
        rng = np.random.default_rng(seed)
        waiting: list[str] = []
        for number in range(first, first + n_units):
            waiting.append(experiment.ask(f"unit-{number}").unit)
            if rng.random() < 0.6:
                unit = waiting.pop(int(rng.integers(len(waiting))))
                experiment.tell(unit, float(rng.normal(1.0, 0.5)))

    def counts(self, experiment: Experiment) -> tuple[int, ...]:
        """Return assigned, rewarded, pending, held, overdue, defaulted and dropped, over all arms."""
        status = experiment.status()
        names = ("assigned", "rewarded", "pending", "held", "overdue", "defaulted", "dropped")
        return tuple(getattr(status, f"n_{name}") for name in names)

    def compare_export(self, experiment: Experiment) -> None:
        """Compare totals of the export with the status, in both text formats."""
        files = {form: io.StringIO() for form in ("csv", "jsonl")}
        status = experiment.status()
        for form, file in files.items():
            assert experiment.export(file, form) == status.n_assigned
        rows = [json.loads(line) for line in files["jsonl"].getvalue().splitlines()]
        table = list(csv.DictReader(io.StringIO(files["csv"].getvalue(), newline="")))
        assert [row["unit"] for row in table] == [row["unit"] for row in rows]
        for arm in status.arms:
            mine = [row for row in rows if row["arm"] == arm.arm]
            rewards = [row["counted_reward"] for row in mine if row["counted_reward"] is not None]
            assert (len(mine), len(rewards)) == (arm.assigned, arm.rewarded)
            assert not rewards or math.isclose(math.fsum(rewards) / len(rewards), arm.mean or 0, abs_tol=1e-12)
            for state in ("held", "overdue", "defaulted", "dropped"):
                assert sum(row["state"] == state for row in mine) == getattr(arm, state), state


@contextmanager
def refused(kind: type[errors.EquipoiseError], *words: str) -> Iterator[list[errors.EquipoiseError]]:
    """Expect an error whose message holds the words; gives a list that will hold the error."""
    caught: list[errors.EquipoiseError] = []
    try:
        yield caught
    except kind as error:
        caught.append(error)
    assert caught, f"expected {kind.__name__}"
    missing = [word for word in words if word not in str(caught[0])]
    assert not missing, f"{missing} not in: {caught[0]}"
