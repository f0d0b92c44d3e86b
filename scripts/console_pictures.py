"""Take the pictures of the console in docs/images/console/: the demo's experiment on its tenth day, in both themes.

Run it after a change of a page: `./run python scripts/console_pictures.py`. It needs Chromium; names of pages limit
what is taken, `--out` says where to.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlencode

import httpx
from PIL import Image

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from chromium_driver import Browser, Page  # noqa: E402

import equipoise as eq  # noqa: E402
from equipoise.console.plan_form import EXAMPLE  # noqa: E402
from equipoise.demo.scenario import NAME, START, Trial  # noqa: E402
from equipoise.paper.real_experiments import effort_experiment  # noqa: E402
from equipoise.planner.live_play import Clock  # noqa: E402
from equipoise.service import Settings, ThreadedService  # noqa: E402
from equipoise.service.api_keys import create_key  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = ROOT / "docs/images/console"
DAY = 10
WIDTH = 1200
MOST_BYTES = 100_000
MOST_COLOURS, FEWEST_COLOURS = 128, 16
_HOURS_A_DAY = 24
_WAIT_SECONDS = 0.2


class Shot(NamedTuple):
    """A picture: its name, the address of the page below the console, how high it is, and what is done first."""

    name: str
    address: str
    height: int = 900
    script: str = ""


def played() -> tuple[eq.Store, eq.Experiment]:
    """Return the demo's experiment after some days, in memory."""
    clock = Clock(START)
    store = eq.open_store("memory:", clock=clock)

    def create(name: str, **settings: object) -> eq.Experiment:
        return eq.Experiment.create(store, name, who="demo", **settings)  # type: ignore[arg-type]

    trial = Trial(create, clock, effort_experiment(), 9861, reward_weight=0.9, seed=1)
    for hour in trial.hours():
        if hour == DAY * _HOURS_A_DAY:
            break
        if hour == 7 * _HOURS_A_DAY:
            trial.experiment.note("Rewards come as expected after a week: go on.", "decision")
    return store, trial.experiment


def simulated_plan(url: str, key: str) -> str:
    """Have the plan of the form's example simulated, and return its id."""
    from equipoise.console.plan_draft import PlanDraft

    plan = PlanDraft(EXAMPLE).plan
    with httpx.Client(base_url=url, headers={"authorization": f"Bearer {key}"}, timeout=60) as web:
        web.post("/plans", json={"plan": plan.to_dict()}).raise_for_status()
        while web.get(f"/plans/{plan.digest}").json()["state"] != "done":
            time.sleep(_WAIT_SECONDS)
    return plan.digest


def shots(plan: str) -> list[Shot]:
    """Return the pictures to take."""
    here = f"e/{quote(NAME, safe='')}"
    turned = (
        "document.getElementById('dial').dataset.ready && (() => { const slider = document.getElementById('slider');"
        " slider.value = Math.min(Number(slider.max), Number(slider.value) + 4);"
        " slider.dispatchEvent(new Event('input')); return true; })()"
    )
    return [
        Shot("overview", here, 1250),
        Shot("dial", f"{here}/dial", 1320, turned),
        Shot("compare", f"{here}/compare", 1100),
        Shot("health", f"{here}/health", 900),
        Shot("people", f"{here}/people", 800),
        Shot("report", f"{here}/report", 1100),
        Shot("plan", f"plans/{plan}", 1500),
        Shot("plan-form", f"plans/new?{urlencode(EXAMPLE)}", 1100),
    ]


def taken(page: Page, console: str, shot: Shot, *, dark: bool) -> bytes:
    """Return the picture as PNG with few colours."""
    page.theme(dark=dark)
    page.size(WIDTH, shot.height)
    page.open(console + shot.address)
    page.wait_for_charts()
    if shot.script:
        page.wait_for(shot.script)
    with tempfile.TemporaryDirectory(prefix="equipoise-pictures-") as folder:
        page.screenshot(Path(folder) / "page.png", whole=False)
        with Image.open(Path(folder) / "page.png") as picture:
            return smaller(picture.convert("RGB"))


def smaller(picture: Image.Image) -> bytes:
    """Return a picture as PNG, with as many colours as fit into the most bytes."""
    colours = MOST_COLOURS
    while True:
        written = io.BytesIO()
        few = picture.quantize(colours, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        few.save(written, "PNG", optimize=True)
        if written.tell() <= MOST_BYTES or colours <= FEWEST_COLOURS:
            return written.getvalue()
        colours //= 2


def main() -> None:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="pages to take; all by default")
    parser.add_argument("--out", type=Path, default=FOLDER)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    store, _ = played()
    key = create_key(store, role="admin", name="Ada")[1]
    say: Callable[[str], None] = print
    settings = Settings(wait_seconds=300)  # a busy machine is no reason to give up
    with ThreadedService(store, settings) as service, Browser() as browser, browser.page(width=WIDTH) as page:
        page.command("Emulation.setTimezoneOverride", timezoneId="UTC")
        plan = simulated_plan(service.url, key)
        console = f"{service.url}/console/"
        page.open(console)
        page.type(key)
        with page.loading():
            page.press("Enter")
        for shot in shots(plan):
            if given.names and shot.name not in given.names:
                continue
            for theme in ("light", "dark"):
                path = given.out / f"{shot.name}-{theme}.png"
                path.write_bytes(taken(page, console, shot, dark=theme == "dark"))
                say(f"{path.name}: {path.stat().st_size:,} bytes")
        if page.complaints:
            sys.exit("\n".join(page.complaints))


if __name__ == "__main__":
    main()
