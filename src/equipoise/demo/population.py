"""People for the demo: when they come, when they answer if at all, and what they do under each incentive."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from equipoise.arrays import FloatArray
    from equipoise.paper.real_experiments import RealExperiment

DAYS = 14
"""How long people keep coming."""
MISSING = 0.05
"""Share of people of whom nothing is heard again."""
MEAN_DELAY_HOURS = 8.0
"""How long an answer takes on average."""
LONGEST_DELAY_HOURS = 96.0
WINDOW = timedelta(days=2)
"""How long the experiment waits for an answer before it counts a person as missing; some are later than that."""


class Population:
    """So many people, whose answers come from the real figures of the arms.

    Presses are drawn from gamma distributions with the published means and spreads: nobody presses a key less than
    never. What a person does depends on the seed, the person and the incentive alone.

    Examples
    --------
    >>> from equipoise.paper.real_experiments import effort_experiment
    >>> people = Population(effort_experiment(), 1000, seed=1)
    >>> round(float(np.isnan(people.answered).mean()), 2), people.presses(0, 0)
    (0.05, 2437.0)
    """

    def __init__(self, experiment: RealExperiment, n_people: int, *, seed: int) -> None:
        rng = np.random.default_rng([seed, n_people])
        self.n_people = n_people
        self.mean, self.std = np.asarray(experiment.arms.mean), np.asarray(experiment.arms.std)
        self.arrived: FloatArray = np.sort(rng.uniform(0, 24 * DAYS, n_people))
        """Hours after the start, in order."""
        delay = np.minimum(rng.exponential(MEAN_DELAY_HOURS, n_people), LONGEST_DELAY_HOURS)
        self.answered: FloatArray = np.where(rng.random(n_people) < MISSING, np.nan, self.arrived + delay)
        """Hours after the start; NaN of whom nothing is heard."""
        self._seed = seed

    def presses(self, person: int, arm: int) -> float:
        """Return what a person does under an incentive."""
        mean, variance = self.mean[arm], self.std[arm] ** 2
        draw = np.random.default_rng([self._seed, 1, person]).gamma(mean**2 / variance, variance / mean)
        return float(round(draw))
