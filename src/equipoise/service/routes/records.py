"""What is known of an experiment: status, history, log, export, replay, and what another weight would do."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query

from equipoise.errors import InvalidInput
from equipoise.experiment import Experiment
from equipoise.experiment.export import COLUMNS
from equipoise.serialization import json_data
from equipoise.service import models
from equipoise.service.routing import (
    ADMINS,
    READERS,
    Caller,
    ExperimentName,
    Gone,
    GuardedRoute,
    Service,
    allow,
    answer,
    failures,
)
from equipoise.service.streaming import ExportResponse, exported

router = APIRouter(prefix="/experiments/{name}", tags=["Records"], route_class=GuardedRoute)

MOST_EVENTS = 10_000
MOST_DETAILS = 4_000_000
"""Characters of details after which a page of the log ends early; they may be long, and a page is held in memory."""
_PIECE = 250
MOST_PLACES = 1_000_000
"""Points times arms of one history, which takes some 50 MB then."""
_TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson", "parquet": "application/octet-stream"}


@router.get("/status", responses=failures(404), response_model=models.State, summary="Where it stands")
@allow(*READERS)
async def status(core: Service, key: Caller, name: ExperimentName) -> Any:
    """Return where an experiment stands: arms, totals, intervals that hold at all times, stopping rules."""
    return await answer(core, name, key, lambda experiment: experiment.status().to_dict())


@router.get("/history", responses=failures(404), response_model=models.Past, summary="How it went")
@allow(*READERS)
async def history(
    core: Service,
    key: Caller,
    name: ExperimentName,
    gone: Gone,
    points: Annotated[
        int, Query(ge=1, le=100_000, description=f"At most so many; times arms, at most {MOST_PLACES:,}.")
    ] = 100,
) -> Any:
    """Return counts and means at evenly spaced events, for charts."""
    return await answer(core, name, key, lambda experiment: _past(experiment, points), gone)


def _past(experiment: Experiment, points: int) -> dict[str, Any]:
    """Return how an experiment went, for an answer; arrays stay what they are, as they may be large."""
    n_arms = len(experiment.describe()["arms"])
    most = max(1, MOST_PLACES // n_arms)
    if points > most:
        raise InvalidInput(
            f"points must be at most {most:,} for {n_arms:,} arms; got {points:,}",
            hint=f"a history has at most {MOST_PLACES:,} points times arms; the log has everything",
        )
    found = experiment.history(points)
    return vars(found) | {"at": [when.isoformat() for when in found.at]}


@router.get("/events", responses=failures(404), response_model=models.Events, summary="The log")
@allow(*READERS)
async def events(
    core: Service,
    key: Caller,
    name: ExperimentName,
    after: Annotated[int, Query(ge=0, le=2**62, description="Number of the last event that is known.")] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_EVENTS, description="At most so many.")] = 1_000,
) -> Any:
    """Return a page of the log, from the event after this number on; `next` is where to go on.

    A page may be shorter than the limit where events have much to tell. One without events is the end, for now.
    """
    return await answer(core, name, key, lambda experiment: _page(experiment, after, limit))


def _page(experiment: Experiment, after: int, limit: int) -> dict[str, Any]:
    found: list[dict[str, Any]] = []
    size = 0
    while len(found) < limit and size < MOST_DETAILS:
        piece = experiment.events_page(after, min(_PIECE, limit - len(found)))
        if not piece:
            break
        found += [event.to_dict() for event in piece]
        size += sum(len(repr(event.details)) for event in piece)
        after = piece[-1].number
    return {"events": found, "next": after}


@router.get(
    "/export",
    responses=failures(404, 501)
    | {
        200: {
            "description": f"One row per unit: {', '.join(COLUMNS)}.",
            "content": {kind.split(";")[0]: {"schema": {"type": "string"}} for kind in _TYPES.values()},
        }
    },
    response_class=ExportResponse,
    summary="All units as a table",
)
@allow(*READERS)
async def export_units(
    core: Service,
    key: Caller,
    name: ExperimentName,
    format: Annotated[Literal["csv", "jsonl", "parquet"], Query(description="Kind of file.")] = "csv",  # noqa: A002
) -> Any:
    """Return one row per unit, with its assignment and reward, as it is read.

    Units are as they were given: a spreadsheet that opens the CSV takes one that begins with = for a formula.
    """
    experiment = await core.work(name, key, lambda found: found)
    pieces = await exported(experiment, format)
    headers = {"content-disposition": f'attachment; filename="export.{format}"'}
    return ExportResponse(pieces, media_type=_TYPES[format], headers=headers)


@router.get("/what-if", responses=failures(404, 409), response_model=models.WhatIf, summary="Another weight")
@allow(*READERS)
async def what_if(
    core: Service,
    key: Caller,
    name: ExperimentName,
    reward_weight: Annotated[float, Query(ge=0, le=1, description="The weight to try.", examples=[0.9])],
) -> Any:
    """Return the allocation another weight would ask for now, and its price in reward and error."""
    return await answer(core, name, key, lambda experiment: json_data(experiment.what_if(reward_weight)))


@router.get("/verify", responses=failures(404, 409), response_model=models.Verification, summary="Replay the log")
@allow(*READERS)
async def verify(core: Service, key: Caller, name: ExperimentName, gone: Gone) -> Any:
    """Replay the log from nothing and compare every decision and statistic; the first difference is answered 409."""
    return await answer(core, name, key, lambda experiment: json_data(experiment.verify()), gone)


@router.post("/rebuild", responses=failures(404, 409), response_model=models.Rebuilt, summary="Rebuild from the log")
@allow(*ADMINS)
async def rebuild(core: Service, key: Caller, name: ExperimentName, gone: Gone) -> Any:
    """Write statistics and everything else that is kept from the log anew."""
    return await answer(core, name, key, lambda experiment: {"changed": experiment.rebuild()}, gone)
