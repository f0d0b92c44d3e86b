"""Sweeps: what a study file says, what is wrong with it, what is kept, resumed and reused."""

from __future__ import annotations

import dataclasses
import math
import re
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise import simulation
from equipoise.charts.curves import sweep_curves
from equipoise.simulation import study as cutting
from equipoise.simulation import sweeps

ARMS = eq.Gaussian(mean=[1, 2, 3], std=[1, 0.5, 2])
STUDY = """\
seed = 3
replications = 6
horizon = [50, 200]

[arms]
kind = "gaussian"
mean = [1, 2, 3]
std = [1, 0.5, 2]

[[policies]]
name = "ForcingBalance"
reward_weight = [0.5, 0.9]
forcing = [0.3, 1.0]

[[policies]]
name = "Uniform"
"""


def study(**changes: Any) -> eq.Study:
    return simulation.parse_study(STUDY, **changes)


def small(**changes: Any) -> eq.Study:
    values: dict[str, Any] = {
        "policies": [eq.ForcingBalance(reward_weight=0.9), eq.Uniform()],
        "arms": ARMS,
        "horizons": [100],
        "replications": 8,
        "seed": 1,
    }
    return eq.Study(**(values | changes))


class Steps:
    """Remembers what was told about progress."""

    def __init__(self) -> None:
        self.told: list[tuple[int, int]] = []

    def __call__(self, done: int, total: int) -> None:
        self.told.append((done, total))

    @property
    def total(self) -> int:
        return self.told[-1][1] if self.told else 0


# --- what a study file says -------------------------------------------------------------------------------------------


def test_lists_are_swept_in_the_order_they_are_written() -> None:
    found = study()
    assert found.policies == (
        eq.ForcingBalance(reward_weight=0.5, forcing=0.3),
        eq.ForcingBalance(reward_weight=0.5, forcing=1.0),
        eq.ForcingBalance(reward_weight=0.9, forcing=0.3),
        eq.ForcingBalance(reward_weight=0.9, forcing=1.0),
        eq.Uniform(),
    )
    assert (found.horizons, found.replications, found.seed) == ((50, 200), 6, 3)
    assert found.arms == ARMS
    assert [(cell.horizon, cell.policy) for cell in found.cells()] == [
        (horizon, policy) for horizon in (50, 200) for policy in found.policies
    ]
    assert found.n_steps == 5 * 6 * 250


def policies_of(text: str) -> tuple[eq.Policy, ...]:
    return simulation.parse_study(f"horizon = 9\narms = {{mean = [1, 2], std = [1, 1]}}\n{text}").policies


def test_a_parameter_with_one_number_per_arm_is_swept_by_a_list_of_lists() -> None:
    one = policies_of('policies = [{name = "Fixed", allocation = [0.25, 0.75]}]')
    assert one == (eq.Fixed(allocation=(0.25, 0.75)),)
    two = policies_of('policies = [{name = "Fixed", allocation = [[0.25, 0.75], [0.5, 0.5]]}]')
    assert two == (eq.Fixed(allocation=(0.25, 0.75)), eq.Fixed(allocation=(0.5, 0.5)))
    floors = policies_of('policies = [{name = "ForcingBalance", reward_weight = 0.5, floor = [0.1, [0.2, 0.0]]}]')
    assert [policy.floor for policy in floors] == [0.1, (0.2, 0.0)]  # type: ignore[attr-defined]


def test_weights_and_forcing_at_the_top_are_for_policies_that_take_them_and_set_none() -> None:
    found = policies_of(
        "reward_weight = [0.2, 0.4]\nforcing = 2.0\n"
        '[[policies]]\nname = "ForcingBalance"\n'
        '[[policies]]\nname = "ForcingBalance"\nreward_weight = 0.9\nforcing = 1\n'
        '[[policies]]\nname = "GAFS"\n[[policies]]\nname = "Uniform"\n'
    )
    assert found == (
        eq.ForcingBalance(reward_weight=0.2, forcing=2.0),
        eq.ForcingBalance(reward_weight=0.4, forcing=2.0),
        eq.ForcingBalance(reward_weight=0.9),
        eq.GAFS(forcing=2.0),
        eq.Uniform(),
    )


def test_an_objective_is_a_table_and_a_list_of_them_is_swept() -> None:
    found = policies_of(
        '[[policies]]\nname = "ForcingBalance"\nreward_weight = 0.5\n'
        'objective = [{name = "PowerObjective"}, {name = "PowerObjective", power = 1.0}]\n'
    )
    assert [policy.objective for policy in found] == [eq.ROOT_MEAN_SQUARE, eq.MEAN_SQUARE]  # type: ignore[attr-defined]


def test_a_policy_that_comes_out_twice_is_played_once() -> None:
    assert policies_of('[[policies]]\nname = "Uniform"\n[[policies]]\nname = "Uniform"\n') == (eq.Uniform(),)


@pytest.mark.parametrize(
    ("text", "arms"),
    [
        ("arms = {mean = [1, 2], std = [0, 1]}", eq.Gaussian(mean=[1, 2], std=[0, 1])),
        ('arms = {kind = "bernoulli", mean = [0.1, 0.5]}', eq.Bernoulli(mean=[0.1, 0.5])),
        ('arms = {kind = "uniform", low = [0, 1], high = [1, 4]}', eq.UniformBetween(low=[0, 1], high=[1, 4])),
        ('arms = {kind = "beta", a = [1, 2], b = [3, 1]}', eq.Beta(a=[1, 2], b=[3, 1])),
        ('arms = {kind = "beta", a = [1], b = [3], low = -1, high = 2}', eq.Beta(a=[1], b=[3], low=-1, high=2)),
        ('arms = {file = "arms.csv"}', eq.Gaussian(mean=[0.5, 0.7], std=[0.1, 0.2], names=("x", "y"))),
        (
            'arms = {kind = "bernoulli", mean = [0.1, 0.5], names = ["pie", "line"]}',
            eq.Bernoulli(mean=[0.1, 0.5], names=("pie", "line")),
        ),
        (
            'arms = {kind = "empirical", file = "log.csv", arm = "group", reward = "score"}',
            eq.Empirical(values=[[0, 1, 1], [2, 4]], names=("a", "b")),
        ),
        (
            '[[arms]]\nkind = "bernoulli"\nmean = [0.1]\n[[arms]]\nmean = [2]\nstd = [1]',
            eq.Mixed(parts=[eq.Bernoulli(mean=[0.1]), eq.Gaussian(mean=[2], std=[1])]),
        ),
    ],
)
def test_arms_of_every_kind_are_read(text: str, arms: eq.Arms, tmp_path: Path) -> None:
    (tmp_path / "arms.csv").write_text("arm,mean,std\nx,0.5,0.1\ny,0.7,0.2\n")
    (tmp_path / "log.csv").write_text("group,score\na,0\na,1\nb,2\na,1\nb,4\n")
    file = tmp_path / "study.toml"
    file.write_text(f'horizon = 10\npolicies = [{{name = "Uniform"}}]\n{text}\n')
    assert eq.read_study(file).arms == arms


def test_checkpoints_are_kept_below_each_horizon_and_the_horizon_is_one() -> None:
    found = study(checkpoints=[10, 100, 150])
    assert found.steps(50) == (10, 50)
    assert found.steps(200) == (10, 100, 150, 200)


def test_the_study_in_the_documentation_is_one() -> None:
    page = (Path(__file__).parents[1] / "docs/command-line.md").read_text(encoding="utf-8")
    texts = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (text,) = [text for text in texts if "[[policies]]" in text]
    found = simulation.parse_study(text)
    assert (len(found.policies), found.horizons, found.report_weight) == (6, (5000, 20000), 0.9)


def test_given_values_take_the_place_of_those_in_the_file() -> None:
    assert study(replications=2, horizon=7, seed=None) == eq.Study(
        policies=study().policies, arms=ARMS, horizons=[7], replications=2, seed=3
    )


# --- what is wrong with it --------------------------------------------------------------------------------------------

NAMES = "known are "


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seed = 3", "seed = ", "expected TOML; Invalid value (at line 1, column 8)"),
        ("seed = 3", "seed = 3\nseed = 4", "expected TOML; Cannot overwrite a value (at line 2, column 9)"),
        ("seed = 3", "sed = 3", "unknown key 'sed'; allowed are horizon, replications, seed, checkpoints"),
        ("seed = 3", "seed = -3", "seed must be at least 0; got -3"),
        ("replications = 6", "replications = 6.5", "replications must be a whole number; got 6.5"),
        ("replications = 6", "replications = 0", "replications must be at least 1; got 0"),
        ("[50, 200]", "[50, 0]", "horizon must be at least 1; got 0"),
        ("[50, 200]", "[]", "horizon must be a whole number or a list of them; got an empty list"),
        ("[50, 200]", "[\n50,\n'x']", "horizon must be a whole number; got 'x'"),
        ("seed = 3", "checkpoints = [5, 500]", "checkpoints must be at most 200; got 500"),
        ('"gaussian"', '"gausian"', "arms.kind must be one of gaussian, bernoulli, uniform, beta, empirical; got"),
        ("std = ", "stds = ", "arms: unknown key 'stds'; allowed are kind, mean, std, names, file"),
        ("std = [1, 0.5, 2]\n", "", "arms.std is missing; needed are mean, std"),
        ("std = [1, 0.5, 2]", "std = [1, 0.5]", "arms.std must have 3 entries, one per arm; got 2"),
        ("[1, 0.5, 2]", "[\n1, # [\n-0.5,\n2]", "arms.std must not be negative; got -0.5 for arm 2"),
        ('"Uniform"', '"Unifrom"', f"policies[1]: unknown policy 'Unifrom'; {NAMES}"),
        ('name = "Uniform"', "forcing = 1", "policies[1]: a policy must be an object with a name; got {'forcing': 1}"),
        (
            "reward_weight = [0.5, 0.9]",
            "weight = 0.5",
            "policies[0]: ForcingBalance has no parameter weight; allowed are",
        ),
        ("[0.5, 0.9]", "[0.5, 1.9]", "policies[0].reward_weight must be in [0, 1]; got 1.9"),
        ("[0.5, 0.9]", "[]", "policies[0].reward_weight must be a value or a list of values; got an empty list"),
        ("reward_weight = [0.5, 0.9]\n", "", "policies[0]: give either reward_weight or information_kept; got neither"),
        ("[0.3, 1.0]", '"much"', "policies[0].forcing must be a number; got 'much'"),
        ("[0.3, 1.0]", "[0.3, -1.0]", "policies[0].forcing must be in [0, inf); got -1.0"),
        (
            "forcing = [0.3, 1.0]",
            "floor = 0.5",
            "policies[0].floor must add up to at most 1 over all arms; got 1.5 for 3 arms",
        ),
        ("forcing = [0.3, 1.0]", "floor = [0.1, 0.1]", "policies[0].floor must have 3 entries, one per arm; got 2"),
        (
            "forcing = [0.3, 1.0]",
            'tracking = ["ratio", "closest"]',
            "policies[0].tracking must be one of difference, ratio, sample, windowed; got 'closest'",
        ),
        (
            "forcing = [0.3, 1.0]",
            'objective = {name = "Median"}',
            "policies[0].objective: unknown objective 'Median'; known are",
        ),
        (
            "forcing = [0.3, 1.0]",
            '[policies.objective]\nname = "PowerObjective"\npower = -1',
            "policies[0].objective.power must be",
        ),
        (
            "forcing = [0.3, 1.0]",
            'objective = {name = "PowerObjective", power = -1}',
            "policies[0].objective.power must be",
        ),
        ("seed = 3", "forcing = -1", "ForcingBalance"),
        ("seed = 3", "reward_weight = 7", "reward_weight must be in [0, 1]; got 7"),
        ("seed = 3", "forcing = [1, 'much']", "forcing must be a number; got 'much'"),
        ("seed = 3", "forcing = []", "forcing must be a value or a list of values; got an empty list"),
        ("seed = 3", "checkpoints = []", "checkpoints must be at least one step, or left out; got an empty"),
        (
            '"gaussian"',
            '["gaussian"]',
            "arms.kind must be one of gaussian, bernoulli, uniform, beta, empirical; got ['g",
        ),
        (
            '[[policies]]\nname = "Uniform"',
            "[report]\nweight = 1",
            "report: unknown key 'weight'; allowed are reward_weight",
        ),
        ('[[policies]]\nname = "Uniform"', "[report]\nreward_weight = 2", "report.reward_weight must be in [0, 1]"),
        ("seed = 3", "report = 1", "report: expected a table with reward_weight; got 1"),
        ("[arms]", "[arm]", "unknown key 'arm'; allowed are"),
    ],
)
def test_an_error_names_the_file_the_key_and_what_is_allowed(old: str, new: str, message: str) -> None:
    assert old in STUDY
    if message == "ForcingBalance":  # the wrong value stands at the top, the policy only inherits it
        text = STUDY.replace("forcing = [0.3, 1.0]\n", "").replace(old, new)
        message = "forcing must be in [0, inf); got -1"
    else:
        text = STUDY.replace(old, new)
    with pytest.raises(eq.EquipoiseError) as error:
        simulation.parse_study(text, "study.toml")
    assert str(error.value).startswith(f"study.toml: {message}")


def test_an_error_counts_the_tables_of_a_list() -> None:
    policies = '[{name = "Uniform"}, {name = "GAFS", forcing = -1}]'
    text = f"horizon = 5\narms = {{mean = [1, 2], std = [1, 1]}}\npolicies = {policies}\n"
    with pytest.raises(eq.EquipoiseError, match=r"study.toml: policies\[1\]\.forcing must be in \[0, inf\); got -1"):
        simulation.parse_study(text, "study.toml")


def test_whole_numbers_may_be_written_as_floats() -> None:
    assert study(horizon=[1e2], checkpoints=[1e1, 50.0], replications=2.0) == study(
        horizon=100, checkpoints=[10, 50], replications=2
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "study.toml: horizon is missing; needed are horizon, arms, policies"),
        ("horizon = 5\n", "study.toml: arms is missing; needed are horizon, arms, policies"),
        ("horizon = 5\narms = 3\npolicies = []", "study.toml: arms: expected a table with kind and its numbers"),
        (
            "horizon = 5\narms = {mean = [1], std = [1]}\npolicies = []",
            "study.toml: policies must be tables [[policies]] with a name; got []",
        ),
        (
            'horizon = 5\n[arms]\nkind = "empirical"\nfile = "nowhere.csv"\n[[policies]]\nname = "UCB"',
            "study.toml: arms.file: cannot read nowhere.csv: No such file or directory",
        ),
        (
            'horizon = 5\n[arms]\nfile = "nowhere.csv"\n[[policies]]\nname = "UCB"',
            "study.toml: arms.file: cannot read nowhere.csv: No such file or directory",
        ),
        ('horizon = 5\n[arms]\nfile = 3\n[[policies]]\nname = "UCB"', "study.toml: arms.file must be text; got 3"),
        ('horizon = """', "study.toml: expected TOML; "),
    ],
)
def test_what_is_missing_is_told(text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(eq.EquipoiseError) as error:
        simulation.parse_study(text, "study.toml")
    assert str(error.value).startswith(message)


def test_a_wrong_value_given_instead_of_the_files_is_not_blamed_on_the_file() -> None:
    with pytest.raises(eq.InvalidInput) as error:
        study(replications=0)
    assert str(error.value) == "replications must be at least 1; got 0"


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(eq.EquipoiseError, match=r"cannot read nowhere\.toml: No such file"):
        eq.read_study("nowhere.toml")
    file = tmp_path / "latin.toml"
    file.write_bytes(b"seed = 1\n# \xe9\n")
    with pytest.raises(eq.EquipoiseError, match="expected text in UTF-8; got the byte 0xe9"):
        eq.read_study(file)


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("Uniform", {"name": "Uniform"}),
        ("GAFS:forcing=.5", {"name": "GAFS", "forcing": 0.5}),
        ("F:a=[1,.5], tracking=sample", {"name": "F", "a": [1, 0.5], "tracking": "sample"}),
        ('F:b=[[0.5,0.5],[1,0]],c="x y"', {"name": "F", "b": [[0.5, 0.5], [1, 0]], "c": "x y"}),
    ],
)
def test_a_policy_can_be_written_on_the_command_line(text: str, table: dict[str, Any]) -> None:
    assert simulation.policy_from_text(text) == table


@pytest.mark.parametrize(
    "text", ["", ":a=1", "F:a", "F:a=", "F:a=1,,b=2", "F:a=__import__('os')", "F:name=x", "F:a=1}\nb=2"]
)
def test_other_writing_is_refused(text: str) -> None:
    with pytest.raises(eq.InvalidInput, match="must be NAME or NAME:parameter=value"):
        simulation.policy_from_text(text)


# --- results ----------------------------------------------------------------------------------------------------------


def test_results_are_those_of_simulate_for_every_horizon() -> None:
    found = study()
    results = eq.sweep(found, workers=2, chunk=4)
    assert results == tuple(
        eq.simulate(found.policies, ARMS, horizon, 6, seed=3, workers=1) for horizon in found.horizons
    )


@pytest.mark.parametrize(
    "options", [{"workers": 1}, {"workers": 3}, {"chunk": 1}, {"chunk": 7}, {"backend": "processes"}]
)
def test_results_do_not_depend_on_how_they_are_computed(options: dict[str, Any]) -> None:
    assert eq.sweep(small(), **options) == eq.sweep(small())


def test_results_are_saved_one_file_per_horizon_and_no_parts_are_left(tmp_path: Path) -> None:
    results = eq.sweep(study(), tmp_path / "r.npz")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r-200.npz", "r-50.npz"]
    assert tuple(eq.Runs.load(path) for path in simulation.result_paths(study(), tmp_path / "r.npz")) == results


def test_progress_counts_every_step_once() -> None:
    steps = Steps()
    eq.sweep(study(), progress=steps, workers=2)
    done = [count for count, _ in steps.told]
    assert done == sorted(done)
    assert steps.told[-1] == (study().n_steps, study().n_steps)


def test_tasks_take_about_as_long_as_they_should_and_hold_everything_once() -> None:
    large = small(horizons=[10, 100_000], replications=500)
    pieces = list(cutting.missing(large, {}))
    tasks = list(cutting.cut_into_tasks(pieces, 3, 2, None))
    spent = [sum(cutting.seconds(cell, 3) * len(numbers) for cell, numbers in task) for task in tasks]
    assert max(spent) <= 2 * cutting.TASK_SECONDS
    assert np.median(spent) >= 0.5 * cutting.TASK_SECONDS
    played = [(cell, number) for task in tasks for cell, numbers in task for number in numbers]
    assert len(played) == len(set(played)) == 4 * 500
    # Little work is spread over the workers all the same.
    assert len(list(cutting.cut_into_tasks(cutting.missing(small(), {}), 3, 2, None))) >= 4


# --- kept, resumed, reused --------------------------------------------------------------------------------------------


def interrupted_after(
    count: int, monkeypatch: pytest.MonkeyPatch, found: eq.Study, out: Path, **options: Any
) -> eq.SweepInterrupted:
    """Play a number of tasks, then press Ctrl-C."""
    played, calls = sweeps._played, [0]

    def stop_after(*arguments: Any) -> Any:
        calls[0] += 1
        if calls[0] > count:
            raise KeyboardInterrupt
        return played(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(sweeps, "_played", stop_after)
        with pytest.raises(eq.SweepInterrupted) as stopped:
            eq.sweep(found, out, workers=1, chunk=2, **options)
    return stopped.value


@pytest.mark.parametrize("backend", ["threads", "processes"])
def test_ctrl_c_while_a_part_is_written_waits_until_it_is(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save, calls = sweeps.Kept.save, [0]

    def interrupted_save(*arguments: Any) -> None:
        calls[0] += 1
        if calls[0] == 2:
            signal.raise_signal(signal.SIGINT)
        save(*arguments)

    monkeypatch.setattr(sweeps.Kept, "save", interrupted_save)
    long = small(horizons=[20_000], replications=400)
    with pytest.raises(eq.SweepInterrupted) as stopped:
        eq.sweep(long, tmp_path / "r.npz", backend=backend, workers=2, chunk=2)
    kept = [eq.Runs.load(part).replications.size for part in (tmp_path / "r.npz.parts").iterdir()]
    assert 4 <= sum(kept) == stopped.value.n_finished < 800
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_same_call_plays_only_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "r.npz"
    stopped = interrupted_after(3, monkeypatch, small(), out)
    assert (stopped.n_finished, stopped.n_replications, stopped.kept) == (6, 16, tmp_path / "r.npz.parts")
    assert not out.exists()
    assert len(list(stopped.kept.iterdir())) == 3  # type: ignore[union-attr]
    steps = Steps()
    assert eq.sweep(small(), out, progress=steps) == eq.sweep(small())
    assert steps.total == 10 * 100
    assert not stopped.kept.exists()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 2},
        {"horizons": [101]},
        {"checkpoints": [5, 100]},
        {"arms": eq.Gaussian(mean=[1, 2, 3], std=[1, 0.5, 2.5])},
        {"policies": [eq.ForcingBalance(reward_weight=0.8), eq.UCB()]},
    ],
)
def test_a_changed_study_never_uses_the_parts_of_another(
    changes: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted_after(5, monkeypatch, small(), tmp_path / "r.npz")
    steps, other = Steps(), small(**changes)
    assert eq.sweep(other, tmp_path / "r.npz", progress=steps) == eq.sweep(other)
    assert steps.total == other.n_steps


def test_another_version_computes_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted_after(5, monkeypatch, small(), tmp_path / "r.npz")
    monkeypatch.setattr("equipoise.simulation.study.__version__", "99.0")
    steps = Steps()
    eq.sweep(small(), tmp_path / "r.npz", progress=steps)
    assert steps.total == small().n_steps


def test_a_damaged_part_is_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = interrupted_after(3, monkeypatch, small(), tmp_path / "r.npz")
    first = min(stopped.kept.iterdir())  # type: ignore[union-attr]
    first.write_bytes(first.read_bytes()[:100])
    steps = Steps()
    assert eq.sweep(small(), tmp_path / "r.npz", progress=steps) == eq.sweep(small())
    assert steps.total == 12 * 100


def test_parts_that_overlap_count_once(tmp_path: Path) -> None:
    found = small()
    kept = sweeps.Kept(found, tmp_path / "r.npz")
    for numbers in (range(4), range(2, 6), range(6, 7)):
        runs = eq.simulate(found.policies[0], ARMS, 100, numbers, seed=1)
        kept.save(found.cells()[0], dataclasses.replace(runs, arms=found.described_arms))
    steps = Steps()
    assert eq.sweep(found, tmp_path / "r.npz", progress=steps) == eq.sweep(found)
    assert steps.total == (1 + 8) * 100


def test_finished_results_are_not_computed_again_unless_asked(tmp_path: Path) -> None:
    out, steps = tmp_path / "r.npz", Steps()
    first = eq.sweep(small(), out)
    saved = out.stat().st_mtime_ns
    assert eq.sweep(small(), out, progress=steps) == first
    assert (steps.total, out.stat().st_mtime_ns) == (0, saved)
    assert eq.sweep(small(), out, progress=steps, again=True) == first
    assert steps.total == small().n_steps


def test_a_study_that_grew_plays_what_was_added(tmp_path: Path) -> None:
    out, steps = tmp_path / "r.npz", Steps()
    eq.sweep(small(), out)
    grown = small(policies=[eq.UCB(), eq.Uniform(), eq.ForcingBalance(reward_weight=0.9)], replications=10)
    assert eq.sweep(grown, out, progress=steps) == eq.sweep(grown)
    assert steps.total == (10 + 2 + 2) * 100


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"seed": 2}, "its seed is 1, not 2"),
        ({"replications": 5}, "it has 8 replications, not 5"),
        ({"policies": [eq.Uniform()]}, "the study does not have its policy ForcingBalance(reward_weight=0.9)"),
        ({"arms": eq.Gaussian(mean=[1, 2, 3], std=[1, 1, 1])}, "its arms are others"),
        ({"checkpoints": [3]}, "its checkpoints are others"),
        ({"horizons": [99], "seed": 3}, "its horizon is 100, not 99; its seed is 1, not 3"),
    ],
)
def test_results_that_would_be_lost_are_replaced_only_when_asked(
    changes: dict[str, Any], why: str, tmp_path: Path
) -> None:
    out = tmp_path / "r.npz"
    first = eq.sweep(small(), out)
    with pytest.raises(eq.EquipoiseError, match=r"that are not part of this study: .+\nhint: .* --again") as told:
        eq.sweep(small(**changes), out)
    assert why in str(told.value)
    assert (eq.Runs.load(out),) == first
    replaced = eq.sweep(small(**changes), out, again=True)
    assert (eq.Runs.load(out),) == replaced == eq.sweep(small(**changes))


def test_what_is_computed_anew_and_interrupted_is_gone_on_with_and_the_results_of_before_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, other = tmp_path / "r.npz", small(seed=9)
    first = eq.sweep(small(), out)
    interrupted_after(3, monkeypatch, other, out, again=True)
    assert (eq.Runs.load(out),) == first  # until there is something better
    with pytest.raises(eq.EquipoiseError, match="its seed is 1, not 10"):  # a third study has nothing to do with it
        eq.sweep(small(seed=10), out)
    steps, told = Steps(), []
    assert eq.sweep(other, out, progress=steps, on_resume=lambda *counts: told.append(counts)) == eq.sweep(other)
    assert (steps.total, told) == (10 * 100, [(6, 16)])
    assert eq.Runs.load(out).seed == 9
    assert list(tmp_path.iterdir()) == [out]


def test_again_begins_anew_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A policy of one's own may have changed in between without its parameters telling.
    out, steps = tmp_path / "r.npz", Steps()
    interrupted_after(3, monkeypatch, small(), out, again=True)
    eq.sweep(small(), out, progress=steps, again=True)
    assert steps.total == small().n_steps


def test_parts_are_kept_if_computing_anew_cannot_even_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, steps = tmp_path / "r.npz", Steps()
    interrupted_after(3, monkeypatch, small(), out)
    with pytest.raises(eq.InvalidInput, match="backend must be"):
        eq.sweep(small(), out, backend="slurm", again=True)
    eq.sweep(small(), out, progress=steps)
    assert steps.total == 10 * 100


def test_a_study_that_grows_from_one_horizon_to_two_plays_the_second_only(tmp_path: Path) -> None:
    out, steps, two = tmp_path / "r.npz", Steps(), small(horizons=[100, 150])
    eq.sweep(small(), out)
    assert eq.sweep(two, out, progress=steps) == eq.sweep(two)
    assert steps.total == 2 * 8 * 150
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r-100.npz", "r-150.npz"]
    # And back: nothing is played, and what is not part of the study any more is left alone.
    steps = Steps()
    assert eq.sweep(small(), out, progress=steps) == eq.sweep(small())
    assert steps.total == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r-100.npz", "r-150.npz", "r.npz"]


def test_results_under_the_other_name_that_do_not_fit_are_left_alone(tmp_path: Path) -> None:
    out, two = tmp_path / "r.npz", small(horizons=[100, 150])
    (first,) = eq.sweep(small(seed=7), out)
    eq.sweep(two, out)
    assert eq.Runs.load(out) == first
    out.write_text("not runs")
    assert eq.sweep(two, out) == eq.sweep(two)
    assert out.read_text() == "not runs"


def test_parts_that_complete_a_result_are_written_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, grown = tmp_path / "r.npz", small(replications=10)
    eq.sweep(small(), out)
    with monkeypatch.context() as patch:  # all is played, and the machine goes down before the result is written
        patch.setattr(eq.Runs, "joined", lambda parts: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            eq.sweep(grown, out)
    steps = Steps()
    assert eq.sweep(grown, out, progress=steps) == eq.sweep(grown) == (eq.Runs.load(out),)
    assert steps.total == 0


# --- data of an experiment --------------------------------------------------------------------------------------------

DATA = eq.Empirical(values=[np.random.default_rng(k).normal(k, 1, 20_000) for k in range(3)], names=("a", "b", "c"))


@pytest.mark.parametrize("backend", ["threads", "processes"])
def test_much_data_is_neither_in_the_parts_nor_in_what_workers_send_back(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pickle

    found, out, sizes = small(arms=DATA), tmp_path / "r.npz", []
    save = sweeps.Kept.save

    def measured(self: Any, cell: Any, runs: eq.Runs) -> None:
        sizes.append(len(pickle.dumps(runs)))
        save(self, cell, runs)
        sizes.extend(path.stat().st_size for path in self.folder.glob("*.npz"))

    monkeypatch.setattr(sweeps.Kept, "save", measured)
    (runs,) = eq.sweep(found, out, backend=backend, workers=2, chunk=2)
    assert len(sizes) >= 8
    # 32 bytes per replication, checkpoint and arm, and some more for what they are.
    assert max(sizes) < 32 * 2 * runs.checkpoints.size * 3 + 5_000
    assert runs == eq.simulate(found.policies, DATA, 100, 8, seed=1) == eq.Runs.load(out)
    assert runs.arm_names == ("a", "b", "c")


def test_much_data_is_described_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    describe = eq.Empirical.to_dict

    def counted(self: eq.Empirical) -> dict[str, Any]:
        calls.append(1)
        return describe(self)

    monkeypatch.setattr(eq.Empirical, "to_dict", counted)
    eq.sweep(small(arms=DATA), chunk=1, workers=1)
    assert len(calls) == 2  # for the digest, and for the result


def test_arms_are_sent_without_what_can_be_made_again() -> None:
    import pickle

    sent = pickle.dumps(DATA)
    assert DATA.drawing.pool.size == 60_000
    assert len(pickle.dumps(DATA)) == len(sent)
    opened = pickle.loads(sent)  # noqa: S301
    assert opened.drawing.pool.flags.writeable
    assert np.array_equal(opened.rewards(1, seed=3, count=9), DATA.rewards(1, seed=3, count=9))


def test_arms_with_other_data_are_other_arms() -> None:
    digests = set()
    for arms in (
        DATA,
        eq.Empirical(values=DATA.values),
        eq.Empirical(values=[*DATA.values[:2], DATA.values[2] + 1e-9]),
    ):
        digests.add(small(arms=arms).described_arms["digest"])
    assert len(digests) == 3


# --- files that cannot be ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("r.csv", "the file for results must end in .npz; got 'r.csv'"),
        ("no/where/r.npz", "no folder no/where\nhint: mkdir -p no/where"),
    ],
)
def test_a_file_that_cannot_be_is_told_before_anything_is_played(
    out: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    steps = Steps()
    with pytest.raises(eq.EquipoiseError) as error:
        eq.sweep(small(), out, progress=steps)
    assert str(error.value) == message
    assert steps.told == []


def test_an_error_in_a_task_keeps_what_was_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played = sweeps._played

    def fail_once(*arguments: Any) -> Any:
        if 4 in arguments[2][0].replications:
            raise eq.EquipoiseError("out of luck")
        return played(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(sweeps, "_played", fail_once)
        with pytest.raises(eq.EquipoiseError, match="out of luck"):
            eq.sweep(small(), tmp_path / "r.npz", workers=1, chunk=2)
    steps = Steps()
    assert eq.sweep(small(), tmp_path / "r.npz", progress=steps) == eq.sweep(small())
    assert steps.total == small().n_steps - 4 * 100


# --- summaries and frames ---------------------------------------------------------------------------------------------


def test_a_summary_has_the_means_of_the_last_checkpoint() -> None:
    (runs,) = eq.sweep(small())
    first, second = simulation.summary([runs])
    regret = math.sqrt(100) * runs.regret(reward_weight=0.9)[:, :, -1]
    assert first.policy == eq.ForcingBalance(reward_weight=0.9)
    assert (first.horizon, first.replications, first.reward_weight) == (100, 8, 0.9)
    assert first.reward == pytest.approx(runs.reward()[0, :, -1].mean())
    assert first.error == pytest.approx(runs.error()[0, :, -1].mean())
    assert first.rescaled_regret == pytest.approx(regret[0].mean())
    assert first.standard_error == pytest.approx(regret[0].std(ddof=1) / math.sqrt(8))
    assert second.rescaled_regret == pytest.approx(regret[1].mean())


def test_a_summary_says_which_step_its_values_are_from() -> None:
    runs = eq.simulate(eq.Uniform(), ARMS, 1000, checkpoints=[10, 100])
    assert [row.horizon for row in simulation.summary([runs])] == [100]


def test_a_weight_that_no_policy_takes_is_the_weight_of_the_report() -> None:
    text = 'horizon = 9\narms = {mean = [1, 2], std = [1, 1]}\npolicies = [{name = "Uniform"}]\n'
    assert simulation.parse_study(f"reward_weight = 0.7\n{text}").report_weight == 0.7
    assert simulation.parse_study(f"reward_weight = [0.7, 0.8]\n{text}").report_weight is None
    assert simulation.parse_study(f"reward_weight = 0.7\n{text}[report]\nreward_weight = 0.2").report_weight == 0.2
    assert study(reward_weight=0.7).report_weight is None


def test_curves_are_those_of_the_longest_horizon_at_the_weights_of_the_table() -> None:
    short, long = eq.sweep(study())
    record = sweep_curves([long, short])
    assert record.step.tolist() == long.checkpoints.tolist()
    assert record.policies[-2:] == ("Uniform, at 0.5", "Uniform, at 0.9")
    assert record.value.mean[-1] == pytest.approx(long.rescaled_regret(reward_weight=0.9)[4].mean(axis=0))
    assert sweep_curves([long], report_weight=0.7).reward_weight == 0.7
    assert sweep_curves([long.select(policies=[4])]).metric == "reward"


def test_a_policy_without_a_weight_is_measured_at_those_of_the_others_or_at_the_one_wanted() -> None:
    results = eq.sweep(study(replications=2, horizon=20))
    rows = simulation.summary(results)
    assert [row.reward_weight for row in rows] == [0.5, 0.5, 0.9, 0.9, 0.5, 0.9]
    assert {row.reward_weight for row in simulation.summary(results, report_weight=0.7)} == {0.7}
    (alone,) = simulation.summary(eq.sweep(small(policies=[eq.Uniform()])))
    assert (alone.reward_weight, alone.rescaled_regret, alone.standard_error) == (None, None, None)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_all_horizons_go_into_one_table(ending: str, tmp_path: Path) -> None:
    pl = pytest.importorskip("polars")
    results = eq.sweep(study(replications=2))
    file = tmp_path / f"all.{ending}"
    simulation.write_frame(results, file)
    frame = pl.read_csv(file) if ending == "csv" else pl.read_parquet(file)
    assert frame.height == sum(runs.pulls.size for runs in results)
    last = frame.filter((pl.col("horizon") == 50) & (pl.col("n") == 50) & (pl.col("policy") == "Uniform()"))
    assert last["pulls"].to_list() == results[0].pulls[4, :, -1].ravel().tolist()
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_memory_does_not_grow_with_the_horizon() -> None:
    import tracemalloc

    def peak(horizon: int) -> int:
        found = small(horizons=[horizon], checkpoints=[10, 100], replications=4)
        tracemalloc.start()
        eq.sweep(found, workers=1)
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    peak(1000)
    assert peak(1_000_000) < 1.5 * peak(1000)


def test_a_study_sets_weights_and_information_for_all_policies_without_a_dial_of_their_own():
    study = simulation.study_from_dict(
        {
            "horizon": 50,
            "arms": {"mean": [1, 2], "std": [1, 1]},
            "reward_weight": 0.5,
            "information_kept": [0.7, 0.5],
            "information_about": ["average", "every-arm"],
            "policies": [
                {"name": "ForcingBalance"},
                {"name": "PooledBalance", "information_kept": 0.9},
                {"name": "NaiveUCB"},
            ],
        }
    )
    assert [repr(policy) for policy in study.policies] == [
        "ForcingBalance(reward_weight=0.5)",
        "ForcingBalance(information_kept=0.7)",
        "ForcingBalance(information_kept=0.7, information_about='every-arm')",
        "ForcingBalance(information_kept=0.5)",
        "ForcingBalance(information_kept=0.5, information_about='every-arm')",
        "PooledBalance(information_kept=0.9)",
        "NaiveUCB(reward_weight=0.5)",
    ]
    runs = eq.simulate(study.policies, study.arms, horizon=50, replications=3)
    rows = simulation.summary([runs])
    assert [row.reward_weight for row in rows] == [0.5, None, None, None, None, None, 0.5]
    dial = {"information_kept": 0.7, "information_about": "every-arm"}
    assert rows[2].error_excess == pytest.approx(runs.error_excess(**dial)[2, :, -1].mean())
    assert rows[2].rescaled_shortfall == pytest.approx(runs.rescaled_reward_shortfall(**dial)[2, :, -1].mean())
    assert rows[0].error_excess is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"information_kept": 0}, r"information_kept must be in \(0, 1\]; got 0"),
        ({"information_about": "average"}, "information_about goes with information_kept; got 'average'"),
        ({"information_kept": 0.5, "information_about": "best"}, "information_about must be one of average"),
    ],
)
def test_the_information_of_a_study_is_checked(values, message):
    study = {"horizon": 50, "arms": {"mean": [1], "std": [1]}, "policies": [{"name": "Uniform"}]} | values
    with pytest.raises(eq.InvalidInput, match=message):
        simulation.study_from_dict(study)
