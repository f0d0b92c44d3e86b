"""Assemble the commands into the Typer app, and run it: errors become messages and exit codes."""

import io
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from equipoise._version import __version__
from equipoise.cli import analysis_commands as analysis
from equipoise.cli import backup_commands as backups
from equipoise.cli import change_commands as changes
from equipoise.cli import course_commands as course
from equipoise.cli import experiment_commands as experiments
from equipoise.cli import health_commands
from equipoise.cli import plan_commands as plans
from equipoise.cli import planning_commands as planning
from equipoise.cli import price_commands as pricing
from equipoise.cli import report_commands as reports
from equipoise.cli import service_commands as service
from equipoise.cli import unit_commands as units
from equipoise.cli.exit_codes import FAILURE, Command, Group, fail
from equipoise.errors import EquipoiseError

COMMANDS: dict[str, dict[str, Callable[..., None]]] = {
    "Planning": {"plan": plans.plan, "allocate": planning.allocate, "frontier": planning.frontier},
    "Simulation": {"simulate": planning.simulate, "reproduce": planning.reproduce, "demo": service.demo},
    "Live experiments": {
        "create": experiments.create,
        "list": experiments.list_,
        "ask": units.ask,
        "tell": units.tell,
        "correct": units.correct,
        "withdraw": units.withdraw,
        "unit": units.unit,
        "units": units.units,
        "status": reports.status,
        "compare": analysis.compare,
        "report": analysis.report,
        "timeline": course.timeline,
        "outlook": course.outlook,
        "fidelity": reports.fidelity,
        "health": health_commands.health,
        "mute": health_commands.mute,
        "unmute": health_commands.unmute,
        "pause": changes.pause,
        "resume": changes.resume,
        "stop": changes.stop,
        "finish": changes.finish,
        "describe": changes.describe,
        "note": changes.note,
        "delete": experiments.delete,
        "weight": changes.weight,
        "dial": changes.dial,
        "what-if": changes.what_if,
        "prices": pricing.prices,
    },
    "Records of live experiments": {
        "events": reports.events,
        "export": reports.export,
        "verify": reports.verify,
        "rebuild": reports.rebuild,
        "copy": experiments.copy,
        "backup": backups.backup,
        "restore": backups.restore,
        "upgrade": experiments.upgrade,
    },
    "Service": {"serve": service.serve, "console": service.console},
}
"""Every command by its heading, in the order of the help text."""
GROUPS: dict[str, tuple[str, str, dict[str, Callable[..., None]]]] = {
    "arm": (
        "Live experiments",
        "Add, pause, resume or retire an arm of a live experiment.",
        {
            "add": changes.add_arm,
            "pause": changes.pause_arm,
            "resume": changes.resume_arm,
            "retire": changes.retire_arm,
        },
    ),
    "keys": (
        "Service",
        "Make, list or revoke the keys of a service.",
        {"create": service.create_key, "list": service.list_keys, "revoke": service.revoke_key},
    ),
    "webhook": ("Service", "Test the receiver of alerts.", {"test": health_commands.try_webhook}),
}
"""Groups of commands: heading, help text and subcommands."""

app = typer.Typer(
    no_args_is_help=True,
    cls=Group,
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


def _add(group: typer.Typer, commands: dict[str, Callable[..., None]], panel: str | None = None) -> None:
    for name, command in commands.items():
        # A reward may be negative: -3 must parse as a number, not as an option.
        settings: dict[str, Any] = {"ignore_unknown_options": True} if command in (units.tell, units.correct) else {}
        # What process managers and containers set up by environment variables.
        if command in (service.serve, health_commands.try_webhook):
            settings["auto_envvar_prefix"] = "EQUIPOISE_SERVE"
        group.command(name, cls=Command, rich_help_panel=panel, context_settings=settings)(command)


for panel, commands in COMMANDS.items():
    _add(app, commands, panel)
for name, (panel, text, commands) in GROUPS.items():
    group = typer.Typer(no_args_is_help=True, help=text, cls=Group)
    _add(group, commands)
    app.add_typer(group, name=name, rich_help_panel=panel)


def main() -> None:
    """Run the command line; an error becomes a message, a hint and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # no traceback for names that the terminal cannot show
            stream.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="equipoise")
    except EquipoiseError as error:
        fail(error)
    except OSError as error:
        print(f"error: {error.strerror or error}", file=sys.stderr)
        # Python flushes stdout again at exit, which would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILURE)
