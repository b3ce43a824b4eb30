"""Random lists of `Data` and `HeteroData`: every sample, and a random batch of them, against PyG."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import fencepost.pyg
import pytest
import torch
from fencepost.pyg import MappedDataset
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data, HeteroData

from .support import BACKINGS, Reference, batch_of, same, same_batch

DTYPES = [torch.float32, torch.float64, torch.int64, torch.int32, torch.uint8, torch.bool, torch.float16, torch.bfloat16]
KEYS = ["x", "pos", "y", "edge_index", "edge_attr", "face", "my_index", "z", "node_type", "atom_batch", "a.b", "text", "n", "f", "d", "l"]


def tensor(draw: Any, shape: list[int], dtype: torch.dtype, high: int) -> torch.Tensor:
    seed = draw(st.integers(0, 2**20))
    generator = torch.Generator().manual_seed(seed)
    if dtype.is_floating_point:
        out = torch.randn(shape, generator=generator)
        # Signs of zero and infinities have to survive, too.
        return torch.where(out > 1.5, -0.0 * out.abs(), torch.where(out < -1.5, torch.inf, out)).to(dtype)
    return torch.randint(0, max(high, 1), shape, generator=generator).to(dtype)


@st.composite
def makers(draw: Any) -> Any:
    """For each of some keys, what its values look like in every sample."""
    keys = draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=7, unique=True))
    out = {}
    for key in keys:
        if key in ("text", "n", "f", "d", "l"):
            out[key] = None
        elif "index" in key or key == "face" or key.endswith("batch"):
            rows = {"edge_index": [2], "face": [3]}.get(key, [])
            out[key] = rows, draw(st.sampled_from([torch.int64, torch.int32] if not key.endswith("batch") else [torch.int64])), True
        else:
            out[key] = draw(st.lists(st.integers(0, 3), max_size=2)), draw(st.sampled_from(DTYPES)), False
    if not {"x", "pos", "node_type", "edge_index", "face"} & set(keys):
        # PyG cannot increment indices by a number of nodes that it does not know.
        out["num_nodes"] = None
    elif draw(st.booleans()):
        out["num_nodes"] = None
    return out


def fill(draw: Any, store: Any, made: Any, nodes: int) -> None:
    for key, spec in made.items():
        if key == "num_nodes":
            store[key] = nodes
        elif key == "text":
            store[key] = draw(st.text(max_size=5))
        elif key == "n":
            store[key] = draw(st.integers(-(2**63), 2**63 - 1))
        elif key == "f":
            store[key] = draw(st.floats(width=32))
        elif key == "d":
            store[key] = {"a": tensor(draw, [nodes], torch.float32, 1), "b": draw(st.integers(0, 5))}
        elif key == "l":
            store[key] = [tensor(draw, [draw(st.integers(0, 2)), 2], torch.float64, 1)]
        else:
            fixed, dtype, index = spec
            length = nodes if key in ("x", "pos", "node_type") else draw(st.integers(1 if key.endswith("batch") else 0, 4))
            shape = [*fixed, length] if index else [length, *fixed]
            store[key] = tensor(draw, shape, dtype, nodes)


@st.composite
def data_lists(draw: Any) -> list[Data]:
    made = draw(makers())
    out = []
    for _ in range(draw(st.integers(2, 6))):
        data = Data()
        fill(draw, data, made, draw(st.integers(1, 5)))
        out.append(data)
    return out


@st.composite
def hetero_lists(draw: Any) -> list[HeteroData]:
    types = draw(st.lists(st.sampled_from(["a", "b", "c d", "e__f"]), min_size=1, max_size=3, unique=True))
    ends = draw(st.lists(st.tuples(st.sampled_from(types), st.sampled_from(["to", "in"]), st.sampled_from(types)), max_size=2, unique=True))
    made = {kind: {"x": ([2], torch.float32, False), **({"text": None} if draw(st.booleans()) else {})} for kind in types}
    out = []
    for _ in range(draw(st.integers(2, 5))):
        data = HeteroData()
        data.y = draw(st.integers(0, 3))
        for kind in types:
            fill(draw, data[kind], made[kind], draw(st.integers(1, 4)))
        for source, name, target in ends:
            edges = draw(st.integers(0, 4))
            data[source, name, target].edge_index = torch.stack(
                [
                    tensor(draw, [edges], torch.int64, data[source].x.size(0)),
                    tensor(draw, [edges], torch.int64, data[target].x.size(0)),
                ]
            )
            data[source, name, target].w = tensor(draw, [edges], torch.float64, 1)
        out.append(data)
    return out


def check(samples: list[Any], indices: list[int], backing: str) -> None:
    reference = Reference(samples)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.fence"
        MappedDataset.save(samples, path)
        dataset = fencepost.pyg.open(path, backing=backing)
        for i in range(len(samples)):
            same(dataset[i], reference[i], f"sample {i}")
        indices = [i % len(samples) for i in indices]
        ours, theirs = dataset._file().batch(indices), batch_of(reference, indices)
        same_batch(ours, theirs)
        for i in range(len(indices)):
            same(ours[i], theirs[i], f"batch[{i}]")
        strict = fencepost.pyg.open(path, strict=True)
        for i, data in enumerate(samples):
            same(strict[i], data, f"strict sample {i}")


SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@pytest.mark.filterwarnings("ignore:Unable to accurately infer")
@SETTINGS
@given(data_lists(), st.lists(st.integers(0, 5), min_size=1, max_size=6), st.sampled_from(BACKINGS))
def test_data(samples: list[Data], indices: list[int], backing: str) -> None:
    check(samples, indices, backing)


@SETTINGS
@given(hetero_lists(), st.lists(st.integers(0, 4), min_size=1, max_size=6), st.sampled_from(BACKINGS))
def test_hetero(samples: list[HeteroData], indices: list[int], backing: str) -> None:
    check(samples, indices, backing)
