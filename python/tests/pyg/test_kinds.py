"""Every kind of attribute: what `get`, `Batch` and a batch taken apart give, against PyG, over all backings."""

from __future__ import annotations

import pickle
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fencepost.pyg
import numpy as np
import pytest
import torch
from fencepost.pyg import MappedDataset, MismatchError, PickleError
from torch_geometric.data import Batch, Data, HeteroData, TemporalData
from torch_geometric.edge_index import EdgeIndex
from torch_geometric.index import Index

from .support import BACKINGS, Reference, batch_of, molecules, same, same_batch

Pair = namedtuple("Pair", "a b")
COUNT = 5


def each(make: Callable[[int], Any], key: str = "value", **more: Callable[[int], Any]) -> list[Data]:
    """Samples with two nodes and more, and this value."""
    out = []
    for i in range(COUNT):
        data = Data(x=torch.full((i + 2, 3), float(i)))
        data[key] = make(i)
        for name, other in more.items():
            data[name] = other(i)
        out.append(data)
    return out


def dtype_samples(dtype: torch.dtype) -> list[Data]:
    def make(i: int) -> torch.Tensor:
        size = torch.tensor([], dtype=dtype).element_size()
        raw = torch.arange(i * 16, i * 16 + (i + 1) * size * 2, dtype=torch.int64).remainder(
            2 if dtype == torch.bool else 120
        )
        return raw.to(torch.uint8).view(dtype).reshape(i + 1, 2) if dtype != torch.bool else (raw > 0).reshape(i + 1, 2)

    return each(make)


class Ownrules(Data):
    """A class with rules of its own for batching."""

    def __inc__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        if key == "edge_index_s":
            return self.x_s.size(0)
        if key == "both":
            return torch.tensor([[self.x_s.size(0)], [7]])
        return super().__inc__(key, value, *args, **kwargs)

    def __cat_dim__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        if key == "stacked":
            return None
        return super().__cat_dim__(key, value, *args, **kwargs)


def own_rules() -> list[Data]:
    return [
        Ownrules(
            x=torch.randn(i + 2, 2),
            x_s=torch.randn(i + 1, 2),
            edge_index_s=torch.randint(0, i + 1, (2, i)),
            both=torch.randint(0, i + 1, (2, 3)),
            edge_index=torch.randint(0, i + 2, (2, 2 * i)),
            stacked=torch.full((4,), i),
            scalar=torch.tensor(i),
        )
        for i in range(COUNT)
    ]


def hetero(i: int) -> HeteroData:
    data = HeteroData()
    data.y = torch.tensor([i])
    data["paper"].x = torch.randn(i + 2, 3)
    data["author"].x = torch.randn(2 * i + 1, 2)
    data["author"].my_index = torch.arange(2 * i + 1)
    data["venue.name__odd"].num_nodes = 3 + i
    data["venue.name__odd"].year = [1990, i]
    data["author", "writes", "paper"].edge_index = torch.stack(
        [torch.randint(0, 2 * i + 1, (4,)), torch.randint(0, i + 2, (4,))]
    )
    data["author", "writes", "paper"].edge_attr = torch.randn(4, 2)
    data["paper", "in", "venue.name__odd"].edge_index = torch.zeros(2, i, dtype=torch.int64)
    return data


def edge_index(i: int) -> EdgeIndex:
    columns = torch.sort(torch.randint(0, i + 2, (2 * i + 2,))).values
    return EdgeIndex(
        torch.stack([columns, torch.randint(0, i + 2, (2 * i + 2,))]), sparse_size=(i + 2, i + 2), sort_order="row"
    )


def narrow_hetero(i: int) -> HeteroData:
    """PyG adds int64 to indices of edge stores, whatever their dtype; a 1-dim one becomes two rows in its batches."""
    data = HeteroData()
    data["a"].x = torch.randn(i + 1, 2)
    data["b"].x = torch.randn(i + 2, 2)
    data["a", "to", "b"].edge_index = torch.zeros(2, i, dtype=torch.int32)
    return data


def flat_index_hetero(i: int) -> HeteroData:
    data = narrow_hetero(i)
    data["a", "to", "b"].some_index = torch.arange(i + 1)
    data["a"].some_batch = torch.arange(i + 1)
    return data


KINDS: dict[str, Callable[[], list[Any]]] = {
    "molecules": lambda: molecules(COUNT),
    "0-dim": lambda: each(lambda i: torch.tensor(i * 1.5)),
    "fixed [1, 19]": lambda: each(lambda i: torch.randn(1, 19)),
    "three dimensions": lambda: each(lambda i: torch.randn(i, 2, 3)),
    "empty": lambda: each(lambda i: torch.empty(0, 4)),
    "empty at times": lambda: each(lambda i: torch.randn(i % 2, 4)),
    "face": lambda: each(lambda i: torch.randint(0, i + 2, (3, i + 1)), "face"),
    "one-dimensional index": lambda: each(lambda i: torch.arange(i + 1), "node_index"),
    "int32 edge_index": lambda: each(lambda i: torch.zeros(2, i, dtype=torch.int32), "edge_index"),
    "float index": lambda: each(lambda i: torch.arange(i + 1.0), "float_index"),
    "bool index": lambda: each(lambda i: torch.ones(i + 1, dtype=torch.bool), "mask_index"),
    "index without nodes": lambda: [Data(y=torch.tensor([i]), pos=torch.ones(i + 1, 3)) for i in range(COUNT)],
    "0-dim index": lambda: each(lambda i: torch.tensor(i), "root_index"),
    "int": lambda: each(lambda i: i - 2),
    "int index": lambda: each(lambda i: i, "root_index"),
    "float": lambda: each(lambda i: 0.1 * i),
    "bool": lambda: each(lambda i: i % 2 == 0),
    "float64": lambda: each(lambda i: np.float64(0.1) * i),
    "int then float": lambda: each(lambda i: i if i < 2 else 0.5),
    "bool then int": lambda: each(lambda i: True if i == 0 else i),
    "int then 0-dim": lambda: each(lambda i: i if i < 2 else torch.tensor(i)),
    "mixed dtypes": lambda: each(lambda i: torch.ones(i + 1, dtype=[torch.float32, torch.float64][i % 2])),
    "float then int tensors": lambda: each(lambda i: torch.ones(i + 1, dtype=[torch.float32, torch.int64][i % 2])),
    "str": lambda: each(lambda i: "C" * i + "é\0"),
    "bytes": lambda: each(lambda i: b"\xff\0" * i),
    "numpy scalar": lambda: each(lambda i: np.float32(i) / 3),
    "numpy array": lambda: each(lambda i: np.arange(i * 2, dtype=np.int16).reshape(i, 2)),
    "set": lambda: each(lambda i: {i, "a"}),
    "list of ints": lambda: each(lambda i: list(range(i))),
    "list of str": lambda: each(lambda i: ["a"] * i),
    "list of lists of tensors": lambda: each(lambda i: [[torch.ones(i)]]),
    "str then int": lambda: each(lambda i: "a" if i < 2 else i),
    "tuple of numbers": lambda: each(lambda i: (1, 2.5, None)),
    "list of tensors": lambda: each(lambda i: [torch.ones(i), torch.ones(i + 1, 2), 3]),
    "tuple of tensors": lambda: each(lambda i: (torch.ones(i), torch.zeros(1))),
    "namedtuple of tensors": lambda: each(lambda i: Pair(torch.ones(i), torch.zeros(1))),
    "list of edge indices": lambda: each(lambda i: [torch.zeros(2, i, dtype=torch.int64)], "adj_index"),
    "dict": lambda: each(
        lambda i: {"a": torch.ones(i), "edge_index": torch.zeros(2, 3, dtype=torch.int64), "n": i, "s": "x", "d": {"e": torch.ones(2)}}
    ),
    "dict with int keys": lambda: each(lambda i: {1: torch.ones(i), "x": "y"}),
    "empty dict": lambda: each(lambda i: {}),
    "num_nodes": lambda: each(lambda i: i + 9, "num_nodes", edge_index=lambda i: torch.zeros(2, i, dtype=torch.int64)),
    "num_nodes in front": lambda: [Data(num_nodes=i + 1, y=torch.tensor([i])) for i in range(COUNT)],
    "edges only": lambda: [Data(edge_index=torch.tensor([[0, i], [i, 1]])) for i in range(COUNT)],
    "only y": lambda: [Data(y=torch.tensor([i])) for i in range(COUNT)],
    "only n_id": lambda: [Data(n_id=torch.arange(i + 1), some_index=torch.arange(i)) for i in range(COUNT)],
    "a key with node": lambda: [Data(node_species=torch.arange(i + 1)) for i in range(COUNT)],
    "batch": lambda: each(lambda i: torch.arange(i + 1) // 2, "batch"),
    "something_batch": lambda: each(lambda i: torch.arange(i + 1) // 2, "atom_batch"),
    "odd names": lambda: each(
        lambda i: torch.ones(i), "a.b", **{"a b": lambda i: 1, "é": lambda i: "s", "nodes": lambda i: torch.ones(1), "edges": lambda i: torch.ones(i)}
    ),
    "names of the batch's own": lambda: each(
        lambda i: "text", "text", text_offsets=lambda i: torch.ones(i), x_batch=lambda i: torch.arange(i + 1), x_ptr=lambda i: torch.ones(2)
    ),
    "EdgeIndex": lambda: each(edge_index, "edge_index"),
    "EdgeIndex undirected": lambda: each(
        lambda i: EdgeIndex([[0, 1], [1, 0]], sparse_size=(i + 2, i + 2), sort_order="col", is_undirected=True), "edge_index"
    ),
    "EdgeIndex bare": lambda: each(lambda i: EdgeIndex(torch.zeros(2, i, dtype=torch.int32)), "edge_index"),
    "EdgeIndex then Tensor": lambda: each(
        lambda i: edge_index(i) if i < 2 else torch.zeros(2, i, dtype=torch.int64), "edge_index"
    ),
    "Index": lambda: each(lambda i: Index(torch.arange(i + 2), dim_size=i + 3, is_sorted=True), "node_index"),
    "Index bare": lambda: each(lambda i: Index(torch.arange(i + 2)), "group"),
    "sparse coo": lambda: each(lambda i: torch.eye(i + 1).to_sparse_coo()),
    "sparse adj csr": lambda: each(lambda i: torch.eye(i + 2).to_sparse_csr(), "adj_t"),
    "sparse adj csc": lambda: each(lambda i: torch.eye(i + 2).to_sparse_csc(), "adj"),
    "sparse adj coo": lambda: each(lambda i: torch.eye(i + 2).to_sparse_coo(), "adj"),
    "own rules": own_rules,
    "hetero": lambda: [hetero(i) for i in range(COUNT)],
    "hetero int32": lambda: [narrow_hetero(i) for i in range(COUNT)],
    "hetero batch": lambda: [HeteroData({"a": {"x": torch.ones(i + 1, 1), "x_batch": torch.arange(i + 1)}}) for i in range(COUNT)],
    "temporal": lambda: [
        TemporalData(
            src=torch.randint(0, 3, (i + 1,)), dst=torch.randint(3, 9, (i + 1,)), t=torch.arange(i + 1), msg=torch.randn(i + 1, 2)
        )
        for i in range(COUNT)
    ],
    **{
        f"dtype {dtype}": (lambda dtype=dtype: dtype_samples(dtype))
        for dtype in (
            torch.bool, torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.int8, torch.int16, torch.int32, torch.int64,
            torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128,
            torch.float8_e4m3fn, torch.float8_e5m2,
        )
    },
}
#: One type after another: what PyG makes of a batch depends on the sample in front, and may be an error.
UNSTABLE = {"str then int"}
#: torch cannot pickle these by themselves.
NO_PICKLE = {f"dtype torch.{name}" for name in ("uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2")}
#: PyG cannot take these apart; both must say so.
NOT_SEPARABLE = {"sparse adj csr", "sparse adj csc", "sparse adj coo"}


@pytest.fixture(params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.filterwarnings("ignore:Unable to accurately infer")
@pytest.mark.filterwarnings("ignore:Sparse CS")
def test_kind(kind: str, tmp_path: Path) -> None:
    torch.manual_seed(3)
    samples = KINDS[kind]()
    reference = Reference(samples)
    MappedDataset.save(samples, tmp_path / "a.fence")
    for backing in BACKINGS:
        dataset = fencepost.pyg.open(tmp_path / "a.fence", backing=backing)
        assert len(dataset) == len(samples)
        for i in range(len(samples)):
            same(dataset[i], reference[i], f"{backing}, sample {i}")
        for indices in ([0, 1, 2, 3, 4], [3], [4, 1, 1]):
            if kind in UNSTABLE:
                continue
            ours = dataset._file().batch(indices)
            theirs = batch_of(reference, indices)
            same_batch(ours, theirs, f"{backing}, batch {indices}")
            if kind in NOT_SEPARABLE:
                continue
            for place in range(len(indices)):
                same(ours[place], theirs[place], f"{backing}, batch {indices}[{place}]")
            same(ours.to_data_list()[-1], theirs.to_data_list()[-1], "to_data_list")
            if kind in NO_PICKLE:
                continue
            again = pickle.loads(pickle.dumps(ours))
            same_batch(again, theirs, "after pickle")


@pytest.mark.filterwarnings("ignore:Unable to accurately infer")
@pytest.mark.filterwarnings("ignore:Sparse CS")
def test_collated_form(kind: str, tmp_path: Path) -> None:
    torch.manual_seed(3)
    samples = KINDS[kind]()
    reference = Reference(samples)
    MappedDataset.save(samples, tmp_path / "a.fence")
    dataset = fencepost.pyg.open(tmp_path / "a.fence")
    same(dict(dataset.slices), reference.slices, "slices")
    for ours, theirs in zip(dataset._data.stores, reference._data.stores, strict=True):
        assert ours._mapping.keys() == theirs._mapping.keys()
        for key in theirs._mapping:
            if "EdgeIndex" not in kind and kind not in ("Index", "Index bare"):
                same(ours[key], theirs[key], key)


@pytest.mark.filterwarnings("ignore:Unable to accurately infer")
def test_follow_and_exclude(kind: str, tmp_path: Path) -> None:
    torch.manual_seed(3)
    samples = KINDS[kind]()
    if kind in NOT_SEPARABLE | UNSTABLE:
        pytest.skip("nothing to follow")
    reference = Reference(samples)
    MappedDataset.save(samples, tmp_path / "a.fence")
    source = fencepost.pyg.open(tmp_path / "a.fence")._file()
    keys = [key for store in samples[0].stores for key in store.keys() if key not in ("batch", "ptr", "num_nodes", "y")]
    for options in ({"follow_batch": keys}, {"exclude_keys": keys[:1] + ["no such key"]}):
        same_batch(source.batch([2, 0, 3], **options), batch_of(reference, [2, 0, 3], **options), str(options))


def strictly(samples: list[Data], tmp_path: Path) -> list[Any]:
    MappedDataset.save(samples, tmp_path / "a.fence")
    return list(fencepost.pyg.open(tmp_path / "a.fence", strict=True))


def test_strict_gives_originals(tmp_path: Path) -> None:
    samples = [
        Data(num_nodes=i + 1, a=i, b=0.1 * i, c=i == 1, d=torch.tensor(i), e=(torch.ones(i), 3), f=np.float64(0.3), g=[1, "x"], h="t")
        for i in range(3)
    ]
    for ours, original in zip(strictly(samples, tmp_path), samples, strict=True):
        same(ours, original)


@pytest.mark.parametrize("samples", [[Data(x=torch.ones(2, 2), a=3, b=0.1, d=torch.tensor(1), num_nodes=2, s="x")], [hetero(2)]])
def test_a_set_of_one(samples: list[Any], tmp_path: Path) -> None:
    reference = Reference(samples)
    MappedDataset.save(samples, tmp_path / "a.fence")
    dataset = fencepost.pyg.open(tmp_path / "a.fence")
    assert len(dataset) == 1 and repr(dataset) == "MappedDataset()"
    same(dataset[0], reference[0])
    same_batch(dataset._file().batch([0]), Batch.from_data_list([reference[0]]))
    assert dataset.slices is None


def test_gradients_and_views_are_stored_as_values(tmp_path: Path) -> None:
    base = torch.randn(6, 4)
    samples = [Data(x=base[::2, :2], w=torch.nn.Parameter(torch.ones(2)), z=torch.ones(2, dtype=torch.complex64).conj()) for _ in range(2)]
    MappedDataset.save(samples, tmp_path / "a.fence")
    data = fencepost.pyg.open(tmp_path / "a.fence")[1]
    same(data.x, base[::2, :2].contiguous())
    assert not data.w.requires_grad
    same(data.z, torch.ones(2, dtype=torch.complex64).conj().resolve_conj())


class Unknown:
    pass


def test_what_needs_pickle_is_an_error_that_says_so(tmp_path: Path) -> None:
    samples = [Data(x=torch.ones(1), thing=Unknown()) for _ in range(2)]
    path = tmp_path / "a.fence"
    with pytest.raises(PickleError, match=r"sample 0, thing: .*Unknown.*allow_pickle=True"):
        MappedDataset.save(samples, path)
    assert list(tmp_path.iterdir()) == []
    MappedDataset.save(samples, path, allow_pickle=True)
    with pytest.raises(PickleError, match="allow_pickle=True"):
        fencepost.pyg.open(path)
    dataset = fencepost.pyg.open(path, allow_pickle=True)
    assert isinstance(dataset[0].thing, Unknown)
    assert isinstance(dataset._file().batch([0, 1]).thing[1], Unknown)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (Data(x=torch.ones(2, 3)), r"sample 1, keys: .*missing \['y'\]"),
        (Data(x=torch.ones(2, 3), y=1, z=1), r"sample 1, keys: .*besides \['z'\]"),
        (Data(x=torch.ones(2, 4), y=1), r"sample 1, x: .*shape \[2, 4\]"),
        (Data(x=torch.ones(2), y=1), r"sample 1, x: expected a tensor of 2 dimensions"),
        (Data(x="x", y=1), "sample 1, x: expected a tensor of 2 dimensions, found a str"),
        (Data(x=torch.ones(2, 3), y="1"), "sample 1, y: expected a number, found a str"),
        (HeteroData(), "sample 1, class: expected Data, found HeteroData"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_samples_that_do_not_fit(second: Any, message: str, stream: bool, tmp_path: Path) -> None:
    samples = [Data(x=torch.ones(2, 3), y=1), second]
    with pytest.raises(MismatchError, match="sample 1" if stream else message):
        MappedDataset.save((data for data in samples) if stream else samples, tmp_path / "a.fence")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_type_is_an_error(tmp_path: Path) -> None:
    first, second = hetero(1), hetero(2)
    del second["author", "writes", "paper"]
    with pytest.raises(MismatchError, match="sample 1, node and edge types: .*writes.*empty tensors"):
        MappedDataset.save([first, second], tmp_path / "a.fence")


def test_stores_in_another_order_are_the_same(tmp_path: Path) -> None:
    first = HeteroData({"a": {"x": torch.ones(1, 2)}, "b": {"x": torch.ones(2, 3)}})
    second = HeteroData({"b": {"x": torch.zeros(3, 3)}, "a": {"x": torch.zeros(4, 2)}})
    MappedDataset.save([first, second], tmp_path / "a.fence")
    data = fencepost.pyg.open(tmp_path / "a.fence")[1]
    assert data.node_types == ["a", "b"] and data["a"].x.shape == (4, 2)


def test_a_flat_index_of_edges_is_left_to_pyg(tmp_path: Path) -> None:
    samples = [flat_index_hetero(i) for i in range(3)]
    MappedDataset.save(samples, tmp_path / "a.fence")
    source = fencepost.pyg.open(tmp_path / "a.fence")._file()
    assert "some_index has no two rows" in source.not_native
    same_batch(source.batch([0, 2]), Batch.from_data_list([samples[0], samples[2]]))


def test_where_pyg_fails(tmp_path: Path) -> None:
    """Sets with `num_nodes` alone, stores with nothing else, an empty `batch`: PyG has length 0, KeyError, RuntimeError."""
    MappedDataset.save([Data(num_nodes=i) for i in range(3)], tmp_path / "a.fence")
    dataset = fencepost.pyg.open(tmp_path / "a.fence")
    assert len(dataset) == 3 and [data.num_nodes for data in dataset] == [0, 1, 2]
    batch = dataset._file().batch([2, 1])
    assert batch.num_nodes == 3 and batch.batch.tolist() == [0, 0, 1] and batch[0].num_nodes == 2

    def only_count(i: int) -> HeteroData:
        data = HeteroData()
        data["a"].num_nodes = i
        data["b"].x = torch.ones(i, 1)
        return data

    MappedDataset.save([only_count(i) for i in range(3)], tmp_path / "b.fence")
    dataset = fencepost.pyg.open(tmp_path / "b.fence")
    assert dataset[2]["a"].num_nodes == 2
    assert [data["a"].num_nodes for data in dataset._file().batch([1, 2]).to_data_list()] == [1, 2]

    MappedDataset.save([Data(x=torch.ones(i, 1), atom_batch=torch.arange(i)) for i in (2, 0, 3)], tmp_path / "c.fence")
    assert fencepost.pyg.open(tmp_path / "c.fence")._file().batch([0, 1, 2]).atom_batch.tolist() == [0, 1, 2, 3, 4]
