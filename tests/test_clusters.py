"""Sweeps on real clusters: worker processes of Ray and Dask give, bit for bit, what one thread here gives."""

from __future__ import annotations

import dataclasses
import os
import re
import secrets
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.planner.trials import play
from equipoise.planner.worlds import new_world
from equipoise.simulation import sweeps, workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ARMS = eq.Gaussian(mean=[1, 1.5, 2, 4, 5], std=[0.2, 0.3, 0.4, 2, 0.7])
POLICIES = (
    eq.ForcingBalance(reward_weight=0.9),
    eq.ForcingBalance(reward_weight=0.6, forcing=0.3),
    eq.ThompsonSampling(),
    eq.Uniform(),
)
STUDY = eq.Study(policies=POLICIES, arms=ARMS, horizons=[300, 1000], replications=12, seed=5)


def endurance(backend: str) -> Any:
    """Return a backend whose start takes long."""
    return pytest.param(backend, marks=pytest.mark.endurance)


RAY = endurance("ray")

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


@pytest.mark.parametrize("backend", ["dask", RAY])
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


def test_a_cluster_with_one_worker_gives_it_all_tasks() -> None:
    distributed = pytest.importorskip("distributed")
    study = eq.Study(policies=POLICIES[:1], arms=ARMS, horizons=[100], replications=4, seed=5)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    ) as cluster:
        (runs,) = eq.sweep(study, backend="dask", scheduler=cluster.scheduler_address, chunk=2)
    assert runs == eq.simulate(POLICIES[:1], ARMS, 100, 4, seed=5, checkpoints=study.steps(100))


@pytest.mark.parametrize("backend", [endurance("dask"), RAY])
def test_a_cluster_simulates_plans_as_this_machine_does(backend: str, request: pytest.FixtureRequest) -> None:
    worlds = [new_world([0.3, 0.5], per_day=[40] * 5, delay=3600, missing=0.1)] * 6
    ways = [{"arms": ["a", "b"], "policy": eq.Uniform()}, {"arms": ["a", "b"], "reward_weight": 0.9}]
    address = request.getfixturevalue(f"{backend}_cluster")
    done: list[tuple[int, int]] = []
    far = play(worlds, ways, seed=3, backend=backend, scheduler=address, progress=lambda *counts: done.append(counts))
    near = play(worlds, ways, seed=3)
    np.testing.assert_array_equal(far.assigned, near.assigned)
    np.testing.assert_array_equal(far.low, near.low)
    assert far.replication.tolist() == list(range(6))
    assert done[-1] == (12, 12)


def process_of(_shared: Any, number: int) -> tuple[int, int]:
    time.sleep(0.05)
    return number, os.getpid()


@pytest.mark.parametrize("backend", ["dask", RAY])
def test_the_work_is_done_by_two_processes_or_more_and_not_by_this_one(
    backend: str, request: pytest.FixtureRequest
) -> None:
    address = request.getfixturevalue(f"{backend}_cluster")
    with workers.connected(backend, None, address, ARMS) as (n_at_once, results_of):
        answers = list(results_of(process_of, [(number,) for number in range(20)]))
    assert n_at_once == 2
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


@pytest.mark.parametrize("backend", ["dask", RAY, "processes", "threads"])
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


@pytest.mark.parametrize("backend", ["dask", RAY, "processes", "threads"])
def test_what_fails_far_away_is_told_here(backend: str, request: pytest.FixtureRequest) -> None:
    address = request.getfixturevalue(f"{backend}_cluster") if backend in ("dask", "ray") else None
    study = eq.Study(policies=[Failing()], arms=ARMS, horizons=[10], replications=4)
    with pytest.raises(eq.InvalidInput, match="probabilities that add up to 1"):
        eq.sweep(study, backend=backend, scheduler=address, chunk=1)


def test_a_sweep_begun_here_is_finished_on_a_cluster(
    dask_cluster: str, expected: tuple[eq.Runs, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = sweeps._played
    calls = []

    def twice_and_no_more(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return played(*arguments)

    monkeypatch.setattr(sweeps, "_played", twice_and_no_more)
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


DATA = eq.Empirical(values=[np.random.default_rng(k).normal(k, 1, 20_000) for k in range(3)], names=("a", "b", "c"))


@pytest.mark.parametrize("backend", ["dask", RAY])
def test_much_data_is_brought_to_the_workers_and_not_with_every_task(
    backend: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = request.getfixturevalue(f"{backend}_cluster")
    pack, packed = eq.Arms.__getstate__, []

    def counted(self: eq.Arms) -> dict[str, Any]:
        packed.append(1)
        return pack(self)

    monkeypatch.setattr(eq.Arms, "__getstate__", counted)
    study = eq.Study(policies=POLICIES[:2], arms=DATA, horizons=[300], replications=20, seed=2)
    (runs,) = eq.sweep(study, backend=backend, scheduler=address, chunk=2)
    assert 1 <= len(packed) <= 4  # there are 20 tasks
    assert runs == eq.simulate(study.policies, DATA, 300, 20, seed=2)
    assert runs.arm_names == ("a", "b", "c")


def test_a_client_that_is_open_is_found_and_stays_open(dask_cluster: str, expected: tuple[eq.Runs, ...]) -> None:
    import distributed

    with distributed.Client(dask_cluster) as client:
        assert eq.sweep(STUDY, backend="dask") == expected
        with pytest.raises(eq.InvalidInput, match="probabilities that add up to 1"):
            eq.sweep(eq.Study(policies=[Failing()], arms=ARMS, horizons=[10], replications=4), backend="dask")
        assert client.status == "running"
        assert client.submit(abs, -1).result() == 1


@pytest.mark.parametrize(
    ("backend", "address", "message"),
    [
        ("dask", "tcp://127.0.0.1:9", "no dask scheduler answers at tcp://127.0.0.1:9: Connection refused"),
        ("dask", "127.0.0.1:9", "no dask scheduler answers at 127.0.0.1:9: Connection refused"),
        ("dask", "tcp://nowhere.invalid:8786", "no dask scheduler answers at tcp://nowhere.invalid:8786: "),
        ("dask", "foo", "scheduler must be the address of a dask cluster, such as tcp://host:8786; got 'foo'"),
        ("dask", "host:many", "scheduler must be the address of a dask cluster, such as tcp://host:8786; got 'host:m"),
        ("ray", "127.0.0.1:9", "no ray cluster answers at 127.0.0.1:9: Connection refused"),
        ("ray", "ray://127.0.0.1:9", "no ray cluster answers at ray://127.0.0.1:9: Connection refused"),
        ("ray", "foo", "scheduler must be the address of a ray cluster, such as host:6379; got 'foo'"),
    ],
)
def test_a_cluster_that_is_not_there_is_told_at_once(
    backend: str, address: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = pytest.importorskip("ray" if backend == "ray" else "distributed")
    if backend == "ray":
        monkeypatch.setattr(module, "is_initialized", lambda: False)  # a connection that is open would be used
    started = time.monotonic()
    with pytest.raises(eq.EquipoiseError) as error:
        eq.sweep(STUDY, tmp_path / "r.npz", backend=backend, scheduler=address)
    assert str(error.value).startswith(message)
    assert time.monotonic() - started < 25  # Dask and Ray themselves would wait for half a minute or longer
    assert list(tmp_path.iterdir()) == []


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


# --- Ctrl-C -----------------------------------------------------------------------------------------------------------

LONG = (
    *("simulate", "--mean", "1,2,3", "--std", "1,1,1", "--policy", "ForcingBalance", "--reward-weight", "0.9"),
    *("--horizon", "60000", "--replications", "2000", "--chunk", "5"),
)
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(eq.__file__).parents[1]), "COLUMNS": "100"}
RAY_CLUSTER = """
import ray, sys
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
print(ray.get_runtime_context().gcs_address, flush=True)
for _ in sys.stdin:
    print(ray.available_resources().get("CPU", 0), flush=True)
"""


@dataclasses.dataclass
class Cluster:
    """Where a command runs, and whether all workers are there and none has anything to do."""

    options: tuple[str, ...]
    environment: dict[str, str]
    is_idle: Callable[[], bool]


@pytest.fixture
def threads_workers() -> Cluster:
    return Cluster(("--workers", "2"), ENVIRONMENT, lambda: True)


processes_workers = threads_workers


@pytest.fixture
def dask_workers(dask_cluster: str) -> Iterator[Cluster]:
    import distributed

    def is_idle(dask_scheduler: Any) -> bool:
        return len(dask_scheduler.workers) == 2 and not dask_scheduler.tasks

    with distributed.Client(dask_cluster, set_as_default=False) as client:
        yield Cluster(("--scheduler", dask_cluster), ENVIRONMENT, lambda: client.run_on_scheduler(is_idle))


@pytest.fixture
def ray_workers() -> Iterator[Cluster]:
    pytest.importorskip("ray")
    # A cluster lets only those in who know its token; it reads the token when ray is imported, so not in this process.
    environment = ENVIRONMENT | {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, "-c", RAY_CLUSTER], text=True, env=environment, **pipes) as process:
        assert process.stdin is not None and process.stdout is not None
        address = process.stdout.readline().strip()

        def is_idle() -> bool:
            print(file=process.stdin, flush=True)
            return float(process.stdout.readline()) == 2  # type: ignore[union-attr]

        yield Cluster(("--scheduler", address), environment, is_idle)


HANGS = 120.0
"""Seconds after which something hangs; here and not from another file, as workers of Ray import only this one."""


def eventually(is_so: Callable[[], bool], seconds: float = HANGS) -> bool:
    deadline = time.monotonic() + seconds
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.02)
    return is_so()


def n_living(session: int) -> int:
    """Return how many processes of a session there are, those aside that have ended and are only listed."""
    fields = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields.append(file.read_text().rpartition(")")[2].split())
        except OSError:  # it has just ended
            continue
    return sum(int(field[3]) == session and field[0] not in "ZX" for field in fields)


@pytest.mark.parametrize("backend", ["threads", endurance("processes"), endurance("dask"), RAY])
def test_ctrl_c_ends_the_command_and_leaves_nothing_running(
    backend: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    eq.simulate(eq.ForcingBalance(reward_weight=0.9), eq.Gaussian(mean=[1, 2, 3], std=[1, 1, 1]), 10)  # compiled
    workers: Cluster = request.getfixturevalue(f"{backend}_workers")
    process = subprocess.Popen(
        [sys.executable, "-m", "equipoise.cli", *LONG, "--backend", backend, *workers.options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=workers.environment,
        cwd=tmp_path,
        start_new_session=True,
    )
    assert eventually(lambda: len(list(tmp_path.glob("*.parts/*.npz"))) >= 2 or process.poll() is not None)
    (parts,) = tmp_path.glob("*.parts")
    process.send_signal(signal.SIGINT)
    output, notes = process.communicate(timeout=HANGS)
    finished = sum(eq.Runs.load(part).replications.size for part in parts.glob("*"))
    assert 10 <= finished < 2000
    assert (process.returncode, output) == (130, "")
    # Nothing else is said: no traceback, no warning. Ray's own processes may complain that they are being ended.
    rays = re.compile(r"compiling|\[[-0-9]+ [:0-9,]+ [A-Z] \d+ \d+\] ")
    first, *last = (line for line in notes.splitlines() if not rays.match(line))
    assert first.startswith("1 policy x 1 horizon x 2,000 replications")
    assert last == [
        f"interrupted; {finished:,} of 2,000 replications are finished and kept in {parts.name}",
        "the same command plays the rest",
    ]
    assert eventually(workers.is_idle)
    assert eventually(lambda: n_living(process.pid) == 0)
