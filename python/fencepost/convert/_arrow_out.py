"""Files to Arrow: without a copy of the values where the file has them as Arrow does."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import fencepost
import numpy as np

from .._progress import bar
from ._layout import LEAVES, Layout, counts_before, hidden_of
from ._library import library
from ._publish import published
from ._write import Path

#: Bytes of values in one batch of a stream.
BYTES = 16 << 20


def to_arrow(dataset: fencepost.Dataset | Path) -> Any:
    """The samples as a `pyarrow.Table`, a row each.

    Without a copy: the values of each attribute of numbers, if the data set is the whole file, mapped or resident, and the
    attribute is stored as its own dtype and is not optional; they stay in the file, which the table keeps open. Made anew: the
    offsets (8 bytes a sample and axis). Copied: bools (Arrow packs them into bits), strings, optional attributes, what is stored
    narrower, and everything of a view or over the positional backing.

    Of shape `["nodes", 64]` comes `large_list<fixed_size_list<float>[64]>`, of `[2, "edges"]` `fixed_size_list<large_list<int64>>[2]`.
    The schema goes along as metadata, so that `from_arrow` makes the same file again.
    """
    out = _Columns(_opened(dataset), "to_arrow")
    return out.pyarrow.Table.from_batches([out.batch(0, out.count)], out.schema)


def to_ipc(dataset: fencepost.Dataset | Path, path: Path, *, overwrite: bool = True, progress: bool = False) -> None:
    """Writes the samples as a file of Arrow's IPC format (`.arrow`, `.feather`), batch by batch; it appears when it is complete."""
    out = _Columns(_opened(dataset), "to_ipc")
    with published(path, overwrite) as target, out.pyarrow.ipc.new_file(target, out.schema) as writer:
        for batch in out.batches(progress, path):
            writer.write_batch(batch)


def to_parquet(
    dataset: fencepost.Dataset | Path,
    path: Path,
    *,
    compression: str = "zstd",
    overwrite: bool = True,
    progress: bool = False,
) -> None:
    """Writes the samples as a Parquet file, row group by row group of some 16 MiB; it appears when it is complete."""
    parquet = library("pyarrow.parquet", "pyarrow", "to_parquet")
    out = _Columns(_opened(dataset), "to_parquet")
    with published(path, overwrite) as target:
        with parquet.ParquetWriter(target, out.schema, compression=compression, write_page_checksum=True) as writer:
            for batch in out.batches(progress, path):
                writer.write_batch(batch)


def _opened(dataset: fencepost.Dataset | Path) -> fencepost.Dataset:
    return dataset if isinstance(dataset, fencepost.Dataset) else fencepost.open(dataset)


class _Columns:
    """The attributes of a data set as columns, for rows in order."""

    def __init__(self, dataset: fencepost.Dataset, function: str) -> None:
        self.pyarrow = library("pyarrow", "pyarrow", function)
        self.dataset, self.count = dataset, len(dataset)
        self.layout = Layout.shown(dataset)
        axes = {dim for item in self.layout.schema.attributes for dim in item.shape if isinstance(dim, str)}
        self.offsets = {axis: dataset.offsets(axis) for axis in axes | set(self.layout.counts.values())}
        self.arenas = {item.name: self._arena(item) for item in self.layout.schema.attributes}
        self.copied = dataset.project([name for name in dataset.attributes if self.arenas[name] is None])
        #: Where in its arena each attribute's next row begins.
        self.at = dict.fromkeys(self.arenas, 0)
        fields = [self.pyarrow.field(item.name, self._type(item), nullable=item.optional) for item in self.layout.schema.attributes]
        fields += [self.pyarrow.field(name, self.pyarrow.int64(), nullable=False) for name in self.layout.counts]
        self.schema = self.pyarrow.schema(fields, metadata=self.layout.dump())

    def _arena(self, item: fencepost.Attribute) -> Any:
        """All values of an attribute, where they lie, or None if they have to be copied."""
        whole = self.dataset.indices is None and self.dataset.backing in ("mapped", "resident")
        if not whole or item.hidden or item.optional or item.stored != item.dtype or item.dtype in ("bool", "utf8", "bytes"):
            return None
        return self.dataset.arena(item.name).view(LEAVES[item.dtype][0])

    def _leaf(self, item: fencepost.Attribute) -> Any:
        if item.dtype in ("utf8", "bytes"):
            return self.pyarrow.large_utf8() if item.dtype == "utf8" else self.pyarrow.large_binary()
        name, parts = LEAVES[item.dtype]
        leaf = self.pyarrow.from_numpy_dtype(np.dtype(name))
        return leaf if parts == 1 else self.pyarrow.list_(self._field(leaf), parts)

    def _field(self, kind: Any) -> Any:
        return self.pyarrow.field("item", kind, nullable=False)

    def _type(self, item: fencepost.Attribute) -> Any:
        kind = self._leaf(item)
        for dim in reversed(item.shape):
            field = self._field(kind)
            kind = self.pyarrow.list_(field, dim) if isinstance(dim, int) and dim > 0 else self.pyarrow.large_list(field)
        return kind

    # Rows -------------------------------------------------------------------------------------------------------------

    def batches(self, progress: bool, path: Path) -> Iterator[Any]:
        """All rows, in batches of some 16 MiB."""
        rows = max(1, min(1 << 16, BYTES * max(self.count, 1) // max(self.dataset.nbytes, 1)))
        shown = bar(self.count, f"writing {os.path.basename(os.fspath(path))}", "samples") if progress else None
        for start in range(0, self.count, rows):
            stop = min(start + rows, self.count)
            yield self.batch(start, stop)
            if shown is not None:
                shown.update(stop - start)
        if shown is not None:
            shown.close()

    def batch(self, start: int, stop: int) -> Any:
        """Rows from `start`, which is where the batch before this one ended."""
        names = self.copied.attributes
        samples = [self.copied[index] for index in range(start, stop)] if names else []
        columns = []
        for item, field in zip(self.layout.schema.attributes, self.schema, strict=False):
            if self.arenas[item.name] is not None:
                column = self._borrowed(item, field.type, start, stop)
            elif item.hidden:
                column = self._made(item, field.type, self._hidden(item, start, stop))
            else:
                column = self._made(item, field.type, [sample[item.name] for sample in samples])
            columns.append(column)
        for axis in self.layout.counts.values():
            columns.append(self.pyarrow.array(np.diff(self.offsets[axis][start : stop + 1])))
        return self.pyarrow.RecordBatch.from_arrays(columns, schema=self.schema)

    def _borrowed(self, item: fencepost.Attribute, kind: Any, start: int, stop: int) -> Any:
        extents = [
            dim if isinstance(dim, int) else np.diff(self.offsets[dim][start : stop + 1]) for dim in item.shape
        ]
        parts = LEAVES[item.dtype][1]
        size = parts * np.ones(stop - start, np.int64)
        for extent in extents:
            size = size * extent
        first = self.at[item.name]
        self.at[item.name] = last = first + int(size.sum())
        return self._nested(self._primitive(self.arenas[item.name][first:last]), kind, extents, stop - start, parts)

    def _primitive(self, values: Any) -> Any:
        """An array over the same memory, which it keeps alive."""
        kind = self.pyarrow.from_numpy_dtype(values.dtype)
        return self.pyarrow.Array.from_buffers(kind, len(values), [None, self.pyarrow.py_buffer(values)])

    def _hidden(self, item: fencepost.Attribute, start: int, stop: int) -> list[Any]:
        """What each sample adds to the indices of those behind it. Batches tell the sums."""
        name = next(other.name for other in self.layout.schema.attributes if hidden_of(other) == item.name)
        rows = np.arange(start, stop + 1)
        rows[-1] = stop - 1
        sums = self.dataset.project([name]).batch(rows).increments(name) if stop > start else None
        if sums is None:
            return [np.zeros(item.shape, LEAVES[item.dtype][0])] * (stop - start)
        return list(np.diff(sums, axis=0).reshape(stop - start, *item.shape).astype(LEAVES[item.dtype][0]))

    def _made(self, item: fencepost.Attribute, kind: Any, rows: Sequence[Any]) -> Any:
        """A column of values of single samples, None where one is absent."""
        valid = np.array([row is not None for row in rows], np.bool_)
        absent = [dim if isinstance(dim, int) else 0 for dim in item.shape]
        strings = item.dtype in ("utf8", "bytes")
        shapes = np.empty((len(rows), len(item.shape)), np.int64)
        for index, row in enumerate(rows):
            shapes[index] = absent if row is None else _shape_of(row, len(item.shape)) if strings else np.shape(row)
        parts = 1
        if strings:
            flat: list[Any] = []
            empty = "" if item.dtype == "utf8" else b""
            for row in rows:
                flat += [empty] * int(np.prod(absent)) if row is None else _flat(row)
            leaf = self.pyarrow.array(flat, self._leaf(item))
        else:
            name, parts = LEAVES[item.dtype]
            zeros = np.zeros(absent, name if parts == 1 else {"float32": "c8", "float64": "c16"}[name])
            pieces = [np.ascontiguousarray(zeros if row is None else row).ravel() for row in rows] or [zeros.ravel()[:0]]
            values = np.concatenate(pieces).view(name)
            leaf = self.pyarrow.array(values) if item.dtype == "bool" else self._primitive(values)
        extents = [dim if isinstance(dim, int) else shapes[:, place] for place, dim in enumerate(item.shape)]
        column = self._nested(leaf, kind, extents, len(rows), parts)
        if valid.all():
            return column
        compute = library("pyarrow.compute", "pyarrow", "to_arrow")
        return compute.if_else(self.pyarrow.array(valid), column, self.pyarrow.scalar(None, kind))

    def _nested(self, leaf: Any, kind: Any, extents: list[Any], count: int, parts: int) -> Any:
        """A flat array as rows: each extent is a number, or a length for each row."""
        levels: list[tuple[Any, Any]] = []
        inside: Any = np.ones(count, np.int64)  # entries of this level in each row
        for extent in extents:
            if isinstance(extent, int) and extent > 0:
                levels.append((kind, None))
            else:
                lengths = np.repeat(np.broadcast_to(extent, count), inside)
                levels.append((kind, counts_before(lengths)))
            inside, kind = inside * extent, kind.value_type
        if parts > 1:
            levels.append((kind, None))
        column = leaf
        for kind, offsets in reversed(levels):
            if offsets is None:
                column = self.pyarrow.FixedSizeListArray.from_arrays(column, type=kind)
            else:
                column = self.pyarrow.LargeListArray.from_arrays(self._primitive(offsets), column, type=kind)
        return column


def _shape_of(value: Any, rank: int) -> list[int]:
    """The extents of nested lists of strings."""
    shape = []
    for _ in range(rank):
        shape.append(len(value))
        if not value:
            break
        value = value[0]
    return shape + [0] * (rank - len(shape))


def _flat(value: Any) -> list[Any]:
    if not isinstance(value, list):
        return [value]
    return [string for item in value for string in _flat(item)]
