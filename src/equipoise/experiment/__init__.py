"""Durable experiments: assignments and rewards that survive crashes, retries, delays and many processes."""

from equipoise.experiment.commands import (
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
from equipoise.experiment.configuration import Configuration
from equipoise.experiment.event_log import Event, History
from equipoise.experiment.experiment import Experiment
from equipoise.experiment.missing_rewards import DefaultReward, DropUnit, MissingReward, WaitForReward
from equipoise.experiment.status import ArmStatus, ExperimentSummary, Status, WhatIf
from equipoise.experiment.stopping import Budget, Deadline, Precision, Progress, StoppingRule
from equipoise.experiment.units import UnitStatus
from equipoise.experiment.verification import Verification

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
