"""`MappedDataset` as users write it: both idioms of `process`, old files, changes of `_data`, and what happens to a crash."""

from __future__ import annotations

import copy
import os
import pickle
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fencepost.pyg
import pytest
import torch
from fencepost.pyg import MappedDataset, PickleError, PygError
from torch_geometric.data import Data, HeteroData, InMemoryDataset
from torch_geometric.data.summary import Summary

from .support import Reference, in_child, molecules, same, same_data


def shapes(base: type) -> type:
    """A user's data set over a base class, as PyG's documentation has it."""

    class Shapes(base):  # type: ignore[misc]
        calls = 0

        def __init__(self, root: Any, **options: Any) -> None:
            super().__init__(str(root), **options)
            self.load(self.processed_paths[0])

        @property
        def raw_file_names(self) -> list[str]:
            return ["raw.txt"]

        @property
        def processed_file_names(self) -> str:
            return "data.pt"

        def download(self) -> None:
            Path(self.raw_paths[0]).write_text("raw")

        def process(self) -> None:
            type(self).calls += 1
            assert Path(self.raw_paths[0]).read_text() == "raw"
            samples = molecules(12)
            if self.pre_filter is not None:
                samples = [data for data in samples if self.pre_filter(data)]
            if self.pre_transform is not None:
                samples = [self.pre_transform(data) for data in samples]
            self.save(samples, self.processed_paths[0])

    return Shapes


def older(base: type) -> type:
    """The form that older data sets have."""

    class Older(base):  # type: ignore[misc]
        def __init__(self, root: Any, **options: Any) -> None:
            super().__init__(str(root), **options)
            self.data, self.slices = torch.load(self.processed_paths[0], weights_only=False)

        @property
        def processed_file_names(self) -> list[str]:
            return ["data.pt"]

        def process(self) -> None:
            data, slices = self.collate(molecules(12))
            torch.save((data, slices), self.processed_paths[0])

    return Older


@pytest.mark.parametrize("make", [shapes, older])
def test_changing_the_base_class(make: Any, tmp_path: Path) -> None:
    ours, theirs = make(MappedDataset)(tmp_path / "ours"), make(InMemoryDataset)(tmp_path / "theirs")
    assert isinstance(ours, InMemoryDataset)
    assert repr(ours) == repr(theirs) and len(ours) == 12
    for mine, its in zip(ours, theirs, strict=True):
        same(mine, its)
    for name in ("num_features", "num_node_features", "num_edge_features", "num_classes"):
        assert getattr(ours, name) == getattr(theirs, name)
    for name in ("x", "y", "pos", "edge_attr", "edge_index"):
        same(getattr(ours, name), getattr(theirs, name), name)
        same(getattr(ours[3:7], name), getattr(theirs[3:7], name), name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        ours.nothing  # noqa: B018
    same(dict(ours.slices), theirs.slices)
    same(ours.copy([4, 2])._data.x, theirs.copy([4, 2])._data.x)
    assert len(ours.copy()) == 12 and ours.copy()._indices is None
    same(ours[2:].copy()[0], theirs[2:].copy()[0])
    with pytest.warns(UserWarning, match="internal storage format"):
        same(ours.data.x, theirs._data.x)


def test_process_runs_once(tmp_path: Path) -> None:
    Shapes = shapes(MappedDataset)
    Shapes(tmp_path), Shapes(tmp_path)
    assert Shapes.calls == 1
    Shapes(tmp_path, force_reload=True)
    assert Shapes.calls == 2
    with pytest.warns(UserWarning, match="pre_transform"):
        Shapes(tmp_path, pre_transform=lambda data: data)
    assert Shapes.calls == 2
    filtered = Shapes(tmp_path / "b", pre_filter=lambda data: data.x.size(0) > 5, pre_transform=lambda data: Data(x=data.x + 1))
    assert 0 < len(filtered) < 12 and filtered[0].keys() == ["x"]


def test_the_base_has_neither_process_nor_download(tmp_path: Path) -> None:
    dataset = MappedDataset(str(tmp_path))
    assert not dataset.has_process and not dataset.has_download


class Appending(MappedDataset):
    """As users of OnDiskDataset write it."""

    fail_at: int | None = None

    def __init__(self, root: Any, **options: Any) -> None:
        super().__init__(str(root), backend="sqlite", schema=object, **options)

    def process(self) -> None:
        samples = molecules(10)
        self.append(samples[0])
        self.extend(samples[1:5], batch_size=2)
        for number, data in enumerate(samples[5:]):
            if number == self.fail_at:
                raise RuntimeError("the raw data is broken")
            self.append(data)


def test_append_and_extend_in_process(tmp_path: Path) -> None:
    dataset = Appending(tmp_path)
    assert len(dataset) == 10
    for mine, its in zip(dataset, Reference(molecules(10)), strict=True):
        same(mine, its)
    assert len(Appending(tmp_path)) == 10
    with pytest.raises(PygError, match=r"within process\(\)"):
        dataset.append(molecules(1)[0])


def test_a_process_that_raises_leaves_nothing(tmp_path: Path) -> None:
    class Broken(Appending):
        fail_at = 3

    with pytest.raises(RuntimeError, match="broken"):
        Broken(tmp_path)
    assert [path.name for path in (tmp_path / "processed").iterdir()] == []
    assert len(Appending(tmp_path)) == 10


@pytest.mark.parametrize("way", ["append", "save"])
def test_a_process_that_is_killed_leaves_no_half_set(way: str, tmp_path: Path) -> None:
    class Killed(MappedDataset):
        kill = True

        def process(self) -> None:
            if way == "append":
                self.extend(self.samples())
            else:
                self.save(self.samples(), self.processed_paths[0])

        def samples(self) -> Iterator[Data]:
            for i in range(1000):
                if i == 900 and self.kill:
                    os._exit(9)
                yield Data(x=torch.full((20, 200), float(i)))

    assert in_child(lambda: Killed(str(tmp_path)))[0] == 9
    assert not (tmp_path / "processed" / "data.fence").exists()
    Killed.kill = False
    dataset = Killed(str(tmp_path))
    assert len(dataset) == 1000 and dataset[999].x[0, 0] == 999
    assert sorted(path.name for path in (tmp_path / "processed").iterdir()) == ["data.fence", "pre_filter.pt", "pre_transform.pt"]


def test_save_streams_in_bounded_memory(tmp_path: Path) -> None:
    def work() -> int:
        MappedDataset.save((Data(x=torch.ones(10, 2)) for _ in range(10)), tmp_path / "small.fence")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        MappedDataset.save((Data(x=torch.full((1000, 250), float(i))) for i in range(400)), tmp_path / "a.fence")
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before

    code, text = in_child(work)
    assert code == 0, text
    assert os.path.getsize(tmp_path / "a.fence") >= 400_000_000
    assert int(text) < 120_000, f"{int(text)} KiB more for a file of 400 MB"


def test_an_empty_set_is_a_clear_error(tmp_path: Path) -> None:
    for nothing in ([], iter([])):
        with pytest.raises(PygError, match="expected at least one sample"):
            MappedDataset.save(nothing, tmp_path / "a.fence")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("make", [shapes, older])
def test_a_file_that_pyg_wrote_is_converted_once(make: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    theirs = make(InMemoryDataset)(tmp_path)
    if make is older:
        # Its own torch.load would go on reading PyG's file; with `load` it is recognised.
        dataset = MappedDataset()
        dataset.load(tmp_path / "processed" / "data.pt")
        assert len(dataset) == 12
        return
    Shapes = make(MappedDataset)
    ours = Shapes(tmp_path)
    assert Shapes.calls == 0
    assert "written by InMemoryDataset; converting its 12 samples" in capsys.readouterr().err
    for mine, its in zip(ours, theirs, strict=True):
        same(mine, its)
    beside = tmp_path / "processed" / "data.pt.fence"
    first = beside.stat()
    Shapes(tmp_path)
    assert capsys.readouterr().err == ""
    assert beside.stat().st_mtime_ns == first.st_mtime_ns
    # PyG's file is as it was, and a newer one is converted anew.
    assert len(make(InMemoryDataset)(tmp_path)) == 12
    InMemoryDataset.save(molecules(3), tmp_path / "processed" / "data.pt")
    assert len(Shapes(tmp_path)) == 3


class Thing:
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Thing)

    __hash__ = None  # type: ignore[assignment]


def test_an_old_file_with_pickles_needs_permission(tmp_path: Path) -> None:
    InMemoryDataset.save([Data(x=torch.ones(1), thing=Thing()) for _ in range(2)], tmp_path / "data.pt")

    class Careful(MappedDataset):
        pass

    class Trusting(MappedDataset):
        allow_pickle = True

    with pytest.raises(PickleError, match="allow_pickle"):
        Careful().load(tmp_path / "data.pt")
    trusting = Trusting()
    trusting.load(tmp_path / "data.pt")
    assert trusting[1].thing == Thing()


def test_a_file_of_somebody_else_is_named(tmp_path: Path) -> None:
    (tmp_path / "data.pt").write_bytes(b"what is this")
    with pytest.raises(PygError, match=r"data\.pt: expected a file of fencepost or of torch\.save"):
        MappedDataset().load(tmp_path / "data.pt")
    with fencepost.Writer(tmp_path / "plain.fence") as writer:
        writer.append({"x": torch.ones(2, 2).numpy()})
    with pytest.raises(PygError, match="expected the pyg profile"):
        fencepost.pyg.open(tmp_path / "plain.fence")
    with pytest.raises(FileNotFoundError):
        fencepost.pyg.open(tmp_path / "nothing.fence")


def test_changes_of_data_are_seen(tmp_path: Path) -> None:
    """As TUDataset does it: `self._data.x = self._data.x[:, 3:]` after loading."""
    MappedDataset.save(molecules(6), tmp_path / "a.fence")
    ours, theirs = fencepost.pyg.open(tmp_path / "a.fence"), Reference(molecules(6))
    assert ours._data.x.shape[1] == 11
    same(ours[1], theirs[1])
    assert ours._file() is not None
    for dataset in (ours, theirs):
        dataset._data.x = dataset._data.x[:, 3:]
        dataset._data_list = None
    assert ours._file() is None
    for mine, its in zip(ours, theirs, strict=True):
        same(mine, its)
    same(ours.x, theirs.x)
    ours._data.y[0] = 5
    assert ours[0].y.eq(5).all()
    again = pickle.loads(pickle.dumps(ours))
    same(again[1], ours[1])


def test_changing_a_sample_changes_nothing_else(tmp_path: Path, backing: str) -> None:
    path = tmp_path / "a.fence"
    MappedDataset.save(molecules(4), path)
    before = path.read_bytes()

    def spoil(data: Data) -> Data:
        for value in data._store._mapping.values():
            value.zero_()
        return data

    dataset = fencepost.pyg.open(path, spoil, backing=backing)
    assert dataset[1].x.eq(0).all() and next(iter(dataset)).x.eq(0).all()
    dataset.transform = None
    same(dataset[1], Reference(molecules(4))[1])
    batch = dataset._file().batch([0, 1])
    spoil(batch)
    same(dataset._file().batch([0, 1])[1], Reference(molecules(4))[1])
    assert path.read_bytes() == before


def test_transform_is_called_for_each_access(tmp_path: Path) -> None:
    MappedDataset.save(molecules(4), tmp_path / "a.fence")
    calls = []
    dataset = fencepost.pyg.open(tmp_path / "a.fence", lambda data: (calls.append(1), data)[1])
    dataset[0], dataset[:2][1], list(dataset)
    assert len(calls) == 6


def test_pickles_are_small(tmp_path: Path) -> None:
    MappedDataset.save(molecules(300), tmp_path / "a.fence")
    dataset = fencepost.pyg.open(tmp_path / "a.fence")
    list(dataset), dataset._data, dataset.y
    data = pickle.dumps(dataset)
    assert len(data) < 6000
    again = pickle.loads(data)
    same(again[7], dataset[7])
    same(pickle.loads(pickle.dumps(dataset[5:9]))[1], dataset[6])
    same(copy.copy(dataset)[3], dataset[3])
    same(copy.deepcopy(dataset)[3], dataset[3])


def test_num_classes(tmp_path: Path) -> None:
    for number, make in enumerate(
        (lambda i: torch.tensor([i % 4]), lambda i: i % 3, lambda i: torch.tensor([float(i % 2)]), lambda i: torch.ones(1, 5), lambda i: None)
    ):
        samples = [Data(x=torch.ones(2, 3), y=make(i)) for i in range(9)]
        MappedDataset.save(samples, tmp_path / f"{number}.fence")
        ours, theirs = fencepost.pyg.open(tmp_path / f"{number}.fence"), Reference(samples)
        assert ours.num_classes == theirs.num_classes
        assert ours[:2].num_classes == theirs[:2].num_classes
        for dataset in (ours, theirs):
            dataset.transform = lambda data: data
        if number < 4:
            assert ours.num_classes == theirs.num_classes


def test_lists_and_summary(tmp_path: Path) -> None:
    samples = [Data(x=torch.ones(i + 1, 3), edge_index=torch.zeros(2, i, dtype=torch.int64), smiles="C" * i, n=i) for i in range(5)]
    MappedDataset.save(samples, tmp_path / "a.fence")
    ours, theirs = fencepost.pyg.open(tmp_path / "a.fence"), Reference(samples)
    same(ours.smiles, theirs.smiles)
    same(ours[2:].smiles, theirs[2:].smiles)
    same(ours.n, theirs.n)
    mine, its = ours.get_summary(), theirs.get_summary()
    assert isinstance(mine, Summary)
    assert (mine.num_graphs, mine.num_nodes, mine.num_edges) == (its.num_graphs, its.num_nodes, its.num_edges)


def test_device_moves(tmp_path: Path) -> None:
    MappedDataset.save(molecules(4), tmp_path / "a.fence")
    dataset = fencepost.pyg.open(tmp_path / "a.fence")
    assert dataset.cpu() is dataset
    dataset.to("meta")
    assert dataset[1].x.device.type == "meta"
    with pytest.raises(ValueError, match="subset"):
        dataset[:2].to("cpu")


class Special(Data):
    def twice(self) -> int:
        return 2 * int(self.y)


def test_classes_of_the_users(tmp_path: Path) -> None:
    samples = [Special(x=torch.ones(i + 1, 2), y=i) for i in range(3)]
    MappedDataset.save(samples, tmp_path / "a.fence")
    dataset = fencepost.pyg.open(tmp_path / "a.fence")
    assert dataset[2].twice() == 4
    batch = dataset._file().batch([0, 2])
    assert type(batch).__name__ == "SpecialBatch" and batch[1].twice() == 4


def test_a_class_that_is_not_loaded_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "their_shapes.py").write_text("from torch_geometric.data import Data\nclass Shape(Data): pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    shape = __import__("their_shapes").Shape
    MappedDataset.save([shape(x=torch.ones(i + 1, 2)) for i in range(3)], tmp_path / "a.fence")
    assert type(fencepost.pyg.open(tmp_path / "a.fence")[0]) is shape
    monkeypatch.delitem(sys.modules, "their_shapes")
    with pytest.raises(PygError, match="class their_shapes.Shape, which this program has not loaded; import the module first, or pass data_cls="):
        fencepost.pyg.open(tmp_path / "a.fence")
    assert "their_shapes" not in sys.modules
    assert type(fencepost.pyg.open(tmp_path / "a.fence", data_cls=shape)[0]) is shape


def test_hetero_sets(tmp_path: Path) -> None:
    samples = [HeteroData({"a": {"x": torch.randn(i + 1, 2)}, ("a", "to", "a"): {"edge_index": torch.zeros(2, i, dtype=torch.int64)}}) for i in range(4)]
    MappedDataset.save(samples, tmp_path / "a.fence")
    ours, theirs = fencepost.pyg.open(tmp_path / "a.fence"), Reference(samples)
    assert ours.num_node_features == theirs.num_node_features == {"a": 2}
    with pytest.raises(AttributeError):
        ours.x  # noqa: B018
    same_data(ours._data, theirs._data)
