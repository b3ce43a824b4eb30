"""Hugging Face datasets: Arrow files, mapped, in numpy's format."""

from __future__ import annotations

import datasets
from datasets.arrow_writer import ArrowWriter

from ..system import System, as_data
from .arrow import shaped

datasets.disable_progress_bars()


class HuggingFace(System):
    name = "hf-datasets"
    title = "Hugging Face datasets"
    distribution = "datasets"
    use = "flat list features written by ArrowWriter, Dataset.from_file, with_format('numpy'); batches through indexing with a list"
    natural = "dict of flat numpy arrays"
    natural_batch = "dict of lists of flat numpy arrays"

    def write(self, samples, count):
        kinds = {"<f4": "float32", "<i8": "int64"}
        features = datasets.Features({field.name: datasets.List(datasets.Value(kinds[field.dtype])) for field in self.fields})
        with ArrowWriter(features=features, path=str(self.folder / "data.arrow"), writer_batch_size=1000) as writer:
            for sample in samples:
                writer.write({name: value.ravel() for name, value in sample.items()})
            writer.finalize()

    def open(self):
        self.dataset = datasets.Dataset.from_file(str(self.folder / "data.arrow")).with_format("numpy")

    def close(self):
        self.dataset = None

    def get(self, index):
        return self.dataset[int(index)]

    def arrays(self, sample):
        return shaped(self.fields, sample)

    def batch(self, indices):
        return self.dataset[[int(index) for index in indices]]

    def batch_arrays(self, batch):
        count = len(batch["x"])
        return [shaped(self.fields, {name: values[at] for name, values in batch.items()}) for at in range(count)]

    def data_list(self, indices):
        return [as_data(sample) for sample in self.batch_arrays(self.batch(indices))]
