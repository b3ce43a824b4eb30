"""Any PyG data set to a file, and back."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from torch_geometric.data import Dataset, InMemoryDataset
from torch_geometric.data.data import BaseData
from torch_geometric.data.separate import separate
from torch_geometric.io import fs

from . import legacy
from .dataset import MappedDataset, open
from .source import Source
from .write import write


class _Stored:
    """The samples of a PyG data set as they are stored: without its transform, and without filling its cache."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, place: int) -> BaseData:
        data: BaseData = self.dataset.get(self.dataset.indices()[place])
        return data

    def __iter__(self) -> Iterator[BaseData]:
        dataset = self.dataset
        if isinstance(dataset, InMemoryDataset) and not isinstance(dataset, MappedDataset) and dataset.slices is not None:
            for index in dataset.indices():
                yield separate(type(dataset._data), dataset._data, index, dataset.slices, decrement=False)
            return
        for index in dataset.indices():
            yield dataset.get(index)


Sequence.register(_Stored)


def convert(
    dataset: Dataset | Iterable[BaseData],
    path: Any,
    *,
    allow_pickle: bool = False,
    progress: bool = True,
    backing: str = "auto",
) -> MappedDataset:
    """Writes a PyG data set (in memory, on disk), a list or a generator of samples to a file, and opens it.

    Samples are streamed; only what PyG itself holds is in memory. A data set's transform is not stored but carried over.
    """
    transform = getattr(dataset, "transform", None) if isinstance(dataset, Dataset) else None
    samples = _Stored(dataset) if isinstance(dataset, Dataset) else dataset
    kinds: list[type[BaseData]] = []
    write(_Watched(samples, kinds) if isinstance(samples, Sequence) else _watch(samples, kinds), path,
          allow_pickle=allow_pickle, progress=progress)
    return open(path, transform, backing=backing, allow_pickle=allow_pickle, data_cls=kinds[0])


def _watch(samples: Iterable[BaseData], kinds: list[type[BaseData]]) -> Iterator[BaseData]:
    for data in samples:
        if not kinds:
            kinds.append(type(data))
        yield data


class _Watched:
    """A sequence that notes the class of its samples, which the caller would otherwise have to import by name."""

    def __init__(self, samples: Sequence[BaseData], kinds: list[type[BaseData]]) -> None:
        self.samples, self.kinds = samples, kinds
        #: Whether `write` may look at all samples at once.
        self.in_memory = isinstance(samples, (list, tuple))

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, place: int) -> BaseData:
        return self.samples[place]

    def __iter__(self) -> Iterator[BaseData]:
        return _watch(self.samples, self.kinds)


Sequence.register(_Watched)


def export(dataset: MappedDataset | str | os.PathLike[str], path: Any) -> None:
    """Writes what `InMemoryDataset.save` would have written of these samples. All of them have to fit into memory."""
    if not isinstance(dataset, MappedDataset):
        dataset = open(dataset)
    source: Source | None = dataset._file()
    if source is None or dataset._indices is not None:
        InMemoryDataset.save([dataset.get(index) for index in dataset.indices()], path)
        return
    data, slices = source.collated()
    fs.torch_save((data.to_dict(), slices, data.__class__), os.fspath(path))
