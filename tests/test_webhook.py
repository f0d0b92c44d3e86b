"""Messages about alerts, to a real receiver that is away and comes back: signed, in order, once each."""

from __future__ import annotations

import asyncio
import json
import subprocess
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from live_clock import MONDAY, TurnedClock
from patience import wait_until
from prometheus_client.parser import text_string_to_metric_families
from service_runner import running_service, serving_here

import equipoise as eq
from equipoise.service import Settings
from equipoise.service import webhook as webhook_module
from equipoise.service.api_keys import create_key
from equipoise.service.watching import SENDING, Lease
from equipoise.service.webhook import Outbox, Webhook

SECRET = "a secret of some length"  # noqa: S105


class Receiver:
    """A server that keeps what it is sent; it can go away, answer with an error, and hang."""

    def __init__(self):
        self.messages = []
        self.status = 204
        self.hanging = threading.Event()
        self.hanging.set()
        self.port = 0
        self.begin()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/hooks/4711"

    def begin(self):
        keep = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                keep.hanging.wait(30)
                body = self.rfile.read(int(self.headers["content-length"]))
                if keep.status < 300:
                    keep.messages.append(({name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(keep.status)
                if keep.status in (301, 307):
                    self.send_header("location", f"http://127.0.0.1:{keep.port}/elsewhere")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_port
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def go_away(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    @property
    def kinds(self):
        return [json.loads(body)["type"] for _, body in self.messages]


@pytest.fixture
def receiver():
    found = Receiver()
    yield found
    found.hanging.set()
    found.go_away()


@pytest.fixture
def clock():
    return TurnedClock()


def overdue(store, clock, name="messages", **settings):
    """Return an experiment whose deadline has passed, with its alert open."""
    experiment = eq.Experiment.create(
        store,
        name,
        arms=["plain", "prize"],
        policy=eq.Uniform(),
        seed=1,
        stopping=eq.Deadline(at=clock.now + timedelta(hours=1)),
        **settings,
    )
    clock.turn(hours=2)
    experiment.health()
    return experiment


def send(outbox):
    return asyncio.run(outbox.send_due())


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.db'}"
    return request.getfixturevalue("postgresql_url")


def test_each_opening_and_closing_is_sent_once_over_restarts(url, receiver, clock):
    results = Counter()
    webhook = Webhook(url=receiver.url, secret=SECRET)
    with eq.open_store(url, clock=clock) as store:
        overdue(store, clock)
        outbox = Outbox(store, webhook, lambda result: results.update([result]))
        assert [send(outbox), send(outbox)] == [1, 0]
    with eq.open_store(url, clock=clock) as store:
        outbox = Outbox(store, webhook, lambda result: results.update([result]))
        assert send(outbox) == 0
        experiment = eq.Experiment.open(store, "messages")
        experiment.stop()
        clock.turn(hours=1)
        experiment.health()
        # The experiment is stopped: the deadline no longer matters, and it could be finished.
        assert [send(outbox), send(outbox)] == [2, 0]
    found = [json.loads(body) for _, body in receiver.messages]
    assert [(one["type"], one["alert"]["check"]) for one in found] == [
        ("alert.opened", "deadline passed"),
        ("alert.closed", "deadline passed"),
        ("alert.opened", "windows over"),
    ]
    assert len({one["id"] for one in found}) == 3
    assert found[0]["alert"]["id"] == found[1]["alert"]["id"]
    assert found[0]["text"].startswith("Note in 'messages', deadline passed: The deadline 2027-03-01T09:00:00+00:00")
    assert found[1]["text"].startswith("Over in 'messages', deadline passed: It was: The deadline")
    assert found[1]["alert"]["closed_at"] == (MONDAY + timedelta(hours=3)).isoformat()
    assert results == {"sent": 3}


def test_a_receiver_that_is_away_for_an_hour_is_told_when_it_is_back(receiver, clock):
    results = Counter()
    with eq.open_store("memory:", clock=clock) as store:
        experiment = overdue(store, clock)
        receiver.go_away()
        began = clock.now
        outbox = Outbox(store, Webhook(url=receiver.url), lambda result: results.update([result]))
        tried = []
        while clock.now < began + timedelta(hours=1):
            before = results["failed"]
            assert send(outbox) == 0
            if results["failed"] > before:
                tried.append((clock.now - began).total_seconds())
            clock.turn(seconds=5)
        assert tried == [0, 10, 30, 70, 150, 310, 630, 1270, 2550]
        experiment.stop()  # the alert closes while nobody hears
        experiment.health()
        receiver.begin()
        clock.turn(hours=1)
        assert send(outbox) == 3
        assert send(Outbox(store, Webhook(url=receiver.url))) == 0  # another process
    assert receiver.kinds == ["alert.opened", "alert.closed", "alert.opened"]
    assert results == {"failed": 9, "sent": 3}


def test_after_a_day_a_message_is_given_up(receiver, clock, caplog):
    results = Counter()
    with eq.open_store("memory:", clock=clock) as store:
        experiment = overdue(store, clock)
        receiver.status = 500
        outbox = Outbox(store, Webhook(url=receiver.url), lambda result: results.update([result]))
        for _ in range(50):
            send(outbox)
            clock.turn(hours=1)
        assert results["failed"] == 24
        assert results["gave up"] == 1
        receiver.status = 200
        experiment.stop()
        experiment.health()
        clock.turn(hours=1)
        # That it is over is not told: nobody was told that it began.
        assert send(outbox) == 1
        assert json.loads(receiver.messages[0][1])["alert"]["check"] == "windows over"
    assert "hooks" not in caplog.text and "4711" not in caplog.text  # the address may be a secret


@pytest.mark.parametrize("status", [301, 307, 404, 410, 500])
def test_only_success_counts_and_no_redirect_is_followed(receiver, clock, status):
    with eq.open_store("memory:", clock=clock) as store:
        overdue(store, clock)
        receiver.status = status
        outbox = Outbox(store, Webhook(url=receiver.url))
        assert send(outbox) == 0
        receiver.status = 200
        assert send(outbox) == 0  # not at once
        clock.turn(seconds=10)
        assert send(outbox) == 1


def test_a_receiver_that_hangs_is_left(receiver, clock, monkeypatch):
    monkeypatch.setattr(webhook_module, "_SECONDS", 0.2)
    with eq.open_store("memory:", clock=clock) as store:
        overdue(store, clock)
        receiver.hanging.clear()
        assert send(Outbox(store, Webhook(url=receiver.url))) == 0


def test_openssl_verifies_the_signature(receiver, clock, tmp_path):
    with eq.open_store("memory:", clock=clock) as store:
        overdue(store, clock, name="école ☃")
        assert send(Outbox(store, Webhook(url=receiver.url, secret=SECRET))) == 1
    headers, body = receiver.messages[0]
    t, v1 = (part.partition("=")[2] for part in headers["x-equipoise-signature"].split(","))
    assert abs(int(t) - datetime.now().timestamp()) < 60
    signed = tmp_path / "signed"
    signed.write_bytes(f"{t}.".encode() + body)
    command = ["openssl", "dgst", "-sha256", "-hmac", SECRET, "-r", str(signed)]
    digest = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[0]
    assert digest == v1
    assert headers["content-type"] == "application/json"
    assert "école ☃" in body.decode()


def test_without_a_secret_messages_are_not_signed(receiver, clock):
    with eq.open_store("memory:", clock=clock) as store:
        overdue(store, clock)
        assert send(Outbox(store, Webhook(url=receiver.url))) == 1
    assert "x-equipoise-signature" not in receiver.messages[0][0]


@pytest.mark.parametrize("units", [False, True])
def test_no_unit_is_named_unless_asked_for(receiver, clock, units):
    name = "<!channel> @all \u202e"
    with eq.open_store("memory:", clock=clock) as store:
        experiment = eq.Experiment.create(store, name, arms=["<!here>", "b"], policy=eq.Uniform(), seed=1)
        for hour in range(48):
            asked = experiment.ask_many([f"ada-{hour}-{k}" for k in range(5)])
            experiment.tell_many([(one.unit, float(hour % 2)) for one in asked])
            clock.turn(hours=1)
        far = experiment.ask("ada-typed-wrong")
        experiment.tell(far.unit, 900.0)
        clock.turn(hours=1)
        assert [one.check for one in experiment.health().alerts] == ["unusual reward"]
        assert send(Outbox(store, Webhook(url=receiver.url, units=units))) == 1
    [(_, body)] = receiver.messages
    data = json.loads(body)
    assert ("ada" in body.decode()) == units
    assert data.get("unit") == ("ada-typed-wrong" if units else None)
    assert not set("<>\u202e") & set(data["text"])
    assert "@all" not in data["text"]
    assert data["alert"]["experiment"] == name


def test_a_muted_alert_is_told_when_it_is_no_longer_muted(receiver, clock):
    with eq.open_store("memory:", clock=clock) as store:
        experiment = overdue(store, clock)
        outbox = Outbox(store, Webhook(url=receiver.url))
        experiment.mute("deadline passed", until=clock.now + timedelta(days=3), reason="one week more")
        assert send(outbox) == 0
        clock.turn(days=2)
        assert send(outbox) == 0
        clock.turn(days=1)
        assert send(outbox) == 1
        other = overdue(store, clock, name="other")
        other.mute("deadline passed", until=clock.now + timedelta(days=3), reason="known")
        other.stop()
        other.health()
        assert send(outbox) == 1
        clock.turn(days=4)
        assert send(outbox) == 0
    told = [json.loads(body)["alert"] for _, body in receiver.messages]
    assert [(one["experiment"], one["check"]) for one in told] == [
        ("messages", "deadline passed"),
        ("other", "windows over"),
    ]


def test_a_lease_of_the_store_has_one_holder(url, clock, monkeypatch):
    with eq.open_store(url, clock=clock) as store:
        ours, theirs = Lease(store, SENDING, 150), Lease(store, SENDING, 150)
        assert ours.take() and ours.take()
        monkeypatch.setattr("equipoise.service.watching.holder", lambda: "another")
        assert not theirs.take()
        clock.turn(seconds=200)
        assert theirs.take()
        monkeypatch.undo()
        assert not ours.take()
        monkeypatch.setattr("equipoise.service.watching.holder", lambda: "another")
        theirs.give_back()
        monkeypatch.undo()
        assert ours.take()


@pytest.mark.endurance
def test_of_two_servers_one_sends(url, receiver):
    """Two servers of one store look every quarter of a second; the one that has the lease is killed in between."""
    clock = TurnedClock()
    settings = Settings(open=True, webhook=Webhook(url=receiver.url, secret=SECRET), watch_seconds=0.25)
    with eq.open_store(url, clock=clock) as store:
        for number in range(5):
            eq.Experiment.create(
                store,
                f"messages {number}",
                arms=["a", "b"],
                policy=eq.Uniform(),
                stopping=eq.Deadline(at=MONDAY - timedelta(days=3000)),
            )
    with running_service(url, settings=settings) as one, running_service(url, settings=settings) as two:
        wait_until(lambda: len(receiver.messages) >= 5)
        web = httpx.Client(base_url=two.url)
        status = web.get("/experiments/messages%200/status").json()
        assert [alert["check"] for alert in status["alerts"]] == ["deadline passed"]
        one.kill()
        web.post("/experiments/messages%200/stop", json={})
        wait_until(lambda: len(receiver.messages) >= 7)
        web.close()
    kinds = Counter((json.loads(body)["type"], json.loads(body)["alert"]["check"]) for _, body in receiver.messages)
    assert kinds == {
        ("alert.opened", "deadline passed"): 5,
        ("alert.closed", "deadline passed"): 1,
        ("alert.opened", "windows over"): 1,
    }


def test_refused_calls_ring_over_http_and_are_counted(receiver):
    store = eq.open_store("memory:")
    key = create_key(store, role="admin")[1]
    eq.Experiment.create(store, "fractions", arms=["a", "b"], policy=eq.Uniform(), seed=1)
    settings = Settings(webhook=Webhook(url=receiver.url), watch_seconds=0.2)
    with serving_here(store, settings) as here, eq.Client(here.url, key) as client:
        experiment = client.open("fractions")
        experiment.ask_many([f"known {k}" for k in range(3)])
        for number in range(30):
            with pytest.raises(eq.UnknownUnit):
                experiment.tell(f"nobody {number}", 1.0)
        with pytest.raises(eq.UnknownUnit):
            experiment.correct("nobody", 1.0, "misread")
        wait_until(lambda: bool(receiver.messages))
        message = json.loads(receiver.messages[0][1])
        assert message["text"].startswith("Problem in 'fractions', refused calls: The service refused ")
        wait_until(lambda: [(one.error, one.recent) for one in experiment.health().refused] == [("UnknownUnit", 31)])
        [alert] = experiment.health().alerts
        assert alert in eq.Experiment.open(store, "fractions").status().alerts
        assert message["id"] == f"{alert.id}-opened"
        text = httpx.get(f"{here.url}/metrics", headers={"authorization": f"Bearer {key}"}).text
        found = {
            (sample.name, *sorted(sample.labels.values())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name.startswith(("equipoise_alert", "equipoise_refused", "equipoise_webhook", "equipoise_rollup"))
        }
        assert found["equipoise_refused_total", "UnknownUnit", "fractions"] == 31
        assert found["equipoise_alerts", "fractions", "problem", "refused calls"] == 1
        assert 0 <= found["equipoise_alert_age_seconds", "fractions", "problem", "refused calls"] < 600
        assert found["equipoise_webhook_total", "sent"] == 1
        assert found["equipoise_webhook_total", "failed"] == 0
        assert found["equipoise_rollup_lag_events", "fractions"] >= 0


def test_the_command_tests_a_receiver_and_serve_takes_it_from_everywhere_but_http(run, receiver, tmp_path, monkeypatch):
    file = tmp_path / "webhook.toml"
    file.write_text(f'url = "{receiver.url}"\nsecret = "{SECRET}"\n')
    result = run("webhook", "test", "--webhook-file", file)
    assert result.code == 0
    assert result.out == f"http://127.0.0.1:{receiver.port}/... accepted the message (signed)\n"
    monkeypatch.setenv("EQUIPOISE_SERVE_WEBHOOK", receiver.url)
    assert run.data("webhook", "test")["signed"] is False
    assert [json.loads(body)["type"] for _, body in receiver.messages] == ["test", "test"]
    receiver.status = 403
    result = run("webhook", "test")
    assert (result.code, result.err) == (
        1,
        f"error: http://127.0.0.1:{receiver.port}/... did not accept the message: it answered 403\n",
    )
    monkeypatch.delenv("EQUIPOISE_SERVE_WEBHOOK")
    for given, words in (
        ((), "the address of the receiver is missing"),
        (("--webhook", "chat.example"), "--webhook must be an address that begins with http:// or https://"),
        (("--webhook", "http://a\nb"), "--webhook must be an address that begins with http:// or https://"),
        (("--webhook", receiver.url, "--webhook-secret", "short"), "--webhook-secret must have at least 16 characters"),
        (("--webhook-secret", SECRET), "--webhook-secret needs the address of the receiver"),
        (("--webhook-file", tmp_path / "none.toml"), "--webhook-file cannot be read"),
        (("--webhook", receiver.url, "--webhook-file", file), "--webhook-file must hold everything"),
    ):
        result = run("webhook", "test", *given)
        assert result.code == 2, given
        assert words in result.err, given
    file.write_text('address = "x"')
    assert 'must have url = "..."' in run("webhook", "test", "--webhook-file", file).err


def test_settings_with_a_webhook_pass_to_processes_and_do_not_show_it():
    settings = Settings(webhook=Webhook(url="https://chat.example/hooks/secret", secret=SECRET, units=True))
    assert Settings.from_json(settings.to_json()) == settings
    assert "hooks" not in repr(settings) and SECRET not in repr(settings)


def test_health_on_the_command_line_is_for_people_and_for_cron(run, tmp_path):
    clock = TurnedClock(datetime.now(UTC) - timedelta(days=1))
    with eq.open_store(f"sqlite:///{tmp_path / 'equipoise.db'}", clock=clock) as store:
        overdue(store, clock)
        eq.Experiment.create(store, "quiet", arms=["a", "b"], policy=eq.Uniform())
    result = run("health")
    assert result.code == 0  # a note is no problem
    assert "note (deadline passed, since 20" in result.out
    assert "quiet: ok. Nothing is known to be wrong." in result.out
    data = run.data("health", "messages")
    assert [alert["check"] for alert in data["alerts"]] == ["deadline passed"]
    assert {"state", "sentence", "value", "expected", "advice"} <= set(data["checks"][0])
    assert run("mute", "messages", "deadline-passed", "--until", "2d", "--reason", "known").code == 0
    assert run.data("health", "messages")["alerts"][0]["mute_reason"] == "known"
    assert "muted alerts about 'deadline passed'" in run("events", "messages", "--changes").out
    assert run("unmute", "messages", "deadline passed").code == 0
    assert run("mute", "messages", "nonsense", "--until", "2d", "--reason", "x").code == 2
    assert "--until needs a unit" in run("mute", "messages", "enrolment", "--until", "2", "--reason", "x").err
    with eq.open_store(f"sqlite:///{tmp_path / 'equipoise.db'}") as store:
        number = eq.Experiment.open(store, "quiet").number
        hour = int(datetime.now().timestamp()) // 3600
        insert = "INSERT INTO refusals (experiment, hour, error, count) VALUES (?, ?, ?, ?)"
        for error, count in (("", 100), ("UnknownUnit", 40)):
            store.change(number, lambda one, row=(error, count): one.execute(insert, number, hour, *row))
    result = run("health")
    assert result.code == 1
    assert "quiet: problem. 1 problem: The service refused 40 of 100 calls" in result.out
    assert run("health", "quiet", "--json").code == 1
    assert run("health", "messages").code == 0
