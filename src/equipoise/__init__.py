"""Experiments that treat people well and measure every arm accurately, with one dial between the two.

Names are loaded when first used, so that importing the package is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from equipoise._version import __version__ as __version__

if TYPE_CHECKING:
    from equipoise.arms import Arms as Arms
    from equipoise.arms import Bernoulli as Bernoulli
    from equipoise.arms import Beta as Beta
    from equipoise.arms import Distributions as Distributions
    from equipoise.arms import Empirical as Empirical
    from equipoise.arms import Gaussian as Gaussian
    from equipoise.arms import Mixed as Mixed
    from equipoise.arms import UniformBetween as UniformBetween
    from equipoise.bandit import Bandit as Bandit
    from equipoise.client import AsyncClient as AsyncClient
    from equipoise.client import Client as Client
    from equipoise.errors import EnrolmentClosed as EnrolmentClosed
    from equipoise.errors import EquipoiseError as EquipoiseError
    from equipoise.errors import ExperimentExists as ExperimentExists
    from equipoise.errors import ExperimentFinished as ExperimentFinished
    from equipoise.errors import InvalidInput as InvalidInput
    from equipoise.errors import MissingExtra as MissingExtra
    from equipoise.errors import NoSuchWeight as NoSuchWeight
    from equipoise.errors import NotAllowed as NotAllowed
    from equipoise.errors import NotAuthenticated as NotAuthenticated
    from equipoise.errors import NotRewarded as NotRewarded
    from equipoise.errors import RewardConflict as RewardConflict
    from equipoise.errors import RewardsHeld as RewardsHeld
    from equipoise.errors import ServiceError as ServiceError
    from equipoise.errors import StoreError as StoreError
    from equipoise.errors import StoreMismatch as StoreMismatch
    from equipoise.errors import StoreUnavailable as StoreUnavailable
    from equipoise.errors import TooFewRewards as TooFewRewards
    from equipoise.errors import UnexpectedReward as UnexpectedReward
    from equipoise.errors import UnknownArm as UnknownArm
    from equipoise.errors import UnknownExperiment as UnknownExperiment
    from equipoise.errors import UnknownKey as UnknownKey
    from equipoise.errors import UnknownName as UnknownName
    from equipoise.errors import UnknownUnit as UnknownUnit
    from equipoise.errors import UpgradeNeeded as UpgradeNeeded
    from equipoise.errors import VerificationFailed as VerificationFailed
    from equipoise.experiment import Budget as Budget
    from equipoise.experiment import Deadline as Deadline
    from equipoise.experiment import DefaultReward as DefaultReward
    from equipoise.experiment import DropUnit as DropUnit
    from equipoise.experiment import Experiment as Experiment
    from equipoise.experiment import Precision as Precision
    from equipoise.experiment import WaitForReward as WaitForReward
    from equipoise.objective import error as error
    from equipoise.objective import optimal_allocation as optimal_allocation
    from equipoise.objective import optimal_pulls as optimal_pulls
    from equipoise.objective import regret as regret
    from equipoise.objective import reward as reward
    from equipoise.objective import smoothness as smoothness
    from equipoise.objective import strong_concavity as strong_concavity
    from equipoise.objective import tradeoff as tradeoff
    from equipoise.objective_families import MEAN_SQUARE as MEAN_SQUARE
    from equipoise.objective_families import ROOT_MEAN_SQUARE as ROOT_MEAN_SQUARE
    from equipoise.objective_families import Objective as Objective
    from equipoise.objective_families import PowerObjective as PowerObjective
    from equipoise.objective_families import SeparableObjective as SeparableObjective
    from equipoise.pareto import Frontier as Frontier
    from equipoise.pareto import frontier as frontier
    from equipoise.pareto import weight_for_error as weight_for_error
    from equipoise.pareto import weight_for_reward as weight_for_reward
    from equipoise.policies import GAFS as GAFS
    from equipoise.policies import UCB as UCB
    from equipoise.policies import Choice as Choice
    from equipoise.policies import EpsilonGreedy as EpsilonGreedy
    from equipoise.policies import Fixed as Fixed
    from equipoise.policies import ForcingBalance as ForcingBalance
    from equipoise.policies import GAFSMax as GAFSMax
    from equipoise.policies import NaiveUCB as NaiveUCB
    from equipoise.policies import NumbaPolicy as NumbaPolicy
    from equipoise.policies import OptimisticBalance as OptimisticBalance
    from equipoise.policies import Policy as Policy
    from equipoise.policies import PooledBalance as PooledBalance
    from equipoise.policies import ThompsonBalance as ThompsonBalance
    from equipoise.policies import ThompsonSampling as ThompsonSampling
    from equipoise.policies import UCBExplore as UCBExplore
    from equipoise.policies import Uniform as Uniform
    from equipoise.simulation import Runs as Runs
    from equipoise.simulation import SimulationInterrupted as SimulationInterrupted
    from equipoise.simulation import Study as Study
    from equipoise.simulation import SweepInterrupted as SweepInterrupted
    from equipoise.simulation import read_study as read_study
    from equipoise.simulation import simulate as simulate
    from equipoise.simulation import sweep as sweep
    from equipoise.stats import ArmStats as ArmStats
    from equipoise.store import Store as Store
    from equipoise.store import open_store as open_store

_HOME = {
    "arms": ("Arms", "Bernoulli", "Beta", "Distributions", "Empirical", "Gaussian", "Mixed", "UniformBetween"),
    "bandit": ("Bandit",),
    "client": ("AsyncClient", "Client"),
    "errors": (
        "EnrolmentClosed",
        "EquipoiseError",
        "ExperimentExists",
        "ExperimentFinished",
        "InvalidInput",
        "MissingExtra",
        "NoSuchWeight",
        "NotAllowed",
        "NotAuthenticated",
        "NotRewarded",
        "RewardConflict",
        "RewardsHeld",
        "ServiceError",
        "StoreError",
        "StoreMismatch",
        "StoreUnavailable",
        "TooFewRewards",
        "UnexpectedReward",
        "UnknownArm",
        "UnknownExperiment",
        "UnknownKey",
        "UnknownName",
        "UnknownUnit",
        "UpgradeNeeded",
        "VerificationFailed",
    ),
    "experiment": ("Budget", "Deadline", "DefaultReward", "DropUnit", "Experiment", "Precision", "WaitForReward"),
    "pareto": ("Frontier", "frontier", "weight_for_error", "weight_for_reward"),
    "objective": (
        "error",
        "optimal_allocation",
        "optimal_pulls",
        "regret",
        "reward",
        "smoothness",
        "strong_concavity",
        "tradeoff",
    ),
    "policies": (
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
    ),
    "objective_families": ("MEAN_SQUARE", "ROOT_MEAN_SQUARE", "Objective", "PowerObjective", "SeparableObjective"),
    "simulation": ("Runs", "SimulationInterrupted", "Study", "SweepInterrupted", "read_study", "simulate", "sweep"),
    "stats": ("ArmStats",),
    "store": ("Store", "open_store"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        value = getattr(import_module(f"equipoise.{_MODULE_OF[name]}"), name)
        globals()[name] = value
        return value
    if name in {"metrics", "testing", "theory"}:
        return import_module(f"equipoise.{name}")
    raise AttributeError(f"module 'equipoise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
