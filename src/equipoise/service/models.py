"""Bodies of requests and answers, as the OpenAPI document describes them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from equipoise.errors import Hint
from equipoise.experiment.names import LONGEST_NAME, LONGEST_REASON, LONGEST_UNIT

Number = StrictFloat  # which takes whole numbers too, but no text and no booleans
Name = Annotated[StrictStr, Field(min_length=1, max_length=LONGEST_NAME)]
Unit = Annotated[StrictStr, Field(min_length=1, max_length=LONGEST_UNIT)]
Weight = Annotated[Number, Field(ge=0, le=1)]
_POLICY = {"name": "ForcingBalance", "reward_weight": 0.8}


def _until_wrong(floors: Any) -> Any:
    """Return floors by arm; if one is no number, that one alone, as there is no `fail_fast` for dictionaries."""
    if isinstance(floors, dict):
        for name, floor in floors.items():
            if type(floor) not in (int, float):
                return {name: floor}
    return floors


class Body(BaseModel):
    """The body of a request: nothing that is not known, and no conversion of types.

    Lists fail at the first element that is wrong: a sentence about each of a hundred thousand would take seconds, in
    which nothing else is done.
    """

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class NewExperiment(Body):
    """An experiment to make; see `equipoise.Experiment.create`."""

    name: Name = Field(examples=["fractions"])
    arms: list[Name] = Field(
        min_length=1, max_length=100_000, fail_fast=True, examples=[["number line", "pie", "none"]]
    )
    policy: dict[str, Any] | None = Field(None, description="As `Policy.to_dict()` gives it.", examples=[_POLICY])
    reward_weight: Weight | None = Field(
        None, description="Instead of a policy: 0 is accuracy only, 1 reward only.", examples=[None]
    )
    seed: Annotated[StrictInt, Field(ge=0, le=2**63 - 1)] | None = Field(None, examples=[2024])
    floor: (
        Number
        | Annotated[list[Number], Field(fail_fast=True)]
        | Annotated[dict[str, Number], BeforeValidator(_until_wrong)]
    ) = Field(0.0, description="Shares kept for arms.", examples=[0.05])
    control: Name | None = Field(None, examples=["none"])
    control_share: Weight = Field(0.0, examples=[0.1])
    warm_up: Annotated[StrictInt, Field(ge=0)] = Field(0, examples=[0])
    reward_range: Annotated[list[Number], Field(min_length=2, max_length=2)] | None = Field(None, examples=[[0, 1]])
    direction: Literal["maximise", "minimise"] = "maximise"
    missing: dict[str, Any] | None = Field(None, examples=[{"name": "DropUnit", "window_seconds": 604800}])
    stopping: list[dict[str, Any]] = Field(
        default_factory=list, fail_fast=True, examples=[[{"name": "Budget", "units": 2000}]]
    )
    failure_probability: Number = Field(0.05, examples=[0.05])
    metadata: dict[str, Any] = Field(default_factory=dict, examples=[{"class": "4b"}])


class NewAssignment(Body):
    """Who is to be assigned."""

    unit: Unit = Field(examples=["student-42"])
    attributes: dict[str, Any] | None = Field(None, examples=[{"school": "north"}])


class NewAssignments(Body):
    """Who are to be assigned."""

    units: list[Unit | NewAssignment] = Field(
        fail_fast=True, examples=[["student-42", {"unit": "student-43", "attributes": {"age": 9}}]]
    )


class NewReward(Body):
    """A reward of the unit in the path."""

    reward: Number = Field(examples=[0.75])


class UnitReward(NewReward):
    """A unit and its reward."""

    unit: Unit = Field(examples=["student-42"])


class NewRewards(Body):
    """Rewards of several units, recorded all or none."""

    rewards: list[UnitReward] = Field(fail_fast=True, examples=[[{"unit": "student-42", "reward": 0.75}]])


class Correction(NewReward):
    """Another reward in the place of the one told."""

    reason: Annotated[StrictStr, Field(min_length=1, max_length=LONGEST_REASON)] = Field(examples=["typed wrong"])


class NewArm(Body):
    """An arm to add."""

    name: Name = Field(examples=["blocks"])
    floor: Weight = Field(0.0, examples=[0.05])


class NewWeight(Body):
    """The weight between reward and accuracy from now on."""

    reward_weight: Weight = Field(examples=[0.9])


class HowToFinish(Body):
    """How to finish."""

    anyway: StrictBool = Field(False, description="Even while rewards are held back.", examples=[False])


# Answers; what they look like is in `examples.py`

Instant = Annotated[str, Field(json_schema_extra={"format": "date-time"})]


class Failure(BaseModel):
    """What went wrong, and what to do about it."""

    error: str = Field(examples=["the reward of unit 'student-42' was told before and is 0.75; got 0.5"])
    hint: str | None = Field(examples=[Hint.CORRECT.request])


class Arm(BaseModel):
    """An arm of an experiment."""

    name: str
    state: Literal["active", "paused", "retired"]
    floor: float


class Description(BaseModel):
    """What an experiment is made with, and whether it takes new units."""

    name: str
    state: Literal["enrolling", "paused", "stopped", "finished"]
    created_at: Instant
    arms: list[Arm]
    configuration: dict[str, Any]


class Listed(BaseModel):
    """An experiment as it is listed."""

    name: str
    state: str
    created_at: Instant
    policy: dict[str, Any]
    n_arms: int
    n_assigned: int
    n_rewarded: int


class Listing(BaseModel):
    """All experiments that the key may see, oldest first."""

    experiments: list[Listed]


class Assignment(BaseModel):
    """The arm of a unit, and how it came to it."""

    unit: str
    arm: str
    number: int
    probability: float
    forced: bool
    at: Instant
    new: bool = Field(description="Whether it was made now.")


class Assignments(BaseModel):
    """Arms of several units, in the order they were asked for."""

    assignments: list[Assignment]


class UnitState(BaseModel):
    """What is known of one unit."""

    unit: str
    arm: str
    number: int
    probability: float
    forced: bool
    at: Instant
    new: bool
    state: str
    reward: float | None
    counted: bool


class ToldReward(BaseModel):
    """What is known of a unit's reward."""

    unit: str
    arm: str
    reward: float
    counted: bool = Field(description="Whether it is in the estimates by now.")
    new: bool


class ToldRewards(BaseModel):
    """What is known of several units' rewards."""

    rewards: list[ToldReward]


class ArmState(BaseModel):
    """Where an arm stands; see `equipoise.experiment.ArmStatus`."""

    model_config = ConfigDict(extra="allow")

    arm: str
    state: str
    assigned: int
    rewarded: int
    pending: int
    held: int
    overdue: int
    defaulted: int
    dropped: int
    mean: float | None
    std: float | None
    target_share: float | None
    actual_share: float | None
    low: float | None
    high: float | None
    half_width: float | None


class Progress(BaseModel):
    """How far a stopping rule is."""

    rule: str
    met: bool
    now: int | float | str | None
    goal: int | float | str


class State(BaseModel):
    """Where an experiment stands; see `equipoise.experiment.Status`."""

    model_config = ConfigDict(extra="allow")

    name: str
    state: str
    created_at: Instant
    at: Instant
    policy: dict[str, Any]
    direction: str
    missing: str
    n_events: int
    n_assigned: int
    n_rewarded: int
    n_pending: int
    n_held: int
    n_overdue: int
    n_defaulted: int
    n_dropped: int
    average_reward: float | None
    interval: str
    confidence: float
    arms: list[ArmState]
    stopping: list[Progress]


class Past(BaseModel):
    """How an experiment went, at some of its events; one row per point, one column per arm."""

    arms: list[str]
    number: list[int]
    at: list[Instant]
    assigned: list[list[int]]
    rewarded: list[list[int]]
    mean: list[list[float | None]]
    std: list[list[float | None]]


class Event(BaseModel):
    """One thing that happened; see `equipoise.experiment.Event`."""

    number: int
    kind: str
    at: Instant
    who: str | None
    unit: str | None
    arm: str | None
    decision: int | None
    reward: float | None
    probability: float | None
    forced: bool | None
    counted: bool | None
    replaced: float | None
    details: dict[str, Any]


class Events(BaseModel):
    """A page of the log; ask for those after `next` to go on."""

    events: list[Event]
    next: int


class WhatIf(BaseModel):
    """What another weight would ask for now, and its price."""

    reward_weight: float
    present_weight: float
    allocation: dict[str, float]
    present_allocation: dict[str, float]
    reward: float
    present_reward: float
    error: float | None
    present_error: float | None


class Verification(BaseModel):
    """A log that gave what is recorded."""

    n_events: int
    n_decisions: int
    seconds: float


class Rebuilt(BaseModel):
    """Whether anything was not as the log says."""

    changed: bool


class Health(BaseModel):
    """Whether the service is alive, or ready."""

    status: Literal["ok"]
