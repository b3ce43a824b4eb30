"""PyG data sets in several files, written by several processes."""

from __future__ import annotations

import os

import pytest
import torch
from torch_geometric.data import Data

import fencepost
from fencepost.pyg import DataLoader, MappedDataset, PygError, open, write_shards


def graph(index: int) -> Data:
    nodes = index % 4 + 1
    return Data(
        x=torch.full((nodes, 3), float(index)), edge_index=torch.tensor([[0, nodes - 1], [nodes - 1, 0]]), y=torch.tensor([index]),
        name=f"graph {index}", num_nodes=nodes,
    )


def odd(index: int) -> Data | None:
    return graph(index) if index % 2 else None


class Shapes(MappedDataset):
    calls = 0

    def __init__(self, root: str, function, items: int = 50, **options) -> None:
        self.function, self.items, self.options = function, items, options
        super().__init__(root)
        self.load(self.processed_paths[0])

    @property
    def processed_file_names(self) -> str:
        return "data.fence"

    def process(self) -> None:
        type(self).calls += 1
        self.map(range(self.items), self.function, items_per_shard=8, progress=False, **self.options)


@pytest.mark.parametrize("workers", [0, 2])
def test_process_maps_items_to_graphs_in_order(tmp_path, workers):
    dataset = Shapes(str(tmp_path), graph, num_workers=workers)
    assert len(dataset) == 50
    for index in (0, 7, 8, 49):
        got, expected = dataset[index], graph(index)
        assert got.keys() == expected.keys() and got.name == expected.name and got.num_nodes == expected.num_nodes
        assert torch.equal(got.x, expected.x) and torch.equal(got.edge_index, expected.edge_index)
    assert torch.cat([batch.y for batch in DataLoader(dataset, batch_size=16)]).tolist() == list(range(50))
    assert sorted(torch.cat([batch.y for batch in DataLoader(dataset, batch_size=16, shuffle=True)]).tolist()) == list(range(50))
    calls = Shapes.calls
    assert len(Shapes(str(tmp_path), graph)) == 50 and Shapes.calls == calls, "processed once"
    assert len(open(os.path.join(tmp_path, "processed", "data.fence"))) == 50
    assert not os.path.exists(os.path.join(tmp_path, "processed", "data.fence.parts"))
    assert len(dataset[torch.arange(50) % 3 == 0]) == 17


def test_process_that_died_goes_on(tmp_path):
    def dying(index: int) -> Data:
        if index == 30:
            raise RuntimeError("out of patience")
        return graph(index)

    with pytest.raises(RuntimeError, match="patience"):
        Shapes(str(tmp_path), dying)
    parts = os.path.join(tmp_path, "processed", "data.fence.parts")
    before = {name: os.stat(os.path.join(parts, name)).st_mtime_ns for name in os.listdir(parts)}
    assert sorted(before) == [f"shard-{number:08}.fence" for number in range(3)]
    dataset = Shapes(str(tmp_path), graph)
    path = os.path.join(tmp_path, "processed", "data.fence")
    assert {name: os.stat(os.path.join(path, name)).st_mtime_ns for name in before} == before
    assert [int(data.y) for data in dataset] == list(range(50))


def test_items_are_left_out_when_that_is_asked_for(tmp_path):
    dataset = Shapes(str(tmp_path / "odd"), odd, filtered=True)
    assert [int(data.y) for data in dataset] == list(range(1, 50, 2))
    with pytest.raises(PygError, match="filtered=True"):
        Shapes(str(tmp_path / "refused"), odd)
    with pytest.raises(PygError, match="at least one graph"):
        write_shards(tmp_path / "none", range(3), lambda _: None, filtered=True)


def test_later_graphs_of_another_kind_are_refused_by_name(tmp_path):
    def growing(index: int) -> Data:
        data = graph(index)
        if index >= 20:
            data.x = data.x.double()
        return data

    with pytest.raises(PygError) as caught:
        write_shards(tmp_path / "set", range(30), growing, items_per_shard=10)
    assert any("item 20" in note for note in caught.value.__notes__)


def test_labels_are_added_to_graphs_that_are_there(tmp_path):
    path = tmp_path / "base.fence"
    MappedDataset.save([graph(index) for index in range(10)], path)
    base, more = fencepost.open(path), tmp_path / "more.fence"
    with fencepost.Writer(more, base=base) as writer:
        for index in range(10):
            writer.append({"label": torch.tensor([index * 2])})
    both = fencepost.open([path, more])
    assert both[4]["label"] == [8] and both.batch([4, 5])["label"].tolist() == [8, 10]
