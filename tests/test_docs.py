"""Every example in the documentation runs and prints what the page says."""

from __future__ import annotations

import doctest
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import equipoise as eq
from equipoise import cli

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


FILE = re.compile(r"^```toml title=\"([^\"]+)\"\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page, language):
    text = page.read_text(encoding="utf-8")
    return [(text[: match.start()].count("\n") + 1, match[2]) for match in FENCE.finditer(text) if match[1] == language]


def name(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name)
def test_python_examples(page):
    # The blocks of a page are one session; a name defined in the first is there in the last.
    module = {"__name__": f"docs_{page.stem}".replace("-", "_")}
    sys.modules[module["__name__"]] = type(sys)(module["__name__"])
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    report = []
    for line, code in blocks(page, "python"):
        if ">>>" not in code:
            exec(compile(code, f"{name(page)}:{line}", "exec"), module)  # noqa: S102
            continue
        test = parser.get_doctest(code, module, name(page), name(page), line)
        test.globs = module
        runner.run(test, out=report.append, clear_globs=False)
    assert not runner.failures, "".join(report)
    assert runner.tries or not any(">>>" in code for _, code in blocks(page, "python"))


def commands(code):
    """Yield the commands of a console block, each with the output printed below it."""
    for part in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        while command.endswith("\\"):
            more, _, output = output.partition("\n")
            command = command[:-1] + more
        yield command, output.rstrip()


def printed_here(arguments):
    """Run the command in this process, which spares it the start of Python, and return all that it prints."""
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", arguments)
        patch.setattr(sys, "stdout", output)
        patch.setattr(sys, "stderr", output)
        with pytest.raises(SystemExit):
            cli.main()
    return output.buffer.getvalue().decode()


def printed_by_shell(command, text=None):
    """Run a line of a shell, in which pipes and redirections have a meaning, and return all that it prints."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(  # noqa: S602
        command,
        shell=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        input=text,
        text=True,
        env=os.environ | {"PATH": path},
        check=False,
    )
    return done.stdout


def printed(command):
    """Return what a line prints; only what the command itself begins is run here, the rest by a shell."""
    ours, pipe, rest = command.partition(" | ")
    if not ours.startswith("equipoise ") or re.search("[<>]", ours):
        return printed_by_shell(command)
    output = printed_here(shlex.split(ours))
    return printed_by_shell(rest, output) if pipe else output


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "console")], ids=name)
def test_console_examples(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    for file, text in FILE.findall(page.read_text(encoding="utf-8")):  # its commands find the files that it shows
        Path(file).write_text(text, encoding="utf-8")
    # Other tests of this process define policies, which a message that lists all would name.
    ours = {name: kind for name, kind in eq.Policy._family.items() if kind.__module__.startswith("equipoise.")}
    monkeypatch.setattr(eq.Policy, "_family", ours)
    for line, code in blocks(page, "console"):
        for command, expected in commands(code):
            output = printed(command)
            # The first start on a machine says that it compiles; the page shows any later one.
            lines = [text.rstrip() for text in output.rstrip().split("\n")]
            shown = "\n".join(text for text in lines if not text.startswith("compiling, once"))
            where = f"{name(page)}:{line}: {shlex.quote(command)}"
            assert shown == "\n".join(text.rstrip() for text in expected.split("\n")), where


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in (ROOT / "docs").rglob("*.md"):
        assert f": {page.relative_to(ROOT / 'docs')}\n" in navigation, page


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=name)
def test_example_scripts_run(script, tmp_path):
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.strip(), "an example should print something"


def test_the_citation_names_this_version():
    [version] = re.findall(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert version == eq.__version__
