"""The demo: the same seed runs the same experiment, the verdict is right, and Ctrl-C is answered politely."""

from __future__ import annotations

import dataclasses
import os
import re
import select
import signal
import subprocess
import sys
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from console_visitor import Visitor
from patience import HANGS

import equipoise as eq
from equipoise.charts import style as drawing
from equipoise.demo import show as running
from equipoise.demo.scenario import MISSING, START, Trial, world_of
from equipoise.demo.show import snapshot, verdict_lines
from equipoise.paper.real_experiments import effort_experiment
from equipoise.planner.live_play import Clock
from equipoise.planner.population import Population
from equipoise.policies.pooled_balance import recommended

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(eq.__file__).parents[1]), "COLUMNS": "100"}
COMMAND = [sys.executable, "-m", "equipoise.cli", "demo"]
REAL = effort_experiment()


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Compile before any test looks at stderr, where compiling is announced."""
    running._warm_up()


def play(n_people: int, *, seed: int = 1, reward_weight: float = 0.9) -> Trial:
    clock = Clock(START)
    create = partial(eq.Experiment.create, eq.open_store("memory:", clock=clock))
    trial = Trial(create, clock, REAL, n_people, reward_weight=reward_weight, seed=seed)
    for _ in trial.hours():
        trial.take_note(trial.experiment.status())
    return trial


@cache
def played() -> Trial:
    """The trial of 2,000 people that several tests look at."""
    return play(2000, seed=3)


def people_of(n_people: int, *, seed: int) -> Population:
    return Population(world_of(REAL, n_people), seed=seed)


def decisions(trial: Trial) -> list[tuple[str | None, str | None, float | None]]:
    return [(event.unit, event.arm, event.reward) for event in trial.experiment.events(after=1)]


def test_people_do_what_the_published_figures_say() -> None:
    people = people_of(4000, seed=3)
    for arm in (0, 10, 17):
        presses = np.array([people.reward(person, arm) for person in range(4000)])
        error = REAL.arms.std[arm] / np.sqrt(4000)
        assert presses.mean() == pytest.approx(REAL.arms.mean[arm], abs=4 * error)
        assert presses.std() == pytest.approx(REAL.arms.std[arm], rel=0.1)
        assert presses.min() >= 0
    assert (presses == np.rint(presses)).all()
    missing = np.mean([people.told_at(person, 0) is None for person in range(4000)])
    assert missing == pytest.approx(MISSING, abs=4 * np.sqrt(MISSING * (1 - MISSING) / 4000))
    assert people.reward(7, 2) == people_of(4000, seed=3).reward(7, 2) != people.reward(7, 3)


def test_the_same_seed_runs_the_same_experiment_and_another_seed_another() -> None:
    first, again, other = play(300), play(300), play(300, seed=2)
    assert decisions(first) == decisions(again)
    assert decisions(first) != decisions(other)


def test_everyone_is_assigned_and_whoever_answers_is_counted_however_late() -> None:
    trial = played()
    status, people = trial.experiment.status(), people_of(2000, seed=3)
    answered = sum(people.told_at(person, 0) is not None for person in range(2000))
    assert (status.state, status.n_assigned, status.n_pending) == ("stopped", 2000, 0)
    assert (status.n_rewarded, status.n_dropped) == (answered, 2000 - answered)
    kinds = [event.kind for event in trial.experiment.events()]
    assert kinds.count("expired") > status.n_dropped, "some answer only after they were given up"
    assert trial.experiment.verify().n_decisions == 2000


def test_the_verdict_is_computed_from_the_assignments() -> None:
    trial = played()
    status = trial.experiment.status()
    lines = [line.text for line in verdict_lines(REAL, status, trial.experiment.verify())]
    assigned = np.array([arm.assigned for arm in status.arms])
    each = (assigned * REAL.arms.mean).sum() / 2000 - REAL.arms.mean.mean()
    assert each > 0
    percent = 100 * each / REAL.arms.mean.mean()
    assert lines[0] == f"participants  {each:.0f} button presses more each than with equal shares (+{percent:.1f}%)"
    assert lines[1].strip() == f"{2000 * each:,.0f} more in all"
    pulls = np.array([arm.rewarded for arm in status.arms])
    errors, equal = REAL.arms.std / np.sqrt(pulls), REAL.arms.std / np.sqrt(pulls.sum() / 18)
    assert f"errors {errors.mean() / equal.mean():.2f} times" in lines[2]
    widths = [arm.half_width for arm in status.arms if arm.half_width is not None]
    assert lines[3].strip() == f"every arm is known to within {min(widths):.0f} to {max(widths):.0f} button presses"
    held = sum(arm.low <= mean <= arm.high for arm, mean in zip(status.arms, REAL.arms.mean, strict=True))  # type: ignore[operator]
    assert lines[4].strip() == f"{held} of 18 intervals hold the true mean"
    assert lines[5].startswith("verify        ")
    assert max(map(len, lines)) <= 80


def test_its_rules_are_met_at_the_end() -> None:
    status = play(REAL.n_people, seed=1).experiment.status()
    assert [rule.met for rule in status.stopping] == [True, True]
    assert status.provisional == ()
    assert status.sentence.startswith("'80 cents to gain' is better than 'no extra pay'")


def test_more_weight_on_reward_gives_people_more() -> None:
    means = []
    for reward_weight in (0.0, 0.95):
        status = play(3000, reward_weight=reward_weight).experiment.status()
        means.append(sum(arm.assigned * mean for arm, mean in zip(status.arms, REAL.arms.mean, strict=True)) / 3000)
    assert means[1] > means[0] + 50


def test_the_record_holds_what_was_aimed_at_and_given() -> None:
    record = play(600).record()
    assert record.arms == REAL.names
    assert (np.diff(record.step) > 0).all()
    assert record.step[-1] == 600
    assert record.frequency.sum(axis=1) == pytest.approx(np.ones(len(record.step)))
    known = np.isfinite(record.target).all(axis=1)
    assert known[-1]
    assert not known[0], "there is no target before every arm has two rewards"
    assert record.optimum == pytest.approx(
        eq.optimal_allocation(REAL.arms.mean, REAL.arms.std, reward_weight=0.9), abs=1e-12
    )


def test_a_run_leaves_a_store_and_a_chart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    for steps, chart in ((2, tmp_path / "first.svg"), (400, None)):  # the second run starts with an empty store
        assert running.run(steps=steps, seed=7, reward_weight=0.8, out=chart) == 0
        out, err = capsys.readouterr()
    assert out.startswith(f"effort: stopped, {recommended(0.8)!r}\n")
    assert re.search(r"^total +400 ", out, re.MULTILINE)
    assert "verify " in out.splitlines()[-1]
    assert err.splitlines()[-4:] == [
        "chart written to demo-output/demo.html",
        "look around: equipoise events effort --store sqlite:///demo-output/demo.db",
        "or in a browser: equipoise serve --open --store sqlite:///demo-output/demo.db",
        "and then http://127.0.0.1:8000/console/e/effort, where no key is asked for",
    ]
    days = [line.split(":")[0] for line in err.splitlines() if line.startswith("day ")]
    assert days == ["day  1", "day  2", "day  4", "day  7", "day 10", "day 14"]
    assert "given so far" in Path("demo-output/demo.html").read_text()
    kept = eq.Experiment.open("sqlite:///demo-output/demo.db", "effort")
    assert kept.verify().n_decisions == 400
    assert {event.who for event in kept.events(after=1) if event.kind == "assigned"} == {"demo"}


@pytest.mark.parametrize("steps", [1, 3])
def test_a_very_short_run_says_what_is_not_known(
    steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert running.run(steps=steps, seed=1, reward_weight=0.9, out=tmp_path / "x.svg") == 0
    out, err = capsys.readouterr()
    assert re.search(r"^accuracy +1[5-8] of 18 arms have no reward$", out, re.MULTILINE)
    assert re.search(r"^ +so few people tell little of what it does: more take part with --steps$", out, re.MULTILINE)
    assert f"with {steps} decision{'s' if steps > 1 else ''} replayed: all as recorded" in out
    assert f"\n{steps} simulated {'people' if steps > 1 else 'person'} in 14 days, as in DellaVigna" in err
    days = [line for line in err.splitlines() if line.startswith("day ")]
    assert days and not any("most to" in line for line in days if ": 0 people" in line)


def test_a_short_run_names_an_arm_that_has_most_only_if_there_is_one() -> None:
    status = play(20).experiment.status()
    counts = sorted((arm.assigned for arm in status.arms), reverse=True)
    assert counts[0] == counts[1], "two arms share the first place"
    assert snapshot(14, status).endswith(f"; average {status.average_reward:,.0f}")
    alone = played().experiment.status()
    largest = max(alone.arms, key=lambda arm: arm.assigned)
    assert snapshot(14, alone).endswith(f"; most to {largest.arm!r}")


def test_the_verdict_speaks_of_one_arm_as_of_one() -> None:
    trial = played()
    status, verified = trial.experiment.status(), trial.experiment.verify()
    known, *others = status.arms
    unknown = [dataclasses.replace(arm, low=None, high=None, half_width=None) for arm in others]
    lines = [line.text for line in verdict_lines(REAL, dataclasses.replace(status, arms=(known, *unknown)), verified)]
    assert lines[3].strip() == f"1 of 18 arms is known to within {known.half_width:.0f} button presses"
    assert lines[4].strip() == "1 of 1 interval holds the true mean"
    equal = dataclasses.replace(status, arms=tuple(dataclasses.replace(arm, assigned=1) for arm in status.arms))
    lines = [line.text for line in verdict_lines(REAL, dataclasses.replace(equal, n_assigned=18), verified)]
    assert lines[0] == "participants  as many button presses as with equal shares"
    assert lines[1].startswith("accuracy ")


def test_without_the_charts_extra_the_demo_runs_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(drawing, "find_spec", lambda name: None)
    assert running.run(steps=20, seed=1, reward_weight=0.9, out=None) == 0
    out, err = capsys.readouterr()
    assert "all as recorded" in out
    assert err.startswith("no chart: charts need the package altair")
    assert "hint: pip install 'equipoise[charts]'" in err
    with pytest.raises(eq.MissingExtra):
        running.run(steps=20, seed=1, reward_weight=0.9, out=tmp_path / "asked-for.html")


def test_without_a_terminal_there_are_no_control_codes(tmp_path: Path) -> None:
    command = [*COMMAND, "--steps", "50", "--out", str(tmp_path / "new" / "run.png")]
    result = subprocess.run(command, capture_output=True, env=ENVIRONMENT, cwd=tmp_path, timeout=HANGS)
    assert result.returncode == 0
    assert not re.search(rb"[^\n\x20-\x7e]", result.stdout + result.stderr)
    assert (tmp_path / "new" / "run.png").read_bytes().startswith(b"\x89PNG")


def test_control_c_prints_what_there_is_and_exits_with_130(tmp_path: Path) -> None:
    command = [*COMMAND, "--steps", "100000", "--out", str(tmp_path / "x.svg")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, cwd=tmp_path
    ) as process:
        assert process.stderr is not None
        while not process.stderr.readline().startswith("day  1:"):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    found = re.search(r"^interrupted after ([\d,]+) of 100,000 people; this is how far it came$", err, re.MULTILINE)
    assert found is not None
    assert re.search(rf"^total +{found[1]} ", out, re.MULTILINE)
    assert not (tmp_path / "x.svg").exists()
    kept = eq.Experiment.open(f"sqlite:///{tmp_path}/demo-output/demo.db", "effort")
    assert kept.verify().n_decisions == int(found[1].replace(",", ""))


def test_the_service_stays_until_control_c_if_asked_to(tmp_path: Path) -> None:
    command = [*COMMAND, "--steps", "60", "--stay", "--out", str(tmp_path / "x.svg")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, cwd=tmp_path
    ) as process:
        assert process.stderr is not None
        said = ""
        while "equipoise status" not in said:
            said = process.stderr.readline()
            assert said, process.wait()
            if found := re.search(r"EQUIPOISE_STORE=(\S+) EQUIPOISE_KEY=(\S+)", said):
                url, key = found.groups()
            elif said.startswith("the console: "):
                console = said.removeprefix("the console: ").strip()
            elif said.startswith("sign in with this key: "):
                shown = said.removeprefix("sign in with this key: ").strip()
        with eq.Client(url, key) as client:
            assert client.open("effort").status().n_assigned == 60
        with Visitor(url, shown) as visitor:
            assert console == f"{url}/console/e/effort"
            assert "60 people" in visitor.page("e/effort")
        process.send_signal(signal.SIGINT)
        assert process.wait(HANGS) == 0
        process.communicate()


def test_control_c_before_the_first_person_is_answered_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(running, "_warm_up", interrupted)
    assert running.run(steps=20, seed=1, reward_weight=0.9, out=tmp_path / "x.svg") == 130
    assert capsys.readouterr() == ("", "interrupted before the first person came\n")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_on_a_terminal_the_table_is_shown_live_and_the_cursor_comes_back(tmp_path: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    command = [*COMMAND, "--steps", "50", "--out", str(tmp_path / "x.svg")]
    environment = ENVIRONMENT | {"TERM": "xterm-256color", "LINES": "40"}
    with subprocess.Popen(
        command, stdout=theirs, stderr=theirs, stdin=theirs, env=environment, cwd=tmp_path
    ) as process:
        os.close(theirs)
        seen = b""
        while select.select([ours], [], [], HANGS)[0]:
            try:
                seen += os.read(ours, 65536)
            except OSError:  # the other side is closed
                break
        assert process.wait(HANGS) == 0
    os.close(ours)
    screen = seen.decode()
    assert "day 1 of 14" in screen
    assert "effort: enrolling" in screen
    assert screen.rindex("\x1b[?25h") > screen.rindex("\x1b[?25l")
    assert "all as recorded" in screen
