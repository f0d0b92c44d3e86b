"""What several processes do at once: look at the health of an experiment at the same moments, some times each."""

from __future__ import annotations

from datetime import datetime

import equipoise as eq
from equipoise.experiment import alert_episodes

TIMES = 5


def look_at_moments(url, name, moments, ready, begins):
    """Look at an experiment at each moment, as soon as all processes are ready and may begin."""
    now = [datetime.fromisoformat(moments[0])]
    with eq.open_store(url, clock=lambda: now[0]) as store:
        experiment = eq.Experiment.open(store, name)
        experiment.status()
        for moment, begin in zip(moments, begins, strict=True):
            now[0] = datetime.fromisoformat(moment)
            ready.release()
            begin.wait()
            for _ in range(TIMES):
                experiment.health()


def look_without_leases(*arguments):
    """The same without leases: transactions alone must keep alerts from opening twice."""
    alert_episodes.LEASE_SECONDS = -1.0
    look_at_moments(*arguments)
