"""Commands that change a live experiment or its arms, turn its dial, or write a note."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equipoise.cli import confirmation
from equipoise.cli.confirmation import Yes
from equipoise.cli.description_options import ArmTexts, Outcome, Owner, Question, RewardUnit, Title, texts_of_arms
from equipoise.cli.options import (
    COUNT,
    FRACTION,
    AsJson,
    HalfWidth,
    InformationAbout,
    InformationKept,
    RewardWeight,
    SmallestDifference,
    Units,
    check_one_dial,
    option,
)
from equipoise.cli.stores import DEFAULT_STORE, ExperimentName, Key, StoreUrl, Who, open_experiment, print_answer
from equipoise.errors import InvalidInput, visible
from equipoise.experiment.dial import ABOUT_WORDS, DIAL, dial_words

if TYPE_CHECKING:
    from equipoise.experiment import Experiment

Reason = Annotated[str | None, option("--reason", "Change", "TEXT", "Why, for the log.")]
ExpectedChange = Annotated[
    int | None,
    option("--expected-change", "Change", "EVENT", "Refuse this if the experiment was changed after this event."),
]


def _state_command(verb: str, text: str) -> "Callable[..., None]":
    """Return a command that calls a verb without arguments and prints the experiment's state."""

    def command(
        name: ExperimentName,
        reason: Reason = None,
        expected_change: ExpectedChange = None,
        store: StoreUrl = DEFAULT_STORE,
        key: Key = None,
        who: Who = None,
        as_json: AsJson = False,
    ) -> None:
        experiment = open_experiment(store, name, key, who)
        getattr(experiment, verb)(reason=reason, expected_change=expected_change)
        _print(experiment, as_json)

    command.__doc__ = text
    return command


pause = _state_command("pause", "Take no new units for a while; rewards are accepted.")
resume = _state_command("resume", "Take new units again after a pause.")
stop = _state_command("stop", "Take no new units any more; rewards are still accepted.")


def finish(
    name: ExperimentName,
    anyway: Annotated[
        bool,
        option("--anyway", "Experiment", None, "Even if windows are open; rewards of those units never count then."),
    ] = False,
    reason: Reason = None,
    expected_change: ExpectedChange = None,
    yes: Yes = False,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Close an experiment for good: no new units, no rewards, no corrections."""
    experiment = open_experiment(store, name, key, who)
    if not yes and confirmation.is_possible():
        status = experiment.status()
        if status.state != "finished":
            pending = f"; rewards pending: {status.n_pending:,}, which will be refused" if status.n_pending else ""
            confirmation.require_typed(name, f"finish closes {name} for good, and nothing can undo it{pending}")
    experiment.finish(anyway=anyway, reason=reason, expected_change=expected_change)
    _print(experiment, as_json)


def describe(
    name: ExperimentName,
    title: Title = None,
    question: Question = None,
    outcome: Outcome = None,
    reward_unit: RewardUnit = None,
    owner: Owner = None,
    arm_texts: ArmTexts = None,
    reason: Reason = None,
    expected_change: ExpectedChange = None,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Say in words what an experiment is about; print that if nothing is given. An empty text removes one."""
    experiment = open_experiment(store, name, key, who)
    texts = {"title": title, "question": question, "outcome": outcome, "reward_unit": reward_unit, "owner": owner}
    arms = texts_of_arms(arm_texts)
    if arms is not None or any(text is not None for text in texts.values()):
        experiment.change_description(**texts, arms=arms, reason=reason, expected_change=expected_change)
    found = experiment.describe()["description"]
    lines = [f"{label.replace('_', ' ')}: {text}" for label, text in found.items() if label != "arms"]
    lines += [f"arm {arm}: {text}" for arm, text in found.get("arms", {}).items()]
    said = "\n".join(map(visible, lines)) or f"{name} is not described yet"
    print_answer({"name": name, "description": found}, said, as_json)


def note(
    name: ExperimentName,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to remember.", show_default=False)],
    decision: Annotated[bool, option("--decision", "Change", None, "It is a decision that was taken.")] = False,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Write a note, or a decision, into the log of an experiment."""
    kind = "decision" if decision else "note"
    open_experiment(store, name, key, who).note(text, kind)
    print_answer({"name": name, "kind": kind, "text": text}, f"{name}: the {kind} is in the log", as_json)


def _print(experiment: "Experiment", as_json: bool) -> None:
    status = experiment.status()
    data = {"name": status.name, "state": status.state, "n_pending": status.n_pending}
    print_answer(data, f"{status.name} is {status.state}; rewards pending: {status.n_pending:,}", as_json)


ArmName = Annotated[str, typer.Argument(metavar="ARM", help="The arm.", show_default=False)]


def add_arm(
    name: ExperimentName,
    arm: ArmName,
    floor: Annotated[float, option("--floor", "Arm", "X", "Share kept for it, as 5%.", parser=FRACTION)] = 0.0,
    reason: Reason = None,
    expected_change: ExpectedChange = None,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Add an arm; a changed arm is a new arm."""
    experiment = open_experiment(store, name, key, who)
    experiment.add_arm(arm, floor=floor, reason=reason, expected_change=expected_change)
    _print_arm(experiment, arm, as_json)


def _arm_command(verb: str, text: str) -> "Callable[..., None]":
    """Return a command that calls a verb with an arm and prints the arm's state."""

    def command(
        name: ExperimentName,
        arm: ArmName,
        reason: Reason = None,
        expected_change: ExpectedChange = None,
        store: StoreUrl = DEFAULT_STORE,
        key: Key = None,
        who: Who = None,
        as_json: AsJson = False,
    ) -> None:
        experiment = open_experiment(store, name, key, who)
        getattr(experiment, verb)(arm, reason=reason, expected_change=expected_change)
        _print_arm(experiment, arm, as_json)

    command.__doc__ = text
    return command


pause_arm = _arm_command("pause_arm", "Assign nobody to an arm for a while.")
resume_arm = _arm_command("resume_arm", "Assign units to an arm again after a pause.")
retire_arm = _arm_command("retire_arm", "Assign nobody to an arm any more; rewards of those who have it still count.")


def _print_arm(experiment: "Experiment", arm: str, as_json: bool) -> None:
    states = {one.arm: one.state for one in experiment.status().arms}
    active = sum(state == "active" for state in states.values())
    data = {"name": experiment.name, "arm": arm, "state": states[arm], "n_active": active}
    print_answer(data, f"{arm} is {states[arm]}; arms in play: {active:,}", as_json)


NewWeight = Annotated[
    float,
    typer.Argument(
        metavar="W", help="The dial: 0 is accuracy only, 1 reward only.", show_default=False, parser=FRACTION
    ),
]


def weight(
    name: ExperimentName,
    reward_weight: NewWeight,
    reason: Reason = None,
    expected_change: ExpectedChange = None,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Change the weight between reward and accuracy, from the next decision on; the log says when."""
    experiment = open_experiment(store, name, key, who)
    before = experiment.configuration
    experiment.change_weight(reward_weight, reason=reason, expected_change=expected_change)
    data = {"name": name, "reward_weight": reward_weight, "was": before.reward_weight}
    was = f"{before.reward_weight:g}" if before.reward_weight is not None else dial_words(before.dial)
    print_answer(data, f"{name}: the weight is {reward_weight:g}, it was {was}", as_json)


def dial(
    name: ExperimentName,
    reward_weight: RewardWeight = None,
    information_kept: InformationKept = None,
    information_about: InformationAbout = None,
    smallest_difference: SmallestDifference = None,
    half_width: HalfWidth = None,
    units: Units = None,
    reason: Reason = None,
    expected_change: ExpectedChange = None,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Set the dial between reward and accuracy in any way, from the next decision on; the log says when."""
    stated = _stated(locals())
    experiment = open_experiment(store, name, key, who)
    before = experiment.configuration.dial
    experiment.change_dial(**stated, reason=reason, expected_change=expected_change)
    after = experiment.configuration.dial
    text = f"{name}: {dial_words(after)}; it was {dial_words(before)}"
    print_answer({"name": name, "dial": after, "was": before}, text, as_json)


def _stated(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that state the dial; raise, with their names, unless one of them sets it."""
    check_one_dial(options)
    stated = {key: options[key] for key in DIAL if options[key] is not None}
    if not {"reward_weight", "information_kept", "half_width", "units"} & set(stated):
        raise InvalidInput("give one of --reward-weight, --information-kept and --half-width; got none")
    return stated


def what_if(
    name: ExperimentName,
    reward_weight: Annotated[
        float | None,
        typer.Argument(
            metavar="[W]", help="A weight: 0 is accuracy only, 1 reward only.", show_default=False, parser=FRACTION
        ),
    ] = None,
    information_kept: InformationKept = None,
    information_about: InformationAbout = None,
    smallest_difference: SmallestDifference = None,
    half_width: HalfWidth = None,
    units: Units = None,
    more_units: Annotated[
        int | None,
        option(
            "--more-units",
            "Dial",
            "N",
            "Further units to predict half-widths for; as many as there have been by default.",
            parser=COUNT,
        ),
    ] = None,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Show what another dial would ask for now, and its price in reward and precision; nothing is changed."""
    import dataclasses

    stated = _stated(locals())
    from equipoise import terminal

    found = open_experiment(store, name, key).what_if(**stated, more_units=more_units)
    if as_json:
        more = {"reward_change": found.reward_change, "error_ratio": found.error_ratio}
        terminal.print_json({"name": name} | dataclasses.asdict(found) | more)
        return
    both = {"information_kept"} & {*found.dial, *found.present_dial}
    kept, changed = (
        ("if kept", "if changed") if both else (f"at {found.present_weight:g}", f"at {found.reward_weight:g}")
    )
    now, then = ("now", "then") if both else (f"at {found.present_weight:g}", f"at {found.reward_weight:g}")
    pairs = zip((found.present_allocation, found.allocation), (now, then), strict=True)
    widths = [list(found.present_half_widths.values()), list(found.half_widths.values())]
    texts = terminal.aligned_or_blank([*widths[0], *widths[1]])
    terminal.print_table(
        [("arm", list(found.allocation))]
        + [(head, [f"{share:.4f}" for share in allocation.values()]) for allocation, head in pairs]
        + [(f"+/- {kept}", texts[: len(widths[0])]), (f"+/- {changed}", texts[len(widths[0]) :])] * bool(texts)
    )
    if texts:
        print(f"\n+/-: in status after {found.more_units:,} more units")
    if both:
        print(f"\nnow   {dial_words(found.present_dial)}\nthen  {dial_words(found.dial)}")
    rewards = terminal.aligned([found.present_reward, found.reward])
    print(f"\nreward per unit  {rewards[0]} -> {rewards[1]}")
    print(f"error            {found.error_ratio:.3g} times the present one")
    widest = [max((one for one in some if one is not None), default=None) for some in widths]
    if None not in widest:
        texts = terminal.aligned_or_blank(widest)
        print(f"widest +/-       {texts[0]} -> {texts[1]}")
    head = "information"
    for about, then_kept in found.information.items():
        now_kept, words = found.present_information[about], ABOUT_WORDS[about]
        print(f"{head:15}  {100 * now_kept:.0f}% -> {100 * then_kept:.0f}% kept about {words}")
        head = ""
    asked = found.dial.get("information_kept")
    if asked is not None and abs(found.information[found.dial["information_about"]] - asked) > _NOTABLE:
        print(
            "\nThe last lines measure the shares by the estimates so far. The policy does not"
            "\ntake these at face value: it allows for their noise, and floors count too. The"
            "\ntwo come together as rewards come in."
        )
    sys.stdout.flush()


_NOTABLE = 0.02
"""From what difference on between the information asked for and measured the difference is explained."""
