"""`MappedDataset`: `InMemoryDataset` over a file instead of memory."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from torch import Tensor
from torch_geometric.data import Batch, Data, InMemoryDataset
from torch_geometric.data.data import BaseData

from . import legacy
from .errors import PygError
from .source import Source
from .write import SampleWriter, write, write_shards



class MappedDataset(InMemoryDataset):  # type: ignore[misc]
    """A drop-in for `torch_geometric.data.InMemoryDataset` whose samples stay in a file.

    Change the base class, and nothing else: `process` with `self.save(samples, path)` or with `self.collate`, `self.load`,
    indexing, `ds.x` and the rest do what they did. What is new:

    - `save` takes any iterable and streams it: a `process` of more than memory holds works.
    - `self.append(data)` and `self.extend(list)` within `process`, as with `OnDiskDataset`.
    - A sample is a copy of what is in the file: changing it in place changes nobody else's.
    - `fencepost.pyg.DataLoader` makes batches natively.

    A file that `InMemoryDataset` wrote before is converted when it is loaded first; the converted file lies beside it.
    docs/pyg-differences.md lists where the results differ from PyG's on purpose.

    Class attributes:
        allow_pickle: whether objects may be stored, and read, with pickle. Reading pickles of strangers runs their code.
        backing: `auto`, `mapped`, `resident` or `positional`, as in `fencepost.open`.
        strict: give originals back (Python numbers, 0-dim tensors, tuples) instead of what `InMemoryDataset` gives.
    """

    allow_pickle: bool = False
    backing: str = "auto"
    strict: bool = False

    # `download` and `process` must not be here: PyG takes a class that has them for one that can do both.

    def __init__(
        self,
        root: str | None = None,
        transform: Any = None,
        pre_transform: Any = None,
        pre_filter: Any = None,
        log: bool = True,
        force_reload: bool = False,
        *,
        backend: Any = None,
        schema: Any = None,
    ) -> None:
        # `backend` and `schema` are OnDiskDataset's: a change of base class from there works, and the file needs neither.
        del backend, schema
        super().__init__(root, transform, pre_transform, pre_filter, log, force_reload)

    @property
    def processed_file_names(self) -> Any:
        return "data.fence"

    # State ------------------------------------------------------------------------------------------------------------
    # `_source` is an open file. `_held` is data that was assigned (`self.data, self.slices = ...`), as PyG holds it. With a
    # source, `_made` is the collated form of it, if somebody asked for `_data`; once that is changed it takes over.

    @property
    def _data(self) -> Any:
        held = self.__dict__.get("_held")
        if held is not None:
            return held
        if self._opened() is None:
            return None
        return self._collated()[0]

    @_data.setter
    def _data(self, value: Any) -> None:
        # PyG's constructor sets None after `process` has run, whatever that left behind.
        self.__dict__["_held"] = value
        self.__dict__["_made"] = None
        if value is not None:
            self.__dict__["_source"] = None

    @property
    def slices(self) -> Any:
        if self.__dict__.get("_held") is not None or self._opened() is None:
            return self.__dict__.get("_held_slices")
        return self._collated()[1]

    @slices.setter
    def slices(self, value: Any) -> None:
        self.__dict__["_held_slices"] = value
        made = self.__dict__.get("_made")
        if made is not None:
            self.__dict__["_made"] = (made[0], value, None)

    def _opened(self) -> Source | None:
        """The open file; opens what `process` wrote with `append`, if nobody has loaded it."""
        inside = self.__dict__
        source: Source | None = inside.get("_source")
        if source is None and inside.get("_held") is None and inside.get("_written"):
            self.load(inside["_written"])
            source = inside["_source"]
        return source

    def _collated(self) -> Any:
        made = self.__dict__.get("_made")
        if made is None:
            source = self._opened()
            assert source is not None
            data, slices = source.collated()
            made = self.__dict__["_made"] = (data, slices, _marks(data))
        return made

    def _changed(self) -> bool:
        """Whether the collated form was changed after it was made (`self._data.x = self._data.x[:, 3:]`)."""
        made = self.__dict__.get("_made")
        return made is not None and made[2] != _marks(made[0])

    def _file(self) -> Source | None:
        """The file, if samples come from there; None if they come from data in memory, as in PyG."""
        inside = self.__dict__
        source: Source | None = inside.get("_source")
        if source is None:
            source = self._opened()
        if source is not None and inside.get("_made") is not None and self._changed():
            return None
        return source

    # Writing ----------------------------------------------------------------------------------------------------------

    @classmethod
    def save(
        cls, data_list: Iterable[BaseData], path: Any, *, allow_pickle: bool | None = None, progress: bool = False
    ) -> None:
        """Writes samples to a file. A generator is streamed; the file appears under its name when it is complete."""
        write(data_list, path, allow_pickle=cls.allow_pickle if allow_pickle is None else allow_pickle, progress=progress)

    def append(self, data: BaseData) -> None:
        """Adds a sample to the file that `process` is writing."""
        writer = self.__dict__.get("_writer")
        if writer is None:
            if not self.__dict__.get("_processing"):
                raise PygError(
                    f"{type(self).__name__}.append: expected to be called within process(), found no such call at work: "
                    "files are complete when they are published; write a new one with save() or convert()"
                )
            path = self.processed_paths[0]
            writer = self.__dict__["_writer"] = SampleWriter(path, allow_pickle=self.allow_pickle)
        writer.append(data)

    def extend(self, data_list: Iterable[BaseData], batch_size: int | None = None) -> None:
        """Adds samples to the file that `process` is writing. `batch_size` is OnDiskDataset's, and has no effect."""
        for data in data_list:
            self.append(data)

    def map(
        self,
        source: Sequence[Any],
        function: Callable[[Any], BaseData | None],
        *,
        num_workers: int = 0,
        items_per_shard: int = 1024,
        filtered: bool = False,
        progress: bool = True,
        mp_context: str | None = None,
    ) -> None:
        """Within `process`: writes the graphs that `function` makes of the items of `source`, in order, with several processes.

        `self.processed_paths[0]` becomes a folder of shards, which `self.load` opens. It gets its name when it is complete: a `process` that
        died goes on with the shards that are missing. See `fencepost.pyg.write_shards`.
        """
        path = self.processed_paths[0]
        parts = f"{path}.parts"
        write_shards(
            parts, source, function, items_per_shard=items_per_shard, num_workers=num_workers, filtered=filtered,
            allow_pickle=self.allow_pickle, dataset=os.path.basename(path), progress=progress, mp_context=mp_context,
        )
        os.rename(parts, path)

    def _process(self) -> None:
        self.__dict__["_processing"] = True
        try:
            super()._process()
            writer = self.__dict__.get("_writer")
            if writer is not None:
                writer.finish()
            paths = self.processed_paths
            if writer is not None or (len(paths) == 1 and legacy.is_fence(paths[0])):
                self.__dict__["_written"] = paths[0]
        except BaseException:
            writer = self.__dict__.get("_writer")
            if writer is not None:
                writer.abort()
            raise
        finally:
            self.__dict__.pop("_writer", None)
            self.__dict__.pop("_processing", None)

    # Reading ----------------------------------------------------------------------------------------------------------

    def load(self, path: Any, data_cls: type[BaseData] = Data) -> None:
        """Opens a file. One that `InMemoryDataset` wrote is converted first, into `{path}.fence`."""
        path = os.fspath(path)
        if not legacy.is_fence(path) and os.path.exists(path):
            path = legacy.convert_beside(path, data_cls, self.allow_pickle, self.__dict__.get("log", True))
        source = Source.open(
            path, data_cls=data_cls, allow_pickle=self.allow_pickle, backing=self.backing, strict=self.strict
        )
        self._use(source)

    def _use(self, source: Source) -> None:
        inside = self.__dict__
        inside["_source"], inside["_held"], inside["_made"], inside["_held_slices"] = source, None, None, None
        inside["_data_list"] = None

    def len(self) -> int:
        inside = self.__dict__
        source = inside.get("_source")
        if source is not None and inside.get("_made") is None:
            return int(source.count)
        source = self._file()
        if source is not None:
            return source.count
        if self._data is None:
            raise PygError(
                f"{type(self).__name__}: expected data, found none: call self.load(self.processed_paths[0]) after "
                "super().__init__(...)"
            )
        return int(super().len())

    def get(self, idx: int) -> Any:
        inside = self.__dict__
        source = inside.get("_source")
        if source is None or inside.get("_made") is not None:
            source = self._file()
            if source is None:
                return super().get(idx)
        return source.get(self._place(idx, source.count))

    def _place(self, idx: int, count: int) -> int:
        if not -count <= idx < count:
            raise IndexError(f"{type(self).__name__}: expected an index within {count} samples, found {idx}")
        return int(idx) + count if idx < 0 else int(idx)

    def __getitem__(self, idx: Any) -> Any:
        # The common case without the questions of the others, which PyG's own code answers.
        if type(idx) is int and self._indices is None:
            inside = self.__dict__
            source = inside.get("_source")
            if source is not None and inside.get("_made") is None:
                data = source.get(self._place(idx, source.count))
                return data if self.transform is None else self.transform(data)
        return super().__getitem__(idx)

    def multi_get(self, indices: Any, batch_size: int | None = None) -> list[Any]:
        """The samples at these places, transformed; places of this subset, if it is one."""
        del batch_size
        if isinstance(indices, (slice, Tensor)) or hasattr(indices, "dtype"):
            subset = self.index_select(indices)
            return [subset[i] for i in range(len(subset))]
        return [self[int(i)] for i in indices]

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        return [self[int(i)] for i in indices]

    def positions(self, indices: Any) -> Any:
        """Places of this subset as places in the file."""
        if self._indices is None:
            return indices
        own = self._indices
        return [own[int(i)] for i in indices]

    # The rest of InMemoryDataset --------------------------------------------------------------------------------------

    @property
    def num_classes(self) -> int:
        source = self._file()
        if source is None or self.transform is not None or not source.homogeneous:
            return int(super().num_classes)
        node = source.profile.stores[0].attributes.get("y")
        return int(self._infer_num_classes(None if node is None else source.column(node)))

    def copy(self, idx: Any = None) -> MappedDataset:
        """A data set of its own with these samples. The file never changes, so nothing has to be copied."""
        source = self._file()
        if source is None:
            held: MappedDataset = super().copy(idx)
            return held
        chosen = self.indices() if idx is None else self.index_select(idx).indices()
        out = copy.copy(self)
        out._indices = None
        out._use(source if isinstance(chosen, range) and chosen == range(source.count) else source.select(chosen))
        return out

    def __getattr__(self, key: str) -> Any:
        # Only for names that nothing else has: `ds.x` is all samples' `x`, batched.
        if key.startswith("__") or "_indices" not in self.__dict__:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{key}'")
        source = self._file()
        if source is None:
            data = self.__dict__.get("_held")
            data = self.__dict__["_made"][0] if data is None and self.__dict__.get("_made") else data
            if isinstance(data, Data) and key in data:
                if self._indices is None and data.__inc__(key, data[key]) == 0:
                    return data[key]
                return Batch.from_data_list([self.get(i) for i in self.indices()])[key]
        elif source.homogeneous:
            store = source.profile.stores[0]
            if key in store.attributes or (key == "num_nodes" and store.explicit):
                if len(self) == 0:
                    raise AttributeError(f"'{type(self).__name__}' object is empty, so it has no attribute '{key}'")
                others = [other for other in store.order if other != key]
                if source.single or source.strict:
                    return Batch.from_data_list([self.get(i) for i in self.indices()])[key]
                return source.batch(list(self.indices()), exclude_keys=others)[key]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{key}'")

    def to_on_disk_dataset(self, root: str | None = None, backend: str = "sqlite", log: bool = True) -> Any:
        if backend == "fencepost":
            from .backend import register_backend

            register_backend()
        return super().to_on_disk_dataset(root, backend, log)

    def cuda(self, device: Any = None) -> Any:
        # PyG's own formats the type instead of the number here.
        return self.to("cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device)

    def __getstate__(self) -> dict[str, Any]:
        """Small: the path, the view and the transforms. Data in memory travels only where there is no file."""
        state = self.__dict__.copy()
        state.pop("_writer", None)
        if state.get("_source") is not None:
            state["_data_list"] = None
            if not self._changed():
                state["_made"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def _marks(data: BaseData) -> list[Any]:
    """What tells whether a collated object was changed: which values it has, and how often they were written to."""
    return [
        (store._key, key, id(value), value._version if isinstance(value, Tensor) else None)
        for store in data.stores
        for key, value in store._mapping.items()
    ]


class FileDataset(MappedDataset):
    """A file, without a folder and a `process`: what `fencepost.pyg.open` gives."""

    def __init__(self, source: Source, transform: Any = None) -> None:
        super().__init__(None, transform)
        self.allow_pickle = source.profile.pickled
        self._use(source)

    def __repr__(self) -> str:
        # PyG's rule, under the name of the class that users know.
        return f"MappedDataset({len(self) if len(self) > 1 else ''})"


def open(
    path: Any,
    transform: Any = None,
    *,
    backing: str = "auto",
    strict: bool = False,
    allow_pickle: bool = False,
    data_cls: type[BaseData] | None = None,
) -> MappedDataset:
    """A ready `MappedDataset` of a file.

    `strict=True` gives back what was written (Python numbers, 0-dim tensors, tuples) instead of what `InMemoryDataset`
    would have made of it. `data_cls` is the samples' class where the program has not imported it.
    """
    path = os.fspath(path)
    if not legacy.is_fence(path) and os.path.isfile(path):
        path = legacy.convert_beside(path, data_cls or Data, allow_pickle)
    return FileDataset(
        Source.open(path, data_cls=data_cls, allow_pickle=allow_pickle, backing=backing, strict=strict), transform
    )


