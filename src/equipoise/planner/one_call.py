"""Plan and forecast in one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from equipoise.planner.forecast import Forecast
from equipoise.planner.plan import Plan
from equipoise.planner.plan_options import plan_from_options
from equipoise.planner.refinement import simulate
from equipoise.progress import Progress


def plan(
    given: Plan | None = None,
    /,
    *,
    replications: int | None = None,
    seconds: float | None = None,
    progress: Progress | bool | None = None,
    on_partial: Callable[[Forecast], object] | None = None,
    workers: int | None = None,
    backend: str = "threads",
    scheduler: str | None = None,
    **options: Any,
) -> Forecast:
    """Forecast what each way to run an experiment will bring: how long it takes, what people gain, what to declare.

    Parameters
    ----------
    given : Plan, optional
        A plan, instead of options.
    replications, seconds, progress, on_partial, workers, backend, scheduler
        As in `Plan.simulate`.
    **options
        As in `planner.plan_from_options`: rates or means, people or per_day, delay, missing, precision, control, ...

    Examples
    --------
    >>> import equipoise as eq
    >>> asked = {"people": 3000, "precision": 0.06, "information_kept": [0.9]}
    >>> forecast = eq.plan(rates="plain=10%,prize=20%", replications=20, **asked)
    >>> print(forecast.recommendation()[0])
    Keep 90% of the information.
    >>> [row["way"] for row in forecast.table()]
    ['equal shares', 'information kept 0.9']
    """
    planned = plan_from_options(**options) if given is None else given
    return simulate(
        planned,
        replications=replications,
        seconds=seconds,
        progress=progress,
        on_partial=on_partial,
        workers=workers,
        backend=backend,
        scheduler=scheduler,
    )
