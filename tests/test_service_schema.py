"""The OpenAPI document is complete, and the service keeps to it whatever is sent."""

from __future__ import annotations

import copy
from contextlib import closing
from keyword import iskeyword

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from jsonschema import Draft202012Validator
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS
from service_api import Api, path_of
from service_runner import serving_here

import equipoise as eq
from equipoise.service import Settings
from equipoise.service.api_keys import create_key
from equipoise.service.openapi import document

DOCUMENT = document()
# Keys are not made up here: which of them may do what is the matter of test_service_roles.py.
WITHOUT_KEYS = copy.deepcopy(DOCUMENT)
for _operation in (one for methods in WITHOUT_KEYS["paths"].values() for one in methods.values()):
    _operation.pop("security", None)
OPERATIONS = [found.ok() for found in schemathesis.openapi.from_dict(WITHOUT_KEYS).get_all_operations()]
PLANNED = {
    "digest": "d1",
    "way": "weight 0.5",
    "start": None,
    "days": [0, 1],
    "bands": [{"figure": "people", "low": [0, 8], "middle": [0, 10], "high": [0, 12]}],
}
"""What an experiment that was made from a plan keeps of it."""
PLAIN = [(path, method, one) for path, methods in DOCUMENT["paths"].items() for method, one in methods.items()]
PRESENT = {"name": "fractions", "unit": "student-42", "arm": "pie", "id": "0" * 64}


@pytest.fixture(scope="module")
def service():
    store = eq.open_store("memory:")
    key = create_key(store, role="admin")[1]
    with serving_here(store, Settings(units_per_request=50)) as here, closing(Api(here.url, key)) as api:
        body = {"name": "fractions", "arms": ["number line", "pie", "none"], "reward_weight": 0.5}
        api.data("POST", "/experiments", body)
        api.data("POST", path_of("fractions", "assignments"), {"unit": "student-42"})
        yield here, key


NOT_BY_A_SCHEMA = [CHECKS.get_one("positive_data_acceptance")]
"""What fits the schema may still be refused with 422, which is documented: no schema says that arms have names of their
own, that floors add up to less than 1 or that a name has no blanks around it. What must be accepted is tested below."""

CASES = [
    (operation, mode)
    for operation in OPERATIONS
    for mode in GenerationMode
    if mode == GenerationMode.POSITIVE or operation.query or operation.body  # any text may be a name
]


@pytest.mark.parametrize(("operation", "mode"), CASES, ids=[f"{one.label} {mode.value}" for one, mode in CASES])
def test_the_service_keeps_to_its_document_whatever_is_sent(operation, mode, service):
    here, key = service

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(max_examples=10, suppress_health_check=list(HealthCheck))
    def send(case):
        # Half of what is generated is about an experiment, a unit and an arm that are there.
        if case.path_parameters and len(next(iter(case.path_parameters.values()))) % 2 == 0:
            case.path_parameters |= {name: value for name, value in PRESENT.items() if name in case.path_parameters}
        headers = {"authorization": f"Bearer {key}"}
        case.call_and_validate(base_url=here.url, headers=headers, excluded_checks=NOT_BY_A_SCHEMA)

    send()


@pytest.mark.parametrize(("path", "method", "operation"), PLAIN, ids=[f"{method} {path}" for path, method, _ in PLAIN])
def test_every_example_of_the_document_is_accepted(service, path, method, operation):
    """In an experiment of its own, where the unit of the examples has a reward if it needs one."""
    here, key = service
    name, query = f"{method} {path}", {}
    with closing(Api(here.url, key)) as api:
        body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")
        if "{name}" in path:
            made = {"name": name, "arms": ["number line", "pie", "none"], "reward_weight": 0.5, "warm_up": 3}
            if path.endswith("fidelity"):
                made["metadata"] = {"plan": PLANNED}
            api.data("POST", "/experiments", made)
            if "{unit}" in path or "rewards" in path or path.endswith("what-if"):
                units = ["student-42", *(f"student-{i}" for i in range(30))]
                api.data("POST", path_of(name, "assignments", "many"), {"units": units})
            if "corrections" in path or path.endswith("what-if"):
                rewards = [{"unit": unit, "reward": i} for i, unit in enumerate(units)]
                api.data("POST", path_of(name, "rewards", "many"), {"rewards": rewards})
            if (method, path.rpartition("/")[2]) == ("delete", "{unit}"):
                api.data("POST", path_of(name, "assignments", "student-42", "withdrawal"), {"reason": "left"})
        elif path == "/experiments" and body:
            body |= {"name": name}
        place = path.replace("/experiments/{name}", path_of(name))
        for parameter in operation.get("parameters", []):
            schema = parameter["schema"]
            if not parameter["required"] and not {"examples", "default"} & set(schema):
                continue
            example = (schema.get("examples") or [schema.get("default")])[0]
            place = place.replace(f"{{{parameter['name']}}}", str(example))
            query |= {parameter["name"]: example} if parameter["in"] == "query" else {}
        if "{id}" in path:
            plan = next(one for where, verb, one in PLAIN if (where, verb) == ("/plans", "post"))
            example = plan["requestBody"]["content"]["application/json"]["example"]
            place = path.format(id=api.data("POST", "/plans", example)["id"])
        answer = api(method.upper(), place, body, params=query)
        assert answer.status_code < 300, answer.text
        assert str(answer.status_code) in operation["responses"]


# The document


def test_the_document_is_valid_openapi():
    assert DOCUMENT["openapi"].startswith("3.1")
    for name, schema in DOCUMENT["components"]["schemas"].items():
        Draft202012Validator.check_schema(schema)
        assert schema.get("description"), name


def misfits(content):
    """Return what about an example does not fit its schema; names that the schema does not know are among it."""
    closed = copy.deepcopy(DOCUMENT["components"])
    for schema in closed["schemas"].values():
        schema["additionalProperties"] = False
    return list(Draft202012Validator(content["schema"] | {"components": closed}).iter_errors(content["example"]))


def test_the_examples_of_requests_fit_their_schemas():
    found = 0
    for path, method, operation in PLAIN:
        for content in operation.get("requestBody", {}).get("content", {}).values():
            assert content["example"] and not misfits(content), (method, path)
            found += 1
    assert found == sum("requestBody" in operation for _, _, operation in PLAIN) >= 12


def test_every_success_has_an_example_that_fits_its_schema():
    for path, method, operation in PLAIN:
        found = 0
        for status, answer in operation["responses"].items():
            content = answer["content"].get("application/json")
            if status < "400" and content is not None:
                assert content["example"] and not misfits(content), (method, path, status)
                found += 1
        assert found or path in ("/experiments/{name}/export", "/metrics"), (method, path)
        if path.endswith("/assignments") and method == "post":
            news = {status: operation["responses"][status]["content"]["application/json"] for status in ("200", "201")}
            assert {status: one["example"]["new"] for status, one in news.items()} == {"200": False, "201": True}


def test_an_example_that_does_not_fit_would_be_found_out():
    content = DOCUMENT["paths"]["/experiments/{name}/status"]["get"]["responses"]["200"]["content"]["application/json"]
    for change in ({"n_events": "many"}, {"stale": 1}, {"arms": [{"arm": "pie"}]}):
        assert misfits(content | {"example": content["example"] | change})


def test_times_are_marked_as_times():
    marked = 0
    for name, schema in DOCUMENT["components"]["schemas"].items():
        for field, kind in schema.get("properties", {}).items():
            is_time = field == "at" or field.endswith("_at")
            assert (kind.get("items", kind).get("format") == "date-time") == is_time, (name, field)
            marked += is_time
    assert marked >= 12


def test_names_in_paths_say_how_long_they_may_be():
    lengths = {
        (one["name"], one["schema"]["minLength"], one["schema"]["maxLength"])
        for _, _, operation in PLAIN
        for one in operation.get("parameters", [])
        if one["in"] == "path"
    }
    assert lengths == {("name", 1, 200), ("unit", 1, 500), ("arm", 1, 200), ("id", 1, 64)}


@pytest.mark.parametrize(("path", "method", "operation"), PLAIN, ids=[f"{method} {path}" for path, method, _ in PLAIN])
def test_every_operation_is_described_with_its_errors(path, method, operation):
    assert operation["summary"] and operation["description"].endswith(".")
    answers = operation["responses"]
    assert {"200", "201"} & set(answers)
    expected = {"400", "403", "408", "413", "415", "421", "431", "500", "503"}
    if path not in ("/healthz", "/readyz"):
        expected |= {"401", "422"}
    if "{name}" in path:
        expected |= {"404"}
        expected |= {"409"} if method != "get" else set()
    assert expected <= set(answers)
    for status, answer in answers.items():
        assert answer["description"] and answer["description"] != "Successful Response"
        if status >= "400":
            assert list(answer["content"]) == ["application/json"]
            assert answer["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Failure"}
    assert ("security" in operation) == (path not in ("/healthz", "/readyz"))
    for parameter in operation.get("parameters", []):
        assert parameter.get("description") or parameter["schema"].get("description"), parameter["name"]


def test_operations_have_names_of_their_own():
    summaries = [operation["summary"] for _, _, operation in PLAIN]
    assert len(set(summaries)) == len(summaries)
    names = [operation["operationId"] for _, _, operation in PLAIN]
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() and name.islower() and not iskeyword(name) for name in names)
    assert {"list_experiments", "assign", "reward", "status", "pause", "pause_arm", "what_if"} <= set(names)
    assert not {"export", "delete", "default"} & set(names)  # which are words of JavaScript


def test_the_document_says_what_happens_where_there_is_no_operation(service):
    assert "405" in DOCUMENT["info"]["description"] and "`Allow`" in DOCUMENT["info"]["description"]
    with closing(Api(service[0].url, service[1])) as api:
        answer = api("PUT", path_of("fractions"))
        assert (answer.status_code, answer.headers["allow"]) == (405, "DELETE, GET, HEAD")


def test_adding_an_arm_again_is_what_the_document_says(service):
    """That it is harmless, unless something about it is another."""
    described = DOCUMENT["paths"]["/experiments/{name}/arms"]["post"]["description"]
    assert "The same again changes nothing" in described and "another floor" in described
    here, key = service
    with closing(Api(here.url, key)) as api:
        api.data("POST", "/experiments", {"name": "arms", "arms": ["a", "b"], "reward_weight": 0.5})
        first, second = (api.data("POST", path_of("arms", "arms"), {"name": "c", "floor": 0.1}) for _ in range(2))
        assert first == second
        api.refused(422, "InvalidInput", "POST", path_of("arms", "arms"), {"name": "c", "floor": 0.2})
        api.data("POST", path_of("arms", "arms", "c", "pause"))
        api.refused(422, "InvalidInput", "POST", path_of("arms", "arms"), {"name": "c", "floor": 0.1})
