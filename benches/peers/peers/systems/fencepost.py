"""Ours: one file, over each backing."""

from __future__ import annotations

from pathlib import Path

import fencepost
import fencepost.pyg

from ..system import BATCH, GivesData, System, as_data


class Mapped(System):
    name = "fencepost"
    title = "fencepost, mapped"
    distribution = "fencepost"
    use = (
        "Writer with a declared schema, from dicts of arrays (byte for byte the file that fencepost.pyg.convert makes); fencepost.open; "
        "PyG forms by fencepost.pyg.open and its DataLoader, whose num_workers are threads (0 takes its default of two; under a limit one, which makes one batch ahead)"
    )
    natural_batch = "Batch of numpy arrays, joined by PyG's rules"
    backing = "mapped"
    options: dict = {}

    @property
    def path(self) -> Path:
        return self.folder / "data.fence"

    def prepare(self, first):
        # The schema that PyG's objects of these fields have, from a set of two.
        small = self.folder / "small.fence"
        fencepost.pyg.convert([as_data(first)] * 2, small, progress=False)
        like = fencepost.open(small)
        self.schema, self.metadata = like.schema, like.metadata
        small.unlink()

    def write(self, samples, count):
        with fencepost.Writer(self.path, self.schema, metadata=self.metadata, **self.options) as writer:
            for sample in samples:
                writer.append(sample, axes={"nodes": len(sample["x"])})

    def open(self):
        self.dataset = fencepost.open(self.path, backing=self.backing)
        self._pyg = None

    @property
    def pyg(self):
        if self._pyg is None:
            self._pyg = fencepost.pyg.open(self.path, backing=self.backing)
        return self._pyg

    def close(self):
        self.dataset = self._pyg = None

    def get(self, index):
        return self.dataset[index]

    def batch(self, indices):
        return self.dataset.batch(indices)

    def batch_arrays(self, batch):
        return dict(batch.items())

    def data(self, index):
        return self.pyg[index]

    def pyg_batches(self, many):
        return iter(fencepost.pyg.DataLoader(self.pyg, batch_sampler=list(many)))

    def loader(self, workers, count):
        return fencepost.pyg.DataLoader(self.pyg, BATCH, shuffle=True, num_workers=workers)

    def frugal_loader(self, count):
        return fencepost.pyg.DataLoader(self.pyg, BATCH, shuffle=True, num_workers=1, prefetch_factor=1)


class Resident(Mapped):
    name = "fencepost-resident"
    title = "fencepost, resident"
    use = "the same file, read into memory when it is opened"
    backing = "resident"


class Positional(Mapped):
    name = "fencepost-positional"
    title = "fencepost, positional"
    use = "the same file by positioned reads"
    backing = "positional"


class Narrow(Mapped):
    name = "fencepost-narrow"
    title = "fencepost, narrow, mapped"
    use = "Writer(narrow=True): each attribute as the smallest type that holds its values exactly"
    options = {"narrow": True}


class Convert(Mapped, GivesData):
    name = "fencepost-convert"
    title = "fencepost.pyg, from and to Data"
    use = "fencepost.pyg.convert of PyG's objects, which are made on the way; samples and batches as PyG's objects"

    def write(self, samples, count):
        fencepost.pyg.convert(map(as_data, samples), self.path, progress=False)

    def get(self, index):
        return self.pyg[index]

    arrays, batch_arrays = GivesData.arrays, GivesData.batch_arrays

    def batch(self, indices):
        return next(self.pyg_batches([indices]))
