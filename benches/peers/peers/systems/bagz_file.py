"""bagz: records of bytes, mapped."""

from __future__ import annotations

import bagz

from ..packed import pack, unpack
from ..system import System, as_data


class Bagz(System):
    name = "bagz"
    title = "bagz"
    distribution = "bagz"
    use = "Writer without compression, Reader by index; batches by read_indices"
    natural_batch = "list of these, by read_indices"
    opens_in_worker = True

    def write(self, samples, count):
        # The ending .bag means no compression.
        with bagz.Writer(str(self.folder / "data.bag")) as writer:
            for sample in samples:
                writer.write(pack(self.fields, sample))

    def open(self):
        self.reader = bagz.Reader(str(self.folder / "data.bag"))

    def close(self):
        self.reader = None

    def get(self, index):
        return unpack(self.fields, self.reader[int(index)])

    def batch(self, indices):
        return [unpack(self.fields, record) for record in self.reader.read_indices([int(index) for index in indices])]

    def data_list(self, indices):
        return [as_data(sample) for sample in self.batch(indices)]
