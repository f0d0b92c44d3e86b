"""The page on calling the service: every block of it runs, in order, and gives what the page shows below it."""

from __future__ import annotations

import doctest
import json
import os
import re
import subprocess
import sys
import threading
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

from browser import chromium, open_page
from service_api import Api
from service_runner import running_service
from tools import need
from typer.main import get_command

from equipoise.cli.app import app

PAGE = Path(__file__).parents[1] / "docs/live/service-calls.md"
ADDRESS = "http://127.0.0.1:8000"
CODE, SHOWN = ("bash", "js", "py"), ("json", "text")


class Block(NamedTuple):
    """A block of the page: the line it starts on, its language, and what is in it."""

    line: int
    language: str
    text: str


def blocks():
    """Return the blocks of the page, however they are fenced."""
    found, fence = [], None
    for number, line in enumerate(PAGE.read_text(encoding="utf-8").splitlines(), 1):
        mark = re.match(r"\s*(```+|~~~+)\s*(.*)", line)
        if fence is None and mark:
            fence, language, start, inside = mark[1], mark[2], number, []
        elif fence is not None and line.strip() == fence:
            found.append(Block(start, language, "".join(f"{one}\n" for one in inside)))
            fence = None
        elif fence is not None:
            inside.append(line)
    assert fence is None
    return found


# What the page shows


def shows(shown, came):
    """Return whether all that is shown came, in the same order; the page leaves members of objects out."""
    if isinstance(shown, dict) and isinstance(came, dict):
        return [name for name in came if name in shown] == list(shown) and all(
            shows(value, came[name]) for name, value in shown.items()
        )
    if isinstance(shown, list) and isinstance(came, list):
        return len(shown) == len(came) and all(map(shows, shown, came))
    return json.dumps(shown) == json.dumps(came)  # true is not 1, and 1 is not 1.0


def check(block, shown, printed):
    """Compare what a block printed with what is shown below it."""
    where = f"{PAGE.name}:{block.line}: {printed}"
    if shown is None:
        # What is not shown is nothing, or a key.
        assert re.fullmatch(r"(eq_\S+\n)?", printed), where
    elif shown.language == "json":
        assert shows(json.loads(shown.text), json.loads(printed)), where
    else:
        assert printed == shown.text, where


def test_an_answer_that_is_not_as_shown_would_be_found_out():
    came = {"unit": "a", "at": "now", "new": True, "arms": [{"arm": "line", "mean": 1.0}, {"arm": "pie", "mean": None}]}
    for shown in (came, {"unit": "a", "new": True}, {"arms": [{"arm": "line"}, {"mean": None}]}):
        assert shows(shown, came)
    for shown in (
        {"unit": "b"},
        {"new": 1},
        {"new": True, "unit": "a"},
        {"unit": "a", "old": None},
        {"arms": [{"arm": "line"}]},
        {"arms": [{"mean": 1}, {}]},
        [],
    ):
        assert not shows(shown, came)


# How each language is run


class Shell:
    """A terminal: what one block defines and exports is there in the next."""

    def __init__(self, folder, state):
        self.folder, self.state = folder, state
        state.touch()

    def __call__(self, code):
        need("curl")
        script = f'source "$0"\n{code}\n{{ export -p; declare -f; }} >"$0"'
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script, self.state],  # noqa: S607
            cwd=self.folder,
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"{code}\n{done.stderr}"
        return done.stdout


class Python:
    """An interpreter: what one block defines is there in the next."""

    def __init__(self):
        self.names = {"__name__": "docs_service_calls"}
        self.runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)

    def __call__(self, code, line):
        parser, report = doctest.DocTestParser(), []
        # A text between examples would be read only, and never run.
        assert not any(part.strip() for part in parser.parse(code) if isinstance(part, str)), code
        test = parser.get_doctest(code, {}, PAGE.name, PAGE.name, line)
        test.globs = self.names
        self.runner.run(test, out=report.append, clear_globs=False)
        assert not report, "".join(report)
        assert self.runner.tries


def node(code):
    """Run a module; return its exit code, what it printed, and its complaints."""
    command = [need("node"), "--input-type=module", "--eval", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


class Site:
    """A web site with one page, which runs a module."""

    def __init__(self):
        site = self
        self.code = ""

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                html = f'<!doctype html><link rel="icon" href="data:,"><script type="module">{site.code}</script>'
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write(html.encode())

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self.server.server_port}"

    def open(self, code, scratch):
        """Open the page in a browser; return all that is in its console."""
        self.code = code
        scratch.mkdir()
        opened = open_page(f"{self.origin}/", scratch)
        return [re.search(r'CONSOLE.*?\] "(.*)", source: ', line)[1] for line in opened.complaints]


@contextmanager
def web_site():
    site = Site()
    thread = threading.Thread(target=site.server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield site
    finally:
        site.server.shutdown()
        thread.join(10)
        site.server.server_close()


# The page


class Reader:
    """Somebody who does what the page says, from top to bottom, at a service on another port."""

    def __init__(self, service, folder, monkeypatch, run_javascript):
        self.service, self.folder, self.monkeypatch, self.run_javascript = service, folder, monkeypatch, run_javascript
        self.shell, self.python = Shell(folder, folder.parent / "shell"), Python()
        self.key, self.done = None, []

    def follow(self, start, *rest):
        """Run all blocks but the first, which is the one that started the service."""
        self.done.append(start)
        for block, following in zip(rest, [*rest[1:], None], strict=True):
            if block.language in SHOWN:
                assert block in self.done, f"{PAGE.name}:{block.line} shows what no block printed"
                continue
            shown = following if following is not None and following.language in SHOWN else None
            self.run(block, shown)
            self.done += [block] if shown is None else [block, shown]

    def run(self, block, shown):
        code = block.text.replace(ADDRESS, self.service.url)
        if block.language == "bash":
            printed = self.shell(code)
            check(block, shown, printed)
            if printed.startswith("eq_"):
                self.key = printed.strip()
        elif block.language == "py":
            assert shown is None
            self.monkeypatch.setenv("EQUIPOISE_KEY", self.shell("printenv EQUIPOISE_KEY").strip())
            self.python(code, block.line)
        else:
            assert block.language == "js"
            assert '"eq_..."' in code and self.service.url in code
            check(block, shown, self.run_javascript(code.replace("eq_...", self.key), self.service.url))


@contextmanager
def followed(page, tmp_path, monkeypatch, run_javascript, *options):
    """Do all that the blocks say, and yield who did it while the service still runs."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    start, *rest = page
    assert start.text == "equipoise serve --new --store sqlite:///school.db\n"
    with running_service(start.text.split()[-1], *options) as service:
        reader = Reader(service, folder, monkeypatch, run_javascript)
        reader.follow(start, *rest)
        yield reader


def test_every_block_works_and_gives_what_is_shown(tmp_path, monkeypatch):
    ran = []

    def javascript(code, _):
        ran.append((code, node(code)))
        assert ran[-1][1][::2] == (0, ""), ran
        return ran[-1][1][1]

    with followed(blocks(), tmp_path, monkeypatch, javascript) as reader:
        # No block was left out, and no output: what was done is what a plainer search finds on the page.
        text = PAGE.read_text(encoding="utf-8")
        fences = [
            (text[: mark.start()].count("\n") + 1, mark[1]) for mark in re.finditer(r"^```(\w+)$", text, re.MULTILINE)
        ]
        assert [(block.line, block.language) for block in reader.done] == fences
        assert len(re.findall("```|~~~|<pre|<code", text)) == 2 * len(fences)
        assert {language for _, language in fences} == {*CODE, *SHOWN}

        # Sent again, it is the same; another reward is refused, at once and with the reason.
        ((code, first),) = ran
        assert node(code) == first
        other = code.replace("reward: 0.9", "reward: 0.1")
        status, _, complaints = node(other)
        assert other != code and status == 1
        assert "the reward of unit 'player/7' was told before and is 0.9; got 0.1" in complaints

        # What is said between the blocks.
        key = reader.shell("printenv EQUIPOISE_KEY").strip()
        with closing(Api(reader.service.url, key)) as anna, closing(Api(reader.service.url, reader.key)) as game:
            create = next(block.text for block in reader.done if '"seed"' in block.text)
            body = json.loads(create.split("'")[-2])
            assert anna("POST", "/experiments", body).status_code == 200
            anna.refused(409, "ExperimentExists", "POST", "/experiments", body | {"seed": 1})
            created = json.loads((reader.folder / "created.json").read_text(encoding="utf-8"))
            assert created["name"] == "fractions"
            again = anna("POST", "/experiments/fractions/assignments", {"unit": "pupil-42"}).json()
            assert (again["arm"], again["new"]) == ("pie", False)
            reward = "/experiments/fractions/assignments/pupil-42/reward"
            anna.refused(409, "RewardConflict", "PUT", reward, {"reward": 0.5})
            events = anna.data("GET", "/experiments/fractions/events?after=0")["events"]
            assert {event["who"] for event in events} == {"anna", "game"}
            exported = anna("GET", "/experiments/fractions/export?format=csv").text.splitlines()
            assert len(exported) == 1 + anna.data("GET", "/experiments/fractions/status")["n_assigned"]
            # The key of the game can do what the block does and nothing else.
            game.refused(403, "NotAllowed", "GET", "/experiments/fractions/status")
            game.refused(403, "NotAllowed", "POST", "/experiments/others/assignments", {"unit": "player/7"})


def test_a_browser_runs_the_same_lines_on_pages_of_an_allowed_site_only(tmp_path, monkeypatch):
    chromium()
    with web_site() as school, web_site() as elsewhere:

        def javascript(code, url):
            with closing(Api(url, os.environ["EQUIPOISE_KEY"])) as anna:
                before = anna.data("GET", "/experiments/fractions/events?after=0")
                said = elsewhere.open(code, tmp_path / "elsewhere")
                blocked = (
                    f"Access to fetch at '{url}/experiments/fractions/assignments' from origin '{elsewhere.origin}'"
                )
                assert sum(line.startswith(f"{blocked} has been blocked by CORS policy") for line in said) == 6, said
                assert said[-1] == "Uncaught TypeError: Failed to fetch"
                assert anna.data("GET", "/experiments/fractions/events?after=0") == before
            return "".join(f"{line}\n" for line in school.open(code, tmp_path / "school"))

        page = blocks()
        place = [block.language for block in page].index("js")
        with followed(page[: place + 2], tmp_path, monkeypatch, javascript, "--cors-origin", school.origin) as reader:
            assert reader.done == page[: place + 2]


def test_the_address_on_the_page_is_where_the_service_listens_by_default():
    defaults = {one.name: one.default for one in get_command(app).commands["serve"].params}
    assert f"http://{defaults['host']}:{defaults['port']}" == ADDRESS
    assert set(re.findall(r"https?://[\d.]+(?::\d+)?", PAGE.read_text(encoding="utf-8"))) == {ADDRESS}
