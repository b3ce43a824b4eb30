"""What the records of a database of atoms have in common: a schema made by looking at all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import fencepost
import numpy as np

from ._errors import SourceError
from ._write import Record

Shape = list[int | str]


class _Seen:
    """One attribute, as far as it has been seen."""

    def __init__(self, dtype: str, shape: Shape) -> None:
        self.dtype, self.shape, self.count = dtype, shape, 0


class Survey:
    """Notes names, dtypes and shapes of records, and which names some of them lack.

    Args:
        always: dtype and shape of what every record has.
        axis_of: the axis that arrays of a name are ragged along in their dimension 0, or None. It must not depend on the values
            that happen to be there, so that two parts of a database get one schema.
    """

    def __init__(self, always: Mapping[str, tuple[str, Shape]], axis_of: Callable[[str], str | None]) -> None:
        self.axis_of = axis_of
        self.always = set(always)
        self.seen = {name: _Seen(dtype, list(shape)) for name, (dtype, shape) in always.items()}
        self.records = 0

    def add(self, record: Record) -> None:
        self.records += 1
        for name, value in record.values.items():
            seen = self.seen.get(name)
            if seen is not None and name in self.always:
                seen.count += 1
                continue
            dtype, shape = self._kind(record, name, value)
            if seen is None:
                self.seen[name] = seen = _Seen(dtype, shape)
            elif seen.dtype != dtype or seen.shape != shape:
                self._reconcile(record, name, seen, dtype, shape)
            seen.count += 1

    def _kind(self, record: Record, name: str, value: Any) -> tuple[str, Shape]:
        if isinstance(value, str):
            return "utf8", []
        if isinstance(value, bytes):
            return "bytes", []
        try:
            array = np.asarray(value)
        except ValueError:  # lists that make no array
            array = np.asarray(None)
        dtype = "utf8" if array.dtype.kind == "U" else DTYPES.get(array.dtype.name)
        if dtype is None or (array.size == 0 and array.ndim and not isinstance(value, np.ndarray)):
            found = f"{type(value).__name__} of {array.dtype}" if array.ndim or dtype is None else repr(value)
            raise SourceError(
                record.path, record.place, name, "numbers, strings or arrays of them", found,
                "leave it out with skip=, or pass schema=",
            )  # fmt: skip
        shape: Shape = list(array.shape)
        axis = self.axis_of(name)
        if shape and axis is not None:
            shape[0] = axis
        return dtype, shape

    def _reconcile(self, record: Record, name: str, seen: _Seen, dtype: str, shape: Shape) -> None:
        if seen.shape == shape and {seen.dtype, dtype} == {"i64", "f64"}:
            # A number that happens to be whole; the writer refuses one that f64 does not hold.
            seen.dtype = "f64"
            return
        raise SourceError(
            record.path, record.place, name, f"{seen.dtype} of shape {seen.shape} as in earlier ones", f"{dtype} of shape {shape}",
            "leave it out with skip=, or make them alike",
        )  # fmt: skip

    def schema(self, path: str, skip: Sequence[str] = ()) -> fencepost.Schema:
        """The schema of all records so far, which are those of the database at `path`."""
        try:
            return fencepost.Schema(
                [
                    fencepost.Attribute(name, seen.dtype, seen.shape, optional=name not in self.always and seen.count < self.records)
                    for name, seen in self.seen.items()
                    if name not in skip
                ],
                axes=["nodes"],
            )
        except fencepost.SchemaError as error:
            raise SourceError.at(path, "", error) from error


#: numpy's names of dtypes to the format's.
DTYPES = {
    "bool": "bool", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32",
    "uint64": "u64", "float16": "f16", "float32": "f32", "float64": "f64", "complex64": "c64", "complex128": "c128",
}  # fmt: skip
