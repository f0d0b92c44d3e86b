"""Errors in the words of the command line: options as they were typed, and nothing that the terminal would act on."""

import re
from typing import Any

from typer.core import TyperCommand

from equipoise.errors import EquipoiseError, InvalidInput, visible

HINTS = {
    "Experiment.list(store) shows those it has": "equipoise list shows those it has",
    "Client.list() shows those it has": "equipoise list shows those it has",
    "give a key: Client(url, key)": "set EQUIPOISE_KEY, or give --key",
    "choose another name, or open it": "choose another name",
    "correct(unit, reward, reason) replaces it, and logs why": "equipoise correct replaces it, and logs why",
    "tell(unit, reward)": "equipoise tell NAME UNIT REWARD",
    "ask(unit) comes first": "equipoise ask NAME UNIT comes first",
    "resume() takes new units again": "equipoise resume NAME takes new units again",
    "pause() or stop() the experiment instead": "equipoise pause or stop the experiment instead",
    "rebuild() writes the tables anew from the log": "equipoise rebuild NAME writes the tables anew from the log",
    "give control=...": "give --control ARM",
}
"""What the library advises to call, as a command; a test looks for each in the library."""


class Command(TyperCommand):
    """A command whose errors name its options, where the library names its own parameters.

    The library's messages start with the parameter: `reward_weight must be in [0, 1]`. An argument of a command that
    has the name of the parameter is the option to tell, whatever that is called: `--reward-weight must be in [0, 1]`.
    """

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
    advice = "" if error.hint is None else f"\nhint: {HINTS.get(error.hint, error.hint)}"
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
