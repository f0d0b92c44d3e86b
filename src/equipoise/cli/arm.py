"""The commands `equipoise arm add`, `pause`, `resume` and `retire`: arms that come and go."""

from typing import TYPE_CHECKING, Annotated

import typer

from equipoise.cli.options import AsJson, option
from equipoise.cli.stores import (
    DEFAULT_STORE,
    ExperimentName,
    Key,
    StoreUrl,
    Who,
    open_experiment,
    print_answer,
)

if TYPE_CHECKING:
    from equipoise.cli.stores import AnyExperiment

ArmName = Annotated[str, typer.Argument(metavar="ARM", help="The arm.", show_default=False)]
Floor = Annotated[float, option("--floor", "Arm", "X", "Share kept for it.")]


def add(
    name: ExperimentName,
    arm: ArmName,
    floor: Floor = 0.0,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Add an arm; a changed arm is a new arm."""
    experiment = open_experiment(store, name, key, who)
    experiment.add_arm(arm, floor=floor)
    _print(experiment, arm, as_json)


def pause(
    name: ExperimentName,
    arm: ArmName,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Assign nobody to an arm for a while."""
    experiment = open_experiment(store, name, key, who)
    experiment.pause_arm(arm)
    _print(experiment, arm, as_json)


def resume(
    name: ExperimentName,
    arm: ArmName,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Assign units to an arm again after a pause."""
    experiment = open_experiment(store, name, key, who)
    experiment.resume_arm(arm)
    _print(experiment, arm, as_json)


def retire(
    name: ExperimentName,
    arm: ArmName,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Assign nobody to an arm any more; rewards of those who have it still count."""
    experiment = open_experiment(store, name, key, who)
    experiment.retire_arm(arm)
    _print(experiment, arm, as_json)


def _print(experiment: "AnyExperiment", arm: str, as_json: bool) -> None:
    states = {one.arm: one.state for one in experiment.status().arms}
    active = sum(state == "active" for state in states.values())
    data = {"name": experiment.name, "arm": arm, "state": states[arm], "n_active": active}
    print_answer(data, f"{arm} is {states[arm]}; arms in play: {active:,}", as_json)
