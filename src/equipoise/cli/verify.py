"""The commands `equipoise verify` and `equipoise rebuild`: does the log give what is recorded, and if not, mend it."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from equipoise.cli.errors import told
from equipoise.cli.options import AsJson
from equipoise.cli.stores import DEFAULT_STORE, Key, StoreUrl, Who, experiments_at, note
from equipoise.errors import EquipoiseError, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from equipoise.cli.stores import AnyExperiment, StoredExperiments
    from equipoise.client import Client

Names = Annotated[
    list[str] | None, typer.Argument(metavar="NAME", help="Experiments; all by default.", show_default=False)
]


def verify(names: Names = None, store: StoreUrl = DEFAULT_STORE, key: Key = None, as_json: AsJson = False) -> None:
    """Replay the log from nothing and compare every decision, probability and statistic with what is recorded."""

    def check(experiment: "AnyExperiment") -> tuple[str, dict[str, Any]]:
        from equipoise.printing import counted

        found = experiment.verify()
        length = f"{counted(found.n_events, 'event')} with {counted(found.n_decisions, 'decision')}"
        text = f"{length} replayed, all as recorded"
        return text, {"n_events": found.n_events, "n_decisions": found.n_decisions, "seconds": found.seconds}

    _for_each(names, experiments_at(store, key), as_json, check)


def rebuild(
    names: Names = None,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Write statistics and everything else that is kept from the log anew."""

    def mend(experiment: "AnyExperiment") -> tuple[str, dict[str, Any]]:
        changed = experiment.rebuild()
        return "written anew from the log" if changed else "as the log says; nothing to do", {"changed": changed}

    _for_each(names, experiments_at(store, key, who), as_json, mend)


def _for_each(
    names: list[str] | None,
    experiments: "StoredExperiments | Client",
    as_json: bool,
    work: "Callable[[AnyExperiment], tuple[str, dict[str, Any]]]",
) -> None:
    """Do the work for each experiment; one that fails does not keep the others from it."""
    from equipoise.printing import print_json

    rows, failed = [], False
    for name in names or [one.name for one in experiments.list()]:
        try:
            text, data = work(experiments.open(name))
            rows.append({"name": name, "passed": True} | data)
            if not as_json:
                print(f"{name}: {text}", flush=True)
        except StoreError:
            raise
        except EquipoiseError as error:
            failed = True
            rows.append({"name": name, "passed": False, "error": error.message})
            note(f"error: {name}: {told(error)}")
    if as_json:
        print_json({"experiments": rows})
    if failed:
        raise typer.Exit(1)
