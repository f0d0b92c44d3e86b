"""Name what passes between the console and its pages: a visit comes in, and what is shown or an address goes out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from equipoise.http_api import ADMINS, READERS

if TYPE_CHECKING:
    from equipoise.charts.pages import Picture
    from equipoise.console.operations import Desk
    from equipoise.experiment import Experiment, Status
    from equipoise.experiment.records import ExperimentSummary
    from equipoise.forecast_contents import ForecastContents
    from equipoise.planner.plan import Plan
    from equipoise.store import Store


Result = TypeVar("Result")


class Remember(Protocol):
    """Remembers what was read of experiments until their next event."""

    def __call__(
        self, what: str, experiment: Experiment, read: Callable[[], Result], /, *, seconds: float | None = None
    ) -> Result:
        """Return what `read` returns, or what it returned under this name if nothing has happened since.

        With `seconds`, also what it returned so long ago, whatever has happened.
        """


class Plans(Protocol):
    """The plans that the service keeps and simulates; records are as the API returns them."""

    def submit(self, plan: Plan, /) -> dict[str, Any]:
        """Simulate a plan, unless that is done already, and return its record."""

    def find(self, identity: str, /) -> dict[str, Any] | None:
        """Return the record of a plan, or None if there is no such plan."""

    def get(self, identity: str, /) -> dict[str, Any]:
        """Return the record of a plan; raise `UnknownPlan` if there is no such plan."""

    def summaries(self) -> list[dict[str, Any]]:
        """Return all plans, those asked for last first, without their forecasts."""

    def contents(self, identity: str, /) -> ForecastContents | None:
        """Return what pages show of a plan's forecast besides its charts."""

    def pictures(self, identity: str, /) -> list[Picture]:
        """Return the charts of a plan's forecast."""

    def bands(self, identity: str, /) -> dict[str, dict[str, Any]]:
        """Return, by way, what an experiment keeps of a plan."""

    def change_of(self, identity: str, /) -> int:
        """Return a number that changes when anything that is kept of a plan does."""

    def cancel(self, identity: str, /) -> dict[str, Any]:
        """End the work on a plan and keep what is done of it; forget a plan that is not at work."""


class Download(NamedTuple):
    """A file to keep, which a row of data returns instead of JSON."""

    content_type: str
    body: bytes
    name: str


class Viewer(NamedTuple):
    """Who looks at a page: the name, role and experiment of the key they signed in with."""

    name: str
    role: str
    experiment: str | None = None
    """The only experiment the key is valid for; None for all."""
    is_open: bool = False
    """Whether the service is open to everybody on this machine, without keys."""

    @property
    def reads(self) -> bool:
        """Whether results may be shown."""
        return self.role in READERS

    @property
    def changes(self) -> bool:
        """Whether changes may be offered."""
        return self.role in ADMINS


@dataclass(frozen=True)
class Visit:
    """A request for a page, after all checks of HTTP, role and form.

    Attributes
    ----------
    path : str
        The page's path as in the table of pages, such as ``e/{name}/log``.
    viewer : Viewer
        Who looks.
    now : datetime
        The store's time.
    names : dict of str
        The names in the path, decoded.
    query, form : dict of str
        The query, and the fields of a form that was sent; of a field that repeats, the last value.
    fields : list of (str, str)
        The fields of a form in order, with those that repeat.
    experiment : Experiment or None
        That of the path; its changes are recorded in the viewer's name.
    at : int or None
        The event after which the experiment is seen, on a page about the past.
    store : Store
        Holds the experiments.
    listed : function
        Returns the experiments that the viewer may see.
    address : str
        Of the service as the browser knows it, for examples: scheme and host.
    open : function
        Returns an experiment by its name, on pages about several of them; only names from `listed`.
    remember : function
        Returns what a function reads of an experiment, or what it read before if nothing has happened since.
    begin_work, find_work : function
        Begin work beside the pages, and say since when it is under way; see `begin` and `under_way`.
    find_plans, find_desk : function
        Return the plans that the service keeps, and what operators see of it; see `plans` and `desk`.
    spend : function
        Counts units towards the limits of the viewer's key: call ``spend("units", 1)`` before assigning.
    """

    path: str
    viewer: Viewer
    now: datetime
    store: Store
    names: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] = field(default_factory=dict)
    fields: tuple[tuple[str, str], ...] = ()
    experiment: Experiment | None = None
    at: int | None = None
    listed: Callable[[], list[ExperimentSummary]] = list
    address: str = ""
    spend: Callable[[str, int], None] = lambda _what, _number: None
    open: Callable[[str], Experiment] = lambda name: _nothing(name)
    remember: Remember = lambda _what, _experiment, read, **_: read()
    begin_work: Callable[[str, Experiment, Callable[[], object]], None] = lambda *_: None
    find_work: Callable[[str, Experiment], datetime | None] = lambda *_: None
    find_plans: Callable[[], Plans] = lambda: _absent("plans")
    find_desk: Callable[[], Desk] = lambda: _absent("desk of operators")

    def create(self, name: str, **settings: Any) -> Experiment:
        """Create an experiment in the viewer's name, with the arguments of `Experiment.create`."""
        from equipoise.experiment import Experiment

        return Experiment.create(self.store, name, who=self.viewer.name, **settings)

    def begin(self, what: str, action: Callable[[], object]) -> None:
        """Begin work on the experiment that goes on beside the pages, unless the same is under way."""
        self.begin_work(what, self.the, action)

    def under_way(self, what: str) -> datetime | None:
        """Return since when such work on the experiment is under way in this process, or None."""
        return self.find_work(what, self.the)

    @property
    def plans(self) -> Plans:
        """The plans that the service keeps."""
        return self.find_plans()

    @property
    def desk(self) -> Desk:
        """What operators see of the service and do with it."""
        return self.find_desk()

    @property
    def past_query(self) -> dict[str, str]:
        """What addresses of the same moment have in their query."""
        return {} if self.at is None else {"at": str(self.at)}

    @property
    def the(self) -> Experiment:
        """The experiment, on pages whose path names one."""
        assert self.experiment is not None  # noqa: S101
        return self.experiment

    @cached_property
    def status(self) -> Status:
        """The status of the experiment, read once."""
        return self.the.status()

    @cached_property
    def description(self) -> dict[str, Any]:
        """The settings of the experiment, read once."""
        return self.the.describe()

    @cached_property
    def change(self) -> str:
        """A mark of the experiment's settings; another one means that somebody has changed something."""
        if self.experiment is None:
            return ""
        text = json.dumps(self.description, sort_keys=True, default=str)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True)
class Shown:
    """What a page shows.

    Attributes
    ----------
    template : str
        File in ``templates/``; it extends ``base.html`` and reads `view`.
    view : object
        A dataclass of plain data. `?format=json` returns it as JSON.
    title : str
        What the page found, for the browser's title and the list of windows.
    status : int
        HTTP status: 422 to show a form again with its error, 409 for a contradiction.
    """

    template: str
    view: Any
    title: str
    status: int = 200
    is_alerted: bool = False
    """Whether a problem is open: the browser's title says so with a dot."""


@dataclass(frozen=True)
class Redirect:
    """Where to go after a change: an address below the console, percent-encoded, such as ``e/messages?done=paused``."""

    to: str


def _nothing(name: str) -> Experiment:
    raise AssertionError(f"this visit opens no experiment, not {name!r}")


def _absent(what: str) -> Any:
    raise AssertionError(f"this visit has no {what}")
