"""The command `equipoise create`: make an experiment, from options or a TOML file."""

from pathlib import Path
from typing import Annotated, Any

import typer

from equipoise.cli.options import AsJson, floor_shares, option
from equipoise.cli.stores import (
    DEFAULT_STORE,
    Key,
    StoredExperiments,
    StoreUrl,
    Who,
    experiments_at,
    print_answer,
    rehearse,
)
from equipoise.errors import InvalidInput

Name = Annotated[str | None, typer.Argument(metavar="NAME", help="What to call it.", show_default=False)]
File = Annotated[
    Path | None, option("--file", "Experiment", "FILE.toml", "What options do not say is taken from this file.")
]
Arms = Annotated[str | None, option("--arms", "Experiment", "A,B,C", "Names of the arms.")]
Policy = Annotated[
    str | None,
    option("--policy", "Experiment", "NAME:x=1,y=2", "How to assign; PooledBalance if only a weight is given."),
]
Weight = Annotated[
    float | None, option("--reward-weight", "Experiment", "W", "The dial: 0 is accuracy only, 1 reward only.")
]
Seed = Annotated[int | None, option("--seed", "Experiment", "N", "The same seed gives the same decisions.")]
WarmUp = Annotated[int | None, option("--warm-up", "Experiment", "N", "Units every arm gets first, in random order.")]
Floor = Annotated[
    str | None, option("--floor", "Experiment", "X", "Share kept for every arm; or one per arm, as 0.1,0,0.")
]
Control = Annotated[str | None, option("--control", "Experiment", "ARM", "The control arm.")]
ControlShare = Annotated[float | None, option("--control-share", "Experiment", "X", "Share kept for the control arm.")]
Range = Annotated[
    str | None, option("--range", "Rewards", "LOW,HIGH", "Lowest and highest reward; makes intervals exact.")
]
Minimise = Annotated[bool, option("--minimise", "Rewards", None, "Small rewards are good, such as times or costs.")]
Missing = Annotated[
    str | None,
    option("--missing", "Rewards", "RULE", "After the window: wait (for ever), default (count a value) or drop."),
]
Default = Annotated[float | None, option("--default", "Rewards", "X", "The value that the rule default counts.")]
Window = Annotated[str | None, option("--window", "Rewards", "TIME", "How long rewards may take: 7d, 36h, 90 (s).")]
Hold = Annotated[bool, option("--hold", "Rewards", None, "Count no reward before the window has passed.")]
Late = Annotated[
    str | None, option("--late", "Rewards", "WHAT", "Rewards after the window: count (the default) or ignore.")
]
Units = Annotated[int | None, option("--budget", "Stopping rules, reported only", "N", "This many units.")]
Deadline = Annotated[
    str | None, option("--deadline", "Stopping rules, reported only", "TIME", "As 2027-06-30T18:00:00+02:00.")
]
Precision = Annotated[
    float | None, option("--precision", "Stopping rules, reported only", "X", "Every arm known to within X.")
]
Failure = Annotated[
    float | None,
    option("--failure-probability", "Experiment", "P", "One minus the confidence of the intervals; 0.05 by default."),
]
Metadata = Annotated[
    list[str] | None, option("--metadata", "Experiment", "KEY=TEXT", "Anything to keep with it. Repeatable.")
]


def create(
    name: Name = None,
    file: File = None,
    arms: Arms = None,
    policy: Policy = None,
    reward_weight: Weight = None,
    seed: Seed = None,
    warm_up: WarmUp = None,
    floor: Floor = None,
    control: Control = None,
    control_share: ControlShare = None,
    failure_probability: Failure = None,
    metadata: Metadata = None,
    reward_range: Range = None,
    minimise: Minimise = False,
    missing: Missing = None,
    default: Default = None,
    window: Window = None,
    hold: Hold = False,
    late: Late = None,
    budget: Units = None,
    deadline: Deadline = None,
    precision: Precision = None,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Make an experiment, from options or a TOML file."""
    from equipoise import tables
    from equipoise.cli.experiment_file import Description

    given = {
        "name": name,
        "arms": None if arms is None else list(tables.entries(arms)),
        "policy": policy,
        "reward_weight": reward_weight,
        "seed": seed,
        "warm_up": warm_up,
        "floor": None if floor is None else _shares(floor),
        "control": control,
        "control_share": control_share,
        "failure_probability": failure_probability,
        "metadata": _metadata(metadata),
        "reward_range": None if reward_range is None else list(tables.numbers("--range", reward_range)),
        "direction": "minimise" if minimise else None,
        "missing": _given(rule=missing, value=default, window=window, hold=hold or None, late=late),
        "stopping": _given(budget=budget, deadline=deadline, precision=precision),
    }
    description = Description(file, _given(**given) or {})
    rehearse(store, lambda trial: description.create_in(StoredExperiments(trial)))
    experiments = experiments_at(store, key, who, new=True)
    made = description.create_in(experiments)
    settings, names = made.configuration, [arm.arm for arm in made.status().arms]
    data = {"name": made.name, "store": experiments.url, "arms": names} | settings.to_dict()
    print_answer(
        data,
        f"{made.name}: {len(names):,} arms, {settings.policy!r}, seed {settings.seed}, in {experiments.url}",
        as_json,
    )


def _given(**values: Any) -> dict[str, Any] | None:
    """Return what was given, in the words of a file, or None if nothing was."""
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
            raise InvalidInput(f"--metadata must be KEY=TEXT; got {key!r}")
    return {key: value for key, _, value in pairs}
