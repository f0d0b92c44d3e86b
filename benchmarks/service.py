"""What the service answers in a second: durable assignments and rewards beside a bare echo of the same server.

    python benchmarks/service.py [--smoke]

wrk drives one server process over loopback, on SQLite and on a PostgreSQL server started for it, with keys, 64 and 256
connections, a new unit in every request. The echo route decodes a body of the same shape and sends it back: it is what
the server, the event loop and the load generator leave. Echo, assignments and rewards, new experiments and those with a
million units, one process and two take turns, so that a slow minute hits all, and the medians of the ratios count.
Afterwards the counters must equal a recount and the log must verify.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from _databases import databases
from _timing import machine, verdict

import equipoise as eq
from equipoise.service.api_keys import create_key

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
VERBS = ("echo", "assign", "reward")
CONNECTIONS = (64, 256)
BULK = 500
MANY, EARLIER = 1_000_000, 10_000

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

    from equipoise.service import processes

    inner = processes.application()
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
    from equipoise.service import Settings, processes
    from equipoise.service.processes import open_port

    settings = Settings()
    os.environ |= {processes.URL: url, processes.SETTINGS: settings.to_json(), processes.LOG_FORMAT: "text"}
    listening = open_port("127.0.0.1", port, workers)
    config = processes.server_config("service:echo_application", settings, workers)
    if workers == 1:
        processes.run_here(config, listening)
    else:
        processes.run_several(config, listening)


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
        self.fastest = 20_000.0
        self.client = httpx.Client(base_url=address, headers={"authorization": f"Bearer {key}"}, timeout=60)

    def run(self, kind: str, connections: int, seconds: int) -> tuple[float, float]:
        """Return requests a second and the 99th percentile of the latency in milliseconds."""
        if kind == "reward":
            # A reward needs a unit of its own, and no verb is faster than the echo that was measured before it.
            self.prepare(int(1.5 * seconds * self.fastest) + connections)
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
        self.fastest = max(self.fastest, n / took)
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


class Target:
    """An experiment in a database, a server for it, and what was measured of it."""

    def __init__(self, database: str, url: str, address: str, load: Load, workers: int = 1) -> None:
        self.database, self.url, self.address, self.load, self.workers = database, url, address, load, workers
        self.rates: dict[tuple[int, str], list[float]] = {}
        self.p99: dict[tuple[int, str], list[float]] = {}
        self.bulk = 0.0
        self.units = 0

    def measure(self, connections: int, seconds: int) -> None:
        """Drive echo, assignments and rewards for some seconds each."""
        for verb in VERBS:
            rate, p99 = self.load.run(verb, connections, seconds)
            self.rates.setdefault((connections, verb), []).append(rate)
            self.p99.setdefault((connections, verb), []).append(p99)

    def rate(self, connections: int, verb: str) -> float:
        """Return requests a second."""
        return statistics.median(self.rates[connections, verb])

    def of_echo(self, connections: int, verb: str) -> float:
        """Return the share of what the echo route does."""
        return ratio(self.rates[connections, verb], self.rates[connections, "echo"])

    def check(self) -> None:
        """See that nothing was lost."""
        with eq.open_store(self.url) as store:
            experiment = eq.Experiment.open(store, NAME)
            verified, status = experiment.verify(), experiment.status()
        assert verified.n_decisions == status.n_assigned
        self.units = status.n_assigned


def ratio(some: list[float], others: list[float]) -> float:
    """Return the median of the ratios of what was measured in turn."""
    return statistics.median(one / other for one, other in zip(some, others, strict=True))


@contextmanager
def target(database: str, url: str, directory: Path, workers: int = 1, n_units: int = 0) -> Iterator[Target]:
    """Serve a new experiment, which may have many units from before."""
    with eq.open_store(url) as store:
        experiment = eq.Experiment.create(store, NAME, arms=ARMS, policy=eq.ForcingBalance(reward_weight=0.9), seed=1)
        for start in range(0, n_units, EARLIER):
            units = [f"earlier-{number}" for number in range(start, min(start + EARLIER, n_units))]
            experiment.ask_many(units)
            experiment.tell_many((unit, 0.5) for unit in units)
        _, key = create_key(store, role="assigner")
    with server(url, workers) as address:
        load = Load(address, key, directory)
        load.bulk()
        for verb in VERBS:
            load.run(verb, 16, 1)
        found = Target(database, url, address, load, workers)
        yield found
        load.client.close()
    found.check()


def measured(targets: list[Target], *, rounds: int, seconds: int, n_bulk: int) -> None:
    """Measure targets in turn, so that a slow minute hits all."""
    for connections in CONNECTIONS:
        for _ in range(rounds):
            for one in targets:
                one.measure(connections, seconds)
    for one in targets:
        one.bulk = BULK / statistics.median(one.load.bulk() for _ in range(n_bulk))


def main() -> None:
    smoke = "--smoke" in sys.argv
    if shutil.which("wrk") is None:
        print("left out: wrk is not installed (Debian: apt-get install wrk)")
        sys.exit(1 if os.environ.get("EQUIPOISE_LEAVE_NOTHING_OUT") else 0)
    how = {"rounds": 1, "seconds": 1, "n_bulk": 3} if smoke else {"rounds": 4, "seconds": 2, "n_bulk": 40}
    n_units = 2_000 if smoke else MANY
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        directory = Path(name)
        with (
            target("SQLite", f"sqlite:///{directory}/new.db", directory) as new,
            target("SQLite", f"sqlite:///{directory}/old.db", directory, n_units=n_units) as old,
        ):
            measured([new, old], **how)
        report([new, old])
        schema = stack.enter_context(databases(directory))["PostgreSQL"]
        with (
            target("PostgreSQL", schema("one"), directory) as one,
            target("PostgreSQL", schema("two"), directory, workers=2) as two,
            target("PostgreSQL", schema("old"), directory, n_units=n_units) as old_one,
        ):
            measured([one, two, old_one], **how)
        report([one, two, old_one])
    print(f"Measured on {machine()}")
    for found, before in ((new, old), (one, old_one)):
        judge(found)
        for connections in CONNECTIONS:
            for verb in VERBS[1:]:
                held = ratio(before.rates[connections, verb], found.rates[connections, verb])
                verdict(f"{found.database}, {verb}, {connections} connections, at {n_units:,} units of new", held, 0.9)
    for connections in CONNECTIONS:
        for verb in VERBS[1:]:
            gain = ratio(two.rates[connections, verb], one.rates[connections, verb])
            verdict(f"PostgreSQL, {verb}, {connections} connections, two processes of one", gain, 1.0)


def judge(found: Target) -> None:
    """Compare with the goals."""
    for connections in CONNECTIONS:
        share, rate = GOALS[found.database, connections]
        for verb in VERBS[1:]:
            where = f"{found.database}, {verb}, {connections} connections"
            verdict(f"{where}, of echo", found.of_echo(connections, verb), share)
            verdict(f"{where}, per second", found.rate(connections, verb), rate)
            if connections == 64:
                verdict(f"{where}, p99 ms", statistics.median(found.p99[connections, verb]), 50, at_most=True)
    verdict(f"{found.database}, bulk, units per second", found.bulk, 25_000)


def report(targets: list[Target]) -> None:
    for found in targets:
        processes = "one process" if found.workers == 1 else f"{found.workers} processes"
        print(
            f"\n{found.database}, {processes}; {found.units:,} units in the end, counters equal the log, verify passed"
        )
        for connections in CONNECTIONS:
            print(f"  {connections} connections: echo {found.rate(connections, 'echo'):,.0f}/s")
            for verb in VERBS[1:]:
                rate, share = found.rate(connections, verb), found.of_echo(connections, verb)
                p99 = statistics.median(found.p99[connections, verb])
                print(f"    {verb:7} {rate:8,.0f}/s   {share:.2f} of echo   p99 {p99:.1f} ms")
        print(f"  bulk of {BULK}: {found.bulk:,.0f} units/s", flush=True)


if __name__ == "__main__":
    if "--serve" in sys.argv:
        place = sys.argv.index("--serve")
        serve(sys.argv[place + 1], int(sys.argv[place + 2]), int(sys.argv[place + 3]))
    else:
        main()
