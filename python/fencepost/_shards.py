"""Shards written side by side by several processes: each is a file for itself, so that they need nothing of each other."""

from __future__ import annotations

import concurrent.futures
import contextlib
import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from . import _progress
from ._errors import ExistsError, WriterError
from ._fencepost import Dataset, Schema, Shard, Writer, open


class PartWriter(Protocol):
    """Writes some items of a source to one file. Pickled, where other processes write."""

    def __call__(self, path: str, shard: Shard, items: Iterator[Any]) -> None: ...


def write_shards(
    path: str | os.PathLike[str],
    source: Sequence[Any],
    transform: Callable[[Any], Any] | None = None,
    *,
    items_per_shard: int,
    num_workers: int = 0,
    filtered: bool = False,
    schema: Schema | None = None,
    dataset: str | None = None,
    progress: bool = False,
    mp_context: str | None = None,
    **options: Any,
) -> Dataset:
    """Write a folder of shards from a source whose items can be had by index, with several processes; and open it.

    source: anything with a length and integer indices: a list of paths, a range, an open dataset. Shard k has the samples of items
    k * items_per_shard to (k + 1) * items_per_shard, in order, so that the result is the same for any number of processes, byte by byte.

    transform: makes a sample (a mapping, as `Writer.append` takes it) of an item. With filtered=True it may also give None, which leaves
    the item out, or a list of samples.

    num_workers: processes; 0 writes in this one. They are started by `mp_context` (as in torch's DataLoader: "fork", "spawn", "forkserver"),
    and get source and transform once each. Shards that are there already are not written again: after a crash, call it once more.

    schema: by default inferred from the first sample of each shard, which have to agree. The other options are a `Writer`'s.

    Raises ExistsError if the folder has shards of another source or dataset, WriterError if a process died.
    """
    part = _SamplePart(transform, filtered, schema, options)
    return write_parts(
        path, source, part, items_per_shard=items_per_shard, num_workers=num_workers, counted=not filtered, dataset=dataset,
        progress=progress, mp_context=mp_context,
    )


class _SamplePart:
    def __init__(
        self, transform: Callable[[Any], Any] | None, filtered: bool, schema: Schema | None, options: Mapping[str, Any]
    ) -> None:
        self.transform, self.filtered, self.schema, self.options = transform, filtered, schema, dict(options)

    def __call__(self, path: str, shard: Shard, items: Iterator[Any]) -> None:
        with Writer(path, self.schema, shard=shard, **self.options) as writer:
            for item in items:
                made = item if self.transform is None else self.transform(item)
                if not self.filtered:
                    writer.append(made)
                elif made is not None:
                    writer.extend([made] if isinstance(made, Mapping) else made)


def write_parts(
    path: str | os.PathLike[str],
    source: Sequence[Any],
    write: PartWriter,
    *,
    items_per_shard: int,
    num_workers: int,
    counted: bool,
    dataset: str | None,
    progress: bool,
    mp_context: str | None,
) -> Dataset:
    """Write all shards that are not there. `counted`: each item makes one sample, so that every shard's first index is known."""
    if items_per_shard < 1 or num_workers < 0:
        raise ValueError(
            f"expected items_per_shard of at least 1 and num_workers of at least 0, found {items_per_shard} and {num_workers}"
        )
    folder = os.path.abspath(path)
    os.makedirs(folder, exist_ok=True)
    job = _Job(folder, source, write, items_per_shard, counted, dataset or os.path.basename(folder))
    missing = job.missing()
    with contextlib.closing(_progress.bar(len(source), f"writing {os.path.basename(folder)}", "items") if progress else _Silent()) as bar:
        bar.update(len(source) - sum(map(job.items_of, missing)))
        for number in _done(job, missing, num_workers, mp_context):
            bar.update(job.items_of(number))
    return open(folder)


class _Silent:
    def update(self, _: int) -> None:
        pass

    def close(self) -> None:
        pass


def _done(job: _Job, missing: Sequence[int], num_workers: int, mp_context: str | None) -> Iterator[int]:
    """Writes shards, and gives the number of each when it is there."""
    if num_workers == 0:
        for number in missing:
            job.write_shard(number)
            yield number
        return
    context = multiprocessing.get_context(mp_context)
    pool = concurrent.futures.ProcessPoolExecutor(min(num_workers, max(len(missing), 1)), context, _begin, (job,))
    try:
        futures = {pool.submit(_work, number): number for number in missing}
        for future in concurrent.futures.as_completed(futures):
            future.result()
            yield futures[future]
    except concurrent.futures.process.BrokenProcessPool as error:
        raise WriterError(
            f"{job.folder}: expected {num_workers} processes to end on their own, found that one was killed or crashed; the shards that are "
            "there are whole: call it again to write the others"
        ) from error
    finally:
        # Those that are being written end; the others are not begun.
        pool.shutdown(wait=True, cancel_futures=True)


class _Job:
    """What every process knows of the dataset."""

    def __init__(
        self, folder: str, source: Sequence[Any], write: PartWriter, items_per_shard: int, counted: bool, dataset: str
    ) -> None:
        self.folder, self.source, self.write, self.counted, self.dataset = folder, source, write, counted, dataset
        self.items_per_shard = items_per_shard
        self.total = len(source)
        #: One without items says that the dataset is complete.
        self.count = max(-(-self.total // items_per_shard), 1)

    def _items(self, number: int) -> range:
        start = number * self.items_per_shard
        return range(start, min(start + self.items_per_shard, self.total))

    def items_of(self, number: int) -> int:
        return len(self._items(number))

    def shard(self, number: int) -> Shard:
        items = self._items(number)
        return Shard(
            self.dataset, number, first=items.start if self.counted else None, last=number == self.count - 1,
            source=f"items {items.start}..{items.stop} of {self.total}",
        )

    def missing(self) -> list[int]:
        """Numbers of the shards that are not there; those that are have to be of this dataset and source."""
        names = {self.shard(number).file_name: number for number in range(self.count)}
        there = set()
        for name in sorted(os.listdir(self.folder)):
            if name.startswith(".") or not name.endswith(".fence"):
                continue
            path = os.path.join(self.folder, name)
            found = open(path, "positional").files[0].shard
            expected = self.shard(names[name]) if name in names else None
            if found is None or found != expected:
                raise ExistsError(
                    f"{path}: expected {expected or 'no such file'}, found {found or 'a file that is no shard'}: it was written from another "
                    "source, or in other parts; write to another folder, or remove it",
                    path=path,
                )
            there.add(names[name])
        return [number for number in range(self.count) if number not in there]

    def write_shard(self, number: int) -> None:
        shard = self.shard(number)
        path = os.path.join(self.folder, shard.file_name)
        at = 0

        def items() -> Iterator[Any]:
            nonlocal at
            for at in self._items(number):
                yield self.source[at]

        try:
            self.write(path, shard, items())
        except Exception as error:
            error.add_note(f"{path}: at item {at} of the source")
            raise


_job: _Job | None = None


def _begin(job: _Job) -> None:
    global _job
    _job = job


def _work(number: int) -> None:
    assert _job is not None
    _job.write_shard(number)


