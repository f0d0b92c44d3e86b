"""Rewards above the cap count as the cap, wherever they are counted; ranges may have an open end."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

import equipoise as eq
from equipoise.experiment.observed_log import read_observations


@pytest.mark.parametrize("direction", ["maximise", "minimise"])
def test_any_history_of_capped_rewards_is_that_of_rewards_that_were_capped_before(direction):
    """Held, late, defaulted, corrected and withdrawn rewards alike; decisions too."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    store = eq.open_store("memory:", clock=lambda: now)
    rule = eq.DefaultReward(value=0.5, window_seconds=10, hold=True)
    policy = eq.PooledBalance(reward_weight=0.8, tracking="windowed")
    settings = {"arms": ["a", "b"], "policy": policy, "missing": rule, "seed": 3, "direction": direction, "warm_up": 3}
    both = {
        name: eq.Experiment.create(store, name, reward_cap=cap, **settings) for name, cap in (("x", 2), ("y", None))
    }
    for number in range(80):
        now += timedelta(seconds=1)
        reward = (number * 37 % 60) / 10 - 1
        for name, one in both.items():
            told = reward if name == "x" else min(reward, 2.0)
            one.ask(f"unit-{number}")
            if number % 3:
                one.tell(f"unit-{number}", told)
            if number % 3 and number % 7 == 4:
                one.correct(f"unit-{number}", told + 0.25 if told < 1.75 or name == "x" else 2.0, "misread")
            if number >= 20 and number % 6 == 0:
                one.tell(f"unit-{number - 18}", told)
            if number % 17 == 16:
                one.withdraw(f"unit-{number - 12}", "asked to")
    capped, plain = both.values()
    assert [one.arm for one in map(capped.unit, units())] == [one.arm for one in map(plain.unit, units())]
    for one, other in zip(capped.status().arms, plain.status().arms, strict=True):
        assert (one.mean, one.std, one.rewarded) == (other.mean, other.std, other.rewarded)
    for one in both.values():
        assert one.verify().n_decisions == 80
        assert not one.rebuild()
    assert capped.copy_to("memory:").verify().n_decisions == 80
    assert counted(capped) == counted(plain)
    assert max(counted(capped)) == 2.0
    one, other = (observed(store, experiment) for experiment in both.values())
    np.testing.assert_array_equal(one.reward, other.reward)
    assert one.reward_range == (None, 2.0)
    assert np.nanmax(one.first_reward) == 2.0


def observed(store, experiment):
    return store.read(lambda transaction: read_observations(transaction, experiment.number, experiment.name))


def units():
    return [f"unit-{number}" for number in range(80)]


def counted(experiment):
    file = io.StringIO()
    experiment.export(file, format="jsonl")
    return [row["counted_reward"] or 0.0 for row in map(json.loads, file.getvalue().splitlines())]


def test_the_cap_is_in_the_log_and_absent_where_there_is_none():
    for cap in (None, 3):
        made = eq.Experiment.create("memory:", "x", arms=["a"], policy=eq.Uniform(), reward_cap=cap, seed=1)
        created = made.events_page(0, 1)[0].details["configuration"]
        assert created.get("reward_cap") == cap
        assert ("reward_cap" in created) == (cap is not None)
        assert made.configuration.counted_range == (None if cap is None else (None, 3.0))


def test_the_command_line_takes_caps_and_open_ends(run, tmp_path):
    made = run("create", "x", "--arms", "a,b", "--policy", "Uniform", "--range", "0,inf", "--reward-cap", "5", "--json")
    assert (json.loads(made.out)["reward_range"], json.loads(made.out)["reward_cap"]) == ([0.0, None], 5.0)
    made = run("create", "y", "--arms", "a,b", "--policy", "Uniform", "--range=-inf,1", "--json")
    assert json.loads(made.out)["reward_range"] == [None, 1.0]
    (tmp_path / "z.toml").write_text(
        'name = "z"\narms = ["a"]\npolicy = "Uniform"\nreward_range = [0, inf]\nreward_cap = 7\n'
    )
    made = run("create", "--file", "z.toml", "--json")
    assert (json.loads(made.out)["reward_range"], json.loads(made.out)["reward_cap"]) == ([0.0, None], 7.0)
    assert run("ask", "x", "unit").code == 0
    (tmp_path / "rewards.csv").write_text("unit,reward\nunit,-3\n")
    refused = run("tell", "x", "--file", "rewards.csv")
    assert "expected a number in [0, inf), the declared range; got '-3'" in refused.err
    assert run("tell", "x", "unit", "1000").code == 0
    status = json.loads(run("status", "x", "--json").out)
    assert max(arm["mean"] or 0 for arm in status["arms"]) == 5.0
    [row] = csv.DictReader(io.StringIO(run("export", "x").out))
    assert (float(row["reward"]), float(row["counted_reward"])) == (1000.0, 5.0)
    for wrong in ("inf,0", "-inf,inf", "1", "0,many"):
        assert run("create", "never", "--arms", "a", "--policy", "Uniform", f"--range={wrong}").code == 2
