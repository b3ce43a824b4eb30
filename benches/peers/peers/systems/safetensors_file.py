"""safetensors: flat tensors and their offsets in one file, slices of it."""

from __future__ import annotations

import safetensors.numpy
from safetensors import safe_open

from ..system import Columns, Sliced, System


class Safetensors(System):
    name = "safetensors"
    title = "safetensors"
    distribution = "safetensors"
    use = "save_file of all tensors at once (it has no other way), safe_open, get_slice: a sample is a slice of each"

    def write(self, samples, count):
        columns = Columns(self.fields)
        for sample in samples:
            columns.add(sample)
        values = {field.name: columns.flat(field.name) for field in self.fields}
        values |= {axis: columns.offsets(axis) for axis in ("nodes", "edges")}
        safetensors.numpy.save_file(values, str(self.folder / "data.safetensors"))

    def open(self):
        self.file = safe_open(str(self.folder / "data.safetensors"), "np")
        slices = {field.name: self.file.get_slice(field.name) for field in self.fields}
        self.samples = Sliced(self.fields, slices, self.file.get_tensor("nodes"), self.file.get_tensor("edges"))

    def close(self):
        self.file = self.samples = None

    def get(self, index):
        return self.samples[index]
