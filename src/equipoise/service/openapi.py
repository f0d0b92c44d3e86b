"""Generate the OpenAPI document from the API table, and serve it with Swagger UI, which works offline."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from equipoise import http_api
from equipoise._version import __version__
from equipoise.errors import Hint
from equipoise.experiment import Experiment
from equipoise.experiment.export import COLUMNS
from equipoise.experiment.fidelity import PLAN, fidelity_of
from equipoise.experiment.names import LONGEST_NAME, LONGEST_UNIT
from equipoise.serialization import json_data
from equipoise.service.dispatch import Answer, Exchange, Route
from equipoise.service.error_responses import Refused
from equipoise.service.handlers import action, create_arguments
from equipoise.service.json_bodies import encode
from equipoise.store import open_store

if TYPE_CHECKING:
    from equipoise.http_api import Endpoint
    from equipoise.service.service import Service

_DESCRIPTION = """
Experiments that treat people well and measure every arm accurately, with one dial between the two.

Send a key as `Authorization: Bearer KEY`. Every verb is idempotent and can be sent again when its answer was lost: a
unit keeps its arm, a reward counts once. Errors are `{"error": ..., "hint": ...}`. Names in paths are percent-encoded.

An address that does not exist is answered with 404, and a method that an address does not take with 405, whose header
`Allow` names the methods it takes.
"""

REASONS = {
    400: "The request is not JSON, or did not arrive whole.",
    401: "No key, or one that is not valid.",
    403: "The key's role or experiment does not cover this, or a page of another site may not call the service.",
    404: "No such experiment, unit, arm or plan.",
    408: "The request took too long to arrive.",
    409: "It contradicts what is recorded, or the state of the experiment.",
    413: "The body is too large.",
    415: "The body is not JSON, or it is compressed.",
    421: "A service without keys answers to `localhost` only.",
    422: "Something in it is outside what is allowed.",
    429: "The key has used what it may use per hour.",
    431: "The head of the request is too large.",
    500: "An unexpected error; it was logged with the request's id.",
    501: "The server lacks an optional package for this.",
    503: "Too much to do, or the store cannot be reached; trying again is safe.",
}
"""What each error status means."""

_ALWAYS = (400, 403, 408, 413, 415, 421, 431, 500, 503)
_ERROR = {"description": "Class of the error in `equipoise.errors`.", "schema": {"type": "string"}}
_EVENT = {
    "description": "First event that differs, if a log does not verify; the event of an unexpected change.",
    "schema": {"type": "integer"},
}
_RETRY = {"description": "Seconds to wait before sending it again.", "schema": {"type": "integer"}}
_MORE_HEADERS = {409: {"X-Equipoise-Event": _EVENT}, 429: {"Retry-After": _RETRY}, 503: {"Retry-After": _RETRY}}
_PATH = {
    "name": ("The experiment.", "fractions", LONGEST_NAME),
    "unit": ("The unit that was assigned.", "student-42", LONGEST_UNIT),
    "arm": ("The arm.", "pie", LONGEST_NAME),
    "id": ("The plan's id, as it was returned when the plan was submitted.", 4 * "0f1e2d3c4b5a6978", 64),
}
_NOT_JSON: dict[str, tuple[str, tuple[str, ...]]] = {
    "export": (
        f"One row per unit: {', '.join(COLUMNS)}.",
        ("text/csv", "application/x-ndjson", "application/octet-stream"),
    ),
    "metrics": ("Numbers in the text format of Prometheus.", ("text/plain",)),
}
_SCHEMAS = "#/components/schemas/{name}"

BODIES: dict[str, dict[str, Any]] = {
    "create": {
        "name": "fractions",
        "arms": ["number line", "pie", "none"],
        "reward_weight": 0.8,
        "seed": 2024,
        "floor": 0.05,
        "control": "none",
        "control_share": 0.1,
        "reward_range": [0, 1],
        "missing": {"name": "DropUnit", "window_seconds": 604800},
        "stopping": [{"name": "Budget", "units": 2000}],
        "metadata": {"class": "4b"},
    },
    "ask": {"unit": "student-42", "attributes": {"school": "north"}},
    "ask_many": {"units": ["student-42", {"unit": "student-43", "attributes": {"age": 9}}]},
    "tell": {"reward": 0.75},
    "tell_many": {"rewards": [{"unit": "student-42", "reward": 0.75}]},
    "correct": {"reward": 0.5, "reason": "typed wrong"},
    "withdraw": {"reason": "asked to leave"},
    "pause": {"reason": "the school is closed this week"},
    "resume": {"reason": "the school is open again"},
    "stop": {"reason": "the term is over"},
    "finish": {"anyway": False},
    "change_weight": {"reward_weight": 0.9, "reason": "number lines are clearly ahead"},
    "change_dial": {"information_kept": 0.7, "information_about": "every-arm"},
    "change_description": {
        "title": "Number lines or pies?",
        "outcome": "solved the task",
        "arms": {"pie": "A round one, cut into pieces."},
    },
    "note": {"text": "The teacher of 4b was ill on Monday and Tuesday.", "kind": "note"},
    "mute": {"check": "enrolment", "until": "2026-12-01T00:00:00+00:00", "reason": "school holidays"},
    "unmute": {"check": "enrolment", "reason": "school has begun again"},
    "add_arm": {"name": "blocks", "floor": 0.05},
    "pause_arm": {"reason": "its sheets have run out"},
    "resume_arm": {"reason": "there are new sheets"},
    "retire_arm": {"reason": "it confuses the children"},
    "submit_plan": {
        "plan": {
            "arms": [{"name": "plain", "rate": "25% to 35%", "control": True}, {"name": "prize", "rate": "40% to 60%"}],
            "people": {"per_day": 96, "days": 60},
            "goals": {"precision": 0.06},
        },
        "seconds": 30,
    },
}
"""An example body for each verb that has one."""


@cache
def document() -> dict[str, Any]:
    """Return the OpenAPI document."""
    kinds = {kind for one in http_api.EVERY_ENDPOINT for kind in (one.body, one.query, one.answer) if kind is not None}
    ordered = sorted({*kinds, http_api.Failure}, key=lambda kind: kind.__name__)
    found, schemas = msgspec.json.schema_components(ordered, ref_template=_SCHEMAS)
    queries = {
        name: schemas.pop(name)
        for name in {one.query.__name__ for one in http_api.EVERY_ENDPOINT if one.query is not None}
    }
    for schema in schemas.values():
        schema["description"] = inspect.cleandoc(schema["description"]).partition("\n\n")[0].replace("\n", " ")
        for name, field in schema["properties"].items():
            if name == "at" or name.endswith("_at"):  # msgspec does not know that our datetimes have a zone
                field.get("items", field)["format"] = "date-time"
    schemas["Failure"]["examples"] = [
        {"error": "the reward of unit 'student-42' was told before and is 0.75; got 0.5", "hint": Hint.CORRECT.request}
    ]
    references = dict(zip(ordered, found, strict=True))
    examples = _examples()
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in http_api.EVERY_ENDPOINT:
        operation: dict[str, Any] = {
            "tags": [endpoint.tag],
            "summary": endpoint.summary,
            "description": endpoint.text,
            "operationId": endpoint.operation,
        }
        if parameters := [*map(_path_parameter, endpoint.path_names), *_query_parameters(endpoint, queries)]:
            operation["parameters"] = parameters
        if endpoint.body is not None:
            content = {"schema": references[endpoint.body], "example": BODIES[endpoint.verb]}
            required = bool(schemas[endpoint.body.__name__]["required"])
            operation["requestBody"] = {"required": required, "content": {"application/json": content}}
        operation["responses"] = _successes(endpoint, references, schemas, examples) | _failures(endpoint)
        if endpoint.roles:
            operation["security"] = [{"key": []}]
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "Equipoise", "description": _DESCRIPTION, "version": __version__},
        "servers": [{"url": "."}],  # relative to the document
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }


def _path_parameter(name: str) -> dict[str, Any]:
    """Return the parameter for a name in a path; length limits apply to the decoded name."""
    description, example, longest = _PATH[name]
    schema = {"type": "string", "minLength": 1, "maxLength": longest, "examples": [example]}
    return {"name": name, "in": "path", "required": True, "description": description, "schema": schema}


def _query_parameters(endpoint: Endpoint, queries: dict[str, Any]) -> list[dict[str, Any]]:
    if endpoint.query is None:
        return []
    schema = queries[endpoint.query.__name__]
    return [
        {
            "name": name,
            "in": "query",
            "required": name in schema["required"],
            "description": field["description"],
            "schema": field,
        }
        for name, field in schema["properties"].items()
    ]


def _successes(
    endpoint: Endpoint, references: dict[Any, Any], schemas: dict[str, Any], examples: dict[str, Any]
) -> dict[str, Any]:
    if endpoint.answer is None:
        description, types = _NOT_JSON[endpoint.verb]
        return {
            "200": {"description": description, "content": {kind: {"schema": {"type": "string"}} for kind in types}}
        }
    schema, example = references[endpoint.answer], examples[endpoint.verb]
    description = schemas[endpoint.answer.__name__]["description"]
    answer = {"description": description, "content": {"application/json": {"schema": schema, "example": example}}}
    if endpoint.created is None:
        return {"200": answer}
    if endpoint.is_later:
        return {"200": {**answer, "description": endpoint.created}, "202": answer}
    before = example | {"new": False} if "new" in example else example
    content = {"application/json": {"schema": schema, "example": before}}
    return {"200": {"description": endpoint.created, "content": content}, "201": answer}


def _failures(endpoint: Endpoint) -> dict[str, Any]:
    statuses = {*endpoint.failures, *_ALWAYS, *((401, 422, 429) if endpoint.roles else ())}
    content = {"application/json": {"schema": {"$ref": _SCHEMAS.format(name="Failure")}}}
    return {
        str(status): {
            "description": REASONS[status],
            "headers": {"X-Equipoise-Error": _ERROR} | _MORE_HEADERS.get(status, {}),
            "content": content,
        }
        for status in sorted(statuses)
    }


def _examples() -> dict[str, Any]:
    """Return an example answer for every verb, from a small experiment in memory with a fixed seed and clock."""
    started = datetime(2026, 11, 16, 8, 15, 30, 125_000, tzinfo=UTC)
    seconds = iter(range(10**6))
    found: dict[str, Any] = {"healthz": {"status": "ok"}, "readyz": {"status": "ok"}}
    found["delete"] = {"deleted": BODIES["create"]["name"]}

    def run(verb: str, *names: str, data: dict[str, Any] | None = None) -> None:
        given = BODIES.get(verb, {}) if data is None else data
        found[verb] = msgspec.json.decode(encode(action(verb)(experiment, *names, **given)))

    with open_store("memory:", clock=lambda: started + timedelta(seconds=next(seconds))) as store:
        body = msgspec.convert(BODIES["create"], http_api.NewExperiment)
        experiment = Experiment.create(store, body.name, who="web site", **create_arguments(body))
        found["create"] = experiment.describe()
        found["ask"] = json_data(experiment.ask(**BODIES["ask"]))
        found["tell"] = json_data(experiment.tell("student-42", **BODIES["tell"]))
        found["ask_many"] = {"assignments": json_data(experiment.ask_many(["student-42", ("student-43", {"age": 9})]))}
        found["tell_many"] = {"rewards": json_data(experiment.tell_many([("student-42", 0.75)]))}
        for number in range(44, 84):
            experiment.ask(f"student-{number}")
            if number < 80:
                experiment.tell(f"student-{number}", number % 5 / 4)
        run("correct", "student-42")
        run("unit", "student-42")
        run("units", data={"prefix": "student-8", "limit": 2})
        run("unit_events", "student-42")
        run("withdraw", "student-44")
        run("erase", "student-44")
        found["list"] = {"experiments": json_data(Experiment.list(store))}
        run("history", data={"points": 3})
        run("timeline")
        run("outlook")
        run("events_page", data={"after": 1, "limit": 2})
        run("what_if", data={"information_kept": 0.7})
        run("prices")
        found["prices"]["positions"] = found["prices"]["positions"][:2]
        for verb in (
            "describe",
            "status",
            "compare",
            "report",
            "full_report",
            "verify",
            "rebuild",
            "health",
            "pause",
            "resume",
            "settle",
        ):
            run(verb)
        for verb in ("change_weight", "change_dial", "change_description", "note", "mute", "unmute"):
            run(verb)
        run("changes", data={"limit": 2})
        found["verify"] |= {"seconds": 0.07, "last_hash": 16 * "0f"}  # the only values that differ from run to run
        found["full_report"] |= {"hash": 16 * "0f", "verification": found["verify"]}
        found["health"]["checks"] = found["health"]["checks"][:3]
        found["health"]["verified"]["seconds"] = 0.07
        found["fidelity"] = json_data(fidelity_of(experiment.status(), {PLAN: _PLANNED}))
        run("add_arm")
        for verb in ("pause_arm", "resume_arm", "retire_arm"):
            run(verb, "pie")
        run("stop")
        seconds = iter(range(10**6, 2 * 10**6))  # every window has passed
        run("finish")
    plan = {"id": _PATH["id"][1], "title": "plain, prize", "state": "waiting", "replications": 0, "seconds": 30}
    plan["asked_at"] = started.isoformat()
    for verb in ("submit_plan", "plan", "cancel_plan"):
        found[verb] = plan | {"forecast": None, "plan": BODIES["submit_plan"]["plan"], "error": None}
    found["list_plans"] = {"plans": [plan]}
    return found


_PLANNED = {
    "digest": _PATH["id"][1],
    "way": "information kept 0.7",
    "days": [0.0, 1.0],
    "bands": [{"figure": "people", "arm": None, "low": [0, 80], "middle": [0, 100], "high": [0, 120]}],
}


# Pages

_LINKS = {"documentation": "docs", "openapi": "openapi.json", "health": "healthz"}
"""All links are relative, so that they work behind any proxy path."""
_FILES = {"swagger-ui-bundle.js": "text/javascript; charset=utf-8", "swagger-ui.css": "text/css; charset=utf-8"}
_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; frame-ancestors 'none'"
)
_PAGE = b"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Equipoise API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="page"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script>
SwaggerUIBundle({
  url: "openapi.json", dom_id: "#page", deepLinking: true, persistAuthorization: false, validatorUrl: null
})
</script>
</body>
</html>
"""


def pages() -> list[Route]:
    """Return the routes of the pages; they reveal nothing about experiments, so they need no key."""
    handlers = {"/": _index, "/openapi.json": _openapi, "/docs": _docs, "/docs/{file}": _file}
    return [
        Route(
            http_api.Endpoint(verb="", method="GET", path=path, roles=http_api.PUBLIC, tag="", summary="", text=""),
            handler,
        )
        for path, handler in handlers.items()
    ]


async def _index(_service: Service, exchange: Exchange) -> Answer:
    if b"text/html" in exchange.accept:  # a browser
        return Answer(307, b"", {"location": _LINKS["documentation"], "vary": "accept"})
    return Answer(200, encode({"name": "equipoise", "version": __version__, "links": _LINKS}), {"vary": "accept"})


async def _openapi(service: Service, _exchange: Exchange) -> Answer:
    return Answer(200, await service.elsewhere(lambda: encode(document())))


async def _docs(_service: Service, _exchange: Exchange) -> Answer:
    return Answer(200, _PAGE, {"content-type": "text/html; charset=utf-8", "content-security-policy": _POLICY})


async def _file(service: Service, exchange: Exchange) -> Answer:
    [file] = exchange.names
    if file not in _FILES:
        raise Refused(404, "there is nothing at this address", hint="see /docs for what there is")
    content = await service.elsewhere((_assets() / file).read_bytes)
    return Answer(200, content, {"content-type": _FILES[file], "cache-control": "max-age=86400"})


def _assets() -> Path:
    """Return the directory of Swagger UI's scripts, from the package `swagger-ui-py`."""
    found = find_spec("swagger_ui")
    assert found is not None  # noqa: S101
    assert found.origin is not None  # noqa: S101
    return Path(found.origin).parent / "static"
