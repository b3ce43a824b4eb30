"""A stream of samples to a file, in bounded memory and published only when complete."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import fencepost
from fencepost._shards import write_parts
from torch_geometric.data.data import BaseData

from .encode import Encoder
from .errors import MismatchError, PygError
from .infer import Field, infer
from .profile import Profile


class SampleWriter:
    """Writes samples one by one. The first settles the profile, unless one made from all of them is given.

    options: what else `fencepost.Writer` takes.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        allow_pickle: bool = False,
        made_from: Sequence[BaseData] | None = None,
        metadata: dict[str, Any] | None = None,
        row: str = "data",
        **options: Any,
    ) -> None:
        self.path = os.fspath(path)
        self.allow_pickle = allow_pickle
        self.metadata = dict(metadata or {})
        self.row = row
        self.options = options
        self.count = 0
        self._writer: Any = None
        self._encode: Encoder | None = None
        if made_from is not None:
            self._begin(made_from)

    def _begin(self, samples: Sequence[BaseData]) -> None:
        profile, fields, axes = infer(samples, self.allow_pickle)
        profile.row = self.row
        folder = os.path.dirname(self.path)
        if folder:
            os.makedirs(folder, exist_ok=True)
        self._encode = Encoder(profile, type(samples[0]))
        self._writer = fencepost.Writer(
            self.path,
            fencepost.Schema([_attribute(field) for field in fields], axes=axes),
            metadata={**self.metadata, "pyg": profile.to_json()},
            # PyG takes indices as they are: -1 for padding, ids of a larger graph.
            check_indices=False,
            **self.options,
        )

    def append(self, data: BaseData) -> None:
        """Adds a sample. A sample that does not fit is an error that names it, and leaves the writer as it was."""
        if self._encode is None:
            self._begin([data])
        assert self._encode is not None
        values, axes = self._encode(self.count, data)
        try:
            self._writer.append(values, axes=axes)
        except fencepost.Error as error:
            if isinstance(error, ValueError) and not isinstance(error, OSError):
                raise MismatchError(
                    self.count, "its values", "what the first samples had (extents may differ along __cat_dim__ only)", str(error)
                ) from error
            raise
        self.count += 1

    def finish(self) -> int:
        """Publishes the file under its name and gives the number of samples."""
        if self._writer is None:
            raise PygError(
                f"{self.path}: expected at least one sample, found none: their attributes are learnt from the first; "
                "check what pre_filter lets through"
            )
        self._writer.finish()
        return self.count

    def abort(self) -> None:
        """Leaves nothing behind."""
        if self._writer is not None:
            self._writer.abort()


def _attribute(field: Field) -> Any:
    return fencepost.Attribute(
        field.name, field.dtype, field.shape, cat_dim=field.cat_dim, increment=field.increment, hidden=field.hidden
    )


def write(
    samples: Iterable[BaseData],
    path: str | os.PathLike[str],
    *,
    allow_pickle: bool = False,
    progress: bool = False,
    metadata: dict[str, Any] | None = None,
) -> int:
    """Writes all samples, or leaves what was at `path` before.

    A list is written by what its first sample looks like, as a stream is. Should a later sample not fit, all of the
    list is looked at, and begun anew with what they have in common, as PyG would settle it. Of other sequences nobody knows
    whether their samples fit into memory together.
    """
    again = getattr(samples, "in_memory", isinstance(samples, (list, tuple)))
    if again and len(samples) == 0:  # type: ignore[arg-type]
        raise PygError(f"{os.fspath(path)}: expected at least one sample, found an empty list; check what pre_filter lets through")
    try:
        return _write(samples, path, None, allow_pickle, progress, metadata)
    except MismatchError:
        if not again:
            raise
        return _write(samples, path, list(samples), allow_pickle, progress, metadata)


def _write(
    samples: Iterable[BaseData],
    path: str | os.PathLike[str],
    made_from: Sequence[BaseData] | None,
    allow_pickle: bool,
    progress: bool,
    metadata: dict[str, Any] | None,
) -> int:
    writer = SampleWriter(path, allow_pickle=allow_pickle, made_from=made_from, metadata=metadata)
    try:
        for data in _shown(samples, progress, f"Writing {os.path.basename(os.fspath(path))}"):
            writer.append(data)
        return writer.finish()
    except BaseException:
        writer.abort()
        raise


def write_shards(
    path: str | os.PathLike[str],
    source: Sequence[Any],
    function: Callable[[Any], BaseData | None],
    *,
    items_per_shard: int = 1024,
    num_workers: int = 0,
    filtered: bool = False,
    allow_pickle: bool = False,
    dataset: str | None = None,
    progress: bool = False,
    mp_context: str | None = None,
) -> None:
    """Writes a folder of shards of the graphs that `function` makes of the items of `source`, with several processes.

    As `fencepost.write_shards`. The first item's graph settles what all graphs have; with filtered=True, `function` may give None for items
    that are left out. Open the folder with `fencepost.pyg.open` or `MappedDataset.load`.
    """
    first = next(filter(lambda data: data is not None, map(function, source)), None)
    if first is None:
        raise PygError(f"{os.fspath(path)}: expected at least one graph, found none: their attributes are learnt from the first")
    part = _GraphPart(function, first, filtered, allow_pickle)
    write_parts(
        path, source, part, items_per_shard=items_per_shard, num_workers=num_workers, counted=not filtered, dataset=dataset,
        progress=progress, mp_context=mp_context,
    )


class _GraphPart:
    """Writes some items' graphs to one shard. Every process settles the attributes by the same graph."""

    def __init__(self, function: Callable[[Any], BaseData | None], first: BaseData, filtered: bool, allow_pickle: bool) -> None:
        self.function, self.first, self.filtered, self.allow_pickle = function, first, filtered, allow_pickle

    def __call__(self, path: str, shard: fencepost.Shard, items: Iterator[Any]) -> None:
        writer = SampleWriter(path, allow_pickle=self.allow_pickle, made_from=[self.first], shard=shard)
        try:
            for item in items:
                data = self.function(item)
                if data is not None:
                    writer.append(data)
                elif not self.filtered:
                    raise PygError(f"{path}: expected a graph of every item, found None: pass filtered=True to leave items out")
            writer.finish()
        except BaseException:
            writer.abort()
            raise


def _shown(samples: Iterable[BaseData], progress: bool, what: str) -> Iterator[BaseData]:
    if not progress:
        return iter(samples)
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return iter(samples)
    total = len(samples) if hasattr(samples, "__len__") else None  # type: ignore[arg-type]
    # Under a second nobody needs a bar, and no terminal wants one in a log.
    return iter(tqdm(samples, desc=what, total=total, unit=" graphs", delay=1, disable=None))
