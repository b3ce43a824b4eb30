"""A `DataLoader` with PyG's signature that makes each `Batch` from one native batch."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import fencepost
import torch
import torch_geometric.loader
from torch.utils.data import BatchSampler, RandomSampler, SequentialSampler

from .dataset import MappedDataset
from .errors import PygError
from .source import Source

#: Native threads where the user did not say how many. More than these wait for the one that runs Python.
DEFAULT_THREADS = 2


class DataLoader(torch_geometric.loader.DataLoader):  # type: ignore[misc]
    """`torch_geometric.loader.DataLoader` for `MappedDataset`: the same arguments, the same batches in the same order.

    Batches are gathered by threads of the native loader. A data set that cannot be batched natively (it has a transform, is
    held in memory, or is no `MappedDataset`) is loaded as PyG does it, which a warning says once, with the reason.

    Args:
        dataset, batch_size, shuffle, follow_batch, exclude_keys: as in PyG. `shuffle` draws from torch's generator as PyG
            does, so that equal seeds give equal batches.
        num_workers: threads of the native loader, no processes: they need no start-up, no copies and no shared memory.
            0, the default, takes two. Where PyG loads, it is PyG's number of processes.
        seed: shuffle by the native sampler instead, which needs no list of all indices and the same order for the same
            seed and epoch everywhere (`set_epoch`); for very large sets.
        max_nodes, max_edges: as many samples in a batch as these allow, at most `batch_size`; one that is over them alone
            makes a batch of its own.
        pin_memory: copy each batch into pinned memory, where there is an accelerator.
        prefetch_factor: batches that each thread makes ahead, 2 by default.
        kwargs: the others of `torch.utils.data.DataLoader` (`sampler`, `batch_sampler`, `drop_last`, `generator`, ...).
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool = False,
        follow_batch: list[str] | None = None,
        exclude_keys: list[str] | None = None,
        *,
        seed: int | None = None,
        max_nodes: int | None = None,
        max_edges: int | None = None,
        **kwargs: Any,
    ) -> None:
        reason = _why_not(dataset)
        # Under their own names, because Lightning makes loaders anew from what it finds on them.
        self.seed, self.max_nodes, self.max_edges = seed, max_nodes, max_edges
        self._limits = {name: limit for name, limit in (("nodes", max_nodes), ("edges", max_edges)) if limit is not None}
        self._threads = 0
        self._prefetch = kwargs.get("prefetch_factor") or 2
        self._epoch = 0
        self._resume: dict[str, Any] | None = None
        self._running: _Epoch | None = None
        if reason is None:
            # What concerns processes alone means nothing to threads.
            self._threads = kwargs.pop("num_workers", 0) or DEFAULT_THREADS
            for name in ("prefetch_factor", "persistent_workers", "worker_init_fn", "multiprocessing_context", "timeout"):
                kwargs.pop(name, None)
        elif self._limits or seed is not None:
            raise PygError(
                f"DataLoader: expected a data set that is batched natively for max_nodes, max_edges and seed, found that {reason}"
            )
        self._native = reason is None
        super().__init__(dataset, batch_size, shuffle, follow_batch, exclude_keys, **kwargs)
        if self._limits and self._native:
            self._check_limits()
        if reason is not None and isinstance(dataset, MappedDataset):
            warnings.warn(
                f"fencepost.pyg.DataLoader: batches are made by PyG in Python, because {reason}. The result is the same, slower.",
                stacklevel=2,
            )

    def _check_limits(self) -> None:
        source: Source = self.dataset._file()
        axes = list(source.native.schema.axes)
        for axis in self._limits:
            if axis not in axes:
                raise PygError(f"DataLoader, max_{axis}: expected a file with an axis {axis!r}, found {axes}")
        if self.batch_sampler is None or not isinstance(self.sampler, (RandomSampler, SequentialSampler)):
            raise PygError("DataLoader, max_nodes or max_edges: expected no sampler of your own beside it, found one")

    @property
    def native(self) -> bool:
        """Whether batches are made natively."""
        return self._native

    def __len__(self) -> int:
        if self._native and self._limits:
            return len(self._loader(self._order(0)))
        return int(super().__len__())

    def set_epoch(self, epoch: int) -> None:
        """The epoch that comes next: with `seed`, its order depends on it."""
        self._epoch, self._running = epoch, None

    def __iter__(self) -> Any:
        if not self._native or self.batch_sampler is None:
            return super().__iter__()
        reason = _why_not(self.dataset)
        if reason is not None:
            # For example a transform that was set after the loader was made.
            warnings.warn(f"fencepost.pyg.DataLoader: batches are made by PyG in Python from here on, because {reason}.", stacklevel=2)
            self._native = False
            return super().__iter__()
        if self._running is not None and not self._running.over:
            # Left early; what comes now is another epoch all the same.
            self._epoch += 1
        self._running = _Epoch(self)
        return self._running

    # One epoch's order ------------------------------------------------------------------------------------------------

    def _torch_seed(self) -> int | None:
        """The seed that torch's `RandomSampler` would draw now, after what its loader draws: equal seeds, equal batches."""
        torch.empty((), dtype=torch.int64).random_(generator=self.generator)
        return int(torch.empty((), dtype=torch.int64).random_().item()) if self._permutes() else None

    def _permutes(self) -> bool:
        """Whether the order is a permutation that torch draws from a seed of its own."""
        sampler = self.sampler
        return (
            type(sampler) is RandomSampler
            and sampler.generator is None
            and not sampler.replacement
            and sampler.num_samples == len(self.dataset)
            and self.seed is None
        )

    def _order(self, seed: int | None) -> Any:
        """Places in the file, in the order of the epoch; None for that of the file."""
        dataset, sampler = self.dataset, self.sampler
        if isinstance(sampler, SequentialSampler) or self.seed is not None:
            order: Any = None
        elif seed is not None and self._permutes():
            generator = torch.Generator()
            generator.manual_seed(seed)
            order = torch.randperm(len(dataset), generator=generator).numpy()
        else:
            order = [int(index) for index in sampler]
        own = dataset._indices
        if own is None:
            return order
        if order is None:
            return own if not isinstance(own, range) else list(own)
        import numpy as np

        return np.asarray(own, dtype=np.int64)[order]

    def _loader(self, order: Any) -> Any:
        source: Source = self.dataset._file()
        batcher, native = source.batcher(self.follow_batch, self.exclude_keys)
        view = native if order is None else native[order]
        options: dict[str, Any] = dict(batcher.options)
        if self._limits:
            # As PyG's DynamicBatchSampler: a sample over the limit comes alone.
            options.update(max_per_batch=self._limits, oversize="alone")
        shuffled = self.seed is not None and isinstance(self.sampler, RandomSampler)
        return fencepost.Loader(
            view,
            batch_size=self.batch_sampler.batch_size,
            shuffle=shuffled,
            seed=self.seed or 0,
            num_workers=self._threads,
            prefetch_factor=self._prefetch,
            drop_last=self.batch_sampler.drop_last,
            **options,
        )

    def _indexed(self) -> Iterator[Any]:
        """Native batches of a user's own batch sampler, or one sample at a time as `batch_size=None` means."""
        source: Source = self.dataset._file()
        batcher, native = source.batcher(self.follow_batch, self.exclude_keys)
        assert self.batch_sampler is not None
        for indices in self.batch_sampler:
            yield native.batch([int(index) for index in self.dataset.positions(indices)], **batcher.options)

    # Resuming ---------------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Where the loader is: after `load_state_dict`, the next epoch begins with the batch that came next."""
        if not self._native:
            raise PygError("DataLoader.state_dict: expected a data set that is batched natively, found one that PyG loads")
        running = self._running
        source: Source = self.dataset._file()
        state: dict[str, Any] = {"fingerprint": str(source.native.fingerprint), "epoch": self._epoch, "done": 0, "seed": None}
        if running is not None and not running.over:
            state["done"], state["seed"] = running.done, running.seed
            if running.loader is not None and self.seed is not None:
                state["native"] = running.loader.state_dict()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on where `state_dict` was taken, in this process or another."""
        source: Source = self.dataset._file()
        if state["fingerprint"] != str(source.native.fingerprint):
            raise PygError(
                f"{source.path}: expected the file of the state ({state['fingerprint']}), found {source.native.fingerprint}: "
                "a state belongs to one file"
            )
        self._epoch, self._running = state["epoch"], None
        self._resume = dict(state)


class _Epoch:
    """An iterator over one epoch."""

    def __init__(self, owner: DataLoader) -> None:
        self.owner = owner
        resume, owner._resume = owner._resume, None
        self.done = 0
        self.over = False
        source: Source = owner.dataset._file()
        self.batcher, _ = source.batcher(owner.follow_batch, owner.exclude_keys)
        self.loader: Any = None
        self.pin = owner.pin_memory and torch.accelerator.is_available()
        self.seed = owner._torch_seed()
        if resume is not None and resume["seed"] is not None:
            self.seed = resume["seed"]
        if type(owner.batch_sampler) is not BatchSampler:
            self.natives: Iterator[Any] = owner._indexed()
        else:
            self.loader = owner._loader(owner._order(self.seed))
            if resume is not None and "native" in resume:
                self.loader.load_state_dict(resume["native"])
                self.done = resume["done"]
            elif owner.seed is not None:
                self.loader.set_epoch(owner._epoch)
            self.natives = iter(self.loader)
        if resume is not None and "native" not in resume:
            while self.done < resume["done"] and next(self.natives, None) is not None:
                self.done += 1

    def __iter__(self) -> _Epoch:
        return self

    def __len__(self) -> int:
        return len(self.owner)

    def __next__(self) -> Any:
        native = next(self.natives, None)
        if native is None:
            if not self.over:
                self.over = True
                self.owner._epoch += 1
            raise StopIteration
        self.done += 1
        batch = self.batcher(native)
        return batch.pin_memory() if self.pin else batch


def _why_not(dataset: Any) -> str | None:
    """Why a data set's batches cannot be made natively, or None if they can."""
    if not isinstance(dataset, MappedDataset):
        return f"{type(dataset).__name__} is no MappedDataset"
    if dataset.transform is not None:
        return "it has a transform, which is called for each sample (apply it while writing, as pre_transform, if it is not random)"
    source = dataset._file()
    if source is None:
        return "its data is held in memory: it was assigned or changed (write it with save, and load it)"
    if type(dataset).get is not MappedDataset.get or type(dataset).__getitem__ is not MappedDataset.__getitem__:
        return f"{type(dataset).__name__} has a get or __getitem__ of its own"
    return source.not_native
