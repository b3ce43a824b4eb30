"""PyTorch Geometric on fencepost files.

    from fencepost.pyg import MappedDataset, DataLoader, convert

    class MyShapes(MappedDataset): ...                  # was: InMemoryDataset; nothing else changes
    convert(old_dataset, "shapes.fence")                # any PyG data set or iterable of Data, streamed
    dataset = fencepost.pyg.open("shapes.fence")        # a ready MappedDataset, no subclass needed
    loader = DataLoader(dataset, batch_size=128, shuffle=True)

| file | duty |
| --- | --- |
| `dataset` | `MappedDataset`, `open` |
| `loader` | `DataLoader` |
| `convert`, `legacy` | other data sets to files and back; files that `InMemoryDataset` wrote |
| `backend` | a database of `OnDiskDataset` |
| `source` | an open file: samples, batches, columns as PyG's objects |
| `profile` | how attributes make up objects, as it stands in the file |
| `infer`, `encode`, `write` | samples to a profile, to values, to a file |
| `decode`, `batch`, `skeleton` | values to samples and batches |
| `values` | Python values to bytes without pickle |
"""

from __future__ import annotations

try:
    import torch as _torch  # noqa: F401
    import torch_geometric as _torch_geometric  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"fencepost.pyg needs torch and torch_geometric ({error}): pip install torch torch_geometric"
    ) from error

from .backend import FencepostDatabase, register_backend
from .convert import convert, export
from .dataset import MappedDataset, open
from .errors import MismatchError, PickleError, PygError
from .loader import DataLoader
from .write import write_shards

__all__ = [
    "DataLoader",
    "FencepostDatabase",
    "MappedDataset",
    "MismatchError",
    "PickleError",
    "PygError",
    "convert",
    "export",
    "open",
    "register_backend",
    "write_shards",
]
