"""Every verb as a value: what to send, and how to read what comes back. Nothing here waits for a network."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote, urlencode

import numpy as np

from equipoise import checks
from equipoise.client import answers
from equipoise.errors import EquipoiseError, InvalidInput, NotAllowed, UnknownUnit
from equipoise.experiment import commands
from equipoise.experiment.configuration import checked_arms, checked_configuration
from equipoise.experiment.names import LONGEST_NAME, checked_text, checked_unit
from equipoise.stats import checked_reward

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from equipoise.experiment import (
        Assignment,
        Configuration,
        Event,
        ExperimentSummary,
        History,
        Status,
        ToldReward,
        UnitStatus,
        Verification,
        WhatIf,
    )

Result = TypeVar("Result")

MOST_UNITS = 1_000
MOST_BYTES = 500_000
"""Of one request, so that none keeps others waiting for long or is too large for a proxy."""
PAGE = 1_000
"""Events to ask for at a time."""

_SETTINGS = (
    "policy",
    "seed",
    "control",
    "control_share",
    "warm_up",
    "reward_range",
    "direction",
    "missing",
    "stopping",
    "failure_probability",
    "metadata",
)
"""What of a configuration is the user's choice."""


@dataclass(frozen=True)
class Call(Generic[Result]):
    """A request to a service.

    Attributes
    ----------
    method, path : str
        The path is escaped and may have a query.
    read : callable
        Gives the result from the data of the answer.
    content : bytes or None
        JSON to send.
    slow : bool
        Whether it may take as long as the experiment is large.
    forgives : type or None
        An error in whose place the result is None.
    makes : str or None
        What must not have been there before the first attempt, where the answer cannot tell.
    """

    method: str
    path: str
    read: Callable[[Any], Result]
    content: bytes | None = None
    slow: bool = False
    forgives: type[EquipoiseError] | None = None
    makes: str | None = None


# Experiments


def list_experiments() -> Call[list[ExperimentSummary]]:
    """Ask for all experiments."""
    return Call("GET", "/experiments", answers.summaries)


def open_experiment(name: str) -> Call[None]:
    """Ask whether an experiment is there; a key that may only assign is not told, and finds out when it does."""
    return Call("GET", _path(_named(name)), answers.nothing, forgives=NotAllowed)


def create(
    name: str,
    *,
    arms: Sequence[str],
    floor: float | Sequence[float] | Mapping[str, float],
    control: str | None,
    control_share: float,
    **settings: Any,
) -> Call[None]:
    """Make an experiment.

    All is checked here first, by what the service will check it with. That also draws a seed if none is given, so that
    a repetition after a lost answer is known by it: an experiment that has this seed was made by this call, even if the
    client knows of one attempt only because a proxy made another.
    """
    checked_text("name", name, LONGEST_NAME)
    configuration = checked_configuration(control=control, control_share=control_share, **settings)
    pairs = checked_arms(arms, floor, control, configuration.control_share)
    data = configuration.to_dict()
    body = {"name": name, "arms": [arm for arm, _ in pairs], "floor": [share for _, share in pairs]}
    body |= {key: data[key] for key in _SETTINGS if data[key] is not None}
    is_drawn = settings.get("seed") is None
    return Call("POST", "/experiments", answers.nothing, _json(body), makes=None if is_drawn else name)


# Units


def ask(experiment: str, unit: str, attributes: dict[str, Any] | None) -> Call[Assignment]:
    """Ask for the arm of a unit."""
    entry = _asked(commands.Ask(unit, attributes), plain=False)
    return Call("POST", _path(experiment, "assignments"), answers.assignment, _json(entry))


def ask_many(
    experiment: str, units: Iterable[str | tuple[str, dict[str, Any] | None]] | Mapping[str, dict[str, Any] | None]
) -> list[Call[list[Assignment]]]:
    """Ask for the arms of several units, in groups."""
    several: Iterable[Any] = units.items() if isinstance(units, Mapping) else _several("units", units)
    pairs = [one if type(one) is tuple and len(one) == 2 else (one, None) for one in several]
    entries = [_asked(commands.Ask(*pair), plain=True) for pair in pairs]
    path = _path(experiment, "assignments", "many")
    return [Call("POST", path, answers.assignments, content) for content in _groups("units", entries)]


def tell(experiment: str, unit: str, reward: float) -> Call[ToldReward]:
    """Tell the reward of a unit."""
    path = _path(experiment, "assignments", checked_unit(unit), "reward")
    return Call("PUT", path, answers.told_reward, _json({"reward": _reward(reward)}))


def tell_many(
    experiment: str, rewards: Mapping[str, float] | Iterable[tuple[str, float]]
) -> list[Call[list[ToldReward]]]:
    """Tell the rewards of several units, in groups."""
    pairs: Iterable[Any] = rewards.items() if isinstance(rewards, Mapping) else _several("rewards", rewards)
    try:
        told = [(unit, reward) for unit, reward in pairs]
    except (TypeError, ValueError):
        raise InvalidInput("rewards must be pairs of a unit and its reward") from None
    entries = [{"unit": checked_unit(unit), "reward": _reward(reward)} for unit, reward in told]
    path = _path(experiment, "rewards", "many")
    return [Call("POST", path, answers.told_rewards, content) for content in _groups("rewards", entries)]


def correct(experiment: str, unit: str, reward: float, reason: str) -> Call[ToldReward]:
    """Put another reward in the place of the one told."""
    commands.Correct(unit, reward, reason).check()
    body = {"reward": _reward(reward), "reason": reason}
    return Call("POST", _path(experiment, "assignments", unit, "corrections"), answers.told_reward, _json(body))


def assignment(experiment: str, unit: str) -> Call[Assignment | None]:
    """Ask for the assignment that a unit has; the result is None where it has none."""
    path = _path(experiment, "assignments", checked_unit(unit))
    return Call("GET", path, answers.assignment, forgives=UnknownUnit)


def unit(experiment: str, unit: str) -> Call[UnitStatus | None]:
    """Ask what is known of a unit; the result is None where it was never assigned."""
    path = _path(experiment, "assignments", checked_unit(unit))
    return Call("GET", path, answers.unit_status, forgives=UnknownUnit)


# The experiment


def change(experiment: str, verb: str) -> Call[None]:
    """Pause, resume, stop or settle."""
    return Call("POST", _path(experiment, verb), answers.nothing, slow=verb == "settle")


def finish(experiment: str, anyway: bool) -> Call[None]:
    """Close an experiment."""
    return Call("POST", _path(experiment, "finish"), answers.nothing, _json({"anyway": bool(anyway)}), slow=True)


def change_weight(experiment: str, reward_weight: float) -> Call[None]:
    """Turn the dial."""
    commands.ChangeWeight(reward_weight).check()
    return Call("PUT", _path(experiment, "weight"), answers.nothing, _json({"reward_weight": float(reward_weight)}))


def add_arm(experiment: str, name: str, floor: float) -> Call[None]:
    """Add an arm."""
    commands.AddArm(name, floor).check()
    return Call("POST", _path(experiment, "arms"), answers.nothing, _json({"name": name, "floor": float(floor)}))


def change_arm(experiment: str, name: str, verb: str) -> Call[None]:
    """Pause, resume or retire an arm."""
    return Call("POST", _path(experiment, "arms", checked_text("arm", name, LONGEST_NAME), verb), answers.nothing)


# Reading


def describe(experiment: str) -> Call[dict[str, Any]]:
    """Ask what the experiment is made with."""
    return Call("GET", _path(experiment), answers.description)


def configuration(experiment: str) -> Call[Configuration]:
    """Ask for the settings as they are now."""
    return Call("GET", _path(experiment), answers.configuration)


def status(experiment: str) -> Call[Status]:
    """Ask where the experiment stands."""
    return Call("GET", _path(experiment, "status"), answers.status)


def events_page(experiment: str, after: int, limit: int) -> Call[list[Event]]:
    """Ask for a page of the log."""
    query = {"after": checks.whole_number("after", after, 0), "limit": checks.whole_number("limit", limit, 1)}
    return Call("GET", _path(experiment, "events", **query), answers.events)


def history(experiment: str, points: int) -> Call[History]:
    """Ask how the experiment went."""
    wanted = checks.whole_number("points", points, 1, 100_000)
    return Call("GET", _path(experiment, "history", points=wanted), answers.history, slow=True)


def what_if(experiment: str, reward_weight: float) -> Call[WhatIf]:
    """Ask what another weight would do."""
    commands.ChangeWeight(reward_weight).check()
    return Call("GET", _path(experiment, "what-if", reward_weight=float(reward_weight)), answers.what_if)


def verify(experiment: str) -> Call[Verification]:
    """Have the log replayed."""
    return Call("GET", _path(experiment, "verify"), answers.verification, slow=True)


def rebuild(experiment: str) -> Call[bool]:
    """Have the tables written anew from the log."""
    return Call("POST", _path(experiment, "rebuild"), answers.changed, slow=True)


def export(experiment: str, form: str) -> Call[None]:
    """Ask for the table of units, as a stream."""
    return Call("GET", _path(experiment, "export", format=form), answers.nothing, slow=True)


# How it is written


def _named(name: Any) -> str:
    return checked_text("name", name, LONGEST_NAME)


def _path(*parts: str, **query: Any) -> str:
    r"""Return the path below that of all experiments; nothing in a name can be taken for a part of it.

    Examples
    --------
    >>> _path("50% off?", "assignments", "a/b"), _path("..", "events", after=3)
    ('/experiments/50%25%20off%3F/assignments/a%2Fb', '/experiments/%2E%2E/events?after=3')
    """
    # A name that is only dots would otherwise be resolved as a step up, here or by a proxy.
    escaped = (part.replace(".", "%2E") if part in (".", "..") else quote(part, safe="") for part in parts)
    return "/".join(("/experiments", *escaped)) + (f"?{urlencode(query)}" if query else "")


def _json(data: Any) -> bytes:
    return json.dumps(data, allow_nan=False).encode()


def _asked(request: commands.Ask, *, plain: bool) -> Any:
    """Return a unit to ask for as it is sent; among many it may be just its name."""
    request.check()
    if request.attributes is None:
        return request.unit if plain else {"unit": request.unit}
    return {"unit": request.unit, "attributes": request.attributes}


def _reward(reward: Any) -> float | bool | None:
    """Return a reward as it is sent; what is no number at all is for the service to refuse, in its words."""
    if reward is None or isinstance(reward, (bool, np.bool_)):
        return None if reward is None else bool(reward)
    return checked_reward(reward)


def _several(what: str, values: Any) -> Iterable[Any]:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise InvalidInput(f"{what} must be a list; got {values!r}")
    return values  # type: ignore[no-any-return]


def _groups(what: str, entries: Iterable[Any]) -> Iterator[bytes]:
    """Yield the bodies of requests that hold all entries, in order, each of them as large as one may be."""
    group: list[bytes] = []
    size = 0
    for text in map(_json, entries):
        if group and (len(group) == MOST_UNITS or size + len(text) > MOST_BYTES):
            yield _list_of(what, group)
            group, size = [], 0
        group.append(text)
        size += len(text) + 2
    if group:
        yield _list_of(what, group)


def _list_of(what: str, entries: list[bytes]) -> bytes:
    return b'{"%s": [%s]}' % (what.encode(), b", ".join(entries))
