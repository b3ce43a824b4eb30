"""Samples of PyTorch Geometric to a file, by `fencepost.pyg`, which is imported when there are such samples."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import fencepost

from ._errors import SourceError
from ._library import library
from ._write import Path, WriteOptions


def is_graph(value: Any) -> bool:
    """Whether this is a `Data` or `HeteroData`. Asking imports nothing: whoever made one has imported its class."""
    return any(kind.__module__ == "torch_geometric.data.data" and kind.__name__ == "BaseData" for kind in type(value).__mro__)


def modern(data: Any) -> Any:
    """The sample with the layout that today's PyG expects: before 2.0, a `Data` kept its values in its own `__dict__`."""
    if "_store" in data.__dict__ or "_global_store" in data.__dict__:
        return data
    return type(data)(**{key: value for key, value in data.__dict__.items() if value is not None and not key.startswith("__")})


def write_graphs(
    records: Iterable[tuple[str, str, Any]],
    out: Path,
    options: WriteOptions,
    *,
    source: Path,
    total: int | None,
    allow_pickle: bool,
    function: str,
) -> fencepost.Dataset:
    """Writes (path, place, sample)s with the `pyg` profile, which `fencepost.pyg.open` reads; or leaves what was at `out`."""
    for name in ("schema", "optional"):
        if options.get(name):
            raise TypeError(f"{name}: expected none for samples of PyG, whose first says the attributes, found one")
    library("fencepost.pyg", "torch torch_geometric", function)
    pyg = library("fencepost.pyg.write", "torch torch_geometric", function)
    path = place = ""
    writer = pyg.SampleWriter(
        out,
        allow_pickle=allow_pickle,
        metadata=options.get("metadata"),
        overwrite=options.get("overwrite", True),
        narrow=options.get("narrow", False),
        progress=options.get("progress", False),
        total=total,
    )
    try:
        for path, place, data in records:
            if not is_graph(data):
                raise SourceError(path, place, "", "a sample of PyG, as the first is", type(data).__name__, "decode them alike")
            writer.append(modern(data))
        if writer.count == 0:
            raise SourceError(source, "", "", "at least one record, since the first says the attributes", "none")
        writer.finish()
    except BaseException as error:
        writer.abort()
        # Its own count of samples is not the source's name for a record.
        if isinstance(error, ValueError) and not isinstance(error, (OSError, SourceError)) and isinstance(error, fencepost.Error):
            raise SourceError.at(path, place, error) from error
        raise
    return fencepost.open(os.fspath(out))
