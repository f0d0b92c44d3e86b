"""Ask before an experiment is changed: each act has a page that says what will happen, in numbers."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from equipoise.console.acts import ActView, Input, Sentence, quoted, reason_input
from equipoise.console.addresses import address
from equipoise.console.experiment_settings import LABELS
from equipoise.console.experiment_settings import PATH as SETTINGS
from equipoise.console.form_values import number_in, optional_number, optional_text, problem_in, text_in
from equipoise.console.help_page import counted
from equipoise.console.visits import Redirect, Shown, Visit
from equipoise.errors import EquipoiseError, InvalidInput
from equipoise.experiment import ArmStatus, Status
from equipoise.experiment.description import LONGEST_OF_ARMS, LONGEST_QUESTION, LONGEST_REWARD_UNIT, TEXTS
from equipoise.experiment.names import LONGEST_NAME

PATH = f"{SETTINGS}/{{act}}"
MOST_DESCRIBED = 50
"""Arms that can be described on a page."""


@dataclass(frozen=True)
class Act:
    """Something that can be done with an experiment: the page that asks, and what does it."""

    view: Callable[[Visit], ActView]
    do: Callable[[Visit, str | None], None]
    is_typed: bool = False
    """Whether a name must be typed: it cannot be undone."""
    has_reason: bool = True


def show(visit: Visit) -> Shown:
    """Show what will happen."""
    act = _act(visit)
    return _asking(visit, act).shown()


def act(visit: Visit) -> Redirect | Shown:
    """Do it, and go back to the settings; say what is wrong otherwise."""
    chosen = _act(visit)
    asked = _asking(visit, chosen)
    try:
        if asked.typed is not None and visit.form.get("typed", "").strip() != asked.typed:
            raise InvalidInput(f"to go on, type {asked.typed} as it is written here")
        chosen.do(visit, optional_text(visit.form, "reason"))
    except EquipoiseError as error:
        return replace(asked, problem=problem_in(error)).shown(422)
    if visit.names["act"] == "rehearse":
        return Redirect(address("e/{name}", name=text_in(visit.form, "new_name")))
    return Redirect(f"{address(SETTINGS, name=visit.the.name)}?done={visit.names['act']}")


def _act(visit: Visit) -> Act:
    found = ACTS.get(visit.names["act"])
    if found is None:
        raise InvalidInput("there is no such act", hint="the settings of the experiment have all")
    return found


def _asking(visit: Visit, act: Act) -> ActView:
    view = act.view(visit)
    if act.has_reason:
        view = replace(view, inputs=(*view.inputs, reason_input(visit.form.get("reason", ""))))
    if act.is_typed and view.typed is None:
        view = replace(view, typed=visit.the.name)
    return replace(view, back=address(SETTINGS, name=visit.the.name))


# What will happen: sentences from the status, without HTTP


def people_words(status: Status) -> Sentence:
    """Say that everybody keeps their arm."""
    if not status.n_assigned:
        return Sentence("Nobody has an arm yet.")
    verb = "keeps" if status.n_assigned == 1 else "keep"
    return Sentence(f"{counted(status.n_assigned, 'person', 'people')} {verb} their arm.")


def rewards_words(status: Status) -> tuple[Sentence, ...]:
    """Say how many rewards are still to come, and until when."""
    if not status.n_pending:
        return (Sentence("No reward is still to come."),)
    verb = "is" if status.n_pending == 1 else "are"
    text = f"{counted(status.n_pending, 'reward')} {verb} still to come"
    if status.n_overdue:
        text += f", {status.n_overdue:,} of them overdue"
    if status.last_window_at is None:
        return (Sentence(f"{text}."),)
    return (Sentence(f"{text}; the last window passes on", status.last_window_at, "."),)


def pause_words(status: Status) -> tuple[Sentence, ...]:
    """Say what pausing does."""
    first = Sentence("No new people, until somebody resumes it. Rewards are still recorded.")
    return first, people_words(status), *rewards_words(status)


def stop_words(status: Status) -> tuple[Sentence, ...]:
    """Say what stopping does."""
    return (
        Sentence("No new people any more: a stopped experiment does not begin again. Rewards are still recorded."),
        people_words(status),
        *rewards_words(status),
    )


def finish_words(status: Status) -> tuple[Sentence, ...]:
    """Say what finishing does."""
    first = Sentence("Nothing can change afterwards: no new people, no rewards, no corrections. It can still be read.")
    open_windows = status.last_window_at
    if open_windows is not None:
        waiting = status.n_pending - status.n_overdue
        verb = "is" if waiting == 1 else "are"
        return (
            first,
            Sentence(
                f"{counted(waiting, 'reward')} {verb} still to come; the last window passes on", open_windows, "."
            ),
            Sentence("Better stop it now and finish it then: their rewards would never count."),
        )
    if status.n_pending:
        verb = "has" if status.n_pending == 1 else "have"
        without = counted(status.n_pending, "person", "people")
        return first, Sentence(f"{without} {verb} no reward, and will not get one.")
    return first, Sentence("No reward is still to come.")


def arm_words(status: Status, arm: ArmStatus, *, for_good: bool) -> tuple[Sentence, ...]:
    """Say what taking an arm out of play does."""
    left = sum(one.state == "active" and one.arm != arm.arm for one in status.arms)
    until = "for good" if for_good else "until somebody resumes it"
    keep = "keeps" if arm.assigned == 1 else "keep"
    first = f"No new people get {quoted(arm.arm)}, {until}; {counted(arm.assigned, 'person', 'people')} {keep} it."
    pending = (
        f"{counted(arm.pending, 'reward')} of them {'is' if arm.pending == 1 else 'are'} still to come, and count."
    )
    rest = (
        f"New people get one of {counted(left, 'other arm')}."
        if left > 1
        else (
            "New people all get the only arm that is left." if left else "No arm is left: nobody can be assigned then."
        )
    )
    return Sentence(first), Sentence(pending), Sentence(rest)


def _arm(visit: Visit) -> ArmStatus:
    wanted = visit.query.get("arm", "")
    for arm in visit.status.arms:
        if arm.arm == wanted:
            return arm
    raise InvalidInput(f"there is no arm {wanted!r}")


# The pages


def _pause(visit: Visit) -> ActView:
    return ActView(f"Pause {quoted(visit.the.name)}?", pause_words(visit.status), "Pause")


def _resume(visit: Visit) -> ActView:
    words = (Sentence("New people get an arm again, from now on."), people_words(visit.status))
    return ActView(f"Resume {quoted(visit.the.name)}?", words, "Resume")


def _stop(visit: Visit) -> ActView:
    return ActView(f"Stop {quoted(visit.the.name)}?", stop_words(visit.status), "Stop", is_danger=True)


def _settle(visit: Visit) -> ActView:
    status = visit.status
    words = (
        Sentence(f"The rule for missing rewards is applied to everybody whose window has passed: {status.missing}."),
        Sentence("Every new person and reward settles some of them, so this only brings it up to date."),
    )
    return ActView("Settle windows that have passed?", words, "Settle")


def _finish(visit: Visit) -> ActView:
    words = finish_words(visit.status)
    anyway = Input("anyway", "Finish now all the same", visit.form.get("anyway", ""), kind="check")
    inputs = (anyway,) if visit.status.last_window_at is not None else ()
    return ActView(f"Finish {quoted(visit.the.name)}?", words, "Finish for good", inputs, is_danger=True)


def _weight(visit: Visit) -> ActView:
    now = visit.status.reward_weight
    words = (
        Sentence("0 is accuracy only: every arm is learnt about. 1 is reward only: people get what works best so far."),
        Sentence("It counts from the next person on." + ("" if now is None else f" Now it is {now:.3g}.")),
    )
    value = visit.form.get("reward_weight", "" if now is None else f"{now:.3g}")
    weight = Input("reward_weight", "Reward weight, from 0 to 1", value, kind="number", is_required=True, longest=40)
    return ActView("Turn the dial", words, "Use this from now on", (weight,))


def _add_arm(visit: Visit) -> ActView:
    words = (
        Sentence(
            "From the next person on it is one of the arms. First it gets its warm-up, then what the policy gives it."
        ),
        Sentence("An arm is never deleted; it can be paused and retired."),
    )
    inputs = (
        Input("arm", "Name of the arm", visit.form.get("arm", ""), is_required=True),
        Input(
            "floor",
            "Share kept for it (may be left empty)",
            visit.form.get("floor", ""),
            "Of all people at least this share get it, whatever the policy says: 0.05 or 5%.",
            kind="number",
            longest=40,
        ),
    )
    return ActView("Add an arm", words, "Add it", inputs)


def _describe(visit: Visit) -> ActView:
    said = visit.the.configuration.description
    words = (
        Sentence("Pages, sentences and reports use these words from now on; the log keeps what they were."),
        Sentence("Nothing that was measured or decided changes. An empty field removes its text."),
    )
    longest = {"question": LONGEST_QUESTION, "reward_unit": LONGEST_REWARD_UNIT}
    inputs = [
        Input(name, label, visit.form.get(name, getattr(said, name)), longest=longest.get(name, LONGEST_NAME))
        for name, label in LABELS.items()
    ]
    arms = _described_arms(visit)
    if arms:
        texts = "\n".join(" ".join(said.arms.get(arm, "").split()) for arm in arms).rstrip()
        hint = f"One line for each arm, in their order: {', '.join(map(quoted, arms))}."
        value = visit.form.get("arm_texts", texts)
        inputs.append(Input("arm_texts", "What each arm is", value, hint, kind="long", longest=LONGEST_OF_ARMS))
    return ActView("Change the description", words, "Change it", tuple(inputs))


def _described_arms(visit: Visit) -> list[str]:
    """Return the arms that can be described on the page; none if they are too many."""
    names = [arm["name"] for arm in visit.description["arms"]]
    return names if len(names) <= MOST_DESCRIBED else []


def _do_describe(visit: Visit, reason: str | None) -> None:
    texts: dict[str, Any] = {name: visit.form.get(name, "").strip() for name in TEXTS}
    arms = _described_arms(visit)
    lines = [line.strip() for line in visit.form.get("arm_texts", "").rstrip().splitlines()]
    if len(lines) > len(arms):
        raise InvalidInput(f"describe the {len(arms):,} arms with a line each; got {len(lines):,} lines")
    lines += [""] * (len(arms) - len(lines))
    was = visit.the.configuration.description.arms
    changed = {arm: line for arm, line in zip(arms, lines, strict=True) if line != " ".join(was.get(arm, "").split())}
    visit.the.change_description(**texts, arms=changed, reason=reason)


def _pause_arm(visit: Visit) -> ActView:
    arm = _arm(visit)
    return ActView(f"Pause {quoted(arm.arm)}?", arm_words(visit.status, arm, for_good=False), "Pause the arm")


def _resume_arm(visit: Visit) -> ActView:
    arm = _arm(visit)
    return ActView(f"Resume {quoted(arm.arm)}?", (Sentence("New people can get it again, from now on."),), "Resume it")


def _retire_arm(visit: Visit) -> ActView:
    arm = _arm(visit)
    words = arm_words(visit.status, arm, for_good=True)
    return ActView(f"Retire {quoted(arm.arm)}?", words, "Retire it for good", typed=arm.arm, is_danger=True)


def _rehearse(visit: Visit) -> ActView:
    words = (
        Sentence("A new experiment with these settings and arms, and another seed, to try a client or a form."),
        Sentence("It has no people yet, and nothing that happens in it changes this one."),
    )
    value = visit.form.get("new_name", f"{visit.the.name} rehearsal"[:200])
    return ActView(
        "Rehearse", words, "Make the copy", (Input("new_name", "Name of the copy", value, is_required=True),)
    )


def _do_rehearse(visit: Visit, _reason: str | None) -> None:
    if visit.viewer.experiment is not None:
        raise InvalidInput("a key for one experiment makes no others")
    settings = visit.the.configuration
    arms = [one for one in visit.description["arms"] if one["state"] != "retired"]
    has_control = settings.control in {one["name"] for one in arms}
    visit.create(
        text_in(visit.form, "new_name"),
        arms=[one["name"] for one in arms],
        floor=[one["floor"] for one in arms],
        policy=settings.policy,
        seed=secrets.randbits(63),
        control=settings.control if has_control else None,
        control_share=settings.control_share if has_control else 0.0,
        warm_up=settings.warm_up,
        most_units=settings.most_units,
        reward_range=settings.reward_range,
        reward_cap=settings.reward_cap,
        direction=settings.direction,
        missing=settings.missing,
        stopping=settings.stopping,
        failure_probability=settings.failure_probability,
        covariates=settings.covariates,
        description=settings.description.to_dict(),
        metadata={name: value for name, value in settings.metadata.items() if name != "plan"}
        | {"rehearsal_of": visit.the.name},
    )


def _do_weight(visit: Visit, reason: str | None) -> None:
    weight = number_in(visit.form, "reward_weight", "the weight")
    if visit.status.information_kept is not None:
        visit.the.change_dial(reward_weight=weight, reason=reason)
    else:
        visit.the.change_weight(weight, reason=reason)


ACTS: dict[str, Act] = {
    "pause": Act(_pause, lambda visit, reason: visit.the.pause(reason=reason)),
    "resume": Act(_resume, lambda visit, reason: visit.the.resume(reason=reason)),
    "stop": Act(_stop, lambda visit, reason: visit.the.stop(reason=reason)),
    "settle": Act(_settle, lambda visit, _: visit.the.settle(), has_reason=False),
    "finish": Act(
        _finish,
        lambda visit, reason: visit.the.finish(anyway=visit.form.get("anyway") == "yes", reason=reason),
        is_typed=True,
    ),
    "weight": Act(_weight, _do_weight),
    "describe": Act(_describe, _do_describe),
    "add-arm": Act(
        _add_arm,
        lambda visit, reason: visit.the.add_arm(
            text_in(visit.form, "arm"), floor=optional_number(visit.form, "floor", "the share") or 0.0, reason=reason
        ),
    ),
    "pause-arm": Act(_pause_arm, lambda visit, reason: visit.the.pause_arm(_arm(visit).arm, reason=reason)),
    "resume-arm": Act(_resume_arm, lambda visit, reason: visit.the.resume_arm(_arm(visit).arm, reason=reason)),
    "retire-arm": Act(
        _retire_arm, lambda visit, reason: visit.the.retire_arm(_arm(visit).arm, reason=reason), is_typed=True
    ),
    "rehearse": Act(_rehearse, _do_rehearse, has_reason=False),
}
"""All acts, by the last part of their address."""
