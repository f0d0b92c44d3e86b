"""Commands that back up a store and put a backup back."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equipoise.cli import confirmation
from equipoise.cli.exit_codes import INTERRUPTED
from equipoise.cli.options import AsJson, Quiet, option
from equipoise.cli.stores import DEFAULT_STORE, DatabaseUrl, lasting, missing_file, note, print_answer

if TYPE_CHECKING:
    from equipoise.experiment.backups import Copied, Progress


def backup(
    to: Annotated[Path, option("--to", "Backup", "FILE", "The file to write.")],
    force: Annotated[bool, option("--force", "Backup", None, "Replace a file that exists.")] = False,
    store: DatabaseUrl = DEFAULT_STORE,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Copy a store to a file while it is in use, and verify every experiment in the copy."""
    from equipoise.experiment import backup as back_up

    with _shown("nothing is written", quiet) as progress:
        done = back_up(lasting(store), to, replace=force, progress=progress)
    print_answer(_data(done), f"{done.path}: {_size(done.n_bytes)}; {_checked(done)}", as_json)


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The backup.", show_default=False)],
    force: Annotated[
        bool, option("--force", "Backup", None, "Replace a store that exists, without asking; its file is kept.")
    ] = False,
    store: DatabaseUrl = DEFAULT_STORE,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Make a store from a backup; stop every service and program that uses the store first."""
    from equipoise.experiment import restore as put_back

    if not force and missing_file(store) is None and confirmation.is_possible():
        _ask_to_replace(store)
        force = True
    with _shown("the store is as it was", quiet) as progress:
        done = put_back(file, lasting(store), replace=force, progress=progress)
    if done.replaced is not None and not quiet:
        note(f"what was there before is {done.replaced} now")
    print_answer(_data(done), f"{done.path}: restored from {file}; {_checked(done)}", as_json)


def _ask_to_replace(store: str) -> None:
    from equipoise.store.database import database_at

    path = getattr(database_at(lasting(store)), "path", None)
    if path is not None:
        confirmation.require_typed(
            path.name,
            f"{path} exists and will be replaced; its file is kept under another name.\n"
            "Stop every service and program that uses it first. Units assigned after the backup will be unknown.",
        )


@contextmanager
def _shown(if_interrupted: str, quiet: bool) -> "Iterator[Progress]":
    """Show a progress bar on stderr, and turn Ctrl-C into a sentence and an exit code."""
    from equipoise.progress import Reporter, StepBar
    from equipoise.terminal import announce_compiling

    announce_compiling(quiet=quiet)
    bar = Reporter() if quiet else StepBar(1, "copying", noun="bytes")

    def show(n_bytes: int, total: int) -> None:
        if isinstance(bar, StepBar):
            bar.turn_to("copying" if n_bytes < total else "verifying", total)
        bar.show(n_bytes)

    try:
        with bar:
            yield show
    except KeyboardInterrupt:
        note(f"interrupted; {if_interrupted}")
        raise typer.Exit(INTERRUPTED) from None


def _data(done: "Copied") -> dict[str, Any]:
    paths = {"path": str(done.path), "replaced": None if done.replaced is None else str(done.replaced)}
    return done._asdict() | paths


def _checked(done: "Copied") -> str:
    from equipoise.terminal import counted

    if not done.verified:
        return "intact, but not replayed: it is of an older version; equipoise upgrade the store, then verify"
    return f"{counted(done.n_experiments, 'experiment')} with {counted(done.n_events, 'event')} verified"


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB"
