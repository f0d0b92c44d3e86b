"""The command `equipoise unit`: one unit's assignment, and what became of its reward."""

from typing import Annotated

import typer

from equipoise.cli.options import AsJson
from equipoise.cli.stores import DEFAULT_STORE, ExperimentName, Key, StoreUrl, open_experiment, print_answer
from equipoise.errors import UnknownUnit

UnitName = Annotated[str, typer.Argument(metavar="UNIT", help="Who was assigned.", show_default=False)]


def unit(
    name: ExperimentName,
    unit: UnitName,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Print the arm of a unit and what became of its reward; nothing is written."""
    found = open_experiment(store, name, key).unit(unit)
    if found is None:
        raise UnknownUnit(
            f"unit {unit!r} was never assigned in experiment {name!r}", hint="equipoise ask NAME UNIT assigns it"
        )
    how = f"decision {found.number:,}, probability {found.probability:.4g}{', forced' * found.forced}"
    reward = "no reward" if found.reward is None else f"reward {found.reward!r}"
    told = f"{unit}: {found.arm} ({how}, {found.at:%Y-%m-%d %H:%M:%S} UTC); {reward}, {found.state}"
    print_answer(found.to_dict(), told, as_json)
