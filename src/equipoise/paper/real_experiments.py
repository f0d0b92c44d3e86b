"""Two published experiments, and policies replayed on them: what participants gain and what accuracy it costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equipoise._types import FloatArray, IntArray
from equipoise.arms import Gaussian
from equipoise.objective import error, optimal_allocation, reward
from equipoise.paper.instances import Work, column_of, read_rows
from equipoise.policies import UCB, Fixed, ForcingBalance, Policy, ThompsonSampling

if TYPE_CHECKING:
    from equipoise.simulation.runs import Runs

GROUP = 10
"""Number of people in the flu experiment who get the same message at once."""


@dataclass(frozen=True, kw_only=True)
class RealExperiment:
    """A published experiment, described by summary figures of its arms.

    Attributes
    ----------
    citation : str
        Authors and year, for captions.
    outcome : str
        What is counted, in the plural; participants gain its total.
    names : tuple of str
        Names of the arms.
    people : int array
        Participants of each arm.
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
        """Number of groups of participants."""
        return self.n_people // self.group

    @property
    def shares(self) -> FloatArray:
        """Shares of participants of the arms in the experiment."""
        return np.asarray(self.people / self.n_people)

    @property
    def noise_share(self) -> float:
        """Estimated share of noise in the variance between the arms' means, from their standard errors."""
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
    rows = read_rows("effort_incentives.csv")
    return RealExperiment(
        citation="DellaVigna and Pope 2018",
        outcome="button presses",
        names=tuple(row["arm"] for row in rows),
        people=column_of(rows, "n").astype(np.int64),
        arms=Gaussian(mean=column_of(rows, "mean"), std=column_of(rows, "sd")),
    )


def flu_experiment() -> RealExperiment:
    """Return the 22 messages and the usual care of Milkman et al.: the share of ten people who are vaccinated.

    Messages are sent to ten people at a time, which makes a replication ten times shorter at the same accuracy: the
    share vaccinated of ten has a standard deviation smaller by the square root of ten, and is close to Gaussian.

    Examples
    --------
    >>> flu = flu_experiment()
    >>> flu.arms.n_arms, flu.n_people, flu.n_pulls, flu.names[-1]
    (23, 689693, 68969, 'usual care (no message)')
    """
    rows = read_rows("flu_messages.csv")
    people, vaccinated = (column_of(rows, column).astype(np.int64) for column in ("n", "vaccinated"))
    probability = vaccinated / people
    return RealExperiment(
        citation="Milkman et al. 2022",
        outcome="people vaccinated",
        names=tuple(row["arm"] for row in rows),
        people=people,
        arms=Gaussian(mean=probability, std=np.sqrt(probability * (1 - probability) / GROUP)),
        group=GROUP,
    )


TRIAL, BALANCE, BANDIT, THOMPSON = "as it was run", "ForcingBalance", "UCB", "Thompson sampling"

BONUS = math.sqrt(2)
"""Bonus of UCB1 for Gaussian rewards, in standard deviations; UCB knows the largest, which experimenters do not."""

WIDER = (2.0, 3.0, 4.0, 6.0)
"""Wider bonuses turn UCB into a dial, from a bandit to equal shares."""

EFFORT_WEIGHTS = (0.0, 0.5, 0.8, 0.9, 0.95, 0.99, 1.0)
FLU_WEIGHTS = (0.0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 1.0)


class Mean(NamedTuple):
    """A mean over replications and its standard error.

    Examples
    --------
    >>> Mean(1933.2, 90.0).rounded, Mean(1_000_598, 900.0).rounded, Mean(0.0712, 0.01).percent
    ('1,930', '1.00 million', '7.1%')
    """

    value: float
    standard_error: float

    @property
    def percent(self) -> str:
        """A share in percent, with a decimal if it is below 10%."""
        share = 100 * self.value
        return f"{share:.1f}%" if abs(share) < 10 else f"{share:.0f}%"

    @property
    def rounded(self) -> str:
        """A count with as many digits as its noise justifies."""
        return f"{self.value / 1e6:.2f} million" if self.value >= 1e6 else f"{round(self.value, -1):,.0f}"


@dataclass(frozen=True, kw_only=True)
class GainAndLoss:
    """A policy compared with the experiment as it was run; changes are relative: 0.1 is ten percent.

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
        The same, relative to the total of the experiment.
    formula_loss : Mean
        Change of the average standard error of an arm by formula, sigma / sqrt(pulls)  [Eq. 2].
    loss : Mean
        Change of the average actual error of the estimates, over replications. It exceeds that of the formula where a
        policy abandons an arm because its first rewards were low.
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

    @property
    def excess(self) -> float:
        """Ratio of the estimates' error to the error by formula."""
        return (1 + self.loss.value) / (1 + self.formula_loss.value)


@dataclass(frozen=True, kw_only=True)
class Replay:
    """Runs of policies on a real experiment, and each policy against the experiment as it was run.

    The first of the UCB runs has the bonus of UCB1, the others wider ones. Thompson sampling is slow and has fewer
    replications.
    """

    experiment: RealExperiment
    reward_weights: tuple[float, ...]
    bonuses: tuple[float, ...]
    trial_runs: Runs
    dial_runs: Runs
    ucb_runs: Runs
    thompson_runs: Runs

    @cached_property
    def rows(self) -> list[GainAndLoss]:
        """Every policy; the first is the experiment as it was run."""
        dial = [(self.dial_runs.select(policies=[k]), weight) for k, weight in enumerate(self.reward_weights)]
        ucb = [(self.ucb_runs.select(policies=[k]), bonus) for k, bonus in enumerate(self.bonuses)]
        return [
            self.compare(self.trial_runs, TRIAL),
            *(self.compare(runs, BALANCE, reward_weight=weight) for runs, weight in dial),
            *(self.compare(runs, BANDIT, bonus=bonus) for runs, bonus in ucb),
            self.compare(self.thompson_runs, THOMPSON),
        ]

    def of(self, policy: str) -> GainAndLoss:
        """Return the first row of a policy: of UCB, the one with the usual bonus."""
        return next(row for row in self.rows if row.policy == policy)

    def at(self, reward_weight: float) -> GainAndLoss:
        """Return ForcingBalance at a weight."""
        return next(row for row in self.rows if row.reward_weight == reward_weight)

    @property
    def dial(self) -> list[GainAndLoss]:
        """ForcingBalance at all weights."""
        return [row for row in self.rows if row.policy == BALANCE]

    @property
    def ucb(self) -> list[GainAndLoss]:
        """UCB with all bonuses, the usual one first."""
        return [row for row in self.rows if row.policy == BANDIT]

    def above(self, row: GainAndLoss) -> float:
        """Return how much more ForcingBalance gains than a policy at the same loss, interpolated between weights."""
        loss, gain = ([getattr(one, name).value for one in self.dial] for name in ("loss", "gain"))
        return float(np.interp(row.loss.value, np.maximum.accumulate(loss), gain)) - row.gain.value

    def regrets(self, reward_weight: float) -> dict[str, Mean]:
        """Return the mean rescaled regret of each policy at a weight."""
        runs = {
            BALANCE: self.dial_runs.select(policies=[self.reward_weights.index(reward_weight)]),
            TRIAL: self.trial_runs,
            BANDIT: self.ucb_runs.select(policies=[0]),
            THOMPSON: self.thompson_runs,
        }
        return {name: _mean(some.rescaled_regret(reward_weight=reward_weight)[0, :, -1]) for name, some in runs.items()}

    def price(self, reward_weight: float) -> float:
        """Return the total outcome that a weight gives up to reduce the average standard error by one percent.

        That is the meaning of the weight for this experiment: w times the reward less 1 - w times the error is largest
        where one more percent of accuracy costs exactly this.
        """
        one_percent = float(error(self.experiment.shares, self.experiment.arms.std)) / 100
        odds = (1 - reward_weight) / reward_weight if reward_weight > 0 else np.inf
        return float(self.experiment.n_people * one_percent * odds)

    def optimum(self, reward_weights: Sequence[float]) -> tuple[FloatArray, FloatArray]:
        """Return relative loss and total gain of the best fixed shares, had the arms been known in advance."""
        arms, trial = self.experiment.arms, self.experiment.shares
        best = [optimal_allocation(arms.mean, arms.std, reward_weight=weight) for weight in reward_weights]
        loss = [float(error(shares, arms.std) / error(trial, arms.std)) - 1 for shares in best]
        gain = [self.experiment.n_people * float((shares - trial) @ arms.mean) for shares in best]
        return np.array(loss), np.array(gain)

    def compare(
        self, runs: Runs, name: str, *, reward_weight: float | None = None, bonus: float | None = None
    ) -> GainAndLoss:
        """Compare runs of one policy with the experiment as it was run."""
        # Rewards are common to all policies, so the same replications of both are compared.
        trial = self.trial_runs.select(replications=runs.replications.tolist())
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


def replay_effort(work: Work) -> Replay:
    """Replay the 18 incentives with the 9,861 people they had."""
    return _replay(work, effort_experiment(), EFFORT_WEIGHTS, (BONUS, *WIDER), 200, 6 if work.quick else 60)


def replay_flu(
    work: Work, reward_weights: tuple[float, ...] = FLU_WEIGHTS, bonuses: tuple[float, ...] = (BONUS, *WIDER)
) -> Replay:
    """Replay the 22 messages and the usual care with the 689,693 people they had, ten at a time."""
    return _replay(work, flu_experiment(), reward_weights, bonuses, *flu_replications(work))


def flu_replications(work: Work) -> tuple[int, int]:
    """Return how often to replay the flu trial, and how often by Thompson sampling."""
    return (8, 6) if work.quick else (40, 20)


def _replay(
    work: Work,
    experiment: RealExperiment,
    reward_weights: tuple[float, ...],
    bonuses: tuple[float, ...],
    replications: int,
    thompson_replications: int,
) -> Replay:
    """Play an experiment as it was run, at the weights, by UCB and by Thompson sampling, with all its people."""

    def played(policies: Sequence[Policy], count: int = replications) -> Runs:
        horizon = experiment.n_pulls
        return work.simulate(policies, experiment.arms, horizon, count, checkpoints=[horizon])

    spread = float(experiment.arms.std.max())
    return Replay(
        experiment=experiment,
        reward_weights=reward_weights,
        bonuses=bonuses,
        trial_runs=played([Fixed(allocation=tuple(experiment.shares.tolist()))]),
        dial_runs=played([ForcingBalance(reward_weight=weight) for weight in reward_weights]),
        ucb_runs=played([UCB(scale=bonus * spread) for bonus in bonuses]),
        thompson_runs=played([ThompsonSampling(draws=1)], thompson_replications),
    )


def _mean(values: FloatArray) -> Mean:
    # Values that are the same in every replication differ by rounding only.
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
