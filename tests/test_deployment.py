"""What is in `deploy/` and on the pages about it: consistent with the command and itself, and run where it can be."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import zipfile
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
import sqlalchemy as sa
import yaml
from patience import wait_until
from service_runner import Service, serving_here
from test_service_roles import TABLE
from tools import need
from typer.main import get_command

import equipoise as eq
from equipoise.cli.app import app
from equipoise.http_api import MOST_EVENTS
from equipoise.service import Settings, streaming
from equipoise.service import http_protocol as protocol
from equipoise.service import service as service_module
from equipoise.service.api_keys import create_key
from equipoise.service.error_responses import STATUS, Overloaded
from equipoise.service.openapi import REASONS
from equipoise.service.service import Service as Served
from equipoise.store.database import database_at

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
DOCKERFILE, COMPOSE, UNIT = DEPLOY / "Dockerfile", DEPLOY / "compose.yaml", DEPLOY / "equipoise.service"
NGINX, CADDYFILE = DEPLOY / "nginx.conf", DEPLOY / "Caddyfile"
SERVICE_PAGE, DEPLOYING_PAGE = ROOT / "docs/live/service.md", ROOT / "docs/live/deploying.md"
LIMITS = Settings()
PORT = "8000"


def directives():
    """Return the directives of the Dockerfile in order: name and the rest, continued lines joined."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line.strip()]


def directive(name):
    """Return the last of its kind, which is the one that counts."""
    return [rest for found, rest in directives() if found == name][-1]


def compose():
    return yaml.safe_load(COMPOSE.read_text())


def settings_of(text, name):
    """Return what a setting of a unit or of nginx is set to, wherever it is."""
    return re.findall(rf"^\s*{name}[ =]\s*(.*?);?$", text, flags=re.MULTILINE)


# Commands


def blocks(page, *languages):
    found = re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return [(language, code) for language, code in found if language in languages]


def written_commands():
    """Yield every line on which a reader, a container or systemd runs `equipoise`: where, and the arguments."""
    for page in (SERVICE_PAGE, DEPLOYING_PAGE):
        text = page.read_text(encoding="utf-8")
        for _, code in blocks(page, "bash", "sh"):
            for line in code.replace("\\\n", " ").splitlines():
                yield page.name, line
        prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        for inline in re.findall(r"`(equipoise [a-z]+ .*?|docker .*?)`", prose):
            yield page.name, inline
    for path in (COMPOSE, DOCKERFILE, UNIT):
        for line in re.findall(r"^# +(docker.*)$", path.read_text(), flags=re.MULTILINE):
            yield path.name, line
    yield UNIT.name, settings_of(UNIT.read_text(), "ExecStart")[0]
    entry = json.loads(directive("ENTRYPOINT"))
    yield DOCKERFILE.name, shlex.join(entry + json.loads(directive("CMD")))
    yield COMPOSE.name, shlex.join(entry + compose()["services"]["service"]["command"])


def arguments_of(line):
    """Return what `equipoise` is given on a line; None if it is not run there."""
    words = [word.strip("()") for word in shlex.split(line, comments=True)]
    words = words[: next((place for place, word in enumerate(words) if word == "|"), None)]
    if words[:2] == ["docker", "compose"] and "run" in words:
        return words[words.index("service") + 1 :]
    if words[:2] in (["docker", "build"], ["docker", "run"]):
        return None
    places = [place for place, word in enumerate(words) if word.rsplit("/", 1)[-1].split("$(")[-1] == "equipoise"]
    places = [place for place in places if words[place - 1] not in ("enable", "--now", "exec")]
    return words[places[-1] + 1 :] if places else None


COMMANDS = [(where, line, arguments) for where, line in written_commands() if (arguments := arguments_of(line))]


@pytest.mark.parametrize(
    ("where", "line", "arguments"), COMMANDS, ids=[f"{where}: {line}" for where, line, _ in COMMANDS]
)
def test_every_command_that_is_written_down_is_one_that_there_is(where, line, arguments):
    command = get_command(app)
    rest = list(arguments)
    while hasattr(command, "commands"):
        assert rest[0] in command.commands, f"{where}: {line}"
        command = command.commands[rest.pop(0)]
    # Raises on an option that there is not, or without an argument that there must be.
    command.make_context(command.name, rest)


def test_the_commands_were_found():
    assert {where for where, *_ in COMMANDS} == {
        "service.md",
        "deploying.md",
        "compose.yaml",
        "Dockerfile",
        "equipoise.service",
    }
    verbs = [arguments[0] for _, _, arguments in COMMANDS]
    assert {"serve", "keys", "upgrade", "verify"} <= set(verbs)
    assert verbs.count("serve") >= 5


def test_a_command_with_a_wrong_option_would_be_found_out():
    arguments = arguments_of("sudo -u equipoise /opt/equipoise/bin/equipoise serve --hots ::1")
    assert arguments == ["serve", "--hots", "::1"]
    with pytest.raises(Exception, match=r"[Nn]o such option: --hots"):
        get_command(app).commands["serve"].make_context("serve", arguments[1:])


# The Dockerfile


def test_the_image_is_built_from_what_there_is_and_from_nothing_else():
    ignored = [line for line in DOCKERFILE.with_suffix(".dockerignore").read_text().splitlines() if line[:1] != "#"]
    let_through = [line[1:] for line in ignored if line.startswith("!")]
    assert ignored[0] == "*"
    copied = [word for name, rest in directives() if name == "COPY" for word in rest.split()[:-1]]
    assert sorted(copied) == sorted(let_through)
    assert all((ROOT / name).exists() for name in copied)
    for name in (".git", "deploy/.env", "school.db"):
        assert not any(fnmatch.fnmatch(name, pattern) for pattern in let_through)


def test_the_extras_of_the_image_are_those_of_the_package():
    import tomllib

    there = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    used = re.findall(r"\[([a-z,]+)\]\"", DOCKERFILE.read_text())
    assert len(used) == 2  # what is built is what is installed
    assert used[0] == used[1]
    assert {"service", "postgres"} <= set(used[0].split(",")) <= set(there)


def test_the_image_runs_as_nobody_special_and_gets_signals():
    user = directive("USER")
    assert user.split(":")[0].isdigit()
    assert int(user.split(":")[0]) >= 1000
    assert directive("STOPSIGNAL") == "SIGTERM"
    for name in ("ENTRYPOINT", "CMD"):
        assert isinstance(json.loads(directive(name)), list)  # no shell that would keep the signal to itself
    assert set(json.loads(directive("VOLUME"))) == {"/data", "/cache"}
    environment = dict(pair.split("=", 1) for pair in directive("ENV").split())
    assert database_at(environment["EQUIPOISE_STORE"].replace("/data/", "/tmp/")).shown_url  # noqa: S108
    assert environment["EQUIPOISE_STORE"].startswith("sqlite:////data/")
    assert not re.search("password|secret|key", " ".join(environment), flags=re.IGNORECASE)


def test_the_health_check_of_the_image_tells_a_live_server_from_none(service):
    check = json.loads(directive("HEALTHCHECK").partition("CMD ")[2])
    assert check[0] == "python"

    def run(port):
        code = check[2].replace(f":{PORT}/", f":{port}/")
        assert code != check[2]
        return subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode

    assert run(service.port) == 0
    assert run(free_port()) != 0


@pytest.mark.endurance
def test_the_wheel_has_everything_that_the_source_has(tmp_path):
    """As the first stage builds it; a migration or a data file that is left out is missed only by users."""
    build = "-m pip wheel --quiet --disable-pip-version-check --no-deps --constraint constraints.txt"
    command = [sys.executable, *build.split(), "--build-constraint", "constraints.txt", "--wheel-dir", tmp_path, "."]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode and "No matching distribution found for hatchling" in done.stderr:
        if os.environ.get("EQUIPOISE_LEAVE_NOTHING_OUT"):
            pytest.fail(done.stderr)
        pytest.skip("what builds the wheel cannot be downloaded")
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("equipoise-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if not name.split("/")[0].endswith(".dist-info")}
        archive.extractall(tmp_path / "installed")
    source = {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src/equipoise").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert packed == source
    assert any(name.startswith("equipoise/store/migrations/revision_") for name in packed)
    # It makes a store, and an experiment in it, with nothing but what is packed.
    code = "import equipoise, sys; from equipoise.cli import main; print(equipoise.__file__, file=sys.stderr); main()"
    made = subprocess.run(
        [
            sys.executable,
            "-c",
            code,
            "create",
            "x",
            "--arms",
            "a,b",
            "--policy",
            "Uniform",
            "--store",
            "sqlite:///new.db",
        ],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "installed")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert str(tmp_path / "installed") in made.stderr
    assert made.stdout.startswith("x: 2 arms")


# compose.yaml


def test_all_that_the_compose_file_refers_to_is_there():
    file = compose()
    services = file["services"]
    for service in services.values():
        for name, how in service.get("depends_on", {}).items():
            assert how == {"condition": "service_healthy"}
            assert "healthcheck" in services[name]
        assert service["restart"] == "unless-stopped"
        if "build" in service:
            context = (DEPLOY / service["build"]["context"]).resolve()
            assert context == ROOT
            assert (context / service["build"]["dockerfile"]) == DOCKERFILE
        else:
            assert re.fullmatch(r"[a-z]+:\d+", service["image"])  # a version, not the latest
    used = {volume.split(":")[0] for service in services.values() for volume in service.get("volumes", ())}
    assert used == set(file["volumes"])


def test_the_compose_file_has_no_secret_and_opens_no_port_to_the_world():
    services = compose()["services"]
    for name, variable in (("service", "PGPASSWORD"), ("database", "POSTGRES_PASSWORD")):
        assert re.fullmatch(r"\$\{POSTGRES_PASSWORD:\?.+\}", services[name]["environment"][variable])
    assert "ports" not in services["database"]
    assert services["service"]["ports"] == [f"127.0.0.1:{PORT}:{PORT}"]
    assert ".env" in (DEPLOY / ".gitignore").read_text().splitlines()
    address = sa.make_url(services["service"]["environment"]["EQUIPOISE_STORE"])
    assert database_at(str(address)).shown_url == str(address)
    database = services["database"]["environment"]
    assert (address.host, address.username, address.database, address.password) == (
        "database",
        database["POSTGRES_USER"],
        database["POSTGRES_DB"],
        None,
    )
    assert services["database"]["healthcheck"]["test"][1:] == [
        "pg_isready",
        "--username",
        database["POSTGRES_USER"],
        "--dbname",
        database["POSTGRES_DB"],
    ]


def test_what_the_container_writes_to_can_be_written():
    """Its file system is read-only: the store, what was compiled and temporary files need a place."""
    service = compose()["services"]["service"]
    assert service["read_only"] is True
    places = {volume.split(":")[1] for volume in service["volumes"]} | {one.split(":")[0] for one in service["tmpfs"]}
    assert places == {"/cache", "/tmp", "/data"}  # noqa: S108
    user = directive("USER").split(":")[0]
    assert f"/data:uid={user},gid={user}" in service["tmpfs"]


def test_everybody_waits_for_the_end_of_what_was_accepted():
    assert int(compose()["services"]["service"]["stop_grace_period"].rstrip("s")) > LIMITS.grace_seconds
    assert int(settings_of(UNIT.read_text(), "TimeoutStopSec")[0]) > LIMITS.grace_seconds
    (stop,) = re.findall(r"--stop-timeout (\d+)", DEPLOYING_PAGE.read_text())
    assert int(stop) > LIMITS.grace_seconds


def test_all_files_mean_the_same_port():
    assert directive("EXPOSE") == PORT
    assert f"--port {PORT} " in UNIT.read_text()
    for path in (NGINX, CADDYFILE):
        assert set(re.findall(r"127\.0\.0\.1:(\d+)", path.read_text())) == {PORT}
    for arguments in (json.loads(directive("CMD")), compose()["services"]["service"]["command"]):
        assert arguments[arguments.index("--port") + 1] == PORT


# The proxies and the unit


def test_the_limits_of_the_proxies_are_those_of_the_service():
    nginx, caddy = NGINX.read_text(), CADDYFILE.read_text()
    assert settings_of(nginx, "client_max_body_size") == [f"{LIMITS.body_bytes // 2**20}m"]
    assert settings_of(caddy, "max_size") == [f"{LIMITS.body_bytes // 2**20}MiB"]
    for text in (nginx, caddy):
        assert f"at most {LIMITS.body_bytes:,} bytes" in text
    seconds = f"{LIMITS.body_seconds:g}s"
    assert settings_of(nginx, "client_header_timeout") == settings_of(nginx, "client_body_timeout") == [seconds]
    # Longer than the service waits for its store, so that it is the service that says what is the matter.
    assert settings_of(nginx, "proxy_read_timeout") == ["30s", "10m"]
    assert settings_of(caddy, "response_header_timeout") == ["10m", "30s"]
    assert LIMITS.wait_seconds <= 15
    # Who closes first: the proxy, or it would now and then send a request into a connection that is being closed.
    for idle in (*settings_of(nginx, "keepalive_timeout"), *settings_of(caddy, "keepalive")):
        assert int(idle.rstrip("s")) < LIMITS.idle_seconds


def test_the_proxies_give_time_to_what_the_service_gives_time_to(monkeypatch):
    asked = []

    async def noted(*_):
        asked.append("long")
        raise Overloaded("it is only asked what is long")

    monkeypatch.setattr(Served, "long_work", noted)
    long = {"export"}  # a stream, which is long by itself
    with serving_here(eq.open_store("memory:"), Settings(open=True)) as here:
        for row in TABLE:
            asked.clear()
            path = row.route.format(name="x", unit="ada", arm="a", file="y", id="0" * 64) + row.rest
            httpx.request(row.method, here.url + path, json=row.body, timeout=60)
            if asked:
                long.add(row.route.rpartition("/")[2])
    for path, pattern in ((NGINX, r"location ~ /\((.*)\)\$ "), (CADDYFILE, r"@long path_regexp /\((.*)\)\$")):
        (named,) = re.findall(pattern, path.read_text())
        assert set(named.split("|")) == long, path.name


def test_the_unit_is_one_that_systemd_takes(tmp_path):
    need("systemd-analyze")
    unit = tmp_path / UNIT.name
    unit.write_text(
        UNIT.read_text().replace("/opt/equipoise/bin/equipoise", str(Path(sys.executable).with_name("equipoise")))
    )
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)  # noqa: S607
    assert (done.returncode, done.stderr) == (0, "")
    unit.write_text(unit.read_text().replace("ProtectHome=yes", "ProtectHose=yes"))
    wrong = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)  # noqa: S607
    assert "ProtectHose" in wrong.stderr


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    return f"sqlite:///{tmp_path_factory.mktemp('deployment')}/school.db"


@pytest.fixture(scope="module")
def key(url):
    """A key to a store with a small experiment, and one whose export takes a while."""
    with eq.open_store(url) as store:
        for name in ("4b/spring?", "large"):
            eq.Experiment.create(store, name, arms=["line", "pie"], policy=eq.Uniform(), seed=1)
        large = eq.Experiment.open(store, "large")
        for first in range(0, 20_000, 5_000):
            large.ask_many([f"pupil-{number}" for number in range(first, first + 5_000)])
        return create_key(store, role="admin", name="anna")[1]


@pytest.fixture
def service(url, key):
    started = Service(url, "--access-log", "--log-format", "json")
    try:
        httpx.get(f"{started.url}/readyz", timeout=60).raise_for_status()
        yield started
    finally:
        started.kill()
        if not started.process.stderr.closed:
            started.process.stderr.close()


@contextmanager
def program(*command, port):
    """Run a server until the end of the block, and wait for it to listen."""
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as running:
        try:
            until = time.monotonic() + 20
            while True:
                with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                    break
                assert running.poll() is None, running.stderr.read()
                assert time.monotonic() < until
                time.sleep(0.05)
            yield
        finally:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGTERM)


@contextmanager
def nginx(service_port, folder, *others):
    """Run nginx in front of a service, and of others if there are."""
    need("nginx")
    port, plain = free_port(), free_port()
    certificate = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=experiments.example.org"
    files = ["-keyout", folder / "privkey.pem", "-out", folder / "fullchain.pem"]
    subprocess.run([*certificate.split(), *files], capture_output=True, check=True)
    text = NGINX.read_text()
    for old, new in (
        ("# server 10.0.0.12:8000;", " ".join(f"server 127.0.0.1:{other};" for other in others)),
        ("/etc/ssl/experiments.example.org", str(folder)),
        ("/var/log/nginx", str(folder)),
        (f"127.0.0.1:{PORT}", f"127.0.0.1:{service_port}"),
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("listen 80", f"listen 127.0.0.1:{plain}"),
    ):
        assert old in text
        text = text.replace(old, new)
    text = re.sub(r"^\s*listen \[::\].*\n", "", text, flags=re.MULTILINE)  # there may be no IPv6 here
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    file = folder / "all.conf"
    # The user that a master run as root gives its workers must be able to write where the test does.
    user = "user root;" if os.geteuid() == 0 else ""
    main = f"{user}\npid {folder}/pid;\nerror_log {folder}/error.log;\ndaemon off;\nevents {{}}\n"
    file.write_text(f"{main}http {{\n{temporary}{text}\n}}\n")
    checked = subprocess.run(["nginx", "-t", "-q", "-c", file], capture_output=True, text=True, check=False)  # noqa: S607
    assert (checked.returncode, checked.stderr) == (0, "")
    with program("nginx", "-c", str(file), port=port):
        yield f"https://127.0.0.1:{port}", folder / "equipoise.log"


@contextmanager
def caddy(service_port, folder):
    need("caddy")
    checked = subprocess.run(
        ["caddy", "validate", "--config", CADDYFILE, "--adapter", "caddyfile"],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"XDG_DATA_HOME": str(folder)},
    )
    assert checked.returncode == 0, checked.stderr
    assert not re.search(r'"level":"(warn|error)"', checked.stderr), checked.stderr
    port = free_port()
    text = CADDYFILE.read_text()
    for old, new in (
        ("experiments.example.org", f"http://127.0.0.1:{port}"),
        (f"127.0.0.1:{PORT}", f"127.0.0.1:{service_port}"),
    ):
        assert old in text
        text = text.replace(old, new)
    file = folder / "Caddyfile"
    file.write_text("{\n\tadmin off\n\tauto_https off\n}\n" + text)
    with program("caddy", "run", "--config", str(file), "--adapter", "caddyfile", port=port):
        yield f"http://127.0.0.1:{port}", None


@pytest.mark.parametrize("proxy", [nginx, caddy])
def test_a_proxy_in_front_of_the_service_changes_nothing_but_the_address(proxy, service, key, tmp_path):
    headers, unit = {"authorization": f"Bearer {key}"}, f"ada/{proxy.__name__} and %"
    with proxy(service.port, tmp_path) as (address, log):
        # Not from where the service's own proxy is: who asked must be told from who passed it on.
        elsewhere = httpx.HTTPTransport(local_address="127.0.0.2", verify=False)
        with httpx.Client(base_url=address, headers=headers, transport=elsewhere, timeout=60) as client:
            # Names go through as they were sent.
            path = "/experiments/4b%2Fspring%3F/assignments"
            assigned = client.post(path, json={"unit": unit}, headers={"x-request-id": "lesson-7"})
            assert (assigned.status_code, assigned.json()["unit"]) == (201, unit)
            rewarded = client.put(f"{path}/{quote(unit, safe='')}/reward", json={"reward": 1.0})
            assert (rewarded.status_code, rewarded.json()["new"]) == (200, True)
            # The id of a request is the same everywhere; without one, the proxy makes one.
            assert assigned.headers["x-request-id"] == "lesson-7"
            made = rewarded.headers["x-request-id"]
            assert len(made) >= 32
            wait_until(lambda: any(made in line for line in service.lines))
            told = next(json.loads(line) for line in service.lines if "lesson-7" in line)
            assert (told["route"], told["client"]) == ("/experiments/{name}/assignments", "127.0.0.2")
            # An export is not held back: its first piece is there long before its last.
            with client.stream("GET", "/experiments/large/export?format=jsonl") as response:
                assert response.headers["transfer-encoding"] == "chunked"
                lines = sum(piece.count(b"\n") for piece in response.iter_bytes())
            assert lines == 20_000
            # What is too large is told in the service's own form, at the same size as by the service itself.
            fits, too_large = (b"[" + b" " * (LIMITS.body_bytes - 1 + more) for more in (0, 1))
            many = f"{path}/many"
            assert client.post(many, content=fits, headers={"content-type": "application/json"}).status_code == 422
            for content in (too_large, iter([too_large])):  # with its length told before, and without
                refused = client.post(many, content=content, headers={"content-type": "application/json"})
                assert refused.status_code == 413
                assert refused.json()["hint"] == "send several smaller requests"
                assert refused.headers["x-equipoise-error"] == "InvalidInput"
            assert client.get("/metrics").status_code == 403
            assert httpx.get(f"{address}/metrics", headers=headers, verify=False).status_code == 200  # noqa: S501
            # An export that is under way when the service is told to stop comes to its end.
            with client.stream("GET", "/experiments/large/export?format=jsonl") as response:
                pieces = response.iter_bytes()
                lines = next(pieces).count(b"\n")
                service.process.send_signal(signal.SIGTERM)
                lines += sum(piece.count(b"\n") for piece in pieces)
            assert lines == 20_000
            assert service.process.wait(60) == 0  # a second signal might come when nobody minds signals any more
            away = client.post(path, json={"unit": "too late"})
            assert away.status_code == 503
            assert (away.headers["retry-after"], away.headers["x-equipoise-error"]) == ("1", "StoreUnavailable")
            assert set(away.json()) == {"error", "hint"}
        if log is not None:
            text = log.read_text()
            assert "lesson-7" in text
            assert unit not in text and quote(unit, safe="") not in text  # no units in the log
            assert "spring" not in text


@contextmanager
def silent_server(taken):
    """Run a server that notes the requests it takes, and hangs up without an answer; its port is given."""

    def take():
        with suppress(OSError):
            while True:
                connection = listening.accept()[0]
                with connection:
                    taken.append(connection.recv(65_536).partition(b" HTTP/1")[0].decode())

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=take)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize(
    ("path", "n_sent"), [("/experiments", 1), ("/experiments/x/assignments", 2), ("/experiments/x/arms", 2)]
)
def test_nginx_tries_another_machine_unless_an_experiment_is_made(path, n_sent, tmp_path):
    """A client knows of what it repeated itself that an experiment which is there already may be its own."""
    taken = []
    with silent_server(taken) as first, silent_server(taken) as second, nginx(first, tmp_path, second) as (address, _):
        answer = httpx.post(address + path, json={}, verify=False, timeout=60)  # noqa: S501
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert taken == [f"POST {path}"] * n_sent


def below_a_prefix(proxy):
    """The configuration of a proxy, changed as the page says for a service at /equipoise/."""
    if proxy is caddy:
        head, site, errors = re.split(r"(?<=\.org {\n)|(?=\thandle_errors )", CADDYFILE.read_text())
        indented = re.sub(r"^(?=.)", "\t", site.rstrip(), flags=re.MULTILINE)
        return f"{head}\thandle_path /equipoise/* {{\n{indented}\n\t}}\n\n{errors}"
    [(_, text)] = blocks(DEPLOYING_PAGE, "nginx")
    text += NGINX.read_text()
    for old, new in (
        ("location / ", "location /equipoise/ "),
        ("location = /experiments", "location = /equipoise/experiments"),
        ("location = /metrics", "location = /equipoise/metrics"),
        ("proxy_pass http://equipoise;", "proxy_pass http://equipoise$below;"),
    ):
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("proxy", [nginx, caddy])
def test_the_service_may_stand_below_a_prefix(proxy, service, key, tmp_path, monkeypatch):
    file = tmp_path / "below"
    file.write_text(below_a_prefix(proxy))
    monkeypatch.setitem(globals(), "NGINX" if proxy is nginx else "CADDYFILE", file)
    headers, unit = {"authorization": f"Bearer {key}"}, f"below/{proxy.__name__} and %"
    with proxy(service.port, tmp_path) as (address, _):
        elsewhere = httpx.HTTPTransport(local_address="127.0.0.2", verify=False)
        below = f"{address}/equipoise"
        with httpx.Client(base_url=below, headers=headers, transport=elsewhere, timeout=60) as client:
            path = "/experiments/4b%2Fspring%3F/assignments"
            assert client.post(path, json={"unit": unit}).json()["unit"] == unit
            assert client.get(f"{path}/{quote(unit, safe='')}").status_code == 200
            events = client.get("/experiments/4b%2Fspring%3F/events", params={"limit": 1}).json()["events"]
            assert len(events) == 1
            assert client.get("/experiments/large/export", params={"format": "jsonl"}).text.count("\n") == 20_000
            assert client.get("/docs").status_code == client.get("/docs/swagger-ui.css").status_code == 200
            assert client.get("/metrics").status_code == 403


# The pages


def matches(printed, wanted):
    """Return whether a text is as the page says, where ... stands for anything."""
    pattern = ".*?".join(map(re.escape, wanted.strip().split("...")))
    return re.fullmatch(pattern, printed.strip(), flags=re.DOTALL)


def run_block(code, folder, port):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code.replace(f":{PORT}", f":{port}")],  # noqa: S607
        cwd=folder,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{code}\n{done.stderr}"
    return done.stdout.replace(f":{port}", f":{PORT}")


def followed_by(page):
    """Return the shell blocks of a page in order, each with the text that follows at once."""
    found = blocks(page, "bash", "text", "sh")
    return [
        (code, following[1] if following[0] == "text" else None)
        for (language, code), following in zip(found, [*found[1:], ("", "")], strict=True)
        if language == "bash"
    ]


def test_what_the_page_on_the_service_says_works(tmp_path, monkeypatch):
    need("curl")
    (start, said), *rest = followed_by(SERVICE_PAGE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    assert start == "equipoise serve --new --store sqlite:///school.db\n"
    service = Service(start.split()[-1])
    try:
        httpx.get(f"{service.url}/readyz", timeout=60)
        printed = []
        for code, wanted in rest:
            printed.append(run_block(code, tmp_path, service.port))
            assert wanted is None or matches(printed[-1], wanted), printed[-1]
        assert "".join(service.lines).replace(f":{service.port}", f":{PORT}").startswith(said)
    finally:
        service.kill()
        service.process.stderr.close()
    made, limited, revoked = printed[:3]
    assert (made.count("eq_"), limited.count("eq_")) == (3, 2)
    listed = made.splitlines()
    for words in (
        ("anna", "admin", "all", "valid"),
        ("web site", "assigner", "fractions", "valid"),
        ("prometheus", "reader"),
    ):
        assert any(all(word in line for word in words) for line in listed)
    assert re.fullmatch(r"key \w+ \(web site\) is revoked\n", revoked)


def test_what_the_page_on_deploying_says_works(tmp_path):
    need("sqlite3")
    with eq.open_store(f"sqlite:///{tmp_path}/school.db") as store:
        eq.Experiment.create(store, "fractions", arms=["line", "pie"], policy=eq.Uniform(), seed=1).ask_many(["a", "b"])
    found = followed_by(DEPLOYING_PAGE)
    assert len(found) == 2
    for code, wanted in found:
        printed = run_block(code, tmp_path, PORT)
        assert matches(printed, wanted), printed


THERE_IF_SOMETHING_IS_WRONG = {"equipoise_alerts", "equipoise_alert_age_seconds", "equipoise_refused_total"}


def test_metrics_on_the_pages_are_those_of_the_service(service, key):
    text = httpx.get(f"{service.url}/metrics", headers={"authorization": f"Bearer {key}"}, timeout=60).text
    there = set(re.findall(r"^# TYPE (\w+)", text, flags=re.MULTILINE))
    page = SERVICE_PAGE.read_text()
    assert set(re.findall(r"^\| `(equipoise_\w+)`", page, flags=re.MULTILINE)) == there
    named = set(re.findall(r"equipoise_\w+", DEPLOYING_PAGE.read_text()))
    assert {name.removesuffix("_bucket") for name in named} <= there
    for name, labelled in re.findall(r"^\| `(equipoise_\w+)` \|(.*?)\|", page, flags=re.MULTILINE):
        labels = labelled.replace(",", "").split()
        samples = re.findall(rf"^{name}(?:_count)?(?:\{{(.*?)\}})? ", text, flags=re.MULTILINE)
        assert samples or name in THERE_IF_SOMETHING_IS_WRONG
        assert all(re.findall(r'(\w+)="', sample) == labels for sample in samples)


def test_limits_on_the_page_are_those_of_the_service():
    rows = re.findall(
        r"^\| (.+?) \| ([\d,]+)(?: bytes| s)? \| (?:`(--[\w-]+)`)? ?\|$", SERVICE_PAGE.read_text(), flags=re.MULTILINE
    )
    found = {option or what: int(number.replace(",", "")) for what, number, option in rows}
    assert found == {
        "--most-bytes": LIMITS.body_bytes,
        "--most-units": LIMITS.units_per_request,
        "--most-requests": LIMITS.requests_in_flight,
        "--most-bytes-at-once": LIMITS.bytes_in_flight,
        "--wait": LIMITS.wait_seconds,
        "time a client takes to send a request": LIMITS.body_seconds,
        "time a connection stays open without a request": LIMITS.idle_seconds,
        "head of a request": protocol._MOST_HEAD_BYTES,
        "events in one answer": MOST_EVENTS,
        "exports being written or read, per process": streaming.MOST_EXPORTS,
        "requests with a body over 16,384 bytes at work, per process": service_module._MOST_LARGE_REQUESTS,
    }
    defaults = {option: one.default for one in get_command(app).commands["serve"].params for option in one.opts}
    assert all(defaults[option] == value for option, value in found.items() if option.startswith("--"))
    assert f"for up to {LIMITS.grace_seconds} seconds" in SERVICE_PAGE.read_text()


def test_every_status_of_an_error_is_on_the_page():
    rows = re.findall(r"^\| ((?:\d{3}(?:, )?)+) \|", SERVICE_PAGE.read_text(), flags=re.MULTILINE)
    assert {int(status) for row in rows for status in row.split(", ")} == {*STATUS.values(), *REASONS, 405, 500}
