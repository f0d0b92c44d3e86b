"""Serve the console below ``/console``: sessions, checks of forms, and the pages of `equipoise.console`.

Pages run on two threads of their own, so that they are never in the way of assignments. A change needs a request of
the same origin and the token of the session; cookies count here only, and the API takes only keys.
"""

from __future__ import annotations

import asyncio
import gzip
import hmac
import re
import secrets
import time
from collections.abc import Awaitable, Callable
from functools import cached_property, partial
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, quote

import msgspec

from equipoise.console import help_page
from equipoise.console.error_pages import Link, SignInView, error_view
from equipoise.console.long_work import LongWork
from equipoise.console.memory import Memory
from equipoise.console.page_table import DATA, PAGES, Data, Page, home, match
from equipoise.console.rendering import THEMES, Renderer, Slots
from equipoise.console.vega_bundle import zipped_bundle
from equipoise.console.visits import Download, Redirect, Shown, Viewer, Visit
from equipoise.errors import EquipoiseError, InvalidInput, NotAllowed, NotAuthenticated, StoreChanged, UnknownExperiment
from equipoise.experiment import Experiment, sentence_of
from equipoise.experiment.alert_episodes import n_alert_changes
from equipoise.http_api import READERS
from equipoise.serialization import json_data
from equipoise.service.api_keys import OPEN, Key
from equipoise.service.dispatch import Answer, Exchange, Scope
from equipoise.service.error_responses import Refused, answer_to, failure_body, log
from equipoise.service.operating_desk import OperatingDesk
from equipoise.service.sessions import Sessions, form_token
from equipoise.service.threads import Threads

if TYPE_CHECKING:
    from equipoise.service.service import Service

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""What pages may load and do: only what the service itself sends, and nothing that stands in the page."""
_N_THREADS, _MOST = 2, 34
"""Threads of the console, and most requests that run or wait for one."""
_MOST_LONG, _LONG_SECONDS = 8, 600.0
"""Most requests that run or wait on the thread for pages which may read a whole log, and how long one may take."""
_FAILED_SECONDS = 0.3
"""How long it takes to refuse a key, right id or not."""
_THEME_SECONDS = 365 * 24 * 3600
_THEME_COOKIE = "equipoise_theme"
_FORM = re.compile(rb"application/x-www-form-urlencoded\s*(;.*)?", re.IGNORECASE)
_MOST_FIELDS = 10_000
_NEXT = re.compile(r"[A-Za-z0-9._~%-][A-Za-z0-9._~%/-]*(\?[A-Za-z0-9._~%&=+-]*)?|")
_LIVE = Data(path="e/{name}/live")
_LIVE_OF_ALL = Data(path="live")

ReadForm = Callable[[], Awaitable[bytes]]


class _Request(NamedTuple):
    """What the console needs of a request."""

    path: tuple[bytes, ...]
    """The segments below ``/console/``."""
    method: str
    query: dict[str, str]
    host: bytes
    origin: bytes | None
    site: bytes | None
    content_type: bytes
    is_secure: bool
    takes_gzip: bool
    is_refresh: bool
    """Whether the script of a page fetches it again, to keep it up to date."""
    secret: str
    theme: str
    request_id: str

    @property
    def here(self) -> str:
        """The address below the console."""
        found = b"/".join(self.path).decode("latin-1")
        query = "&".join(f"{quote(name)}={quote(value)}" for name, value in self.query.items())
        return f"{found}?{query}" if query else found

    @property
    def slots(self) -> Slots:
        return Slots(form_token(self.secret), "", self.theme)


class Console:
    """The console of a service."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._sessions = Sessions(service.store, service.keys, 3600 * service.settings.console_hours)
        self._renderer = Renderer(has_api=service.settings.api)
        self._memory = Memory()
        self._long_work = LongWork()
        self._threads = Threads("equipoise-console", _N_THREADS, _MOST)
        self._bundling = Threads("equipoise-bundle", 1, 64)
        self._long_threads = Threads("equipoise-console-long", 1, _MOST_LONG)
        service.more_threads += [self._threads, self._bundling, self._long_threads]
        self._bundle = self._bundling.shared(zipped_bundle)
        self._zipped_vega: bytes | None = None

    @cached_property
    def _cookie_of_open(self) -> str:
        return f"equipoise_open_{_short(self._service.store.url)}"

    @property
    def _cookie(self) -> str:
        """Name of the cookie, which tells two services on one host apart: cookies do not depend on ports."""
        if self._service.settings.open:
            return self._cookie_of_open
        return f"equipoise_{_short(self._service.keys.first or '')}"

    async def answer(self, exchange: Exchange, scope: Scope, read_form: ReadForm) -> Answer:
        """Answer a request below ``/console``; every error becomes a page."""
        exchange.route = "/console"
        try:
            if scope["raw_path"] == b"/console":
                return _go("console/")
            request = self._request(exchange, scope)
        except EquipoiseError as error:  # not even its address can be read
            return Answer(*_swapped(answer_to(error)))
        try:
            return await self._answer(exchange, request, read_form)
        except Exception as error:  # noqa: BLE001
            return self._failure(exchange, request, error)

    async def _answer(self, exchange: Exchange, request: _Request, read_form: ReadForm) -> Answer:
        first, is_get = request.path[0], request.method in ("GET", "HEAD")
        if first == b"static":
            exchange.route = "/console/static"
            return await self._static(request)
        if not is_get and request.method != "POST":
            raise Refused(405, "this address does not take this method", headers={"allow": "GET, HEAD, POST"})
        form: tuple[tuple[str, str], ...] = ()
        if not is_get:
            _require_same_origin(request)
            form = _fields(await read_form(), request.content_type)
        if request.path == (b"sign-in",):
            exchange.route = "/console/sign-in"
            return await self._sign_in(request, dict(form), is_get)
        work = partial(self._visited, exchange, request, form, is_get)
        if _takes_long(request):
            return await self._long_threads.carry_out(work, seconds=_LONG_SECONDS)
        return await self._threads.carry_out(work, seconds=self._service.settings.wait_seconds)

    # On a thread of the console

    def _visited(
        self, exchange: Exchange, request: _Request, form: tuple[tuple[str, str], ...], is_get: bool
    ) -> Answer:
        try:
            return self._visit(exchange, request, form, is_get)
        except EquipoiseError as error:
            if isinstance(error, StoreChanged):
                self._service.forget_experiments()
            return self._failure(exchange, request, error)

    def _visit(self, exchange: Exchange, request: _Request, form: tuple[tuple[str, str], ...], is_get: bool) -> Answer:
        key, headers = self._key(request)
        if key is None and request.path == (b"help",) and is_get:
            shown, now = help_page.show_words(), self._service.store.now()
            return _html(200, self._renderer.alone(shown, depth=1, now=now, slots=request.slots))
        if key is None:
            return self._to_sign_in(request, is_get)
        if headers:  # a new secret: its forms need its token
            request = request._replace(secret=headers.pop("secret"))
        exchange.key = key
        if key.limits is not None:
            self._service.budgets.take(key.id, key.limits, "requests", 1)
        slots = request.slots._replace(viewer=key.name)
        sent = dict(form)
        if not is_get:
            if not hmac.compare_digest(sent.pop("token", "").encode(), slots.token.encode()):
                raise NotAllowed(
                    "this form does not belong to your session", hint="open the page again, and send its form"
                )
            if request.path in ((b"sign-out",), (b"theme",)):
                return self._own_form(exchange, request, sent)
        found = match(request.path, PAGES)
        if found is not None:
            page, names = found
            exchange.route = f"/console/{page.path}"
            if not page.path and is_get and (key.experiment is not None or key.role not in READERS):
                return _go("./" + home(key.role, key.experiment), headers)
            visit = self._visit_of(request, key, page, names, sent, form)
            answer = self._acted(page, visit, request, slots) if not is_get else None
            return answer or self._page(page, visit, request, slots, headers)
        return self._data(exchange, request, key, is_get)

    def _key(self, request: _Request) -> tuple[Key | None, dict[str, str]]:
        """Return the key of a session, and for a service without keys the secret and cookie that protect its forms."""
        if not self._service.settings.open:
            return self._sessions.key(request.secret) if request.secret else None, {}
        if request.secret:
            return OPEN, {}
        secret = secrets.token_urlsafe(32)
        return OPEN, {"secret": secret, "set-cookie": _cookie(self._cookie, secret, request)}

    def _visit_of(
        self,
        request: _Request,
        key: Key,
        row: Page | Data,
        names: dict[str, str],
        sent: dict[str, str],
        form: tuple[tuple[str, str], ...],
    ) -> Visit:
        """Check what the key may see, and return the visit."""
        if key.role not in row.roles:
            raise NotAllowed(f"this needs a key with the role {' or '.join(row.roles)}; yours is for {key.role}s")
        name = names.get("name")
        is_for_one = isinstance(row, Page) and (row.is_for_one or not row.path)
        if key.experiment is not None and key.experiment != name and not (name is None and is_for_one):
            if name is None:
                raise Refused(404, "there is nothing at this address")
            raise _unknown(name)  # as if there were no others
        experiment = None if name is None else self._experiment(name, key)
        at, remember = None, self._memory.remember
        if experiment is not None and row.has_past and "at" in request.query:
            at = _event_in(request.query["at"])
            experiment = experiment.as_of(at)
            remember = partial(_remember_past, self._memory, at)
        return Visit(
            path=row.path,
            viewer=Viewer(key.name, key.role, key.experiment, key is OPEN),
            now=self._service.store.now(),
            store=self._service.store,
            names=names,
            query=request.query,
            form=sent,
            fields=form,
            experiment=experiment,
            at=at,
            listed=partial(_listed, self._service, key),
            address=f"{'https' if request.is_secure else 'http'}://{request.host.decode('latin-1')}",
            spend=partial(_spend, self._service, key),
            open=lambda of: self._service.experiment(of, key),
            remember=remember,
            begin_work=self._begin_work,
            find_work=lambda what, of: self._long_work.since(what, of.number),
            find_plans=lambda: self._service.plans,
            find_desk=partial(OperatingDesk, self._service, key),
        )

    def _begin_work(self, what: str, experiment: Experiment, action: Callable[[], object]) -> None:
        submit = partial(self._service.begin_long, experiment.name)
        self._long_work.begin(submit, what, experiment.number, self._service.store.now(), action)

    def _experiment(self, name: str, key: Key) -> Experiment:
        try:
            return self._service.experiment(name, key)
        except UnknownExperiment:
            raise _unknown(name) from None

    def _acted(self, page: Page, visit: Visit, request: _Request, slots: Slots) -> Answer | None:
        """Let a page act on its form; return None to show the page as it is."""
        if page.act is None:
            raise Refused(405, "this page has no form", headers={"allow": "GET, HEAD"})
        if visit.viewer.role not in page.act_roles:
            needed = " or ".join(page.act_roles)
            raise NotAllowed(f"this needs a key with the role {needed}; yours is for {visit.viewer.role}s")
        if page.is_stale_checked and visit.experiment is not None and visit.form.get("change") != visit.change:
            last = sentence_of(visit.experiment.changes(1)[0])
            raise Refused(
                409,
                f"this experiment was changed since the page was drawn, so nothing was done. The last change: {last}",
                hint="look at the page again, then decide",
            )
        done = page.act(visit)
        if isinstance(done, Redirect):
            return _go(_root(request) + done.to)
        # Read again what the act may have changed.
        text = self._renderer.shown(
            done, visit, page, depth=len(request.path), here=request.here, event=None, slots=slots
        )
        return _html(done.status, text)

    def _page(self, page: Page, visit: Visit, request: _Request, slots: Slots, headers: dict[str, str]) -> Answer:
        if visit.query.get("format") == "json":
            return Answer(200, msgspec.json.encode(json_data(page.show(visit).view)), _HEADERS | headers)
        status, text = self._renderer.page(
            page,
            visit,
            depth=len(request.path),
            here=request.here,
            event=self._event(visit, page) if visit.viewer.reads and visit.at is None else None,
            slots=slots,
            request_id=request.request_id,
            is_refresh=request.is_refresh,
        )
        return _html(status, text, headers)

    def _data(self, exchange: Exchange, request: _Request, key: Key, is_get: bool) -> Answer:
        found = match(request.path, (_LIVE_OF_ALL, _LIVE, *DATA))
        if found is None:
            raise Refused(404, "there is nothing at this address")
        row, names = found
        exchange.route = f"/console/{row.path}"
        if not is_get:
            raise Refused(405, "this address takes no form", headers={"allow": "GET, HEAD"})
        if row is _LIVE_OF_ALL and key.experiment is not None:
            raise Refused(404, "there is nothing at this address")
        visit = self._visit_of(request, key, row, names, {}, ())
        if row.read is None:
            event = self._event(visit, row)
            if visit.query.get("after") == str(event):
                return Answer(204, b"", _HEADERS)
            return Answer(200, msgspec.json.encode({"event": event}), _HEADERS)
        found_data = row.read(visit)
        if isinstance(found_data, Download):
            named = f'attachment; filename="{found_data.name}"'
            headers = {"content-type": found_data.content_type, "content-disposition": named}
            return Answer(200, found_data.body, _HEADERS | headers)
        return Answer(200, msgspec.json.encode(found_data), _HEADERS)

    def _event(self, visit: Visit, row: Page | Data) -> int:
        """Return a number that grows with every event, and when an alert opens or closes; of one experiment or of all.

        People may have stopped coming: then an alert is all that happens.
        """
        if row.event is not None:
            return row.event(visit)
        if visit.experiment is None:
            return self._service.store.read(lambda one: one.n_events() + n_alert_changes(one))
        number = visit.experiment.number
        return self._service.store.read(lambda one: one.head(number).n_events + n_alert_changes(one, number))

    def _own_form(self, exchange: Exchange, request: _Request, sent: dict[str, str]) -> Answer:
        """Sign out, or set the theme."""
        exchange.route = f"/console/{request.path[0].decode()}"
        if request.path == (b"theme",):
            theme, back = sent.get("theme", ""), sent.get("back", "")
            cookie = _cookie(_THEME_COOKIE, theme if theme in THEMES else THEMES[0], request, _THEME_SECONDS)
            return _go("./" + (back if _NEXT.fullmatch(back) else ""), {"set-cookie": cookie})
        if not self._service.settings.open:
            self._sessions.end(request.secret)
        return _go("./sign-in", {"set-cookie": _cookie(self._cookie, "", request, 0)})

    def _failure(self, exchange: Exchange, request: _Request, error: Exception) -> Answer:
        """Return a page, or for scripts JSON, that says what went wrong."""
        status, headers, body = answer_to(error)
        headers.pop("www-authenticate", None)
        if not isinstance(error, EquipoiseError):
            data = {"request_id": request.request_id, "route": exchange.route}
            log.error("unexpected error", exc_info=error, extra={"data": data})
        if request.path[-1].endswith(b".json") or request.path[-1] == b"live":
            return Answer(status, body, _HEADERS | headers)
        said = msgspec.json.decode(body)
        key = exchange.key
        viewer = None if key is None else Viewer(key.name, key.role, key.experiment, key is OPEN)
        links = [] if key is None else [Link(home(key.role, key.experiment), "Begin again")]
        if (key is not None and status in (409, 503) and request.method == "GET") or status == 409:
            links.insert(0, Link(request.here, "Look at the page again"))
        shown = error_view(status, said["error"], said["hint"], links)
        text = self._renderer.alone(
            shown,
            depth=len(request.path),
            now=self._service.store.now(),
            slots=request.slots._replace(viewer="" if key is None else key.name),
            viewer=viewer,
            here=request.here if request.method == "GET" else "",
            request_id=request.request_id,
        )
        return _html(status, text, headers)

    # Signing in

    async def _sign_in(self, request: _Request, sent: dict[str, str], is_get: bool) -> Answer:
        given = (request.query if is_get else sent).get("next", "")
        to = given if _NEXT.fullmatch(given) else ""
        if self._service.settings.open:
            return _go("./" + to)
        if is_get:
            return self._sign_in_page(request, to, None)
        began = time.monotonic()
        try:
            key = await self._service.key(b"Bearer " + sent.get("key", "").strip().encode("utf-8", "replace"))
            if key.limits is not None:
                self._service.budgets.take(key.id, key.limits, "requests", 1)
            begin = partial(self._sessions.begin, key)
            secret = await self._threads.carry_out(begin, seconds=self._service.settings.wait_seconds)
        except NotAuthenticated as error:
            await asyncio.sleep(max(0.0, began + _FAILED_SECONDS - time.monotonic()))
            return self._sign_in_page(request, to, f"{error.message[0].upper()}{error.message[1:]}.")
        return _go(
            "./" + (to or home(key.role, key.experiment)), {"set-cookie": _cookie(self._cookie, secret, request)}
        )

    def _sign_in_page(self, request: _Request, to: str, problem: str | None) -> Answer:
        text = self._renderer.alone(
            Shown("sign-in.html", SignInView(to, problem), "Sign in"),
            depth=1,
            now=self._service.store.now(),
            slots=request.slots,
        )
        return _html(200 if problem is None else 401, text)

    def _to_sign_in(self, request: _Request, is_get: bool) -> Answer:
        if request.path[-1].endswith(b".json") or request.path[-1] == b"live":
            return Answer(401, failure_body("you are not signed in", None), _HEADERS)
        to = request.here if is_get and _NEXT.fullmatch(request.here) else ""
        return _go(_root(request) + "sign-in" + (f"?next={quote(to, safe='')}" if to else ""))

    # Static files

    async def _static(self, request: _Request) -> Answer:
        path = b"/".join(request.path).decode("latin-1")
        if path == self._renderer.static.vega_address:
            zipped = self._zipped_vega or await self._bundle(60.0)
            self._zipped_vega = zipped
            content_type, plain = "text/javascript; charset=utf-8", b""
        else:
            file = self._renderer.static.find(path)
            if file is None:
                raise Refused(404, "there is nothing at this address")
            content_type, plain, zipped = file
        headers = _HEADERS | {
            "content-type": content_type,
            "cache-control": "public, max-age=31536000, immutable",
            "vary": "accept-encoding",
        }
        if request.takes_gzip:
            return Answer(200, zipped, headers | {"content-encoding": "gzip"})
        return Answer(200, plain or gzip.decompress(zipped), headers)

    def _request(self, exchange: Exchange, scope: Scope) -> _Request:
        found: dict[bytes, bytes] = {}
        cookies = []
        for name, value in scope["headers"]:
            if name == b"cookie":
                cookies.append(value.decode("latin-1"))
            else:
                found[name] = value
        crumbs = _crumbs("; ".join(cookies))
        theme = crumbs.get(_THEME_COOKIE, "")
        path: bytes = scope["raw_path"]
        return _Request(
            path=tuple(path.split(b"/")[2:]),
            method=scope["method"],
            query=dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)),
            host=found.get(b"host", b""),
            origin=found.get(b"origin"),
            site=found.get(b"sec-fetch-site"),
            content_type=found.get(b"content-type", b""),
            is_secure=scope.get("scheme") == "https",
            takes_gzip=b"gzip" in found.get(b"accept-encoding", b""),
            is_refresh=b"x-equipoise-live" in found,
            secret=crumbs.get(self._cookie, ""),
            theme=theme if theme in THEMES else THEMES[0],
            request_id=exchange.request_id.decode(),
        )


_HEADERS = {"content-security-policy": POLICY, "content-type": "application/json"}


def _html(status: int, text: str, headers: dict[str, str] | None = None) -> Answer:
    body = text.encode("utf-8", "replace")
    return Answer(status, body, _HEADERS | {"content-type": "text/html; charset=utf-8"} | (headers or {}))


def _go(to: str, headers: dict[str, str] | None = None) -> Answer:
    """Return a redirect that is fetched with GET; its address is relative, so it works below a prefix."""
    return Answer(303, b"", _HEADERS | {"content-type": "text/html; charset=utf-8", "location": to} | (headers or {}))


def _root(request: _Request) -> str:
    return "../" * (len(request.path) - 1) or "./"


def _cookie(name: str, value: str, request: _Request, seconds: int | None = None) -> str:
    """Return a cookie without a path: the browser takes the folder of the console, below whatever prefix."""
    age = "" if seconds is None else f"; Max-Age={seconds}"
    return f"{name}={value}{age}; HttpOnly; SameSite=Lax{'; Secure' if request.is_secure else ''}"


def _crumbs(text: str) -> dict[str, str]:
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(text).items()}
    except CookieError:
        return {}


def _short(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _require_same_origin(request: _Request) -> None:
    """Refuse forms of pages of other sites."""
    if request.site is not None:
        is_same = request.site == b"same-origin"
    else:
        is_same = request.origin is not None and request.origin.partition(b"://")[2] == request.host
    if not is_same:
        raise NotAllowed("this form was not sent from a page of this service")


def _takes_long(request: _Request) -> bool:
    """Return whether a request may read a whole log: pages about the past, and reports to keep."""
    is_report = request.path[-1] in (b"report.html", b"report.json")
    return is_report or "at" in request.query or request.query.get("log") == "1"


def _event_in(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 18 or not int(text):
        raise InvalidInput.of("at", "must be the number of an event", text)
    return int(text)


def _remember_past(memory: Memory, at: int, what: str, experiment: Experiment, read: Callable[[], Any]) -> Any:
    """Remember what was read of a view of the past apart from what was read of the present."""
    return memory.remember(f"{what} as of {at}", experiment, read)


def _fields(body: bytes, content_type: bytes) -> tuple[tuple[str, str], ...]:
    """Decode a form."""
    if not _FORM.fullmatch(content_type):
        raise Refused(415, "a form must be application/x-www-form-urlencoded")
    try:
        text = body.decode("ascii")
        return tuple(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS))
    except ValueError:
        raise InvalidInput("this is no form: it must be percent-encoded UTF-8") from None


def _unknown(name: str) -> UnknownExperiment:
    return UnknownExperiment(f"there is no experiment {name!r}, or your key is not for it")


def _listed(service: Service, key: Key) -> list[Any]:
    found = Experiment.list(service.store)
    return [one for one in found if key.experiment in (None, one.name)]


def _spend(service: Service, key: Key, what: str, number: int) -> None:
    if key.limits is not None:
        service.budgets.take(key.id, key.limits, what, number)


def _swapped(answer: tuple[int, dict[str, str], bytes]) -> tuple[int, bytes, dict[str, str]]:
    status, headers, body = answer
    return status, body, _HEADERS | headers
