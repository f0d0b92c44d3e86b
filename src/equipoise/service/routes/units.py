"""Units: assign, reward, correct, look up. The first two are also lean routes, which answer the same."""

from typing import Any

from fastapi import APIRouter, Response

from equipoise.errors import Hint, UnknownUnit
from equipoise.experiment import Ask, Tell
from equipoise.serialization import json_data
from equipoise.service import models
from equipoise.service.lean import encoded_assignment, encoded_reward
from equipoise.service.routing import (
    ADMINS,
    ASSIGNERS,
    EVERY_KEY,
    Caller,
    ExperimentName,
    GuardedRoute,
    Service,
    UnitName,
    allow,
    failures,
)

router = APIRouter(prefix="/experiments/{name}", tags=["Units"], route_class=GuardedRoute)


@router.post(
    "/assignments",
    status_code=201,
    responses=failures(404, 409) | {200: {"model": models.Assignment, "description": "It was assigned before."}},
    response_model=models.Assignment,
    summary="Assign a unit",
)
@allow(*ASSIGNERS)
async def assign(core: Service, key: Caller, name: ExperimentName, body: models.NewAssignment) -> Any:
    """Return the arm of a unit: the one it has (200), or else the one it is given now (201)."""
    found = await core.ask(name, key, body.unit, body.attributes)
    status, encoded = encoded_assignment(found)
    return Response(encoded, status, media_type="application/json")


@router.post(
    "/assignments/many", responses=failures(404, 409), response_model=models.Assignments, summary="Assign many units"
)
@allow(*ASSIGNERS)
async def assign_many(core: Service, key: Caller, name: ExperimentName, body: models.NewAssignments) -> Any:
    """Return the arms of several units, in one transaction: what as many single requests would give."""
    asks = [
        Ask(one, who=key.name) if isinstance(one, str) else Ask(one.unit, one.attributes, who=key.name)
        for one in body.units
    ]
    found = await core.carry_out_all(name, key, asks)
    joined = b",".join(encoded_assignment(one)[1] for one in found)
    return Response(b'{"assignments":[' + joined + b"]}", media_type="application/json")


@router.get("/assignments/{unit}", responses=failures(404), response_model=models.UnitState, summary="Look a unit up")
@allow(*EVERY_KEY)
async def look_up(core: Service, key: Caller, name: ExperimentName, unit: UnitName) -> Any:
    """Return a unit's assignment and reward; nothing is written."""
    found = await core.work(name, key, lambda experiment: experiment.unit(unit))
    if found is None:
        raise UnknownUnit(f"unit {unit!r} was never assigned in experiment {name!r}", hint=Hint.ASK_FIRST)
    return json_data(found) | {"new": False}


@router.put(
    "/assignments/{unit}/reward",
    responses=failures(404, 409),
    response_model=models.ToldReward,
    summary="Reward a unit",
)
@allow(*ASSIGNERS)
async def reward(core: Service, key: Caller, name: ExperimentName, unit: UnitName, body: models.NewReward) -> Any:
    """Record the reward of a unit, however late; the same again changes nothing, another value is refused (409)."""
    status, encoded = encoded_reward(await core.tell(name, key, unit, body.reward))
    return Response(encoded, status, media_type="application/json")


@router.post(
    "/rewards/many", responses=failures(404, 409), response_model=models.ToldRewards, summary="Reward many units"
)
@allow(*ASSIGNERS)
async def reward_many(core: Service, key: Caller, name: ExperimentName, body: models.NewRewards) -> Any:
    """Record the rewards of several units, in one transaction; if any is refused, none is recorded."""
    tells = [Tell(one.unit, one.reward, who=key.name) for one in body.rewards]
    found = await core.carry_out_all(name, key, tells)
    joined = b",".join(encoded_reward(one)[1] for one in found)
    return Response(b'{"rewards":[' + joined + b"]}", media_type="application/json")


@router.post(
    "/assignments/{unit}/corrections",
    responses=failures(404, 409),
    response_model=models.ToldReward,
    summary="Correct a reward",
)
@allow(*ADMINS)
async def correct(core: Service, key: Caller, name: ExperimentName, unit: UnitName, body: models.Correction) -> Any:
    """Put another reward in the place of the one told; the log keeps both, and the reason."""
    status, encoded = encoded_reward(await core.correct(name, key, unit, body.reward, body.reason))
    return Response(encoded, status, media_type="application/json")
