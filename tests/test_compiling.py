"""The first use on a machine compiles, which takes seconds, and says so unless it is to be quiet."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import equipoise as eq
from equipoise import cli
from equipoise.kernels import compiler
from equipoise.terminal import announce_compiling

NOTE = "compiling, once: the next start will be quick\n"
TWO = ("--mean", "1,2", "--std", "1,1")
COMMANDS = {
    "allocate": ("allocate", *TWO, "--reward-weight", "0.5"),
    "simulate": ("simulate", *TWO, "--policy", "Uniform", "--horizon", "10", "--replications", "1"),
    "ask": ("ask", "exam", "ana"),
}
PATIENCE = 1800
"""Seconds after which a process hangs; a busy machine compiles for minutes."""

pytestmark = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")


def compile_something() -> None:
    """Compile what no cache has."""
    numba.njit(lambda x: x + 1)(1)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a store that has an experiment."""
    monkeypatch.delenv("EQUIPOISE_STORE", raising=False)
    monkeypatch.chdir(tmp_path)
    policy = eq.ForcingBalance(reward_weight=0.5)
    eq.Experiment.create("sqlite:///equipoise.db", "exam", arms=["line", "pie"], policy=policy)
    return tmp_path


def test_the_first_compilation_is_reported_once() -> None:
    told: list[int] = []
    compiler.when_compiling(lambda: told.append(1))
    assert told == []
    compile_something()
    compile_something()
    assert told == [1]


@pytest.mark.parametrize("quiet", [False, True])
def test_compiling_is_announced_once_unless_it_is_to_be_quiet(quiet: bool, capsys: pytest.CaptureFixture[str]) -> None:
    announce_compiling.cache_clear()
    for _ in range(2):
        announce_compiling(quiet=quiet)
        compile_something()
    assert capsys.readouterr().err == ("" if quiet else NOTE)


@pytest.mark.parametrize(
    ("command", "quiet"), [("allocate", False), ("simulate", False), ("simulate", True), ("ask", False), ("ask", True)]
)
def test_commands_say_that_they_compile_unless_they_are_to_be_quiet(
    command: str, quiet: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compiler, "when_compiling", lambda tell: tell())
    announce_compiling.cache_clear()  # a command says it once
    monkeypatch.setattr(sys, "argv", ["equipoise", *COMMANDS[command], *["--quiet"] * quiet])
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    assert not exit_.value.code
    assert (NOTE in capsys.readouterr().err) is not quiet


def start(*arguments: str, cache: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(Path(eq.__file__).parents[1]), "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-m", "equipoise.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=PATIENCE, check=True)


@pytest.mark.endurance
@pytest.mark.parametrize("command", ["allocate", "ask"])
def test_the_first_start_on_a_machine_says_that_it_compiles(command: str, tmp_path: Path) -> None:
    cold, warm = (start(*COMMANDS[command], cache=tmp_path / "cache") for _ in range(2))
    assert cold.stderr == NOTE
    assert warm.stderr == ""
    assert cold.stdout == warm.stdout


@pytest.mark.endurance
@pytest.mark.parametrize("command", ["simulate", "ask"])
def test_the_first_start_on_a_machine_can_be_quiet(command: str, tmp_path: Path) -> None:
    assert start(*COMMANDS[command], "--quiet", cache=tmp_path / "cache").stderr == ""
