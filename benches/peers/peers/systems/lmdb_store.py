"""LMDB: a record a sample, raw bytes or a pickled PyG object."""

from __future__ import annotations

import pickle

import lmdb

from ..packed import pack, unpack
from ..system import GivesData, System, as_data, groups


class Raw(System):
    name = "lmdb"
    title = "LMDB, raw bytes"
    distribution = "lmdb"
    use = "8-byte big-endian keys put in order (append=True), one transaction for 1,000; read with buffers=True, lock=False, readahead=False"
    opens_in_worker = True

    def encode(self, sample):
        return pack(self.fields, sample)

    def write(self, samples, count):
        # An address range, not disk: the file grows as it is written.
        environment = lmdb.open(str(self.folder), map_size=1 << 37)
        number = 0
        for group in groups(samples, 1000):
            with environment.begin(write=True) as transaction:
                for sample in group:
                    transaction.put(number.to_bytes(8, "big"), self.encode(sample), append=True)
                    number += 1
        environment.close()

    def open(self):
        self.environment = lmdb.open(str(self.folder), readonly=True, lock=False, readahead=False, meminit=False)
        self.transaction = self.environment.begin(buffers=True)

    def close(self):
        self.transaction.abort()
        self.environment.close()
        self.transaction = self.environment = None

    def get(self, index):
        return unpack(self.fields, self.transaction.get(int(index).to_bytes(8, "big")))


class Pickled(GivesData, Raw):
    name = "lmdb-pickle"
    title = "LMDB, pickled Data"
    use = "the same with pickle.dumps of a PyG Data, as the sets of catalysis challenges are kept"

    def encode(self, sample):
        return pickle.dumps(as_data(sample), protocol=-1)

    def get(self, index):
        return pickle.loads(self.transaction.get(int(index).to_bytes(8, "big")))
