"""An open file with its profile: samples and batches as PyG's objects. Everything above goes through here."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import fencepost
import torch
import torch_geometric.data
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.data.data import BaseData

from .batch import Batcher
from .decode import Decoder
from .errors import PickleError, PygError
from .profile import DictNode, ListNode, Node, Profile, TensorNode


class Source:
    """Samples of one file, or of a view of it."""

    def __init__(
        self,
        native: Any,
        kind: type[BaseData],
        profile: Profile,
        *,
        strict: bool = False,
        single: bool | None = None,
    ) -> None:
        self.native = native
        self.kind = kind
        self.profile = profile
        #: A set of one sample is stored as it is by PyG, so what comes out is the original.
        self.single = len(native) == 1 if single is None else single
        self.strict = strict
        self.count = len(native)
        self._decoder = Decoder(profile, kind, strict or self.single)
        self._view = native.project(self._decoder.fields)
        self._batchers: dict[Any, tuple[Batcher, Any]] = {}

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        data_cls: type[BaseData] | None = None,
        allow_pickle: bool = False,
        backing: Any = "auto",
        strict: bool = False,
    ) -> Source:
        native = fencepost.open(path, backing=backing)
        tree = native.metadata.get("pyg")
        if tree is None:
            raise PygError(
                f"{os.fspath(path)}: expected the pyg profile in the file's metadata, found none: it was not written by "
                "fencepost.pyg; read it with fencepost.open, or write it with fencepost.pyg.convert"
            )
        profile = Profile.from_json(tree, os.fspath(path))
        if profile.pickled and not allow_pickle:
            raise PickleError(
                f"{os.fspath(path)}: expected data only, found pickled objects, which can run code when they are read; "
                "pass allow_pickle=True if you trust whoever wrote the file"
            )
        return cls(native, data_class(profile, data_cls, path), profile, strict=strict)

    # Spawned workers get the path and the view; the native dataset's own pickle checks that the file is the same.
    def __reduce__(self) -> Any:
        return _reopen, (self.native, self.kind, self.profile.to_json(), self.strict, self.single)

    def __len__(self) -> int:
        return self.count

    @property
    def path(self) -> str:
        return str(self.native.path)

    @property
    def homogeneous(self) -> bool:
        return issubclass(self.kind, Data)

    def select(self, indices: Sequence[int]) -> Source:
        """A view of these samples."""
        return Source(self.native[list(indices)], self.kind, self.profile, strict=self.strict, single=self.single)

    def get(self, index: int) -> Any:
        view = self._view
        return self._decoder(view.read_torch(index), view.axes_of(index) if self._decoder.counts else None)

    @property
    def not_native(self) -> str | None:
        """Why batches of this file have to be made by PyG, or None."""
        if self.single:
            return "a set of one sample holds it as it was, so nothing has been settled for batches"
        return self.profile.not_native

    def batcher(self, follow_batch: Iterable[str] | None, exclude_keys: Iterable[str] | None) -> tuple[Batcher, Any]:
        """What makes batches, and the native dataset with just the attributes that they need."""
        key = (frozenset(follow_batch or ()), frozenset(exclude_keys or ()))
        found = self._batchers.get(key)
        if found is None:
            batcher = Batcher(self.profile, self.kind, *key)
            # One projection per combination: a plan for batching is made once for each.
            found = self._batchers[key] = batcher, self.native.project(batcher.fields)
        return found

    def batch(
        self, indices: Any, follow_batch: Iterable[str] | None = None, exclude_keys: Iterable[str] | None = None
    ) -> Any:
        if self.not_native is not None:
            samples = [self.get(int(index)) for index in indices]
            return Batch.from_data_list(
                samples, follow_batch=list(follow_batch or ()), exclude_keys=list(exclude_keys or ())
            )
        batcher, native = self.batcher(follow_batch, exclude_keys)
        return batcher(native.batch(indices, **batcher.options))

    # The collated form ------------------------------------------------------------------------------------------------

    def column(self, node: Node) -> Any:
        """All samples' values of one place, put together without increments, as `InMemoryDataset` holds them."""
        if isinstance(node, TensorNode):
            if node.wrap is None:
                return self._whole(node.name)
        elif isinstance(node, DictNode):
            return {key: self.column(item) for key, item in zip(node.keys, node.items, strict=True)}
        elif isinstance(node, ListNode):
            return [self.column(item) for item in node.items]
        view = self.native.project(node.fields())
        from .decode import taker

        take = taker(node, strict=False)
        values = [take(view.read_torch(index)) for index in range(self.count)]
        if isinstance(node, TensorNode):
            return torch.cat(values, dim=node.cat_dim or 0)
        return values

    def _whole(self, name: str) -> Tensor:
        """All values of an attribute in memory of their own, which may be written to."""
        from .profile import TORCH_DTYPES

        attribute = self.native.schema[name]
        array = self.native[name]
        tensor = torch.from_numpy(array.copy())
        dtype = TORCH_DTYPES[attribute.dtype]
        return tensor if tensor.dtype == dtype else tensor.view(dtype)

    def column_slices(self, node: Node) -> Any:
        if isinstance(node, TensorNode):
            field = self.native.schema[node.name]
            shape = list(field.shape)
            if node.cat_dim is None:
                return torch.arange(self.count + 1)
            extent = shape[node.cat_dim]
            if isinstance(extent, str):
                return torch.as_tensor(self.native.offsets(extent)).to(torch.int64)
            return torch.arange(self.count + 1) * extent
        if isinstance(node, DictNode):
            return {key: self.column_slices(item) for key, item in zip(node.keys, node.items, strict=True)}
        if isinstance(node, ListNode):
            return [self.column_slices(item) for item in node.items]
        return torch.arange(self.count + 1)

    def collated(self) -> tuple[Any, Any]:
        """`data` and `slices` of an `InMemoryDataset` with these samples. Holds all of them in memory."""
        if self.count == 1:
            return self.get(0), None
        data = self.kind()
        slices: dict[Any, Any] = {}
        for store in self.profile.stores:
            if store.kind == "node":
                data.get_node_store(store.key)
            elif store.kind == "edge":
                data.get_edge_store(*(store.key or ()))
        for store, made in zip(self.profile.stores, data.stores, strict=True):
            target = slices if store.key is None else slices.setdefault(store.key, {})
            for key, node in store.attributes.items():
                made[key] = self.column(node)
                target[key] = self.column_slices(node)
            if store.explicit:
                lengths = self.native.offsets(store.axis)
                counts = (lengths[1:] - lengths[:-1]).tolist()
                made.__dict__["_num_nodes"] = counts
                made["num_nodes"] = sum(counts)
        return data, slices


def _reopen(native: Any, kind: type[BaseData], tree: Any, strict: bool, single: bool) -> Source:
    return Source(native, kind, Profile.from_json(tree, native.path), strict=strict, single=single)


def data_class(profile: Profile, given: type[BaseData] | None, path: Any) -> type[BaseData]:
    """The class of the samples. A name from a file imports nothing: it is looked up in what the program has loaded."""
    if given is not None and given is not Data and given.__qualname__ == profile.name:
        return given
    own = getattr(torch_geometric.data, profile.name, None)
    if profile.module.partition(".")[0] == "torch_geometric" and isinstance(own, type) and issubclass(own, BaseData):
        return own
    for module in (profile.module, *(("__mp_main__",) if profile.module == "__main__" else ())):
        found: Any = sys.modules.get(module)
        for part in profile.name.split("."):
            found = getattr(found, part, None)
        if isinstance(found, type) and issubclass(found, BaseData):
            return found
    if given is not None and given is not Data:
        return given
    raise PygError(
        f"{os.fspath(path)}: its samples are of class {profile.module}.{profile.name}, which this program has not loaded; "
        "import the module first, or pass data_cls="
    )


