"""Durable experiments: assignments and rewards that survive crashes, retries, delays and many processes."""

from equipoise.experiment.configuration import Configuration
from equipoise.experiment.events import Event
from equipoise.experiment.experiment import Experiment
from equipoise.experiment.history import History
from equipoise.experiment.listing import ExperimentSummary
from equipoise.experiment.missing import DefaultReward, DropUnit, MissingReward, WaitForReward
from equipoise.experiment.requests import (
    AddArm,
    Ask,
    Assignment,
    ChangeWeight,
    Correct,
    Finish,
    Pause,
    PauseArm,
    Request,
    Resume,
    ResumeArm,
    RetireArm,
    Settle,
    Stop,
    Tell,
    ToldReward,
)
from equipoise.experiment.status import ArmStatus, Status
from equipoise.experiment.stopping import Budget, Deadline, Precision, Progress, StoppingRule
from equipoise.experiment.units import UnitStatus
from equipoise.experiment.verifying import Verification
from equipoise.experiment.what_if import WhatIf

__all__ = [
    "AddArm",
    "ArmStatus",
    "Ask",
    "Assignment",
    "Budget",
    "ChangeWeight",
    "Configuration",
    "Correct",
    "Deadline",
    "DefaultReward",
    "DropUnit",
    "Event",
    "Experiment",
    "ExperimentSummary",
    "Finish",
    "History",
    "MissingReward",
    "Pause",
    "PauseArm",
    "Precision",
    "Progress",
    "Request",
    "Resume",
    "ResumeArm",
    "RetireArm",
    "Settle",
    "Status",
    "Stop",
    "StoppingRule",
    "Tell",
    "ToldReward",
    "UnitStatus",
    "Verification",
    "WaitForReward",
    "WhatIf",
]
