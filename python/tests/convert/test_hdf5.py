"""Files that h5py wrote: arrays with tables of offsets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fencepost.convert import SourceError, from_hdf5

from .support import graphs, holds, refused

h5py = pytest.importorskip("h5py")


def whole(samples: list[dict[str, Any]]) -> dict[str, Any]:
    """Samples as whole arrays with tables."""
    nodes = np.cumsum([0, *(len(sample["x"]) for sample in samples)])
    edges = np.cumsum([0, *(sample["edge_index"].shape[1] for sample in samples)])
    return {
        "nodes_offsets": nodes, "edges_offsets": edges.astype(np.uint32),
        **{name: np.concatenate([sample[name] for sample in samples]) for name in ("x", "mask", "z", "edge_attr")},
        "edge_index": np.concatenate([sample["edge_index"] for sample in samples], axis=1),
        **{name: np.array([sample[name] for sample in samples]) for name in ("y", "label")},
        "name": [sample["name"] for sample in samples],
    }  # fmt: skip


def file(path: Path, arrays: dict[str, Any], group: str = "/", **options: Any) -> Path:
    with h5py.File(path, "w") as out:
        for name, array in arrays.items():
            out.require_group(group).create_dataset(name, data=array, **options)
    return path


@pytest.mark.parametrize("budget", [1, 500, 8 << 20])
def test_round_trip(tmp_path, monkeypatch, budget):
    monkeypatch.setattr("fencepost.convert._hdf5.ROWS", 7)
    monkeypatch.setattr("fencepost.convert._hdf5.BYTES", budget)
    samples = graphs(40)
    dataset = from_hdf5(file(tmp_path / "a.h5", whole(samples)), tmp_path / "a.fence")
    holds(dataset, samples)
    assert dataset.schema["edge_index"].shape == (2, "edges") and dataset.schema["edge_index"].increment == "nodes"
    assert dataset.schema["x"].shape == ("nodes", 3) and dataset.schema["label"].shape == ()


@st.composite
def arrays(draw: Any) -> tuple[dict[str, Any], dict[str, str], list[dict[str, Any]]]:
    """Whole arrays of any dtype that h5py writes, the axes that they go along, and the samples that they stand for."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.integers(1, 6))
    tables = {axis: np.cumsum([0, *rng.integers(0, 4, count)]) for axis in ("nodes", "edges")}
    out: dict[str, Any] = {f"{axis}_offsets": table.astype(draw(st.sampled_from("iIlQ"))) for axis, table in tables.items()}
    along: dict[str, str] = {}
    samples: list[dict[str, Any]] = [{} for _ in range(count)]
    for index in range(draw(st.integers(1, 4))):
        kind = np.dtype(draw(st.sampled_from(["?", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16"])))
        if kind.kind != "b":
            kind = kind.newbyteorder(draw(st.sampled_from("<>")))
        axis = draw(st.sampled_from([None, "nodes", "edges"]))
        last = axis is not None and draw(st.booleans())
        name, shape = f"index{index}" if last else f"a{index}", draw(st.lists(st.integers(1, 3), max_size=2))
        length = count if axis is None else int(tables[axis][-1])
        shape = [*shape, length] if last else [length, *shape]
        bits = rng.integers(0, 2 if kind.kind == "b" else 256, int(np.prod(shape)) * kind.itemsize, dtype=np.uint8)
        out[name] = bits.view(kind).reshape(shape)
        along |= {name: axis} if axis is not None else {}
        for number, sample in enumerate(samples):
            cut = number if axis is None else slice(tables[axis][number], tables[axis][number + 1])
            sample[name] = out[name][(..., cut) if last else cut]
    return out, along, samples


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(arrays())
def test_any_arrays(tmp_path, case):
    whole_arrays, along, samples = case
    path = file(tmp_path / "a.h5", whole_arrays)
    rows = [name for name in whole_arrays if name not in along and not name.endswith("_offsets")]
    holds(from_hdf5(path, tmp_path / "a.fence", along=along, per_sample=rows), samples)


def test_compressed_chunks_big_endian_groups_and_names_of_tables(tmp_path):
    samples = graphs(30)
    arrays = whole(samples)
    arrays["x"], arrays["y"] = arrays["x"].astype(">f4"), arrays["y"].astype(">f8")
    arrays["node_ptr"] = arrays.pop("nodes_offsets")
    path = file(tmp_path / "a.h5", arrays, "sets/train", chunks=True, compression="gzip")
    holds(from_hdf5(path, tmp_path / "a.fence", group="sets/train", tables={"nodes": "node_ptr"}), samples)


def test_rows_of_variable_length_strings_and_other_types(tmp_path):
    rng = np.random.default_rng(3)
    words = [[f"w{index}"] * (index % 3) for index in range(8)]
    with h5py.File(tmp_path / "a.h5", "w") as out:
        out["words_offsets"] = np.cumsum([0, *map(len, words)])
        out["words"] = [word for row in words for word in row]
        rows = out.create_dataset("rows", (8,), dtype=h5py.vlen_dtype(np.int16))
        for index in range(8):
            rows[index] = np.arange(index)
        out["fixed"] = np.array([b"ab", b"c"] * 4)
        out["complex"] = rng.random(8) * 1j
        out["half"] = rng.random((8, 2)).astype(np.float16)
        out["pairs"] = [["a", f"{index}"] for index in range(8)]
        expected = {name: out[name][:] for name in ("complex", "half")}
    dataset = from_hdf5(tmp_path / "a.h5", tmp_path / "a.fence")
    holds(
        dataset,
        [
            {
                "words": words[index], "rows": np.arange(index, dtype=np.int16), "fixed": "ab" if index % 2 == 0 else "c",
                "complex": expected["complex"][index], "half": expected["half"][index], "pairs": ["a", f"{index}"],
            }
            for index in range(8)
        ],
    )  # fmt: skip


def test_where_lengths_leave_a_choice(tmp_path):
    arrays = {"a_offsets": [0, 2, 4], "b_offsets": [0, 3, 4], "v": np.arange(4), "w": np.arange(4)}
    path = file(tmp_path / "a.h5", arrays)
    refused(lambda out: from_hdf5(path, out), tmp_path, SourceError, r"v: expected a length that fits one axis.*a and b.*along=")
    dataset = from_hdf5(path, tmp_path / "a.fence", along={"v": "a", "w": "b"})
    holds(dataset, [{"v": np.array([0, 1]), "w": np.array([0, 1, 2])}, {"v": np.array([2, 3]), "w": np.array([3])}])
    assert dataset.schema["v"].shape == ("a",)
    path = file(tmp_path / "b.h5", {"offsets": [0, 1, 2], "v": [5, 6]})
    refused(lambda out: from_hdf5(path, out), tmp_path, SourceError, "a row for each sample")
    holds(from_hdf5(path, tmp_path / "a.fence", per_sample=["v"]), [{"v": np.int64(5)}, {"v": np.int64(6)}])
    holds(from_hdf5(path, tmp_path / "a.fence", along={"v": "rows"}), [{"v": np.array([5])}, {"v": np.array([6])}])


@pytest.mark.parametrize(
    ("change", "options", "match"),
    [
        ({"x": np.zeros((5, 3), np.float32)}, {}, r"x: expected a length of .* nodes.*found the shape \[5, 3\]"),
        ({"nodes_offsets": [0.0, 1.0]}, {}, "nodes_offsets: expected a table of integers"),
        ({"nodes_offsets": np.ones(41, np.int64)}, {}, "entry 0: nodes_offsets: expected 0, found 1.*summed"),
        ({"nodes_offsets": np.arange(5)}, {}, "edges_offsets: expected 5 entries.*found 41"),
        ({"odd": np.zeros(40, "S3").view("V3")}, {}, "odd: expected a dtype that files have"),
        ({"scalar": 3}, {}, "scalar: expected an array.*skip="),
        ({}, {"group": "none"}, "expected a group none"),
        ({}, {"along": {"none": "nodes"}}, "none: expected an array of this name"),
        ({}, {"along": {"x": "none"}}, "x: expected a table for the axis none"),
        ({}, {"tables": {"none": "x_ptr"}}, "x_ptr: expected an array of this name"),
        ({}, {"skip": ["nodes_offsets", "edges_offsets"]}, "expected a table of offsets: .*found the arrays"),
    ],
)
def test_arrays_that_do_not_fit(tmp_path, change, options, match):
    path = file(tmp_path / "a.h5", whole(graphs(40)) | change)
    error = refused(lambda out: from_hdf5(path, out, **options), tmp_path, SourceError, match)
    assert error.path == str(path)


def test_offsets_that_lie(tmp_path, monkeypatch):
    monkeypatch.setattr("fencepost.convert._hdf5.ROWS", 7)
    arrays = whole(graphs(40))
    for value in (-1, 10**12, 0):
        offsets = arrays["nodes_offsets"].copy()
        offsets[23] = value
        path = file(tmp_path / "a.h5", arrays | {"nodes_offsets": offsets})
        refused(lambda out, path=path: from_hdf5(path, out), tmp_path, SourceError, "entry 2[34]: nodes_offsets: expected an offset in")


def test_hostile(tmp_path):
    refused(lambda out: from_hdf5(tmp_path / "none.h5", out), tmp_path, FileNotFoundError, "none.h5: expected a file of HDF5")
    path = file(tmp_path / "a.h5", whole(graphs(40)))
    bytes_ = path.read_bytes()
    for size in (0, 100, len(bytes_) // 2, len(bytes_) - 1):
        path.write_bytes(bytes_[:size])
        refused(lambda out: from_hdf5(path, out), tmp_path, SourceError, "a.h5: expected a file of HDF5")
    arrays = {name: array for name, array in whole(graphs(400)).items() if name != "name"}
    path = file(tmp_path / "a.h5", arrays, chunks=True, fletcher32=True, compression="gzip")
    with h5py.File(path) as opened:
        place = opened["x"].id.get_chunk_info(0).byte_offset
    with open(path, "r+b") as out:
        out.seek(place + 20)
        out.write(b"\xff" * 8)
    refused(lambda out: from_hdf5(path, out), tmp_path, SourceError, r"samples \d+\.\.\d+: x: expected values, found some that HDF5")
    assert sorted(os.listdir(tmp_path)) == ["a.h5", "out"]


def test_a_schema_of_the_users(tmp_path):
    """Whose indices are checked, as those of any declared schema."""
    arrays = {"nodes_offsets": [0, 2, 3], "edges_offsets": [0, 2, 3], "x": np.zeros((3, 1)), "edge_index": [[0, 1, 0], [1, 0, 7]]}
    path, along = file(tmp_path / "a.h5", arrays), {"x": "nodes", "edge_index": "edges"}
    found = from_hdf5(path, tmp_path / "a.fence", along=along)
    refused(lambda out: from_hdf5(path, out, along=along, schema=found.schema), tmp_path, SourceError, "sample 1: edge_index: .*7")
