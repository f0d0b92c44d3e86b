"""What a service answers, from JSON to the types that `Experiment` returns."""

from __future__ import annotations

import math
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.experiment import (
    ArmStatus,
    Assignment,
    Configuration,
    Event,
    ExperimentSummary,
    History,
    Progress,
    Status,
    ToldReward,
    UnitStatus,
    Verification,
    WhatIf,
)

if TYPE_CHECKING:
    from equipoise._types import FloatArray, IntArray


def nothing(data: Any) -> None:
    """Read an answer of which only the arrival matters."""


def assignment(data: Any) -> Assignment:
    """Read one assignment; the service may say more of a unit than that."""
    return Assignment(**_fields(Assignment, data, "at"))


def assignments(data: Any) -> list[Assignment]:
    """Read several assignments."""
    return [assignment(one) for one in data["assignments"]]


def told_reward(data: Any) -> ToldReward:
    """Read what became of a reward."""
    return ToldReward(**_fields(ToldReward, data))


def told_rewards(data: Any) -> list[ToldReward]:
    """Read what became of several rewards."""
    return [told_reward(one) for one in data["rewards"]]


def unit_status(data: Any) -> UnitStatus:
    """Read what is known of a unit."""
    return UnitStatus(**_fields(UnitStatus, data, "at"))


def summaries(data: Any) -> list[ExperimentSummary]:
    """Read a list of experiments."""
    return [ExperimentSummary(**_fields(ExperimentSummary, one, "created_at")) for one in data["experiments"]]


def description(data: Any) -> dict[str, Any]:
    """Read a description, which is plain data."""
    return dict(data)


def configuration(data: Any) -> Configuration:
    """Read the settings out of the description of an experiment."""
    return Configuration.from_dict(data["configuration"])


def status(data: Any) -> Status:
    """Read a status."""
    arms = tuple(ArmStatus(**_fields(ArmStatus, arm)) for arm in data["arms"])
    rules = tuple(Progress(**_fields(Progress, rule)) for rule in data["stopping"])
    return Status(**_fields(Status, data, "created_at", "at") | {"arms": arms, "stopping": rules})


def history(data: Any) -> History:
    """Read a history; JSON has null where a mean is not known yet."""
    arms = tuple(data["arms"])
    return History(
        arms=arms,
        number=np.array(data["number"], np.int64),
        at=tuple(_instant(text) for text in data["at"]),
        assigned=_counts(data["assigned"], len(arms)),
        rewarded=_counts(data["rewarded"], len(arms)),
        mean=_numbers(data["mean"], len(arms)),
        std=_numbers(data["std"], len(arms)),
    )


def what_if(data: Any) -> WhatIf:
    """Read what another weight would do; JSON has no infinity, which the error is when some arm gets nothing."""
    values = _fields(WhatIf, data)
    for name, shares in (("error", "allocation"), ("present_error", "present_allocation")):
        if values[name] is None:
            values[name] = math.inf if 0 in values[shares].values() else math.nan
    return WhatIf(**values)


def verification(data: Any) -> Verification:
    """Read what a replay found."""
    return Verification(**_fields(Verification, data))


def changed(data: Any) -> bool:
    """Read whether something was changed."""
    return bool(data["changed"])


def events(data: Any) -> list[Event]:
    """Read a page of the log."""
    return [Event(**_fields(Event, one, "at")) for one in data["events"]]


def _fields(kind: type, data: Any, *instants: str) -> dict[str, Any]:
    """Return the fields of a type out of an answer, which a later version may have more of."""
    return {name: _instant(data[name]) if name in instants else data[name] for name in kind.__annotations__}


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _counts(rows: Any, n_arms: int) -> IntArray:
    return np.array(rows, np.int64).reshape(-1, n_arms)


def _numbers(rows: Any, n_arms: int) -> FloatArray:
    return np.array(rows, np.float64).reshape(-1, n_arms)  # None becomes NaN
