"""The HTTP API as one table of endpoints: each verb with its method, path, roles, body and answer.

The service routes requests by this table, the client builds them from it, and the OpenAPI document, the hints and the
documentation are generated from it. A new verb is a row here, a method of `Experiment` and a command.
"""

from __future__ import annotations

from dataclasses import dataclass, field, is_dataclass
from datetime import datetime
from functools import cache, reduce
from operator import or_
from types import GenericAlias, UnionType
from typing import Annotated, Any, Literal, TypeAlias, Union, cast, get_args, get_origin, get_type_hints

from msgspec import UNSET, Meta, Struct, UnsetType, defstruct
from msgspec import field as default

from equipoise import checks
from equipoise.experiment import full_report, records
from equipoise.experiment.description import LONGEST_QUESTION, LONGEST_REWARD_UNIT
from equipoise.experiment.names import LONGEST_NAME, LONGEST_NOTE, LONGEST_REASON, LONGEST_UNIT, MOST_LISTED

READER, ASSIGNER, ADMIN = "reader", "assigner", "admin"
READERS, ASSIGNERS, ADMINS = (READER, ADMIN), (ASSIGNER, ADMIN), (ADMIN,)
EVERY_KEY, PUBLIC = (READER, ASSIGNER, ADMIN), ()

NO_BODY, SMALL_BODY = 1_024, 65_536
"""Most bytes of a body where none is needed, and of one about a single unit or setting.

The longest unit, attributes and reason take some 35,000 bytes with every character escaped; the rest is for blanks.
"""

MOST_EVENTS = 10_000
"""Most events on one page of the log."""

Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]
Unit: TypeAlias = Annotated[str, Meta(min_length=1, max_length=LONGEST_UNIT)]
Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]


Weight: TypeAlias = Annotated[Share | None, Meta(description="The dial: 0 is accuracy only, 1 reward only.")]
Kept: TypeAlias = Annotated[
    Annotated[float, Meta(gt=0, le=1)] | None,
    Meta(description="The dial in other words: as accurate as the best design with this share of the units."),
]
About: TypeAlias = Annotated[
    Literal["average", "every-arm", "best-arm"] | None, Meta(description="What the information is about.")
]
Difference: TypeAlias = Annotated[
    Annotated[float, Meta(gt=0)] | None, Meta(description="For best-arm: smaller differences of means count as this.")
]
HalfWidth: TypeAlias = Annotated[
    Annotated[float, Meta(gt=0)] | None,
    Meta(description="A goal: the half-width that every arm's interval, or the average, should have after `units`."),
]
Units: TypeAlias = Annotated[
    Annotated[int, Meta(ge=1)] | None, Meta(description="After how many units in all `half_width` should be reached.")
]


Reason: TypeAlias = Annotated[
    Annotated[str, Meta(min_length=1, max_length=LONGEST_REASON)] | None, Meta(description="Why, for the log.")
]


Expected: TypeAlias = Annotated[
    Annotated[int, Meta(ge=0, le=checks.LARGEST_COUNT)] | None,
    Meta(description="Number of an event: refuse this if the experiment was changed after it."),
]


class Body(Struct, forbid_unknown_fields=True):
    """The body of a request: refuses unknown keys and does not convert types."""


class NewExperiment(Body):
    """An experiment to create; see `equipoise.Experiment.create`."""

    name: Name
    arms: Annotated[list[Name], Meta(min_length=1, max_length=100_000)]
    policy: Annotated[dict[str, Any] | None, Meta(description="As `Policy.to_dict()` returns it.")] = None
    reward_weight: Weight = None
    information_kept: Kept = None
    information_about: About = None
    smallest_difference: Difference = None
    half_width: HalfWidth = None
    units: Units = None
    drift: (
        Annotated[
            Literal["none", "declared", "detected"],
            Meta(description="What the recommended policy does about rewards that rise or fall with time."),
        ]
        | None
    ) = None
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None
    floor: Annotated[float | list[float] | dict[str, float], Meta(description="Shares kept for arms.")] = 0.0
    control: Name | None = None
    control_share: Share = 0.0
    warm_up: Annotated[int, Meta(ge=0)] = 0
    most_units: Annotated[int, Meta(ge=1, description="Nobody is assigned after this many units.")] | None = None
    reward_range: (
        Annotated[list[float | None], Meta(min_length=2, max_length=2, description="null for an open end.")] | None
    ) = None
    reward_cap: Annotated[float, Meta(description="A larger reward counts as this.")] | None = None
    direction: Literal["maximise", "minimise"] = "maximise"
    missing: dict[str, Any] | None = None
    stopping: list[dict[str, Any]] = default(default_factory=list)
    failure_probability: float = 0.05
    covariates: Annotated[list[Name], Meta(description="Attributes by which reports adjust and split.")] = default(
        default_factory=list
    )
    description: Annotated[
        dict[str, Any] | None,
        Meta(description="In words: `title`, `question`, `outcome`, `reward_unit`, `owner`, and texts of `arms`."),
    ] = None
    metadata: dict[str, Any] = default(default_factory=dict)
    paused: Annotated[bool, Meta(description="Whether nobody is assigned before it is resumed.")] = False


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
    """A new reward for the unit in the path, and the reason for it."""

    reward: float
    reason: Annotated[str, Meta(min_length=1, max_length=LONGEST_REASON)]


class Withdrawal(Body):
    """Why the unit in the path is withdrawn."""

    reason: Annotated[str, Meta(min_length=1, max_length=LONGEST_REASON)]


class Change(Body):
    """Why something is changed, and what is known of the experiment before."""

    reason: Reason = None
    expected_change: Expected = None


class NewArm(Body):
    """An arm to add."""

    name: Name
    floor: Share = 0.0
    reason: Reason = None
    expected_change: Expected = None


class NewWeight(Body):
    """The new weight between reward and accuracy."""

    reward_weight: Share
    reason: Reason = None
    expected_change: Expected = None


class NewDial(Body):
    """The new dial between reward and accuracy: `reward_weight`, `information_kept`, or `half_width` and `units`."""

    reward_weight: Weight = None
    information_kept: Kept = None
    information_about: About = None
    smallest_difference: Difference = None
    half_width: HalfWidth = None
    units: Units = None
    reason: Reason = None
    expected_change: Expected = None


Text: TypeAlias = Annotated[
    Annotated[str, Meta(max_length=LONGEST_NAME)] | None, Meta(description='null leaves it as it is, "" removes it.')
]


class NewDescription(Body):
    """What an experiment is about, in words."""

    title: Text = None
    question: Annotated[str, Meta(max_length=LONGEST_QUESTION)] | None = None
    outcome: Annotated[Text, Meta(description="What people do whose reward is 1, or what other rewards measure.")] = (
        None
    )
    reward_unit: Annotated[
        Annotated[str, Meta(max_length=LONGEST_REWARD_UNIT)] | None,
        Meta(description="The unit of rewards that are not yes or no."),
    ] = None
    owner: Text = None
    arms: Annotated[dict[str, str] | None, Meta(description="What these arms are, by name.")] = None
    reason: Reason = None
    expected_change: Expected = None


class Finishing(Body):
    """Options for finishing an experiment."""

    anyway: Annotated[
        bool, Meta(description="Even while windows are open; rewards of those units never count then.")
    ] = False
    reason: Reason = None
    expected_change: Expected = None


class NewNote(Body):
    """A note for the log, or a decision."""

    text: Annotated[str, Meta(min_length=1, max_length=LONGEST_NOTE)]
    kind: Literal["note", "decision"] = "note"


CheckName: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=60, description="The check, as the health of the experiment names it.")
]


class NewMute(Body):
    """A check whose alerts are to be muted, until when and why."""

    check: CheckName
    until: Annotated[str, Meta(description="An instant with a zone, at most a year away.")]
    reason: Annotated[str, Meta(min_length=1, max_length=LONGEST_REASON, description="Why, for the log.")]
    arm: Name | None = None


class Unmuting(Body):
    """A check whose alerts are to be told again."""

    check: CheckName
    reason: Reason = None
    arm: Name | None = None


Before: TypeAlias = (
    Annotated[int, Meta(ge=1, le=2**62, description="Only events before the one of this number.")] | UnsetType
)
Kinds: TypeAlias = (
    Annotated[
        str, Meta(description="Only events of these kinds, separated by commas.", examples=["weight_changed,noted"])
    ]
    | UnsetType
)


At: TypeAlias = (
    Annotated[int, Meta(ge=1, le=2**62, description="Number of an event: the experiment as it was right after it.")]
    | UnsetType
)


class AsOf(Struct):
    """Which moment to look at; the present by default."""

    at: At = UNSET


class Page(Struct):
    """The part of the log to return."""

    after: Annotated[int, Meta(ge=0, le=2**62, description="Number of the last event that is known.")] = 0
    limit: Annotated[int, Meta(ge=1, le=MOST_EVENTS, description="Events to return, at most.")] = 1_000
    before: Before = UNSET
    kinds: Kinds = UNSET
    newest_first: Annotated[
        bool, Meta(description="Whether to begin at the end; then `next` is what to pass as `before` to go on.")
    ] = False
    at: At = UNSET


class LatestChanges(Struct):
    """The latest changes to return."""

    limit: Annotated[int, Meta(ge=1, le=MOST_EVENTS, description="Events to return, at most.")] = 50
    before: Before = UNSET
    kinds: Kinds = UNSET
    at: At = UNSET


class UnitFilter(Struct):
    """The units to return."""

    state: (
        Annotated[
            Literal["waiting", "held", "counted", "overdue", "defaulted", "dropped", "withdrawn"],
            Meta(description="Units in this state only.", examples=["overdue"]),
        ]
        | UnsetType
    ) = UNSET
    prefix: (
        Annotated[
            str,
            Meta(min_length=1, max_length=LONGEST_UNIT, description="How their names begin.", examples=["student-4"]),
        ]
        | UnsetType
    ) = UNSET
    limit: Annotated[int, Meta(ge=1, le=MOST_LISTED, description="Units to return, at most.")] = 50
    after: Annotated[str, Meta(max_length=600, description="`next` of the page before.")] | UnsetType = UNSET


class Points(Struct):
    """The resolution of a history."""

    points: Annotated[
        int, Meta(ge=1, le=100_000, description="Points to return, at most; times arms, at most 1,000,000.")
    ] = 100
    at: At = UNSET


class PriceQuery(Struct):
    """How to price the positions of the dial."""

    people_per_day: (
        Annotated[
            float,
            Meta(gt=0, description="The pace that days are computed by; that of the last seven days.", examples=[95.5]),
        ]
        | UnsetType
    ) = UNSET
    at: At = UNSET


class Periods(Struct):
    """The periods of a timeline."""

    every: Annotated[
        Literal["hour", "6 hours", "day", "week"],
        Meta(description="Length of a period; days begin at midnight in UTC, weeks on Mondays."),
    ] = "day"
    since: (
        Annotated[
            str,
            Meta(
                description="The period that this instant is in is the first one; by default that of the creation.",
                examples=["2027-06-30T18:00:00Z"],
            ),
        ]
        | UnsetType
    ) = UNSET
    at: At = UNSET


class TriedDial(Struct):
    """The dial to try: `reward_weight`, `information_kept`, or `half_width` and `units`."""

    reward_weight: Annotated[float, Meta(ge=0, le=1, description="A weight to try.")] | UnsetType = UNSET
    information_kept: (
        Annotated[float, Meta(gt=0, le=1, description="Or a share of the information to keep.", examples=[0.7])]
        | UnsetType
    ) = UNSET
    information_about: (
        Annotated[
            Literal["average", "every-arm", "best-arm"],
            Meta(description="What the information is about.", examples=["every-arm"]),
        ]
        | UnsetType
    ) = UNSET
    smallest_difference: (
        Annotated[float, Meta(gt=0, description="For best-arm: smaller differences of means count as this.")]
        | UnsetType
    ) = UNSET
    half_width: (
        Annotated[float, Meta(gt=0, description="Or a goal: the half-width of intervals after `units`.")] | UnsetType
    ) = UNSET
    units: Annotated[int, Meta(ge=1, description="After how many units, those so far included.")] | UnsetType = UNSET
    more_units: (
        Annotated[
            int,
            Meta(
                ge=0,
                le=checks.LARGEST_COUNT,
                description="After how many further units half-widths are predicted; as many as there have been.",
            ),
        ]
        | UnsetType
    ) = UNSET
    at: At = UNSET


class Compared(Struct):
    """What to compare."""

    control: (
        Annotated[
            str, Meta(description="Compare the other arms with this one; the declared control.", examples=["none"])
        ]
        | UnsetType
    ) = UNSET
    all_pairs: Annotated[bool, Meta(description="Compare all pairs although there is a control.")] = False
    arm: Annotated[str, Meta(description="Or one pair, declared before: this arm ...")] | UnsetType = UNSET
    other: Annotated[str, Meta(description="... and this one.")] | UnsetType = UNSET
    confidence: (
        Annotated[float, Meta(gt=0, lt=1, description="Of all differences together.", examples=[0.9])] | UnsetType
    ) = UNSET
    guaranteed: Annotated[
        bool, Meta(description="Whether differences shall hold for any rewards in the declared range.")
    ] = False
    at: At = UNSET


class Reported(Struct):
    """What to report."""

    control: (
        Annotated[
            str, Meta(description="Compare the other arms with this one; the declared control.", examples=["none"])
        ]
        | UnsetType
    ) = UNSET
    adjust: (
        Annotated[
            str,
            Meta(
                description="Attributes whose effect is taken out, as a row of CSV; the declared ones by default.",
                examples=["age,school"],
            ),
        ]
        | UnsetType
    ) = UNSET
    by: Annotated[str, Meta(description="Attributes to split by, as a row of CSV.", examples=["class"])] | UnsetType = (
        UNSET
    )
    confidence: (
        Annotated[float, Meta(gt=0, lt=1, description="Of all intervals of one kind.", examples=[0.9])] | UnsetType
    ) = UNSET
    at: At = UNSET


class ReportedInFull(Reported):
    """What to report on, and whether to verify the log."""

    log: Annotated[bool, Meta(description="Whether to read the log, for more than the comparison.")] = True
    verify: Annotated[bool, Meta(description="Whether to replay the whole log, as `verify` does.")] = True


class ExportFormat(Struct):
    """The file format of an export."""

    format: Annotated[Literal["csv", "jsonl", "parquet"], Meta(description="Kind of file.")] = "csv"


class NewPlan(Body):
    """A plan to simulate: as the JSON of `Plan.to_dict()`, or as the text of a TOML file that reads no other files."""

    plan: dict[str, Any] | None = None
    toml: Annotated[str, Meta(max_length=250_000)] | None = None
    seconds: Annotated[float, Meta(gt=0, le=60, description="Processor seconds at most.")] = 60.0


class PlanRecord(Struct):
    """A plan, and what simulations say of it so far."""

    id: str
    title: Annotated[str, Meta(description="What the plan is called, or else its arms.")]
    state: Literal["waiting", "working", "done", "cancelled", "failed"]
    replications: Annotated[int, Meta(description="Simulated experiments so far, per way.")]
    asked_at: datetime
    seconds: float
    forecast: Annotated[dict[str, Any] | None, Meta(description="As `Forecast.to_dict()` returns it.")] = None
    plan: Annotated[dict[str, Any] | None, Meta(description="As `Plan.to_dict()` returns it.")] = None
    error: str | None = None


class PlanList(Struct):
    """The plans that the service keeps."""

    plans: list[PlanRecord]


# Answers: an experiment's records as JSON objects


def _answer(name: str, text: str | None, /, **fields: Any) -> type[Struct]:
    return defstruct(name, list(fields.items()), namespace={"__doc__": text})


_ARRAYS = {"IntArray": list, "FloatArray": list}
"""Types that records name without importing them, since NumPy takes long to import; JSON has lists for both."""
_FINITE = (records.Comparison,)
"""Records whose numbers are finite or None, wherever they are; so JSON holds them as they are."""


def _as_object(record: Any, **changed: Any) -> type[Struct]:
    """Return a struct with the fields of a record, in order; `changed` overrides types."""
    return _answer(record.__name__, record.__doc__, **get_type_hints(record, localns=_ARRAYS) | changed)


@cache
def _nullable(record: Any) -> Any:
    """Return a struct with the fields of a record and of the records in it; numbers may be null, as NaN is in JSON."""
    hints = get_type_hints(record, localns=_ARRAYS)
    return _answer(record.__name__, record.__doc__, **{name: _with_null(hint) for name, hint in hints.items()})


def _with_null(hint: Any) -> Any:
    """Return a type in which every float may be null."""
    if hint is float:
        return float | None
    if is_dataclass(hint):
        return hint if hint in _FINITE else _nullable(cast("Any", hint))
    if get_args(hint) and get_origin(hint) is not Literal:
        parts = tuple(_with_null(part) for part in get_args(hint))
        origin: Any = get_origin(hint)
        return reduce(or_, parts) if origin in (Union, UnionType) else GenericAlias(origin, parts)
    return hint


def _list(of: Any) -> Any:
    return GenericAlias(list, (of,))


class Failure(Struct):
    """An error and a hint on how to fix it."""

    error: str
    hint: str | None


class Arm(Struct):
    """An arm of an experiment."""

    name: str
    state: Literal["active", "paused", "retired"]
    floor: float


class Description(Struct):
    """What an experiment is about, its configuration, its arms, and whether it takes new units."""

    name: str
    state: Literal["enrolling", "paused", "stopped", "finished"]
    created_at: datetime
    arms: list[Arm]
    description: Annotated[dict[str, Any], Meta(description="In words, as far as it is described.")]
    configuration: dict[str, Any]


class Rebuilt(Struct):
    """Whether the rebuild changed any table."""

    changed: bool


class Erased(Struct):
    """The unit that was erased."""

    erased: str


class Deleted(Struct):
    """The experiment that was deleted."""

    deleted: str


class Alive(Struct):
    """The service is alive, or ready."""

    status: Literal["ok"]


Assignment, ToldReward = _as_object(records.Assignment), _as_object(records.ToldReward)
UnitStatus = _as_object(records.UnitStatus, new=bool)
Assignments = _answer(
    "Assignments", "Assignments of several units, in the order of the request.", assignments=_list(Assignment)
)
ToldRewards = _answer(
    "ToldRewards", "Rewards of several units, in the order of the request.", rewards=_list(ToldReward)
)
Listing = _answer(
    "Listing", "The experiments that the key may see, oldest first.", experiments=_list(records.ExperimentSummary)
)
Events = _answer(
    "Events",
    "A page of the log; pass `next` as `after` to go on, or as `before` where the newest come first.",
    events=_list(records.Event),
    next=int,
)
_Counts, _Means = list[list[int]], list[list[float | None]]
History = _as_object(records.History, number=list[int], assigned=_Counts, rewarded=_Counts, mean=_Means, std=_Means)
_Delays = list[list[list[int]]]
Timeline = _as_object(
    records.Timeline,
    **dict.fromkeys(("assigned", "rewarded", "corrected", "expired", "withdrawn"), _Counts),
    **dict.fromkeys(("assigned_so_far", "counted_so_far", "answered", "matured", "missing"), _Counts),
    **dict.fromkeys(("mean", "std", "low", "high", "share_given", "share_wanted"), _Means),
    **dict.fromkeys(("old_enough", "rewarded_within"), _Delays),
)
Report = _nullable(records.Report)
FullReport = _as_object(
    full_report.FullReport,
    report=cast("Any", Report) | None,
    timeline=cast("Any", Timeline) | None,
    changes=_list(records.Event),
)
UnitPage = _as_object(records.UnitPage, units=_list(UnitStatus))
UnitEvents = _answer("UnitEvents", "The events of a unit, in the order of the log.", events=_list(records.Event))
WhatIf = _as_object(records.WhatIf, error=float | None, present_error=float | None)


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One endpoint: a row of the table.

    Attributes
    ----------
    verb : str
        The verb; for an experiment, the name of the method of `Experiment`.
    method, path : str
        Names in the path are percent-encoded.
    roles : tuple of str
        Roles of keys that may call it; empty if it needs no key.
    tag, summary, text : str
        Heading, title and description in the documentation.
    operation : str
        The OpenAPI operation id, from which code generators derive method names; the verb by default.
    body, query : Struct class or None
        Type of the body and of the query parameters.
    body_bytes : int or None
        Most bytes of the body; None for what the service allows its largest bodies.
    answer : class or None
        Type of the answer; None if it is not JSON.
    created : str, optional
        What status 200 means for an endpoint that answers 201 if it created something.
    failures : tuple of int
        Error statuses besides the ones that every endpoint may answer.
    is_later : bool
        Whether it answers 202 while the work goes on, and 200 with `created` as its meaning when it is done.
    slow : bool
        Whether its time grows with the experiment; such calls have their own thread pool and time limit.
    """

    verb: str
    method: str
    path: str
    roles: tuple[str, ...]
    tag: str
    summary: str
    text: str
    operation: str = ""
    body: type[Body] | None = None
    body_bytes: int | None = SMALL_BODY
    query: type[Struct] | None = None
    answer: type | None = None
    created: str | None = None
    is_later: bool = False
    failures: tuple[int, ...] = (404, 409)
    slow: bool = False
    path_names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        names = tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))
        object.__setattr__(self, "path_names", names)
        object.__setattr__(self, "operation", self.operation or self.verb)
        if self.body is None:
            object.__setattr__(self, "body_bytes", NO_BODY)


_EXPERIMENT = "/experiments/{name}"
_UNIT = f"{_EXPERIMENT}/assignments/{{unit}}"
_ARM = f"{_EXPERIMENT}/arms/{{arm}}"


def _row(
    tag: str, verb: str, method: str, path: str, roles: tuple[str, ...], summary: str, text: str, **more: Any
) -> Endpoint:
    return Endpoint(tag=tag, verb=verb, method=method, path=path, roles=roles, summary=summary, text=text, **more)


def _unit(verb: str, method: str, path: str, roles: tuple[str, ...], summary: str, text: str, **more: Any) -> Endpoint:
    return _row("Units", verb, method, path, roles, summary, text, **more)


def _change(verb: str, method: str, path: str, summary: str, text: str, **more: Any) -> Endpoint:
    return _row("Experiments", verb, method, path, ADMINS, summary, text, **{"answer": Description} | more)


def query_names(endpoint: Endpoint) -> tuple[str, ...]:
    """Return the names of the query parameters of an endpoint."""
    return () if endpoint.query is None else endpoint.query.__struct_fields__


def _record(verb: str, path: str, summary: str, text: str, **more: Any) -> Endpoint:
    return _row("Records", verb, "GET", path, READERS, summary, text, **{"failures": (404,)} | more)


ENDPOINTS = (
    _unit(
        "ask",
        "POST",
        f"{_EXPERIMENT}/assignments",
        ASSIGNERS,
        "Assign a unit",
        "Return the arm of a unit: the one it has (200), or a new one (201).",
        operation="assign",
        body=NewAssignment,
        answer=Assignment,
        created="It was assigned before.",
    ),
    _unit(
        "ask_many",
        "POST",
        f"{_EXPERIMENT}/assignments/many",
        ASSIGNERS,
        "Assign many units",
        "Return the arms of several units in one transaction, as single requests in this order would.",
        operation="assign_many",
        body=NewAssignments,
        body_bytes=None,
        answer=Assignments,
    ),
    _unit(
        "unit",
        "GET",
        _UNIT,
        EVERY_KEY,
        "Look up a unit",
        "Return a unit's assignment and reward; nothing is written.",
        operation="look_up",
        answer=UnitStatus,
        failures=(404,),
    ),
    _unit(
        "units",
        "GET",
        f"{_EXPERIMENT}/assignments",
        READERS,
        "List units",
        "Return a page of units: those in a state, those whose names begin with a prefix, or all. Waiting, held and "
        "overdue units come in the order of waiting, the longest first.\n\n"
        "Pass `next` as `after` to go on; it is null at the end. A page may be shorter than the limit before that.",
        operation="list_units",
        query=UnitFilter,
        answer=UnitPage,
        failures=(404,),
    ),
    _unit(
        "unit_events",
        "GET",
        f"{_UNIT}/events",
        READERS,
        "The log of a unit",
        "Return the events of a unit, in the order of the log; none if it was never assigned, or was erased.",
        answer=UnitEvents,
        failures=(404,),
    ),
    _unit(
        "tell",
        "PUT",
        f"{_UNIT}/reward",
        ASSIGNERS,
        "Reward a unit",
        "Record the reward of a unit, however late. Repeating it changes nothing; another value is refused (409).",
        operation="reward",
        body=NewReward,
        answer=ToldReward,
    ),
    _unit(
        "tell_many",
        "POST",
        f"{_EXPERIMENT}/rewards/many",
        ASSIGNERS,
        "Reward many units",
        "Record the rewards of several units in one transaction; if one is refused, none is recorded.",
        operation="reward_many",
        body=NewRewards,
        body_bytes=None,
        answer=ToldRewards,
    ),
    _unit(
        "correct",
        "POST",
        f"{_UNIT}/corrections",
        ADMINS,
        "Correct a reward",
        "Replace a reward; the log keeps both, and the reason.",
        body=Correction,
        answer=ToldReward,
    ),
    _unit(
        "withdraw",
        "POST",
        f"{_UNIT}/withdrawal",
        ADMINS,
        "Withdraw a unit",
        "Take a unit out of the estimates for good; the log keeps that, and the reason.",
        body=Withdrawal,
        answer=UnitStatus,
    ),
    _unit(
        "erase",
        "DELETE",
        _UNIT,
        ADMINS,
        "Erase a withdrawn unit",
        "Erase the name, the attributes and the reasons of a withdrawn unit from the log, which still verifies.",
        operation="erase_unit",
        answer=Erased,
    ),
    _row(
        "Experiments",
        "list",
        "GET",
        "/experiments",
        READERS,
        "List experiments",
        "List the experiments that the key may see, oldest first: all of them in one answer, about 350 bytes each.",
        operation="list_experiments",
        answer=Listing,
        failures=(),
    ),
    _change(
        "create",
        "POST",
        "/experiments",
        "Create an experiment",
        "Create an experiment. Repeating the request is harmless: it is answered with 200.",
        body=NewExperiment,
        body_bytes=None,
        created="It existed already.",
        failures=(409,),
    ),
    _row(
        "Experiments",
        "describe",
        "GET",
        _EXPERIMENT,
        READERS,
        "Describe an experiment",
        "Return what an experiment is about, its settings and arms, and whether it takes new units.",
        query=AsOf,
        answer=Description,
        failures=(404,),
    ),
    _change("pause", "POST", f"{_EXPERIMENT}/pause", "Pause enrolment", "Take no new units for a while.", body=Change),
    _change(
        "resume",
        "POST",
        f"{_EXPERIMENT}/resume",
        "Resume enrolment",
        "Take new units again after a pause.",
        body=Change,
    ),
    _change(
        "stop",
        "POST",
        f"{_EXPERIMENT}/stop",
        "Stop enrolment",
        "Take no more new units; rewards are still recorded.",
        body=Change,
    ),
    _change(
        "settle",
        "POST",
        f"{_EXPERIMENT}/settle",
        "Settle units whose window has passed",
        "Apply the rule for missing rewards to all units whose window has passed.",
        slow=True,
    ),
    _change(
        "finish",
        "POST",
        f"{_EXPERIMENT}/finish",
        "Finish",
        "Close an experiment: no new units, no more rewards, no corrections. Refused while windows of units are open, "
        "unless `anyway` is true.",
        body=Finishing,
        slow=True,
    ),
    _change(
        "change_weight",
        "PUT",
        f"{_EXPERIMENT}/weight",
        "Change the weight",
        "Change the weight between reward and accuracy, from the next decision on.",
        body=NewWeight,
    ),
    _change(
        "change_dial",
        "PUT",
        f"{_EXPERIMENT}/dial",
        "Change the dial",
        "Set the dial between reward and accuracy in any way, from the next decision on: a weight, the information to "
        "keep, or a goal for the half-width of intervals.",
        body=NewDial,
    ),
    _change(
        "change_description",
        "PUT",
        f"{_EXPERIMENT}/description",
        "Change the description",
        "Change what the experiment is about, in words: title, question, outcome, reward unit, owner, and what arms "
        "are. Also when it is finished; what is not given stays as it is.",
        body=NewDescription,
        body_bytes=None,
    ),
    _change(
        "add_arm",
        "POST",
        f"{_EXPERIMENT}/arms",
        "Add an arm",
        "Add an arm. The same again changes nothing; with another floor, or once paused or retired, it is refused.",
        body=NewArm,
    ),
    _change(
        "pause_arm", "POST", f"{_ARM}/pause", "Pause an arm", "Assign no units to an arm for a while.", body=Change
    ),
    _change(
        "resume_arm",
        "POST",
        f"{_ARM}/resume",
        "Resume an arm",
        "Assign units to an arm again after a pause.",
        body=Change,
    ),
    _change(
        "retire_arm",
        "POST",
        f"{_ARM}/retire",
        "Retire an arm",
        "Assign no more units to an arm; its rewards still count.",
        body=Change,
    ),
    _record(
        "status",
        f"{_EXPERIMENT}/status",
        "Status of an experiment",
        "Return the state of an experiment: arms, totals, intervals that hold at all times, stopping rules.",
        query=AsOf,
        answer=records.Status,
    ),
    _record(
        "history",
        f"{_EXPERIMENT}/history",
        "History of an experiment",
        "Return counts and means at evenly spaced events, for charts.",
        query=Points,
        answer=History,
        slow=True,
    ),
    _record(
        "timeline",
        f"{_EXPERIMENT}/timeline",
        "Timeline of an experiment",
        "Return what happened by period and arm: units, rewards, means, shares, delays and missing rewards.",
        query=Periods,
        answer=Timeline,
        slow=True,
    ),
    _record(
        "outlook",
        f"{_EXPERIMENT}/outlook",
        "What lies ahead",
        "Return how many people come a day, and when each stopping rule will be met if everything goes on as it does.",
        query=AsOf,
        answer=records.Outlook,
        slow=True,
    ),
    _record(
        "events_page",
        f"{_EXPERIMENT}/events",
        "The log",
        "Return a page of the log after an event; `next` is where to go on.\n\n"
        "A page may be shorter than the limit where events have long details. A page without events is the end.",
        operation="events",
        query=Page,
        answer=Events,
    ),
    _record(
        "changes",
        f"{_EXPERIMENT}/changes",
        "What was changed and noted",
        "Return the latest events that are not about a unit, newest first: changes, notes and decisions. However long "
        "the log is, this is quick.",
        query=LatestChanges,
        answer=Events,
    ),
    _row(
        "Records",
        "note",
        "POST",
        f"{_EXPERIMENT}/notes",
        READERS,
        "Write a note into the log",
        "Write a note, or a decision that was taken, into the log; also when the experiment is finished. The same note "
        "again, with nothing changed or noted since, is written once.",
        operation="write_note",
        body=NewNote,
        answer=Description,
    ),
    _record(
        "export",
        f"{_EXPERIMENT}/export",
        "All units as a table",
        "Return one row per unit, with its assignment and reward, as it is read.\n\n"
        "Units are as they were given: a spreadsheet takes one that begins with = for a formula.",
        operation="export_units",
        query=ExportFormat,
        failures=(404, 501),
        slow=True,
    ),
    _record(
        "what_if",
        f"{_EXPERIMENT}/what-if",
        "Another dial",
        "Return the allocation another dial would ask for now, and its price in reward, error, information and "
        "precision.",
        query=TriedDial,
        answer=WhatIf,
        failures=(404, 409),
    ),
    _record(
        "prices",
        f"{_EXPERIMENT}/prices",
        "Every position of the dial",
        "Return what each position of the dial gives people and costs, on the present estimates: shares, gains with "
        "ranges that hold the truth in 8 of 10 cases, and how many more people it takes to know every arm.",
        query=PriceQuery,
        answer=records.Prices,
        failures=(404, 422),
        slow=True,
    ),
    _record(
        "compare",
        f"{_EXPERIMENT}/comparison",
        "Compare the arms",
        "Return which arms differ and by how much, which may still be best, and what choosing one can cost. Everything "
        "holds at all times.",
        query=Compared,
        answer=records.Comparison,
        slow=True,
    ),
    _record(
        "report",
        f"{_EXPERIMENT}/report",
        "Everything that can be said",
        "Return the comparison of the arms with all that needs the log: intervals at the end, differences over the "
        "same people, adjusted and by subgroups, missing rewards, and checks of what the numbers assume.",
        query=Reported,
        answer=Report,
        slow=True,
    ),
    _record(
        "full_report",
        f"{_EXPERIMENT}/report/full",
        "Everything, to print or to keep",
        "Return everything about an experiment as of one event: status, report, timeline, changes with their reasons, "
        "decisions, the comparison with its plan, and the result of verifying the log.",
        query=ReportedInFull,
        answer=FullReport,
        slow=True,
        failures=(404, 409),
    ),
    _record(
        "fidelity",
        f"{_EXPERIMENT}/fidelity",
        "Compare with the plan",
        "Return the figures that were planned for this day beside what they are, for an experiment made from a plan.",
        query=AsOf,
        answer=records.Fidelity,
        failures=(404, 422),
    ),
    _record(
        "health",
        f"{_EXPERIMENT}/health",
        "Is it well?",
        "Return all checks, each with its state, a sentence, a number and what to do, and the alerts that are open.",
        answer=records.Health,
        slow=True,
    ),
    _change(
        "mute",
        "POST",
        f"{_EXPERIMENT}/health/mute",
        "Mute a check",
        "Mute the alerts of a check, of one arm or of all, until an instant; the log keeps that, and the reason.",
        body=NewMute,
    ),
    _change(
        "unmute",
        "POST",
        f"{_EXPERIMENT}/health/unmute",
        "Unmute a check",
        "Let the alerts of a check be told again.",
        body=Unmuting,
    ),
    _record(
        "verify",
        f"{_EXPERIMENT}/verify",
        "Replay the log",
        "Replay the log from the start and compare every decision and statistic; a difference is answered with 409.",
        answer=records.Verification,
        failures=(404, 409),
        slow=True,
    ),
    _row(
        "Records",
        "rebuild",
        "POST",
        f"{_EXPERIMENT}/rebuild",
        ADMINS,
        "Rebuild the tables from the log",
        "Write the statistics and all other tables again from the log.",
        answer=Rebuilt,
        slow=True,
    ),
    _change(
        "delete",
        "DELETE",
        _EXPERIMENT,
        "Delete an experiment",
        "Delete an experiment that was made by mistake, with its log. One that has rewards is refused (409).",
        operation="delete_experiment",
        answer=Deleted,
    ),
)
"""Every verb, in the order of the documentation."""

PLANS = (
    _row(
        "Plans",
        "submit_plan",
        "POST",
        "/plans",
        READERS,
        "Simulate a plan",
        "Simulate what each way to assign people would cost, in a process beside the service: 202, or 200 if this plan "
        "is done already. Its id follows from the plan, so that asking again changes nothing.",
        body=NewPlan,
        body_bytes=None,
        answer=PlanRecord,
        created="It is done already.",
        is_later=True,
        failures=(),
    ),
    _row(
        "Plans",
        "list_plans",
        "GET",
        "/plans",
        READERS,
        "All plans",
        "Return the plans that the service keeps, those asked for last first, without their forecasts.",
        answer=PlanList,
        failures=(),
    ),
    _row(
        "Plans",
        "plan",
        "GET",
        "/plans/{id}",
        READERS,
        "A plan's forecast",
        "Return how far the simulations are and what they say so far; ranges shrink until the state is done.",
        answer=PlanRecord,
        failures=(404,),
    ),
    _row(
        "Plans",
        "cancel_plan",
        "DELETE",
        "/plans/{id}",
        READERS,
        "Cancel or forget a plan",
        "End the work on a plan, within a second, and keep what is done of it; one that is not at work is forgotten.",
        answer=PlanRecord,
        failures=(404,),
    ),
)
"""Endpoints for planning; what they return is no experiment's."""

OPERATIONS = (
    _row(
        "Operations",
        "healthz",
        "GET",
        "/healthz",
        PUBLIC,
        "Alive?",
        "Show that the process is alive.",
        answer=Alive,
        failures=(),
    ),
    _row(
        "Operations",
        "readyz",
        "GET",
        "/readyz",
        PUBLIC,
        "Ready?",
        "Show that the store can be read and written, and that the service is not about to end.",
        answer=Alive,
        failures=(),
    ),
    _row(
        "Operations",
        "metrics",
        "GET",
        "/metrics",
        READERS,
        "Numbers for Prometheus",
        "Return requests, latencies, batch sizes, and for each experiment units by state and shares of arms.",
        failures=(),
    ),
)
"""Endpoints for monitoring."""

EVERY_ENDPOINT = (*ENDPOINTS, *PLANS, *OPERATIONS)
"""The whole table."""

BY_VERB = {endpoint.verb: endpoint for endpoint in ENDPOINTS}
