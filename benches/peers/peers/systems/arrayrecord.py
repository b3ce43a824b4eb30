"""ArrayRecord: records of bytes in groups of one, by its data source."""

from __future__ import annotations

from array_record.python import array_record_data_source, array_record_module

from ..packed import pack, unpack
from ..system import System, as_data


class ArrayRecord(System):
    name = "arrayrecord"
    title = "ArrayRecord"
    distribution = "array_record"
    use = "group_size:1 as recommended for random access, its default compression off (uncompressed); ArrayRecordDataSource and its threaded __getitems__"
    natural_batch = "list of these, by __getitems__"
    opens_in_worker = True

    def write(self, samples, count):
        writer = array_record_module.ArrayRecordWriter(str(self.folder / "data.array_record"), "group_size:1,uncompressed")
        for sample in samples:
            writer.write(pack(self.fields, sample))
        writer.close()

    def open(self):
        self.source = array_record_data_source.ArrayRecordDataSource(str(self.folder / "data.array_record"))

    def close(self):
        self.source = None

    def get(self, index):
        return unpack(self.fields, self.source[int(index)])

    def batch(self, indices):
        return [unpack(self.fields, record) for record in self.source.__getitems__([int(index) for index in indices])]

    def data_list(self, indices):
        return [as_data(sample) for sample in self.batch(indices)]
