"""Two published experiments as arms to play on: what people, means and spreads each of their arms had."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equipoise.arms import Gaussian
from equipoise.objective import error, optimal_allocation, reward
from equipoise.policies import UCB, Fixed, ForcingBalance, ThompsonSampling

if TYPE_CHECKING:
    from collections.abc import Sequence

    from equipoise._types import FloatArray, IntArray
    from equipoise.paper.item import Work
    from equipoise.policies import Policy
    from equipoise.simulation.runs import Runs

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


TRIAL, BALANCE, BANDIT, THOMPSON = "as it was run", "ForcingBalance", "UCB", "Thompson sampling"

BONUS = math.sqrt(2)
"""Of UCB1 for Gaussian rewards, in standard deviations; UCB is told the largest, more than an experimenter knows."""

WIDER = (2.0, 3.0, 4.0, 6.0)
"""Larger ones: a dial of a kind, from a bandit to equal shares."""


class Mean(NamedTuple):
    """A mean over replications and its standard error."""

    value: float
    standard_error: float


@dataclass(frozen=True, kw_only=True)
class GainAndLoss:
    """How a policy does against the experiment as it was run; changes are relative: 0.1 is ten percent.

    Attributes
    ----------
    policy : str
    reward_weight : float, optional
        Of ForcingBalance.
    bonus : float, optional
        Of UCB, in standard deviations.
    gain : Mean
        More of the outcome in total, over all participants.
    relative_gain : Mean
        The same, as a part of what the experiment had.
    formula_loss : Mean
        Change of the average standard error of an arm by formula, sigma / sqrt(pulls)  [Eq. 2].
    loss : Mean
        Change of the average error that the estimates really had, over replications. It exceeds that of the formula
        where a policy leaves an arm alone because its first rewards were low.
    worst_loss : Mean
        Change of the largest standard error of an arm, by formula.
    relative_dcg, rank_error : Mean
        Of the ranking by the estimates  [Sect. 5.2].
    n_replications : int
    """

    policy: str
    reward_weight: float | None
    bonus: float | None
    gain: Mean
    relative_gain: Mean
    formula_loss: Mean
    loss: Mean
    worst_loss: Mean
    relative_dcg: Mean
    rank_error: Mean
    n_replications: int


@dataclass(frozen=True, kw_only=True)
class Replay:
    """Runs of policies on a real experiment; those of Thompson sampling are fewer, it is slow.

    The first of the bandits has the bonus of UCB1, the others wider ones.
    """

    experiment: RealExperiment
    bonuses: tuple[float, ...]
    trial: Runs
    balance: Runs
    bandits: Runs
    thompson: Runs

    @property
    def reward_weights(self) -> list[float]:
        """Dial positions that were played."""
        return [float(policy.reward_weight) for policy in self.balance.policies]  # type: ignore[attr-defined]

    @property
    def bandit(self) -> Runs:
        """UCB with the bonus of UCB1."""
        return self.bandits.select(policies=[0])

    def compared(self) -> list[GainAndLoss]:
        """Return every policy against the experiment as it was run, which is the first."""
        weighted = [(self.balance.select(policies=[k]), w) for k, w in enumerate(self.reward_weights)]
        bonuses = [(self.bandits.select(policies=[k]), bonus) for k, bonus in enumerate(self.bonuses)]
        return [
            self._compare(self.trial, TRIAL),
            *(self._compare(runs, BALANCE, reward_weight=weight) for runs, weight in weighted),
            *(self._compare(runs, BANDIT, bonus=bonus) for runs, bonus in bonuses),
            self._compare(self.thompson, THOMPSON),
        ]

    def _compare(
        self, runs: Runs, name: str, *, reward_weight: float | None = None, bonus: float | None = None
    ) -> GainAndLoss:
        # Rewards are common to all policies, so the same replications of both are compared.
        trial = self.trial.select(replications=runs.replications.tolist())
        had = float(reward(self.experiment.shares, self.experiment.arms.mean))
        more = runs.reward()[0, :, -1] - had
        return GainAndLoss(
            policy=name,
            reward_weight=reward_weight,
            bonus=bonus,
            gain=_mean(self.experiment.n_people * more),
            relative_gain=_mean(more / had),
            formula_loss=_mean(runs.error()[0, :, -1] / float(trial.error()[0, 0, -1]) - 1),
            loss=_realised_loss(runs, trial),
            worst_loss=_mean(_worst(runs) / _worst(trial) - 1),
            relative_dcg=_mean(runs.relative_dcg()[0, :, -1]),
            rank_error=_mean(runs.rank_error()[0, :, -1]),
            n_replications=int(runs.replications.size),
        )

    def regrets(self, reward_weight: float) -> dict[str, Mean]:
        """Return the mean rescaled regret of each policy at a weight."""
        own = self.balance.select(policies=[self.reward_weights.index(reward_weight)])
        runs = {BALANCE: own, TRIAL: self.trial, BANDIT: self.bandit, THOMPSON: self.thompson}
        return {name: _mean(some.rescaled_regret(reward_weight=reward_weight)[0, :, -1]) for name, some in runs.items()}

    def price(self, reward_weight: float) -> float:
        """Return the total outcome that is given up at a weight to make the average standard error one percent smaller.

        That is what the weight means for this experiment: w times the reward less 1 - w times the error is largest
        where one more percent of accuracy costs just so much.
        """
        one_percent = float(error(self.experiment.shares, self.experiment.arms.std)) / 100
        odds = (1 - reward_weight) / reward_weight if reward_weight > 0 else np.inf
        return float(self.experiment.n_people * one_percent * odds)

    def optimum(self, reward_weights: Sequence[float]) -> tuple[FloatArray, FloatArray]:
        """Return relative loss and total gain of the best fixed shares, for one who knew the arms beforehand."""
        arms, trial = self.experiment.arms, self.experiment.shares
        best = [optimal_allocation(arms.mean, arms.std, reward_weight=weight) for weight in reward_weights]
        loss = [float(error(shares, arms.std) / error(trial, arms.std)) - 1 for shares in best]
        gain = [self.experiment.n_people * float((shares - trial) @ arms.mean) for shares in best]
        return np.array(loss), np.array(gain)


@dataclass(frozen=True)
class Results:
    """Every policy against the experiment as it was run, by name and weight."""

    replay: Replay
    rows: list[GainAndLoss]

    def at(self, reward_weight: float) -> GainAndLoss:
        """Return ForcingBalance at a weight."""
        return next(row for row in self.rows if row.reward_weight == reward_weight)

    def of(self, policy: str) -> GainAndLoss:
        """Return a policy without a weight."""
        return next(row for row in self.rows if row.policy == policy)  # of UCB, the one with the usual bonus

    @property
    def dial(self) -> list[GainAndLoss]:
        """ForcingBalance at all weights."""
        return [row for row in self.rows if row.policy == BALANCE]

    @property
    def bandits(self) -> list[GainAndLoss]:
        """UCB with all bonuses, the usual one first."""
        return [row for row in self.rows if row.policy == BANDIT]

    def above(self, row: GainAndLoss) -> float:
        """Return how much more ForcingBalance gains than a policy at the same loss, between its weights."""
        loss, gain = ([getattr(one, name).value for one in self.dial] for name in ("loss", "gain"))
        return float(np.interp(row.loss.value, np.maximum.accumulate(loss), gain)) - row.gain.value


def replay(
    work: Work,
    experiment: RealExperiment,
    reward_weights: Sequence[float],
    *,
    replications: int,
    thompson_replications: int,
    bonuses: tuple[float, ...] = (BONUS, *WIDER),
) -> Replay:
    """Play an experiment with as many people as it had: as it was run, at the weights, by UCB and Thompson sampling."""

    def played(policies: Sequence[Policy], count: int) -> Runs:
        return work.simulate(
            list(policies), experiment.arms, experiment.n_pulls, count, checkpoints=[experiment.n_pulls]
        )

    spread = float(experiment.arms.std.max())
    return Replay(
        experiment=experiment,
        bonuses=bonuses,
        trial=played([Fixed(allocation=tuple(experiment.shares.tolist()))], replications),
        balance=played([ForcingBalance(reward_weight=weight) for weight in reward_weights], replications),
        bandits=played([UCB(scale=bonus * spread) for bonus in bonuses], replications),
        thompson=played([ThompsonSampling(draws=1)], thompson_replications),
    )


def _mean(values: FloatArray) -> Mean:
    # What is the same in every replication has no standard error but that of rounding.
    is_same = np.ptp(values) <= 1e-9 * abs(values).max()
    return Mean(float(values.mean()), 0.0 if is_same else float(values.std(ddof=1) / np.sqrt(values.size)))


def _worst(runs: Runs) -> FloatArray:
    """Return the largest standard error of an arm in each replication, by formula."""
    return np.asarray((runs.true_std / np.sqrt(runs.pulls[0, :, -1])).max(axis=-1))


def _realised_loss(runs: Runs, trial: Runs) -> Mean:
    """Return the change of the average root-mean-square error over replications, with its jackknife error."""
    squares = [(some.mean[0, :, -1] - some.true_mean) ** 2 for some in (runs, trial)]
    count = runs.replications.size
    whole, whole_trial = (np.sqrt(some.mean(axis=0)).mean() for some in squares)
    less, less_trial = (
        np.sqrt((some.sum(axis=0) - some) / (count - 1)).mean(axis=-1)
        for some in squares  # without each in turn
    )
    without = less / less_trial - 1
    spread = np.sqrt((count - 1) / count * np.sum((without - without.mean()) ** 2))
    return Mean(float(whole / whole_trial - 1), float(spread))
