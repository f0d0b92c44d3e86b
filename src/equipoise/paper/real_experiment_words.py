"""What is said of each of the real experiments in the same words: claims, limits, and numbers as they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.paper.findings import Claim
from equipoise.paper.gains_and_losses import BALANCE, BANDIT, THOMPSON, TRIAL

if TYPE_CHECKING:
    from equipoise.paper.gains_and_losses import GainAndLoss, Mean, Results


def better_on_both(key: str, dial: GainAndLoss, other: GainAndLoss) -> Claim:
    """Claim that a weight gains more than another policy and loses less."""
    return Claim(
        key=key,
        text=(
            f"At w = {dial.reward_weight:g} participants gain more than with {other.policy}, and the error is smaller."
        ),
        holds=dial.gain.value > other.gain.value and dial.loss.value < other.loss.value,
        evidence=(
            f"{dial.gain.value:,.0f} (s.e. {dial.gain.standard_error:,.0f}) against {other.gain.value:,.0f} "
            f"({other.gain.standard_error:,.0f}) more; error {percent(dial.loss)} (s.e. "
            f"{100 * dial.loss.standard_error:.0f}) against {percent(other.loss)} "
            f"({100 * other.loss.standard_error:.0f})"
        ),
    )


def smallest_regret(results: Results, item: str, *, up_to: float) -> Claim:
    """Claim that ForcingBalance has the smallest regret at every weight up to one."""
    weights = [weight for weight in results.replay.reward_weights if weight <= up_to]
    regrets = [results.replay.regrets(weight) for weight in weights]
    ratios = [min(m.value for name, m in some.items() if name != BALANCE) / some[BALANCE].value for some in regrets]
    return Claim(
        key=f"{item}.smallest-regret",
        text=f"At every weight up to {up_to:g} ForcingBalance has a smaller regret than equal shares, UCB and Thompson "
        "sampling.",
        holds=min(ratios) > 1,
        evidence="the best of the others has "
        + ", ".join(f"{ratio:.3g} (w = {weight:g})" for ratio, weight in zip(ratios, weights, strict=True))
        + " times its regret",
    )


def better_ranking(results: Results, item: str, weight: float) -> Claim:
    """Claim that at a weight the arms are ranked better than by the bandits."""
    dial, others = results.at(weight), [results.of(BANDIT), results.of(THOMPSON)]
    return Claim(
        key=f"{item}.better-ranking",
        text=f"At w = {weight:g} the estimates rank the arms better than those of UCB and Thompson sampling.",
        holds=all(dial.rank_error.value < other.rank_error.value for other in others),
        evidence=f"RankErr {dial.rank_error.value:.2f} against "
        + " and ".join(f"{other.rank_error.value:.2f}" for other in others)
        + f"; equal shares have {results.of(TRIAL).rank_error.value:.2f}",
    )


def wider_bonuses(results: Results) -> str:
    """Compare the dial with UCB, whose bonus is a dial of a kind."""
    differences = [f"{results.above(row) / row.gain.value:+.0%} (bonus {row.bonus:.3g})" for row in results.bandits]
    return (
        "A wider bonus makes UCB a dial of a kind, from a bandit to equal shares. At the same error the gain of "
        f"ForcingBalance differs from that of UCB by {', '.join(differences)}: a cautious UCB comes close. But "
        "what a bonus costs and gains shows afterwards only, while a weight says beforehand what a percent of "
        "accuracy is worth."
    )


def limits(results: Results) -> list[str]:
    """Say what a trial that is played again cannot tell."""
    experiment = results.replay.experiment
    return [
        f"The means of the trial are taken for true. About {experiment.noise_share:.0%} of the variance between them "
        "is its own noise, by their standard errors, so the true differences, and what can be gained by them, are "
        "likely smaller by about as much.",
    ]


def excess(row: GainAndLoss) -> float:
    """Return how many times the error by formula the error of the estimates was."""
    return (1 + row.loss.value) / (1 + row.formula_loss.value)


def percent(mean: Mean) -> str:
    """Return a share in percent, with a digit after the point where there are few before it."""
    value = 100 * mean.value
    return f"{value:.1f}%" if abs(value) < 10 else f"{value:.0f}%"


def rounded(value: float) -> str:
    """Return a count with as many digits as its noise leaves.

    Examples
    --------
    >>> rounded(1933.2), rounded(1_000_598)
    ('1,930', '1.00 million')
    """
    return f"{value / 1e6:.2f} million" if value >= 1e6 else f"{round(value, -1):,.0f}"
