"""HDF5: whole arrays with tables of offsets, by the same rules as `fencepost import npy`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import fencepost
import numpy as np

from ._errors import SourceError, existing
from ._library import library
from ._names import along_last
from ._write import Path, Record, WriteOptions, write

#: Samples whose offsets are read at once, and bytes of values.
ROWS, BYTES = 1024, 8 << 20
#: What h5py raises where a file is damaged.
DAMAGED = (OSError, RuntimeError, LookupError, TypeError)


def from_hdf5(
    path: Path,
    out: Path,
    *,
    group: str = "/",
    tables: Mapping[str, str] | None = None,
    along: Mapping[str, str] | None = None,
    per_sample: Sequence[str] = (),
    skip: Sequence[str] = (),
    **options: Unpack[WriteOptions],
) -> fencepost.Dataset:
    """Writes arrays with tables of offsets to a file, and opens it.

        nodes_offsets [N + 1]    x [total nodes, 11]    edge_index [2, total edges]    y [N, 19]    name [N]

    A table is named `<axis>_offsets`, `offsets` or `ptr`, or is named in `tables`; it has N + 1 integers, the first 0. Arrays go
    along the axis whose table ends at their length, in dimension 0, or in the last one if `index` is in their name or they
    are named `face`; or they have a row for each sample. Strings and arrays of variable length (h5py's `vlen_dtype`) have a row for
    each sample. Slabs of a few MiB are read at once.

    Args:
        path: the file.
        group: where in it the arrays are.
        tables: axes to names of arrays that are their tables.
        along: arrays to axes, where lengths leave a choice.
        per_sample: arrays that have a row for each sample, where lengths leave a choice.
        skip: arrays to leave out.
        options: see `WriteOptions`.

    Raises:
        SourceError: the file is damaged, a table is none, or an array fits no table or several.
    """
    h5py = library("h5py", "h5py", "from_hdf5")
    name = existing(path, "a file of HDF5")
    try:
        file = h5py.File(name, "r")
    except OSError as error:
        raise SourceError(name, "", "", "a file of HDF5", f"one that does not open ({error})") from error
    with file:
        try:
            if group not in file:
                raise SourceError(name, "", "", f"a group {group}", f"the groups and arrays {', '.join(file) or 'none'}")
            arrays = {key: item for key, item in file[group].items() if key not in skip and isinstance(item, h5py.Dataset)}
            source = _Arrays(h5py, name, arrays, dict(tables or {}), dict(along or {}), set(per_sample))
        except DAMAGED as error:
            raise SourceError(name, "", "", "a whole file of HDF5", f"one that is not read ({error})") from error
        return write(lambda: source, out, options, source=name, total=len(source), schema=source.schema())


@dataclass
class _Table:
    """Offsets along an axis."""

    axis: str
    name: str
    array: Any
    #: Where the last sample ends.
    total: int


@dataclass
class _Column:
    """How one array gives samples: along an axis in dimension `dim`, or a row for each sample."""

    name: str
    array: Any
    dtype: str
    axis: str | None
    dim: int = 0
    #: `utf8`, a numpy dtype of rows of variable length, or None for plain arrays.
    variable: Any = None

    def step(self) -> int:
        """Bytes of one step along its dimension."""
        size = 64 if self.variable is not None else self.array.dtype.itemsize
        return size * int(np.prod([extent for dim, extent in enumerate(self.array.shape) if dim != self.dim], dtype=np.int64))

    def read(self, start: int, stop: int) -> Any:
        place = (slice(None),) * self.dim + (slice(start, stop),)
        return self.array.asstr()[place] if self.variable == "utf8" else self.array[place]

    def cut(self, slab: Any, start: int, stop: int) -> Any:
        """What of a slab belongs to one sample, in C order."""
        if self.axis is None:
            row = slab[start]
            return row if self.variable != "utf8" or slab.ndim == 1 else row.tolist()
        part = slab[(slice(None),) * self.dim + (slice(start, stop),)]
        return part.tolist() if self.variable == "utf8" else np.ascontiguousarray(part)


class _Arrays:
    """Whole arrays as records."""

    def __init__(
        self, h5py: Any, path: str, arrays: dict[str, Any], named: dict[str, str], along: dict[str, str], per_sample: set[str]
    ) -> None:
        self.h5py, self.path = h5py, path
        for name in (*named.values(), *along, *per_sample):
            if name not in arrays:
                raise SourceError(path, "", name, "an array of this name", f"the arrays {', '.join(arrays) or 'none'}")
        found = {name: axis for axis, name in named.items()}
        for name in arrays:
            axis = _axis_of_table(name, arrays)
            if axis is not None and axis not in named:
                found.setdefault(name, axis)
        self.tables: dict[str, _Table] = {}
        for name, axis in found.items():
            if axis in self.tables:
                raise SourceError(path, "", name, f"one table for the axis {axis}", f"{self.tables[axis].name} besides", "skip one")
            self.tables[axis] = self._table(axis, name, arrays.pop(name))
        if not self.tables:
            expected = "a table of offsets: <axis>_offsets, offsets or ptr"
            raise SourceError(path, "", "", expected, f"the arrays {', '.join(arrays) or 'none'}", "name it in tables=")
        self.count = min(len(table.array) for table in self.tables.values()) - 1
        for table in self.tables.values():
            if len(table.array) != self.count + 1:
                raise SourceError(path, "", table.name, f"{self.count + 1} entries, as others have", str(len(table.array)))
        self.columns = [self._column(name, array, along, per_sample) for name, array in arrays.items()]

    def __len__(self) -> int:
        return self.count

    def _table(self, axis: str, name: str, array: Any) -> _Table:
        if array.ndim != 1 or array.dtype.kind not in "iu" or len(array) == 0:
            raise SourceError(self.path, "", name, "a table of integers [samples + 1]", f"{array.dtype} {list(array.shape)}")
        if array[0] != 0:
            raise SourceError(self.path, "entry 0", name, "0", str(array[0]), "a table of lengths has to be summed up")
        return _Table(axis, name, array, int(array[-1]))

    def _column(self, name: str, array: Any, along: dict[str, str], per_sample: set[str]) -> _Column:
        string = self.h5py.check_string_dtype(array.dtype)
        variable = None if string is not None else self.h5py.check_vlen_dtype(array.dtype)
        if array.ndim == 0 or (variable is not None and array.ndim != 1):
            raise SourceError(self.path, "", name, "an array", f"{array.dtype} {list(array.shape)}", "leave it out with skip=")
        if string is not None:
            variable = "utf8"
        dtype = "utf8" if string is not None else np.dtype(variable or array.dtype).name
        dim = array.ndim - 1 if along_last(name) and variable is None else 0
        axis = along.get(name) or (None if name in per_sample else self._fitting(name, array, dim))
        if axis is not None and axis not in self.tables:
            raise SourceError(self.path, "", name, f"a table for the axis {axis}", f"those for {', '.join(self.tables)}")
        dim = dim if axis is not None else 0
        expected = self.count if axis is None else self.tables[axis].total
        if array.shape[dim] != expected:
            raise SourceError(self.path, "", name, f"{expected} along dimension {dim}", f"the shape {list(array.shape)}")
        return _Column(name, array, dtype, axis, dim, variable)

    def _fitting(self, name: str, array: Any, dim: int) -> str | None:
        """The axis that an array goes along, by its length."""
        fitting = [axis for axis, table in self.tables.items() if table.total == array.shape[dim]]
        rows = array.shape[0] == self.count
        if name in fitting or (rows and not fitting):
            return name if fitting else None
        if len(fitting) == 1 and not rows:
            return fitting[0]
        usual = "edges" if name.startswith("edge") else "nodes"
        if usual in fitting and not rows:
            return usual
        if fitting:
            choices = " and ".join([*fitting, *(["a row for each sample"] if rows else [])])
            raise SourceError(
                self.path, "", name, "a length that fits one axis", f"{list(array.shape)}, which fits {choices}",
                "say which in along= or per_sample=",
            )  # fmt: skip
        totals = ", ".join(f"{table.total} {axis}" for axis, table in self.tables.items())
        raise SourceError(
            self.path, "", name, f"a length of {totals} or {self.count} samples", f"the shape {list(array.shape)}",
            "leave it out with skip=",
        )  # fmt: skip

    def schema(self) -> fencepost.Schema:
        attributes = []
        for column in self.columns:
            shape: list[int | str] = list(column.array.shape)
            if column.axis is not None:
                shape[column.dim] = column.axis
            else:
                shape = shape[1:] if column.variable in (None, "utf8") else [column.name]
            indices = along_last(column.name) and column.axis is not None and column.array.dtype.kind in "iu"
            increment = "nodes" if indices and "nodes" in self.tables else None
            try:
                dtype = column.dtype if column.dtype == "utf8" else np.dtype(column.dtype)
                attributes.append(fencepost.Attribute(column.name, dtype, shape, increment=increment))
            except (TypeError, ValueError) as error:
                raise SourceError(self.path, "", column.name, "a dtype that files have", column.dtype, "leave it out with skip=") from error
        try:
            return fencepost.Schema(attributes, axes=list(self.tables))
        except fencepost.SchemaError as error:
            raise SourceError.at(self.path, "", error) from error

    def __iter__(self) -> Iterator[Record]:
        for start in range(0, self.count, ROWS):
            stop = min(start + ROWS, self.count)
            ends = {axis: self._offsets(table, start, stop) for axis, table in self.tables.items()}
            size = np.zeros(stop - start, np.int64)
            for column in self.columns:
                size += column.step() * (np.diff(ends[column.axis]) if column.axis is not None else 1)
            filled = np.cumsum(size)
            first = 0
            while first < stop - start:
                # As many samples as the budget holds, and at least one.
                last = max(first + 1, int(np.searchsorted(filled, (filled[first - 1] if first else 0) + BYTES, "right")))
                yield from self._records(start, first, last, ends)
                first = last

    def _offsets(self, table: _Table, start: int, stop: int) -> Any:
        ends = self._read(table.name, start, stop, lambda: table.array[start : stop + 1].astype(np.int64))
        wrong = np.flatnonzero((ends[1:] < ends[:-1]) | (ends[1:] > table.total) | (ends[:-1] < 0))
        if wrong.size:
            at = int(wrong[0])
            raise SourceError(
                self.path, f"entry {start + at + 1}", table.name, f"an offset in {ends[at]}..={table.total}", str(ends[at + 1])
            )
        return ends

    def _read(self, name: str, start: int, stop: int, read: Any) -> Any:
        try:
            return read()
        except (*DAMAGED, ValueError) as error:
            raise SourceError(self.path, f"samples {start}..{stop}", name, "values", f"some that HDF5 does not read ({error})") from error

    def _records(self, start: int, first: int, last: int, ends: Mapping[str, Any]) -> Iterator[Record]:
        slabs = []
        for column in self.columns:
            table = ends[column.axis] if column.axis is not None else np.arange(start, start + last + 1)
            low, high = int(table[first]), int(table[last])
            slab = self._read(column.name, start + first, start + last, lambda c=column, a=low, b=high: c.read(a, b))
            slabs.append((column, slab, (table[first : last + 1] - low).tolist()))
        lengths = {axis: np.diff(table).tolist() for axis, table in ends.items()}
        for index in range(last - first):
            values = {column.name: column.cut(slab, cuts[index], cuts[index + 1]) for column, slab, cuts in slabs}
            axes = {axis: table[first + index] for axis, table in lengths.items()}
            yield Record(self.path, f"sample {start + first + index}", values, axes)


def _axis_of_table(name: str, arrays: Mapping[str, Any]) -> str | None:
    """The axis that an array of this name is a table of, if it is one."""
    if name in ("ptr", "offsets"):
        return "nodes" if name == "ptr" else "rows"
    axis = name.removesuffix("_offsets")
    if axis == name:
        return None
    # PyG infers the number of nodes from `x`, and the number of edges from `edge_index`.
    return {"x": "nodes", "edge_index": "edges"}.get(axis, axis) if axis in arrays else axis
