"""A sample as one record of bytes: two counts, then the fields one behind the other. What a store of bytes is given by hand."""

from __future__ import annotations

import numpy as np

from .sets import Field, Sample, counts

HEAD = 16


def pack(fields: tuple[Field, ...], sample: Sample) -> bytes:
    head = np.array(counts(sample), "<i8").tobytes()
    return head + b"".join([sample[field.name].tobytes() for field in fields])


def unpack(fields: tuple[Field, ...], record: bytes | memoryview) -> Sample:
    """Views into the record."""
    nodes, edges = np.frombuffer(record, "<i8", 2).tolist()
    at, out = HEAD, {}
    for field in fields:
        rows, columns = field.shape(nodes, edges)
        value = np.frombuffer(record, field.dtype, rows * columns, at)
        out[field.name] = value.reshape(rows, columns)
        at += value.nbytes
    return out
