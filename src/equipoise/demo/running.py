"""The demo from beginning to end: a service, an experiment, people, a live table, a verdict and a chart."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise import checks
from equipoise.charts import checked_chart_path, save_chart, tracking_chart
from equipoise.client import Client
from equipoise.demo.interrupting import Interruption
from equipoise.demo.population import DAYS, MISSING
from equipoise.demo.showing import Show, say
from equipoise.demo.trial import NAME, Clock, Trial
from equipoise.demo.verdict import verdict_lines
from equipoise.errors import MissingExtra
from equipoise.experiment import Experiment
from equipoise.experiment_tables import Line, print_lines, status_lines
from equipoise.keys import ADMIN, create_key
from equipoise.paper.real_experiments import effort_experiment
from equipoise.printing import slow_start_note
from equipoise.store import open_store

if TYPE_CHECKING:
    from equipoise.paper.real_experiments import RealExperiment

FOLDER = Path("demo-output")
CHART = FOLDER / "demo.html"
STORE = FOLDER / "demo.db"
COMMAND = os.environ.get("EQUIPOISE_COMMAND", "equipoise")
"""How the reader can run commands: not by their name if nothing is installed but in the repository."""


def run(*, steps: int | None, seed: int, reward_weight: float, out: Path | None, stay: bool = False) -> int:
    """Run the experiment, print the verdict and write the chart; return the exit code, 130 if interrupted."""
    from equipoise.service import ThreadedService

    checks.number_between("reward_weight", reward_weight, 0, 1)
    chart = _chart_path(out)
    real = effort_experiment()
    n_people = real.n_people if steps is None else steps
    url = _new_store()
    try:
        with slow_start_note():
            _warm_up()
    except KeyboardInterrupt:
        say("interrupted before the first person came")
        return 130
    clock = Clock()
    store = open_store(url, clock=clock)
    key, text = create_key(store, role=ADMIN, name="demo")
    # Ctrl-C is looked at between the hours and ends everything in order, the service last.
    with Interruption() as interruption, ThreadedService(store) as service, Client(service.url, text) as client:
        # Port and key are others each time; who only reads what was printed has no use for them.
        where = f" at {service.url}, with the key {key.id}" if sys.stderr.isatty() else ""
        say(f"the service runs on {url}{where}")
        trial = Trial(client.create, clock, real, n_people, reward_weight=reward_weight, seed=seed)
        say(f"{len(real.names)} incentives for pressing two keys for ten minutes, as in {real.citation};")
        people = "person" if n_people == 1 else "people"
        say(f"{n_people:,} simulated {people} in {DAYS} days; answers take hours, {MISSING:.0%} never come")
        if not _live(trial, interruption):
            status = trial.experiment.status()
            say(f"interrupted after {status.n_assigned:,} of {n_people:,} people; this is how far it came")
            print_lines(status_lines(status))
            return 130
        _conclude(trial, real, chart)
        if stay:
            _stay(service.url, text, interruption)
    say(f"look around: {COMMAND} events {NAME} --store {url}")
    return 0


def _live(trial: Trial, interruption: Interruption) -> bool:
    """Let the hours pass, with a live table; return whether nobody interrupted."""
    with Show() as show:
        for hour in trial.hours():
            if show.is_due(hour):
                status = trial.experiment.status()
                trial.take_note(status)
                show.show(hour, status)
            if interruption.asked.is_set():
                return False
    return True


def _conclude(trial: Trial, real: RealExperiment, chart: Path | None) -> None:
    """Print where it ended and what to make of it, and draw it."""
    status = trial.experiment.status()
    trial.take_note(status)
    print_lines([*status_lines(status), Line(""), *verdict_lines(real, status, trial.experiment.verify())])
    if chart is not None:
        save_chart(tracking_chart(trial.record()), chart)
        say(f"chart written to {chart}")


def _stay(url: str, key: str, interruption: Interruption) -> None:
    """Keep the service running for those who want to try it."""
    say(f"the service stays at {url} until Ctrl-C; its documentation is at {url}/docs; for another terminal:")
    say(f"  export EQUIPOISE_STORE={url} EQUIPOISE_KEY={key}")
    say(f"  {COMMAND} status {NAME}")
    while not interruption.asked.wait(0.2):
        pass


def _chart_path(out: Path | None) -> Path | None:
    """Return where to write the chart; a missing extra is an error only if a chart was asked for."""
    path = CHART if out is None else out
    try:
        return checked_chart_path(path, make_folder=True)
    except MissingExtra as error:
        if out is not None:
            raise
        say(f"no chart: {error}")
        return None


def _new_store() -> str:
    """Return the URL of an empty store; that of the last demo is removed."""
    FOLDER.mkdir(exist_ok=True)
    for ending in ("", "-wal", "-shm"):
        STORE.with_name(STORE.name + ending).unlink(missing_ok=True)
    return f"sqlite:///{STORE}"


def _warm_up() -> None:
    """Take every kind of step once, so that compiling is over before the show begins."""
    clock = Clock()
    create = partial(Experiment.create, open_store("memory:", clock=clock))
    trial = Trial(create, clock, effort_experiment(), 120, reward_weight=0.5, seed=0)
    for _ in trial.hours():
        pass
    trial.experiment.status()
    trial.experiment.verify()
