"""By hand: a packed record a sample in one file, offsets beside it, one positioned read a sample."""

from __future__ import annotations

import os

import numpy as np

from ..packed import pack, unpack
from ..system import System


class PackedPread(System):
    name = "packed-pread"
    title = "packed records, one pread each"
    use = "records of bytes one behind the other, offsets in memory, os.pread and np.frombuffer"

    def write(self, samples, count):
        ends = [0]
        with open(self.folder / "records.bin", "wb", 1 << 20) as file:
            for sample in samples:
                ends.append(ends[-1] + file.write(pack(self.fields, sample)))
        np.save(self.folder / "offsets.npy", ends)

    def open(self):
        self.file = os.open(self.folder / "records.bin", os.O_RDONLY)
        self.offsets = np.load(self.folder / "offsets.npy")

    def close(self):
        os.close(self.file)

    def get(self, index):
        start, end = self.offsets[index : index + 2].tolist()
        return unpack(self.fields, os.pread(self.file, end - start, start))
