"""LitData: chunks of 64 MB."""

from __future__ import annotations

import litdata
from litdata.streaming.cache import Cache
from torch_geometric.data import Batch

from ..system import BATCH, System, as_data


class LitData(System):
    name = "litdata"
    title = "LitData"
    distribution = "litdata"
    use = "its chunk writer (what optimize runs in each worker) with chunks of 64 MB, StreamingDataset of the local folder; epochs by its StreamingDataLoader, which shuffles chunks and within them"
    natural = "dict of numpy arrays"

    def write(self, samples, count):
        cache = Cache(str(self.folder / "data"), chunk_bytes="64MB")
        for index, sample in enumerate(samples):
            cache[index] = sample
        cache.done()
        cache.merge()

    def open(self):
        self.dataset = litdata.StreamingDataset(str(self.folder / "data"))
        len(self.dataset)

    def close(self):
        self.dataset = None

    def get(self, index):
        return self.dataset[int(index)]

    def loader(self, workers, count):
        dataset = litdata.StreamingDataset(str(self.folder / "data"), shuffle=True, drop_last=False)
        return litdata.StreamingDataLoader(dataset, batch_size=BATCH, num_workers=workers, collate_fn=collate)


def collate(samples):
    return Batch.from_data_list([as_data(sample) for sample in samples])
