"""Commands that create, change, copy, upgrade or list experiments and their arms."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equipoise.cli import confirmation
from equipoise.cli.confirmation import Yes
from equipoise.cli.exit_codes import INTERRUPTED
from equipoise.cli.options import (
    COUNT,
    FRACTION,
    AsJson,
    HalfWidth,
    InformationAbout,
    InformationKept,
    Quiet,
    SmallestDifference,
    Units,
    floor_shares,
    option,
    range_ends,
)
from equipoise.cli.report_commands import Names, all_names
from equipoise.cli.stores import (
    DEFAULT_STORE,
    DatabaseUrl,
    ExperimentName,
    Key,
    StoredExperiments,
    StoreUrl,
    Who,
    any_store,
    existing_store,
    experiments_at,
    is_service,
    lasting,
    note,
    open_experiment,
    print_answer,
    rehearse,
)
from equipoise.errors import InvalidInput
from equipoise.experiment.dial import ABOUT_WORDS, DIAL, dial_words

if TYPE_CHECKING:
    from equipoise.experiment import Experiment
    from equipoise.store import Store


Reason = Annotated[str | None, option("--reason", "Experiment", "TEXT", "Why, for the log.")]
RewardWeight = Annotated[
    float | None,
    option("--reward-weight", "Dial", "W", "0 is accuracy only, 1 reward only; or in other words:", parser=FRACTION),
]


def create(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="What to call it.", show_default=False)] = None,
    file: Annotated[
        Path | None, option("--file", "Experiment", "FILE.toml", "What options do not say is taken from this file.")
    ] = None,
    plan: Annotated[
        Path | None, option("--plan", "Experiment", "PLAN.toml", "Make the experiment that a plan describes.")
    ] = None,
    way: Annotated[
        str | None,
        option(
            "--way", "Experiment", "WAY", "With --plan: as equipoise plan names it; the recommended one by default."
        ),
    ] = None,
    arms: Annotated[str | None, option("--arms", "Experiment", "A,B,C", "Names of the arms.")] = None,
    policy: Annotated[
        str | None,
        option("--policy", "Experiment", "NAME:x=1,y=2", "How to assign; PooledBalance if only the dial is given."),
    ] = None,
    reward_weight: RewardWeight = None,
    information_kept: InformationKept = None,
    information_about: InformationAbout = None,
    smallest_difference: SmallestDifference = None,
    half_width: HalfWidth = None,
    units: Units = None,
    drift: Annotated[
        str | None,
        option("--drift", "Dial", "WHAT", "Rewards that rise or fall with time: none, declared or detected."),
    ] = None,
    seed: Annotated[int | None, option("--seed", "Experiment", "N", "The same seed gives the same decisions.")] = None,
    warm_up: Annotated[
        int | None, option("--warm-up", "Experiment", "N", "Units every arm gets first, in random order.")
    ] = None,
    most_units: Annotated[
        int | None,
        option(
            "--most-units", "Experiment", "N", "Hard limit: nobody is assigned after this many units.", parser=COUNT
        ),
    ] = None,
    floor: Annotated[
        str | None, option("--floor", "Experiment", "X", "Share kept for every arm, as 5%; or one per arm, as 10%,0,0.")
    ] = None,
    control: Annotated[str | None, option("--control", "Experiment", "ARM", "The control arm.")] = None,
    control_share: Annotated[
        float | None,
        option("--control-share", "Experiment", "X", "Share kept for the control arm, as 10%.", parser=FRACTION),
    ] = None,
    failure_probability: Annotated[
        float | None,
        option(
            "--failure-probability",
            "Experiment",
            "P",
            "One minus the confidence of the intervals; 5% by default.",
            parser=FRACTION,
        ),
    ] = None,
    covariates: Annotated[
        str | None,
        option("--covariates", "Experiment", "A,B", "Attributes by which reports adjust and split, declared here."),
    ] = None,
    metadata: Annotated[
        list[str] | None, option("--metadata", "Experiment", "KEY=TEXT", "Anything to keep with it. Repeatable.")
    ] = None,
    reward_range: Annotated[
        str | None,
        option("--range", "Rewards", "LOW,HIGH", "Lowest and highest reward, or inf; makes intervals exact."),
    ] = None,
    reward_cap: Annotated[
        float | None, option("--reward-cap", "Rewards", "X", "Larger rewards count as this in the estimates.")
    ] = None,
    minimise: Annotated[
        bool, option("--minimise", "Rewards", None, "Small rewards are good, such as times or costs.")
    ] = False,
    rule: Annotated[
        str | None,
        option("--missing", "Rewards", "RULE", "After the window: wait (for ever), default (count a value) or drop."),
    ] = None,
    value: Annotated[
        float | None, option("--default", "Rewards", "X", "The value that the rule default counts.")
    ] = None,
    window: Annotated[
        str | None, option("--window", "Rewards", "TIME", "How long rewards may take: 2 days, 36h, 90 (s).")
    ] = None,
    hold: Annotated[bool, option("--hold", "Rewards", None, "Count no reward before the window has passed.")] = False,
    late: Annotated[
        str | None, option("--late", "Rewards", "WHAT", "Rewards after the window: count (the default) or ignore.")
    ] = None,
    budget: Annotated[
        int | None, option("--budget", "Stopping rules, reported only", "N", "This many units.", parser=COUNT)
    ] = None,
    deadline: Annotated[
        str | None, option("--deadline", "Stopping rules, reported only", "TIME", "As 2027-06-30T18:00:00+02:00.")
    ] = None,
    precision: Annotated[
        float | None,
        option("--precision", "Stopping rules, reported only", "X", "Every arm known to within X.", parser=FRACTION),
    ] = None,
    precision_of_differences: Annotated[
        float | None,
        option(
            "--precision-of-differences",
            "Stopping rules, reported only",
            "X",
            "Every difference known to within X.",
            parser=FRACTION,
        ),
    ] = None,
    decided: Annotated[
        float | None,
        option(
            "--decided",
            "Stopping rules, reported only",
            "X",
            "The best arm is known, or the best so far is worse by at most X; 0 for the former only.",
            parser=FRACTION,
        ),
    ] = None,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Make an experiment, from options or a TOML file."""
    options = locals()
    from equipoise.arm_tables import entries
    from equipoise.cli.input_files import KEYS, Description

    _check_one_dial(options)
    given = {key: value for key, value in options.items() if key in KEYS} | {
        "arms": None if arms is None else list(entries(arms)),
        "floor": None if floor is None else _shares(floor),
        "covariates": None if covariates is None else list(entries(covariates)),
        "metadata": _metadata(metadata),
        "reward_range": None if reward_range is None else list(range_ends(reward_range)),
        "direction": "minimise" if minimise else None,
        "missing": _given(rule=rule, value=value, window=window, hold=hold or None, late=late),
        "stopping": _given(
            budget=budget,
            deadline=deadline,
            precision=precision,
            precision_of_differences=precision_of_differences,
            decided=decided,
        ),
    }
    make = Description(file, _given(**given) or {}).create_in if plan is None else _planned(plan, way, file, given)
    if plan is None and way is not None:
        raise InvalidInput.of("way", "goes with --plan", way)
    rehearse(store, lambda trial: make(StoredExperiments(trial)))
    experiments = experiments_at(store, key, who, new=True)
    made = make(experiments)
    settings, names = made.configuration, [arm.arm for arm in made.status().arms]
    data = {"name": made.name, "store": experiments.url, "arms": names} | settings.to_dict()
    print_answer(
        data,
        f"{made.name}: {len(names):,} arms, {settings.policy!r}, seed {settings.seed}, in {experiments.url}",
        as_json,
    )


_BESIDE_PLAN = ("name", "seed", "metadata", "covariates")
"""Options of `create` that a plan does not answer."""
_SECONDS = 10.0
"""How long a plan is simulated for the bands that the experiment is compared with later."""


def _planned(plan: Path, way: str | None, file: Path | None, given: dict[str, Any]) -> "Callable[..., Experiment]":
    """Return a function that makes the experiment of a plan."""
    from equipoise.planner import read_plan
    from equipoise.planner.planned_experiment import creation_settings
    from equipoise.planner.refinement import simulate

    stated = {name: value for name, value in given.items() if value is not None}
    wrong = "file" if file is not None else next((name for name in stated if name not in _BESIDE_PLAN), None)
    if wrong is not None:
        name = {"reward_range": "range"}.get(wrong, wrong).replace("_", "-")
        raise InvalidInput(f"--{name} must be left out where --plan says it", hint="change the plan instead")
    if "name" not in stated:
        raise InvalidInput.of("name", "is missing", hint="equipoise create NAME --plan PLAN.toml")
    found = read_plan(plan)
    if way is not None:
        found.way(way)
    forecast = simulate(found, seconds=_SECONDS, progress=sys.stderr.isatty())
    beside = {name: value for name, value in stated.items() if name != "name"}
    chosen, settings = creation_settings(forecast, way, beside)
    if way is None:
        note(f"the way is {chosen}, as recommended; --way chooses another")
    return lambda experiments: experiments.create(stated["name"], **settings)


def _check_one_dial(options: dict[str, Any]) -> None:
    """Raise, with the names of the options, if several of them set the dial."""
    ways = [key for key in ("reward_weight", "information_kept", "half_width") if options[key] is not None]
    if len(ways) > 1:
        named = [f"--{key.replace('_', '-')}" for key in ways]
        raise InvalidInput(
            f"give one of --reward-weight, --information-kept and --half-width; got {' and '.join(named)}"
        )


def _given(**values: Any) -> dict[str, Any] | None:
    """Return the given options under the names they have in a file, or None if there are none."""
    return {key: value for key, value in values.items() if value is not None} or None


def _shares(text: str) -> float | list[float]:
    shares = floor_shares(text)
    return list(shares) if isinstance(shares, tuple) else shares


def _metadata(entries: list[str] | None) -> dict[str, str] | None:
    if not entries:
        return None
    pairs = [entry.partition("=") for entry in entries]
    for key, equals, _ in pairs:
        if not key or not equals:
            raise InvalidInput.of("metadata", "must be KEY=TEXT", key)
    return {key: value for key, _, value in pairs}


def list_(store: StoreUrl = DEFAULT_STORE, key: Key = None, as_json: AsJson = False) -> None:
    """List the experiments of a store, oldest first."""
    from equipoise import terminal

    found = experiments_at(store, key).list()
    if as_json:
        terminal.print_json({"experiments": found})
        return
    terminal.print_table(
        [
            ("experiment", [one.name for one in found]),
            ("state", [one.state for one in found]),
            ("arms", [f"{one.n_arms:,}" for one in found]),
            ("assigned", [f"{one.n_assigned:,}" for one in found]),
            ("rewarded", [f"{one.n_rewarded:,}" for one in found]),
            ("policy", [_policy(one.policy) for one in found]),
        ],
        always=5,
        words=("state", "policy"),
    )


def _policy(policy: dict[str, object]) -> str:
    weight, kept = policy.get("reward_weight"), policy.get("information_kept")
    name = str(policy.get("name", "damaged"))
    if isinstance(kept, float):
        return f"{name} {100 * kept:.4g}% {policy.get('information_about')}"
    return f"{name} {weight:g}" if isinstance(weight, float) else name


def _state_command(verb: str, text: str) -> "Callable[..., None]":
    """Return a command that calls a verb without arguments and prints the experiment's state."""

    def command(
        name: ExperimentName,
        reason: Reason = None,
        store: StoreUrl = DEFAULT_STORE,
        key: Key = None,
        who: Who = None,
        as_json: AsJson = False,
    ) -> None:
        experiment = open_experiment(store, name, key, who)
        getattr(experiment, verb)(reason=reason)
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
    experiment.finish(anyway=anyway, reason=reason)
    _print(experiment, as_json)


def delete(
    name: ExperimentName, yes: Yes = False, store: StoreUrl = DEFAULT_STORE, key: Key = None, as_json: AsJson = False
) -> None:
    """Delete an experiment that was made by mistake; one that has rewards is refused."""
    experiment = open_experiment(store, name, key)
    if not yes and confirmation.is_possible():
        forgotten = f"; assignments forgotten: {experiment.status().n_assigned:,}"
        confirmation.require_typed(name, f"delete removes {name} and its log, and nothing can undo it{forgotten}")
    experiment.delete()
    print_answer({"name": name, "deleted": True}, f"{name} is deleted", as_json)


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
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Add an arm; a changed arm is a new arm."""
    experiment = open_experiment(store, name, key, who)
    experiment.add_arm(arm, floor=floor, reason=reason)
    _print_arm(experiment, arm, as_json)


def _arm_command(verb: str, text: str) -> "Callable[..., None]":
    """Return a command that calls a verb with an arm and prints the arm's state."""

    def command(
        name: ExperimentName,
        arm: ArmName,
        reason: Reason = None,
        store: StoreUrl = DEFAULT_STORE,
        key: Key = None,
        who: Who = None,
        as_json: AsJson = False,
    ) -> None:
        experiment = open_experiment(store, name, key, who)
        getattr(experiment, verb)(arm, reason=reason)
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
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Change the weight between reward and accuracy, from the next decision on; the log says when."""
    experiment = open_experiment(store, name, key, who)
    before = experiment.configuration
    experiment.change_weight(reward_weight, reason=reason)
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
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Set the dial between reward and accuracy in any way, from the next decision on; the log says when."""
    stated = _stated(locals())
    experiment = open_experiment(store, name, key, who)
    before = experiment.configuration.dial
    experiment.change_dial(**stated, reason=reason)
    after = experiment.configuration.dial
    text = f"{name}: {dial_words(after)}; it was {dial_words(before)}"
    print_answer({"name": name, "dial": after, "was": before}, text, as_json)


def _stated(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that state the dial; raise, with their names, unless one of them sets it."""
    _check_one_dial(options)
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
            "Predict half-widths after so many further units; as many as there have been by default.",
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
    now, then = ("now", "then") if both else (f"at {found.present_weight:g}", f"at {found.reward_weight:g}")
    pairs = zip((found.present_allocation, found.allocation), (now, then), strict=True)
    widths = [list(found.present_half_widths.values()), list(found.half_widths.values())]
    texts = terminal.aligned_or_blank([*widths[0], *widths[1]])
    terminal.print_table(
        [("arm", list(found.allocation))]
        + [(head, [f"{share:.4f}" for share in allocation.values()]) for allocation, head in pairs]
        + [("+/- " + now, texts[: len(widths[0])]), ("+/- " + then, texts[len(widths[0]) :])] * bool(texts)
    )
    if both:
        print(f"\nnow   {dial_words(found.present_dial)}\nthen  {dial_words(found.dial)}")
    rewards = terminal.aligned([found.present_reward, found.reward])
    print(f"\nreward per unit  {rewards[0]} -> {rewards[1]}")
    print(f"error            {found.error_ratio:.3g} times the present one")
    widest = [max((one for one in some if one is not None), default=None) for some in widths]
    if None not in widest:
        texts = terminal.aligned_or_blank(widest)
        print(f"widest +/-       {texts[0]} -> {texts[1]} in status after {found.more_units:,} more units")
    head = "information"
    for about, kept in found.information.items():
        now_kept, words = found.present_information[about], ABOUT_WORDS[about]
        print(f"{head:15}  {100 * now_kept:.0f}% -> {100 * kept:.0f}% kept about {words}")
        head = ""
    asked = found.dial.get("information_kept")
    if asked is not None and abs(found.information[found.dial["information_about"]] - asked) > _NOTABLE:
        print(
            "\nThe last lines measure the shares by the estimates so far. The policy does not take these at face value:"
            "\nit allows for their noise, and floors count too. The two come together as rewards come in."
        )
    sys.stdout.flush()


_NOTABLE = 0.02
"""From what difference on between the information asked for and measured the difference is explained."""


def copy(
    names: Names = None,
    *,
    to: Annotated[str, option("--to", "Store", "URL", "The store to copy to; made new if it is not there.")],
    store: DatabaseUrl = DEFAULT_STORE,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Copy experiments with their whole log to another store, where they can go on, and verify them there."""
    from equipoise.experiment import Experiment
    from equipoise.terminal import announce_compiling, counted, print_json

    if is_service(to):
        raise InvalidInput(
            "--to must be a database; got the address of a service",
            hint="copy to the database of that service: sqlite:///FILE or postgresql://...",
        )
    source = existing_store(store)
    originals = [Experiment.open(source, name) for name in names or all_names(Experiment.list(source), source.url)]
    target = any_store(to)
    announce_compiling(quiet=quiet)
    rows = []
    for original in originals:
        name = original.name
        copied, new = _copy(original, target, quiet)
        checked = copied.verify()
        rows.append({"name": name, "n_events": checked.n_events, "store": target.url, "new": new})
        if not as_json:
            events = counted(checked.n_events, "event")
            done = f"copied to {target.url} and" if new else f"in {target.url} already, as far as here, and"
            print(f"{name}: {events} {done} verified there", flush=True)
        if copied.status().state == "enrolling" and not quiet:
            note(f"note: {name} still takes units in {source.url} as well; finish it there when all clients have moved")
    if as_json:
        print_json({"experiments": rows})


def _copy(experiment: "Experiment", target: "Store", quiet: bool) -> "tuple[Experiment, bool]":
    """Copy one experiment, with a progress bar unless `quiet`; return it and whether it is new in the target."""
    from equipoise.progress import Reporter, StepBar

    bar = Reporter() if quiet else StepBar(experiment.status().n_events, f"copying {experiment.name}", noun="events")
    new = False

    def show(n_done: int, _n_events: int) -> None:
        nonlocal new
        new = True  # every log has a first event, so this is called at least once if anything is copied
        bar.show(n_done)

    try:
        with bar:
            copied = experiment.copy_to(target, progress=show)
    except KeyboardInterrupt:
        note(f"interrupted; nothing of {experiment.name} is in {target.url}, the same command copies it")
        raise typer.Exit(INTERRUPTED) from None
    return copied, new


def upgrade(store: DatabaseUrl = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Bring a store made by an older version to the schema of this one; make a copy of it first."""
    from equipoise.store import upgrade as upgrade_store

    before, after = upgrade_store(lasting(store), create=False)
    done = f"has schema {after}; nothing to do" if before == after else f"brought from schema {before} to {after}"
    print_answer({"store": store, "before": before, "after": after}, f"the store {done}", as_json)
