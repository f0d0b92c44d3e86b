"""Render what pages show: the frame around them, their templates, and a cache of renderings.

A rendering is shared by everybody with the same role until the next event, and by pages that keep themselves up to date
a little longer, so a hundred viewers cost what one costs.
What belongs to one viewer, such as the token of forms, stands in it as a random word that is replaced on the way out.
"""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from markupsafe import Markup, escape

from equipoise._version import __version__
from equipoise.console.addresses import address, root
from equipoise.console.help_page import STATES, counted
from equipoise.console.page_table import PAGES, Page
from equipoise.console.static_files import StaticFiles
from equipoise.console.visits import Shown, Viewer, Visit
from equipoise.monitoring.health_records import PROBLEM

if TYPE_CHECKING:
    from equipoise.experiment import Status

_FRESH_SECONDS, _REFRESH_SECONDS = 5.0, 2.0
"""Most seconds that a rendering is used: while nothing happens (windows pass without an event), and for pages that
keep themselves up to date while people come by the hundred. They look every other second at most, so however many
viewers there are, a page is rendered for them once in that time."""
_MOST_RENDERINGS, _MOST_CHARACTERS = 256, 32_000_000

THEMES = ("system", "light", "dark")


class Slots(NamedTuple):
    """What is filled into a rendering for one viewer."""

    token: str = ""
    viewer: str = ""
    theme: str = "system"


_PRESSED = {theme: f"slot-{secrets.token_hex(16)}" for theme in THEMES}


class Rendering(NamedTuple):
    """A page as it was rendered."""

    at: float
    event: int
    status: int
    text: str


class Tab(NamedTuple):
    """A tab of an experiment."""

    name: str
    address: str
    is_here: bool


@dataclass(frozen=True)
class Frame:
    """What surrounds every page."""

    title: str
    is_alerted: bool
    """Whether a problem is open."""
    root: str
    """Relative address of the console, so that it works below any prefix."""
    here: str
    """Address of this page below the console."""
    viewer: Viewer | None
    token: str
    viewer_name: str
    theme: str
    change: str
    static: str
    vega: str
    now: datetime
    tabs: tuple[Tab, ...] = ()
    name: str | None = None
    at: int | None = None
    """The event after which the experiment is seen; None for the present."""
    status: Status | None = None
    event: int | None = None
    live: str = "live"
    """Address that says whether there is a new event."""
    request_id: str | None = None
    has_api: bool = True
    version: str = __version__
    themes: tuple[str, ...] = THEMES
    pressed: Mapping[str, str] = field(default_factory=lambda: _PRESSED)

    @property
    def days(self) -> str:
        """How long the experiment has been there."""
        assert self.status is not None  # noqa: S101
        return duration_words(self.now - self.status.created_at)


class Renderer:
    """Renders pages; one for a process."""

    def __init__(self, *, has_api: bool = True) -> None:
        self._has_api = has_api
        self.static = StaticFiles()
        self._slots = Slots(*(f"slot-{secrets.token_hex(16)}" for _ in Slots._fields))
        self._kept: OrderedDict[Any, Rendering] = OrderedDict()
        self._characters = 0
        self._keeping = threading.Lock()

    @cached_property
    def _environment(self) -> Any:
        from jinja2 import Environment, PackageLoader, StrictUndefined

        environment = Environment(
            loader=PackageLoader("equipoise.console", "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        environment.filters |= FILTERS
        environment.globals |= {"address": address, "STATES": STATES}
        return environment

    def page(
        self,
        page: Page,
        visit: Visit,
        *,
        depth: int,
        here: str,
        event: int | None,
        slots: Slots,
        request_id: str,
        is_refresh: bool = False,
    ) -> tuple[int, str]:
        """Return the status and HTML of a page, from the cache if nothing has happened since.

        A refresh takes a recent rendering too: the page has the number of its event, and soon asks again.
        """
        if not page.is_cached or event is None or visit.form:
            shown = page.show(visit)
            return shown.status, self.shown(
                shown, visit, page, depth=depth, here=here, event=event, slots=slots, request_id=request_id
            )
        viewer = visit.viewer._replace(name="")
        key = (here, viewer, visit.change)
        found = self._cached(key, event, is_refresh)
        if found is None:
            shown = page.show(visit)
            text = self._rendered(shown, self._frame(shown, visit, page, depth=depth, here=here, event=event))
            found = Rendering(time.monotonic(), event, shown.status, text)
            self._keep(key, found)
        return found.status, self._filled(found.text, slots)

    def shown(
        self,
        shown: Shown,
        visit: Visit,
        page: Page,
        *,
        depth: int,
        here: str,
        event: int | None,
        slots: Slots,
        request_id: str | None = None,
    ) -> str:
        """Return the HTML of what a page shows, without the cache."""
        frame = self._frame(shown, visit, page, depth=depth, here=here, event=event, request_id=request_id)
        return self._filled(self._rendered(shown, frame), slots)

    def alone(
        self,
        shown: Shown,
        *,
        depth: int,
        now: datetime,
        slots: Slots,
        viewer: Viewer | None = None,
        here: str = "",
        request_id: str | None = None,
    ) -> str:
        """Return the HTML of a page that belongs to no row of the table: signing in, and errors."""
        frame = Frame(
            title=shown.title,
            is_alerted=False,
            root=root(depth),
            here=here,
            viewer=viewer,
            token=self._slots.token,
            viewer_name=self._slots.viewer,
            theme=self._slots.theme,
            change="",
            static=self.static.address,
            vega=self.static.vega_address,
            has_api=self._has_api,
            now=now,
            request_id=request_id,
        )
        return self._filled(self._rendered(shown, frame), slots)

    def _frame(
        self,
        shown: Shown,
        visit: Visit,
        page: Page,
        *,
        depth: int,
        here: str,
        event: int | None,
        request_id: str | None = None,
    ) -> Frame:
        viewer, name = visit.viewer, visit.names.get("name")
        tabs = (
            tuple(
                Tab(
                    one.tab,
                    address(one.path, name=name) + (f"?at={visit.at}" if visit.at and one.has_past else ""),
                    _is_within(page.path, one.path),
                )
                for one in PAGES
                if one.tab is not None and viewer.role in one.roles
            )
            if name is not None
            else ()
        )
        has_status = name is not None and viewer.reads
        alerts = visit.status.alerts if has_status else ()
        return Frame(
            title=shown.title,
            is_alerted=shown.is_alerted or any(one.severity == PROBLEM for one in alerts),
            root=root(depth),
            here=here,
            viewer=viewer,
            token=self._slots.token,
            viewer_name=self._slots.viewer,
            theme=self._slots.theme,
            change=visit.change,
            static=self.static.address,
            vega=self.static.vega_address,
            has_api=self._has_api,
            now=visit.now if visit.at is None else visit.status.at,
            tabs=tabs,
            name=name,
            at=visit.at,
            status=visit.status if has_status else None,
            event=event,
            live=_live_of(page, visit),
            request_id=request_id,
        )

    def _rendered(self, shown: Shown, frame: Frame) -> str:
        text: str = self._environment.get_template(shown.template).render(view=shown.view, frame=frame)
        return text

    def _filled(self, text: str, slots: Slots) -> str:
        for slot, value in zip(self._slots, slots, strict=True):
            text = text.replace(slot, str(escape(value)))
        for theme, slot in _PRESSED.items():
            text = text.replace(slot, "true" if theme == slots.theme else "false")
        return text

    def _cached(self, key: Any, event: int, is_refresh: bool) -> Rendering | None:
        with self._keeping:
            found = self._kept.get(key)
            if found is None:
                return None
            most = _FRESH_SECONDS if found.event == event else _REFRESH_SECONDS if is_refresh else 0.0
            if time.monotonic() - found.at > most:
                return None
            self._kept.move_to_end(key)
            return found

    def _keep(self, key: Any, found: Rendering) -> None:
        with self._keeping:
            before = self._kept.get(key)
            if before is not None and before.event > found.event and found.at - before.at < _FRESH_SECONDS:
                return  # another thread has read later
            self._characters += len(found.text) - (0 if before is None else len(before.text))
            self._kept[key] = found
            self._kept.move_to_end(key)
            while len(self._kept) > _MOST_RENDERINGS or self._characters > _MOST_CHARACTERS:
                _, old = self._kept.popitem(last=False)
                self._characters -= len(old.text)


def _live_of(page: Page, visit: Visit) -> str:
    """Return the address that says whether there is something new for a page."""
    name = visit.names.get("name")
    if page.event is not None:
        return address(f"{page.path}/live", **visit.names)
    return "live" if name is None else address("e/{name}/live", name=name)


def _is_within(path: str, tab: str) -> bool:
    """Return whether a page belongs to a tab: every page of an experiment is below the first."""
    return path == tab or (tab.count("/") > 1 and path.startswith(f"{tab}/"))


# Filters of templates


def duration_words(length: timedelta) -> str:
    """Return a duration in words, in its largest unit.

    Examples
    --------
    >>> duration_words(timedelta(days=16, hours=3)), duration_words(timedelta(minutes=1)), duration_words(timedelta(0))
    ('16 days', '1 minute', '0 minutes')
    """
    seconds = max(0.0, length.total_seconds())
    for unit, size in (("day", 86_400), ("hour", 3_600)):
        if seconds >= 2 * size or (unit == "day" and seconds >= size):
            return counted(int(seconds // size), unit)
    return counted(int(seconds // 60), "minute")


def time_tag(at: datetime | None) -> Markup:
    """Return an instant as an element that the script shows in the browser's zone; without it, UTC."""
    if at is None:
        return Markup("")
    full = at.strftime("%Y-%m-%d %H:%M:%S UTC")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        at.isoformat(timespec="seconds"), full, at.strftime("%Y-%m-%d %H:%M UTC")
    )


def percent(share: float | None, digits: int = 0) -> str:
    """Return a share as a percentage.

    Examples
    --------
    >>> percent(0.294), percent(0.048, 1), percent(None)
    ('29%', '4.8%', '')
    """
    return "" if share is None or not math.isfinite(share) else f"{100 * share:.{digits}f}%"


def number(value: float | None, digits: int | None = None) -> str:
    """Return a number with a true minus sign, and digits after the point if they are given.

    Examples
    --------
    >>> number(1500), number(0.25, 1), number(0.5), number(None)
    ('1,500', '0.2', '0.5', '')
    """
    if value is None or not math.isfinite(value):
        return ""
    text = f"{value:,.{digits}f}" if digits is not None else f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
    return text.replace("-", "\u2212")


def size_words(n_bytes: int) -> str:
    """Return a number of bytes in its largest unit.

    Examples
    --------
    >>> size_words(512), size_words(4_096_000), size_words(64 * 2**20)
    ('512 bytes', '4.1 MB', '67.1 MB')
    """
    size, units = float(n_bytes), iter(("kB", "MB", "GB", "TB"))
    if size < 1000:
        return counted(n_bytes, "byte")
    while size >= 1000:
        size, unit = size / 1000, next(units)
    return f"{size:,.1f} {unit}"


def url(text: str) -> str:
    """Return a text percent-encoded, to be one segment of a path or one value of a query."""
    return quote(text, safe="")


FILTERS: dict[str, Callable[..., Any]] = {
    "counted": counted,
    "duration": duration_words,
    "lasting": lambda seconds: (
        duration_words(timedelta(seconds=seconds)) if seconds >= 60 else f"{seconds:.0f} seconds"
    ),
    "number": number,
    "percent": percent,
    "size": size_words,
    "time": time_tag,
    "url": url,
}
