"""The command `equipoise serve`: what it says, how it starts and refuses to, and how it ends."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import sqlite3
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import pytest
from command_runner import Runner
from patience import HANGS, wait_until
from service_api import Api, path_of
from service_runner import running_service, serving_here

import equipoise as eq
from equipoise.service import Settings
from equipoise.service import server as serving
from equipoise.service.api_keys import create_key
from equipoise.service.processes import open_port

ASK = path_of("x", "assignments")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.db"


@pytest.fixture
def key(path):
    """A key of a store that has an experiment."""
    with eq.open_store(f"sqlite:///{path}") as store:
        eq.Experiment.create(store, "x", arms=["a", "b"], policy=eq.ForcingBalance(reward_weight=0.5), seed=1)
        return create_key(store, role="admin")[1]


@pytest.fixture
def run(monkeypatch, capsys):
    """The command, run in this process."""
    return Runner(monkeypatch, capsys)


def children(pid):
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_it_says_where_it_listens_and_how_to_make_a_key_which_works_at_once(path, run):
    started = time.monotonic()
    with running_service(f"sqlite:///{path}") as service:
        with closing(Api(service.url)) as api:
            assert api.data("GET", "/readyz") == {"status": "ok"}
            assert time.monotonic() - started < HANGS
            wait_until(lambda: f"documentation: {service.url}/docs\n" in service.said)
            command = re.search(r"no key yet; make one in another terminal: equipoise (.+)\n", service.said)[1]
            api.refused(401, "NotAuthenticated", "GET", "/experiments")
        made = run(*shlex.split(command))
        assert made.code == 0, made.err
        with closing(Api(service.url, made.out.strip())) as api:
            assert api.data("GET", "/experiments") == {"experiments": []}
        assert service.stop() == 0
    with running_service(f"sqlite:///{path}") as service:
        assert "no key yet" not in service.said


@pytest.mark.parametrize("by", ["option", "environment"])
def test_how_to_make_a_key_can_be_followed_where_the_address_has_a_password(postgresql_url, by, run, monkeypatch):
    url = postgresql_url.replace("postgres:@", "postgres:hidden@")
    assert url != postgresql_url
    monkeypatch.delenv("EQUIPOISE_STORE", raising=False)
    if by == "environment":
        monkeypatch.setenv("EQUIPOISE_STORE", url)
    said = []
    serving._look(url, Settings(), said.append, create=True)
    assert not any("hidden" in line for line in said)
    command = said[-1].rpartition(": equipoise ")[2]
    assert "***" not in command
    assert ("EQUIPOISE_STORE set as here" in said[-1]) == (by == "environment")
    made = run(*(url if word == "URL" else word for word in shlex.split(command)))
    assert made.code == 0, made.err
    assert made.out.startswith("eq_")


def test_how_to_make_a_key_can_be_followed_where_a_shell_would_read_the_address_otherwise(tmp_path):
    folder = tmp_path / "my school & others"
    folder.mkdir()
    said = []
    serving._look(f"sqlite:///{folder}/x.db", Settings(), said.append, create=True)
    command = said[-1].rpartition(": equipoise ")[2]
    assert shlex.split(command)[-2:] == ["--store", f"sqlite:///{folder}/x.db"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--open", "--host", "0.0.0.0"], "127.0.0.1"),  # noqa: S104
        (["--open", "--host", "::"], "127.0.0.1"),
        (["--open", "--host", "example.org"], "127.0.0.1"),
        (["--cors-origin", "school.example"], "https://school.example"),
        (["--cors-origin", "https://school.example/"], "not even a slash at the end"),
        (["--cors-origin", "https://school.example/game"], "like https://school.example; got"),
        (["--cors-origin", "https://"], "like https://school.example; got"),
        (["--cors-origin", "https://*.school.example"], "like https://school.example; got"),
        (["--log-format", "xml"], "text or json"),
        (["--most-requests", "0"], "requests_in_flight"),
        (["--most-bytes-at-once", "1000"], "at least body_bytes, 4,194,304; got 1,000"),
        (["--wait", "0"], "wait_seconds"),
        (["--store", "http://localhost:1"], "database"),
        (["--store", "sqlite:////no/such/folder/x.db"], "/no/such/folder"),
    ],
)
def test_it_refuses_what_cannot_be_right_before_it_starts(tmp_path, options, told, run):
    store = [] if "--store" in options else ["--store", f"sqlite:///{tmp_path}/x.db"]
    done = run("serve", "--port", "0", *store, *options)
    assert done.code in (1, 2)
    assert told in done.err and "listens on" not in done.err


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_port_that_is_taken_is_told(tmp_path, workers, run):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = run("serve", "--store", f"sqlite:///{tmp_path}/x.db", "--port", port, "--workers", workers)
    assert done.code == 1
    assert port in done.err and "--port" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("workers", ["1", "2"])
def test_two_servers_that_start_together_do_not_share_a_port(tmp_path, workers, run):
    """Before any process of the first one listens."""
    with closing(open_port("127.0.0.1", 0, processes=2)) as first:
        port = str(first.getsockname()[1])
        done = run("serve", "--store", f"sqlite:///{tmp_path}/x.db", "--port", port, "--workers", workers)
        assert done.code == 1 and "already in use" in done.err
        assert not (tmp_path / "x.db").exists()
    open_port("127.0.0.1", int(port), processes=2).close()


def test_a_host_that_does_not_exist_is_told(tmp_path, run):
    done = run("serve", "--store", f"sqlite:///{tmp_path}/x.db", "--host", "nohost.invalid")
    assert done.code == 1
    assert "nohost.invalid" in done.err and "--host" in done.err


@pytest.mark.parametrize("options", [["--workers", "2", "--open"], []])
def test_a_store_in_memory_is_for_one_process_without_keys(options, run):
    done = run("serve", "--store", "memory:", "--port", "0", *options)
    assert done.code == 2
    assert "belongs to one process" in done.err


def test_it_ends_in_time_though_the_store_is_stuck(path, key):
    settings = Settings(wait_seconds=60, grace_seconds=1, ending_seconds=0.5)
    with running_service(f"sqlite:///{path}", settings=settings) as service, closing(Api(service.url, key)) as api:
        api.data("POST", ASK, {"unit": "ada"})
        with closing(sqlite3.connect(path, isolation_level=None)) as other, ThreadPoolExecutor(2) as people:
            other.execute("BEGIN IMMEDIATE")
            waiting = [people.submit(api, "POST", path_of("x", "pause"))]
            waiting += [people.submit(api, "POST", ASK, {"unit": "bob"})]
            wait_until(lambda: "in_flight 3" in api("GET", "/metrics").text)
            time.sleep(0.2)  # both have come to the store
            started = time.monotonic()
            assert service.stop() == 0
            assert time.monotonic() - started < 39  # the store lets nobody in for 60
            for one in waiting:
                assert one.result().status_code == 503
                assert "whether this was recorded is not known" in one.result().json()["error"]
    assert "Traceback" not in service.said


def test_options_of_the_command_reach_the_service(path, key):
    options = ["--open", "--cors-origin", "https://a.example", "--cors-origin", "https://b.example"]
    options += ["--most-bytes", "1000", "--most-units", "3", "--log-format", "json", "--access-log"]
    with running_service(f"sqlite:///{path}", *options) as service, closing(Api(service.url)) as api:
        assert "everybody on this machine" in service.said
        answer = api("POST", ASK, {"unit": "ada"}, headers={"origin": "https://b.example"})
        assert answer.headers["access-control-allow-origin"] == "https://b.example"
        assert api.data("GET", path_of("x", "events"))["events"][-1]["who"] == "open"
        api.refused(421, None, "GET", "/experiments", headers={"host": "evil.example"})
        api.refused(413, "InvalidInput", "POST", ASK, {"unit": "a" * 1000})
        assert "3" in api.refused(422, "InvalidInput", "POST", ASK + "/many", {"units": list("abcd")})
        assert service.stop() == 0
    assert f'"request_id": "{answer.headers["x-request-id"]}"' in service.said


@pytest.mark.parametrize(
    ("sent", "is_taken_over"),
    [("from-a.page_7", True), ("x" * 64, True), ("x" * 65, False), ("<b> x", False), ("é", False), ("", False)],
)
def test_a_browser_that_asks_first_gets_an_id_that_may_be_written_anywhere(sent, is_taken_over):
    settings = Settings(open=True, cors_origins=("https://a.example",))
    with serving_here(eq.open_store("memory:"), settings) as here, closing(Api(here.url)) as api:
        for origin, status in (("https://a.example", 200), ("https://b.example", 403)):
            asked = {"origin": origin, "access-control-request-method": "POST", "x-request-id": sent.encode("latin-1")}
            answer = api("OPTIONS", "/experiments", headers=asked)
            assert answer.status_code == status
            found = answer.headers["x-request-id"]
            assert found == sent if is_taken_over else re.fullmatch("[0-9a-f]{16}", found)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_was_accepted_is_answered_before_it_ends(path, key, number):
    with running_service(f"sqlite:///{path}") as service, closing(Api(service.url, key)) as api:
        api.data("POST", ASK, {"unit": "ada"})
        with closing(sqlite3.connect(path, isolation_level=None)) as other, ThreadPoolExecutor(8) as people:
            other.execute("BEGIN IMMEDIATE")  # so that everybody who writes waits
            waiting = [people.submit(api, "POST", ASK, {"unit": f"u{i}"}) for i in range(5)]
            waiting.append(people.submit(api, "POST", path_of("x", "pause")))
            wait_until(lambda: "in_flight 7" in api("GET", "/metrics").text)
            service.process.send_signal(number)
            wait_until(lambda: not _accepts(service.port))
            assert not any(one.done() for one in waiting)
            other.execute("ROLLBACK")
            assert {one.result().status_code for one in waiting} <= {200, 201, 409}
        assert service.process.wait(HANGS) == 0
    with eq.open_store(f"sqlite:///{path}") as store:
        experiment = eq.Experiment.open(store, "x")
        answered = [one.result().json() for one in waiting if one.result().status_code == 201]
        assert all(experiment.assignment(one["unit"]).arm == one["arm"] for one in answered)
        assert experiment.status().state == "paused"
    assert "Traceback" not in service.said


def _accepts(port):
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            return connection.recv(10) != b""
    except OSError:
        return False


def test_the_port_is_free_again_at_once_and_idle_connections_do_not_keep_it_from_ending(path, key):
    with running_service(f"sqlite:///{path}") as service:
        with closing(Api(service.url, key)) as api:
            api.data("POST", ASK, {"unit": "ada"})
        port = service.port
        service.kill()
    with running_service(f"sqlite:///{path}", port=port) as service, closing(Api(service.url, key)) as api:
        assert not api.data("POST", ASK, {"unit": "ada"})["new"]
        with socket.create_connection(("127.0.0.1", service.port)):
            started = time.monotonic()
            assert service.stop() == 0
            assert time.monotonic() - started < Settings().grace_seconds


def test_several_processes_serve_count_together_and_end_together(path, key):
    with running_service(f"sqlite:///{path}", "--workers", "2") as service:
        assert "SQLite" in service.said  # for which several are correct, but no quicker
        served = Counter()
        while sum(served.values()) < 40 or len(served) < 2:
            assert sum(served.values()) < 2_000
            with closing(Api(service.url, key)) as api:  # a new connection, which either may take
                answer = api("POST", ASK, {"unit": f"u{sum(served.values())}"})
                assert answer.status_code == 201
                served[answer.headers["x-request-id"].split("-")[0]] += 1
        for process in served:
            wait_until(lambda process=process: _counted(service, key).get(process) == sum(served.values()))
        workers = [pid for pid in children(service.process.pid) if "spawn_main" in _command(pid)]
        assert len(workers) == 2
        os.kill(workers[0], signal.SIGKILL)  # one that dies is replaced
        wait_until(lambda: len(set(children(service.process.pid)) - {workers[0]}) >= 2)
        wait_until(lambda: "a process died and was restarted" in service.said)
        wait_until(lambda: _accepts(service.port))
        everybody = children(service.process.pid)
        assert service.stop() == 0
        wait_until(lambda: not any(is_alive(pid) for pid in everybody))
    assert "Traceback" not in service.said


def test_connections_that_come_at_once_are_dealt_out_among_processes(path, key):
    with running_service(f"sqlite:///{path}", "--workers", "2") as service:
        with closing(Api(service.url, key)) as api:
            api.data("POST", ASK, {"unit": "ada"})
        wait_until(lambda: len(_who_answers(service, 20)) == 2)  # the second process may still be starting
        served = _who_answers(service, 64)
        assert min(served.values()) >= 10  # of fair coins, one of 100 million rows of 64 would not do that


def _who_answers(service, number):
    """How many of so many connections, opened before anything is asked, each process takes."""
    with ExitStack() as stack:
        opened = [
            stack.enter_context(socket.create_connection(("127.0.0.1", service.port), timeout=20))
            for _ in range(number)
        ]
        served = Counter()
        for connection in opened:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = connection.recv(10_000).decode().lower()
            served[answer.split("x-request-id: ")[1].split("-")[0]] += 1
    return served


def _counted(service, key):
    """How many assignments the process that happens to answer counts in all of them."""
    with closing(Api(service.url, key)) as api:
        answer = api("GET", "/metrics")
    found = 'equipoise_requests_total{method="POST",route="/experiments/{name}/assignments",status="201"} '
    [number] = [line.removeprefix(found) for line in answer.text.splitlines() if line.startswith(found)]
    return {answer.headers["x-request-id"].split("-")[0]: int(number)}


def test_processes_of_a_server_that_was_killed_end_by_themselves(path, key):
    """Otherwise they would keep the port and the next server could not start."""
    with running_service(f"sqlite:///{path}", "--workers", "2") as service:
        with closing(Api(service.url, key)) as api:
            api.data("POST", ASK, {"unit": "ada"})
        workers = children(service.process.pid)
        assert len(workers) >= 2
        os.kill(service.process.pid, signal.SIGKILL)
        service.process.wait()
        wait_until(lambda: not any(is_alive(pid) for pid in workers))
        with pytest.raises(httpx.ConnectError):
            httpx.get(service.url + "/healthz")


def _command(pid):
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")


@pytest.mark.parametrize("options", [(), ("--workers", "2")])
def test_it_is_not_ready_before_it_closes_and_serves_on_until_then(path, key, options):
    """A second signal ends the wait, so the test need not last as long as a load balancer may take."""
    with (
        running_service(f"sqlite:///{path}", "--drain", "3600", *options) as service,
        closing(Api(service.url, key)) as api,
    ):
        api.data("POST", "/experiments", {"name": "drained", "arms": ["a", "b"], "reward_weight": 0.5})
        assert api("GET", "/readyz").status_code == 200
        service.process.send_signal(signal.SIGTERM)
        until = time.monotonic() + 60
        while (answer := httpx.get(f"{service.url}/readyz", trust_env=False)).status_code == 200:
            assert time.monotonic() < until
            time.sleep(0.02)
        assert answer.status_code == 503 and answer.json()["error"] == "the service is about to end"
        with closing(Api(service.url, key)) as new:  # on a connection of its own
            assert new.data("POST", path_of("drained", "assignments"), {"unit": "late"})["new"]
        assert service.process.poll() is None
        if not options:
            assert service.stop() == 0
