"""Files that `InMemoryDataset` wrote: recognised, and converted once into a file of ours beside them."""

from __future__ import annotations

import copy
import os
import pickle
import re
import sys
from collections.abc import Iterator
from typing import Any

import fencepost
import torch
import torch_geometric.data
from torch_geometric.data import Data
from torch_geometric.data.data import BaseData
from torch_geometric.data.in_memory_dataset import nested_iter
from torch_geometric.data.separate import separate

from .errors import PickleError, PygError
from .write import write

MAGIC = b"\x89FNCP\r\n\x1a"


def is_fence(path: str | os.PathLike[str]) -> bool:
    """Whether there is a file of ours at this path, or a folder of them."""
    if os.path.isdir(path):
        return any(name.endswith(".fence") and not name.startswith(".") for name in os.listdir(path))
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except (FileNotFoundError, IsADirectoryError):
        return False


#: What a pickled `Data` is made of, besides what PyG itself has torch load: classes that hold data and run nothing.
_PARTS = [
    torch_geometric.data.data.DataEdgeAttr,
    torch_geometric.data.data.DataTensorAttr,
    torch_geometric.data.feature_store.TensorAttr,
    torch_geometric.data.graph_store.EdgeAttr,
    torch_geometric.data.graph_store.EdgeLayout,
    torch_geometric.data.storage.BaseStorage,
    torch_geometric.data.storage.NodeStorage,
    torch_geometric.data.storage.EdgeStorage,
    torch_geometric.data.storage.GlobalStorage,
]


def read(path: str, allow_pickle: bool) -> Any:
    """What `torch.save` wrote, without running anything from the file unless that is allowed."""
    with open(path, "rb") as file:
        start = file.read(4)
    # A zip archive today, a bare pickle in torch before 1.6.
    if start != b"PK\x03\x04" and start[:1] != b"\x80":
        raise PygError(f"{path}: expected a file of fencepost or of torch.save, found one that begins with {start!r}")
    # Tensors of an archive can stay in the file until they are looked at.
    return load(path, path, allow_pickle, mmap=start[:1] != b"\x80")


def load(source: Any, where: str, allow_pickle: bool, mmap: bool = False) -> Any:
    """What `torch.save` wrote to a path or an open file; `where` is what errors call it."""
    try:
        with torch.serialization.safe_globals(_PARTS):
            return torch.load(source, weights_only=True, map_location="cpu", mmap=mmap)
    except pickle.UnpicklingError as error:
        if not allow_pickle:
            named = re.search(r"GLOBAL (\S+)", str(error))
            raise PickleError(
                f"{where}: expected tensors and plain values only, found objects that need pickle, which can run code"
                f"{f' ({named[1]})' if named else ''}; set allow_pickle = True in the class, or pass it, if you trust the file",
                named=named[1] if named else "",
            ) from error
    except (RuntimeError, EOFError, OSError, LookupError) as error:  # what torch raises where a file is cut off
        raise PygError(f"{where}: expected a file of fencepost or of torch.save, found neither: {error}") from error
    if not isinstance(source, str):
        source.seek(0)
    try:
        return torch.load(source, weights_only=False, map_location="cpu", mmap=mmap)
    except (RuntimeError, EOFError, OSError, LookupError, pickle.UnpicklingError) as error:
        raise PygError(f"{where}: expected a whole file of torch.save, found one that cannot be read: {error}") from error


def samples(data: BaseData, slices: Any) -> Iterator[BaseData]:
    """The samples of a collated set, without the cache that `InMemoryDataset.get` fills."""
    if slices is None:
        yield copy.copy(data)
        return
    count = next((len(value) - 1 for _, value in nested_iter(slices)), 0)
    for index in range(count):
        yield separate(type(data), data, index, slices, decrement=False)


class Collated:
    """The samples of a collated set as something with a length that can be gone through again."""

    def __init__(self, data: BaseData, slices: Any) -> None:
        self.data, self.slices = data, slices

    def __len__(self) -> int:
        return 1 if self.slices is None else next((len(value) - 1 for _, value in nested_iter(self.slices)), 0)

    def __iter__(self) -> Iterator[BaseData]:
        return samples(self.data, self.slices)


def unpack(found: Any, path: str, data_cls: type[BaseData]) -> tuple[BaseData, Any]:
    """`(data, slices)` of what `InMemoryDataset.save`, or `torch.save((data, slices))` in older code, wrote."""
    if not isinstance(found, tuple) or len(found) not in (2, 3):
        raise PygError(
            f"{path}: expected (data, slices) or (data, slices, class) as InMemoryDataset saves them, found {type(found).__name__}"
        )
    data, slices = found[:2]
    if isinstance(data, dict):
        data = (found[2] if len(found) == 3 else data_cls).from_dict(data)
    if not isinstance(data, BaseData):
        raise PygError(f"{path}: expected a Data or HeteroData in front, found {type(data).__name__}")
    return data, slices


def convert_beside(path: str, data_cls: type[BaseData] = Data, allow_pickle: bool = False, log: bool = True) -> str:
    """The path of the converted file of what is at `path`; it is made if it is not there or is another version's."""
    target = f"{path}.fence"
    facts = os.stat(path)
    # A file that was written anew in place has another length or time.
    source = {"name": os.path.basename(path), "length": facts.st_size, "modified": str(facts.st_mtime_ns)}
    if is_fence(target) and fencepost.open(target).metadata.get("converted_from") == source:
        return target
    data, slices = unpack(read(path, allow_pickle), path, data_cls)
    collated = Collated(data, slices)
    if log:
        print(f"fencepost: {path} was written by InMemoryDataset; converting its {len(collated)} samples to {target}", file=sys.stderr)
    write(collated, target, allow_pickle=allow_pickle, progress=log, metadata={"converted_from": source})
    return target
