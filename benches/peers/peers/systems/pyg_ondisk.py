"""PyG's OnDiskDataset over SQLite, with a schema and with pickled objects."""

from __future__ import annotations

import torch
from torch_geometric.data import Data, OnDiskDataset

from ..system import GivesData, as_data, groups


class _Set(OnDiskDataset):
    """As in PyG's documentation: fields as columns, `serialize` and `deserialize` between them and Data."""

    def __init__(self, root, schema, samples=()):
        self._samples = samples
        super().__init__(root, schema=schema)

    @property
    def processed_file_names(self):
        return "sqlite.db"

    def process(self):
        for group in groups(map(as_data, self._samples), 1000):
            self.extend(group)

    def serialize(self, data):
        return data if self.schema is object else {name: data[name] for name in self.schema}

    def deserialize(self, row):
        return row if self.schema is object else Data(**row)


class Schema(GivesData):
    name = "pyg-ondisk-schema"
    title = "PyG OnDiskDataset, schema"
    distribution = "torch_geometric"
    use = "OnDiskDataset(backend='sqlite') with a tensor schema, extended by 1,000; batches through its multi_get"

    @property
    def schema(self):
        def size(field):
            shape = list(field.shape(-1, -1))
            return (1, field.width) if field.along == "graph" else tuple(shape)

        return {field.name: {"dtype": _DTYPES[field.dtype], "size": size(field)} for field in self.fields}

    def write(self, samples, count):
        _Set(str(self.folder), self.schema, samples).close()

    def open(self):
        self.dataset = _Set(str(self.folder), self.schema)

    def close(self):
        self.dataset.close()

    opens_in_worker = True

    def get(self, index):
        return self.dataset[index]

    def data_list(self, indices):
        return self.dataset.multi_get([int(index) for index in indices])


_DTYPES = {"<f4": torch.float32, "<i8": torch.int64}


class Pickle(Schema):
    name = "pyg-ondisk-pickle"
    title = "PyG OnDiskDataset, pickle"
    use = "OnDiskDataset(backend='sqlite') as it comes: each Data pickled"
    schema = object
