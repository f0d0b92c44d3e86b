"""Whether SQLite's log was on the disk before each answer, as strace sees it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

WATCHED = """
import os, sys
import equipoise as eq
store = eq.open_store("sqlite:///" + sys.argv[1])
experiment = eq.Experiment.create(store, "watched", arms=["a", "b"], policy=eq.ForcingBalance(reward_weight=0.9))
answers = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT)
for number in range(int(sys.argv[3])):
    experiment.ask(f"unit-{number}")
    os.write(answers, b"acknowledged\\n")
    experiment.tell(f"unit-{number}", 1.0)
    os.write(answers, b"acknowledged\\n")
"""


def watch_syncs(directory: Path, count: int) -> str:
    """Return what strace saw of a process that asks and tells: whether its log was on the disk before each answer."""
    strace = shutil.which("strace")
    if strace is None:
        return "strace is not installed, so syncs before answers were not counted"
    log = directory / "strace.txt"
    calls = "trace=pwrite64,write,fsync,fdatasync"
    command = [strace, "-f", "-y", "-e", calls, "-o", str(log), sys.executable, "-c", WATCHED]
    subprocess.run([*command, str(directory / "watched.db"), str(directory / "answers"), str(count)], check=True)
    unsynced, n_syncs, n_answers, n_early = False, 0, 0, 0
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        if re.search(r"pwrite64\(\d+<[^>]*watched\.db-wal>", line):
            unsynced = True
        elif re.search(r"f(data)?sync\(\d+<[^>]*watched\.db-wal>\)\s*= 0", line):
            unsynced = False
            n_syncs += 1
        elif "acknowledged" in line:
            n_answers += 1
            n_early += unsynced
    assert n_answers == 2 * count, "strace did not see every answer"
    assert n_syncs >= n_answers, f"{n_answers} answers, but {n_syncs} syncs"
    assert n_early == 0, f"{n_early} answers before the log was on the disk"
    return f"strace: {n_answers} answers, {n_syncs} syncs of SQLite's log, no answer before its sync"
