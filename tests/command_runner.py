"""The command run inside the process of a test, as its entry point would run it."""

from __future__ import annotations

import io
import json
import sys
from typing import NamedTuple

import pytest

from equipoise import cli


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

    def data(self, *arguments: object) -> dict[str, object]:
        result = self(*arguments, "--json")
        assert (result.code, result.err) == (0, "")
        found: dict[str, object] = json.loads(result.out)
        return found
