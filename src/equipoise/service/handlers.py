"""Handlers of all verbs of the API: call a method of `Experiment`, on a thread or in a group commit, and answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import msgspec

from equipoise import http_api
from equipoise.arm_tables import entries
from equipoise.errors import EquipoiseError, ExperimentExists, Hint, InvalidInput, UnknownUnit
from equipoise.experiment import Ask, Correct, Experiment, MissingReward, StoppingRule, Tell
from equipoise.experiment.configuration import Configuration, checked_settings
from equipoise.policies import Policy
from equipoise.serialization import json_data
from equipoise.service.dispatch import Answer, Exchange, Handler, Route
from equipoise.service.error_responses import Overloaded
from equipoise.service.json_bodies import encode
from equipoise.service.streaming import export_pieces

if TYPE_CHECKING:
    from equipoise.experiment.commands import Request
    from equipoise.experiment.records import Assignment, Event, ToldReward
    from equipoise.http_api import Endpoint
    from equipoise.service.api_keys import Key
    from equipoise.service.service import Service

MOST_DETAILS = 4_000_000
"""Characters of details after which a page of the log ends early: details may be long, and a page is held in memory."""
MOST_POINTS = 1_000_000
"""Most points times arms of one history, which then takes some 50 MB."""
_PIECE = 250
_EXPORT_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "parquet": "application/octet-stream",
}

_encode_record = msgspec.json.Encoder().encode


def routes() -> list[Route]:
    """Return a route for every endpoint."""
    return [Route(endpoint, _HANDLERS.get(endpoint.verb) or _method(endpoint)) for endpoint in http_api.EVERY_ENDPOINT]


# Units, in group commits


async def _ask(service: Service, exchange: Exchange) -> Answer:
    asked: http_api.NewAssignment = exchange.data
    [found] = await _assign(service, exchange, [Ask(asked.unit, asked.attributes, who=_key(exchange).name)])
    return Answer(201 if found.new else 200, _encode_assignment(found))


async def _ask_many(service: Service, exchange: Exchange) -> Answer:
    pairs = ((one, None) if isinstance(one, str) else (one.unit, one.attributes) for one in exchange.data.units)
    who = _key(exchange).name
    found = await _assign(service, exchange, [Ask(unit, attributes, who=who) for unit, attributes in pairs])
    return Answer(200, b'{"assignments":[' + b",".join(map(_encode_assignment, found)) + b"]}")


async def _assign(service: Service, exchange: Exchange, requests: Sequence[Ask]) -> list[Assignment]:
    """Assign units, within the limits of the key; units that are not new do not count."""
    key = _key(exchange)
    if key.limits is None:
        return await _submit_all(service, exchange, requests)
    try:
        service.budgets.take(key.id, key.limits, "units", len(requests))
    except EquipoiseError:
        if await service.work(exchange.names[0], key, partial(_are_assigned, requests)):
            return await _submit_all(service, exchange, requests)
        raise
    n_new = len(requests)  # if it is not known whether they were assigned
    try:
        found = await _submit_all(service, exchange, requests)
        n_new = sum(one.new for one in found)
    except Overloaded:
        raise
    except EquipoiseError:
        n_new = 0
        raise
    finally:
        service.budgets.give_back(key.id, key.limits, "units", len(requests) - n_new)
    return found


def _are_assigned(requests: Sequence[Ask], experiment: Experiment) -> bool:
    return all(experiment.assignment(request.unit) is not None for request in requests)


async def _tell(service: Service, exchange: Exchange) -> Answer:
    found = await _submit(service, exchange, [Tell(exchange.names[1], exchange.data.reward, who=_key(exchange).name)])
    return Answer(200, _encode_reward(found))


async def _tell_many(service: Service, exchange: Exchange) -> Answer:
    who = _key(exchange).name
    found = await _submit_all(service, exchange, [Tell(one.unit, one.reward, who=who) for one in exchange.data.rewards])
    return Answer(200, b'{"rewards":[' + b",".join(map(_encode_reward, found)) + b"]}")


async def _correct(service: Service, exchange: Exchange) -> Answer:
    given: http_api.Correction = exchange.data
    request = Correct(exchange.names[1], given.reward, given.reason, who=_key(exchange).name)
    return Answer(200, _encode_reward(await _submit(service, exchange, [request])))


def _submit(service: Service, exchange: Exchange, requests: Sequence[Request]) -> Awaitable[Any]:
    """Submit requests, all or none; return an awaitable of their durable results (of a single request, its result)."""
    experiment = service.known_experiment(exchange.names[0], _key(exchange))
    if experiment is None:
        return _open_and_submit(service, exchange, requests)
    return service.group_commit.submit(experiment, requests)


async def _open_and_submit(service: Service, exchange: Exchange, requests: Sequence[Request]) -> Any:
    experiment = await service.work(exchange.names[0], _key(exchange), lambda found: found)
    return await service.group_commit.submit(experiment, requests) if requests else []


async def _submit_all(service: Service, exchange: Exchange, requests: Sequence[Request]) -> list[Any]:
    if not requests:
        return await _open_and_submit(service, exchange, requests)  # type: ignore[no-any-return]
    results = await _submit(service, exchange, requests)
    return [results] if len(requests) == 1 else results


def _encode_assignment(found: Assignment) -> bytes:
    unit, arm, number, probability, forced, at, new = found
    return _encode_record(http_api.Assignment(unit, arm, number, probability, forced, _instant(at), new))


def _encode_reward(found: ToldReward) -> bytes:
    return _encode_record(http_api.ToldReward(*found))


@lru_cache(256)
def _instant(at: datetime) -> str:
    """Format an instant; cached, since all units of one transaction share it."""
    return at.isoformat()


# Experiments and records: each verb is the method of `Experiment` with its name


def _method(endpoint: Endpoint) -> Handler:
    """Return a handler that calls a method of the experiment with the names in the path and the body or query."""
    call = action(endpoint.verb)

    async def handler(service: Service, exchange: Exchange) -> Answer:
        fields = {} if exchange.data is None else msgspec.structs.asdict(exchange.data)
        given = {name: value for name, value in fields.items() if value is not msgspec.UNSET}
        event = given.pop("at", None)

        def work(experiment: Experiment) -> bytes:
            seen = experiment if event is None else experiment.as_of(event)
            return encode(call(seen, *exchange.names[1:], **given))

        name, key = exchange.names[0], _key(exchange)
        if endpoint.slow or event is not None:
            return Answer(200, await service.long_work(name, key, work, exchange.gone))
        return Answer(200, await service.work(name, key, work))

    return handler


def action(verb: str) -> Callable[..., dict[str, Any]]:
    """Return a function that calls a verb on an experiment and returns its record as plain data."""
    return _ACTIONS.get(verb) or partial(_call, verb)


def _call(verb: str, experiment: Experiment, *names: str, **given: Any) -> dict[str, Any]:
    found = getattr(experiment, verb)(*names, **given)
    if found is None:  # a change
        found = experiment.describe()
    return found if isinstance(found, dict) else json_data(found)


def _unit(experiment: Experiment, unit: str) -> dict[str, Any]:
    found = experiment.unit(unit)
    if found is None:
        raise UnknownUnit(f"unit {unit!r} was never assigned in experiment {experiment.name!r}", hint=Hint.CHECK_UNIT)
    return found.to_dict() | {"new": False}


def _units(experiment: Experiment, **filters: Any) -> dict[str, Any]:
    page = experiment.units(**filters)
    return {"units": [one.to_dict() | {"new": False} for one in page.units], "next": page.next}


def _unit_events(experiment: Experiment, unit: str) -> dict[str, Any]:
    return {"events": [event.to_dict() for event in experiment.unit_events(unit)]}


def _withdraw(experiment: Experiment, unit: str, reason: str) -> dict[str, Any]:
    return experiment.withdraw(unit, reason).to_dict() | {"new": False}


def _erase(experiment: Experiment, unit: str) -> dict[str, Any]:
    experiment.erase(unit)
    return {"erased": unit}


def _history(experiment: Experiment, points: int) -> dict[str, Any]:
    """Return the history as data; arrays stay arrays, since they may be large."""
    n_arms = len(experiment.describe()["arms"])
    most = max(1, MOST_POINTS // n_arms)
    if points > most:
        raise InvalidInput(
            f"points must be at most {most:,} for {n_arms:,} arms; got {points:,}",
            hint=f"a history has at most {MOST_POINTS:,} points times arms; the log has everything",
        )
    found = experiment.history(points)
    return vars(found) | {"at": [when.isoformat() for when in found.at]}


def _timeline(experiment: Experiment, **given: Any) -> dict[str, Any]:
    """Return the timeline as data; arrays stay arrays, since they may be large."""
    found = experiment.timeline(**given)
    return vars(found) | {"at": found.at.isoformat(), "start": [start.isoformat() for start in found.start]}


def _events(
    experiment: Experiment,
    after: int,
    limit: int,
    newest_first: bool = False,
    before: int | None = None,
    kinds: str = "",
) -> dict[str, Any]:
    chosen: dict[str, Any] = {"kinds": _kinds(kinds), "newest_first": newest_first}
    if newest_first:
        return _page(limit, before, lambda n, place: experiment.events_page(after, n, before=place, **chosen))
    return _page(limit, after, lambda n, place: experiment.events_page(place or 0, n, before=before, **chosen))


def _changes(experiment: Experiment, limit: int, before: int | None = None, kinds: str = "") -> dict[str, Any]:
    wanted = _kinds(kinds)
    return _page(limit, before, lambda n, place: experiment.changes(n, before=place, kinds=wanted))


def _kinds(text: str) -> list[str]:
    return text.split(",") if text else []


def _page(limit: int, place: int | None, read: Callable[[int, int | None], list[Event]]) -> dict[str, Any]:
    """Read events from a place in the log on, until there are enough, or their details are long enough."""
    found: list[dict[str, Any]] = []
    size = 0
    while len(found) < limit and size < MOST_DETAILS:
        piece = read(min(_PIECE, limit - len(found)), place)
        if not piece:
            break
        found += [event.to_dict() for event in piece]
        size += sum(len(repr(event.details)) for event in piece)
        place = piece[-1].number
    return {"events": found, "next": place or 0}


def _report(experiment: Experiment, **given: Any) -> dict[str, Any]:
    for name in ("adjust", "by"):
        if name in given:
            given[name] = list(entries(given[name]))
    return experiment.report(**given).to_dict()


def _full_report(experiment: Experiment, **given: Any) -> dict[str, Any]:
    for name in ("adjust", "by"):
        if name in given:
            given[name] = list(entries(given[name]))
    return experiment.full_report(**given).to_dict()


def _rebuild(experiment: Experiment) -> dict[str, Any]:
    return {"changed": experiment.rebuild()}


def _status(experiment: Experiment) -> dict[str, Any]:
    return experiment.status().to_dict()


def _health(experiment: Experiment) -> dict[str, Any]:
    return experiment.health().to_dict()


_ACTIONS: dict[str, Callable[..., dict[str, Any]]] = {
    "unit": _unit,
    "units": _units,
    "unit_events": _unit_events,
    "withdraw": _withdraw,
    "erase": _erase,
    "health": _health,
    "history": _history,
    "events_page": _events,
    "changes": _changes,
    "rebuild": _rebuild,
    "report": _report,
    "full_report": _full_report,
    "status": _status,
    "timeline": _timeline,
}
"""Verbs whose answer is not simply the record that the method returns."""


async def _list(service: Service, exchange: Exchange) -> Answer:
    key = _key(exchange)

    def work() -> bytes:
        seen = [one for one in Experiment.list(service.store) if key.experiment in (None, one.name)]
        return encode({"experiments": [json_data(one) for one in seen]})

    return Answer(200, await service.elsewhere(work))


async def _create(service: Service, exchange: Exchange) -> Answer:
    body, key = exchange.data, _key(exchange)
    key.require(http_api.ADMINS, body.name)
    settings = create_arguments(body)
    paused = settings.pop("paused")

    def work() -> Answer:
        try:
            experiment, status = (
                Experiment.create(service.store, body.name, who=key.name, paused=paused, **settings),
                201,
            )
        except ExperimentExists:
            experiment, status = service.experiment(body.name, key), 200
            if not _is_same(experiment, settings, paused):
                raise ExperimentExists(
                    f"the service has an experiment {body.name!r} already", hint=Hint.ANOTHER_NAME
                ) from None
        return Answer(status, encode(experiment.describe()))

    return await service.elsewhere(work)


async def _delete(service: Service, exchange: Exchange) -> Answer:
    name = exchange.names[0]
    await service.work(name, _key(exchange), Experiment.delete)
    service.forget(name)
    return Answer(200, encode({"deleted": name}))


def create_arguments(body: http_api.NewExperiment) -> dict[str, Any]:
    """Return the arguments of `Experiment.create` for a decoded body."""
    data = msgspec.structs.asdict(body)
    del data["name"]
    data["policy"] = None if body.policy is None else Policy.from_dict(body.policy)
    data["missing"] = None if body.missing is None else MissingReward.from_dict(body.missing)
    data["stopping"] = [StoppingRule.from_dict(rule) for rule in body.stopping]
    return data


def _is_same(experiment: Experiment, settings: dict[str, Any], paused: bool) -> bool:
    """Return whether the experiment was created with these settings, so that repeating the request is idempotent."""
    first, *more = experiment.events_page(0, 2)
    if paused != any((event.kind, event.at) == ("paused", first.at) for event in more):
        return False
    created = first.details  # the settings at creation, not as changed since
    found = Configuration.from_dict(created["configuration"])
    seed = settings["seed"] if settings["seed"] is not None else found.seed
    configuration, arms = checked_settings(**settings | {"seed": seed})
    existing = [(arm["name"], arm["floor"]) for arm in created["arms"]]
    return existing == arms and encode(found.to_dict()) == encode(configuration.to_dict())


async def _export(service: Service, exchange: Exchange) -> Answer:
    experiment = await service.work(exchange.names[0], _key(exchange), lambda found: found)
    form = exchange.data.format
    headers = {"content-type": _EXPORT_TYPES[form], "content-disposition": f'attachment; filename="export.{form}"'}
    return Answer(200, await export_pieces(experiment, form), headers)


# Plans


async def _submit_plan(service: Service, exchange: Exchange) -> Answer:
    _key(exchange).require(http_api.READERS)
    body: http_api.NewPlan = exchange.data

    def work() -> Answer:
        from equipoise.planner.plan import Plan
        from equipoise.planner.plan_file import parse_plan

        if (body.plan is None) == (body.toml is None):
            raise InvalidInput("give a plan as JSON in `plan`, or as TOML in `toml`; one of them")
        try:
            plan = Plan.from_dict(body.plan) if body.plan is not None else parse_plan(str(body.toml), reads_files=False)
        except InvalidInput:
            raise
        except EquipoiseError as error:  # about a place in the file
            raise InvalidInput(error.message, hint=error.hint) from None
        found = service.plans.submit(plan, seconds=body.seconds)
        return Answer(200 if found["state"] == "done" else 202, encode(found))

    return await service.elsewhere(work)


async def _list_plans(service: Service, exchange: Exchange) -> Answer:
    _key(exchange).require(http_api.READERS)
    return Answer(200, encode({"plans": await service.elsewhere(service.plans.summaries)}))


async def _plan(service: Service, exchange: Exchange) -> Answer:
    _key(exchange).require(http_api.READERS)
    return Answer(200, encode(await service.elsewhere(partial(service.plans.get, exchange.names[0]))))


async def _cancel_plan(service: Service, exchange: Exchange) -> Answer:
    _key(exchange).require(http_api.READERS)
    return Answer(200, encode(await service.elsewhere(partial(service.plans.cancel, exchange.names[0]))))


# Operations


async def _healthz(_service: Service, _exchange: Exchange) -> Answer:
    return Answer(200, b'{"status":"ok"}')


async def _readyz(service: Service, _exchange: Exchange) -> Answer:
    await service.look()
    return Answer(200, b'{"status":"ok"}')


async def _metrics(service: Service, exchange: Exchange) -> Answer:
    _key(exchange).require(http_api.READERS)
    text = await service.numbers()
    return Answer(200, text.encode(), {"content-type": "text/plain; version=0.0.4; charset=utf-8"})


_HANDLERS: dict[str, Handler] = {
    "ask": _ask,
    "ask_many": _ask_many,
    "tell": _tell,
    "tell_many": _tell_many,
    "correct": _correct,
    "list": _list,
    "create": _create,
    "delete": _delete,
    "export": _export,
    "submit_plan": _submit_plan,
    "list_plans": _list_plans,
    "plan": _plan,
    "cancel_plan": _cancel_plan,
    "healthz": _healthz,
    "readyz": _readyz,
    "metrics": _metrics,
}
"""Verbs that are not a single call of a method of `Experiment`."""


def _key(exchange: Exchange) -> Key:
    assert exchange.key is not None  # noqa: S101
    return exchange.key
