"""Drive a real Chromium with the standard library: open pages, press keys, take pictures, check accessibility.

The browser is started once for all tests (fixture `browser`) and spoken to through a pipe, in the Chrome DevTools
Protocol. Every page has cookies of its own. Addresses other than 127.0.0.1 are unknown to it. Without Chromium, tests
are skipped as `browser.chromium` says.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import signal
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from browser import QUIET, chromium

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

SECONDS = 120.0
"""How long anything may take; the machine may be busy."""
_KEYS = {
    "Tab": 9,
    "Enter": 13,
    "Escape": 27,
    " ": 32,
    "PageUp": 33,
    "PageDown": 34,
    "End": 35,
    "Home": 36,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
}
_WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa", "best-practice"]
_SMALL_TARGETS = """
[...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary")].filter(one => {
  const box = one.getBoundingClientRect(), style = getComputedStyle(one);
  if (!box.width || !box.height || style.visibility === "hidden") return false;
  if (box.right < 0 || box.bottom < 0) return false;  // off the screen until it has the focus
  const inText = one.matches("a") && style.display === "inline";  // links in sentences are exempt
  return !inText && (box.width < 24 || box.height < 24);
}).map(one => `${one.outerHTML.slice(0, 120)} is smaller than 24 x 24 pixels`)
"""


class Browser:
    """A Chromium without a window."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="equipoise-chromium-"))
        program = chromium()
        # Chromium reads commands from 3 and writes to 4; high numbers here, so that neither is overwritten before.
        ours_out, theirs_in, theirs_out, ours_in = _high_pipes()
        options = [
            *QUIET,
            "--remote-debugging-pipe",
            f"--user-data-dir={self._folder}",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
            "--hide-scrollbars",
            "--force-color-profile=srgb",
            "about:blank",
        ]
        with Path(os.devnull).open("wb") as nowhere:
            actions = [
                (os.POSIX_SPAWN_DUP2, theirs_in, 3),
                (os.POSIX_SPAWN_DUP2, theirs_out, 4),
                (os.POSIX_SPAWN_DUP2, nowhere.fileno(), 1),
                (os.POSIX_SPAWN_DUP2, nowhere.fileno(), 2),
            ]
            self._pid = os.posix_spawn(program, [program, *options], os.environ, file_actions=actions, setpgroup=0)
        os.close(theirs_in)
        os.close(theirs_out)
        self._out, self._in = os.fdopen(ours_out, "wb", buffering=0), os.fdopen(ours_in, "rb", buffering=0)
        self._changed = threading.Condition()
        self._answers: dict[int, dict[str, Any]] = {}
        self._listeners: dict[str, Callable[[str, dict[str, Any]], None]] = {}
        self._count = 0
        self._has_ended = False
        self._reader = threading.Thread(target=self._read, name="chromium", daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the browser and all its processes."""
        with suppress(OSError):
            self._out.close()
        with suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)
        self._reader.join(10)
        self._in.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    @contextmanager
    def page(self, *, width: int = 1280, height: int = 900, dark: bool = False, scripts: bool = True) -> Iterator[Page]:
        """Yield a page of its own, with cookies of its own."""
        context = self.command("Target.createBrowserContext")["browserContextId"]
        target = self.command("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, width, height, dark=dark, scripts=scripts)
        try:
            yield page
        finally:
            self.command("Target.disposeBrowserContext", browserContextId=context)
            self._listeners.pop(session, None)

    def command(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command, and return its result."""
        with self._changed:
            self._count += 1
            number = self._count
            message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
            if session is not None:
                message["sessionId"] = session
            self._out.write(json.dumps(message).encode() + b"\0")
            self.wait_until(lambda: number in self._answers, method)
            answer = self._answers.pop(number)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']['message']}")
        found: dict[str, Any] = answer["result"]
        return found

    def listen(self, session: str, listener: Callable[[str, dict[str, Any]], None]) -> None:
        """Have a listener called for every event of a page, on the thread that reads."""
        self._listeners[session] = listener

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until something holds that an answer or event of the browser makes true."""
        with self._changed:
            if not self._changed.wait_for(lambda: holds() or self._has_ended, SECONDS):
                raise AssertionError(f"the browser took too long: {what}")
            if self._has_ended:
                raise AssertionError(f"the browser has ended: {what}")

    def _read(self) -> None:
        rest = b""
        with suppress(OSError, ValueError):
            while piece := self._in.read(1 << 20):
                *messages, rest = (rest + piece).split(b"\0")
                for message in messages:
                    self._take(json.loads(message))
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def _take(self, message: dict[str, Any]) -> None:
        with self._changed:
            if "id" in message:
                self._answers[message["id"]] = message
            else:
                listener = self._listeners.get(message.get("sessionId", ""))
                if listener is not None:
                    listener(message["method"], message["params"])
            self._changed.notify_all()


class Page:
    """A page of the browser.

    Attributes
    ----------
    complaints : list of str
        Messages on the console, unhandled errors, and what the policy of the page refused.
    requests : list of str
        Addresses that were asked for, other than data in the page.
    """

    def __init__(self, browser: Browser, session: str, width: int, height: int, *, dark: bool, scripts: bool) -> None:
        self._browser, self._session = browser, session
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.statuses: dict[str, int] = {}
        self._n_loads = 0
        browser.listen(session, self._note)
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.command(f"{domain}.enable")
        self.size(width, height)
        self.theme(dark=dark)
        if not scripts:
            self.command("Emulation.setScriptExecutionDisabled", value=True)

    def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command of the DevTools protocol to this page."""
        return self._browser.command(method, self._session, **parameters)

    def _note(self, method: str, told: dict[str, Any]) -> None:
        if method == "Page.loadEventFired":
            self._n_loads += 1
        elif method == "Runtime.consoleAPICalled":
            said = " ".join(str(one.get("value", one.get("description", ""))) for one in told["args"])
            self.complaints.append(f"{told['type']}: {said}")
        elif method == "Runtime.exceptionThrown":
            details = told["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded":
            self.complaints.append(f"{told['entry']['text']} {told['entry'].get('url', '')}".strip())
        elif method == "Network.requestWillBeSent" and not told["request"]["url"].startswith("data:"):
            self.requests.append(told["request"]["url"])
        elif method == "Network.responseReceived":
            self.statuses[told["response"]["url"]] = told["response"]["status"]

    # Going somewhere

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Wait, at the end of the block, until what it did has loaded another page."""
        before = self._n_loads
        yield
        self._browser.wait_until(lambda: self._n_loads > before, "the next page")

    def open(self, address: str) -> None:
        """Open an address, and wait until it is loaded."""
        with self.loading():
            told = self.command("Page.navigate", url=address)
            if told.get("errorText"):
                raise AssertionError(f"{address}: {told['errorText']}")
        self.wait_for("!document.querySelector('[autofocus]') || document.activeElement.matches('[autofocus]')")

    @property
    def address(self) -> str:
        """Where the page is."""
        return str(self.evaluate("location.href"))

    # Looking

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript; promises are awaited."""
        told = self.command(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True, userGesture=True
        )
        if "exceptionDetails" in told:
            details = told["exceptionDetails"]
            raise AssertionError(details.get("exception", {}).get("description", details["text"]))
        return told["result"].get("value")

    def wait_for(self, condition: str) -> None:
        """Wait until a condition in JavaScript is true."""
        end = time.monotonic() + SECONDS
        while not self.evaluate(f"Boolean({condition})"):  # timers do not run where scripts are disabled
            assert time.monotonic() < end, f"this never became true: {condition}\n{self.text()}\n{self.complaints}"
            time.sleep(0.02)

    def wait_for_charts(self) -> None:
        """Wait until every chart is drawn."""
        self.wait_for(
            "[...document.querySelectorAll('[data-chart]')].every(one => ['yes', 'no'].includes(one.dataset.drawn))"
        )
        failed = self.evaluate("[...document.querySelectorAll('[data-chart][data-drawn=no]')].map(one => one.id)")
        assert failed == [], failed

    def text(self, selector: str = "body") -> str:
        """Return the text of an element as it is seen."""
        return str(self.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    @property
    def focused(self) -> str:
        """What has the focus: its name for people, or else its beginning."""
        return str(
            self.evaluate(
                """(one => one.getAttribute("aria-label") ?? one.labels?.[0]?.innerText ?? (one.innerText || one.name
                || one.outerHTML.slice(0, 80)))(document.activeElement)"""
            )
        ).strip()

    @property
    def overflow(self) -> int:
        """By how many pixels the page is wider than the screen."""
        return int(self.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))

    def screenshot(self, path: Path | str, *, whole: bool = True) -> None:
        """Write a picture (PNG) of the page, or of what is on screen."""
        shot = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        Path(path).write_bytes(base64.b64decode(shot["data"]))

    def pdf(self) -> bytes:
        """Return the page as it is printed."""
        return base64.b64decode(self.command("Page.printToPDF", printBackground=False)["data"])

    def violations(self) -> list[str]:
        """Return what axe-core finds against WCAG 2.2 A and AA, and targets that are too small."""
        if not self.evaluate("Boolean(window.axe)"):
            self.evaluate(_axe() + "; true")
        run = {"runOnly": {"type": "tag", "values": _WCAG}, "resultTypes": ["violations"]}
        found = self.evaluate(f"axe.run(document, {json.dumps(run)}).then(found => found.violations)")
        said = [
            f"{one['id']}: {one['help']}: {node['html'][:160]} {node.get('failureSummary', '')[:300]}"
            for one in found
            for node in one["nodes"]
        ]
        return [*said, *self.evaluate(_SMALL_TARGETS)]

    # Doing

    def size(self, width: int, height: int = 900, *, scale: float = 1) -> None:
        """Set the size of the screen in pixels of CSS."""
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False
        )

    def theme(self, *, dark: bool) -> None:
        """Let the system prefer the dark or the light."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", features=[scheme])

    def press(self, *keys: str) -> None:
        """Press keys, one after the other: a name such as Tab, Shift+Tab or ArrowRight, or a character."""
        for key in keys:
            name = key.removeprefix("Shift+")
            modifiers = 8 if name != key else 0
            code = _KEYS.get(name, ord(name[0].upper()))
            known: dict[str, Any] = {"key": name, "windowsVirtualKeyCode": code, "modifiers": modifiers}
            text = "\r" if name == "Enter" else name if len(name) == 1 else ""
            kind = {"type": "keyDown", "text": text} if text else {"type": "rawKeyDown"}
            self.command("Input.dispatchKeyEvent", **kind, **known)
            self.command("Input.dispatchKeyEvent", type="keyUp", **known)

    def type(self, text: str) -> None:
        """Type a text where the focus is."""
        self.command("Input.insertText", text=text)

    def tab_to(self, name: str, *, most: int = 200) -> None:
        """Press Tab until something with this name has the focus."""
        for _ in range(most):
            self.press("Tab")
            if self.focused == name:
                return
        raise AssertionError(f"{name!r} cannot be reached with Tab")

    def click(self, selector: str) -> None:
        """Click on the middle of an element with the mouse."""
        box = self.evaluate(
            f"""(() => {{
              const one = document.querySelector({json.dumps(selector)});
              one.scrollIntoView({{ block: "center" }});
              const box = one.getBoundingClientRect();
              return [box.x + box.width / 2, box.y + box.height / 2];
            }})()"""
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.command("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)


def _high_pipes() -> tuple[int, int, int, int]:
    """Return the ends of two pipes: where we write and the browser reads, where it writes and we read."""
    ends = [*os.pipe(), *os.pipe()]
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    theirs_in, ours_out, ours_in, theirs_out = high
    return ours_out, theirs_in, theirs_out, ours_in


def _axe() -> str:
    """Return axe-core: of the package of the tests, or a newer one that EQUIPOISE_AXE names."""
    given = os.environ.get("EQUIPOISE_AXE")
    if given:
        return Path(given).read_text(encoding="utf-8")
    return files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
