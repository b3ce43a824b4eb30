"""Batches: values, boundaries, increments; memory that is used again, and never too early."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from conftest import graphs, write

import fencepost
from fencepost import Attribute, Schema


def expected(samples: list[dict]) -> dict:
    nodes = np.cumsum([0] + [len(sample["x"]) for sample in samples])
    out = {name: np.concatenate([sample[name] for sample in samples]) for name in ("x", "edge_attr", "y", "mask")}
    edges = [sample["edge_index"] + start for sample, start in zip(samples, nodes, strict=False)]
    out["edge_index"] = np.concatenate(edges, axis=1)
    out["ptr"] = nodes
    out["batch"] = np.repeat(np.arange(len(samples)), np.diff(nodes))
    return out


def check(batch: fencepost.Batch, samples: list[dict]) -> None:
    wanted = expected(samples)
    assert set(batch.keys()) == set(wanted) == set(batch)
    for name, value in wanted.items():
        assert (batch[name].dtype, batch[name].shape) == (value.dtype, value.shape), name
        assert batch[name].tobytes() == value.tobytes(), name


@pytest.mark.parametrize("indices", [[3, 1, 2], [5], [-1, 0, 0], range(50), np.arange(50) % 2 == 0, slice(4, 20, 3)], ids=str)
def test_batches(dataset, samples, indices):
    batch = dataset.batch(indices)
    positions = range(50)[indices] if isinstance(indices, slice) else np.arange(50)[np.asarray(indices)]
    check(batch, [samples[position] for position in positions])
    assert batch.num_samples == len(positions) and batch.indices.tolist() == [int(position) for position in positions]
    nodes = [len(samples[position]["x"]) for position in positions]
    edges = [samples[position]["edge_index"].shape[1] for position in positions]
    assert batch.ptr("nodes").tolist() == batch.slices("x").tolist() == np.cumsum([0, *nodes]).tolist()
    assert batch.slices("edge_index").tolist() == batch.ptr("edges").tolist() == np.cumsum([0, *edges]).tolist()
    assert batch.slices("y").tolist() == list(range(len(positions) + 1))
    assert batch.increments("edge_index").tolist() == np.cumsum([0, *nodes])[:-1].tolist()
    assert batch.increments("x") is None and batch.valid("x") is None
    assert batch.batch_vector().tolist() == batch["batch"].tolist()
    assert batch.batch_vector("edges").tolist() == np.repeat(np.arange(len(positions)), edges).tolist()


def test_options(dataset, samples):
    batch = dataset.batch([3, 4, 8], follow_batch=["edge_attr"], exclude_keys="y")
    assert "y" not in batch and batch["edge_attr_batch"].tolist() == batch.batch_vector("edges").tolist()
    assert batch["edge_attr_ptr"].tolist() == batch.ptr("edges").tolist()
    batch = dataset.batch([4, 8], padded=["x"], flat=["edge_index"])
    longest = max(len(samples[4]["x"]), len(samples[8]["x"]))
    assert batch["x"].shape == (2, longest, 11) and batch["x_mask"].shape == (2, longest)
    assert batch["x"][1, : len(samples[8]["x"])].tobytes() == samples[8]["x"].tobytes()
    assert batch["edge_index_shape"].tolist() == [list(samples[i]["edge_index"].shape) for i in (4, 8)]
    with pytest.raises(KeyError, match="no attribute"):
        dataset.batch([1], padded=["z"])
    with pytest.raises(KeyError, match="no field named \"z\": this batch has x"):
        batch["z"]
    with pytest.raises(fencepost.UnsupportedError, match="one index"):
        dataset.batch(3)
    with pytest.raises(IndexError):
        dataset.batch([50])
    assert len(dataset.batch([])["x"]) == 0


def test_optional_attributes_and_strings(tmp_path):
    schema = Schema([Attribute("y", "f64", [], optional=True), Attribute("s", "utf8", []), Attribute("t", "bytes", ["n"])])
    samples = [{"y": 1.5 if i % 2 else None, "s": "ü" * i, "t": [b"\0" * k for k in range(i)]} for i in range(5)]
    dataset = fencepost.open(write(tmp_path / "a.fence", samples, schema=schema))
    batch = dataset.batch([4, 1, 0])
    assert batch.strings("s") == ["ü" * 4, "ü", ""] and batch.strings("t") == [b"", b"\0", b"\0\0", b"\0\0\0", b""]
    assert batch.slices("t").tolist() == [0, 4, 5, 5]
    assert batch["s"].tobytes().decode() == "üüüüü" and batch["s_offsets"].tolist() == [0, 8, 10, 10]
    assert batch.valid("y").tolist() == [False, True, False] and batch["y"].tolist() == [0.0, 1.5, 0.0]
    with pytest.raises(fencepost.UnsupportedError, match="holds f64, not strings"):
        batch.strings("y")
    batch["s_offsets"][1] = 2**40
    with pytest.raises(fencepost.UnsupportedError, match="changed"):
        batch.strings("s")


def test_a_batch_that_cannot_be_made_names_the_sample(tmp_path):
    schema = Schema([Attribute("m", "i64", ["n", "k"])])
    dataset = fencepost.open(write(tmp_path / "a.fence", [{"m": np.zeros((2, k), int)} for k in (3, 3, 4)], schema=schema))
    with pytest.raises(fencepost.BatchError, match="sample 2 cannot be batched") as caught:
        dataset.batch([0, 1, 2])
    assert caught.value.sample == 2 and isinstance(caught.value.__cause__, fencepost.Error)


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def test_memory_is_used_again_when_nobody_has_it(dataset):
    batch = dataset.batch(range(20))
    first = address(batch["x"])
    assert first % 64 == 0
    del batch
    again = dataset.batch(range(20))
    assert address(again["x"]) == first
    kept = again["x"][3:]
    expected = kept.copy()
    del again
    other = dataset.batch(range(20, 40))
    assert address(other["x"]) != first, "a view of a view still has it"
    assert kept.tobytes() == expected.tobytes()
    del kept
    gc.collect()
    assert first in [address(batch["x"]) for batch in [dataset.batch(range(20)) for _ in range(3)]]


def test_batches_may_be_written_to_and_the_file_does_not_change(path, dataset, samples):
    before = path.read_bytes()
    batch = dataset.batch([1, 2])
    for name in batch:
        assert batch[name].flags.writeable
        batch[name][...] = 1
    assert batch["x"].min() == 1, "two arrays of a field share their memory"
    assert path.read_bytes() == before
    check(dataset.batch([1, 2]), [samples[1], samples[2]])


def test_a_list_of_all_batches_has_them_all(tmp_path):
    samples = graphs(400, seed=9)
    dataset = fencepost.open(write(tmp_path / "a.fence", samples))
    for workers in (0, 2):
        batches = list(fencepost.Loader(dataset, batch_size=16, num_workers=workers))
        assert len({address(batch["x"]) for batch in batches}) == 25
        for number, batch in enumerate(batches):
            check(batch, samples[16 * number : 16 * number + 16])


def test_several_axes_of_nodes(tmp_path):
    schema = Schema(
        [Attribute("a", "f32", ["users"]), Attribute("b", "f32", ["items", 2]), Attribute("c", "i64", ["other"])],
        axes=["counted"],
    )
    with fencepost.Writer(tmp_path / "a.fence", schema) as writer:
        for i in range(4):
            sample = {"a": np.ones(i, "f4"), "b": np.ones((2 * i, 2), "f4"), "c": np.arange(3)}
            writer.append(sample, axes={"counted": i + 5})
    dataset = fencepost.open(tmp_path / "a.fence")
    asked = {"node_axes": ["items", "counted"]}
    batches = [dataset.batch([3, 1], **asked), next(iter(fencepost.Loader(dataset, 2, indices=[3, 1], **asked)))]
    for batch in batches:
        assert batch["ptr"].tolist() == [0, 6, 8] and batch["batch"].tolist() == [0] * 6 + [1] * 2
        # An axis that no attribute has is counted, too.
        assert batch["counted_ptr"].tolist() == [0, 8, 14] and batch["counted_batch"].tolist() == [0] * 8 + [1] * 6
        assert batch.ptr("counted").tolist() == [0, 8, 14]
    assert "ptr" not in dataset.batch([1]) and "ptr" not in dataset.batch([1], node_axes=[])
    with pytest.raises(KeyError, match="no axis"):
        dataset.batch([1], node_axes=["nothing"])
