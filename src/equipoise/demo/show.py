"""Run the demo from start to finish: a service, an experiment, simulated people, a live table, a verdict, a chart."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from equipoise import checks
from equipoise.charts import checked_chart_path, save_chart, tracking_chart
from equipoise.client import Client
from equipoise.demo.scenario import DAYS, MISSING, NAME, START, Trial
from equipoise.errors import MissingExtra
from equipoise.experiment import Experiment, Status, Verification
from equipoise.http_api import ADMIN
from equipoise.paper.real_experiments import RealExperiment, effort_experiment
from equipoise.planner.live_play import Clock
from equipoise.service.api_keys import create_key
from equipoise.service.asgi import has_console
from equipoise.service.settings import Settings
from equipoise.status_table import Line, print_lines, status_lines, styled_text
from equipoise.store import open_store
from equipoise.terminal import announce_compiling, counted

FOLDER = Path("demo-output")
CHART = FOLDER / "demo.html"
STORE = FOLDER / "demo.db"
COMMAND = os.environ.get("EQUIPOISE_COMMAND", "equipoise")
"""Name of the command in messages; a checkout of the repository uses another, without an installation."""


def run(*, steps: int | None, seed: int, reward_weight: float, out: Path | None, stay: bool = False) -> int:
    """Run the experiment, print the verdict and write the chart; return the exit code, 130 if interrupted."""
    from equipoise.service import ThreadedService

    checks.number_between("reward_weight", reward_weight, 0, 1)
    chart = _chart_path(out)
    real = effort_experiment()
    n_people = real.n_people if steps is None else steps
    url = _new_store()
    try:
        announce_compiling()
        _warm_up()
    except KeyboardInterrupt:
        say("interrupted before the first person came")
        return 130
    clock = Clock(START)
    store = open_store(url, clock=clock)
    key, text = create_key(store, role=ADMIN, name="demo")
    # Two weeks pass in seconds: what a look once a minute would find depends on how fast the machine is.
    settings = Settings(watch_seconds=3600.0)
    # Ctrl-C takes effect between two hours, so that everything shuts down in order, the service last.
    with _ctrl_c() as interrupted, ThreadedService(store, settings) as service, Client(service.url, text) as client:
        # Port and key change each time, so they are useless in a file.
        where = f" at {service.url}, with the key {key.id}" if sys.stderr.isatty() else ""
        say(f"the service runs on {url}{where}")
        trial = Trial(client.create, clock, real, n_people, reward_weight=reward_weight, seed=seed)
        say(f"which of {len(real.names)} incentives makes people press two keys most often in ten minutes?")
        people = "person" if n_people == 1 else "people"
        say(f"{n_people:,} simulated {people} in {DAYS} days, as in {real.citation};")
        say(f"rewards, which are button presses, come hours later, and {MISSING:.0%} never come")
        if not _live(trial, interrupted):
            status = trial.experiment.status()
            say(f"interrupted after {status.n_assigned:,} of {n_people:,} people; this is how far it came")
            print_lines(status_lines(status))
            return 130
        _conclude(trial, real, chart)
        if stay:
            _stay(service.url, text, interrupted)
    for line in look_around(url):
        say(line)
    return 0


def _live(trial: Trial, interrupted: threading.Event) -> bool:
    """Let the hours pass, with a live table; return False if interrupted."""
    with LiveStatus() as live:
        for hour in trial.hours():
            if live.is_due(hour):
                status = trial.experiment.status()
                trial.take_note(status)
                live.show(hour, status)
            if interrupted.is_set():
                return False
    return True


def _conclude(trial: Trial, real: RealExperiment, chart: Path | None) -> None:
    """Print the final status and the verdict, and draw the chart."""
    status = trial.experiment.status()
    trial.take_note(status)
    truth = Line("judged by what is true in the simulation, which the experiment did not know:")
    verdict = verdict_lines(real, status, trial.experiment.verify())
    print_lines([*status_lines(status), Line(""), truth, *verdict])
    if chart is not None:
        save_chart(tracking_chart(trial.record()), chart)
        say(f"chart written to {chart}")


def look_around(store: str) -> list[str]:
    """Return how to look at the experiment after the demo has ended."""
    found = [f"look around: {COMMAND} events {NAME} --store {store}"]
    if has_console(Settings()):
        found.append(f"or in a browser: {COMMAND} serve --open --store {store}")
        found.append(f"and then http://127.0.0.1:8000/console/e/{NAME}, where no key is asked for")
    return found


def _stay(url: str, key: str, interrupted: threading.Event) -> None:
    """Keep the service running until Ctrl-C, to try it out."""
    say("the service stays until Ctrl-C")
    if has_console(Settings()):
        say(f"the console: {url}/console/e/{NAME}")
        say(f"sign in with this key: {key}")
    say(f"documentation of the API: {url}/docs")
    say("for another terminal:")
    say(f"  export EQUIPOISE_STORE={url} EQUIPOISE_KEY={key}")
    say(f"  {COMMAND} status {NAME}")
    while not interrupted.wait(0.2):
        pass


@contextmanager
def _ctrl_c() -> Iterator[threading.Event]:
    """Yield an event that Ctrl-C sets.

    A KeyboardInterrupt raised inside a destructor is reported and lost, and the program would go on.
    """
    pressed = threading.Event()
    if threading.current_thread() is not threading.main_thread():  # signal handlers can only be set there
        yield pressed
        return
    before = signal.signal(signal.SIGINT, lambda *_: pressed.set())
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


def _chart_path(out: Path | None) -> Path | None:
    """Return where to write the chart, or None if it cannot be drawn and `out` does not ask for it."""
    path = CHART if out is None else out
    try:
        return checked_chart_path(path, make_folder=True)
    except MissingExtra as error:
        if out is not None:
            raise
        say(f"no chart: {error}")
        return None


def _new_store() -> str:
    """Remove the store of the last demo, and return the URL of a new one."""
    FOLDER.mkdir(exist_ok=True)
    for ending in ("", "-wal", "-shm"):
        STORE.with_name(STORE.name + ending).unlink(missing_ok=True)
    return f"sqlite:///{STORE}"


def _warm_up() -> None:
    """Take every kind of step once, so that everything is compiled before people arrive (warm-up)."""
    clock = Clock(START)
    create = partial(Experiment.create, open_store("memory:", clock=clock))
    trial = Trial(create, clock, effort_experiment(), 120, reward_weight=0.5, seed=0)
    for _ in trial.hours():
        pass
    trial.experiment.status()
    trial.experiment.verify()


_FRAME_SECONDS = 0.05
"""How long each frame stays on a terminal; without it, the run would be over in a few seconds."""
_HOURS_PER_FRAME = 3
_SNAPSHOT_DAYS = (1, 2, 4, 7, 10, DAYS)


class LiveStatus:
    """Show the status on stderr while the experiment runs: a live table, or a few lines without a terminal."""

    def __init__(self) -> None:
        self._console: Any = None
        self._screen: Any = None

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(stderr=True, highlight=False)
        if self._console.is_terminal:
            self._screen = Live(console=self._console, transient=True, auto_refresh=False)
            self._screen.start()
        return self

    def __exit__(self, *details: object) -> None:
        if self._screen is not None:
            self._screen.stop()

    def is_due(self, hour: int) -> bool:
        """Return whether the status of this hour is worth computing."""
        return hour % _HOURS_PER_FRAME == 0

    def show(self, hour: int, status: Status) -> None:
        """Show the status of an hour."""
        if self._screen is None:
            if hour % 24 == 0 and hour // 24 in _SNAPSHOT_DAYS:
                say(snapshot(hour // 24, status))
            return
        width, height = self._console.width, self._console.height
        day = f"day {min(hour // 24 + 1, DAYS)} of {DAYS}" if hour < 24 * DAYS else "the last answers come in"
        lines = [Line(day, "cyan"), Line(""), *status_lines(status, width=width, height=height - 3)]
        self._screen.update(styled_text(lines), refresh=True)
        time.sleep(_FRAME_SECONDS)


def snapshot(day: int, status: Status) -> str:
    """Format the status as one line."""
    first, second = sorted(status.arms, key=lambda arm: -arm.assigned)[:2]
    # At first no arm leads: there are no people yet, or several arms are tied.
    most = f"; most to {first.arm!r}" if first.assigned > second.assigned else ""
    average = "-" if status.average_reward is None else f"{status.average_reward:,.0f}"
    return f"day {day:2}: {status.n_assigned:,} people, {status.n_rewarded:,} rewards; average {average}{most}"


def say(text: str) -> None:
    """Print a line to stderr."""
    print(text, file=sys.stderr, flush=True)


def verdict_lines(real: RealExperiment, status: Status, verified: Verification) -> list[Line]:
    """Return the verdict, judged by the true means of the simulation."""
    lines = [("participants", text) for text in _gain(real, status)]
    lines += [("accuracy", text) for text in _accuracy(real, status)]
    decisions = counted(verified.n_decisions, "decision")
    replayed = f"{counted(verified.n_events, 'event')} with {decisions} replayed: all as recorded"
    lines.append(("verify", replayed))
    shown, last = [], ""
    for name, text in lines:
        shown.append(Line(f"{name if name != last else '':12}  {text}"))
        last = name
    return shown


def _gain(real: RealExperiment, status: Status) -> list[str]:
    """Return the expected gain over equal shares."""
    assigned, mean = np.array([arm.assigned for arm in status.arms]), np.asarray(real.arms.mean)
    each = float(assigned @ mean) / status.n_assigned - float(mean.mean())
    more, digits = "more" if each >= 0 else "fewer", 0 if abs(each) >= 10 else 1
    in_all = f"{abs(each) * status.n_assigned:,.0f}"
    if in_all == "0":
        return [f"as many {real.outcome} as with equal shares"]
    lines = [
        f"{abs(each):.{digits}f} {real.outcome} {more} each than with equal shares ({each / float(mean.mean()):+.1%})",
        f"{in_all} {more} in all",
    ]
    if all(arm.half_width is None for arm in status.arms):
        lines.append("so few people tell little of what it does: more take part with --steps")
    return lines


def _accuracy(real: RealExperiment, status: Status) -> list[str]:
    """Return the accuracy of the arms' means, compared with equal shares."""
    pulls = np.array([arm.rewarded for arm in status.arms])
    if pulls.min() == 0:
        n_unknown = np.count_nonzero(pulls == 0)
        return [f"{n_unknown} of {pulls.size} arms {'has' if n_unknown == 1 else 'have'} no reward"]
    std = np.asarray(real.arms.std)
    ratio = float((std / np.sqrt(pulls)).mean() / (std / np.sqrt(pulls.sum() / pulls.size)).mean())
    lines = [f"errors {ratio:.2f} times those with equal shares, on average"]
    known = [(arm, mean) for arm, mean in zip(status.arms, real.arms.mean, strict=True) if arm.half_width is not None]
    if known:
        held = sum(arm.low <= mean <= arm.high for arm, mean in known if arm.low is not None and arm.high is not None)
        widths = [arm.half_width for arm, _ in known if arm.half_width is not None]
        some = f"{len(known)} of {len(status.arms)} arms {'is' if len(known) == 1 else 'are'}"
        which = "every arm is" if len(known) == len(status.arms) else some
        within = f"{min(widths):.0f} to {max(widths):.0f}" if len(known) > 1 else f"{widths[0]:.0f}"
        lines.append(f"{which} known to within {within} {real.outcome}")
        intervals = counted(len(known), "interval")
        lines.append(f"{held} of {intervals} {'holds' if held == 1 else 'hold'} the true mean")
    return lines
