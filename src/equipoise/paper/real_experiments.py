"""Two published experiments as arms to play on: what people, means and spreads each of their arms had."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from equipoise.arms import Gaussian

if TYPE_CHECKING:
    from equipoise.arrays import FloatArray, IntArray

GROUP = 10
"""People of the flu experiment who are sent the same message at once."""


@dataclass(frozen=True, kw_only=True)
class RealExperiment:
    """An experiment that was run, from the figures of its arms.

    Attributes
    ----------
    citation : str
        Authors and year, for captions.
    outcome : str
        What is counted, in the plural: the total over all participants is what they gain.
    names : tuple of str
        Of the arms.
    people : int array
        How many each arm had.
    arms : Gaussian
        Mean and standard deviation of the outcome, per person or per group of people.
    group : int
        People per pull.
    """

    citation: str
    outcome: str
    names: tuple[str, ...]
    people: IntArray
    arms: Gaussian
    group: int = 1

    @property
    def n_people(self) -> int:
        """All participants."""
        return int(self.people.sum())

    @property
    def n_pulls(self) -> int:
        """Groups that the participants make up."""
        return self.n_people // self.group

    @property
    def shares(self) -> FloatArray:
        """The shares of participants that the arms really had."""
        return np.asarray(self.people / self.n_people)

    @property
    def noise_share(self) -> float:
        """How much of the variance between the arms' means is noise: an estimate, from their standard errors."""
        noise = float(np.mean(self.arms.std**2 * self.group / self.people))
        return noise / float(np.var(self.arms.mean, ddof=1))


def effort_experiment() -> RealExperiment:
    """Return the 18 incentives of DellaVigna and Pope: button presses in ten minutes.

    Examples
    --------
    >>> effort = effort_experiment()
    >>> effort.arms.n_arms, effort.n_people, effort.names[0]
    (18, 9861, '80 cents to gain')
    """
    rows = _rows("effort_incentives.csv")
    return RealExperiment(
        citation="DellaVigna and Pope 2018",
        outcome="button presses",
        names=tuple(row["arm"] for row in rows),
        people=_numbers(rows, "n").astype(np.int64),
        arms=Gaussian(mean=_numbers(rows, "mean"), std=_numbers(rows, "sd")),
    )


def flu_experiment() -> RealExperiment:
    """Return the 22 messages and the usual care of Milkman et al.: the share of ten people who are vaccinated.

    Ten people at a time is how messages are sent, and makes a replication ten times shorter at the same accuracy: the
    share vaccinated of ten has a standard deviation smaller by the square root of ten, and is close to Gaussian.

    Examples
    --------
    >>> flu = flu_experiment()
    >>> flu.arms.n_arms, flu.n_people, flu.n_pulls, flu.names[-1]
    (23, 689693, 68969, 'usual care (no message)')
    """
    rows = _rows("flu_messages.csv")
    people, vaccinated = (_numbers(rows, column).astype(np.int64) for column in ("n", "vaccinated"))
    probability = vaccinated / people
    return RealExperiment(
        citation="Milkman et al. 2022",
        outcome="people vaccinated",
        names=tuple(row["arm"] for row in rows),
        people=people,
        arms=Gaussian(mean=probability, std=np.sqrt(probability * (1 - probability) / GROUP)),
        group=GROUP,
    )


def _rows(name: str) -> list[dict[str, str]]:
    text = files("equipoise.paper").joinpath("data", name).read_text(encoding="utf-8")
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


def _numbers(rows: list[dict[str, str]], column: str) -> FloatArray:
    return np.array([float(row[column]) for row in rows])
