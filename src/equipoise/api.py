"""The HTTP API as one table: every verb with its method, path, roles, body and answer.

The service routes requests by it, the client sends them by it, and the OpenAPI document, the hints and the
documentation are made from it. A new verb is a row here, a method of `Experiment` and a command.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct
from msgspec import field as default

from equipoise.experiment.names import LONGEST_NAME, LONGEST_REASON, LONGEST_UNIT

READER, ASSIGNER, ADMIN = "reader", "assigner", "admin"
READERS, ASSIGNERS, ADMINS = (READER, ADMIN), (ASSIGNER, ADMIN), (ADMIN,)
EVERY_KEY, PUBLIC = (READER, ASSIGNER, ADMIN), ()

MOST_EVENTS = 10_000
"""Events on one page of the log."""

Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]
Unit: TypeAlias = Annotated[str, Meta(min_length=1, max_length=LONGEST_UNIT)]
Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]


class Body(Struct, forbid_unknown_fields=True):
    """The body of a request: unknown keys are refused, and types are not converted."""


class NewExperiment(Body):
    """An experiment to create; see `equipoise.Experiment.create`."""

    name: Name
    arms: Annotated[list[Name], Meta(min_length=1, max_length=100_000)]
    policy: Annotated[dict[str, Any] | None, Meta(description="As `Policy.to_dict()` returns it.")] = None
    reward_weight: Annotated[
        Share | None, Meta(description="Instead of a policy: 0 is accuracy only, 1 reward only.")
    ] = None
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None
    floor: Annotated[float | list[float] | dict[str, float], Meta(description="Shares kept for arms.")] = 0.0
    control: Name | None = None
    control_share: Share = 0.0
    warm_up: Annotated[int, Meta(ge=0)] = 0
    reward_range: Annotated[list[float], Meta(min_length=2, max_length=2)] | None = None
    direction: Literal["maximise", "minimise"] = "maximise"
    missing: dict[str, Any] | None = None
    stopping: list[dict[str, Any]] = default(default_factory=list)
    failure_probability: float = 0.05
    metadata: dict[str, Any] = default(default_factory=dict)


class NewAssignment(Body):
    """A unit to assign."""

    unit: Unit
    attributes: dict[str, Any] | None = None


class NewAssignments(Body):
    """Several units to assign."""

    units: list[Unit | NewAssignment]


class NewReward(Body):
    """The reward of the unit in the path."""

    reward: float


class UnitReward(Body):
    """A unit and its reward."""

    unit: Unit
    reward: float


class NewRewards(Body):
    """Rewards of several units, recorded all or none."""

    rewards: list[UnitReward]


class Correction(Body):
    """Another reward for the unit in the path, and why."""

    reward: float
    reason: Annotated[str, Meta(min_length=1, max_length=LONGEST_REASON)]


class NewArm(Body):
    """An arm to add."""

    name: Name
    floor: Share = 0.0


class NewWeight(Body):
    """The weight between reward and accuracy from now on."""

    reward_weight: Share


class Finishing(Body):
    """How to finish."""

    anyway: Annotated[bool, Meta(description="Even while rewards are held back.")] = False


class Page(Struct):
    """Which part of the log."""

    after: Annotated[int, Meta(ge=0, le=2**62, description="Number of the last event that is known.")] = 0
    limit: Annotated[int, Meta(ge=1, le=MOST_EVENTS, description="Events to return, at most.")] = 1_000


class Points(Struct):
    """How fine a history."""

    points: Annotated[int, Meta(ge=1, le=100_000, description="Points to return, at most.")] = 100


class TriedWeight(Struct):
    """The weight to try."""

    reward_weight: Annotated[float, Meta(ge=0, le=1, description="The weight to try.", examples=[0.9])]


class ExportFormat(Struct):
    """The kind of file."""

    format: Annotated[Literal["csv", "jsonl", "parquet"], Meta(description="Kind of file.")] = "csv"


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One row of the table.

    Attributes
    ----------
    verb : str
        The operation id; for a verb of an experiment, the name of the method of `Experiment`.
    method, path : str
        Names in the path are percent-encoded.
    roles : tuple of str
        Roles of keys that may call it; none for what needs no key.
    tag, summary : str
        The heading and the title in the documentation.
    body, query : Struct class or None
        What the request holds.
    failures : tuple of int
        Statuses of errors besides those that every endpoint may answer.
    slow : bool
        Whether it takes as long as the experiment is large; such calls have threads and a time limit of their own.
    """

    verb: str
    method: str
    path: str
    roles: tuple[str, ...]
    tag: str
    summary: str
    body: type[Body] | None = None
    query: type[Struct] | None = None
    failures: tuple[int, ...] = (404, 409)
    slow: bool = False
    path_names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        names = tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))
        object.__setattr__(self, "path_names", names)


_EXPERIMENT = "/experiments/{name}"
_UNIT = f"{_EXPERIMENT}/assignments/{{unit}}"
_ARM = f"{_EXPERIMENT}/arms/{{arm}}"


def _unit(verb: str, method: str, path: str, roles: tuple[str, ...], summary: str, **more: Any) -> Endpoint:
    return Endpoint(verb=verb, method=method, path=path, roles=roles, tag="Units", summary=summary, **more)


def _change(verb: str, method: str, path: str, summary: str, **more: Any) -> Endpoint:
    return Endpoint(verb=verb, method=method, path=path, roles=ADMINS, tag="Experiments", summary=summary, **more)


def _record(verb: str, path: str, summary: str, **more: Any) -> Endpoint:
    more = {"failures": (404,)} | more
    return Endpoint(verb=verb, method="GET", path=path, roles=READERS, tag="Records", summary=summary, **more)


ENDPOINTS = (
    _unit("ask", "POST", f"{_EXPERIMENT}/assignments", ASSIGNERS, "Assign a unit", body=NewAssignment),
    _unit("ask_many", "POST", f"{_EXPERIMENT}/assignments/many", ASSIGNERS, "Assign many units", body=NewAssignments),
    _unit("unit", "GET", _UNIT, EVERY_KEY, "Look up a unit", failures=(404,)),
    _unit("tell", "PUT", f"{_UNIT}/reward", ASSIGNERS, "Reward a unit", body=NewReward),
    _unit("tell_many", "POST", f"{_EXPERIMENT}/rewards/many", ASSIGNERS, "Reward many units", body=NewRewards),
    _unit("correct", "POST", f"{_UNIT}/corrections", ADMINS, "Correct a reward", body=Correction),
    Endpoint(
        verb="list",
        method="GET",
        path="/experiments",
        roles=READERS,
        tag="Experiments",
        summary="List experiments",
        failures=(),
    ),
    _change("create", "POST", "/experiments", "Create an experiment", body=NewExperiment, failures=(409,)),
    Endpoint(
        verb="describe",
        method="GET",
        path=_EXPERIMENT,
        roles=READERS,
        tag="Experiments",
        summary="Describe an experiment",
        failures=(404,),
    ),
    _change("pause", "POST", f"{_EXPERIMENT}/pause", "Pause enrolment"),
    _change("resume", "POST", f"{_EXPERIMENT}/resume", "Resume enrolment"),
    _change("stop", "POST", f"{_EXPERIMENT}/stop", "Stop enrolment"),
    _change("settle", "POST", f"{_EXPERIMENT}/settle", "Settle units whose window has passed", slow=True),
    _change("finish", "POST", f"{_EXPERIMENT}/finish", "Finish", body=Finishing, slow=True),
    _change("change_weight", "PUT", f"{_EXPERIMENT}/weight", "Change the weight", body=NewWeight),
    _change("add_arm", "POST", f"{_EXPERIMENT}/arms", "Add an arm", body=NewArm),
    _change("pause_arm", "POST", f"{_ARM}/pause", "Pause an arm"),
    _change("resume_arm", "POST", f"{_ARM}/resume", "Resume an arm"),
    _change("retire_arm", "POST", f"{_ARM}/retire", "Retire an arm"),
    _record("status", f"{_EXPERIMENT}/status", "Status of an experiment"),
    _record("history", f"{_EXPERIMENT}/history", "History of an experiment", query=Points, slow=True),
    _record("events_page", f"{_EXPERIMENT}/events", "The log", query=Page),
    _record(
        "export", f"{_EXPERIMENT}/export", "All units as a table", query=ExportFormat, failures=(404, 501), slow=True
    ),
    _record("what_if", f"{_EXPERIMENT}/what-if", "Another weight", query=TriedWeight, failures=(404, 409)),
    _record("verify", f"{_EXPERIMENT}/verify", "Replay the log", failures=(404, 409), slow=True),
    Endpoint(
        verb="rebuild",
        method="POST",
        path=f"{_EXPERIMENT}/rebuild",
        roles=ADMINS,
        tag="Records",
        summary="Rebuild the tables from the log",
        slow=True,
    ),
)
"""Every verb, in the order of the documentation."""

BY_VERB = {endpoint.verb: endpoint for endpoint in ENDPOINTS}
