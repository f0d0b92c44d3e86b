"""What can go wrong, as a tree of exceptions; each says what was expected, what was got, and what to do.

::

    EquipoiseError
    ├── InvalidInput (also a ValueError)     a value outside what is allowed
    │   ├── UnknownName                      a policy, objective or parameter that does not exist
    │   └── UnknownArm                       an arm index or name that is not in the bandit
    ├── NoSuchWeight (also a ValueError)     no reward weight has the wanted error or reward
    ├── UnexpectedReward                     a reward for an arm that has no pending assignment
    ├── UnknownExperiment                    no experiment of that name in the store
    ├── ExperimentExists                     the name of a new experiment is taken
    ├── UnknownKey                           no key of that id in the store
    ├── UnknownUnit                          a reward for a unit that was never assigned
    ├── RewardConflict                       another reward was told for the unit before
    ├── NotRewarded                          a correction of a reward that was never told
    ├── RewardsHeld                          an end of an experiment that has rewards not counted yet
    ├── EnrolmentClosed                      a new unit for an experiment that takes none now
    ├── ExperimentFinished                   a change to an experiment that is over
    ├── TooFewRewards                        something that needs estimates, before there are any
    ├── NotAuthenticated                     no key of the service, or one that is not valid (any more)
    ├── NotAllowed                           a key that is not for this
    ├── ServiceError                         a server answered something that makes no sense here
    ├── VerificationFailed                   the log does not give what the tables or the decisions say
    ├── StoreError                           the database, not the request, is the trouble
    │   ├── StoreUnavailable                 it cannot be reached or written to just now
    │   ├── StoreMismatch                    it is not a database of this version of the package
    │   └── UpgradeNeeded                    it is of an older version and holds experiments
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


class UnknownExperiment(EquipoiseError):
    """No experiment of that name is in the store."""


class ExperimentExists(EquipoiseError):
    """An experiment of that name is in the store already."""


class UnknownKey(EquipoiseError):
    """No key of that id is in the store."""


class UnknownUnit(EquipoiseError):
    """A reward for a unit that was never assigned an arm."""


class RewardConflict(EquipoiseError):
    """Another reward was told for the unit before; `correct` replaces it."""


class NotRewarded(EquipoiseError):
    """There is no told reward to correct."""


class RewardsHeld(EquipoiseError):
    """The experiment cannot be finished yet: rewards that are held back would never be counted."""


class EnrolmentClosed(EquipoiseError):
    """The experiment takes no new units now; rewards of those it has are welcome."""


class ExperimentFinished(EquipoiseError):
    """The experiment is over; nothing about it can change."""


class TooFewRewards(EquipoiseError):
    """What was asked needs estimates of every arm, and some arm has too few rewards."""


class NotAuthenticated(EquipoiseError):
    """The service was called without a key, or with one that is wrong, expired or revoked."""


class NotAllowed(EquipoiseError):
    """The key's role, or the experiment it is for, does not cover what was asked."""


class ServiceError(EquipoiseError):
    """A server answered something that is no answer of this service; what it did is unknown."""


class VerificationFailed(EquipoiseError):
    """Replaying the log gave something else than what is recorded; the message names the first difference.

    Parameters
    ----------
    event : int or None
        Number of the first event that differs, or None if the log is right and a table is not.
    """

    def __init__(self, message: str, *, event: int | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.event = event


class StoreError(EquipoiseError):
    """The database could not do its part; the request itself may be fine."""


class StoreUnavailable(StoreError):
    """The database cannot be reached or written to; nothing was acknowledged, so trying again is safe."""


class StoreMismatch(StoreError):
    """The database was not made by this package, or by a newer version of it."""


class UpgradeNeeded(StoreError):
    """The database was made by an older version and holds experiments; it is changed on request only."""


class MissingExtra(EquipoiseError, ImportError):
    """An optional dependency is not installed."""


def visible(text: str) -> str:
    r"""Return text with everything that is not printable escaped, so that a message shows what was got.

    Examples
    --------
    >>> print(visible("né\x1b[31m\tarm"))
    né\x1b[31m\tarm
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
