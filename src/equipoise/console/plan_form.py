"""Write a plan in a form: the answer by formula at once, everything in the address, and a simulation if wanted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from equipoise.console.acts import Input
from equipoise.console.addresses import address
from equipoise.console.drafts import ABOUT
from equipoise.console.form_values import problem_in
from equipoise.console.plan_draft import MOST_ARMS, ArmRow, PlanDraft, is_field
from equipoise.console.plan_fields import fields_of, repr_of
from equipoise.console.visits import Redirect, Shown, Visit
from equipoise.errors import EquipoiseError, InvalidInput
from equipoise.experiment.names import LONGEST_NAME
from equipoise.planner.plan import Plan

if TYPE_CHECKING:
    from equipoise.forecast_contents import ForecastContents

PATH = "plans/new"
FEWEST_ROWS = 3
MOST_READ = 20_000
"""People of an experiment that a plan is made from on a page: their rewards are read one by one."""
EXAMPLE = {
    "title": "Reminders for the flu shot",
    "outcome": "came to the appointment",
    "arm1": "plain",
    "guess1": "30",
    "at_least1": "25",
    "at_most1": "35",
    "arm2": "prize",
    "guess2": "50",
    "at_least2": "40",
    "at_most2": "60",
    "control": "plain",
    "per_day": "96",
    "days": "90",
    "delay": "8h",
    "missing": "3",
    "window": "3 days",
    "silence": "drop",
    "half_width": "0.06",
}


@dataclass(frozen=True)
class FormPart:
    """Fields that belong together; they are folded unless something is written in them."""

    heading: str
    inputs: tuple[Input, ...]
    is_folded: bool = False


@dataclass(frozen=True)
class Answer:
    """What a plan will bring, by formula; and what is to be sent to have it simulated."""

    contents: ForecastContents
    hidden: tuple[tuple[str, str], ...]
    doubts: tuple[str, ...]
    known: str | None
    """The id of this plan, if it is simulated already."""


@dataclass(frozen=True)
class PlanFormView:
    """A plan as it is written so far, and the answer."""

    about: FormPart
    rows: tuple[ArmRow, ...]
    is_yes_no: bool
    parts: tuple[FormPart, ...]
    hidden: tuple[tuple[str, str], ...]
    answer: Answer | None
    problem: str | None
    example: str
    """Query of an example."""
    most_people_read: int = MOST_READ


def show(visit: Visit) -> Shown:
    """Show the form with what the address says, or with what an experiment measured so far.

    What is not right yet is no error: somebody is writing it.
    """
    form = _written(visit.query)
    if "from" in visit.query and not form:
        try:
            form = fields_from(visit, visit.query["from"])
        except EquipoiseError as error:
            return _shown(visit, {}, problem_in(error))
    return _shown(visit, form, None)


def act(visit: Visit) -> Redirect | Shown:
    """Have the plan simulated, and go to its page; the address keeps what was written."""
    form = _written(visit.form)
    try:
        found = visit.plans.submit(PlanDraft(form).plan)
    except InvalidInput as error:
        return replace(_shown(visit, form, problem_in(error)), status=422)
    return Redirect(f"{address('plans/{id}', id=found['id'])}?{urlencode(form)}")


def fields_from(visit: Visit, name: str) -> dict[str, str]:
    """Return the fields of a plan for the people still to come, with what an experiment measured as guesses."""
    known = {one.name: one for one in visit.listed()}
    if name not in known:
        raise InvalidInput(f"there is no experiment {name!r}")
    if known[name].n_assigned > MOST_READ:
        raise InvalidInput(
            f"{name!r} has {known[name].n_assigned:,} people; a page plans from at most {MOST_READ:,}. "
            f"equipoise plan --from-experiment {name} has no limit"
        )
    fields = fields_of(Plan.from_experiment(visit.open(name)))
    return {field: _rounded(field, text) for field, text in fields.items()}


def _rounded(field: str, text: str) -> str:
    """Return what was measured with four digits, as a guess deserves no more."""
    if field in ("delay", "nine_of_ten"):
        return re.sub(r"^(\d+(?:\.\d+)?) seconds?$", lambda found: _duration(float(found[1])), text.replace(",", ""))
    if re.fullmatch(r"(guess|at_least|at_most|spread)\d+|per_day(_low|_high)?|missing", field) is None:
        return text
    return re.sub(r"\d+\.\d+", lambda found: repr_of(float(f"{float(found[0]):.4g}")), text)


def _duration(seconds: float) -> str:
    for unit, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.2g} {unit}"
    return f"{seconds:.2g} seconds"


def _written(fields: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of a plan in which something is written."""
    return {name: value for name, value in fields.items() if is_field(name) and value.strip()}


def _shown(visit: Visit, form: Mapping[str, str], problem: str | None) -> Shown:
    draft, answer = PlanDraft(form), None
    if problem is None and not draft.is_empty:
        try:
            answer = _answer(visit, draft)
        except InvalidInput as error:
            problem = problem_in(error)
    rows = [*draft.rows, *(FEWEST_ROWS * [ArmRow()])][: max(FEWEST_ROWS, min(len(draft.rows) + 1, MOST_ARMS))]
    about, *parts = _parts(form)
    view = PlanFormView(
        about=about,
        rows=tuple(rows),
        is_yes_no=form.get("rewards", "yesno") == "yesno",
        parts=tuple(parts),
        hidden=(("now", form["now"]),) if "now" in form else (),
        answer=answer,
        problem=problem,
        example=urlencode(EXAMPLE),
    )
    said = "" if answer is None or not answer.contents.paragraphs else answer.contents.paragraphs[0][0]
    return Shown("plan-form.html", view, said or "Plan an experiment")


def _answer(visit: Visit, draft: PlanDraft) -> Answer:
    from equipoise.forecast_contents import contents_of

    plan = draft.plan
    known = visit.plans.find(plan.digest)
    return Answer(
        contents=contents_of(plan.formulas()),
        hidden=tuple(draft.form.items()),
        doubts=tuple(draft.doubts),
        known=None if known is None or known["state"] in ("cancelled", "failed") else plan.digest,
    )


def _parts(form: Mapping[str, str]) -> list[FormPart]:
    """Return the fields of the form besides the arms, with what is written in them."""

    def text(name: str, label: str, hint: str = "", longest: int = 100) -> Input:
        return Input(name, label, form.get(name, ""), hint, longest=longest)

    def number(name: str, label: str, hint: str = "") -> Input:
        return Input(name, label, form.get(name, ""), hint, kind="number", longest=40)

    def choice(name: str, label: str, *options: tuple[str, str]) -> Input:
        return Input(name, label, form.get(name, options[0][0]), kind="choice", options=options)

    def check(name: str, label: str) -> Input:
        return Input(name, label, form.get(name, ""), kind="check")

    def part(heading: str, *inputs: Input, folds: bool = False) -> FormPart:
        is_written = any(one.value and one.value != (one.options or (("", ""),))[0][0] for one in inputs)
        return FormPart(heading, inputs, folds and not is_written)

    return [
        part(
            "What is compared?",
            text("title", "What is it about? (may be left empty)", longest=LONGEST_NAME),
            text("outcome", "What is a reward? (may be left empty)", "Such as: came to the appointment.", LONGEST_NAME),
            choice(
                "rewards",
                "Rewards are",
                ("yesno", "yes or no"),
                ("range", "numbers in a range"),
                ("open", "any numbers"),
            ),
        ),
        part(
            "About the arms",
            text("control", "Control (may be left empty)", "The arm that others are compared with.", LONGEST_NAME),
            number("low", "Lowest reward, in a range"),
            number("high", "Highest reward, in a range"),
            choice(
                "good",
                "Good rewards are",
                ("large", "large, such as scores"),
                ("small", "small, such as days or costs"),
            ),
            folds=True,
        ),
        part(
            "Who comes?",
            number("per_day", "People a day"),
            number("per_day_low", "At least"),
            number("per_day_high", "At most"),
            number("days", "For how many days?", "Empty: until the goal is met, or a date below."),
        ),
        part(
            "Dates and limits",
            text("start", "First day", "Such as 2027-03-01."),
            text("until", "Last day", "Such as 2027-06-30."),
            number("people", "At most how many people?", "Alone, without people a day, it is all that a plan needs."),
            folds=True,
        ),
        part(
            "When is a reward known?",
            text("delay", "How long until half of the rewards are known?", "Such as 8h or 2 days. Empty: at once."),
            text("nine_of_ten", "And until nine of ten are?", "Empty: all take the same time."),
            text("missing", "How many of 100 never come?", "Such as 5, or 3 to 8."),
        ),
        part(
            "Missing rewards and lots",
            text("window", "How long is a reward waited for?", "Such as 2 days. Empty: without limit."),
            choice(
                "silence",
                "Who has no reward after that time",
                ("wait", "is shown as overdue; a late reward counts"),
                ("default", "counts with a default value until a reward comes"),
                ("drop", "is left out"),
            ),
            number("default_value", "The default value, if there is one"),
            check("hold", "Hold all rewards until that time has passed"),
            text(
                "batches", "Do results come in lots?", "Such as every 50 people, or daily at 18:00. Empty: one by one."
            ),
            folds=True,
        ),
        part(
            "What do you want to know?",
            number("half_width", "How exactly do you want to know each arm?", "To within this: 0.06, or 6%."),
            check("decided", "Which arm is best"),
            number("margin", "Or an arm that is worse by at most (may be left empty)"),
        ),
        part(
            "Which ways to compare?",
            text(
                "ways",
                "Shares of the information to keep",
                "Empty: 1, 0.9, 0.7, 0.5, 0.25. Equal shares are always there.",
            ),
            choice("about", "Learn about", *ABOUT.items()),
            number("control_share", "Share kept for the control", "Such as 10%."),
            number("floor", "Share kept for every arm", "Such as 2%."),
            text("by", "How sure do you want to be that the goal is met?", "Empty: 80%."),
            folds=True,
        ),
    ]
