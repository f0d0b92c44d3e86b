"""The command run inside the process of a test, as its entry point would run it."""

from __future__ import annotations

import io
import json
import os
import pty
import sys
import termios
import threading
from typing import NamedTuple

import pytest

from equipoise import cli


def _read_all(descriptor: int, shown: list[bytes]) -> None:
    """Read what a terminal shows until its other end is closed."""
    try:
        while data := os.read(descriptor, 4096):
            shown.append(data)
    except OSError:  # how Linux reports it
        return


class Result(NamedTuple):
    code: int
    out: str
    err: str


class Runner:
    """Runs the command in this process, as the entry point would."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *arguments: object, stdin: bytes = b"") -> Result:
        self._monkeypatch.setattr(sys, "argv", ["equipoise", *map(str, arguments)])
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        captured = self._capsys.readouterr()
        # The first start on a machine says that it compiles.
        told = "".join(
            line for line in captured.err.splitlines(keepends=True) if not line.startswith("compiling, once")
        )
        return Result(int(exit_.value.code or 0), captured.out, told)

    def at_terminal(self, *arguments: object, answer: str = "") -> Result:
        """Run the command at a terminal on which `answer` was typed ahead; stderr is what the terminal showed."""
        ours, terminal = pty.openpty()
        settings = termios.tcgetattr(terminal)
        settings[1] &= ~termios.OPOST  # lines end as they were written
        settings[3] &= ~termios.ECHO
        termios.tcsetattr(terminal, termios.TCSANOW, settings)
        shown: list[bytes] = []
        reader = threading.Thread(target=_read_all, args=(ours, shown))
        reader.start()
        os.write(ours, answer.encode())
        with open(terminal, closefd=False) as typed, open(terminal, "w", closefd=False) as screen:
            self._monkeypatch.setattr(sys, "argv", ["equipoise", *map(str, arguments)])
            self._monkeypatch.setattr(sys, "stdin", typed)
            with self._monkeypatch.context() as patch:
                patch.setattr(sys, "stderr", screen)
                with pytest.raises(SystemExit) as exit_:
                    cli.main()
        os.close(terminal)
        reader.join()
        os.close(ours)
        return Result(int(exit_.value.code or 0), self._capsys.readouterr().out, b"".join(shown).decode())

    def data_and_notes(self, *arguments: object) -> dict[str, object]:
        """Return the JSON that a command prints, whatever it notes on stderr."""
        result = self(*arguments, "--json")
        assert result.code == 0
        found: dict[str, object] = json.loads(result.out)
        return found

    def data(self, *arguments: object) -> dict[str, object]:
        result = self(*arguments, "--json")
        assert (result.code, result.err) == (0, "")
        found: dict[str, object] = json.loads(result.out)
        return found
