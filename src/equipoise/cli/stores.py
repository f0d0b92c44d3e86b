"""Options of the commands on live experiments (store or service, key, author), and functions that open them."""

import logging
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from equipoise.cli.options import option
from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from equipoise.client import Client
    from equipoise.experiment import Experiment, ExperimentSummary
    from equipoise.store import Store

DEFAULT_STORE = "sqlite:///equipoise.db"

_STORE = ("--store", "Store", "URL")
StoreUrl = Annotated[
    str,
    option(
        *_STORE,
        "sqlite:///FILE, postgresql://..., or http(s)://... of a service; else EQUIPOISE_STORE.",
        "EQUIPOISE_STORE",
    ),
]
DatabaseUrl = Annotated[
    str, option(*_STORE, "sqlite:///FILE or postgresql://...; else EQUIPOISE_STORE.", "EQUIPOISE_STORE")
]
Key = Annotated[
    str | None,
    option(
        "--key",
        "Store",
        "KEY",
        "The key for a service; better in EQUIPOISE_KEY, which no list of processes shows.",
        "EQUIPOISE_KEY",
    ),
]
Who = Annotated[
    str | None,
    option("--who", "Store", "NAME", "Who does this, for the log: your login name, or for a service the key's name."),
]
At = Annotated[
    int | None, option("--at", "Experiment", "EVENT", "As it was right after this event, by its number in the log.")
]
ExperimentName = Annotated[str, typer.Argument(metavar="NAME", help="The experiment.", show_default=False)]


class StoredExperiments(NamedTuple):
    """The experiments of a database, with the same methods as a `Client` of a service."""

    store: "Store"
    who: str | None = None
    quiet: bool = False

    @property
    def url(self) -> str:
        """URL of the database."""
        return self.store.url

    def create(self, name: str, **settings: Any) -> "Experiment":
        """Create an experiment."""
        from equipoise.experiment import Experiment
        from equipoise.terminal import announce_compiling

        announce_compiling(quiet=self.quiet)
        return Experiment.create(self.store, name, who=self.who, **settings)

    def open(self, name: str) -> "Experiment":
        """Open the experiment of that name."""
        from equipoise.experiment import Experiment
        from equipoise.terminal import announce_compiling

        announce_compiling(quiet=self.quiet)
        return Experiment.open(self.store, name, who=self.who)

    def list(self) -> "list[ExperimentSummary]":
        """List all experiments."""
        from equipoise.experiment import Experiment

        return Experiment.list(self.store)


def experiments_at(
    url: str, key: str | None = None, who: str | None = None, *, new: bool = False, quiet: bool = False
) -> "StoredExperiments | Client":
    """Open the experiments of a database or a service; with `new`, a missing database is created."""
    if is_service(url):
        if who is not None:
            raise InvalidInput(
                "--who is for databases; a service writes the name of the key to the log", hint="leave --who out"
            )
        return _client(url, key)
    return StoredExperiments(any_store(url) if new else existing_store(url), author(who), quiet)


def open_experiment(
    url: str, name: str, key: str | None = None, who: str | None = None, *, at: int | None = None, quiet: bool = False
) -> "Experiment":
    """Open an experiment of an existing store, or of a service; with `at`, as it was after that event."""
    found = experiments_at(url, key, who, quiet=quiet).open(name)
    if at is None:
        return found
    try:
        return found.as_of(at)
    except InvalidInput as error:
        raise InvalidInput.of("at", error.expected or "", at) from None


def is_service(url: str) -> bool:
    """Return whether a URL is that of a service, not of a database."""
    return url.lower().startswith(("http:", "https:"))


def _client(url: str, key: str | None) -> "Client":
    from equipoise.client import Client

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        client = Client(url, key or None)  # an empty environment variable means no key
    for one in caught:
        note(f"warning: {one.message}")
    log = logging.getLogger("equipoise.client")
    log.setLevel(logging.INFO)
    if not any(isinstance(one, _FirstRetry) for one in log.handlers):
        log.addHandler(_FirstRetry())
    return client


class _FirstRetry(logging.Handler):
    """Says that a call is retried, once: silence for half a minute looks like a program that hangs."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print the record, and remove this handler."""
        logging.getLogger(record.name).removeHandler(self)
        note(f"note: {record.getMessage()}; Ctrl-C gives up")


def existing_store(url: str) -> "Store":
    """Open an existing store; a mistyped URL must not create one."""
    return any_store(url, create=False)


def rehearse(url: str, act: "Callable[[Store], object]") -> None:
    """If a store's file does not exist, dry-run `act` in memory, so that errors come before the file is created."""
    if not is_service(url) and missing_file(url) is not None:
        from equipoise.store import open_store

        with open_store("memory:") as store:
            act(store)


def missing_file(url: str) -> "Path | None":
    """Return the file that a URL names if it does not exist, else None."""
    from equipoise.store.database import database_at

    path: Path | None = getattr(database_at(lasting(url)), "path", None)
    return None if path is None or path.exists() else path


def any_store(url: str, *, create: bool = True) -> "Store":
    """Open a store; create it if it does not exist."""
    from equipoise.store import open_store

    return open_store(lasting(url), create=create)


def author(who: str | None) -> str | None:
    """Return the author for the log: as given, else the login name if there is one."""
    if who is not None:
        return who
    from getpass import getuser

    try:
        return getuser()
    except (OSError, KeyError, ImportError):  # a container's user may have no name
        return None


def note(text: str) -> None:
    """Print a message that is not data, to stderr."""
    print(text, file=sys.stderr, flush=True)


def print_answer(data: dict[str, Any], text: str, as_json: bool) -> None:
    """Print the result of a command: a sentence for people, or a JSON object for programs."""
    if as_json:
        from equipoise.terminal import print_json

        print_json(data)
    else:
        print(text, flush=True)


def lasting(url: str) -> str:
    """Return the URL of a database; raise if it is that of a service, or of a store in memory."""
    if is_service(url):
        raise InvalidInput(
            "this command works on a database; got the address of a service",
            hint="run it where the database is, with --store sqlite:///FILE or postgresql://...",
        )
    if url == "memory:":
        raise InvalidInput(
            "a store in memory is gone when the command ends", hint=f"use {DEFAULT_STORE} or postgresql://..."
        )
    return url
