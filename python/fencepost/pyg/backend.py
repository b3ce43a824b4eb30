"""fencepost as a database of `OnDiskDataset`: `OnDiskDataset(backend="fencepost")` after `register_backend()`."""

from __future__ import annotations

import os
import warnings
import weakref
from collections.abc import Sequence
from typing import Any

from torch import Tensor
from torch_geometric.data import Data, Database, OnDiskDataset
from torch_geometric.data.data import BaseData

from . import legacy
from .errors import PygError
from .source import Source
from .write import SampleWriter

NAME = "fencepost"


def register_backend() -> None:
    """Makes `backend="fencepost"` known to `OnDiskDataset` and `to_on_disk_dataset`. May be called again."""
    OnDiskDataset.BACKENDS[NAME] = FencepostDatabase


class FencepostDatabase(Database):  # type: ignore[misc]
    """Rows in one file, written once.

    Rows are appended in order, and the file appears under its name when the first one is read, when the database is
    closed, or when `process()` has returned; a `process()` that dies leaves nothing. After that rows can be read only. Types
    and shapes are those of the rows: a `schema` is not needed, and nothing is cast to it or unpickled.
    """

    def __init__(self, path: str, schema: Any = object, allow_pickle: bool = False) -> None:
        super().__init__(schema)
        self.path = os.fspath(path)
        self.allow_pickle = allow_pickle
        self._state = _State(self.path)
        self._source: Source | None = None
        # On the way out only a set that `process()` has completed is published; see `_State.leave`.
        self._finalizer = weakref.finalize(self, _State.leave, self._state)
        self.connect()

    def connect(self) -> None:
        if self._source is None and self._state.writer is None and legacy.is_fence(self.path):
            self._source = Source.open(self.path, allow_pickle=self.allow_pickle, strict=True)

    def close(self) -> None:
        self._state.publish()
        self._source = None

    def insert(self, index: int, data: Any) -> None:
        if self._source is not None or (self._state.writer is None and legacy.is_fence(self.path)):
            raise PygError(
                f"{self.path}: expected a new file, found one that is complete ({len(self)} rows): rows cannot be added "
                "after the first was read or the database was closed; write all rows first, or write another file"
            )
        if index != self._state.count:
            raise PygError(
                f"{self.path}: expected row {self._state.count}, found {index}: rows are appended in order and never replaced"
            )
        row, sample = _wrap(data)
        if self._state.writer is None:
            self._state.writer = SampleWriter(self.path, allow_pickle=self.allow_pickle, row=row)
        elif row != self._state.writer.row:
            raise PygError(f"{self.path}, row {index}: expected a {self._state.writer.row}, found a {row}: write one kind a file")
        self._state.writer.append(sample)

    def get(self, index: int) -> Any:
        source = self._reading()
        index = int(index)
        if not 0 <= index < source.count:
            raise IndexError(f"{self.path}: expected a row within {source.count}, found {index}")
        return _unwrap(source.profile.row, source.get(index))

    def _multi_get(self, indices: Sequence[int] | Tensor) -> list[Any]:
        return [self.get(int(index)) for index in indices]

    def __len__(self) -> int:
        return self._source.count if self._source is not None else self._state.count

    def _reading(self) -> Source:
        if self._source is None:
            self._state.publish()
            self.connect()
        if self._source is None:
            raise IndexError(f"{self.path}: expected rows, found none: nothing was written")
        return self._source

    def __getstate__(self) -> dict[str, Any]:
        self._state.publish()
        return {"path": self.path, "schema": self.schema, "allow_pickle": self.allow_pickle}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["path"], allow_pickle=state["allow_pickle"])  # type: ignore[misc]
        self.schema = state["schema"]


class _State:
    """What is being written. It outlives the database for the moment in which that is decided."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.writer: SampleWriter | None = None
        self.marks = _marks(path)

    @property
    def count(self) -> int:
        return self.writer.count if self.writer is not None else 0

    def publish(self) -> None:
        writer, self.writer = self.writer, None
        if writer is not None:
            writer.finish()

    def leave(self) -> None:
        """The database goes away with rows that nobody read: they are complete if `process()` came to its end.

        PyG writes `pre_filter.pt` right after `process()` returned, and not if it raised; that is the one sign there is.
        """
        if self.writer is None:
            return
        if _marks(self.path) != self.marks:
            self.publish()
            return
        self.writer.abort()
        warnings.warn(
            f"{self.path}: {self.count} rows were appended but not published, because process() did not end and "
            "close() was not called",
            stacklevel=2,
        )


def _marks(path: str) -> Any:
    try:
        return os.stat(os.path.join(os.path.dirname(path), "pre_filter.pt")).st_mtime_ns
    except OSError:
        return None


def _wrap(data: Any) -> tuple[str, BaseData]:
    """A row as a sample. Rows that are no `Data` come from `serialize`: a dict, a tuple or one value."""
    if isinstance(data, BaseData):
        return "data", data
    out = Data()
    if isinstance(data, dict):
        if not all(isinstance(key, str) for key in data):
            raise PygError("expected a row whose keys are str, found others: let serialize() give names")
        row, values = "dict", data
    elif isinstance(data, (tuple, list)):
        row, values = "tuple", {f"column_{at}": value for at, value in enumerate(data)}
    else:
        row, values = "value", {"value": data}
    # Not by setattr, which drops None and turns some names into something else.
    out._store._mapping.update(values)
    return row, out


def _unwrap(row: str, data: BaseData) -> Any:
    if row == "data":
        return data
    mapping = dict(data._store._mapping)
    if row == "dict":
        return mapping
    return tuple(mapping.values()) if row == "tuple" else mapping["value"]
