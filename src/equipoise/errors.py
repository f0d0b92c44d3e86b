"""What can go wrong, as a tree of exceptions; each says what was expected, what was got, and what to do.

::

    EquipoiseError
    ├── InvalidInput (also a ValueError)     a value outside what is allowed
    │   ├── UnknownName                      a policy, objective or parameter that does not exist
    │   └── UnknownArm                       an arm index or name that is not in the bandit
    ├── NoSuchWeight (also a ValueError)     no reward weight has the wanted error or reward
    ├── UnexpectedReward                     a reward for an arm that has no pending assignment
    └── MissingExtra (also an ImportError)   an optional dependency is not installed
"""

from __future__ import annotations


class EquipoiseError(Exception):
    """Base of every error this package raises on purpose.

    Parameters
    ----------
    message : str
        What was expected and what was got.
    hint : str, optional
        The next step, printed on a line of its own.

    Examples
    --------
    >>> print(EquipoiseError("the file is empty", hint="pass a CSV with columns arm, mean, std"))
    the file is empty
    hint: pass a CSV with columns arm, mean, std
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\nhint: {self.hint}"


class InvalidInput(EquipoiseError, ValueError):
    """A value outside what is allowed; nothing was changed."""


class UnknownName(InvalidInput):
    """A policy, objective or parameter that does not exist; the message lists those that do."""


class UnknownArm(InvalidInput):
    """An arm index or name that is not among the arms."""


class NoSuchWeight(EquipoiseError, ValueError):
    """No reward weight has an optimum with the wanted error or reward."""


class UnexpectedReward(EquipoiseError):
    """A reward for an arm that has no pending assignment."""


class MissingExtra(EquipoiseError, ImportError):
    """An optional dependency is not installed."""
