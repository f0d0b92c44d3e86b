"""The exceptions of this package; each message says what was expected, what was got, and what to do.

::

    EquipoiseError
    ├── InvalidInput (also a ValueError)     a value outside what is allowed
    │   ├── GoalOutOfReach                   an accuracy that these units cannot give
    │   ├── UnknownName                      a policy, objective or parameter that does not exist
    │   └── UnknownArm                       an arm index or name that is not in the bandit
    ├── NoSuchWeight (also a ValueError)     no reward weight has the wanted error or reward
    ├── StaleChange                      somebody else changed the experiment in the meantime
    ├── UnexpectedReward                     a reward for an arm that has no pending assignment
    ├── UnknownExperiment                    no experiment of that name in the store
    ├── ExperimentExists                     the name of a new experiment is taken
    ├── UnknownKey                           no key of that id in the store
    ├── UnknownUnit                          a reward for a unit that was never assigned
    ├── RewardConflict                       the unit already has another reward
    ├── NotRewarded                          a correction for a unit without a reward
    ├── WindowsOpen                          finishing an experiment while windows of units are open
    │   └── RewardsHeld                      and rewards in them are held
    ├── EnrolmentClosed                      a new unit for an experiment that accepts none now
    ├── ExperimentFinished                   a change to a finished experiment
    ├── TooFewRewards                        a call that needs estimates, before there are any
    ├── NotAuthenticated                     a key of the service that is missing, wrong, expired or revoked
    ├── NotAllowed                           a key without permission for the call
    ├── ServiceError                         an HTTP answer that does not come from this service
    ├── VerificationFailed                   the log does not match the tables or the decisions
    ├── StoreError                           the database failed, not the call
    │   ├── StoreUnavailable                 it cannot be reached or written to just now
    │   │   └── StoreBusy                    another writer holds the lock
    │   ├── StoreMismatch                    it is not a database of this version of the package
    │   └── UpgradeNeeded                    it is of an older version and holds experiments
    └── MissingExtra (also an ImportError)   an optional dependency is not installed
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, Final, Literal, Self, TypeAlias

ParameterPath: TypeAlias = tuple[str | int, ...]
"""Keys and positions that lead to a value, such as ("policies", 0, "forcing")."""
Surface: TypeAlias = Literal["call", "request", "command"]
"""Where a hint is read: in Python, in an HTTP response, or on the command line."""
_UNKNOWN: Final = object()
_EXPERIMENT = "/experiments/{name}"
_UNIT = f"{_EXPERIMENT}/assignments/{{unit}}"


class Hint(StrEnum):
    """A hint that every surface words in its own terms; as text, it is the Python call.

    A service sends the hint's `code` with its own wording, so that a client can show the hint in Python terms.

    Examples
    --------
    >>> Hint.RESUME.call, Hint.RESUME.command, Hint.RESUME.code
    ('resume() takes new units again', 'equipoise resume NAME takes new units again', 'resume')
    """

    call: str
    request: str
    command: str

    def __new__(cls, call: str, request: str, command: str) -> Self:
        """Create a member from its wording for each surface."""
        hint = str.__new__(cls, call)
        hint._value_ = hint.call = call
        hint.request, hint.command = request, command
        return hint

    CHECK_UNIT = (
        "check the spelling and the experiment; export() lists its units",
        f"check the spelling and the experiment; GET {_EXPERIMENT}/export lists its units",
        "check the spelling and the experiment; equipoise export NAME lists its units",
    )
    TELL = "tell(unit, reward)", f"PUT {_UNIT}/reward", "equipoise tell NAME UNIT REWARD"
    CORRECT = (
        "correct(unit, reward, reason) replaces it, and logs why",
        f"POST {_UNIT}/corrections replaces it, and logs why",
        "equipoise correct replaces it, and logs why",
    )
    RESUME = (
        "resume() takes new units again",
        f"POST {_EXPERIMENT}/resume takes new units again",
        "equipoise resume NAME takes new units again",
    )
    PAUSE_OR_STOP = (
        "pause() or stop() the experiment instead",
        f"POST {_EXPERIMENT}/pause or POST {_EXPERIMENT}/stop instead",
        "equipoise pause or stop the experiment instead",
    )
    FINISH_ANYWAY = (
        "finish after that, or now with anyway=True",
        'finish after that, or now with {"anyway": true}',
        "finish after that, or now with --anyway",
    )
    LOOK_AGAIN = (
        "look at it again: changes() lists what was changed; then give the number of the last one as expected_change",
        f"look at it again: GET {_EXPERIMENT}/changes lists what was changed; then give the number of the last one as "
        "expected_change",
        "look at it again: equipoise events NAME --changes; then give the number of the last one as --expected-change",
    )
    FINISH = (
        "finish() closes it for good",
        f"POST {_EXPERIMENT}/finish closes it for good",
        "equipoise finish NAME closes it for good",
    )
    WITHDRAW = (
        "withdraw(unit, reason) comes first",
        f"POST {_UNIT}/withdrawal comes first",
        "equipoise withdraw NAME UNIT --reason TEXT comes first",
    )
    REBUILD = (
        "rebuild() restores the tables from the log",
        f"POST {_EXPERIMENT}/rebuild restores the tables from the log",
        "equipoise rebuild NAME restores the tables from the log",
    )
    GIVE_CONTROL = "give control=...", 'give "control": ...', "give --control ARM"
    GIVE_WINDOW = "give window_seconds=...", 'give "window_seconds": ...', "give --window TIME"
    SET_DIAL = (
        "information_kept=0.7 is as accurate as the best design with 70 of 100 people, at the most reward",
        '"information_kept": 0.7 is as accurate as the best design with 70 of 100 people, at the most reward',
        "--information-kept 0.7 is as accurate as the best design with 70 of 100 people, at the most reward",
    )
    GIVE_RANGE = (
        "give reward_range=(low, high): before there are rewards, half of it is taken for every arm's spread",
        'give "reward_range": [low, high]; before there are rewards, half of it is taken for every arm\'s spread',
        "give --range LOW,HIGH: before there are rewards, half of it is taken for every arm's spread",
    )
    VERIFY = (
        "verify() says where the first difference is",
        f"GET {_EXPERIMENT}/verify says where the first difference is",
        "equipoise verify NAME says where the first difference is",
    )
    LOG_ATTRIBUTES = (
        "attributes are logged with ask(unit, attributes)",
        f'attributes are logged with POST {_EXPERIMENT}/assignments {{"unit": ..., "attributes": ...}}',
        "attributes are logged with equipoise ask: the other columns of a --file, or --attributes JSON",
    )
    ANOTHER_NAME = (
        "choose another name, or open it",
        f"choose another name, or GET {_EXPERIMENT}",
        "choose another name",
    )
    LIST_EXPERIMENTS = (
        "Experiment.list(store) or Client.list() lists its experiments",
        "GET /experiments lists its experiments",
        "equipoise list shows its experiments",
    )
    REPLACE_FILE = (
        "choose another name; replace=True replaces it",
        "choose another name",
        "choose another name; --force replaces it",
    )
    NO_STORE = (
        "check the URL; without create=False, open_store creates a store",
        "the service has another --store than was meant",
        "equipoise create makes one; --store or EQUIPOISE_STORE names another",
    )
    SEND_KEY = (
        "give a key: Client(url, key)",
        "send Authorization: Bearer KEY; equipoise keys create makes one",
        "set EQUIPOISE_KEY, or give --key",
    )

    @property
    def code(self) -> str:
        """Name of the hint in the header `x-equipoise-hint`."""
        return self.name.lower().replace("_", "-")

    @classmethod
    def from_code(cls, code: str) -> Hint | None:
        """Return the hint with that code, or None for an unknown code from a service of another version."""
        return next((hint for hint in cls if hint.code == code), None)


def hint_in(hint: str, surface: Surface) -> str:
    """Return a hint as worded for a surface; free text is the same everywhere.

    Examples
    --------
    >>> hint_in(Hint.RESUME, "request"), hint_in("check the address", "request")
    ('POST /experiments/{name}/resume takes new units again', 'check the address')
    """
    return str(getattr(hint, surface)) if isinstance(hint, Hint) else hint


class EquipoiseError(Exception):
    """Base class of every error this package raises on purpose.

    Parameters
    ----------
    message : str
        What was expected and what was got.
    hint : str, optional
        The next step, printed on a line of its own: free text, or a `Hint` that each surface words in its own terms.

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
    """A value that is not allowed; nothing was changed.

    Attributes
    ----------
    parameter : tuple of str and int
        Path to the offending value, such as ``("reward_weight",)`` or ``("policies", 0, "forcing")``; empty if unknown.
    expected : str or None
        What the value must be, as in ``"must be in [0, 1]"``; None if the message is a sentence of its own.
    got : object
        The value.
    arm : int or None
        The arm whose entry is wrong, counted from 0.
    """

    parameter: ParameterPath = ()
    expected: str | None = None
    got: Any = None
    arm: int | None = None
    _got = ""
    _sentence: str | None = None

    @classmethod
    def of(
        cls, parameter: str, expected: str, got: Any = _UNKNOWN, *, arm: int | None = None, hint: str | None = None
    ) -> Self:
        """Return an error that knows its parameter, so that each surface can use its own name for it.

        Examples
        --------
        >>> error = InvalidInput.of("reward_weight", "must be in [0, 1]", 1.3)
        >>> print(error)
        reward_weight must be in [0, 1]; got 1.3
        >>> error.message_about("--reward-weight")
        '--reward-weight must be in [0, 1]; got 1.3'
        """
        error = cls("", hint=hint)
        error.parameter, error.expected, error.arm = (parameter,), expected, arm
        if got is not _UNKNOWN:
            error.got, error._got = got, f"; got {got!r}"
        error._say(error.message_about(parameter, first_arm=0))
        return error

    def message_about(self, name: str, *, first_arm: int = 1) -> str:
        """Return the message with another name for the parameter, and arms counted from `first_arm`."""
        if self.expected is None:
            return f"{name}: {self._sentence or self.message}"
        which = "" if self.arm is None else f" for arm {self.arm + first_arm}"
        return f"{name} {self.expected}{self._got}{which}"

    def within(self, *path: str | int, names: Mapping[str, str] | None = None) -> Self:
        """Prefix the parameter, also in the message, with the path of an enclosing table or list.

        `names` maps parameters to their names there: ``{"window_seconds": "window"}``.
        """
        self._sentence = self._sentence or self.message
        own = self.parameter if names is None else tuple(names.get(str(part), part) for part in self.parameter)
        self.parameter = (*path, *own)
        self._say(self.message_about(path_text(self.parameter)))
        return self

    def _say(self, message: str) -> None:
        self.message, self.args = message, (message,)


class GoalOutOfReach(InvalidInput):
    """A half-width that no allocation of these units reaches; the message says what is possible.

    Attributes
    ----------
    smallest_half_width : float or None
        The smallest half-width that the stated number of units reaches, with the best design.
    units_needed : int or None
        How many units the stated half-width takes, with the best design.
    """

    smallest_half_width: float | None = None
    units_needed: int | None = None


class UnknownName(InvalidInput):
    """A policy, objective or parameter that does not exist; the message lists those that do."""


class UnknownArm(InvalidInput):
    """An arm index or name that is not among the arms."""


class NoSuchWeight(EquipoiseError, ValueError):
    """No reward weight has an optimum with the wanted error or reward."""


class UnexpectedReward(EquipoiseError):
    """A reward for an arm that has no pending assignment."""


class UnknownExperiment(EquipoiseError):
    """The store has no experiment of that name."""


class ExperimentExists(EquipoiseError):
    """The store already has an experiment of that name."""


class UnknownKey(EquipoiseError):
    """The store has no key of that id."""


class UnknownPlan(EquipoiseError):
    """The service has no plan of that id, or has forgotten it."""


class UnknownUnit(EquipoiseError):
    """A reward for a unit that was never assigned an arm."""


class UnitWithdrawn(EquipoiseError):
    """The unit was withdrawn from the experiment, so it has no reward."""


class RewardConflict(EquipoiseError):
    """The unit already has another reward; `correct` replaces it."""


class NotRewarded(EquipoiseError):
    """The unit has no reward to correct."""


class HasRewards(EquipoiseError):
    """An experiment with rewards is not deleted."""


class WindowsOpen(EquipoiseError):
    """The experiment cannot be finished yet: rewards may still come within the windows of its units."""


class RewardsHeld(WindowsOpen):
    """The experiment cannot be finished yet: held rewards would never be counted."""


class EnrolmentClosed(EquipoiseError):
    """The experiment accepts no new units now; it still accepts rewards of assigned units."""


class ExperimentFinished(EquipoiseError):
    """The experiment is finished; nothing about it can change."""


class StaleChange(EquipoiseError):
    """Somebody else changed the experiment after the event that the caller knew of; the message says who and how.

    Parameters
    ----------
    event : int or None
        Number of the event that changed it.
    """

    def __init__(self, message: str, *, event: int | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.event = event


class TooFewRewards(EquipoiseError):
    """The call needs estimates of every arm, and some arm has too few rewards."""


class NotAuthenticated(EquipoiseError):
    """The service was called without a key, or with one that is wrong, expired or revoked."""


class NotAllowed(EquipoiseError):
    """The key's role, or the experiment it is for, does not cover the call."""


class ServiceError(EquipoiseError):
    """The HTTP answer does not come from this service; whether the call took effect is unknown."""


class VerificationFailed(EquipoiseError):
    """The replay of the log differs from what is recorded; the message names the first difference.

    Parameters
    ----------
    event : int or None
        Number of the first event that differs, or None if the log is right and a table is wrong.
    """

    def __init__(self, message: str, *, event: int | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.event = event


class StoreError(EquipoiseError):
    """The database failed; the call itself may be fine."""


class StoreUnavailable(StoreError):
    """The database cannot be reached or written to; nothing was acknowledged, so a retry is safe."""


class StoreChanged(StoreUnavailable):
    """An opened experiment is no longer in its store, which was replaced, restored or failed over."""


class StoreBusy(StoreUnavailable):
    """Another writer held the lock for longer than the call would wait; nothing was changed."""


class StoreMismatch(StoreError):
    """The database was created by another program or a newer version of this package, or cannot store our data."""


class UpgradeNeeded(StoreError):
    """The database was created by an older version and holds experiments; it is upgraded on request only."""


class MissingExtra(EquipoiseError, ImportError):
    """An optional dependency is not installed."""


def visible(text: str) -> str:
    r"""Escape everything in a text that is not printable, so that a message shows what was got.

    Examples
    --------
    >>> print(visible("né\x1b[31m\tarm"))
    né\x1b[31m\tarm
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def path_text(path: ParameterPath) -> str:
    """Format a path as people write it.

    Examples
    --------
    >>> path_text(("policies", 0, "forcing"))
    'policies[0].forcing'
    """
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


@contextmanager
def within(*path: str | int, names: Mapping[str, str] | None = None) -> Iterator[None]:
    """Prefix the parameter of `InvalidInput` raised inside with `path`, as `InvalidInput.within` does."""
    try:
        yield
    except InvalidInput as error:
        raise error.within(*path, names=names) from None
