"""HDF5: a contiguous dataset an attribute, offsets in memory, a hyperslab an attribute and sample."""

from __future__ import annotations

import h5py
import numpy as np

from ..system import Sliced, System, groups


class Hdf5(System):
    name = "hdf5"
    title = "HDF5, contiguous + offsets"
    distribution = "h5py"
    use = "one contiguous dataset an attribute (sizes known after a first pass over the lengths), slices by h5py"
    opens_in_worker = True

    def write(self, samples, count):
        # Contiguous datasets cannot grow: chunked while written, in chunks of 4 MiB, then rewritten contiguous group by group.
        nodes, edges = [0], [0]
        grown = self.folder / "grown.h5"
        with h5py.File(grown, "w", libver="latest") as file:
            sets = {
                field.name: file.create_dataset(field.name, (0,), field.dtype, maxshape=(None,), chunks=(1 << 20,))
                for field in self.fields
            }
            for group in groups(samples, 500):
                for name, dataset in sets.items():
                    values = np.concatenate([sample[name].ravel() for sample in group])
                    dataset.resize(len(dataset) + len(values), 0)
                    dataset[-len(values) :] = values
                for sample in group:
                    nodes.append(nodes[-1] + len(sample["x"]))
                    edges.append(edges[-1] + sample["edge_index"].shape[1])
        with h5py.File(grown) as source, h5py.File(self.folder / "data.h5", "w", libver="latest") as file:
            for name, dataset in source.items():
                out = file.create_dataset(name, dataset.shape, dataset.dtype)
                for at in range(0, len(dataset), 1 << 20):
                    out[at : at + (1 << 20)] = dataset[at : at + (1 << 20)]
            file["nodes"], file["edges"] = nodes, edges
        grown.unlink()

    def open(self):
        self.file = h5py.File(self.folder / "data.h5", "r")
        columns = {field.name: self.file[field.name] for field in self.fields}
        self.samples = Sliced(self.fields, columns, self.file["nodes"][:], self.file["edges"][:])

    def close(self):
        self.file.close()
        self.samples = None

    def get(self, index):
        return self.samples[index]
