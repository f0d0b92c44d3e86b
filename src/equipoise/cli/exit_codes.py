"""Errors in the words of the command line: options as they were typed, and nothing that the terminal would act on."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from equipoise.errors import EquipoiseError, InvalidInput, hint_in, visible

_UsageError: Any = typer.BadParameter.__base__  # of Click, or of the copy of it that Typer has
_HELP = "NoArgsIsHelpError"


class Group(TyperGroup):
    """A group of commands that tells what is wrong with a command line as all errors are told."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Read the options before the command."""
        with _told_as_ours(ctx):
            return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command."""
        with _told_as_ours(ctx):
            return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; errors of its own come from another context."""
        try:
            return super().invoke(ctx)
        except _UsageError as error:
            if error.ctx is not ctx:
                raise
            with _told_as_ours(ctx):
                raise


class Command(TyperCommand):
    """A command whose errors name its options, where the library names its own parameters.

    The library's messages start with the parameter: `reward_weight must be in [0, 1]`. An argument of a command that
    has the name of the parameter is the option to tell, whatever that is called: `--reward-weight must be in [0, 1]`.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Read the command line."""
        with _told_as_ours(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:  # Typer has its Context from Click or from a copy of it
        """Run the command."""
        try:
            return super().invoke(ctx)
        except InvalidInput as error:
            error.message = _in_options(error.message, ctx)
            raise


def told(error: EquipoiseError) -> str:
    r"""Return message and hint as they are printed: what a file or a name smuggled in is shown, not obeyed.

    Examples
    --------
    >>> print(told(InvalidInput("no arm \x1b[31mred", hint="see --help")))
    no arm \x1b[31mred
    hint: see --help
    """
    advice = "" if error.hint is None else f"\nhint: {hint_in(error.hint, 'command')}"
    return "\n".join(visible(line) for line in f"{error.message}{advice}".split("\n"))


def _in_options(message: str, ctx: Any) -> str:
    word = re.match(r"\w+(?= must | is )", message)
    for parameter in ctx.command.params:
        # Values that come from a file, or are not given at all, were not typed as an option.
        source = ctx.get_parameter_source(parameter.name or "")
        typed = source is not None and source.name == "COMMANDLINE"
        if word and typed and word[0] in (parameter.name, f"{parameter.name}s"):
            return f"{parameter.opts[0]}{message[word.end() :]}"
    return message


@contextmanager
def _told_as_ours(ctx: Any) -> Iterator[None]:
    """Raise what Typer finds wrong with a command line as an error of ours, which points to the help."""
    try:
        yield
    except _UsageError as error:
        if type(error).__name__ == _HELP:  # which is the help itself, for who typed nothing
            raise
        raise InvalidInput(_usage(error), hint=f"{ctx.command_path} --help") from None


def _usage(error: Any) -> str:
    """Return what is wrong with a command line: what was expected, and what was got if that is known."""
    kind, parameter = type(error).__name__, getattr(error, "param", None)
    if kind == "MissingParameter" and parameter is not None:
        return f"{_name(parameter)} is missing"
    if kind == "BadParameter" and parameter is not None:
        return f"{_name(parameter)}{_expected(error)}"
    if kind == "NoSuchOption":
        maybe = f"; did you mean {' or '.join(sorted(error.possibilities))}?" if error.possibilities else ""
        return f"there is no option {error.option_name}{maybe}"
    message = str(error.format_message())
    more = re.fullmatch(r"Got unexpected extra argument.*? \((.*)\)", message)
    if more:
        return f"there must be no more arguments; got {more[1]}"
    return message[:1].lower() + message[1:].removesuffix(".").replace(". Did you", "; did you")


def _name(parameter: Any) -> str:
    """Return an option as it is typed, or an argument as the help calls it."""
    first: str = parameter.opts[0]
    return first if first.startswith("-") else parameter.metavar or first.upper()


def _expected(error: Any) -> str:
    """Return what a value must be, and what it was."""
    details = getattr(error.__cause__, "errors", None)
    if details is None:  # an older Typer, whose message names the value
        return f": {error.message}".removesuffix(".")
    first = details()[0]
    expected = re.sub(r"^Input should be ", " must be ", first["msg"]).partition(", unable to parse")[0]
    return f"{expected}; got {first['input']!r}"
