"""The command `equipoise status`: where an experiment stands, once or for as long as one watches."""

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from equipoise.cli.options import AsJson, option
from equipoise.cli.stores import DEFAULT_STORE, ExperimentName, Key, StoreUrl, open_experiment
from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from equipoise.cli.stores import AnyExperiment
    from equipoise.experiment import Status

Watch = Annotated[bool, option("--watch", "Output", None, "Show it anew until the experiment is finished, or Ctrl-C.")]
Every = Annotated[float, option("--every", "Output", "SECONDS", "How often to look, with --watch.")]


def status(
    name: ExperimentName,
    watch: Watch = False,
    every: Every = 1.0,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Print where an experiment stands: arms, totals, intervals, stopping rules."""
    if not 0.05 <= every <= 86_400:
        raise InvalidInput(f"--every must be in [0.05, 86400] seconds; got {every:g}")
    experiment = open_experiment(store, name, key)
    if not watch:
        _print(experiment.status(), as_json)
        return
    try:
        if sys.stdout.isatty() and not as_json:
            _watch_live(experiment, every)
        else:
            _watch_lines(experiment, every, as_json)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _print(found: "Status", as_json: bool, *, one_line: bool = False) -> None:
    from equipoise import printing
    from equipoise.experiment_tables import print_lines, status_lines

    if as_json and one_line:
        import json

        print(json.dumps(found.to_dict()), flush=True)
    elif as_json:
        printing.print_json(found.to_dict())
    else:
        print_lines(status_lines(found))


def _watch_live(experiment: "AnyExperiment", every: float) -> None:
    from rich.console import Console
    from rich.live import Live

    from equipoise.experiment_tables import status_lines, styled_text

    console = Console(highlight=False)
    with Live(console=console, auto_refresh=False) as screen:
        while True:
            found = experiment.status()
            lines = status_lines(found, width=console.width, height=console.height - 1)
            screen.update(styled_text(lines), refresh=True)
            if found.state == "finished":
                return
            time.sleep(every)


def _watch_lines(experiment: "AnyExperiment", every: float, as_json: bool) -> None:
    """Print the status whenever something has happened."""
    last = -1
    while True:
        found = experiment.status()
        if found.n_events != last:
            if last >= 0 and not as_json:
                print()
            _print(found, as_json, one_line=True)
            last = found.n_events
        if found.state == "finished":
            return
        time.sleep(every)
