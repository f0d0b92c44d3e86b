"""Make a new experiment in five steps; the address of each has what is written so far, so that going back works."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from equipoise.console.acts import Input
from equipoise.console.addresses import address
from equipoise.console.drafts import ABOUT, AS_PLANNED, KEPT, Draft
from equipoise.console.form_values import problem_in
from equipoise.console.plan_choice import PlanChoice, choice_of
from equipoise.console.visits import Redirect, Shown, Visit
from equipoise.errors import EquipoiseError, ExperimentExists
from equipoise.experiment.description import LONGEST_QUESTION, LONGEST_REWARD_UNIT
from equipoise.experiment.names import LONGEST_NAME

LONGEST_TEXT = 20_000


@dataclass(frozen=True)
class Price:
    """What a position of the dial brings if the guesses are right."""

    way: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Prices:
    """What the positions of the dial bring, as a table; and what follows, in words."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[Price, ...]
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class StepLink:
    """A step: what it is about, its address with what is written so far, and whether one can go there."""

    number: int
    title: str
    address: str
    is_here: bool
    is_open: bool


@dataclass(frozen=True)
class NewView:
    """A step of making an experiment."""

    heading: str
    steps: tuple[StepLink, ...]
    inputs: tuple[Input, ...]
    hidden: tuple[tuple[str, str], ...]
    to: str
    """Where the form goes."""
    said: tuple[str, ...]
    """What was said in the steps before, in sentences."""
    problem: str | None = None
    prices: Prices | None = None
    checked: Checked | None = None
    plan: str | None = None
    """The plan that it is made from."""
    has_prices: bool = False
    """Whether prices of the dial can be shown here."""


@dataclass(frozen=True)
class Checked:
    """The experiment as it will be made, and what one may regret."""

    warnings: tuple[str, ...]
    elsewhere: tuple[Elsewhere, ...]


class Elsewhere(NamedTuple):
    """How the same is made elsewhere: where, and what one writes there."""

    where: str
    text: str


@dataclass(frozen=True)
class Step:
    """One of the steps: its fields, what reads them, and what they say in words."""

    path: str
    title: str
    heading: str
    fields: Callable[[Mapping[str, str]], tuple[Input, ...]]
    read: Callable[[Draft], object]
    words: Callable[[Draft], str] | None = None


def _about_fields(form: Mapping[str, str]) -> tuple[Input, ...]:
    field = partial(_field, form)
    return (
        field(
            "name", "Name", "How people and programs call it. It cannot change.", is_required=True, longest=LONGEST_NAME
        ),
        field("title", "Title (may be left empty)", "For pages and reports.", longest=LONGEST_NAME),
        field("question", "Question (may be left empty)", "What you want to find out.", longest=LONGEST_QUESTION),
        field(
            "outcome",
            "What do people do whose reward is 1? (may be left empty)",
            "Such as: came to the appointment. Pages then say how many more of 100 came to the appointment.",
            longest=LONGEST_NAME,
        ),
        field("arms", "Arms", "At least two, one on each line.", kind="long", is_required=True, longest=LONGEST_TEXT),
        field(
            "arm_texts",
            "What each arm is (may be left empty)",
            "One line for each arm, in their order.",
            kind="long",
            longest=LONGEST_TEXT,
        ),
        field("control", "Control (may be left empty)", "The arm that others are compared with.", longest=LONGEST_NAME),
        field(
            "control_share",
            "Share kept for the control (may be left empty)",
            "At least this share of people get the control, such as 10%.",
            kind="number",
        ),
        field("owner", "Who is responsible? (may be left empty)", longest=LONGEST_NAME),
    )


def _rewards_fields(form: Mapping[str, str]) -> tuple[Input, ...]:
    field = partial(_field, form)
    return (
        field(
            "rewards",
            "Rewards are",
            kind="choice",
            value="yesno",
            options=(("yesno", "yes or no (1 or 0)"), ("range", "numbers in a range"), ("open", "any numbers")),
        ),
        field("low", "Lowest reward, in a range", kind="number"),
        field("high", "Highest reward, in a range", kind="number"),
        field(
            "reward_unit",
            "Unit of rewards that are numbers (may be left empty)",
            "Such as points or minutes.",
            longest=LONGEST_REWARD_UNIT,
        ),
        field(
            "good",
            "Good rewards are",
            kind="choice",
            value="large",
            options=(("large", "large, such as scores"), ("small", "small, such as days or costs")),
        ),
        field(
            "window",
            "How long is a reward waited for? (may be left empty)",
            "Such as 2 days or 36h. Empty: without limit.",
            longest=100,
        ),
        field(
            "silence",
            "Who has no reward after that time",
            kind="choice",
            value="wait",
            options=(
                ("wait", "is shown as overdue; a late reward counts"),
                ("default", "counts with a default value until a reward comes"),
                ("drop", "is left out"),
            ),
        ),
        field("default_value", "The default value, if there is one", kind="number"),
        field("hold", "Hold all rewards until that time has passed, so that quick answers do not lead", kind="check"),
    )


def _dial_fields(form: Mapping[str, str]) -> tuple[Input, ...]:
    field = partial(_field, form)
    words = {"1": "Learn about the arms, and nothing else", "0.25": "Mostly give people what works"}
    shown = []
    for kept in KEPT:
        price = "" if kept == "1" else f": {1 / float(kept):.2g} times as many people to learn as much"
        shown.append((kept, f"{words.get(kept, f'Keep {float(kept):.0%} of the information')}{price}"))
    kept = "0.7"
    if "plan" in form:
        kept = AS_PLANNED
        shown.insert(0, (AS_PLANNED, f"As planned: {form.get('way', '')}"))
    return (
        field("kept", "The dial", kind="choice", value=kept, options=(*shown, ("own", "Another share, below"))),
        field("kept_own", "Share of the information to keep", "Such as 80%.", kind="number"),
        field("about", "Learn about", kind="choice", value="every-arm", options=tuple(ABOUT.items())),
        field(
            "guesses",
            "What do you guess? (may be left empty)",
            "One line for each arm, in their order. Yes or no: a share such as 30%, or a range that you are 8 in 10 "
            "sure of, such as 40% to 60%. Numbers: mean and spread, such as 12 \N{PLUS-MINUS SIGN} 4. Guesses only "
            "serve to show prices.",
            kind="long",
            longest=LONGEST_TEXT,
        ),
        field("people", "How many people? (for the prices; may be left empty)", "1,000 if it is empty.", kind="number"),
    )


def _stopping_fields(form: Mapping[str, str]) -> tuple[Input, ...]:
    field = partial(_field, form)
    return (
        field("budget", "After how many people? (may be left empty)", kind="number"),
        field(
            "deadline",
            "At the latest on (may be left empty)",
            "Such as 2027-06-30, or 2027-06-30T18:00+02:00.",
            longest=40,
        ),
        field(
            "half_width",
            "When every arm is known to within (may be left empty)",
            "Half of the interval's width, in the unit of rewards: 0.06 or 6%.",
            kind="number",
        ),
        field("decided", "When it is clear which arm is best", kind="check"),
        field("margin", "Or when choosing the best so far costs at most (may be left empty)", kind="number"),
    )


def _field(form: Mapping[str, str], name: str, label: str, hint: str = "", *, value: str = "", **more: object) -> Input:
    if more.get("kind") == "number":
        more = {"longest": 40} | more
    return Input(name, label, form.get(name, value), hint, **more)  # type: ignore[arg-type]


STEPS = (
    Step(
        "new",
        "Question and arms",
        "What is compared?",
        _about_fields,
        lambda draft: (draft.name, draft.arms, draft.description, draft.control),
        lambda draft: draft.sentence,
    ),
    Step(
        "new/rewards",
        "Rewards",
        "What is a reward, and what does silence mean?",
        _rewards_fields,
        lambda draft: (draft.reward_range, draft.missing),
        lambda draft: draft.rewards_words,
    ),
    Step(
        "new/dial",
        "Dial",
        "Learn, or give people what works?",
        _dial_fields,
        lambda draft: (draft.dial, draft.forecast),
        lambda draft: draft.dial_words,
    ),
    Step(
        "new/stopping",
        "Stopping",
        "When is it time to stop?",
        _stopping_fields,
        lambda draft: (draft.stopping, draft.rules, draft.forecast),
        lambda draft: draft.stopping_words,
    ),
    Step("new/check", "Check", "Is this what you want?", lambda _: (), lambda draft: draft.settings),
)
_FIELDS = tuple(tuple(field.name for field in step.fields({})) for step in STEPS)
_ALL = ("plan", "way", *(name for names in _FIELDS for name in names))


def show(visit: Visit) -> Shown:
    """Show a step, or an earlier one that is not right yet."""
    here = next(place for place, step in enumerate(STEPS) if step.path == visit.path)
    form = {name: value for name, value in visit.query.items() if name in _ALL}
    choice = choice_of(visit.plans, form) if "plan" in form else None
    if choice is not None and "arms" not in form:
        form = choice.fields | form
    return step_view(form, here, base=visit.address, choice=choice)


def act(visit: Visit) -> Redirect | Shown:
    """Create the experiment, and go to it."""
    form = {name: value for name, value in visit.form.items() if name in _ALL}
    choice = choice_of(visit.plans, form) if "plan" in form else None
    draft = Draft(form, choice)
    try:
        made = visit.create(draft.name, **draft.settings, paused=visit.form.get("start") == "paused")
    except ExperimentExists:
        shown = step_view(form, 0, base=visit.address, choice=choice)
        problem = f"There is an experiment {draft.name!r} already: choose another name."
        return replace(shown, view=replace(shown.view, problem=problem), status=422)
    except EquipoiseError as error:
        shown = step_view(form, len(STEPS) - 1, base=visit.address, choice=choice)
        return replace(shown, view=replace(shown.view, problem=problem_in(error)), status=422)
    return Redirect(address("e/{name}", name=made.name))


def step_view(form: Mapping[str, str], here: int, *, base: str, choice: PlanChoice | None = None) -> Shown:
    """Show a step with what is written so far; if a step before it is not right, show that with what is wrong."""
    draft = Draft(form, choice)
    said: list[str] = []
    for place, step in enumerate(STEPS[: here + 1] if here == len(STEPS) - 1 else STEPS[:here]):
        try:
            step.read(draft)
            if step.words is not None and place < here:
                said.append(step.words(draft))
        except EquipoiseError as error:
            if place == len(STEPS) - 1:  # all fields are right, but not together
                place = 0
            return _shown(draft, place, tuple(said), base, problem_in(error))
    return _shown(draft, here, tuple(said), base, None)


def _shown(draft: Draft, here: int, said: tuple[str, ...], base: str, problem: str | None) -> Shown:
    step, form = STEPS[here], draft.form
    links = tuple(
        StepLink(number + 1, one.title, _with(one.path, form), number == here, number <= here)
        for number, one in enumerate(STEPS)
    )
    is_last = here == len(STEPS) - 1
    hidden = tuple((name, form[name]) for name in _ALL if name in form and name not in _FIELDS[here])
    view = NewView(
        heading=step.heading,
        steps=links,
        inputs=step.fields(form),
        hidden=hidden,
        to=STEPS[here].path if is_last else STEPS[here + 1].path,
        said=said,
        problem=problem,
        prices=prices_of(draft) if step.path in ("new/dial", "new/stopping") and problem is None else None,
        checked=Checked(tuple(draft.warnings), _elsewhere(draft, base)) if is_last else None,
        plan=form.get("plan"),
        has_prices=step.path == "new/dial",
    )
    return Shown("new.html", view, f"New experiment: {step.title.lower()}", 200 if problem is None else 422)


def _elsewhere(draft: Draft, base: str) -> tuple[Elsewhere, ...]:
    if draft.choice is not None:
        name, way = shlex.quote(draft.name), shlex.quote(draft.choice.way.label)
        command = f"equipoise create {name} --plan plan.toml --way {way}"
        return (Elsewhere(f"As planned, from the file plan.toml: {command}", draft.choice.plan.to_toml()),)
    return (
        Elsewhere("As a file: equipoise create --file experiment.toml", draft.toml),
        Elsewhere("As a request with curl", draft.curl(base)),
        Elsewhere("In Python", draft.python(base)),
    )


def _with(path: str, form: Mapping[str, str]) -> str:
    query = "&".join(address(f"{name}={{value}}", value=value) for name, value in form.items())
    return f"{path}?{query}" if query else path


def prices_of(draft: Draft) -> Prices | None:
    """Return what the positions of the dial bring, if anything is guessed."""
    forecast = draft.forecast
    if forecast is None:
        return None
    from equipoise.forecast_contents import price_list

    table = price_list(forecast)
    rows = tuple(Price(row[0].text, tuple(cell.text for cell in row[1:])) for row in table.rows)
    sentences = tuple(one.text for one in forecast.recommendation())
    return Prices(table.caption, table.columns, rows, sentences)
