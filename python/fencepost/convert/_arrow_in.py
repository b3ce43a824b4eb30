"""Arrow to files: list columns become ragged attributes, row by row, without a Python object for each value."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Unpack

import fencepost
import numpy as np

from ._errors import SourceError, existing
from ._layout import LEAVES, Layout, counts_before, told_by
from ._library import library
from ._names import natural
from ._write import Path, Record, WriteOptions, write

#: Rows that are taken apart at once, and bytes of what is read at once where sizes are known before.
ROWS, BYTES = 1024, 8 << 20


def from_arrow(source: Any, out: Path, *, skip: Sequence[str] = (), **options: Unpack[WriteOptions]) -> fencepost.Dataset:
    """Writes the rows of an Arrow table to a file, and opens it.

    A column of numbers or strings becomes an attribute of shape `[]`, one of lists an attribute with a dimension for each
    level; the lists of one row have to be rectangular. Without a schema, names say what is ragged, by PyG's rules. A table
    that `to_arrow` made says all itself, and gives the same file again. Nulls are absent values of optional attributes.

    Args:
        source: a table, a record batch, a reader of batches, a `pyarrow.dataset.Dataset`, anything else that exports an Arrow
            stream (polars, DuckDB), or the path of a file of the IPC format.
        skip: columns to leave out.
        options: see `WriteOptions`.

    Raises:
        SourceError: a column has a type that files have not, a row's lists are not rectangular, or a value is missing.
    """
    pyarrow = library("pyarrow", "pyarrow", "from_arrow")
    if isinstance(source, (str, os.PathLike)):
        return _from_ipc(pyarrow, os.fspath(source), out, skip, options)
    name = type(source).__name__
    if isinstance(source, pyarrow.RecordBatch):
        source = pyarrow.Table.from_batches([source])
    if hasattr(source, "to_batches"):
        return write_batches(name, source.schema, named(name, source.to_batches), out, skip, options, getattr(source, "num_rows", None))
    if not hasattr(source, "__arrow_c_stream__"):
        raise TypeError(f"source: expected something of Arrow or a path, found {name}")
    if isinstance(source, pyarrow.RecordBatchReader) and options.get("optional"):
        raise TypeError("optional: expected a schema instead, since a reader can be read once only")
    reader = pyarrow.RecordBatchReader.from_stream(source)
    readers = iter([reader])

    def again() -> Any:
        return next(readers, None) or pyarrow.RecordBatchReader.from_stream(source)

    return write_batches(name, reader.schema, named(name, again), out, skip, options)


def from_parquet(
    path: Path | Sequence[Path], out: Path, *, skip: Sequence[str] = (), **options: Unpack[WriteOptions]
) -> fencepost.Dataset:
    """Writes the rows of Parquet files to a file, and opens it. A folder's `.parquet` files are taken in natural order.

    Columns become attributes as in `from_arrow`. Files are read by some rows at a time, and what pages have checksums of is checked.
    """
    parquet = library("pyarrow.parquet", "pyarrow", "from_parquet")
    pyarrow = library("pyarrow", "pyarrow", "from_parquet")

    def opened(path: str) -> Any:
        existing(path, "a file of Parquet")
        # Page by page, where the default reads all of a row group ahead: strangers' may be larger than memory.
        how = {"page_checksum_verification": True, "pre_buffer": False, "buffer_size": 1 << 20}
        return _opened(path, "a file of Parquet", pyarrow, partial(parquet.ParquetFile, path, **how))

    paths = _files(path)
    schema: Any = None
    rows = size = 0
    for each in paths:
        with opened(each) as file:
            rows += file.metadata.num_rows
            size += sum(file.metadata.row_group(group).total_byte_size for group in range(file.metadata.num_row_groups))
            schema = schema or file.schema_arrow
            if not file.schema_arrow.equals(schema):
                raise SourceError(each, "", "", f"the columns of {paths[0]} ({_told(schema)})", _told(file.schema_arrow))
    columns = _names(schema, paths[0], skip)
    at_once = max(1, min(ROWS, BYTES * rows // max(size, 1)))

    def batches() -> Iterator[tuple[str, Any]]:
        for each in paths:
            with opened(each) as file:
                for batch in file.iter_batches(batch_size=at_once, columns=columns):
                    yield each, batch

    return write_batches(paths[0], schema, batches, out, skip, options, rows)


def _from_ipc(pyarrow: Any, path: str, out: Path, skip: Sequence[str], options: WriteOptions) -> fencepost.Dataset:
    def opened() -> Any:
        with open(path, "rb") as file:
            stream = file.read(6) != b"ARROW1"
        file = pyarrow.memory_map(path)
        return pyarrow.ipc.open_stream(file) if stream else pyarrow.ipc.open_file(file)

    existing(path, "a file of Arrow's IPC format")
    reader = _opened(path, "a file of Arrow's IPC format", pyarrow, opened)

    def batches() -> Iterator[tuple[str, Any]]:
        file = opened()
        parts = map(file.get_batch, range(file.num_record_batches)) if hasattr(file, "num_record_batches") else file
        for batch in parts:
            yield path, batch

    return write_batches(path, reader.schema, batches, out, skip, options)


def _opened(path: str, what: str, pyarrow: Any, opened: Callable[[], Any]) -> Any:
    try:
        return opened()
    except (pyarrow.ArrowException, OSError) as error:
        raise SourceError(path, "", "", what, f"one that does not open ({error})") from error


def _files(path: Path | Sequence[Path]) -> list[str]:
    if not isinstance(path, (str, os.PathLike)):
        paths = [os.fspath(each) for each in path]
        if not paths:
            raise ValueError("path: expected at least one file, found none")
        return paths
    name = os.fspath(path)
    if not os.path.isdir(name):
        return [name]
    names = sorted((each for each in os.listdir(name) if each.endswith(".parquet")), key=natural)
    if not names:
        raise SourceError(name, "", "", "files named *.parquet", "none")
    return [os.path.join(name, each) for each in names]


def _names(schema: Any, source: str, skip: Sequence[str]) -> list[str]:
    try:
        return [name for name in schema.names if name not in skip]
    except UnicodeDecodeError as error:
        raise SourceError(source, "", "", "names of columns in UTF-8", f"some that are not ({error})") from error


def _told(schema: Any) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)


def named(source: str, batches: Callable[[], Iterable[Any]]) -> Callable[[], Iterable[tuple[str, Any]]]:
    """Batches that are all of one source."""
    return lambda: ((source, batch) for batch in batches())


def write_batches(
    source: str,
    schema: Any,
    batches: Callable[[], Iterable[tuple[str, Any]]],
    out: Path,
    skip: Sequence[str],
    options: WriteOptions,
    total: int | None = None,
) -> fencepost.Dataset:
    """Writes the columns of record batches, each with the name of its source; `batches` begins anew at each call."""
    pyarrow = library("pyarrow", "pyarrow", "from_arrow")
    layout = Layout.load(schema.metadata)
    columns = _names(schema, source, skip)
    if len(set(columns)) < len(columns):
        raise SourceError(source, "", "", "columns of different names", ", ".join(columns))
    given = options.get("schema")
    if given is not None:
        layout = Layout.of(given, {})
        layout.counts = {name: axis for name, axis in layout.counts.items() if name in columns}
    elif layout is not None:
        if set(columns) == {item.name for item in layout.schema.attributes} | set(layout.counts):
            options.setdefault("metadata", layout.metadata)
        else:
            layout = None  # columns were added, dropped or renamed since
    rows = _Rows(pyarrow, source, {name: _Column(pyarrow, source, schema.field(name), layout) for name in columns}, layout, batches)
    return write(lambda: rows, out, options, source=source, total=total, schema=layout.schema if layout and given is None else None)


class _Rows:
    """Rows of record batches as records."""

    def __init__(
        self,
        pyarrow: Any,
        source: str,
        columns: dict[str, _Column],
        layout: Layout | None,
        batches: Callable[[], Iterable[tuple[str, Any]]],
    ) -> None:
        self.pyarrow, self.source, self.columns, self.batches = pyarrow, source, columns, batches
        self.counts = layout.counts if layout else {}
        attributes = layout.schema.attributes if layout else []
        #: Where a row tells the length of an axis, and what cannot be rebuilt without it: the inner lists of no list.
        self.told = [(item.name, axis, place) for item in attributes if not item.optional for axis, place in told_by(item).items()]
        self.deep = [item for item in attributes if len(_axes(item)) > len(told_by(item))]

    def __iter__(self) -> Iterator[Record]:
        last, row = "", 0
        for source, batch in self._batches():
            row = row if source == last else 0
            last = source
            # A batch may be as large as its writer liked.
            for start in range(0, batch.num_rows, ROWS):
                part = batch.slice(start, ROWS)
                cuts = {name: column.cutter(part.column(name), source, row) for name, column in self.columns.items()}
                for index in range(part.num_rows):
                    values = {name: cut(index) for name, cut in cuts.items()}
                    axes = {axis: self._count(values.pop(name), source, row, name) for name, axis in self.counts.items()}
                    if self.deep:
                        self._rebuild(values, axes)
                    yield Record(source, f"row {row}", values, axes or None)
                    row += 1

    def _batches(self) -> Iterator[tuple[str, Any]]:
        last, row = self.source, 0
        try:
            for source, batch in self.batches():
                # Offsets of a damaged or a stranger's file may lead anywhere.
                batch.validate(full=True)
                row = (row if source == last else 0) + batch.num_rows
                last = source
                yield source, batch
        except (self.pyarrow.ArrowException, OSError) as error:
            raise SourceError(last, f"behind row {row}", "", "whole record batches", f"one that is not read ({error})") from error

    @staticmethod
    def _count(value: Any, source: str, row: int, name: str) -> int:
        if getattr(value, "shape", None) != () or value.dtype.kind not in "iu" or value < 0:
            found = "a null" if value is None else str(value)
            raise SourceError(source, f"row {row}", name, "the length of an axis", found, "leave the column out with skip=")
        return int(value)

    def _rebuild(self, values: dict[str, Any], axes: dict[str, int]) -> None:
        """Gives arrays without values the extents that lists do not tell."""
        known = dict(axes)
        for name, axis, place in self.told:
            shape = np.shape(values.get(name, ()))
            if len(shape) > place:
                known.setdefault(axis, shape[place])
        for item in self.deep:
            value = values.get(item.name)
            extents = [dim if isinstance(dim, int) else known.get(dim, -1) for dim in item.shape]
            # The writer says it of values that do not fit.
            if isinstance(value, np.ndarray) and value.size == 0 and 0 in extents and -1 not in extents:
                values[item.name] = value.reshape(extents)


class _Column:
    """A column of any nesting of lists: how its rows become values."""

    def __init__(self, pyarrow: Any, source: str, field: Any, layout: Layout | None) -> None:
        self.pyarrow, self.name = pyarrow, field.name
        types = pyarrow.types
        kind = field.type
        while isinstance(kind, pyarrow.BaseExtensionType):
            kind = kind.storage_type
        if types.is_dictionary(kind):
            kind = kind.value_type
        #: Of each level of lists its fixed extent, or None.
        self.levels: list[int | None] = []
        while types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
            self.levels.append(kind.list_size if types.is_fixed_size_list(kind) else None)
            kind = kind.value_type
        #: What an extent is in rows that do not tell, because an outer one is 0.
        self.usual = [extent or 0 for extent in self.levels]
        self.strings = types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or types.is_large_binary(kind)
        self.strings = self.strings or types.is_fixed_size_binary(kind)
        numbers = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
        if not (self.strings or numbers):
            advice = "flatten it (Table.flatten)" if types.is_struct(kind) else "cast it"
            expected = "numbers, strings or lists of them"
            raise SourceError(source, "", field.name, expected, str(field.type), f"{advice}, or leave it out with skip=")
        self.dtype = None if self.strings else np.dtype(kind.to_pandas_dtype())
        self.complex = False
        if layout is not None and field.name in layout.schema:
            item = layout.schema[field.name]
            pairs = self.levels[-1:] == [2] and types.is_floating(kind)
            self.complex = pairs and LEAVES.get(item.dtype, ("", 1))[1] == 2

    def cutter(self, column: Any, source: str, row: int) -> Callable[[int], Any]:
        """A function of the row within this part of the column, which begins at `row` of the source."""
        while isinstance(column.type, self.pyarrow.BaseExtensionType):
            column = column.storage
        if self.pyarrow.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        valid = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None
        offsets: list[Any] = []
        inner, ends = column, np.arange(len(column) + 1)  # where each row begins in `inner`
        for depth, extent in enumerate(self.levels):
            if extent is None:
                table = inner.offsets.to_numpy().astype(np.int64)
                # Only what these rows use, whatever else the child holds.
                inner = inner.values.slice(int(table[0]), int(table[-1] - table[0]))
                table -= table[0]
                if len(table) > 1:
                    self.usual[depth] = int(table[1])
                offsets.append(table)
                ends = table[ends]
            else:
                inner = inner.values.slice(inner.offset * extent, len(inner) * extent)
                offsets.append(None)
                ends = ends * extent
            self._refuse_nulls(inner, ends, valid, source, row)
        leaf = self._leaf(inner)
        levels, usual, strings, paired = self.levels, list(self.usual), self.strings, self.complex
        name = self.name

        def cut(index: int) -> Any:
            if valid is not None and not valid[index]:
                return None
            low, high, shape = index, index + 1, []
            for depth, extent in enumerate(levels):
                if extent is not None:
                    low, high = low * extent, high * extent
                    shape.append(extent)
                    continue
                ends = offsets[depth]
                if high == low:
                    shape.append(usual[depth])
                    low = high = int(ends[low])
                    continue
                first, last = int(ends[low]), int(ends[high])
                length = int(ends[low + 1]) - first
                if high - low > 1 and (np.diff(ends[low : high + 1]) != length).any():
                    lengths = sorted(set(np.diff(ends[low : high + 1]).tolist()))
                    raise SourceError(source, f"row {row + index}", name, "lists of one length", f"lists of {lengths} values")
                low, high = first, last
                shape.append(length)
            if strings:
                return _nested(leaf[low:high], shape)
            values = leaf[low:high].reshape(shape)
            return values.view(f"c{2 * values.itemsize}")[..., 0] if paired else values

        return cut

    def _refuse_nulls(self, inner: Any, ends: Any, valid: Any, source: str, row: int) -> None:
        """That no row that is there has a null inside. What is inside of a null row is filling."""
        if not inner.null_count:
            return
        before = counts_before(inner.is_null().to_numpy(zero_copy_only=False))
        wrong = np.diff(before[ends]) > 0
        if valid is not None:
            wrong &= valid
        if wrong.any():
            advice = "fill it, or drop the row: only whole values can be absent"
            place = f"row {row + int(np.argmax(wrong))}"
            raise SourceError(source, place, self.name, "values throughout", "a null among them", advice)

    def _leaf(self, leaf: Any) -> Any:
        if self.strings:
            return leaf.to_pylist()
        assert self.dtype is not None
        if leaf.null_count:  # of rows that are null: any value will do
            leaf = leaf.fill_null(False if self.dtype == np.bool_ else 0)
        return leaf.to_numpy(zero_copy_only=False).astype(self.dtype, copy=False)


def _nested(flat: list[Any], shape: list[int]) -> Any:
    if not shape:
        return flat[0]
    array = np.empty(len(flat), object)
    array[:] = flat
    return array.reshape(shape)


def _axes(item: fencepost.Attribute) -> list[str]:
    return [dim for dim in item.shape if isinstance(dim, str)]
