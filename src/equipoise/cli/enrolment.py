"""The commands `equipoise pause`, `resume`, `stop` and `finish`: whether an experiment takes new units."""

from typing import TYPE_CHECKING, Annotated

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

Anyway = Annotated[
    bool, option("--anyway", "Experiment", None, "Even if rewards are held back; they never count then.")
]


def pause(
    name: ExperimentName, store: StoreUrl = DEFAULT_STORE, key: Key = None, who: Who = None, as_json: AsJson = False
) -> None:
    """Take no new units for a while; rewards are accepted."""
    experiment = open_experiment(store, name, key, who)
    experiment.pause()
    _print(experiment, as_json)


def resume(
    name: ExperimentName, store: StoreUrl = DEFAULT_STORE, key: Key = None, who: Who = None, as_json: AsJson = False
) -> None:
    """Take new units again after a pause."""
    experiment = open_experiment(store, name, key, who)
    experiment.resume()
    _print(experiment, as_json)


def stop(
    name: ExperimentName, store: StoreUrl = DEFAULT_STORE, key: Key = None, who: Who = None, as_json: AsJson = False
) -> None:
    """Take no new units any more; rewards are still accepted."""
    experiment = open_experiment(store, name, key, who)
    experiment.stop()
    _print(experiment, as_json)


def finish(
    name: ExperimentName,
    anyway: Anyway = False,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Close an experiment for good: no new units, no rewards, no corrections."""
    experiment = open_experiment(store, name, key, who)
    experiment.finish(anyway=anyway)
    _print(experiment, as_json)


def _print(experiment: "AnyExperiment", as_json: bool) -> None:
    status = experiment.status()
    data = {"name": status.name, "state": status.state, "n_pending": status.n_pending}
    print_answer(data, f"{status.name} is {status.state}; rewards pending: {status.n_pending:,}", as_json)
