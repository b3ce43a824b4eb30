"""tensordict: flat memory-mapped tensors and their offsets in one TensorDict."""

from __future__ import annotations

import numpy as np
import torch
from tensordict import MemoryMappedTensor, TensorDict

from ..system import Columns, Sliced, System, as_data


class TensorDictMemmap(System):
    name = "tensordict"
    title = "tensordict, memmap"
    distribution = "tensordict"
    use = "a TensorDict of flat tensors saved by memmap, load_memmap; a sample is a slice of each MemoryMappedTensor"
    natural = "dict of tensors, views"

    def write(self, samples, count):
        columns = Columns(self.fields)
        for sample in samples:
            columns.add(sample)
        values = {field.name: torch.from_numpy(columns.flat(field.name)) for field in self.fields}
        values |= {axis: torch.from_numpy(columns.offsets(axis)) for axis in ("nodes", "edges")}
        TensorDict(values).memmap(str(self.folder / "data"))

    def open(self):
        self.loaded = TensorDict.load_memmap(str(self.folder / "data"))
        tables = (np.asarray(self.loaded[axis]) for axis in ("nodes", "edges"))
        # Looked up once: each look-up in a TensorDict costs microseconds.
        columns = {field.name: self.loaded[field.name] for field in self.fields}
        assert all(isinstance(column, MemoryMappedTensor) for column in columns.values())
        self.samples = Sliced(self.fields, columns, *tables)

    def close(self):
        self.loaded = self.samples = None

    def get(self, index):
        return self.samples[index]

    def arrays(self, sample):
        return {name: np.asarray(value) for name, value in sample.items()}

    def data(self, index):
        return as_data(self.arrays(self.get(index)))
