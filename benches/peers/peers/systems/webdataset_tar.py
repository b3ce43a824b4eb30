"""WebDataset: tar shards, read from front to back."""

from __future__ import annotations

import webdataset
from torch_geometric.data import Batch

from ..system import BATCH, System, as_data


class WebDataset(System):
    name = "webdataset"
    title = "WebDataset"
    distribution = "webdataset"
    use = "ShardWriter with a .npy an attribute, at least four shards of at most 64 MB; epochs by shuffled shards and a shuffle buffer of 1,000, which is no full shuffle"
    natural = "dict of numpy arrays"
    random_access = False

    def write(self, samples, count):
        with webdataset.ShardWriter(str(self.folder / "%06d.tar"), maxcount=-(-count // 4), maxsize=64e6, verbose=0) as writer:
            for index, sample in enumerate(samples):
                writer.write({"__key__": f"{index:09d}"} | {f"{name}.npy": value for name, value in sample.items()})

    def open(self):
        self.shards = sorted(map(str, self.folder.glob("*.tar")))

    def close(self):
        self.shards = None

    def arrays(self, sample):
        return {field.name: sample[f"{field.name}.npy"] for field in self.fields}

    def in_order(self):
        return map(self.arrays, webdataset.WebDataset(self.shards, shardshuffle=False).decode())

    def _data(self, sample):
        # In one step: its map puts the key back into dicts.
        return as_data(self.arrays(sample))

    def loader(self, workers, count):
        samples = webdataset.WebDataset(self.shards, shardshuffle=len(self.shards)).shuffle(1000).decode()
        batches = samples.map(self._data).batched(BATCH, collation_fn=Batch.from_data_list)
        return webdataset.WebLoader(batches, batch_size=None, num_workers=workers)
