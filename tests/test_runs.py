"""Runs keep what was simulated: as a frame, in a file, in parts and joined again."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest

import equipoise as eq

ARMS = eq.Bernoulli(mean=[0.2, 0.5, 0.6])
POLICIES = [
    eq.ForcingBalance(reward_weight=0.7, floor=[0.1, 0.0, 0.0], objective=eq.PowerObjective(power=1.0)),
    eq.UCB(scale=0.5),
    eq.Uniform(),
]


@pytest.fixture(scope="module")
def runs():
    return eq.simulate(POLICIES, ARMS, 200, 4, seed=9, checkpoints=[2, 20, 200])


def test_shapes_labels_and_words(runs):
    for array in (runs.pulls, runs.mean, runs.std, runs.target, runs.frequency):
        assert array.shape == (3, 4, 3, 3)
    assert runs.labels == tuple(map(repr, POLICIES))
    assert runs.replications.tolist() == [0, 1, 2, 3]
    assert (runs.true_mean.tolist(), runs.true_std.tolist()) == (ARMS.mean.tolist(), ARMS.std.tolist())
    assert runs.arms == ARMS.to_dict()
    assert repr(runs) == "Runs(3 policies, 4 replications, 3 arms, horizon 200, 3 checkpoints)"
    single = runs.select(policies=[1], replications=[2])
    assert repr(single) == "Runs(1 policy, 1 replication, 3 arms, horizon 200, 3 checkpoints)"


def test_pulls_add_up_to_the_checkpoints(runs):
    np.testing.assert_array_equal(runs.pulls.sum(axis=-1), np.broadcast_to(runs.checkpoints, (3, 4, 3)))
    np.testing.assert_allclose(runs.frequency.sum(axis=-1), 1, rtol=1e-15)


def test_a_frame_has_every_number_in_its_place(runs):
    frame = runs.to_frame()
    assert frame.columns == ["policy", "replication", "n", "arm", "pulls", "mean", "std", "target"]
    assert frame.height == runs.pulls.size
    assert frame["policy"].dtype == pl.String
    row = frame.row(
        by_predicate=(pl.col("policy") == repr(POLICIES[1]))
        & (pl.col("replication") == 2)
        & (pl.col("n") == 20)
        & (pl.col("arm") == 1),
        named=True,
    )
    assert row["pulls"] == runs.pulls[1, 2, 1, 1]
    assert row["mean"] == runs.mean[1, 2, 1, 1]
    for name in ("pulls", "mean", "std", "target"):
        column = frame[name].to_numpy().astype(float).reshape(runs.pulls.shape)
        np.testing.assert_array_equal(column, getattr(runs, name))


def test_what_is_not_there_is_null_in_a_frame(runs):
    frame = runs.to_frame()
    early = frame.filter((pl.col("n") == 2) & (pl.col("arm") == 2))
    assert early["mean"].null_count() == early.height
    assert frame.filter(pl.col("policy") == "Uniform()")["target"].null_count() == 4 * 3 * 3
    assert not frame.select(pl.col("mean", "std", "target").is_nan().any()).row(0)[0]
    # So that averages in a frame are over what there is.
    last = frame.filter((pl.col("policy") == "Uniform()") & (pl.col("n") == 200) & (pl.col("arm") == 0))
    assert last["mean"].mean() == pytest.approx(runs.mean[2, :, 2, 0].mean())


def test_frames_need_polars(runs, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    with pytest.raises(eq.MissingExtra, match="Parquet files need polars\nhint: pip install 'equipoise\\[frames\\]'"):
        runs.to_frame()


# Files


def test_a_file_holds_results_and_configuration(runs, tmp_path):
    path = tmp_path / "runs.npz"
    runs.save(path)
    loaded = eq.Runs.load(path)
    assert loaded == runs
    assert loaded.policies == tuple(POLICIES)
    assert loaded.configuration() == runs.configuration()
    for name in ("pulls", "mean", "std", "target", "true_mean", "true_std", "checkpoints", "replications"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(runs, name))
        assert getattr(loaded, name).dtype == getattr(runs, name).dtype
    assert json.loads(json.dumps(loaded.configuration()))["seed"] == 9
    np.testing.assert_array_equal(loaded.regret(reward_weight=0.5), runs.regret(reward_weight=0.5))


def test_a_parquet_file_holds_the_same_and_is_the_frame_for_other_programs(runs, tmp_path):
    path = tmp_path / "runs.parquet"
    runs.save(path)
    loaded = eq.Runs.load(path)
    assert loaded == runs
    assert loaded.policies == tuple(POLICIES)
    assert loaded.arm_names is None
    for name in ("pulls", "mean", "std", "target", "true_mean", "true_std", "checkpoints", "replications"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(runs, name))
        assert getattr(loaded, name).dtype == getattr(runs, name).dtype
    assert pl.read_parquet(path).equals(runs.to_frame())
    some = runs.select(policies=[2], replications=[3, 1])
    some.save(path)
    assert eq.Runs.load(path) == some
    assert [p.name for p in tmp_path.iterdir()] == ["runs.parquet"]


def test_parquet_files_of_others_are_refused(runs, tmp_path):
    path = tmp_path / "runs.parquet"
    runs.to_frame().write_parquet(path)
    with pytest.raises(eq.InvalidInput, match="is not a file of saved runs; it is a table without their configuration"):
        eq.Runs.load(path)
    runs.save(path)
    metadata = {"equipoise": pl.read_parquet_metadata(path)["equipoise"]}
    for frame in (runs.to_frame().reverse(), runs.to_frame().head(5)):
        frame.write_parquet(path, metadata=metadata)
        with pytest.raises(
            eq.InvalidInput, match="is not a file of saved runs; its rows are not those that were saved"
        ):
            eq.Runs.load(path)
    runs.to_frame().write_parquet(path, metadata={"equipoise": json.dumps({"format": "equipoise-runs/9"})})
    with pytest.raises(eq.InvalidInput, match="expected runs in the format equipoise-runs/1; got 'equipoise-runs/9'"):
        eq.Runs.load(path)


@pytest.mark.parametrize("name", ["runs.csv", "runs", "runs.npz.gz"])
def test_other_endings_are_refused_before_anything_is_written(runs, tmp_path, name):
    with pytest.raises(
        eq.InvalidInput, match=r"a file for runs must end in \.npz or \.parquet; got '.*\nhint: runs.to_"
    ):
        runs.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_parquet_files_need_a_polars_that_can_hold_the_configuration(runs, tmp_path, monkeypatch):
    monkeypatch.delattr(pl, "read_parquet_metadata")
    with pytest.raises(eq.MissingExtra, match=r"need polars 1\.30 or newer\nhint: pip install --upgrade polars"):
        runs.save(tmp_path / "runs.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ["npz", "parquet"])
def test_names_of_arms_are_kept(tmp_path, ending):
    arms = eq.Gaussian(mean=[1, 2], std=[1, 1], names=["pie", "number line"])
    runs = eq.simulate([eq.UCB(), eq.Uniform()], arms, 20, 2)
    assert runs.arm_names == ("pie", "number line")
    assert runs.select(replications=[1]).arm_names == runs.arm_names
    frame = runs.to_frame()
    assert frame.columns[3:5] == ["arm", "arm_name"]
    assert frame.select("arm", "arm_name").unique(maintain_order=True).rows() == [(0, "pie"), (1, "number line")]
    path = tmp_path / f"runs.{ending}"
    runs.save(path)
    assert eq.Runs.load(path).arm_names == runs.arm_names
    assert eq.Runs.load(path) == runs
    assert runs != eq.simulate([eq.UCB(), eq.Uniform()], eq.Gaussian(mean=[1, 2], std=[1, 1]), 20, 2)


def test_files_from_before_runs_had_names_load(runs, tmp_path):
    path = tmp_path / "old.npz"
    arrays = ("replications", "checkpoints", "true_mean", "true_std", "pulls", "mean", "std", "target")
    people = eq.simulate(eq.Uniform(), eq.Empirical(values=[[0.0, 1.0], [2.0]], names=["a", "b"]), 10)
    for old, names in ((runs, None), (people, ("a", "b"))):
        header = {"format": "equipoise-runs/1"} | old.configuration()
        np.savez(path, header=np.array(json.dumps(header)), **{name: getattr(old, name) for name in arrays})
        loaded = eq.Runs.load(path)
        assert loaded == old
        assert loaded.arm_names == names


def test_a_loaded_file_says_how_to_go_on(runs, tmp_path):
    path = tmp_path / "results.npz"
    runs.save(path)
    loaded = eq.Runs.load(str(path))
    more = eq.simulate(
        loaded.policies, ARMS, loaded.horizon, range(4, 6), seed=loaded.seed, checkpoints=loaded.checkpoints
    )
    assert eq.Runs.joined([loaded, more]) == eq.simulate(POLICIES, ARMS, 200, 6, seed=9, checkpoints=[2, 20, 200])


@pytest.mark.parametrize(
    "arms",
    [
        eq.Empirical(values=[[0.0, 1.0], [2.0]], names=["a", "b"]),
        eq.Mixed(parts=[eq.Beta(a=[1], b=[2]), eq.Gaussian(mean=[1], std=[0])]),
    ],
)
def test_arms_of_any_kind_are_described_in_the_file(arms, tmp_path):
    runs = eq.simulate(eq.Uniform(), arms, 10)
    runs.save(tmp_path / "runs.npz")
    assert eq.Runs.load(tmp_path / "runs.npz").arms == arms.to_dict()


def test_an_interrupted_save_leaves_the_old_file(runs, tmp_path, monkeypatch):
    path = tmp_path / "runs.npz"
    runs.save(path)
    before = path.read_bytes()

    def no_room(*args, **kwargs):
        raise OSError("no space left on device")

    monkeypatch.setattr("os.fsync", no_room)
    with pytest.raises(OSError, match="no space"):
        runs.select(policies=[0]).save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["runs.npz"]


def test_foreign_files_are_refused(runs, tmp_path):
    path = tmp_path / "runs.npz"
    for content in (b"", b"hello", b"PK\x03\x04 not really", b"\x93NUMPY\x01\x00", b"PAR1 not really"):
        path.write_bytes(content)
        with pytest.raises(eq.InvalidInput, match=r"runs\.npz is not a file of saved runs") as caught:
            eq.Runs.load(path)
        assert "pickle" not in str(caught.value)
    np.savez(path, header=np.array([None]))
    with pytest.raises(eq.InvalidInput, match="is not a file of saved runs; it is damaged, or was written by another"):
        eq.Runs.load(path)
    np.savez(path, header=np.array(json.dumps({"format": "equipoise-runs/1"})))
    with pytest.raises(eq.InvalidInput, match="is not a file of saved runs; an array is missing"):
        eq.Runs.load(path)
    np.savez(path, pulls=np.zeros(3))
    with pytest.raises(eq.InvalidInput, match=r"is not a file of saved runs; .*header"):
        eq.Runs.load(path)
    with path.open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(eq.InvalidInput, match="is not a file of saved runs"):
        eq.Runs.load(path)
    np.savez(path, header=np.array(json.dumps({"format": "equipoise-runs/9"})))
    with pytest.raises(eq.InvalidInput, match="expected runs in the format equipoise-runs/1; got 'equipoise-runs/9'"):
        eq.Runs.load(path)
    np.savez(path, header=np.array("[1, 2]"))
    with pytest.raises(eq.InvalidInput, match="is not a file of saved runs"):
        eq.Runs.load(path)
    runs.save(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(eq.InvalidInput, match="is not a file of saved runs"):
        eq.Runs.load(path)
    with pytest.raises(FileNotFoundError):
        eq.Runs.load(tmp_path / "nothing.npz")


def test_policies_of_ones_own_are_found_by_name(tmp_path):
    @dataclass(frozen=True, kw_only=True, repr=False)
    class Passing(eq.Policy):
        hope: float = 0.5

        def probabilities(self, stats):
            return np.full(stats.n_arms, 1 / stats.n_arms)

    path = tmp_path / "runs.npz"
    eq.simulate(Passing(hope=0.25), ARMS, 10).save(path)
    assert eq.Runs.load(path).policies == (Passing(hope=0.25),)
    del eq.Policy._family["Passing"]
    with pytest.raises(eq.UnknownName, match=r"runs\.npz: unknown policy 'Passing'.*\nhint: import the module"):
        eq.Runs.load(path)


# Parts


def test_parts_are_selected_by_policy_place_or_number(runs):
    part = runs.select(policies=[POLICIES[2], 0], replications=[3, 1])
    assert part.policies == (POLICIES[2], POLICIES[0])
    assert part.replications.tolist() == [3, 1]
    np.testing.assert_array_equal(part.pulls, runs.pulls[[2, 0]][:, [3, 1]])
    assert runs.select() == runs
    assert runs.select(policies=[-1]).policies == (POLICIES[2],)
    assert runs.index_of(eq.UCB(scale=0.5)) == 1
    later = eq.simulate(POLICIES, ARMS, 50, range(10, 14), seed=9, checkpoints=[50])
    assert later.select(replications=[12]).replications.tolist() == [12]


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ({"policies": [3]}, r"policies must be from 0 to 2; got \[3\]"),
        ({"policies": []}, "policies must be some of .*; got none"),
        ({"policies": [eq.GAFS()]}, r"GAFS\(\) was not simulated; there are ForcingBalance.*, UCB.*, Uniform\(\)"),
        ({"replications": [4]}, r"replications must be among those simulated; got \[4\]"),
        ({"replications": []}, "replications must be among those simulated"),
    ],
)
def test_parts_that_are_not_there(runs, selection, message):
    with pytest.raises(eq.InvalidInput, match=message):
        runs.select(**selection)


def test_joining_puts_replications_in_order(runs):
    parts = [runs.select(replications=[k]) for k in (2, 0, 3, 1)]
    assert eq.Runs.joined(parts) == runs
    assert eq.Runs.joined(iter([runs])) == runs


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policies": POLICIES[:2]}, "only runs with the same policies can be joined"),
        ({"arms": eq.Bernoulli(mean=[0.2, 0.5, 0.7])}, "only runs with the same arms can be joined"),
        ({"horizon": 300}, "only runs with the same horizon can be joined; got 200 and 300"),
        ({"seed": 8}, "only runs with the same seed can be joined; got 9 and 8"),
        ({"checkpoints": [2, 200]}, "only runs with the same checkpoints can be joined"),
        ({"replications": range(3, 5)}, "a replication must not be in two of the parts; got 3 more than once"),
    ],
)
def test_what_does_not_belong_together_is_not_joined(runs, change, message):
    same = {"policies": POLICIES, "arms": ARMS, "horizon": 200, "replications": range(4, 6), "seed": 9}
    other = eq.simulate(**(same | {"checkpoints": [2, 20, 200]} | change))
    with pytest.raises(eq.InvalidInput, match=message):
        eq.Runs.joined([runs, other])


def test_nothing_cannot_be_joined():
    with pytest.raises(eq.InvalidInput, match="there must be at least one part to join; got none"):
        eq.Runs.joined([])


def test_runs_are_equal_when_results_and_configuration_are(runs):
    again = eq.simulate(POLICIES, ARMS, 200, 4, seed=9, checkpoints=[2, 20, 200])
    assert again == runs
    assert runs != eq.simulate(POLICIES, ARMS, 200, 4, seed=10, checkpoints=[2, 20, 200])
    assert runs != "runs"
    again.pulls[0, 0, 0, 0] += 1
    assert again != runs
    with pytest.raises(TypeError, match="unhashable"):
        hash(runs)
