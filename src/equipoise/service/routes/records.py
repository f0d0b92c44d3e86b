"""What is known of an experiment: status, history, log, export, replay, and what another weight would do."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from equipoise.experiment.exporting import COLUMNS
from equipoise.service import models
from equipoise.service.core import plain
from equipoise.service.routing import ADMINS, READERS, Caller, ExperimentName, GuardedRoute, Service, allow, failures
from equipoise.service.streaming import exported

router = APIRouter(prefix="/experiments/{name}", tags=["Records"], route_class=GuardedRoute)

MOST_EVENTS = 10_000
_TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson", "parquet": "application/octet-stream"}


@router.get("/status", responses=failures(404), response_model=models.State, summary="Where it stands")
@allow(*READERS)
async def status(core: Service, key: Caller, name: ExperimentName) -> Any:
    """Return where an experiment stands: arms, totals, intervals that hold at all times, stopping rules."""
    return (await core.work(name, key, lambda experiment: experiment.status())).to_dict()


@router.get("/history", responses=failures(404), response_model=models.Past, summary="How it went")
@allow(*READERS)
async def history(
    core: Service,
    key: Caller,
    name: ExperimentName,
    points: Annotated[int, Query(ge=1, le=100_000, description="At most so many.")] = 100,
) -> Any:
    """Return counts and means at evenly spaced events, for charts."""
    return plain(await core.work(name, key, lambda experiment: experiment.history(points)))


@router.get("/events", responses=failures(404), response_model=models.Events, summary="The log")
@allow(*READERS)
async def events(
    core: Service,
    key: Caller,
    name: ExperimentName,
    after: Annotated[int, Query(ge=0, le=2**62, description="Number of the last event that is known.")] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_EVENTS, description="At most so many.")] = 1_000,
) -> Any:
    """Return a page of the log, from the event after this number on; `next` is where to go on."""
    found = await core.work(name, key, lambda experiment: experiment.events_page(after, limit))
    return {"events": [event.to_dict() for event in found], "next": found[-1].number if found else after}


@router.get(
    "/export",
    responses=failures(404, 501)
    | {
        200: {
            "description": f"One row per unit: {', '.join(COLUMNS)}.",
            "content": {kind.split(";")[0]: {"schema": {"type": "string"}} for kind in _TYPES.values()},
        }
    },
    response_class=StreamingResponse,
    summary="All units as a table",
)
@allow(*READERS)
async def export(
    core: Service,
    key: Caller,
    name: ExperimentName,
    format: Annotated[Literal["csv", "jsonl", "parquet"], Query(description="Kind of file.")] = "csv",  # noqa: A002
) -> Any:
    """Return one row per unit, with its assignment and reward, as it is read."""
    experiment = await core.work(name, key, lambda found: found)
    pieces = await exported(experiment, format)
    headers = {"content-disposition": f'attachment; filename="export.{format}"'}
    return StreamingResponse(pieces, media_type=_TYPES[format], headers=headers)


@router.get("/what-if", responses=failures(404, 409), response_model=models.WhatIf, summary="Another weight")
@allow(*READERS)
async def what_if(
    core: Service,
    key: Caller,
    name: ExperimentName,
    reward_weight: Annotated[float, Query(ge=0, le=1, description="The weight to try.", examples=[0.9])],
) -> Any:
    """Return the allocation another weight would ask for now, and its price in reward and error."""
    return plain(await core.work(name, key, lambda experiment: experiment.what_if(reward_weight)))


@router.get("/verify", responses=failures(404, 409), response_model=models.Verification, summary="Replay the log")
@allow(*READERS)
async def verify(core: Service, key: Caller, name: ExperimentName) -> Any:
    """Replay the log from nothing and compare every decision and statistic; the first difference is answered 409."""
    return plain(await core.work(name, key, lambda experiment: experiment.verify()))


@router.post("/rebuild", responses=failures(404, 409), response_model=models.Rebuilt, summary="Rebuild from the log")
@allow(*ADMINS)
async def rebuild(core: Service, key: Caller, name: ExperimentName) -> Any:
    """Write statistics and everything else that is kept from the log anew."""
    return {"changed": await core.work(name, key, lambda experiment: experiment.rebuild())}
