"""The commands `equipoise copy` and `equipoise upgrade`: to another store, or to the schema of this version."""

from typing import TYPE_CHECKING, Annotated

import typer

from equipoise.cli.options import AsJson, option
from equipoise.cli.stores import (
    DEFAULT_STORE,
    DatabaseUrl,
    Quiet,
    announce_compiling,
    any_store,
    existing_store,
    existing_url,
    is_service,
    note,
    print_answer,
)
from equipoise.cli.verify import Names
from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from equipoise.experiment import Experiment
    from equipoise.store import Store

Target = Annotated[str, option("--to", "Store", "URL", "The store to copy to; made new if it is not there.")]


def copy(
    names: Names = None,
    *,
    to: Target,
    store: DatabaseUrl = DEFAULT_STORE,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Copy experiments with their whole log to another store, where they can go on, and verify them there."""
    from equipoise.experiment import Experiment
    from equipoise.printing import counted, print_json

    if is_service(to):
        raise InvalidInput(
            "--to must be a database; got the address of a service",
            hint="copy to the database of that service: sqlite:///FILE or postgresql://...",
        )
    source, target = existing_store(store), any_store(to)
    announce_compiling(quiet=quiet)
    rows = []
    for name in names or [one.name for one in Experiment.list(source)]:
        copied, new = _copy(Experiment.open(source, name), target, quiet)
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
    """Copy one experiment, with a bar on the terminal unless it is to be quiet; and whether it was not there before."""
    from equipoise.progress import Reporter, StepBar

    bar = Reporter() if quiet else StepBar(experiment.status().n_events, f"copying {experiment.name}", noun="events")
    new = False

    def show(n_done: int, _n_events: int) -> None:
        nonlocal new
        new = True  # every log has a first event, so of what is copied at least one is told
        bar.show(n_done)

    try:
        with bar:
            copied = experiment.copy_to(target, progress=show)
    except KeyboardInterrupt:
        note(f"interrupted; nothing of {experiment.name} is in {target.url}, the same command copies it")
        raise typer.Exit(130) from None
    return copied, new


def upgrade(store: DatabaseUrl = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Bring a store made by an older version to the schema of this one; make a copy of it first."""
    from equipoise.store import upgrade as upgrade_store

    before, after = upgrade_store(existing_url(store))
    done = f"has schema {after}; nothing to do" if before == after else f"brought from schema {before} to {after}"
    print_answer({"store": store, "before": before, "after": after}, f"the store {done}", as_json)
