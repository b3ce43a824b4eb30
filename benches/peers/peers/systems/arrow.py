"""pyarrow: an Arrow IPC file, mapped; list columns, whose values are views of the file."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from ..system import System, groups


def schema(fields) -> pa.Schema:
    return pa.schema([(field.name, pa.large_list(pa.from_numpy_dtype(field.dtype))) for field in fields])


def record_batch(fields, group) -> pa.RecordBatch:
    """A list column an attribute, values flat."""
    columns = []
    for field in fields:
        values = np.concatenate([sample[field.name].ravel() for sample in group])
        offsets = np.concatenate([[0], np.cumsum([sample[field.name].size for sample in group])])
        columns.append(pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), pa.array(values)))
    return pa.record_batch(columns, schema=schema(fields))


def shaped(fields, flat) -> dict[str, np.ndarray]:
    """Flat values of one sample in their shapes; the counts follow from the sizes."""
    out = {}
    for field in fields:
        value = flat[field.name]
        rows = value.size // field.width
        out[field.name] = value.reshape((field.width, rows) if field.across else (rows, field.width))
    return out


class Arrow(System):
    name = "pyarrow"
    title = "pyarrow, IPC file"
    distribution = "pyarrow"
    use = "record batches of 1,000 in an uncompressed IPC file, memory_map and read_all; a sample is the list scalars' values as numpy"
    natural_batch = "Table, by take"

    def write(self, samples, count):
        with pa.OSFile(str(self.folder / "data.arrow"), "wb") as sink, pa.ipc.new_file(sink, schema(self.fields)) as writer:
            for group in groups(samples, 1000):
                writer.write_batch(record_batch(self.fields, group))

    def open(self):
        self.file = pa.memory_map(str(self.folder / "data.arrow"))
        self.table = pa.ipc.open_file(self.file).read_all()
        self.columns = {name: self.table.column(name) for name in self.table.column_names}

    def close(self):
        self.columns = self.table = None
        self.file.close()

    def get(self, index):
        return shaped(self.fields, {name: values[index].values.to_numpy() for name, values in self.columns.items()})

    def batch(self, indices):
        return self.table.take(np.asarray(indices))

    def batch_arrays(self, batch):
        return rows(self.fields, batch)


def rows(fields, table) -> list[dict[str, np.ndarray]]:
    """The samples of a small table."""
    flat = {}
    for name in table.column_names:
        column = table.column(name).combine_chunks()
        values, offsets = column.values.to_numpy(), column.offsets.to_numpy()
        flat[name] = [values[offsets[at] : offsets[at + 1]] for at in range(len(table))]
    return [shaped(fields, {name: values[at] for name, values in flat.items()}) for at in range(len(table))]
