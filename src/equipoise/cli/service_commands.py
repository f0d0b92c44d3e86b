"""Commands that run the service, manage its keys, or show it: serve, keys create, keys list, keys revoke and demo."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equipoise.cli.health_commands import WebhookFile, WebhookSecret, WebhookUrl, instant_of
from equipoise.cli.options import SECONDS, AsJson, option
from equipoise.cli.stores import DEFAULT_STORE, DatabaseUrl, Who, author, existing_store, note, print_answer, rehearse
from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from equipoise.service.api_keys import Key
    from equipoise.store import Store

ConsoleHours = Annotated[
    float, option("--console-hours", "Console", "HOURS", "How long somebody stays signed in to the console.")
]


def serve(
    store: DatabaseUrl = DEFAULT_STORE,
    host: Annotated[
        str, option("--host", "Server", "ADDRESS", "Where to listen; 0.0.0.0 for all networks.")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            "--port", metavar="N", help="0 for any that is free.", min=0, max=65_535, rich_help_panel="Server"
        ),
    ] = 8000,
    workers: Annotated[
        int,
        typer.Option(
            "--workers",
            metavar="N",
            help="Processes; more than one is for PostgreSQL.",
            min=1,
            max=64,
            rich_help_panel="Server",
        ),
    ] = 1,
    new: Annotated[bool, option("--new", "Server", None, "Make the store if there is none.")] = False,
    open_: Annotated[
        bool, option("--open", "Server", None, "No keys: everybody on this machine may do everything.")
    ] = False,
    cors_origin: Annotated[
        list[str] | None,
        option("--cors-origin", "Server", "ORIGIN", "A web site whose pages may call the service; may be repeated."),
    ] = None,
    log_format: Annotated[str, option("--log-format", "Logs", "text|json", "For people or for programs.")] = "text",
    access_log: Annotated[
        bool, option("--access-log", "Logs", None, "Log every request, assignments and rewards too.")
    ] = False,
    most_requests: Annotated[
        int, option("--most-requests", "Limits", "N", "Requests at once, per process; more get 503.")
    ] = 2_000,
    most_bytes: Annotated[int, option("--most-bytes", "Limits", "N", "Largest body of a request.")] = 4 * 2**20,
    most_bytes_at_once: Annotated[
        int, option("--most-bytes-at-once", "Limits", "N", "Bodies of requests at once, per process; more get 503.")
    ] = 256 * 2**20,
    most_units: Annotated[
        int, option("--most-units", "Limits", "N", "Units that one request may assign or reward.")
    ] = 10_000,
    drain: Annotated[
        float,
        option(
            "--drain", "Server", "TIME", "After SIGTERM, serve on for this long with /readyz at 503.", parser=SECONDS
        ),
    ] = 0.0,
    wait: Annotated[
        float, option("--wait", "Limits", "TIME", "How long a request may wait for the store.", parser=SECONDS)
    ] = 8.0,
    no_console: Annotated[bool, option("--no-console", "Console", None, "Serve no pages, only the API.")] = False,
    console_hours: ConsoleHours = 12.0,
    webhook: WebhookUrl = None,
    webhook_secret: WebhookSecret = None,
    webhook_file: WebhookFile = None,
    webhook_units: Annotated[
        bool, option("--webhook-units", "Alerts", None, "Name the unit that an alert is about.")
    ] = False,
) -> None:
    """Serve the experiments of a store over HTTP, for programs in any language; Ctrl-C ends it."""
    from equipoise.service.server import serve as run
    from equipoise.service.settings import Settings
    from equipoise.service.webhook import webhook_from

    if log_format not in ("text", "json"):
        raise InvalidInput.of("log_format", "must be text or json", log_format)
    if store.startswith(("http:", "https:")):
        raise InvalidInput("--store must be a database to serve; got the address of a service")
    if workers > 1 and store.startswith("sqlite:"):
        note("note: several processes on one SQLite file are correct but slower than one; PostgreSQL is for that")
    settings = Settings(
        open=open_,
        cors_origins=tuple(cors_origin or ()),
        access_log=access_log,
        requests_in_flight=most_requests,
        body_bytes=most_bytes,
        bytes_in_flight=most_bytes_at_once,
        units_per_request=most_units,
        wait_seconds=wait,
        drain_seconds=drain,
        console=not no_console,
        console_hours=console_hours,
        webhook=webhook_from(webhook, webhook_secret, webhook_units, webhook_file),
    )
    run(store, create=new, host=host, port=port, workers=workers, settings=settings, log_format=log_format, say=note)


def console(
    store: DatabaseUrl = DEFAULT_STORE,
    host: Annotated[str, option("--host", "Server", "ADDRESS", "Where to listen.")] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            "--port", metavar="N", help="0 for any that is free.", min=0, max=65_535, rich_help_panel="Server"
        ),
    ] = 8001,
    open_: Annotated[
        bool, option("--open", "Server", None, "No keys: everybody on this machine may do everything.")
    ] = False,
    console_hours: ConsoleHours = 12.0,
) -> None:
    """Serve the console alone, pages without the API, from another process or machine than the service."""
    from equipoise.service.server import serve as run
    from equipoise.service.settings import Settings

    if store.startswith(("http:", "https:")):
        raise InvalidInput("--store must be a database to show; got the address of a service", hint=f"open {store}")
    settings = Settings(open=open_, api=False, console_hours=console_hours)
    run(store, host=host, port=port, workers=1, settings=settings, log_format="text", say=note)


KeyId = Annotated[str, typer.Argument(metavar="ID", help="As listed; the first part of the key will do.")]


def create_key(
    role: Annotated[
        str,
        typer.Option("--role", metavar="reader|assigner|admin", help="See all; ask and tell only; or do everything."),
    ],
    name: Annotated[str | None, option("--name", "Key", "NAME", "Who the log says it was, such as 'web site'.")] = None,
    experiment: Annotated[str | None, option("--experiment", "Key", "NAME", "The only experiment it is for.")] = None,
    expires: Annotated[
        str | None, option("--expires", "Key", "WHEN", "From then on refused: 90d, 12h, or 2027-06-30T18:00+02:00.")
    ] = None,
    limit: Annotated[
        list[str] | None,
        option("--limit", "Key", "WHAT=N", "Most per hour of requests, bytes or new units; may be repeated."),
    ] = None,
    public: Annotated[
        bool,
        option(
            "--public", "Key", None, "For a web page or a game, where strangers can read it: it gets limits per hour."
        ),
    ] = False,
    store: DatabaseUrl = DEFAULT_STORE,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Make a key and print it, once: the store keeps only its hash."""
    from equipoise.service import api_keys as keys
    from equipoise.service.key_limits import Limits

    limits = Limits.parse(limit) if limit else None

    def made(opened: "Store") -> "tuple[Key, str]":
        until = None if expires is None else instant_of("expires", expires, opened.now())
        return keys.create_key(
            opened,
            role=role,
            name=name,
            experiment=experiment,
            expires_at=until,
            limits=limits,
            public=public,
            who=author(who),
        )

    rehearse(store, made)
    key, text = made(existing_store(store))
    if not as_json:
        until = "" if key.expires_at is None else f", until {key.expires_at:%Y-%m-%d %H:%M} UTC"
        only = "" if key.experiment is None else f" of {key.experiment!r}"
        most = "" if key.limits is None else f", at most {key.limits}"
        note(f"key {key.id} for {key.role}s{only}{until}{most}; keep it, it cannot be shown again:")
    print_answer(key.to_dict() | {"key": text}, text, as_json)


def list_keys(store: DatabaseUrl = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List the keys: what they are for, who made them, when they were used last."""
    from equipoise import terminal
    from equipoise.service import api_keys as keys

    opened = existing_store(store)
    found, now = keys.list_keys(opened), opened.now()
    if as_json:
        terminal.print_json({"keys": [key.to_dict() | {"state": key.state(now)} for key in found]})
        return
    if not found:
        note(f"{opened.url} has no keys; equipoise keys create makes one")
        return
    terminal.print_table(
        [
            ("id", [key.id for key in found]),
            ("name", [_name(key) for key in found]),
            ("role", [key.role for key in found]),
            ("experiment", [key.experiment or "all" for key in found]),
            ("state", [key.state(now) for key in found]),
            ("last used", [_day(key.last_used_at, "never") for key in found]),
            ("expires", [_day(key.expires_at, "never") for key in found]),
            ("limits", ["none" if key.limits is None else str(key.limits) for key in found]),
            ("made by", [_made(key) for key in found]),
        ],
        always=7,
        words=("id", "name", "role", "experiment", "state", "last used", "expires", "limits", "made by"),
    )


def revoke_key(key_id: KeyId, store: DatabaseUrl = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Refuse a key from now on; servers that run notice within two seconds."""
    from equipoise.service import api_keys as keys

    opened = existing_store(store)
    # Accept the whole key too, and take the id out of it.
    parts = key_id.split("_")
    key = keys.revoke_key(opened, parts[1] if parts[0] == "eq" and len(parts) > 1 else key_id)
    print_answer(key.to_dict(), f"key {key.id} ({key.name}) is revoked", as_json)


def _day(at: datetime | None, never: str) -> str:
    return never if at is None else f"{at:%Y-%m-%d %H:%M}"


def _name(key: "Key") -> str:
    """Return the key's name, or "" if it only repeats the columns next to it."""
    return "" if key.name == f"{key.role} {key.id}" else key.name


def _made(key: "Key") -> str:
    return key.created_by or ""


def demo(
    steps: Annotated[
        int | None,
        typer.Option(
            help="How many people take part; 9,861 by default, as in the real one.",
            min=1,
            max=1_000_000,
            show_default=False,
            metavar="N",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same run.", min=0, max=2**63 - 1, metavar="N")] = 1,
    reward_weight: Annotated[
        float, typer.Option(help="The dial: 0 is accuracy only, 1 reward only.", metavar="W")
    ] = 0.9,
    out: Annotated[
        Path | None, option("--out", "Output", "FILE", "Chart file; demo-output/demo.html by default.")
    ] = None,
    stay: Annotated[
        bool, option("--stay", "Output", None, "Keep the service running at the end, until Ctrl-C.")
    ] = False,
) -> None:
    """Watch a live experiment with 18 real incentives, through the service: people come, and answer late or never."""
    from equipoise.demo import run

    raise typer.Exit(run(steps=steps, seed=seed, reward_weight=reward_weight, out=out, stay=stay))
