"""Options of the commands on live experiments: which store, who does it; and what opens them."""

import sys
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equipoise.cli.options import option
from equipoise.errors import InvalidInput, StoreUnavailable

if TYPE_CHECKING:
    from pathlib import Path

    from equipoise.experiment import Experiment
    from equipoise.store import Store

DEFAULT_STORE = "sqlite:///equipoise.db"

StoreUrl = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="URL",
        envvar="EQUIPOISE_STORE",
        show_envvar=False,
        help="sqlite:///FILE or postgresql://...; else EQUIPOISE_STORE.",
        rich_help_panel="Store",
    ),
]
Who = Annotated[str | None, option("--who", "Store", "NAME", "Who does this, for the log; the login name by default.")]
ExperimentName = Annotated[str, typer.Argument(metavar="NAME", help="The experiment.", show_default=False)]
Quiet = Annotated[bool, option("--quiet", "Output", None, "No progress and no notes.")]


def existing_store(url: str) -> "Store":
    """Open a store that is there; asking after an experiment must not make an empty file."""
    return any_store(existing_url(url))


def existing_url(url: str) -> str:
    """Return a URL unless it names a file that is not there."""
    from equipoise.store.addresses import database_at

    path: Path | None = getattr(database_at(_lasting(url)), "path", None)
    if path is not None and not path.exists():
        raise StoreUnavailable(
            f"there is no store {path}", hint="equipoise create makes one; --store or EQUIPOISE_STORE names another"
        )
    return url


def any_store(url: str) -> "Store":
    """Open a store, made new if it is not there."""
    from equipoise.store import open_store

    _announce_compiling()
    return open_store(_lasting(url))


def open_experiment(url: str, name: str, who: str | None = None) -> "Experiment":
    """Open an experiment of a store that is there."""
    from equipoise.experiment import Experiment

    return Experiment.open(existing_store(url), name, who=who)


@cache
def _announce_compiling() -> None:
    """Say why the first assignment on a machine takes seconds, should it be this one."""
    from equipoise.kernels import when_compiling
    from equipoise.printing import COMPILING

    when_compiling(lambda: note(COMPILING))


def author(who: str | None) -> str | None:
    """Return who to name in the log: as given, or else the login name if there is one."""
    if who is not None:
        return who
    from getpass import getuser

    try:
        return getuser()
    except (OSError, KeyError, ImportError):  # a container's user may have no name
        return None


def note(text: str) -> None:
    """Say something that is not data."""
    print(text, file=sys.stderr, flush=True)


def print_answer(data: dict[str, Any], text: str, as_json: bool) -> None:
    """Print the answer of a command: a sentence for people, or an object for programs."""
    if as_json:
        from equipoise.printing import print_json

        print_json(data)
    else:
        print(text, flush=True)


def _lasting(url: str) -> str:
    if url == "memory:":
        raise InvalidInput(
            "a store in memory is gone when the command ends", hint=f"use {DEFAULT_STORE} or postgresql://..."
        )
    return url
