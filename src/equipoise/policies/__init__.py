"""Built-in policies that decide which arm to pull next; JSON refers to them by these names  [Sect. 3, 5, App. C]."""

from equipoise.policies.arm_prior import ArmPrior
from equipoise.policies.baselines import EpsilonGreedy, Fixed, Uniform
from equipoise.policies.compiled import NumbaPolicy
from equipoise.policies.forcing_balance import ForcingBalance
from equipoise.policies.gafs import GAFS, GAFSMax
from equipoise.policies.optimistic import UCB, NaiveUCB, OptimisticBalance, UCBExplore
from equipoise.policies.policy import Choice, Policy
from equipoise.policies.pooled_balance import PooledBalance
from equipoise.policies.thompson import NARP, SARP, ClippedThompson, PostDiff, ThompsonBalance, ThompsonSampling

__all__ = [
    "GAFS",
    "NARP",
    "SARP",
    "UCB",
    "ArmPrior",
    "Choice",
    "ClippedThompson",
    "EpsilonGreedy",
    "Fixed",
    "ForcingBalance",
    "GAFSMax",
    "NaiveUCB",
    "NumbaPolicy",
    "OptimisticBalance",
    "Policy",
    "PooledBalance",
    "PostDiff",
    "ThompsonBalance",
    "ThompsonSampling",
    "UCBExplore",
    "Uniform",
]
