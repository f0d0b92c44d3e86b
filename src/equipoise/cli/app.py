"""The commands put together, and the entry point that turns errors into messages and exit codes."""

import io
import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from equipoise._version import __version__
from equipoise.cli.allocation_commands import allocate, frontier
from equipoise.cli.exit_codes import Command, Group, told
from equipoise.cli.experiment_commands import (
    add_arm,
    copy,
    create,
    finish,
    list_,
    pause,
    pause_arm,
    resume,
    resume_arm,
    retire_arm,
    stop,
    upgrade,
    weight,
    what_if,
)
from equipoise.cli.report_commands import events, export, rebuild, status, verify
from equipoise.cli.reproduce_command import reproduce
from equipoise.cli.service_commands import demo, keys_create, keys_list, keys_revoke, serve
from equipoise.cli.simulate_command import simulate
from equipoise.cli.unit_commands import ask, correct, tell, unit
from equipoise.errors import EquipoiseError, InvalidInput

COMMANDS = {
    "Planning": (allocate, frontier),
    "Simulation": (simulate, reproduce, demo),
    "Live experiments": (create, list_, ask, tell, correct, unit, status, pause, resume, stop, finish, weight, what_if),
    "Records of live experiments": (events, export, verify, rebuild, copy, upgrade),
    "Service": (serve,),
}
"""Every command by its heading, in the order of the help; its name and its help are those of the function."""
ARM_COMMANDS = (add_arm, pause_arm, resume_arm, retire_arm)
"""Those of `equipoise arm`."""
KEY_COMMANDS = (keys_create, keys_list, keys_revoke)
"""Those of `equipoise keys`."""

app = typer.Typer(
    cls=Group,
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


def _add(group: typer.Typer, command: Callable[..., None], panel: str | None = None) -> None:
    name = command.__name__.removesuffix("_arm").removeprefix("keys_").rstrip("_").replace("_", "-")
    # A reward may be negative; -3 is a number then and not an option.
    settings = {"ignore_unknown_options": True} if command in (tell, correct) else None
    group.command(name, cls=Command, rich_help_panel=panel, context_settings=settings)(command)


for panel, commands in COMMANDS.items():
    for command in commands:
        _add(app, command, panel)
arms = typer.Typer(cls=Group, no_args_is_help=True, help="Add, pause, resume or retire an arm of a live experiment.")
for arm_command in ARM_COMMANDS:
    _add(arms, arm_command)
app.add_typer(arms, name="arm", rich_help_panel="Live experiments")
key_group = typer.Typer(cls=Group, no_args_is_help=True, help="Make, list or revoke the keys of a service.")
for key_command in KEY_COMMANDS:
    _add(key_group, key_command)
app.add_typer(key_group, name="keys", rich_help_panel="Service")


def main() -> None:
    """Run the command; errors made on purpose become a message, a hint and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a name that the terminal cannot show must not end in a traceback
            stream.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="equipoise")
    except EquipoiseError as error:
        print(f"error: {told(error)}", file=sys.stderr)
        sys.exit(2 if isinstance(error, InvalidInput) else 1)
    except OSError as error:
        print(f"error: {error.strerror or error}", file=sys.stderr)
        # What could not be written would be tried again at exit, and fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
