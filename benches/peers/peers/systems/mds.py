"""MosaicML Streaming: MDS shards."""

from __future__ import annotations

import sys
import types

from torch_geometric.data import Batch

from ..system import BATCH, System, as_data

# Only its classes for texts use transformers, but the package imports it, in a version that would pull numpy back: two empty classes.
for _module, _name in (
    ("transformers.feature_extraction_utils", "BatchFeature"),
    ("transformers.tokenization_utils_base", "BatchEncoding"),
    ("transformers.models.auto.tokenization_auto", "AutoTokenizer"),
):
    _stand_in = sys.modules.setdefault(_module, types.ModuleType(_module))
    setattr(_stand_in, _name, type(_name, (dict,), {}))

from streaming import LocalDataset, MDSWriter, StreamingDataLoader, StreamingDataset  # noqa: E402
from streaming.base.util import clean_stale_shared_memory  # noqa: E402


class Mds(System):
    name = "mds"
    title = "MosaicML MDS"
    distribution = "mosaicml-streaming"
    use = "MDSWriter with ndarray columns and shards of 64 MiB, LocalDataset for samples; epochs by StreamingDataset (shuffled by its default py1e) and StreamingDataLoader"
    natural = "dict of numpy arrays"

    @property
    def path(self):
        return str(self.folder / "data")

    def write(self, samples, count):
        kinds = {"<f4": "float32", "<i8": "int64"}
        columns = {field.name: f"ndarray:{kinds[field.dtype]}" for field in self.fields}
        with MDSWriter(out=self.path, columns=columns, size_limit=1 << 26) as writer:
            for sample in samples:
                writer.write(sample)

    def open(self):
        self.dataset = LocalDataset(self.path)

    def close(self):
        self.dataset = None

    def get(self, index):
        return self.dataset[int(index)]

    def loader(self, workers, count):
        clean_stale_shared_memory()
        dataset = StreamingDataset(local=self.path, shuffle=True, batch_size=BATCH)
        return StreamingDataLoader(dataset, batch_size=BATCH, num_workers=workers, collate_fn=collate)


def collate(samples):
    return Batch.from_data_list([as_data(sample) for sample in samples])
