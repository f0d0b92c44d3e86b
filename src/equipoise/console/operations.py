"""Show operators how the service does: requests by route, the store, and keys, which can be revoked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from equipoise.console.acts import ActView, Sentence, quoted
from equipoise.console.addresses import address
from equipoise.console.form_values import problem_in
from equipoise.console.visits import Redirect, Shown, Visit
from equipoise.errors import InvalidInput, UnknownKey

PATH = "service"
KEY = "service/keys/{id}"
MOST_LAGS, MOST_KEYS = 20, 200
_SOON = timedelta(days=7)


class RouteFigures(NamedTuple):
    """The requests of one route: how many, how fast, and how many were refused (4xx) or failed (5xx)."""

    method: str
    route: str
    requests: int
    per_second: float
    median_seconds: float | None
    p99_seconds: float | None
    refused: int
    failed: int


class RefusedFigures(NamedTuple):
    """Calls about the units of an experiment that were refused with one class of error."""

    experiment: str
    error: str
    calls: int


@dataclass(frozen=True)
class Traffic:
    """What the service did in the last so many seconds, as `/metrics` counts it."""

    seconds: float
    in_flight: int
    routes: tuple[RouteFigures, ...]
    n_batches: int
    """Transactions that requests shared."""
    batch_requests: tuple[float | None, float | None]
    batch_seconds: tuple[float | None, float | None]
    """Median and 99th percentile."""
    refused: tuple[RefusedFigures, ...]
    """Most first."""
    messages: tuple[tuple[str, int], ...]
    """Messages to the webhook, by what became of them; empty if there were none."""

    @property
    def per_second(self) -> float:
        """Requests a second, of all routes."""
        return sum(one.per_second for one in self.routes)


class RollupLag(NamedTuple):
    """How many events the sums by hour of an experiment are behind its log; whoever reads them next adds those."""

    experiment: str
    events: int
    of: int


@dataclass(frozen=True)
class StoreFigures:
    """What the store takes, and who reads it."""

    url: str
    n_bytes: int
    log_bytes: int | None
    """Of SQLite's write-ahead log."""
    oldest_read_seconds: float
    """For how long this process has been in its oldest read: a log cannot be emptied while somebody reads it."""
    lags: tuple[RollupLag, ...]


@dataclass(frozen=True)
class KeyLine:
    """A key without its secret."""

    id: str
    name: str
    role: str
    experiment: str | None
    state: str
    created_at: datetime
    last_used_at: datetime | None
    expires_at: datetime | None
    is_own: bool
    """Whether the viewer signed in with it."""


class Desk(Protocol):
    """What the service lets operators see and do."""

    def traffic(self) -> Traffic:
        """Return the requests of the last minutes."""

    def store(self) -> StoreFigures:
        """Return what the store takes."""

    def known_keys(self) -> tuple[KeyLine, ...]:
        """Return all keys."""

    def revoke(self, key_id: str, /) -> None:
        """Revoke a key."""


@dataclass(frozen=True)
class ServiceView:
    """How the service does."""

    traffic: Traffic
    store: StoreFigures
    n_lagging: int
    """Experiments whose sums by hour are behind; those furthest behind are shown."""
    keys: tuple[KeyLine, ...]
    n_keys: int
    soon: datetime
    """Keys that expire before this expire soon."""
    done: str


def show(visit: Visit) -> Shown:
    """Show how the service does."""
    desk = visit.desk
    store, keys = desk.store(), desk.known_keys()
    behind = sorted((one for one in store.lags if one.events), key=lambda one: -one.events)
    view = ServiceView(
        traffic=desk.traffic(),
        store=replace(store, lags=tuple(behind[:MOST_LAGS])),
        n_lagging=len(behind),
        keys=keys[:MOST_KEYS],
        n_keys=len(keys),
        soon=visit.now + _SOON,
        done="The key is revoked." if visit.query.get("done") == "revoked" else "",
    )
    return Shown("service.html", view, "Service")


def show_key(visit: Visit) -> Shown:
    """Ask before a key is revoked."""
    return _asking(visit).shown()


def revoke(visit: Visit) -> Redirect | Shown:
    """Revoke a key whose name was typed."""
    asked = _asking(visit)
    if visit.form.get("typed", "").strip() != asked.typed:
        error = InvalidInput(f"to go on, type {asked.typed} as it is written here")
        return replace(asked, problem=problem_in(error)).shown(422)
    visit.desk.revoke(visit.names["id"])
    return Redirect(f"{PATH}?done=revoked")


def _asking(visit: Visit) -> ActView:
    found = next((one for one in visit.desk.known_keys() if one.id == visit.names["id"]), None)
    if found is None:
        raise UnknownKey("there is no such key", hint="the page Service lists all keys")
    if found.state != "valid":
        raise InvalidInput(f"the key {found.id} is {found.state} already")
    where = "every experiment" if found.experiment is None else f"the experiment {quoted(found.experiment)}"
    sentences = [Sentence(f"It is the {found.role} key {found.id}, for {where}.")]
    if found.last_used_at is not None:
        sentences.append(Sentence("It was last used", found.last_used_at, "."))
    else:
        sentences.append(Sentence("It was never used, as far as is recorded."))
    sentences.append(Sentence("Programs and people that use it are refused from then on, within two seconds."))
    if found.is_own:
        sentences.append(Sentence("It is the key that you signed in with: you will be signed out."))
    return ActView(
        f"Revoke the key {quoted(found.name)}?",
        tuple(sentences),
        "Revoke it for good",
        typed=found.name,
        is_danger=True,
        back=address(PATH),
    )
