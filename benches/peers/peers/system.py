"""What every system must do. A class says how it writes, opens and gets; the rest follows unless the system has something better."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader

from .sets import Field, Sample

BATCH = 128


class System:
    """One way to store a set in a folder and to get its samples back.

    `fields` are those of the set; `folder` is empty before `write`, and holds all that `open` needs afterwards.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    #: The distribution whose version is recorded; None for what is written by hand.
    distribution: ClassVar[str | None] = None
    #: How it is used, and on whose advice.
    use: ClassVar[str]
    #: What `get` and `batch` give.
    natural: ClassVar[str] = "dict of numpy views"
    natural_batch: ClassVar[str] = "list of these"
    #: False for what can only be read from front to back.
    random_access: ClassVar[bool] = True
    #: Whether the workers of a loader open the files themselves, because an open one does not survive a fork.
    opens_in_worker: ClassVar[bool] = False
    start_method: ClassVar[str] = "fork"

    def __init__(self, fields: tuple[Field, ...], folder: Path) -> None:
        self.fields = fields
        self.folder = folder
        self.is_open = False

    @classmethod
    def refuses(cls, fields: tuple[Field, ...]) -> str | None:
        """Why it cannot store samples of these fields."""
        return None

    # --- what a system must say

    def prepare(self, first: Sample) -> None:
        """What a program would have in its source before it writes: a declared schema, say. Not timed."""

    def write(self, samples: Iterable[Sample], count: int) -> None:
        raise NotImplementedError

    def open(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def get(self, index: int) -> Any:
        """One sample as the system gives it."""
        raise NotImplementedError

    # --- what follows

    def open_anew(self) -> None:
        self.shut()
        self.open()
        self.is_open = True

    def shut(self) -> None:
        if self.is_open:
            self.close()
            self.is_open = False
            # Objects in circles keep files mapped.
            gc.collect()

    def warm_up(self) -> None:
        """Once, before gets, batches and epochs are timed."""

    def arrays(self, sample: Any) -> Sample:
        """What `get` gave, as arrays: for comparison, and to touch all bytes."""
        return sample

    def batch(self, indices: Sequence[int]) -> Any:
        """Many samples as the system gives them."""
        return [self.get(index) for index in indices]

    def batch_arrays(self, batch: Any) -> Sample | list[Sample]:
        """What `batch` gave: arrays of all samples joined by PyG's rules, or the samples' own arrays."""
        return [self.arrays(sample) for sample in batch]

    def data(self, index: int) -> Data:
        return as_data(self.arrays(self.get(index)))

    def data_list(self, indices: Sequence[int]) -> list[Data]:
        return [self.data(index) for index in indices]

    def pyg_batches(self, many: Iterable[Sequence[int]]) -> Iterator[Batch]:
        """A PyG batch for each list of indices."""
        for indices in many:
            yield Batch.from_data_list(self.data_list(indices))

    def loader(self, workers: int, count: int) -> Iterable[Batch]:
        """A shuffled epoch of all `count` samples. With workers, the system is opened again afterwards."""
        if workers and self.opens_in_worker:
            self.shut()
        more = {"multiprocessing_context": self.start_method, "worker_init_fn": self._open_in_worker} if workers else {}
        return DataLoader(_MapStyle(self, count), BATCH, shuffle=True, num_workers=workers, **more)

    def frugal_loader(self, count: int) -> Iterable[Batch]:
        """The same for a process that may use little memory."""
        return self.loader(0, count)

    def _open_in_worker(self, worker: int) -> None:
        torch.utils.data.get_worker_info().dataset.opened()


class _MapStyle(torch.utils.data.Dataset):
    """The system as torch's map-style data set: a whole batch is asked for at once."""

    def __init__(self, system: System, count: int) -> None:
        self.system = system
        self.count = count

    def opened(self) -> None:
        if self.system.opens_in_worker:
            self.system.open_anew()

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Data:
        return self.system.data(index)

    def __getitems__(self, indices: list[int]) -> list[Data]:
        return self.system.data_list(indices)


def as_data(arrays: Sample) -> Data:
    return Data(**{name: torch.from_numpy(value) for name, value in arrays.items()})


class GivesData(System):
    """A system whose own samples are PyG's objects."""

    natural = "PyG Data"
    natural_batch = "PyG Batch"

    def arrays(self, sample: Data) -> Sample:
        return {name: sample[name].numpy() for name in sample.keys()}

    def data(self, index: int) -> Data:
        return self.get(index)

    def batch(self, indices: Sequence[int]) -> Batch:
        return Batch.from_data_list(self.data_list(indices))

    def batch_arrays(self, batch: Batch) -> Sample:
        return {name: batch[name].numpy() for name in batch.keys()}


def groups(samples: Iterable[Sample], rows: int) -> Iterator[list[Sample]]:
    """The samples in groups of so many, for writers that take tables."""
    group: list[Sample] = []
    for sample in samples:
        group.append(sample)
        if len(group) == rows:
            yield group
            group = []
    if group:
        yield group


class Columns:
    """Flat columns and tables of offsets in memory, grown sample by sample: for systems that want whole arrays."""

    def __init__(self, fields: tuple[Field, ...]) -> None:
        self.fields = fields
        self.parts: dict[str, list[np.ndarray]] = {field.name: [] for field in fields}
        self.lengths: dict[str, list[int]] = {"nodes": [], "edges": []}

    def add(self, sample: Sample) -> None:
        for field in self.fields:
            self.parts[field.name].append(sample[field.name].ravel())
        self.lengths["nodes"].append(len(sample["x"]))
        self.lengths["edges"].append(sample["edge_index"].shape[1])

    def flat(self, name: str) -> np.ndarray:
        """Hands the column out, and forgets its parts."""
        return np.concatenate(self.parts.pop(name))

    def offsets(self, axis: str) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self.lengths[axis])])


class Sliced:
    """A sample as slices of flat columns, whatever the columns are: `columns[name][a:b]` must give an array."""

    def __init__(self, fields: tuple[Field, ...], columns: Any, nodes: np.ndarray, edges: np.ndarray) -> None:
        self.fields, self.columns, self.nodes, self.edges = fields, columns, nodes, edges

    def __len__(self) -> int:
        return len(self.nodes) - 1

    def __getitem__(self, index: int) -> dict[str, Any]:
        spans = {
            "nodes": (int(self.nodes[index]), int(self.nodes[index + 1])),
            "edges": (int(self.edges[index]), int(self.edges[index + 1])),
            "graph": (index, index + 1),
        }
        counts = (spans["nodes"][1] - spans["nodes"][0], spans["edges"][1] - spans["edges"][0])
        out = {}
        for field in self.fields:
            start, end = spans[field.along]
            out[field.name] = self.columns[field.name][start * field.width : end * field.width].reshape(field.shape(*counts))
        return out
