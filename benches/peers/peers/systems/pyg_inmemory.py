"""PyG's InMemoryDataset: one pickled file of collated tensors, all of it in memory."""

from __future__ import annotations

from torch_geometric.data import InMemoryDataset

from ..system import GivesData, as_data


class _Set(InMemoryDataset):
    def __init__(self, path):
        super().__init__()
        self.load(path)


class InMemory(GivesData):
    name = "pyg-inmemory"
    title = "PyG InMemoryDataset, first epoch"
    distribution = "torch_geometric"
    use = "InMemoryDataset.save and load; its cache of Data objects is empty when a round begins, as in a first epoch"

    @property
    def path(self):
        return str(self.folder / "data.pt")

    def write(self, samples, count):
        InMemoryDataset.save([as_data(sample) for sample in samples], self.path)

    def open(self):
        self.dataset = _Set(self.path)

    def close(self):
        self.dataset = None

    def get(self, index):
        return self.dataset[index]

    def forget(self):
        """Empties the cache."""
        self.dataset._data_list = None


class InMemoryWarm(InMemory):
    name = "pyg-inmemory-warm"
    title = "PyG InMemoryDataset, cache warm"
    use = "the same, after an epoch that has filled its cache with a Data object a sample"

    def warm_up(self):
        for index in range(len(self.dataset)):
            self.dataset[index]

    def forget(self):
        pass
