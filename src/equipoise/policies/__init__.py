"""The policies, one per file; a name here is a name in JSON  [Sect. 3, Sect. 5, App. C]."""

from equipoise.policies.epsilon_greedy import EpsilonGreedy
from equipoise.policies.fixed import Fixed
from equipoise.policies.forcing_balance import ForcingBalance
from equipoise.policies.gafs import GAFS, GAFSMax
from equipoise.policies.naive_ucb import NaiveUCB
from equipoise.policies.numba_policy import NumbaPolicy
from equipoise.policies.optimistic_balance import OptimisticBalance
from equipoise.policies.policy import Choice, Policy
from equipoise.policies.pooled_balance import PooledBalance
from equipoise.policies.thompson import ThompsonBalance, ThompsonSampling
from equipoise.policies.ucb import UCB
from equipoise.policies.ucb_explore import UCBExplore
from equipoise.policies.uniform import Uniform

__all__ = [
    "GAFS",
    "UCB",
    "Choice",
    "EpsilonGreedy",
    "Fixed",
    "ForcingBalance",
    "GAFSMax",
    "NaiveUCB",
    "NumbaPolicy",
    "OptimisticBalance",
    "Policy",
    "PooledBalance",
    "ThompsonBalance",
    "ThompsonSampling",
    "UCBExplore",
    "Uniform",
]
