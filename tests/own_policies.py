"""Policies and an objective as users write them, and parameters that many tests share."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numba
import numpy as np

import equipoise as eq

W = {"reward_weight": 0.7}
CHANCE = {"forcing": 0.0, "reward_weight": 0.6}


@dataclass(frozen=True, kw_only=True, repr=False)
class DOptimal(eq.SeparableObjective):
    """D-optimality: reward against the average logarithm of the shares."""

    def derivative(self, share, mean, std, reward_weight):
        return reward_weight * mean + (1 - reward_weight) / mean.size / share

    def inverse_derivative(self, slope, mean, std, reward_weight):
        with np.errstate(divide="ignore"):
            share = (1 - reward_weight) / mean.size / (slope - reward_weight * mean)
        return np.where(share > 0, share, np.inf)  # a slope below the arm's reward is met by no share


@dataclass(frozen=True, kw_only=True, repr=False)
class LeastAssigned(eq.Policy):
    """A policy as a user writes it."""

    patience: int = 1

    def probabilities(self, stats):
        chance = 1.0 / (self.patience + stats.assigned)
        return chance / chance.sum()


@dataclass(frozen=True, kw_only=True, repr=False)
class Curious(eq.Policy):
    """In plain Python: arms with a small count or a large mean are likelier."""

    patience: float = 1.0
    taste: float = 0.5

    def probabilities(self, stats):
        weight = np.empty(stats.n_arms)
        for i in range(stats.n_arms):
            liked = math.exp(self.taste * stats.mean[i]) if stats.pulls[i] > 0 else 1.0
            weight[i] = liked / (self.patience + stats.assigned[i])
        total = 0.0
        for i in range(stats.n_arms):
            total += weight[i]
        return weight / total


@numba.njit
def fill_curious(parameters, t, assigned, pulls, mean, std, probability):
    patience, taste = parameters
    total = 0.0
    for i in range(probability.size):
        liked = math.exp(taste * mean[i]) if pulls[i] > 0 else 1.0
        probability[i] = liked / (patience + assigned[i])
        total += probability[i]
    for i in range(probability.size):
        probability[i] /= total


@dataclass(frozen=True, kw_only=True, repr=False)
class CuriousCompiled(eq.NumbaPolicy):
    """The same, compiled."""

    patience: float = 1.0
    taste: float = 0.5

    def filler(self):
        return fill_curious

    def target(self, stats):
        return stats.pulls / stats.n_assigned if stats.pulls.min() > 0 else None


@dataclass(frozen=True, kw_only=True, repr=False)
class Contrary(eq.ForcingBalance):
    """A built-in policy with a method of its own, which the compiled loop must not pass over."""

    def prepare(self, n_arms):
        choose = super().prepare(n_arms)

        def contrary(stats, uniform):
            choice = choose(stats, uniform)
            return choice if choice.forced else eq.Choice(n_arms - 1 - choice.arm, 1.0)

        return contrary
