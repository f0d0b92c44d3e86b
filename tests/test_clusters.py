"""Sweeps on real clusters: worker processes of Ray and Dask give, bit for bit, what one thread here gives."""

from __future__ import annotations

import dataclasses
import os
import time
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.sweeps import backends, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ARMS = eq.Gaussian(mean=[1, 1.5, 2, 4, 5], std=[0.2, 0.3, 0.4, 2, 0.7])
POLICIES = (
    eq.ForcingBalance(reward_weight=0.9),
    eq.ForcingBalance(reward_weight=0.6, forcing=0.3),
    eq.ThompsonSampling(),
    eq.Uniform(),
)
STUDY = eq.Study(policies=POLICIES, arms=ARMS, horizons=[300, 1000], replications=12, seed=5)

# Their own modules warn about what the next versions of Python and of each other will do.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed"),
]


@pytest.fixture(scope="module")
def dask_cluster() -> Iterator[str]:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[str | None]:
    ray = pytest.importorskip("ray")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield None
    ray.shutdown()


@pytest.fixture(scope="module")
def expected() -> tuple[eq.Runs, ...]:
    return tuple(
        eq.simulate(POLICIES, ARMS, horizon, 12, seed=5, checkpoints=STUDY.steps(horizon), workers=1)
        for horizon in STUDY.horizons
    )


@pytest.mark.parametrize("backend", ["dask", "ray"])
def test_a_cluster_gives_what_this_machine_gives(
    backend: str, expected: tuple[eq.Runs, ...], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    address = request.getfixturevalue(f"{backend}_cluster")
    steps: list[tuple[int, int]] = []
    results = eq.sweep(
        STUDY,
        tmp_path / "far.npz",
        backend=backend,
        scheduler=address,
        chunk=3,
        progress=lambda done, total: steps.append((done, total)),
    )
    assert results == expected
    assert [eq.Runs.load(tmp_path / f"far-{horizon}.npz") for horizon in (300, 1000)] == list(expected)
    assert steps[-1] == (STUDY.n_steps, STUDY.n_steps)
    assert not (tmp_path / "far.npz.parts").exists()


def process_of(number: int) -> tuple[int, int]:
    time.sleep(0.05)
    return number, os.getpid()


@pytest.mark.parametrize("backend", ["dask", "ray"])
def test_the_work_is_done_by_two_processes_or_more_and_not_by_this_one(
    backend: str, request: pytest.FixtureRequest
) -> None:
    import joblib

    address = request.getfixturevalue(f"{backend}_cluster")
    with backends.parallel_calls(backend, None, address) as (parallel, n_workers):
        answers = list(parallel(joblib.delayed(process_of)(number) for number in range(20)))
    assert n_workers == 2
    assert sorted(number for number, _ in answers) == list(range(20))
    processes = {process for _, process in answers}
    assert len(processes) >= 2
    assert os.getpid() not in processes


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class LeastPulled(eq.Policy):
    """Plain Python, known to this file alone."""

    patience: float = 1.0

    def probabilities(self, stats: eq.ArmStats) -> Any:
        chance = 1.0 / (self.patience + stats.assigned)
        return chance / chance.sum()


@pytest.mark.parametrize("backend", ["dask", "ray", "processes", "threads"])
def test_a_policy_in_plain_python_plays_everywhere(backend: str, request: pytest.FixtureRequest) -> None:
    address = request.getfixturevalue(f"{backend}_cluster") if backend in ("dask", "ray") else None
    study = eq.Study(policies=[LeastPulled(patience=2.0)], arms=ARMS, horizons=[40], replications=4, seed=1)
    workers = None if address or backend == "ray" else 2
    (runs,) = eq.sweep(study, backend=backend, scheduler=address, workers=workers, chunk=1)
    assert runs == eq.simulate(LeastPulled(patience=2.0), ARMS, 40, 4, seed=1)


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Failing(eq.Policy):
    def probabilities(self, stats: eq.ArmStats) -> Any:
        return np.zeros(stats.n_arms)


@pytest.mark.parametrize("backend", ["dask", "ray", "processes", "threads"])
def test_what_fails_far_away_is_told_here(backend: str, request: pytest.FixtureRequest) -> None:
    address = request.getfixturevalue(f"{backend}_cluster") if backend in ("dask", "ray") else None
    study = eq.Study(policies=[Failing()], arms=ARMS, horizons=[10], replications=4)
    with pytest.raises(eq.InvalidInput, match="probabilities that add up to 1"):
        eq.sweep(study, backend=backend, scheduler=address, chunk=1)


def test_a_sweep_begun_here_is_finished_on_a_cluster(
    dask_cluster: str, expected: tuple[eq.Runs, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = running._played
    calls = []

    def twice_and_no_more(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return played(*arguments)

    monkeypatch.setattr(running, "_played", twice_and_no_more)
    with pytest.raises(eq.SweepInterrupted) as stopped:
        eq.sweep(STUDY, tmp_path / "both.npz", workers=1, chunk=5)
    assert stopped.value.n_finished == 10
    monkeypatch.undo()
    steps: list[int] = []
    results = eq.sweep(
        STUDY,
        tmp_path / "both.npz",
        backend="dask",
        scheduler=dask_cluster,
        progress=lambda done, total: steps.append(total),
    )
    assert results == expected
    assert steps[-1] == STUDY.n_steps - 10 * 300


def test_a_cluster_that_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "CONNECT_SECONDS", 0.5)
    with pytest.raises(eq.EquipoiseError, match=r"no dask scheduler answers at tcp://127\.0\.0\.1:9"):
        eq.sweep(STUDY, backend="dask", scheduler="tcp://127.0.0.1:9")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backend": "slurm"}, "backend must be one of threads, processes, ray, dask; got 'slurm'"),
        ({"backend": "threads", "scheduler": "tcp://x:1"}, "scheduler is for the backends ray and dask"),
        (
            {"backend": "dask", "scheduler": "tcp://x:1", "workers": 2},
            "workers is for the backends threads and processes",
        ),
        ({"backend": "dask"}, "the backend dask needs the address of a scheduler\nhint: --scheduler tcp://host:8786"),
        ({"workers": 0}, "workers must be at least 1; got 0"),
        ({"chunk": 0}, "chunk must be at least 1; got 0"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(eq.InvalidInput) as error:
        eq.sweep(STUDY, **options)
    assert message in str(error.value)


@pytest.mark.parametrize(("backend", "module"), [("ray", "ray"), ("dask", "distributed")])
def test_a_missing_extra_is_named(backend: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(eq.MissingExtra, match=rf"needs {module}\nhint: pip install 'equipoise\[{backend}\]'"):
        eq.sweep(STUDY, backend=backend)
