"""What handing a task to a worker costs, for each backend of a sweep: tasks of next to no work, two workers.

Prints milliseconds per task beyond what its work takes, with the part kept on disk included, and how long a task must
be for that to stay below 1 and 5 percent. Run it with --smoke for a moment only.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import equipoise as eq

ARMS = eq.Gaussian(mean=[1, 1.5, 2, 4, 5], std=[0.22, 0.32, 0.45, 2, 0.71])


def seconds(backend: str, scheduler: str | None, n_tasks: int) -> float:
    study = eq.Study(policies=[eq.Uniform()], arms=ARMS, horizons=[10], replications=n_tasks)
    workers = None if backend in ("ray", "dask") else 2
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        eq.sweep(study, Path(folder) / "r.npz", backend=backend, scheduler=scheduler, workers=workers, chunk=1)
        return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="a moment only, without clusters")
    smoke = parser.parse_args().smoke
    few, many = (5, 10) if smoke else (50, 450)
    with ExitStack() as stack:
        addresses: dict[str, str | None] = {"threads": None, "processes": None}
        if not smoke:
            import distributed
            import ray

            cluster = distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
            )
            addresses["dask"] = stack.enter_context(cluster).scheduler_address
            ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
            stack.callback(ray.shutdown)
            addresses["ray"] = None
        print(f"{'backend':10} {'ms per task':>12} {'start, s':>9} {'task for 5%, s':>15} {'task for 1%, s':>15}")
        for backend, address in addresses.items():
            seconds(backend, address, few)  # start workers, compile
            first = seconds(backend, address, few)
            each = max((seconds(backend, address, many) - first) / (many - few), 0.0)
            # Two workers share the cost of their tasks, so one worker loses twice the time between two results.
            lost = 2 * each
            start = max(first - few * each, 0.0)
            print(f"{backend:10} {1e3 * each:12.2f} {start:9.2f} {lost / 0.05:15.2f} {lost / 0.01:15.2f}")


if __name__ == "__main__":
    main()
