"""Experiments: make, list, describe; start and end of enrolment; arms; the weight."""

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Response

from equipoise.errors import ExperimentExists, Hint
from equipoise.experiment import Experiment, MissingReward, StoppingRule
from equipoise.policies import Policy
from equipoise.policies.pooled_balance import policy_or_recommended
from equipoise.serialization import json_data
from equipoise.service import models
from equipoise.service.keys import Key
from equipoise.service.routing import (
    ADMINS,
    READERS,
    ArmName,
    Caller,
    ExperimentName,
    Gone,
    GuardedRoute,
    Service,
    allow,
    answer,
    encoded,
    failures,
)
from equipoise.service.service import Core

router = APIRouter(prefix="/experiments", tags=["Experiments"], route_class=GuardedRoute)


@router.get("", responses=failures(), response_model=models.Listing, summary="List experiments")
@allow(*READERS)
async def list_experiments(core: Service, key: Caller) -> Any:
    """List the experiments that the key may see, oldest first: all of them in one answer, some 350 bytes each."""

    def work() -> bytes:
        seen = [one for one in Experiment.list(core.store) if key.experiment in (None, one.name)]
        return encoded({"experiments": [vars(one) | {"created_at": one.created_at.isoformat()} for one in seen]})

    return Response(await core.elsewhere(work), media_type="application/json")


@router.post(
    "",
    status_code=201,
    responses=failures(409) | {200: {"model": models.Description, "description": "It was there already."}},
    response_model=models.Description,
    summary="Make an experiment",
)
@allow(*ADMINS)
async def create(core: Service, key: Caller, body: models.NewExperiment) -> Any:
    """Make an experiment. Sending the same again is harmless: it is then answered with 200."""
    key.require(ADMINS, body.name)
    settings = _settings(body)

    def work() -> tuple[bytes, int]:
        try:
            experiment, status = Experiment.create(core.store, body.name, who=key.name, **settings), 201
        except ExperimentExists:
            experiment, status = core.experiment(body.name, key), 200
            if not _is_same(experiment, settings):
                raise ExperimentExists(
                    f"the service has an experiment {body.name!r} already", hint=Hint.ANOTHER_NAME
                ) from None
        return encoded(experiment.describe()), status

    content, status = await core.elsewhere(work)
    return Response(content, status, media_type="application/json")


@router.get("/{name}", responses=failures(404), response_model=models.Description, summary="Describe an experiment")
@allow(*READERS)
async def describe(core: Service, key: Caller, name: ExperimentName) -> Any:
    """Return what an experiment was made with, its arms, and whether it takes new units."""
    return await answer(core, name, key, lambda experiment: experiment.describe())


async def _changed(
    core: Core, name: str, key: Key, action: Callable[[Experiment], Any], gone: Gone | None = None
) -> Response:
    """Change an experiment and return the answer, its description."""

    def work(experiment: Experiment) -> dict[str, Any]:
        action(experiment)
        return experiment.describe()

    return await answer(core, name, key, work, gone)


def _change(path: str, summary: str, text: str, action: Any, *, long: bool = False) -> None:
    """Add a route that changes an experiment without a body and returns its description."""

    async def route(core: Service, key: Caller, name: ExperimentName, gone: Gone) -> Any:
        return await _changed(core, name, key, action, gone if long else None)

    route.__doc__ = text
    route.__name__ = path.strip("/")
    router.post("/{name}" + path, responses=failures(404, 409), response_model=models.Description, summary=summary)(
        allow(*ADMINS)(route)
    )


_change("/pause", "Pause enrolment", "Take no new units for a while.", lambda experiment: experiment.pause())
_change("/resume", "Resume enrolment", "Take new units again after a pause.", lambda experiment: experiment.resume())
_change("/stop", "Stop enrolment", "Take no new units any more; rewards are welcome.", lambda one: one.stop())
_change(
    "/settle", "Settle what is due", "Deal with all units whose window has passed.", lambda one: one.settle(), long=True
)


@router.post("/{name}/finish", responses=failures(404, 409), response_model=models.Description, summary="Finish")
@allow(*ADMINS)
async def finish(
    core: Service, key: Caller, name: ExperimentName, gone: Gone, body: models.HowToFinish | None = None
) -> Any:
    """Close an experiment: no new units, no more rewards, no corrections."""
    anyway = body is not None and body.anyway
    return await _changed(core, name, key, lambda experiment: experiment.finish(anyway=anyway), gone)


@router.put("/{name}/weight", responses=failures(404, 409), response_model=models.Description, summary="Turn the dial")
@allow(*ADMINS)
async def change_weight(core: Service, key: Caller, name: ExperimentName, body: models.NewWeight) -> Any:
    """Change the weight between reward and accuracy, from the next decision on."""
    return await _changed(core, name, key, lambda experiment: experiment.change_weight(body.reward_weight))


@router.post("/{name}/arms", responses=failures(404, 409), response_model=models.Description, summary="Add an arm")
@allow(*ADMINS)
async def add_arm(core: Service, key: Caller, name: ExperimentName, body: models.NewArm) -> Any:
    """Add an arm. The same again changes nothing; with another floor, or once paused or retired, it is refused."""
    return await _changed(core, name, key, lambda experiment: experiment.add_arm(body.name, floor=body.floor))


def _arm_change(verb: str, text: str, action: Any) -> None:
    async def route(core: Service, key: Caller, name: ExperimentName, arm: ArmName) -> Any:
        return await _changed(core, name, key, lambda experiment: action(experiment, arm))

    route.__doc__ = text
    route.__name__ = f"{verb}_arm"
    router.post(
        "/{name}/arms/{arm}/" + verb,
        responses=failures(404, 409),
        response_model=models.Description,
        summary=f"{verb.capitalize()} an arm",
    )(allow(*ADMINS)(route))


_arm_change("pause", "Assign nobody to an arm for a while.", lambda one, arm: one.pause_arm(arm))
_arm_change("resume", "Assign people to an arm again after a pause.", lambda one, arm: one.resume_arm(arm))
_arm_change(
    "retire", "Assign nobody to an arm any more; its rewards still count.", lambda one, arm: one.retire_arm(arm)
)


def _settings(body: models.NewExperiment) -> dict[str, Any]:
    """Return what `Experiment.create` takes."""
    data = body.model_dump(exclude={"name", "policy", "reward_weight", "missing", "stopping"})
    policy = None if body.policy is None else Policy.from_dict(body.policy)
    data["policy"] = policy_or_recommended(policy, body.reward_weight)
    data["missing"] = None if body.missing is None else MissingReward.from_dict(body.missing)
    data["stopping"] = [StoppingRule.from_dict(rule) for rule in body.stopping]
    return data


def _is_same(experiment: Experiment, settings: dict[str, Any]) -> bool:
    """Return whether an experiment is what would have been made: the request was sent before, and its answer lost."""
    from equipoise.experiment.configuration import Configuration, checked_arms, checked_configuration

    created = experiment.events_page(0, 1)[0].details  # what it was made with, whatever was changed since
    found = Configuration.from_dict(created["configuration"])
    wanted = dict(settings)
    arms = checked_arms(wanted.pop("arms"), wanted.pop("floor"), wanted["control"], wanted["control_share"])
    seed = wanted["seed"] if wanted["seed"] is not None else found.seed
    configuration = checked_configuration(**wanted | {"seed": seed})
    made = [(arm["name"], arm["floor"]) for arm in created["arms"]]
    return made == arms and json_data(found.to_dict()) == json_data(configuration.to_dict())
