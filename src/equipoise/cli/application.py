"""The commands put together, and the entry point that turns errors into messages and exit codes."""

import io
import os
import sys
from typing import Annotated

import typer

from equipoise import __version__
from equipoise.cli.allocate import allocate
from equipoise.cli.demo import demo
from equipoise.cli.errors import Command, told
from equipoise.cli.frontier import frontier
from equipoise.cli.reproduce import reproduce
from equipoise.cli.simulate import simulate
from equipoise.errors import EquipoiseError, InvalidInput

COMMANDS = (allocate, frontier, simulate, reproduce, demo)
"""Every command, in the order of the help; its name and its help are those of the function."""

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"equipoise {__version__}")
        raise typer.Exit


@app.callback()
def equipoise(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Experiments that treat people well and measure every arm accurately, with one dial between the two."""


for command in COMMANDS:
    app.command(cls=Command)(command)


def main() -> None:
    """Run the command; errors made on purpose become a message, a hint and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a name that the terminal cannot show must not end in a traceback
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except EquipoiseError as error:
        print(f"error: {told(error)}", file=sys.stderr)
        sys.exit(2 if isinstance(error, InvalidInput) else 1)
    except OSError as error:
        print(f"error: {error.strerror or error}", file=sys.stderr)
        # What could not be written would be tried again at exit, and fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
