"""Say what the service did in the last minutes, from the counts that Prometheus reads: rates and quantiles by route."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from equipoise.console.operations import RefusedFigures, RouteFigures, Traffic

if TYPE_CHECKING:
    from equipoise.service.prometheus import Histogram, Metrics

_EVERY_SECONDS = 10.0
_MOST_REFUSED = 20
_MOST_SAMPLES = 31
"""Five minutes of samples."""


class _Sample(NamedTuple):
    at: float
    counts: Metrics


class RecentTraffic:
    """Keeps the counts of the last five minutes, to take those of now apart from those of then."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._samples: deque[_Sample] = deque(maxlen=_MOST_SAMPLES)
        self.sample()

    def sample(self) -> None:
        """Keep the present counts, if the last ones are ten seconds old; call it often."""
        now = time.monotonic()
        if not self._samples or now - self._samples[-1].at >= _EVERY_SECONDS:
            self._samples.append(_Sample(now, self._metrics.of_all_processes()))

    def read(self) -> Traffic:
        """Return what happened since the oldest sample."""
        then, now, at = self._samples[0], self._metrics.of_all_processes(), time.monotonic()
        seconds = max(at - then.at, 1e-3)
        answered: dict[tuple[str, str], list[int]] = {}
        for (method, route, status), count in now.requests.items():
            numbers = answered.setdefault((method, route), [0, 0, 0])
            more = count - then.counts.requests.get((method, route, status), 0)
            for place, is_one in enumerate((True, 400 <= status < 500, status >= 500)):
                numbers[place] += more if is_one else 0
        routes = []
        for (method, route), (n, refused, failed) in sorted(answered.items()):
            latency = now.latency[method, route].since(then.counts.latency.get((method, route)))
            routes.append(
                RouteFigures(
                    method, route, n, n / seconds, quantile(latency, 0.5), quantile(latency, 0.99), refused, failed
                )
            )
        sizes, times = now.batch_size.since(then.counts.batch_size), now.batch_seconds.since(then.counts.batch_seconds)
        return Traffic(
            seconds=seconds,
            in_flight=now.in_flight,
            routes=tuple(routes),
            n_batches=sum(sizes.counts),
            batch_requests=(quantile(sizes, 0.5), quantile(sizes, 0.99)),
            batch_seconds=(quantile(times, 0.5), quantile(times, 0.99)),
            refused=tuple(
                RefusedFigures(experiment, error, calls)
                for (experiment, error), calls in (now.refused - then.counts.refused).most_common(_MOST_REFUSED)
            ),
            messages=tuple(sorted((now.webhook - then.counts.webhook).items())),
        )


def quantile(found: Histogram, q: float) -> float | None:
    """Return a quantile as Prometheus estimates it: evenly within a bucket, at most the last bound; None if empty.

    Examples
    --------
    >>> from equipoise.service.prometheus import Histogram
    >>> latency = Histogram((0.001, 0.01, 0.1))
    >>> for seconds in (0.0005, 0.002, 0.003, 0.004):
    ...     latency.observe(seconds)
    >>> round(quantile(latency, 0.5), 4), quantile(Histogram((1.0,)), 0.5)
    (0.004, None)
    """
    total = sum(found.counts)
    if not total:
        return None
    rank, below, low = q * total, 0, 0.0
    for bound, count in zip(found.bounds, found.counts, strict=False):
        if count and below + count >= rank:
            return low + (bound - low) * (rank - below) / count
        below, low = below + count, bound
    return found.bounds[-1]
