"""The command `equipoise serve`: experiments over HTTP."""

from typing import Annotated

import typer

from equipoise.cli.options import option
from equipoise.cli.stores import DEFAULT_STORE, DatabaseUrl, note
from equipoise.errors import InvalidInput

Host = Annotated[str, option("--host", "Server", "ADDRESS", "Where to listen; 0.0.0.0 for all networks.")]
Port = Annotated[
    int, typer.Option("--port", help="0 for any that is free.", min=0, max=65_535, rich_help_panel="Server")
]
Workers = Annotated[
    int,
    typer.Option(
        "--workers", help="Processes; more than one is for PostgreSQL.", min=1, max=64, rich_help_panel="Server"
    ),
]
Open = Annotated[bool, option("--open", "Server", None, "No keys: everybody on this machine may do everything.")]
Origins = Annotated[
    list[str] | None,
    option("--cors-origin", "Server", "ORIGIN", "A web site whose pages may call the service; may be repeated."),
]
LogFormat = Annotated[str, option("--log-format", "Logs", "text|json", "For people or for programs.")]
AccessLog = Annotated[bool, option("--access-log", "Logs", None, "Log every request, assignments and rewards too.")]
InFlight = Annotated[int, option("--most-requests", "Limits", "N", "Requests at once, per process; more get 503.")]
BodyBytes = Annotated[int, option("--most-bytes", "Limits", "N", "Largest body of a request.")]
BytesInFlight = Annotated[
    int, option("--most-bytes-at-once", "Limits", "N", "Bodies of requests at once, per process; more get 503.")
]
UnitsPerRequest = Annotated[int, option("--most-units", "Limits", "N", "Units that one request may assign or reward.")]
Wait = Annotated[float, option("--wait", "Limits", "SECONDS", "How long a request may wait for the store.")]


def serve(
    store: DatabaseUrl = DEFAULT_STORE,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    workers: Workers = 1,
    open_: Open = False,
    cors_origin: Origins = None,
    log_format: LogFormat = "text",
    access_log: AccessLog = False,
    most_requests: InFlight = 2_000,
    most_bytes: BodyBytes = 4 * 2**20,
    most_bytes_at_once: BytesInFlight = 256 * 2**20,
    most_units: UnitsPerRequest = 10_000,
    wait: Wait = 8.0,
) -> None:
    """Serve the experiments of a store over HTTP, for programs in any language; Ctrl-C ends it."""
    from equipoise.service.serving import serve as run
    from equipoise.service.settings import Settings

    if log_format not in ("text", "json"):
        raise InvalidInput(f"--log-format must be text or json; got {log_format!r}")
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
    )
    run(store, host=host, port=port, workers=workers, settings=settings, log_format=log_format, say=note)
