"""Simulate plans beside the service: a queue in a directory, and one niced process that works on one plan at a time.

All processes of a server share the directory, so any of them can answer for any plan. A plan's id is the digest of the
plan, so that asking twice gives the same plan. The process ends when nothing waits, and whoever adds a plan starts it
again: a lock on a file, which the kernel releases when its holder ends however it ends, says whether one is at work.
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
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.errors import EquipoiseError, InvalidInput, UnknownPlan
from equipoise.service.error_responses import Overloaded

if TYPE_CHECKING:
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
            request = {"plan": plan.to_dict(), "seconds": seconds, "asked_at": datetime.now(UTC).isoformat()}
            self._forget_oldest()
            self._write(identity, {"id": identity, "state": WAITING, "replications": 0, "forecast": None, **request})
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

    def cancel(self, identity: str) -> dict[str, Any]:
        """End the work on a plan and keep what is done of it; forget a plan that nothing is done on."""
        found = self.get(identity)
        if found["state"] == WORKING:
            self._kill_worker()
            found = self.get(identity)
        if found["state"] in (WAITING, WORKING):
            found["state"] = CANCELLED
            self._write(identity, found)
            self._wake()
        else:
            self._path(identity).unlink(missing_ok=True)
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

        def keep(forecast: Any, state: str) -> None:
            if not self._path(identity).exists():  # forgotten, or the server has ended
                raise SystemExit
            done = {"state": state, "replications": forecast.replications, "forecast": forecast.to_dict()}
            self._write(identity, found | done)

        self._write(identity, found | {"state": WORKING})
        # One core is left to the service, wherever there are several.
        workers = max(1, (os.cpu_count() or 1) - 1)
        try:
            plan = Plan.from_dict(found["plan"])
            forecast = simulate(
                plan,
                seconds=found["seconds"] / workers,
                workers=workers,
                on_partial=lambda partial: keep(partial, WORKING),
            )
        except EquipoiseError as error:
            self._write(identity, found | {"state": FAILED, "error": error.message})
        except Exception as error:  # noqa: BLE001  (reported to whoever asked; the next plan must not wait for ever)
            self._write(identity, found | {"state": FAILED, "error": f"{type(error).__name__}: {error}"})
        else:
            keep(forecast, DONE)

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

    def _path(self, identity: str) -> Path:
        return self.directory / f"{identity}.json"

    def _write(self, identity: str, record: dict[str, Any]) -> None:
        """Replace a record as a whole: readers find the old one or the new one."""
        path = self._path(identity)
        partial = path.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(record), encoding="utf-8")
        partial.replace(path)

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
            self._path(one["id"]).unlink(missing_ok=True)


if __name__ == "__main__":
    PlanQueue(Path(sys.argv[1])).work()
