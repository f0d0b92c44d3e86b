"""Prometheus metrics: requests, latencies and transactions of the service, and the status of its experiments.

With several processes, each writes its counts to a file, and the one that is scraped adds them up. We count and format
ourselves: `prometheus_client` takes seven times as long to count a request (24 against 3.4 microseconds), which is a
fifth of the cost of a request.
"""

from __future__ import annotations

import json
import logging
import os
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.experiment.alert_episodes import alerts_of_all
from equipoise.experiment.overview import Overview, Overviews
from equipoise.service.webhook import FAILED, GAVE_UP, SENT

if TYPE_CHECKING:
    from equipoise.store import Store

log = logging.getLogger("equipoise.service")

SHARED = "EQUIPOISE_SERVICE_METRICS"
"""Environment variable with the directory where the processes of one server write their counts."""

LATENCIES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 10_000.0)

_GAUGES_SECONDS = 5.0
_Labels = tuple[tuple[str, str], ...]


class Histogram:
    """Counts of values per bucket; the last bucket is for values above all bounds."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def since(self, before: Histogram | None) -> Histogram:
        """Return the values that were counted since an earlier state of this histogram."""
        found = Histogram(self.bounds)
        found.add(self.counts, self.sum)
        if before is not None:
            found.add([-count for count in before.counts], -before.sum)
        return found

    def add(self, counts: list[int], total: float) -> None:
        """Add the counts of another process."""
        self.counts = [a + b for a, b in zip(self.counts, counts, strict=True)]
        self.sum += total


class Metrics:
    """The counts of this process, and the text that Prometheus reads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.in_flight = 0
        self.requests: defaultdict[tuple[str, str, int], int] = defaultdict(int)
        self.latency: defaultdict[tuple[str, str], Histogram] = defaultdict(lambda: Histogram(LATENCIES))
        self.refused: Counter[tuple[str, str]] = Counter()
        """Refused calls about units, by experiment and class of error."""
        self.webhook: Counter[str] = Counter()
        """Attempts to send messages to the webhook, by what became of them."""
        self.batch_size = Histogram(SIZES)
        self.batch_seconds = Histogram(LATENCIES)
        self._overviews = Overviews(store)
        self._gauges: tuple[float, list[str]] = (-1e9, [])
        self._shared_at = 0.0

    def observe_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self.requests[method, route, status] += 1
        self.latency[method, route].observe(seconds)
        now = time.monotonic()
        if now - self._shared_at > 1:
            self._shared_at = now
            self.share()

    def observe_batch(self, _experiment: str, n_requests: int, seconds: float) -> None:
        """Count a transaction."""
        self.batch_size.observe(n_requests)
        self.batch_seconds.observe(seconds)

    def observe_message(self, result: str) -> None:
        """Count an attempt to send a message to the webhook."""
        self.webhook[result] += 1

    def share(self) -> None:
        """Write the counts to a file for the other processes of the server."""
        directory = os.environ.get(SHARED)
        if directory is None:
            return
        path = Path(directory) / f"{os.getpid()}.json"
        partial = path.with_suffix(".partial")
        try:
            partial.write_text(json.dumps(self._counts()))
            partial.replace(path)
        except OSError:
            return  # metrics are not worth a failed request

    def text(self) -> str:
        """Return all metrics in the text format; reads the store, so call it on a thread."""
        experiments = self._experiment_lines()  # first: it may take long, and counts should be current
        return "\n".join([*self._service_lines(), *experiments]) + "\n"

    def _counts(self) -> dict[str, Any]:
        """Return copies of the counts, since other threads keep counting and may add new keys."""
        requests, latency = dict(self.requests), dict(self.latency)
        return {
            "in_flight": self.in_flight,
            "requests": [[*key, count] for key, count in requests.items()],
            "latency": [[*key, list(found.counts), found.sum] for key, found in latency.items()],
            "refused": [[*key, count] for key, count in dict(self.refused).items()],
            "webhook": dict(self.webhook),
            "batch_size": [list(self.batch_size.counts), self.batch_size.sum],
            "batch_seconds": [list(self.batch_seconds.counts), self.batch_seconds.sum],
        }

    def of_all_processes(self) -> Metrics:
        """Return the sum over the processes of this server."""
        directory, total = os.environ.get(SHARED), Metrics(self._store)
        others = [] if directory is None else Path(directory).glob("*.json")
        total.add(self._counts())
        for path in others:
            if path.stem != str(os.getpid()):
                try:
                    total.add(json.loads(path.read_text()), alive=Path(f"/proc/{path.stem}").exists())
                except (OSError, ValueError):
                    continue
        return total

    def add(self, counts: dict[str, Any], *, alive: bool = True) -> None:
        """Add the counts of a process; a dead one has no requests in flight, but its totals remain."""
        self.in_flight += counts["in_flight"] if alive else 0
        for method, route, status, count in counts["requests"]:
            self.requests[method, route, status] += count
        for method, route, *rest in counts["latency"]:
            self.latency[method, route].add(*rest)
        for experiment, error, count in counts["refused"]:
            self.refused[experiment, error] += count
        self.webhook.update(counts["webhook"])
        self.batch_size.add(*counts["batch_size"])
        self.batch_seconds.add(*counts["batch_seconds"])

    def _service_lines(self) -> Iterator[str]:
        total = self.of_all_processes()
        yield from _head("equipoise_requests_total", "counter", "Requests answered.")
        for (method, route, status), count in sorted(total.requests.items()):
            labels = (("method", method), ("route", route), ("status", str(status)))
            yield f"equipoise_requests_total{_braces(labels)} {count}"
        yield from _head("equipoise_request_seconds", "histogram", "Time to answer.")
        for (method, route), found in sorted(total.latency.items()):
            yield from _histogram("equipoise_request_seconds", found, (("method", method), ("route", route)))
        yield from _head("equipoise_requests_in_flight", "gauge", "Requests being worked on.")
        yield f"equipoise_requests_in_flight {total.in_flight}"
        yield from _head("equipoise_refused_total", "counter", "Calls about units that were refused.")
        for (experiment, error), count in sorted(total.refused.items()):
            yield f"equipoise_refused_total{_braces((('experiment', experiment), ('error', error)))} {count}"
        yield from _head("equipoise_webhook_total", "counter", "Messages to the webhook, by what became of them.")
        for result in (SENT, FAILED, GAVE_UP):
            yield f"equipoise_webhook_total{_braces((('result', result),))} {total.webhook[result]}"
        yield from _head("equipoise_batch_requests", "histogram", "Requests that shared a transaction.")
        yield from _histogram("equipoise_batch_requests", total.batch_size, ())
        yield from _head("equipoise_batch_seconds", "histogram", "Time of a transaction.")
        yield from _histogram("equipoise_batch_seconds", total.batch_seconds, ())

    def _experiment_lines(self) -> list[str]:
        """Return the status of experiments; cached, so that frequent scrapes do not load the store."""
        read_at, lines = self._gauges
        if time.monotonic() - read_at > _GAUGES_SECONDS:
            of_store = (*_alert_lines(self._store), *_store_lines(self._store))
            lines = [*_gauge_lines(self._overviews.read()), *of_store]
            self._gauges = time.monotonic(), lines
        return lines


def _gauge_lines(overviews: Iterable[Overview]) -> Iterator[str]:
    units, shares = [], []
    for one in overviews:
        name = _escaped(one.name)
        units += [f'equipoise_units{{experiment="{name}",state="{state}"}} {n}' for state, n in one.units.items()]
        for kind, values in (("actual", one.actual), ("target", one.target)):
            shares += [
                f'equipoise_arm_share{{experiment="{name}",arm="{_escaped(arm)}",kind="{kind}"}} {share!r}'
                for arm, share in zip(one.arms, values or (), strict=False)
            ]
    yield from _head("equipoise_units", "gauge", "Units of experiments that are not finished, by state.")
    yield from units
    yield from _head("equipoise_arm_share", "gauge", "Share of units an arm has, and that it is steered towards.")
    yield from shares


def _store_lines(store: Store) -> Iterator[str]:
    size = store.size()
    yield from _head("equipoise_store_bytes", "gauge", "Size of the store, and of SQLite's write-ahead log.")
    yield f'equipoise_store_bytes{{part="data"}} {size.data}'
    if size.log is not None:
        yield f'equipoise_store_bytes{{part="log"}} {size.log}'
    yield from _head("equipoise_oldest_read_seconds", "gauge", "How long the oldest read of this process has taken.")
    yield f"equipoise_oldest_read_seconds {store.oldest_read_seconds!r}"
    yield from _head("equipoise_rollup_lag_events", "gauge", "Events that the sums by hour are behind the log.")
    for name, n_events, event in store.rollup_marks():
        yield f'equipoise_rollup_lag_events{{experiment="{_escaped(name)}"}} {n_events - event}'


def _alert_lines(store: Store) -> Iterator[str]:
    """Return the alerts that are open and not muted, of all experiments."""
    now = store.now()
    found: dict[_Labels, list[float]] = {}
    for alert in store.read(lambda transaction: alerts_of_all(transaction, now)):
        labels: _Labels = ("experiment", alert.experiment), ("check", alert.check), ("severity", alert.severity)
        found.setdefault(labels, []).append((now - alert.opened_at).total_seconds())
    yield from _head("equipoise_alerts", "gauge", "Alerts that are open and not muted.")
    for labels, ages in found.items():
        yield f"equipoise_alerts{_braces(labels)} {len(ages)}"
    yield from _head("equipoise_alert_age_seconds", "gauge", "Time since the oldest of these alerts opened.")
    for labels, ages in found.items():
        yield f"equipoise_alert_age_seconds{_braces(labels)} {max(ages)!r}"


def _head(name: str, kind: str, text: str) -> Iterable[str]:
    return f"# HELP {name} {text}", f"# TYPE {name} {kind}"


def _histogram(name: str, found: Histogram, labels: _Labels) -> Iterator[str]:
    below = 0
    for bound, count in zip((*found.bounds, "+Inf"), found.counts, strict=True):
        below += count
        text = bound if isinstance(bound, str) else f"{bound:g}"
        yield f"{name}_bucket{_braces((*labels, ('le', text)))} {below}"
    yield f"{name}_sum{_braces(labels)} {found.sum!r}"
    yield f"{name}_count{_braces(labels)} {below}"


def _braces(labels: _Labels) -> str:
    inner = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{inner}}}" if inner else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
