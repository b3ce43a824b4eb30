from __future__ import annotations

import mmap
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .. import _fencepost as native
from .._errors import ChangedError, FormatError
from .._torch import torch

# Below this size a copy takes less time than a mapping, which costs two system calls and a fault a page.
_MAP_FROM = 64 * 1024

# Where the system has it: a private mapping is charged for what is written to, not for what could be.
_FLAGS = getattr(mmap, "MAP_PRIVATE", 0) | (0x4000 if sys.platform == "linux" else 0)


def _open(dataset: Any) -> native.Dataset:
    if isinstance(dataset, native.Dataset):
        return dataset
    if isinstance(dataset, Dataset):
        return dataset.native
    if isinstance(dataset, torch.utils.data.Subset):
        return _open(dataset.dataset)[list(dataset.indices)]
    if isinstance(dataset, (str, os.PathLike)):
        return native.open(dataset)
    raise TypeError(
        f"expected a path, a fencepost.Dataset, a fencepost.torch.Dataset or a torch Subset of one, found {type(dataset).__name__}"
    )


class Dataset(torch.utils.data.Dataset[Any]):
    """A map-style dataset: `dataset[i]` is a dict of tensors, which are the caller's to change.

    They are copies. With `zero_copy=True`, values of 64 KiB and more are private mappings of their own: pages come from the file as
    they are touched, and those that are written to are copied by the system, so neither the file nor later reads change.

    `transform` is called with each sample.
    """

    def __init__(
        self,
        dataset: native.Dataset | str | os.PathLike[str],
        *,
        zero_copy: bool = False,
        transform: Callable[[dict[str, Any]], Any] | None = None,
    ) -> None:
        self.native = _open(dataset)
        self.zero_copy = zero_copy
        self.transform = transform
        self._descriptors: dict[str, int] = {}
        self._others: dict[frozenset[str], native.Dataset] = {}
        if zero_copy and not hasattr(mmap, "MAP_PRIVATE"):
            raise OSError("zero_copy needs private mappings, which this system's Python has not: leave it out")
        if zero_copy:
            for file in self.native.files:
                self._descriptor(os.fspath(file.path))

    def __len__(self) -> int:
        return len(self.native)

    def __getitem__(self, index: int) -> Any:
        sample = self._mapped(index) if self.zero_copy else self.native.read_torch(index)
        return sample if self.transform is None else self.transform(sample)

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        return [self[index] for index in indices]

    def __repr__(self) -> str:
        return f"fencepost.torch.Dataset({self.native!r})"

    def _mapped(self, index: int) -> dict[str, Any]:
        places = self.native.locate(index)
        large = {name: place for name, place in places.items() if place[1] >= _MAP_FROM}
        if not large:
            return self.native.read_torch(index)
        names = frozenset(large)
        rest = self._others.get(names)
        if rest is None:
            rest = self.native.project([name for name in self.native.attributes if name not in large])
            self._others[names] = rest
        small = rest.read_torch(index)
        schema = self.native.schema
        return {
            name: self._map(schema[name].dtype, *large[name]) if name in large else small[name] for name in self.native.attributes
        }

    def _map(self, dtype: str, offset: int, length: int, shape: tuple[int, ...], path: str) -> torch.Tensor:
        start = offset // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        memory = mmap.mmap(
            self._descriptor(path), offset - start + length, flags=_FLAGS, prot=mmap.PROT_READ | mmap.PROT_WRITE, offset=start
        )
        # The tensor holds the mapping, which ends with it.
        flat = torch.frombuffer(memory, dtype=torch.uint8, count=length, offset=offset - start)
        if dtype == "bool" and bool((flat > 1).any()):
            # The library checks bools that it reads; these it has not seen.
            raise FormatError(
                f"{path}: bytes {offset}..{offset + length} hold bools: expected 0 or 1, found {int(flat.max())}; run verify, "
                "then salvage",
                code="bool",
                path=path,
            )
        return flat.view(_DTYPES[dtype]).reshape(shape)

    def _descriptor(self, path: str) -> int:
        if path not in self._descriptors:
            expected = next(file.fingerprint for file in self.native.files if os.fspath(file.path) == path)
            file = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
            # The name may have been given to another file since the dataset was opened.
            found = native.open(path, "positional").fingerprint
            if found != expected or not os.path.samestat(os.fstat(file), os.stat(path)):
                os.close(file)
                raise ChangedError(
                    f"{path}: was replaced since it was opened: expected fingerprint {expected}, found {found}; open it again"
                )
            self._descriptors[path] = file
        return self._descriptors[path]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_descriptors": {}, "_others": {}}

    def __del__(self) -> None:
        descriptors = self.__dict__.get("_descriptors", {})
        while descriptors:
            os.close(descriptors.popitem()[1])


_DTYPES = {
    "bool": torch.bool, "u8": torch.uint8, "u16": torch.uint16, "u32": torch.uint32, "u64": torch.uint64, "i8": torch.int8,
    "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32,
    "f64": torch.float64, "c64": torch.complex64, "c128": torch.complex128, "f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2,
}  # fmt: skip


class DataLoader:
    """Batches as dicts of tensors, made by threads of the library in memory that is used again when the tensors are gone.

    The order depends on seed and epoch alone. Under torch.distributed, rank and world size are those of the default group when
    the first batch is asked for, and all ranks get as many batches (samples from the epoch's start fill up, as torch's
    DistributedSampler does it; `drop_last=True` or `pad_ranks=False` say otherwise). Each iteration is the next epoch.

    `transform` is called with each batch. Options beyond those named are those of `fencepost.Loader`.
    """

    def __init__(
        self,
        dataset: native.Dataset | Dataset | torch.utils.data.Subset[Any] | str | os.PathLike[str],
        batch_size: int | None = None,
        shuffle: bool = False,
        *,
        seed: int = 0,
        num_workers: int = 2,
        prefetch_factor: int = 2,
        drop_last: bool = False,
        pin_memory: bool = False,
        transform: Callable[[dict[str, Any]], Any] | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        pad_ranks: bool | None = None,
        **options: Any,
    ) -> None:
        if (rank is None) != (world_size is None):
            raise ValueError("expected rank and world_size together, found one of them")
        if isinstance(dataset, Dataset) and dataset.transform is not None:
            raise ValueError(
                "expected a dataset without transform, found one with: batches are made natively, so a transform of samples would be "
                "left out; give DataLoader(transform=...), which gets batches, or use torch.utils.data.DataLoader"
            )
        self.dataset = _open(dataset)
        self.batch_size = batch_size
        self.pin_memory = pin_memory and torch.accelerator.is_available()
        if pin_memory and not self.pin_memory:
            warnings.warn("pin_memory was asked for, but there is no accelerator: tensors are not pinned", stacklevel=2)
        self.transform = transform
        self._ranks = None if rank is None or world_size is None else (rank, world_size)
        self._pad_ranks = pad_ranks
        self._options = options | {
            "batch_size": batch_size, "shuffle": shuffle, "seed": seed, "num_workers": num_workers, "prefetch_factor": prefetch_factor,
            "drop_last": drop_last,
        }  # fmt: skip
        # Made now, so that wrong options are told here and not at the first batch.
        self._settled = self._ranks is not None
        self._made = self._make(*(self._ranks or (0, 1)))

    def _make(self, rank: int, world_size: int) -> native.Loader:
        pad = self._pad_ranks
        if pad is None:
            pad = world_size > 1 and not self._options["drop_last"]
        return native.Loader(self.dataset, rank=rank, world_size=world_size, pad_ranks=pad, **self._options)

    @property
    def loader(self) -> native.Loader:
        """The native loader; rank and world size are settled from here on."""
        if not self._settled:
            self._settled = True
            group = torch.distributed
            if group.is_available() and group.is_initialized():
                self._made = self._make(group.get_rank(), group.get_world_size())
        return self._made

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        for batch in self.loader:
            tensors = batch.torch()
            if self.pin_memory:
                tensors = {name: value.pin_memory() if isinstance(value, torch.Tensor) else value for name, value in tensors.items()}
            yield tensors if self.transform is None else self.transform(tensors)

    def state_dict(self) -> dict[str, Any]:
        """Where one is, behind the last batch handed out; JSON can hold it."""
        return self.loader.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state with the next iteration."""
        self.loader.load_state_dict(state)

    def set_epoch(self, epoch: int) -> None:
        """Make the next iteration epoch `epoch`."""
        self.loader.set_epoch(epoch)

    @property
    def epoch(self) -> int:
        return self.loader.epoch

    def metrics(self) -> native.Metrics:
        return self.loader.metrics()

    def __repr__(self) -> str:
        return f"fencepost.torch.DataLoader({len(self.dataset)} samples, batch_size={self.batch_size})"
