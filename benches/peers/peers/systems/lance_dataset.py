"""Lance: list columns, rows by take."""

from __future__ import annotations

import lance
import numpy as np
import pyarrow as pa

from ..system import System, as_data, groups
from .arrow import record_batch, rows, schema


class Lance(System):
    name = "lance"
    title = "Lance"
    distribution = "pylance"
    use = "write_dataset of record batches with its own encodings; rows by take; spawned workers, as its documentation asks"
    natural = "pyarrow Table of one row, by take"
    natural_batch = "pyarrow Table, by take"
    opens_in_worker = True
    start_method = "spawn"

    def write(self, samples, count):
        batches = (record_batch(self.fields, group) for group in groups(samples, 1000))
        reader = pa.RecordBatchReader.from_batches(schema(self.fields), batches)
        lance.write_dataset(reader, str(self.folder / "data.lance"))

    def open(self):
        self.dataset = lance.dataset(str(self.folder / "data.lance"))

    def close(self):
        self.dataset = None

    def get(self, index):
        return self.dataset.take([index])

    def arrays(self, sample):
        return rows(self.fields, sample)[0]

    def batch(self, indices):
        return self.dataset.take(np.asarray(indices).tolist())

    def batch_arrays(self, batch):
        return rows(self.fields, batch)

    def data_list(self, indices):
        return [as_data(sample) for sample in rows(self.fields, self.batch(indices))]
