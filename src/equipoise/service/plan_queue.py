"""Simulate plans beside the service: a queue in a directory, and one niced process that works on one plan at a time.

All processes of a server share the directory, so any of them can answer for any plan. A plan's id is the digest of the
plan, so that asking twice gives the same plan. The process ends when nothing waits, and whoever adds a plan starts it
again: a lock on a file, which the kernel releases when its holder ends however it ends, says whether one is at work.

Beside the record of a plan it keeps what pages show of the same forecast: contents, charts, and for each way the bands
that an experiment made from the plan is compared with. Charts take longer than some simulations, so they are drawn
where nobody waits for them.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from equipoise.errors import EquipoiseError, InvalidInput, MissingExtra, UnknownPlan
from equipoise.service.error_responses import Overloaded

if TYPE_CHECKING:
    from equipoise.charts.pages import Picture
    from equipoise.forecast_contents import ForecastContents
    from equipoise.planner.forecast import Forecast
    from equipoise.planner.plan import Plan

PLANS = "EQUIPOISE_SERVICE_PLANS"
"""Environment variable that names the directory to the server's processes."""

WAITING, WORKING, DONE, CANCELLED, FAILED = "waiting", "working", "done", "cancelled", "failed"
"""States of a plan."""

MOST_WAITING = 8
MOST_KEPT = 100
"""Plans that are kept; of more, those asked for longest ago are forgotten."""
MOST_SECONDS = 60.0
"""Processor seconds of one plan."""
MOST_WAYS, MOST_ARMS, MOST_PEOPLE = 20, 64, 1_000_000
"""What one plan may ask for; larger ones belong on a machine of their own."""

_ID = re.compile(r"[0-9a-f]{8,64}")
_NICE = 19
_RECORD, _CONTENTS, _CHARTS, _BANDS = ".json", ".contents", ".charts", ".bands"
"""Endings of the files of a plan."""
_DRAWING_PART = 0.2
"""Most part of the time that charts of forecasts on the way may take."""


def check_size(plan: Plan) -> None:
    """Raise if a plan is too large for the service."""
    people = plan.most_people or round(plan.expected_people)
    sizes = {"ways": (len(plan.ways), MOST_WAYS), "arms": (len(plan.arms), MOST_ARMS), "people": (people, MOST_PEOPLE)}
    for name, (size, most) in sizes.items():
        if size > most:
            raise InvalidInput.of(
                name,
                f"must be at most {most:,} for a plan that the service simulates",
                size,
                hint="`equipoise plan FILE` has no limit, and --backend ray or dask spreads it over a cluster",
            )


class PlanQueue:
    """The plans of a server, in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._children: list[subprocess.Popen[bytes]] = []

    def submit(self, plan: Plan, *, seconds: float = MOST_SECONDS) -> dict[str, Any]:
        """Add a plan, unless it is here already, and return its record."""
        check_size(plan)
        identity = plan.digest
        known = self.find(identity)
        if known is None or known["state"] in (CANCELLED, FAILED):
            if len(self._in(WAITING)) >= MOST_WAITING:
                raise Overloaded(f"{MOST_WAITING} plans are waiting to be simulated already")
            self._forget_oldest()
            record = {
                "id": identity,
                "title": plan.title or ", ".join(plan.arm_names),
                "state": WAITING,
                "replications": 0,
                "forecast": None,
                "plan": plan.to_dict(),
                "seconds": seconds,
                "asked_at": datetime.now(UTC).isoformat(),
            }
            self.keep(identity, record)
        self._wake()
        return self.get(identity)

    def find(self, identity: str) -> dict[str, Any] | None:
        """Return a plan's record, or None if there is no such plan."""
        if not _ID.fullmatch(identity):
            return None
        try:
            found: dict[str, Any] = json.loads(self._path(identity).read_bytes())
        except FileNotFoundError:
            return None
        return found

    def get(self, identity: str) -> dict[str, Any]:
        """Return a plan's record; raise if there is no such plan."""
        found = self.find(identity)
        if found is None:
            raise UnknownPlan(f"there is no plan {identity!r}", hint="plans are kept for a while only: submit it again")
        if found["state"] in (WAITING, WORKING):
            self._wake()  # in case the process was killed
        return found

    def summaries(self) -> list[dict[str, Any]]:
        """Return all plans, those asked for last first, without their forecasts."""
        found = sorted(self._all(), key=lambda one: str(one["asked_at"]), reverse=True)
        return [{name: value for name, value in one.items() if name not in ("forecast", "plan")} for one in found]

    def contents(self, identity: str) -> ForecastContents | None:
        """Return what pages show of a plan's forecast besides its charts; None before there is one."""
        from equipoise.forecast_contents import ForecastContents

        found = self._bytes(identity, _CONTENTS)
        return None if found is None else msgspec.json.decode(found, type=ForecastContents)

    def pictures(self, identity: str) -> list[Picture]:
        """Return the charts of a plan's forecast, as far as they are drawn."""
        from equipoise.charts.pages import Picture

        found = self._bytes(identity, _CHARTS)
        return [] if found is None else msgspec.json.decode(found, type=list[Picture])

    def bands(self, identity: str) -> dict[str, dict[str, Any]]:
        """Return, by way, what an experiment keeps of a plan to be compared with; empty before it is simulated."""
        found = self._bytes(identity, _BANDS)
        bands: dict[str, dict[str, Any]] = {} if found is None else msgspec.json.decode(found)
        return bands

    def change_of(self, identity: str) -> int:
        """Return a number that changes when anything that is kept of a plan does."""
        changed = []
        for ending in (_RECORD, _CONTENTS, _CHARTS):
            with contextlib.suppress(FileNotFoundError):
                changed.append(self._path(identity, ending).stat().st_mtime_ns)
        return zlib.crc32(repr(changed).encode())

    def cancel(self, identity: str) -> dict[str, Any]:
        """End the work on a plan and keep what is done of it; forget a plan that nothing is done on."""
        found = self.get(identity)
        if found["state"] == WORKING:
            self._kill_worker()
            found = self.get(identity)
        if found["state"] in (WAITING, WORKING):
            found["state"] = CANCELLED
            self.keep(identity, found)
            self._wake()
        else:
            self._forget(identity)
        return found

    def close(self) -> None:
        """End the process that simulates, and wait for those that this process has started."""
        self._kill_worker()
        for child in self._children:
            child.kill()
            child.wait()
        self._children.clear()

    # The process that simulates

    def work(self) -> None:
        """Simulate what waits, until nothing does."""
        with contextlib.suppress(OSError):
            os.nice(_NICE)
        with contextlib.suppress(OSError, AttributeError):  # only where nobody else wants the processor, on Linux
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        # Who finds the lock taken leaves: the holder looks once more after it has released it.
        while self._unfinished():
            with self._locked() as is_mine:
                if not is_mine:
                    return
                self._pid_path.write_text(str(os.getpid()))
                while waiting := self._unfinished():
                    self._simulate(min(waiting, key=lambda one: one["asked_at"]))
                self._pid_path.unlink(missing_ok=True)

    def _simulate(self, found: dict[str, Any]) -> None:
        from equipoise.planner.plan import Plan
        from equipoise.planner.refinement import simulate

        identity = found["id"]

        keeper = _Keeper(self, found)
        self.keep(identity, found | {"state": WORKING})
        # One core is left to the service, wherever there are several.
        workers = max(1, (os.cpu_count() or 1) - 1)
        try:
            plan = Plan.from_dict(found["plan"])
            forecast = simulate(
                plan, seconds=found["seconds"] / workers, workers=workers, on_partial=keeper.keep_on_the_way
            )
        except EquipoiseError as error:
            self.keep(identity, found | {"state": FAILED, "error": error.message})
        except Exception as error:  # noqa: BLE001  (reported to whoever asked; the next plan must not wait for ever)
            self.keep(identity, found | {"state": FAILED, "error": f"{type(error).__name__}: {error}"})
        else:
            keeper.keep_the_last(forecast)

    def _wake(self) -> None:
        """Start the process that simulates, if something waits and none is at work."""
        if not self._unfinished():
            return
        with self._locked() as is_free:
            pass
        self._children = [child for child in self._children if child.poll() is None]
        if is_free and not self._children:
            nothing = subprocess.DEVNULL  # what it prints must not mix with the log of the service
            command = [sys.executable, "-m", "equipoise.service.plan_queue", str(self.directory)]
            self._children.append(
                subprocess.Popen(  # noqa: S603  (our own module)
                    command, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True
                )
            )

    def _kill_worker(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            os.kill(int(self._pid_path.read_text()), signal.SIGKILL)
            self._pid_path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[bool]:
        """Yield whether the lock of the process that simulates was free; hold it meanwhile."""
        with (self.directory / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                yield False
            else:
                yield True

    @property
    def _pid_path(self) -> Path:
        return self.directory / "pid"

    # Files

    def _path(self, identity: str, ending: str = _RECORD) -> Path:
        return self.directory / f"{identity}{ending}"

    def _bytes(self, identity: str, ending: str) -> bytes | None:
        """Return a file of a plan, or None if it is not there."""
        if not _ID.fullmatch(identity):
            return None
        try:
            return self._path(identity, ending).read_bytes()
        except FileNotFoundError:
            return None

    def keep(self, identity: str, record: dict[str, Any]) -> None:
        """Keep the record of a plan."""
        self.keep_file(identity, _RECORD, json.dumps(record).encode())

    def keep_file(self, identity: str, ending: str, content: bytes) -> None:
        """Replace a file of a plan as a whole: readers find the old one or the new one."""
        path = self._path(identity, ending)
        partial = path.with_suffix(f".{os.getpid()}")
        partial.write_bytes(content)
        partial.replace(path)

    def _forget(self, identity: str) -> None:
        for ending in (_RECORD, _CONTENTS, _CHARTS, _BANDS):
            self._path(identity, ending).unlink(missing_ok=True)

    def _all(self) -> list[dict[str, Any]]:
        names = (path.stem for path in self.directory.glob("*.json"))
        return [found for found in map(self.find, names) if found is not None]

    def _in(self, *states: str) -> list[dict[str, Any]]:
        return [one for one in self._all() if one["state"] in states]

    def _unfinished(self) -> list[dict[str, Any]]:
        """Return what waits, and what was at work: the lock says whether it still is."""
        return self._in(WAITING, WORKING)

    def _forget_oldest(self) -> None:
        kept = sorted(self._in(DONE, CANCELLED, FAILED), key=lambda one: one["asked_at"])
        for one in kept[: max(0, len(kept) - MOST_KEPT + 1)]:
            self._forget(one["id"])


class _Keeper:
    """Keeps the forecasts of a plan that is at work, and what pages show of them."""

    def __init__(self, queue: PlanQueue, record: dict[str, Any]) -> None:
        self._queue, self._record, self._identity = queue, record, str(record["id"])
        self._drawn_at, self._drawing_seconds = 0.0, 0.0

    def keep_on_the_way(self, forecast: Forecast) -> None:
        """Keep a forecast; draw its charts if that takes a small part of the time since the last drawing."""
        self._keep(forecast, WORKING)
        if (time.monotonic() - self._drawn_at) * _DRAWING_PART >= self._drawing_seconds:
            self._draw(forecast)

    def keep_the_last(self, forecast: Forecast) -> None:
        """Keep the last forecast with its charts, then say that the plan is done."""
        self._keep(forecast, WORKING)
        self._draw(forecast)
        self._keep(forecast, DONE)

    def _keep(self, forecast: Forecast, state: str) -> None:
        from equipoise.forecast_contents import contents_of

        if self._queue.find(self._identity) is None:  # forgotten, or the server has ended
            raise SystemExit
        self._replace(_CONTENTS, contents_of(forecast))
        done = {"state": state, "replications": forecast.replications, "forecast": forecast.to_dict()}
        self._queue.keep(self._identity, self._record | done)

    def _draw(self, forecast: Forecast) -> None:
        from equipoise.forecast_contents import pictures
        from equipoise.planner.planned_experiment import planned_bands

        began = time.monotonic()
        self._replace(_BANDS, {way: planned_bands(forecast, way) for way in forecast.question.ways})
        with contextlib.suppress(MissingExtra):
            self._replace(_CHARTS, pictures(forecast))
        self._drawn_at = time.monotonic()
        self._drawing_seconds = self._drawn_at - began

    def _replace(self, ending: str, content: Any) -> None:
        self._queue.keep_file(self._identity, ending, msgspec.json.encode(content))


if __name__ == "__main__":
    PlanQueue(Path(sys.argv[1])).work()
