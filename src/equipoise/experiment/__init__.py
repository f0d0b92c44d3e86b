"""Durable experiments: assignments and rewards that survive crashes, retries, delays and many processes."""

from typing import TYPE_CHECKING, Any

from equipoise.experiment.commands import (
    AddArm,
    Ask,
    ChangeDial,
    ChangeWeight,
    Correct,
    Finish,
    Mute,
    Note,
    Pause,
    PauseArm,
    Request,
    Resume,
    ResumeArm,
    RetireArm,
    Settle,
    Stop,
    Tell,
    Unmute,
)
from equipoise.experiment.event_sentences import sentence_of
from equipoise.experiment.experiment import Experiment
from equipoise.experiment.missing_rewards import DefaultReward, DropUnit, MissingReward, WaitForReward
from equipoise.experiment.records import (
    Alert,
    ArmEstimate,
    ArmStatus,
    Assignment,
    Check,
    Comparison,
    DialPosition,
    DialPreset,
    Difference,
    Event,
    ExperimentSummary,
    Fidelity,
    Gain,
    Health,
    History,
    LastVerification,
    PlannedFigure,
    PrecisionReached,
    Prices,
    Progress,
    RefusedCalls,
    Report,
    Status,
    ToldReward,
    UnitPage,
    UnitStatus,
    Verification,
    WhatIf,
)
from equipoise.experiment.stopping import Budget, Deadline, Decided, Precision, StoppingRule

if TYPE_CHECKING:
    from equipoise.experiment.backups import backup, restore
    from equipoise.experiment.configuration import Configuration

__all__ = [
    "AddArm",
    "Alert",
    "ArmEstimate",
    "ArmStatus",
    "Ask",
    "Assignment",
    "Budget",
    "ChangeDial",
    "ChangeWeight",
    "Check",
    "Comparison",
    "Configuration",
    "Correct",
    "Deadline",
    "Decided",
    "DefaultReward",
    "DialPosition",
    "DialPreset",
    "Difference",
    "DropUnit",
    "Event",
    "Experiment",
    "ExperimentSummary",
    "Fidelity",
    "Finish",
    "Gain",
    "Health",
    "History",
    "LastVerification",
    "MissingReward",
    "Mute",
    "Note",
    "Pause",
    "PauseArm",
    "PlannedFigure",
    "Precision",
    "PrecisionReached",
    "Prices",
    "Progress",
    "RefusedCalls",
    "Report",
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
    "UnitPage",
    "UnitStatus",
    "Unmute",
    "Verification",
    "WaitForReward",
    "WhatIf",
    "backup",
    "restore",
    "sentence_of",
]


def __getattr__(name: str) -> Any:
    if name in ("backup", "restore"):  # they open stores, which a client does not need
        from equipoise.experiment import backups

        return getattr(backups, name)
    if name == "Configuration":  # imports every policy, which a client does not need
        from equipoise.experiment.configuration import Configuration

        return Configuration
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
