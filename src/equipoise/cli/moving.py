"""The commands `equipoise copy` and `equipoise upgrade`: to another store, or to the schema of this version."""

from typing import Annotated

from equipoise.cli.options import AsJson, option
from equipoise.cli.stores import DEFAULT_STORE, StoreUrl, any_store, existing_store, existing_url, note, print_answer
from equipoise.cli.verify import Names

Target = Annotated[str, option("--to", "Store", "URL", "The store to copy to; made new if it is not there.")]


def copy(names: Names = None, *, to: Target, store: StoreUrl = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Copy experiments with their whole log to another store, where they can go on, and verify them there."""
    from equipoise.experiment import Experiment
    from equipoise.printing import print_json

    source, target = existing_store(store), any_store(to)
    rows = []
    for name in names or [one.name for one in Experiment.list(source)]:
        copied = Experiment.open(source, name).copy_to(target)
        checked = copied.verify()
        rows.append({"name": name, "n_events": checked.n_events, "store": target.url})
        if not as_json:
            print(f"{name}: {checked.n_events:,} events copied to {target.url} and verified there", flush=True)
        if copied.status().state == "enrolling":
            note(f"note: {name} still takes units in {source.url} as well; finish it there when all clients have moved")
    if as_json:
        print_json({"experiments": rows})


def upgrade(store: StoreUrl = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Bring a store made by an older version to the schema of this one; make a copy of it first."""
    from equipoise.store import upgrade as upgrade_store

    before, after = upgrade_store(existing_url(store))
    done = f"has schema {after}; nothing to do" if before == after else f"brought from schema {before} to {after}"
    print_answer({"store": store, "before": before, "after": after}, f"the store {done}", as_json)
