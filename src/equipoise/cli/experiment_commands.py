"""Commands that create, list, delete, copy or upgrade experiments."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equipoise.cli import confirmation
from equipoise.cli.confirmation import Yes
from equipoise.cli.description_options import (
    ArmTexts,
    Outcome,
    Owner,
    Question,
    RewardUnit,
    Title,
    named_texts,
    texts_of_arms,
)
from equipoise.cli.exit_codes import INTERRUPTED
from equipoise.cli.options import (
    COUNT,
    FRACTION,
    AsJson,
    HalfWidth,
    InformationAbout,
    InformationKept,
    Quiet,
    RewardWeight,
    SmallestDifference,
    Units,
    check_one_dial,
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

if TYPE_CHECKING:
    from equipoise.experiment import Experiment
    from equipoise.store import Store


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
    title: Title = None,
    question: Question = None,
    outcome: Outcome = None,
    reward_unit: RewardUnit = None,
    owner: Owner = None,
    arm_texts: ArmTexts = None,
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
    paused: Annotated[bool, option("--paused", "Experiment", None, "Assign nobody before equipoise resume.")] = False,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Make an experiment, from options or a TOML file."""
    options = locals()
    from equipoise.arm_tables import entries
    from equipoise.cli.input_files import KEYS, Description

    check_one_dial(options)
    given = {key: value for key, value in options.items() if key in KEYS} | {
        "arms": None if arms is None else list(entries(arms)),
        "floor": None if floor is None else _shares(floor),
        "covariates": None if covariates is None else list(entries(covariates)),
        "description": _given(
            title=title,
            question=question,
            outcome=outcome,
            reward_unit=reward_unit,
            owner=owner,
            arms=texts_of_arms(arm_texts),
        ),
        "metadata": named_texts("metadata", "KEY", metadata),
        "paused": paused or None,
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
    n_arms = "1 arm" if len(names) == 1 else f"{len(names):,} arms"
    print_answer(
        data, f"{made.name}: {n_arms}, {settings.policy!r}, seed {settings.seed}, in {experiments.url}", as_json
    )


_BESIDE_PLAN = ("name", "seed", "description", "metadata", "covariates", "paused")
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


def _given(**values: Any) -> dict[str, Any] | None:
    """Return the given options under the names they have in a file, or None if there are none."""
    return {key: value for key, value in values.items() if value is not None} or None


def _shares(text: str) -> float | list[float]:
    shares = floor_shares(text)
    return list(shares) if isinstance(shares, tuple) else shares


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
