"""The demo: the same seed plays the same game, the numbers are right, and Ctrl-C is answered politely."""

from __future__ import annotations

import math
import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import golden
import numpy as np
import numpy.typing as npt
import pytest

import equipoise as eq
from equipoise import demo
from equipoise.charts import drawing

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(eq.__file__).parents[1]), "COLUMNS": "100"}
COMMAND = [sys.executable, "-m", "equipoise.cli", "demo"]


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Compile before any test looks at stderr, where compiling is announced."""
    demo._warm_up()


def play(n_pulls: int, *, seed: int = 1, reward_weight: float = 0.9) -> demo.Game:
    game = demo.Game(reward_weight=reward_weight, seed=seed)
    for _ in range(n_pulls):
        game.pull()
    return game


def numbers(table: str) -> npt.NDArray[np.float64]:
    """Return the body of the printed table as numbers, one row per arm."""
    return np.array([line.split() for line in table.splitlines()[1:6]], dtype=float)


def test_the_arms_are_the_papers() -> None:
    assert demo.MEAN.tolist() == golden.FIVE_MEANS
    assert demo.STD.tolist() == golden.FIVE_STDS.tolist()
    assert play(1).optimum == pytest.approx(golden.OPTIMA[1].allocation, abs=5.1e-8)


def test_the_same_seed_plays_the_same_game_and_another_seed_another() -> None:
    first, again, other = play(500), play(500), play(500, seed=2)
    assert first.bandit.stats == again.bandit.stats
    assert first.bandit.stats != other.bandit.stats


def test_the_rewards_of_an_arm_do_not_depend_on_what_is_played(monkeypatch: pytest.MonkeyPatch) -> None:
    tell = eq.Bandit.tell

    def rewards(reward_weight: float) -> dict[str, list[float]]:
        told: dict[str, list[float]] = {name: [] for name in demo.NAMES}

        def listen(bandit: eq.Bandit, arm: str, reward: float) -> None:
            told[arm].append(reward)
            tell(bandit, arm, reward)

        monkeypatch.setattr(eq.Bandit, "tell", listen)
        play(300, reward_weight=reward_weight)
        return told

    for some, others in zip(rewards(0.0).values(), rewards(1.0).values(), strict=True):
        common = min(len(some), len(others))
        assert 10 < common < max(len(some), len(others))
        assert some[:common] == others[:common]


def test_rewards_have_the_means_and_spreads_of_the_arms() -> None:
    stats = play(20_000, reward_weight=0.0).bandit.stats
    # Six standard errors: a right demo fails this about once in 10^8 seeds, and the seed is fixed.
    assert (np.abs(stats.mean - demo.MEAN) < 6 * demo.STD / np.sqrt(stats.pulls)).all()
    assert (np.abs(stats.std / demo.STD - 1) < 6 / np.sqrt(2 * stats.pulls)).all()


def test_the_arms_are_independent() -> None:
    first = play(5).bandit.stats.mean  # one reward of each arm
    assert np.unique(((first - demo.MEAN) / demo.STD).round(9)).size == 5


def test_it_finds_the_best_shares() -> None:
    # An independent simulation had mean rescaled regret 0.02 at 20,000 and 8.4 at 50 pulls; one run scatters.
    assert play(20_000).rescaled_regret() < 0.2 < 3 < play(50).rescaled_regret()


def test_it_prints_the_state_of_the_game_and_writes_the_chart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert demo.run(steps=3000, seed=7, reward_weight=0.8, out=None) == 0
    out, err = capsys.readouterr()
    game = play(3000, seed=7, reward_weight=0.8)
    best = eq.optimal_allocation(golden.FIVE_MEANS, golden.FIVE_STDS, reward_weight=0.8)
    columns = numbers(out).T
    assert columns[0].tolist() == [1, 2, 3, 4, 5]
    assert columns[1] == pytest.approx(best, abs=5.1e-5)
    assert columns[2] == pytest.approx(game.bandit.stats.pulls / 3000, abs=5.1e-5)
    assert columns[3] == pytest.approx(game.bandit.stats.mean, abs=5.1e-5)
    assert columns[4].tolist() == golden.FIVE_MEANS
    shortfall = eq.regret(game.frequency, golden.FIVE_MEANS, golden.FIVE_STDS, reward_weight=0.8)
    assert out.endswith(f"\nrescaled regret after 3,000 pulls: {math.sqrt(3000) * shortfall:.4f}\n")
    assert err.splitlines() == [
        "ForcingBalance plays 5 arms of which it knows nothing: 3,000 pulls, seed 7",
        "chart written to demo-output/demo.html",
    ]
    page = Path("demo-output/demo.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "given so far" in page


def test_the_record_holds_what_was_aimed_at_and_given() -> None:
    game = demo.Game(reward_weight=0.9, seed=1)
    for _ in range(12):
        game.pull()
        game.take_note()
    record = game.record()
    assert record.step.tolist() == list(range(1, 13))
    assert record.frequency.sum(axis=1) == pytest.approx(np.ones(12))
    # No target before every arm has two rewards, which takes ten pulls.
    assert np.isnan(record.target[:9]).all()
    assert record.target[9:].sum(axis=1) == pytest.approx(np.ones(3))


@pytest.mark.parametrize("steps", [1, 3])
def test_a_very_short_run_says_what_is_not_known(
    steps: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo.run(steps=steps, seed=1, reward_weight=0.9, out=tmp_path / "x.svg") == 0
    out = capsys.readouterr().out
    assert [line.split()[3] for line in out.splitlines()[1:6]].count("-") == 5 - steps
    assert out.endswith(": inf\n")


def test_without_the_charts_extra_the_demo_plays_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(drawing, "find_spec", lambda name: None)
    assert demo.run(steps=20, seed=1, reward_weight=0.9, out=None) == 0
    out, err = capsys.readouterr()
    assert "rescaled regret after 20 pulls" in out
    assert err.startswith("no chart: charts need the package altair")
    assert "hint: pip install 'equipoise[charts]'" in err
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(eq.MissingExtra):
        demo.run(steps=20, seed=1, reward_weight=0.9, out=tmp_path / "asked-for.html")


def test_without_a_terminal_there_are_no_control_codes(tmp_path: Path) -> None:
    results = [
        subprocess.run(
            [*COMMAND, "--steps", "2000", "--out", str(tmp_path / "new" / "run.png")],
            capture_output=True,
            env=ENVIRONMENT,
            timeout=120,
        )
        for _ in range(2)
    ]
    assert [result.returncode for result in results] == [0, 0]
    assert not re.search(rb"[^\n\x20-\x7e]", results[0].stdout + results[0].stderr)
    assert results[0].stdout == results[1].stdout
    assert (tmp_path / "new" / "run.png").read_bytes().startswith(b"\x89PNG")


def test_control_c_prints_what_there_is_and_exits_with_130(tmp_path: Path) -> None:
    command = [*COMMAND, "--steps", "1000000000", "--out", str(tmp_path / "x.svg")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as process:
        assert process.stderr is not None
        while not process.stderr.readline().startswith("ForcingBalance plays"):
            assert process.poll() is None
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    found = re.fullmatch(r"interrupted after ([\d,]+) of 1,000,000,000 pulls; this is how far it came\n", err)
    assert found is not None
    assert out.endswith("\n")
    assert f"rescaled regret after {found[1]} pulls: " in out
    assert numbers(out)[:, 2].sum() == pytest.approx(1, abs=3e-4)
    assert not (tmp_path / "x.svg").exists()


def test_control_c_before_the_first_pull_is_answered_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "_warm_up", interrupted)
    assert demo.run(steps=20, seed=1, reward_weight=0.9, out=tmp_path / "x.svg") == 130
    assert capsys.readouterr() == ("", "interrupted before the first pull\n")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_on_a_terminal_the_game_is_shown_live_and_the_cursor_comes_back(tmp_path: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    command = [*COMMAND, "--steps", "50", "--out", str(tmp_path / "x.svg")]
    environment = ENVIRONMENT | {"TERM": "xterm-256color", "LINES": "40"}
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=theirs, env=environment) as process:
        os.close(theirs)
        seen = b""
        while select.select([ours], [], [], 60)[0]:
            try:
                seen += os.read(ours, 65536)
            except OSError:  # the other side is closed
                break
        assert process.wait(60) == 0
    os.close(ours)
    screen = seen.decode()
    assert "1 of 50 pulls" in screen
    assert "50 of 50 pulls" in screen
    assert screen.rindex("\x1b[?25h") > screen.rindex("\x1b[?25l")
    assert "rescaled regret after 50 pulls" in screen
