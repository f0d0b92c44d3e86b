"""Ask people before a command does what cannot be undone; scripts are not asked."""

import sys
from typing import Annotated

import typer

from equipoise.cli.exit_codes import FAILURE, INTERRUPTED
from equipoise.cli.options import option
from equipoise.errors import visible

Yes = Annotated[bool, option("--yes", "Safety", None, "Do not ask; without a terminal there is no question.")]


def is_possible() -> bool:
    """Return whether somebody can read a question on stderr and answer it on stdin."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def require_yes(text: str, question: str) -> None:
    """Show a text and a question; exit unless the answer is yes."""
    if _answer(text, f"{question} [y/N] ").lower() not in ("y", "yes"):
        _decline()


def require_typed(word: str, text: str) -> None:
    """Show a text and ask for a word to be typed; exit unless it is."""
    if _answer(text, f"type {visible(word)} to go on: ") != word:
        _decline()


def _answer(text: str, question: str) -> str:
    lines = "\n".join(visible(line) for line in text.split("\n"))
    print(f"{lines}\n{question}", end="", file=sys.stderr, flush=True)
    try:
        return sys.stdin.readline().strip()
    except KeyboardInterrupt:
        print("\ninterrupted; nothing was changed", file=sys.stderr, flush=True)
        raise typer.Exit(INTERRUPTED) from None


def _decline() -> None:
    print("nothing was changed", file=sys.stderr, flush=True)
    raise typer.Exit(FAILURE)
