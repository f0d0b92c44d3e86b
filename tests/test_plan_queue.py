"""Plans that the service simulates: a queue that survives kills, with limits, and its endpoints."""

from __future__ import annotations

import os
import signal
import time

import httpx
import pytest

import equipoise as eq
from equipoise.errors import InvalidInput, UnknownPlan
from equipoise.http_api import ADMIN, ASSIGNER, READER
from equipoise.service import ThreadedService
from equipoise.service.api_keys import create_key
from equipoise.service.error_responses import Overloaded
from equipoise.service.plan_queue import MOST_ARMS, MOST_WAITING, PlanQueue

MOST_SECONDS = 300
"""How long to wait for a process on a busy machine; tests end as soon as it is done."""


def plan(seed=1, people=60, **settings):
    ways = {"weights": [0.9]}
    return eq.Plan(arms={"a": "30%", "b": "40% to 60%"}, people=people, goals=0.2, ways=ways, seed=seed, **settings)


def wait_for(found, *states):
    end = time.monotonic() + MOST_SECONDS
    while (record := found())["state"] not in states:
        assert record["state"] in ("waiting", "working"), record
        assert time.monotonic() < end, record
        time.sleep(0.05)
    return record


@pytest.fixture
def queue(tmp_path):
    made = PlanQueue(tmp_path)
    yield made
    made.close()


class TestQueue:
    def test_a_plan_is_simulated_and_kept_under_its_digest(self, queue):
        asked = queue.submit(plan(), seconds=0.2)
        assert (asked["id"], asked["state"], asked["forecast"]) == (plan().digest, "waiting", None)
        done = wait_for(lambda: queue.get(asked["id"]), "done")
        assert done["replications"] >= 20
        assert done["forecast"]["question"]["ways"] == ["equal shares", "weight 0.9"]
        assert eq.Plan.from_dict(done["plan"]) == plan()
        assert queue.submit(plan())["state"] == "done"  # asking again finds it

    def test_a_process_that_was_killed_is_started_again_by_who_asks(self, queue, monkeypatch):
        asked = queue.submit(plan(seed=2), seconds=0.2)
        wait_for(lambda: queue.get(asked["id"]), "working", "done")
        queue._kill_worker()
        assert wait_for(lambda: queue.get(asked["id"]), "done")["replications"] >= 20

    def test_no_more_wait_than_there_is_room_for(self, queue, monkeypatch):
        monkeypatch.setattr(queue, "_wake", lambda: None)
        for seed in range(MOST_WAITING):
            queue.submit(plan(seed=seed))
        with pytest.raises(Overloaded, match=f"{MOST_WAITING} plans are waiting"):
            queue.submit(plan(seed=99))
        assert queue.submit(plan(seed=0))["state"] == "waiting"
        assert len(queue.summaries()) == MOST_WAITING
        queue.cancel(plan(seed=0).digest)
        assert queue.submit(plan(seed=99))["state"] == "waiting"

    def test_what_is_cancelled_keeps_what_is_done_and_is_forgotten_the_second_time(self, queue):
        large = plan(seed=3, people=20_000)
        asked = queue.submit(large, seconds=60)
        wait_for(lambda: queue.get(asked["id"]), "working")
        pid = int((queue.directory / "pid").read_text())
        assert queue.cancel(asked["id"])["state"] == "cancelled"
        [child] = queue._children
        assert (child.pid, child.wait(MOST_SECONDS)) == (pid, -signal.SIGKILL)
        assert queue.get(asked["id"])["state"] == "cancelled"
        queue.cancel(asked["id"])
        with pytest.raises(UnknownPlan, match="there is no plan"):
            queue.get(asked["id"])

    @pytest.mark.parametrize("identity", ["..", "../../etc/passwd", "pid", "0" * 65, ""])
    def test_an_id_is_no_path(self, queue, identity):
        (queue.directory / "pid").write_text("1")
        with pytest.raises(UnknownPlan):
            queue.get(identity)
        (queue.directory / "pid").unlink()

    def test_plans_that_are_too_large_for_a_service_are_refused(self, queue):
        arms = {f"arm {k}": "30%" for k in range(MOST_ARMS + 1)}
        with pytest.raises(InvalidInput, match="arms must be at most 64 for a plan that the service simulates; got 65"):
            queue.submit(eq.Plan(arms=arms, people=100))
        with pytest.raises(InvalidInput, match="people must be at most 1,000,000"):
            queue.submit(plan(people=2_000_000))
        assert queue.summaries() == []


@pytest.fixture(scope="module")
def service():
    store = eq.open_store("memory:")
    keys = {role: create_key(store, role=role, name=role)[1] for role in (READER, ASSIGNER, ADMIN)}
    with ThreadedService(store) as running:
        yield running.url, keys


class TestService:
    def call(self, service, method, path, role=READER, **body):
        url, keys = service
        headers = {"Authorization": f"Bearer {keys[role]}"}
        return httpx.request(method, f"{url}{path}", headers=headers, json=body or None, timeout=60)

    def test_a_plan_is_posted_watched_listed_and_forgotten(self, service):
        posted = self.call(service, "POST", "/plans", plan=plan().to_dict(), seconds=0.2)
        assert posted.status_code == 202, posted.text
        path = f"/plans/{posted.json()['id']}"
        done = wait_for(lambda: self.call(service, "GET", path).json(), "done")
        assert done["forecast"]["recommendation"]
        [listed] = self.call(service, "GET", "/plans").json()["plans"]
        assert (listed["id"], listed["state"], "forecast" in listed) == (done["id"], "done", False)
        again = self.call(service, "POST", "/plans", toml=plan().to_toml())
        assert (again.status_code, again.json()["id"]) == (200, done["id"])
        assert self.call(service, "DELETE", path).status_code == 200
        assert self.call(service, "GET", path).status_code == 404

    @pytest.mark.parametrize(
        ("body", "said"),
        [
            ({}, "give a plan as JSON in `plan`, or as TOML in `toml`"),
            ({"toml": "people = 100\npilot = '/etc/passwd'"}, "reads no files"),
            ({"toml": "people = 100\nfrom = 'sqlite:///other.db#x'"}, "reads no files"),
            ({"plan": {"arms": {"a": "30%"}, "people": 100}}, "arms"),
            ({"plan": {"arms": {"a": "30%", "b": "130%"}, "people": 100}}, "rate"),
            ({"toml": "people = 1", "seconds": 1e9}, "seconds"),
        ],
    )
    def test_what_is_no_plan_is_refused_with_a_sentence(self, service, body, said):
        answer = self.call(service, "POST", "/plans", **(body or {"seconds": 1}))
        assert answer.status_code == 422, answer.text
        assert said in answer.json()["error"]

    def test_who_only_assigns_plans_nothing(self, service):
        assert self.call(service, "GET", "/plans", role=ASSIGNER).status_code == 403
        assert self.call(service, "POST", "/plans", role=ASSIGNER, plan=plan().to_dict()).status_code == 403


def test_nothing_is_left_of_the_process_when_the_queue_closes(tmp_path):
    queue = PlanQueue(tmp_path)
    asked = queue.submit(plan(seed=4, people=20_000), seconds=60)
    wait_for(lambda: queue.get(asked["id"]), "working")
    pid = int((tmp_path / "pid").read_text())
    queue.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
