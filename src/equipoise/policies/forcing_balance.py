"""ForcingBalance, the paper's algorithm: forced exploration, then tracking of the optimum  [Sect. 3, Fig. 2]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from equipoise._types import FloatArray
from equipoise.errors import InvalidInput, within
from equipoise.kernels.rules import BALANCE, IMPORTANCE, TRACKINGS, Rule
from equipoise.objective_families import ROOT_MEAN_SQUARE, Objective, PowerObjective, check_measured
from equipoise.policies.compiled import Chances
from equipoise.policies.dial_policy import DialPolicy


@dataclass(frozen=True, kw_only=True, repr=False)
class ForcingBalance(DialPolicy):
    """Force rarely pulled arms; otherwise follow the allocation that is optimal for the estimates.

    At step t an arm with fewer than ``forcing * sqrt(t)`` pulls is pulled; if there is none, the optimal allocation for
    the estimated means and standard deviations is computed and the arm furthest below it is pulled.

    Parameters
    ----------
    reward_weight : float
        The dial between reward (1) and accuracy (0); w in the paper.
    information_kept : float
        The dial in other words, instead of `reward_weight`: the most reward such that the experiment stays as accurate
        as the best design with this share of the people. 1 is all accuracy, towards 0 all reward.
    information_about : {"average", "every-arm", "best-arm"}
        What that accuracy is about: the average error of the arms, every arm, or which arm is best.
    smallest_difference : float, optional
        For "best-arm": differences between means below this count as this; a twentieth of the typical spread by
        default.
    forcing : float, default 1.0
        How much to force; eta in the paper. At any value, every arm gets the two rewards its spread needs.
    floor : float or one per arm, default 0.0
        Smallest share of every arm in the target; lambda_min in the paper.
    floor_decay : float, default 0.0
        At step t the floor is ``floor * t**-floor_decay``: it decreases, as Remark 2 of the paper proposes; below 1.
    objective : Objective
        What to optimise; the paper's trade-off by default.
    tracking : {"difference", "ratio", "sample", "windowed"}
        How the target becomes a pull: the arm with the largest target minus frequency (the paper), the largest target
        over frequency (GAFS), a draw from the target (App. C), or a draw that also corrects the gap: with
        probabilities proportional to what each arm lacks to meet the target `window` pulls ahead. The last has a
        probability to log, and its next arm cannot be guessed.
    window : float, default 10.0
        For "windowed": near 1 it is the paper's rule, large it is "sample".
    window_growth : float, default 0.05
        For "windowed": at step t the window is ``window_growth * t`` pulls long, if that is more than `window`. Longer
        windows give probabilities that are worth more to estimates which divide by them. 0 keeps the window constant.
    mixing : float, default 0.02
        For "windowed": the share of pulls spread evenly, so that no arm has probability 0.

    References
    ----------
    Erraqabi, Lazaric, Valko, Brunskill, Liu (2017). Trading off Rewards and Errors in Multi-Armed Bandits. AISTATS.

    Examples
    --------
    >>> from equipoise.stats import ArmStats
    >>> stats = ArmStats.from_summary([50, 50], [1.0, 2.0], [1.0, 1.0])
    >>> policy = ForcingBalance(reward_weight=0.5)
    >>> policy.target(stats).round(4)
    array([0.3115, 0.6885])
    >>> policy.choose(stats, uniform=0.0).arm
    1
    """

    forcing: float = 1.0
    floor: float | tuple[float, ...] = 0.0
    floor_decay: float = 0.0
    objective: Objective = ROOT_MEAN_SQUARE
    tracking: str = "difference"
    window: float = 10.0
    window_growth: float = 0.05
    mixing: float = 0.02

    def __post_init__(self) -> None:
        objective: Any = self.objective
        if isinstance(objective, dict):
            with within("objective"):
                objective = Objective.from_dict(objective)
        if not isinstance(objective, Objective):
            raise InvalidInput.of("objective", f"must be one of {', '.join(Objective.names())}", objective)
        self._set(objective=objective)
        check_measured(objective, self._check_dial())
        self._check("forcing", "floor", "floor_decay", "tracking", "window", "window_growth", "mixing")

    def check_arms(self, n_arms: int) -> None:
        """Raise unless floors and importance have one value per arm."""
        with within("objective"):
            self.objective.check_arms(n_arms)
        super().check_arms(n_arms)

    def per_arm(self, n_arms: int) -> FloatArray:
        """Return floors and the objective's importance."""
        rows = super().per_arm(n_arms)
        if isinstance(self.objective, PowerObjective):
            rows[IMPORTANCE] = self.objective.normalised_importance(n_arms)
        return rows

    def rule(self) -> Rule:
        """Return the policy as the record the kernel reads."""
        return Rule(
            kind=BALANCE,
            floor_decay=self.floor_decay,
            tracking=TRACKINGS[self.tracking],
            forcing=self.forcing,
            **self._dial(),
            power=self.objective.power if isinstance(self.objective, PowerObjective) else 0.5,
            window=self.window,
            window_growth=self.window_growth,
            mixing=self.mixing,
        )

    def _solver(self) -> Chances | None:
        """Return the function that solves a user-defined objective."""
        if isinstance(self.objective, PowerObjective):
            return None
        solve, weight, floors_at = self.objective.solve, self.reward_weight or 0.0, self.floors_at
        return lambda stats: solve(stats.mean, stats.std, weight, floors_at(stats.n_assigned + 1, stats.n_arms))
