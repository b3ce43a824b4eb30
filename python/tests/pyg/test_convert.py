"""Other data sets to files and back, and fencepost as a database of `OnDiskDataset`."""

from __future__ import annotations

import gc
import pickle
from pathlib import Path
from typing import Any

import fencepost.pyg
import pytest
import torch
import torch_geometric.loader
from fencepost.pyg import FencepostDatabase, MappedDataset, MismatchError, PygError, convert, export, register_backend
from torch_geometric.data import Data, InMemoryDataset, OnDiskDataset

from .support import Reference, molecules, same


class OnDisk(OnDiskDataset):
    fail = False

    def __init__(self, root: Any, **options: Any) -> None:
        super().__init__(str(root), **options)

    def process(self) -> None:
        samples = molecules(8)
        self.extend(samples[:6])
        if self.fail:
            raise RuntimeError("broken")
        for data in samples[6:]:
            self.append(data)


@pytest.mark.parametrize("source", ["memory", "disk", "list", "generator", "subset", "file"])
def test_convert(source: str, tmp_path: Path) -> None:
    samples = molecules(8)
    dataset: Any = {
        "memory": lambda: Reference(samples, lambda data: Data(n=data.num_nodes)),
        "disk": lambda: OnDisk(tmp_path / "disk"),
        "list": lambda: samples,
        "generator": lambda: iter(samples),
        "subset": lambda: Reference(samples)[[0, 1, 2, 3, 4, 5, 6, 7]],
        "file": lambda: convert(samples, tmp_path / "first.fence"),
    }[source]()
    out = convert(dataset, tmp_path / "a.fence", progress=False)
    assert isinstance(out, MappedDataset) and len(out) == 8
    if source == "memory":
        assert out[3].n == samples[3].num_nodes
        out.transform = None
        assert dataset._data_list is None
    for mine, its in zip(out, samples, strict=True):
        same(mine, its)


def test_a_failing_generator_leaves_the_old_file(tmp_path: Path) -> None:
    convert(molecules(3), tmp_path / "a.fence")

    def samples() -> Any:
        yield from molecules(2)
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        convert(samples(), tmp_path / "a.fence")
    assert len(fencepost.pyg.open(tmp_path / "a.fence")) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["a.fence"]


def test_a_stream_that_drifts_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    samples = [Data(y=1), Data(y=2.5)]
    with pytest.raises(MismatchError, match="sample 1, y: expected a Python int, found a float.*a list instead of a generator"):
        convert(iter(samples), tmp_path / "a.fence")
    same(convert(samples, tmp_path / "a.fence")[1], Reference(samples)[1])


@pytest.mark.parametrize("index", [None, slice(2, 6)])
def test_export(index: Any, tmp_path: Path) -> None:
    samples = [Data(x=torch.ones(i + 1, 2), s="t" * i, n=i, num_nodes=i + 1) for i in range(8)]
    dataset = convert(samples, tmp_path / "a.fence")
    if index is not None:
        dataset, samples = dataset[index], samples[index]
    export(dataset, tmp_path / "data.pt")
    loaded = InMemoryDataset()
    loaded.load(tmp_path / "data.pt")
    assert len(loaded) == len(samples)
    for mine, its in zip(loaded, Reference(samples), strict=True):
        same(mine, its)


def test_on_disk_backend(tmp_path: Path) -> None:
    register_backend()
    dataset = OnDisk(tmp_path, backend="fencepost")
    assert len(dataset) == 8
    for mine, its in zip(dataset, molecules(8), strict=True):
        same(mine, its)
    same(dataset.multi_get([5, 0])[0], molecules(8)[5])
    batch = next(iter(torch_geometric.loader.DataLoader(dataset, batch_size=4)))
    same(batch.y, torch.cat([data.y for data in molecules(4)]))
    # Its pickle holds no connection: workers may be spawned.
    same(pickle.loads(pickle.dumps(dataset))[2], molecules(8)[2])
    with pytest.raises(PygError, match="rows cannot be added after"):
        dataset.append(molecules(1)[0])
    with pytest.raises(IndexError):
        dataset.get(8)
    dataset.close()
    assert len(OnDisk(tmp_path, backend="fencepost")) == 8


def test_on_disk_that_nobody_reads_is_published_when_process_ended(tmp_path: Path) -> None:
    register_backend()
    OnDisk(tmp_path, backend="fencepost")
    gc.collect()
    assert (tmp_path / "processed" / "fencepost.db").exists()


@pytest.mark.filterwarnings("ignore:.*rows were appended but not published")
def test_on_disk_process_that_raises(tmp_path: Path) -> None:
    register_backend()

    class Broken(OnDisk):
        fail = True

    with pytest.raises(RuntimeError, match="broken"):
        Broken(tmp_path, backend="fencepost")
    gc.collect()
    assert not (tmp_path / "processed" / "fencepost.db").exists()
    assert len(OnDisk(tmp_path, backend="fencepost")) == 8


def test_to_on_disk_dataset(tmp_path: Path) -> None:
    register_backend()
    samples = [Data(x=torch.ones(i + 1, 2), y=torch.tensor([i]), n=i, s="t" * i, z=0.1) for i in range(5)]
    for number, dataset in enumerate((Reference(samples), convert(samples, tmp_path / "a.fence"))):
        on_disk = dataset.to_on_disk_dataset(str(tmp_path / str(number)), backend="fencepost", log=False)
        assert len(on_disk) == 5
        for mine, its in zip(on_disk, Reference(samples), strict=True):
            same(mine, its)


@pytest.mark.parametrize("rows", [[{"a": 1, "b": torch.ones(2)}, {"a": 2, "b": torch.ones(3)}], [(1, "x"), (2, "y")], [3, 4], [torch.ones(2), torch.ones(5)]])
def test_rows_of_every_form(rows: list[Any], tmp_path: Path) -> None:
    database = FencepostDatabase(str(tmp_path / "a.db"))
    database.multi_insert(range(2), rows)
    assert len(database) == 2
    for mine, its in zip(database.multi_get([0, 1]), rows, strict=True):
        same(mine, its)
    database.close()
    same(FencepostDatabase(str(tmp_path / "a.db"))[1], rows[1])


def test_rows_come_in_order(tmp_path: Path) -> None:
    database = FencepostDatabase(str(tmp_path / "a.db"))
    with pytest.raises(PygError, match="expected row 0, found 4"):
        database.insert(4, 1)
