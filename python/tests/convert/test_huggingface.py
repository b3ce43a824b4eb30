"""Data sets of Hugging Face, both ways."""

from __future__ import annotations

import numpy as np
import pytest

import fencepost
from fencepost.convert import SourceError, from_huggingface, to_huggingface

from .support import graphs, holds, refused

datasets = pytest.importorskip("datasets")
datasets.disable_progress_bars()


def lists(samples):
    return [{name: value if isinstance(value, str) else value.tolist() for name, value in sample.items()} for sample in samples]


def full(count):
    return [sample for sample in graphs(4 * count) if len(sample["x"])][:count]


def features(samples):
    out = {}
    for name, value in samples[0].items():
        kind = datasets.Value("string" if isinstance(value, str) else value.dtype.name)
        for _ in range(getattr(value, "ndim", 0)):
            kind = datasets.List(kind)
        out[name] = kind
    return datasets.Features(out)


def made(samples):
    return datasets.Dataset.from_list(lists(samples), features=features(samples))


def test_in(tmp_path):
    samples = full(30)
    source = made(samples)
    holds(from_huggingface(source, tmp_path / "a.fence"), samples)
    holds(from_huggingface(source.select([7, 3, 29]).with_format("numpy"), tmp_path / "a.fence"), [samples[i] for i in (7, 3, 29)])
    holds(from_huggingface(source.filter(lambda row: row["label"] % 2 == 0), tmp_path / "a.fence"), [s for s in samples if s["label"] % 2 == 0])
    holds(from_huggingface(source.to_iterable_dataset(), tmp_path / "a.fence"), samples)
    source.save_to_disk(tmp_path / "disk")
    less = [{name: value for name, value in sample.items() if name != "name"} for sample in samples]
    holds(from_huggingface(tmp_path / "disk", tmp_path / "a.fence", skip=["name"]), less)


def test_arrays_of_its_own_type(tmp_path):
    kinds = datasets.Features({"m": datasets.Array2D((None, 3), "float32"), "f": datasets.Array2D((2, 2), "int64")})
    rows = [{"m": np.full((n, 3), n, np.float32), "f": np.full((2, 2), n)} for n in range(1, 6)]
    holds(from_huggingface(datasets.Dataset.from_list(rows, features=kinds), tmp_path / "a.fence"), rows)


def test_there_and_back(tmp_path):
    with fencepost.Writer(tmp_path / "a.fence", metadata={"a": 1}) as writer:
        writer.extend(graphs(50))
    expected = (tmp_path / "a.fence").read_bytes()
    out = to_huggingface(tmp_path / "a.fence")
    found = out.with_format("numpy")[7]
    assert found["name"] == "graph 7 é" and np.array_equal(found["z"], graphs(50)[7]["z"])
    assert out.remove_columns(["num_nodes"])[:3]["label"] == [0, 1, 2]
    from_huggingface(out, tmp_path / "b.fence")
    assert (tmp_path / "b.fence").read_bytes() == expected
    out.save_to_disk(tmp_path / "disk")
    from_huggingface(tmp_path / "disk", tmp_path / "b.fence")
    assert (tmp_path / "b.fence").read_bytes() == expected
    order = np.random.default_rng(0).permutation(50)
    holds(from_huggingface(out.select(order), tmp_path / "b.fence"), [graphs(50)[i] for i in order])


def test_what_is_refused(tmp_path):
    source = made(full(3))
    refused(lambda out: from_huggingface(datasets.DatasetDict(train=source), out), tmp_path, SourceError, "expected one split, found those named train")
    refused(lambda out: from_huggingface(source.select([]), out), tmp_path, SourceError, "at least one row")
    refused(lambda out: from_huggingface(tmp_path / "none", out), tmp_path, SourceError, "none: expected a folder that save_to_disk wrote")
    nested = datasets.Dataset.from_list([{"v": {"a": 1}}])
    refused(lambda out: from_huggingface(nested, out), tmp_path, SourceError, "dataset: v: expected numbers.*found struct")
    odd = datasets.Dataset.from_list([{"v": [1]}, {"v": None}])
    refused(lambda out: from_huggingface(odd, out), tmp_path, SourceError, "dataset: row 1: v: expected .* found no value")
