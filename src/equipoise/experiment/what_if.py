"""What another weight would ask for now, and its price  [the dial of Sect. 2, on the estimates of an experiment]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from equipoise.errors import TooFewRewards
from equipoise.experiment.deciding import Decider
from equipoise.separable import ROOT_MEAN_SQUARE

if TYPE_CHECKING:
    from equipoise.experiment.state import State


@dataclass(frozen=True)
class WhatIf:
    """Two weights compared, on the present estimates.

    Attributes
    ----------
    reward_weight, present_weight : float
        The weight that was asked about, and that of the experiment.
    allocation, present_allocation : dict of float by arm
        Shares they ask for, those kept for arms included.
    reward, present_reward : float
        Expected reward per unit under each, as rewards are told.
    error, present_error : float
        The objective's error under each; times 1 / sqrt(units) it is the expected error of an arm's mean.
    """

    reward_weight: float
    present_weight: float
    allocation: dict[str, float]
    present_allocation: dict[str, float]
    reward: float
    present_reward: float
    error: float
    present_error: float

    @property
    def reward_change(self) -> float:
        """How much more reward per unit the other weight gives."""
        return self.reward - self.present_reward

    @property
    def error_ratio(self) -> float:
        """How many times the present error the other weight has."""
        return self.error / self.present_error if self.present_error else np.inf


def what_if(state: State, reward_weight: float) -> WhatIf:
    """Return what another weight would ask for now."""
    configuration = state.configuration.with_weight(reward_weight)
    other = _measured(state, Decider(configuration, state.arm_states, state.floors))
    present = _measured(state, state.decider)
    weights = float(reward_weight), float(state.configuration.reward_weight or 0.0)
    (allocation, reward, error), (present_allocation, present_reward, present_error) = other, present
    return WhatIf(*weights, allocation, present_allocation, reward, present_reward, error, present_error)


def _measured(state: State, decider: Decider) -> tuple[dict[str, float], float, float]:
    """Return the allocation a decider steers towards, and its reward and error."""
    target = decider.target(state.stats)
    if target is None:
        raise TooFewRewards(f"experiment {state.name!r} has too few rewards yet to estimate every arm in play")
    active = decider.active
    shares, mean, std = target[active], state.stats.mean[active], state.stats.std[active]
    objective = getattr(decider.policy, "objective", ROOT_MEAN_SQUARE)
    error = float(objective.error(shares, std)) if hasattr(objective, "error") else np.nan
    allocation = dict(zip(state.names, target.tolist(), strict=True))
    return allocation, state.configuration.sign * float(shares @ mean), error
