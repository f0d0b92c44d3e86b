"""Show people: find one, those who wait, and what is logged of one; record, correct and withdraw with confirmation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from equipoise.console.acts import ActView, Input, Sentence, quoted, reason_input
from equipoise.console.addresses import address
from equipoise.console.form_values import number_in, problem_in, text_in
from equipoise.console.visits import Redirect, Shown, Visit
from equipoise.errors import EquipoiseError, InvalidInput, UnknownUnit
from equipoise.experiment import Event, UnitStatus
from equipoise.experiment.names import LONGEST_UNIT

LISTED = 50
PATH, PERSON = "e/{name}/people", "e/{name}/people/{unit}"
STATES = {
    "waiting": "waiting for a reward",
    "held": "reward held until the window has passed",
    "counted": "reward counted",
    "overdue": "no reward past the window",
    "defaulted": "counted with the default",
    "dropped": "left out: no reward in time",
    "withdrawn": "withdrawn",
}
"""What the states of a person mean."""
LISTS = ("waiting", "overdue", "held")
"""The states that the page lists; who has which reward is for the export."""


@dataclass(frozen=True)
class PersonLine:
    """A person in a list."""

    unit: str
    address: str
    arm: str
    at: datetime
    state: str
    due_at: datetime | None
    """When the window passes or passed, while there is no reward in the estimates."""


@dataclass(frozen=True)
class PeopleList:
    """A list that one can go to: its state, how many are in it, and whether it is shown."""

    state: str
    words: str
    number: int
    address: str
    is_here: bool


@dataclass(frozen=True)
class PeopleView:
    """A list of people, or those whose names begin with what was looked for."""

    find: str
    people: tuple[PersonLine, ...]
    lists: tuple[PeopleList, ...]
    state: str | None
    after: str | None
    more: str | None
    """Address of the next page."""
    has_window: bool
    """Whether rewards are waited for during a window only."""
    longest: int = LONGEST_UNIT

    @property
    def window_words(self) -> str:
        """The head of the column with the ends of windows."""
        return "window passed" if self.state == "overdue" else "window passes"


@dataclass(frozen=True)
class EventLine:
    """An event of a person in words."""

    number: int
    at: datetime
    words: str
    who: str | None
    reason: str | None


@dataclass(frozen=True)
class PersonView:
    """All that is known of a person."""

    person: UnitStatus
    words: str
    due_at: datetime | None
    events: tuple[EventLine, ...]
    tells: bool
    corrects: bool
    withdraws: bool
    range_hint: str
    done: str | None
    people: str
    """Address of the list of people."""


def show(visit: Visit) -> Shown:
    """Show a list of people, or whoever was looked for."""
    find, status = visit.query.get("find", "").strip()[:LONGEST_UNIT], visit.status
    numbers = {
        "waiting": status.n_pending - status.n_held - status.n_overdue,
        "overdue": status.n_overdue,
        "held": status.n_held,
    }
    asked = visit.query.get("state")
    state = None if find else asked if asked in LISTS else "overdue" if numbers["overdue"] else "waiting"
    after = visit.query.get("after") or None
    page = visit.the.units(state, prefix=find or None, limit=LISTED, after=after)
    here = address(PATH, name=visit.the.name)
    window = window_of(visit)
    chosen = {"find": find} if find else {"state": str(state)}
    more = None if page.next is None else f"{here}?{query(chosen | {'after': page.next})}"
    lists = tuple(
        PeopleList(one, STATES[one], numbers[one], f"{here}?state={one}", one == state)
        for one in LISTS
        if numbers[one] or one == "waiting" or one == state
    )
    people = tuple(_line(one, visit.the.name, window) for one in page.units)
    title = f"People who begin with {find}" if find else f"People: {STATES[str(state)]}"
    return Shown("people.html", PeopleView(find, people, lists, state, after, more, window is not None), title)


def show_person(visit: Visit) -> Shown:
    """Show one person."""
    return _person(visit)


def act_on_person(visit: Visit) -> Redirect | Shown:
    """Ask before a reward is recorded or corrected, or the person withdrawn; do it when that was confirmed."""
    unit, form = visit.names["unit"], visit.form
    act = _ACTS.get(form.get("do", ""))
    if act is None:
        raise InvalidInput("this form asks for nothing that can be done")
    person = visit.the.unit(unit)
    if person is None:
        raise UnknownUnit(f"{unit!r} was never assigned in this experiment")
    try:
        view = act(visit, person)
        if form.get("was", "") != _mark(person) and form.get("sure"):
            problem = f"Meanwhile somebody else has recorded {reward_words(person.reward)}. Look again, then decide."
            return replace(view, problem=problem).shown(409)
        if not form.get("sure"):
            return view.shown()
        done = _carry_out(visit, unit)
    except EquipoiseError as error:
        return _asked_again(visit, person, problem_in(error)).shown(422)
    return Redirect(f"{address(PERSON, name=visit.the.name, unit=unit)}?done={done}")


def _carry_out(visit: Visit, unit: str) -> str:
    form = visit.form
    if form["do"] == "withdraw":
        visit.the.withdraw(unit, text_in(form, "reason"))
        return "withdrawn"
    reward = number_in(form, "reward", "the reward")
    if form["do"] == "tell":
        visit.the.tell(unit, reward)
        return "recorded"
    visit.the.correct(unit, reward, text_in(form, "reason"))
    return "corrected"


def _tell_view(visit: Visit, person: UnitStatus) -> ActView:
    reward = visit.the.configuration.checked_reward(number_in(visit.form, "reward", "the reward"))
    late = {"overdue": "The window has passed; the reward counts all the same.", "waiting": ""}.get(
        person.state, "The window has passed; the log says that the reward came late."
    )
    sentences = [
        f"{quoted(person.unit)} has {quoted(person.arm)}. The reward {reward_words(reward)} is recorded for good.",
        "Only an admin can correct it afterwards, with a reason.",
        late,
    ]
    return _view(visit, person, f"Record {reward_words(reward)} for {quoted(person.unit)}?", sentences, "Record it")


def _correct_view(visit: Visit, person: UnitStatus) -> ActView:
    reward = visit.the.configuration.checked_reward(number_in(visit.form, "reward", "the reward"))
    _require_reason(visit)
    sentences = [
        f"The reward of {quoted(person.unit)}, who has {quoted(person.arm)}, is {reward_words(person.reward)} now. "
        f"From then on {reward_words(reward)} counts.",
        f"The log keeps both, and why: {visit.form['reason'].strip()}",
    ]
    return _view(visit, person, f"Correct the reward of {quoted(person.unit)}?", sentences, "Correct it")


def _withdraw_view(visit: Visit, person: UnitStatus) -> ActView:
    _require_reason(visit)
    reward = "" if person.reward is None else f" The reward {reward_words(person.reward)} leaves the estimates."
    sentences = [
        f"{quoted(person.unit)} leaves the experiment for good.{reward} No other reward is accepted.",
        f"The log keeps that, and why: {visit.form['reason'].strip()}",
        "Their name stays in the log. Who runs the service can erase it: equipoise withdraw --erase",
    ]
    view = _view(visit, person, f"Withdraw {quoted(person.unit)}?", sentences, "Withdraw for good")
    return replace(view, is_danger=True)


_ACTS = {"tell": _tell_view, "correct": _correct_view, "withdraw": _withdraw_view}


def _require_reason(visit: Visit) -> None:
    if not text_in(visit.form, "reason"):
        raise InvalidInput("the reason is missing: it goes into the log")


def _view(visit: Visit, person: UnitStatus, heading: str, sentences: list[str], button: str) -> ActView:
    kept = [(name, visit.form[name]) for name in ("do", "reward", "reason") if name in visit.form]
    return ActView(
        heading,
        tuple(Sentence(text) for text in sentences if text),
        button,
        hidden=(*kept, ("was", _mark(person)), ("sure", "yes")),
        back=address(PERSON, name=visit.the.name, unit=person.unit),
    )


def _mark(person: UnitStatus) -> str:
    """Return a mark of the present reward, so that a form drawn before another correction is noticed."""
    return "" if person.reward is None else repr(person.reward)


def _asked_again(visit: Visit, person: UnitStatus, problem: str) -> ActView:
    """Return the form again, with what was wrong in it."""
    do, form = visit.form["do"], visit.form
    inputs = [] if do == "withdraw" else [reward_input(visit, form.get("reward", ""))]
    if do != "tell":
        inputs.append(reason_input(form.get("reason", ""), is_required=True))
    return ActView(
        f"{_HEADINGS[do]} {quoted(person.unit)}",
        (),
        "Go on",
        tuple(inputs),
        (("do", do),),
        back=address(PERSON, name=visit.the.name, unit=person.unit),
        problem=problem,
    )


_HEADINGS = {"tell": "Record a reward for", "correct": "Correct the reward of", "withdraw": "Withdraw"}


def reward_input(visit: Visit, value: str = "") -> Input:
    """Return the field for a reward."""
    return Input("reward", "Reward", value, range_hint(visit), kind="number", is_required=True, longest=40)


def range_hint(visit: Visit) -> str:
    """Say which rewards are allowed."""
    low, high = visit.description["configuration"]["reward_range"] or (None, None)
    if low is not None and high is not None:
        return f"A number between {low:g} and {high:g}."
    if low is not None:
        return f"A number, at least {low:g}."
    return "A number." if high is None else f"A number, at most {high:g}."


def window_of(visit: Visit) -> timedelta | None:
    """Return how long a reward is waited for, if a window was declared."""
    seconds = visit.description["configuration"]["missing"].get("window_seconds")
    return None if seconds is None else timedelta(seconds=seconds)


def _line(one: UnitStatus, name: str, window: timedelta | None) -> PersonLine:
    there = address(PERSON, name=name, unit=one.unit)
    return PersonLine(one.unit, there, one.arm, one.at, one.state, _due(one, window))


def _due(one: UnitStatus, window: timedelta | None) -> datetime | None:
    return one.at + window if window is not None and one.state in LISTS else None


def _person(visit: Visit) -> Shown:
    unit = visit.names["unit"]
    person = visit.the.unit(unit)
    if person is None:
        raise UnknownUnit(f"{unit!r} was never assigned in this experiment")
    may = visit.viewer.changes and visit.description["state"] != "finished" and person.state != "withdrawn"
    view = PersonView(
        person=person,
        words=STATES[person.state],
        due_at=_due(person, window_of(visit)),
        events=tuple(event_line(one) for one in visit.the.unit_events(unit)),
        tells=may and person.reward is None,
        corrects=may and person.reward is not None,
        withdraws=may,
        range_hint=range_hint(visit),
        done=_DONE.get(visit.query.get("done", "")),
        people=address(PATH, name=visit.the.name),
    )
    return Shown("person.html", view, unit)


_DONE = {"recorded": "The reward is recorded.", "corrected": "The reward is corrected.", "withdrawn": "Withdrawn."}


def event_line(event: Event) -> EventLine:
    """Return an event of a person in words."""
    return EventLine(event.number, event.at, _words(event), event.who, event.details.get("reason"))


def _words(event: Event) -> str:
    reward = reward_words(event.reward)
    if event.kind == "assigned":
        how = "by warm-up or forcing" if event.forced else "by the estimates"
        return f"got {quoted(event.arm or '')} with probability {event.probability:.4g}, chosen {how}"
    if event.kind == "rewarded":
        return f"reward {reward} recorded{', and counted' if event.counted else ', not counted'}"
    if event.kind == "counted":
        return f"the window passed, and the reward {reward} counts"
    if event.kind == "expired":
        return "the window passed without a reward" + (f"; {reward} counts instead" if event.counted else "")
    if event.kind == "corrected":
        before = "" if event.replaced is None else f" from {reward_words(event.replaced)}"
        return f"reward corrected{before} to {reward}"
    return event.kind


def reward_words(reward: float | None) -> str:
    """Return a reward as people write it.

    Examples
    --------
    >>> reward_words(1.0), reward_words(0.1 + 0.2), reward_words(None)
    ('1', '0.30000000000000004', 'none')
    """
    if reward is None:
        return "none"
    text = repr(float(reward)).removesuffix(".0")
    return text.replace("-", "\N{MINUS SIGN}", 1) if text.startswith("-") else text


def query(values: dict[str, str]) -> str:
    """Return a query, percent-encoded."""
    return address("&".join(f"{name}={{{name}}}" for name in values), **values)
