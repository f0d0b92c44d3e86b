"""A page in a real browser without a network: what it becomes, what it complains of, what it tries to load."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")

QUIET = (
    "--headless",
    "--no-sandbox",  # the tests may run as root, in a container
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
)


class Opened(NamedTuple):
    """A page after its scripts have run."""

    dom: str
    complaints: list[str]
    requests: list[str]


def chromium() -> str:
    """Return the browser; without one the test is skipped, or fails where nothing may be left out (see .ci/run)."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is not None:
        return found
    reason = "there is no Chromium; install it (Debian: apt-get install chromium) or set CHROMIUM to one"
    if os.environ.get("EQUIPOISE_LEAVE_NOTHING_OUT"):
        pytest.fail(reason)
    pytest.skip(reason)


def open_page(page: Path | str, scratch: Path, *, width: int = 1280, height: int = 900) -> Opened:
    """Open a file, or an address of this machine, with every other one unknown; wait until its scripts are done."""
    log, address = scratch / "net.json", page if isinstance(page, str) else page.as_uri()
    command = [
        chromium(),
        *QUIET,
        f"--user-data-dir={scratch / 'profile'}",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        f"--log-net-log={log}",
        "--enable-logging=stderr",
        f"--window-size={width},{height}",
        "--virtual-time-budget=60000",
        "--dump-dom",
        address,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)
    # Vega-Lite warns of what it does by itself, such as leaving zero out of a logarithmic axis.
    complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line and '"WARN ' not in line]
    return Opened(done.stdout, complaints, _requests(log, address))


def _requests(log: Path, page: str) -> list[str]:
    """Return the addresses that the page asked for; the browser has business of its own, which has no origin."""
    events = json.loads(log.read_text(encoding="utf-8"))["events"]
    started = [event["params"] for event in events if "initiator" in event.get("params", {})]
    return sorted({start["url"] for start in started if start["initiator"] != "not an origin"} - {page})
