"""Datasets of variable-size samples that are larger than RAM: immutable files, served resident, mapped or positional.

    with fencepost.Writer("graphs.fence") as writer:
        writer.append({"x": x, "edge_index": edge_index})
    dataset = fencepost.open("graphs.fence")
    dataset[17]["x"]

numpy is all that this package needs. `fencepost.torch` has datasets and loaders for torch, and is imported on its own.
"""

from __future__ import annotations

# All that the native part imports when it is called, so that it is never a call that imports: a process that forks while one of its
# threads imports leaves the child a module that nobody finishes.
import functools as _functools  # noqa: F401
import json as _json  # noqa: F401
from importlib.metadata import PackageNotFoundError as _PackageNotFoundError
from importlib.metadata import version as _version

from . import _index, _progress, _shards, _show, _values  # noqa: F401
from ._errors import (
    AbsentError,
    BatchError,
    ChangedError,
    ConvertError,
    DTypeError,
    Error,
    ExistsError,
    FormatError,
    HostError,
    IoError,
    LoaderError,
    LoaderStateError,
    NotFoundError,
    OutOfRangeError,
    PermissionDeniedError,
    PublishError,
    SampleError,
    SchemaError,
    ShardsError,
    UnknownNameError,
    UnreadableError,
    UnsupportedError,
    WriterError,
)
from ._fencepost import (
    Attribute,
    BadBlock,
    Batch,
    Dataset,
    File,
    Loader,
    Metrics,
    Problem,
    Schema,
    Shard,
    ShardedSummary,
    ShardedWriter,
    Summary,
    VerifyReport,
    Writer,
    open,
)
from ._shards import write_shards

try:
    __version__ = _version("fencepost")
except _PackageNotFoundError:  # imported from a folder that nothing installed
    __version__ = "unknown"

__all__ = [
    "AbsentError",
    "Attribute",
    "BadBlock",
    "Batch",
    "BatchError",
    "ChangedError",
    "ConvertError",
    "DTypeError",
    "Dataset",
    "Error",
    "ExistsError",
    "File",
    "FormatError",
    "HostError",
    "IoError",
    "Loader",
    "LoaderError",
    "LoaderStateError",
    "Metrics",
    "NotFoundError",
    "OutOfRangeError",
    "PermissionDeniedError",
    "Problem",
    "PublishError",
    "SampleError",
    "Schema",
    "SchemaError",
    "Shard",
    "ShardedSummary",
    "ShardedWriter",
    "ShardsError",
    "Summary",
    "UnknownNameError",
    "UnreadableError",
    "UnsupportedError",
    "VerifyReport",
    "Writer",
    "WriterError",
    "open",
    "write_shards",
]
