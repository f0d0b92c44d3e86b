"""Show the desk, where somebody assigns people one by one and records their rewards; it shows no results.

What was done lately stands in the page's own form and nowhere else: other people at other desks do not see it, it is
gone when the page is closed, and no id of a person gets into an address. So forms are answered with the page itself.
Sending one again changes nothing, as everything done here is idempotent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from equipoise.console.acts import quoted
from equipoise.console.form_values import number_in, problem_in, text_in
from equipoise.console.people_page import range_hint, reward_words
from equipoise.console.visits import Shown, Visit
from equipoise.errors import EquipoiseError, InvalidInput, UnknownUnit
from equipoise.experiment.names import LONGEST_UNIT

PATH = "e/{name}/desk"
MOST_RECENT = 10


@dataclass(frozen=True)
class Recent:
    """A person who was dealt with lately."""

    unit: str
    arm: str
    at: datetime
    is_rewarded: bool


@dataclass(frozen=True)
class DeskView:
    """The desk.

    Attributes
    ----------
    unit, arm, since, is_new : str, str, datetime, bool, or None
        Who was given an arm just now, which, since when, and whether just now.
    recent : tuple of Recent
        Who was dealt with in this session, the last first.
    n_given, n_told : int
        People given an arm, and rewards recorded, in this session.
    asked : tuple of (str, str, str), or None
        A reward to confirm: the person, the reward as it was written and in plain digits.
    arm_asked : str or None
        The arm of that person.
    said, problem : str or None
        What was done, and what was wrong.
    state : str
        Of the experiment.
    """

    state: str
    range_hint: str
    unit: str | None = None
    arm: str | None = None
    since: datetime | None = None
    is_new: bool = False
    recent: tuple[Recent, ...] = ()
    n_given: int = 0
    n_told: int = 0
    asked: tuple[str, str, str] | None = None
    arm_asked: str | None = None
    said: str | None = None
    problem: str | None = None
    given_unit: str = ""
    """What stood in the field of the person to assign, if that did not work."""
    told_unit: str = ""
    told_reward: str = ""
    longest: int = LONGEST_UNIT


def show(visit: Visit) -> Shown:
    """Show an empty desk."""
    return _shown(DeskView(visit.description["state"], range_hint(visit)))


def act(visit: Visit) -> Shown:
    """Assign a person, or ask whether a reward is right, or record it; keep what the form says of this session."""
    view = _kept(visit)
    do = _ACTS.get(visit.form.get("do", ""))
    if do is None:
        raise InvalidInput("this form asks for nothing that can be done")
    try:
        return _shown(do(visit, view))
    except EquipoiseError as error:
        form = visit.form
        is_giving = form["do"] == "give"
        view = replace(
            view,
            problem=problem_in(error),
            given_unit=form.get("unit", "") if is_giving else "",
            told_unit="" if is_giving else form.get("unit", ""),
            told_reward="" if is_giving else form.get("reward", ""),
        )
        return _shown(view, 422)


def _give(visit: Visit, view: DeskView) -> DeskView:
    unit = text_in(visit.form, "unit")
    if not unit:
        raise InvalidInput("the person's id is missing")
    if visit.the.assignment(unit) is None:
        visit.spend("units", 1)
    found = visit.the.ask(unit)
    line = Recent(found.unit, found.arm, found.at, _is_rewarded(visit, found.unit))
    recent = _with(view.recent, line)
    n_given = view.n_given + found.new
    return replace(
        view, unit=found.unit, arm=found.arm, since=found.at, is_new=found.new, recent=recent, n_given=n_given
    )


def _ask_about(visit: Visit, view: DeskView) -> DeskView:
    unit, reward, arm = _reward_of(visit)
    return replace(view, asked=(unit, visit.form["reward"], reward_words(reward)), arm_asked=arm)


def _record(visit: Visit, view: DeskView) -> DeskView:
    unit, reward, _ = _reward_of(visit)
    told = visit.the.tell(unit, reward)
    found = visit.the.assignment(unit)
    assert found is not None  # noqa: S101
    said = "is recorded" if told.new else "was recorded before; nothing changed"
    recent = _with(view.recent, Recent(unit, told.arm, found.at, True))
    return replace(
        view,
        said=f"The reward {reward_words(told.reward)} of {quoted(unit)} {said}.",
        recent=recent,
        n_told=view.n_told + told.new,
    )


_ACTS: dict[str, Callable[[Visit, DeskView], DeskView]] = {"give": _give, "tell": _ask_about, "record": _record}


def _reward_of(visit: Visit) -> tuple[str, float, str]:
    """Return who a reward is for, the reward, and their arm; raise if that cannot be."""
    unit = text_in(visit.form, "unit")
    if not unit:
        raise InvalidInput("the person's id is missing")
    found = visit.the.unit(unit)
    if found is None:
        raise UnknownUnit(f"{unit!r} has no arm in this experiment: check the spelling")
    reward = visit.the.configuration.checked_reward(number_in(visit.form, "reward", "the reward"))
    if found.state == "withdrawn":
        raise InvalidInput(f"{unit!r} was withdrawn from the experiment, and has no reward")
    if found.reward is not None and found.reward != reward:
        raise InvalidInput(
            f"the reward of {unit!r} was recorded before and is {reward_words(found.reward)}; an admin can correct it"
        )
    return unit, reward, found.arm


def _kept(visit: Visit) -> DeskView:
    """Return the desk as the form says it was: who was dealt with in this session."""
    units = [value for name, value in visit.fields if name == "seen"][:MOST_RECENT]
    recent = []
    for unit in units:
        found = visit.the.unit(unit) if 0 < len(unit) <= LONGEST_UNIT else None
        if found is not None:
            recent.append(Recent(found.unit, found.arm, found.at, found.reward is not None))
    counts = [int(text) if (text := visit.form.get(name, "")).isdecimal() and len(text) < 9 else 0 for name in _COUNTS]
    base = DeskView(visit.description["state"], range_hint(visit))
    return replace(base, recent=tuple(recent), n_given=counts[0], n_told=counts[1])


_COUNTS = ("n_given", "n_told")


def _with(recent: tuple[Recent, ...], one: Recent) -> tuple[Recent, ...]:
    return (one, *(other for other in recent if other.unit != one.unit))[:MOST_RECENT]


def _is_rewarded(visit: Visit, unit: str) -> bool:
    found = visit.the.unit(unit)
    return found is not None and found.reward is not None


def _shown(view: DeskView, status: int = 200) -> Shown:
    return Shown("desk.html", view, "Desk", status)
