"""A primary PostgreSQL server is killed under load and its standby takes over; clients go on there.

With synchronous replication nothing that was answered is lost. With asynchronous replication the end of it may be, from
some moment on and for all clients alike; everything answered before and after is there, no unit has two arms, and the
log that survived replays.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import failover_worker
import psutil
import psycopg
import pytest
from history_checker import History, Loss, violations, what_is_left
from patience import HANGS, wait_until

import equipoise as eq

pytestmark = pytest.mark.endurance

N_WORKERS = 3
N_ANSWERS = 30
STANDBY = "standby"
NOTICES_OLD_LOGS = True
"""Whether a process always notices that the log it remembers was replaced by an older one; until then, processes are
started again after a failover that may have lost something."""


class Cluster:
    """A primary and its standby, which replicates it over a socket."""

    def __init__(self, pgserver, home):
        self.pgserver = pgserver
        self.primary = pgserver.get_server(home / "primary", cleanup_mode="stop")
        copy = home / STANDBY
        self._run(
            "pg_basebackup",
            f"--dbname={self._conninfo(self.primary)} application_name={STANDBY}",
            f"--pgdata={copy}",
            "--write-recovery-conf",
            "--checkpoint=fast",
        )
        for name in (".s.PGSQL.5432.lock", ".handle_pids.json", "log"):  # of the running primary
            (copy / name).unlink(missing_ok=True)
        self.standby = pgserver.get_server(copy, cleanup_mode="stop")
        wait_until(lambda: self.query(self.primary, "SELECT count(*) FROM pg_stat_replication") == 1)

    @property
    def url(self):
        """The address of whichever server takes writes."""
        hosts = ",".join(str(one.get_postmaster_info().socket_dir) for one in (self.primary, self.standby))
        return f"postgresql://postgres@/postgres?host={hosts}&port=5432,5432&target_session_attrs=read-write"

    @staticmethod
    def _conninfo(server):
        return f"host={server.get_postmaster_info().socket_dir} user=postgres"

    def _run(self, command, *arguments):
        # As the user that the servers run as: they refuse to run as root.
        program = self.primary.bin_path / command
        subprocess.run([program, *arguments], user=self.primary.system_user, check=True, capture_output=True, cwd="/")

    def query(self, server, statement):
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            return connection.execute(statement).fetchone()[0]

    def set(self, server, name, value):
        """Change a setting of a running server."""
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
            connection.execute("SELECT pg_reload_conf()")

    def replicate_synchronously(self):
        """Let every commit of the primary wait for the standby."""
        self.set(self.primary, "synchronous_standby_names", STANDBY)
        wait_until(
            lambda: self.query(self.primary, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == 1
        )

    def fall_behind(self):
        """Stop replicating; return the last moment at which the standby surely had everything."""
        moment = time.monotonic()
        written = self.query(self.primary, "SELECT pg_current_wal_lsn()")
        wait_until(lambda: self.query(self.standby, f"SELECT pg_last_wal_receive_lsn() >= '{written}'"))
        self.set(self.standby, "primary_conninfo", "")
        wait_until(lambda: self.query(self.primary, "SELECT count(*) FROM pg_stat_replication") == 0)
        return moment

    def fail_over(self):
        """Kill the primary as a power cut would, and let the standby take over."""
        postmaster = psutil.Process(self.primary.get_pid())
        everyone = [postmaster, *postmaster.children(recursive=True)]
        for process in everyone:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        psutil.wait_procs(everyone, timeout=HANGS)
        self._run("pg_ctl", "promote", "--wait", f"--pgdata={self.standby.pgdata}")

    def stop(self):
        for server in (self.primary, self.standby):
            with suppress(psutil.NoSuchProcess):
                server.cleanup()


@pytest.fixture
def cluster(pgserver):
    with tempfile.TemporaryDirectory(prefix="equipoise-") as home:
        Path(home).chmod(0o777)  # the user that the servers run as makes the copy
        made = Cluster(pgserver, Path(home))
        yield made
        made.stop()


class Load:
    """Processes at work, each with a file of the calls it made."""

    def __init__(self, url, directory):
        self._url, self._directory = url, directory
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["failover_worker", "pytest"])
        self._running, self._paths, self._n_ends = [], [], 0

    def start(self):
        end = self._directory / f"end-{self._n_ends}"
        for _ in range(N_WORKERS):
            path = self._directory / f"worker-{len(self._paths)}.jsonl"
            path.touch()
            arguments = (self._url, f"w{len(self._paths)}", path, end)
            process = self._context.Process(target=failover_worker.live, args=arguments, daemon=True)
            process.start()
            self._running.append(process)
            self._paths.append(path)

    def wait_for_answers(self):
        """Wait until every process has got some more answers."""
        paths = self._paths[-N_WORKERS:]
        before = [path.read_bytes().count(b"\n") for path in paths]
        wait_until(
            lambda: all(
                path.read_bytes().count(b"\n") >= old + N_ANSWERS for path, old in zip(paths, before, strict=True)
            )
        )

    def stop(self):
        (self._directory / f"end-{self._n_ends}").touch()
        self._n_ends += 1
        for process in self._running:
            process.join(HANGS)
            assert process.exitcode == 0
        self._running.clear()

    def kill(self):
        """End the processes, wherever they are, as a machine that goes with its database would."""
        for process in self._running:
            process.kill()
            process.join(HANGS)
        self._running.clear()

    def calls(self):
        return tuple(call for path in self._paths for call in failover_worker.calls_in(path))


@pytest.fixture
def load(cluster, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    with eq.open_store(cluster.url) as store:
        policy = eq.ForcingBalance(reward_weight=0.6, tracking="windowed")
        eq.Experiment.create(store, failover_worker.NAME, arms=["line", "pie", "none"], policy=policy, seed=7)
    made = Load(cluster.url, tmp_path)
    made.start()
    yield made
    made.kill()


def history(cluster, calls, *losses):
    with eq.open_store(cluster.url) as store:
        return History(calls, *what_is_left(eq.Experiment.open(store, failover_worker.NAME)), losses)


def is_lost(history, call):
    left = {(event.unit, event.decision, event.at) for event in history.log if event.kind == "assigned"}
    return any(one.new and (one.unit, one.number, one.at) not in left for one in call.seen)


def test_with_synchronous_replication_nothing_that_was_answered_is_lost(cluster, load):
    """The processes go on at the standby, with what they remember."""
    cluster.replicate_synchronously()
    load.wait_for_answers()
    # What was answered before replication was synchronous has long been at the standby.
    cluster.fail_over()
    load.wait_for_answers()
    load.stop()
    found = history(cluster, load.calls())
    assert violations(found) == []
    assert not any(is_lost(found, call) for call in found.calls)


def test_with_asynchronous_replication_only_the_end_of_what_was_answered_is_lost(cluster, load):
    load.wait_for_answers()
    since = cluster.fall_behind()
    load.wait_for_answers()
    if not NOTICES_OLD_LOGS:
        load.kill()
    stopped = time.monotonic()
    cluster.fail_over()
    until = time.monotonic()
    if not NOTICES_OLD_LOGS:
        load.start()
    load.wait_for_answers()
    load.stop()
    found = history(cluster, load.calls(), Loss(since, until, stopped))
    assert violations(found) == []
    assert sum(is_lost(found, call) for call in found.calls) >= N_ANSWERS // 2
    # The negative control: had nothing been allowed to be lost, this would have been found out.
    assert any(one.startswith("acknowledged") for one in violations(History(found.calls, found.log, found.arms)))
