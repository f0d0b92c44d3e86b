"""Exit codes, and errors as the command line prints them: they name the option that the user typed.

Errors in the command line itself are Typer's: it prints the usage and exits with 2.
"""

import sys
from typing import Any

from typer.core import TyperCommand, TyperGroup

from equipoise.errors import EquipoiseError, InvalidInput, hint_in, path_text, visible

FAILURE = 1
USAGE = 2
INTERRUPTED = 130


def _flags_without_type(parameters: list[Any]) -> list[Any]:
    """Let help texts list `--json` without `<bool>`."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


class Group(TyperGroup):
    """A group of commands, listed in its help text."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options."""
        return _flags_without_type(super().get_params(ctx))


class Command(TyperCommand):
    """A command whose errors name its options instead of the library's parameters.

    An error knows its parameter: `reward_weight`, or `missing.window` in a file's terms. The option is found by the
    argument of that name, whatever the option is called: `--reward-weight must be in [0, 1]`.
    """

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the arguments and options."""
        return _flags_without_type(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:  # Typer takes Context from Click or from a copy of it
        """Run the command, and name options in its errors."""
        try:
            return super().invoke(ctx)
        except InvalidInput as error:
            error.message = _in_options(error, ctx)
            raise


def fail(error: EquipoiseError) -> None:
    """Print an error and exit with 2 if the input was invalid, else with 1."""
    print(f"error: {error_text(error)}", file=sys.stderr)
    sys.exit(USAGE if isinstance(error, InvalidInput) else FAILURE)


def error_text(error: EquipoiseError) -> str:
    r"""Format an error's message and hint, with control characters from files or names made visible.

    Examples
    --------
    >>> print(error_text(InvalidInput("no arm \x1b[31mred", hint="see --help")))
    no arm \x1b[31mred
    hint: see --help
    """
    advice = "" if error.hint is None else f"\nhint: {hint_in(error.hint, 'command')}"
    return "\n".join(visible(line) for line in f"{error.message}{advice}".split("\n"))


def _in_options(error: InvalidInput, ctx: Any) -> str:
    options = {parameter.name: parameter.opts[0] for parameter in ctx.command.params}
    for place, part in enumerate(error.parameter):
        # A value from a file, or a default, was not typed as an option.
        source = ctx.get_parameter_source(part) if part in options else None
        if source is not None and source.name == "COMMANDLINE" and options[part].startswith("-"):
            rest = tuple(key for key in error.parameter[place + 1 :] if isinstance(key, str))
            return error.message_about(f"{options[part]}: {path_text(rest)}" if rest else options[part])
    return error.message
