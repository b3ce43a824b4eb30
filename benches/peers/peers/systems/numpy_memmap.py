"""By hand: one flat file an attribute, mapped, and offsets. Sample by sample, and by index arithmetic for whole batches."""

from __future__ import annotations

import mmap

import numpy as np
import torch
from torch_geometric.data import Batch, Data

from ..system import BATCH, Sliced, System


class PerSample(System):
    name = "numpy-sample"
    title = "numpy memmap, sample by sample"
    use = "a map of a flat file an attribute with MADV_RANDOM, np.frombuffer over it, offsets in memory, a slice a sample"

    def write(self, samples, count):
        files = {field.name: open(self.folder / f"{field.name}.bin", "wb", 1 << 20) for field in self.fields}
        nodes, edges = [0], [0]
        for sample in samples:
            for name, file in files.items():
                file.write(sample[name].data)
            nodes.append(nodes[-1] + len(sample["x"]))
            edges.append(edges[-1] + sample["edge_index"].shape[1])
        for file in files.values():
            file.close()
        np.save(self.folder / "nodes.npy", nodes)
        np.save(self.folder / "edges.npy", edges)

    def open(self):
        self.columns = {field.name: self._column(field) for field in self.fields}
        self.nodes, self.edges = (np.load(self.folder / f"{axis}.npy") for axis in ("nodes", "edges"))
        self.samples = Sliced(self.fields, self.columns, self.nodes, self.edges)

    def _column(self, field):
        with open(self.folder / f"{field.name}.bin", "rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        # Without it the kernel reads megabytes ahead around each sample.
        mapped.madvise(mmap.MADV_RANDOM)
        # A plain array: slices of np.memmap cost five times as much.
        return np.frombuffer(mapped, field.dtype)

    def close(self):
        self.columns = self.samples = None

    def get(self, index):
        return self.samples[index]


class Gather(PerSample):
    name = "numpy-gather"
    title = "numpy memmap, vectorised gather"
    use = "the files of numpy-sample; a batch is one fancy index an attribute, with the shift of edge_index computed for all edges at once"
    natural_batch = "dict of numpy arrays, joined by PyG's rules"

    @staticmethod
    def _rows(offsets, indices):
        starts = offsets[indices]
        lengths = offsets[indices + 1] - starts
        ptr = np.concatenate([[0], np.cumsum(lengths)])
        return np.repeat(starts - ptr[:-1], lengths) + np.arange(ptr[-1]), lengths, ptr

    def batch(self, indices):
        indices = np.asarray(indices)
        nodes, node_counts, ptr = self._rows(self.nodes, indices)
        edges, edge_counts, _ = self._rows(self.edges, indices)
        rows = {"nodes": nodes, "edges": edges, "graph": indices}
        out = {}
        for field in self.fields:
            column = self.columns[field.name]
            if field.across:
                # A sample's block is [2, e]: its second row begins e elements behind the first.
                first = edges + np.repeat(self.edges[indices], edge_counts)
                shift = np.repeat(ptr[:-1], edge_counts)
                out[field.name] = np.stack([column[first] + shift, column[first + np.repeat(edge_counts, edge_counts)] + shift])
            else:
                out[field.name] = column.reshape(-1, field.width)[rows[field.along]]
        return out | {"batch": np.repeat(np.arange(len(indices)), node_counts), "ptr": ptr}

    def batch_arrays(self, batch):
        return batch

    def pyg_batches(self, many):
        for indices in many:
            yield Batch(_base_cls=Data, **{name: torch.from_numpy(value) for name, value in self.batch(indices).items()})

    def loader(self, workers, count):
        """Batches of indices as the data set's samples, so that a worker gathers a whole batch."""
        order = np.random.default_rng(torch.initial_seed() % (1 << 32)).permutation(count)
        batches = [order[at : at + BATCH] for at in range(0, count, BATCH)]
        if not workers:
            return self.pyg_batches(batches)
        return torch.utils.data.DataLoader(_Batches(self, batches), batch_size=None, num_workers=workers)


class _Batches(torch.utils.data.Dataset):
    def __init__(self, system, batches):
        self.system, self.batches = system, batches

    def __len__(self):
        return len(self.batches)

    def __getitem__(self, number):
        return next(self.system.pyg_batches([self.batches[number]]))
