"""The backend of remote experiments: turn each verb into a request of the API table, and its answer into a record.

Nothing here does I/O. A method returns what the transport returns: a result, or with `AsyncTransport` a coroutine.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache, partial
from typing import Any, cast, get_args, get_type_hints
from urllib.parse import quote, urlencode

import msgspec
import msgspec.structs

from equipoise import checks, http_api
from equipoise.client.transport import AsyncTransport, Call, Transport
from equipoise.errors import InvalidInput, UnknownUnit
from equipoise.experiment import Experiment, commands, records
from equipoise.experiment.full_report import FullReport
from equipoise.experiment.names import LONGEST_NAME, checked_new_name, checked_text

MOST_UNITS = 1_000
MOST_BYTES = 500_000
"""Limits of one request, so that it does not delay others for long and is not too large for a proxy."""


class HttpBackend:
    """One experiment of a service; the service records the name of the key as author."""

    who = None

    def __init__(self, transport: Transport | AsyncTransport, name: str, event: int | None = None) -> None:
        self.name = checked_text("name", name, LONGEST_NAME)
        self._transport: Any = transport
        self.event = event
        """The event after which it is seen; None for the present."""

    def as_of(self, event: int) -> HttpBackend:
        """Return the experiment as it was after an event."""
        return HttpBackend(self._transport, self.name, event)

    def run(self, command: commands.Request) -> Any:
        """Send a command."""
        return self._send(command.verb, **_fields(command))

    def run_all(self, requests: Sequence[commands.Request]) -> Any:
        """Send several asks or several tells, in groups with one transaction each."""
        return self._transport.send_all(list(self._groups(requests)))

    def unit(self, unit: str) -> Any:
        """Look up a unit; None if it was never assigned."""
        return self._transport.send(dataclasses.replace(self._call("unit", unit=unit), absent=(UnknownUnit,)))

    def units(self, state: str | None, prefix: str | None, limit: int, after: str | None) -> Any:
        """Fetch a page of units."""
        given = {"state": state, "prefix": prefix, "limit": limit, "after": after}
        return self._send("units", **{name: value for name, value in given.items() if value is not None})

    def unit_events(self, unit: str) -> Any:
        """Fetch the events of a unit."""
        return self._send("unit_events", unit=unit)

    def configuration(self) -> Any:
        """Fetch the configuration, which is part of the description."""
        return self._transport.send(dataclasses.replace(self._call("describe"), read=_configuration))

    def describe(self) -> Any:
        """Fetch the description."""
        return self._send("describe")

    def status(self) -> Any:
        """Fetch the status."""
        return self._send("status")

    def events_page(self, after: int, limit: int, selected: dict[str, Any]) -> Any:
        """Fetch a page of the log."""
        return self._send("events_page", after=after, limit=limit, **_queried(selected))

    def changes(self, limit: int, selected: dict[str, Any]) -> Any:
        """Fetch the latest changes."""
        return self._send("changes", limit=limit, **_queried(selected))

    def history(self, points: int) -> Any:
        """Fetch the history."""
        return self._send("history", points=points)

    def timeline(self, every: str, since: datetime | None) -> Any:
        """Fetch the timeline."""
        return self._send("timeline", every=every, **({} if since is None else {"since": since.isoformat()}))

    def outlook(self) -> Any:
        """Fetch the outlook."""
        return self._send("outlook")

    def what_if(self, dial: dict[str, Any]) -> Any:
        """Fetch a comparison with another dial."""
        return self._send("what_if", **dial)

    def prices(self, settings: dict[str, Any]) -> Any:
        """Fetch the prices of the dial's positions."""
        return self._send("prices", **settings)

    def compare(self, settings: dict[str, Any]) -> Any:
        """Fetch a comparison of the arms."""
        return self._send("compare", **_queried(settings))

    def report(self, settings: dict[str, Any]) -> Any:
        """Fetch the report."""
        return self._send("report", **_queried(settings))

    def full_report(self, settings: dict[str, Any]) -> Any:
        """Fetch everything as of one event."""
        return self._send("full_report", **_queried(settings))

    def fidelity(self) -> Any:
        """Fetch the comparison with the plan."""
        return self._send("fidelity")

    def health(self) -> Any:
        """Have the service make the checks."""
        return self._send("health")

    def verify(self) -> Any:
        """Have the service replay the log."""
        return self._send("verify")

    def rebuild(self) -> Any:
        """Have the service rebuild its tables from the log."""
        return self._transport.send(dataclasses.replace(self._call("rebuild"), read=lambda data: bool(data["changed"])))

    def erase(self, unit: str) -> Any:
        """Have the service erase a withdrawn unit."""
        return self._send("erase", unit=unit)

    def delete(self) -> Any:
        """Have the service delete the experiment."""
        return self._send("delete")

    def export(self, target: Any, form: str | None) -> Any:
        """Download the table of units."""
        from equipoise.client.transport import downloading
        from equipoise.experiment.export import export_target

        chosen, path = export_target(target, form)
        return self._transport.download(self._call("export", format=chosen), downloading(target, chosen, path))

    def _send(self, verb: str, **values: Any) -> Any:
        return self._transport.send(self._call(verb, **values))

    def _call(self, verb: str, **values: Any) -> Call:
        """Return the call for a verb, with its values in the path, the query or the body, as the API table says."""
        endpoint = http_api.BY_VERB[verb]
        names: dict[str, str] = {"name": self.name, "unit": values.get("unit", "")}
        if "arm" in endpoint.path_names:
            names["arm"] = checked_text("arm", values["name"], LONGEST_NAME)
        path = endpoint.path.format(**{name: _escaped(names[name]) for name in endpoint.path_names})
        slow = endpoint.slow
        if self.event is not None:
            if "at" not in http_api.query_names(endpoint):
                said = f"the view of experiment {self.name!r} as of event {self.event:,} has no {verb}"
                raise InvalidInput(f"{said}, and cannot be changed", hint="open the experiment itself")
            values, slow = values | {"at": self.event}, True
        query = {} if endpoint.query is None else _part(endpoint.query, values)
        path += f"?{urlencode(query)}" if query else ""
        content = None if endpoint.body is None else _json(_part(endpoint.body, values))
        return Call(endpoint.method, path, partial(read_answer, verb), content, slow)

    def _groups(self, requests: Sequence[commands.Request]) -> Iterator[Call]:
        """Yield calls that together send all requests, in order, each call as large as allowed."""
        if not requests:
            return
        verb = f"{requests[0].verb}_many"
        call, body = self._call(verb), http_api.BY_VERB[verb].body or msgspec.Struct
        (key,) = body.__struct_fields__
        group: list[bytes] = []
        size = 0
        for entry in [_json(_fields(request)) for request in requests]:  # check all before sending the first
            if group and (len(group) == MOST_UNITS or size + len(entry) > MOST_BYTES):
                yield dataclasses.replace(call, content=_list_of(key, group))
                group, size = [], 0
            group.append(entry)
            size += len(entry) + 2
        yield dataclasses.replace(call, content=_list_of(key, group))


def create_call(name: str, settings: dict[str, Any]) -> Call:
    """Return the call that creates an experiment, with the arguments of `Experiment.create`.

    The arguments are checked here first, as the service will check them. That also draws a seed if none is given, which
    makes the call idempotent: after a lost answer, an experiment with this seed was created by this call.
    """
    from equipoise.experiment.configuration import checked_settings

    checked_new_name("name", name)
    given = (Experiment.create.__kwdefaults__ or {}) | settings
    paused = checks.boolean("paused", given.pop("paused"))
    if given.pop("who") is not None:
        raise InvalidInput.of("who", "must be left out: a service logs the name of the key")
    configuration, pairs = checked_settings(**given)
    data = configuration.to_dict() | {"name": name, "arms": [arm for arm, _ in pairs], "floor": [f for _, f in pairs]}
    data |= {"paused": True} if paused else {}
    content = _json({key: value for key, value in _part(http_api.NewExperiment, data).items() if value is not None})
    return _experiments("create", content=content, creates=None if given["seed"] is None else name)


def list_call() -> Call:
    """Return the call that lists all experiments."""
    return _experiments("list")


def read_answer(verb: str, data: Any) -> Any:
    """Return the record, or the list of records, that the data of an answer say."""
    if verb == "describe":
        return data
    if verb == "full_report":
        return _full_report(data)
    key, kind = _record_kind(verb)
    if kind is None:
        return None
    return _record(kind, data) if key is None else [_record(kind, one) for one in data[key]]


@cache
def _record_kind(verb: str) -> tuple[str | None, type | None]:
    """Return the record in the answer of an endpoint, and its key where the answer lists several.

    The API names its answers after the records; the answers of other verbs are not read.
    """
    answer: Any = http_api.BY_VERB[verb].answer
    if answer is None:
        return None, None
    if hasattr(records, answer.__name__):
        return None, getattr(records, answer.__name__)
    for field in msgspec.structs.fields(answer):
        (item,) = get_args(field.type)[:1] or (None,)
        if hasattr(records, getattr(item, "__name__", "")):
            return field.name, getattr(records, item.__name__)
    return None, None


def _record(kind: type, data: Any) -> Any:
    """Convert data to a record by its annotations; ignore fields that a later version may add."""
    if issubclass(kind, tuple):  # msgspec expects arrays for these
        return kind(**{name: msgspec.convert(data[name], hint) for name, hint in _hints(kind).items()})
    if kind is records.WhatIf:
        data = data | {name: _error(data, name) for name in ("error", "present_error")}
    if kind in (records.History, records.Timeline):
        return _with_arrays(kind, data)
    if kind is records.Report:
        data = _with_nan(kind, data)
    return msgspec.convert(data, kind)


def _full_report(data: Any) -> FullReport:
    """Convert the data of a full report, part by part."""
    values: dict[str, Any] = {}
    for name, hint in _hints(FullReport).items():
        kinds = [kind for kind in (hint, *get_args(hint)) if dataclasses.is_dataclass(kind)]
        is_record = bool(kinds) and isinstance(data[name], dict)
        values[name] = _record(cast("Any", kinds[0]), data[name]) if is_record else msgspec.convert(data[name], hint)
    return FullReport(**values)


def _with_nan(hint: Any, data: Any) -> Any:
    """Return the data of a record with NaN for null, which JSON has for numbers that are not finite."""
    if data is None:
        return math.nan if hint is float else None
    if dataclasses.is_dataclass(hint):
        hints = _hints(cast("Any", hint))
        return {name: _with_nan(part, data[name]) for name, part in hints.items() if name in data}
    parts = [part for part in get_args(hint) if part not in (type(None), ...)]
    if isinstance(data, list) and parts:
        return [_with_nan(parts[0], one) for one in data]
    return _with_nan(parts[0], data) if len(parts) == 1 else data


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _with_arrays(kind: Any, data: Any) -> Any:
    """Convert data to a record with arrays; null becomes NaN."""
    import numpy as np

    plain: Any = msgspec.convert(data, getattr(http_api, kind.__name__))
    types = {"IntArray": np.int64, "FloatArray": np.float64}
    values = {name: getattr(plain, name) for name in kind.__annotations__}
    for name, hint in kind.__annotations__.items():
        if hint in types:
            values[name] = np.array(values[name], types[hint])
    return kind(**values)


def _error(data: Any, name: str) -> float:
    """Return the error of an allocation; null means infinity, which JSON lacks, if some arm gets no share."""
    if data[name] is not None:
        return float(data[name])
    return math.inf if 0 in data[name.replace("error", "allocation")].values() else math.nan


def _configuration(data: Any) -> Any:
    from equipoise.experiment.configuration import Configuration

    return Configuration.from_dict(data["configuration"])


def _experiments(verb: str, **more: Any) -> Call:
    endpoint = http_api.BY_VERB[verb]
    return Call(endpoint.method, endpoint.path, partial(read_answer, verb), **more)


def _fields(command: commands.Request) -> dict[str, Any]:
    """Check a command and return its fields, except None."""
    command.check()
    fields = {field.name: getattr(command, field.name) for field in dataclasses.fields(command)}
    if "reward" in fields:
        fields["reward"] = commands.plain_reward(fields["reward"])
    return {_SAID.get(name, name): value for name, value in fields.items() if value is not None}


_SAID = {"check_name": "check"}
"""Fields that a command cannot call what the API does: `check` is its method."""


def _queried(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings as query parameters."""
    return {name: _query_value(value) for name, value in settings.items()}


def _query_value(value: Any) -> Any:
    """Return a setting as a query parameter writes it: a list as a row of CSV."""
    if isinstance(value, (tuple, list)):
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="").writerow(value)
        return buffer.getvalue()
    return str(value).lower() if isinstance(value, bool) else value


def _part(struct: type[msgspec.Struct], values: dict[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in struct.__struct_fields__ if name in values}


def _escaped(part: str) -> str:
    """Percent-encode a name as one segment of a path.

    Examples
    --------
    >>> _escaped("50% off?"), _escaped("a/b"), _escaped("..")
    ('50%25%20off%3F', 'a%2Fb', '%2E%2E')
    """
    # `.` and `..` would otherwise be resolved as relative paths, here or by a proxy.
    return part.replace(".", "%2E") if part in (".", "..") else quote(part, safe="")


def _json(data: Any) -> bytes:
    return json.dumps(data, allow_nan=False, default=float).encode()  # numbers may be NumPy scalars


def _list_of(key: str, entries: list[bytes]) -> bytes:
    return b'{"%s": [%s]}' % (key.encode(), b", ".join(entries))
